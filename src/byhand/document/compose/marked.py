"""One marked line as a part: the sign of its verdict, its share, its numbers, its suspects.

Whole markings are composed in `marking`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf, isfinite, log10

import numpy as np

from byhand.checking.claims import Claim
from byhand.checking.verdicts import Marked, Suspect, Verdict, Worst
from byhand.document import words
from byhand.document.parts.verdicts import VerdictLine
from byhand.document.sizes import (
    MOST_PLACES,
    as_text,
    number_text,
    share_text,
    size_text,
    times_text,
)
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
MOST_SUSPECTS = 3  # suspects listed for a line
GUARD = 10  # × finer than the difference: the precision of the expected value
LOSS = "loss"
WHOLE = ("count.", "tokens", "next", "target")  # addresses with whole numbers


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


def verdict_line(line: Marked) -> VerdictLine:
    """The line in words: its verdict, its share of the allowed error, and its explanations."""
    judged = line.verdict is not Verdict.UNJUDGED and not line.claim.unread
    measured = judged and not another_whole_number(line)
    return VerdictLine(
        address=line.address,
        verdict=line.verdict.name,
        sign="·" if line.blank else SIGNS[line.verdict],
        word=_("left blank") if line.blank else verdict_word(line.verdict),
        told=tuple(told(line)),
        source=source_text(line),
        unusual=line.unusual,
        stage=_stage(line.claim.address),
        share=line.share if judged else 0.0,
        used=share_text(line.share) if measured else "",
        about=_share_about(line.share) if measured else "",
        times=usual_number(line),
        worst=_index_of_worst(line) if judged and line.worst and line.share else "",
        uses=line.uses,
    )


def another_whole_number(line: Marked) -> bool:
    """Whether a token or a count is another one: no rounding is near it, so no bound is told."""
    return line.share > 1 and line.claim.address.startswith(WHOLE)


def _stage(address: str) -> str:
    """The heading of the stage that a claim is about."""
    apart = {"count": _("Counts"), "weight": _("Weights"), "direction": _("Directions")}
    first, _dot, _rest = address.partition(".")
    return apart.get(first) or words.stage_title(words.place_of(address))


# ------------------------------------------------------------------ shares


def _share_about(share: float) -> str:
    """A share in a few words."""
    if share == inf:
        return _("beyond what is allowed")
    text = _("{excess} the allowed error") if share > 1 else _("{share} of the allowed error")
    return text.format(excess=share_text(share), share=share_text(share))


def usual_number(line: Marked) -> str:
    """The error in units of the usual rounding error; only for floats, not for handwriting."""
    if line.times is None:
        return ""
    return "" if line.claim.by_hand and not line.unusual else times_text(line.times)


# ------------------------------------------------------------------ numbers


def worst_texts(line: Marked, worst: Worst) -> tuple[str, str, str]:
    """The claimed value of an entry, its expected value and its allowed error, as text."""
    claim = line.claim
    if claim.address.startswith(WHOLE):
        return _whole_text(worst.claimed), _whole_text(worst.expected), size_text(worst.allowed)
    finest = min(
        (size for size in (worst.allowed, worst.difference) if size and isfinite(size)), default=0.0
    )
    claimed = claimed_text(claim, worst.index, worst.claimed)
    return claimed, number_text(worst.expected, finest / GUARD), size_text(worst.allowed)


def claimed_text(claim: Claim, index: Sequence[int], value: float) -> str:
    """A number as the claimant wrote it: with its decimals, or the shortest in its format."""
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
    """The number of written decimals, if the slack is half a unit of the last; else None."""
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
            places.append(place - (cut.start or 0))
    shape = np.shape(claim.slack)
    fits = len(places) == len(shape) and all(
        0 <= place < size for place, size in zip(places, shape, strict=True)
    )
    return tuple(places) if fits else None


def _whole_text(value: float) -> str:
    if not isfinite(value):
        return str(value)
    return whole(int(value)) if value == int(value) else as_text(value)


# ------------------------------------------------------------------ sentences


def told(line: Marked, written: Callable[[str], str] = str) -> Iterator[tuple[str, str]]:
    """The sentences below a line that is not simply right: (kind, sentence).

    The kinds: reason, verdict, worst, usual, suspect, change, sure, share, described, tied, ask,
    source.
    `written` formats a number with a decimal point: data keep it, a book uses its language's sign.
    """
    if line.verdict is Verdict.UNJUDGED and line.reason and not line.blank:
        yield "reason", line.reason
    if line.verdict.follows is False:
        if text := _outside_text(line):
            yield "verdict", text
        if line.worst is not None and line.like is None:
            yield "worst", _worst_sentence(line, line.worst, written)
    if line.unusual:
        text = _("within the worst case, but {times} times what rounding usually does")
        yield "usual", text.format(times=written(times_text(line.times or 0.0)))
        if line.verdict.follows is not False and line.worst is not None:
            yield "worst", _worst_sentence(line, line.worst, written)
    elif line.verdict is Verdict.UNJUDGED and line.near and line.times is not None:
        text = _("as near as rounding usually leaves it: {times} of its usual error")
        yield "usual", text.format(times=written(times_text(line.times)))
    if line.like is not None:
        yield "suspect", _("the same mistake as in {address}").format(address=line.like)
        return
    for suspect in line.suspects[:MOST_SUSPECTS]:
        yield "suspect", suspect.sentence
        if suspect.change:
            yield "change", suspect.change
        if text := how_sure(suspect):
            yield "sure", text
        text = _("then {share} of the allowed error is used")
        yield "share", text.format(share=share_text(suspect.share))
    if not line.suspects:
        for sentence in line.described:
            yield "described", sentence
    if line.tied:
        yield "tied", line.tied
    if line.ask is not None:
        text = _("dump {address} as well and run again: that would help most")
        yield "ask", text.format(address=line.ask)
    if line.verdict.follows is False and (source := source_text(line)):
        yield "source", source


def how_sure(suspect: Suspect) -> str:
    """The evidence for a cause in words: what it explains, what it assumes, what fits as well."""
    evidence = suspect.evidence
    parts = []
    if evidence.alike:
        text = _("{count} other explanations fit as well")
        if evidence.alike == 1:
            text = _("one other explanation fits as well")
        parts.append(text.format(count=whole(evidence.alike)))
    if evidence.lines > 1:
        parts.append(_("it explains {count} lines").format(count=whole(evidence.lines)))
    if evidence.without:
        text = _("the same step of {count} other blocks follows without it")
        if evidence.without == 1:
            text = _("the same step of another block follows without it")
        parts.append(text.format(count=whole(evidence.without)))
    if evidence.fitted:
        text = _("{fitted} numbers are read off the claim, and {count} entries bear them out")
        if evidence.fitted == 1:
            text = _("one number is read off the claim, and {count} entries bear it out")
        count = whole(evidence.entries)
        parts.append(text.format(fitted=whole(evidence.fitted), count=count))
    return "; ".join(parts)


def _outside_text(line: Marked) -> str:
    """How many entries are beyond the allowed error; for a single number, its share."""
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


def _worst_sentence(line: Marked, worst: Worst, written: Callable[[str], str] = str) -> str:
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


def source_text(line: Marked) -> str:
    """The place of the claim and its name; empty if the address says both."""
    if line.claim.name not in (line.address, line.claim.address):
        text = _("{source}, called {name} there")
        return text.format(source=short_source(line.claim.source), name=line.claim.name)
    return short_source(line.claim.source) if line.claim.by_hand else ""


def short_source(source: str) -> str:
    """A file and a line without the folders."""
    file, colon, name = source.partition(": ")  # a name may contain anything
    return file.replace("\\", "/").rpartition("/")[2] + colon + name


def _index_of_worst(line: Marked) -> str:
    """The worst index in brackets; empty for a loss, which is one number."""
    return "" if line.claim.address == LOSS else line.worst_address[len(line.claim.address) :]
