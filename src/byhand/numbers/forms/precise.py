"""Affine forms in Arb, for what rounding leaves open in float64: the same rules, entry by entry.

Terms and errors are balls, which hold their own rounding.  Numbers of any size are numbers here,
and so are leads of 1e-40.  A pass takes 30 to 300 times as long.
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
from byhand.numbers.forms.mixing import WIDE
from byhand.numbers.forms.operations import Forms
from byhand.numbers.forms.precise_functions import ONE, ZERO, padded, shared_out, within
from byhand.numbers.forms.rounding import Data
from byhand.numbers.forms.system import LETTERED

NARROW = 2.0**-6  # movements up to which the line is better than the range
ADMITTING = ("admit", "given", "constant")
OPERATIONS = (
    *("embed", "sinusoid", "add", "multiply", "mean", "center", "mean_square", "root", "normalize"),
    *("affine", "linear", "rotate", "scores", "softmax", "mix", "head_outputs", "activate"),
    *("rescale", "soft_cap", "clamp", "weigh", "choose", "expert_shares", "combine", "loss"),
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


# ----------------------------------------------------------------------- mixed values


def around_the_mixed(found: Form, shares: Form, values: Form) -> Form:
    """The product of shares and values, narrower where shares are wide; `mixing` says why."""
    group = shares.shape[0] // values.shape[0]
    for case, head, query in np.ndindex(found.cases, *found.shape[:2]):
        at = (case if shares.cases > 1 else 0, head, query)
        kept = (case if values.cases > 1 else 0, head // group)
        seen = np.arange(shares.shape[-1])
        if shares.absent is not None:
            seen = seen[~shares.absent[min(case, len(shares.absent) - 1), head, query]]
        terms, errors = (part[:, *at][:, seen] for part in (shares.terms, shares.errors))
        if all(error < WIDE for error in errors.ravel()):
            continue
        for column in range(found.shape[-1]):
            place = (slice(None), case, head, query, column)
            parts = (
                values.terms[:, *kept][:, seen, column],
                values.errors[:, *kept][:, seen, column],
            )
            entry = list(found.terms[place]), list(found.errors[place])
            found.terms[place], found.errors[place] = _around(*entry, terms, errors, *parts)
    return found


def _around(
    own: list[arb], unsure: list[arb], share: Data, error: Data, value: Data, value_error: Data
) -> Entry:
    """One mixed number: terms and errors of the product, of its shares and of its values."""
    center = sum(p * v for p, v in zip(share[0], value[0], strict=True)).mid()
    if not center.is_finite():
        return own, unsure
    own[0] = own[0] + center
    for letter, row in enumerate(share):
        own[letter] = own[letter] - sum(row, ZERO) * center
    for letter, row in enumerate(error):
        saved = sum(
            (e * (abs(v) - abs(v - center)) for e, v in zip(row, value[0], strict=True)), ZERO
        )
        unsure[letter] = abs(unsure[letter] - saved)
    far = np.abs(value[1:]).sum(axis=0) + value_error.sum(axis=0)
    low = min(((v - f).lower() for v, f in zip(value[0], far, strict=True)))
    high = max(((v + f).upper() for v, f in zip(value[0], far, strict=True)))
    if not sum(unsure, ZERO) < (high - low) / 2:
        return _alone(*within(low, high), len(own))[0], _alone(*within(low, high), len(unsure))[1]
    return own, unsure


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
    _surprise = staticmethod(precise_functions.surprise)
    _at_most = staticmethod(precise_functions.at_most_root)

    def _smooth(self, x: Form, kind: str) -> Form:
        return precise_functions.activated(x, kind, self.bits)

    def _rising(self, x: Form, kind: str) -> Form:
        return precise_functions.risen(x, kind, self.bits)

    _mixed = staticmethod(around_the_mixed)


for _name in (*ADMITTING, *OPERATIONS):  # each works with the system's own precision
    _operation: Any = getattr(Forms, _name)
    setattr(PreciseForms, _name, precisely(_operation))
