"""The MLP of a block in a GGUF file: one for all positions, or experts to choose from."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from byhand.files.gguf import Packed
from byhand.language import _
from byhand.models.gguf.settings import Settings
from byhand.spec import MlpSpec

GATINGS = {1: "softmax", 2: "sigmoid", 3: "softmax"}  # 3: softmax over the chosen


def mlp_of(
    settings: Settings,
    tensors: Mapping[str, Packed],
    layer: int,
    activation: str,
    normalised: bool,
) -> MlpSpec:
    """The MLP of a layer: its tensors tell whether it has experts, gates and biases."""

    def has(name: str) -> bool:
        return f"blk.{layer}.{name}" in tensors

    if has("ffn_gate_inp.weight"):
        return _experts(settings, tensors, layer, activation, normalised)
    d_ff = settings.each("feed_forward_length", layer + 1)[layer]
    packed = has("ffn_up.weight") and tensors[f"blk.{layer}.ffn_up.weight"].shape[0] == 2 * d_ff
    return MlpSpec(
        d_ff=d_ff,
        activation=activation,
        gated=packed or has("ffn_gate.weight"),
        hidden_bias=has("ffn_up.bias"),
        gate_bias=has("ffn_gate.bias"),
        out_bias=has("ffn_down.bias"),
    )


def _experts(
    settings: Settings,
    tensors: Mapping[str, Packed],
    layer: int,
    activation: str,
    normalised: bool,
) -> MlpSpec:
    def has(name: str) -> bool:
        return f"blk.{layer}.{name}" in tensors

    count = settings.whole("expert_count")
    chosen = settings.each("expert_used_count", layer + 1)[layer]
    gating = settings.whole("expert_gating_func", 1, least=0) or 1
    if gating not in GATINGS:
        raise settings.refuse("expert_gating_func", ", ".join(map(str, GATINGS)))
    groups = settings.whole("expert_group_count", 0, least=0)
    groups_chosen = settings.whole("expert_group_used_count", 0, least=0)
    ranked = has("exp_probs_b.bias") or groups > 1
    if ranked and GATINGS[gating] != "sigmoid":  # llama.cpp ranks shares there, the plan scores
        expected = _("2 (sigmoid), with a bias of the choice or groups of experts")
        raise settings.refuse("expert_gating_func", expected, gating)
    width = _width(settings, layer, chosen)
    scale = settings.number("expert_weights_scale", Fraction(0)) or Fraction(1)
    shared = f"blk.{layer}.ffn_up_shexp.weight"
    oss = settings.prefix == "gpt-oss."
    return MlpSpec(
        d_ff=width,
        activation="quick_gelu" if oss else activation,
        gated=has("ffn_gate_exps.weight") or has("ffn_gate_up_exps.weight"),
        hidden_bias=has("ffn_up_exps.bias"),
        gate_bias=has("ffn_gate_exps.bias"),
        out_bias=has("ffn_down_exps.bias"),
        experts=count,
        chosen=chosen,
        normalised=settings.flag("expert_weights_norm", normalised),
        router_bias=has("ffn_gate_inp.bias"),
        scoring=GATINGS[gating],
        choice_bias=has("exp_probs_b.bias"),
        groups=groups if groups > 1 else None,
        groups_chosen=groups_chosen if groups > 1 else None,
        group_rule="top2" if groups > 1 else "max",
        share_scale=scale,
        shared=tensors[shared].shape[0] if shared in tensors else None,
        shared_gate=has("ffn_gate_inp_shexp.weight"),
        limit=Fraction(7) if oss else None,
        hidden_plus=Fraction(1) if oss else Fraction(0),
    )


def _width(settings: Settings, layer: int, chosen: int) -> int:
    """The width inside one expert."""
    _key, own = settings.value("expert_feed_forward_length", 0)
    if own:
        return settings.each("expert_feed_forward_length", layer + 1)[layer]
    whole = settings.each("feed_forward_length", layer + 1)[layer]
    if settings.prefix not in ("qwen2moe.", "qwen3moe."):
        return whole
    if whole % chosen:
        expected = _("a multiple of {count}").format(count=chosen)
        raise settings.refuse("feed_forward_length", expected)
    return whole // chosen
