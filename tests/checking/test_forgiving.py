"""A diagnosis never ends a check, and what differs from block to block is no cause."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import byhand
from byhand.checking import differences
from byhand.checking.causes import together
from byhand.checking.differences import Difference, Reading
from byhand.checking.verdicts import Evidence, Suspect, Verdict
from byhand.numbers.allowed import Allowed, Range
from marking_samples import marked


def _stumbles(_difference: Difference) -> Iterator[Reading]:
    raise ZeroDivisionError


def test_a_reader_that_stumbles_sees_nothing_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = byhand.trace("minigpt", float="float32")
    step = "block.0.attn.mixed"
    claims = {name: np.array(trace[name].array) for name in ("block.0.attn.v", step)}
    claims["block.0.attn.weights"] = np.ma.filled(trace["block.0.attn.weights"].array, 0)
    claims[step] = claims[step][[1, 0, 2, 3]]
    monkeypatch.setattr(differences, "READERS", (_stumbles, *differences.READERS))
    with pytest.raises(ZeroDivisionError):
        byhand.check("minigpt", claims)
    monkeypatch.setattr(differences, "STUMBLES", (Exception,))
    wrong = byhand.check("minigpt", claims).first_error
    assert wrong is not None
    assert "heads 0 and 1 change places" in wrong.suspects[0].sentence


def _scaled(block: int, factor: float) -> Suspect:
    said = f"it follows if block.{block}.mlp.out is multiplied by {factor}; the model does not"
    return Suspect("factor", said, "", 0.1, 0.9, Evidence(entries=40, fitted=1))


@pytest.mark.parametrize(
    ("factors", "verdict", "kept"),
    [
        ((0.7, 0.701, 0.7), Verdict.UNJUDGED, True),
        ((0.825, 0.822, 0.84), Verdict.UNJUDGED, False),
        ((0.825, 0.822, 0.84), Verdict.ERROR, True),
    ],
)
def test_a_number_read_off_unusual_lines_must_be_the_same_in_all_blocks(
    factors: tuple[float, ...], verdict: Verdict, kept: bool
) -> None:
    lines = [
        marked(f"block.{n}.mlp.add", verdict, unusual=True, suspects=(_scaled(n, factor),))
        for n, factor in enumerate(factors)
    ]
    [found] = together([lines])
    assert [bool(line.suspects) for line in found] == [kept] * 3


def test_small_terms_that_a_long_softmax_loses_are_usual() -> None:
    noise = np.random.default_rng(3)
    scores = np.concatenate(([12.0], noise.normal(-6.0, 1.0, 8191))).astype(np.float32)
    powers = np.exp(scores - scores.max())
    total = np.float32(0.0)
    for each in powers:  # one after the other: what is below half a unit of the sum is lost
        total = np.float32(total + each)
    found = Allowed("float32").softmax(Range(scores.astype(np.float64)[None]))
    judged = Allowed("float32").judge(found, (), (powers / total).astype(np.float64)[None])
    assert judged.follows
    assert judged.times is not None
    assert judged.times < 6.0
