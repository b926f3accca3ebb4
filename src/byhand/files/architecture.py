"""The `model:` table of a model file → ModelSpec.

docs/model-files.md explains every key and its default.  The specs check whether the parts fit
together; here their errors get file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

from byhand.errors import SpecError
from byhand.expression import Expression
from byhand.files import scalars
from byhand.files.naming import names_at
from byhand.files.tree import List, Node, Scalar, Table
from byhand.language import _
from byhand.spec import (
    ACTIVATIONS,
    LAYOUTS,
    NO_NORM,
    NORMS,
    PACKINGS,
    PAIRINGS,
    PLACES,
    POSITIONS,
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)

MOST_LAYERS = 1_000
WIDEST = 1_000_000
RELATIVE = ("rope", "alibi")
_BLOCK_KEYS = ("norm", "attention", "mlp", "residual", "position")
_NORM_KEYS = ("kind", "eps", "gain", "bias")


def read_architecture(node: Table, name: str, vocab: int, outputs: int | None = None) -> ModelSpec:
    """The spec of the `model:` table; `outputs` counts the head's words, where they are its own."""
    return _Reader(node, name, vocab, outputs).model()


@contextmanager
def _located(*tables: Table, **sections: Table | None) -> Iterator[None]:
    """Adds the place of its key to a SpecError raised inside.

    attention.out is looked up as `out` in the attention section, if that is given.  Any other key
    is looked up in the tables; the first with it counts.
    """
    try:
        yield
    except SpecError as error:
        first, _dot, rest = error.key.partition(".")
        if section := sections.get(first):
            places = [(section, rest)]
        elif layer := re.fullmatch(r"block\.(\d+)\.(.*)", error.key):
            places = [(tables[0], f"blocks.{layer[1]}.{layer[2]}"), (tables[0], layer[2])]
        else:
            places = [(table, error.key) for table in tables]
        node = next((t.at(key) for t, key in places if t.has(key)), places[-1][0].at(places[-1][1]))
        raise node.refused(error) from None


@dataclass
class _Positions:
    """What `position:` says: at most one added table, rotation, ALiBi."""

    stream: str = "none"
    base: Fraction = Fraction(10_000)
    rope: Table | None = None
    alibi: bool = False


