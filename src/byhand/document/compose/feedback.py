"""A marked worksheet as feedback: what was right, where the first mistake is, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from byhand.checking.claims import Claim
from byhand.checking.corrections import LINE, VALUES
from byhand.checking.gradebooks import decimal
from byhand.checking.grading import BLANK, SET_ASIDE, Graded, GradedLine
from byhand.checking.verdicts import Verdict
from byhand.document import words
from byhand.document.compose.grades import OUTCOMES, line_name, marks_text, percent_text
from byhand.document.compose.marked import claimed_text, verdict_word, worst_texts
from byhand.document.numerals import localised
from byhand.document.parts.feedback import Feedback, FeedbackLine
from byhand.language import _

VERDICTS = {verdict.value: verdict for verdict in Verdict}


def feedback(graded: Graded, *, model: str, text: str, tokens: Sequence[str] = ()) -> Feedback:
    """The feedback on one sheet; `tokens` are the words that the model predicts, by their ids."""
    asked = [line for line in graded.lines if not line.given]
    about = _("{model}, on the text “{text}”") if text else "{model}"
    return Feedback(
        student=words.printable(graded.student) or "?",
        about=about.format(model=words.printable(model), text=words.printable(text)),
        marks=marks_text(graded.total, graded.out_of),
        percent=percent_text("" if graded.percent is None else decimal(graded.percent, 0)),
        said=tuple(_said(graded, asked)),
        lines=tuple(_line(number, line, tokens) for number, line in enumerate(graded.lines, 1)),
    )


def _said(graded: Graded, asked: Sequence[GradedLine]) -> Iterator[str]:
    """The result in a sentence or two."""
    wrong = [line for line in asked if line.outcome == Verdict.ERROR.value]
    carried = sum(line.outcome == Verdict.CARRIED.value for line in asked)
    blank = sum(line.outcome == BLANK for line in asked)
    number = graded.lines.index(wrong[0]) + 1 if wrong else 0
    if graded.empty:
        yield _("The sheet is empty: nothing is filled in yet.")
        return
    if not wrong and not blank and asked:
        yield _("Every line is right.")
    if len(wrong) == 1:
        yield _("There is one mistake, in line {number}.").format(number=number)
    elif wrong:
        text = _("There are {count} mistakes; the first is in line {number}.")
        yield text.format(count=len(wrong), number=number)
    if carried == 1:
        yield _("One line goes on correctly from a mistake: it costs nothing.")
    elif carried:
        text = _("{count} lines go on correctly from a mistake: they cost nothing.")
        yield text.format(count=carried)
    if blank == 1:
        yield _("One line is left blank.")
    elif blank:
        yield _("{count} lines are left blank.").format(count=blank)


def _line(number: int, line: GradedLine, tokens: Sequence[str]) -> FeedbackLine:
    verdict = VERDICTS.get(line.outcome)
    word = _("left blank") if line.outcome == BLANK else verdict_word(verdict or Verdict.UNJUDGED)
    if line.outcome == Verdict.UNSUPPORTED.value:
        word = _("right")
    claim = None if line.marked is None or line.outcome == BLANK else line.marked.claim
    claim = None if claim is not None and claim.unread else claim
    return FeedbackLine(
        number=number,
        address=line.name,
        named=_name(line.name, line.address),
        verdict="BLANK" if verdict is None else verdict.name,
        sign=OUTCOMES.get(line.outcome, "?"),
        word=word,
        marks="" if line.given or line.outcome == SET_ASIDE else _marks(line),
        wrote="" if claim is None else _wrote(claim, tokens),
        expected=_expected(line) if line.outcome == Verdict.ERROR.value else "",
        told=tuple(_told(line)),
    )


def _marks(line: GradedLine) -> str:
    return marks_text(line.mark, line.out_of)


def _name(name: str, address: str) -> str:
    """What a line is, in words."""
    apart = {LINE: _("The wrong line"), VALUES: _("What it should say")}
    return apart.get(name) or line_name(address)


def _told(line: GradedLine) -> Iterator[str]:
    """What is said of a line that its verdict does not say."""
    if line.outcome == Verdict.CARRIED.value and line.filled == 1:
        return
    if line.outcome != BLANK and line.comment:
        yield _to_the_student(line.comment)
    mistake = line.mistake
    if mistake is not None and mistake.change:
        yield mistake.change


def _to_the_student(comment: str) -> str:
    """A cause, said to whom it happened: "it follows if …" is a teacher's wording."""
    start = _("it follows if ")
    if not comment.startswith(start):
        return comment
    # Translators: what comes after is what the student did instead
    return _("what you wrote comes out if ") + comment.removeprefix(start)


def _wrote(claim: Claim, tokens: Sequence[str]) -> str:
    """The numbers of a line as they were written; of a prediction the words."""
    values = np.asarray(claim.values)
    if claim.address == "next":
        ids = [int(value) for value in values.flat]
        return "; ".join(tokens[id] if 0 <= id < len(tokens) else str(id) for id in ids)
    return "; ".join(_number(claim, place) for place in np.ndindex(values.shape))


def _number(claim: Claim, place: tuple[int, ...]) -> str:
    if claim.claimed is not None and not claim.claimed[place]:
        return "_"
    value = float(claim.values[place])
    if claim.address == LINE:
        return f"{value:g}"
    return localised(claimed_text(claim, claim.in_whole(place), value))


def _expected(line: GradedLine) -> str:
    """What follows from the student's own lines above, number by number where all are known."""
    marked = line.marked
    if marked is None or not marked.among or len(marked.among) < marked.entries:
        return ""
    shown = sorted(marked.among, key=lambda worst: worst.index)
    texts = []
    for worst in shown:
        claimed, expected, _allowed = worst_texts(marked, worst)
        places = len(claimed.partition(".")[2])
        texts.append(localised(f"{float(worst.expected):.{places}f}" if places else expected))
    return "; ".join(texts)
