"""A trace in a notebook: one passage of the book, which stands by itself.

The whole pass at a glance: the figure with its values, what comes next, the loss, and how to go on.
Of a trace of which only some steps were asked for, those steps with their numbers.  The piece
brings its own style, which reaches nothing else on the page, and needs no script and no ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import islice

from byhand.address import write_index
from byhand.document import palette, words
from byhand.document.book import Spine
from byhand.document.compose.book.prediction import candidates as likeliest
from byhand.document.compose.book.prediction import predicted
from byhand.document.compose.book.spine import spine
from byhand.document.compose.window import Window
from byhand.document.media.html.figure import Figures
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.numbers import Inscriber, register_mark
from byhand.document.media.html.parts import number_table
from byhand.document.media.html.prose import left_out, prose, remark
from byhand.document.media.html.style import properties, text_of
from byhand.document.media.html.tables import candidates, facts, predictions
from byhand.document.media.terminal.layout import MASK
from byhand.document.numerals import in_full
from byhand.document.parts import Number, Predictions
from byhand.editions import edition_of
from byhand.expression import Number as Rational
from byhand.forward import plan
from byhand.language import _, spoken
from byhand.plan import Plan
from byhand.tracing import Trace, Worked

MOST_STEPS = 12  # of a trace of which only some were asked for
MOST_PREDICTIONS = 8
WINDOW = Window(rows=8, columns=8, heads=2)  # of what is too large to be shown whole
SCALE = 1.1  # of the figure
SECTIONS = (  # of the book's style
    "formulas",
    "tables of numbers",
    "the figure of the whole pass",
    "other tables",
)


def notebook_passage(trace: Trace) -> str:
    """The trace as one piece of HTML, in the language spoken."""
    return "\n".join(_Cell(trace).lines())


class _Cell:
    """What stands below one cell of a notebook."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.edition = edition_of(trace, window=WINDOW, workings=False)
        showing = self.edition.showing
        self.partial = bool(trace.asked)
        self.plan = _whole_plan(trace) if self.partial else trace.plan
        self.spine = spine(showing, self.plan)
        finite = _decimal(self.spine)
        self.figures = Figures(self.spine, showing.labels, finite)
        self.pen = Plain(Mathml(_("."), finite=finite))

    def lines(self) -> Iterator[str]:
        yield f'<div class="byhand" lang="{spoken()}"><style>{style()}</style>'
        yield '<div class="passage"><div class="text">'
        yield from self.head()
        yield from self.steps() if self.partial else self.ending()
        yield from self.going_on()
        yield "</div>"
        yield from self.figure()
        yield "</div></div>"

    # ------------------------------------------------------------------ what it is

    def head(self) -> Iterator[str]:
        trace = self.trace
        name = words.printable(trace.model.name)
        yield f'<p class="title">{escape(_("{model}, by hand").format(model=name))}</p>'
        if trace.model.about:
            yield f"<p>{prose(words.told(trace.model.about))}</p>"
        yield from facts(self.facts())

    def facts(self) -> Iterator[tuple[str, str]]:
        trace = self.trace
        yield _("text"), words.printable(trace.text)
        if trace.target is not None:
            yield _("target"), words.token_label(trace.token(trace.target))
        yield _("numbers"), words.numbers_name(trace.numbers, trace.proof)
        yield _("parameters"), words.whole(self.edition.inventory.total)
        if self.partial:
            steps = _("{count} of {all}").format(
                count=words.whole(len(trace.steps)), all=words.whole(len(self.plan))
            )
            yield _("steps worked out"), steps

    def figure(self) -> Iterator[str]:
        """The whole pass; of a part of it, with that part marked."""
        worked = self.trace.asked
        width = round(self.figures.width * SCALE)
        yield f'<figure class="whole" style="--figure:{width}px">{self.figures.inline(worked)}'
        if worked:
            yield f'<figcaption><i class="swatch"></i>{escape(_("asked for"))}</figcaption>'
        yield "</figure>"

    # ------------------------------------------------------------------ how it ends

    def ending(self) -> Iterator[str]:
        """What comes next, and the loss; or why they are not known."""
        trace = self.trace
        missing = next(
            (worked.missing for worked in trace.values() if worked.missing is not None), None
        )
        if missing is not None:
            yield left_out(words.why_missing(missing))
        if trace.next:
            yield from self.next_tokens()
        probs, logits = trace.steps["probs"], trace.steps["logits"]
        if probs.missing is None and logits.missing is None:
            yield from candidates(likeliest(self.edition, self.edition.last), self.pen)
        if "loss" in trace.steps:
            yield from self.tables(trace.steps["loss"])
        yield from self.everything()

    def next_tokens(self) -> Iterator[str]:
        found = list(enumerate(self.trace.next or ()))
        shown = found[-MOST_PREDICTIONS:]
        hidden = len(found) - len(shown)
        said = _("the first {count} positions").format(count=hidden) if hidden else ""
        outline = self.edition.showing.outline(self.trace.steps["next"])
        yield from predictions(
            Predictions(outline, tuple(predicted(self.edition, *one) for one in shown), said),
            self.pen,
        )

    def everything(self) -> Iterator[str]:
        """Every step with its numbers, folded away; of larger models, how to see one."""
        told = [worked for worked in self.trace.values() if not worked.whole]
        if self.edition.everything:
            title = _("all {count} steps, number by number").format(count=len(told))
            yield f"<details><summary>{escape(title)}</summary>"
            for worked in told:
                yield from self.tables(worked)
            yield "</details>"
        else:
            yield left_out(
                _("the numbers of {count} steps are not shown here").format(
                    count=words.whole(len(told))
                )
            )

    # ------------------------------------------------------------------ steps

    def steps(self) -> Iterator[str]:
        """The steps that were asked for."""
        shown = [self.trace.steps[name] for name in self.trace.asked]
        for worked in islice(shown, MOST_STEPS):
            if worked.address == "next" and self.trace.next:
                yield from self.next_tokens()
            else:
                yield from self.tables(worked)
        if len(shown) > MOST_STEPS:
            more = words.whole(len(shown) - MOST_STEPS)
            yield left_out(_("left out: {count} more steps").format(count=more))

    def tables(self, worked: Worked) -> Iterator[str]:
        """A step: its numbers, and what is to be said of them."""
        formula = words.formula_text(worked.step.formula)
        law = f"{worked.address} = {formula}" if formula else worked.address
        yield f'<p class="law"><code>{escape(law)}</code></p>'
        if worked.missing is not None:
            yield left_out(words.why_missing(worked.missing))
            return
        for table in self.edition.showing.tables(worked):
            yield from number_table(table, self.pen)
        yield from map(remark, self.edition.showing.remarks(worked))

    # ------------------------------------------------------------------ and then

    def going_on(self) -> Iterator[str]:
        """What to ask this trace, and where there is more."""
        known = [
            worked for worked in self.trace.values() if worked.missing is None and not worked.whole
        ]
        lines = []
        if known:
            one = next((w for w in known if w.address.endswith("attn.weights")), known[-1])
            last = tuple(size - 1 for size in one.step.shape)
            lines.append((f'trace["{one.address}"]', _("a step")))
            lines.append((f'trace["{one.address}{write_index(last)}"]', _("one number")))
        folder = re.sub(r"[^\w-]+", "-", self.trace.model.name).strip("-") or "model"
        call = f'byhand.book(trace.model, trace.text, out="{folder}-book")'
        lines.append((call, _("the whole book: every step in words, formulas and numbers")))
        yield '<dl class="next">'
        for code, about in lines:
            yield f"<div><dt><code>{escape(code)}</code></dt><dd>{escape(about)}</dd></div>"
        yield "</dl>"


