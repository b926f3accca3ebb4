"""Differences of a norm: which mean, which variance and which eps its claims show.

The mean and the divisor that a claim shows (`norm_rows`) are compared with statistics of the rows:
over other channels or positions, with another count, with another eps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from byhand.checking.differences.closeness import Fitted, rms
from byhand.checking.differences.constants import recognised
from byhand.checking.differences.difference import Description, Difference, Floats, Reading
from byhand.checking.differences.gains import gain_readings
from byhand.checking.differences.grouped import grouped_readings
from byhand.checking.differences.norm_rows import GOOD, Seen, seen_from, start_of
from byhand.checking.differences.product import READ_OFF
from byhand.checking.differences.told import told
from byhand.checking.suspects.mistakes import number
from byhand.checking.suspects.norms import group
from byhand.checking.suspects.row_statistics import MEANS, OVER, SQUARES, Statistic
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

WORST = 8.0  # usual errors that a match leaves at most
LEAST = 3  # rows
ABOUT = ("variance", "sum of squares about the mean", "square of the range")
POWERS = (1.0, 0.25, 1 / 3, 2.0)


def statistic_readings(difference: Difference) -> Iterator[Reading]:
    """Another mean, variance, eps or gain of a norm."""
    target = difference.target
    norm = group(difference.scene, target.address.rpartition(".")[0])
    if norm is None or not difference.whole or not difference.finite.all():
        return
    if target.address not in {step.address for step in norm.lines.values()}:
        return
    start = start_of(difference, norm)
    if start is None or start.x[..., 0].size < LEAST or start.x.shape[-1] < LEAST:
        return
    out = norm.lines.get("out")
    seen = None if target is out and "normalized" not in norm.open else seen_from(start)
    found = list(_matched(seen)) if seen is not None else []
    yield from found
    if found:
        return
    found = list(
        grouped_readings(difference, norm, start.x, start.base, start.own_mean is not None)
    )
    yield from found
    if not found and target is out:
        yield from gain_readings(difference, norm)


# ------------------------------------------------------------------------ what it matches


def _near(values: Floats, others: Floats, off: Floats) -> float | None:
    """What is left, in usual errors, where two sets of rows are alike; None: they are not."""
    with np.errstate(all="ignore"):
        floor = 2.0**-24 * np.abs(others)
        left = (values - others) / np.maximum(off, floor)
    if not np.isfinite(left).all() or float(np.abs(left).max(initial=0.0)) > WORST:
        return None
    rest = rms(left)
    return rest if rest <= GOOD else None


def _matched(seen: Seen) -> Iterator[Reading]:
    """The statistics that the rows show; nothing where they show the model's own."""
    centre = seen.own_mean
    if seen.mean is not None:
        known, centre = _which_mean(seen, *seen.mean)
        if not known:
            return
    if seen.square is not None:
        yield from _squares(seen, *seen.square)
    elif seen.root is not None:
        yield from _roots(seen, centre, *seen.root)
    elif centre != seen.own_mean:
        yield _mean_edit(seen, centre)


def _which_mean(seen: Seen, mean: Floats, off: Floats) -> tuple[bool, Statistic | None]:
    """Whether it is known what was subtracted; and what: None for nothing."""
    own, zero = seen.own_mean, np.zeros(mean.shape)
    if own is None and _near(mean, zero, off) is not None:
        return True, None
    if own is not None and _near(mean, own(seen.x), off) is not None:
        return True, own
    if _near(mean, zero, off) is not None:
        return True, None
    for over in OVER:
        for what in MEANS:
            each = Statistic(what, over)
            if _near(mean, _of(each, seen.x), off) is not None:
                return True, each
    return (False, None) if own is None else _part_of(seen, own, mean, off)


def _part_of(
    seen: Seen, own: Statistic, mean: Floats, off: Floats
) -> tuple[bool, Statistic | None]:
    """The mean times a factor that is a known constant."""
    value, weights = own(seen.x), 1 / np.square(off)
    with np.errstate(all="ignore"):
        size = float((np.square(value) * weights).sum())
        fit = Fitted(float((value * mean * weights).sum()) / size, float(1 / np.sqrt(size)))
    constant = recognised(fit, seen.difference.scene) if np.isfinite(fit.value + fit.off) else None
    if constant is None or _near(mean, constant.value * value, off) is None:
        return False, None
    return True, replace(own, factor=constant.value)


