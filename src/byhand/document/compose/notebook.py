"""A trace in a notebook: the whole pass at a glance, or the requested steps, as parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from byhand.address import write_index
from byhand.document import words
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.prediction import candidates, predicted
from byhand.document.compose.book.whole import text_facts
from byhand.document.parts import LeftOut, NotWorked, Part, Predictions, Section, StepPart, Title
from byhand.language import _
from byhand.plan import Plan
from byhand.tracing import Trace
from byhand.worked import Worked

MOST_STEPS = 12  # steps shown of a partial trace
MOST_PREDICTIONS = 8


def parts(edition: Edition, plan: Plan) -> Iterator[Part | Section]:
    """The parts of a trace for a notebook; the plan is the whole pass."""
    yield _title(edition, plan)
    yield from _asked(edition) if edition.trace.asked else _ending(edition)


def calls(trace: Trace) -> Iterator[tuple[str, str]]:
    """Calls for further questions, each with its meaning."""
    known = [one for one in trace.values() if one.missing is None and not one.whole]
    if known:
        one = next((w for w in known if w.address.endswith("attn.weights")), known[-1])
        last = tuple(size - 1 for size in one.step.shape)
        yield f'trace["{one.address}"]', _("a step")
        yield f'trace["{one.address}{write_index(last)}"]', _("one number")
    folder = re.sub(r"[^\w-]+", "-", trace.model.name).strip("-") or "model"
    call = f'byhand.book(trace.model, trace.text, out="{folder}-book")'
    yield call, _("the whole book: every step in words, formulas and numbers")


def _title(edition: Edition, plan: Plan) -> Title:
    model, facts = edition.trace.model, list(text_facts(edition))
    if edition.trace.asked:
        steps = _("{count} of {all}").format(
            count=words.whole(len(edition.trace.steps)), all=words.whole(len(plan))
        )
        facts.append((_("steps worked out"), steps))
    name = _("{model}, by hand").format(model=words.printable(model.name))
    return Title(name, words.told(model.about), tuple(facts), registers=(), masked=False)


def _ending(edition: Edition) -> Iterator[Part | Section]:
    """The prediction and the loss, or why they are unknown; then every step, folded."""
    trace = edition.trace
    missing = next((one.missing for one in trace.values() if one.missing is not None), None)
    if missing is not None:
        yield LeftOut(words.why_missing(missing))
    if trace.next:
        yield _next(edition)
    if trace.steps["probs"].missing is None and trace.steps["logits"].missing is None:
        yield candidates(edition, edition.last)
    if "loss" in trace.steps:
        yield _step(edition, trace.steps["loss"])
    told = [worked for worked in trace.values() if not worked.whole]
    if edition.everything:
        title = _("all {count} steps, number by number").format(count=len(told))
        yield Section("steps", title, "", tuple(_step(edition, worked) for worked in told))
    else:
        text = _("the numbers of {count} steps are not shown here")
        yield LeftOut(text.format(count=words.whole(len(told))))


def _asked(edition: Edition) -> Iterator[Part]:
    """The requested steps."""
    trace = edition.trace
    for name in trace.asked[:MOST_STEPS]:
        known = name == "next" and trace.next
        yield _next(edition) if known else _step(edition, trace.steps[name])
    if (more := len(trace.asked) - MOST_STEPS) > 0:
        yield LeftOut(_("left out: {count} more steps").format(count=words.whole(more)))


def _next(edition: Edition) -> Predictions:
    found = list(enumerate(edition.trace.next or ()))
    shown = found[-MOST_PREDICTIONS:]
    hidden = len(found) - len(shown)
    said = _("the first {count} positions").format(count=hidden) if hidden else ""
    outline = edition.showing.outline(edition.trace.steps["next"])
    return Predictions(outline, tuple(predicted(edition, *one) for one in shown), said)


def _step(edition: Edition, worked: Worked) -> StepPart | NotWorked:
    """A step with its numbers and remarks."""
    showing = edition.showing
    outline = showing.outline(worked)
    if worked.missing is not None:
        return NotWorked(words.why_missing(worked.missing), (outline,))
    tables, remarks = tuple(showing.tables(worked)), tuple(showing.remarks(worked))
    return replace(outline, tables=tables, remarks=remarks)
