"""Where a line differs and how far: one entry, some heads, positions or channels, one side of 0.

A `Place` holds every entry that differs and has words for itself.  Other readers look for one
factor, one format, one source in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor, log10

import numpy as np

from byhand.checking.differences.axes import Part, Places, listed, set_said, structured
from byhand.checking.differences.closeness import quietly
from byhand.checking.differences.difference import Description, Difference, Floats, Reading, Truths
from byhand.checking.suspects.pieces import When
from byhand.language import _

NEARLY_ALL = 0.95  # of the entries that a rule names must differ for the rule to tell something
FEW = 4  # entries that are told one by one
MOST_SHARE = 0.75  # of the slices along an axis: more are not told as a part
FEWEST = 6  # wrong entries that a sign or a size needs
MOST_COUNTED = 1 << 16  # entries for a median
FEWEST_NOISY = 200  # entries that show noise
MOST_DISTANCES = 6  # that are listed one by one


@dataclass(frozen=True)
class Place:
    """Some entries of a line that hold all that differ, and words for them."""

    mask: Truths
    said: str  # "head 3", "positions from 8 on"; empty for the whole line
    alone: bool = False  # whether the words are singular
    when: When | None = None  # the sign or the size that chooses the entries

    @property
    def whole(self) -> bool:
        """Whether it is the whole line."""
        return not self.said


@quietly
def place_readings(difference: Difference) -> Iterator[Reading]:
    """The most telling true sentence about where a line differs, and how far."""
    part = Part.of(difference)
    if part is None or not difference.wrong.any():
        return
    where = _not_numbers(difference, part)
    place = next(places(difference, part), None)
    if where is None and place is not None:
        text = _("only {place} differs") if place.alone else _("only {place} differ")
        where = text.format(place=place.said)
    where = where or _all(difference)
    told = _how_far(difference)
    yield Description(where if told is None else f"{where}; {told}", 1)
    noise = None if place is not None else _noise(difference)
    if noise is not None:
        yield Description(noise, 0)


def places(difference: Difference, part: Part) -> Iterator[Place]:
    """The parts of the line that hold all entries that differ, the most telling first."""
    if not difference.wrong.any():
        return
    for found in (
        _few(difference, part),
        _box(difference, part),
        _distances(difference, part),
        *_signs(difference),
        _sizes(difference),
        _tokens_of_text(difference, part),
        _some_slices(difference, part),
    ):
        if found is not None:
            yield found


def sides(mask: Truths) -> list[Places]:
    """The places along each axis that a set of entries takes up."""
    axes = range(mask.ndim)
    return [
        np.flatnonzero(mask.any(axis=tuple(other for other in axes if other != axis)))
        for axis in axes
    ]


def _not_numbers(difference: Difference, part: Part) -> str | None:
    """Where the claim is NaN or infinite and something else is expected."""
    bad = difference.there & np.isfinite(difference.expected) & ~np.isfinite(difference.claimed)
    count = int(bad.sum())
    if not count:
        return None
    nan = int(np.isnan(difference.claimed[bad]).sum())
    kind = "NaN" if nan == count else _("infinite") if not nan else _("NaN or infinite")
    told = _("{count} of {all} numbers are {kind}").format(
        count=f"{count:,}", all=f"{bad.size:,}", kind=kind
    )
    where = part.box_said(sides(bad))
    return f"{told} ({where})" if where else told


def _few(difference: Difference, part: Part) -> Place | None:
    """One entry, or a few."""
    count, judged = int(difference.wrong.sum()), int(difference.there.sum())
    if count > FEW or count == judged:
        return None
    names = [
        "[" + ",".join(str(part.places[axis][at]) for axis, at in enumerate(place)) + "]"
        for place in np.argwhere(difference.wrong)
    ]
    text = _("entry {at} of {all}") if count == 1 else _("entries {at} of {all}")
    said = text.format(at=listed(names), all=f"{judged:,}")
    return Place(difference.wrong, said, alone=count == 1)


def _box(difference: Difference, part: Part) -> Place | None:
    """The smallest box around the wrong entries, if it is a part of the line."""
    wrong, there = difference.wrong, difference.there
    chosen, words, alone, counts = [], [], True, []
    for axis, (some, judged) in enumerate(zip(sides(wrong), sides(there), strict=True)):
        own = part.places[axis]
        if len(some) == len(judged) or not structured(some):
            chosen.append(np.arange(len(own)))
            continue
        chosen.append(some)
        words.append(set_said(part.axes[axis], own[some], own[judged], len(judged)))
        counts.append(len(judged))
        alone = alone and len(some) == 1
    if not words:
        return None
    mask = np.zeros(wrong.shape, dtype=bool)
    mask[np.ix_(*chosen)] = True
    if len(words) == 1:
        said = _("{place} (of {count})").format(place=words[0], count=counts[0])
        return Place(mask, said, alone)
    said = _("one part ({places})").format(places=", ".join(words))
    return Place(mask, said, alone=True)


def _tokens_of_text(difference: Difference, part: Part) -> Place | None:
    """The columns of the text's own tokens."""
    if part.axes[-1:] != ("vocab",) or not difference.scene.context.tokens:
        return None
    own = np.unique(np.asarray(difference.scene.context.tokens))
    some = part.places[-1][sides(difference.wrong)[-1]]
    if len(some) < 2 or not np.isin(some, own).all() or len(some) < NEARLY_ALL * len(own):
        return None
    mask = np.broadcast_to(np.isin(part.places[-1], own), difference.wrong.shape)
    return Place(mask, _("the tokens of the text"))


