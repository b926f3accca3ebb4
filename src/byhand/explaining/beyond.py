"""What explanations do not know: parts of a model that their sums and circuits leave out."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.errors import InputError
from byhand.language import _
from byhand.spec import ModelSpec


def unexplained(spec: ModelSpec) -> Iterator[tuple[str, str]]:
    """The block, and the key in a model file, of each such part."""
    for key, there in (
        ("embed_norm", spec.embed_norm.kind != "none"),
        ("embed_width", spec.embed_width is not None),
        ("segments", spec.segments is not None),
        ("head.hidden", spec.head is not None),
        ("head.cap", spec.logit_cap is not None),
        ("encoder", spec.encoder is not None),
    ):
        if there:
            yield "model", key
    for layer, block in enumerate(spec.blocks):
        for key, there in (
            (
                "attention.latent",
                block.attention is not None and block.attention.latent is not None,
            ),
            ("attention.after", block.attn_after.kind != "none"),
            ("mlp.after", block.mlp_after.kind != "none"),
            ("norm.from", block.from_norm),
            ("add_scale", block.add_scale is not None),
        ):
            if there:
                yield f"block.{layer}", key


def refuse_unexplained(spec: ModelSpec) -> None:
    """Refuses a model of which an explanation would not tell everything."""
    for where, key in unexplained(spec):
        raise InputError(
            _("an explanation does not know {key} yet").format(key=key),
            where=where,
            hint=_("trace, generate, check and book do"),
        )
