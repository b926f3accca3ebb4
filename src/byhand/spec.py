"""The architecture of a model, without a single weight.

`ModelSpec` is the whole description that `forward.plan` reads; the parameter inventory
(`parameters`) follows from it.  `files.read_model` and the readers of checkpoints make specs.  A
spec checks itself when it is made: an impossible combination is an error that says what was
expected and found.  The names are those of model files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.sublayer_specs import (
    ACTIVATIONS,
    LAYOUTS,
    NO_NORM,
    NORMS,
    PACKINGS,
    PAIRINGS,
    PLACES,
    POSITIONS,
    AttentionSpec,
    MlpSpec,
    NormSpec,
    RotarySpec,
    one_of,
    over_root,
    positive,
    refuse,
)

__all__ = [
    "ACTIVATIONS", "LAYOUTS", "NORMS", "NO_NORM", "PACKINGS", "PAIRINGS", "PLACES", "POSITIONS",
    "AttentionSpec", "BlockSpec", "MlpSpec", "ModelSpec", "NormSpec", "Parameter", "RotarySpec",
    "balls_only", "forward_only", "learned", "over_root", "parameters", "refuse_forward_only",
    "size_of",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class BlockSpec:
    """One block: two side-trips from the residual stream."""

    attention: AttentionSpec | None
    mlp: MlpSpec | None
    attn_norm: NormSpec = NO_NORM
    mlp_norm: NormSpec = NO_NORM
    norm_place: str = "pre"
    parallel: bool = False

    def __post_init__(self) -> None:
        one_of("norm.place", self.norm_place, PLACES)
        if self.parallel and self.norm_place == "post":
            raise refuse("residual", _("serial, since the norms come after the add"), "parallel")

    @property
    def trips(self) -> tuple[tuple[str, NormSpec], ...]:
        """The side-trips of the block, "attn" and "mlp", each with its norm."""
        both = (("attn", self.attention, self.attn_norm), ("mlp", self.mlp, self.mlp_norm))
        return tuple((name, norm) for name, there, norm in both if there)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The whole architecture.

    >>> import byhand
    >>> spec = byhand.open_model("tiny").spec
    >>> spec.vocab, spec.d_model, len(spec.blocks), spec.blocks[0].norm_place
    (3, 2, 1, 'post')
    """

    name: str
    vocab: int
    d_model: int
    context: int | None
    blocks: tuple[BlockSpec, ...]
    position: str = "none"
    position_base: Fraction = Fraction(10_000)
    embed_scale: Expression | None = None
    final_norm: NormSpec = NO_NORM
    tied: bool = True
    head_bias: bool = False
    layout: str = "in_out"
    outputs: int | None = None  # the words that the head knows; None: those of the vocabulary

    def __post_init__(self) -> None:
        positive("vocabulary", self.vocab)
        positive("d_model", self.d_model)
        one_of("position", self.position, POSITIONS)
        one_of("layout", self.layout, LAYOUTS)
        if self.context is not None:
            positive("context", self.context)
        if self.position == "learned" and self.context is None:
            raise refuse("context", _("a length, since positions are learned"), _("nothing"))
        if self.position_base <= 0:
            raise refuse("position.base", _("a number above 0"), self.position_base)
        if self.position == "sinusoidal" and self.d_model % 2:
            raise refuse("d_model", _("an even number, for sinusoidal positions"), self.d_model)
        if self.outputs is not None:
            positive("outputs", self.outputs)
            if self.tied:
                found = _("a head tied to embed.token")
                raise refuse("head.tied", _("false, since the outputs are other words"), found)
        for layer, block in enumerate(self.blocks):
            self._check_block(layer, block)

    @property
    def answers(self) -> int:
        """How many words the head knows: the logits of a position."""
        return self.vocab if self.outputs is None else self.outputs

    @property
    def answer_axis(self) -> str:
        """The axis of the logits: "vocab", or "outputs" where these are other words."""
        return "vocab" if self.outputs is None else "outputs"

    @property
    def causal(self) -> bool:
        """Whether no position looks at a later one."""
        return all(block.attention is None or block.attention.causal for block in self.blocks)

    def _check_block(self, layer: int, block: BlockSpec) -> None:
        attention = block.attention
        if attention is None:
            return
        if not attention.out and attention.q_width != self.d_model:
            raise refuse(
                f"block.{layer}.attention.out",
                _("an output matrix, unless heads · d_head is d_model = {d}").format(
                    d=self.d_model
                ),
                f"{attention.heads} · {attention.d_head} = {attention.q_width}",
            )
        if attention.score_table and self.context is None:
            raise refuse("context", _("a length, for the table of scores"), _("nothing"))


