"""Passes along the stream from a stream that is known within balls: its true rows at their rims.

What rounding leaves of a stream is far smaller than its bound, so that passes from tokens hardly
try the rules.  Here the true stream is as far from its middle as may be; Arb goes on from there.
"""

from __future__ import annotations

import pytest
from benchmarks.soundness.passes import PASSES, passes_of

from budgets import LONG


@pytest.mark.parametrize(("name", "count"), [("from the rim of a stream", 12), ("from tokens", 3)])
def test_no_number_of_a_pass_lies_outside_its_enclosure(name: str, count: int) -> None:
    found, done = passes_of(name, 1000 if LONG else count, seed=4)
    assert done >= count
    assert not found.missed, found.first
    assert found.samples > 20 * done
    assert found.endless < found.samples / 2
    assert name in PASSES