@dataclass
class Plain(Inscriber):
    """Numbers without anything behind them: a page may hold many traces, and ids would clash."""

    def here(self, address: str) -> str:
        return ""

    def number(self, number: Number, tag: str = "td", marked: bool = True) -> str:
        cell, address = number.cell, escape(number.address)
        if cell.masked:
            return f'<{tag} class="masked">{MASK}</{tag}>'
        mark = register_mark(cell.register) if marked else ""
        shown = f'<span class="face">{self.face(cell)}</span>{mark}'
        return (
            f'<{tag} class="n {cell.register}" title="{address}"><span class="flat">{shown}'
            f"</span></{tag}>"
        )


def _whole_plan(trace: Trace) -> Plan:
    """The plan that the steps asked for were cut out of."""
    apart = any(name.endswith(".head_out") for name in trace.steps)
    target = trace.target is not None
    return plan(trace.model.spec, len(trace.tokens), target=target, head_outputs=apart)


def _decimal(figure: Spine) -> bool:
    """Whether the exact numbers are decimals by nature: 0.2 rather than 3/4."""
    numbers = (n for node in figure.nodes for row in node.rows for n in row.numbers)
    forms = (number.cell.form for number in numbers)
    values = (form.value for form in forms if isinstance(form, Rational))
    return any(value.denominator % 5 == 0 and in_full(value) for value in values)


@cache
def style(*sheets: str) -> str:
    """The style of the piece: of the book's, what it uses, and what notebooks need beside it; the
    named sheets too.

    Everything is nested in one rule, so it reaches nothing outside the piece.
    """
    book = text_of("book.css")
    named = dict(re.findall(r"/\* ---- (.*?) \*/\n(.*?)(?=\n/\* ----|\n@media|\Z)", book, re.S))
    shared = "\n".join((*(named[name] for name in SECTIONS), *map(text_of, sheets)))
    fonts = re.findall(r":root \{\n(.*?)\n\}", book, re.S)[0]
    light = "color-scheme: light dark; " + properties(palette.LIGHT) + fonts
    whole = text_of("notebook.css").replace("/* light */", light)
    whole = whole.replace("/* dark */", properties(palette.DARK))
    return re.sub(r"\s*\n\s*", "\n", whole.replace("/* shared */", shared)).strip()
