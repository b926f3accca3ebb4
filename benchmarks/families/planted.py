"""Mistakes planted in the library's experts: `python -m benchmarks.families.planted [KIND…]`.

A router, an expert or a sink of a transformers model is changed as ports get it wrong.  Its float32
run is captured and checked; the first wrong line must have the mistake as its cause.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MethodType
from typing import Any

import torch
import transformers
from torch import Tensor
from torch.nn import functional

import byhand
from benchmarks.families import registry, runs

Plant = Callable[[Any], None]  # changes a model


@dataclass(frozen=True)
class Planted:
    """A mistake in one family: its config, how it is made, and a part of the cause's sentence."""

    kind: str
    config: str
    name: str
    plant: Plant
    says: str


def mlps(model: Any, having: str) -> Iterator[Any]:
    """The MLPs that have a module of this name, such as a router."""
    for layer in model.model.layers:
        if hasattr(layer.mlp, having):
            yield layer.mlp


def router(**settings: Any) -> Plant:
    """Other settings of every router."""

    def plant(model: Any) -> None:
        for name in ("gate", "router"):
            for mlp in mlps(model, name):
                for key, value in settings.items():
                    setattr(getattr(mlp, name), key, value)

    return plant


def routed(how: Callable[[Any, Tensor], tuple[Tensor, Tensor]]) -> Plant:
    """Other shares and ids, made of a router and its scores."""

    def forward(gate: Any, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scores = functional.linear(x.reshape(-1, gate.hidden_dim), gate.weight)
        return scores, *how(gate, scores)

    def plant(model: Any) -> None:
        for mlp in mlps(model, "gate"):
            mlp.gate.forward = MethodType(forward, mlp.gate)

    return plant


def top(shares: Tensor, gate: Any) -> tuple[Tensor, Tensor]:
    found, ids = shares.topk(gate.top_k, -1)
    return found, ids


def in_groups(gate: Any, scores: Tensor, *, how: str) -> tuple[Tensor, Tensor]:
    """The choice of DeepSeek V3 with one mistake."""
    scores = scores.softmax(-1) if how == "softmax" else scores.sigmoid()
    ranked = scores + gate.e_score_correction_bias
    groups = ranked.view(-1, gate.num_group, gate.num_experts // gate.num_group)
    best = groups.max(-1)[0] if how == "rule" else groups.topk(2, -1)[0].sum(-1)
    kept = torch.zeros_like(best).scatter(1, best.topk(gate.topk_group, -1)[1], 1).bool()
    inside = groups.masked_fill(~kept[..., None], -torch.inf).flatten(1)
    ids = inside.topk(gate.top_k, -1)[1]
    shares = (ranked if how == "bias" else scores).gather(1, ids)
    return shares / shares.sum(-1, keepdim=True) * gate.routed_scaling_factor, ids


def deepseek(how: str) -> Plant:
    return routed(lambda gate, scores: in_groups(gate, scores, how=how))


def without_bias(model: Any) -> None:
    for mlp in mlps(model, "gate"):
        if hasattr(mlp.gate, "e_score_correction_bias"):
            mlp.gate.e_score_correction_bias.zero_()


def shared(how: Callable[[Tensor, Tensor], Tensor]) -> Plant:
    """The shared expert of Qwen 2, weighed otherwise."""

    def forward(mlp: Any, x: Tensor) -> Tensor:
        rows = x.view(-1, x.shape[-1])
        _scores, shares, ids = mlp.gate(rows)
        always = how(mlp.shared_expert(rows), mlp.shared_expert_gate(rows))
        return (mlp.experts(rows, ids, shares) + always).reshape(x.shape)

    def plant(model: Any) -> None:
        for mlp in mlps(model, "shared_expert"):
            mlp.forward = MethodType(forward, mlp)

    return plant


def experts(**settings: Any) -> Plant:
    """Other settings of every set of experts."""

    def plant(model: Any) -> None:
        for mlp in mlps(model, "experts"):
            for key, value in settings.items():
                setattr(mlp.experts, key, value)

    return plant


def gated(low: bool, plus: float) -> Plant:
    """gpt-oss's gate limited below as well, and another number added to up."""

    def apply(each: Any, both: Tensor) -> Tensor:
        least = -each.limit if low else None
        gate, up = both[..., ::2].clamp(least, each.limit), both[..., 1::2]
        up = up.clamp(-each.limit, each.limit)
        return (up + plus) * gate * torch.sigmoid(gate * each.alpha)

    def plant(model: Any) -> None:
        for mlp in mlps(model, "experts"):
            mlp.experts._apply_gate = MethodType(apply, mlp.experts)

    return plant


def no_sinks(model: Any) -> None:
    for layer in model.model.layers:
        layer.self_attn.sinks.fill_(-1e9)


V3, V2, QWEN, OSS = "deepseek_v3", "deepseek_v2", "qwen2_moe", "gpt_oss"
PLANTED = (
    Planted(V3, "plain", "the bias in the shares", deepseek("bias"), "in the shares as well"),
    Planted(V3, "plain", "no bias in the choice", without_bias, "bias of the choice is left out"),
    Planted(V3, "plain", "groups ignored", router(num_group=1, topk_group=1), "of all experts"),
    Planted(V3, "plain", "groups by their best", deepseek("rule"), "counts by its best expert"),
    Planted(V3, "plain", "softmax for sigmoid", deepseek("softmax"), "scores are a softmax"),
    Planted(V3, "plain", "not divided", router(norm_topk_prob=False), "the scores themselves"),
    Planted(V3, "plain", "no factor", router(routed_scaling_factor=1.0), "not multiplied by 2.5"),
    Planted(V3, "plain", "one expert fewer", router(top_k=2), "2 experts are chosen"),
    Planted(V2, "groups", "groups ignored", router(topk_method="greedy"), "of all experts"),
    Planted(V2, "groups", "no factor", router(routed_scaling_factor=1.0), "not multiplied by 2.5"),
    Planted(QWEN, "plain", "ungated", shared(lambda x, _score: x), "counts whole"),
    Planted(QWEN, "plain", "no sigmoid", shared(lambda x, score: x * score), "the model says sigm"),
    Planted(QWEN, "plain", "not shared", shared(lambda x, _score: 0 * x), "expert is left out"),
    Planted(QWEN, "plain", "divided", router(norm_topk_prob=True), "over the chosen experts, 1"),
    Planted("mixtral", "plain", "not divided", routed(lambda gate, x: top(x.softmax(-1), gate)),
            "softmax over all experts"),
    Planted("mixtral", "plain", "sigmoid", routed(lambda gate, x: top(x.sigmoid(), gate)),
            "sigmoid of its score"),
    Planted(OSS, "limited", "sinks dropped", no_sinks, "sinks are left out"),
    Planted(OSS, "limited", "not limited", experts(limit=1e9), "limit 0.4 is left out"),
    Planted(OSS, "limited", "alpha 1", experts(alpha=1.0), "the activation is SiLU"),
    Planted(OSS, "limited", "no + 1", gated(False, 0.0), "1 is not added"),
    Planted(OSS, "limited", "limited below", gated(True, 1.0), "limited on both sides"),
)  # fmt: skip


def causes(case: Planted, seed: int) -> tuple[str, list[str]]:
    """The first wrong line, and the sentences of all causes that explain it."""
    found = next(each for each in registry.every([case.kind]) if each.name == case.config)
    with runs.pair(found, seed) as pair, torch.no_grad():
        model = transformers.AutoModelForCausalLM.from_pretrained(
            pair.folder, dtype=torch.float32, attn_implementation="eager",
            experts_implementation="eager",
        ).eval()  # fmt: skip
        case.plant(model)
        marking = byhand.check(pair.ours, byhand.capture(model, torch.tensor([pair.ids])))
    first = marking.first_error
    if first is None:
        return "nothing is wrong", []
    return first.address, [each.sentence for each in first.suspects]


def main(kinds: list[str]) -> int:
    """Prints each mistake with its cause; 1 if a cause is not the mistake."""
    named = tried = among = 0
    for case in PLANTED:
        for seed in range(3) if not kinds or case.kind in kinds else ():
            address, told = causes(case, seed)
            right = [case.says in sentence for sentence in told]
            named, tried, among = named + any(right[:1]), tried + 1, among + any(right)
            word = "fine " if any(right[:1]) else "among" if any(right) else "wrong"
            print(word, case.kind, f"{case.name}:", address, *told[:2])
    print(f"{named} of {tried} mistakes are the first cause, {among} are among the causes")
    return int(among < tried)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
