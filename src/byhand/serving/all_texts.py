"""Claims about all texts of a model: which texts may be chosen, and a proof or a counterexample.

prove      the texts that may be chosen; with a claim, the answer and its picture
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from string import ascii_lowercase
from time import monotonic
from typing import Any

from byhand.document.compose.proof import sections
from byhand.document.compose.proof.answers import answer
from byhand.document.compose.proof.next_tokens import MOST_ROWS, squared
from byhand.document.compose.proof.next_tokens import next_tokens as table_of
from byhand.document.media.html import served
from byhand.document.parts import CaseTable, Part
from byhand.errors import InputError
from byhand.evaluate import Progress
from byhand.language import _, whole
from byhand.model import Model
from byhand.proving.outcome import Outcome
from byhand.proving.properties import Property, simple
from byhand.proving.search import prove as search
from byhand.proving.search.next_tokens import next_tokens
from byhand.serving.edits import edited
from byhand.serving.fields import impossible, missing
from byhand.serving.states import Library

MOST_TEXTS = 20_000
FEW = 2_000  # texts that are looked at unless others are chosen
LONGEST = 8  # tokens
SECONDS = 6.0  # that a search may take
UP_TO = "up to "
SHOWN = ("left", "cases", "leads")  # sections of a report that the page shows


def prove(library: Library, asked: Mapping[str, Any], progress: Progress | None) -> dict[str, Any]:
    """The texts to choose from; with a claim, whether it holds for all of them."""
    model = edited(asked["state"], library, progress).model
    choices = dict(_choices(model))
    if not choices:
        raise InputError(
            _("the texts of this model are too many to look at all of them here"),
            expected=_("at most {count} texts").format(count=whole(MOST_TEXTS)),
            hint=_("byhand prove works with patterns, variables and letters on the command line"),
        )
    few = [key for key in ("2", "1") if choices.get(key, FEW + 1) <= FEW]
    texts = asked["texts"] or next(iter((*few, *choices)))
    if texts not in choices:
        raise impossible(texts, "texts", ", ".join(choices))
    said: dict[str, Any] = {
        "texts": texts,
        "choices": [{"value": key, "count": count} for key, count in choices.items()],
        "names": _names(texts),
        "claim": asked["claim"],
    }
    match asked["claim"]:
        case None:
            return said
        case "table":
            return said | _table(model, texts, choices[texts])
        case _:
            return said | _judged(search(_property(model, texts, asked), seconds=SECONDS))


def _choices(model: Model) -> Iterator[tuple[str, int]]:
    """Texts of one length, then texts up to a length, each with their number."""
    size = len(model.vocabulary)
    lengths = range(1, min(model.spec.context or LONGEST, LONGEST) + 1)
    for length in lengths:
        if size**length <= MOST_TEXTS:
            yield str(length), size**length
    for length in lengths[1:]:
        count = sum(size**shorter for shorter in range(1, length + 1))
        if count <= MOST_TEXTS:
            yield f"{UP_TO}{length}", count


def _names(texts: str) -> list[str]:
    """The names of the tokens of texts of one length: a, b, …"""
    return [] if texts.startswith(UP_TO) else list(ascii_lowercase[: int(texts)])


def _property(model: Model, texts: str, asked: Mapping[str, Any]) -> Property:
    """The property that a claim makes of the chosen texts."""
    domain = _domain(model, texts)
    if asked["claim"] == "constant":
        return simple(model, **domain, constant=True)
    key = "token" if asked["claim"] == "next" else "expression"
    value = asked[key]
    if value is None or not value.strip():
        raise missing(key)
    return simple(model, **domain, next={key: value})


def _domain(model: Model, texts: str) -> dict[str, Any]:
    """The chosen texts as a property says them."""
    if names := _names(texts):
        characters = getattr(model.vocabulary, "kind", None) == "characters"  # a blank is one too
        blank = "" if characters else " "
        return {"pattern": blank.join(f"(?<{name}>{blank}.)" for name in names)}
    return {"up_to": int(texts.removeprefix(UP_TO))}


# ------------------------------------------------------------------ what is shown


def _judged(outcome: Outcome) -> dict[str, Any]:
    """The answer, a counterexample to open, and the picture of the cases."""
    found = outcome.counterexample
    parts: list[Part] = [answer(outcome, timed=False)]
    parts += (part for one in sections(outcome) if one.name in SHOWN for part in one.parts)
    return {
        "answer": outcome.answer,
        "html": served.parts(parts),
        "example": None if found is None else _text(outcome.property.own, found.tokens),
        "opens": _opens(outcome, parts),
    }


def _opens(outcome: Outcome, parts: list[Part]) -> list[str]:
    """The text of each square, where every text has one."""
    if sum(isinstance(part, CaseTable) for part in parts) != 1:
        return []
    (goal,) = outcome.property.goals
    region = goal.shape.whole
    if region is None or len(region.free) != len(region.allowed):
        return []
    return [_text(outcome.property.own, region.text(at)) for at in region.assignments()]


def _table(model: Model, texts: str, count: int) -> dict[str, Any]:
    """What comes next after every text, each proven by itself."""
    domain = simple(model, **_domain(model, texts), constant=True)
    regions = [region for goal in domain.goals if (region := goal.shape.whole) is not None]
    until = monotonic() + SECONDS
    every = (one for region in regions for one in next_tokens(model, region, until=until))
    lengths = [len(region.shape.places) for region in regions]
    shown = list(islice(every, None if squared(model, lengths) else MOST_ROWS))
    return {
        "answer": None,
        "html": served.parts([table_of(model, shown, count)]),
        "example": None,
        "opens": [_text(model, one.tokens) for one in shown],
    }


def _text(model: Model, ids: tuple[int, ...]) -> str:
    return model.vocabulary.decode(ids)
