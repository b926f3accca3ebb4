"""What the slopes of a sublayer are told of it: matrices, gains, heads, scales; and which are not.

The matrix behind queries, keys or values, with the gain, is what takes normalised rows to them.  A
float64 pass says what that is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_limbs_passes import LAYERNORM, RMSNORM, random_weights

from byhand import forward, stream_passes
from byhand.evaluate import work_out
from byhand.expression import parse
from byhand.numbers.enclosed.limbs import stream_points
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.floats import Floats
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, RotarySpec

PLUS_ONE = replace(RMSNORM, plus_one=True)
KINDS = {
    "plain": ({}, LAYERNORM),
    "packed": ({"packed": "concatenated", "kv_heads": 2}, LAYERNORM),
    "packed by heads": ({"packed": "per_head"}, RMSNORM),
    "grouped": ({"kv_heads": 2, "q_bias": True}, RMSNORM),
    "1 + gain": ({}, PLUS_ONE),
    "stretched": ({"rotary": RotarySpec(4, magnitude=parse("5/2"))}, RMSNORM),
    "scaled": ({"scale": parse("3")}, RMSNORM),
    "windowed": ({"window": 2}, RMSNORM),
}


def model(attention: AttentionSpec, norm: Any, **block: Any) -> ModelSpec:
    made = BlockSpec(attention, MlpSpec(9, "silu", gated=True), norm, norm, **block)
    return ModelSpec("parts", 7, 8, 8, (made, made))


def heads(**more: Any) -> AttentionSpec:
    return AttentionSpec(**{"heads": 4, "d_head": 4, "kv_heads": 4, "scale": parse("1/2"), **more})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["in_out", "out_in"])
def test_matrices_with_their_gains_take_normalised_rows_to_what_reads_them(
    kind: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention, norm = KINDS[kind]
    spec = replace(model(heads(**attention), norm), layout=layout)
    weights, tokens = random_weights(spec, np.random.default_rng(3), "random"), (1, 4, 2, 0)
    seen: dict[str, Any] = {}

    def sizes(*parts: Any) -> None:
        seen["parts"] = parts

    def attended(self: Any, value: Any) -> Any:
        seen["at"] = made = attended_before(self, value)
        return made

    attended_before = stream_points.Point._attended
    sizes_before = stream_points.attention_sizes.attention_sizes
    monkeypatch.setattr(
        stream_points.attention_sizes, "attention_sizes",
        lambda *parts: (sizes(*parts), sizes_before(*parts))[1],
    )  # fmt: skip
    monkeypatch.setattr(stream_points.Point, "_attended", attended)
    plan = forward.plan(spec, len(tokens))
    work_out(plan, weights, tokens, Limbs(80), keep=["logits"])
    real = work_out(plan, weights, tokens, Floats("float64"))
    roles = [one.sublayer for one in stream_passes.stretches(plan)
             if one.sublayer and one.sublayer.kind == "attention"][-1].roles  # fmt: skip
    before = plan["block.1.attn.norm.normalized"].address
    z = np.asarray(real[before].value)
    for part, role in zip(seen["parts"][1:], "qkv", strict=True):
        matrix, found = part.matrix(), np.asarray(real[roles[role].address].value)
        mine = ((z[1:] - z[0]) @ matrix.T).reshape(len(z) - 1, part.heads, part.width)
        assert np.allclose(mine.swapaxes(0, 1), found[:, 1:] - found[:, :1], rtol=1e-9, atol=1e-9)
    at, scores = seen["at"], roles["scores"]
    said = scores.attributes["scale"]
    assert at.scale == pytest.approx({"1/2": 0.5, "3": 3.0}["3" if kind == "scaled" else "1/2"])
    assert said is not None
    assert at.stretch >= (2.5 if kind == "stretched" else 1.0)
    hidden = ~np.array(scores.attributes["mask"])
    assert (np.broadcast_to(at.hidden, at.shares.shape) == hidden).all()


@pytest.mark.parametrize(
    ("attention", "mlps"),
    [
        (heads(sinks=True), 2), (heads(cap=parse("5").value), 2), (heads(q_norm=RMSNORM), 2),
        (heads(clip=parse("5").value), 2), (heads(alibi=True), 2), (heads(v_bias=True), 4),
    ],
)  # fmt: skip
def test_attention_of_another_make_is_worked_out_step_by_step(
    attention: AttentionSpec, mlps: int
) -> None:
    plan = forward.plan(model(attention, RMSNORM), 3)
    assert sum(one.sublayer is not None for one in stream_passes.stretches(plan)) == mlps


def test_a_norm_that_two_sublayers_read_makes_neither_of_them_known() -> None:
    block = BlockSpec(heads(), MlpSpec(9), RMSNORM, parallel=True, one_norm=True)
    plan = forward.plan(ModelSpec("one norm", 7, 8, 8, (block,)), 3)
    assert not any(one.sublayer for one in stream_passes.stretches(plan))
