"""What the tests of judging share: dumps of byhand's own floats as claims, and their verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from byhand.address import read_address
from byhand.checking.claims import Claim, ClaimedText
from byhand.checking.judging import judge_text
from byhand.checking.verdicts import Marked, MarkedText
from byhand.evaluate import prepare
from byhand.model import Model
from byhand.numbers.floats import Floats


def dump(model: Model, format: str = "float32", text: str | None = None) -> dict[str, Any]:
    """Every number of byhand's own pass in a format, by address."""
    trace = prepare(model, text, Floats(format)).work()
    return {
        worked.address: np.ma.getdata(worked.array).astype(np.float64)
        for worked in trace.values()
        if worked.address not in ("tokens", "next", "target")
    }


def claims_of(values: Mapping[str, Any], format: str | None) -> tuple[Claim, ...]:
    found = []
    for name, value in values.items():
        address = read_address(name)
        array = np.asarray(value, dtype=np.float64)
        found.append(Claim(address.name, address.index, array, name, name, format=format))
    return tuple(found)


def by_hand(values: Mapping[str, Any], places: int) -> tuple[Claim, ...]:
    """Claims written to so many decimals."""
    half = 0.5 * 10.0**-places
    return tuple(
        Claim(claim.address, claim.index, claim.values, claim.name, claim.source, slack=half)
        for claim in claims_of(values, None)
    )


def judged(
    model: Model, claims: tuple[Claim, ...], text: str | None = None, **settings: Any
) -> MarkedText:
    words = model.text if text is None else text
    assert words is not None
    tokens = tuple(model.vocabulary.encode(words))
    target = None if model.target is None else model.vocabulary.id(model.target)
    return judge_text(model, ClaimedText(words, tokens, claims, target=target), **settings)[0]


def verdict_of(marked: MarkedText, name: str) -> Marked:
    return next(line for line in marked.lines if line.claim.name == name)
