"""What gradients tell, against small changes and removals that are worked out another way."""

from __future__ import annotations

import numpy as np
import pytest

import byhand
from byhand import forward
from byhand.evaluate import work_out
from byhand.explaining.ablation import Part, ablate
from byhand.explaining.saliency import Saliency, saliency
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.floats import Floats
from byhand.tracing import Trace

MODELS = ("journey", "abc", "minigpt-init")


def worked(name: str) -> tuple[Trace, Saliency]:
    trace = byhand.trace(name, numbers="float64")
    assert trace.next is not None
    assert trace.next[-1].id is not None
    return trace, saliency(trace, len(trace.tokens) - 1, trace.next[-1].id)


def loss_with(trace: Trace, found: Saliency, address: str, value: np.ndarray) -> float:
    """The loss of the token when one step has another value."""
    plan = forward.plan(trace.model.spec, len(trace.tokens), losses=True)
    targets = [UNCOUNTED] * found.position + [found.token]
    steps = work_out(
        plan,
        trace.model.weights,
        trace.tokens,
        Floats("float64"),
        targets=targets,
        given={address: value},
    )
    return float(steps["mean_loss"].value[0])


@pytest.mark.parametrize("name", MODELS)
def test_a_token_is_said_to_count_as_a_small_change_of_it_does(name: str) -> None:
    trace, found = worked(name)
    embedded = np.asarray(trace["embed.token"])
    for removal in found.words:
        place, changed = removal.part.index, []
        for share in (1e-6, -1e-6):
            value = embedded.copy()
            value[place] *= 1 - share
            changed.append(loss_with(trace, found, "embed.token", value))
        slope = (changed[0] - changed[1]) / 2e-6
        assert removal.said == pytest.approx(slope, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_found_without_a_token_is_the_loss_of_a_text_with_zeros_there(name: str) -> None:
    trace, found = worked(name)
    for removal in found.words:
        value = np.asarray(trace["embed.token"]).copy()
        value[removal.part.index] = 0
        expected = loss_with(trace, found, "embed.token", value) - found.loss
        assert removal.found == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_found_without_a_part_is_what_its_ablation_gives(name: str) -> None:
    trace, found = worked(name)
    for removal in found.parts:
        probs = np.asarray(ablate(trace, removal.part)["probs"])
        without = -np.log(probs[found.position, found.token])
        assert removal.found == pytest.approx(without - found.loss, rel=1e-9, abs=1e-13)
    assert [each.part for each in found.parts][-1] == Part("mlp", len(trace.model.spec.blocks) - 1)


def test_the_strongest_pulls_come_first_with_their_foremost_entries() -> None:
    _trace, found = worked("journey")
    sizes = [pull.size for pull in found.pulls]
    assert sizes == sorted(sizes, reverse=True)
    strongest = found.pulls[0]
    grad = np.asarray(found.trace.grad[f"weight.{strongest.name}"])
    assert strongest.size == pytest.approx(np.sqrt((grad**2).sum()))
    index, value = strongest.foremost[0]
    assert value == grad[index]
    assert abs(value) == np.abs(grad).max()


def test_the_order_is_the_share_of_pairs_that_the_gradient_gets_right() -> None:
    _trace, found = worked("minigpt-init")
    said = [each.said for each in (*found.words, *found.parts)]
    real = [each.found for each in (*found.words, *found.parts)]
    signs = [
        np.sign(said[i] - said[j]) == np.sign(real[i] - real[j])
        for i in range(len(said))
        for j in range(i)
        if real[i] != real[j]
    ]
    assert found.order == pytest.approx(np.mean(signs))


def test_unknown_weights_leave_it_untold() -> None:
    model = byhand.make_model(
        {"d_model": 2, "layers": 0, "head": {"tied": False}},
        {"embed.token": [[1, 0], [0, 1]], "head": [["unknown", "1"], [0, 2]]},
        ["no", "yes"],
    )
    found = saliency(byhand.trace(model, "no yes"), 1, 0)
    assert found.missing is not None
    assert found.missing.cause == "weight.head"
