"""Two mistakes in one line: an edit that explains a part of it, and another one for the rest.

The parts come from the structure: slices that differ from the others, or a few wrong slices one by
one.  An edit that is read from a part is worked out for the whole line.  What it leaves is a
difference of its own, which is read once more.  Both edits together must explain the line, and each
of them must be needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np

from byhand.checking.claims import Truths
from byhand.checking.differences import Description, Difference, readings
from byhand.checking.evidence import AHEAD, BORNE_OUT, Trial, ahead, explains
from byhand.checking.replay import Line
from byhand.checking.suspects import Edit
from byhand.errors import ByhandError
from byhand.language import _
from byhand.numbers.allowed import Judged

MOST_ENTRIES = 1 << 18  # of a line whose parts are read
MOST_PARTS = 6  # parts that are read on their own
MOST_ODD = 1 / 4  # of the slices along an axis: so many may differ from the others
MOST_FIRSTS, MOST_SECONDS = 3, 8  # edits that are followed up, and edits tried on top of each
ODD, CLEARLY = 0.02, 8.0  # how far the factor of an odd slice is from the others', and how surely
LARGER = 4.0  # how much larger than others an odd slice's difference is, or its wrong entries
FEW = 4  # wrong slices that are read one by one
FREE = ("dropout", "other-text")  # kinds that choose for every entry
MOST_FITTED = 1  # numbers that two mistakes together may have read off the claim
PILE = 6  # wrong entries with the same number
Try = Callable[[Edit], Judged | None]


@dataclass(frozen=True)
class Pairs:
    """The pairs that explain a line, how a part of it is explained, and how many edits it took."""

    causes: tuple[Trial, ...] = ()
    described: tuple[Description, ...] = ()
    tried: int = 0


def pairs(
    difference: Difference, line: Line, before: Judged, partly: Sequence[Trial], work: Try
) -> Pairs:
    """The pairs of mistakes that explain a line which no single one explains.

    `partly` are trials of single edits that explain some of it; `work` works an edit out.
    """
    firsts, tried = _firsts(difference, line, before, partly, work)
    found = []
    for first in firsts[:MOST_FIRSTS]:
        for second in _seconds(difference, first):
            for both in _both(difference, first.edit, second):
                judged = _tried(work, both)
                tried += 1
                if judged is None:
                    continue
                trial = Trial.of(both, judged, before, line)
                if explains(trial, before, line, unusual=False) and (
                    _bears(trial.explained - first.explained, second)
                    and _needed(trial, (first.judged, work(second)), line)
                ):
                    found.append(trial)
                    break
            if found:
                return Pairs(tuple(found), (), tried)
    return Pairs((), tuple(_described(firsts, before)), tried)


def _tried(work: Try, both: Edit) -> Judged | None:
    """The judgement by two edits; None where an operation cannot take what they make of it."""
    try:
        return work(both)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError):
        return None


def _firsts(
    difference: Difference, line: Line, before: Judged, partly: Sequence[Trial], work: Try
) -> tuple[list[Trial], int]:
    """The trials of edits that explain a part of the line, the largest part first."""
    trials, tried = {trial.edit.sentence: trial for trial in partly}, 0
    for part in _parts(difference):
        for edit in (each for each in readings(part) if isinstance(each, Edit)):
            if edit.sentence in trials or not _composable(edit):
                continue
            judged = work(edit)
            tried += 1
            if judged is not None:
                trials[edit.sentence] = Trial.of(edit, judged, before, line)
    good = [trial for trial in trials.values() if explains_a_part(trial, before)]
    return sorted(good, key=_what_is_wrong_still), tried


def explains_a_part(trial: Trial, before: Judged) -> bool:
    """Whether many wrong entries follow with the edit, and hardly a right one is spoiled."""
    wrong = int((before.shares > 1).sum())
    return (
        _composable(trial.edit)
        and _bears(trial.explained, trial.edit)
        and 8 * trial.explained >= wrong
        and 8 * trial.spoiled <= trial.explained
    )


def _composable(edit: Edit) -> bool:
    """Whether an edit can be one of two: not if it may drop or replace any entry that it likes."""
    return edit.again is not None and edit.kind not in FREE


def _what_is_wrong_still(trial: Trial) -> tuple[int, int, bool, int]:
    return int((trial.judged.shares > 1).sum()), *trial.edit.price


# ------------------------------------------------------------------------ the parts of a line


def _parts(difference: Difference) -> Iterator[Difference]:
    """The line without what stands out in it, and its wrong slices one by one."""
    if difference.whole and difference.expected.size <= MOST_ENTRIES:
        yield from islice(chain(_all_but_a_pile(difference), _by_slices(difference)), MOST_PARTS)


def _all_but_a_pile(difference: Difference) -> Iterator[Difference]:
    """The line without the entries that are all the same number: clamped, or never written."""
    at = difference.wrong & difference.finite
    numbers, counts = np.unique(difference.claimed[at], return_counts=True)
    if len(numbers) > 1 and counts.max() >= PILE:
        rest = difference.there & (difference.claimed != numbers[counts.argmax()])
        yield replace(difference, there=rest)


def _by_slices(difference: Difference) -> Iterator[Difference]:
    seen = set()
    for axis in range(difference.expected.ndim):
        yield from _one_by_one(difference, axis)
        for kept in _slices(difference, axis):
            if (axis, kept.tobytes()) not in seen:
                seen.add((axis, kept.tobytes()))
                yield _only(difference, axis, kept)


def _one_by_one(difference: Difference, axis: int) -> Iterator[Difference]:
    """Each of a few wrong slices along an axis, as if the others were right."""
    rest = tuple(other for other in range(difference.expected.ndim) if other != axis)
    wrong = np.asarray(difference.wrong.any(axis=rest))
    places = np.flatnonzero(wrong)
    for place in places if 2 <= len(places) <= FEW < len(wrong) else ():
        shape = [1] * difference.expected.ndim
        shape[axis] = -1
        others = (wrong & (np.arange(len(wrong)) != place)).reshape(shape)
        claimed = np.where(others, difference.expected, difference.claimed)
        yield replace(difference, claimed=claimed)


def _slices(difference: Difference, axis: int) -> Iterator[Truths]:
    """Sets of slices along an axis that may have a mistake of their own."""
    rest = tuple(other for other in range(difference.expected.ndim) if other != axis)
    for odd in _odd(difference, rest):
        if 0 < odd.sum() <= MOST_ODD * len(odd):
            yield ~odd


def _odd(difference: Difference, rest: tuple[int, ...]) -> Iterator[Truths]:
    """The slices that are not like most: in their factor, their difference, their wrong entries."""
    at, noise = difference.finite, difference.room
    with np.errstate(all="ignore"):
        own = np.where(at, difference.expected / noise, 0.0)
        claimed = np.where(at, difference.claimed / noise, 0.0)
        sizes = np.square(own).sum(axis=rest)
        factors = (own * claimed).sum(axis=rest) / sizes
        usual = np.median(factors[np.isfinite(factors)]) if np.isfinite(factors).any() else 0.0
        off = np.abs(factors - usual)
        yield np.asarray((off > ODD * max(1.0, abs(usual))) & (off * np.sqrt(sizes) > CLEARLY))
        for each in (np.square(claimed - own).sum(axis=rest), difference.wrong.sum(axis=rest)):
            yield np.asarray(each > LARGER * np.median(each))


def _only(difference: Difference, axis: int, kept: Truths) -> Difference:
    """The difference with some slices along an axis alone."""
    shape = [1] * difference.expected.ndim
    shape[axis] = -1
    return replace(difference, there=difference.there & kept.reshape(shape))


# ------------------------------------------------------------------------ the second mistake


def _seconds(difference: Difference, first: Trial) -> Iterator[Edit]:
    """What is read from what the first edit leaves."""
    judged, scene = first.judged, difference.scene
    context = replace(
        scene.context, expected=judged.expected, allowed=judged.allowed, usual=judged.usual
    )
    rest = Difference.of(replace(scene, context=context), judged.claimed)
    if rest is None:
        return
    count = 0
    for edit in readings(rest):
        if not isinstance(edit, Edit) or first.edit.fitted + edit.fitted > MOST_FITTED:
            continue
        if _composable(edit):
            count += 1
            yield edit
            if count == MOST_SECONDS:
                return


def _both(difference: Difference, first: Edit, second: Edit) -> Iterator[Edit]:
    """Both mistakes in one plan, in either order."""
    sentence = _("{first}; and with that, {second}").format(
        first=first.sentence, second=second.sentence
    )
    change = _("{first}; then {second}").format(first=first.change, second=second.change)
    for one, other in ((first, second), (second, first)):
        draft = difference.scene.draft()
        try:
            assert one.again is not None
            assert other.again is not None
            one.again(draft)
            other.again(draft)
            plan = draft.made()
        except (KeyError, ValueError, ByhandError):
            continue  # the second one needs the line as it was
        yield Edit(
            f"{first.kind}+{second.kind}",
            sentence,
            change,
            plan,
            first.unlikely + second.unlikely + 2,
            first.fitted + second.fitted,
            read=True,
        )


def _needed(both: Trial, alone: Iterable[Judged | None], line: Line) -> bool:
    """Whether both mistakes are needed: the claim is clearly nearer to both than to one alone."""
    gains = [ahead(both.judged, each, line.values) for each in alone if each is not None]
    return all(gain is None or gain >= AHEAD for gain in gains)


def _bears(entries: int, edit: Edit) -> bool:
    """Whether enough entries bear out a mistake and the numbers that were read off for it."""
    return entries >= BORNE_OUT * max(1, edit.fitted)


def _described(firsts: Iterable[Trial], before: Judged) -> Iterator[Description]:
    """How a part of the line is explained, where the rest is not."""
    wrong = int((before.shares > 1).sum())
    for trial in firsts:
        if not trial.spoiled and (trial.gain or 0.0) >= AHEAD:
            yield Description(
                _("{count} of {all} wrong entries follow with one mistake: {sentence}").format(
                    count=f"{trial.explained:,}", all=f"{wrong:,}", sentence=trial.edit.sentence
                ),
                5,
            )
            return
