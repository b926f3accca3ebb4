"""A soak of `check`: random dumps, each line judged again by an independent reading in Arb.

No line is called right that is wrong beyond its bound, and none wrong that is right.  `make test`
tries a few; with BYHAND_LONG=1, 500 dumps of 50 models.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from soaking import Dump, Reading, random_dump, random_model

from byhand.checking.judging import judge_text
from byhand.checking.replay import Replay, Rounding
from byhand.checking.verdicts import Marked, Verdict

MODELS = 50 if os.environ.get("BYHAND_LONG") else 4
DUMPS = 10 if os.environ.get("BYHAND_LONG") else 6
FIRST = int(os.environ.get("BYHAND_SEED", "0"))
MOST_READ = 24  # entries of a line that are read again
FINE = ("float64", "float32")
WRONG = (Verdict.ERROR, Verdict.UNSUPPORTED)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + MODELS))
def test_every_verdict_agrees_with_an_independent_reading(seed: int) -> None:
    model, case = random_model(seed)
    seen: Counter[str] = Counter()
    for place in range(DUMPS):
        dump = random_dump(model, case, seed * DUMPS + place)
        _soak(dump, seen)
    assert seen[Verdict.RIGHT.value] > 0


def _soak(dump: Dump, seen: Counter[str]) -> None:
    with np.errstate(all="ignore"):
        marked, _replay = judge_text(dump.model, dump.text, dump.format, suspects=False)
        bounds = _bounds(dump)
    reading, truth = Reading(dump), Reading(replace(dump, text=replace(dump.text, claims=())))
    for line in marked.lines:
        seen[line.verdict.value] += 1
        where = f"{dump.described}: {line.address} {line.verdict.value} {line.reason}"
        if line.claim.address == "next":
            _read_next(line, reading, where)
            continue
        if line.verdict in WRONG:
            assert line.claim.address in dump.spoiled, f"{where}: honest work called wrong"
        _read(line, reading, bounds[line.claim.address], where)
        if line.verdict is Verdict.RIGHT and dump.format in FINE:
            assert _near(line, truth), f"{where}: it is not the true value"
    if dump.kind == "nan":
        errors = [line for line in marked.lines if line.verdict is Verdict.ERROR]
        assert errors, f"{dump.described}: NaN was not called wrong"
        assert not marked.passed


def _bounds(dump: Dump) -> dict:
    replay = Replay.of(dump.model, dump.text, Rounding.named(dump.format))
    found = {}
    replay.judge(lambda line, judged: found.__setitem__(line.claim.address, judged))
    return found


def _read(line: Marked, reading: Reading, judged, where: str) -> None:
    """Entries of a line against what Arb makes of the lines above."""
    claimed = np.asarray(line.claim.values)
    indices = list(np.ndindex(claimed.shape))
    step = max(1, len(indices) // MOST_READ)
    wrong = 0
    for index in islice(indices, 0, None, step):
        true = reading.line(line.claim.address, index)
        if true is None:
            continue
        room = float(judged.allowed[index])
        off = abs(float(judged.expected[index]) - float(true))
        assert off <= room * (1 + 1e-9) + 1e-300, f"{where}: {index} expects {float(true)}"
        distance = abs(float(claimed[index]) - float(true))
        if line.verdict.follows:
            assert distance <= 2 * room * (1 + 1e-9) + 1e-300, f"{where}: {index} is off"
            size = np.abs(judged.expected).max() + 1e-30
            assert room < np.inf, f"{where}: {index} has no bound"
            wrong += distance > 4 * size + 1e-30
    assert not wrong, f"{where}: garbage follows"


def _near(line: Marked, truth: Reading) -> bool:
    """Whether the line is the true value, roughly: rounding alone leaves no such difference."""
    pairs = [
        (float(line.claim.values[index]), float(true))
        for index in islice(np.ndindex(line.claim.values.shape), MOST_READ)
        if (true := truth.line(line.claim.address, index)) is not None
    ]
    claimed, true = np.array(pairs or [(0.0, 0.0)]).T
    off, size = (np.sqrt(np.mean(np.square(each))) for each in (claimed - true, true))
    return bool(off <= 0.01 * size + 1e-6)


def _read_next(line: Marked, reading: Reading, where: str) -> None:
    """A next token that is called right is the largest, one that is called wrong is not."""
    for place, said in enumerate(line.claim.values):
        row = [_logit(reading, place, token) for token in range(reading.plan["logits"].shape[1])]
        if any(each is None for each in row):
            assert line.verdict is Verdict.UNJUDGED or line.verdict in WRONG, where
            return
        best = max(float(each) for each in row)
        behind = best - float(row[int(said)])
        if line.verdict.follows:
            assert behind <= 0, f"{where}: {place} is behind by {behind}"
        if line.verdict in WRONG and len(line.claim.values) == 1:
            assert behind > 0, f"{where}: {place} is the largest"


def _logit(reading: Reading, place: int, token: int):
    if "logits" in reading.claims:
        value = float(reading.claims["logits"][place, token])
        return value if np.isfinite(value) else None
    return reading.line("logits", (place, token))
