"""A marking on the terminal: one line that says it all, then a table, a line of working a row.

Readable without colour: every verdict has a sign.  In long tables the runs of lines that need no
reading are folded into one.  How one line is said is in `marked`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from byhand.checking.grading import grade
from byhand.checking.verdicts import Marked, MarkedText, Marking, Verdict
from byhand.document import words
from byhand.document.compose.listing import INDENT
from byhand.document.compose.marked import (
    SIGNS,
    UNUSUAL,
    excess_text,
    holds_nan,
    index_text,
    share_text,
    short_source,
    tally,
    times_text,
    told,
    usual_number,
    verdict_word,
)
from byhand.document.compose.runs import Run, folded
from byhand.document.media.terminal.grades import marks_text
from byhand.document.media.terminal.ink import Ink, padded, width_of, wrap
from byhand.document.words import whole
from byhand.errors import AddressError, nearest
from byhand.language import _

MOST_UNMATCHED = 10  # names that are told one by one
INKS = {
    Verdict.RIGHT: "exact",
    Verdict.CARRIED: "enclosed",
    Verdict.UNSUPPORTED: "named",
    Verdict.ERROR: "wrong",
    Verdict.UNJUDGED: "rounded",
}
DETAIL = INDENT * 3
SIGN, LINE, VERDICT, SHARE, USUAL, WORST = range(6)  # the columns of the table


def lines(marking: Marking, width: int, ink: Ink, every: bool = False) -> Iterator[str]:
    """The whole marking as text; `every`: no run of lines is folded."""
    yield from (ink(line, "strong") for line in _wrapped(summary(marking), width, ""))
    yield ""
    alone = len(marking.texts) == 1
    facts = [(_("model"), words.printable(marking.model))]
    if alone:
        facts += text_facts(marking.texts[0])
    room = max(width_of(name) for name, _fact in facts)
    for name, fact in facts:
        lead = INDENT + padded(name, room) + INDENT
        yield from _wrapped(fact, width, " " * width_of(lead), lead)
    for place, text in enumerate(marking.texts):
        yield ""
        if not alone:
            yield from _heading(marking, place, width, ink)
        yield from _tally(text.lines, width, ink)
        yield ""
        yield from Rows(text.lines, width, ink, every).lines()


def text_facts(text: MarkedText) -> list[tuple[str, str]]:
    """What was marked and by which measure, as names and words."""
    facts = [(_("sheet"), words.printable(text.label))] if text.label else []
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


def only(marking: Marking, patterns: Sequence[str]) -> Marking:
    """The marking of some lines alone, each judged as before; an AddressError if there are none."""
    claimed = {line.claim.address for line in marking}
    for pattern in patterns:
        if not any(_matches(address, pattern) for address in claimed):
            raise AddressError(
                _("no claim is about {name}").format(name=repr(pattern)),
                hint=nearest(pattern, claimed),
            )

    def kept(line: Marked) -> bool:
        return any(_matches(line.claim.address, pattern) for pattern in patterns)

    texts = (replace(text, lines=tuple(filter(kept, text.lines))) for text in marking.texts)
    return replace(marking, texts=tuple(texts))


def _matches(address: str, pattern: str) -> bool:
    """A step, a group such as block.0.attn, or a pattern with *: as `trace --only` has it."""
    return fnmatchcase(address, pattern) or address.startswith(pattern + ".")


# ------------------------------------------------------------------ the one line on top


def summary(marking: Marking) -> str:
    """The result in one line: the first error and its suspect, or that everything follows."""
    for verdict in (Verdict.ERROR, Verdict.UNSUPPORTED):
        for place, text in enumerate(marking.texts):
            for line in text.lines:
                if line.verdict is verdict:
                    again = sum(other.like == line.address for other in text.lines)
                    return _fault(line, name_of_text(marking, place), again)
    return _follows(marking)


def name_of_text(marking: Marking, place: int) -> str:
    """Which of several texts, in words; nothing where there is one."""
    if len(marking.texts) == 1:
        return ""
    text = marking.texts[place]
    if text.label:
        return words.printable(text.label)
    return _("text {number} of {count}").format(number=place + 1, count=len(marking.texts))


def _fault(line: Marked, which: str, again: int) -> str:
    """The first line that is wrong, why, and how often the same mistake is made again."""
    where = f"{which}, {line.address}" if which else line.address
    if line.verdict is Verdict.UNSUPPORTED:
        text = _("{address} is right, but does not follow from the lines above").format(
            address=where
        )
    elif holds_nan(line):
        text = _("first error: {address} holds what is not a number").format(address=where)
    elif line.share < float("inf"):
        text = _("first error: {address} — not rounding ({excess} the bound)").format(
            address=where, excess=excess_text(line.share)
        )
    else:
        text = _("first error: {address} — not rounding").format(address=where)
    if not line.suspects:
        return text
    repeated = _("the same in {count} more blocks")
    if again == 1:
        repeated = _("the same in {count} more block")
    told = [text, line.suspects[0].sentence, repeated.format(count=whole(again))]
    return "; ".join(told if again else told[:2])


def _follows(marking: Marking) -> str:
    blanks = sum(line.blank for line in marking)
    everything = [line for line in marking if not line.blank]
    judged = [line for line in everything if line.verdict is not Verdict.UNJUDGED]
    if not everything:
        return _blank(blanks) if blanks else _("there is nothing to judge")
    if not judged:
        text = _("nothing can be judged: {count} lines")
        if len(everything) == 1:
            text = _("nothing can be judged: {count} line")
        return text.format(count=whole(len(everything)))
    precisions = words.joined(list(dict.fromkeys(text.precision for text in marking.texts)))
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
        precision=precisions,
        share=share_text(max(line.share for line in judged)),
        others=whole(len(everything) - len(judged)),
    )
    if blanks:
        told = f"{told}; {_blank(blanks)}"
    unusual = max(
        (line for line in everything if line.unusual),
        key=lambda line: line.times or 0,
        default=None,
    )
    if unusual is None:
        return told
    doubt = _("but {address} is {times} times what rounding usually does").format(
        address=unusual.address, times=times_text(unusual.times or 0)
    )
    return f"{told}, {doubt}"


def _blank(count: int) -> str:
    """How many lines nobody filled in."""
    text = _("{count} line is left blank") if count == 1 else _("{count} lines are left blank")
    return text.format(count=whole(count))


# ------------------------------------------------------------------ the table


class Rows:
    """The table of one text, fitted to a width: where it is short, what the sign says is not said
    again, and on a narrow page a line takes two."""

    def __init__(self, lines: Sequence[Marked], width: int, ink: Ink, every: bool) -> None:
        self.shown = list(folded(lines, every))
        self.width = width
        self.ink = ink
        self.head = ["", _("line"), _("verdict"), _("of allowed"), _("× usual"), _("worst entry")]
        alone = [line for line in self.shown if isinstance(line, Marked)]
        rows = [self.head, *map(self.row, alone)]
        self.rooms = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
        self.rooms[SIGN] = 2  # the sign, and the mark beside it
        self.kept = [VERDICT, SHARE, WORST]  # the columns behind the line
        if any(map(usual_number, lines)):
            self.kept.insert(2, USUAL)
        self.broken = False
        if self.used(LINE, *self.kept) > width:  # the sign says the verdict too
            briefer = [column for column in self.kept if column != VERDICT]
            self.broken = self.used(LINE, *briefer) > width
            if not self.broken or self.used(*self.kept) > width:
                self.kept = briefer
            if self.broken and self.used(*self.kept) > width:
                self.kept = [SHARE, WORST]

    def used(self, *columns: int) -> int:
        """How wide these columns are behind the sign."""
        return len(INDENT) + self.rooms[SIGN] - 1 + sum(2 + self.rooms[at] for at in columns)

    def row(self, line: Marked) -> list[str]:
        judged = line.verdict is not Verdict.UNJUDGED
        return [
            SIGNS[line.verdict] + (UNUSUAL if line.unusual else ""),
            line.address,
            verdict_word(line.verdict),
            share_text(line.share) if judged else "",
            usual_number(line),
            index_text(line) if judged else "",
        ]

    def lines(self) -> Iterator[str]:
        if any(isinstance(line, Marked) for line in self.shown):
            yield from (self.ink(text, "quiet") for text in self.fitted(self.head))
        before: Marked | None = None
        for line in self.shown:
            if isinstance(line, Run):
                yield from self.run(line)
                before = None
                continue
            sign = SIGNS[line.verdict]
            for text in self.fitted(self.row(line)):
                yield text.replace(sign, self.ink(sign, INKS[line.verdict]), 1)
            yield from self.details(line, before)
            before = line

    def fitted(self, row: Sequence[str]) -> Iterator[str]:
        rooms = self.rooms
        cells = [
            _right(row[at], rooms[at]) if at in (SHARE, USUAL) else padded(row[at], rooms[at])
            for at in self.kept
        ]
        numbers = INDENT.join(cells).rstrip()
        lead = INDENT + padded(row[SIGN], rooms[SIGN]) + " "
        if self.broken:
            yield (lead + row[LINE]).rstrip()
            yield " " * width_of(lead) + numbers
        else:
            yield (lead + padded(row[LINE], rooms[LINE]) + INDENT + numbers).rstrip()

    def run(self, run: Run) -> Iterator[str]:
        sign = SIGNS[run.lines[0].verdict]
        lead = f"{INDENT}{sign}  "
        texts = _wrapped(f"… {run.text()}", self.width, " " * (len(lead) + 2), lead)
        for place, text in enumerate(texts):
            if place:
                yield self.ink(text, "quiet")
            else:
                mark = self.ink(sign, INKS[run.lines[0].verdict])
                yield f"{INDENT}{mark}  " + self.ink(text[len(lead) :], "quiet")

    def details(self, line: Marked, before: Marked | None) -> Iterator[str]:
        """What is said below a line; a reason that is also that of the line before, once."""
        for kind, sentence in told(line):
            if kind == "reason" and before is not None and before.reason == sentence:
                continue
            lead = DETAIL + {"suspect": "» ", "change": INDENT}.get(kind, "")
            rest = DETAIL + INDENT * (kind in ("suspect", "change"))
            ink = {"source": "quiet", "reason": "quiet", "suspect": "strong", "usual": "named"}
            for text in _wrapped(sentence, self.width, rest, lead):
                yield self.ink(text, ink.get(kind))


def _heading(marking: Marking, place: int, width: int, ink: Ink) -> Iterator[str]:
    text = marking.texts[place]
    about = [name_of_text(marking, place), words.printable(text.text) if text.text else ""]
    if len({text.precision for text in marking.texts}) > 1 or place == 0:
        about.append(precision_text(text.precision))
    title = " · ".join(filter(None, about))
    if (room := width - width_of(title) - 4) > 0:
        yield ink(f"── {title} {'─' * room}", "stage")
    else:
        yield from (ink(line, "stage") for line in _wrapped(title, width, INDENT, "── "))


def _tally(lines: Sequence[Marked], width: int, ink: Ink) -> Iterator[str]:
    """How many lines have each verdict; a legend of the signs at the same time."""
    pieces = [
        (INKS[verdict], f"{SIGNS[verdict]} {whole(count)} {word}")
        for verdict, count, word in tally(lines)
    ]
    if count := sum(line.unusual for line in lines):
        text = _("{count} beyond what rounding usually does").format(count=whole(count))
        pieces.append(("named", f"{UNUSUAL} {text}"))
    row, used = "", 0
    for kind, piece in pieces:
        if row and used + 3 + width_of(piece) > width:
            yield row
            row, used = "", 0
        first, *rest = _wrapped(piece, width, INDENT * 2, INDENT)
        row += (" " if row else "") + INDENT + ink(piece[0], kind) + first[len(INDENT) + 1 :]
        used += 3 + width_of(first)
        if rest:
            yield from (row, *rest)
            row, used = "", 0
    if row:
        yield row


def _right(text: str, room: int) -> str:
    return " " * (room - width_of(text)) + text


def _wrapped(text: str, width: int, indent: str, first: str | None = None) -> Iterator[str]:
    """Words broken at the width; `first` stands before the first line."""
    yield from wrap(
        text,
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


# ------------------------------------------------------------------ names that stand for nothing


def unmatched_lines(marking: Marking) -> Iterator[str]:
    """The names of the claims that could not be judged for want of a step, with what is nearest."""
    names = marking.unmatched
    if not names:
        return
    if len(names) == 1:
        yield _("one name of the claims was left aside:")
    else:
        yield _("{count} names of the claims were left aside:").format(count=whole(len(names)))
    for each in names[:MOST_UNMATCHED]:
        name, source = words.printable(each.name), words.printable(short_source(each.source))
        yield f"{INDENT}{name} ({source}): {words.printable(each.reason)}"
        if each.hint:
            yield INDENT * 2 + _("hint") + f": {each.hint}"
    if (more := len(names) - MOST_UNMATCHED) > 0:
        yield INDENT + _("and {count} more").format(count=whole(more))
