"""Differences of a norm: which mean, which variance and which eps its claims show.

A normalised row is (x - m)/s, times gain, plus bias.  So m and s of each row are read off the
claim, also where only the last line of the norm is claimed, and compared with statistics of the
rows: over other channels or positions, with another divisor, with another eps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from byhand.checking.differences.closeness import Fitted, rms
from byhand.checking.differences.constants import recognised
from byhand.checking.differences.difference import Description, Difference, Floats, Reading
from byhand.checking.differences.gains import gain_readings
from byhand.checking.suspects.casts import bits_of
from byhand.checking.suspects.mistakes import number
from byhand.checking.suspects.norms import Group, group
from byhand.checking.suspects.row_statistics import MEANS, OVER, SQUARES, Statistic
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

GOOD, WORST = 2.0, 8.0  # usual errors: root mean square and largest that a match leaves
LEAST = 3  # rows
POWERS = (1.0, 0.25, 1 / 3, 2.0)


@dataclass(frozen=True, eq=False)
class Seen:
    """What the claim shows of a norm: m and s of each row, and how sure they are."""

    difference: Difference
    norm: Group
    x: Floats  # the rows that are normalised
    mean: Floats | None = None
    mean_off: Floats | None = None
    square: Floats | None = None
    square_off: Floats | None = None
    root: Floats | None = None
    root_off: Floats | None = None


def statistic_readings(difference: Difference) -> Iterator[Reading]:
    """Another mean, variance, eps or gain of a norm."""
    around = difference.scene.context.around
    target = difference.target
    norm = group(difference.scene, target.address.rpartition(".")[0])
    if norm is None or around is None or not difference.whole:
        return
    if target.address not in {step.address for step in norm.lines.values()}:
        return
    x = around.read(norm.source)
    if x is None or x.ndim < 2 or not np.isfinite(x).all() or not difference.finite.all():
        return
    if x[..., 0].size < LEAST or x.shape[-1] < LEAST:
        return
    seen = _seen(difference, norm, x)
    found = list(_matched(seen)) if seen is not None else []
    yield from found
    if not found and target is norm.lines.get("out"):
        yield from gain_readings(difference, norm)


# ------------------------------------------------------------------------ what the claim shows


def _seen(difference: Difference, norm: Group, x: Floats) -> Seen | None:
    name = difference.target.address.rpartition(".")[2]
    unit = 0.5 * 2.0 ** -bits_of(difference.scene.context.precision)
    room = np.hypot(difference.room, unit * np.abs(difference.claimed))
    claimed = difference.claimed
    if name == "mean":
        return Seen(difference, norm, x, mean=claimed, mean_off=room)
    if name == norm.square:
        return Seen(difference, norm, x, square=claimed, square_off=room)
    if name == norm.root:
        return Seen(difference, norm, x, root=claimed, root_off=room)
    if name == "centered":
        shift, off = (
            (x - claimed).mean(axis=-1),
            np.sqrt(np.square(room).mean(axis=-1) / x.shape[-1]),
        )
        if rms((claimed - (x - shift[..., None])) / room) > GOOD:
            return None
        return Seen(difference, norm, x, mean=shift, mean_off=off)
    return _rows(difference, norm, x, room)


def _rows(difference: Difference, norm: Group, x: Floats, room: Floats) -> Seen | None:
    """m and s of each row, by least squares of what is claimed over x, with gain and bias."""
    around = difference.scene.context.around
    assert around is not None
    out = norm.lines.get("out")
    gain: Floats | float = 1.0
    bias: Floats | float = 0.0
    if out is not None and difference.target is out:
        for role in ("gain", "bias"):
            if role in out.inputs:
                weight = around.read(out.inputs[role])
                if weight is None:
                    return None
                gain, bias = (weight, bias) if role == "gain" else (gain, weight)
    with np.errstate(all="ignore"):
        weights = 1 / np.square(room)
        gains = np.broadcast_to(np.asarray(gain), x.shape)
        terms = np.stack((x * gains, gains), axis=-1)  # of 1/s, and of -m/s
        squares = np.einsum("...ct,...cu,...c->...tu", terms, terms, weights)
        sides = np.einsum("...ct,...c->...t", terms, weights * (difference.claimed - bias))
        try:
            inverse = np.linalg.inv(squares)
        except np.linalg.LinAlgError:
            return None
        slope, shift = np.moveaxis(np.einsum("...tu,...u->...t", inverse, sides), -1, 0)
        predicted = (slope[..., None] * x + shift[..., None]) * gains + bias
        left = (difference.claimed - predicted) / room
        before = (difference.claimed - difference.expected) / room
    if not np.isfinite(left).all() or rms(left) > GOOD or not rms(left) * 1.3 < rms(before):
        return None
    if not (slope > 0).all():
        return None
    slope_off, shift_off = np.sqrt(inverse[..., 0, 0]), np.sqrt(inverse[..., 1, 1])
    mean = -shift / slope
    return Seen(
        difference, norm, x, mean=mean, mean_off=np.hypot(shift_off, mean * slope_off) / slope,
        root=1 / slope, root_off=slope_off / np.square(slope),
    )  # fmt: skip


# ------------------------------------------------------------------------ what it matches


def _near(values: Floats, others: Floats, off: Floats) -> float | None:
    """What is left, in usual errors, where two sets of rows are alike; None: they are not."""
    with np.errstate(all="ignore"):
        floor = 2.0**-22 * np.abs(others)
        left = (values - others) / np.maximum(off, floor)
    if not np.isfinite(left).all() or float(np.abs(left).max(initial=0.0)) > WORST:
        return None
    rest = rms(left)
    return rest if rest <= GOOD else None


def _own_mean(norm: Group) -> Statistic | None:
    return Statistic("mean") if norm.layernorm else None


def _own_square(norm: Group) -> Statistic:
    return Statistic("variance" if norm.layernorm else "mean square")


def _matched(seen: Seen) -> Iterator[Reading]:
    """The statistics that the rows show; nothing where they show the model's own."""
    centre: Statistic | bool | None = False  # False: not seen; None: nothing is subtracted
    if seen.mean is not None and seen.mean_off is not None:
        centre = _which_mean(seen, seen.mean, seen.mean_off)
        if centre is False:
            return
    if seen.square is not None:
        yield from _squares(seen)
        return
    if seen.root is None or seen.root_off is None:
        if centre is not False and centre != _own_mean(seen.norm):
            yield _mean_edit(seen, centre)  # type: ignore[arg-type]
        return
    yield from _roots(seen, _own_mean(seen.norm) if centre is False else centre)  # type: ignore[arg-type]


