"""The recorded comparison with TransformerLens: what docs/explain.md quotes, and its bars."""

from __future__ import annotations

from pathlib import Path

from benchmarks.attribution import recorded, tables

DOCS = Path(__file__).parents[2] / "docs"


def test_the_recorded_sums_close_and_cost_less_than_two_forward_passes() -> None:
    found = recorded()
    left = found["left"]
    ours = [value for name, value in left.items() if name.startswith("byhand")]
    raw = [value for name, value in left.items() if name.endswith("weights as they are")]
    assert len(ours) == 2
    assert all(value <= 1e-5 for value in ours)
    assert len(raw) == 2
    assert all(value > 1e-2 for value in raw)
    assert found["ratios"]["all tokens"] <= 2
    assert found["ratios"]["two tokens"] <= 1


def test_the_documentation_quotes_the_record() -> None:
    assert tables(recorded()) in (DOCS / "explain.md").read_text("utf-8")
