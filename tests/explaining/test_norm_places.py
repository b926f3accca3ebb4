"""The place of the norms: the same weights run both ways, each way against torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from lens_models import FAMILIES, TEXT, gpt2_like, random_model

from byhand.evaluate import trace
from byhand.explaining.norm_places import norm_places, with_norms
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.spec import NO_NORM
from oracles.torch_pass import TorchPass


@pytest.mark.parametrize("family", FAMILIES)
def test_both_runs_are_what_torch_makes_of_the_same_weights(family: Any) -> None:
    model = random_model(family())
    found = norm_places(model, TEXT)
    assert [run.place for run in found.runs] == ["pre", "post"]
    assert found.reason is None
    for run in found.runs:
        blocks = tuple(replace(block, norm_place=run.place) for block in model.spec.blocks)
        spec = replace(model.spec, blocks=blocks)
        assert run.own == (spec == model.spec)
        streams = TorchPass(spec, model.weights, run.trace.tokens, 0).found
        assert np.allclose(run.trace["logits"].array, streams["logits"], atol=1e-12)
        for layer in run.health.layers:
            assert layer.stream is not None
            stream = streams[f"stream.{layer.layer + 1}"]
            sizes = np.array(layer.stream.rms, dtype=np.float64)
            assert np.allclose(sizes, stream.square().mean(-1).sqrt(), atol=1e-12)


def test_after_its_norms_the_stream_of_tiny_keeps_its_size_and_before_them_it_grows(
    tiny: Model,
) -> None:
    found = norm_places(tiny, numbers=Exact())
    before, after = found.runs
    assert (found.own, before.own, after.own) == ("post", False, True)
    grown, kept = before.health.layers[0].stream, after.health.layers[0].stream
    assert kept is not None
    assert kept.rms == pytest.approx((1, 1))
    assert grown is not None
    assert before.health.entering is not None
    assert (grown.mean or 0) > (before.health.entering.mean or 0)


def test_the_model_s_own_run_is_its_trace() -> None:
    model = open_model("minigpt")
    own = next(run for run in norm_places(model).runs if run.own)
    assert own.place == "pre"
    same = trace(model, None, Floats("float64"))
    assert np.array_equal(own.trace["logits"].array, same["logits"].array)
    assert own.next == same.next


def test_a_model_without_norms_says_so() -> None:
    found = norm_places(open_model("abc"))
    assert (found.own, found.runs) == (None, ())
    assert found.reason == "the blocks of this model have no norms"


def test_parallel_blocks_cannot_have_their_norms_after_the_add() -> None:
    spec = gpt2_like()
    blocks = tuple(replace(block, parallel=True) for block in spec.blocks)
    found = norm_places(random_model(replace(spec, blocks=blocks)), TEXT)
    assert [(run.place, run.own) for run in found.runs] == [("pre", True)]
    assert found.reason is not None
    assert found.reason.startswith("the norms cannot be moved")


def test_blocks_of_both_kinds_are_mixed_and_neither_run_is_the_model_s_own() -> None:
    spec = gpt2_like()
    blocks = (spec.blocks[0], replace(spec.blocks[1], norm_place="post"))
    found = norm_places(random_model(replace(spec, blocks=blocks)), TEXT)
    assert found.own == "mixed"
    assert [run.own for run in found.runs] == [False, False]


def test_a_block_without_norms_stays_as_it_is() -> None:
    spec = gpt2_like()
    bare = replace(spec.blocks[0], attn_norm=NO_NORM, mlp_norm=NO_NORM)
    moved = with_norms(replace(spec, blocks=(bare, spec.blocks[1])), "post")
    assert moved.blocks[0] is bare
    assert moved.blocks[1] == replace(spec.blocks[1], norm_place="post")
    assert moved.final_norm == spec.final_norm


def test_unknown_weights_are_told_in_each_run() -> None:
    model = open_model("abc-walkthrough")
    assert norm_places(model).reason == "the blocks of this model have no norms"
