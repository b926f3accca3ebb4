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
from byhand.rope_scaling import KINDS, Scaling

NORMS = ("layernorm", "rmsnorm", "none")
PLACES = ("pre", "post")
POSITIONS = ("none", "learned", "sinusoidal")
PAIRINGS = ("half", "interleaved")
PACKINGS = ("concatenated", "per_head")
ACTIVATIONS = (
    "relu", "gelu", "gelu_tanh", "silu", "identity",
    "relu2",  # relu(x)²
    "quick_gelu",  # x/(1 + e^(-1.702·x))
    "gelu_fast", "gelu_bloom",  # gelu_tanh with √(2/π) written as 0.7978845608, as 0.79788456
    "sigmoid", "tanh",
)  # fmt: skip
LAYOUTS = ("in_out", "out_in")
NORMED = ("head", "each", "width")
SCORINGS = ("softmax", "sigmoid")
GROUP_RULES = ("max", "top2")


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
    plus_one: bool = False  # rows are multiplied by 1 + gain

    def __post_init__(self) -> None:
        one_of("norm.kind", self.kind, NORMS)
        if self.eps < 0:
            raise refuse("norm.eps", _("a number that is not negative"), self.eps)
        if self.kind == "rmsnorm" and self.bias:
            raise refuse("norm.bias", _("false, since rmsnorm has no bias"), "true")
        if self.plus_one and not self.gain:
            raise refuse("norm.plus_one", _("false, since the norm has no gain"), "true")


NO_NORM = NormSpec("none", gain=False, bias=False)


@dataclass(frozen=True, slots=True)
class RotarySpec:
    """RoPE on the first `width` entries of every head."""

    width: int
    base: Fraction = Fraction(10_000)
    pairing: str = "half"
    given: bool = False  # the angle per position of each pair is a weight, not a power of the base
    magnitude: Expression | None = None  # a factor of every turned entry (YaRN); None: 1
    scaling: Scaling | None = None  # angles that are no powers of the base, worked out by a rule

    def __post_init__(self) -> None:
        positive("rope.width", self.width)
        one_of("rope.pairing", self.pairing, PAIRINGS)
        if self.width % 2:
            raise refuse("rope.width", _("an even number"), self.width)
        if self.base <= 0:
            raise refuse("rope.base", _("a number above 0"), self.base)
        if self.given and self.scaling is not None:
            raise refuse("rope.scaling", _("nothing, since the angles are given"), "scaling")
        if self.scaling is not None:
            self._check_scaling(self.scaling)

    def _check_scaling(self, scaling: Scaling) -> None:
        """Refuses a rule that makes no angles of this base and width."""
        one_of("rope.scaling.kind", scaling.kind, KINDS)
        positive("rope.scaling.length", scaling.length)
        factors = (*scaling.short_factors, *scaling.long_factors)
        for factor in (scaling.factor, scaling.slow, scaling.fast, *factors):
            if factor <= 0:
                raise refuse("rope.scaling", _("numbers above 0"), factor)
        pairs = self.width // 2
        if scaling.kind == "longrope" and len(factors) != 2 * pairs:
            expected = _("{count} short_factors and as many long_factors").format(count=pairs)
            raise refuse("rope.scaling", expected, len(factors))


@dataclass(frozen=True, slots=True)
class LatentSpec:
    """Latent attention: queries, keys and values made of a few numbers for each position.

    q comes of `query_rank` numbers (None: of the stream itself), k and v of `rank` numbers.  A part
    of each key as wide as RoPE turns is made of the stream, the same for all heads.
    """

    rank: int
    query_rank: int | None = None
    norm: NormSpec = NO_NORM  # of the few numbers, for k and v
    query_norm: NormSpec = NO_NORM  # likewise, for q
    down_bias: bool = False  # of the matrices that make the few numbers

    def __post_init__(self) -> None:
        positive("attention.latent.rank", self.rank)
        if self.query_rank is not None:
            positive("attention.latent.query_rank", self.query_rank)


