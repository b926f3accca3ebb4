"""The checker's forward pass, written again from `ModelSpec`, once for numbers of every kind.

Rows are lists of numbers.  Texts that share a beginning share its rows.  All texts of an area are
one text whose embeddings are `Form`s: letters stand for variables, and for what is beside a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache, reduce
from operator import add, mul
from typing import Any, NamedTuple

from flint import arb, arb_mat, fmpq

from byhand import expression as tree
from byhand.language import _
from byhand.model import Model
from byhand.proving.domain import Place, Varies
from byhand.rope_scaling import Scaling
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, NormSpec, refuse_forward_only
from byhand.verifying.areas import Area
from byhand.verifying.numbers import (
    ACTIVATIONS,
    EXP,
    INVERSE,
    INVERSE_ROOT,
    SQUARE,
    Form,
    Number,
    Wrong,
    ball,
    ends,
    middle,
    too_close,
)

NARROW = arb(2) ** -80  # how far rows may be from a line, beside their size, to lie on it
ZERO, ONE = Fraction(0), Fraction(1)
Row = list[Number]


class Rows(NamedTuple):
    """Tokens that are worked out side by side: those of an area, or of texts that share beginnings.

    A row sees rows of its own text, in the order of their positions.
    """

    positions: Sequence[int]
    sees: Sequence[Sequence[int]]
    asked: Sequence[int]  # the last row of each text


class Network:
    """The forward pass of a model, in balls and forms, or in rationals."""

    def __init__(self, model: Model, moved: Fraction = ZERO, exact: bool = False) -> None:
        refuse_forward_only(model.spec, _("the checker of certificates"), one_length=False)
        self.spec, self.data, self.moved, self.exact = model.spec, model.weights, moved, exact
        self.everywhere = False  # whether all rows are asked for their attention
        self.shares: dict[tuple[str, int, int], dict[int, Number]] = {}  # of the last pass
        self.weight, self.hull = cache(self._weight), cache(self._hull)
        self.columns, self.turn = cache(self._columns), cache(self._turn)
        self.zero: Number = fmpq(0) if exact else arb(0)
        self.one: Number = self.zero + 1
        objects = (tensor.data.flat for tensor in self.data.values() if not tensor.floats)
        self.ranges = bool(moved) or any(hasattr(x, "radius") for data in objects for x in data)
        self.plain = False  # whether all numbers of the pass are balls

    def number(self, value: Any, letter: Any = None) -> Number:
        """A number of the model; one that is known within a range has a letter."""
        if hasattr(value, "radius"):
            if self.exact:
                raise too_close()
            return Form(ball(value.value), {letter: ball(value.radius)})
        if not self.exact:
            return ball(value)
        known = value if isinstance(value, Fraction | int) else tree.rational(value)
        if known is None:
            raise too_close()
        return fmpq(known.numerator, known.denominator)

    def _weight(self, name: str) -> Any:
        """A weight as nested lists."""

        def nested(data: Any, place: tuple[int, ...]) -> Any:
            if len(place) < len(self.data[name].shape):
                return [nested(part, (*place, n)) for n, part in enumerate(data)]
            exact = Fraction(float(data)) if self.data[name].floats else data
            return None if exact is None else self.number(exact, (name, place))

        return nested(self.data[name].data, ())

    def _columns(self, name: str) -> tuple[list[list[tuple[int, Number]]], arb_mat | None]:
        """The columns of a matrix without their zeros, and all of it where it is plain."""
        rows = self.weight(name)
        turned = self.spec.layout == "out_in" or name == "embed.token"
        columns = rows if turned else list(zip(*rows, strict=True))
        sparse = [[(n, x) for n, x in enumerate(column) if not _is_zero(x)] for column in columns]
        plain = all(isinstance(x, arb) for row in rows for x in row)
        return sparse, arb_mat([list(column) for column in columns]).transpose() if plain else None

    def linear(self, x: list[Row], name: str, bias: bool = False) -> list[Row]:
        """Rows through the matrix of this name."""
        columns, plain = self.columns(name)
        found: list[Row]
        if self.plain and plain is not None:
            found = (arb_mat(x) * plain).tolist()
        else:
            found = [[sum((row[n] * w for n, w in column), self.zero) for column in columns]
                     for row in x]  # fmt: skip
        return self.plus(found, [self.weight(f"{name}_bias")] * len(x)) if bias else found

    def plus(self, x: list[Row], y: Iterable[Row]) -> list[Row]:
        """The sums of rows."""
        return [
            [a + b for a, b in zip(one, two, strict=True)] for one, two in zip(x, y, strict=True)
        ]

    def logits(self, tokens: list[Row], rows: Rows) -> list[Row]:
        """The logits of each row asked for, where these are the embeddings of all rows.

        Only the rows asked for leave the last block, unless attention is wanted `everywhere`.
        """
        spec, x, self.rows = self.spec, tokens, rows
        self.shares.clear()
        if spec.embed_scale is not None:
            scale = self.number(spec.embed_scale)
            x = [[one * scale for one in row] for row in x]
        if self.moved:
            far = ball(self.moved)
            moves = (
                [Form(arb(0), {("moved", p, k): far}) for k in range(spec.d_model)]
                for p in rows.positions
            )
            x = self.plus(x, moves)
        if spec.position == "learned":
            x = self.plus(x, (self.weight("embed.position")[p] for p in rows.positions))
        elif spec.position == "sinusoidal":
            half = spec.d_model // 2
            turns = (
                [self.turn(spec.position_base, i, half, p) for i in range(half)]
                for p in rows.positions
            )
            x = self.plus(x, ([one for turn in row for one in turn] for row in turns))
        for layer, block in enumerate(spec.blocks):
            last = layer == len(spec.blocks) - 1 and not self.everywhere
            x = self._block(f"block.{layer}", block, x, rows.asked if last else range(len(x)))
        x = x if spec.blocks and not self.everywhere else [x[row] for row in rows.asked]
        x = self._norm("final.norm", spec.final_norm, x)
        x = self.linear(x, "embed.token" if spec.tied else "head")
        return self.plus(x, [self.weight("head_bias")] * len(x)) if spec.head_bias else x

    def _block(self, at: str, block: BlockSpec, x: list[Row], queries: Sequence[int]) -> list[Row]:
        """Attention and the MLP: each reads the stream and adds to that of some rows."""
        pre, stream = block.norm_place == "pre", [x[row] for row in queries]
        entering = stream
        if block.attention:
            read = self._norm(f"{at}.attn.norm", block.attn_norm, x) if pre else x
            stream = self.plus(
                stream, self._attention(f"{at}.attn", block.attention, read, queries)
            )
            stream = stream if pre else self._norm(f"{at}.attn.norm", block.attn_norm, stream)
        if block.mlp:
            read = entering if block.parallel else stream
            read = self._norm(f"{at}.mlp.norm", block.mlp_norm, read) if pre else read
            stream = self.plus(stream, self._mlp(f"{at}.mlp", block.mlp, read))
            stream = stream if pre else self._norm(f"{at}.mlp.norm", block.mlp_norm, stream)
        return stream

    def _norm(self, at: str, norm: NormSpec, x: list[Row]) -> list[Row]:
        """Each row over the root of its mean square, times a gain, plus a bias."""
        if norm.kind == "none":
            return x
        share, eps, found = self.number(Fraction(1, len(x[0]))), self.number(norm.eps), []
        for row in x:
            if norm.kind == "layernorm":
                mean = sum(row, self.zero) * share
                row = [one - mean for one in row]
            root = INVERSE_ROOT(sum(map(SQUARE, row), self.zero) * share + eps)
            row = [one * root for one in row]
            if norm.gain:
                row = [one * gain for one, gain in zip(row, self.weight(f"{at}.gain"), strict=True)]
            found.append(row)
        return self.plus(found, [self.weight(f"{at}.bias")] * len(x)) if norm.bias else found

    def _mlp(self, at: str, mlp: MlpSpec, x: list[Row]) -> list[Row]:
        """Each row on its own, through the activation."""
        hidden = self.linear(x, f"{at}.hidden", mlp.hidden_bias)
        bent = self.linear(x, f"{at}.gate", mlp.gate_bias) if mlp.gated else hidden
        bent = [list(map(ACTIVATIONS[mlp.activation], row)) for row in bent]
        if mlp.gated:
            bent = [
                [a * b for a, b in zip(*both, strict=True)]
                for both in zip(bent, hidden, strict=True)
            ]
        return self.linear(bent, f"{at}.out", mlp.out_bias)

    def _attention(
        self, at: str, attn: AttentionSpec, x: list[Row], queries: Sequence[int]
    ) -> list[Row]:
        """Each row asks (q) the rows that it sees (k) and mixes what they hand on (v)."""
        *asking, v = self._queries_keys_values(at, attn, x, queries)
        scaled, found = self._scaling(attn), []
        added = cache(lambda *what: self._seen(at, attn, *what))
        fixed = cache(lambda *what: self._softmax(added(*what)))  # shares that no query changes
        for n, query in enumerate(queries):
            rows, mixed = self.rows.sees[query], Row()
            for head in range(attn.heads):
                own = head * attn.kv_heads // attn.heads
                where = head, self.rows.positions[query], len(rows)
                if asking:
                    q, k = asking[0][head][n], asking[1][own]
                    scores = {
                        p: scaled(_dot(q, k[rows[p]])) + more for p, more in added(*where).items()
                    }
                shares = self._softmax(scores) if asking else fixed(*where)
                self.shares[at, head, query] = shares
                values = zip(*(v[own][rows[p]] for p in shares), strict=True)
                mixed += [_dot(shares.values(), column) for column in values]
                mixed += [self.zero] * (0 if shares else attn.d_head)
            found.append(mixed)
        return self.linear(found, f"{at}.out", attn.out_bias) if attn.out else found

    def _scaling(self, attn: AttentionSpec) -> Callable[[Number], Number]:
        """What is done to q·k; 0 stays 0, be the scale rational or not."""
        if self.exact and attn.scale is not None:
            return lambda x: x if x == 0 else x * self.number(attn.scale)
        scale = self.one if attn.scale is None else self.number(attn.scale)
        return lambda x: x * scale

    def _queries_keys_values(
        self, at: str, attn: AttentionSpec, x: list[Row], queries: Sequence[int]
    ) -> list[list[list[Row]]]:
        """q, k and v by head and row: through a matrix each, or cut out of a packed one."""
        wide, q_width, kv_width = attn.d_head, attn.q_width, attn.kv_width
        starts, stride = (0, q_width, q_width + kv_width), wide
        if attn.packed == "per_head":
            starts, stride = (0, wide, 2 * wide), 3 * wide
        packed = self.linear(x, f"{at}.qkv", attn.q_bias) if attn.packed else None
        biases, found = {"q": attn.q_bias, "k": attn.k_bias, "v": attn.v_bias}, []
        for name, start in zip("qkv", starts, strict=True):
            if name != "v" and not attn.queries:
                continue
            rows = queries if name == "q" else range(len(x))
            if packed is None:
                every = self.linear([x[row] for row in rows], f"{at}.{name}", biases[name])
            else:
                every = [packed[row][start:] for row in rows]
            firsts = [h * stride for h in range(attn.heads if name == "q" else attn.kv_heads)]
            heads = [[row[first : first + wide] for row in every] for first in firsts]
            if name != "v":
                norm = attn.q_norm if name == "q" else attn.k_norm
                heads = [self._norm(f"{at}.{name}_norm", norm, head) for head in heads]
                heads = [self._rotated(at, attn, head, rows) for head in heads]
            found.append(heads)
        return found

    def _rotated(
        self, at: str, attn: AttentionSpec, x: list[Row], rows: Sequence[int]
    ) -> list[Row]:
        """RoPE: each pair of entries turned by an angle that grows with the position."""
        if attn.rotary is None:
            return x
        rotary, found, half = attn.rotary, [list(row) for row in x], attn.rotary.width // 2
        rates = f"{at}.frequencies" if rotary.given else rotary.scaling
        factor = self.one if rotary.magnitude is None else self.number(rotary.magnitude)
        for row, place in zip(found, (self.rows.positions[row] for row in rows), strict=True):
            for i in range(half):
                a, b = (i, i + half) if rotary.pairing == "half" else (2 * i, 2 * i + 1)
                turn = self.turn(rotary.base, i, half, place, rates)
                sine, cosine = (part * factor for part in turn)
                row[a], row[b] = row[a] * cosine - row[b] * sine, row[a] * sine + row[b] * cosine
        return found

    def _turn(
        self, base: Fraction, i: int, half: int, place: int, rates: str | Scaling | None = None
    ) -> tuple[Number, Number]:
        """The sine and the cosine of place · base^(-i/half), or of place · a rate that is given."""
        if place == 0:
            return self.zero, self.one
        if self.exact:
            raise too_close()
        if rates is None:
            rate = (ball(base).log() * -i / half).exp()
        elif isinstance(rates, Scaling):
            rate = ball(rates.frequencies(base, 2 * half, 1)[i])
        else:
            rate = reduce(arb.union, ends(self.weight(rates)[i]))
        sine, cosine = (rate * place).sin_cos()
        return sine, cosine

    def _seen(
        self, at: str, attn: AttentionSpec, head: int, here: int, length: int
    ) -> dict[int, Number]:
        """The positions that a position looks at, and what is added to the score of each."""
        table = self.weight(f"{at}.score_table")[head][here] if attn.score_table else None
        slope = self.weight(f"{at}.slopes")[head] if attn.alibi else self.zero
        first = 0 if attn.window is None else max(0, here - attn.window + 1)
        found = {}
        for place in range(first, min(length, here + 1) if attn.causal else length):
            if table is None:
                found[place] = slope * -abs(here - place)
            elif table[place] is not None:
                found[place] = slope * -abs(here - place) + table[place]
        if not found and not attn.nothing:
            raise Wrong(_("position {position} may look at no key").format(position=here))
        return found

    def _softmax(self, scores: dict[int, Number]) -> dict[int, Number]:
        """The shares of scores; they are subtracted first, so that common letters cancel."""
        if len(scores) < 2:
            return dict.fromkeys(scores, self.one)
        top = max(scores, key=scores.__getitem__ if self.plain else lambda p: middle(scores[p]))
        powers = {p: self.one if p == top else EXP(x - scores[top]) for p, x in scores.items()}
        inverse = INVERSE(sum(powers.values(), self.zero))
        return {p: power * inverse for p, power in powers.items()}

    def share(self, address: str, index: Sequence[int], text: int) -> Number:
        """An attention weight of the last pass: of a head, a query and a key of a text."""
        at, _dot, what = address.rpartition(".")
        if what != "weights" or not at.endswith(".attn"):
            raise Wrong(_("bounds of {address} are not checked").format(address=address))
        rows = self.rows.sees[self.rows.asked[text]]
        heads = 1 + max(head for block, head, _query in self.shares if block == at)
        shares = self.shares[at, index[0] % heads, rows[index[1]]]
        return shares.get(index[2] % len(rows), self.zero)

    def texts(self, texts: Sequence[tuple[int, ...]]) -> list[Row]:
        """The logits after each text; where no token sees a later one, beginnings are shared."""
        rows, causal = dict[Any, int](), self.spec.causal
        tokens, places, sees, asked = list[int](), list[int](), list[list[int]](), list[int]()
        for n, text in enumerate(texts):
            path: list[int] = []
            for place, token in enumerate(text):
                key = text[: place + 1] if causal else (n, place)
                if key not in rows:
                    rows[key] = len(tokens)
                    sees.append([*path, len(tokens)] if causal else path)
                    tokens.append(token)
                    places.append(place)
                path.append(rows[key])
            asked.append(path[-1])
        table = self.weight("embed.token")
        self.plain = not self.exact and not self.ranges
        return self.logits([table[token] for token in tokens], Rows(places, sees, asked))

    def area(self, area: Area) -> list[Row]:
        """The logits after all texts of an area: one row of forms."""
        length = len(area.shape.places)
        tokens, self.plain = [self._held(area, place) for place in area.shape.places], False
        return self.logits(tokens, Rows(range(length), [range(length)] * length, [length - 1]))

    def _held(self, area: Area, place: Place) -> Row:
        """The row that a place holds: letters are variables, or the place's own."""
        own, number = area.shape.places.index(place), area.number(place)
        if isinstance(number, int):
            return list(self.weight("embed.token")[place.tokens[number]])
        values = sorted(place.tokens if number is None else number.among(place.tokens))
        if not values:
            raise Varies(*area.allowed)
        base, slopes, beside = self.hull(tuple(values), tuple(place.tokens[v] for v in values))
        form: Number
        if number is None or number.linear is None:
            form = _between((own, -1), values)
        else:
            parts = (_between(name, area.allowed[name]) * f for name, f in number.factors.items())
            form = sum(parts, arb(number.low))
        return [
            slope * form + x + (0 if far is None else Form(arb(0), {(own, k): far}))
            for k, (x, slope, far) in enumerate(zip(base, slopes, beside, strict=True))
        ]

    def _hull(self, values: tuple[int, ...], tokens: tuple[int, ...]) -> tuple[Row, Row, Row]:
        """Rows of tokens by number: base + slope · number, and how far entries leave that line."""
        table, base, slopes, beside = self.weight("embed.token"), Row(), Row(), Row()
        run = max(values[-1] - values[0], 1)
        for column in zip(*(table[token] for token in tokens), strict=True):
            entries = [reduce(arb.union, ends(one)) for one in column]
            steep = ((entries[-1] - entries[0]) / run).mid()
            lines = []
            for slope in (steep, arb(0)):
                left = (x - slope * v for x, v in zip(entries, values, strict=True))
                lines.append((slope, reduce(arb.union, left)))
            slope, left = min(lines, key=lambda one: one[1].rad())
            narrow = left.rad() <= NARROW * abs(entries[-1]).upper()
            slopes.append(slope)
            base.append(left if narrow else left.mid())
            beside.append(None if narrow else left.rad())
        return base, slopes, beside


def _is_zero(x: Number) -> bool:
    return not isinstance(x, Form) and bool(x == 0)  # certainly


def _dot(one: Iterable[Number], two: Iterable[Number]) -> Number:
    return reduce(add, map(mul, one, two))


def _between(letter: Any, values: Sequence[int]) -> Form:
    """A number between the first and the last of some values, by a letter."""
    low, high = values[0], values[-1]
    return Form(ball(Fraction(low + high, 2)), {letter: ball(Fraction(high - low, 2))})
