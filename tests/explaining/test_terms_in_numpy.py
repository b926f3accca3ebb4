"""Every term, every reading of the lens and every part taken out, beside NumPy's own."""

from __future__ import annotations

import os
from random import Random

import numpy as np
import pytest
from attributed import worked

from byhand.explaining.ablation import Part, ablate, side_trips, usual_parts
from byhand.explaining.attribution import attribute
from byhand.explaining.facts import facts
from byhand.explaining.lens import look
from byhand.numbers.floats import Floats
from byhand.parameters import parameters
from oracles.architectures import Case, at_random, make_case, nasty, ordinary, wishing
from oracles.numpy_terms import WISHES, Net, whole

COUNT = 200 if os.environ.get("BYHAND_LONG") else 24
RANDOM = Random(11)
CASES = [
    make_case(wishing(WISHES, at_random(RANDOM)), seed, entry=nasty if seed % 3 == 0 else ordinary)
    for seed in range(COUNT)
]
CLOSE = {"rtol": 1e-7, "atol": 1e-7}


def every_part(case: Case) -> list[Part]:
    """The usual parts, every neuron and every bias."""
    blocks = enumerate(case.spec.blocks)
    neurons = [
        Part("neuron", at, unit) for at, block in blocks if block.mlp
        for unit in range(block.mlp.d_ff)
    ]  # fmt: skip
    biases = [Part("bias", name=p.name) for p in parameters(case.spec) if p.kind == "bias"]
    return [*usual_parts(case.spec), *neurons, *biases]


@pytest.mark.parametrize("case", CASES, ids=range(COUNT))
def test_what_is_said_of_a_model_is_what_numpy_finds(case: Case) -> None:
    net = Net(case)
    trace = worked(case, Floats("float64"))
    np.testing.assert_allclose(trace.steps["logits"].value, net.logits, **CLOSE)
    for of, expected in (("logits", net.terms), ("stream", net.stream)):
        found = {
            term.source.name: term.value
            for term in attribute(trace, of=of, neurons=True, keys=True)
        }
        assert set(found) == set(expected)
        for name, rows in expected.items():
            np.testing.assert_allclose(found[name], rows, err_msg=f"{of} {name}", **CLOSE)
    lens = look(trace)
    for stop, rows in zip(lens.stops, net.lens(), strict=True):
        read = np.array([row.logits for row in lens.of_step(stop.address)])
        np.testing.assert_allclose(read, rows, err_msg=stop.address, **CLOSE)
    for part in every_part(case):
        without = ablate(trace, part).steps["logits"].value
        np.testing.assert_allclose(
            without, Net(case, part.address).logits, err_msg=part.address, **CLOSE
        )


@pytest.mark.parametrize("case", CASES[::4], ids=range(0, COUNT, 4))
def test_what_is_said_and_what_is_found_without_a_part_are_both_true(case: Case) -> None:
    net = Net(case)
    for fact in facts(worked(case, Floats("float64")), parts=side_trips(case.spec)).facts:
        for check in fact.checks:
            at = f"block.{check.part.layer}.{check.part.kind}."
            own = [x for name, x in net.terms.items() if name.removeprefix("weight.").startswith(at)
                   and not name.startswith(f"weight.{at}norm")]  # fmt: skip
            expected = (net.logits - sum(own))[fact.position]
            found = Net(case, check.part.address).logits[fact.position]
            for told, row in ((check.said, expected), (check.found, found)):
                assert told.id is not None
                assert row[told.id] >= row.max() - 1e-7


def test_the_terms_of_numpy_add_up_and_are_not_all_zero() -> None:
    for case in CASES:
        net = Net(case)
        np.testing.assert_allclose(whole(net.terms), net.logits)
    assert any(np.abs(Net(case).logits).max() > 1 for case in CASES)
