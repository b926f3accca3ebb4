"""The settings of routers: how many experts there are, how many are chosen, and by which scores."""

from __future__ import annotations

from dataclasses import replace
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
    usual: tuple[int, int | None],
    **more: Any,
) -> MlpSpec:
    """So many experts like this MLP; names = (the key of their count, another name of it).

    `usual` are the numbers of experts and of chosen ones where the config does not say them.
    """
    config.asked.update(IGNORED)
    key, also = names
    experts = config.whole(key, usual[0], also=also, most=MOST_EXPERTS)
    chosen = config.whole(
        "num_experts_per_tok", NEEDED if usual[1] is None else usual[1], most=MOST_EXPERTS
    )
    return replace(mlp, experts=experts, chosen=chosen, **more)


def by_sigmoid(config: Config, groups: tuple[int, int], scale: Fraction) -> dict[str, Any]:
    """The choice of DeepSeek V3: sigmoids, a bias for the choice alone, and groups of experts.

    A group counts by the sum of its two best.  `groups` and `scale` are the usual settings.
    """
    config.word("scoring_func", "sigmoid", {"sigmoid": None})
    config.word("topk_method", "noaux_tc", {"noaux_tc": None})
    return {
        "scoring": "sigmoid",
        "choice_bias": True,
        "normalised": config.flag("norm_topk_prob", True),
        "share_eps": TINY if config.flag("norm_topk_prob", True) else Fraction(0),
        "share_scale": config.number("routed_scaling_factor", scale),
        **in_groups(config, groups, "top2"),
    }


def in_groups(config: Config, usual: tuple[int, int] | None, rule: str) -> dict[str, Any]:
    """The groups of experts, of which the best ones count; one group is no group."""
    count = config.whole("n_group", usual[0] if usual else NEEDED, most=MOST_EXPERTS)
    best = config.whole("topk_group", usual[1] if usual else NEEDED, most=MOST_EXPERTS)
    if count == 1 and best == 1:
        return {}
    return {"groups": count, "groups_chosen": best, "group_rule": rule}
