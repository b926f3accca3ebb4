"""Judgements: whether a claim holds for one text, decided with as many bits as that takes.

Enclosures decide order, and exact arithmetic decides ties where the model is small enough.  What
stays open is said.  Every counterexample of the search is a judgement made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any

from byhand import forward
from byhand.evaluate import Job, pencil_sized
from byhand.model import Model
from byhand.numbers.base import ABSENT, Numbers
from byhand.numbers.enclosed.enclosure import Enclosing, Enclosure
from byhand.proving.digits import enclosing_numbers, enclosure_of, known_to_so_many_decimals, prove
from byhand.proving.outcome import Counterexample
from byhand.proving.search.questions import Ahead, Bounded, Leads, Question
from byhand.tracing import Trace

BITS = (64, 128, 256, 1024, 4096)  # of the attempts to compare numbers that are not next tokens
ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a claim holds for one text, and the numbers that decide it."""

    holds: bool | None  # None: undecided
    lead: Fraction | None = None  # at least this; None where there is nothing to lead
    expected: tuple[int, ...] = ()
    found: int | None = None
    address: str = ""
    value: Any = None
    bound: Any = None
    weights: Mapping[str, Fraction] | None = None  # within their ranges, for which it fails

    def refuting(
        self, goal: int, tokens: Sequence[int], assigned: Mapping[str, int]
    ) -> Counterexample:
        """The counterexample of a claim that does not hold."""
        told = self.expected, self.found, self.address, self.value, self.bound, self.weights
        return Counterexample(goal, tuple(tokens), assigned, *told)


def judge(
    model: Model,
    tokens: Sequence[int],
    question: Question,
    *,
    others: Sequence[Model] = (),
    rows: Any = None,
) -> Judgement:
    """Whether the answer to a question about one text is yes.  `others` must predict the same token
    as the model.  `rows` are given in place of the embeddings."""
    if not isinstance(question, Leads):
        return _compared(model, tokens, question, rows)
    found = _next(model, tokens, question.tokens, rows)
    for other in others:
        if not found.holds or found.found is None:
            break
        again = _next(other, tokens, (found.found,))
        leads = [one.lead for one in (found, again) if one.lead is not None]
        found = replace(again, lead=min(leads, default=None))
    return found


@dataclass(frozen=True)
class Moved(Job):
    """A text whose embeddings are given."""

    rows: Any = None

    def instead(self) -> dict[str, Any]:
        """The embeddings, in place of those of the tokens."""
        return {} if self.rows is None else {"given": {"embed.token": self.rows}}


def job_of(
    model: Model, tokens: Sequence[int], asked: str, numbers: Numbers, rows: Any = None
) -> Job:
    """The job of one text, for one step."""
    plan = forward.plan(model.spec, len(tokens))
    address = plan[asked].address
    return Moved(
        model, plan.only((address,)), numbers, "", tuple(tokens), asked=(address,), rows=rows
    )


# ----------------------------------------------------------------------- the next token


def _next(
    model: Model, tokens: Sequence[int], wanted: tuple[int, ...] | None, rows: Any = None
) -> Judgement:
    """Whether the next token is one of those wanted, or, if None, whether it is known."""
    trace = prove(job_of(model, tokens, "next", enclosing_numbers(model, 1), rows), 1)
    if trace.next is None:
        return Judgement(None)
    found = trace.next[-1]
    might_be = (found.id,) if found.id is not None else found.candidates
    if wanted is None:
        if found.id is None:
            return Judgement(None)
        return _told(trace, (found.id,), found.id)
    if might_be and all(id in wanted for id in might_be):
        return _told(trace, wanted, found.id)
    if not might_be or any(id in wanted for id in might_be):
        return Judgement(None, expected=wanted)
    right, wrong = _logits(trace, wanted), _logits(trace, might_be)
    best = max(right, key=lambda one: right[one].mid, default=None)
    first = might_be[0]
    return Judgement(
        False,
        None,
        wanted,
        found.id,
        f"logits[{len(tokens) - 1},{first if best is None else best}]",
        None if best is None else right[best],
        wrong[first],
    )


