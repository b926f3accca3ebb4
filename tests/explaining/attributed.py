"""What the tests of attribution share: traces of cases in any numbers, and a source taken out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from byhand.evaluate import work_out
from byhand.explaining.attribution import Term
from byhand.explaining.path import head_out
from byhand.explaining.sources import Source, spine
from byhand.model import Model
from byhand.numbers.base import Numbers
from byhand.plan import WEIGHT
from byhand.tokens import Ids
from byhand.tracing import Trace
from byhand.worked import Worked
from oracles.architectures import Case

SCALES = ("std", "rms")


def worked(case: Case, numbers: Numbers, **changed: Any) -> Trace:
    """The trace of a case; `changed` are weights in the place of its own."""
    model = Model(case.spec, changed.get("weights", case.weights), Ids(case.spec.vocab))
    plan = case.plan()
    steps = work_out(plan, model.weights, case.tokens, numbers, target=case.target)
    return Trace(model, plan, numbers, "", case.tokens, steps, case.target)


def logits_without(trace: Trace, source: Source) -> Any:
    """The logits where one source is taken out of the stream and everything else stays.

    Whatever else enters the stream is given as it was, and so is the scale of every norm.
    """
    plan, numbers, steps = trace.plan, trace.numbers, trace.steps
    entering = {stage.step.address for stage in spine(plan, "logits") if stage.enters}
    given = {a: steps[a] for a in entering if steps[a].step.op != "given"}
    given |= {a: w for a, w in steps.items() if a.rpartition(".")[2] in SCALES}

    def revise(worked: Worked) -> Worked:
        part = _written(trace, source, worked)
        if part is None:
            return worked
        minus = numbers.admit(np.full(part.shape[-1], -1.0))
        return replace(worked, value=numbers.add(worked.value, numbers.affine(part, gain=minus)))

    rest = plan.only(["logits"], given=given)
    given = {address: value for address, value in given.items() if address in rest.known}
    again = work_out(rest, trace.model.weights, trace.tokens, numbers, given=given, revise=revise)
    return again["logits"].value


def _written(trace: Trace, source: Source, worked: Worked) -> Any:
    """What a source writes into the value of a step; None into all but one step."""
    numbers, step = trace.numbers, worked.step
    if source.kind in ("bias", "norm"):
        if step.inputs.get("bias") != source.address:
            return None
        bias = trace.model.weights[source.address.removeprefix(WEIGHT)].data
        return numbers.embed(numbers.admit(bias[None, :]), (0,) * step.shape[0])
    if source.kind == "head":
        own = step.op in ("linear", "merge_heads") and head_out(step) == source.address
        return trace.steps[source.address].value[source.index[0]] if own else None
    if step.address != source.address:
        return None
    if source.kind == "mlp" and "bias" in step.inputs:
        bias = trace.model.weights[step.inputs["bias"].removeprefix(WEIGHT)].data
        minus = numbers.affine(
            numbers.embed(numbers.admit(bias[None, :]), (0,) * step.shape[0]),
            gain=numbers.admit(np.full(step.shape[-1], -1.0)),
        )
        return numbers.add(worked.value, minus)
    return worked.value


def difference(numbers: Numbers, x: Any, y: Any) -> Any:
    """x - y, entry by entry, as they are read on this machine."""
    minus = numbers.admit(np.full(y.shape[-1], -1.0))
    return numbers.entries(numbers.add(x, numbers.affine(y, gain=minus)))


def found(terms: tuple[Term, ...], kind: str) -> list[Term]:
    return [term for term in terms if term.source.kind == kind]
