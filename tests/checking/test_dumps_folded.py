"""A dump of a model that TransformerLens folded and centred is judged by what that makes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dumped import IDS, LAYER, RMS, Array, marked, model_of

import byhand
from byhand.model import Model
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, over_root

BIASES = {"q_bias": True, "k_bias": True, "v_bias": True, "out_bias": True}
ATTENTION = AttentionSpec(3, 4, 3, over_root(4), **BIASES)  # type: ignore[arg-type]
PLAIN = MlpSpec(20, "gelu_tanh", hidden_bias=True, out_bias=True)


def gpt2(attention: AttentionSpec = ATTENTION) -> Model:
    block = BlockSpec(attention, PLAIN, attn_norm=LAYER, mlp_norm=LAYER)
    spec = ModelSpec("small", 17, 12, 8, (block, block), "learned", final_norm=LAYER)
    return model_of(spec)


def processed(model: Model) -> dict[str, Array]:
    """The weights as TransformerLens makes them, by its rules, matrices as (in, out)."""
    w = {name: np.asarray(tensor.data, np.float64) for name, tensor in model.weights.items()}
    w["head"], w["head_bias"] = w["embed.token"].T.copy(), np.zeros(17)
    readers = {"final.norm": ["head"]}
    for layer in range(2):
        readers[f"block.{layer}.attn.norm"] = [f"block.{layer}.attn.{each}" for each in "qkv"]
        readers[f"block.{layer}.mlp.norm"] = [f"block.{layer}.mlp.hidden"]
    for norm, names in readers.items():  # fold_ln: biases first, then gains, then means
        for name in names:
            w[f"{name}_bias"] = w[f"{name}_bias"] + w[f"{norm}.bias"] @ w[name]
            w[name] = w[name] * w[f"{norm}.gain"][:, None]
            w[name] = w[name] - w[name].mean(0, keepdims=True)
    for name in ("embed.token", "embed.position"):
        w[name] = w[name] - w[name].mean(-1, keepdims=True)
    for layer in range(2):
        for name in (f"block.{layer}.attn.out", f"block.{layer}.mlp.out"):
            w[name] = w[name] - w[name].mean(-1, keepdims=True)
            w[f"{name}_bias"] = w[f"{name}_bias"] - w[f"{name}_bias"].mean()
        at = f"block.{layer}.attn"
        w[f"{at}.out_bias"] = w[f"{at}.out_bias"] + w[f"{at}.v_bias"] @ w[f"{at}.out"]
        w[f"{at}.v_bias"] = np.zeros_like(w[f"{at}.v_bias"])
    w["head"] = w["head"] - w["head"].mean(-1, keepdims=True)
    w["head_bias"] = w["head_bias"] - w["head_bias"].mean()
    return {name: array.astype(np.float32) for name, array in w.items()}


def normed(x: Array) -> Array:
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + np.float32(1e-5))


def cache(w: dict[str, Array], folded: bool = True) -> dict[str, Any]:
    """What HookedTransformer's hooks hold, in float32; norms have gain and bias unless folded."""
    n, heads = len(IDS), 3

    def scaled(y: Array, norm: str) -> Array:
        return y if folded else y * w[f"{norm}.gain"] + w[f"{norm}.bias"]

    found: dict[str, Any] = {"tokens": np.array([IDS])}
    found["hook_embed"] = w["embed.token"][list(IDS)]
    found["hook_pos_embed"] = w["embed.position"][:n]
    x = found["hook_embed"] + found["hook_pos_embed"]
    for layer in range(2):
        at, b = f"blocks.{layer}", f"block.{layer}"
        found[f"{at}.hook_resid_pre"] = x
        found[f"{at}.ln1.hook_normalized"] = normed(x)
        y = scaled(normed(x), f"{b}.attn.norm")
        qkv = [y @ w[f"{b}.attn.{each}"] + w[f"{b}.attn.{each}_bias"] for each in "qkv"]
        q, k, v = (each.reshape(n, heads, -1) for each in qkv)
        found |= {f"{at}.attn.hook_q": q, f"{at}.attn.hook_k": k, f"{at}.attn.hook_v": v}
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(np.float32(q.shape[-1]))
        scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        pattern = found[f"{at}.attn.hook_pattern"] = shares / shares.sum(-1, keepdims=True)
        z = found[f"{at}.attn.hook_z"] = np.einsum("hqk,khd->qhd", pattern, v)
        out = z.reshape(n, -1) @ w[f"{b}.attn.out"] + w[f"{b}.attn.out_bias"]
        found[f"{at}.hook_attn_out"] = out
        x = found[f"{at}.hook_resid_mid"] = x + out
        pre = scaled(normed(x), f"{b}.mlp.norm") @ w[f"{b}.mlp.hidden"] + w[f"{b}.mlp.hidden_bias"]
        found[f"{at}.mlp.hook_pre"] = pre
        cubic = np.float32(np.sqrt(2 / np.pi)) * (pre + np.float32(0.044715) * pre**3)
        act = pre / 2 * (1 + np.tanh(cubic))
        found[f"{at}.mlp.hook_post"] = act
        out = found[f"{at}.hook_mlp_out"] = act @ w[f"{b}.mlp.out"] + w[f"{b}.mlp.out_bias"]
        x = found[f"{at}.hook_resid_post"] = x + out
    found["ln_final.hook_normalized"] = normed(x)
    found["logits"] = scaled(normed(x), "final.norm") @ w["head"] + w["head_bias"]
    return {name: value[None] if name != "tokens" else value for name, value in found.items()}


