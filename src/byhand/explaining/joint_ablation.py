"""Ablations of several parts in one pass.

An ablation changes nothing before its part, and all ablations run through the same matrices after
it.  So copies of the text lie side by side in one pass and do not see each other.  Each copy lacks
a part of its own, and the pass begins where the first copy differs.  Only the positions asked for
are unembedded.  Ablations in a number system with letters, and those that need another plan (a
bias), are worked out one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from byhand.evaluate import Admitted, Progress, work_out
from byhand.explaining.ablation import Part, ablated, job_of, unchanged, without
from byhand.explaining.asked import tell_doing
from byhand.explaining.lens import end_at, tail_of
from byhand.explaining.turning import UNDECIDED
from byhand.language import _
from byhand.numbers.base import Prediction
from byhand.plan import WEIGHT, Plan, Step
from byhand.proving.digits import prove
from byhand.tracing import Trace
from byhand.worked import Worked

MOST_ROWS = 128  # positions of one pass: more cost more than they share

Found = tuple[Prediction, ...]


def predictions_without(
    trace: Trace,
    parts: Sequence[Part],
    positions: Sequence[int],
    weights: Admitted,
    progress: Progress | None = None,
) -> list[Found]:
    """For each part, the prediction after each of these positions without it.

    Where the trace is proven and one of these predictions is not, its text is proven again.
    """
    found: list[Found] = []
    for some in _groups(trace, parts):
        names = " … ".join(dict.fromkeys((some[0].address, some[-1].address)))
        tell_doing(progress, _("taking out {part}").format(part=names), len(found), len(parts))
        both = _Together(trace, some) if len(some) > 1 else None
        if both is not None and both.known is not None:
            told = both.predictions(positions, weights, progress)
        else:
            told = [_alone(trace, part, positions, weights, progress) for part in some]
        found += [
            each if _enough(trace, each) else _proven(trace, part, positions, progress)
            for part, each in zip(some, told, strict=True)
        ]
    return found


def _groups(trace: Trace, parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Neighbouring parts that are worked out together."""
    most = max(MOST_ROWS // len(trace.tokens), 1) if trace.numbers.uniform else 1
    group: list[Part] = []
    for part in parts:
        fits = _silent(trace.plan, part) is not None
        if group and (len(group) == most or not fits):
            yield group
            group = []
        group.append(part)
        if not fits:
            yield group
            group = []
    if group:
        yield group


def _enough(trace: Trace, found: Found) -> bool:
    return trace.proof is None or all(one.proven for one in found)


def _proven(trace: Trace, part: Part, positions: Sequence[int], progress: Progress | None) -> Found:
    assert trace.proof is not None
    job = ablated(job_of(trace, ("next",)), (part,))
    proven = prove(job, trace.proof.digits, progress=progress)
    if proven.next is None:
        return (UNDECIDED,) * len(positions)
    return tuple(proven.next[position] for position in positions)


def _alone(
    trace: Trace,
    part: Part,
    positions: Sequence[int],
    weights: Admitted,
    progress: Progress | None,
) -> Found:
    """The predictions without one part; the steps before it are taken from the trace."""
    whole = ablated(job_of(trace, ("next",)), (part,))
    end = whole.plan[_end(whole.plan)].address
    job = replace(whole, plan=whole.plan.only([end]), asked=(end,))
    job = replace(job, known=unchanged(trace, job))
    stream = job.work(weights=weights, progress=progress).steps[end]
    tail = tail_of(trace.plan.spec, len(positions), ("next",))
    if part.kind == "bias":  # it may belong to the head
        tail = without(tail, part)
    last = end_at(trace.numbers, stream, positions, tail, weights, progress)["next"]
    return (UNDECIDED,) * len(positions) if last.missing else tuple(last.value)


def _end(plan: Plan) -> str:
    return f"stream.{len(plan.spec.blocks)}"


# ----------------------------------------------------------------------- several at once


class _Together:
    """Copies of a text in one pass, each without a part of its own."""

    def __init__(self, trace: Trace, parts: Sequence[Part]) -> None:
        self.trace, self.parts = trace, parts
        self.silent: dict[str, list[tuple[int, tuple[int, int] | None]]] = {}
        for copy, part in enumerate(parts):
            address, entries = _silent(trace.plan, part) or ("", None)
            self.silent.setdefault(address, []).append((copy, entries))
        end = trace.plan[_end(trace.plan)].address
        self.end, self.plan = end, tiled(trace.plan.only([end]), len(parts))
        self.known = self._known()

    def _known(self) -> Mapping[str, Worked] | None:
        """The values that the pass begins with, copied for each part; None if some are missing.

        Attention weights that no part changes, for want of queries, are worked out again; so are
        the angles of RoPE, which are no rows.
        """
        changed: set[str] = set()
        first: dict[str, None] = {}
        plan = self.trace.plan
        for step in plan.only([self.end]):
            reads = [read for read in step.reads if not read.startswith(WEIGHT)]
            if changed.intersection(reads):
                changed.add(step.address)
                first.update(
                    (read, None)
                    for read in reads
                    if read not in changed
                    and "key" not in plan[read].axes
                    and plan[read].op != "constants"
                )
            elif step.address in self.silent:
                changed.add(step.address)
                first[step.address] = None
        rows = list(range(len(self.trace.tokens))) * len(self.parts)
        numbers, known = self.trace.numbers, {}
        for address in first:
            worked = self.trace.steps.get(address)
            if worked is None or worked.missing is not None:
                return None
            value = numbers.take_rows(worked.value, rows)
            known[address] = Worked(self.plan[address], value, numbers)
        return known

    def predictions(
        self, positions: Sequence[int], weights: Admitted, progress: Progress | None
    ) -> list[Found]:
        """For each part, the prediction after each of these positions."""
        assert self.known is not None
        trace, count = self.trace, len(self.parts)
        steps = work_out(
            self.plan.only([self.end], given=self.known),
            weights,
            trace.tokens * count,
            trace.numbers,
            given=self.known,
            keep=(self.end,),
            revise=self._silenced,
            progress=progress,
        )
        length = len(trace.tokens)
        rows = [copy * length + position for copy in range(count) for position in positions]
        tail = tail_of(trace.plan.spec, len(rows), ("next",))
        last = end_at(trace.numbers, steps[self.end], rows, tail, weights, progress)["next"]
        each = len(positions)
        told = (UNDECIDED,) * len(rows) if last.missing else tuple(last.value)
        return [told[copy * each : (copy + 1) * each] for copy in range(count)]

    def _silenced(self, worked: Worked) -> Worked:
        """The step with zeros where a copy lacks its part."""
        lacking = self.silent.get(worked.address)
        if lacking is None or worked.missing is not None:
            return worked
        kept, length = np.ones(worked.step.shape), len(self.trace.tokens)
        axis = worked.step.axes.index("pos")
        for copy, entries in lacking:
            place: list[Any] = [slice(None)] * kept.ndim
            place[axis] = slice(copy * length, (copy + 1) * length)
            if entries is not None:
                place[entries[0]] = entries[1]
            kept[tuple(place)] = 0
        numbers = worked.numbers
        return replace(worked, value=numbers.multiply(worked.value, numbers.admit(kept)))


def _silent(plan: Plan, part: Part) -> tuple[str, tuple[int, int] | None] | None:
    """The step in which zeros remove the part, with their axis and index; None: no such step."""
    at = f"block.{part.layer}"
    if part.kind in ("attn", "mlp"):
        return plan[f"{at}.{part.kind}.out"].address, None
    if part.kind == "position":
        return "embed.position", None
    if part.kind == "head" and part.index is not None:
        return f"{at}.attn.mixed", (0, part.index)
    if part.kind == "neuron" and part.index is not None:
        last = "gated" if f"{at}.mlp.gated" in plan.known else "act"
        return f"{at}.mlp.{last}", (1, part.index)
    return None


def tiled(plan: Plan, copies: int) -> Plan:
    """The plan for copies of its text, one after the other, that do not see each other."""
    steps = tuple(_tiled(step, copies) for step in plan)
    return Plan(plan.spec, plan.length * copies, steps, plan.aliases)


def _tiled(step: Step, copies: int) -> Step:
    several = ("pos", "query", "key")
    shape = tuple(
        size * copies if axis in several else size
        for axis, size in zip(step.axes, step.shape, strict=True)
    )
    attributes = dict(step.attributes)
    for name in ("ids", "positions", "queries", "keys"):
        if name in attributes:
            attributes[name] = tuple(attributes[name]) * copies
    if "mask" in attributes:
        mask = np.kron(np.eye(copies, dtype=bool), np.array(attributes["mask"], dtype=bool))
        attributes["mask"] = tuple(map(tuple, mask.tolist()))
    return replace(step, shape=shape, attributes=attributes)
