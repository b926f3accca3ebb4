"""TransformerLens and Hugging Face names stand for what those libraries compute."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor as Torch

import byhand
from byhand import forward, names
from byhand.cli.choosing import style_of
from byhand.errors import UsageError
from byhand.model import Model
from byhand.models import open_model
from byhand.parameters import parameters
from byhand.plan import Plan
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)
from byhand.tokens import Ids
from byhand.tracing import Trace
from byhand.weights import Tensor, Weights
from oracles.architectures import spread

torch.set_num_threads(1)


def known(plan: Plan) -> dict[str, str]:
    return {step.address: step.address for step in plan} | dict(plan.aliases)


def numbers(trace: Trace, address: str) -> np.ndarray[Any, Any]:
    return np.asarray(trace[address].value, dtype=np.float64)


# ------------------------------------------------------------------ Hugging Face, the real thing


def small(family: str, **settings: Any) -> Any:
    """A random model of transformers in which no two modules give the same."""
    import transformers

    torch.manual_seed(5)
    sizes: dict[str, Any] = {"vocab_size": 17, "bos_token_id": 0, "eos_token_id": 0}
    if family == "gpt2":
        config: Any = transformers.GPT2Config(
            n_embd=12, n_layer=2, n_head=3, n_positions=8, **sizes, **settings
        )
    else:
        make = {
            "llama": transformers.LlamaConfig,
            "qwen3": transformers.Qwen3Config,
            "gpt_neox": transformers.GPTNeoXConfig,
        }[family]
        config = make(
            hidden_size=12,
            intermediate_size=20,
            num_hidden_layers=2,
            num_attention_heads=3,
            max_position_embeddings=16,
            **sizes,
            **settings,
        )
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.4)
    return model.double().eval()


def outputs(model: Any, ids: list[int]) -> dict[str, Torch]:
    """What every module of the model gives; of a tuple, the first."""
    found: dict[str, Torch] = {}

    def hook(name: str) -> Any:
        def keep(_module: Any, _inputs: Any, output: Any) -> None:
            if isinstance(output, tuple):
                output = output[0]
            if isinstance(output, Torch):
                found[name] = output

        return keep

    for name, module in model.named_modules():
        module.register_forward_hook(hook(name))
    with torch.no_grad():
        model(torch.tensor([ids]))
    return found


def in_our_order(theirs: Torch, axes: tuple[str, ...], shape: tuple[int, ...]) -> Torch:
    """Their tensor without its batch, in byhand's axes: heads apart and first."""
    theirs = theirs.squeeze(0)
    if axes[0] in ("head", "kv_head"):
        heads, length, width = shape
        return theirs.reshape(length, heads, width).transpose(0, 1)
    return theirs


HALF = {"rotary_pct": 0.5}  # of each head is turned
FAMILIES: dict[str, tuple[str, dict[str, Any], str, float]] = {
    "gpt2": ("gpt2", {}, "gpt2", 1e-11),
    "llama": ("llama", {"num_key_value_heads": 1, "mlp_bias": True}, "llama", 2e-5),
    "qwen3": ("qwen3", {"num_key_value_heads": 3, "head_dim": 6}, "llama", 2e-5),
    "parallel": ("gpt_neox", {"use_parallel_residual": True} | HALF, "gpt_neox", 2e-5),
    "serial": ("gpt_neox", {"use_parallel_residual": False} | HALF, "gpt_neox", 2e-5),
}
NO_STEP = ("rotary_emb",)  # what it gives are the cosines


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_module_of_transformers_gives_the_step_of_its_name(tmp_path: Path, kind: str) -> None:
    family, settings, style, close = FAMILIES[kind]
    model = small(family, **settings)
    model.save_pretrained(tmp_path)
    ids = [3, 14, 15, 9, 2, 6]
    trace = byhand.trace(open_model(tmp_path), " ".join(map(str, ids)), float="float64")
    found = names.steps(trace.plan.spec, known(trace.plan))
    modules = outputs(model, ids)
    assert len(modules) > 20
    for name, theirs in modules.items():
        if name.endswith(NO_STEP):
            continue
        step = trace.plan[found[name]]
        ours = numbers(trace, step.address)
        theirs = in_our_order(theirs, step.axes, step.shape)
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=close, atol=close, err_msg=name)
    written = names.names(style, trace.plan.spec, known(trace.plan)).values()
    assert set(written) <= set(modules)


# ------------------------------------------------------------------ TransformerLens, as defined


