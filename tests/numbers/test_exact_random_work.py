"""Long random work: every value and every decision agrees with an independent evaluation."""

from __future__ import annotations

from collections import Counter

import pytest
from random_work import SMALL, RandomWork

from byhand.errors import Undecided
from byhand.expression import Entry, parse, write
from byhand.numbers.exact.read import evaluate

SEEDS = 90


@pytest.mark.parametrize("limits", SMALL, ids=str)
def test_values_and_decisions_agree_with_balls_whatever_the_limits(limits):
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        work = RandomWork(seed, limits)
        work.steps(15)
        counts += work.counts
    assert counts["named"] > 20 * counts["undecided"]
    assert counts["equal"] > SEEDS
    assert counts["ordered"] > SEEDS


@pytest.mark.parametrize("width", [12, 40])
def test_what_is_written_reads_back_to_the_same_value(width):
    read = undecided = 0
    for seed in range(70):
        work = RandomWork(seed, SMALL[seed % len(SMALL)])
        work.steps(10)
        writer = work.space.writer(width)
        if seed % 2:
            for k, (value, _ball) in enumerate(work.pool[::3]):
                writer.label(value, Entry("block.0.attn.scores", (k,)))
        written = [(value, write(writer.simplified(value))) for value, _ball in work.pool]
        for letter in writer.definitions().values():
            written.append((letter.value, write(letter.expression)))
        for value, text in written:
            back = evaluate(parse(text), work.space, writer.binding, bounded=False)
            assert back.ball(300).overlaps(value.ball(300)), text
            try:
                assert back == value, text
                read += 1
            except Undecided:
                undecided += 1
    assert read > 500
    assert undecided < read / 10
