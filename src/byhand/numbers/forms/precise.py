"""Affine forms in Arb, for what rounding leaves open in float64: the same rules, entry by entry.

Terms and errors are balls, which hold their own rounding.  Numbers of any size are numbers here,
and so are leads of 1e-40.  A pass takes hundreds of times as long.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from flint import arb

from byhand.numbers.enclosed.balls.functions import softmax_row
from byhand.numbers.enclosed.balls.system import precisely
from byhand.numbers.forms import precise_functions
from byhand.numbers.forms.arithmetic import PRECISE, Arithmetic
from byhand.numbers.forms.form import Form, settled
from byhand.numbers.forms.operations import Forms
from byhand.numbers.forms.precise_functions import ONE, ZERO, padded, shared_out, within
from byhand.numbers.forms.system import LETTERED

NARROW = 2.0**-6  # movements up to which the line is better than the range
ADMITTING = ("admit", "given", "constant")
OPERATIONS = (
    *("embed", "sinusoid", "add", "multiply", "mean", "center", "mean_square", "root", "normalize"),
    *("affine", "linear", "rotate", "scores", "softmax", "mix", "head_outputs", "activate"),
)


def softmax(x: Form) -> Form:
    """The shares of each row; `shares` says why."""
    letters = x.letters + 1
    cases = max(x.cases, 1 if x.absent is None else len(x.absent))
    terms, errors = (PRECISE.zeros((letters, cases, *x.shape)) for _part in range(2))
    for place in np.ndindex(cases, *x.shape[:-1]):
        at = (place[0] if x.cases > 1 else 0, *place[1:])
        seen = np.arange(x.shape[-1])
        if x.absent is not None:
            seen = seen[~x.absent[min(place[0], len(x.absent) - 1), *place[1:]]]
        if len(seen):
            own = [padded(x.terms[:, *at, k], letters) for k in seen]
            unsure = [padded(x.errors[:, *at, k], letters) for k in seen]
            for k, (coefficients, bounds) in zip(seen, _shares(own, unsure), strict=True):
                terms[:, *place, k], errors[:, *place, k] = coefficients, bounds
    found = settled(terms, errors)
    return Form(found.terms, found.errors, x.absent, made=("softmax",))


Entry = tuple[list[arb], list[arb]]  # terms and errors


def _shares(own: list[list[arb]], unsure: list[list[arb]]) -> list[Entry]:
    """The shares of one row of scores, given as terms and errors."""
    if len(own) == 1:
        return [_alone(ONE, ZERO, len(own[0]))]
    middles = [terms[0].mid() for terms in own]
    for terms, errors in zip(own, unsure, strict=True):
        errors[0] = errors[0] + arb(terms[0].rad())
    share = softmax_row(middles)
    common, shaken = _mean(share, own), _mean(share, unsure)
    moved = [[one - mean for one, mean in zip(t[1:], common[1:], strict=True)] for t in own]
    wide = [[e + mean for e, mean in zip(errors, shaken, strict=True)] for errors in unsure]
    far = [
        (sum(map(abs, t), ZERO) + sum(e, ZERO)).upper() for t, e in zip(moved, wide, strict=True)
    ]
    if not all(one.is_finite() for one in far):
        return [_alone(*within(ZERO, ONE), len(own[0])) for _score in own]
    grown = [p * f.exp() for p, f in zip(share, far, strict=True)]
    curved = [g * f * f / 2 for g, f in zip(grown, far, strict=True)]  # e^t - 1 - t ≤ t²·e^t/2
    spent = sum(curved, ZERO)
    result: list[Entry] = []
    for j, (p, t, e) in enumerate(zip(share, moved, wide, strict=True)):
        above, below = curved[j].upper(), (grown[j] * spent).upper()
        half = ((above + below) / 2).upper()
        if far[j] > NARROW or half > NARROW:
            low, high = _between(j, own, unsure)
            if not half + (p * sum(e, ZERO)).upper() < (high - low) / 2:
                result.append(_alone(*within(low, high), len(own[0])))
                continue
        causes = shared_out(half, [ZERO, *map(abs, t)] if t else [ZERO])
        result.append((
            [p + (above - below) / 2, *(p * one for one in t)],
            [p * error + cause for error, cause in zip(e, causes, strict=True)],
        ))  # fmt: skip
    return result


def _mean(share: list[arb], rows: list[list[arb]]) -> list[arb]:
    """The mean of rows by shares, column by column."""
    return [
        sum((p * one for p, one in zip(share, column, strict=True)), ZERO)
        for column in zip(*rows, strict=True)
    ]


def _between(j: int, own: list[list[arb]], unsure: list[list[arb]]) -> tuple[arb, arb]:
    """The range of share j: 1/(1 + Σ e^d), where d are differences of scores, as forms."""
    least = most = ONE
    for k in range(len(own)):
        if k != j:
            apart = [a - b for a, b in zip(own[k], own[j], strict=True)]
            far = sum(map(abs, apart[1:]), ZERO) + sum(unsure[k], ZERO) + sum(unsure[j], ZERO)
            least, most = least + (apart[0] - far).exp().lower(), most + (apart[0] + far).exp()
    return (1 / most).lower().max(ZERO), (1 / least).upper().min(ONE)


def _alone(middle: arb, far: arb, count: int) -> Entry:
    """A number within a radius, without letters."""
    return [middle, *[ZERO] * (count - 1)], [far, *[ZERO] * (count - 1)]


class PreciseForms(Forms):
    """Affine forms in Arb, with a working precision of so many bits."""

    arithmetic: ClassVar[Arithmetic] = PRECISE

    def __init__(self, bits: int = 192, lettered: int = LETTERED) -> None:
        super().__init__(lettered)
        self.bits = bits

    @property
    def name(self) -> str:
        return f"forms of {self.bits} bits"

    _root = staticmethod(precise_functions.root)
    _reciprocal = staticmethod(precise_functions.reciprocal)
    _relu = staticmethod(precise_functions.relu)
    _softmax = staticmethod(softmax)
    _at_most = staticmethod(precise_functions.at_most_root)

    def _smooth(self, x: Form, kind: str) -> Form:
        return precise_functions.activated(x, kind, self.bits)

    @staticmethod
    def _mixed(found: Form, _shares: Form, _values: Form) -> Form:
        return found


for _name in (*ADMITTING, *OPERATIONS):  # each works with the system's own precision
    _operation: Any = getattr(Forms, _name)
    setattr(PreciseForms, _name, precisely(_operation))
