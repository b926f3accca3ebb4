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

from byhand.errors import InputError, SpecError, nearest
from byhand.expression import Call, Expression, Number, Quotient
from byhand.language import _

NORMS = ("layernorm", "rmsnorm", "none")
PLACES = ("pre", "post")
POSITIONS = ("none", "learned", "sinusoidal")
PAIRINGS = ("half", "interleaved")
PACKINGS = ("concatenated", "per_head")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "identity")
LAYOUTS = ("in_out", "out_in")


def _refuse(key: str, expected: str, found: object, hint: str | None = None) -> SpecError:
    return SpecError(key, expected=expected, found=str(found), hint=hint)


def _one_of(key: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise _refuse(key, ", ".join(known), value, nearest(value, known))


def _positive(key: str, value: int) -> None:
    if value < 1:
        raise _refuse(key, _("a whole number of at least 1"), value)


def over_root(width: int) -> Expression:
    """1/√width, the usual scale of attention scores."""
    return Quotient(Number(Fraction(1)), Call("sqrt", Number(Fraction(width))))


@dataclass(frozen=True, slots=True)
class NormSpec:
    """A norm: division by √(variance + eps) or by √(mean square + eps)."""

    kind: str = "layernorm"
    eps: Fraction = Fraction(0)
    gain: bool = True
    bias: bool = True

    def __post_init__(self) -> None:
        _one_of("norm.kind", self.kind, NORMS)
        if self.eps < 0:
            raise _refuse("norm.eps", _("a number that is not negative"), self.eps)
        if self.kind == "rmsnorm" and self.bias:
            raise _refuse("norm.bias", _("false, since rmsnorm has no bias"), "true")


NO_NORM = NormSpec("none", gain=False, bias=False)


@dataclass(frozen=True, slots=True)
class RotarySpec:
    """RoPE on the first `width` entries of every head."""

    width: int
    base: Fraction = Fraction(10_000)
    pairing: str = "half"
    given: bool = False  # the angle per position of each pair is a weight, not a power of the base
    magnitude: Expression | None = None  # a factor of every turned entry (YaRN); None: 1

    def __post_init__(self) -> None:
        _positive("rope.width", self.width)
        _one_of("rope.pairing", self.pairing, PAIRINGS)
        if self.width % 2:
            raise _refuse("rope.width", _("an even number"), self.width)
        if self.base <= 0:
            raise _refuse("rope.base", _("a number above 0"), self.base)


@dataclass(frozen=True, slots=True)
class AttentionSpec:
    """One attention sublayer."""

    heads: int
    d_head: int
    kv_heads: int
    scale: Expression | None = None  # None: the scores are not scaled
    causal: bool = True
    window: int | None = None  # how many keys back a query sees, its own included; None: all
    rotary: RotarySpec | None = None
    alibi: bool = False
    score_table: bool = False
    q_norm: NormSpec = NO_NORM
    k_norm: NormSpec = NO_NORM
    q_bias: bool = False
    k_bias: bool = False
    v_bias: bool = False
    packed: str | None = None
    out: bool = True
    out_bias: bool = False
    queries: bool = True  # False: no q and k; a score is what the table and the slopes say
    nothing: bool = False  # True: a query with no key to look at mixes nothing, which is 0
    sinks: bool = False  # a learned score for each head that takes a share and has no value

    def __post_init__(self) -> None:
        _positive("attention.heads", self.heads)
        _positive("attention.d_head", self.d_head)
        _positive("attention.kv_heads", self.kv_heads)
        if self.window is not None:
            _positive("attention.window", self.window)
            if not self.causal:
                raise _refuse("attention.window", _("nothing, without a causal mask"), self.window)
        if self.heads % self.kv_heads:
            raise _refuse(
                "attention.kv_heads",
                _("a divisor of the {count} heads").format(count=self.heads),
                self.kv_heads,
            )
        if self.rotary and self.rotary.width > self.d_head:
            raise _refuse(
                "rope.width",
                _("at most the head width {width}").format(width=self.d_head),
                self.rotary.width,
            )
        if self.packed is not None:
            _one_of("attention.packed", self.packed, PACKINGS)
            if not self.q_bias == self.k_bias == self.v_bias:
                raise _refuse(
                    "attention.bias",
                    _("the same for q, k and v, since they are packed into one matrix"),
                    f"q {self.q_bias}, k {self.k_bias}, v {self.v_bias}".lower(),
                )
            if self.packed == "per_head" and self.heads != self.kv_heads:
                raise _refuse(
                    "attention.packed",
                    _("concatenated, since there are fewer key heads than query heads"),
                    self.packed,
                )
        if not self.queries:
            self._check_without_queries()
        if self.out_bias and not self.out:
            raise _refuse("attention.bias.out", _("false, since there is no output matrix"), "true")

    def _check_without_queries(self) -> None:
        """Refuses what only queries and keys can have."""
        for key, there in (
            ("attention.scale", self.scale is not None),
            ("attention.packed", self.packed is not None),
            ("attention.q_norm", self.q_norm.kind != "none"),
            ("attention.k_norm", self.k_norm.kind != "none"),
            ("attention.bias.q", self.q_bias),
            ("attention.bias.k", self.k_bias),
            ("position", self.rotary is not None),
        ):
            if there:
                raise _refuse(key, _("nothing, since there are no queries and keys"), key)

    @property
    def q_width(self) -> int:
        """The width of the queries of all heads side by side."""
        return self.heads * self.d_head

    @property
    def kv_width(self) -> int:
        """The width of the keys, and of the values, of all key heads side by side."""
        return self.kv_heads * self.d_head


@dataclass(frozen=True, slots=True)
class MlpSpec:
    """One MLP sublayer: act(x·hidden)·out, or (act(x·gate) * (x·hidden))·out where gated.

    With experts there are so many of these.  A router scores them for each position, the `chosen`
    ones with the largest scores answer, and their answers are added up by their shares.
    """

    d_ff: int
    activation: str = "relu"
    gated: bool = False
    hidden_bias: bool = False
    gate_bias: bool = False
    out_bias: bool = False
    experts: int | None = None  # None: one MLP for all positions
    chosen: int | None = None  # how many experts answer at each position
    normalised: bool = True  # the shares of the chosen are 1 together; else of all experts
    router_bias: bool = False

    def __post_init__(self) -> None:
        _positive("mlp.d_ff", self.d_ff)
        _one_of("mlp.activation", self.activation, ACTIVATIONS)
        if self.gate_bias and not self.gated:
            raise _refuse("mlp.bias.gate", _("false, since the MLP is not gated"), "true")
        if self.experts is None:
            self._check_without_experts()
            return
        _positive("mlp.experts", self.experts)
        if self.chosen is None or not 1 <= self.chosen <= self.experts:
            most = _("a whole number from 1 to the {count} experts").format(count=self.experts)
            raise _refuse("mlp.chosen", most, self.chosen or _("nothing"))

    def _check_without_experts(self) -> None:
        """Refuses what only a choice among experts can have."""
        for key, there in (
            ("mlp.chosen", self.chosen is not None),
            ("mlp.normalised", not self.normalised),
            ("mlp.bias.router", self.router_bias),
        ):
            if there:
                raise _refuse(key, _("nothing, since there are no experts"), key)


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
        _one_of("norm.place", self.norm_place, PLACES)
        if self.parallel and self.norm_place == "post":
            raise _refuse("residual", _("serial, since the norms come after the add"), "parallel")

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
        _positive("vocabulary", self.vocab)
        _positive("d_model", self.d_model)
        _one_of("position", self.position, POSITIONS)
        _one_of("layout", self.layout, LAYOUTS)
        if self.context is not None:
            _positive("context", self.context)
        if self.position == "learned" and self.context is None:
            raise _refuse("context", _("a length, since positions are learned"), _("nothing"))
        if self.position_base <= 0:
            raise _refuse("position.base", _("a number above 0"), self.position_base)
        if self.position == "sinusoidal" and self.d_model % 2:
            raise _refuse("d_model", _("an even number, for sinusoidal positions"), self.d_model)
        if self.outputs is not None:
            _positive("outputs", self.outputs)
            if self.tied:
                found = _("a head tied to embed.token")
                raise _refuse("head.tied", _("false, since the outputs are other words"), found)
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
            raise _refuse(
                f"block.{layer}.attention.out",
                _("an output matrix, unless heads · d_head is d_model = {d}").format(
                    d=self.d_model
                ),
                f"{attention.heads} · {attention.d_head} = {attention.q_width}",
            )
        if attention.score_table and self.context is None:
            raise _refuse("context", _("a length, for the table of scores"), _("nothing"))


def forward_only(spec: ModelSpec) -> Iterator[tuple[str, str]]:
    """What only forward passes know so far: the block, and the key in a model file."""
    for layer, block in enumerate(spec.blocks):
        if block.attention is not None and block.attention.sinks:
            yield f"block.{layer}", "attention.sinks"
        if block.mlp is not None and block.mlp.experts is not None:
            yield f"block.{layer}", "mlp.experts"


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
