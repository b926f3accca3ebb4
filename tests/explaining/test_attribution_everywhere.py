"""Attribution of every kind of model, in every number system, and of models of real sizes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attributed import difference, logits_without, worked
from hypothesis import given, settings
from hypothesis import strategies as st

import byhand
from byhand.evaluate import trace as work
from byhand.explaining.attribution import attribute
from byhand.explaining.sources import spine
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import Numbers
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.floats.formats import FORMATS
from byhand.numbers.floats.nearest import admitted
from byhand.numbers.pencil import Pencil
from byhand.weights import Tensor, Weights
from oracles.architectures import Case, given_answers, make_case, nasty, plain, spread, wishing

LONG = bool(os.environ.get("BYHAND_LONG"))
CASES = list(spread(60 if LONG else 20, seed=8))
OF_FLOATS = list(  # a table has absent entries
    spread(24 if LONG else 8, seed=9, wishes={"score table": False})
)
DATA = Path(os.environ.get("BYHAND_DATA", Path(__file__).parents[3] / "shared" / "data"))
STORIES = DATA / "stories260K"
LLAMA = {
    "d_model": 4, "layers": 2, "position": "none", "tied": False, "vocab": 3, "length": 3,
    "heads": 4, "kv_heads": 2, "d_head": 2, "rope": True, "attn norm": "rmsnorm",
    "mlp norm": "rmsnorm", "final norm": "rmsnorm", "attn eps": "1/100000", "mlp eps": "1/100000",
    "final eps": "1/100000", "attn gain": True, "mlp gain": True, "final gain": True,
    "gated": True, "activation": "silu", "d_ff": 3, "layout": "out_in", "causal": True,
}  # fmt: skip


def ids(case: Case) -> str:
    return f"{len(case.spec.blocks)} blocks, {case.spec.final_norm.kind}"


def in_floats(case: Case) -> Case:
    """The case with float32 weights, which limbs take."""
    made = {
        name: tensor if name.endswith("frequencies")
        else Tensor(name, admitted(tensor.data, FORMATS["float32"]))
        for name, tensor in case.weights.items()
    }  # fmt: skip
    return replace(case, weights=Weights(made))


# ------------------------------------------------------------------ every architecture


def test_the_cases_cover_what_matters_here() -> None:
    answers = set().union(*(given_answers(case) for case in CASES))
    assert {
        ("place", "pre"), ("place", "post"), ("parallel", True), ("out", False), ("tied", False),
        ("packed", "per_head"), ("packed", "concatenated"), ("kv_heads", 2), ("final norm", "none"),
        ("final norm", "rmsnorm"), ("gated", True), ("head bias", True), ("extra mask", True),
        ("position", "sinusoidal"), ("layers", 0),
    } <= answers  # fmt: skip
    assert any(answer is not None for question, answer in answers if question == "embed scale")


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_every_architecture_closes_and_every_term_is_what_is_missed_without_it(case: Case) -> None:
    """Ablation with all that follows frozen: the logits move by exactly the term."""
    trace = worked(case, Balls(200))
    attribution = attribute(trace)
    assert attribution.closes == "proven"
    assert attribution.radius < 1e-40
    split = attribute(trace, neurons=True, keys=True)
    assert split.closes == "proven"
    assert split.radius < 1e-40
    if attribution.limits:
        return  # 0/0: without the source the row would no longer be 0
    for term in attribution:
        gone = logits_without(trace, term.source)
        lost = difference(trace.numbers, trace.steps["logits"].value, gone)
        for found, moved in zip(term.array.flat, lost.flat, strict=True):
            assert found.overlaps(moved), term.source.name
            assert found.rad + moved.rad < 1e-40


@pytest.mark.parametrize("case", OF_FLOATS, ids=ids)
def test_the_same_in_limbs_and_in_floats(case: Case) -> None:
    case = in_floats(case)
    limbs = attribute(worked(case, Limbs(160)), neurons=True, keys=True)
    balls = attribute(worked(case, Balls(200)), neurons=True, keys=True)
    floats = attribute(worked(case, Floats("float64")), neurons=True, keys=True)
    assert limbs.closes == "proven"
    assert floats.closes == "rounded"
    assert floats.relative < 1e-12
    for one, other, rounded in zip(limbs, balls, floats, strict=True):
        assert one.source == other.source == rounded.source
        for place in np.ndindex(*other.array.shape):
            assert one.array[place].overlaps(other.array[place])
            near = float(other.array[place])
            assert rounded.array[place] == pytest.approx(near, rel=1e-9, abs=1e-9)


@settings(max_examples=12)
@given(st.data(), st.integers(0, 9999))
def test_whatever_the_model_nothing_is_left(data: st.DataObject, seed: int) -> None:
    """Weights as people set them by hand: rows are equal, variances vanish, limits are taken."""
    case = make_case(
        lambda question, options: data.draw(st.sampled_from(list(options)), label=question),
        seed,
        largest=3,
        entry=nasty,
    )
    trace = worked(case, Exact())
    attribution = attribute(trace, keys=True, neurons=True)
    if trace.steps["logits"].missing is None:
        assert attribution.closes in ("exact", "proven")
        assert attribution.radius < 1e-300
    else:
        assert attribution.closes == "open"


def test_sources_stand_in_the_order_in_which_they_enter() -> None:
    case = make_case(wishing({**LLAMA, "parallel": True}, plain), seed=3)
    attribution = attribute(worked(case, Balls(100)))
    entering = [stage.step.address for stage in spine(attribution.trace.plan, "logits")]
    assert entering.index("block.0.attn.out") < entering.index("block.0.mlp.out")
    layers = [term.source.layer for term in attribution if term.source.layer is not None]
    assert layers == sorted(layers)


# ------------------------------------------------------------------ every number system


def test_a_small_llama_closes_exactly_or_is_proven_to_a_hair() -> None:
    case = make_case(wishing(LLAMA, plain), seed=5)
    proven = attribute(worked(case, Balls(160)), neurons=True, keys=True)
    assert (proven.closes, proven.radius < 1e-30) == ("proven", True)
    heads = attribute(worked(case, Balls(160)))
    assert [t.source.index for t in heads if t.source.kind == "head"] == [
        (0,),
        (1,),
        (2,),
        (3,),
    ] * 2


@pytest.mark.parametrize(
    "numbers", [Floats("float32"), Floats("bfloat16"), Floats("float16"), Pencil(4)],
    ids=lambda numbers: numbers.name,
)  # fmt: skip
def test_rounded_numbers_leave_what_rounding_leaves(journey: Model, numbers: Numbers) -> None:
    attribution = attribute(work(journey, None, numbers), keys=True)
    assert attribution.closes == "rounded"
    assert attribution.relative < 2e-2
    exact = attribute(work(journey, None, Exact()), keys=True)
    for term, true in zip(attribution, exact, strict=True):
        near = [float(x.decimal(8)) for x in true.array.flat]
        assert [float(x) for x in term.array.flat] == pytest.approx(near, abs=2e-2)


def test_tensors_are_attributed_as_floats_are() -> None:
    pytest.importorskip("torch")
    from byhand.numbers.tensors import Tensors

    model = open_model("minigpt")
    ours = attribute(work(model, None, Floats("float64")), positions=[-1], keys=True)
    theirs = attribute(work(model, None, Tensors("float64")), positions=[-1], keys=True)
    assert theirs.closes == "rounded"
    assert theirs.relative < 1e-12
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.array, other.array, rtol=1e-9, atol=1e-9)


def test_floats_that_overflowed_are_open(journey: Model) -> None:
    trace = work(journey, None, Floats("float32"))
    logits = trace.steps["logits"]
    broken = replace(logits, value=np.full_like(logits.value, np.inf))
    attribution = attribute(replace(trace, steps={**trace.steps, "logits": broken}))
    assert attribution.closes == "open"


def test_an_enclosure_that_misses_zero_is_open() -> None:
    trace = byhand.trace("minigpt", digits=10)
    logits = trace.steps["logits"]
    wrong = logits.value.copy()
    wrong[-1, 5] = wrong[-1, 5] + 1e-6
    tampered = replace(trace, steps={**trace.steps, "logits": replace(logits, value=wrong)})
    assert attribute(tampered).closes == "open"
    assert attribute(tampered, tokens=[4, 6]).closes == "proven"


# ------------------------------------------------------------------ models of real sizes


def test_minigpt_is_proven_to_close() -> None:
    trace = byhand.trace("minigpt", digits=10)
    attribution = attribute(trace)
    assert attribution.closes == "proven"
    assert attribution.radius < 1e-12
    assert attribution.difference(3, 4).closes == "proven"
    last = attribute(trace, positions=[-1], tokens=[3, 4], neurons=True, keys=True)
    assert last.closes == "proven"
    assert last.radius < 1e-12


@pytest.mark.skipif(not STORIES.exists(), reason="the model stories260K is not here")
def test_stories260k_is_proven_to_close_in_limbs() -> None:
    trace = byhand.trace(STORIES, "Once upon a", digits=12)
    assert isinstance(trace.numbers, Limbs)
    attribution = attribute(trace, neurons=False, keys=True)
    assert attribution.closes == "proven"
    assert attribution.radius < 1e-12
    margin = attribution.difference(7, 8)
    assert (margin.closes, margin.radius < 1e-12) == ("proven", True)
    assert attribute(trace, positions=[-1], tokens=[1, 2], neurons=True).radius < 1e-12
