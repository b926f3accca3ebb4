"""Numbers that were dropped, rounded, quantised or clamped after they had been worked out.

Each leaves a mark on the claimed numbers themselves: zeros, short significands, whole multiples of
a scale, few decimals, a plateau.  The mark is looked for first; then the numbers must be what
follows, rounded so.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.axes import Part, compact
from byhand.checking.differences.closeness import SOME, Entries, Fitted, near, quietly
from byhand.checking.differences.constants import recognised, shown
from byhand.checking.differences.difference import Description, Difference, Floats, Reading, Truths
from byhand.checking.differences.fits import fitted_factor
from byhand.checking.differences.places import Place, places, sides
from byhand.checking.suspects.casts import FLOATS, bits_of, rounded_to
from byhand.checking.suspects.dropout import PLACES, shown_rate
from byhand.checking.suspects.grids import COLUMN, ROW, TENSOR, Grid, on_grid, scales
from byhand.checking.suspects.mistakes import number, then
from byhand.language import _

FEWEST = 12  # numbers that must show a mark
FEWEST_EACH = 8  # numbers of a slice that must show it
FEWEST_CLAMPED = 3  # numbers on a plateau
MOST_ZEROS = 0.9  # of the numbers: more are told as a line of zeros
MOST_PLACES = 6  # decimals
NARROW = ("float8_e5m2", "float8_e4m3", "bfloat16", "float16", "tf32")  # the narrowest first
GROUPS = ("16", "32", "64", "128", "256")
FEW = 8  # rows or columns that are looked at first
MOSTLY = 0.8  # of the numbers must be on a grid that does not show
LARGEST_UNSEEN = 1 << 18  # numbers of a line for which such grids are tried
LARGEST_STEP, SMALLEST_STEP = 4, -12  # powers of two
COARSE = 0.1  # of a step: where rounding is larger, a grid cannot be seen


@quietly
def format_readings(difference: Difference) -> Iterator[Reading]:
    """The mark that a rounding, a dropout or a limit has left on the claimed numbers."""
    part = Part.of(difference)
    if part is None or not difference.wrong.any() or not difference.finite.any():
        return
    for reader in (
        _dropped, _zeros, _infinite, _clamped, _stepped, _narrow, _quantised, _few_decimals,
    ):  # fmt: skip
        found = list(reader(difference, part))
        yield from found
        if found:
            return


# ------------------------------------------------------------------------ dropped


def _dropped(difference: Difference, part: Part) -> Iterator[Reading]:
    """A dropout of any rate; lines where people have one are suspected of it anyway."""
    if not difference.whole or difference.target.address.endswith(PLACES):
        return
    if int((difference.claimed == 0).sum()) < FEWEST_CLAMPED:
        return
    rate = shown_rate(difference.scene)
    if rate is None:
        return
    found = fitted_factor(Entries.of(difference, difference.claimed != 0, SOME))
    if found is None or abs(found.value * float(1 - rate) - 1) > 0.01:
        return
    yield difference.edit(
        "dropout",
        _("it follows if some of it is dropped and the rest is larger by 1/(1 - {rate}), as "
          "dropout leaves it; the model drops nothing"),
        _("switch dropout off: model.eval()"),
        then("dropped", values=difference.claimed, rate=rate),
        unlikely=2,
        rate=number(rate),
    )  # fmt: skip


def _zeros(difference: Difference, part: Part) -> Iterator[Reading]:
    """Zeros all over the line, where the rest follows."""
    zero = difference.finite & (difference.claimed == 0) & difference.wrong
    count = int(zero.sum())
    right = difference.there & ~difference.wrong
    if count < FEWEST_CLAMPED or (difference.wrong & ~zero).any() or not right.any():
        return
    if count > MOST_ZEROS * int(difference.there.sum()):
        return
    place = next(places(difference, part), None)
    if place is None or int((place.mask & difference.there).sum()) > count:
        said = _("{count} of {all} numbers are 0, all over the line; the others follow")
        everything = f"{int(difference.there.sum()):,}"
        yield Description(said.format(count=f"{count:,}", all=everything), 3)


# ------------------------------------------------------------------------ limited


def _infinite(difference: Difference, part: Part) -> Iterator[Reading]:
    """Infinite numbers where a format has no larger one."""
    at = difference.there & np.isfinite(difference.expected)
    endless = at & np.isinf(difference.claimed)
    if not endless.any() or (difference.wrong & ~endless).any():
        return
    size = np.abs(difference.expected)
    for name in ("float16", "float8_e5m2", "float8_e4m3"):
        largest = FLOATS[name][2]
        if size[endless].min() >= largest * (1 - 2.0**-9) and size[at & ~endless].max(
            initial=0.0
        ) <= largest * (1 + 2.0**-9):
            said = _("the numbers beyond {largest}, the largest of {format}, are infinite")
            yield Description(said.format(largest=f"{largest:,.0f}", format=name), 5)
            return


def _clamped(difference: Difference, part: Part) -> Iterator[Reading]:
    """A plateau: numbers above a limit, or below one, are the limit, everywhere or in a part."""
    whole = Place(np.ones(difference.wrong.shape, dtype=bool), "")
    for place in (whole, *places(difference, part)):
        limits = None if place.when is not None else _plateaus(difference, place.mask)
        if limits is None:
            continue
        predicted = np.where(place.mask, np.clip(difference.expected, *limits), difference.expected)
        if near(difference, predicted, place.mask):
            yield _clamp_edit(difference, part, place, limits)
            return


def _plateaus(difference: Difference, at: Truths) -> tuple[float, float] | None:
    """The lowest and the highest number, where several others would be beyond; ±∞: no limit."""
    where = at & difference.finite
    claimed = difference.claimed[where]
    if len(claimed) < FEWEST_CLAMPED:
        return None
    high, low = float(claimed.max()), float(claimed.min())
    if high == low or max((claimed == high).sum(), (claimed == low).sum()) < FEWEST_CLAMPED:
        return None
    own, room = difference.expected[where], difference.room[where]
    above, below = own > high + 8 * room, own < low - 8 * room
    top = int(above.sum()) >= FEWEST_CLAMPED and bool((claimed[above] == high).all())
    bottom = int(below.sum()) >= FEWEST_CLAMPED and bool((claimed[below] == low).all())
    if not top and not bottom:
        return None
    size = high if top else -low
    alike = high == -low or not ((top and bottom) or difference.target.op == "activate")
    if alike and size > 0 and float(np.abs(own[~(above | below)]).max(initial=0.0)) <= size:
        return -size, size  # nothing is beyond the other side, and both sides are usual
    return (low if bottom else -np.inf), (high if top else np.inf)


def _clamp_edit(
    difference: Difference, part: Part, place: Place, limits: tuple[float, float]
) -> Reading:
    low, high = (_limit(difference, value) for value in limits)
    if np.isinf(limits[0]):
        said = _("it follows if {place} are at most {high}; the model does not clamp them")
    elif np.isinf(limits[1]):
        said = _("it follows if {place} are at least {low}; the model does not clamp them")
    else:
        said = _("it follows if {place} are clamped to {low} … {high}; the model does not clamp "
                 "them")  # fmt: skip
    where = None if place.whole else compact(part.laid(place.mask, False))
    return difference.edit(
        "clamped",
        said,
        _("look for a clamp, or for a format with a smaller range"),
        then("limited", low=limits[0], high=limits[1], where=where),
        fitted=len({words for words, known in (low, high) if not known}),
        unlikely=1,
        place=_("numbers of {place}").format(place=place.said) if place.said else _("numbers"),
        low=low[0],
        high=high[0],
    )


def _limit(difference: Difference, value: float) -> tuple[str, bool]:
    """A limit in words, and whether it is a known constant; an infinite one has no words."""
    if np.isinf(value):
        return "", True
    found = Fitted(value, 2.0**-26 * abs(value))
    constant = recognised(found, difference.scene)
    return (shown(found), False) if constant is None else (constant.written, True)


# ------------------------------------------------------------------------ rounded


def _stepped(difference: Difference, part: Part) -> Iterator[Reading]:
    """Whole multiples of one step, a power of two, that the model does not have."""
    some = Entries.of(difference, difference.there, SOME).claimed
    unit = 2.0 ** -bits_of(difference.scene.context.precision)
    for power in range(LARGEST_STEP, SMALLEST_STEP - 1, -1):
        step = 2.0**power
        fine = some[np.abs(some) * unit < step / 8]  # the format has more numbers than the grid
        if int((np.abs(fine) > step / 2).sum()) < FEWEST or (fine % step != 0).any():
            continue
        everything = Entries.of(difference, difference.there)
        multiples = everything.claimed / step
        off = np.abs(everything.claimed - everything.own)
        room = np.hypot(everything.room, everything.again)
        if len(np.unique(multiples[:SOME])) < 5 or (multiples != np.rint(multiples)).any():
            return
        if (off > 0.51 * step + 8 * room).any():
            return
        yield difference.edit(
            "stepped",
            _("it follows if the result is rounded to multiples of {step}; the model keeps it as "
              "it is"),
            _("look for a rounding to multiples of {step} (fixed point) here"),
            then("to_multiples", step=step),
            unlikely=1,
            step=f"1/{2**-power}" if power < 0 else str(2**power),
        )  # fmt: skip
        return


def _narrow(difference: Difference, part: Part) -> Iterator[Reading]:
    """Slices, or the whole line, whose numbers a narrower format holds exactly."""
    bits = bits_of(difference.scene.context.precision)
    some = Entries.of(difference, difference.wrong, SOME).claimed
    for name in NARROW:
        if FLOATS[name][0] >= bits or not (rounded_to(name, some) == some).all():
            continue
        held = _held(difference, name)
        if (held | ~difference.finite).all() and _shows(difference, difference.finite):
            said = _("every number of this line is a number of {format}")
            yield Description(said.format(format=name), 3)
            return
        for axis in range(held.ndim):
            found = _held_slices(difference, held, axis)
            if found is not None and _rounded_there(difference, name, found):
                yield _cast_edit(difference, part, name, found)
                return


def _held(difference: Difference, name: str) -> Truths:
    """The numbers that a format holds exactly."""
    claimed = np.where(difference.finite, difference.claimed, 0.0)
    return np.asarray(difference.finite & (rounded_to(name, claimed) == claimed))


def _held_slices(difference: Difference, held: Truths, axis: int) -> Truths | None:
    """The slices along an axis that a format holds, as a mask, if there are others too."""
    rest = tuple(other for other in range(held.ndim) if other != axis)
    counted = difference.finite & (difference.claimed != 0)
    whole = (held | ~difference.finite).all(axis=rest) & (counted.sum(axis=rest) >= FEWEST_EACH)
    if not whole.any() or whole.all():
        return None
    shape = tuple(-1 if each == axis else 1 for each in range(held.ndim))
    return np.broadcast_to(whole.reshape(shape), held.shape)


def _shows(difference: Difference, at: Truths) -> bool:
    """Whether there are enough different numbers to show a format."""
    return len(np.unique(difference.claimed[at][:4096])) >= FEWEST


def _rounded_there(difference: Difference, name: str, mask: Truths) -> bool:
    """Whether everything that differs is what follows, rounded to a format, in this part."""
    if (difference.wrong & ~mask).any() or not _shows(difference, mask & difference.finite):
        return False
    at = mask & difference.finite
    bits, least, _largest = FLOATS[name]
    own, claimed = difference.expected[at], difference.claimed[at]
    step = np.maximum(np.abs(claimed) * 2.0**-bits, 2.0**least)
    return bool((np.abs(claimed - own) <= 1.01 * step + 8 * difference.room[at]).all())


def _cast_edit(difference: Difference, part: Part, name: str, mask: Truths) -> Reading:
    own = difference.scene.context.precision.partition("+")[0].rpartition(":")[2]
    return difference.edit(
        "precision",
        _("it follows if one part ({place}) is rounded to {other}; the claims are said to be "
          "{own}"),
        _("keep {own} here; do not cast to {other}"),
        then("cast_part", format=name, where=compact(part.laid(mask, False))),
        unlikely=1,
        place=part.box_said(sides(mask)),
        other=name,
        own=own,
    )  # fmt: skip


def _quantised(difference: Difference, part: Part) -> Iterator[Reading]:
    """Whole multiples of a scale: of the line's, of each row's, each column's, each group's."""
    unit = 2.0 ** -bits_of(difference.scene.context.precision)
    if not difference.whole or not difference.finite.all():
        return
    for grid in _grids(difference):
        shows = (grid.float is None and grid.levels * unit <= COARSE) or unit <= COARSE**3
        if not (_on_grid(difference.claimed, grid, unit) if shows else _near(difference, grid)):
            continue
        step = scales(difference.expected, grid)
        off = np.abs(difference.claimed - on_grid(difference.expected, grid))
        most = step if grid.float is None else 0.07 * np.abs(difference.expected) + step
        if (off > 1.01 * most + 8 * difference.room).any():
            continue
        yield _grid_edit(difference, grid)
        return


def _grids(difference: Difference) -> Iterator[Grid]:
    """The grids that may be, the coarsest first."""
    width = difference.expected.shape[-1] if difference.expected.ndim else 1
    shared = [TENSOR, ROW, COLUMN, *(each for each in GROUPS if width % int(each) == 0)]
    shared = [each for each in shared if each != str(width)]
    if difference.expected.ndim < 2:
        shared = [TENSOR, *shared[3:]]
    for levels, by_range in ((7, False), (8, False), (15, True), (127, False), (128, False),
                             (255, True)):  # fmt: skip
        for by in shared:
            yield Grid(float(levels), by, by_range)
    for name in ("float8_e5m2", "float8_e4m3"):
        for by in shared:
            yield Grid(FLOATS[name][2], by, float=name)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")  # steps below the smallest number
def _on_grid(claimed: Floats, grid: Grid, unit: float) -> bool:
    """Whether some of the claimed numbers are on the grid that they make themselves."""
    rows = claimed.reshape(-1, claimed.shape[-1]) if claimed.ndim else claimed.reshape(1, 1)
    if grid.by == COLUMN:
        some = rows[:, :: max(1, rows.shape[1] // FEW)]
        inside = np.abs(some / scales(some, grid))
    elif grid.by == TENSOR:
        some = rows.reshape(-1)[:: max(1, rows.size // SOME)]
        reach = float(np.ptp(rows)) if grid.range else float(np.abs(rows).max(initial=0.0))
        inside = np.abs(some / ((reach or 1.0) / grid.levels))
    else:
        some = rows[:: max(1, len(rows) // FEW)]
        inside = np.abs(some / scales(some, grid))
    whole = np.rint(inside) if grid.float is None else rounded_to(grid.float, inside)
    room = 4 * unit * (np.maximum(inside, 1.0) if grid.float is None else inside)
    telling = (inside > 0.5) & (inside < 0.999 * grid.levels)
    return bool(int(telling.sum()) >= FEWEST and (np.abs(inside - whole) <= room).all())


def _near(difference: Difference, grid: Grid) -> bool:
    """Whether the claim is near to what follows on a grid, where the grid itself does not show."""
    if difference.expected.size > LARGEST_UNSEEN:
        return False
    with np.errstate(all="ignore"):
        off = np.abs(difference.claimed - on_grid(difference.expected, grid)) / difference.room
        before = np.abs(difference.claimed - difference.expected) / difference.room
    usual = float(np.quantile(off, MOSTLY))  # a number between two steps may go to either
    return usual < 4.0 and float(np.quantile(before, 0.5)) > 2.0 * usual


def _grid_edit(difference: Difference, grid: Grid) -> Reading:
    bits = {7: "int4", 8: "int4", 15: "int4", 127: "int8", 128: "int8", 255: "int8"}
    shared = {
        TENSOR: _("one scale for the whole line"),
        ROW: _("a scale for each row"),
        COLUMN: _("a scale for each column"),
    }
    name = grid.float or bits[int(grid.levels)]
    return difference.edit(
        "quantised",
        _("it follows if the result is quantised to {format}, with {scale}; the model does not "
          "quantise it"),
        _("do not quantise this line to {format}"),
        then("on_grid", grid=grid),
        unlikely=2,
        format=name,
        scale=shared.get(grid.by) or _("a scale for each {count} neighbours").format(count=grid.by),
    )  # fmt: skip


def _few_decimals(difference: Difference, part: Part) -> Iterator[Reading]:
    """Numbers of a few decimals."""
    unit = 2.0 ** -bits_of(difference.scene.context.precision)
    some, everything = (Entries.of(difference, difference.there, most) for most in (SOME, None))
    for count in range(MOST_PLACES + 1):
        if not _to_places(some.claimed, count, unit):
            continue
        claimed, ten = everything.claimed, 10.0**count
        clear = (claimed != 0) & (np.abs(claimed) * (2 * unit * ten) < COARSE)
        if int(clear.sum()) < FEWEST or len(np.unique(claimed[clear][:SOME])) < 3:
            return
        off = np.abs(claimed - everything.own)
        if not _to_places(claimed, count, unit) or (off > 0.51 / ten + 8 * everything.room).any():
            return
        yield difference.edit(
            "decimals",
            _("it follows if the result is rounded to {count} decimals; the model keeps them all"),
            _("do not round this line, and dump it in full"),
            then("to_decimals", places=count),
            unlikely=1,
            count=count,
        )
        return


def _to_places(claimed: Floats, count: int, unit: float) -> bool:
    """Whether numbers have so many decimals, as floats hold them."""
    whole = claimed * 10.0**count
    return bool((np.abs(whole - np.rint(whole)) <= 2 * unit * np.abs(whole) + 1e-9).all())