def _of(how: Statistic, x: Floats) -> Floats:
    if how.over == "all but the last channel" and min(x.shape[-2:]) < 2:
        return np.full(x.shape[:-1], np.nan)
    return np.asarray(how(x))


def _candidates(seen: Seen) -> Iterator[tuple[Statistic, Floats]]:
    """Variances, the model's own first, with their values."""
    own = seen.own_square
    yield own, _of(own, seen.x) if seen.square_value is None else seen.square_value
    plain = [Statistic(what) for what in ("variance", "mean square")]
    less = [replace(each, less=1) for each in plain]
    ways = sorted(SQUARES, key=lambda what: what != own.what)
    others = [Statistic(what, over) for over in OVER for what in ways]
    if seen.own_mean is not None:  # of the centred rows
        sizes = [what for what in SQUARES if what not in ABOUT]
        others += [Statistic(what, over, centred=True) for over in OVER for what in sizes]
    for each in (*plain, *less, *others):
        if each == own:
            continue
        value = _of(each, seen.x)
        if np.isfinite(value).all():
            yield each, value


def _other_kind(seen: Seen, centre: Statistic | None, how: Statistic) -> bool:
    """Whether it is RMSNorm in place of a layernorm, or the other way round."""
    other = (None, "mean square") if seen.norm.layernorm else (Statistic("mean"), "variance")
    return seen.base == seen.norm.source and (centre, how) == (other[0], Statistic(other[1]))


def _without(seen: Seen, square: Floats) -> Iterator[tuple[Statistic, Floats]]:
    """The model's own statistic without the channel that would explain the difference best."""
    if seen.own_square.what != "mean square":
        return
    size, squares = seen.x.shape[-1], np.square(seen.x)
    for less in (0, -1):  # the divisor counts the others, or all
        count = size - 1 if not less else size
        missing = squares.sum(axis=-1) - count * square
        away = np.abs(squares - missing[..., None]).reshape(-1, size).sum(axis=0)
        how = replace(seen.own_square, channel=int(away.argmin()), less=less)
        yield how, _of(how, seen.x)


def _squares(seen: Seen, square: Floats, off: Floats) -> Iterator[Reading]:
    """A claimed variance or mean square: of which numbers?"""
    eps = float(seen.norm.eps)
    for how, value in (*_candidates(seen), *_without(seen, square)):
        for more in (0.0, eps):
            if _near(square, value + more, off) is None:
                continue
            if how != seen.own_square or more:
                yield _square_edit(seen, seen.own_mean, how, eps=seen.norm.eps, at_square=more)
            return


def _roots(seen: Seen, centre: Statistic | None, root: Floats, off: Floats) -> Iterator[Reading]:
    """The divisor: of which variance, with which eps, which power?"""
    for how, value in _candidates(seen):
        found = _with_eps(seen, value, root, off, any_power=how == seen.own_square)
        if found is None:
            continue
        same = how == seen.own_square and centre == seen.own_mean
        if _other_kind(seen, centre, how):
            return  # the list of suspects has it
        plain = found.power == 0.5 and not found.after and _is(found.under, float(seen.norm.eps))
        if not same or not plain:
            yield _square_edit(seen, centre, how, eps=found.under, power=found.power,
                               after=found.after, fitted=found.fitted, told=found.told)  # fmt: skip
        return
    if seen.difference.target is seen.norm.out:
        value = _of(seen.own_square, seen.x) if seen.square_value is None else seen.square_value
        ratio = root / np.sqrt(value + float(seen.norm.eps))
        sentence = _("each row is (x - m)/s with another s than the model's: {ratios}, … times as "
                     "large")  # fmt: skip
        ratios = ", ".join(f"{each:.4g}" for each in ratio.reshape(-1)[:3])
        yield Description(sentence.format(ratios=ratios), 2)


