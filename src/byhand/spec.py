"""The architecture of a model, without a single weight.

`ModelSpec` is the whole description that `forward.plan` reads; its `parameters` follow from it.
`files.read_model` and the readers of checkpoints make specs.  A spec checks itself when it is made:
an impossible combination is an error that says what was expected and found.  The names are those of
model files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import chain

from byhand.display import Shown
from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.rope_scaling import BY_LENGTH
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
    LatentSpec,
    MlpSpec,
    NormSpec,
    RelativeSpec,
    RotarySpec,
    one_of,
    over_root,
    positive,
    refuse,
)

__all__ = [
    "ACTIVATIONS", "LAYOUTS", "NORMS", "NO_NORM", "PACKINGS", "PAIRINGS", "PLACES", "POSITIONS",
    "AttentionSpec", "BlockSpec", "EncoderSpec", "HeadSpec", "LatentSpec", "MlpSpec", "ModelSpec",
    "NormSpec", "RelativeSpec", "RotarySpec", "forward_only", "over_root",
    "refuse_forward_only",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class BlockSpec:
    """One block: side-trips from the residual stream, each with norms before and behind it.

    A block of a decoder may look at an encoder's stream (`cross`) between attention and MLP.
    """

    attention: AttentionSpec | None
    mlp: MlpSpec | None
    attn_norm: NormSpec = NO_NORM
    mlp_norm: NormSpec = NO_NORM
    norm_place: str = "pre"
    parallel: bool = False
    attn_after: NormSpec = NO_NORM  # of what attention adds, before it is added
    mlp_after: NormSpec = NO_NORM
    cross: AttentionSpec | None = None
    cross_norm: NormSpec = NO_NORM
    one_norm: bool = False  # parallel: the MLP reads what attention reads, of one norm
    from_norm: bool = False  # what a sublayer adds is added to its norm, not to the stream
    add_scale: Expression | None = None  # what a sublayer adds is multiplied by this

    def __post_init__(self) -> None:
        one_of("norm.place", self.norm_place, PLACES)
        if self.parallel and self.norm_place == "post":
            raise refuse("residual", _("serial, since the norms come after the add"), "parallel")
        if self.one_norm and not (self.parallel and self.attention and self.mlp):
            raise refuse("norm.one", _("false, unless attention and MLP are parallel"), "true")
        if self.one_norm and self.mlp_norm.kind != "none":
            raise refuse("norm.one", _("false, since the MLP has a norm"), "true")
        if self.from_norm and self.norm_place == "post":
            raise refuse("norm.from", _("the stream, since the norms come after the add"), "norm")

    @property
    def trips(self) -> tuple[tuple[str, NormSpec], ...]:
        """The side-trips of the block, "attn" and "mlp", each with its norm."""
        trips = (
            ("attn", self.attention, self.attn_norm),
            ("cross", self.cross, self.cross_norm),
            ("mlp", self.mlp, self.mlp_norm),
        )
        return tuple((name, norm) for name, there, norm in trips if there)


@dataclass(frozen=True, slots=True)
class HeadSpec:
    """What stands between the stream and the unembedding: a matrix, an activation, a norm."""

    activation: str = "gelu"
    norm: NormSpec = NO_NORM
    bias: bool = True

    def __post_init__(self) -> None:
        one_of("head.activation", self.activation, ACTIVATIONS)


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """The encoder of a model that reads one text and writes another: a stream of its own."""

    blocks: tuple[BlockSpec, ...]
    vocab: int | None = None  # None: the words, and their embedding, are those of the model
    context: int | None = None
    position: str = "none"
    position_base: Fraction = Fraction(10_000)
    position_pairing: str = "interleaved"
    embed_scale: Expression | None = None
    embed_norm: NormSpec = NO_NORM
    final_norm: NormSpec = NO_NORM
    relative: RelativeSpec | None = None
    first_row: int = 0  # the row of position 0 in a learned table; those before it are not used

    def __post_init__(self) -> None:
        if self.vocab is not None:
            positive("encoder.vocabulary", self.vocab)
        one_of("encoder.position", self.position, POSITIONS)
        if self.position == "learned" and self.context is None:
            nothing = _("nothing")
            raise refuse("encoder.context", _("a length, since positions are learned"), nothing)
        for layer, block in enumerate(self.blocks):
            if block.cross is not None:
                at = f"encoder.block.{layer}.cross"
                raise refuse(at, _("nothing, since an encoder reads no other"), "cross")
            _check_relative(f"encoder.block.{layer}", block, self.relative)

    @property
    def segments(self) -> None:
        """Kinds of tokens: an encoder beside a decoder has none."""
        return None


@dataclass(frozen=True, slots=True)
class ModelSpec(Shown):
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
    family: str = ""  # of the checkpoint it was read from, which names modules: "gpt2", "llama", …
    position_pairing: str = "interleaved"  # of sinusoids; "half": all sines, then all cosines
    embed_norm: NormSpec = NO_NORM  # of what enters the first block
    embed_width: int | None = None  # of the token table, with a matrix to d and back; None: d
    segments: int | None = None  # kinds of tokens, each with an embedding that is added
    relative: RelativeSpec | None = None
    head: HeadSpec | None = None
    head_scale: Expression | None = None  # of the stream, before the unembedding
    logit_scale: Expression | None = None
    logit_cap: Fraction | None = None  # c: logits x become c·tanh(x/c); None: they stay
    encoder: EncoderSpec | None = None
    first_row: int = 0  # the row of position 0 in a learned table; those before it are not used
    fixed_bias: bool = False  # the head's bias was set, not learned
    in_place: bool = False  # the logits of a position are about the word there, not the next one

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
        one_of("position.pairing", self.position_pairing, PAIRINGS)
        for key, count in (("segments", self.segments), ("embed_width", self.embed_width)):
            if count is not None:
                positive(key, count)
        if self.embed_width is not None and self.encoder is not None:
            raise refuse("embed_width", _("nothing, with an encoder"), self.embed_width)
        if self.logit_cap is not None and self.logit_cap <= 0:
            raise refuse("head.cap", _("a number above 0"), self.logit_cap)
        for layer, block in enumerate(self.blocks):
            self._check_block(layer, block)
        for layer, block in enumerate(self.encoder.blocks if self.encoder else ()):
            self._check_block(layer, block, "encoder.")

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

    def _check_block(self, layer: int, block: BlockSpec, stack: str = "") -> None:
        if block.cross is not None and self.encoder is None:
            raise refuse(f"block.{layer}.cross", _("nothing, since there is no encoder"), "cross")
        if not stack:
            _check_relative(f"block.{layer}", block, self.relative)
        attention = block.attention
        if attention is None:
            return
        if not attention.out and attention.heads * attention.value_width != self.d_model:
            raise refuse(
                f"{stack}block.{layer}.attention.out",
                _("an output matrix, unless heads · d_head is d_model = {d}").format(
                    d=self.d_model
                ),
                f"{attention.heads} · {attention.d_head} = {attention.q_width}",
            )
        if attention.score_table and self.context is None:
            raise refuse("context", _("a length, for the table of scores"), _("nothing"))


def _check_relative(at: str, block: BlockSpec, relative: RelativeSpec | None) -> None:
    """Refuses attention that reads a table of distances which the model does not have."""
    if block.attention is not None and block.attention.relative and relative is None:
        expected = _("false, since the model has no buckets")
        raise refuse(f"{at}.attention.relative", expected, "true")


# The keys of model files, by fields of specs at other values than the usual: what is newer than
# the way back and certificates.
_ATTENTION = {
    "sinks": "attention.sinks", "cap": "attention.cap", "normed": "attention.normed",
    "clip": "attention.clip", "d_value": "attention.d_value", "latent": "attention.latent",
    "relative": "attention.relative",
}  # fmt: skip
_MLP = {
    "experts": "mlp.experts", "shared": "mlp.shared", "limit": "mlp.limit",
    "hidden_plus": "mlp.hidden_plus",
}  # fmt: skip
_BLOCK = {
    "attn_after": "attention.after", "mlp_after": "mlp.after", "cross": "cross",
    "one_norm": "norm.one", "from_norm": "norm.from", "add_scale": "add_scale",
}  # fmt: skip
_MODEL = {
    "position_pairing": "position.pairing", "embed_norm": "embed_norm",
    "embed_width": "embed_width", "segments": "segments", "relative": "relative",
    "head": "head.hidden", "head_scale": "head.scale", "logit_scale": "head.logit_scale",
    "logit_cap": "head.cap", "encoder": "encoder",
}  # fmt: skip
_NEWER_KINDS = ("relu2", "quick_gelu", "gelu_fast", "gelu_bloom", "sigmoid", "tanh")


def forward_only(spec: ModelSpec) -> Iterator[tuple[str, str]]:
    """What only forward passes know so far: the block, and the key in a model file."""
    yield from (("model", key) for key in _set(spec, _MODEL))
    if spec.final_norm.plus_one:
        yield "model", "norm.plus_one"
    for layer, block in enumerate(spec.blocks):
        at = f"block.{layer}"
        yield from ((at, key) for key in _set(block, _BLOCK))
        yield from ((at, key) for key in _set(block.attention, _ATTENTION))
        yield from ((at, key) for key in _set(block.mlp, _MLP))
        if block.mlp and block.mlp.activation in _NEWER_KINDS:
            yield at, "mlp.activation"
        attention = block.attention
        norms = (attention.q_norm, attention.k_norm) if attention else ()
        if any(norm.plus_one for norm in (block.attn_norm, block.mlp_norm, *norms)):
            yield at, "norm.plus_one"


def _set(part: object, keys: Mapping[str, str]) -> Iterator[str]:
    """The keys of the fields that are not at their usual values."""
    if part is None:
        return
    usual = {each.name: each.default for each in fields(part)}  # type: ignore[arg-type]
    for field, key in keys.items():
        if getattr(part, field) != usual[field]:
            yield key


def refuse_forward_only(spec: ModelSpec, who: str, *, one_length: bool = True) -> None:
    """Refuses what only forward passes know so far; `who` does not.

    Where texts of several lengths share their rows, angles must not depend on the length.
    """
    newer = forward_only(spec) if one_length else chain(forward_only(spec), _by_length(spec))
    for where, key in newer:
        raise InputError(
            _("{who} does not know {key} yet").format(who=who, key=key),
            where=where,
            hint=_("trace, generate and check do"),
        )


def _by_length(spec: ModelSpec) -> Iterator[tuple[str, str]]:
    """What the checker of certificates does not know: angles by the length, norms behind RoPE."""
    for layer, block in enumerate(spec.blocks):
        rotary = block.attention.rotary if block.attention else None
        if rotary and rotary.scaling and rotary.scaling.kind in BY_LENGTH:
            yield f"block.{layer}", "rope.scaling"
        if block.attention and block.attention.turned_first:
            yield f"block.{layer}", "attention.turned_first"
