"""Positions and rates of RoPE as the claim shows them, recognised and put into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, isfinite, log

import numpy as np
import numpy.typing as npt

from byhand.language import _
from byhand.numbers.floats.angles import frequencies_of

Floats = npt.NDArray[np.float64]
SURE = 6.0  # × the error of a fitted number: a known number within it may be meant
FINE = 2.0**-19  # relative error within which two rates or positions are the same
NEAR = 3.0  # × the error of a fitted number: the simplest number within it is meant
DENOMINATORS = (1, 2, 3, 4, 5, 8, 10, 16, 20, 32, 64, 100, 128)  # of ratios that people use
MOST_NAMED = 6
BASES = (
    100, 500, 1000, 5000, 8000, 10_000, 20_000, 25_000, 50_000, 100_000, 150_000, 160_000, 250_000,
    500_000, 1_000_000, 2_000_000, 4_000_000, 5_000_000, 8_000_000, 10_000_000, 100_000_000,
)  # fmt: skip


@dataclass(frozen=True)
class Told:
    """What is different, in words, with the numbers that make it so."""

    kind: str
    said: str  # what stands after "it follows if"
    own: str  # what stands after "the model"
    change: str
    fitted: int
    positions: Floats | None = None
    rates: Floats | None = None
    base: Fraction | None = None
    unlikely: int = 0

    def turned(self, width: int) -> Floats:
        """The rates that it says."""
        if self.base is not None:
            return np.asarray(frequencies_of(self.base, width))
        assert self.rates is not None
        return self.rates


def listed(numbers: Sequence[int]) -> str:
    """Numbers as people list them: 0-3, 7, 9."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    if len(parts) > MOST_NAMED:
        parts = [*parts[: MOST_NAMED - 1], "…", parts[-1]]
    return ", ".join(parts)


def ratio(value: float, error: float) -> Fraction | None:
    """The simple fraction that is meant by a fitted number."""
    if not isfinite(value):
        return None
    room = NEAR * error + FINE * abs(value)
    for denominator in DENOMINATORS:
        found = Fraction(round(value * denominator), denominator)
        if abs(float(found) - value) <= room and room * denominator < 0.2:
            return found
    return None


def shown(value: float | Fraction, error: float = 0.0) -> str:
    """A number in a sentence, with no more digits than its error leaves."""
    if isinstance(value, Fraction) and value.denominator <= DENOMINATORS[-1]:
        return str(value)
    number = float(value)
    return f"{roundest(number, error):.6g}" if error else f"{number:.6g}"


def roundest(value: float, error: float) -> float:
    """The number with the fewest digits within the error of a fitted one."""
    if abs(value) <= NEAR * error:
        return 0.0
    for digits in range(1, 16):
        short = float(f"{value:.{digits - 1}e}")
        if abs(short - value) <= NEAR * error:
            return short
    return value


# ------------------------------------------------------------------------ positions


def told_positions(own: Floats, found: Floats, error: Floats) -> Told | None:
    """How the positions differ from the model's; None where they do not, or in no simple way."""
    room = SURE * error + FINE * np.abs(found)
    other = np.flatnonzero(np.abs(found - own) > room)
    if not len(other):
        return None
    whole = np.round(found)
    whole = np.where(np.abs(found - whole) <= room, whole, found)
    few = _few_positions(own, np.where(np.isin(np.arange(len(own)), other), whole, own), other)
    if len(other) == 1 and len(own) > 2:
        return few
    stretched = _stretched(own, found, error)
    if stretched is not None:
        return stretched
    pattern = None
    if (whole == np.round(found)).all():
        pattern = _pattern(own.astype(int), whole.astype(int))
    if pattern is None:
        return few if len(other) <= len(own) // 2 else None
    return Told("rope-positions", *pattern, _("look for the positions that reach the rotation"),
                fitted=1, positions=whole)  # fmt: skip