class Hooks:
    """HookedTransformer's forward pass (BertBlock's where norms come after), hook by hook.

    Written after TransformerLens' components: without a batch, in its order of the axes
    (pos, head, d_head), weights unprocessed.
    """

    def __init__(self, spec: ModelSpec, weights: Weights, ids: list[int]) -> None:
        self.w = {name: torch.tensor(tensor.data) for name, tensor in weights.items()}
        self.cache: dict[str, Torch] = {}
        self.length = len(ids)
        keep = self.keep
        keep("hook_tokens", torch.tensor(ids))
        x = keep("hook_embed", self.w["embed.token"][ids])
        if spec.position == "learned":
            x = x + keep("hook_pos_embed", self.w["embed.position"][: len(ids)])
        for layer, block in enumerate(spec.blocks):
            x = self.block(f"blocks.{layer}", f"block.{layer}", block, x)
        x = keep("unembed.hook_in", self.norm("ln_final", "final.norm", spec.final_norm, x))
        keep("unembed.hook_out", x @ self.w["embed.token"].T)

    def keep(self, name: str, value: Torch) -> Torch:
        self.cache[name] = value
        return value

    def linear(self, name: str, x: Torch) -> Torch:
        return x @ self.w[name] + self.w.get(f"{name}_bias", torch.tensor(0.0))

    def norm(self, hooks: str, at: str, norm: NormSpec, x: Torch) -> Torch:
        if norm.kind == "layernorm":
            x = x - x.mean(-1, keepdim=True)
        scale = (x.pow(2).mean(-1, keepdim=True) + float(norm.eps)).sqrt()
        x = self.keep(f"{hooks}.hook_normalized", x / self.keep(f"{hooks}.hook_scale", scale))
        return x * self.w[f"{at}.gain"] + self.w.get(f"{at}.bias", torch.tensor(0.0))

    def block(self, hooks: str, at: str, block: BlockSpec, pre: Torch) -> Torch:
        assert block.attention
        assert block.mlp
        keep, post_norm = self.keep, block.norm_place == "post"

        def first(x: Torch) -> Torch:
            return self.norm(f"{hooks}.ln1", f"{at}.attn.norm", block.attn_norm, x)

        def second(x: Torch) -> Torch:
            return self.norm(f"{hooks}.ln2", f"{at}.mlp.norm", block.mlp_norm, x)

        keep(f"{hooks}.hook_resid_pre", pre)
        read = pre if post_norm else first(pre)
        attended = self.attention(f"{hooks}.attn", f"{at}.attn", block.attention, read)
        keep(f"{hooks}.hook_attn_out", attended)
        if block.parallel:
            thought = self.mlp(f"{hooks}.mlp", f"{at}.mlp", block.mlp, second(pre))
            keep(f"{hooks}.hook_mlp_out", thought)
            return keep(f"{hooks}.hook_resid_post", pre + attended + thought)
        mid = keep(f"{hooks}.hook_resid_mid", pre + attended)
        mid = first(mid) if post_norm else mid
        read = mid if post_norm else second(mid)
        thought = self.mlp(f"{hooks}.mlp", f"{at}.mlp", block.mlp, read)
        keep(f"{hooks}.hook_mlp_out", thought)
        post = keep(f"{hooks}.hook_resid_post", mid + thought)
        if post_norm:
            return keep(f"{hooks}.hook_normalized_resid_post", second(post))
        return post

    def attention(self, hooks: str, at: str, attn: AttentionSpec, x: Torch) -> Torch:
        def head_by_head(name: str) -> Torch:
            flat = self.linear(f"{at}.{name}", x)
            return self.keep(f"{hooks}.hook_{name}", flat.reshape(self.length, -1, attn.d_head))

        q, k, v = map(head_by_head, "qkv")
        if attn.q_norm.kind != "none":
            for name in "qk":
                rows = (q if name == "q" else k).reshape(-1, attn.d_head)
                rows = self.norm(f"{hooks}.{name}_norm", f"{at}.{name}_norm", attn.q_norm, rows)
                shaped = rows.reshape(self.length, -1, attn.d_head)
                q, k = (shaped, k) if name == "q" else (q, shaped)
        if attn.rotary:
            q = self.keep(f"{hooks}.hook_rot_q", self.rotated(attn.rotary, q))
            k = self.keep(f"{hooks}.hook_rot_k", self.rotated(attn.rotary, k))
        k, v = (x.repeat_interleave(attn.heads // attn.kv_heads, dim=1) for x in (k, v))
        scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(attn.d_head)
        future = torch.ones(self.length, self.length).triu(1).bool()
        scores = self.keep(f"{hooks}.hook_attn_scores", scores.masked_fill(future, -math.inf))
        pattern = self.keep(f"{hooks}.hook_pattern", scores.softmax(-1))
        z = self.keep(f"{hooks}.hook_z", torch.einsum("hqk,khd->qhd", pattern, v))
        matrix = self.w[f"{at}.out"].reshape(attn.heads, attn.d_head, -1)
        result = self.keep(f"{hooks}.hook_result", torch.einsum("qhd,hdm->qhm", z, matrix))
        return result.sum(1) + self.w.get(f"{at}.out_bias", torch.tensor(0.0))

    def rotated(self, rotary: RotarySpec, x: Torch) -> Torch:
        rates = float(rotary.base) ** (-torch.arange(0, rotary.width, 2).double() / rotary.width)
        angles = (torch.arange(self.length).double()[:, None] * rates)[:, None, :]
        left, right = x[..., : rotary.width].chunk(2, dim=-1)
        turned = (left * angles.cos() - right * angles.sin(),
                  right * angles.cos() + left * angles.sin())  # fmt: skip
        return torch.cat((*turned, x[..., rotary.width :]), dim=-1)

    def mlp(self, hooks: str, at: str, mlp: MlpSpec, x: Torch) -> Torch:
        pre = self.keep(
            f"{hooks}.hook_pre", self.linear(f"{at}.{'gate' * mlp.gated or 'hidden'}", x)
        )
        post = F.silu(pre)
        if mlp.gated:
            post = post * self.keep(f"{hooks}.hook_pre_linear", self.linear(f"{at}.hidden", x))
        return self.linear(f"{at}.out", self.keep(f"{hooks}.hook_post", post))


LAYER = NormSpec("layernorm", Fraction(1, 1000))
RMS = NormSpec("rmsnorm", Fraction(1, 1000), bias=False)


def attention(heads: int = 2, kv_heads: int = 2, **settings: Any) -> AttentionSpec:
    return AttentionSpec(heads, 4, kv_heads, over_root(4), **settings)


PLAIN = MlpSpec(7, "silu", hidden_bias=True, out_bias=True)
GATED = MlpSpec(7, "silu", gated=True)
BIASED = attention(q_bias=True, k_bias=True, v_bias=True, out_bias=True)
TURNING = RotarySpec(2)
MODERN = attention(4, rotary=RotarySpec(4), q_norm=RMS, k_norm=RMS)
KINDS: dict[str, tuple[BlockSpec, NormSpec, str]] = {
    "GPT-2": (BlockSpec(BIASED, PLAIN, LAYER, LAYER), LAYER, "learned"),
    "Qwen3": (BlockSpec(MODERN, GATED, RMS, RMS), RMS, "none"),
    "Pythia": (
        BlockSpec(attention(rotary=TURNING), PLAIN, LAYER, LAYER, parallel=True), LAYER, "none",
    ),
    "BERT": (BlockSpec(BIASED, PLAIN, LAYER, LAYER, norm_place="post"), LAYER, "learned"),
}  # fmt: skip


def model_of(kind: str) -> Model:
    block, final, position = KINDS[kind]
    spec = ModelSpec("case", 11, 6, 8, (block, block), position, final_norm=final)
    chance = np.random.default_rng(3)
    weights = {
        p.name: Tensor(p.name, chance.standard_normal(p.shape) * 0.5) for p in parameters(spec)
    }
    return Model(spec, Weights(weights), Ids(11))


@pytest.mark.parametrize("kind", KINDS)
def test_every_hook_of_transformer_lens_holds_the_step_of_its_name(kind: str) -> None:
    model, ids = model_of(kind), [3, 1, 4, 1, 5]
    trace = byhand.trace(model, " ".join(map(str, ids)), float="float64", heads=True)
    cache = Hooks(model.spec, model.weights, ids).cache
    found = names.steps(model.spec, known(trace.plan))
    written = names.names("transformer_lens", model.spec, known(trace.plan))
    assert set(written.values()) <= set(cache) <= set(found)
    for name, theirs in cache.items():
        step = trace.plan[found[name]]
        ours = numbers(trace, step.address)
        if step.axes[1:2] == ("pos",):  # they have the position before the head
            ours = ours.swapaxes(0, 1)
        np.testing.assert_allclose(
            ours.reshape(theirs.shape), theirs.numpy(), rtol=1e-11, atol=1e-11, err_msg=name
        )


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_hooked_is_written_under_a_hook(kind: str) -> None:
    plan = forward.plan(model_of(kind).spec, 3, head_outputs=True)
    written: set[str] = set()
    for style in ("transformer_lens", "transformer_bridge"):
        written |= set(names.names(style, plan.spec, known(plan)))
    found = names.steps(plan.spec, known(plan))
    assert written == {address for name, address in found.items() if "hook_" in name}


# what the bridge of TransformerLens 4.3 calls a step, and the hook of before or the step it is
BRIDGE = {
    "embed.hook_in": "hook_tokens",
    "embed.hook_out": "hook_embed",
    "pos_embed.hook_out": "hook_pos_embed",
    "blocks.1.hook_in": "blocks.1.hook_resid_pre",
    "blocks.1.ln1.hook_in": "blocks.1.hook_resid_pre",
    "blocks.1.ln1.hook_out": "block.1.attn.norm.out",
    "blocks.1.attn.hook_in": "block.1.attn.norm.out",
    "blocks.1.attn.q.hook_in": "block.1.attn.norm.out",
    "blocks.1.attn.q.hook_out": "blocks.1.attn.hook_q",
    "blocks.1.attn.k.hook_out": "blocks.1.attn.hook_k",
    "blocks.1.attn.v.hook_out": "blocks.1.attn.hook_v",
    "blocks.1.attn.q_norm.hook_out": "block.1.attn.q_norm.out",
    "blocks.1.attn.hook_k_normed": "block.1.attn.k_norm.out",
    "blocks.1.attn.o.hook_in": "blocks.1.attn.hook_z",
    "blocks.1.attn.o.hook_out": "blocks.1.hook_attn_out",
    "blocks.1.attn.hook_out": "blocks.1.hook_attn_out",
    "blocks.1.ln2.hook_out": "block.1.mlp.norm.out",
    "blocks.1.mlp.hook_in": "block.1.mlp.norm.out",
    "blocks.1.mlp.out.hook_in": "blocks.1.mlp.hook_post",
    "blocks.1.mlp.out.hook_out": "blocks.1.hook_mlp_out",
    "blocks.1.mlp.hook_out": "blocks.1.hook_mlp_out",
    "blocks.1.hook_out": "blocks.1.hook_resid_post",
    "ln_final.hook_in": "blocks.1.hook_resid_post",
    "ln_final.hook_out": "final.norm.out",
    "hook_unembed": "unembed.hook_out",
}
OF_KIND = {
    "GPT-2": {"blocks.1.ln2.hook_in": "blocks.1.hook_resid_mid",
              "blocks.1.mlp.in.hook_out": "blocks.1.mlp.hook_pre"},
    "Qwen3": {"blocks.1.ln2.hook_in": "blocks.1.hook_resid_mid",
              "blocks.1.mlp.gate.hook_out": "blocks.1.mlp.hook_pre",
              "blocks.1.mlp.in.hook_out": "blocks.1.mlp.hook_pre_linear"},
    "Pythia": {"blocks.1.ln2.hook_in": "blocks.1.hook_resid_pre",
               "blocks.1.mlp.in.hook_out": "blocks.1.mlp.hook_pre"},
}  # fmt: skip


@pytest.mark.parametrize("kind", OF_KIND)
def test_the_bridge_has_names_of_its_own_for_the_same_steps(kind: str) -> None:
    plan = forward.plan(model_of(kind).spec, 3)
    own = known(plan)
    found = names.steps(plan.spec, own)
    for name, same in {**BRIDGE, **OF_KIND[kind]}.items():
        if same in found or same in own:
            assert found[name] == found.get(same, own.get(same)), name
        else:
            assert name not in found, name


# ------------------------------------------------------------------ reading and writing names


def found_in(kind: str) -> tuple[ModelSpec, Mapping[str, str], dict[str, str]]:
    plan = forward.plan(model_of(kind).spec, 3)
    return plan.spec, known(plan), names.steps(plan.spec, known(plan))


def test_a_name_follows_the_kind_of_block() -> None:
    _spec, _known, gpt = found_in("GPT-2")
    assert gpt["blocks.1.mlp.hook_pre"] == "block.1.mlp.hidden"
    assert gpt["blocks.1.mlp.hook_post"] == "block.1.mlp.act"
    assert gpt["blocks.1.hook_resid_pre"] == gpt["blocks.0.hook_resid_post"] == "block.0.mlp.add"
    assert gpt["blocks.1.hook_resid_mid"] == "block.1.attn.add"
    _spec, _known, qwen = found_in("Qwen3")
    assert qwen["blocks.0.mlp.hook_pre"] == "block.0.mlp.gate"
    assert qwen["blocks.0.mlp.hook_pre_linear"] == "block.0.mlp.hidden"
    assert qwen["blocks.0.mlp.hook_post"] == "block.0.mlp.gated"
    assert qwen["blocks.0.ln1.hook_scale"] == "block.0.attn.norm.rms"
    assert qwen["blocks.0.hook_resid_pre"] == "embed.token"
    _spec, _known, pythia = found_in("Pythia")
    assert "blocks.0.hook_resid_mid" not in pythia
    _spec, _known, bert = found_in("BERT")
    assert bert["blocks.0.hook_resid_post"] == "block.0.mlp.add"
    assert bert["blocks.1.hook_resid_pre"] == "block.0.mlp.norm.out"


def test_a_hugging_face_name_may_leave_out_its_first_word() -> None:
    _spec, _known, found = found_in("Qwen3")
    assert found["layers.1.self_attn.q_norm"] == "block.1.attn.q_norm.out"
    assert found["model.layers.1"] == found["layers.1"] == found["h.1"] == "block.1.mlp.add"
    assert found["norm"] == found["ln_f"] == "final.norm.out"
    assert found["embed_out"] == found["lm_head"] == "logits"


def test_a_pattern_finds_the_same_step_of_every_block() -> None:
    spec, plan, _found = found_in("GPT-2")
    assert names.matching("blocks.*.attn.hook_pattern", spec, plan) == (
        "block.0.attn.weights",
        "block.1.attn.weights",
    )
    assert names.matching("transformer.h.*.mlp.act", spec, plan) == (
        "block.0.mlp.act",
        "block.1.mlp.act",
    )
    assert set(names.matching("blocks.1.mlp", spec, plan)) == {
        f"block.1.mlp.{part}" for part in ("norm.out", "hidden", "act", "out")
    }
    assert names.matching("transformer.h.0.mlp", spec, plan) == ("block.0.mlp.out",)
    assert names.matching("transformer.h.7", spec, plan) == ()
    assert names.matching("nonsense", spec, plan) == ()


def test_a_step_keeps_its_name_when_the_rest_of_the_plan_is_gone() -> None:
    plan = forward.plan(model_of("Qwen3").spec, 3)
    alone = plan.only(["block.0.mlp.hidden"])
    assert "block.0.mlp.gate" not in known(alone)
    for part in (plan, alone):
        written = names.names("transformer_lens", part.spec, known(part))
        assert written["block.0.mlp.hidden"] == "blocks.0.mlp.hook_pre_linear"


def test_names_are_one_to_one_in_every_architecture() -> None:
    for case in spread(60, seed=11):
        plan = case.plan()
        found = names.steps(case.spec, known(plan))
        assert not set(found) & set(known(plan))  # no foreign name is one of byhand's
        for style in names.FOREIGN:
            written = names.names(style, case.spec, known(plan))
            assert len(set(written.values())) == len(written)
            assert {name: found[name] for name in written.values()} == {
                name: address for address, name in written.items()
            }


def test_the_style_of_byhand_has_no_other_names() -> None:
    spec, plan, _found = found_in("GPT-2")
    assert names.names("byhand", spec, plan) == {}
    with pytest.raises(UsageError) as caught:
        names.names("gtp2", spec, plan)
    assert caught.value.hint == "did you mean gpt2?"


def test_every_address_of_the_table_is_a_step_of_some_model() -> None:
    some: set[str] = set()
    for kind in KINDS:
        some |= set(known(forward.plan(model_of(kind).spec, 3, head_outputs=True)))
    packed = BlockSpec(attention(packed="concatenated"), PLAIN)
    some |= set(known(forward.plan(ModelSpec("packed", 5, 6, None, (packed,)), 3)))
    for row in names.ROWS:
        for address in row.address.replace("L+1", "1").replace(".L", ".0").split():
            if "_norm.std" not in address:  # no family has a layernorm there
                assert address in some


@pytest.mark.parametrize(("family", "style"), [("llama", "llama"), ("deepseek", "huggingface")])
def test_hf_means_the_names_of_any_family(family: str, style: str) -> None:
    assert style_of("hf", family) == style
