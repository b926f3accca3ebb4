"""The evaluation of a plan: every step in a number system, one after the other.

model + text + numbers → Job (a plan, tokens, what is asked for) → Trace
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from byhand import forward, stream_passes
from byhand.backward import adjoint
from byhand.batch import at_blanks, read_batch
from byhand.errors import ByhandError, ShapeError, Undecided
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import ABSENT, Numbers, Unknown
from byhand.parameters import size_of
from byhand.passes import no_key
from byhand.plan import GRAD, LOGPROBS, SCORES, WEIGHT, Plan, Step
from byhand.reading import Source, read
from byhand.tracing import Trace
from byhand.weights import Tensor, Weights
from byhand.worked import Missing, Worked

PENCIL_SIZED = 2_000  # parameters up to which exact numbers are the usual ones
CORNER = 64  # rows and columns of a table of scores that are admitted at least

Progress = Callable[[Step], None]
Sink = Callable[[Worked], None]
Revise = Callable[[Worked], Worked]


@dataclass(frozen=True)
class Job:
    """A text that is to be worked out: everything is known but the numbers."""

    model: Model
    plan: Plan
    numbers: Numbers
    text: str
    tokens: tuple[int, ...]
    target: int | None = None
    asked: tuple[str, ...] = ()  # the steps asked for; empty: all of the plan
    targets: tuple[int, ...] | None = None  # the next id after each position, or UNCOUNTED
    source: Source | None = None  # what the encoder reads, where there is one
    segments: tuple[int, ...] | None = None  # the kind of each token, where one was given

    def work(
        self,
        *,
        progress: Progress | None = None,
        keep: Collection[str] | None = None,
        sink: Sink | None = None,
        weights: Admitted | None = None,
        revise: Revise | None = None,
    ) -> Trace:
        """The trace.  `sink` sees each step as it is worked out; steps that are not in `keep` are
        dropped after their last reader.  `weights` are the model's, if they were admitted before.
        `revise` may replace the value of a step, before the job's own does.

        Unless `keep` says otherwise, rounded and enclosed numbers are kept where they were asked
        for.  Exact and named ones are all kept: a letter may stand for a number of another step.
        """
        if keep is None and self.asked and self.numbers.uniform:
            keep = self.asked
        steps = work_out(
            self.plan,
            self.model.weights if weights is None else weights,
            self.tokens,
            self.numbers,
            target=self.target,
            targets=self.targets,
            source=None if self.source is None else self.source.tokens,
            progress=progress,
            keep=keep,
            sink=sink,
            **self._revised(revise),
        )
        return self.traced(steps)

    def _revised(self, first: Revise | None) -> dict[str, Any]:
        """The arguments of `instead`, with something to revise steps before them."""
        found = self.instead()
        then = found.get("revise")
        if first is None:
            return found
        if then is None:
            return {**found, "revise": first}
        return {**found, "revise": lambda worked: then(first(worked))}

    def instead(self) -> dict[str, Any]:
        """Arguments of `work_out` that replace steps (`given`, `revise`): none by default."""
        return {}

    def traced(self, steps: Mapping[str, Worked]) -> Trace:
        """The worked steps as a trace of this job."""
        return Trace(
            self.model,
            self.plan,
            self.numbers,
            self.text,
            self.tokens,
            steps,
            self.target,
            self.asked,
            targets=self.targets,
            source=self.source,
            segments=self.segments,
        )


def prepare(
    model: Model,
    text: str | None = None,
    numbers: Numbers | None = None,
    *,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    target: str | None = None,
    losses: bool = False,
    logprobs: bool = False,
    backward: bool = False,
    only: Iterable[str] = (),
    at: Iterable[str] = (),
    head_outputs: bool = False,
) -> Job:
    """The job of one text: all steps, or just the steps asked for and what they need.

    Without a text, the model's own is taken; without numbers, exact ones.  The `source` is what an
    encoder reads, `segments` the kind of each token.  A target asks for the loss.  `losses` asks
    for the losses at all positions, against the text shifted by one, and for their mean; `logprobs`
    for the logarithms of the probabilities of the same tokens.  `backward` asks for the gradients
    of the mean loss, if there is one, else of the loss; without a target it asks for losses too.
    `only` asks for steps, `at` for steps together with what they read.  Who asks for `grad.…` or
    `losses` by name has asked for them.
    """
    only, at = tuple(only), tuple(at)
    backward = backward or any(name.startswith(GRAD) for name in (*only, *at))
    losses = losses or not {"losses", "mean_loss", "targets"}.isdisjoint((*only, *at))
    found = read(model, text, source=source, segments=segments, target=target)
    goal = None if found.target is None else model.outputs.id(found.target)
    losses = losses or (backward and goal is None)
    logprobs = logprobs or not {*LOGPROBS}.isdisjoint((*only, *at))
    wanted = losses or logprobs
    targets = read_batch(model, (found.text,), target=goal).targets if wanted else None
    if model.in_place and goal is not None:  # the loss is that of the words at the blanks
        targets = targets or at_blanks(model, found.tokens, goal)
        goal, losses = None, True
    plan = forward.plan(
        model.spec,
        len(found.tokens),
        **found.beside,
        target=goal is not None,
        losses=losses,
        logprobs=logprobs,
        head_outputs=head_outputs,
    )
    if backward:
        plan = adjoint(plan)
    asked = plan.matching(only)
    for step in map(plan.__getitem__, at):
        reads = (read for read in step.reads if not read.startswith(WEIGHT))
        asked = (*asked, step.address, *reads)
    if asked:
        plan = plan.only(asked)
    if numbers is None:
        from byhand.numbers.exact import Exact

        numbers = Exact()
    return Job(
        model, plan, numbers, found.text, found.tokens, goal, tuple(dict.fromkeys(asked)), targets,
        found.source, found.segments,
    )  # fmt: skip


def trace(
    model: Model,
    text: str | None = None,
    numbers: Numbers | None = None,
    *,
    progress: Progress | None = None,
    **asked: Any,
) -> Trace:
    """A text worked out: `prepare` and `Job.work` in one call."""
    return prepare(model, text, numbers, **asked).work(progress=progress)


def pencil_sized(model: Model) -> bool:
    """Whether exact numbers are the usual ones: a model file of up to 2,000 parameters.

    Its buffers may be large: only the part of a table of scores that a text reaches is used.
    """
    return size_of(model.spec) <= PENCIL_SIZED and model.family is None


def usual_format(model: Model) -> str:
    """The usual float format: float32, unless a weight is finer than that."""
    finer = model.weights.finer_than_float32
    if model.family is None:  # a model file, whose weights may be any numbers
        finer = finer or not all(map(_holds, model.weights.values()))
    return "float64" if finer else "float32"


def _holds(tensor: Tensor) -> bool:
    """Whether the entries are floats, or float32 holds all known ones exactly."""
    if tensor.floats:
        return True
    known = (x for x in tensor.data.flat if x is not ABSENT and not isinstance(x, Unknown))
    return all(isinstance(x, Fraction) and np.float32(x) == x for x in known)


def work_out(
    plan: Plan,
    weights: Weights | Admitted,
    tokens: Sequence[int],
    numbers: Numbers,
    *,
    target: int | None = None,
    targets: Sequence[int] | None = None,
    source: Sequence[int] | None = None,
    given: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    keep: Collection[str] | None = None,
    sink: Sink | None = None,
    revise: Revise | None = None,
) -> dict[str, Worked]:
    """The plan's steps with their values, in order.  Steps that cannot be known are marked missing.

    `tokens` are the ids of the text, `source` those of the text that an encoder reads.
    `given` holds values, by address, that replace those of steps (a Worked one is taken as it is).
    With `plan.only([address], given=…)` a single step is worked out again from given inputs.  With
    `keep`, other values are dropped after their last reader; `sink` sees each step before that.
    Weights are always dropped then, unless they come admitted.  `revise` may replace the value of a
    step, once it is worked out or given; later steps read the new value.
    """
    ids = {"tokens": tuple(tokens), "source": source, "target": target, "targets": targets}
    if given is None and revise is None and stream_passes.fits(numbers):
        whole = weights if isinstance(weights, Admitted) else Admitted(weights, numbers)
        run = stream_passes.Run(partial(work_out, given={}), whole, numbers, progress, ids)
        return run.along(plan, keep, sink, lasting=whole is weights)
    instead = {plan[address].address: value for address, value in (given or {}).items()}
    admitted = weights if isinstance(weights, Admitted) else Admitted(weights, numbers)
    done: dict[str, Worked] = {}
    check_reach(plan, admitted.weights)
    last_reader = {read: step.address for step in plan for read in step.reads}
    coming = iter([] if admitted is weights else _as_read(plan))
    for step in plan:
        for _weight in (name for name in step.reads if name.startswith(WEIGHT)):
            if (then := next(coming, None)) is not None:
                admitted.weights[then].expect()
        if progress:
            progress(step)
        if step.address in instead:
            worked = _given(step, instead[step.address], numbers)
        elif step.op == "given":
            worked = Worked(step, ids[step.address], numbers)
        else:
            worked = _work_out_step(step, done, admitted, numbers)
        done[step.address] = worked = revise(worked) if revise else worked
        if sink:
            sink(worked)
        over = [read for read in (*step.reads, step.address)
                if last_reader.get(read, step.address) == step.address]  # fmt: skip
        for address in over:
            if address.startswith(WEIGHT):
                if admitted is not weights:
                    admitted.drop(address.removeprefix(WEIGHT))
            elif keep is not None and address not in keep:
                done.pop(address, None)
    return done


def _as_read(plan: Plan) -> Iterator[str]:
    """The weights that each read should have read ahead: those of the read after it."""
    reads = [read for step in plan for read in step.reads if read.startswith(WEIGHT)]
    yield from (read.removeprefix(WEIGHT) for read in reads[1:])


def _work_out_step(
    step: Step, done: dict[str, Worked], admitted: Admitted, numbers: Numbers
) -> Worked:
    arguments: dict[str, Any] = dict(step.attributes)
    for role, address in step.inputs.items():
        if address.startswith(WEIGHT):
            name = address.removeprefix(WEIGHT)
            if admitted.unknown(name):
                return Worked(step, None, numbers, missing=Missing("unknown", address))
            table = role == "table" and step.op in SCORES
            arguments[role] = admitted.table(name, _reach(step)) if table else admitted[name]
        elif (cause := done[address].missing) is not None:
            return Worked(step, None, numbers, missing=cause)
        else:
            arguments[role] = done[address].value
    numbers.notes.clear()
    try:
        value = getattr(numbers, step.op)(**arguments)
    except Undecided as error:
        missing = Missing("undecided", step.address, error.message)
        return Worked(step, None, numbers, missing=missing)
    except ByhandError as error:
        error.where = error.where or step.address
        raise
    return Worked(step, value, numbers, tuple(numbers.notes))


def _reach(step: Step) -> int:
    """How many rows and columns of a table of scores the positions of a step reach."""
    settings = step.attributes
    return 1 + max(int(place) for place in (*settings["queries"], *settings["keys"]))


def check_reach(plan: Plan, weights: Weights) -> None:
    """Refuses a table of scores that, together with the mask, leaves a query no key to share out.

    Scores that no softmax reads may all be masked, and those of attention that may see nothing.
    """
    shared_out = {read for step in plan if step.op == "softmax" for read in step.reads}
    for step in plan:
        if step.address in shared_out and not _may_see_nothing(plan, step):
            _check_reach(step, weights)


def _may_see_nothing(plan: Plan, step: Step) -> bool:
    """Whether the model says that a query without a key mixes nothing."""
    block = re.match(r"(encoder\.)?block\.(\d+)\.attn\.", step.address)
    if block is None:
        return False
    side = plan.spec.encoder if block[1] else plan.spec
    attention = side.blocks[int(block[2])].attention if side else None
    return attention is not None and attention.nothing


def _check_reach(step: Step, weights: Weights) -> None:
    if step.op not in SCORES or not step.inputs.get("table", "").startswith(WEIGHT):
        return  # an edited plan may compute its table: softmax checks that one
    table = weights[step.inputs["table"].removeprefix(WEIGHT)].data
    settings = step.attributes
    for head in range(step.shape[0]):
        for query, row in enumerate(settings["mask"]):
            place = settings["queries"][query]
            seen = (table[head, place, key] for key, see in zip(settings["keys"], row, strict=True)
                    if see)  # fmt: skip
            if all(entry is ABSENT for entry in seen):
                error = no_key(int(place))
                error.where = f"{step.address}[{head},{query}]"
                raise error


def _given(step: Step, value: Any, numbers: Numbers) -> Worked:
    if isinstance(value, Worked):
        return Worked(step, value.value, numbers, missing=value.missing)
    data = np.asarray(value)
    if data.shape != step.shape:
        raise ShapeError(
            _("the given value has another shape than its step"),
            where=step.address,
            expected=" × ".join(map(str, step.shape)),
            found=" × ".join(map(str, data.shape)),
        )
    return Worked(step, numbers.admit(data), numbers)


class Admitted:
    """The weights as values of one number system, each admitted once."""

    def __init__(self, weights: Weights, numbers: Numbers) -> None:
        self.weights = weights
        self.numbers = numbers
        self.values: dict[str, Any] = {}
        self._tables: dict[str, tuple[int, Any]] = {}  # name → (rows admitted, values)

    def unknown(self, name: str) -> bool:
        """Whether some entry of a tensor is Unknown."""
        tensor = self.weights[name]
        return not tensor.floats and any(isinstance(x, Unknown) for x in tensor.data.flat)

    def __getitem__(self, name: str) -> Any:
        if name not in self.values:
            tensor = self.weights[name]
            self.values[name] = self._admit(name, tensor.data, tensor)
        return self.values[name]

    def table(self, name: str, reach: int) -> Any:
        """A table of scores, at least its first `reach` rows and columns: the rest of a large one
        is not read.  The number of rows is a power of two, so that a growing text rarely admits it
        again."""
        admitted, value = self._tables.get(name, (0, None))
        if admitted < reach:
            data = self.weights[name].data
            corner = min(max(1 << (reach - 1).bit_length(), CORNER), data.shape[-1])
            value = self._admit(name, data[:, :corner, :corner])
            self._tables[name] = corner, value
        return value

    def _admit(self, name: str, data: Any, tensor: Tensor | None = None) -> Any:
        turns = name.endswith(".frequencies")
        admit = self.numbers.admit_frequencies if turns else self.numbers.admit
        try:
            if tensor is not None and tensor.stored is not None:
                return self.numbers.admit_weight(data, tensor.stored, tensor.addends)
            return admit(data)
        except ByhandError as error:
            error.where = error.where or WEIGHT + name
            raise

    def drop(self, name: str) -> None:
        """Forgets the admitted values of a weight, and the memory its file takes."""
        self.values.pop(name, None)
        self._tables.pop(name, None)
        self.weights[name].release()
