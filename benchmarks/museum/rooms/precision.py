"""Bugs of precision: one coarse number in an otherwise fine pass."""

from __future__ import annotations

from torch import Tensor

from benchmarks.museum.catalogue import exhibit
from benchmarks.museum.replicas import Replica

GITHUB = "https://github.com"
LONG = 300  # tokens: from 256 on, bfloat16 has not every whole number


@exhibit(
    "precision",
    f"{GITHUB}/huggingface/transformers/pull/29285",
    2024,
    "RoPE loses precision for Llama / Gemma + Gemma logits.float()",
    family="llama_long",
    precision="bfloat16",
    length=LONG,
    shows="block.0.attn.q_rotated",
    says="angles are rounded to bfloat16",
)
def angles_in_bfloat16(port: Replica) -> None:
    """Under mixed precision the positions and frequencies of RoPE became bfloat16, which has no
    257.  Neighbouring positions far into a text got one and the same angle.

    Some numbers of a bfloat16 model are not meant to be bfloat16.
    """

    def cos_and_sin(width: int) -> tuple[Tensor, Tensor]:
        angles = port.places.bfloat16()[:, None] * port.rates(width).bfloat16()
        return angles.cos(), angles.sin()

    port.instead(cos_and_sin=cos_and_sin)


@exhibit(
    "precision",
    f"{GITHUB}/amd/IRON/pull/139",
    2026,
    "rms_norm: fix bf16 accuracy (f32 normalize + conv_even) and parameterize epsilon",
    family="llama",
    shows="block.0.attn.norm.normalized",
    says="1/rms is rounded to bfloat16",
)
def one_coarse_factor(port: Replica) -> None:
    """A norm rounded 1/rms to bfloat16 before it multiplied.  A whole row is then off by one and
    the same factor, and such errors add up over layers instead of averaging out.

    The graph was right.  Tokens flipped all the same, wherever two of them were close.
    """

    def norm(at: str, x: Tensor) -> Tensor:
        square = port.keep(f"{at}.mean_square", port.squares(x))
        rms = port.keep(f"{at}.rms", port.root(square))
        factor = rms.reciprocal().bfloat16().to(x.dtype)
        normalized = port.keep(f"{at}.normalized", x * factor[:, None])
        return port.keep(f"{at}.out", port.affine(at, normalized))

    port.instead(norm=norm)


@exhibit(
    "precision",
    f"{GITHUB}/pytorch/pytorch/pull/134106",
    2024,
    "fix for fp16",
    family="outliers",
    precision="float16",
    shows="block.0.attn.norm.mean_square",
    says="float16|overflow",
)
def squares_overflow(port: Replica) -> None:
    """RMSNorm squared its float16 input in float16.  Its largest number is 65,504: an entry of 300
    has an infinite square, and the whole row became 0.

    Outliers of that size are usual in the residual stream of large models.
    """
    port.instead(squares=lambda x: x.square().mean(-1))