def _stretched(own: Floats, found: Floats, error: Floats) -> Told | None:
    """All positions times a factor: scaled positions, or a rotation applied twice."""
    weight = 1 / np.square(error)
    power = float((weight * own * own).sum())
    if not power:
        return None
    times = float((weight * own * found).sum()) / power
    known = ratio(times, power**-0.5)
    factor = roundest(times, power**-0.5) if known is None else float(known)
    if not (np.abs(found - own * factor) <= SURE * error + FINE * np.abs(found)).all():
        return None
    by = _("turns position p by p·rate")
    if known == 0:
        said, change = _("RoPE is not applied"), _("apply RoPE")
    elif known == -1:
        said = _("RoPE turns the other way (sin with the other sign)")
        change = _("turn (a, b) into (a·cos - b·sin, a·sin + b·cos)")
    elif known == 2:
        said = _("RoPE is applied twice, or every position is doubled")
        change = _("apply RoPE once")
    else:
        said = _("every position is multiplied by {factor}").format(factor=shown(known or factor))
        inverse = ratio(1 / factor, 0.0) or 1 / factor
        change = _("look for a scaling of positions (rope_scaling, factor {inverse}) that the "
                   "model does not have").format(inverse=shown(inverse))  # fmt: skip
    return Told("rope-positions", said, by, change, fitted=1, positions=own * factor)


