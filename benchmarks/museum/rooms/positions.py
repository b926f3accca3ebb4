"""Bugs about positions: the angles of RoPE, what they turn, and slopes."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.museum.catalogue import exhibit
from benchmarks.museum.replicas import Replica

TURNED = "block.0.attn.q_rotated"
GITHUB = "https://github.com"


@exhibit(
    "positions",
    f"{GITHUB}/huggingface/transformers/pull/32330",
    2024,
    "Llama 3.1: Fix incorrect `inv_freq` assignment",
    family="llama31",
    shows=TURNED,
    says="scaling of the RoPE frequencies is left out",
)
def scaled_frequencies_dropped(port: Replica) -> None:
    """The frequencies of Llama 3.1 were scaled, band by band, into a new variable.  The function
    then returned the old one, so the model turned with unscaled frequencies.

    Short prompts hardly notice: the scaling slows only the longest waves down.  A golden value of
    one rotated query would have.
    """
    port.instead(rates=port.plain_rates)


@exhibit(
    "positions",
    f"{GITHUB}/google-deepmind/penzai/pull/102",
    2024,
    "Fix RoPE theta in config",
    family="llama",
    shows=TURNED,
    says="base of RoPE is 10000",
)
def base_hard_coded(port: Replica) -> None:
    """A converter of Llama models wrote the base 10,000 for every model; Llama 3 has 500,000.

    A default that was right for the first model of a family outlives it.  The config knew better.
    """
    port.base = 10_000.0


@exhibit(
    "positions",
    f"{GITHUB}/huggingface/nanotron/pull/427",
    2026,
    "fix(convert): honor rope_interleaved when converting Llama weights",
    family="interleaved",
    shows=TURNED,
    says="RoPE pairs halves",
)
def pairs_not_converted(port: Replica) -> None:
    """A model was trained with RoPE on neighbouring entries.  The export never passed that setting
    on, left q and k in their order, and the importing library turned halves.

    Both conventions are RoPE, both have the same shapes, and each is right for its own weights.
    """
    port.instead(turned_whole=lambda x: super(Replica, port).turned_whole(x))


@exhibit(
    "positions",
    f"{GITHUB}/ml-explore/mlx-lm/pull/1698",
    2026,
    "Honor partial_rotary_factor in glm",
    family="glm",
    shows=TURNED,
    says="RoPE turns the first 16 entries of a head; the model turns 8",
)
def whole_heads_turned(port: Replica) -> None:
    """GLM turns half of each head.  The port had no field for that share, so the key was dropped
    when the config was read, and whole heads were turned.

    A config reader that ignores unknown keys is a machine for silent bugs.
    """
    port.instead(turned=port.turned_whole)


@exhibit(
    "positions",
    f"{GITHUB}/labscommunity/cascadia/pull/69",
    2026,
    "feat(shard): partial rotary support + config-first arch rejection (reconcile #47)",
    family="glm",
    shows=TURNED,
    says="RoPE turns the first 16 entries of a head; .*8 of 16",
)
def partners_from_the_wrong_half(port: Replica) -> None:
    """For models that turn half a head, the angles were filled up with zeros and the whole head
    was turned at once.  So entry i met entry i + 8 of a head of 16; its partner is i + 4.

    The tables of cos and sin agreed with the reference to the bit, and the first test compared
    only those.  Compare what is turned, not what turns it.
    """

    def turned(x: Tensor) -> Tensor:
        cos, sin = port.cos_and_sin(port.turning)
        still = torch.zeros(x.shape[-2], (x.shape[-1] - port.turning) // 2)
        cos, sin = torch.cat((cos, still + 1), -1), torch.cat((sin, still), -1)
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    port.instead(turned=turned)


@exhibit(
    "positions",
    f"{GITHUB}/NVIDIA/TensorRT-LLM/pull/4040",
    2025,
    "fix: apply rope twice in Qwen3.",
    family="qwen3",
    shows=TURNED,
    says="RoPE is applied twice",
)
def turned_twice(port: Replica) -> None:
    """Qwen 3 normalises q and k between their matrices and RoPE.  So RoPE moved out of the fused
    attention into the model, and was then applied in both.

    Distances between positions come out doubled: fluent nearby, lost further away.
    """
    usual = port.turned
    port.instead(turned=lambda x: usual(usual(x)))


@exhibit(
    "positions",
    f"{GITHUB}/kvcache-ai/sglang/pull/31",
    2026,
    "[fix](Qwen3-30b-A3B): fix nonsense output by correcting RoPE write-back",
    family="qwen3",
    shows="block.0.attn.scores",
    says=r"RoPE is not applied to k|k_norm\.out is read; the model reads .*k_rotated",
)
def keys_not_written_back(port: Replica) -> None:
    """A fused kernel turned the keys on their way into the cache and left the caller's own tensor
    as it was.  The first pass over a prompt used turned queries and unturned keys.

    The cache was right, so every later token was right: a bug of the first pass alone.
    """
    usual = port.placed

    def placed(at: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        before = port.normed(f"{at}.k_norm", k)
        q, _cached, v = usual(at, q, k, v)
        return q, before, v

    port.instead(placed=placed)


@exhibit(
    "positions",
    f"{GITHUB}/sgl-project/sglang/pull/33558",
    2026,
    "[Laguna] fix YaRN mscale double-application in rope config",
    family="yarn",
    shows=TURNED,
    says=r"multiplied by 1\.8133\d?; the model multiplies it by 1\.3466",
)
def magnitude_squared(port: Replica) -> None:
    """YaRN scales what RoPE turns.  One config means the final factor by `attention_factor`; the
    engine meant a multiplier of its own factor.  The factor was applied to itself.

    Two projects, one key, two meanings.  The repair was worth 20 points on a benchmark.
    """
    port.magnitude **= 2


@exhibit(
    "positions",
    f"{GITHUB}/turboderp-org/exllamav3/issues/259",
    2026,
    "YaRN attn_factor collapses to 1.0 for models with mscale == mscale_all_dim == 1.0 (regression "
    "in 78b319e, v1.0.0+)",
    family="yarn",
    shows=TURNED,
    says=r"multiplied by 1; the model multiplies it by 1\.3466",
)
def magnitude_divided_out(port: Replica) -> None:
    """A fix for models with two settings divided one of YaRN's factors by the other.  For models in
    which both settings are 1 the quotient is 1, and the scaling was gone.

    The text was fluent and did not follow the prompt.
    """
    port.magnitude = 1.0


@exhibit(
    "positions",
    f"{GITHUB}/ml-explore/mlx/pull/3071",
    2026,
    "Fix ALiBi slopes for non-power-of-2 num_heads",
    family="mpt",
    shows="block.0.attn.scores",
    says="one geometric sequence",
)
def slopes_of_any_number(port: Replica) -> None:
    """The slopes of ALiBi were one geometric sequence for any number of heads.  For six heads the
    models were trained with another rule: four slopes, and two from the sequence for eight.

    What every model with a power of two agrees on says nothing about the others.
    """
    ratio = 2.0 ** (-8.0 / port.heads)
    port.instead(slopes=lambda: ratio ** torch.arange(1, port.heads + 1))


@exhibit(
    "positions",
    f"{GITHUB}/paiml/aprender/pull/2143",
    2026,
    "fix(serve): ALiBi head slopes off-by-one in exponent — 2^(-8h/n) not 2^(-8(h+1)/n) (PMAT-858)",
    family="mpt",
    shows="block.0.attn.scores",
    says="every slope is 4 times as large",
)
def slopes_from_zero(port: Replica) -> None:
    """The exponents of the slopes counted heads from 0 instead of 1, so every head looked less far
    back than it was trained to.

    Six tests of the project had the wrong numbers as their expectation.  A test written from the
    code that it tests agrees with it.
    """
    usual = port.slopes
    port.instead(slopes=lambda: usual() * 2.0 ** (8.0 / 4))


@exhibit(
    "positions",
    f"{GITHUB}/ndif-team/nnsight/issues/672",
    2026,
    "Bug: LanguageModel batched trace silently mispredicts padded prompts on absolute-position "
    "models (GPT-2)",
    family="gpt2",
    shows="embed.position",
    says="5 positions",
    batch=True,
)
def padding_takes_positions(port: Replica, padding: int) -> None:
    """Prompts of a batch were padded on the left, and no positions were passed along.  GPT-2 then
    counts from the padding: every prompt but the longest read the wrong position embeddings.

    The longest prompt of a batch is always right.  Test the shortest.
    """
    port.places = port.places + padding
