"""The independent checker: every case of a certificate decided again, by arithmetic of its own.

It shares no arithmetic with the prover.  Numbers are Arb balls.  A whole region is one pass of
`Form`s: a ball and letters, each anywhere from -1 to 1.  The forward pass is written again from
`ModelSpec`, the regions are cut again from the shape of each goal, and functions of the variables
are evaluated again.  So the cases cover the domain by construction, and what a certificate says is
believed nowhere: a false one is rejected with the case that is wrong, and so is one that cannot be
decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from math import isqrt, prod
from typing import Any

from flint import arb, arb_mat, arb_series, fmpq, fmpq_mat

from byhand.expression import (
    Call,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    rational,
)
from byhand.model import Model
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, NormSpec, RotarySpec

# ------------------------------------------------------------------------------- forms


NARROW = 30  # bits that a ball knows, from which on Arb's own functions are tight
MOST_LETTERS = 300  # weights known within ranges that get letters of their own
IRRATIONAL = "a tie, and not all its numbers are rational"


class Undecidable(Exception):
    """A number that this arithmetic cannot work out, and why."""


class Form:
    """A matrix of numbers centre + Σ letter · coefficient, for any letters from -1 to 1.

    The centre's balls hold what no letter does.  In an exact pass there are no letters, and the
    centre is a matrix of rationals.
    """

    def __init__(self, centre: Any, letters: Mapping[Any, Any] | None = None) -> None:
        self.centre = centre
        self.shape: tuple[int, int] = centre.nrows(), centre.ncols()
        zero = type(centre)(*self.shape) if letters else None
        self.letters = {key: one for key, one in (letters or {}).items() if not one == zero}

    @cached_property
    def parts(self) -> dict[Any, list[Any]]:
        """The entries of the centre and of every letter, row by row."""
        return {None: self.centre.entries()} | {l: one.entries() for l, one in self.letters.items()}

    def each(self, change: Callable[[Any], Any]) -> Form:
        """The same linear change of the centre and of every coefficient."""
        return Form(change(self.centre), {key: change(one) for key, one in self.letters.items()})

    def part(self, rows: Sequence[int], columns: Sequence[int]) -> Form:
        """The entries of these rows and columns, repeated where a place is."""
        places = [row * self.shape[1] + column for row in rows for column in columns]
        kind, shape = type(self.centre), (len(rows), len(columns))
        picked = {key: kind(*shape, [all[p] for p in places]) for key, all in self.parts.items()}
        return Form(picked.pop(None), picked)

    def rows(self, places: Sequence[int]) -> Form:
        """The rows at these places."""
        return self.part(places, range(self.shape[1]))

    def columns(self, places: Sequence[int]) -> Form:
        """The columns at these places."""
        return self.part(range(self.shape[0]), places)

    @cached_property
    def transposed(self) -> Form:
        """Rows for columns."""
        return self.each(lambda matrix: matrix.transpose())

    def __add__(self, other: Form) -> Form:
        letters = dict(self.letters)
        for key, one in other.letters.items():
            letters[key] = letters[key] + one if key in letters else one
        return Form(self.centre + other.centre, letters)

    def __sub__(self, other: Form) -> Form:
        return self + other.each(lambda matrix: -matrix)

    def __matmul__(self, other: Form) -> Form:
        return self._product(other, lambda a, b: a * b)

    def times(self, other: Form) -> Form:
        """The product entry by entry."""

        def by_entry(a: Any, b: Any) -> Any:
            pairs = zip(a.entries(), b.entries(), strict=True)
            return type(a)(a.nrows(), a.ncols(), [x * y for x, y in pairs])

        return self._product(other, by_entry)

    def _product(self, other: Form, times: Callable[[Any, Any], Any]) -> Form:
        """A bilinear product; what is quadratic in letters widens the centre."""
        centre = times(self.centre, other.centre)
        letters = {key: times(one, other.centre) for key, one in self.letters.items()}
        for key, one in other.letters.items():
            term = times(self.centre, one)
            letters[key] = letters[key] + term if key in letters else term
        if self.letters and other.letters:
            square = times(self.spread, other.spread)
            centre = centre + square * arb(0, 1)
        return Form(centre, letters)

    @property
    def spread(self) -> Any:
        """How far letters move each entry at most: Σ |coefficient|."""
        total = [arb(0)] * (self.shape[0] * self.shape[1])
        for one in self.letters.values():
            total = [sum + abs(entry) for sum, entry in zip(total, one.entries(), strict=True)]
        return arb_mat(*self.shape, [sum.upper() for sum in total])

    def bent(self, function: Bend) -> Form:
        """A function of every entry: where letters move it, a line and what it misses."""
        entries = self.centre.entries()
        if not self.letters:
            return Form(type(self.centre)(*self.shape, [function(x) for x in entries]))
        lines = [
            (arb(0), function(x)) if far == 0 else function.line(x + arb(0, 1) * far)
            for x, far in zip(entries, self.spread.entries(), strict=True)
        ]
        slopes = arb_mat(*self.shape, [slope for slope, _shift in lines])
        bent = Form(slopes).times(self)
        return bent + Form(arb_mat(*self.shape, [shift for _slope, shift in lines]))

    def entry(self, row: int, column: int) -> arb:
        """The range of one entry."""
        value = self.centre[row, column]
        for one in self.letters.values():
            value += arb(0, 1) * one[row, column]
        return value


def stacked(forms: Sequence[Form]) -> Form:
    """The rows of all forms, one below the other."""
    kind, shape = type(forms[0].centre), (sum(form.shape[0] for form in forms), forms[0].shape[1])
    gathered = {}
    for key in {None: None} | {key: None for form in forms for key in form.letters}:
        parts = (form.parts.get(key) or [0] * (form.shape[0] * form.shape[1]) for form in forms)
        gathered[key] = kind(*shape, [entry for part in parts for entry in part])
    return Form(gathered.pop(None), gathered)


def side_by_side(forms: Sequence[Form]) -> Form:
    """The columns of all forms, one after the other."""
    return stacked([form.transposed for form in forms]).transposed


# ------------------------------------------------------------------------------- functions


class Bend:
    """A function of one number: on rationals, on balls, and as a line over a range.

    `smooth` takes balls and power series; it and its second derivative are monotone, so that the
    ends of a range bound them.  `exact` gives the rational value at a rational, where it has one.
    """

    def __init__(
        self, smooth: Callable[[Any], Any], exact: Callable[[fmpq], fmpq], positive: bool = False
    ) -> None:
        self.smooth, self.exact, self.positive = smooth, exact, positive  # above 0 only

    def __call__(self, x: Any) -> Any:
        """The value at a rational, or a ball that contains the values over a ball."""
        return self.exact(x) if isinstance(x, fmpq) else self.over(x)

    def over(self, x: arb) -> arb:
        """A ball that contains the values over a ball."""
        if self.positive and not x > 0:
            return arb.nan()
        if x.rel_accuracy_bits() > NARROW:
            return self.smooth(x)
        return self.smooth(x.lower()).union(self.smooth(x.upper()))

    def line(self, x: arb) -> tuple[arb, arb]:
        """A slope and a shift, with f(t) in slope · t + shift for all t of a ball."""
        middle, far, constant = x.mid(), x.rad(), self.over(x)
        if not constant.is_finite():
            return arb(0), constant
        value, slope, _bow = self.taylor(middle)
        shift = value - slope * middle + (self.bow(x) * far * far).union(arb(0))
        better = shift.is_finite() and not shift.rad() > constant.rad()
        return (slope, shift) if better else (arb(0), constant)

    def bow(self, x: arb) -> arb:
        """Half the second derivative over a ball."""
        return self.taylor(x.lower())[2].union(self.taylor(x.upper())[2])

    def taylor(self, x: arb) -> tuple[arb, arb, arb]:
        """f, f' and f''/2 over a ball."""
        series = self.smooth(arb_series([x, 1], 3))
        return series[0], series[1], series[2]


