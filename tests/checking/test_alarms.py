"""No false alarms: correct runs are never called wrong, and the bounds are not vacuous.

All runs take minutes: `python -m benchmarks.alarms`.  What they show stands in docs/, and its bars
are held here; some of each kind are run anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest
from benchmarks.alarms import learned, library, own, report, runs
from benchmarks.alarms.models import saved


def _reported(chosen: Iterator[runs.Run]) -> report.Report:
    found = report.Report()
    for run in chosen:
        found.add(run)
    return found


def test_the_library_is_right_in_any_way_it_is_run() -> None:
    def chosen() -> Iterator[runs.Run]:
        for family, weights in (("gpt2", "outliers"), ("llama", "trained"), ("gpt_neox", "fresh")):
            with saved(family, weights, seed=7) as pair:
                for way in (
                    library.Way("float32", "sdpa", 8, "left", cached=False),
                    library.Way("bfloat16", "eager", 8, "right", cached=True),
                ):
                    yield runs.Run(
                        f"{family}, {way}", "transformers", family, way.format, way.precision,
                        pair.ours, library.claims(pair, way, library.batch(way, 3)),
                    )  # fmt: skip

    found = _reported(chosen())
    assert found.alarms == []
    assert found.unusual == []
    assert found.texts == 6 * 8
    assert not found.unmatched


def test_the_library_is_right_in_any_way_it_is_trained() -> None:
    """Formats, eager and sdpa, checkpointed, autocast, accumulated, and its optimizers."""
    every = list(learned.ways())

    def chosen() -> Iterator[runs.Run]:
        for number, (family, weights) in enumerate(
            (("gpt2", "trained"), ("llama", "fresh"), ("qwen2", "outliers"))
        ):
            with saved(family, weights, seed=9) as pair:
                for way in every[number::12]:
                    yield runs.Run(
                        f"{family}, {way}", "learned", family, way.format, way.precision,
                        pair.ours, learned.claims(pair, way, 5, length=7),
                    )  # fmt: skip

    found = _reported(chosen())
    assert found.alarms == []
    assert found.runs["learned"] == 12
    assert found.verdicts["right"] > 0.97 * found.lines
    assert not found.unmatched


def test_floats_of_byhand_itself_are_right() -> None:
    found = _reported(islice(runs.traced_runs(seed=5), 8))
    assert found.alarms == []
    assert found.unusual == []


@pytest.mark.parametrize("way", own.WAYS, ids=lambda way: way.__name__)
def test_other_ways_to_compute_the_same_are_right(way: own.Way) -> None:
    from benchmarks.planted import models

    for family, format in (("gpt2", "float32"), ("llama", "bfloat16"), ("gpt_neox", "float16")):
        precision = f"transformers:{format}" if way is own.fused else format
        text = " ".join(map(str, models.some_ids(family, 3)))
        claims = own.ported(family, way, format, 3)
        run = runs.Run("", "port", family, format, precision, models.model(family, 3), claims, text)
        found = _reported(iter([run]))
        assert found.alarms == []
        assert found.unusual == []


def test_the_recorded_runs_raise_no_alarm_and_use_much_of_some_bounds() -> None:
    data = report.recorded()
    assert sum(data["runs"].values()) >= 200
    assert data["alarms"] == []
    shares = {row["operation"]: row["share"] for row in data["operations"]}
    assert max(shares.values()) <= 1
    assert max(shares.values()) > 0.3  # a bound that nobody comes near says little
