"""Training steps, worked out: losses, gradients, updates and new weights, step after step.

Each step is one plan: a forward pass over the texts, its backward pass, and the optimizer's update.
The new weights are values of the number system, and the next step reads them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from byhand import forward, new_weights
from byhand.backward import adjoint
from byhand.batch import Batch
from byhand.display import Shown, one_line
from byhand.evaluate import Admitted, Job, Progress, pencil_sized
from byhand.files.writing import save_with_tensors
from byhand.language import _
from byhand.missing_bits import Shortfall, shortfall
from byhand.model import Model
from byhand.numbers.base import Numbers, nearest_float
from byhand.numbers.enclosed.enclosure import Enclosing
from byhand.optimizer import BEFORE, UPDATE, Rule, update
from byhand.parameters import size_of
from byhand.plan import Plan
from byhand.proof import Proof
from byhand.proving.digits import ASK_EXACT, Exactly
from byhand.reading import beside
from byhand.tracing import Trace
from byhand.worked import Worked

MANY = 4_000_000  # weights times steps from which only the last step keeps all its numbers
KEPT = ("loss", "losses", "mean_loss", f"{UPDATE}norm", f"{UPDATE}clip")  # of the others


@dataclass(frozen=True)
class TrainingJob(Job):
    """A forward pass, with its backward pass and update or without, on given moments."""

    moments: Mapping[str, Worked] = field(default_factory=dict)

    def instead(self) -> dict[str, Any]:
        """The moments of the step before, in place of the given steps."""
        return {"given": self.moments}


@dataclass(frozen=True)
class TrainingStep(Shown):
    """One step: its rule (with the learning rate), and the trace from the text to new weights.

    >>> import byhand
    >>> (step,) = byhand.step("tiny", "a b", target="c").steps
    >>> step.rule.rate, step.loss, step.norm.places(4), step.clip
    (Fraction(1, 10), ln(1 + e + e^2) - 1, '1.7157', None)
    >>> step.trace["update.weight.block.0.mlp.norm.gain"][0]
    (11 + 10e + 10e^2)/(10(1 + e + e^2))
    """

    rule: Rule
    trace: Trace

    @property
    def loss(self) -> Any:
        """The loss before the step: the mean over the positions, or the last position's."""
        return loss_of(self.trace)

    @property
    def norm(self) -> Any:
        """The norm of all gradients together, before clipping."""
        return self.trace.number(f"{UPDATE}norm")

    @property
    def clip(self) -> Any:
        """What every gradient was multiplied by; None where there was no limit."""
        return self.trace.number(f"{UPDATE}clip") if f"{UPDATE}clip" in self.trace.steps else None

    def __repr__(self) -> str:
        return f"<TrainingStep {self.rule.step} ({self.rule.kind}): loss {_brief(self.loss)}>"


