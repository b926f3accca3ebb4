"""Latent attention in a GGUF file: DeepSeek's, with the widths of its heads."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from byhand.files.gguf import Packed
from byhand.language import _
from byhand.models.gguf.rotation import Turns, turns_of
from byhand.models.gguf.settings import Settings
from byhand.spec import AttentionSpec, LatentSpec, NormSpec, over_root


def latent_attention(
    settings: Settings, tensors: Mapping[str, Packed], layer: int, heads: int, eps: Fraction
) -> tuple[AttentionSpec, Turns | None]:
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
    rotary, turns = turns_of(settings, tensors, turned, "interleaved", windowed=False)
    compressed = f"blk.{layer}.attn_q_a.weight" in tensors
    rank = settings.whole("attention.q_lora_rank", 0, least=0)
    attention = AttentionSpec(
        heads=heads,
        d_head=width,
        kv_heads=heads,
        scale=over_root(width),
        rotary=rotary,
        d_value=values,
        latent=LatentSpec(
            rank=settings.whole("attention.kv_lora_rank"),
            query_rank=rank if compressed else None,
            norm=norm,
            query_norm=norm,
        ),
    )
    return attention, turns