def _some_slices(difference: Difference, part: Part) -> Place | None:
    """Some slices along one axis, in no order."""
    found = None
    for axis, (some, judged) in enumerate(
        zip(sides(difference.wrong), sides(difference.there), strict=True)
    ):
        if len(some) > MOST_SHARE * len(judged) or structured(some):
            continue
        if found is not None:  # scattered in several directions
            return None
        mask = np.zeros(difference.wrong.shape, dtype=bool)
        np.moveaxis(mask, axis, 0)[some] = True
        own = part.places[axis]
        found = Place(mask, set_said(part.axes[axis], own[some], own[judged], len(judged)))
    return found


def _distances(difference: Difference, part: Part) -> Place | None:
    """Scores or weights that differ only at some distances of key and query."""
    axes = part.axes
    if "query" not in axes or "key" not in axes:
        return None
    query, key = axes.index("query"), axes.index("key")
    away = (
        part.places[query].reshape([-1 if axis == query else 1 for axis in range(len(axes))])
        - part.places[key].reshape([-1 if axis == key else 1 for axis in range(len(axes))])
    )  # fmt: skip
    away = np.broadcast_to(away, difference.wrong.shape)
    far, judged = np.unique(away[difference.wrong]), np.unique(away[difference.there])
    mask = np.isin(away, far)
    if len(far) == len(judged) or not _fills(difference.wrong, mask & difference.there):
        return None
    if list(far) == [0]:
        return Place(mask, _("each query's own key"), alone=True)
    if len(far) <= MOST_DISTANCES:
        told = listed(far)
    elif len(far) < int(far[-1] - far[0]) + 1:
        return None
    elif far[-1] == judged[-1]:
        told = _("{first} and more").format(first=int(far[0]))
    else:
        told = _("{first} to {last}").format(first=int(far[0]), last=int(far[-1]))
    return Place(mask, _("keys at distance {distances} from the query").format(distances=told))


def _signs(difference: Difference) -> Iterator[Place]:
    """The numbers on one side of 0, if nothing else differs."""
    wrong, own = difference.wrong, difference.expected
    if int(wrong.sum()) < FEWEST:
        return
    for when, said in (
        (When("below"), _("numbers below 0")),
        (When("above"), _("numbers above 0")),
    ):
        mask = when.chooses(own)
        if not (wrong & ~mask).any() and not mask.all():
            yield Place(mask, said, when=when)


def _sizes(difference: Difference) -> Place | None:
    """The numbers above or below a size, if all of them differ and no others."""
    at = difference.finite & (difference.expected != 0)
    wrong, size = difference.wrong[at], np.abs(difference.expected[at])
    if int(wrong.sum()) < FEWEST or int((~wrong).sum()) < FEWEST:
        return None
    least, most = float(size[wrong].min()), float(size[wrong].max())
    right = size[~wrong]
    low, high = float(right.min()), float(right.max())
    if least > high:
        said, when = _("numbers above {limit} in size"), When("large", plainest(high, least))
    elif most < low:
        said, when = _("numbers below {limit} in size"), When("small", plainest(most, low))
    else:
        return None
    mask = np.asarray(when.chooses(difference.expected))
    return Place(mask, said.format(limit=f"{when.limit:.4g}"), when=when)