@dataclass(frozen=True)
class Training(Shown):
    """Some training steps of a model, and the pass after them.

    `after` is the forward pass with the new weights; `losses` are those before each step and after
    the last.  `new` are the new weights, `new_model()` the model that has them.  Of many steps of a
    large model, only the last one's trace holds every number.

    >>> import byhand
    >>> training = byhand.step("tiny", "a b", target="c")
    >>> training
    <Training of tiny: 1 step of sgd, loss 1.4076 → 1.1406>
    >>> training.steps[0].trace.grad["logits"][1].tolist()
    [e^2/(1 + e + e^2), 1/(1 + e + e^2), (-1 - e^2)/(1 + e + e^2)]
    >>> training.new_model().notes
    ('Every weight is exact.',)
    """

    model: Model
    batch: Batch
    steps: tuple[TrainingStep, ...]
    after: Trace

    @property
    def losses(self) -> tuple[Any, ...]:
        """The loss before each step, and the loss after the last."""
        return (*(step.loss for step in self.steps), loss_of(self.after))

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The trace of each step, and that of the pass after them."""
        return (*(step.trace for step in self.steps), self.after)

    @property
    def mean(self) -> bool:
        """Whether the loss is the mean over the positions, rather than the last position's."""
        return self.after.mean_loss is not None

    @cached_property
    def new(self) -> Mapping[str, Worked]:
        """The new weights by name."""
        last, start = self.steps[-1].trace, f"{UPDATE}weight."
        return {
            address.removeprefix(start): worked
            for address, worked in last.steps.items()
            if address.startswith(start)
        }

    def new_model(self) -> Model:
        """The model with its new weights; its notes say how exact they are.

        Numbers stay exact while they are short.  Longer ones have 17 digits, floats are floats.
        """
        text, target = self.batch.texts[0], self.steps[-1].trace.target
        tokens, limit = self.model.read(text), self.model.spec.context
        fits = limit is None or len(tokens) <= limit
        return replace(
            self.after.model,
            text=text if fits else self.model.text,
            target=(None if target is None else self.model.outputs.tokens[target])
            if fits
            else self.model.target,
            about=self.told,
            notes=tuple(new_weights.told(self.model, self.new)),
            source="",
            spec=replace(self.after.model.spec, family=""),
        )

    @property
    def told(self) -> str:
        """What was done, in a sentence."""
        settings = {"model": self.model.name, "optimizer": self.steps[0].rule.kind}
        if len(self.steps) == 1:
            return _("{model} after one training step ({optimizer}).").format(**settings)
        text = _("{model} after {count} training steps ({optimizer}).")
        return text.format(count=len(self.steps), **settings)

    def save(self, path: str | Path) -> None:
        """Writes the model with its new weights as a model file (docs/model-files.md).

        More than 2,000 floats go into a safetensors file beside it.
        """
        save_with_tensors(self.new_model(), path)

    def __repr__(self) -> str:
        steps = "1 step" if len(self.steps) == 1 else f"{len(self.steps)} steps"
        kind, name = self.steps[0].rule.kind, one_line(self.model.name)
        before, after = _brief(self.losses[0]), _brief(self.losses[-1])
        return f"<Training of {name}: {steps} of {kind}, loss {before} → {after}>"


def _brief(number: Any) -> str:
    """A number in a few digits, for a repr."""
    return f"{nearest_float(number):.5g}"


def loss_of(trace: Trace) -> Any:
    """The loss that the gradients are of: the mean one where the trace has it."""
    return trace.loss if trace.mean_loss is None else trace.mean_loss


