"""The steps that a family's torch modules give, derived from its table of names.

A module with a weight gives the step of that weight: `self_attn.q_proj` is `attn.q`, a norm its
`.out`.  The module around `attn.out` gives what attention adds, the one around `mlp.out` what the
MLP adds, and the layer itself the stream behind it.  Where a family is otherwise, its table says so
(`Names.outputs`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from byhand.names.families import MODULES
from byhand.names.modules import Names, Place, pieces
from byhand.names.pieces import Columns, Flat, Grouped, Part, Piece, Sharded, Source

ACTIVATIONS = ("act_fn", "act", "activation_fn", "gelu_impl", "activation")  # beside mlp.hidden
HUGGING_FACE = "huggingface"


@dataclass(frozen=True, slots=True)
class Derived:
    """A module, and the step it gives: of several addresses the first that the plan has.

    L is the number of a layer.  Without an address, what the module gives is no step.
    """

    module: str  # without the family's prefix
    address: str
    beside: bool = False  # whether the module stands outside the prefix


@cache
def derived(family: str) -> tuple[Derived, ...]:
    """Every module of a family's table, in spine order; modules within layers have an L."""
    names = MODULES.get(family)
    return () if names is None else tuple(_once(names))


def _once(names: Names) -> Iterator[Derived]:
    """Each module once: what the table says of outputs counts before what is derived."""
    seen: set[str] = set()
    for each in (*(Derived(*pair) for pair in names.outputs.items()), *_every(names)):
        if each.module not in seen:
            seen.add(each.module)
            yield each


def _every(names: Names) -> Iterator[Derived]:
    yield Derived(names.embedding.removesuffix(".weight"), "embed.token")
    if names.encoder_layer:
        yield from _stack(names.encoder_layer, names.encoder_inside, "encoder.")
    yield from _stack(names.layer, names.inside, "")
    for beside, table in ((False, names.outside), (True, names.beside)):
        for ours, place in table.items():
            for piece in pieces(place) if ours != "head_bias" else ():  # a module's own, or none
                yield Derived(piece.module, _given(ours), beside)
    for head in names.heads:
        yield Derived(head.removesuffix(".weight"), "head.out logits", beside=True)


def _stack(layer: str, inside: Mapping[str, Place], stack: str) -> Iterator[Derived]:
    """The modules of one stack of layers."""
    at = f"{layer}L"
    for ours, place in inside.items():
        for piece in filter(_whole, pieces(place)):
            yield Derived(f"{at}.{piece.module}", f"{stack}block.L.{_given(ours)}")
        for piece in filter(_fused, pieces(place)):
            yield Derived(f"{at}.{piece.module}", f"{stack}block.L.{piece.module}")  # no one step
        for piece in pieces(place):
            around = piece.module.rpartition(".")[0]
            inner = f"{at}.{around}" if around else at
            if ours.endswith(".out") and around:
                yield Derived(inner, f"{stack}block.L.{ours}")
            if ours == "mlp.hidden":
                for name in ACTIVATIONS:
                    yield Derived(f"{inner}.{name}", f"{stack}block.L.mlp.act")
    yield Derived(at, f"{stack}stream.L+1")


def _whole(piece: Piece) -> bool:
    """Whether the module gives the step as a whole, not one of several side by side."""
    return "{" not in piece.module and all(isinstance(rule, Flat) for rule in piece.rules)


def _fused(piece: Piece) -> bool:
    """Whether the module gives several steps side by side."""
    sharing = any(isinstance(rule, Part | Columns | Grouped | Sharded) for rule in piece.rules)
    return sharing and "{" not in piece.module and piece.weight == ".weight"


@cache
def _fused_modules(family: str) -> dict[str, list[tuple[str, Source]]]:
    """The modules of a layer that give several steps: each step, and how it is found there."""
    names = MODULES.get(family)
    found: dict[str, list[tuple[str, Source]]] = {}
    for ours, place in names.inside.items() if names else ():
        for piece in filter(_fused, pieces(place)):
            found.setdefault(piece.module, []).append((ours, Source(piece.module, piece.rules)))
    return found


def fused_in(family: str, module: str) -> list[tuple[str, Source]]:
    """The steps that a module gives together: their addresses, and how each is found there."""
    names = MODULES.get(family)
    if names is None:
        return []
    for prefix in (names.prefix, *names.prefixes, ""):
        match = re.fullmatch(re.escape(prefix + names.layer) + r"(\d+)\.(.+)", module)
        if match is not None:
            inside = _fused_modules(family).get(match[2], ())
            return [(f"block.{match[1]}.{ours}", source) for ours, source in inside]
    return []


def _given(ours: str) -> str:
    """The step that the module of this name gives."""
    if ours.endswith((".q_norm", ".k_norm")):
        return ours
    return f"{ours}.out" if ours.endswith(("norm", ".after")) else ours


def derived_pairs(
    family: str, layers: int, known: Mapping[str, str]
) -> Iterator[tuple[str | None, str]]:
    """(address of a step, name of its module), the name with the family's prefix and without it.

    The address is None where the module gives no step.
    """
    names = MODULES.get(family)
    prefixes = ("",) if names is None else (names.prefix, *names.prefixes, "")
    for each in derived(family):
        inner = "L" in each.module.split(".")
        for layer in range(layers) if inner else (0,):
            steps = [_at(address, layer) for address in each.address.split()]
            step = next((known[step] for step in steps if step in known), None)
            if step is None and steps:
                continue
            for prefix in ("",) if each.beside else prefixes:
                yield step, prefix + _at(each.module, layer)


def _at(template: str, layer: int) -> str:
    """The template with the layer's number for L, and the next one's for L+1."""
    parts = (
        str(layer) if part == "L" else str(layer + 1) if part == "L+1" else part
        for part in template.split(".")
    )
    return ".".join(parts)
