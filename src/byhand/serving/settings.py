"""What the architecture of a model is now, key by key, and what each key can be.

The keys are those of `architectures`, which changes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from byhand.files.tables import number_text
from byhand.serving.architectures import CHOICES, norms_of
from byhand.spec import AttentionSpec, BlockSpec, ModelSpec, NormSpec


def settings(spec: ModelSpec) -> list[dict[str, Any]]:
    """What can be changed, with what it is now and what it can be (None: any number)."""
    found = []
    for key, told in _TOLD.items():
        value, choices = told(spec), CHOICES[key]
        if value is not None:
            offered = None if choices is None else list(choices)
            found.append({"key": key, "value": value, "choices": offered})
    return found


def _first_attention(spec: ModelSpec) -> AttentionSpec | None:
    return next((block.attention for block in spec.blocks if block.attention), None)


def _of_norms(say: Callable[[NormSpec], str]) -> Callable[[ModelSpec], str | None]:
    def told(spec: ModelSpec) -> str | None:
        norms = norms_of(spec)
        return say(norms[0]) if norms else None

    return told


def _of_attention(say: Callable[[AttentionSpec], str]) -> Callable[[ModelSpec], str | None]:
    def told(spec: ModelSpec) -> str | None:
        attention = _first_attention(spec)
        return None if attention is None else say(attention)

    return told


def _of_blocks(say: Callable[[BlockSpec], str]) -> Callable[[ModelSpec], str | None]:
    return lambda spec: say(spec.blocks[0]) if spec.blocks else None


def _position_now(spec: ModelSpec) -> str:
    attention = _first_attention(spec)
    if spec.position == "none" and attention is not None:
        if attention.rotary is not None:
            return "rope"
        if attention.alibi:
            return "alibi"
    return spec.position


def _activation_now(spec: ModelSpec) -> str | None:
    return next((block.mlp.activation for block in spec.blocks if block.mlp), None)


def _truth(value: bool) -> str:
    return "true" if value else "false"


_TOLD: dict[str, Callable[[ModelSpec], str | None]] = {
    "norm.kind": _of_blocks(lambda b: b.attn_norm.kind if b.attention else b.mlp_norm.kind),
    "norm.place": _of_blocks(lambda b: b.norm_place),
    "norm.eps": _of_norms(lambda norm: number_text(norm.eps)),
    "norm.gain": _of_norms(lambda norm: _truth(norm.gain)),
    "norm.bias": _of_norms(lambda norm: _truth(norm.bias)),
    "final_norm": lambda spec: spec.final_norm.kind,
    "position": _position_now,
    "context": lambda spec: "none" if spec.context is None else str(spec.context),
    "activation": _activation_now,
    "heads": _of_attention(lambda attention: str(attention.heads)),
    "kv_heads": _of_attention(lambda attention: str(attention.kv_heads)),
    "scale": _of_attention(lambda a: "none" if a.scale is None else number_text(a.scale)),
    "causal": _of_attention(lambda attention: _truth(attention.causal)),
    "window": _of_attention(lambda a: "none" if a.window is None else str(a.window)),
    "residual": _of_blocks(lambda b: "parallel" if b.parallel else "serial"),
    "tied": lambda spec: _truth(spec.tied),
}