def _is(eps: Fraction, own: float) -> bool:
    return abs(float(eps) - own) <= 1e-3 * own + 1e-15


@dataclass(frozen=True)
class _Eps:
    """How a divisor comes from a variance: (v + under)^power + after."""

    under: Fraction
    after: Fraction = Fraction(0)
    power: float = 0.5
    fitted: int = 0
    told: str = ""  # the number that was read off the claim


def _with_eps(
    seen: Seen, value: Floats, root: Floats, off: Floats, *, any_power: bool
) -> _Eps | None:
    """The eps and the power that lead from a variance to the divisor; None: there are none."""
    eps = seen.norm.eps
    own = float(eps)
    with np.errstate(all="ignore"):
        if _near(root, np.sqrt(value + own), off) is not None:
            return _Eps(eps)
        if own and _near(root, np.sqrt(value) + own, off) is not None:
            return _Eps(Fraction(0), eps)
        for under in (True, False):
            apart = np.square(root) - value if under else root - np.sqrt(value)
            weights = 1 / np.square(2 * root * off if under else off)
            found = Fitted(float((apart * weights).sum() / weights.sum()),
                           float(1 / np.sqrt(weights.sum())))  # fmt: skip
            made = np.sqrt(np.maximum(value + found.value, 0.0)) if under else (
                np.sqrt(value) + found.value)  # fmt: skip
            if _near(root, made, off) is None or found.value < -4 * found.off:
                continue
            exact, fitted = _plain_eps(seen, found)
            said = number(exact) if not fitted else told(found.value, found.off)
            zero = Fraction(0)
            return _Eps(*((exact, zero) if under else (zero, exact)), fitted=fitted, told=said)
        for power in POWERS if any_power else ():
            if _near(root, (value + own) ** power, off) is not None:
                return _Eps(eps, power=power)
    return None


def _plain_eps(seen: Seen, found: Fitted) -> tuple[Fraction, int]:
    """The eps as people write it, and 0; as it was read off the claim, and 1."""
    value = max(found.value, 0.0)
    near = 4 * found.off + 2.0**-20 * value
    if value <= near:
        return Fraction(0), 0
    if found.off < 0.05 * value:
        for digits in (1, 2):
            plain = float(f"{value:.{digits}g}")
            if abs(plain - value) <= near and near < 0.5 * 10.0 ** (1 - digits) * 0.1 * plain:
                return Fraction(f"{plain:.{digits}g}"), 0
        for digits in (1, 2):
            plain = float(f"{value:.{digits}g}")
            if abs(plain - value) <= near and digits == 1:
                return Fraction(f"{plain:.{digits}g}"), 1
    constant = recognised(found, seen.difference.scene)
    return (Fraction(f"{value:.6g}"), 1) if constant is None else (Fraction(constant.value), 0)


# ------------------------------------------------------------------------ words and edits


