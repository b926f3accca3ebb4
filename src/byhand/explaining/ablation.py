"""Ablation: a part of the model taken out, and the text worked out again without it.

A side-trip, the position table, the token table or a bias is taken out of the plan, and the other
steps are rewired.  The entries of a head or a neuron become 0.  The rest is worked out like every
plan, in any number system, and proven like every job.  `facts` and `inputs` say what follows from
it; nothing here judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from byhand.errors import AddressError, nearest
from byhand.evaluate import Admitted, Job
from byhand.language import _
from byhand.parameters import parameters
from byhand.plan import WEIGHT, Plan, Step
from byhand.spec import ModelSpec
from byhand.tracing import Trace
from byhand.worked import Worked

SILENT = ("word", "head", "neuron")  # parts whose entries become 0; the plan stays as it is


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the model that can be taken out.

    `index` is that of a head or a neuron, or a position; `name` is the weight name of a bias.
    """

    kind: str  # "token" "position" "word" "attn" "head" "mlp" "neuron" "bias"
    layer: int | None = None
    index: int | None = None
    name: str = ""

    @property
    def address(self) -> str:
        """The step (or weight) that the part writes, as `part_at` reads it."""
        match self.kind:
            case "token" | "position":
                return f"embed.{self.kind}"
            case "bias":
                return WEIGHT + self.name
            case "word":
                return f"embed.token[{self.index}]"
            case "head":
                return f"block.{self.layer}.attn.mixed[{self.index}]"
            case "neuron":
                return f"block.{self.layer}.mlp.act[:,{self.index}]"
            case _:
                return f"block.{self.layer}.{self.kind}.out"


# ----------------------------------------------------------------------- which parts there are


def side_trips(spec: ModelSpec) -> tuple[Part, ...]:
    """Each attention and each MLP as a whole, in spine order."""
    return tuple(
        Part(kind, layer) for layer, block in enumerate(spec.blocks) for kind, _norm in block.trips
    )


def heads(spec: ModelSpec) -> tuple[Part, ...]:
    """The heads of every attention that has several."""
    return tuple(
        Part("head", layer, head)
        for layer, block in enumerate(spec.blocks)
        if block.attention and block.attention.heads > 1
        for head in range(block.attention.heads)
    )


def usual_parts(spec: ModelSpec) -> tuple[Part, ...]:
    """The parts that are tried unless others are named: positions, side-trips, single heads."""
    places = () if spec.position == "none" else (Part("position"),)
    single = heads(spec)
    trips = []
    for trip in side_trips(spec):
        trips.append(trip)
        trips += [h for h in single if trip.kind == "attn" and h.layer == trip.layer]
    return (*places, *trips)


def part_at(spec: ModelSpec, address: str) -> Part:
    """The part at an address: block.0.mlp, block.0.attn.mixed[2], embed.position, weight.…"""
    for known in _every_part(spec, address):
        if address in (known.address, known.address.removesuffix(".out")):
            return known
    choices = [known.address for known in _every_part(spec, "")]
    raise AddressError(
        _("there is no part {name} to take out").format(name=repr(address)),
        hint=nearest(address, choices),
    )


def _every_part(spec: ModelSpec, address: str) -> Iterator[Part]:
    if spec.position != "none":  # else the stream would be empty
        yield Part("token")
        yield Part("position")
    yield from side_trips(spec)
    for layer, block in enumerate(spec.blocks):
        if block.attention:
            yield from (Part("head", layer, head) for head in range(block.attention.heads))
        neuron = re.fullmatch(rf"block\.{layer}\.mlp\.(?:act|gated)\[:,(\d+)\]", address)
        plain = block.mlp is not None and block.mlp.experts is None
        if plain and neuron and block.mlp and int(neuron[1]) < block.mlp.d_ff:
            yield Part("neuron", layer, int(neuron[1]))
    for parameter in parameters(spec):
        if parameter.kind == "bias":
            yield Part("bias", name=parameter.name)


# ----------------------------------------------------------------------- taking them out


@dataclass(frozen=True, repr=False)
class AblatedTrace(Trace):
    """A trace that remembers which heads and neurons are silent: its plan does not say so."""

    silent: tuple[Part, ...] = ()


@dataclass(frozen=True)
class AblatedJob(Job):
    """A job whose plan lacks some parts; `silent` are the words, heads and neurons that are 0.

    `known` holds values of steps before every part that is taken out.
    """

    silent: tuple[Part, ...] = ()
    known: Mapping[str, Worked] = field(default_factory=dict)

    def instead(self) -> dict[str, Any]:
        return {"given": self.known, "revise": self._silenced if self.silent else None}

    def traced(self, steps: Mapping[str, Worked]) -> Trace:
        made = super().traced(steps)
        return AblatedTrace(**{each.name: getattr(made, each.name) for each in fields(made)},
                            silent=self.silent)  # fmt: skip

    @cached_property
    def silence(self) -> dict[str, list[tuple[int, int]]]:
        """Address → (axis, index) pairs of the entries that are 0 there."""
        found: dict[str, list[tuple[int, int]]] = {}
        for part in self.silent:
            assert part.index is not None
            at = f"block.{part.layer}"
            if part.kind == "word":
                found.setdefault("embed.token", []).append((0, part.index))
            elif part.kind == "head":
                found.setdefault(f"{at}.attn.mixed", []).append((0, part.index))
            else:
                last = "gated" if f"{at}.mlp.gated" in self.plan.known else "act"
                found.setdefault(f"{at}.mlp.{last}", []).append((1, part.index))
        return found

    def _silenced(self, worked: Worked) -> Worked:
        places = self.silence.get(worked.address)
        if places is None or worked.missing is not None:
            return worked
        kept = np.ones(worked.step.shape)
        for axis, index in places:
            kept[(slice(None),) * axis + (index,)] = 0
        numbers = worked.numbers
        value = numbers.multiply(worked.value, numbers.admit(kept))
        return replace(worked, value=value)


