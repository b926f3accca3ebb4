"""Training steps as parts: the losses, the gradients, the optimizer's lines, the new weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from byhand.document import words
from byhand.document.compose.forms import Forms
from byhand.document.compose.tables import Window
from byhand.document.compose.trace import Document
from byhand.document.numerals import one_line
from byhand.document.parts import (
    Cell,
    Column,
    Facts,
    Finding,
    Grid,
    LeftOut,
    Part,
    Section,
    Stage,
    Title,
)
from byhand.document.words import whole
from byhand.language import _
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.optimizer import UPDATE, Rule, said
from byhand.parameters import learned, size_of
from byhand.plan import GRAD, WEIGHT

if TYPE_CHECKING:
    from byhand.learning import Training, TrainingStep
    from byhand.model import Model

MOST_WEIGHTS = 2_000  # of a model whose lines are all shown
MOST_TEXTS = 6
LOSSES = ("losses", "mean_loss", "loss")


@dataclass(frozen=True)
class Group:
    """Parts with a heading: a stage in a terminal, a section on a page."""

    name: str
    title: str
    about: str
    parts: tuple[Part, ...]


def document(training: Training, *, only: Iterable[str] = ()) -> Iterator[Part]:
    """The parts of a training: its title, a line for each step, and the last step in full.

    With `only`, the lines of the last step that it names, from the whole pass.
    """
    yield opening(training)
    if len(training.steps) > 1:
        yield steps_grid(training)
    wanted = tuple(only)
    if wanted:
        _title, *parts = Document(training.steps[-1].trace, Window(), False, "byhand").parts(wanted)
        yield from parts
    else:
        for group in groups(training):
            yield Stage(group.title, group.about)
            yield from group.parts
    yield closing(training)


def cell_parts(training: Training) -> Iterator[Part | Section]:
    """The parts of a notebook cell: the facts, the steps, and the lines of the last one, folded."""
    yield Facts(opening(training).facts)
    yield steps_grid(training)
    yield closing(training)
    for group in groups(training):
        yield Section(group.name, group.title, group.about, group.parts)


# ------------------------------------------------------------------ what was done, in short


def opening(training: Training) -> Title:
    """The title: the texts, the loss, the optimizer and the numbers."""
    last = training.steps[-1]
    texts = training.batch.texts
    shown = [words.printable(text) for text in texts[:MOST_TEXTS]]
    if more := len(texts) - len(shown):
        shown.append(_("{count} more").format(count=whole(more)))
    read = training.batch.source
    facts = [] if read is None else [(_("source"), words.printable(read.text))]
    facts.append((_("text") if len(texts) == 1 else _("texts"), " · ".join(shown)))
    if last.trace.target is not None:
        facts.append((_("target"), words.token_label(last.trace.answer(last.trace.target))))
    facts += [
        (_("loss"), loss_told(training)),
        (_("optimizer"), rule_told(last.rule, constant=len(training.steps) == 1)),
        (_("numbers"), words.numbers_name(last.trace.numbers, last.trace.proof)),
    ]
    model = training.model
    return Title(words.printable(model.name), told(training), tuple(facts))


def told(training: Training) -> str:
    """How many steps, in words."""
    count = len(training.steps)
    return (
        _("One training step, line by line.")
        if count == 1
        else _("{count} training steps; the last one line by line.").format(count=whole(count))
    )


def loss_told(training: Training) -> str:
    """Which loss the gradients are of."""
    if not training.mean:
        return _("that of the last position")
    counted = sum(id != UNCOUNTED for id in training.batch.targets)
    if counted == 1:
        return _("the mean, of one position")
    return _("the mean over {count} positions").format(count=whole(counted))


def rule_told(rule: Rule, *, constant: bool = True) -> str:
    """The optimizer and its settings: adamw, rate 0.001, betas 0.9 and 0.999, …"""
    told = [rule.kind]
    if constant:
        told.append(_("rate {number}").format(number=said(rule.rate)))
    if rule.kind == "momentum":
        told.append(_("momentum {number}").format(number=said(rule.momentum)))
    if "v" in rule.moments:
        first, second = map(said, rule.betas)
        told.append(_("betas {first} and {second}").format(first=first, second=second))
        told.append(f"eps {said(rule.eps)}")
    if rule.decay:
        told.append(_("decay {number}").format(number=said(rule.decay)))
    if rule.clip is not None:
        told.append(_("clipped at norm {number}").format(number=said(rule.clip)))
    return ", ".join(told)


def steps_grid(training: Training) -> Grid:
    """A line for each step: its rate, the loss before it, the norm, and whether it was clipped."""
    clips = training.steps[0].rule.clip is not None
    columns = [Column(_("step"), "number"), Column(_("rate"), "number")]
    columns += [Column(_("loss"), "number"), Column(_("norm"), "number")]
    columns += [Column(_("clipped by"), "number")] * clips
    rows = [
        (
            str(step.rule.step),
            said(step.rule.rate),
            short(step, step.loss),
            short(step, step.norm),
            *[clipped(step)] * clips,
        )
        for step in training.steps
    ]
    last = training.steps[-1]
    after = (_("at the end"), "", short(last, training.losses[-1]), "", *[""] * clips)
    return Grid("", tuple(columns), tuple(rows), (after,))


def step_facts(step: TrainingStep) -> Facts:
    """One step in a few facts."""
    facts = [
        (_("step"), str(step.rule.step)),
        (_("optimizer"), rule_told(step.rule)),
        (_("loss"), short(step, step.loss)),
        (_("norm"), short(step, step.norm)),
    ]
    return Facts((*facts, (_("clipped by"), clipped(step))) if clipped(step) else tuple(facts))


def clipped(step: TrainingStep) -> str:
    """What the gradients were multiplied by; empty where they were short enough."""
    clip = step.clip
    exact = (
        clip.mid if isinstance(clip, Enclosure) and clip.exact else getattr(clip, "fraction", clip)
    )
    return "" if clip is None or exact == 1 else short(step, clip)


def short(step: TrainingStep, number: Any) -> str:
    """A number in a few characters."""
    return brief(Forms(step.trace.numbers, digits=step.trace.digits).cell(number, form=False))


def brief(cell: Cell) -> str:
    """The decimals of a cell; its form where that is short, or where it has no decimals."""
    alone = cell.decimal is not None and not cell.plain
    return one_line(replace(cell, form=None) if alone else cell)


def closing(training: Training) -> Finding:
    """The loss before and after."""
    last = training.steps[-1]
    before, after = short(last, training.losses[0]), short(last, training.losses[-1])
    return Finding(_("loss {before} → {after}").format(before=before, after=after))


# ------------------------------------------------------------------ the last step, line by line


def groups(training: Training) -> Iterator[Group]:
    """The lines of the last step, under headings; of a large model, those that sum it up."""
    last = training.steps[-1]
    showing = Document(last.trace, Window(), False, "byhand")
    surprise = words.stage_about(words.Place("loss"))
    yield Group("before", _("Loss before"), surprise, tuple(losses(showing)))
    large = size_of(training.model.spec) > MOST_WEIGHTS
    names = [p.name for p in learned(training.model.spec) if p.name in training.new]
    if not large:
        about = _("How fast the loss grows with each weight.")
        found = (last.trace.plan.known[GRAD + WEIGHT + name] for name in names)
        shown = tuple(showing.step(last.trace.steps[address]) for address in dict.fromkeys(found))
        yield Group("gradients", _("Gradients"), about, shown)
    yield norm_group(showing, names, large)
    if not large:
        for name in names:
            lines = tuple(showing.step(last.trace.steps[a]) for a in lines_of(training, name))
            yield Group(name, name, "", lines)
    after = Document(training.after, Window(), False, "byhand")
    about = _("The same text, worked out with the new weights.")
    yield Group("after", _("Loss after"), about, tuple(losses(after)))


def losses(showing: Document) -> Iterator[Part]:
    """The steps from the probabilities to the loss."""
    steps = showing.trace.steps
    return (showing.step(steps[name]) for name in LOSSES if name in steps)


def norm_group(showing: Document, names: Sequence[str], large: bool) -> Group:
    """The norm of all gradients together, from the squares of each weight's, and the clipping."""
    trace = showing.trace
    rows = []
    for name in names:
        step, squares = trace.plan[f"{UPDATE}weight.{name}"], trace.steps[f"{UPDATE}squares.{name}"]
        cell = showing.forms.cell(squares.at((0,)), form=False)
        rows.append((name, words.axes_text(step.axes, step.shape), brief(cell)))
    columns = (Column(_("weight"), "address"), Column(_("shape")), Column("Σ grad²", "number"))
    found: list[Part] = [Grid("", columns, tuple(rows))]
    found += [
        showing.step(trace.steps[UPDATE + name])
        for name in ("norm", "clip")
        if UPDATE + name in trace.steps
    ]
    if large:
        text = _("The lines of a weight, such as {name}, are shown with")
        found.append(LeftOut(text.format(name=names[0]), f"--only 'update.*.{names[0]}'"))
    about = _("The length of all gradients together, as one long row of numbers.")
    clips = f"{UPDATE}clip" in trace.steps
    return Group("norm", _("Norm and clipping") if clips else _("Norm"), about, tuple(found))


def lines_of(training: Training, name: str) -> list[str]:
    """The addresses of one weight's lines, from its gradient to its new value."""
    steps = training.steps[-1].trace.steps
    return [
        address
        for address in steps
        if address.startswith(UPDATE)
        and address.split(".", 2)[2:] == [name]
        and not address.startswith(f"{UPDATE}squares.")
    ]


def saved(training: Training, model: Model, files: Iterable[Any]) -> Finding:
    """What was written, and how exact its weights are."""
    where = words.joined([str(file) for file in files])
    return Finding(_("saved in {files}").format(files=where), model.notes)