def test_a_folded_and_centred_dump_is_right_and_said_to_be_one() -> None:
    marking = marked(gpt2(), cache(processed(gpt2())))
    assert marking.passed
    assert {line.verdict.value for line in marking} == {"right"}
    (text,) = marking.texts
    assert text.readings[0].name == "hook_*"
    assert "(fold_ln, center_writing_weights, center_unembed, fold_value_biases)" in (
        text.readings[0].how
    )


@pytest.mark.parametrize("name", ["blocks.1.hook_mlp_out", "blocks.0.attn.hook_z", "logits"])
def test_a_mistake_in_a_folded_dump_is_found(name: str) -> None:
    dump = cache(processed(gpt2()))
    dump[name] = dump[name].copy()
    dump[name][0, 2, ..., 1] += 0.05
    dump[name][0, 2, ..., 2] -= 0.05  # the mean stays
    first = marked(gpt2(), dump, suspects=False).first_error
    assert first is not None
    assert first.claim.name == name


def unprocessed() -> dict[str, Array]:
    w = {name: np.asarray(tensor.data) for name, tensor in gpt2().weights.items()}
    return {**w, "head": w["embed.token"].T, "head_bias": np.zeros(17, np.float32)}


def test_a_dump_without_processing_is_judged_by_the_model_itself() -> None:
    dump = {**cache(unprocessed(), folded=False), "unembed.hook_in": np.zeros(0)}  # 3.x and later
    marking = marked(gpt2(), dump)
    assert marking.follows
    assert not marking.texts[0].readings


def test_a_forgotten_bias_of_values_is_no_folding() -> None:
    w = unprocessed()
    w["block.0.attn.v_bias"] = np.zeros_like(w["block.0.attn.v_bias"])
    first = marked(gpt2(), cache(w, folded=False), suspects=False).first_error
    assert first is not None
    assert first.address == "block.0.attn.v"


def test_refactored_matrices_are_left_aside_with_the_option_to_turn_off() -> None:
    dump = cache(processed(gpt2()))
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0].astype(np.float32)
    for layer in range(2):
        for name in ("q", "k"):
            key = f"blocks.{layer}.attn.hook_{name}"
            dump[key] = dump[key] @ turn
    marking = marked(gpt2(), dump)
    assert marking.follows
    assert {left.name.rpartition("_")[2] for left in marking.unmatched} == {"q", "k", "v", "z"}
    assert all("refactor_factored_attn_matrices" in str(left.hint) for left in marking.unmatched)


def test_rms_norms_fold_without_centring_of_what_is_written() -> None:
    block = BlockSpec(replace(ATTENTION, q_bias=False, k_bias=False, v_bias=False, out_bias=False),
                      replace(PLAIN, hidden_bias=False, out_bias=False), attn_norm=RMS,
                      mlp_norm=RMS)  # fmt: skip
    spec = ModelSpec("small", 17, 12, 8, (block,), "learned", final_norm=RMS, tied=False)
    model = model_of(spec)
    trace = byhand.trace(model, " ".join(map(str, IDS)), float="float32")
    logits = np.asarray(trace["logits"].array)
    dump = {"tokens": np.array([IDS]), "blocks.0.hook_resid_pre": trace["stream.0"].array[None],
            "unembed.hook_out": (logits - logits.mean(1, keepdims=True))[None]}  # fmt: skip
    marking = marked(model, dump)
    assert marking.passed
    assert "(fold_ln, center_unembed)" in marking.texts[0].readings[0].how
