"""Bugs in attention: scale, mask, window, heads, dropout, and norms of q and k."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.museum.catalogue import exhibit
from benchmarks.museum.replicas import Replica

SCORES, WEIGHTS = "block.0.attn.scores", "block.0.attn.weights"
GITHUB = "https://github.com"
PROMPT = 7  # tokens that were worked out before the rest


@exhibit(
    "attention",
    f"{GITHUB}/huggingface/transformers/pull/38290",
    2025,
    "[`OPT`] Fix attention scaling",
    family="gpt2",
    shows=SCORES,
    says="scaled twice|scaled by 1/16",
)
def scaled_twice(port: Replica) -> None:
    """OPT scales its queries.  After a refactoring the attention function scaled the scores by its
    default as well.

    Two places that may both do a thing will one day both do it.
    """
    port.scale = 1 / port.d_head


@exhibit(
    "attention",
    f"{GITHUB}/ggml-org/llama.cpp/pull/8444",
    2024,
    "Gemma2: 9B query_pre_attn_scalar = 256 not 224",
    family="gemma",
    shows=SCORES,
    says="scaled by 1/√16; the model says 1/√24",
)
def scale_of_the_other_width(port: Replica) -> None:
    """Scores were scaled by 1/√(d_model / heads), as the first reference code for Gemma 2 did.
    The model was trained with 1/√(width of a head), which is another number here.

    In most models the two widths are one number.  Where they are not, the perplexity is a little
    worse and nothing else is seen.
    """
    port.scale = (port.d_model / port.heads) ** -0.5


@exhibit(
    "attention",
    f"{GITHUB}/huggingface/transformers/issues/39408",
    2025,
    "Off-by-one error when using flash_attention with a sliding window",
    family="mistral",
    shows=WEIGHTS,
    says="sees back 6 keys",
)
def window_one_too_wide(port: Replica) -> None:
    """A window of 5 keys was passed to a kernel that counts the keys *before* the query.  Each
    query saw 6.

    Three conventions are in use for "window": keys in all, keys before, and both sides.
    """
    assert port.window is not None
    port.window += 1


@exhibit(
    "attention",
    f"{GITHUB}/onnx/onnx/pull/7274",
    2025,
    "Update attention gqa to use repeat interleave within repeat kv",
    family="llama",
    shows=SCORES,
    says="h mod 2",
)
def key_heads_tiled(port: Replica) -> None:
    """The shared key heads were laid out 0, 1, 0, 1, … for the query heads; models are trained
    with 0, 0, 0, 1, 1, 1.

    `tile` and `repeat` differ only in order, and no shape tells them apart.
    """
    port.instead(spread=lambda x: x.repeat(port.heads // port.kv_heads, 1, 1))


@exhibit(
    "attention",
    f"{GITHUB}/huggingface/pytorch-image-models/pull/1978",
    2023,
    "scaled_dot_product_attention: don't dropout in eval",
    family="gpt2",
    shows="block.0.attn.mixed",
    says=r"1/\(1 - 0\.1\), as dropout",
)
def dropout_while_predicting(port: Replica) -> None:
    """A module passed its dropout rate on to a fused attention function.  The module knows whether
    it is in training; the function does not, and always drops.

    What was one flag for a whole model became an argument for each call.
    """
    usual = port.mixed
    noise = torch.Generator().manual_seed(1)

    def mixed(weights: Tensor, v: Tensor) -> Tensor:
        kept = torch.rand(weights.shape, generator=noise) >= 0.1
        return usual(weights * kept / 0.9, v)

    port.instead(mixed=mixed)


@exhibit(
    "attention",
    f"{GITHUB}/paiml/aprender/pull/2085",
    2026,
    "fix(serve): cached decode path skipped Qwen3 QK-norm — silently wrong output (PMAT-799)",
    family="qwen3",
    shows="block.0.attn.q_rotated",
    says=r"attn\.q is read; the model reads .*q_norm|q_norm.* is left out",
)
def norms_of_heads_skipped(port: Replica) -> None:
    """The path that generates with a cache left out the norms of q and k that Qwen 3 has.  The path
    without a cache had them.

    Two paths through one model are two ports.  A prompt of one token cannot tell them apart: the
    softmax of a single key is 1 whatever its score.
    """
    usual = port.placed

    def placed(at: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        usual(at, q, k, v)  # what the norms would have given is filed all the same
        port.at = at
        q = port.keep(f"{at}.q_rotated", port.turned(q))
        return q, port.keep(f"{at}.k_rotated", port.turned(k)), v

    port.instead(placed=placed)


@exhibit(
    "attention",
    f"{GITHUB}/microsoft/onnxruntime/pull/28958",
    2026,
    "Fix Attention is_causal bottom-right alignment for external KV cache (onnx#8068, #28904)",
    family="llama",
    shows=SCORES,
    says="from query 7 on the mask begins anew",
)
def mask_from_the_wrong_corner(port: Replica) -> None:
    """A prompt was worked out in two parts.  For the second part the causal mask began at the
    upper left corner: its first query saw one key, its second two, as if nothing had come before.

    A causal mask is a triangle only while queries and keys are equally many.  Otherwise it has two
    corners to start from, and one of them is wrong.
    """
    usual = port.may_look

    def may_look(length: int) -> Tensor:
        seen = usual(length)
        rest = length - PROMPT
        seen[PROMPT:] = torch.ones(rest, length, dtype=torch.bool).tril()
        return seen

    port.instead(may_look=may_look)


@exhibit(
    "attention",
    f"{GITHUB}/onnxruntime/mobius/pull/548",
    2026,
    "Fix missing YaRN mscale softmax-scale correction in DeepSeek MLA",
    family="deepseek",
    shows=SCORES,
    says="scaled by 1/√16",
)
def yarn_in_one_place_of_two(port: Replica) -> None:
    """DeepSeek applies YaRN's factor in two places: to what RoPE turns, and squared to the scale of
    the scores.  The port had the first, and a comment that it implies the second.

    At position 0 there is one key and the softmax is 1 whatever the scale, so the first position
    agreed to the last digit.
    """
    port.scale = port.d_head**-0.5


@exhibit(
    "attention",
    f"{GITHUB}/vllm-project/vllm-metal/pull/550",
    2026,
    "[GPT-OSS] Wire attention sinks through the paged attention kernel",
    family="gpt_oss",
    shows=WEIGHTS,
    says="sinks are left out",
)
def sinks_never_bound(port: Replica) -> None:
    """gpt-oss has a sink in every head: a learned score that takes a share and gives nothing.  The
    kernel had code for it, behind a flag that was always false.

    Code that never ran is not a feature: two of its three paths were wrong, too.
    """
    usual = port.attention

    def attention(at: str, x: Tensor) -> Tensor:
        port.w.pop(f"{at}.sinks", None)
        return usual(at, x)

    port.instead(attention=attention)


@exhibit(
    "attention",
    f"{GITHUB}/ROCm/rocm-libraries/issues/12227",
    2026,
    "[CK_TILE] Split-KV attention adds the sink logit twice, and the nwarp pipeline seeds it at "
    "the wrong scale",
    family="gpt_oss",
    shows=WEIGHTS,
    says="each sink is counted twice",
)
def sink_in_two_parts(port: Replica) -> None:
    """The keys were split among workers, and the sink must enter the softmax once.  Where the first
    worker had no key to look at, both it and the next added the sink.

    What belongs to a whole has no natural place among its parts.
    """

    def shares(scores: Tensor) -> Tensor:
        assert port.sinks is not None
        sinks = port.sinks[:, None, None].expand(*scores.shape[:2], 2)
        return torch.cat((scores, sinks), -1).softmax(-1)[..., :-2]

    port.instead(shares=shares)
