"""The working of the operations of learning: losses, adjoints, and an optimizer's step."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product

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
from byhand.working.activations import slope
from byhand.working.lines import TWO, E, Index, Lines, added, number, scaled, times


class Learning(Lines):
    """Each method writes one entry of a step as an expression of the entries it reads."""

    # ------------------------------------------------------------------ the loss of a text

    def _targets(self, step: Step) -> list[int | None]:
        """The target of each position, None where it does not count."""
        ids = self.given[step.inputs["targets"]]
        if isinstance(ids, int):
            return [None] * (step.shape[0] - 1) + [ids]
        return [None if target < 0 else target for target in ids]

    def _losses(self, step: Step, at: Index) -> Expression:
        target = self._targets(step)[at[0]]
        assert target is not None
        return Negative(Call("ln", Entry(step.inputs["probs"], (at[0], target))))

    def _logprobs(self, step: Step, at: Index) -> Expression:
        target, x = self._targets(step)[at[0]], step.inputs["x"]
        assert target is not None
        powers = tuple(Power(E, Entry(x, (at[0], id))) for id in range(self.shape(x)[-1]))
        own = Entry(x, (at[0], target))
        return Sum((own, Negative(Call("ln", Sum(powers)))))

    def _average(self, step: Step, at: Index) -> Expression:
        counted = tuple(self._present(step.inputs["losses"]))
        return Quotient(Sum(counted), number(len(counted)))

    def _loss_back(self, step: Step, at: Index) -> Expression:
        targets = self._targets(step)
        target = targets[at[0]]
        if target is None:
            return number(0)
        p = Entry(step.inputs["probs"], at)
        wrong = Sum((p, Negative(ONE))) if target == at[1] else p
        counted = sum(1 for each in targets if each is not None)
        return wrong if counted == 1 else Quotient(wrong, number(counted))

    def _present(self, address: str, *before: int) -> Iterable[Entry]:
        """The entries of a step that are not masked, or those behind some places."""
        for rest in product(*map(range, self.shape(address)[len(before) :])):
            if not self.absent(address, (*before, *rest)):
                yield Entry(address, (*before, *rest))

    # ------------------------------------------------------------------ sums

    def _total(self, step: Step, at: Index) -> Expression:
        return Sum(tuple(Entry(term, at) for term in step.reads))

    def _column_sums(self, step: Step, at: Index) -> Expression:
        x = step.inputs["x"]
        *leading, width = self.shape(x)
        if step.attributes.get("each"):
            at = (at[0], at[2])
            return self._products_of(step, [(at[0], pos, at[1]) for pos in range(leading[1])])
        places: list[Index] = [(*place, at[0]) for place in product(*map(range, leading))]
        if step.attributes.get("merged") and len(leading) == 2:
            places = [(at[0] // width, pos, at[0] % width) for pos in range(leading[1])]
        return self._products_of(step, places)

    def _products_of(self, step: Step, places: list[Index]) -> Expression:
        """Σ x, or Σ x·by, over some places."""
        x = step.inputs["x"]
        if "by" not in step.inputs:
            return Sum(tuple(Entry(x, place) for place in places))
        by = step.inputs["by"]
        return Sum(tuple(Product((Entry(x, place), Entry(by, place))) for place in places))

    def _row_dots(self, step: Step, at: Index) -> Expression:
        y = step.inputs["y"]
        row = self._present(step.inputs["x"], *(at[:-1] if step.attributes.get("kept") else at))
        return added(Product((x, Entry(y, x.index))) for x in row)

    def _sum_groups(self, step: Step, at: Index) -> Expression:
        x = step.inputs["x"]
        group = self.shape(x)[0] // step.shape[0]
        return Sum(tuple(Entry(x, (at[0] * group + head, *at[1:])) for head in range(group)))

    # ------------------------------------------------------------------ products

    def _outer(self, step: Step, at: Index) -> Expression:
        x, grad = step.inputs["x"], step.inputs["grad"]
        i, j = at if step.attributes["layout"] == "in_out" else at[::-1]
        return Sum(
            tuple(
                Product((self._column(x, pos, i), self._column(grad, pos, j)))
                for pos in range(self.shape(x)[-2])
            )
        )

    def _column(self, address: str, position: int, column: int) -> Entry:
        """The entry of a row, whose heads stand side by side where there are heads."""
        shape = self.shape(address)
        if len(shape) == 2:
            return Entry(address, (position, column))
        return Entry(address, (column // shape[2], position, column % shape[2]))

    def _along_keys(self, step: Step, at: Index) -> Expression:
        y = step.inputs["y"]
        head, query, inner = at
        kv_head = head // (step.shape[0] // self.shape(y)[0])
        row = self._present(step.inputs["x"], head, query)
        products = [Product((x, Entry(y, (kv_head, x.index[2], inner)))) for x in row]
        return scaled(products, step.attributes.get("scale"))

    def _along_queries(self, step: Step, at: Index) -> Expression:
        x, y = step.inputs["x"], step.inputs["y"]
        head, key, inner = at
        places = ((head, query, key) for query in range(self.shape(x)[1]))
        seen = [place for place in places if not self.absent(x, place)]
        products = [Product((Entry(x, i), Entry(y, (head, i[1], inner)))) for i in seen]
        return scaled(products, step.attributes.get("scale"))

    def _scale_by(self, step: Step, at: Index) -> Expression:
        return Product((Entry(step.inputs["x"], at), Entry(step.inputs["by"], (0,))))

    # ------------------------------------------------------------------ places

    def _scatter(self, step: Step, at: Index) -> Expression:
        grad = step.inputs["grad"]
        ids = step.attributes.get("ids") or self.given[step.inputs["ids"]]
        taken = [Entry(grad, (pos, at[1])) for pos, row in enumerate(ids) if row == at[0]]
        return scaled(taken, step.attributes.get("scale")) if taken else number(0)

    def _pack_heads(self, step: Step, at: Index) -> Expression:
        stride = step.attributes["stride"]
        for start, part in zip(step.attributes["starts"], step.reads, strict=True):
            heads, _positions, width = self.shape(part)
            head, inner = divmod(at[1] - start, stride)
            if 0 <= head < heads and inner < width:
                return Entry(part, (head, at[0], inner))
        raise AssertionError(at)

    def _columns(self, step: Step, at: Index) -> Expression:
        return Entry(step.inputs["x"], (*at[:-1], step.attributes["start"] + at[-1]))

    def _unmasked(self, step: Step, at: Index) -> Expression:
        x = step.inputs["x"]
        return number(0) if self.absent(x, at) else Entry(x, at)

    def _bucket_back(self, step: Step, at: Index) -> Expression:
        grad, buckets = step.inputs["grad"], step.attributes["buckets"]
        return added(
            Entry(grad, (at[1], query, key))
            for query, row in enumerate(buckets)
            for key, bucket in enumerate(row)
            if bucket == at[0]
        )

    # ------------------------------------------------------------------ experts

    def _sum_experts(self, step: Step, at: Index) -> Expression:
        x = step.inputs["x"]
        return Sum(tuple(Entry(x, (k, *at)) for k in range(self.shape(x)[0])))

    def _expert_outer(self, step: Step, at: Index) -> Expression:
        x, grad = step.inputs["x"], step.inputs["grad"]
        expert = at[0]
        i, j = at[1:] if step.attributes["layout"] == "in_out" else at[:0:-1]
        own = len(self.shape(x)) == 3
        return Sum(
            tuple(
                Product((Entry(x, (expert, pos, i) if own else (pos, i)),
                         Entry(grad, (expert, pos, j))))
                for pos in range(self.shape(grad)[1])
            )
        )  # fmt: skip

    def _expert_sums(self, step: Step, at: Index) -> Expression:
        x = step.inputs["x"]
        return Sum(tuple(Entry(x, (at[0], pos, at[1])) for pos in range(self.shape(x)[1])))

    def _spread(self, step: Step, at: Index) -> Expression:
        expert, pos, inner = at
        share = Entry(step.inputs["shares"], (pos, expert))
        return Product((share, Entry(step.inputs["grad"], (pos, inner))))

    def _expert_dots(self, step: Step, at: Index) -> Expression:
        x, grad = step.inputs["x"], step.inputs["grad"]
        pos, expert = at
        width = range(self.shape(x)[-1])
        return Sum(
            tuple(Product((Entry(x, (expert, pos, i)), Entry(grad, (pos, i)))) for i in width)
        )

    def _expert_shares_back(self, step: Step, at: Index) -> Expression:
        x, chosen, shares, grad = (step.inputs[role] for role in ("x", "chosen", "shares", "grad"))
        pos, experts = at[0], range(self.shape(x)[1])
        kept, own = Entry(chosen, at), Entry(grad, at)
        scale: Expression = Number(step.attributes.get("scale") or Fraction(1))
        if step.attributes.get("alone") and not step.attributes["normalised"]:
            return Product((kept, own, scale))
        dots = [Product((Entry(shares, (pos, k)), Entry(grad, (pos, k)))) for k in experts]
        dot = Quotient(Sum(tuple(dots)), scale)
        if step.attributes.get("alone"):
            terms: list[Expression] = [
                Product((Entry(chosen, (pos, k)), Entry(x, (pos, k)))) for k in experts
            ]
            if eps := step.attributes.get("eps"):
                terms.append(Number(eps))
            above = Sum((own, Negative(dot)))
            return Quotient(Product((kept, scale, above)), Sum(tuple(terms)))
        if step.attributes["normalised"]:
            return Product((Entry(shares, at), Sum((own, Negative(dot)))))
        powers = [Power(E, Entry(x, (pos, k))) for k in experts]
        every = Quotient(Power(E, Entry(x, at)), Sum(tuple(powers)))
        return Product((scale, every, Sum((Product((own, kept)), Negative(dot)))))

    # ------------------------------------------------------------------ adjoints

    def _sinks_back(self, step: Step, at: Index) -> Expression:
        weights, dot = step.inputs["weights"], step.inputs["dot"]
        terms = []
        for query in range(self.shape(weights)[1]):
            row = tuple(self._present(weights, at[0], query))
            rest = Sum((*row, Negative(ONE)))
            terms.append(Product((rest, Entry(dot, (at[0], query)))))
        return Sum(tuple(terms))

    def _cap_back(self, step: Step, at: Index) -> Expression:
        inner = Quotient(Entry(step.inputs["x"], at), Number(step.attributes["cap"]))
        rest = Sum((ONE, Negative(Power(Call("tanh", inner), TWO))))
        return Product((Entry(step.inputs["grad"], at), rest))

    def _clamp_back(self, step: Step, at: Index) -> Expression:
        """step(y) is 1 above 0, else 0: so 1 - step(x - most) is 1 up to the limit."""
        x = Entry(step.inputs["x"], at)
        factors: list[Expression] = [Entry(step.inputs["grad"], at)]
        for name, sign in (("least", -1), ("most", 1)):
            limit = step.attributes.get(name)
            if limit is not None:
                over = Sum((x, Negative(Number(limit))))
                under = Sum((Number(limit), Negative(x)))
                beyond = Call("step", over if sign > 0 else under)
                factors.append(Sum((ONE, Negative(beyond))))
        return Product(tuple(factors)) if len(factors) > 1 else factors[0]

    def _softmax_back(self, step: Step, at: Index) -> Expression:
        grad, dot = Entry(step.inputs["grad"], at), Entry(step.inputs["dot"], at[:-1])
        return Product((Entry(step.inputs["weights"], at), Sum((grad, Negative(dot)))))

    def _slope(self, step: Step, at: Index) -> Expression:
        return slope(step.attributes["kind"], Entry(step.inputs["x"], at))

    def _normalize_back(self, step: Step, at: Index) -> Expression:
        return Quotient(Entry(step.inputs["grad"], at), Entry(step.inputs["by"], at[:-1]))

    def _divisor_back(self, step: Step, at: Index) -> Expression:
        return Negative(Quotient(Entry(step.inputs["dot"], at), Entry(step.inputs["by"], at)))

    def _root_back(self, step: Step, at: Index) -> Expression:
        root = Product((TWO, Entry(step.inputs["root"], at)))
        return Quotient(Entry(step.inputs["grad"], at), root)

    def _mean_square_back(self, step: Step, at: Index) -> Expression:
        twice = Product((Entry(step.inputs["grad"], at[:-1]), TWO, Entry(step.inputs["x"], at)))
        return Quotient(twice, number(step.shape[-1]))

    def _center_back(self, step: Step, at: Index) -> Expression:
        return Negative(Sum(tuple(self._present(step.inputs["grad"], *at))))

    def _mean_back(self, step: Step, at: Index) -> Expression:
        return Quotient(Entry(step.inputs["grad"], at[:-1]), number(step.shape[-1]))

    # ------------------------------------------------------------------ an optimizer's step

    def _sum_squares(self, step: Step, at: Index) -> Expression:
        return Sum(tuple(Power(x, TWO) for x in self._present(step.inputs["x"])))

    def _norm(self, step: Step, at: Index) -> Expression:
        return Call("sqrt", Sum(tuple(Entry(square, at) for square in step.reads)))

    def _clip_factor(self, step: Step, at: Index) -> Expression:
        """The smaller of 1 and y is 1 - relu(1 - y)."""
        size = Sum((Entry(step.inputs["norm"], at), Number(step.attributes["eps"])))
        share = Quotient(Number(step.attributes["limit"]), size)
        return Sum((ONE, Negative(Call("relu", Sum((ONE, Negative(share)))))))

    def _blend(self, step: Step, at: Index) -> Expression:
        new: Expression = Entry(step.inputs["y"], at)
        if step.attributes.get("squared"):
            new = Power(new, TWO)
        term = times(step.attributes["of_y"], new)
        if "x" not in step.inputs:
            return term
        return Sum((times(step.attributes["of_x"], Entry(step.inputs["x"], at)), term))

    def _root_plus(self, step: Step, at: Index) -> Expression:
        root = Call("sqrt", Entry(step.inputs["x"], at))
        eps: Fraction = step.attributes["eps"]
        return Sum((root, Number(eps))) if eps else root

    def _divide(self, step: Step, at: Index) -> Expression:
        return Quotient(Entry(step.inputs["x"], at), Entry(step.inputs["y"], at))
