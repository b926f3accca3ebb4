"""`byhand.score`: the true log-probability of every token, and how far engines are from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from byhand.api import as_model
from byhand.errors import InputError
from byhand.language import _
from byhand.model import Model
from byhand.models import called
from byhand.options import Chosen, does_not_fit
from byhand.scoring.logs import Log, match, read_logs, recognised, samples_of
from byhand.scoring.logs.findings import Finding, gathered
from byhand.scoring.logs.matching import Matched, Matching
from byhand.scoring.logs.odd_values import CLAMPED
from byhand.scoring.samples import Sample
from byhand.scoring.scored import Scored
from byhand.scoring.scorer import Scorer
from byhand.scoring.scores import Floats, Scores
from byhand.scoring.texts import Given, checked, read_texts, refuse_unless_scorable
from byhand.scoring.tokens import Engine, Tokens

DIGITS = 6  # decimals that are proven unless told otherwise
EPS = 0.2  # how far from 1 a ratio is clipped, unless told otherwise
FINENESS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}  # bits of a significand
ROUGHLY = "float32"  # for what does not take the true logits
RUN_BESIDE = ("float32", "float16", "bfloat16")

Watch = Callable[[str, int, int], None]  # the numbers, and how many of how many texts are done


def score(
    model: str | Path | Model,
    texts: Given | Iterable[Given] | None = None,
    *,
    against: str | Path | Log | Iterable[str | Path | Log] = (),
    digits: int | None = None,
    float: str | None = None,
    device: str | None = None,
    clip: float | None = None,
    progress: Watch | None = None,
) -> Scored:
    """The log-probability of every token of some texts, and each engine's errors beside it.

    A text is a string, a list of ids, a mapping with a prompt and a completion, or a file (see
    docs/score.md).  Without `texts` they are those of the logs, else the model's own.

    `digits` proves so many decimals of each log-probability, 6 unless told otherwise.  With a
    `float` format beside digits, the errors of byhand's own run of that format are told too, and
    whether its rounding can change the likeliest token.  A `float` alone takes its run for the
    truth, and nothing is proven.

    `against` are logs of engines.  Then byhand runs the texts in float32, float16 and bfloat16, and
    says which of them the errors look like.  Ratios of probabilities count as clipped outside 1 ±
    `clip`, 0.2 unless told otherwise.  `progress` is called with each text that is done.

    >>> import byhand
    >>> text = "<en> yesterday she climb -ed = ella sub -ió"
    >>> scored = byhand.score("minigpt", text, float="bfloat16", digits=6)
    >>> scored.standings.count("safe"), len(scored.truth)
    (5, 8)
    """
    chosen = Chosen(digits=digits, float=float, device=device)
    eps = _eps(clip)
    opened = as_model(model)
    refuse_unless_scorable(opened)
    logs = _logs(against)
    samples = _samples(opened, texts, logs)
    matchings = [match(log, samples, opened.vocabulary) for log in logs]
    if chosen.digits is None and chosen.float is None:
        chosen = Chosen(digits=DIGITS, device=device)
    alone = None if chosen.digits is not None else chosen.float
    truth = Tokens(tuple(_work(opened, samples, chosen.digits, alone, device, progress)))
    roughly = Rough(opened, device)
    engines = tuple(_engine(*each, truth, roughly) for each in zip(logs, matchings, strict=True))
    formats = _formats(chosen, bool(engines))
    runs = {
        format: Tokens(tuple(_work(opened, samples, None, format, device, progress)))
        for format in formats
    }
    wanted = chosen.float if chosen.compares else None
    return Scored(opened, called(model), truth, runs, wanted, engines, eps)


def _eps(clip: float | None) -> float:
    if clip is None:
        return EPS
    if isinstance(clip, bool) or not isinstance(clip, int | float) or not 0 < clip < 1:
        raise does_not_fit("clip", _("a number between 0 and 1"), clip)
    return clip


def _formats(chosen: Chosen, engines: bool) -> tuple[str, ...]:
    """The formats that byhand runs beside the truth: all coarser ones where there are engines."""
    wanted = [chosen.float] if chosen.compares and chosen.float else []
    if engines:
        truth = 10_000 if chosen.digits is not None else FINENESS[str(chosen.float)]
        wanted += [each for each in RUN_BESIDE if FINENESS[each] < truth]
    return tuple(dict.fromkeys(wanted))


def _work(
    model: Model,
    samples: Sequence[Sample],
    digits: int | None,
    format: str | None,
    device: str | None,
    progress: Watch | None,
) -> Iterator[Scores]:
    """The scores of the samples in one number system."""
    scorer = Scorer(model, format, digits, device)
    for done, scores in enumerate(scorer.score(samples), 1):
        if progress:
            progress(scorer.name, done, len(samples))
        yield scores


# ------------------------------------------------------------------ texts and logs


def _logs(against: str | Path | Log | Iterable[str | Path | Log]) -> list[Log]:
    """The logs, each engine with a name of its own.  "NAME=FILE" says what the engine is called."""
    given = (against,) if isinstance(against, str | Path | Log) else against
    found: list[Log] = []
    for each in given:
        if isinstance(each, Log):
            found.append(each)
            continue
        name, path = _named(each)
        found += read_logs(path, name)
    taken: set[str] = set()
    for place, log in enumerate(found):
        name, count = log.engine, 1
        while name in taken:
            count += 1
            name = f"{log.engine} {count}"
        taken.add(name)
        found[place] = replace(log, engine=name)
    return found


def _named(given: str | Path) -> tuple[str | None, Path]:
    """The name and the file of NAME=FILE; a file that is there is a file, whatever its name."""
    name, equals, rest = str(given).partition("=")
    if not equals or not name or not rest or Path(given).exists():
        return None, Path(given)
    return name, Path(rest)


def _samples(
    model: Model, texts: Given | Iterable[Given] | None, logs: Sequence[Log]
) -> list[Sample]:
    """The texts given; without any those of the logs, else the model's own."""
    if texts is not None:
        return read_texts(model, texts)
    found: dict[tuple[int, ...], Sample] = {}
    for log in logs:
        for sample in samples_of(log, model):
            known = found.get(sample.ids)
            if sample.name.startswith(log.source):  # a place in the file is no name
                sample = replace(sample, name=str(len(found) + 1))
            if known is None:
                found[sample.ids] = sample
            elif sample.first < known.first:
                found[sample.ids] = replace(known, first=sample.first)
    if found:
        return [checked(model, sample) for sample in found.values()]
    if model.text is None:
        raise InputError(
            _("this model has no default text"), where=model.source, hint=_("give a text")
        )
    return read_texts(model, model.text)


