"""How fast properties are proven: texts a second beside plain traces, passes of the adder a second.

    python benchmarks/proving.py [NAME …]     of abc, brackets, induction, adder

One process, one thread.  A plain trace is `byhand.trace` of one text: in exact numbers, which are
the usual ones; with nothing but a proof of the next token; and in float64, which proves nothing.
Ratios are measured in one run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is imported

import byhand  # noqa: E402
from byhand.model import Model  # noqa: E402
from byhand.proving.digits import enclosing_numbers  # noqa: E402
from byhand.proving.digits import prove as prove_digits  # noqa: E402
from byhand.proving.properties import Property, read_property  # noqa: E402
from byhand.proving.search import cases, prove  # noqa: E402
from byhand.proving.search.judging import job_of  # noqa: E402
from byhand.proving.search.text_tables import texts_of  # noqa: E402

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
SECONDS = 2.0  # that each side is measured, at least
TRACED = 200  # texts that are traced one by one, at most


def example(name: str) -> Property:
    """A property of docs/examples."""
    return read_property(EXAMPLES / f"{name}.property.yaml")


def repeated(work: Callable[[], int]) -> float:
    """How many things a second are done; `work` says how many it did."""
    done, began = 0, perf_counter()
    while perf_counter() - began < SECONDS:
        done += work()
    return done / (perf_counter() - began)


def texts(property: Property) -> list[tuple[int, ...]]:
    """Some texts of a property, evenly spread over all of them."""
    every = [
        tuple(row)
        for goal in property.goals
        if (whole := goal.shape.whole) is not None
        for row in texts_of(whole).tokens.tolist()
    ]
    return every[:: max(1, len(every) // TRACED)]


def traced(model: Model, some: Sequence[tuple[int, ...]], numbers: str) -> int:
    """Traces of texts, one after the other."""
    for tokens in some:
        byhand.trace(model, model.vocabulary.decode(tokens), numbers=numbers)
    return len(some)


def next_proven(model: Model, some: Sequence[tuple[int, ...]]) -> int:
    """The next tokens of texts, proven one after the other."""
    for tokens in some:
        prove_digits(job_of(model, tokens, "next", enclosing_numbers(model, 1)), 1)
    return len(some)


def enumerated(name: str, goals: slice) -> None:
    """Prints texts a second, one by one in blocks, beside plain traces."""
    property = example(name)
    property = replace(property, goals=property.goals[goals])
    some = texts(property)

    def proven() -> int:
        outcome = prove(property)
        assert outcome.answer == "proven"
        return outcome.texts or 0

    usual = cases.FEWEST
    cases.FEWEST = cases.MOST  # nothing by letters
    try:
        fast = repeated(proven)
    finally:
        cases.FEWEST = usual
    letters = repeated(proven)
    plain = repeated(lambda: traced(property.model, some, "exact"))
    tokens = repeated(lambda: next_proven(property.model, some))
    floats = repeated(lambda: traced(property.model, some, "float64"))
    print(
        f"{name}: {fast:,.0f} texts a second enumerated ({letters:,.0f} as the search goes); "
        f"traces {plain:,.0f} exact, {tokens:,.0f} of the next token alone, "
        f"{floats:,.0f} in float64: "
        f"{fast / plain:,.0f}×, {fast / tokens:,.0f}×, {fast / floats:,.0f}×"
    )


def whole(name: str) -> None:
    """Prints how long a whole property takes, and its passes a second."""
    outcome = prove(example(name))
    print(
        f"{name}: {outcome.answer}, {outcome.texts:,} texts, {outcome.cases:,} cases, "
        f"{outcome.seconds:.1f} s, {outcome.passes / outcome.seconds:,.0f} passes a second"
    )


def main() -> None:
    """Measures what is named, or everything."""
    named = sys.argv[1:] or ["abc", "brackets", "induction", "adder"]
    if "abc" in named:
        enumerated("abc", slice(None))
    if "brackets" in named:
        enumerated("brackets", slice(0, 12))
    for name in ("induction", "adder"):
        if name in named:
            whole(name)


if __name__ == "__main__":
    main()