def _told(how: Statistic | None, seen: Seen) -> str:
    """A statistic in words; of centred rows the mean square is the variance."""
    if how is None:
        return _("nothing")
    centred = seen.base != seen.norm.source or how.centred
    square = _("the variance") if centred else _("the mean square")
    words = {
        "mean": _("the mean"), "median": _("the median"), "first": _("the first number"),
        "largest": _("the largest number"), "smallest": _("the smallest number"),
        "middle of the range": _("the middle of the range"), "variance": _("the variance"),
        "mean square": square, "mean square of sizes": _("the square of the mean size"),
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
    if how.factor != 1.0:
        return _("{factor} × the mean").format(factor=f"{how.factor:.6g}")
    less = _(", divided by n - {less}").format(less=how.less) if how.less > 0 else ""
    if how.channel is not None:
        less = _(" of all channels but {channel}").format(channel=how.channel)
    return words[how.what] + over[how.over] + less


def _mean_edit(seen: Seen, centre: Statistic | None) -> Reading:
    said = _("it follows if {centre} is subtracted; the model subtracts {own}")
    change = _("subtract {own} of each position")
    make = partial(_rebuilt, seen=seen, centre=centre, square=seen.own_square)
    return seen.difference.edit("norm-mean", said, change, make, unlikely=READ_OFF,
                                centre=_told(centre, seen),
                                own=_told(seen.own_mean, seen))  # fmt: skip


def _square_edit(
    seen: Seen, centre: Statistic | None, how: Statistic, *, eps: Fraction, power: float = 0.5,
    after: Fraction = Fraction(0), fitted: int = 0, at_square: float = 0.0, told: str = "",
) -> Reading:  # fmt: skip
    own, own_eps = seen.own_square, seen.norm.eps
    make = partial(_rebuilt, seen=seen, centre=centre, square=how, eps=eps, power=power,
                   after=after, at_square=at_square)  # fmt: skip
    words: dict[str, Any] = {
        "how": _told(how, seen), "own": _told(own, seen), "eps": number(own_eps),
        "other": told or number(eps or after),
        "centre": _told(centre, seen), "mean": _told(seen.own_mean, seen), "power": f"{power:.4g}",
    }  # fmt: skip
    kind = "norm-statistic"
    said = _("it follows if the norm divides by the root of {how}; the model takes {own}")
    change = _("take {own} of each position")
    if at_square:
        said = _(
            "it follows if eps {eps} is added to {own} already; the model adds it under the root"
        )
        change, kind = _("add eps once, under the root"), "eps-place"
    elif seen.square is not None:
        said = _("it follows if it is {how}; the model takes {own}")
    elif how == own and centre == seen.own_mean:
        kind, change = "eps-value", _("use eps {eps} in this norm, under the root")
        said = _("it follows if eps is {other}; the model says {eps}")
        if power != 0.5:
            said, kind = _("it follows if the norm divides by the power {power} of {own} plus eps; "
                           "the model takes the root"), "norm-power"  # fmt: skip
            change = _("divide by the square root")
        elif after:
            said = _("it follows if {other} is added after the root; the model says √(v + {eps})")
            kind = "eps-place"
    elif centre != seen.own_mean:
        said = _("it follows if {centre} is subtracted and the norm divides by the root of {how}; "
                 "the model subtracts {mean} and takes {own}")  # fmt: skip
        change = _("subtract {mean}, and take {own} of each position")
    return seen.difference.edit(kind, said, change, make, fitted=fitted, unlikely=READ_OFF, **words)


def _rebuilt(
    draft: Draft, target: Step, *, seen: Seen, centre: Statistic | None, square: Statistic,
    eps: Fraction | None = None, power: float = 0.5, after: Fraction = Fraction(0),
    at_square: float = 0.0,
) -> None:  # fmt: skip
    """Writes the norm anew before the target, from its rows on, and keeps the target's part."""
    at, base, norm = target.address, seen.base, seen.norm
    whole, row = norm.lines["normalized"], norm.lines[norm.square]
    made: dict[str, str] = {}
    x = base
    if centre is not None:
        mean = draft.write(at, "statistic", {"x": base}, row.axes, row.shape, how=centre,
                           centred=True)  # fmt: skip
        made["mean"] = mean
        x = draft.write(at, "center", {"x": base, "mean": mean}, whole.axes, whole.shape)
    made["centered"] = x
    if square == seen.own_square and seen.square_value is not None:
        made[norm.square] = row.address
    else:
        made[norm.square] = draft.write(at, "statistic", {"x": base}, row.axes, row.shape,
                                        how=square, centred=norm.layernorm)  # fmt: skip
    if at_square:
        made[norm.square] = draft.made_of(made[norm.square], "raised", at, by=Fraction(at_square))
    if target.address != row.address:
        own = norm.eps if eps is None else eps
        made[norm.root] = draft.write(
            at, "rooted", {"x": made[norm.square]}, row.axes, row.shape, eps=float(own),
            power=power, after=float(after))  # fmt: skip
        by = {"x": x, "by": made[norm.root]}
        made["normalized"] = draft.write(at, "normalize", by, whole.axes, whole.shape)
        if "out" in norm.lines:
            made["out"] = draft.copy(at, norm.lines["out"], x=made["normalized"])
    draft.keep(at, made[at.rpartition(".")[2]])
