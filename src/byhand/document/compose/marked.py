"""How one marked line is said: the sign of its verdict, its share, its numbers, its suspects.

The terminal, the report and the failing test of a port say these alike.  Whole markings are laid
out in `marking` (terminal), `marking_data` (JSON) and `report` (HTML).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor, inf, isfinite, log10

import numpy as np

from byhand.checking.claims import Claim
from byhand.checking.verdicts import Marked, Suspect, Verdict, Worst
from byhand.document import words
from byhand.document.compose.ulps import as_text
from byhand.document.words import whole
from byhand.language import _
from byhand.numbers.floats.formats import FORMATS

SIGNS = {
    Verdict.RIGHT: "✓",
    Verdict.CARRIED: "→",
    Verdict.UNSUPPORTED: "~",
    Verdict.ERROR: "✗",
    Verdict.UNJUDGED: "?",
}
UNUSUAL = "!"  # beside ✓ and →: within the worst case, but not what rounding usually does
MOST_SUSPECTS = 3  # that are told of a line
GUARD = 10  # times finer than the difference, the expected value is written
MOST_PLACES = 17
SLIP = 1e-4  # per cent: a share that went through float32 is not rounded up for it
LOSS = "loss"
WHOLE = ("count.", "tokens", "next", "target")  # addresses whose numbers are whole ones


def verdict_word(verdict: Verdict) -> str:
    """The verdict in two or three words, for a column."""
    return {
        Verdict.RIGHT: _("right"),
        Verdict.CARRIED: _("carried forward"),
        Verdict.UNSUPPORTED: _("not from above"),
        Verdict.ERROR: _("error here"),
        Verdict.UNJUDGED: _("not judged"),
    }[verdict]


def verdict_about(verdict: Verdict) -> str:
    """What a verdict means, in a sentence of a legend."""
    return {
        Verdict.RIGHT: _("right: it follows from the lines above, and none of them is wrong"),
        Verdict.CARRIED: _("carried forward: it follows, but from an earlier error"),
        Verdict.UNSUPPORTED: _("the right value, but it does not follow from the lines above"),
        Verdict.ERROR: _("error here: it does not follow, and it is not the true value"),
        Verdict.UNJUDGED: _("cannot be judged"),
    }[verdict]


def tally(lines: Sequence[Marked]) -> list[tuple[Verdict, int, str]]:
    """How many lines have each verdict that occurs, with words for it."""
    counts = [(verdict, sum(line.verdict is verdict for line in lines)) for verdict in Verdict]
    said = {
        Verdict.RIGHT: _("right"),
        Verdict.CARRIED: _("carried forward"),
        Verdict.UNSUPPORTED: _("right, but not from the lines above"),
        Verdict.ERROR: _("error here") if dict(counts)[Verdict.ERROR] == 1 else _("errors"),
        Verdict.UNJUDGED: _("cannot be judged"),
    }
    return [(verdict, count, said[verdict]) for verdict, count in counts if count]


def stage_of(address: str) -> str:
    """The heading of the stage that a claim is about."""
    first, _dot, _rest = address.partition(".")
    match first:
        case "count":
            return _("Counts")
        case "weight":
            return _("Weights")
        case "direction":
            return _("Directions")
        case _:
            return words.stage_title(words.place_of(address))


# ------------------------------------------------------------------ shares


def share_text(share: float) -> str:
    """A share of the allowed error: in per cent up to all of it, then how many times it."""
    if share != share or share == inf:
        return "∞"
    if share > 1:
        return excess_text(share)
    if share == 0:
        return "0%"
    per_cent = share * 100
    if per_cent < 0.1:
        return "<0.1%"
    if per_cent < 10:
        return f"{ceil(per_cent * 10 - SLIP) / 10:g}%"
    return f"{ceil(per_cent - SLIP)}%"


def excess_text(share: float) -> str:
    """How many times the bound: never 1× of what lies beyond it."""
    if not isfinite(share):
        return "∞"
    if share < 10:
        return f"{max(share, 1.01):.2f}".rstrip("0").rstrip(".") + "×"
    return times_text(share) + "×"


def times_text(times: float) -> str:
    """A factor, to two or three digits."""
    if not isfinite(times):
        return "∞"
    if times < 10:
        return f"{times:.1f}"
    if times < 100_000:
        return whole(round(times))
    return _short(f"{times:.1e}")


def usual_number(line: Marked) -> str:
    """How many times what rounding usually does: of floats, not of decimals written by hand."""
    if line.times is None or line.verdict is Verdict.UNJUDGED:
        return ""
    return "" if line.claim.by_hand and not line.unusual else times_text(line.times)


# ------------------------------------------------------------------ numbers


def worst_texts(line: Marked, worst: Worst) -> tuple[str, str, str]:
    """An entry's claimed and expected value and what it may be off, each as text."""
    claim = line.claim
    if claim.address.startswith(WHOLE):
        return _whole_text(worst.claimed), _whole_text(worst.expected), size_text(worst.allowed)
    finest = min(
        (size for size in (worst.allowed, worst.difference) if size and isfinite(size)), default=0.0
    )
    claimed = claimed_text(claim, worst.index, worst.claimed)
    return claimed, number_text(worst.expected, finest / GUARD), size_text(worst.allowed)