def _logits(trace: Trace, ids: Sequence[int]) -> dict[int, Enclosure]:
    """The last position's logits of these tokens."""
    logits = trace.steps["logits"]
    return {id: logits.at((len(trace.tokens) - 1, id)) for id in ids}


def _told(trace: Trace, wanted: tuple[int, ...], found: int | None) -> Judgement:
    """A judgement that holds, with the lead of the best token that is wanted."""
    others = [id for id in range(trace.model.spec.answers) if id not in wanted]
    if not others:
        return Judgement(True, None, wanted, found)
    best = max(one.lower for one in _logits(trace, wanted).values())
    rest = max(one.upper for one in _logits(trace, others).values())
    lead = ZERO if inf in (rest, -best) else Fraction(best) - Fraction(rest)
    return Judgement(True, max(lead, ZERO), wanted, found)  # it leads, be it by its lower id


# ----------------------------------------------------------------------- other numbers


def _compared(
    model: Model, tokens: Sequence[int], question: Ahead | Bounded, rows: Any
) -> Judgement:
    """The numbers of one text compared, with more bits until they are apart."""
    asked = "logits" if isinstance(question, Ahead) else question.address
    job = job_of(model, tokens, asked, enclosing_numbers(model, 1), rows)
    assert isinstance(job.numbers, Enclosing)
    found = Judgement(None)
    for bits in BITS:
        found = _measured(replace(job, numbers=job.numbers.at(bits)).work(), question)
        if found.holds is not None or known_to_so_many_decimals(model):
            return found
    if pencil_sized(model):
        from byhand.numbers.exact import Exact

        return _measured(replace(job, numbers=Exact()).work(), question)
    return found


def _measured(trace: Trace, question: Ahead | Bounded) -> Judgement:
    """The question answered by the numbers of a trace, as far as these are known."""
    address = trace.asked[0]
    worked = trace.steps[address]
    if worked.missing is not None:
        return Judgement(None, address=address)
    if isinstance(question, Bounded):
        shape = worked.step.shape
        index = tuple(i % side for i, side in zip(question.index, shape, strict=True))
        number = worked.at(index)
        number = Enclosure(ZERO, ZERO) if number is ABSENT else number
        low, high = _ends(number)
        slack = (question.bound - high, question.bound - low) if question.most else (
            low - question.bound, high - question.bound)  # fmt: skip
        told = f"{address}[{','.join(map(str, index))}]"
        return _judged(slack, ZERO, (), told, number, question.bound)
    last = len(trace.tokens) - 1
    ahead = worked.at((last, question.token))
    apart = [_apart(ahead, worked.at((last, id))) for id in question.others]
    least = min(range(len(apart)), key=lambda k: apart[k], default=None)
    if least is None:
        return Judgement(True)
    behind = worked.at((last, question.others[least]))
    ends = min(low for low, _high in apart), min(high for _low, high in apart)
    told = f"logits[{last},{question.token}]"
    return _judged(ends, question.by, (question.token,), told, ahead, behind)


def _judged(
    ends: tuple[Any, Any],
    least: Fraction,
    expected: tuple[int, ...],
    address: str,
    value: Any,
    bound: Any,
) -> Judgement:
    low, high = ends
    holds = True if low >= least else False if high < least else None
    lead = Fraction(low) if holds else None
    return Judgement(holds, lead, expected, None, address, value, bound)


def _ends(number: Any) -> tuple[Any, Any]:
    """The ends of an enclosure, or of an exact or named value."""
    enclosed = number if isinstance(number, Enclosure) else enclosure_of(number)
    return enclosed.lower, enclosed.upper


def _apart(one: Any, other: Any) -> tuple[Any, Any]:
    """The ends of one number minus another."""
    if isinstance(one, Enclosure):
        return one.lower - other.upper, one.upper - other.lower
    return _ends(one - other)