def _which_mean(seen: Seen, mean: Floats, off: Floats) -> Statistic | bool | None:
    """The mean that was subtracted, None for nothing, False for one that is not known."""
    own = _own_mean(seen.norm)
    zero = np.zeros(mean.shape)
    if own is None and _near(mean, zero, off) is not None:
        return None
    found: list[tuple[float, int, Statistic]] = []
    for place, (what, over) in enumerate((what, over) for over in OVER for what in MEANS):
        each = Statistic(what, over)
        left = _near(mean, _of(each, seen.x), off)
        if left is not None:
            if each == own:
                return own
            found.append((left, place, each))
    if _near(mean, zero, off) is not None:
        return None
    return min(found, key=lambda each: each[1])[2] if found else False


def _of(how: Statistic, x: Floats) -> Floats:
    if how.over == "all but the last channel" and min(x.shape[-2:]) < 2:
        return np.full(x.shape[:-1], np.nan)
    return np.asarray(how(x))


def _candidates(seen: Seen, centre: Statistic | None) -> Iterator[Statistic]:
    """Variances, the model's own first."""
    own = _own_square(seen.norm)
    yield own
    yield Statistic(own.what, less=1)
    for over in OVER:
        for what in SQUARES:
            if (what, over) != (own.what, "the row"):
                yield Statistic(what, over)
    del centre


def _squares(seen: Seen) -> Iterator[Reading]:
    """A claimed variance or mean square: of which numbers?"""
    assert seen.square is not None
    assert seen.square_off is not None
    eps = float(seen.norm.eps)
    for how in _candidates(seen, None):
        value = _of(how, seen.x)
        for more in (0.0, eps):
            if _near(seen.square, value + more, seen.square_off) is None:
                continue
            if how == _own_square(seen.norm) and not more:
                return
            yield _square_edit(seen, _own_mean(seen.norm), how, eps=Fraction(0), at_square=more)
            return