class _Reader:
    def __init__(self, node: Table, name: str, vocab: int, outputs: int | None) -> None:
        self.node = node
        self.name = name
        self.vocab = vocab
        self.outputs = outputs

    def model(self) -> ModelSpec:
        node = self.node
        node.only(
            "d_model", "stream", "context", "layers", "layout", "embed_scale", "final_norm", "head",
            "blocks", *_BLOCK_KEYS,
        )  # fmt: skip
        self.d_model = self.width(node, "d_model", "stream")
        layers = scalars.whole(self.needed("layers"), 0, MOST_LAYERS)
        if layers:
            self.needed("attention")
            self.needed("mlp")
        context = node.get("context")
        positions = self.positions(node.get("position"), POSITIONS + RELATIVE)
        changes = self.changes(layers)
        blocks = tuple(self.block(changes.get(layer), positions) for layer in range(layers))
        head = self.table(node.get("head"), "tied", "bias")
        scale = node.get("embed_scale")
        layout = node.get("layout")
        with _located(node):
            return ModelSpec(
                name=self.name,
                vocab=self.vocab,
                d_model=self.d_model,
                context=None if context is None else scalars.whole(context, 1, WIDEST),
                blocks=blocks,
                position=positions.stream,
                position_base=positions.base,
                embed_scale=None if scale is None else self.scale(scale),
                final_norm=self.final_norm(),
                tied=self.flag(head, "tied", self.outputs is None),
                head_bias=self.flag(head, "bias", False),
                layout="in_out" if layout is None else scalars.word(layout, *LAYOUTS),
                outputs=self.outputs,
            )

    # ------------------------------------------------------------------------ tables and keys

    def needed(self, key: str) -> Node:
        return self.node.needed(key, found=self.node.keys())

    def width(self, table: Table, key: str, named: str) -> int:
        """A width; where its dimensions have names, it may be left out."""
        names = table.get(named)
        if names is None or table.get(key) is not None:
            return scalars.whole(table.needed(key, found=table.keys()), 1, WIDEST)
        return len(names_at(names))

    def table(self, node: Node | None, *known: str) -> Table:
        """The table, which may only have these keys; empty if it is not given."""
        if node is None:
            return Table(self.node.file, self.node.line, self.node.key, {})
        if not isinstance(node, Table):
            raise node.impossible(_("a table with keys of {keys}").format(keys=", ".join(known)))
        node.only(*known)
        return node

    def flag(self, table: Table, key: str, default: bool) -> bool:
        node = table.get(key)
        return default if node is None else scalars.truth(node)

    def flags(self, node: Node | None, default: tuple[str, ...], *known: str) -> dict[str, bool]:
        """The flags: `bias: true` sets the default ones; a table sets each one."""
        if isinstance(node, Table):
            table = self.table(node, *known)
            return {key: self.flag(table, key, False) for key in known}
        said = node is not None and scalars.truth(node)
        return {key: said and key in default for key in known}

    def scale(self, node: Node) -> Expression | None:
        """The scale of the scores; None for no scaling, written as 1 or none."""
        if isinstance(node, Scalar) and node.text == "none":
            return None
        value = scalars.value_of(node)
        return None if value == 1 else scalars.constant(value)

    def merged(self, key: str, change: Table | None) -> Node | None:
        """A layer's node under this key, merged over the model's."""
        base = self.node.get(key)
        own = change.get(key) if change else None
        if own is None:
            return base
        if isinstance(own, Table) and isinstance(base, Table):
            return own.over(base)
        return own

    def changes(self, layers: int) -> dict[int, Table]:
        """The tables of `blocks:` by layer."""
        node = self.node.get("blocks")
        if node is None:
            return {}
        if not isinstance(node, Table):
            raise node.wrong(_("blocks is a table by layer"), expected="0: {…}")
        changes = {}
        for key, inner in node.entries.items():
            layer = scalars.whole(Scalar(inner.file, inner.line, inner.key, key), 0, MOST_LAYERS)
            if str(layer) != key or layer >= layers:
                raise inner.wrong(
                    _("there is no layer {layer}").format(layer=key),
                    expected=_("a layer from 0 to {last}").format(last=layers - 1)
                    if layers
                    else _("no blocks, since there are no layers"),
                    found=key,
                )
            changes[layer] = self.table(inner, *_BLOCK_KEYS)
        return changes

    # ------------------------------------------------------------------------ positions

    def positions(self, node: Node | None, known: tuple[str, ...]) -> _Positions:
        found = _Positions()
        if node is None:
            return found
        seen: list[str] = []
        for each in node.items if isinstance(node, List) else (node,):
            kind = self.position(each, known, found)
            family = kind if kind in RELATIVE else "stream"
            if family in seen:
                raise each.wrong(
                    _("two kinds of positions that exclude each other"),
                    expected=_("one of {kinds}, and rope or alibi beside it").format(
                        kinds=", ".join(POSITIONS)
                    ),
                    found=kind,
                )
            seen.append(family)
        return found

    def position(self, node: Node, known: tuple[str, ...], found: _Positions) -> str:
        if isinstance(node, Scalar):
            kind, table = scalars.word(node, *known), Table(node.file, node.line, node.key, {})
        else:
            rope = ("base", "width", "pairing", "angles", "magnitude")
            table = self.table(node, "kind", *rope)
            kind = scalars.word(table.needed("kind", ", ".join(known)), *known)
            keys = {"rope": rope, "sinusoidal": ("base",)}
            table.only("kind", *keys.get(kind, ()))
        if kind == "rope":
            found.rope = table
        elif kind == "alibi":
            found.alibi = True
        else:
            found.stream = kind
            if base := table.get("base"):
                found.base = scalars.number(base)
        return kind

    def rotary(self, table: Table, d_head: int) -> RotarySpec:
        width, base, pairing, angles = map(table.get, ("width", "base", "pairing", "angles"))
        magnitude = table.get("magnitude")
        if base is not None and angles is not None:
            raise angles.wrong(
                _("given angles leave nothing for a base to do"),
                expected=_("base or angles, not both"),
                found="base, angles",
            )
        with _located(rope=table):
            return RotarySpec(
                width=d_head if width is None else scalars.whole(width, 1, WIDEST),
                base=Fraction(10_000) if base is None else scalars.number(base),
                pairing="half" if pairing is None else scalars.word(pairing, *PAIRINGS),
                given=angles is not None and scalars.word(angles, "given") == "given",
                magnitude=None if magnitude is None else self.scale(magnitude),
            )

    # ------------------------------------------------------------------------ norms

    def norm(self, node: Node | None, *more: str, key: str = "norm") -> NormSpec:
        if node is None:
            return NO_NORM
        if isinstance(node, Scalar):
            kind, table = scalars.word(node, *NORMS), Table(node.file, node.line, node.key, {})
        else:
            table = self.table(node, *_NORM_KEYS, *more)
            named = table.get("kind")
            kind = "layernorm" if named is None else scalars.word(named, *NORMS)
        if kind == "none":
            return NO_NORM
        eps = table.get("eps")
        with _located(norm=table):
            return NormSpec(
                kind=kind,
                eps=Fraction(0) if eps is None else scalars.number(eps),
                gain=self.flag(table, "gain", True),
                bias=self.flag(table, "bias", kind == "layernorm"),
            )

    def place(self, node: Node | None) -> str:
        place = node.get("place") if isinstance(node, Table) else None
        return "pre" if place is None else scalars.word(place, *PLACES)

    def final_norm(self) -> NormSpec:
        """The final norm; by default the model's norm if that is a pre-norm, else none."""
        node = self.node.get("final_norm")
        if node is not None:
            return self.norm(node)
        norm = self.node.get("norm")
        return self.norm(norm, "place") if self.place(norm) == "pre" else NO_NORM

    def sublayer_norm(self, sublayer: Node | None, norm: Node | None) -> NormSpec:
        """A sublayer's own norm, merged over the block's."""
        own = sublayer.get("norm") if isinstance(sublayer, Table) else None
        if own is None:
            return self.norm(norm, "place")
        if not isinstance(own, Table) or not isinstance(norm, Table):
            return self.norm(own)
        self.table(own, *_NORM_KEYS)
        return self.norm(own.over(norm), "place")

    # ------------------------------------------------------------------------ blocks

    def block(self, change: Table | None, positions: _Positions) -> BlockSpec:
        attention, mlp, norm, residual = (
            self.merged(key, change) for key in ("attention", "mlp", "norm", "residual")
        )
        own = change.get("position") if change else None
        if own is not None:
            positions = self.positions(own, ("none", *RELATIVE))
        with _located(*([change] if change else []), self.node):
            return BlockSpec(
                attention=self.attention(attention, positions),
                mlp=self.mlp(mlp),
                attn_norm=self.sublayer_norm(attention, norm),
                mlp_norm=self.sublayer_norm(mlp, norm),
                norm_place=self.place(norm),
                parallel=residual is not None
                and scalars.word(residual, "serial", "parallel") == "parallel",
            )

    def attention(self, node: Node | None, positions: _Positions) -> AttentionSpec | None:
        if isinstance(node, Scalar):
            scalars.word(node, "none")
            return None
        table = self.table(
            node, "heads", "kv_heads", "d_head", "scale", "causal", "window", "bias", "packed",
            "out", "q_norm", "k_norm", "score_table", "queries", "nothing", "sinks", "cap", "norm",
        )  # fmt: skip
        heads, kv_heads, scale, packed = map(table.get, ("heads", "kv_heads", "scale", "packed"))
        window, cap = table.get("window"), table.get("cap")
        count = 1 if heads is None else scalars.whole(heads, 1, WIDEST)
        width = self.head_width(table, count)
        out = self.flag(table, "out", True)
        queries = self.flag(table, "queries", True)
        biased = [*("qk" if queries else ""), "v", *(["out"] if out else [])]
        bias = self.flags(table.get("bias"), tuple(biased), "q", "k", "v", "out")
        nothing = table.get("nothing")
        usual = over_root(width) if queries else None
        packing = "none" if packed is None else scalars.word(packed, "none", *PACKINGS)
        with _located(attention=table, rope=positions.rope):
            return AttentionSpec(
                heads=count,
                d_head=width,
                kv_heads=count if kv_heads is None else scalars.whole(kv_heads, 1, WIDEST),
                scale=usual if scale is None else self.scale(scale),
                causal=self.flag(table, "causal", True),
                window=None if window is None else scalars.whole(window, 1, WIDEST),
                rotary=self.rotary(positions.rope, width) if positions.rope else None,
                alibi=positions.alibi,
                score_table=self.flag(table, "score_table", False),
                q_norm=self.norm(table.get("q_norm")),
                k_norm=self.norm(table.get("k_norm")),
                q_bias=bias["q"],
                k_bias=bias["k"],
                v_bias=bias["v"],
                packed=None if packing == "none" else packing,
                out=out,
                out_bias=bias["out"],
                queries=queries,
                nothing=nothing is not None and scalars.word(nothing, "refused", "zero") == "zero",
                sinks=self.flag(table, "sinks", False),
                cap=None if cap is None else scalars.number(cap),
            )

    def head_width(self, table: Table, heads: int) -> int:
        node = table.get("d_head")
        if node is not None:
            return scalars.whole(node, 1, WIDEST)
        if self.d_model % heads:
            raise table.at("heads").wrong(
                _("d_model = {d} cannot be shared out among {count} heads").format(
                    d=self.d_model, count=heads
                ),
                expected=_("a divisor of {d}, or d_head").format(d=self.d_model),
                found=str(heads),
            )
        return self.d_model // heads

    def mlp(self, node: Node | None) -> MlpSpec | None:
        if isinstance(node, Scalar):
            scalars.word(node, "none")
            return None
        table = self.table(
            node, "d_ff", "units", "activation", "gated", "bias", "norm", "experts", "chosen",
            "normalised",
        )  # fmt: skip
        activation, experts, chosen = map(table.get, ("activation", "experts", "chosen"))
        gated = self.flag(table, "gated", False)
        biased = ["hidden", "out", *["gate"] * gated, *["router"] * (experts is not None)]
        bias = self.flags(table.get("bias"), tuple(biased), "hidden", "gate", "out", "router")
        with _located(mlp=table):
            return MlpSpec(
                d_ff=self.width(table, "d_ff", "units"),
                activation="relu" if activation is None else scalars.word(activation, *ACTIVATIONS),
                gated=gated,
                hidden_bias=bias["hidden"],
                gate_bias=bias["gate"],
                out_bias=bias["out"],
                experts=None if experts is None else scalars.whole(experts, 1, WIDEST),
                chosen=None if chosen is None else scalars.whole(chosen, 1, WIDEST),
                normalised=self.flag(table, "normalised", True),
                router_bias=bias["router"],
            )
