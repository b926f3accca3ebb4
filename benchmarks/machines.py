"""The machines of docs/examples: every property proven, every planted fault found.

    python -m benchmarks.machines [NAME …]     proves, refutes and prints two tables
    … --record                                 writes them to docs/prove-machines.json

Times are processor seconds of one process, so that a loaded machine does not matter.  A fault is
one weight, changed a little, so that a few texts go wrong.  A trace of the counterexample alone
confirms it.  The status is 1 if a certificate is rejected.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from time import process_time
from typing import Any, TypeVar

import numpy as np

import byhand
from byhand.expression import parse, rational
from byhand.model import Model
from byhand.proving.outcome import PROVEN, Counterexample, Outcome
from byhand.weights import Tensor, Weights

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "docs" / "examples"
RECORD = ROOT / "docs" / "prove-machines.json"
RANDOM_TESTS = 10_000
REJECTED = "rejected"


@dataclass(frozen=True)
class Fault:
    """One weight with another value."""

    weight: str
    place: tuple[int, ...]
    value: str

    @property
    def address(self) -> str:
        """The entry, as counterexamples name it."""
        return f"{self.weight}[{','.join(map(str, self.place))}]"

    def planted(self, model: Model) -> Model:
        """The model with the fault."""
        written = parse(self.value)
        exact = rational(written)
        return changed(model, {self.address: written if exact is None else exact})


def changed(model: Model, entries: Mapping[str, Any]) -> Model:
    """The model with other entries, by address; tensors that share one have it too."""
    tensors = dict(model.weights)
    for address, entry in entries.items():
        weight, _bracket, index = address.removesuffix("]").partition("[")
        whose = model.weights[weight].same_as or weight
        for name, tensor in model.weights.items():
            if whose in (name, tensor.same_as):
                data = np.array(tensors[name].data)
                data[tuple(map(int, index.split(",")))] = entry
                tensors[name] = Tensor(name, data, tensor.same_as)
    return replace(model, weights=Weights(tensors))


@dataclass(frozen=True)
class Machine:
    """A model, a property of it, and a fault that breaks it."""

    model: str  # built in, or a file of docs/examples
    fault: Fault
    claim: str = ""  # the name of the property, where it is not the model's

    def opened(self) -> Model:
        file = EXAMPLES / f"{self.model}.yaml"
        return byhand.open_model(file if file.exists() else self.model)

    @property
    def name(self) -> str:
        return self.claim or self.model

    @property
    def claimed(self) -> Path:
        return EXAMPLES / f"{self.name}.property.yaml"


MACHINES = (
    Machine("adder", Fault("embed.token", (7, 0), "7.000000001")),
    Machine("thermometer", Fault("head_bias", (14,), "-100.25")),
    Machine("clock", Fault("embed.token", (0, 1), "0.25")),
    Machine("majority", Fault("embed.token", (0, 0), "1.02")),
    Machine("sorter", Fault("block.0.attn.out", (0, 3), "-4.4")),
    Machine("induction", Fault("block.1.attn.q", (0, 0), "8*ln(3)")),
    Machine("brackets", Fault("block.1.attn.out", (0, 2), "7.9")),
    Machine("parity", Fault("block.0.mlp.hidden_bias", (6,), "-7.6")),
    Machine("abc", Fault("embed.token", (1, 0), "0.4807")),
    Machine("abc", Fault("embed.token", (1, 0), "0.4813"), "abc-printed"),
    Machine("minigpt", Fault("embed.token", (56, 9), "0.4")),
)


def proven(machine: Machine) -> dict[str, str]:
    """A row of the first table: the proof of a property."""
    model = machine.opened()
    outcome, seconds = timed(lambda: byhand.prove(model, machine.claimed, jobs=1))
    assert outcome.answer == PROVEN, f"{machine.name}: {outcome.answer}, {outcome.why}"
    checked, more = timed(lambda: byhand.verify(model, outcome, machine.claimed))
    return {
        "property": machine.name,
        "texts": "" if outcome.texts is None else f"{outcome.texts:,}",
        "cases": f"{outcome.cases:,}",
        "passes": f"{outcome.passes:,}",
        "proven in": f"{seconds:.1f} s",
        "least lead": _lead(outcome),
        "checked in": f"{more:.1f} s" if checked.accepted else REJECTED,
    }


def _lead(outcome: Outcome) -> str:
    least = outcome.least
    return "" if least is None or least.lead is None else f"{float(least.lead):.4g}"


def refuted(machine: Machine) -> dict[str, str]:
    """A row of the second table: a fault, and the text that shows it."""
    own, fault = machine.opened(), machine.fault
    was = own.weights[fault.weight].data[fault.place]
    row = {
        "property": machine.name,
        "weight": fault.address,
        "was": _written(was),
        "is": fault.value,
    }
    return row | found(machine.claimed, fault.planted(own))


def found(claimed: Path, model: Model) -> dict[str, str]:
    """The counterexample to a property of a faulty model, which a plain trace confirms."""
    outcome, seconds = timed(lambda: byhand.prove(model, claimed, jobs=1))
    one = outcome.counterexample
    assert one is not None, f"{claimed.name}: {outcome.answer}, {outcome.why}"
    assert confirmed(model, one), f"{claimed.name}: the trace disagrees"
    words = model.outputs
    return {
        "counterexample": model.vocabulary.decode(one.tokens)
        + (", other weights" if one.weights else ""),
        "comes": "" if one.found is None else words.tokens[one.found],
        "should come": ", ".join(words.tokens[id] for id in one.expected),
        "found in": f"{seconds:.1f} s",
    }


def confirmed(model: Model, one: Counterexample) -> bool:
    """Whether a trace of the text, with nothing else, predicts a token that is not expected."""
    text = model.vocabulary.decode(one.tokens)
    moved = changed(model, one.weights or {})
    told = byhand.trace(moved, text, numbers="digits 3", only="next").next
    assert told is not None
    return told[-1].proven and told[-1].id == one.found and one.found not in one.expected


def _written(weight: Any) -> str:
    return f"{weight:.4g}" if isinstance(weight, np.floating) else str(weight)


# ---------------------------------------------------------------------- the coarse adder


def coarse() -> dict[str, str]:
    """The adder with too wide a margin: random tests pass, and the search finds the carry."""
    model = byhand.open_model(EXAMPLES / "adder-coarse.yaml")
    right, seconds = timed(lambda: sum(random_sums(model, RANDOM_TESTS)))
    row = {"random tests": f"{RANDOM_TESTS:,}", "right": f"{right:,}", "in": f"{seconds:.1f} s"}
    return row | found(EXAMPLES / "adder.property.yaml", model)


def random_sums(model: Model, count: int) -> Iterator[bool]:
    """Whether float64 gives the right sum, for random pairs; all digits of a sum in one pass."""
    some = Random(19)
    pairs = [(some.randrange(10**10), some.randrange(10**10)) for _test in range(count)]
    texts = (" ".join(f"{a:010}+{b:010}={a + b:011}"[:-1]) for a, b in pairs)
    traces = byhand.traces(model, texts, numbers="float64", only="next")
    for (a, b), trace in zip(pairs, traces, strict=True):
        assert trace.next is not None
        yield [one.id for one in trace.next[-11:]] == [int(digit) for digit in f"{a + b:011}"]


# ---------------------------------------------------------------------- the tables


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What comes of some work, and the processor seconds that it took."""
    start = process_time()
    return work(), process_time() - start


def table(rows: list[dict[str, str]]) -> str:
    """Rows as a Markdown table."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: list[str]) -> None:
    """Proves and refutes what is asked for, or everything."""
    record = "--record" in arguments
    names = [name for name in arguments if not name.startswith("--")]
    chosen = [one for one in MACHINES if not names or one.name in names]
    tables = {
        "proven": [_told(proven(one)) for one in chosen],
        "refuted": [_told(refuted(one)) for one in chosen],
    }
    if not names:
        tables["coarse"] = [_told(coarse())]
    for rows in tables.values():
        print(f"\n{table(rows)}")
    if record:
        RECORD.write_text(json.dumps(tables, indent=1, ensure_ascii=False) + "\n", "utf-8")
    if any(row["checked in"] == REJECTED for row in tables["proven"]):
        sys.exit(1)


def _told(row: dict[str, str]) -> dict[str, str]:
    print(" · ".join(row.values()), file=sys.stderr, flush=True)
    return row


if __name__ == "__main__":
    main(sys.argv[1:])
