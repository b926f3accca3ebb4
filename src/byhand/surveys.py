"""`byhand.survey`: of a corpus, how often each format says another token than the true one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from byhand.api import as_model
from byhand.errors import InputError
from byhand.language import _
from byhand.model import Model
from byhand.models import called
from byhand.options import Chosen, does_not_fit
from byhand.scoring.layers import Reader, places_of
from byhand.scoring.samples import Sample
from byhand.scoring.scorer import Scorer
from byhand.scoring.small_weights import with_small_weights
from byhand.scoring.survey import SMALL, Run, Survey
from byhand.scoring.texts import Given, read_texts, refuse_unless_scorable
from byhand.scoring.tokens import Tokens

DIGITS = 6  # decimals that are proven unless told otherwise
FINEST = "float64"  # the only floats that may stand for the truth, and are called not proven
FORMATS = ("float32", "float16", "bfloat16", SMALL)
WORKED_IN = "float32"  # what a model with smaller weights is worked out in

Watch = Callable[[str, int, int], None]  # the numbers, and how many of how many texts are done


def survey(
    model: str | Path | Model,
    texts: Given | Iterable[Given] | None = None,
    *,
    formats: str | Iterable[str] | None = None,
    digits: int | None = None,
    float: str | None = None,
    device: str | None = None,
    progress: Watch | None = None,
) -> Survey:
    """How often the rounding of each format says another token than the true one, and why.

    The texts are those that `byhand.score` takes; without any, the model's own.  `formats` are some
    of float32, float16, bfloat16 and float8_e4m3; all of them unless told otherwise.  The last one
    means weights that are kept in 8 bits (`byhand.scoring.small_weights`), worked out in float32.

    The true values are enclosures: `digits` decimals of each log-probability are proven, 6 unless
    told otherwise.  With `float="float64"` a run in float64 stands for them, and nothing is proven.

    >>> import byhand
    >>> survey = byhand.survey("tiny", "a b a", formats="float16")
    >>> survey.truth.margins.tolist(), survey["float16"].flips.count
    ([1.0, 1.0], 0)
    """
    chosen = Chosen(digits=digits, float=float, device=device)
    chosen.refuse_comparison()
    if float not in (None, FINEST):
        raise does_not_fit("float", FINEST, float)
    wanted = asked_formats(formats)
    opened = as_model(model)
    refuse_unless_scorable(opened)
    samples = _samples(opened, texts)
    exact = None if float else (DIGITS if digits is None else digits)
    truth = Reader(Scorer(opened, float, exact, device))
    runs = {format: Reader(_scorer(opened, format, device)) for format in wanted}
    return _surveyed(opened, called(model), samples, truth, runs, progress)


def asked_formats(formats: str | Iterable[str] | None, dashes: str = "") -> tuple[str, ...]:
    """The formats of a survey; a UsageError where one is not known."""
    if formats is None:
        return FORMATS
    given = formats.split(",") if isinstance(formats, str) else list(formats)
    found = tuple(dict.fromkeys(each.strip() if isinstance(each, str) else each for each in given))
    unknown = [each for each in found if each not in FORMATS]
    if unknown or not found:
        said = unknown[0] if unknown else ""
        raise does_not_fit(
            "formats", _("some of {names}").format(names=", ".join(FORMATS)), said, dashes
        )
    return found


def _samples(model: Model, texts: Given | Iterable[Given] | None) -> list[Sample]:
    if texts is None and model.text is None:
        raise InputError(
            _("this model has no default text"), where=model.source, hint=_("give a text")
        )
    return read_texts(model, model.text if texts is None else texts)  # type: ignore[arg-type]


def _scorer(model: Model, format: str, device: str | None) -> Scorer:
    if format == SMALL:
        return Scorer(with_small_weights(model), WORKED_IN, None, device)
    return Scorer(model, format, None, device)


def _surveyed(
    model: Model,
    called: str,
    samples: Sequence[Sample],
    truth: Reader,
    runs: dict[str, Reader],
    progress: Watch | None,
) -> Survey:
    """Every text worked out truly and in each format, one after another."""
    true, doubt = [], 0.0
    found: dict[str, list[tuple[object, ...]]] = {format: [] for format in runs}
    for done, sample in enumerate(samples, 1):
        scores, layers = truth.read(sample)
        true.append(scores)
        doubt = max(doubt, layers.doubt)
        for format, reader in runs.items():
            own, seen = reader.read(sample)
            found[format].append((own, *seen.errors(layers)))
        if progress:
            progress(truth.scorer.name, done, len(samples))
    return Survey(
        model, called, Tokens(tuple(true)), tuple(_runs(found)), places_of(model.spec), doubt
    )


def _runs(found: dict[str, list[tuple[object, ...]]]) -> Iterator[Run]:
    for format, parts in found.items():
        scores, streams, logits = zip(*parts, strict=True)
        yield Run(format, Tokens(scores), np.concatenate(streams), np.concatenate(logits))