def ablated(job: Job, parts: Sequence[Part]) -> AblatedJob:
    """The same job without these parts of the model."""
    plan = job.plan
    for part in parts:
        plan = without(plan, part)
    asked = tuple(dict.fromkeys(plan.known[one] for one in job.asked if one in plan.known))
    before = job.silent if isinstance(job, AblatedJob) else ()
    silent = (*before, *(part for part in parts if part.kind in SILENT))
    return AblatedJob(
        job.model,
        plan,
        job.numbers,
        job.text,
        job.tokens,
        job.target,
        asked,
        job.targets,
        job.source,
        job.segments,
        silent=silent,
    )


def job_of(trace: Trace, only: Sequence[str] = ()) -> Job:
    """The job that a trace was made of, or just the steps asked for and what they need."""
    asked = trace.plan.matching(only) if only else trace.asked
    plan = trace.plan.only(asked) if asked else trace.plan
    job = Job(trace.model, plan, trace.numbers, trace.text, trace.tokens, trace.target, asked,
              trace.targets, trace.source, trace.segments)  # fmt: skip
    if isinstance(trace, AblatedTrace):
        return replace(ablated(job, ()), silent=trace.silent)
    return job


def ablate(
    trace: Trace,
    *what: Part | str,
    only: Sequence[str] = (),
    weights: Admitted | None = None,
) -> Trace:
    """The text of a trace worked out again without some parts, in the same numbers.

    Parts may be named by their addresses; `only` asks for some steps.  Where the trace was proven,
    so is this one, as far as possible.  `weights` are the model's, if they were admitted before.

    >>> import byhand
    >>> from byhand.explaining.ablation import ablate
    >>> trace = byhand.trace("abc")
    >>> [trace.token(found.id) for found in trace.next]
    ['B', 'C', 'A']
    >>> [trace.token(found.id) for found in ablate(trace, "block.0.mlp").next]
    ['C', 'B', 'B']
    """
    parts = [one if isinstance(one, Part) else part_at(trace.model.spec, one) for one in what]
    job = ablated(job_of(trace, only), parts)
    attempt = replace(job, known=unchanged(trace, job)).work(weights=weights)
    if trace.proof is None or (
        job.asked == ("next",) and all(f.proven for f in attempt.next or ())
    ):
        return attempt
    from byhand.proving.digits import prove

    return prove(job, trace.proof.digits)


def unchanged(trace: Trace, job: AblatedJob) -> dict[str, Worked]:
    """The steps that do not depend on the parts taken out, as the trace has them."""
    same: dict[str, Worked] = {}
    for step in job.plan:
        reads = (read for read in step.reads if not read.startswith(WEIGHT))
        untouched = all(read in same or job.plan[read].op == "given" for read in reads)
        if untouched and step.op != "given" and step is trace.plan[step.address]:
            worked = trace.steps.get(step.address)
            if worked is not None and worked.missing is None and step.address not in job.silence:
                same[step.address] = worked
    return same


def without(plan: Plan, part: Part) -> Plan:
    """The plan without a part; heads and neurons stay in it, with entries of 0."""
    match part.kind:
        case "attn" | "mlp":
            at = f"block.{part.layer}.{part.kind}"
            return _bridged(plan, f"{at}.add", "x", gone=f"{at}.")
        case "position":
            return _bridged(plan, "stream.0", "x")
        case "token":
            return _bridged(plan, "stream.0", "y")
        case "bias":
            return _edited(plan, {s.address: _unbiased(s, part.address) for s in plan})
        case _:
            return plan


def _bridged(plan: Plan, add: str, role: str, gone: str = "") -> Plan:
    """The plan without a sum: its readers read one of its terms, and the other term is dropped."""
    if add not in plan.known:
        return plan  # not among the steps asked for
    step = plan[add]
    assert step.op == "add", step
    kept = step.inputs[role]
    ends = _ends(plan) - {step.address}
    ends = {end for end in ends if not (gone and end.startswith(gone))} | {kept}
    rewired = [_reading(other, step.address, kept) for other in plan if other is not step]
    aliases = {
        name: kept if to == step.address else to
        for name, to in {**plan.aliases, step.address: step.address}.items()
    }
    return Plan(plan.spec, plan.length, tuple(rewired), aliases).only(ends)


def _reading(step: Step, old: str, new: str) -> Step:
    if old not in step.reads:
        return step
    inputs = {role: new if read == old else read for role, read in step.inputs.items()}
    return replace(step, inputs=inputs)


def _unbiased(step: Step, bias: str) -> Step:
    if bias not in step.reads:
        return step
    inputs = {role: read for role, read in step.inputs.items() if read != bias}
    formula = step.formula.removesuffix(" + bias").removesuffix(" + b")
    return replace(step, inputs=inputs, formula=formula)


def _edited(plan: Plan, steps: dict[str, Step]) -> Plan:
    return Plan(plan.spec, plan.length, tuple(steps[step.address] for step in plan), plan.aliases)


def _ends(plan: Plan) -> set[str]:
    """The steps that no other step reads."""
    read = {address for step in plan for address in step.reads}
    return {step.address for step in plan} - read