@dataclass(frozen=True, slots=True)
class RelativeSpec:
    """A score for each head by the distance of query and key, in buckets that widen.

    With `both`, later keys have buckets of their own; else they share the one of distance 0.
    """

    buckets: int = 32
    distance: int = 128  # from here on, all distances share the last bucket
    both: bool = False

    def __post_init__(self) -> None:
        positive("relative.buckets", self.buckets)
        positive("relative.distance", self.distance)
        exact = self.buckets // (4 if self.both else 2)
        if exact < 1 or self.buckets % (2 if self.both else 1):
            raise refuse("relative.buckets", _("enough buckets for both directions"), self.buckets)
        if self.distance <= exact:
            expected = _("more than {count}").format(count=exact)
            raise refuse("relative.distance", expected, self.distance)


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
    normed: str = "head"  # q_norm, k_norm: of each head; "each": with its own gain; "width": of all
    clip: Fraction | None = None  # q, k and v, normed, are kept within ±clip; None: they stay
    d_value: int | None = None  # the width of a head's values; None: d_head
    latent: LatentSpec | None = None
    turned_first: bool = False  # q and k are normalised behind RoPE, not before it
    relative: bool = False  # adds the score of the distance, from the model's table of buckets

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
        for key, limit in (("attention.cap", self.cap), ("attention.clip", self.clip)):
            if limit is not None and limit <= 0:
                raise refuse(key, _("a number above 0"), limit)
        one_of("attention.normed", self.normed, NORMED)
        if self.turned_first and self.normed == "width":
            raise refuse("attention.normed", _("the norm of each head, behind RoPE"), self.normed)
        if self.d_value is not None:
            positive("attention.d_value", self.d_value)
            if self.packed is not None:
                raise refuse("attention.packed", _("nothing, since values are wider"), self.packed)
        if self.latent is not None:
            self._check_latent()
        if not self.queries:
            self._check_without_queries()
        if self.out_bias and not self.out:
            raise refuse("attention.bias.out", _("false, since there is no output matrix"), "true")

    def _check_latent(self) -> None:
        """Refuses what latent attention cannot have."""
        if self.heads != self.kv_heads:
            raise refuse("attention.kv_heads", str(self.heads), self.kv_heads)
        if self.packed is not None:
            raise refuse("attention.packed", _("nothing, with latent attention"), self.packed)
        if self.rotary is None or self.rotary.width >= self.d_head:
            wide = _("RoPE on a part of each head, with latent attention")
            raise refuse("rope.width", wide, self.rotary.width if self.rotary else _("nothing"))
        for key, norm in (("attention.q_norm", self.q_norm), ("attention.k_norm", self.k_norm)):
            if norm.kind != "none":
                raise refuse(key, _("nothing, with latent attention"), norm.kind)

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
        """The width of the keys of all key heads side by side."""
        return self.kv_heads * self.d_head

    @property
    def value_width(self) -> int:
        """The width of one head's values, and of what it mixes of them."""
        return self.d_head if self.d_value is None else self.d_value


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
    scoring: str = "softmax"  # of the router's numbers; "sigmoid": each on its own
    choice_bias: bool = False  # added to the scores for the choice alone, not for the shares
    groups: int | None = None  # experts stand in so many groups; the choice is within the best ones
    groups_chosen: int | None = None
    group_rule: str = "max"  # a group counts by its largest score; "top2": by the sum of two
    share_scale: Fraction = Fraction(1)  # of the shares of the chosen
    share_eps: Fraction = Fraction(0)  # added to the sum that sigmoids, normalised, are divided by
    shared: int | None = None  # d_ff of one more MLP beside the experts, which always answers
    shared_gate: bool = False  # its answer is weighted by the sigmoid of a score of its own
    shared_bias: bool | None = None  # of its three matrices; None: as those of the experts
    limit: Fraction | None = None  # c: the gate is at most c, hidden within ±c; None: they stay
    hidden_plus: Fraction = Fraction(0)  # act is multiplied by hidden + this

    def __post_init__(self) -> None:
        positive("mlp.d_ff", self.d_ff)
        one_of("mlp.activation", self.activation, ACTIVATIONS)
        if not self.gated:
            for key, there in (
                ("mlp.bias.gate", self.gate_bias),
                ("mlp.limit", self.limit is not None),
                ("mlp.hidden_plus", self.hidden_plus != 0),
            ):
                if there:
                    raise refuse(key, _("false, since the MLP is not gated"), "true")
        if self.limit is not None and self.limit <= 0:
            raise refuse("mlp.limit", _("a number above 0"), self.limit)
        if self.experts is None:
            self._check_without_experts()
            return
        positive("mlp.experts", self.experts)
        if self.chosen is None or not 1 <= self.chosen <= self.experts:
            most = _("a whole number from 1 to the {count} experts").format(count=self.experts)
            raise refuse("mlp.chosen", most, self.chosen or _("nothing"))
        self._check_choice(self.experts)

    def _check_choice(self, experts: int) -> None:
        """Refuses groups that do not fit, and a shared expert's gate without one."""
        one_of("mlp.scoring", self.scoring, SCORINGS)
        one_of("mlp.group_rule", self.group_rule, GROUP_RULES)
        if self.share_eps < 0:
            raise refuse("mlp.share_eps", _("a number that is not negative"), self.share_eps)
        if self.share_eps and (self.scoring != "sigmoid" or not self.normalised):
            only = _("nothing, unless sigmoids are normalised")
            raise refuse("mlp.share_eps", only, self.share_eps)
        if self.shared is not None:
            positive("mlp.shared", self.shared)
        elif self.shared_gate or self.shared_bias is not None:
            key = "mlp.shared_gate" if self.shared_gate else "mlp.shared_bias"
            raise refuse(key, _("nothing, since there is no shared expert"), "true")
        if self.groups is None:
            if self.groups_chosen is not None:
                raise refuse("mlp.groups_chosen", _("nothing, without groups"), self.groups_chosen)
            return
        positive("mlp.groups", self.groups)
        if experts % self.groups:
            expected = _("a divisor of the {count} experts").format(count=experts)
            raise refuse("mlp.groups", expected, self.groups)
        count, each = self.groups_chosen, experts // self.groups
        if count is None or not 1 <= count <= self.groups:
            expected = _("a whole number from 1 to the {count} groups").format(count=self.groups)
            raise refuse("mlp.groups_chosen", expected, count or _("nothing"))
        if count * each < (self.chosen or 0):
            expected = _("groups of {count} experts at least").format(count=self.chosen)
            raise refuse("mlp.groups_chosen", expected, count)
        if self.group_rule == "top2" and each < 2:
            raise refuse("mlp.group_rule", _("max, since a group is one expert"), "top2")

    @property
    def shared_mlp(self) -> MlpSpec:
        """The one more MLP beside the experts, built like each of them."""
        assert self.shared is not None
        biases = (self.hidden_bias, self.gate_bias, self.out_bias)
        if self.shared_bias is not None:
            biases = (self.shared_bias, self.shared_bias and self.gated, self.shared_bias)
        return MlpSpec(
            d_ff=self.shared,
            activation=self.activation,
            gated=self.gated,
            hidden_bias=biases[0],
            gate_bias=biases[1],
            out_bias=biases[2],
            limit=self.limit,
            hidden_plus=self.hidden_plus,
        )

    def _check_without_experts(self) -> None:
        """Refuses what only a choice among experts can have."""
        for key, there in (
            ("mlp.chosen", self.chosen is not None),
            ("mlp.normalised", not self.normalised),
            ("mlp.bias.router", self.router_bias),
            ("mlp.scoring", self.scoring != "softmax"),
            ("mlp.choice_bias", self.choice_bias),
            ("mlp.groups", self.groups is not None),
            ("mlp.groups_chosen", self.groups_chosen is not None),
            ("mlp.share_scale", self.share_scale != 1),
            ("mlp.share_eps", self.share_eps != 0),
            ("mlp.shared", self.shared is not None),
            ("mlp.shared_gate", self.shared_gate),
            ("mlp.shared_bias", self.shared_bias is not None),
        ):
            if there:
                raise refuse(key, _("nothing, since there are no experts"), key)
