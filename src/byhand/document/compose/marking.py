"""A marking as parts: the result in one line, then the lines of each text with their verdicts.

In long tables, runs of similar lines are folded into one.  `marked` words one line, and `evidence`
shows where it goes wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from byhand.checking.claims import Reading, Unmatched
from byhand.checking.grading import grade
from byhand.checking.verdicts import Marked, MarkedText, Marking, Verdict
from byhand.document import words
from byhand.document.compose.evidence import with_evidence
from byhand.document.compose.grades import blank_text, empty_text, marks_text
from byhand.document.compose.marked import (
    SIGNS,
    another_whole_number,
    holds_nan,
    how_sure,
    short_source,
    verdict_about,
    verdict_line,
)
from byhand.document.parts import Column, Facts, Finding, Grid, Part
from byhand.document.parts.verdicts import (
    UNUSUAL,
    Signed,
    VerdictLine,
    VerdictReport,
    VerdictRun,
    VerdictSheet,
    VerdictTable,
)
from byhand.document.sizes import excess_text, share_text, times_text
from byhand.document.words import whole
from byhand.language import _

MOST_UNMATCHED = 10  # names listed one by one
MOST_MAPPED = 24  # lines of a report with maps
FOLDED_FROM = 40  # lines of a text from which on runs are folded
SHORTEST_RUN = 4  # shortest run of lines that is folded


def report(marking: Marking, every: bool = False, evidence: bool = False) -> VerdictReport:
    """The whole marking.

    With `every`, no run of lines is folded.  With `evidence`, lines that are not simply right have
    their worst entries, and the first of them maps.
    """
    facts = [(_("model"), words.printable(marking.model))]
    if len(marking.texts) == 1:
        facts += text_facts(marking.texts[0])
    return VerdictReport(
        title=marking.model,
        result=_signed(_tone(list(marking)), summary(marking)),
        facts=Facts(tuple(facts)),
        sheets=tuple(
            _sheet(marking, place, lines, every)
            for place, lines in enumerate(_lines(marking, evidence))
        ),
        legend=tuple(_signed(verdict, verdict_about(verdict)) for verdict in Verdict),
        about=_(
            "A line follows if a correct implementation of the stated precision can give "
            "all its entries from the lines above, as claimed. The allowed error is worked "
            "out for each entry. The table shows the share of it that the worst entry "
            "uses. × usual compares the differences with what rounding usually does."
        ),
    )


def cell_parts(marking: Marking) -> Iterator[Part]:
    """The parts of a notebook cell: the result, the facts, and every line."""
    whole = report(marking)
    yield Finding(f"{whole.result.sign} {whole.result.text}")
    yield Facts(whole.facts.facts[1:])  # the model is the cell's title
    for sheet in whole.sheets:
        yield Grid(
            " · ".join(filter(None, (sheet.name, *(count.text for count in sheet.tally)))),
            (
                Column(_("line"), "address"),
                Column(_("verdict")),
                Column(_("of allowed"), "number"),
                Column(_("worst entry"), "address"),
            ),
            tuple(map(_cells, sheet.table.rows)),
        )
        for line in sheet.table.lines:
            if line.notable:
                told = tuple(text for kind, text in line.told if kind not in ("share", "source"))
                yield Finding(f"{line.signs} {line.address}: {line.word}", told)


def _cells(row: VerdictLine | VerdictRun) -> tuple[str, ...]:
    if isinstance(row, VerdictRun):
        return (f"{row.result.sign} {row.result.text}",)
    return row.address, f"{row.signs} {row.word}", row.used, row.worst


def _lines(marking: Marking, evidence: bool) -> Iterator[list[VerdictLine]]:
    """The lines of each text; with `evidence`, lines that do not follow get it first."""
    maps = MOST_MAPPED
    for text in marking.texts:
        found: dict[int, VerdictLine] = {}
        for line in sorted(text.lines, key=lambda line: line.verdict.follows is not False):
            if evidence and (line.verdict.follows is False or line.unusual):
                found[id(line)] = shown = with_evidence(line, mapped=maps > 0)
                maps -= shown.shares is not None
        yield [found.get(id(line)) or verdict_line(line) for line in text.lines]


def _sheet(marking: Marking, place: int, lines: Sequence[VerdictLine], every: bool) -> VerdictSheet:
    text = marking.texts[place]
    name = name_of_text(marking, place)
    shown = words.printable(text.text) if text.text else ""
    about = [name, shown]
    if len({text.precision for text in marking.texts}) > 1 or place == 0:
        about.append(precision_text(text.precision))
    return VerdictSheet(
        name=name,
        heading=" · ".join(filter(None, about)),
        result=_signed(_tone(text.lines), shown),
        facts=Facts(tuple(text_facts(text))),
        tally=tuple(_tally(text.lines)),
        table=VerdictTable(_("Every line"), tuple(_rows(text.lines, lines, every))),
        unmatched=tuple(_unmatched(each) for each in text.unmatched),
        readings=tuple(map(_reading, text.readings)),
    )


def _signed(verdict: Verdict, text: str) -> Signed:
    return Signed(verdict.name, SIGNS[verdict], text)


def _tone(lines: Sequence[Marked]) -> Verdict:
    """The most important verdict of many lines; blank lines do not count."""
    found = {line.verdict for line in lines if not line.blank}
    if any(line.unusual for line in lines):
        found.add(Verdict.UNSUPPORTED)
    for verdict in (Verdict.ERROR, Verdict.UNSUPPORTED, Verdict.UNJUDGED, Verdict.RIGHT):
        if verdict in found:
            return verdict
    return Verdict.UNJUDGED


def _tally(lines: Sequence[Marked]) -> Iterator[Signed]:
    """The number of lines with each verdict; also a legend of the signs."""
    said = {
        Verdict.RIGHT: _("right"),
        Verdict.CARRIED: _("carried forward"),
        Verdict.UNSUPPORTED: _("right, but not from the lines above"),
        Verdict.ERROR: _("errors"),
        Verdict.UNJUDGED: _("cannot be judged"),
    }
    for verdict in Verdict:
        if count := sum(line.verdict is verdict and not line.blank for line in lines):
            single = verdict is Verdict.ERROR and count == 1
            word = _("error here") if single else said[verdict]
            yield _signed(verdict, f"{whole(count)} {word}")
    if count := sum(line.blank for line in lines):
        yield Signed(Verdict.UNJUDGED.name, "·", _("{count} left blank").format(count=whole(count)))
    if count := sum(line.unusual for line in lines):
        text = _("{count} beyond what rounding usually does").format(count=whole(count))
        yield Signed(Verdict.UNSUPPORTED.name, UNUSUAL, text)


# ------------------------------------------------------------------ what was marked


def text_facts(text: MarkedText) -> list[tuple[str, str]]:
    """What was marked, and by which precision, as names and words."""
    facts = [(_("sheet"), words.printable(text.label))] if text.label else []
    if text.source is not None:
        facts.append((_("source"), words.printable(text.source.text)))
    if text.text:
        facts.append((_("text"), words.printable(text.text)))
    if text.marks:
        graded = grade(text)
        facts.append((_("marks"), marks_text(graded.total, graded.out_of)))
    return [*facts, (_("precision"), precision_text(text.precision))]


def precision_text(name: str) -> str:
    """The class of implementations that a text was judged by, in words."""
    kind, _colon, format = name.partition(":")
    if name == "as written":
        return _("the decimals as they are written")
    if name == "exact":
        return _("no rounding but that of the printed decimals")
    if kind == "decimals":
        return _("every line rounded to {places} decimals").format(places=format)
    if kind == "transformers" and format:
        return _("{format}, as transformers does it").format(format=format)
    return name


def name_of_text(marking: Marking, place: int) -> str:
    """The name of one of several texts; empty if there is only one."""
    if len(marking.texts) == 1:
        return ""
    text = marking.texts[place]
    if text.label:
        return words.printable(text.label)
    return _("text {number} of {count}").format(number=place + 1, count=len(marking.texts))


def unmatched_lines(marking: Marking) -> Iterator[str]:
    """The unknown names of the claims, each with the nearest known names."""
    names = marking.unmatched
    if not names:
        return
    if len(names) == 1:
        yield _("one name of the claims was left aside:")
    else:
        yield _("{count} names of the claims were left aside:").format(count=whole(len(names)))
    for each in names[:MOST_UNMATCHED]:
        name, source = words.printable(each.name), words.printable(short_source(each.source))
        yield f"  {name} ({source}): {words.printable(each.reason)}"
        if each.hint:
            yield "    " + _("hint") + f": {each.hint}"
    if (more := len(names) - MOST_UNMATCHED) > 0:
        yield "  " + _("and {count} more").format(count=whole(more))


def _unmatched(each: Unmatched) -> tuple[str, str]:
    """An unknown name, and the reason."""
    hint = " " + _("hint") + f": {each.hint}" if each.hint else ""
    return each.name, f"({short_source(each.source)}): {each.reason}.{hint}"


def _reading(each: Reading) -> tuple[str, str]:
    """Names of a dump, and how they were read."""
    count = f" ({whole(each.count)}×)" if each.count > 1 else ""
    return words.printable(each.name) + count, each.how


# ------------------------------------------------------------------ the one line on top


def summary(marking: Marking) -> str:
    """The result in one line: the first error and its suspect, or that everything follows."""
    for verdict in (Verdict.ERROR, Verdict.UNSUPPORTED):
        for place, text in enumerate(marking.texts):
            for line in text.lines:
                if line.verdict is verdict:
                    return _fault(line, name_of_text(marking, place), text.lines)
    return _follows(marking)


def _fault(line: Marked, which: str, lines: Sequence[Marked]) -> str:
    """The first wrong line, its cause, how sure that is, and in which blocks it recurs."""
    where = f"{which}, {line.address}" if which else line.address
    if line.claim.unread:
        text = _("first error: {address} cannot be read")
    elif line.verdict is Verdict.UNSUPPORTED:
        text = _("{address} is right, but does not follow from the lines above")
    elif holds_nan(line):
        text = _("first error: {address} holds what is not a number")
    elif line.share < float("inf") and not another_whole_number(line):
        text = _("first error: {address} — not rounding ({excess} the bound)")
    else:
        text = _("first error: {address} — not rounding")
    told = [text.format(address=where, excess=excess_text(line.share))]
    if line.claim.unread:
        told.append(line.claim.unread)
    elif not line.suspects and line.described:
        told.append(_("no cause is sure, but {described}").format(described=line.described[0]))
    if line.suspects:
        told.append(line.suspects[0].sentence)
        evidence = line.suspects[0].evidence
        if evidence.alike:
            told.append(how_sure(line.suspects[0]))
        elif evidence.entries:
            told.append(_("nothing else that was tried fits"))
        told += _in_blocks(line, lines)
    return "; ".join(told)


def _in_blocks(line: Marked, lines: Sequence[Marked]) -> Iterator[str]:
    """The blocks that have the same mistake, where there are several."""
    if len(line.blocks) < 2:
        return
    every = {other.block for other in lines if other.step == line.step}
    if every == set(line.blocks):
        yield _("in every block")
    else:
        *most, last = map(str, line.blocks)
        yield _("in blocks {some} and {last}").format(some=", ".join(most), last=last)


def _follows(marking: Marking) -> str:
    """That every judged line follows, and which could not be judged."""
    blanks = sum(line.blank for line in marking)
    everything = [line for line in marking if not line.blank]
    judged = [line for line in everything if line.verdict is not Verdict.UNJUDGED]
    if not everything:
        return empty_text(blanks) if blanks else _("there is nothing to judge")
    if not judged:
        text = _("nothing can be judged: {count} lines")
        if len(everything) == 1:
            text = _("nothing can be judged: {count} line")
        return text.format(count=whole(len(everything)))
    if len(judged) == 1 < len(everything):
        text = _(
            "the one line that can be judged follows ({precision}; {share} of the allowed error "
            "used), {others} cannot be judged"
        )
    elif len(judged) < len(everything):
        text = _(
            "all {count} lines that can be judged follow ({precision}; at most {share} of the "
            "allowed error used), {others} cannot be judged"
        )
    elif len(judged) == 1:
        text = _("the line follows ({precision}; {share} of the allowed error used)")
    else:
        text = _(
            "all {count} lines follow ({precision}; at most {share} of the allowed error used)"
        )
    told = text.format(
        count=whole(len(judged)),
        precision=words.joined(list(dict.fromkeys(text.precision for text in marking.texts))),
        share=share_text(max(line.share for line in judged)),
        others=whole(len(everything) - len(judged)),
    )
    if blanks:
        told = f"{told}; {blank_text(blanks)}"
    told += "".join(
        "; " + _("the sheet of {name} is empty").format(name=name_of_text(marking, place))
        for place, text in enumerate(marking.texts)
        if text.empty
    )
    unusual = [line for line in everything if line.unusual]
    if not unusual:
        return told
    worst = max(unusual, key=lambda line: line.times or 0)
    doubt = _("but {address} is {times} times what rounding usually does")
    return f"{told}, " + doubt.format(address=worst.address, times=times_text(worst.times or 0))


# ------------------------------------------------------------------ runs of lines


def _rows(
    marked: Sequence[Marked], lines: Sequence[VerdictLine], every: bool
) -> Iterator[VerdictLine | VerdictRun]:
    """The lines, with runs of similar lines folded."""
    shown = iter(lines)
    for run in [[line] for line in marked] if every else folded(marked):
        parts = tuple(next(shown) for _line in run)
        if len(run) == 1:
            yield parts[0]
        else:
            yield VerdictRun(_signed(run[0].verdict, run_text(run)), parts)


def folded(lines: Sequence[Marked]) -> Iterator[list[Marked]]:
    """The lines in runs of one unremarkable verdict, and each other line alone.

    The line before one that does not follow stays alone, since it is the last right one.
    """
    following = [*(line.verdict.follows is False for line in lines[1:]), False]

    def sameness(pair: tuple[Marked, bool]) -> tuple[Verdict, str] | None:
        line, before_fault = pair
        last_good = before_fault and line.verdict is Verdict.RIGHT
        read = last_good or line.verdict.follows is False or line.unusual
        return None if read else (line.verdict, line.reason)

    for key, group in groupby(zip(lines, following, strict=True), key=sameness):
        run = [line for line, _before_fault in group]
        if key is None or len(run) < SHORTEST_RUN or len(lines) < FOLDED_FROM:
            yield from ([line] for line in run)
        else:
            yield run


def run_text(lines: Sequence[Marked]) -> str:
    """The summary of a run of lines."""
    match lines[0].verdict:
        case Verdict.UNJUDGED:
            text = _("{count} lines cannot be judged, {first} to {last}: {reason}")
        case Verdict.CARRIED:
            text = _(
                "{count} lines are carried forward, {first} to {last}: at most {share} of the "
                "allowed error"
            )
        case _:
            text = _(
                "{count} lines follow, {first} to {last}: at most {share} of the allowed error"
            )
    return text.format(
        count=whole(len(lines)),
        first=lines[0].address,
        last=lines[-1].address,
        share=share_text(max(line.share for line in lines)),
        reason=lines[0].reason,
    )
