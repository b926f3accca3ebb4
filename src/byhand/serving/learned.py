"""The model of a State after its lessons: each step goes on from the one before, kept for a while.

All lessons are learned in float64: exact numbers would grow with every step.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from byhand import learning
from byhand.backward import adjoint
from byhand.batch import read_batch
from byhand.editions import TOY_PARAMETERS
from byhand.errors import InputError
from byhand.evaluate import Progress
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import Unknown
from byhand.numbers.floats import Floats
from byhand.optimizer import BEFORE, UPDATE, update
from byhand.parameters import learned, size_of
from byhand.plan import WEIGHT
from byhand.serving.cache import Cache
from byhand.serving.lessons import Lesson, Pairs
from byhand.tracing import Trace
from byhand.weights import Tensor, Weights
from byhand.worked import Worked

MOST_KEPT = 4_000_000  # numbers of all kept steps

Edit = Callable[[Model, Pairs], Model]


@dataclass(frozen=True)
class Pupil:
    """A model after some steps: its weights, the optimizer's moments, and the losses so far.

    `losses` are those before each step; `after` is the one after the last.
    """

    model: Model
    optimizer: str = ""
    steps: int = 0  # with this optimizer, without a break
    moments: Mapping[str, Worked] = field(default_factory=dict)
    losses: tuple[float, ...] = ()
    last: Lesson | None = None

    @cached_property
    def after(self) -> float | None:
        """The loss after the last step, on the text that it learned from."""
        if self.last is None:
            return None
        return loss_of(self.model, self.last.text, self.last.target)


_KEPT: Cache[Pupil] = Cache(MOST_KEPT, lambda pupil: 3 * size_of(pupil.model.spec))


def taught(
    start: Model,
    lessons: tuple[Lesson, ...],
    of: Hashable,
    edit: Edit,
    progress: Progress | None = None,
) -> Pupil:
    """The model after its lessons.

    `of` says which model it starts from.  `edit` sets entries that were edited between lessons.
    """
    missing: list[tuple[Lesson, ...]] = []
    found = None
    while lessons and (found := _KEPT.get((of, lessons))) is None:
        missing.append(lessons)
        lessons = _without_last_step(lessons)
    pupil = found or Pupil(start)
    for each in reversed(missing):
        lesson = each[-1]
        if lesson.steps == 1 and lesson.weights:
            pupil = replace(pupil, model=edit(pupil.model, lesson.weights))
        pupil = _step(pupil, lesson, progress)
        _KEPT.put((of, each), pupil)
    return pupil


def _without_last_step(lessons: tuple[Lesson, ...]) -> tuple[Lesson, ...]:
    *before, last = lessons
    return (*before, replace(last, steps=last.steps - 1)) if last.steps > 1 else tuple(before)


def _step(pupil: Pupil, lesson: Lesson, progress: Progress | None) -> Pupil:
    """One more step.  Moments go on until another optimizer is chosen."""
    goes_on = pupil.optimizer == lesson.optimizer
    rule = lesson.rule(pupil.steps + 1 if goes_on else 1)
    moments = pupil.moments if goes_on else {}
    asked = lesson_on(pupil.model, lesson.text, lesson.target)
    job = asked.job(update(adjoint(asked.passes), rule), Floats("float64"), moments)
    trace = job.work(progress=progress)
    return Pupil(
        _with_new_weights(pupil.model, trace),
        lesson.optimizer,
        rule.step,
        {
            f"{BEFORE}{moment}.{p.name}": trace.steps[f"{UPDATE}{moment}.{p.name}"]
            for p in learned(pupil.model.spec)
            for moment in rule.moments
        },
        (*pupil.losses, float(learning.loss_of(trace))),
        lesson,
    )


def _with_new_weights(model: Model, trace: Trace) -> Model:
    tensors = dict(model.weights)
    for parameter in learned(model.spec):
        address = f"{UPDATE}{WEIGHT}{parameter.name}"
        new = np.array(trace.steps[address].array, np.float64)
        if not np.isfinite(new).all():
            raise InputError(
                _("a weight has grown beyond every number of float64"),
                where=address,
                hint=_("take a smaller learning rate"),
            )
        tensors[parameter.name] = Tensor(parameter.name, new)
    return replace(model, weights=Weights(tensors))


def lesson_on(model: Model, text: str, target: str | None) -> learning.Lesson:
    """What is to be learned from a text; an InputError where this model cannot learn here."""
    _check(model)
    goal = None if target is None else model.outputs.id(target)
    batch = read_batch(model, (text,), target=goal)
    return learning.Lesson(model, batch, last=goal is not None)


def loss_of(model: Model, text: str, target: str | None) -> float:
    """The loss that a lesson on this text would lower."""
    asked = lesson_on(model, text, target)
    return float(learning.loss_of(asked.job(asked.passes, Floats("float64"), {}).work()))


def _check(model: Model) -> None:
    """Refuses a model whose weights are too many, tied by reference, or unknown."""
    size = size_of(model.spec)
    if size > TOY_PARAMETERS:
        raise InputError(
            _("this model is too large to learn here"),
            expected=_("at most {count} numbers").format(count=f"{TOY_PARAMETERS:,}"),
            found=f"{size:,}",
        )
    for name, tensor in model.weights.items():
        if tensor.same_as is not None:
            raise InputError(
                _("weights that are the same would be learned apart"),
                where=WEIGHT + name,
                expected=_("each weight by itself"),
                found=_("{name} is the same as {other}").format(name=name, other=tensor.same_as),
            )
        if not tensor.floats and any(isinstance(x, Unknown) for x in tensor.data.flat):
            raise InputError(
                _("nothing can be learned from unknown weights"),
                where=WEIGHT + name,
                expected=_("weights that are known"),
                found=_("{name} is unknown").format(name=name),
            )
