"""Rules that hold for every row or column: lengths, largest entries, factors, summands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.axes import Part, several
from byhand.checking.differences.closeness import Entries, Fitted, near, quietly, stored_again
from byhand.checking.differences.constants import recognised, shown, unlikely
from byhand.checking.differences.difference import Description, Difference, Floats, Reading
from byhand.checking.differences.known_vectors import vectors_around
from byhand.checking.suspects.mistakes import then
from byhand.language import _

FEWEST = 3  # rows that a rule needs
LARGEST = 1 << 20  # entries of a line that are looked at


@quietly
def rule_readings(difference: Difference) -> Iterator[Reading]:
    """A rule that makes the claimed rows of those that follow."""
    part, shape = Part.of(difference), difference.expected.shape
    if part is None or len(shape) < 2 or not difference.wrong.any():
        return
    if difference.expected.size > LARGEST or shape[-1] < FEWEST or min(shape) < 1:
        return
    for reader in (_largest_alone, _lengths, _multiples_of_rows, _columns):
        found = list(reader(difference, part))
        yield from found
        if found:
            return


def _largest_alone(difference: Difference, part: Part) -> Iterator[Reading]:
    """Rows in which only the largest entries are left."""
    if not difference.whole or not difference.finite.all():
        return
    kept = difference.claimed != 0
    counts = np.unique(kept.sum(axis=-1))
    width = difference.expected.shape[-1]
    if len(counts) != 1 or not 0 < counts[0] <= 0.9 * width:
        return
    count = int(counts[0])
    least = np.where(kept, difference.expected, np.inf).min(axis=-1)
    most = np.where(kept, -np.inf, difference.expected).max(axis=-1)
    if (least < most).any():
        return
    alone = np.where(kept, difference.expected, 0.0)
    total = alone.sum(axis=-1, keepdims=True)
    for again in (False, True):
        predicted = alone / np.where(total > 0, total, 1.0) if again else alone
        if near(difference, predicted):
            said = _("it follows if only the {count} largest of each row are kept; the model keeps "
                     "all")  # fmt: skip
            if again:
                said = _("it follows if only the {count} largest of each row are kept, and sum to "
                         "1 again; the model keeps all")  # fmt: skip
            yield difference.edit(
                "largest-alone",
                said,
                _("take this line before it is cut to the {count} largest (top-k)"),
                then("largest_alone", count=count, again=again),
                fitted=1,
                unlikely=1,
                count=count,
            )
            return


def _lengths(difference: Difference, part: Part) -> Iterator[Reading]:
    """Rows that are scaled to one length, all of them or those that are longer."""
    if not difference.whole or not difference.finite.all():
        return
    wrong = difference.wrong.any(axis=-1)
    if int(wrong.sum()) < FEWEST:
        return
    lengths = np.linalg.norm(difference.claimed, axis=-1)
    own = np.linalg.norm(difference.expected, axis=-1)
    length = float(np.median(lengths[wrong]))
    room = np.linalg.norm(np.hypot(difference.room, stored_again(difference, difference.claimed)),
                          axis=-1)  # fmt: skip
    room = np.maximum(room, 2.0**-22 * length)
    if not length or (np.abs(lengths - length)[wrong] > 4 * room[wrong]).any():
        return
    factors = np.where(wrong, length / np.where(own > 0, own, 1.0), 1.0)[..., None]
    if not near(difference, factors * difference.expected):
        return
    longer = bool((own[wrong] > length).all() and (own <= length + 8 * room)[~wrong].all())
    if not longer and not wrong.all():
        return
    found = Fitted(length, float(np.median(room[wrong])) / np.sqrt(max(1, int(wrong.sum()))))
    constant = recognised(found, difference.scene)
    longer = longer and not wrong.all()
    said = (
        _("it follows if rows longer than {length} are cut to length {length}; the model leaves "
          "them as they are")
        if longer
        else _("it follows if each row is scaled to length {length}; the model leaves rows as they "
               "are")
    )  # fmt: skip
    yield difference.edit(
        "row-length",
        said,
        _("look for a norm (max_norm, normalize) that is applied to the rows here"),
        then(
            "to_length", length=found.value if constant is None else constant.value, longer=longer
        ),
        fitted=int(constant is None),
        unlikely=unlikely(constant),
        length=shown(found) if constant is None else constant.written,
    )


def _multiples_of_rows(difference: Difference, part: Part) -> Iterator[Reading]:
    """Rows along the last axis that are multiples of what follows, by head and position."""
    if difference.expected.ndim < 3:
        return
    at = difference.finite
    with np.errstate(all="ignore"):
        sure = np.where(at, difference.expected / difference.room, 0.0)
        told = np.where(at, difference.claimed / difference.room, 0.0)
        size = np.square(sure).sum(axis=-1, keepdims=True)
        factors = (sure * told).sum(axis=-1, keepdims=True) / size
    counted = np.count_nonzero(sure, axis=-1) >= FEWEST
    if int(counted.sum()) < FEWEST:
        return
    some = np.broadcast_to(np.where(np.isfinite(factors), factors, 1.0), at.shape)
    telling = np.broadcast_to(counted[..., None], at.shape) & at
    entries = Entries.of(difference, telling)
    if not entries.near(some[telling] * entries.own, some[telling]):
        return
    values = factors[..., 0][counted]
    rows = " × ".join(several(axis) for axis in part.axes[:-1])
    said = _("each row ({rows}) is a multiple of its own of what follows: from {least} to {most}")
    told_sums = ""
    if difference.target.op == "softmax":
        sums = np.where(at, difference.claimed, 0.0).sum(axis=-1)[counted]
        told_sums = _("; rows sum to {least} … {most}, not to 1").format(
            least=f"{float(sums.min()):.3g}", most=f"{float(sums.max()):.3g}"
        )
    yield Description(
        said.format(
            rows=rows, least=f"{float(values.min()):.3g}", most=f"{float(values.max()):.3g}"
        )
        + told_sums,
        4,
    )


def _columns(difference: Difference, part: Part) -> Iterator[Reading]:
    """The same row of numbers, added to every row."""
    shape = difference.expected.shape
    if int(np.prod(shape[:-1])) < FEWEST:
        return
    at = difference.finite
    rest = tuple(range(len(shape) - 1))
    with np.errstate(all="ignore"):
        room = np.hypot(difference.room, stored_again(difference, difference.claimed))
        weights = np.where(at, 1 / np.square(room), 0.0)
        away = np.where(at, difference.claimed - difference.expected, 0.0)
        shift = (weights * away).sum(axis=rest) / weights.sum(axis=rest)
        offs = np.sqrt(1 / weights.sum(axis=rest))
    if not np.isfinite(shift).all() or not near(difference, difference.expected + shift):
        return
    known = _known_row(difference, part, shift, offs)
    if known is None:
        said = _("the same row is added at all {names}: its length is {length}")
        yield Description(
            said.format(names=several(part.axes[-2]), length=f"{float(np.linalg.norm(shift)):.3g}"),
            4,
        )
        return
    row, written = known
    yield difference.edit(
        "row-added",
        _("it follows if {row} is added at all {names}; the model does not add it"),
        _("look for {row} that is added here, or left out"),
        then("plus_each", summands=row),
        unlikely=1,
        row=written,
        names=several(part.axes[-2]),
    )


def _known_row(
    difference: Difference, part: Part, shift: Floats, offs: Floats
) -> tuple[Floats, str] | None:
    """The vector of the model that a row is, up to its sign."""
    room = 6 * offs + 2.0**-20 * np.abs(shift)
    for vector, written in vectors_around(difference, part.counts[-1], rows=True):
        own = vector[part.places[-1]]
        for sign, word in ((1.0, ""), (-1.0, "−")):
            if (np.abs(sign * own - shift) <= room).all() and np.ptp(own) > 20 * np.median(room):
                return sign * own, word + written
    return None
