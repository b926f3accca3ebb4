"""Proofs of digits: a job is worked out with more bits until the digits asked for are proven.

The steps to prove are those that `--only` and `--at` name.  Else they are every step of a
pencil-sized model, or the logits, the next tokens, the losses and the gradients of the weights of a
larger one.  Each of their numbers gets the asked significant digits, and each next token a proof.
Precision starts low and is raised by the bits that the enclosures lack.  No precision proves a zero
or a tie; exact arithmetic does, where the model is small enough.  In a larger model, tokens with
the same weights in the head are proven tied.  The rest is reported as undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from operator import index as as_int
from typing import Any

import numpy as np

from byhand.bounds_file import kept_bounds
from byhand.errors import InputError, Undecided, UsageError
from byhand.evaluate import Admitted, Job, Progress, Revise, Sink, pencil_sized
from byhand.language import _, whole
from byhand.missing_bits import Shortfall, shortfall
from byhand.model import Model
from byhand.numbers.base import Prediction, Printed, Within
from byhand.numbers.enclosed.enclosure import (
    LOG2_OF_10,
    Enclosing,
    Enclosure,
)
from byhand.options import MOST_DIGITS
from byhand.parameters import learned, size_of
from byhand.plan import GRAD, WEIGHT, Plan, Step
from byhand.proof import Proof
from byhand.proving.choices import same_rows, settling
from byhand.repeating import Passes, counted_down
from byhand.tracing import Trace
from byhand.weights import Tensor

START = 20  # bits of the first attempt, beyond those of the digits: some logits are near 0
A_BLOCK = 7  # and for each block, where sublayers are worked out from the middle of the stream
BY_STEPS = 12  # more where every step has a rule of its own, as in balls and beside a cache,
A_DOUBLING = 3  # and in balls for each block and doubling of the width
A_GRADIENT = 32  # and for gradients: many are small beside what they are sums of
ASK_EXACT = 512  # bits after which exact numbers decide whether a number is zero
SMALL = 2_500_000  # parameters times positions up to which balls are faster than limbs
USUAL_LENGTH = 16  # positions that are assumed unless given
MANY = 440  # bits of a first attempt for which balls are used instead of limbs


def prove(
    job: Job,
    digits: int,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
    sink: Sink | None = None,
) -> Trace:
    """The trace of a job in enclosures as narrow as was asked; `trace.proof` says what is proven.

    The job's numbers are those of `enclosing_numbers`; `limit` is the most bits that are tried.
    `sink` sees the final steps only.
    """
    return Prover(job, digits, limit=limit).prove(job, progress=progress, sink=sink)


def prove_texts(
    jobs: Sequence[Job], digits: int, *, progress: Progress | None = None
) -> Iterator[Trace]:
    """The proven traces of jobs of one model (`repeating.prepare_texts`), one after another.

    Weights are admitted once.  A text begins at the precision that proved the one before.  On a GPU
    the passes of texts that share a plan are repeated.
    """
    if jobs:
        prover = Prover(jobs[0], digits)
        for job, times in counted_down(jobs):
            yield prover.prove(job, progress=progress, times=times)


class Prover:
    """Proves jobs of one model and number system; what they share is made once."""

    def __init__(self, job: Job, digits: int, *, limit: int | None = None) -> None:
        self.digits = check_digits(digits)
        assert isinstance(job.numbers, Enclosing), job.numbers
        self.most = job.numbers.limit if limit is None else limit
        more = A_GRADIENT if any(gradients_of_weights(job.plan)) else 0
        self.bits = min(job.numbers.bits + more, self.most)  # of the first attempt
        self.found = False  # whether `bits` have proven a job
        self.passes = Passes(Admitted(job.model.weights, job.numbers))
        self.bounded = known_to_so_many_decimals(job.model)

    def prove(
        self,
        job: Job,
        *,
        progress: Progress | None = None,
        sink: Sink | None = None,
        times: int = 1,
    ) -> Trace:
        """The job's trace, proven as far as possible; `times` as in `repeating.Passes`.

        Bounds of the weights of a checkpoint are kept, and so are the bits that sufficed.
        """
        with kept_bounds(job.model.source) as kept:
            sufficed = f"bits {self.digits} {' '.join(asked_steps(job))}"
            known = None if kept is None else kept.noted(sufficed)
            if known is not None and not self.found:
                self.bits = min(known, self.most)
            trace = self._prove(job, progress=progress, sink=sink, times=times)
            if kept is not None and self.found:
                kept.note(sufficed, self.bits)
            return trace

    def _prove(
        self, job: Job, *, progress: Progress | None, sink: Sink | None, times: int
    ) -> Trace:
        asked, settled = asked_steps(job), dict[str, None]()
        exactly = (
            Exactly(lambda: _in_exact_numbers(job), settled) if pencil_sized(job.model) else None
        )
        before: Shortfall | None = None
        bits = self.bits
        while True:
            known = exactly if bits >= min(ASK_EXACT, self.most) else None
            revise = settling(job.plan, job.model.weights, known, settled)
            trace = self._attempt(job, bits, progress, times, revise)
            short = shortfall(trace, asked, self.digits)
            if short.positions:
                trace = _with_ties(trace, short.positions, settled)
                short = shortfall(trace, asked, self.digits)
            ended = bits >= self.most or (self.bounded and short.stalled(before))
            if exactly and short.count and (ended or (short.near_zero and bits >= ASK_EXACT)):
                trace = exactly.settle(trace, short)
                short = shortfall(trace, asked, self.digits)
            if ended or not short.count:
                break
            before, bits = short, min(short.next_bits(bits, before), self.most)
        if not short.count and not settled:
            self.bits, self.found = bits, True
        proof = Proof(self.digits, bits, tuple(short.reported(trace)), short.count, tuple(settled))
        trace = replace(trace, proof=proof)
        if sink:
            for worked in trace.values():
                sink(worked)
        return trace

    def _attempt(
        self,
        job: Job,
        bits: int,
        progress: Progress | None,
        times: int,
        revise: Revise | None,
    ) -> Trace:
        """The job worked out once; the logits are kept too, for the distances of next tokens.

        A pass is prepared for repetition only at a precision that has proven a job.
        """
        keep = {*job.asked, "logits"} if "next" in job.asked else None
        assert isinstance(job.numbers, Enclosing)
        at = replace(job, numbers=job.numbers.at(bits))
        return self.passes.work(at, keep=keep, progress=progress, revise=revise,
                                times=times if self.found and bits == self.bits else 1)  # fmt: skip


def check_digits(digits: Any) -> int:
    """The number of digits as a Python integer; an error where it is not one from 1 on."""
    if hasattr(digits, "__index__") and not isinstance(digits, bool):
        count = as_int(digits)  # a NumPy integer would overflow silently
        if 1 <= count <= MOST_DIGITS:
            return count
    raise UsageError(
        _("the number of digits has a value that does not fit"),
        expected=_("a whole number from {least} to {most}").format(
            least=1, most=whole(MOST_DIGITS)
        ),
        found=repr(digits),
    )


def enclosing_numbers(
    model: Model, digits: int, *, device: str | None = None, positions: int = USUAL_LENGTH
) -> Enclosing:
    """The number system for proving digits of this model, at the precision to start with.

    Balls for weights that are not all floats, for small models and for very many digits; limbs for
    the others, and on a device.  `positions` are worked out at a time: one in generation.
    """
    digits = check_digits(digits)
    objects = [
        name
        for name, tensor in model.weights.items()
        if not tensor.floats and not name.endswith(".frequencies")  # which may be any numbers
    ]
    if device is not None and objects:
        raise InputError(
            _("on a device, digits can be proven only of weights that are floats"),
            where=WEIGHT + objects[0],
            hint=_("leave the device out"),
        )
    blocks, least = len(model.spec.blocks), ceil(digits * LOG2_OF_10) + START
    bits = least + A_BLOCK * blocks + (BY_STEPS + blocks if positions == 1 else 0)
    small = size_of(model.spec) * positions <= SMALL
    if device is None and (objects or small or bits > MANY):
        from byhand.numbers.enclosed.balls.operations import Balls

        doublings = model.spec.d_model.bit_length()
        return Balls(min(least + BY_STEPS + A_DOUBLING * doublings * blocks, Balls.limit))
    from byhand.numbers.enclosed.limbs.operations import Limbs

    found: Enclosing = Limbs(bits, device)
    return found


def known_to_so_many_decimals(model: Model) -> bool:
    """Whether some weights are rounded decimals: then enclosures stay wide at any precision.

    Where all weights are exact, a radius that did not shrink proves nothing.  A softmax of large
    scores lies between 0 and 1 until the scores are known.
    """
    objects = (tensor.data.flat for tensor in model.weights.values() if not tensor.floats)
    return any(isinstance(entry, Printed | Within) for data in objects for entry in data)


def asked_steps(job: Job) -> tuple[str, ...]:
    """The steps whose numbers or tokens are to be proven."""
    if job.asked:
        wanted: Collection[str] = job.asked
    elif pencil_sized(job.model):
        wanted = {step.address for step in job.plan}
    else:
        wanted = {"logits", "next", "loss", "losses", "mean_loss", *gradients_of_weights(job.plan)}
        wanted |= {step.address for step in job.plan if step.op == "choose"}
    return tuple(s.address for s in job.plan if s.address in wanted and s.op != "given")


def gradients_of_weights(plan: Plan) -> Iterator[str]:
    """The steps that are gradients of weights, where the plan has a backward pass."""
    for parameter in learned(plan.spec):
        address = plan.known.get(GRAD + WEIGHT + parameter.name)
        if address is not None:
            yield address


# ----------------------------------------------------------------------- where exact numbers help


def same_logits(logits: Step, weights: Mapping[str, Tensor], tokens: Sequence[int]) -> bool:
    """Whether these tokens have the same logit whatever the stream is: their weights are equal."""
    return same_rows(logits, weights, tokens)


def tied(found: Prediction) -> Prediction:
    """The prediction, proven: all its candidates have the same logit."""
    zero = Enclosure(Fraction(0), Fraction(0))
    return Prediction(min(found.candidates), zero, proven=True, tied=found.candidates)


def _with_ties(trace: Trace, positions: Sequence[int], settled: dict[str, None]) -> Trace:
    """The trace with proven ties of tokens that have the same weights in the head."""
    worked, logits = trace.steps["next"], trace.plan["logits"]
    value = list(worked.value)
    for position in positions:
        tokens = value[position].candidates
        if len(tokens) > 1 and same_logits(logits, trace.model.weights, tokens):
            value[position] = tied(value[position])
            settled[f"next[{position}]"] = None
    return replace(trace, steps={**trace.steps, "next": replace(worked, value=value)})


def _in_exact_numbers(job: Job) -> Trace:
    from byhand.numbers.exact import Exact

    return replace(job, numbers=Exact()).work()


class Exactly:
    """The same job in exact numbers, worked out when first needed, to prove zeros and ties."""

    def __init__(self, work: Callable[[], Trace], settled: dict[str, None]) -> None:
        self.work = work
        self.settled = settled  # addresses proven here; new ones are added

    @cached_property
    def trace(self) -> Trace:
        """The exact trace."""
        return self.work()

    def settle(self, trace: Trace, short: Shortfall) -> Trace:
        """The trace with zeros that are proven zeros, and tokens that are proven by algebra."""
        steps = dict(trace.steps)
        for address, mask in short.entries.items():
            places = [p for p in map(tuple, np.argwhere(mask).tolist()) if self._zero(address, p)]
            if places:
                worked = steps[address]
                value = worked.numbers.with_zeros(worked.value, places)  # type: ignore[attr-defined]
                steps[address] = replace(worked, value=value)
                told = (",".join(map(str, place)) for place in places)
                self.settled.update(dict.fromkeys(f"{address}[{index}]" for index in told))
        if short.positions and self.trace.steps["next"].missing is None:
            worked = steps["next"]
            value = list(worked.value)
            for position in short.positions:
                found = self.trace.steps["next"].value[position]
                if found.proven:
                    margin = None if found.margin is None else enclosure_of(found.margin)
                    value[position] = replace(found, margin=margin)
                    self.settled[f"next[{position}]"] = None
            steps["next"] = replace(worked, value=value)
        return replace(trace, steps=steps)

    def _zero(self, address: str, index: tuple[int, ...]) -> bool:
        worked = self.trace.steps[address]
        if worked.missing is not None:
            return False
        try:
            return not worked.at(index)
        except Undecided:
            return False


def enclosure_of(value: Any, bits: int = ASK_EXACT) -> Enclosure:
    """An exact or named value as an enclosure."""
    if value.fraction is not None:
        return Enclosure(value.fraction, Fraction(0))
    return Enclosure.of(value.ball(bits))