def _roots(seen: Seen, centre: Statistic | None) -> Iterator[Reading]:
    """The divisor: of which variance, with which eps, which power?"""
    assert seen.root is not None
    assert seen.root_off is not None
    own = _own_square(seen.norm)
    for how in _candidates(seen, centre):
        value = _of(how, seen.x)
        if not np.isfinite(value).all():
            continue
        for found in _with_eps(seen, value, how):
            power, eps, after, fitted = found
            same = how == own and centre == _own_mean(seen.norm)
            if same and power == 0.5 and not after and _is(eps, float(seen.norm.eps)):
                return  # the model's own
            yield _square_edit(
                seen, centre, how, eps=eps, power=power, after=after, fitted=fitted)  # fmt: skip
            return
    if seen.difference.target is not seen.norm.lines.get(seen.norm.root):
        ratio = seen.root / np.sqrt(_of(own, seen.x) + float(seen.norm.eps))
        yield Description(
            _("each row is (x - m)/s with other s than the model's: {ratios}, … times as large").format(
                ratios=", ".join(f"{each:.4g}" for each in ratio.reshape(-1)[:3])), 2)  # fmt: skip


def _is(eps: Fraction, own: float) -> bool:
    return abs(float(eps) - own) <= 1e-3 * own + 1e-15


def _with_eps(
    seen: Seen, value: Floats, how: Statistic
) -> Iterator[tuple[float, Fraction, Fraction, int]]:
    """The power, eps under the root, eps after it, and how many numbers were read off the claim."""
    assert seen.root is not None
    assert seen.root_off is not None
    own = float(seen.norm.eps)
    root, off = seen.root, seen.root_off
    with np.errstate(all="ignore"):
        if _near(root, np.sqrt(value + own), off) is not None:
            yield 0.5, seen.norm.eps, Fraction(0), 0
            return
        if own and _near(root, np.sqrt(value) + own, off) is not None:
            yield 0.5, Fraction(0), seen.norm.eps, 0
            return
        for under in (True, False):
            apart = np.square(root) - value if under else root - np.sqrt(value)
            sure = 2 * root * off if under else off
            weights = 1 / np.square(sure)
            eps = float((apart * weights).sum() / weights.sum())
            fitted = Fitted(eps, float(1 / np.sqrt(weights.sum())))
            made = np.sqrt(np.maximum(value + eps, 0.0)) if under else np.sqrt(value) + eps
            if _near(root, made, off) is None or eps < -4 * fitted.off:
                continue
            constant = recognised(fitted, seen.difference.scene)
            number_ = max(0.0, eps) if constant is None else constant.value
            exact = Fraction(f"{number_:.6g}")
            how_many = int(constant is None)
            yield (
                (0.5, exact, Fraction(0), how_many)
                if under
                else (0.5, Fraction(0), exact, how_many)
            )
            return
        for power in POWERS if how == _own_square(seen.norm) else ():
            if _near(root, (value + own) ** power, off) is not None:
                yield power, seen.norm.eps, Fraction(0), 0
                return


# ------------------------------------------------------------------------ words and edits


def _told(how: Statistic | None) -> str:
    """A statistic in words."""
    if how is None:
        return _("nothing")
    words = {
        "mean": _("the mean"), "median": _("the median"), "first": _("the first number"),
        "largest": _("the largest number"), "smallest": _("the smallest number"),
        "middle of the range": _("the middle of the range"), "variance": _("the variance"),
        "mean square": _("the mean square"), "mean square of sizes": _("the square of the mean size"),
        "square of the largest": _("the square of the largest size"),
        "sum of squares": _("the sum of squares"),
        "sum of squares about the mean": _("the sum of squares about the mean"),
        "square of the range": _("the square of the range"),
    }  # fmt: skip
    over = {
        "the row": "", "the first half of the channels": _(" of the first half of the channels"),
        "the second half of the channels": _(" of the second half of the channels"),
        "the even channels": _(" of the even channels"),
        "the odd channels": _(" of the odd channels"),
        "all but the last channel": _(" of all but the last channel"),
        "all but the first channel": _(" of all but the first channel"),
        "all rows together": _(" of all positions together"),
        "the row before": _(" of the position before"),
        "the row after": _(" of the position after"),
        "the first row": _(" of the first position"), "the last row": _(" of the last position"),
        "all heads together": _(" of all heads together"),
        "the rows up to this one": _(" of all positions up to this one"),
    }  # fmt: skip
    less = _(", divided by n - {less}").format(less=how.less) if how.less else ""
    return words[how.what] + over[how.over] + less