def _all(difference: Difference) -> str:
    """How many entries differ."""
    count, judged = int(difference.wrong.sum()), int(difference.there.sum())
    if judged == 1:
        return _("its only number differs")
    if count == judged:
        return _("all {count} entries differ").format(count=f"{count:,}")
    return _("{count} of {all} entries differ, all over the line").format(
        count=f"{count:,}", all=f"{judged:,}"
    )


def _how_far(difference: Difference) -> str | None:
    """How large the difference is, beside the numbers themselves."""
    where = np.flatnonzero(difference.wrong & difference.finite)
    if not len(where):
        return None
    some = where[:: 1 + len(where) // MOST_COUNTED]
    own, claimed = difference.expected.reshape(-1)[some], difference.claimed.reshape(-1)[some]
    with np.errstate(all="ignore"):
        off = np.abs(claimed - own)
        size = float(np.median(np.abs(own)))
        share = float(np.median(off)) / size if size else float("inf")
    if not np.isfinite(share):
        return _("where 0 is expected, {claimed} is claimed").format(
            claimed=f"{float(np.median(claimed)):.3g}"
        )
    if own.size == 1:
        return _("it is off by {share} of its size").format(share=percent(share))
    if not claimed.any():
        return _("all of it is 0")
    return _("by {share} of their size, at the median").format(share=percent(share))


def _noise(difference: Difference) -> str | None:
    """How large the differences are, if they look like noise: of one size, whatever the number."""
    where = np.flatnonzero(difference.finite)
    where = where[:: 1 + len(where) // MOST_COUNTED]
    own, claimed = difference.expected.reshape(-1)[where], difference.claimed.reshape(-1)[where]
    if len(own) < FEWEST_NOISY:
        return None
    with np.errstate(all="ignore"):
        off = claimed - own
        relative = off / np.abs(own)
        large = np.abs(own) > np.median(np.abs(own))
        if not large.any():  # all of one size
            return None
        for values, text in (
            (relative, _("the differences look like noise of {size} of each number")),
            (off, _("the differences look like noise of {size}, whatever the number")),
        ):
            spread = float(values.std())
            parts = float(values[large].std()), float(values[~large].std())
            balanced = abs(float(values.mean())) < 4 * spread / np.sqrt(len(values))
            alike = min(parts) > 0.7 * max(parts) > 0
            tied = abs(float(np.corrcoef(own, off)[0, 1])) > 4 / np.sqrt(len(values))
            if np.isfinite(spread) and balanced and alike and not tied and not _heavy(values):
                size = percent(spread) if values is relative else f"{spread:.2g}"
                return text.format(size=size)
    return None


def _heavy(values: Floats) -> bool:
    """Whether some values are far larger than the others, unlike noise."""
    return float(np.abs(values).max()) > 6 * float(values.std())


def plainest(low: float, high: float) -> float:
    """The plainest number between two others: of fewest digits, 1, 2 and 5 before the rest."""
    if not 0 < low < high:
        return (low + high) / 2
    for power in range(floor(log10(high)), floor(log10(low)) - 1, -1):
        for digit in (1, 2, 5, 3, 4, 6, 7, 8, 9):
            if low < float(f"{digit}e{power}") < high:
                return float(f"{digit}e{power}")
    middle = (low + high) / 2
    rounded = (float(f"{middle:.{digits}e}") for digits in range(1, 15))
    return next((each for each in rounded if low < each < high), middle)


def percent(share: float) -> str:
    """A share as people write it: 0.0021 %, 12 %, 340 %; above a thousand times, as a factor."""
    if share >= 10:
        return f"{share:,.0f} ×"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def _fills(wrong: Truths, chosen: Truths) -> bool:
    """Whether nearly all of the chosen entries are wrong."""
    count = int(chosen.sum())
    return count > 0 and int((wrong & chosen).sum()) >= NEARLY_ALL * count