def claimed_text(claim: Claim, index: Sequence[int], value: float) -> str:
    """A number as the claimant wrote it: with its decimals, or the shortest of its format."""
    if claim.address.startswith(WHOLE):
        return _whole_text(value)
    if not isfinite(value):
        return str(value)
    if not claim.by_hand:
        form = FORMATS.get(claim.format or "")
        return as_text(value if form is None else form.dtype.type(value))
    places = _places(claim, index)
    return as_text(value) if places is None else f"{value:.{places}f}"


def _places(claim: Claim, index: Sequence[int]) -> int | None:
    """How many decimals were written, where the slack is half a unit of them."""
    slack = np.asarray(claim.slack)
    if slack.ndim:  # one for each entry of the part that the index cuts out
        inside = _inside(claim, index)
        if inside is None or len(inside) != slack.ndim:
            return None
        slack = slack[inside]
    half = float(slack)
    if not 0 < half < 1:
        return None
    places = round(-log10(2 * half))
    fits = abs(2 * half * 10.0**places - 1) < 1e-6
    return places if fits and 0 <= places <= MOST_PLACES else None


def _inside(claim: Claim, index: Sequence[int]) -> tuple[int, ...] | None:
    """The place in the claimed part of an index into the whole step."""
    places: list[int] = []
    for axis, place in enumerate(index):
        cut = claim.index[axis] if axis < len(claim.index) else slice(None)
        if isinstance(cut, slice):
            if (cut.start or 0) < 0:  # counted from an end that is not known here
                return None
            places.append(place - (cut.start or 0))
    shape = np.shape(claim.slack)
    fits = len(places) == len(shape) and all(
        0 <= place < size for place, size in zip(places, shape, strict=True)
    )
    return tuple(places) if fits else None


def part_starts(line: Marked, axes: int) -> list[int]:
    """Where the claimed part begins in the step, for each of its axes.

    A slice may be counted from the end: then the worst entry, whose place is known in the step and
    in the part, tells.
    """
    cuts = [cut for cut in line.claim.index if isinstance(cut, slice)]
    starts = [cut.start or 0 for cut in cuts] + [0] * (axes - len(cuts))
    if min(starts, default=0) >= 0 or line.worst is None or line.shares is None:
        return [max(start, 0) for start in starts]
    inside = np.unravel_index(int(line.shares.argmax()), line.shares.shape)
    single = [isinstance(cut, int) for cut in line.claim.index]
    single += [False] * (len(line.worst.index) - len(single))
    free = [at for at, is_single in zip(line.worst.index, single, strict=True) if not is_single]
    return [at - int(place) for at, place in zip(free, inside, strict=True)]


def number_text(value: float, unit: float) -> str:
    """A number written to about a unit, with as few signs as tell it."""
    if not isfinite(value):
        return str(value)
    if not unit or not isfinite(unit):
        return as_text(value)
    places = max(-floor(log10(unit)), 0)
    if value and abs(value) < 1e-5:
        digits = max(floor(log10(abs(value))) - floor(log10(unit)), 0)
        return f"{value:.{min(digits, MOST_PLACES)}e}".replace("e-0", "e-")
    if places > MOST_PLACES or abs(value) >= 1e15:
        return as_text(value)
    return f"{value:.{places}f}"


def size_text(size: float) -> str:
    """A bound to two digits, rounded up in no way that matters."""
    if not isfinite(size):
        return "∞"
    if not size:
        return "0"
    if 1e-3 <= size < 1e5:
        return f"{size:.2g}" if size < 100 else whole(round(size))
    return _short(f"{size:.1e}")


