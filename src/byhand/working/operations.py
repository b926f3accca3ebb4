"""The working of the operations of a transformer, one method an operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from byhand.expression import (
    ONE,
    Call,
    Entry,
    Expression,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
)
from byhand.plan import Step
from byhand.working.activations import activation
from byhand.working.lines import TWO, E, Index, Lines, added, cell, number, scaled


class Operations(Lines):
    """Each method writes one entry of a step as an expression of the entries it reads."""

    def _embed(self, step: Step, at: Index) -> Expression:
        ids: Sequence[int] = step.attributes.get("ids") or self.given[step.inputs["ids"]]
        entry = Entry(step.inputs["table"], (ids[at[0]], at[1]))
        scale = step.attributes.get("scale")
        return entry if scale is None else Product((entry, scale))

    def _sinusoid(self, step: Step, at: Index) -> Expression:
        settings, width = step.attributes, step.attributes["width"]
        pair, second = divmod(at[1], 2)
        if settings.get("pairing") == "half":
            second, pair = divmod(at[1], (width + 1) // 2)
        power = Power(Number(settings["base"]), Number(Fraction(2 * pair, width)))
        return Call(
            "cos" if second else "sin", Quotient(number(settings["positions"][at[0]]), power)
        )

    def _add(self, step: Step, at: Index) -> Expression:
        return Sum((Entry(step.inputs["x"], at), Entry(step.inputs["y"], at)))

    def _multiply(self, step: Step, at: Index) -> Expression:
        return Product((Entry(step.inputs["x"], at), Entry(step.inputs["y"], at)))

    def _row(self, step: Step, at: Index) -> tuple[Entry, ...]:
        x = step.inputs["x"]
        return tuple(Entry(x, (*at, i)) for i in range(self.shape(x)[-1]))

    def _mean(self, step: Step, at: Index) -> Expression:
        row = self._row(step, at)
        return Quotient(Sum(row), number(len(row)))

    def _center(self, step: Step, at: Index) -> Expression:
        mean = Entry(step.inputs["mean"], at[:-1])
        return Sum((Entry(step.inputs["x"], at), Negative(mean)))

    def _mean_square(self, step: Step, at: Index) -> Expression:
        row = self._row(step, at)
        return Quotient(Sum(tuple(Power(x, TWO) for x in row)), number(len(row)))

    def _root(self, step: Step, at: Index) -> Expression:
        x, eps = Entry(step.inputs["x"], at), step.attributes["eps"]
        return Call("sqrt", Sum((x, Number(eps))) if eps else x)

    def _normalize(self, step: Step, at: Index) -> Expression:
        return Quotient(Entry(step.inputs["x"], at), Entry(step.inputs["by"], at[:-1]))

    def _affine(self, step: Step, at: Index) -> Expression:
        result: Expression = Entry(step.inputs["x"], at)
        if "gain" in step.inputs:
            gain: Expression = self._of_row(step.inputs["gain"], at)
            if step.attributes.get("plus_one"):
                gain = Sum((ONE, gain))
            result = Product((result, gain))
        if "bias" in step.inputs:
            result = Sum((result, self._of_row(step.inputs["bias"], at)))
        return result

    def _of_row(self, weight: str, at: Index) -> Entry:
        """The entry of a gain or a bias that all rows share, or all rows of a head."""
        own = (at[0], 0, at[-1]) if len(self.shape(weight)) == 3 else at[-1:]
        return Entry(weight, own)

    # ------------------------------------------------------------------ entry by entry

    def _rescale(self, step: Step, at: Index) -> Expression:
        result = scaled([Entry(step.inputs["x"], at)], step.attributes.get("by"))
        plus = step.attributes.get("plus")
        return result if plus is None else Sum((result, Number(plus)))

    def _soft_cap(self, step: Step, at: Index) -> Expression:
        return capped(Entry(step.inputs["x"], at), step.attributes["cap"])

    def _clamp(self, step: Step, at: Index) -> Expression:
        """The larger of x and a is a + relu(x - a), the smaller is a - relu(a - x)."""
        x: Expression = Entry(step.inputs["x"], at)
        least, most = step.attributes.get("least"), step.attributes.get("most")
        if least is None:
            return x if most is None else _less(Number(most), Call("relu", _less(Number(most), x)))
        above = Call("relu", Sum((x, Number(-least))))
        if most is None:
            return Sum((Number(least), above))
        return _less(Number(most), Call("relu", _less(Number(most - least), above)))

    def _weigh(self, step: Step, at: Index) -> Expression:
        return Product((Entry(step.inputs["by"], (at[0], 0)), Entry(step.inputs["x"], at)))

    def _constants(self, step: Step, at: Index) -> Expression:
        value: Expression = step.attributes["values"][at[0]]
        return value

    # ------------------------------------------------------------------ products

    def _linear(self, step: Step, at: Index) -> Expression:
        x, weight = step.inputs["x"], step.inputs["weight"]
        if step.attributes.get("heads"):
            head, position, inner = at
            column = head * step.shape[-1] + inner
        else:
            position, column = at
        shape = self.shape(x)
        if len(shape) == 3:
            row = [Entry(x, (h, position, i)) for h in range(shape[0]) for i in range(shape[2])]
        else:
            row = [Entry(x, (position, i)) for i in range(shape[1])]
        terms: list[Expression] = [
            Product((entry, cell(weight, step.attributes["layout"], i, column)))
            for i, entry in enumerate(row)
        ]
        if "bias" in step.inputs:
            terms.append(Entry(step.inputs["bias"], (column,)))
        return Sum(tuple(terms))

    def _split_heads(self, step: Step, at: Index) -> Expression:
        head, position, inner = at
        column = step.attributes["start"] + head * step.attributes["stride"] + inner
        return Entry(step.inputs["x"], (position, column))

    def _merge_heads(self, step: Step, at: Index) -> Expression:
        width = self.shape(step.inputs["x"])[2]
        return Entry(step.inputs["x"], (at[1] // width, at[0], at[1] % width))

    def _join(self, step: Step, at: Index) -> Expression:
        head, position, inner = at
        past = self.shape(step.inputs["x"])[1]
        if position < past:
            return Entry(step.inputs["x"], at)
        return Entry(step.inputs["y"], (head, position - past, inner))

    def _beside(self, step: Step, at: Index) -> Expression:
        x, y = step.inputs["x"], step.inputs["y"]
        head, position, inner = at
        width = self.shape(x)[2]
        if inner < width:
            return Entry(x, at)
        return Entry(y, (head if self.shape(y)[0] > 1 else 0, position, inner - width))

    def _rotate(self, step: Step, at: Index) -> Expression:
        x, settings = step.inputs["x"], step.attributes
        head, position, inner = at
        width: int = settings["width"]
        if inner >= width:
            return Entry(x, at)
        if settings["pairing"] == "half":
            pair, second = inner % (width // 2), inner >= width // 2
            first_at, second_at = pair, pair + width // 2
        else:
            pair, second = inner // 2, inner % 2 == 1
            first_at, second_at = 2 * pair, 2 * pair + 1
        a, b = Entry(x, (head, position, first_at)), Entry(x, (head, position, second_at))
        frequency: Expression
        if "frequencies" in step.inputs:
            frequency = Entry(step.inputs["frequencies"], (pair,))
        else:
            frequency = Power(Number(settings["base"]), Number(Fraction(-2 * pair, width)))
        angle = times_position(settings["positions"][position], frequency)
        sin, cos = Call("sin", angle), Call("cos", angle)
        if second:
            turned = Sum((Product((a, sin)), Product((b, cos))))
        else:
            turned = Sum((Product((a, cos)), Negative(Product((b, sin)))))
        magnitude = settings.get("magnitude")
        return turned if magnitude is None else Product((magnitude, turned))

    def _scores(self, step: Step, at: Index) -> Expression:
        q, k, settings = step.inputs["q"], step.inputs["k"], step.attributes
        head, query, key = at
        kv_head = head // (self.shape(q)[0] // self.shape(k)[0])
        products: list[Expression] = [
            Product((Entry(q, (head, query, i)), Entry(k, (kv_head, key, i))))
            for i in range(self.shape(q)[2])
        ]
        scale = settings.get("scale")
        terms = products if scale is None else [scaled(products, scale)]
        if (cap := settings.get("cap")) is not None:
            terms = [capped(Sum(tuple(terms)), cap)]
        return Sum((*terms, *self._beside_products(step, at)))

    def _table_scores(self, step: Step, at: Index) -> Expression:
        return added(reversed([*self._beside_products(step, at)]))

    def _beside_products(self, step: Step, at: Index) -> Iterator[Expression]:
        """What is added to q·k: -slope·distance, the entry of a table, and that of other scores."""
        head, query, key = at
        places = step.attributes["queries"][query], step.attributes["keys"][key]
        if "slopes" in step.inputs:
            slope = Entry(step.inputs["slopes"], (head,))
            yield Negative(Product((slope, number(abs(places[0] - places[1])))))
        if "table" in step.inputs:
            yield Entry(step.inputs["table"], (head, *places))
        if "bias" in step.inputs:
            yield Entry(step.inputs["bias"], at)

    def _bucket_scores(self, step: Step, at: Index) -> Expression:
        head, query, key = at
        return Entry(step.inputs["table"], (step.attributes["buckets"][query][key], head))

    def _softmax(self, step: Step, at: Index) -> Expression:
        x = step.inputs["x"]
        row = [(*at[:-1], i) for i in range(self.shape(x)[-1])]
        powers = [Power(E, Entry(x, i)) for i in row if not self.absent(x, i)]
        if "sinks" in step.inputs:
            powers.append(Power(E, Entry(step.inputs["sinks"], at[:1])))
        return Quotient(Power(E, Entry(x, at)), Sum(tuple(powers)))

    def _mix(self, step: Step, at: Index) -> Expression:
        weights, v = step.inputs["weights"], step.inputs["v"]
        head, position, inner = at
        kv_head = head // (self.shape(weights)[0] // self.shape(v)[0])
        return added(
            Product((Entry(weights, (head, position, key)), Entry(v, (kv_head, key, inner))))
            for key in range(self.shape(v)[1])
            if not self.absent(weights, (head, position, key))
        )

    def _head_outputs(self, step: Step, at: Index) -> Expression:
        mixed = step.inputs["mixed"]
        head, position, column = at
        width = self.shape(mixed)[2]
        if "weight" not in step.inputs:
            inside = head * width <= column < (head + 1) * width
            return Entry(mixed, (head, position, column - head * width)) if inside else number(0)
        w = step.inputs["weight"], step.attributes["layout"]
        return Sum(
            tuple(
                Product((Entry(mixed, (head, position, i)), cell(*w, head * width + i, column)))
                for i in range(width)
            )
        )

    def _expert_linear(self, step: Step, at: Index) -> Expression:
        x, weight = step.inputs["x"], step.inputs["weight"]
        expert, position, column = at
        shape = self.shape(x)
        row = (position,) if len(shape) == 2 else (expert, position)
        terms: list[Expression] = []
        for i in range(shape[-1]):
            inner = cell(weight, step.attributes["layout"], i, column)
            entry = Entry(weight, (expert, *inner.index))
            terms.append(Product((Entry(x, (*row, i)), entry)))
        if "bias" in step.inputs:
            terms.append(Entry(step.inputs["bias"], (expert, column)))
        return Sum(tuple(terms))

    def _expert_shares(self, step: Step, at: Index) -> Expression:
        x, chosen, settings = step.inputs["x"], step.inputs["chosen"], step.attributes
        position, expert = at

        def part(k: int, *, counts: bool) -> Expression:
            own: Expression = Entry(x, (position, k))
            if not settings.get("alone"):
                own = Power(E, own)
            return Product((Entry(chosen, (position, k)), own)) if counts else own

        share = part(expert, counts=True)
        if settings["normalised"] or not settings.get("alone"):
            experts = range(self.shape(x)[1])
            below = [part(k, counts=settings["normalised"]) for k in experts]
            if settings.get("alone") and (eps := settings.get("eps")) is not None:
                below.append(Number(eps))
            share = Quotient(share, Sum(tuple(below)))
        scale = settings.get("scale")
        return share if scale is None else Product((Number(scale), share))

    def _combine(self, step: Step, at: Index) -> Expression:
        x, shares = step.inputs["x"], step.inputs["shares"]
        position, column = at
        return Sum(
            tuple(
                Product((Entry(shares, (position, k)), Entry(x, (k, position, column))))
                for k in range(self.shape(x)[0])
            )
        )

    def _activate(self, step: Step, at: Index) -> Expression:
        return activation(step.attributes["kind"], Entry(step.inputs["x"], at))

    def _loss(self, step: Step, at: Index) -> Expression:
        probs = step.inputs["probs"]
        last = self.shape(probs)[0] - 1
        target = self.given[step.inputs["target"]]
        return Negative(Call("ln", Entry(probs, (last, target))))


def capped(x: Expression, cap: Fraction) -> Expression:
    """A soft cap: c·tanh(x/c)."""
    return Product((Number(cap), Call("tanh", Quotient(x, Number(cap)))))


def _less(x: Expression, y: Expression) -> Expression:
    return Sum((x, Negative(y)))


def times_position(position: int, frequency: Expression) -> Expression:
    """The angle of a turn; a position below 0 turns back."""
    angle = Product((number(abs(position)), frequency))
    return Negative(angle) if position < 0 else angle