class Square(Bend):
    """x², which has its least value within a range."""

    def over(self, x: arb) -> arb:
        return (x * x).nonnegative_part()


class InverseRoot(Bend):
    """1/√x of a mean square.  A row of zeros stays zero: the limit of a vanishing eps."""

    def __call__(self, x: Any) -> Any:
        return x if x == 0 else super().__call__(x)


class Gate(Bend):
    """x · gate(x), where the gate rises from 0 to 1: gelu, silu."""

    def __init__(self, gate: Callable[[Any], Any]) -> None:
        super().__init__(lambda x: x * gate(x), _at_zero(0))
        self.gate = gate

    def over(self, x: arb) -> arb:
        if x.rel_accuracy_bits() > NARROW:
            return self.smooth(x)
        return x * self.gate(x.lower()).union(self.gate(x.upper()))

    def bow(self, x: arb) -> arb:
        return self.taylor(x)[2]


class Relu(Bend):
    """The larger of a number and 0."""

    def __init__(self) -> None:
        super().__init__(arb.nonnegative_part, lambda x: max(x, fmpq(0)))

    def over(self, x: arb) -> arb:
        return arb(0) if x <= 0 else x.nonnegative_part()

    def line(self, x: arb) -> tuple[arb, arb]:
        low, high = x.lower(), x.upper()
        if low >= 0 or high <= 0:
            return arb(int(low >= 0)), arb(0)
        slope = (high / (high - low)).mid()
        return slope, arb(0).union(-slope * low).union((1 - slope) * high)


