"""A trace as data: the JSON document of `byhand trace --json`, every number with its decimals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

from byhand.address import write_index
from byhand.document.compose.forms import floats
from byhand.document.media.json.records import (
    Records,
    enclosure_data,
    float_data,
    missing,
    picked,
    write_document,
)
from byhand.numbers.adjoints import UNCOUNTED
from byhand.plan import Plan, Step
from byhand.tracing import Trace
from byhand.worked import Worked


def write_json(trace: Trace, to: TextIO, only: Iterable[str] = (), names: str = "byhand") -> None:
    """Writes the document, one line for each step, with names in some style."""
    document = document_of(trace, only)
    document["steps"] = in_style(document["steps"], trace.plan, names)
    write_document(document, to)


def write_plan_json(
    plan: Plan, to: TextIO, only: Iterable[str] = (), names: str = "byhand"
) -> None:
    """Writes a plan without values."""
    wanted = tuple(only)
    shown = set(plan.matching(wanted)) if wanted else {step.address for step in plan}
    steps = in_style([step_record(s) for s in plan if s.address in shown], plan, names)
    write_document({"model": plan.spec.name, "length": plan.length, "steps": steps}, to)


def document_of(trace: Trace, only: Iterable[str] = ()) -> dict[str, Any]:
    """The document as Python data."""
    data = TraceData(trace)
    wanted = tuple(only)
    shown = set(trace.plan.matching(wanted)) if wanted else set(trace.steps)
    steps = [data.step(worked) for worked in trace.values() if worked.address in shown]
    next, loss, losses = data.next(), data.loss(), data.losses()
    return {
        "model": trace.model.name,
        "numbers": trace.numbers.name,
        **proof_data(trace),
        "tokens": data.tokens(),
        **data.beside(),
        "letters": data.letters(),
        "steps": steps,
        "next": next,
        "loss": loss,
        **losses,
        **data.logprobs(),
    }


def proof_data(trace: Trace) -> dict[str, Any]:
    """The digits asked for, the precision needed, and what was not proven."""
    proof = trace.proof
    if proof is None:
        return {}
    return {
        "digits": proof.digits,
        "bits": proof.bits,
        "undecided": {
            "count": proof.count,
            "first": [
                {
                    "address": one.address,
                    "asked": one.asked,
                    "enclosure": enclosure_data(one.enclosure, proof.digits)[0],
                    "candidates": list(one.candidates),
                }
                for one in proof.undecided
            ],
        },
        "by_exact": list(proof.by_exact),
    }


def in_style(steps: list[dict[str, Any]], plan: Plan, style: str) -> list[dict[str, Any]]:
    """The steps under their names in a style; byhand's own name is under "byhand"."""
    if style == "byhand":
        return steps
    called = plan.in_style(style)
    return [
        {
            **step,
            "address": called[step["address"]],
            "byhand": step["address"],
            "reads": [called.get(read, read) for read in step["reads"]],
        }
        for step in steps
    ]


def step_record(step: Step) -> dict[str, Any]:
    """A step, without its value."""
    return picked(step, "address", "op", "reads", "axes", "shape", "formula")


class TraceData(Records):
    """Writes the steps of one trace with their numbers, and its loss."""

    def step(self, worked: Worked) -> dict[str, Any]:
        """A step with its values, or the reason why it has none."""
        record = step_record(worked.step)
        record["register"] = worked.register
        if worked.missing is not None:
            return {**record, "value": None, "decimal": None, "missing": missing(worked.missing)}
        if worked.step.op == "argmax":
            return {**record, "value": [found.id for found in worked.value]}
        if worked.whole:
            value = worked.value
            return {**record, "value": list(value) if isinstance(value, tuple) else value}
        if floats(worked.array):
            return {**record, "value": float_data(worked.array), **self.notes(worked)}
        uniform = worked.numbers.uniform is not None
        if not uniform and len(registers_of(worked)) > 1:
            record["registers"] = _nested(worked, worked.register_at)
        entries = {
            index: self.value(entry, worked.address + write_index(index))
            for index, entry in worked.entries()
        }
        record["value"] = _nested(worked, lambda index: entries[index][0])
        record["decimal"] = _nested(worked, lambda index: entries[index][1])
        return {**record, **self.notes(worked)}

    def notes(self, worked: Worked) -> dict[str, Any]:
        """Notes on a step's entries."""
        notes = [picked(note, "kind", "index") for note in worked.notes]
        return {"notes": notes} if notes else {}

    def loss(self) -> dict[str, Any] | None:
        """The loss, and its target."""
        if self.trace.loss is None or self.trace.target is None:
            return None
        value, decimal = self.value(self.trace.steps["loss"].at((0,)), "loss[0]")
        return {"target": self.trace.answer(self.trace.target), "value": value, "decimal": decimal}

    def losses(self) -> dict[str, Any]:
        """The loss of each position with its target, and their mean; empty without them."""
        trace = self.trace
        worked, mean = trace.steps.get("losses"), trace.mean_loss
        if worked is None or worked.missing is not None or trace.targets is None:
            return {}
        targets = [None if id == UNCOUNTED else trace.answer(id) for id in trace.targets]
        found = [self.bare(entry) for _index, entry in worked.entries()]
        records = [
            None if loss is None else {"target": target, **loss}
            for target, loss in zip(targets, found, strict=True)
        ]
        return {"losses": records, "mean_loss": self.bare(mean)}

    def logprobs(self) -> dict[str, Any]:
        """ln of the probability of each next token, with the token; empty without them."""
        worked, targets = self.trace.steps.get("logprobs"), self.trace.targets
        if worked is None or worked.missing is not None or targets is None:
            return {}
        found = zip(targets, worked.entries(), strict=True)
        said = ((place, id, self.bare(entry)) for place, (id, (_at, entry)) in enumerate(found))
        records = [
            None
            if number is None
            else {"token": self.trace.answer(id), **number, **self.standing(place)}
            for place, id, number in said
        ]
        mean = self.trace.mean_logprob
        if mean is None:
            return {"logprobs": records}
        return {
            "logprobs": records,
            "mean_logprob": self.bare(mean),
            "perplexity": self.bare(self.trace.perplexity),
        }

    def standing(self, place: int) -> dict[str, Any]:
        """The rank of a next token, or the ranks that are possible; margin and entropy."""
        standing = self.trace.standings[place] if self.trace.standings else None
        if standing is None:
            return {}
        rank: dict[str, Any] = {"rank": standing.rank}
        if standing.rank is None:
            rank["ranks"] = [standing.lowest, standing.lowest + len(standing.rivals)]
            rank["rivals"] = [self.trace.answer(id) for id in standing.rivals]
        margin = None if standing.margin is None else self.bare(standing.margin)
        return {**rank, "margin": margin, "entropy": self.bare(standing.entropy)}


def registers_of(worked: Worked) -> set[str]:
    """The registers that entries of a step have."""
    found = (worked.register_at(index) for index, _entry in worked.entries())
    return {register for register in found if register is not None}


def _nested(worked: Worked, at: Any) -> Any:
    """Nested lists of `at` for each index."""

    def level(index: tuple[int, ...]) -> Any:
        if len(index) == len(worked.step.shape):
            return at(index)
        return [level((*index, i)) for i in range(worked.step.shape[len(index)])]

    return level(())
