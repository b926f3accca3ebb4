"""Latent attention in a GGUF file: DeepSeek's, with the widths of its heads."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from byhand.expression import Product
from byhand.files.gguf import Packed
from byhand.language import _
from byhand.models.gguf.rotation import rotation_of, score_factor
from byhand.models.gguf.settings import Settings
from byhand.spec import AttentionSpec, LatentSpec, NormSpec, over_root


def latent_attention(
    settings: Settings, tensors: Mapping[str, Packed], layer: int, heads: int, eps: Fraction
) -> AttentionSpec:
    """The attention of one layer.

    Files that keep keys and values compressed tell the widths of heads under names with _mla.
    """
    norm = NormSpec("rmsnorm", eps, bias=False)
    for key in ("attention.key_length", "attention.value_length"):
        settings.value(key, None)
    width = settings.whole("attention.key_length_mla", settings.table.get("attention.key_length"))
    values = settings.whole(
        "attention.value_length_mla", settings.table.get("attention.value_length")
    )
    turned = settings.whole("rope.dimension_count")
    if turned >= width:
        raise settings.refuse("rope.dimension_count", _("less than {count}").format(count=width))
    rotary = rotation_of(settings, tensors, turned, "interleaved", windowed=False)
    more = score_factor(settings, rotary.magnitude if rotary else None)
    scale = over_root(width) if more is None else Product((more, more, over_root(width)))
    compressed = f"blk.{layer}.attn_q_a.weight" in tensors
    rank = settings.whole("attention.q_lora_rank", 0, least=0)
    return AttentionSpec(
        heads=heads,
        d_head=width,
        kv_heads=heads,
        scale=scale,
        rotary=rotary,
        d_value=values,
        latent=LatentSpec(
            rank=settings.whole("attention.kv_lora_rank"),
            query_rank=rank if compressed else None,
            norm=norm,
            query_norm=norm,
        ),
    )