def _at_zero(value: int) -> Callable[[fmpq], fmpq]:
    def exact(x: fmpq) -> fmpq:
        if x != 0:
            raise Undecidable(IRRATIONAL)
        return fmpq(value)

    return exact


def _rational_root(x: fmpq) -> fmpq:
    """1/√x, where x is the square of a rational."""
    top, bottom = isqrt(int(x.p)), isqrt(int(x.q))
    if top * top != x.p or bottom * bottom != x.q:
        raise Undecidable(IRRATIONAL)
    return fmpq(bottom, top)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + (-x).exp())


def _tanh_gate(x: Any) -> Any:
    return _sigmoid((x + x * x * x * ball(Fraction(44715, 1000000))) * (8 / arb.pi()).sqrt())


EXP = Bend(lambda x: x.exp(), _at_zero(1))
INVERSE = Bend(lambda x: 1 / x, lambda x: 1 / x, positive=True)
INVERSE_ROOT = InverseRoot(lambda x: x.rsqrt(), _rational_root, positive=True)
SQUARE = Square(lambda x: x * x, lambda x: x * x)
ACTIVATIONS: dict[str, Bend] = {
    "relu": Relu(),
    "gelu": Gate(lambda x: (1 + (x / arb(2).sqrt()).erf()) / 2),
    "gelu_tanh": Gate(_tanh_gate),
    "silu": Gate(_sigmoid),
}


def ball(value: Fraction | Expression) -> arb:
    """A number of a model file, as a ball."""
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    match value:
        case Number(value=number):
            return ball(number)
        case Name(text=name):
            return arb.pi() if name == "pi" else arb.const_e()
        case Negative(of=one):
            return -ball(one)
        case Sum(terms=parts):
            return sum(map(ball, parts), arb(0))
        case Product(factors=parts):
            return prod(map(ball, parts), start=arb(1))
        case Quotient(top=top, bottom=bottom):
            return ball(top) / ball(bottom)
        case Power(base=base, exponent=exponent):
            whole = rational(exponent)
            if whole is not None and whole.denominator == 1:
                return ball(base) ** int(whole)
            return (ball(base).log() * ball(exponent)).exp()
        case Call(function="relu", argument=one):
            return ACTIVATIONS["relu"](ball(one))
        case Call(function="step", argument=one):
            inside = ball(one)
            return arb(1) if inside > 0 else arb(0) if inside <= 0 else arb(0).union(arb(1))
        case Call(function=name, argument=one):
            return getattr(ball(one), {"ln": "log"}.get(name, name))()
    raise Undecidable(_("a weight is not known"))


# ------------------------------------------------------------------------------- the pass


@dataclass(frozen=True)
class Rows:
    """What is worked out side by side: texts that share their beginnings, or the one of a region.

    A row is a token at a position; `sees` are the rows of its text that it may look at, in the
    order of their positions.  `asked` are the rows whose next token is asked for.
    """

    positions: Sequence[int]
    sees: Sequence[Sequence[int]]
    asked: Sequence[int]


