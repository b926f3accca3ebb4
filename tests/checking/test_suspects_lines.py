"""Suspects of a single line: the lines above are right, and this one was made the wrong way.

What was claimed is computed here from the lines above, in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from suspected import SPECS, TARGET, TOKENS, Judge, own_pass, random_model, stored, suspected

from byhand.expression import Call, Number
from byhand.model import Model
from byhand.spec import AttentionSpec, BlockSpec

Data = npt.NDArray[Any]
Lines = Mapping[str, Data]
GPT2, LLAMA, NEOX = "gpt2", "llama", "gpt_neox"
MODELS = {family: random_model(spec()) for family, spec in SPECS.items()}


def weight(model: Model, name: str) -> Data:
    return np.asarray(model.weights[name].data, dtype=np.float64)


def dropped(x: Data, rate: float) -> Data:
    """As a dropout leaves it."""
    return x * (np.random.default_rng(5).random(x.shape) >= rate) / (1 - rate)


def cast(x: Data) -> Data:
    """Rounded to bfloat16."""
    return np.asarray(x, dtype=np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)


def normed(x: Data) -> Data:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def silu(x: Data) -> Data:
    return x / (1 + np.exp(-x))


AT = "block.1"
LINES: list[tuple[str, str, str, Callable[[Lines, Model], Data]]] = [
    ("mean-kept", GPT2, f"{AT}.attn.norm.normalized",
     lambda x, m: x["block.0.mlp.add"] / x[f"{AT}.attn.norm.std"][:, None]),
    ("norm-kind", GPT2, f"{AT}.attn.norm.variance",
     lambda x, m: (x["block.0.mlp.add"] ** 2).mean(-1)),
    ("root-missing", NEOX, f"{AT}.mlp.norm.std", lambda x, m: x[f"{AT}.mlp.norm.variance"] + 1e-5),
    ("norm-bias-first", GPT2, f"{AT}.attn.norm.out",
     lambda x, m: (x[f"{AT}.attn.norm.normalized"] + weight(m, f"{AT}.attn.norm.bias"))
     * weight(m, f"{AT}.attn.norm.gain")),
    ("norm-twice", NEOX, f"{AT}.attn.norm.out",
     lambda x, m: normed(x[f"{AT}.attn.norm.out"]) * weight(m, f"{AT}.attn.norm.gain")
     + weight(m, f"{AT}.attn.norm.bias")),
    ("weight-swapped", GPT2, f"{AT}.mlp.norm.out",
     lambda x, m: x[f"{AT}.mlp.norm.normalized"] * weight(m, f"{AT}.attn.norm.gain")
     + weight(m, f"{AT}.attn.norm.bias")),
    ("mask-zero", LLAMA, f"{AT}.attn.weights",
     lambda x, m: shares(np.where(np.isfinite(x[f"{AT}.attn.scores"]),
                                  x[f"{AT}.attn.scores"], 0.0))),
    ("softmax-base", LLAMA, f"{AT}.attn.weights",
     lambda x, m: shares(x[f"{AT}.attn.scores"] * np.log(2))),
    ("dropout", GPT2, f"{AT}.attn.mixed", lambda x, m: x[f"{AT}.attn.mixed"] / 0.9),
    ("dropout", GPT2, f"{AT}.attn.mixed",
     lambda x, m: dropped(x[f"{AT}.attn.weights"], 0.2) @ x[f"{AT}.attn.v"]),
    ("dropout", NEOX, f"{AT}.attn.weights", lambda x, m: dropped(x[f"{AT}.attn.weights"], 0.15)),
    ("dropout", LLAMA, f"{AT}.mlp.out", lambda x, m: dropped(x[f"{AT}.mlp.out"], 0.1)),
    ("dropout", LLAMA, f"{AT}.mlp.add",
     lambda x, m: x[f"{AT}.attn.add"] + dropped(x[f"{AT}.mlp.out"], 0.1)),
    ("dropout", GPT2, "stream.0",
     lambda x, m: dropped(x["embed.token"] + x["embed.position"], 0.1)),
    ("precision", GPT2, f"{AT}.attn.norm.out",
     lambda x, m: x[f"{AT}.attn.norm.normalized"] * cast(weight(m, f"{AT}.attn.norm.gain"))
     + cast(weight(m, f"{AT}.attn.norm.bias"))),
    ("precision", NEOX, f"{AT}.mlp.hidden",
     lambda x, m: x[f"{AT}.mlp.norm.out"] @ weight(m, f"{AT}.mlp.hidden").T
     + cast(weight(m, f"{AT}.mlp.hidden_bias"))),
    ("precision", NEOX, f"{AT}.mlp.hidden",
     lambda x, m: x[f"{AT}.mlp.norm.out"] @ cast(weight(m, f"{AT}.mlp.hidden")).T
     + cast(weight(m, f"{AT}.mlp.hidden_bias"))),
    ("precision", LLAMA, "embed.token", lambda x, m: cast(x["embed.token"])),
    ("weight-transposed", LLAMA, "logits",
     lambda x, m: x["final.norm.out"] @ weight(m, "head").T.reshape(19, 24).T),
    ("mix-transposed", NEOX, f"{AT}.attn.mixed",
     lambda x, m: x[f"{AT}.attn.weights"].transpose(0, 2, 1) @ x[f"{AT}.attn.v"]),
    ("scores-transposed", NEOX, f"{AT}.attn.scores",
     lambda x, m: np.where(
         np.isfinite(x[f"{AT}.attn.scores"]),
         x[f"{AT}.attn.k_rotated"] @ x[f"{AT}.attn.q_rotated"].transpose(0, 2, 1) / np.sqrt(8),
         -np.inf)),
    ("head-split", NEOX, f"{AT}.attn.q",
     lambda x, m: x[f"{AT}.attn.qkv"].reshape(6, 24, 4).transpose(2, 0, 1)[..., :8]),
    ("head-merge", LLAMA, f"{AT}.attn.out",
     lambda x, m: x[f"{AT}.attn.mixed"].transpose(1, 2, 0).reshape(6, 24)
     @ weight(m, f"{AT}.attn.out").T),
    ("up-missing", LLAMA, f"{AT}.mlp.gated", lambda x, m: x[f"{AT}.mlp.act"]),
    ("gate-missing", LLAMA, f"{AT}.mlp.gated", lambda x, m: x[f"{AT}.mlp.hidden"]),
    ("activation-on-both", LLAMA, f"{AT}.mlp.gated",
     lambda x, m: x[f"{AT}.mlp.act"] * silu(x[f"{AT}.mlp.hidden"])),
    ("gate-up-swapped", LLAMA, f"{AT}.mlp.gate", lambda x, m: x[f"{AT}.mlp.hidden"]),
    ("update-missing", GPT2, f"{AT}.mlp.add", lambda x, m: x[f"{AT}.attn.add"]),
    ("residual-sign", GPT2, f"{AT}.mlp.add", lambda x, m: x[f"{AT}.attn.add"] - x[f"{AT}.mlp.out"]),
    ("residual-doubled", LLAMA, f"{AT}.attn.add",
     lambda x, m: x["block.0.mlp.add"] + 2 * x[f"{AT}.attn.out"]),
    ("residual-source", LLAMA, f"{AT}.mlp.add",
     lambda x, m: x["embed.token"] + x[f"{AT}.mlp.out"]),
    ("norm-place", LLAMA, f"{AT}.attn.norm.mean_square",
     lambda x, m: (x[f"{AT}.attn.add"] ** 2).mean(-1)),
    ("layer-skipped", NEOX, "block.2.attn.norm.mean", lambda x, m: x["block.0.mlp.add"].mean(-1)),
    ("input-wrong", NEOX, f"{AT}.mlp.hidden",
     lambda x, m: x[f"{AT}.mlp.norm.normalized"] @ weight(m, f"{AT}.mlp.hidden").T
     + weight(m, f"{AT}.mlp.hidden_bias")),
    ("token-shifted", LLAMA, "embed.token", lambda x, m: x["embed.token"][::-1]),
    ("embed-scale-extra", GPT2, "stream.0",
     lambda x, m: x["embed.token"] * np.sqrt(24) + x["embed.position"]),
    ("position-doubled", GPT2, "stream.0",
     lambda x, m: x["embed.token"] + 2 * x["embed.position"]),
    ("softmax-axis", LLAMA, "probs", lambda x, m: shares(x["logits"].T).T),
    ("loss-missing-log", GPT2, "loss", lambda x, m: x["probs"][-1:, TARGET]),
    ("loss-perplexity", GPT2, "loss", lambda x, m: 1 / x["probs"][-1:, TARGET]),
    ("loss-position", GPT2, "loss", lambda x, m: -np.log(x["probs"][:1, TARGET])),
    ("softmax-doubled", GPT2, "loss", lambda x, m: -np.log(shares(x["probs"])[-1:, TARGET])),
    ("sign", NEOX, f"{AT}.attn.out", lambda x, m: -x[f"{AT}.attn.out"]),
]  # fmt: skip


def shares(x: Data) -> Data:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("kind", "family", "address", "wrong"), LINES, ids=[f"{k} {a}" for k, _f, a, _w in LINES]
)
def test_a_line_made_the_wrong_way_is_explained(
    kind: str, family: str, address: str, wrong: Callable[[Lines, Model], Data]
) -> None:
    model = MODELS[family]
    found = suspected(model, address, stored(wrong(own_pass(model), model)))
    assert found
    assert found[0].kind == kind, [edit.kind for edit in found]


def test_what_only_looks_like_dropout_is_not_called_so() -> None:
    """Numbers that are missing without the others being larger, and noise of that size."""
    model = MODELS[GPT2]
    lines = own_pass(model)
    rng = np.random.default_rng(7)
    for end in ("attn.out", "attn.mixed", "attn.add"):
        right = lines[f"{AT}.{end}"]
        for wrong in (
            right * (rng.random(right.shape) >= 0.1),
            right * rng.choice((0.0, 1.0, 1 / 0.9), right.shape),
            right * (1 + 0.1 * rng.standard_normal(right.shape)),
        ):
            found = suspected(model, f"{AT}.{end}", stored(wrong))
            assert "dropout" not in [edit.kind for edit in found]


# ------------------------------------------------------------------------ other models


def built(**changes: Any) -> Model:
    """A model with a block of its own."""
    spec = SPECS[LLAMA]()
    block: BlockSpec = replace(spec.blocks[0], **changes.pop("block", {}))
    attention: AttentionSpec | None = block.attention
    assert attention is not None
    block = replace(block, attention=replace(attention, **changes.pop("attention", {})))
    return random_model(replace(spec, blocks=(block,) * 2, **changes))


def test_alibi_left_out_or_added() -> None:
    model = built(attention={"rotary": None, "alibi": True})
    lines = own_pass(model)
    slopes = weight(model, f"{AT}.attn.slopes")[:, None, None]
    distance = np.abs(np.subtract.outer(range(6), range(6)))
    at = f"{AT}.attn.scores"
    plain = stored(lines[at] + slopes * distance)
    assert suspected(model, at, plain)[0].kind == "alibi-missing"
    added = stored(lines[at] + 2 * slopes * distance)
    assert suspected(model, at, added)[0].kind == "alibi-sign"


def test_a_window_that_is_one_too_wide() -> None:
    model = built(attention={"window": 2})
    lines = own_pass(model)
    q, k = lines[f"{AT}.attn.q_rotated"], lines[f"{AT}.attn.k_rotated"].repeat(2, 0)
    sees = np.tril(np.ones((6, 6), bool)) & ~np.tril(np.ones((6, 6), bool), -3)
    wide = np.where(sees, q @ k.transpose(0, 2, 1) / np.sqrt(6), -np.inf)
    found = suspected(model, f"{AT}.attn.weights", stored(shares(wide)))
    assert found[0].kind == "window-wrong"
    assert found[0].sentence == "it follows if a query sees back 3 keys; the model says 2"


def test_scaling_of_rope_left_out() -> None:
    rotary = replace(SPECS[LLAMA]().blocks[0].attention.rotary, given=True)  # type: ignore[union-attr]
    model = built(attention={"rotary": rotary})
    x = own_pass(model)[f"{AT}.attn.q"]
    angles = np.outer(np.arange(6), 10_000.0 ** (-np.arange(0, 6, 2) / 6))
    a, b = x[..., :3], x[..., 3:]
    cos, sin = np.cos(angles), np.sin(angles)
    turned = np.concatenate((a * cos - b * sin, a * sin + b * cos), axis=-1)
    assert suspected(model, f"{AT}.attn.q_rotated", stored(turned))[0].kind == "rope-scaling"


def test_sinusoids_in_another_order() -> None:
    model = built(position="sinusoidal", attention={"rotary": None})
    angles = np.outer(np.arange(6), 10_000.0 ** (-np.arange(0, 24, 2) / 24))
    halves = np.concatenate((np.sin(angles), np.cos(angles)), axis=-1)
    assert suspected(model, "embed.position", stored(halves))[0].kind == "sinusoid-order"


def test_padding_that_is_not_masked_takes_its_share_of_the_weights() -> None:
    model = MODELS[LLAMA]
    at = f"{AT}.attn.weights"
    scores = own_pass(model)[f"{AT}.attn.scores"]
    pads = np.random.default_rng(5).standard_normal((4, 6, 2))
    padded = shares(np.concatenate((pads, scores), axis=-1))[..., 2:]
    found = suspected(model, at, stored(padded), padding=(2, 0))[0]
    assert found.kind == "padding-mask"


def test_a_layer_that_is_left_out_and_not_in_the_dump() -> None:
    model = MODELS[GPT2]
    lines = own_pass(model)
    left = {name: x for name, x in lines.items() if not name.startswith("block.1.")}
    x = left["block.0.mlp.add"]
    judge = Judge(model, {**left, "block.2.attn.norm.mean": stored(x.mean(-1))})
    found = judge.suspects("block.2.attn.norm.mean")[0][0]
    assert found.kind == "layer-skipped"
    assert found.change == "run block 1"


def test_an_embedding_whose_scale_is_forgotten() -> None:
    model = built(embed_scale=Call("sqrt", Number(Fraction(24))))
    rows = weight(model, "embed.token")[list(TOKENS)]
    found = suspected(model, "embed.token", rows)[0]
    assert (found.kind, found.change) == ("embed-scale-missing", "scale the embedding by √24")


def test_rope_that_is_missing_on_k_alone_is_said_to_be_so() -> None:
    model = MODELS[LLAMA]
    found = suspected(model, f"{AT}.attn.k_rotated", own_pass(model)[f"{AT}.attn.k"])[0]
    assert found.sentence == "it follows if RoPE is not applied to k; the model rotates q and k"


def test_sinusoids_of_another_base() -> None:
    model = built(position="sinusoidal", attention={"rotary": None})
    angles = np.outer(np.arange(6), 1_000.0 ** (-np.arange(0, 24, 2) / 24))
    both = np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(6, 24)
    assert suspected(model, "embed.position", stored(both))[0].kind == "sinusoid-base"


def test_a_table_of_scores_that_is_not_added() -> None:
    model = built(attention={"rotary": None, "score_table": True})
    at = f"{AT}.attn.scores"
    table = weight(model, f"{AT}.attn.score_table")[:, :6, :6]
    plain = stored(own_pass(model)[at] - table)
    assert suspected(model, at, plain)[0].kind == "table-missing"


def test_logits_that_are_scaled_as_the_embedding_is() -> None:
    model = built(embed_scale=Call("sqrt", Number(Fraction(24))))
    wrong = stored(own_pass(model)["logits"] * np.sqrt(24))
    assert suspected(model, "logits", wrong)[0].kind == "logit-scale"


def test_a_post_norm_model_that_is_worked_out_as_pre_norm() -> None:
    model = built(block={"norm_place": "post"})
    lines = own_pass(model)
    x = lines["block.0.mlp.norm.out"]
    gain = weight(model, f"{AT}.attn.norm.gain")
    read = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gain
    q = (read @ weight(model, f"{AT}.attn.q").T).reshape(6, 4, 6).transpose(1, 0, 2)
    assert suspected(model, f"{AT}.attn.q", stored(q))[0].kind == "norm-place"
