"""Correct runs and their judgements: every claimed line from the claimed lines above it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.hostile.learning import Learner
from benchmarks.hostile.models import KINDS, LONG, drawn_model, drawn_spec
from benchmarks.tightness.machines import FORMATS, NARROW, Machine
from benchmarks.tightness.orders import ORDERS
from benchmarks.tightness.ports import Port
from byhand import forward
from byhand.backward import adjoint
from byhand.evaluate import work_out
from byhand.model import Model
from byhand.numbers.allowed import Allowed
from byhand.optimizer import Rule, update
from byhand.plan import GRAD, Plan
from byhand.worked import Worked

IDS = ("given", "argmax")
# what a port that takes several steps in one go does not have
NORM = (".mean", ".centered", ".variance", ".std", ".mean_square", ".rms", ".normalized")
ATTENTION = (".scores", ".weights", ".weights.dot")
RULES = (
    Rule("adamw", decay=Fraction(1, 10), clip=Fraction(1)),
    Rule("momentum", decay=Fraction(1, 100)),
    Rule("adam", betas=(Fraction(9, 10), Fraction(95, 100)), clip=Fraction(1, 1000)),
)


@dataclass(frozen=True)
class Run:
    """One text worked out by one port."""

    seed: int
    kind: str  # of weights
    model: Model
    tokens: tuple[int, ...]
    port: Port
    sparse: bool  # only some lines are claimed
    islands: bool  # norms and softmax in float32, as in transformers

    @property
    def precision(self) -> str:
        """The class of implementations it belongs to."""
        format = self.port.machine.format
        return f"transformers:{format}" if self.islands else format

    @property
    def plan(self) -> Plan:
        """The pass, its way back, and a step of an optimizer."""
        passes = forward.plan(self.model.spec, len(self.tokens), target=True, losses=True)
        return update(adjoint(passes), RULES[self.seed % len(RULES)])

    @property
    def asked(self) -> dict[str, Any]:
        """The target, and the targets of all positions; some do not count."""
        shifted = (*self.tokens[1:], self.tokens[0])
        targets = tuple(id if (id + self.seed) % 5 else -1 for id in shifted[:-1])
        return {"target": self.tokens[0], "targets": (*targets, shifted[-1])}

    def inside(self, address: str) -> bool:
        """Whether the port has no such step, since it takes several in one go."""
        whole = self.port.whole or (self.islands and self.port.machine.format in NARROW)
        parts = NORM * whole + ATTENTION * self.port.online
        if not address.startswith(GRAD):
            return address.endswith(parts)
        of, _via, through = address.removesuffix(".dot").partition(".via.")
        gone = of.endswith(parts) and not of.endswith(".normalized")
        return (
            gone
            or (address.endswith(".dot") and bool(of.endswith(parts)))
            or (bool(through) and through.endswith(parts))
        )

    @property
    def name(self) -> str:
        m = self.port.machine
        flags = [name for name in ("fused", "reciprocal", "whole", "scale_first", "online")
                 if getattr(self.port, name)]  # fmt: skip
        flags += ["flushing"] * m.flushes + ["wide"] * m.wide_steps + ["sparse"] * self.sparse
        return f"{self.seed}: {self.precision}, {self.kind}, {self.port.order}, {' '.join(flags)}"


def runs(seed: int, models: int, *, flushing: bool | None = None) -> Iterator[Run]:
    """For each model one run in each format; settings that `flushing` does not fix are random."""
    for number in range(models):
        for place, format in enumerate(FORMATS):
            yield _drawn(seed * 1_000_003 + number * len(FORMATS) + place, format, flushing)


def _drawn(seed: int, format: str, flushing: bool | None) -> Run:
    rng = np.random.default_rng(seed)
    spec = drawn_spec(rng)
    kind = str(rng.choice(KINDS))
    model = drawn_model(rng, spec, kind, format)
    flushes = bool(rng.random() < 0.5) if flushing is None else flushing
    machine = Machine(format, wide_steps=format in NARROW and rng.random() < 0.5, flushes=flushes)
    cut_off = format in (*NARROW, "tf32")  # tensor cores
    orders = [name for name in ORDERS if cut_off or name != "cores"]
    fused, reciprocal, whole, first = (bool(x) for x in rng.random(4) < 0.4)
    online = bool(rng.random() < 0.1)
    port = Port(
        "", machine, str(rng.choice(orders)), fused, reciprocal, whole, first, online=online
    )
    length = LONG if online else int(rng.integers(1, 9))
    tokens = tuple(map(int, rng.integers(0, spec.vocab, length)))
    sparse, islands = bool(rng.random() < 0.3), bool(rng.random() < 0.25)
    return Run(seed, kind, model, tokens, port, sparse, islands)


def claims_of(run: Run, plan: Plan) -> dict[str, Any]:
    """The port's values by address; only some of them if the run is sparse."""
    with np.errstate(all="ignore"):
        numbers = Learner(run.port, islands=run.islands, seed=run.seed)
        done = work_out(plan, run.model.weights, run.tokens, numbers, **run.asked)
    found = {
        address: np.asarray(np.ma.getdata(worked.value), dtype=np.float64)
        for address, worked in done.items()
        if worked.step.op not in IDS and not run.inside(address)
    }
    if not run.sparse:
        return found
    rng = np.random.default_rng([run.seed, 1])
    return {address: value for address, value in found.items() if rng.random() < 0.3}


@dataclass
class Line:
    """One claimed line of a run."""

    run: Run
    address: str
    operation: str
    share: float  # above 1: outside the allowed error
    entries: int
    open: int  # undecided entries


def judged(run: Run) -> list[Line]:
    """Every claim of a run, judged from the claims above it."""
    plan = run.plan
    claims = claims_of(run, plan)
    numbers = Allowed(run.precision)
    lines = []

    def lay_over(worked: Worked) -> Worked:
        address, step = worked.step.address, worked.step
        if address not in claims:
            return worked
        found = numbers.judge(worked.value, (), claims[address])
        still = int(np.isinf(found.allowed).sum())
        lines.append(Line(run, address, step.op, found.share, found.shares.size, still))
        return Worked(step, numbers.overlay(worked.value, (), claims[address]), numbers)

    with np.errstate(all="ignore"):
        work_out(plan, run.model.weights, run.tokens, numbers, **run.asked, revise=lay_over)
    return lines