class Network:
    """The forward pass of a model, in balls with letters or in rationals."""

    def __init__(self, model: Model, exact: bool = False) -> None:
        self.spec, self.data, self.exact = model.spec, model.weights, exact
        self.matrix_kind = fmpq_mat if exact else arb_mat
        ranged = sum(_spread(entry) != 0 for tensor in model.weights.values() if not tensor.floats
                     for entry in tensor.data.flat)  # fmt: skip
        self.letters = ranged <= MOST_LETTERS
        self.shares: dict[tuple[str, int, int], Any] = {}  # attention weights of the last pass

    # weights

    def number(self, value: Fraction | Expression) -> Any:
        """A number in this pass's arithmetic."""
        if not self.exact:
            return ball(value)
        known = value if isinstance(value, Fraction) else rational(value)
        if known is None:
            raise Undecidable(IRRATIONAL)
        return fmpq(known.numerator, known.denominator)

    def constant(self, rows: Sequence[Sequence[Any]]) -> Form:
        """A matrix of numbers without letters."""
        width = len(rows[0])
        return Form(self.matrix_kind(len(rows), width, [one for row in rows for one in row]))

    def entries(self, name: str, places: Sequence[tuple[int, ...]], rows: int = 1) -> Form:
        """Some entries of a weight; one that is known within a range has a letter of its own."""
        data, centres, letters = self.data[name].data, [], {}
        for n, place in enumerate(places):
            entry = data[place]
            far = _spread(entry)
            centre = self.number(_middle(entry))
            if far and self.letters and not self.exact:
                alone = [arb(0)] * len(places)
                alone[n] = ball(far)
                letters[name, place] = arb_mat(rows, len(places) // rows, alone)
            elif far:
                centre += self.number(far) * arb(0, 1)
            centres.append(centre)
        return Form(self.matrix_kind(rows, len(places) // rows, centres), letters)

    @cache
    def weight(self, name: str) -> Form:
        """A whole weight; one of a single axis is a row."""
        shape = self.data[name].shape
        places = list(product(*map(range, shape)))
        return self.entries(name, places, shape[0] if len(shape) == 2 else 1)

    def linear(self, x: Form, name: str, bias: bool) -> Form:
        """x through the matrix of this name."""
        matrix = self.weight(name)
        found = x @ (matrix if self.spec.layout == "in_out" else matrix.transposed)
        return found + self.weight(f"{name}_bias").rows([0] * x.shape[0]) if bias else found

    # from tokens to logits

    def logits(self, tokens: Form, rows: Rows, everywhere: bool = False) -> Form:
        """One row of logits for each row asked for.  `tokens`: the embedding of each row's token.

        Only these rows leave the last block, unless all are wanted `everywhere`.
        """
        spec, all = self.spec, range(len(rows.positions))
        x = tokens if spec.embed_scale is None else self.scaled(tokens, spec.embed_scale)
        if spec.position == "learned":
            x = x + self.weight("embed.position").rows(rows.positions)
        elif spec.position == "sinusoidal":
            x = x + self._sinusoids(rows.positions)
        last = len(spec.blocks) - 1
        for layer, block in enumerate(spec.blocks):
            queries = rows.asked if layer == last and not everywhere else all
            x = self._block(f"block.{layer}", block, x, rows, queries)
        if everywhere or not spec.blocks:
            x = x.rows(rows.asked)
        x = self._norm("final.norm", spec.final_norm, x)
        if spec.tied:
            x = x @ self.weight("embed.token").transposed
        else:
            x = self.linear(x, "head", False)
        return x + self.weight("head_bias").rows([0] * x.shape[0]) if spec.head_bias else x

    def scaled(self, x: Form, scale: Expression) -> Form:
        """x times a number of the architecture."""
        factor = self.number(scale)
        return x.each(lambda matrix: matrix * factor)

    def _block(self, at: str, block: BlockSpec, x: Form, rows: Rows, queries: Sequence[int]) -> Form:
        """Attention and the MLP, each a side-trip that adds to the stream of some rows."""
        pre, entering = block.norm_place == "pre", x.rows(queries)
        stream = entering
        if block.attention:
            read = self._norm(f"{at}.attn.norm", block.attn_norm, x) if pre else x
            stream = stream + self._attention(f"{at}.attn", block.attention, read, rows, queries)
            stream = stream if pre else self._norm(f"{at}.attn.norm", block.attn_norm, stream)
        if block.mlp:
            read = entering if block.parallel else stream
            read = self._norm(f"{at}.mlp.norm", block.mlp_norm, read) if pre else read
            stream = stream + self._mlp(f"{at}.mlp", block.mlp, read)
            stream = stream if pre else self._norm(f"{at}.mlp.norm", block.mlp_norm, stream)
        return stream

    def _norm(self, at: str, norm: NormSpec, x: Form) -> Form:
        """Each row over the root of its mean square; a row of zeros over zero stays zero."""
        if norm.kind == "none":
            return x
        height, width = x.shape
        share = self.number(Fraction(1, width))
        if norm.kind == "layernorm":
            x = x - (x @ self.constant([[share] * width] * width))
        square = x.bent(SQUARE) @ self.constant([[share]] * width)
        eps = self.constant([[self.number(norm.eps)]] * height)
        x = x.times((square + eps).bent(INVERSE_ROOT).columns([0] * width))
        if norm.gain:
            x = x.times(self.weight(f"{at}.gain").rows([0] * height))
        return x + self.weight(f"{at}.bias").rows([0] * height) if norm.bias else x

    def _mlp(self, at: str, mlp: MlpSpec, x: Form) -> Form:
        """Each row on its own, through the activation."""
        hidden = self.linear(x, f"{at}.hidden", mlp.hidden_bias)
        bent = self.linear(x, f"{at}.gate", mlp.gate_bias) if mlp.gated else hidden
        if mlp.activation != "identity":
            bent = bent.bent(ACTIVATIONS[mlp.activation])
        return self.linear(bent.times(hidden) if mlp.gated else bent, f"{at}.out", mlp.out_bias)

    def _attention(
        self, at: str, attn: AttentionSpec, x: Form, rows: Rows, queries: Sequence[int]
    ) -> Form:
        """Each query row looks at rows of its own text and mixes their values."""
        q, k, v = self._queries_keys_values(at, attn, x, rows.positions, queries)
        seen = cache(lambda head, place, keys: self._seen(at, attn, head, place, keys))
        mixed = []
        for n, query in enumerate(queries):
            others = tuple(rows.positions[row] for row in rows.sees[query])
            heads = []
            for head in range(attn.heads):
                keys, added = seen(head, rows.positions[query], others)
                here = [rows.sees[query][key] for key in keys]
                own = head * attn.kv_heads // attn.heads
                scores = q[head].rows([n]) @ k[own].rows(here).transposed
                if attn.scale is not None:
                    scores = self.scaled(scores, attn.scale)
                shares = self._softmax(scores if added is None else scores + added)
                self.shares[at, head, query] = dict(zip(here, range(len(here)), strict=True)), shares
                heads.append(shares @ v[own].rows(here))
            mixed.append(side_by_side(heads))
        found = stacked(mixed)
        return self.linear(found, f"{at}.out", attn.out_bias) if attn.out else found

    def _queries_keys_values(
        self, at: str, attn: AttentionSpec, x: Form, positions: Sequence[int], queries: Sequence[int]
    ) -> list[list[Form]]:
        """q, k and v, a list of heads each: through a matrix each, or cut out of a packed one."""
        starts, stride = (0, attn.q_width, attn.q_width + attn.kv_width), attn.d_head
        if attn.packed == "per_head":
            starts, stride = (0, attn.d_head, 2 * attn.d_head), 3 * attn.d_head
        biases, norms = (attn.q_bias, attn.k_bias, attn.v_bias), (attn.q_norm, attn.k_norm, None)
        packed = self.linear(x, f"{at}.qkv", attn.q_bias) if attn.packed else None
        found = []
        for name, first, bias, norm in zip("qkv", starts, biases, norms, strict=True):
            rows = queries if name == "q" else range(len(positions))
            places = [positions[row] for row in rows]
            if packed is not None:
                whole = packed.rows(rows)
            else:
                whole, first, stride = self.linear(x.rows(rows), f"{at}.{name}", bias), 0, attn.d_head
            heads = []
            for head in range(attn.heads if name == "q" else attn.kv_heads):
                begin = first + head * stride
                one = whole.columns(range(begin, begin + attn.d_head))
                if norm is not None:
                    one = self._norm(f"{at}.{name}_norm", norm, one)
                    one = self._turned(at, attn.rotary, one, places) if attn.rotary else one
                heads.append(one)
            found.append(heads)
        return found

    def _turned(self, at: str, rotary: RotarySpec, x: Form, places: Sequence[int]) -> Form:
        """RoPE: each pair of columns turned by an angle that grows with the position."""
        half = rotary.width // 2
        given = self.weight(f"{at}.frequencies") if rotary.given else None
        near = rotary.pairing == "half"
        pairs = [(i, i + half) if near else (2 * i, 2 * i + 1) for i in range(half)]
        partner, zero, one = list(range(x.shape[1])), self.number(Fraction(0)), self.number(Fraction(1))
        cosines = [[one] * x.shape[1] for _place in places]
        sines = [[zero] * x.shape[1] for _place in places]
        for i, (a, b) in enumerate(pairs):
            partner[a], partner[b] = b, a
            for row, place in enumerate(places):
                rate = given.entry(0, i) if given else self._rate(rotary.base, i, half)
                sine, cosine = self._turn(rate, place)
                cosines[row][a] = cosines[row][b] = cosine
                sines[row][a], sines[row][b] = -sine, sine
        turned = x.columns(partner).times(self.constant(sines))
        return x.times(self.constant(cosines)) + turned

    def _sinusoids(self, places: Sequence[int]) -> Form:
        half = self.spec.d_model // 2
        rates = [self._rate(self.spec.position_base, i, half) for i in range(half)]
        return self.constant([[one for rate in rates for one in self._turn(rate, place)]
                              for place in places])  # fmt: skip

    @cache
    def _rate(self, base: Fraction, i: int, half: int) -> Any:
        """base^(-i/half)."""
        return fmpq(0) if self.exact else (ball(base).log() * -i / half).exp()

    def _turn(self, rate: Any, place: int) -> tuple[Any, Any]:
        """The sine and the cosine of rate · place."""
        if place == 0:
            return self.number(Fraction(0)), self.number(Fraction(1))
        if self.exact:
            raise Undecidable(IRRATIONAL)
        sine, cosine = (rate * place).sin_cos()
        return sine, cosine

    def _seen(
        self, at: str, attn: AttentionSpec, head: int, place: int, others: tuple[int, ...]
    ) -> tuple[list[int], Form | None]:
        """The keys that a query at this position looks at, and what is added to their scores."""
        last = place if attn.causal else max(others)
        first = 0 if attn.window is None else place - attn.window + 1
        table = self.data[f"{at}.score_table"].data if attn.score_table else None
        keys = [
            key for key, other in enumerate(others)
            if first <= other <= last and (table is None or table[head, place, other] is not None)
        ]  # fmt: skip
        if not keys:
            raise Undecidable(f"{at}: position {place} looks at nothing")
        added = None
        if attn.score_table:
            added = self.entries(f"{at}.score_table", [(head, place, others[key]) for key in keys])
        if attn.alibi:
            far = self.constant([[self.number(Fraction(-abs(place - others[key]))) for key in keys]])
            fallen = self.entries(f"{at}.slopes", [(head,)]) @ far
            added = fallen if added is None else added + fallen
        return keys, added

    def _softmax(self, scores: Form) -> Form:
        """The shares of one row of scores; differences come first, so that common letters cancel."""
        keys, one = scores.shape[1], self.number(Fraction(1))
        if keys == 1:
            return self.constant([[one]])
        centres = scores.parts[None]
        top = centres.index(max(centres)) if self.exact else _largest(centres)
        powers = (scores - scores.columns([top] * keys)).bent(EXP)
        total = powers @ self.constant([[one]] * keys)
        return powers.times(total.bent(INVERSE).columns([0] * keys))


def _largest(balls: Sequence[arb]) -> int:
    return max(range(len(balls)), key=lambda place: float(balls[place].mid()))


def _middle(entry: Any) -> Fraction | Expression:
    """The number that a weight is, or that the range it lies in has in its middle."""
    if isinstance(entry, Expression):
        return entry
    if entry is None or hasattr(entry, "__dataclass_fields__"):
        if not hasattr(entry, "value"):
            raise Undecidable("a weight is not known")
        return Fraction(entry.value)
    return Fraction(entry)


def _spread(entry: Any) -> Fraction:
    """How far a weight may lie from its middle: printed to so many places, or within a radius."""
    if hasattr(entry, "places"):
        return Fraction(1, 2 * 10**entry.places)
    return Fraction(getattr(entry, "radius", 0))
