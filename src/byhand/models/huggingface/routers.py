"""The settings of routers: how many experts there are, how many are chosen, and by which scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from byhand.models.huggingface.activations import ACTIVATIONS
from byhand.models.huggingface.config import NEEDED, Config
from byhand.sublayer_specs import MlpSpec

MOST_EXPERTS = 100_000
TINY = Fraction(1, 10**20)  # added to the sum of sigmoids that shares are divided by
# of training, or about what a model returns beside its logits
IGNORED = (
    "router_aux_loss_coef", "output_router_logits", "router_jitter_noise", "aux_loss_alpha",
    "seq_aux", "ep_size", "initializer_factor",
)  # fmt: skip


def plain_mlp(config: Config, key: str = "intermediate_size", bias: bool = False) -> MlpSpec:
    """The gated MLP of a block without experts, as wide as this key says."""
    return MlpSpec(
        d_ff=config.whole(key),
        activation=config.word("hidden_act", "silu", ACTIVATIONS),
        gated=True,
        hidden_bias=bias,
        gate_bias=bias,
        out_bias=bias,
    )


def with_experts(
    config: Config,
    mlp: MlpSpec,
    names: tuple[str, str | None],
    usual: tuple[int | None, int | None],
    **more: Any,
) -> MlpSpec:
    """So many experts like this MLP; names = (the key of their count, another name of it).

    `usual` are the numbers of experts and of chosen ones where the config does not say them.
    """
    config.asked.update(IGNORED)
    key, also = names
    experts = config.whole(
        key, NEEDED if usual[0] is None else usual[0], also=also, most=MOST_EXPERTS
    )
    chosen = config.whole(
        "num_experts_per_tok", NEEDED if usual[1] is None else usual[1], most=MOST_EXPERTS
    )
    return replace(mlp, experts=experts, chosen=chosen, **more)


@dataclass(frozen=True)
class Usual:
    """What a family with the choice of DeepSeek V3 takes where the config says nothing."""

    experts: int | None = None  # None: the config must say it, here and below
    chosen: int | None = None
    width: int = 1408  # of an expert
    shared: int | None = None  # how many experts always answer
    groups: tuple[int, int] = (1, 1)
    scale: Fraction = Fraction(1)
    normalised: bool = True


def by_sigmoid(config: Config, plain: MlpSpec, usual: Usual) -> MlpSpec:
    """The experts of DeepSeek V3: sigmoids, a bias for the choice alone, and groups of experts.

    A group counts by the sum of its two best.  Further experts always answer, as one MLP.
    """
    config.word("scoring_func", "sigmoid", {"sigmoid": None})
    config.word("topk_method", "noaux_tc", {"noaux_tc": None})
    width = config.whole("moe_intermediate_size", usual.width)
    always = config.whole("n_shared_experts", NEEDED if usual.shared is None else usual.shared)
    normalised = config.flag("norm_topk_prob", usual.normalised)
    return with_experts(
        config,
        replace(plain, d_ff=width),
        ("n_routed_experts", "num_local_experts"),
        (usual.experts, usual.chosen),
        shared=width * always,
        scoring="sigmoid",
        choice_bias=True,
        normalised=normalised,
        share_eps=TINY if normalised else Fraction(0),
        share_scale=config.number("routed_scaling_factor", usual.scale),
        **in_groups(config, usual.groups, "top2"),
    )


def in_groups(config: Config, usual: tuple[int, int] | None, rule: str) -> dict[str, Any]:
    """The groups of experts, of which the best ones count; one group is no group."""
    count = config.whole("n_group", usual[0] if usual else NEEDED, most=MOST_EXPERTS)
    best = config.whole("topk_group", usual[1] if usual else NEEDED, most=MOST_EXPERTS)
    if count == 1 and best == 1:
        return {}
    return {"groups": count, "groups_chosen": best, "group_rule": rule}