def _short(number: str) -> str:
    """1.0e-07 as 1e-7."""
    for long, short in ((".0e", "e"), ("e-0", "e-"), ("e+0", "e"), ("e+", "e")):
        number = number.replace(long, short)
    return number


def _whole_text(value: float) -> str:
    if not isfinite(value):
        return str(value)
    return whole(int(value)) if value == int(value) else as_text(value)


# ------------------------------------------------------------------ sentences


def told(line: Marked, written: Callable[[str], str] = str) -> Iterator[tuple[str, str]]:
    """What there is to say below a line that is not simply right: (kind, sentence).

    The kinds: verdict, worst, usual, suspect, change, reason, source.  `written` says how a number
    is written that has a decimal point, as data have; a book writes it as its language does.
    """
    if line.verdict is Verdict.UNJUDGED and line.reason:
        yield "reason", line.reason
    if line.verdict.follows is False:
        if text := outside_text(line):
            yield "verdict", text
        if line.worst is not None and line.like is None:
            yield "worst", worst_sentence(line, line.worst, written)
    if line.unusual:
        yield "usual", usual_text(line, written)
        if line.verdict.follows is not False and line.worst is not None:
            yield "worst", worst_sentence(line, line.worst, written)
    if line.like is not None:
        yield "suspect", like_text(line)
        return
    for suspect in line.suspects[:MOST_SUSPECTS]:
        yield "suspect", suspect.sentence
        if suspect.change:
            yield "change", suspect.change
    if line.verdict.follows is False and (source := source_text(line)):
        yield "source", source


def outside_text(line: Marked) -> str:
    """How much of the line is beyond what is allowed; of a single number, its share says it."""
    if line.verdict is Verdict.UNSUPPORTED:
        return verdict_about(line.verdict)
    if line.entries <= 1:
        return ""
    text = _("{count} of {all} entries are beyond what rounding allows")
    if holds_nan(line):
        text = _("{count} of {all} entries are wrong: some are not a number")
    return text.format(count=whole(line.outside), all=whole(line.entries))


def holds_nan(line: Marked) -> bool:
    """Whether the worst entry is claimed to be NaN."""
    return line.worst is not None and line.worst.claimed != line.worst.claimed


def worst_sentence(line: Marked, worst: Worst, written: Callable[[str], str] = str) -> str:
    """An entry with its three numbers."""
    claimed, expected, allowed = map(written, worst_texts(line, worst))
    if worst.allowed:
        text = _("{address}: {claimed} claimed, {expected} ± {allowed} expected")
    else:
        text = _("{address}: {claimed} claimed, {expected} expected")
    return text.format(
        address=line.claim.address + _index_of_worst(line),
        claimed=claimed,
        expected=expected,
        allowed=allowed,
    )


def usual_text(line: Marked, written: Callable[[str], str] = str) -> str:
    """The further mark: no proof, but a hint at a small mistake."""
    text = _("within the worst case, but {times} times what rounding usually does")
    return text.format(times=written(times_text(line.times or 0.0)))


def like_text(line: Marked) -> str:
    """Where the mistake was made first."""
    return _("the same mistake as in {address}").format(address=line.like)


def source_text(line: Marked) -> str:
    """Where the claim stands, and under which name; nothing where its address says both."""
    if line.claim.name not in (line.address, line.claim.address):
        text = _("{source}, called {name} there")
        return text.format(source=short_source(line.claim.source), name=line.claim.name)
    return short_source(line.claim.source) if line.claim.by_hand else ""


def short_source(source: str) -> str:
    """A file and a line without the folders before them."""
    file, colon, name = source.partition(": ")  # a name may have any signs
    return file.replace("\\", "/").rpartition("/")[2] + colon + name


def suspect_share(suspect: Suspect) -> str:
    """How well the claim follows if this is the mistake."""
    return _("then {share} of the allowed error is used").format(share=share_text(suspect.share))


def index_text(line: Marked) -> str:
    """The index of the worst entry: [2,31]; where all entries are as expected, none is worst."""
    if line.worst is None or line.share == 0:
        return ""
    return _index_of_worst(line)


def _index_of_worst(line: Marked) -> str:
    """In brackets; of a loss, which is one number, nothing."""
    return "" if line.claim.address == LOSS else line.worst_address[len(line.claim.address) :]
