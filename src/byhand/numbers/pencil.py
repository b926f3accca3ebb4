"""The pencil number system: every line is rounded to so many decimals, as by hand.

Every operation is worked out exactly from the rounded numbers above it.  Then each entry of the
result is rounded, half away from zero; the rounding is proven right.  Values are Fractions.
Weights that are rational stay as they are given, others are rounded on the way in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.errors import InputError
from byhand.language import _
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import ABSENT, Array, Numbers, Prediction, Printed
from byhand.numbers.exact import Exact, Value
from byhand.numbers.exact.system import array


def _rounding(name: str) -> Callable[..., Array]:
    """The operation of this name on exact values, every entry of its result rounded."""

    def operation(self: Pencil, *inputs: Any, **settings: Any) -> Array:
        exact = Exact()

        def admitted(given: Any) -> Any:
            return exact.admit(given) if isinstance(given, np.ndarray) else given

        values = {role: admitted(given) for role, given in settings.items()}
        result = getattr(exact, name)(*map(admitted, inputs), **values)
        self.notes.extend(exact.notes)
        return array([v if v is ABSENT else self.rounded(v) for v in result.flat], result.shape)

    operation.__doc__ = getattr(Numbers, name).__doc__
    return operation


class Pencil(Numbers):
    """Decimals rounded by hand: every line to `decimals` places."""

    uniform = "rounded"

    def __init__(self, decimals: int) -> None:
        super().__init__()
        if decimals < 0:
            raise InputError(_("the number of decimals cannot be negative"), found=str(decimals))
        self.decimals = decimals

    @property
    def name(self) -> str:
        """The name in JSON: "decimals 2"."""
        return f"decimals {self.decimals}"

    # ------------------------------------------------------------------- values in and out

    def admit(self, data: Any) -> Array:
        """Rational weights and rounded decimals as they are given; others rounded."""
        exact = Exact()
        entries = np.asarray(data)
        shape = entries.shape
        flat = [e.value if isinstance(e, Printed) else e for e in entries.astype(object).ravel()]
        admitted = exact.admit(array(flat, (len(flat),)))
        return array([v if v is ABSENT else self._kept(v) for v in admitted], shape)

    def _kept(self, value: Value) -> Fraction:
        return self.rounded(value) if value.fraction is None else value.fraction

    def rounded(self, value: Value) -> Fraction:
        """The value rounded to the decimals of this system, half away from zero."""
        return value.rounded(self.decimals)

    def register(self, entry: Any) -> str:
        """Every entry is rounded."""
        return "rounded"

    def text(self, entry: Fraction) -> str:
        """A number with its decimals; a weight that has more of them is shown whole."""
        scaled = entry * 10**self.decimals
        if scaled.denominator != 1:
            return str(entry)
        sign = "-" if entry < 0 else ""
        digits = str(abs(scaled.numerator)).rjust(self.decimals + 1, "0")
        cut = len(digits) - self.decimals
        return sign + digits[:cut] + ("." + digits[cut:] if self.decimals else "")

    # ------------------------------------------------------------------- the operations

    embed = _rounding("embed")
    sinusoid = _rounding("sinusoid")
    add = _rounding("add")
    multiply = _rounding("multiply")
    mean = _rounding("mean")
    mean_square = _rounding("mean_square")
    root = _rounding("root")
    affine = _rounding("affine")
    rescale = _rounding("rescale")
    soft_cap = _rounding("soft_cap")
    clamp = _rounding("clamp")
    weigh = _rounding("weigh")
    beside = _rounding("beside")
    constants = _rounding("constants")
    bucket_scores = _rounding("bucket_scores")
    linear = _rounding("linear")
    split_heads = _rounding("split_heads")
    merge_heads = _rounding("merge_heads")
    join = _rounding("join")
    rotate = _rounding("rotate")
    scores = _rounding("scores")
    table_scores = _rounding("table_scores")
    softmax = _rounding("softmax")
    mix = _rounding("mix")
    head_outputs = _rounding("head_outputs")
    expert_linear = _rounding("expert_linear")
    choose = _rounding("choose")
    _shares = _rounding("expert_shares")
    combine = _rounding("combine")
    activate = _rounding("activate")
    center = _rounding("center")
    _normalized = _rounding("normalize")
    _logarithm = _rounding("loss")

    def normalize(self, x: Array, by: Array) -> Array:
        """x / by, row by row; a divisor that was rounded to 0 is an error."""
        self._check_divisors(x, by)
        return self._normalized(x, by)

    def _check_divisors(self, tops: Array, by: Array) -> None:
        """Refuses numbers that are not 0 over one that was rounded to 0."""
        for place in np.ndindex(by.shape):
            if by[place] == 0 and np.any(tops[place] != 0):
                raise self._lost(_("the divisor of row {row} became 0").format(row=list(place)))

    def expert_shares(self, x: Array, chosen: Array, **settings: Any) -> Array:
        """The shares of the chosen; a sum of theirs that was rounded to 0 is an error."""
        if settings.get("alone") and settings["normalised"] and not settings.get("eps"):
            for place, row in enumerate(x * chosen):
                if sum(row) == 0:
                    what = _("the divisor of row {row} became 0").format(row=[place])
                    raise self._lost(what)
        return self._shares(x, chosen, **settings)

    def argmax(self, x: Array) -> list[Prediction]:
        """The largest of the rounded numbers; for the model itself it is never proven."""
        predictions = []
        for row in x:
            best = max(row)
            tied = tuple(k for k, entry in enumerate(row) if entry == best)
            rest = [entry for entry in row if entry != best]
            margin = Fraction(0) if len(tied) > 1 else best - max(rest) if rest else None
            predictions.append(
                Prediction(tied[0], margin, False, tied=tied if len(tied) > 1 else ())
            )
        return predictions

    def loss(self, probs: Array, *, target: int) -> Array:
        """-ln probs[last position, target]; a probability that was rounded to 0 is an error."""
        if probs[-1, target] <= 0:
            raise self._lost(_("the probability of the target became 0, which has no logarithm"))
        return self._logarithm(probs, target=target)

    # ------------------------------------------------------------------- learning

    logprobs = _rounding("logprobs")
    average = _rounding("average")
    loss_back = _rounding("loss_back")
    total = _rounding("total")
    column_sums = _rounding("column_sums")
    row_dots = _rounding("row_dots")
    sum_groups = _rounding("sum_groups")
    outer = _rounding("outer")
    along_keys = _rounding("along_keys")
    along_queries = _rounding("along_queries")
    scale_by = _rounding("scale_by")
    scatter = _rounding("scatter")
    pack_heads = _rounding("pack_heads")
    columns = _rounding("columns")
    unmasked = _rounding("unmasked")
    bucket_back = _rounding("bucket_back")
    sinks_back = _rounding("sinks_back")
    cap_back = _rounding("cap_back")
    clamp_back = _rounding("clamp_back")
    sum_experts = _rounding("sum_experts")
    expert_outer = _rounding("expert_outer")
    expert_sums = _rounding("expert_sums")
    spread = _rounding("spread")
    expert_dots = _rounding("expert_dots")
    expert_shares_back = _rounding("expert_shares_back")
    softmax_back = _rounding("softmax_back")
    slope = _rounding("slope")
    mean_square_back = _rounding("mean_square_back")
    center_back = _rounding("center_back")
    mean_back = _rounding("mean_back")
    sum_squares = _rounding("sum_squares")
    norm = _rounding("norm")
    clip_factor = _rounding("clip_factor")
    blend = _rounding("blend")
    root_plus = _rounding("root_plus")
    _logarithms = _rounding("losses")
    _rows_over = _rounding("normalize_back")
    _negative_over = _rounding("divisor_back")
    _over_twice = _rounding("root_back")
    _quotients = _rounding("divide")

    def losses(self, probs: Array, targets: Sequence[int]) -> Array:
        """-ln probs[position, target]; a probability that was rounded to 0 is an error."""
        if any(probs[place, t] <= 0 for place, t in enumerate(targets) if t != UNCOUNTED):
            raise self._lost(_("the probability of the target became 0, which has no logarithm"))
        return self._logarithms(probs, targets)

    def normalize_back(self, grad: Array, by: Array) -> Array:
        """grad / by, row by row; a divisor that was rounded to 0 is an error."""
        self._check_divisors(grad, by)
        return self._rows_over(grad, by)

    def divisor_back(self, dot: Array, by: Array) -> Array:
        """-dot / by; a divisor that was rounded to 0 is an error."""
        self._check_divisors(dot, by)
        return self._negative_over(dot, by)

    def root_back(self, grad: Array, root: Array) -> Array:
        """grad / (2 · root); a root that was rounded to 0 is an error."""
        self._check_divisors(grad, root)
        return self._over_twice(grad, root)

    def divide(self, x: Array, y: Array) -> Array:
        """x / y, and 0 where both were rounded to 0; 0 below another number is an error."""
        self._check_divisors(x, y)
        divisors = y.copy()
        divisors[y == 0] = Fraction(1)
        return self._quotients(x, divisors)

    def _lost(self, what: str) -> InputError:
        return InputError(
            _("rounded to {count} decimals, {what}").format(count=self.decimals, what=what),
            hint=_("use more decimals"),
        )