def _pattern(own: npt.NDArray[np.int_], found: npt.NDArray[np.int_]) -> tuple[str, str] | None:
    """A rule that gives the whole positions, in words; and the model's."""
    last, first = int(found.max()), int(own[0])
    off = found - own
    turns = np.flatnonzero(np.diff(off)) + 1
    goes_on = _("counts on")
    if not turns.size:
        said = _("RoPE counts positions from {other}").format(other=int(found[0]))
        return said, _("counts from {own}").format(own=first)
    if (found == found[0]).all():
        said = _("RoPE turns every position as position {other}").format(other=int(found[0]))
        return said, _("turns each by its own")
    if (found == np.minimum(own, last)).all():
        return _("positions stop at {last} and stay there").format(last=last), goes_on
    if (found == own[::-1]).all():
        return _("positions count backwards"), _("counts from {own}").format(own=first)
    if last >= 1 and (found == own % (last + 1)).all():
        return _("positions begin again after {last}").format(last=last), goes_on
    if len(turns) == 1 and not off[0]:
        at, by = int(own[turns[0]]), int(off[-1])
        if found[turns[0]] == 0:
            return _("positions begin again at position {at}").format(at=at), goes_on
        return _("positions are larger by {by} from position {at} on").format(at=at, by=by), goes_on
    start = int(np.flatnonzero(off)[0])
    if (found[start:] == found[start]).all():
        said = _("from position {at} on, every position is turned as position {other}")
        return said.format(at=int(own[start]), other=int(found[start])), goes_on
    for step in range(2, 17):
        if (found == own // step).all():
            said = _("{step} neighbours share one position").format(step=step)
            return said, _("gives each its own")
    return None


def _few_positions(own: Floats, use: Floats, other: npt.NDArray[np.int_]) -> Told:
    """Some positions alone that are turned as others."""
    said = _("position {at} is turned as position {other}")
    pairs = [said.format(at=int(own[at]), other=f"{use[at]:g}") for at in other[:MOST_NAMED]]
    return Told(
        "rope-positions",
        ", ".join(pairs) + ", …" * (len(other) > MOST_NAMED),
        _("turns each by its own"),
        _("look for the positions that reach the rotation"),
        fitted=len(other), positions=use, unlikely=1,
    )  # fmt: skip


# ------------------------------------------------------------------------ rates


@dataclass(frozen=True)
class Rates:
    """The model's rates and the claim's, with the errors of the latter."""

    own: Floats
    found: Floats
    error: Floats
    base: float | None  # the model's own, where its rates are powers of one
    d_head: int

    @property
    def width(self) -> int:
        """The entries of a head that are turned."""
        return 2 * len(self.own)

    def same(self, other: Floats | float) -> npt.NDArray[np.bool_]:
        """Where the claim's rates are these."""
        near: npt.NDArray[np.bool_] = np.abs(
            self.found - other
        ) <= SURE * self.error + FINE * np.abs(other)
        return near

    @property
    def tells(self) -> npt.NDArray[np.bool_]:
        """Where the error is small enough to tell a rate from nothing."""
        tells: npt.NDArray[np.bool_] = SURE * self.error < 0.5 * np.abs(self.own)
        return tells


def told_rates(rates: Rates) -> Told | None:
    """How the rates differ from the model's; None where they do not, or in no known way."""
    if rates.same(rates.own).all() or not rates.tells.any():
        return None
    return _base(rates) or _moved_pairs(rates) or _some_pairs(rates)


def _base(rates: Rates) -> Told | None:
    """Rates that are powers of another base."""
    count = len(rates.own)
    pair = np.arange(count)
    use = (pair > 0) & (rates.found > SURE * rates.error) & np.isfinite(rates.error)
    if use.sum() < 2:
        return None
    blur = rates.error[use] / rates.found[use] + FINE
    weight = 1 / np.square(blur)
    logs, pairs = np.log(rates.found[use]), pair[use].astype(float)
    power = float((weight * pairs * pairs).sum())
    slope = -float((weight * pairs * logs).sum()) / power
    found, error = slope * count, count / np.sqrt(power)  # ln base, and its error
    if not 0.5 < found < 60 or SURE * error > 0.2 * found:
        return None
    if not rates.same(np.exp(-found / count * pair)).all():
        return None
    base, why = _known_base(rates, found, error)
    change = _("use rope_theta {own}").format(own=shown(rates.base)) if rates.base else _(
        "use the frequencies of the model")  # fmt: skip
    own = shown(rates.base) if rates.base else _("frequencies of its own")
    said = _("the base of RoPE is {other}{why}").format(other=shown(float(base)), why=why)
    return Told("rope-base", said, _("says {own}").format(own=own), change, fitted=1, base=base)


def _known_base(rates: Rates, found: float, error: float) -> tuple[Fraction, str]:
    """The base that is meant, and where it comes from."""
    room = SURE * error + FINE
    for base in BASES:
        if abs(log(base) - found) <= room:
            return Fraction(base), ""
    if rates.base:
        own, width = log(rates.base), rates.width
        for other in dict.fromkeys((rates.d_head, 2 * width, width // 2, 4 * width)):
            if other != width and abs(own * width / other - found) <= room:
                why = _(" (exponents over {other} entries, not over {width})")
                return Fraction(rates.base ** (width / other)), why.format(other=other, width=width)
        for factor in (2, 4, 8, 16, 32):
            if abs(own + log(factor) * width / (width - 2) - found) <= room and width > 2:
                why = _(" (NTK scaling by {factor})").format(factor=factor)
                return Fraction(rates.base * factor ** (width / (width - 2))), why
    return Fraction(roundest(exp(found), error * exp(found))), ""


def _moved_pairs(rates: Rates) -> Told | None:
    """Rates of other pairs: shifted by one, or in reverse."""
    own, count = rates.own, len(rates.own)
    if count < 3:
        return None
    step = own[1] / own[0] if own[0] else 1.0
    for said, other in (
        (_("pair i turns at the rate of pair i + 1"), own * step),
        (_("pair i turns at the rate of pair i - 1"), own / step if step else own),
        (_("the rates are in reverse: pair i turns at the rate of pair {last} - i").format(
            last=count - 1), own[::-1]),
    ):  # fmt: skip
        if rates.same(other).all():
            return Told("rope-rates", said, _("turns it at its own rate"),
                        _("look for the index of the frequencies"), fitted=0, rates=other,
                        unlikely=1)  # fmt: skip
    return None


def _some_pairs(rates: Rates) -> Told | None:
    """Rates that differ for some pairs, each by a factor."""
    other = np.flatnonzero(~rates.same(rates.own))
    with np.errstate(divide="ignore", invalid="ignore"):
        times = rates.found[other] / rates.own[other]
        blur = rates.error[other] / np.abs(rates.own[other])
    if not len(other) or not np.isfinite(times).all() or not np.isfinite(blur).all():
        return None
    weight = 1 / np.square(blur + FINE)
    mean = float((weight * times).sum() / weight.sum())
    known = ratio(mean, 1 / float(np.sqrt(weight.sum())))
    sure = float(weight.sum()) ** -0.5
    factor = roundest(mean, sure) if known is None else float(known)
    which = listed([int(each) for each in other])
    names = (_("pair {which} is") if len(other) == 1 else _("pairs {which} are")).format(
        which=which
    )
    use = rates.own.copy()
    use[other] = rates.own[other] * factor
    if rates.same(use).all():
        fitted = 1
        if factor == 0:
            said = _("{names} not turned")
        elif factor == -1:
            said = _("{names} turned the other way")
        else:
            said = _("{names} turned {factor} times as fast")
        said = said.format(names=names, factor=shown(factor if known is None else known))
    else:
        use[other] = rates.found[other]
        fitted = len(other)
        factors = ", ".join(f"{each:.4g}" for each in times[:MOST_NAMED])
        said = _("{names} turned {factors} times as fast").format(
            names=names, factors=factors + ", …" * (len(other) > MOST_NAMED)
        )
    return Told(
        "rope-rates",
        said,
        _("turns each at its own rate"),
        _("look for a scaling of the frequencies (rope_scaling), or for its missing part"),
        fitted=fitted, rates=use, unlikely=int(fitted > 2),
    )  # fmt: skip