class Rough:
    """The logits of texts in floats, which some oddities of a log take; worked out when asked."""

    def __init__(self, model: Model, device: str | None) -> None:
        self._model, self._device = model, device
        self._scorer: Scorer | None = None

    def __call__(self, sample: Sample) -> Floats:
        if self._scorer is None:
            self._scorer = Scorer(self._model, ROUGHLY, None, self._device)
        return self._scorer.logits(sample)


def _engine(log: Log, matching: Matching, truth: Tokens, roughly: Rough) -> Engine:
    """What a log says of every scored token."""
    logged = {id(each.sample): each for each in matching}
    if not logged:
        raise InputError(
            _("the log has none of these texts"),
            where=log.source,
            expected=_("the texts that are scored"),
            hint=_("without texts, those of the log are scored"),
        )
    found = [finding for each in matching for finding in each.findings]
    true = {id(scores.sample): scores.logprobs for scores in truth.scores}
    found += recognised(
        matching.matched,
        [true[id(each.sample)] for each in matching],
        lambda place: roughly(matching.matched[place].sample),
    )
    every = list(gathered((*matching.findings, *found)))
    none = [Matched(log.engine, each, np.full(len(each.scored), np.nan)) for each in truth.samples]
    parts = [logged.get(id(each.sample), each) for each in none]
    best = [each.best or (-1,) * len(each.logprobs) for each in parts]
    values = np.concatenate([each.logprobs for each in parts])
    return Engine(
        log.engine,
        np.where(values <= CLAMPED, -np.inf, values),
        np.concatenate([np.asarray(each, dtype=np.int64) for each in best]),
        tuple(_told(finding, count) for finding, count in every),
        in_doubt=any(not finding.fact for finding, _count in every),
    )


def _told(finding: Finding, count: int) -> str:
    """A finding as a sentence, with its evidence and how often it was found."""
    said = finding.says.rstrip(".")
    said = f"{said} ({finding.evidence})." if finding.evidence else f"{said}."
    if count > 1:
        said += " " + _("The same was found in {count} texts.").format(count=count)
    return said
