"""The architecture of one sublayer: norms, attention and MLPs, without a single weight.

`spec` puts them together.  Each spec checks itself when it is made: an impossible combination is an
error that says what was expected and found.  The names are those of model files.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from byhand.errors import SpecError, nearest
from byhand.expression import Call, Expression, Number, Quotient
from byhand.language import _

NORMS = ("layernorm", "rmsnorm", "none")
PLACES = ("pre", "post")
POSITIONS = ("none", "learned", "sinusoidal")
PAIRINGS = ("half", "interleaved")
PACKINGS = ("concatenated", "per_head")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "identity")
LAYOUTS = ("in_out", "out_in")


def refuse(key: str, expected: str, found: object, hint: str | None = None) -> SpecError:
    """The error for a key that cannot be what it is."""
    return SpecError(key, expected=expected, found=str(found), hint=hint)


def one_of(key: str, value: str, known: tuple[str, ...]) -> None:
    """Refuses a word that is not known."""
    if value not in known:
        raise refuse(key, ", ".join(known), value, nearest(value, known))


def positive(key: str, value: int) -> None:
    """Refuses a number below 1."""
    if value < 1:
        raise refuse(key, _("a whole number of at least 1"), value)


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
        one_of("norm.kind", self.kind, NORMS)
        if self.eps < 0:
            raise refuse("norm.eps", _("a number that is not negative"), self.eps)
        if self.kind == "rmsnorm" and self.bias:
            raise refuse("norm.bias", _("false, since rmsnorm has no bias"), "true")


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
        positive("rope.width", self.width)
        one_of("rope.pairing", self.pairing, PAIRINGS)
        if self.width % 2:
            raise refuse("rope.width", _("an even number"), self.width)
        if self.base <= 0:
            raise refuse("rope.base", _("a number above 0"), self.base)


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
    cap: Fraction | None = None  # c: scaled products x become c·tanh(x/c); None: they stay

    def __post_init__(self) -> None:
        positive("attention.heads", self.heads)
        positive("attention.d_head", self.d_head)
        positive("attention.kv_heads", self.kv_heads)
        if self.window is not None:
            positive("attention.window", self.window)
            if not self.causal:
                raise refuse("attention.window", _("nothing, without a causal mask"), self.window)
        if self.heads % self.kv_heads:
            raise refuse(
                "attention.kv_heads",
                _("a divisor of the {count} heads").format(count=self.heads),
                self.kv_heads,
            )
        if self.rotary and self.rotary.width > self.d_head:
            raise refuse(
                "rope.width",
                _("at most the head width {width}").format(width=self.d_head),
                self.rotary.width,
            )
        if self.packed is not None:
            one_of("attention.packed", self.packed, PACKINGS)
            if not self.q_bias == self.k_bias == self.v_bias:
                raise refuse(
                    "attention.bias",
                    _("the same for q, k and v, since they are packed into one matrix"),
                    f"q {self.q_bias}, k {self.k_bias}, v {self.v_bias}".lower(),
                )
            if self.packed == "per_head" and self.heads != self.kv_heads:
                raise refuse(
                    "attention.packed",
                    _("concatenated, since there are fewer key heads than query heads"),
                    self.packed,
                )
        if self.cap is not None and self.cap <= 0:
            raise refuse("attention.cap", _("a number above 0"), self.cap)
        if not self.queries:
            self._check_without_queries()
        if self.out_bias and not self.out:
            raise refuse("attention.bias.out", _("false, since there is no output matrix"), "true")

    def _check_without_queries(self) -> None:
        """Refuses what only queries and keys can have."""
        for key, there in (
            ("attention.scale", self.scale is not None),
            ("attention.cap", self.cap is not None),
            ("attention.packed", self.packed is not None),
            ("attention.q_norm", self.q_norm.kind != "none"),
            ("attention.k_norm", self.k_norm.kind != "none"),
            ("attention.bias.q", self.q_bias),
            ("attention.bias.k", self.k_bias),
            ("position", self.rotary is not None),
        ):
            if there:
                raise refuse(key, _("nothing, since there are no queries and keys"), key)

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
        positive("mlp.d_ff", self.d_ff)
        one_of("mlp.activation", self.activation, ACTIVATIONS)
        if self.gate_bias and not self.gated:
            raise refuse("mlp.bias.gate", _("false, since the MLP is not gated"), "true")
        if self.experts is None:
            self._check_without_experts()
            return
        positive("mlp.experts", self.experts)
        if self.chosen is None or not 1 <= self.chosen <= self.experts:
            most = _("a whole number from 1 to the {count} experts").format(count=self.experts)
            raise refuse("mlp.chosen", most, self.chosen or _("nothing"))

    def _check_without_experts(self) -> None:
        """Refuses what only a choice among experts can have."""
        for key, there in (
            ("mlp.chosen", self.chosen is not None),
            ("mlp.normalised", not self.normalised),
            ("mlp.bias.router", self.router_bias),
        ):
            if there:
                raise refuse(key, _("nothing, since there are no experts"), key)