@dataclass(frozen=True)
class Lesson:
    """What is to be learned: a model, the texts, and whether the last position alone counts."""

    model: Model
    batch: Batch
    last: bool = False

    @cached_property
    def passes(self) -> Plan:
        """The forward pass with its loss."""
        batch = self.batch
        return forward.plan(
            self.model.spec,
            len(batch.tokens),
            positions=batch.positions,
            mask=batch.mask,
            **beside(batch.source, batch.segments),
            target=self.last,
            losses=not self.last,
        )

    @cached_property
    def backward(self) -> Plan:
        """The forward pass and its backward pass."""
        return adjoint(self.passes)

    def plan(self, rule: Rule) -> Plan:
        """A whole training step."""
        return update(self.backward, rule)

    def job(self, plan: Plan, numbers: Numbers, moments: Mapping[str, Worked]) -> TrainingJob:
        """The job of a plan over these texts."""
        batch = self.batch
        return TrainingJob(
            self.model,
            plan,
            numbers,
            batch.text,
            batch.tokens,
            batch.targets[-1] if self.last else None,
            (),
            None if self.last else batch.targets,
            batch.source,
            batch.segments,
            moments=moments,
        )

    def learn(
        self, rules: Sequence[Rule], numbers: Numbers, *, progress: Progress | None = None
    ) -> Training:
        """The steps of these rules, one after another, in a number system."""
        admitted, model = Admitted(self.model.weights, numbers), self.model
        many = numbers.uniform is not None and size_of(model.spec) * len(rules) > MANY
        moments: dict[str, Worked] = {}
        steps: list[TrainingStep] = []
        for rule in rules:
            job = replace(self.job(self.plan(rule), numbers, moments), model=model)
            carried = _carried(rule, job.plan)
            keep = {*KEPT, *carried} if many and rule is not rules[-1] else None
            trace = job.work(weights=admitted, progress=progress, keep=keep)
            for address in carried:
                _known(trace.steps[address])
            start = f"{UPDATE}weight."
            new = {a.removeprefix(start): trace.steps[a] for a in carried if a.startswith(start)}
            admitted.values.update((name, worked.value) for name, worked in new.items())
            rest = (address for address in carried if not address.startswith(start))
            moments = {BEFORE + a.removeprefix(UPDATE): trace.steps[a] for a in rest}
            model = new_weights.with_new_weights(self.model, new)
            if keep is not None:
                trace = replace(trace, steps={a: w for a, w in trace.steps.items() if a in KEPT})
            steps.append(TrainingStep(rule, trace))
        job = replace(self.job(self.passes, numbers, {}), model=model)
        after = job.work(weights=admitted, progress=progress)
        return Training(self.model, self.batch, tuple(steps), after)

    def prove(
        self,
        rules: Sequence[Rule],
        numbers: Enclosing,
        digits: int,
        *,
        progress: Progress | None = None,
    ) -> Training:
        """The steps in enclosures, with more bits until losses and new weights have their digits.

        The traces' `proof` says what is proven and what is not.
        """
        bits, most = min(numbers.bits, numbers.limit), numbers.limit
        before: list[Shortfall] | None = None
        exactly = _Exactly(self, rules) if pencil_sized(self.model) else None
        while True:
            found = self.learn(rules, numbers.at(bits), progress=progress)
            traces = list(found.traces)
            short = [shortfall(trace, _to_prove(trace), digits) for trace in traces]
            zeros = bits >= ASK_EXACT and any(one.near_zero for one in short)
            if exactly and (zeros or bits >= most):
                traces = [
                    exactly.settle(*each) for each in enumerate(zip(traces, short, strict=True))
                ]
                short = [shortfall(trace, _to_prove(trace), digits) for trace in traces]
            if bits >= most or not any(one.count for one in short):
                break
            former: Sequence[Shortfall | None] = before or [None] * len(short)
            wanted = (
                one.next_bits(bits, last)
                for one, last in zip(short, former, strict=True)
                if one.count
            )
            before, bits = short, min(max(wanted), most)
        settled = exactly.told if exactly else [()] * len(traces)
        proven = [
            replace(trace, proof=Proof(digits, bits, tuple(one.reported(trace)), one.count, by))
            for trace, one, by in zip(traces, short, settled, strict=True)
        ]
        steps = tuple(
            replace(step, trace=trace) for step, trace in zip(found.steps, proven, strict=False)
        )
        return replace(found, steps=steps, after=proven[-1])


class _Exactly:
    """The same steps in exact numbers, worked out when first needed, to prove zeros."""

    def __init__(self, lesson: Lesson, rules: Sequence[Rule]) -> None:
        self.lesson, self.rules = lesson, rules
        self.settled: list[dict[str, None]] = [{} for _trace in (*rules, None)]

    @cached_property
    def traces(self) -> tuple[Trace, ...]:
        """The exact traces."""
        from byhand.numbers.exact import Exact

        return self.lesson.learn(self.rules, Exact()).traces

    @property
    def told(self) -> list[tuple[str, ...]]:
        """What was settled in each trace."""
        return [tuple(each) for each in self.settled]

    def settle(self, place: int, found: tuple[Trace, Shortfall]) -> Trace:
        """A trace with zeros that are proven zeros."""
        trace, short = found
        if not short.count:
            return trace
        return Exactly(lambda: self.traces[place], self.settled[place]).settle(trace, short)


def _carried(rule: Rule, plan: Plan) -> tuple[str, ...]:
    """The steps that the next training step reads: the new weights and moments."""
    starts = tuple(f"{UPDATE}{name}." for name in ("weight", *rule.moments))
    return tuple(step.address for step in plan if step.address.startswith(starts))


def _known(worked: Worked) -> Worked:
    """The step; where it has no value, the error that says why."""
    if worked.missing is not None:
        raise worked.missing.error(worked.address)
    return worked


def _to_prove(trace: Trace) -> tuple[str, ...]:
    """The losses, the norm and the new weights."""
    ends = ("loss", "losses", "mean_loss", f"{UPDATE}norm")
    return tuple(
        address
        for address in trace.steps
        if address in ends or address.startswith(f"{UPDATE}weight.")
    )
