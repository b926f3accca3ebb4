"""How the model was trained: the losses, the gradients, the rates and samples of its run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from byhand.document import words
from byhand.document.book import Page, Passage
from byhand.document.compose.book.edition import Edition
from byhand.document.numerals import localised
from byhand.document.parts import Column, Curve, CurveLine, Facts, Grid
from byhand.language import _, amount, later

if TYPE_CHECKING:
    from byhand.models.records import TrainingRecord

SLUG = "training"
WIDE_APART = 100  # the ratio of the largest loss to the smallest from which ratios are drawn
MOST_SPANS = 6  # of steps whose gradients were clipped


def page(edition: Edition, record: TrainingRecord) -> Page:
    """The page on the run that made the model."""
    return Page(
        SLUG,
        _("How it was trained"),
        _("One step changes little. Here is the run of many steps that made this model."),
        (
            _run(edition, record),
            _losses(record),
            _norms(record),
            _rates(record),
            _samples(edition, record),
        ),
    )


def _points(numbers: Sequence[float]) -> tuple[tuple[float, float], ...]:
    return tuple((float(step), number) for step, number in enumerate(numbers, 1))


def _short(number: float) -> str:
    return localised(f"{number:.4g}")


# ------------------------------------------------------------------ the run


def _run(edition: Edition, record: TrainingRecord) -> Passage:
    name = edition.trace.model.name
    return Passage(
        f"{SLUG}-run",
        _("The run"),
        (
            _("`byhand train {name}` made this model from random weights.").format(name=name),
            _(
                "The numbers here were recorded when the same run was made again. The last bits of "
                "a training depend on the processor, and they grow from step to step. So the "
                "weights of the two runs differ by up to {apart}."
            ).format(apart=_short(record.apart)),
        ),
        show=(Facts(tuple(_facts(record))),),
    )


def _facts(record: TrainingRecord) -> Iterator[tuple[str, str]]:
    run = record.settings
    yield _("data"), str(run["data"])
    yield _("steps"), words.whole(run["steps"])
    yield _("texts in a step"), words.whole(run["batch"])
    yield _("tokens predicted"), words.whole(record.tokens)
    yield (
        _("optimizer"),
        _("AdamW, betas {first} and {second}, weight decay {decay}").format(
            first=_short(run["betas"][0]),
            second=_short(run["betas"][1]),
            decay=_short(run["decay"]),
        ),
    )
    yield _("learning rate"), _short(run["rate"])
    yield _("warm-up"), amount(run["warmup"], later("1 step"), later("{count} steps"))
    yield _("clipped at norm"), _short(run["clip"])
    yield _("weights kept"), _("those after step {step}").format(step=words.whole(record.best))


# ------------------------------------------------------------------ curves


def _losses(record: TrainingRecord) -> Passage:
    first, last = record.losses[0], record.held_out[-1][1]
    sizes = [*record.losses, *(loss for _step, loss in record.held_out)]
    levels = {"uniform": _("a blind guess"), "n-gram": _("an n-gram model")}
    lines = [
        CurveLine(_("on the texts of the step"), _points(record.losses)),
        CurveLine(
            _("on texts not learned from"),
            tuple((float(step), loss) for step, loss in record.held_out),
            "marks",
        ),
        *(CurveLine(levels[name], ((0.0, loss),), "level") for name, loss in record.levels.items()),
    ]
    title = _("Loss at each step")
    text = _("The loss falls from {first} to {last}, on texts that were not learned from.")
    about = text.format(first=_short(first), last=_short(last))
    wide = max(sizes) > WIDE_APART * min(sizes)
    sentences = [
        about,
        _("Knowing nothing costs {loss}, the logarithm of the number of words.").format(
            loss=_short(record.levels["uniform"])
        ),
    ]
    if wide:
        sentences.append(_("The scale goes by ratios: each line is a tenth of the one above it."))
    return Passage(
        f"{SLUG}-losses",
        _("The loss falls"),
        tuple(sentences),
        show=(Curve(title, about, tuple(lines), _("step"), wide),),
    )


def _norms(record: TrainingRecord) -> Passage:
    steps, limit = record.clipped, record.settings["clip"]
    longest = max(record.norms)
    told = _("The longest gradient has the length {longest}, at step {step}.").format(
        longest=_short(longest), step=words.whole(record.norms.index(longest) + 1)
    )
    if not steps:
        clipped = _("None is longer than {limit}, so none was clipped.").format(limit=_short(limit))
    else:
        clipped = _(
            "One that is longer than {limit} is clipped: all of it is made smaller by one factor, "
            "so that its length is {limit}. That happened at {count} of {all} steps: {steps}."
        ).format(
            limit=_short(limit),
            count=words.whole(len(steps)),
            all=words.whole(len(record.norms)),
            steps=words.some_of(list(_spans(steps)), MOST_SPANS),
        )
    marked = tuple((float(step), record.norms[step - 1]) for step in steps)
    lines = [
        CurveLine(_("length of the gradient"), _points(record.norms)),
        CurveLine(_("clipped above {limit}").format(limit=_short(limit)), ((0.0, limit),), "level"),
    ]
    if marked:
        lines.insert(1, CurveLine(_("clipped"), marked, "marks"))
    wide = longest > WIDE_APART * min(record.norms)
    return Passage(
        f"{SLUG}-norms",
        _("How long the gradients are"),
        (told, clipped),
        show=(Curve(_("Length of the gradient"), told, tuple(lines), _("step"), wide),),
    )


def _spans(steps: Sequence[int]) -> Iterator[str]:
    """The steps one by one, those that follow each other together: 1 to 47, 52."""
    for _gap, group in groupby(enumerate(steps), key=lambda pair: pair[1] - pair[0]):
        run = [step for _place, step in group]
        first, last = words.whole(run[0]), words.whole(run[-1])
        yield first if len(run) == 1 else _("{first} to {last}").format(first=first, last=last)


def _rates(record: TrainingRecord) -> Passage:
    run = record.settings
    text = _(
        "The learning rate rises for {warmup} steps to {rate}, then falls along half a cosine to "
        "{end}."
    ).format(
        warmup=words.whole(run["warmup"]), rate=_short(run["rate"]), end=_short(record.rates[-1])
    )
    line = CurveLine(_("learning rate"), _points(record.rates))
    return Passage(
        f"{SLUG}-rates",
        _("The learning rate"),
        (
            text,
            _(
                "The first steps are small, since the running means of AdamW know little yet. The "
                "last ones are small so that the weights settle."
            ),
        ),
        show=(Curve(_("Learning rate"), text, (line,), _("step")),),
    )


# ------------------------------------------------------------------ samples


def _samples(edition: Edition, record: TrainingRecord) -> Passage:
    model = edition.trace.model
    target = words.token_label(model.target or "")
    columns = (
        Column(_("after step"), "number"),
        Column(_("it says")),
        Column(_("probability of {target}").format(target=target), "number"),
    )
    rows = tuple(
        (
            words.whole(sample.step),
            " ".join(map(words.token_label, sample.said)),
            f"{sample.share:.4g}",
        )
        for sample in record.samples
    )
    return Passage(
        f"{SLUG}-samples",
        _("What it said along the way"),
        (
            _(
                "Here is how the model went on after `{prompt}`, the likeliest token each time."
            ).format(prompt=record.settings["prompt"]),
            _("The last column is the probability of `{target}` after `{text}`.").format(
                target=target, text=words.printable(model.text or "")
            ),
        ),
        show=(Grid("", columns, rows),),
    )
