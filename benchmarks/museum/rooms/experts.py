"""Bugs of mixtures of experts: who is chosen, by which share, and with whose weights."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.museum.catalogue import exhibit
from benchmarks.museum.replicas import Replica

GITHUB = "https://github.com"
SHARES = "block.0.mlp.shares"


@exhibit(
    "experts",
    f"{GITHUB}/TransformerLensOrg/TransformerLens/pull/1668",
    2026,
    "Bug/mixtral transformers 5.x",
    family="mixtral",
    shows=SHARES,
    says="softmax over all experts; the model takes it over the chosen",
)
def shares_of_all(port: Replica) -> None:
    """Mixtral's two experts share out 1 between them.  The port had an option for that, off unless
    the config asks for it, and Mixtral's config has no such field.

    A setting that one family never needed to write down is a default in another.
    """
    port.normalised = False


@exhibit(
    "experts",
    f"{GITHUB}/lablup/mlxcel/pull/391",
    2026,
    "fix(olmoe): score MoE router with full softmax then gather, not top-k softmax",
    family="olmoe",
    shows=SHARES,
    says="softmax over the chosen experts",
)
def shares_of_the_chosen(port: Replica) -> None:
    """The reverse: OLMoE takes the shares of the chosen experts among all of them.  The port took
    softmax over the chosen alone, so the shares were 1 together.

    The text began well and then drifted.  For models that do normalise, both orders are the same.
    """
    port.normalised = True


@exhibit(
    "experts",
    f"{GITHUB}/sgl-project/sglang/pull/35160",
    2026,
    "[MoE] Return softmax probabilities from raw-logits topk when renormalize=False",
    family="olmoe",
    shows=SHARES,
    says="router's scores themselves are the shares",
)
def scores_for_shares(port: Replica) -> None:
    """A fast path applied softmax only where it also normalised.  For other models the scores of
    the router themselves were the shares: any size, either sign.

    One branch of two had been thought of, and nothing failed in the other.
    """
    port.instead(expert_shares=lambda router, chosen: router * chosen)


@exhibit(
    "experts",
    f"{GITHUB}/huggingface/transformers/pull/43288",
    2026,
    "Fix eager experts for DeepSeekV2",
    family="mixtral",
    shows=SHARES,
    says="first choice has expert 0's share",
)
def shares_by_rank(port: Replica) -> None:
    """The router gave a share for every expert; the code that applied them expected one for every
    *chosen* expert.  So the first choice took the share of expert 0, the second that of expert 1.

    Both tables have a row for each token.  An index that is too small for a table is never out of
    range.
    """
    usual = port.expert_shares

    def expert_shares(router: Tensor, chosen: Tensor) -> Tensor:
        right = usual(router, chosen)
        largest = router.topk(port.chosen or 0, dim=-1).indices
        taken = right[:, : largest.shape[-1]]
        return torch.zeros_like(right).scatter(-1, largest, taken)

    port.instead(expert_shares=expert_shares)


@exhibit(
    "experts",
    f"{GITHUB}/pytorch/torchtitan/pull/2319",
    2026,
    "Fix gpt-oss implementation (MoE router gate bias + top‑k renorm)",
    family="gpt_oss",
    shows="block.0.mlp.router",
    says="router_bias",
)
def router_without_its_bias(port: Replica) -> None:
    """The router of gpt-oss has a bias.  The port's router had none, and the bias in the
    checkpoint was mapped to nothing.

    Other experts answer, for a few tokens.  The text stays fluent.
    """
    for name in port.w:
        if name.endswith("router_bias"):
            port.w[name] = torch.zeros_like(port.w[name])


@exhibit(
    "experts",
    f"{GITHUB}/vllm-project/vllm/pull/46645",
    2026,
    "Fix gpt-oss-20b NVFP4 (ModelOpt) inference",
    family="gpt_oss",
    shows="block.0.mlp.gate",
    says="gate_bias is left out|experts' bias is left out",
)
def experts_without_their_biases(port: Replica) -> None:
    """The experts of gpt-oss have biases.  One kernel served two 4-bit formats, and passed the
    biases on for one of them.

    What one model alone needs is added where that model is tried.
    """
    for name in port.w:
        if name.endswith(("gate_bias", "hidden_bias", "mlp.out_bias")):
            port.w[name] = torch.zeros_like(port.w[name])


@exhibit(
    "experts",
    f"{GITHUB}/deepspeedai/DeepSpeed/issues/6589",
    2024,
    "[BUG] MOE: Loading experts parameters error when using expert parallel.",
    family="mixtral",
    shows="block.0.mlp.gate",
    says="expert 3 is expert 0 again",
)
def first_half_twice(port: Replica) -> None:
    """Two processors held half of the experts each.  Both loaded the first half from the file.

    Every expert is trained, every shape is right, and half of the answers are another expert's.
    """
    for name, weight in port.w.items():
        if weight.ndim == 3:
            half = len(weight) // 2
            port.w[name] = torch.cat((weight[:half], weight[:half]))