def _mean_edit(seen: Seen, centre: Statistic | None) -> Reading:
    said = _("it follows if {centre} is subtracted; the model subtracts {own}")
    change = _("subtract {own} of each position")
    make = partial(_rebuilt, norm=seen.norm, centre=centre, square=_own_square(seen.norm))
    return seen.difference.edit("norm-mean", said, change, make, unlikely=1, centre=_told(centre),
                                own=_told(_own_mean(seen.norm)))  # fmt: skip


def _square_edit(
    seen: Seen, centre: Statistic | None, how: Statistic, *, eps: Fraction, power: float = 0.5,
    after: Fraction = Fraction(0), fitted: int = 0, at_square: float = 0.0,
) -> Reading:  # fmt: skip
    own, own_eps = _own_square(seen.norm), seen.norm.eps
    make = partial(_rebuilt, norm=seen.norm, centre=centre, square=how, eps=eps, power=power,
                   after=after, at_square=at_square)  # fmt: skip
    words: dict[str, Any] = {
        "how": _told(how), "own": _told(own), "eps": number(own_eps), "other": number(eps or after),
        "centre": _told(centre), "mean": _told(_own_mean(seen.norm)), "power": f"{power:.4g}",
    }  # fmt: skip
    said, kind = (
        _("it follows if the norm divides by the root of {how}; the model takes {own}"),
        "norm-statistic",
    )
    change = _("take {own} of each position")
    if at_square:
        said = _(
            "it follows if eps {eps} is added to {own} already; the model adds it under the root"
        )
        change, kind = _("add eps once, under the root"), "eps-place"
    elif seen.square is not None:
        said = _("it follows if it is {how}; the model takes {own}")
    elif how == own and centre == _own_mean(seen.norm):
        kind, change = "eps-value", _("use eps {eps} in this norm, under the root")
        said = _("it follows if eps is {other}; the model says {eps}")
        if power != 0.5:
            said, kind = _("it follows if the norm divides by the power {power} of {own} plus eps; the "
                           "model takes the root"), "norm-power"  # fmt: skip
            change = _("divide by the square root")
        elif after:
            said = _("it follows if {other} is added after the root; the model says √(v + {eps})")
            kind = "eps-place"
    elif centre != _own_mean(seen.norm):
        said = _("it follows if {centre} is subtracted and the norm divides by the root of {how}; "
                 "the model subtracts {mean} and takes {own}")  # fmt: skip
        change = _("subtract {mean}, and take {own} of each position")
    return seen.difference.edit(kind, said, change, make, fitted=fitted, unlikely=1, **words)


def _rebuilt(
    draft: Draft, target: Step, *, norm: Group, centre: Statistic | None, square: Statistic,
    eps: Fraction | None = None, power: float = 0.5, after: Fraction = Fraction(0),
    at_square: float = 0.0,
) -> None:  # fmt: skip
    """Writes the norm anew before the target, from its source on, and keeps the target's part."""
    at, source, lines = target.address, norm.source, norm.lines
    whole = lines["normalized"]
    row = lines[norm.square]
    made: dict[str, str] = {}
    x = source
    if centre is not None:
        made["mean"] = draft.write(at, "statistic", {"x": source}, row.axes, row.shape, how=centre,
                                   centred=True)  # fmt: skip
        x = draft.write(at, "center", {"x": source, "mean": made["mean"]}, whole.axes, whole.shape)
    made["centered"] = x
    made[norm.square] = draft.write(at, "statistic", {"x": source}, row.axes, row.shape, how=square,
                                    centred=norm.layernorm)  # fmt: skip
    if at_square:
        made[norm.square] = draft.made_of(made[norm.square], "raised", at, by=Fraction(at_square))
    own = norm.eps if eps is None else eps
    made[norm.root] = draft.write(
        at, "rooted", {"x": made[norm.square]}, row.axes, row.shape, eps=float(own), power=power,
        after=float(after))  # fmt: skip
    by = {"x": x, "by": made[norm.root]}
    made["normalized"] = draft.write(at, "normalize", by, whole.axes, whole.shape)
    if "out" in lines:
        made["out"] = draft.copy(at, lines["out"], x=made["normalized"])
    draft.keep(at, made[at.rpartition(".")[2]])