def forward_only(spec: ModelSpec) -> Iterator[tuple[str, str]]:
    """What only forward passes know so far: the block, and the key in a model file."""
    for layer, block in enumerate(spec.blocks):
        if block.attention is not None and block.attention.sinks:
            yield f"block.{layer}", "attention.sinks"
        if block.attention is not None and block.attention.cap is not None:
            yield f"block.{layer}", "attention.cap"
        if block.mlp is not None and block.mlp.experts is not None:
            yield f"block.{layer}", "mlp.experts"


def balls_only(spec: ModelSpec) -> bool:
    """Whether, of the enclosing number systems, only Arb balls know all that the model has."""
    turns = (block.attention.rotary for block in spec.blocks if block.attention)
    magnified = any(rotary is not None and rotary.magnitude is not None for rotary in turns)
    return magnified or any(forward_only(spec))


def refuse_forward_only(spec: ModelSpec, who: str) -> None:
    """Refuses what only forward passes know so far; `who` does not."""
    for where, key in forward_only(spec):
        raise InputError(
            _("{who} does not know {key} yet").format(who=who, key=key),
            where=where,
            hint=_("trace, generate and check do"),
        )


# ------------------------------------------------------------------------ the parameter inventory


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tensor of weights.  A buffer is needed but not learned: tables of scores, slopes."""

    name: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]  # each side in the symbols of the glossary: vocab, d, d_ff, …
    part: str  # embedding, position, attention, mlp, norm, head
    kind: str  # matrix, bias, gain, buffer

    @property
    def size(self) -> int:
        """The number of entries."""
        size = 1
        for side in self.shape:
            size *= side
        return size


def parameters(spec: ModelSpec) -> tuple[Parameter, ...]:
    """Every tensor the model needs, in spine order."""
    return tuple(_inventory(spec))


def learned(spec: ModelSpec) -> tuple[Parameter, ...]:
    """The parameters proper: what training changes.  Buffers, such as tables of scores, are not."""
    return tuple(parameter for parameter in parameters(spec) if parameter.kind != "buffer")


def size_of(spec: ModelSpec) -> int:
    """How many parameters a model has.  This alone decides whether a model is small or large."""
    return sum(parameter.size for parameter in learned(spec))


def _inventory(spec: ModelSpec) -> Iterator[Parameter]:
    d = ("d", spec.d_model)
    vocab = ("vocab", spec.vocab)
    yield _tensor("embed.token", "embedding", "matrix", vocab, d)
    if spec.position == "learned":
        assert spec.context is not None
        yield _tensor("embed.position", "position", "matrix", ("context", spec.context), d)
    for layer, block in enumerate(spec.blocks):
        yield from _block(spec, f"block.{layer}", block)
    yield from _norm("final.norm", spec.final_norm, d)
    answers = (spec.answer_axis, spec.answers)
    if not spec.tied:
        yield _matrix(spec, "head", "head", d, answers)
    if spec.head_bias:
        yield _tensor("head_bias", "head", "bias", answers)


Side = tuple[str, int]


def _tensor(name: str, part: str, kind: str, *sides: Side) -> Parameter:
    return Parameter(
        name, tuple(size for _symbol, size in sides), tuple(s for s, _size in sides), part, kind
    )


def _matrix(
    spec: ModelSpec, name: str, part: str, source: Side, target: Side, each: tuple[Side, ...] = ()
) -> Parameter:
    """A matrix, or with `each` one for each expert, stacked."""
    sides = (source, target) if spec.layout == "in_out" else (target, source)
    return _tensor(name, part, "matrix", *each, *sides)


def _norm(name: str, norm: NormSpec, side: Side) -> Iterator[Parameter]:
    if norm.kind != "none" and norm.gain:
        yield _tensor(f"{name}.gain", "norm", "gain", side)
    if norm.kind != "none" and norm.bias:
        yield _tensor(f"{name}.bias", "norm", "bias", side)


def _block(spec: ModelSpec, at: str, block: BlockSpec) -> Iterator[Parameter]:
    d = ("d", spec.d_model)
    if block.attention:
        yield from _norm(f"{at}.attn.norm", block.attn_norm, d)
        yield from _attention(spec, f"{at}.attn", block.attention)
    if block.mlp:
        yield from _norm(f"{at}.mlp.norm", block.mlp_norm, d)
        yield from _mlp(spec, f"{at}.mlp", block.mlp)


def _attention(spec: ModelSpec, at: str, attn: AttentionSpec) -> Iterator[Parameter]:
    d = ("d", spec.d_model)

    def wide(name: str, size: int) -> Side:
        return d if size == spec.d_model else (name, size)

    q = wide("heads·d_head", attn.q_width)
    kv = wide("kv_heads·d_head" if attn.kv_heads != attn.heads else "heads·d_head", attn.kv_width)
    if attn.packed:
        total = attn.q_width + 2 * attn.kv_width
        packed = (f"3·{q[0]}" if q == kv else f"({q[0]} + 2·{kv[0]})", total)
        yield _matrix(spec, f"{at}.qkv", "attention", d, packed)
        if attn.q_bias:
            yield _tensor(f"{at}.qkv_bias", "attention", "bias", packed)
    else:
        for name, side, bias in (
            ("q", q, attn.q_bias),
            ("k", kv, attn.k_bias),
            ("v", kv, attn.v_bias),
        )[0 if attn.queries else 2 :]:
            yield _matrix(spec, f"{at}.{name}", "attention", d, side)
            if bias:
                yield _tensor(f"{at}.{name}_bias", "attention", "bias", side)
    head = ("d_head", attn.d_head)
    yield from _norm(f"{at}.q_norm", attn.q_norm, head)
    yield from _norm(f"{at}.k_norm", attn.k_norm, head)
    if attn.rotary and attn.rotary.given:
        pairs = ("rope_width/2", attn.rotary.width // 2)
        yield _tensor(f"{at}.frequencies", "attention", "buffer", pairs)
    if attn.alibi:
        yield _tensor(f"{at}.slopes", "attention", "buffer", ("heads", attn.heads))
    if attn.sinks:
        yield _tensor(f"{at}.sinks", "attention", "bias", ("heads", attn.heads))
    if attn.score_table:
        assert spec.context is not None
        square = (("context", spec.context), ("context", spec.context))
        yield _tensor(f"{at}.score_table", "attention", "buffer", ("heads", attn.heads), *square)
    if attn.out:
        yield _matrix(spec, f"{at}.out", "attention", q, d)
        if attn.out_bias:
            yield _tensor(f"{at}.out_bias", "attention", "bias", d)


def _mlp(spec: ModelSpec, at: str, mlp: MlpSpec) -> Iterator[Parameter]:
    d, wide = ("d", spec.d_model), ("d_ff", mlp.d_ff)
    each: tuple[Side, ...] = ()
    if mlp.experts is not None:
        experts = ("experts", mlp.experts)
        each = (experts,)
        yield _matrix(spec, f"{at}.router", "mlp", d, experts)
        if mlp.router_bias:
            yield _tensor(f"{at}.router_bias", "mlp", "bias", experts)
    for name, source, target, there, bias in (
        ("gate", d, wide, mlp.gated, mlp.gate_bias),
        ("hidden", d, wide, True, mlp.hidden_bias),
        ("out", wide, d, True, mlp.out_bias),
    ):
        if there:
            yield _matrix(spec, f"{at}.{name}", "mlp", source, target, each)
        if bias:
            yield _tensor(f"{at}.{name}_bias", "mlp", "bias", *each, target)
