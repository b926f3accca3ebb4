"""The `model:` table of a model file → ModelSpec.

docs/model-files.md explains every key and its default.  The specs check whether the parts fit
together; here their errors get file and line.
"""

from __future__ import annotations

from byhand.files import scalars
from byhand.files.architecture.positions import RELATIVE, Places
from byhand.files.architecture.settings import located
from byhand.files.architecture.sublayers import Sublayers
from byhand.files.tree import Node, Scalar, Table
from byhand.language import _
from byhand.spec import (
    ACTIVATIONS,
    LAYOUTS,
    NO_NORM,
    PLACES,
    POSITIONS,
    BlockSpec,
    EncoderSpec,
    HeadSpec,
    ModelSpec,
    NormSpec,
)

MOST_LAYERS = 1_000
_BLOCK_KEYS = ("norm", "attention", "mlp", "residual", "position", "cross", "add_scale")
_HEAD_KEYS = (
    "tied", "bias", "hidden", "scale", "logit_scale", "cap", "in_place", "fixed_bias",
)  # fmt: skip
_STACK_KEYS = ("context", "layers", "embed_scale", "final_norm", "blocks", *_BLOCK_KEYS,
               "embed_norm", "relative")  # fmt: skip


def read_architecture(
    node: Table, name: str, vocab: int, outputs: int | None = None, source: int | None = None
) -> ModelSpec:
    """The spec of the `model:` table.

    `outputs` counts the head's words and `source` those that the encoder reads, where they are not
    those of the vocabulary.
    """
    return _Reader(node, name, (vocab, outputs, source)).model()


class _Reader(Sublayers):
    """The reader of one stream: of the model, or of its encoder."""

    def __init__(self, node: Table, name: str, words: tuple[int, int | None, int | None]) -> None:
        super().__init__(node)
        self.name = name
        self.words = words
        self.vocab, self.outputs, self.source = words

    def model(self) -> ModelSpec:
        node = self.node
        node.only(
            "d_model", "stream", "context", "layers", "layout", "embed_scale", "final_norm", "head",
            "blocks", *_BLOCK_KEYS, "embed_norm", "embed_width", "segments", "relative", "encoder",
        )  # fmt: skip
        self.d_model = self.width(node, "d_model", "stream")
        positions, blocks = self.blocks()
        head = self.table(node.get("head"), *_HEAD_KEYS)
        with located(node, head=head):
            return ModelSpec(
                name=self.name,
                vocab=self.vocab,
                d_model=self.d_model,
                context=self.count(node, "context"),
                blocks=blocks,
                position=positions.stream,
                position_base=positions.base,
                embed_scale=self.maybe(node, "embed_scale", self.scale),
                final_norm=self.final_norm(),
                tied=self.flag(head, "tied", self.outputs is None),
                head_bias=self.flag(head, "bias", False),
                layout=self.word(node, "layout", "in_out", *LAYOUTS),
                outputs=self.outputs,
                position_pairing=positions.pairing,
                first_row=positions.first_row,
                embed_norm=self.norm(node.get("embed_norm")),
                embed_width=self.count(node, "embed_width"),
                segments=self.count(node, "segments"),
                relative=self.relative(node.get("relative")),
                head=self.head(head.get("hidden")),
                head_scale=self.maybe(head, "scale", self.scale),
                logit_scale=self.maybe(head, "logit_scale", self.scale),
                logit_cap=self.number(head, "cap"),
                encoder=self.maybe(node, "encoder", self.encoder),
                in_place=self.flag(head, "in_place", False),
                fixed_bias=self.flag(head, "fixed_bias", False),
            )

    def encoder(self, node: Node) -> EncoderSpec:
        """The encoder's own stream, as wide as the model's."""
        table = self.table(node, *_STACK_KEYS)
        reader = _Reader(table, self.name, self.words)
        reader.d_model = self.d_model
        positions, blocks = reader.blocks()
        with located(encoder=table):
            return EncoderSpec(
                blocks=blocks,
                vocab=self.source,
                context=self.count(table, "context"),
                position=positions.stream,
                position_base=positions.base,
                position_pairing=positions.pairing,
                first_row=positions.first_row,
                embed_scale=self.maybe(table, "embed_scale", self.scale),
                embed_norm=self.norm(table.get("embed_norm")),
                final_norm=reader.final_norm(),
                relative=self.relative(table.get("relative")),
            )

    def head(self, node: Node | None) -> HeadSpec | None:
        """The matrix, activation and norm before the unembedding."""
        if node is None:
            return None
        table = self.table(node, "activation", "norm", "bias")
        return HeadSpec(
            activation=self.word(table, "activation", "gelu", *ACTIVATIONS),
            norm=self.norm(table.get("norm")),
            bias=self.flag(table, "bias", True),
        )

    # ------------------------------------------------------------------------ blocks

    def blocks(self) -> tuple[Places, tuple[BlockSpec, ...]]:
        """What is said of positions, and every block."""
        layers = scalars.whole(self.needed("layers"), 0, MOST_LAYERS)
        if layers:
            self.needed("attention")
            self.needed("mlp")
        positions = self.positions(self.node.get("position"), POSITIONS + RELATIVE)
        changes = self.changes(layers)
        blocks = (self.block(changes.get(layer), positions) for layer in range(layers))
        return positions, tuple(blocks)

    def needed(self, key: str) -> Node:
        return self.node.needed(key, found=self.node.keys())

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

    def block(self, change: Table | None, positions: Places) -> BlockSpec:
        attention, cross, mlp, norm, residual, scale = (
            self.merged(key, change)
            for key in ("attention", "cross", "mlp", "norm", "residual", "add_scale")
        )
        own = change.get("position") if change else None
        if own is not None:
            positions = self.positions(own, ("none", *RELATIVE))
        across = cross is not None and not (isinstance(cross, Scalar) and cross.text == "none")
        one = isinstance(norm, Table) and self.flag(norm, "one", False)
        with located(*([change] if change else []), self.node):
            return BlockSpec(
                attention=self.attention(attention, positions),
                mlp=self.mlp(mlp),
                attn_norm=self.sublayer_norm(attention, norm),
                mlp_norm=NO_NORM if one else self.sublayer_norm(mlp, norm),
                norm_place=self.place(norm),
                parallel=residual is not None
                and scalars.word(residual, "serial", "parallel") == "parallel",
                attn_after=self.after(attention),
                mlp_after=self.after(mlp),
                cross=self.attention(cross, Places(), across=True) if across else None,
                cross_norm=self.sublayer_norm(cross, norm) if across else NO_NORM,
                one_norm=one,
                from_norm=isinstance(norm, Table)
                and self.word(norm, "from", "stream", "stream", "norm") == "norm",
                add_scale=None if scale is None else self.scale(scale),
            )

    # ------------------------------------------------------------------------ norms

    def place(self, node: Node | None) -> str:
        """Before a sublayer, or behind the sum."""
        return self.word(node, "place", "pre", *PLACES) if isinstance(node, Table) else "pre"

    def final_norm(self) -> NormSpec:
        """The final norm; by default the model's norm if that is a pre-norm, else none."""
        node = self.node.get("final_norm")
        if node is not None:
            return self.norm(node)
        norm = self.node.get("norm")
        return self.norm(norm, "place", "one", "from") if self.place(norm) == "pre" else NO_NORM
