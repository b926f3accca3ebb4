"""Passes of whole regions: many regions of one shape worked out in forms, and what they decide.

The plan is the usual one, with the forms of regions given in place of embeddings.  Where no
position looks ahead, only the last one is worked out in full; of the others, only what it reads.
Logits are subtracted as forms before any bound is taken, so that what they share cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand import forward
from byhand.evaluate import Admitted, work_out
from byhand.model import Model
from byhand.numbers.forms import Form, Forms, PreciseForms, differences, ends
from byhand.numbers.forms.arithmetic import arithmetic_of
from byhand.plan import Plan, keys_and_values
from byhand.proving.domain import Region, Shape
from byhand.proving.search.hulls import Embedding, above
from byhand.proving.search.questions import Ahead, Bounded, Leads, Question
from byhand.proving.search.region_forms import Held, Key, RegionForms
from byhand.proving.search.text_tables import Ids
from byhand.worked import Worked

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
TOKENS = 0  # any id: embeddings are given
REMEMBERED = 8  # sets of prefixes
MOVED = 256  # entries of embeddings that get letters of their own where they may be moved


class Weighed:
    """A model ready for passes in forms: its weights, admitted once, and its embedding."""

    def __init__(self, model: Model, embedding: Embedding, *, precise: bool = False) -> None:
        self.model = model
        self.embedding = embedding
        self.precise = precise
        self.numbers = PreciseForms() if precise else Forms()
        self.weights = Admitted(model.weights, self.numbers)
        for name in model.weights:  # before any text: weights known within ranges get letters
            self.admitted(name)
        self._plans: dict[tuple[Any, ...], Plan] = {}
        self.prefixes: dict[tuple[int, bytes], dict[str, Form]] = {}  # keys and values after them
        # what later positions read of a first one, and of one that has others before it
        self.kept = keys_and_values(forward.plan(model.spec, 1))
        self.joined = {past: past.replace(".past_", ".all_") for past in self.kept}

    def remember(self, key: tuple[int, bytes], past: dict[str, Form]) -> None:
        """Keeps the keys and values of some prefixes, the last few, for texts that go on from
        there."""
        if key not in self.prefixes and past:
            while len(self.prefixes) >= REMEMBERED:
                del self.prefixes[next(iter(self.prefixes))]
            self.prefixes[key] = past

    def plan(self, length: int, past: int, *wanted: str) -> Plan:
        """The plan of what is wanted, of so many positions after a past."""
        key = (length, past, wanted)
        if key not in self._plans:
            self._plans[key] = forward.plan(self.model.spec, length, past=past).only(wanted)
        return self._plans[key]

    def work(
        self, plan: Plan, embedded: Form, past: dict[str, Form], wanted: Sequence[str]
    ) -> list[Form]:
        """The wanted steps, where the embeddings and the earlier keys and values are these."""
        given: dict[str, Any] = {
            address: Worked(plan[address], form, self.numbers)
            for address, form in (("embed.token", embedded), *past.items())
            if address in plan.known  # scores of a table read no embedding
        }
        done = work_out(
            plan, self.weights, (TOKENS,) * plan.length, self.numbers, given=given, keep=wanted
        )
        for address in wanted:
            if (missing := done[address].missing) is not None:
                raise missing.error(address)
        return [done[address].value for address in wanted]

    def admitted(self, name: str) -> Form:
        """A weight as a form."""
        table = name.endswith(".score_table")
        form: Form = self.weights.table(name, 1) if table else self.weights[name]
        return form

    def moves(self, length: int) -> bool:
        """Whether the embeddings of a text of this length are moved, with a letter for each entry.
        In long texts and wide models the moves are errors: there are too many of them."""
        return self.embedding.moved > 0 and length * self.model.spec.d_model <= MOVED

    def embedded(self, tokens: Ids, first: int = 0, length: int | None = None) -> Form:
        """The embeddings of tokens (text, position), one text a case, from the position `first` on
        of texts of this length."""
        table, scale = self.weights["embed.token"], self.model.spec.embed_scale
        ids: Any = tokens
        found: Form = self.numbers.embed(table, ids, scale=scale)
        if not self.embedding.moved:
            return found
        shape, far = found.terms.shape[1:], above(self.embedding.moved)
        if not self.moves(length or shape[1]):
            moved: Form = self.numbers.given(np.zeros((1, *shape)), np.full(shape, far))
        else:
            terms = np.zeros((1 + (first + shape[1]) * shape[2], *shape))
            for position, column in np.ndindex(*shape[1:]):
                terms[1 + (first + position) * shape[2] + column, :, position, column] = far
            moved = self.numbers.given(terms)
        added: Form = self.numbers.add(found, moved)
        return added

    def last(self, embedded: Form) -> Form:
        """The logits of the last position."""
        length = embedded.shape[0]
        if length == 1 or not self.model.spec.causal:
            plan = self.plan(length, 0, "logits")
            (logits,) = self.work(plan, embedded, {}, ["logits"])
        else:
            past: dict[str, Form] = {}
            if self.kept:
                earlier = self.plan(length - 1, 0, *self.kept.values())
                before = embedded.each(lambda x: x[..., :-1, :])
                found = self.work(earlier, before, {}, [*self.kept.values()])
                past = dict(zip(self.kept, found, strict=True))
            plan = self.plan(1, length - 1, "logits")
            (logits,) = self.work(plan, embedded.each(lambda x: x[..., -1:, :]), past, ["logits"])
        return logits.each(lambda x: x[..., -1, :])

    def step(self, embedded: Form, address: str) -> Form:
        """One step of the pass, all positions of it."""
        plan = self.plan(embedded.shape[0], 0, address)
        (value,) = self.work(plan, embedded, {}, [plan[address].address])
        return value


@dataclass(frozen=True, slots=True)
class Findings:
    """What one pass found of several regions: for each a lead, and the numbers behind it."""

    holds: Truths  # (case,)
    lead: Floats  # (case,): a lower bound of what must be positive, or at least a bound
    ahead: npt.NDArray[np.intp]  # (case,): the token that leads
    terms: Floats  # (letter + 1, case): of the least lead
    errors: Floats  # (letter + 1, case)
    keys: list[Key | None]  # of the letters; None for those of weights

    @property
    def fails(self) -> Truths:
        """(case,): whether the least lead is negative throughout the region, nearly proven."""
        found: Truths = self.terms[0] + self._far + self.errors[0] < 0
        return found

    @property
    def rounded(self) -> Truths:
        """(case,): whether it is rounding that leaves the region open, rather than letters."""
        far, unsure = self._far, self.errors[0]
        found: Truths = ~self.holds & (unsure > 0) & ((self.terms[0] > far) | (unsure > far))
        return found

    @property
    def _far(self) -> Floats:
        """(case,): how far the lead is from its middle, because of letters."""
        found: Floats = np.abs(self.terms[1:]).sum(axis=0) + self.errors[1:].sum(axis=0)
        return found


Holdings = list[list[Held]]  # by model and position


class RegionPasses:
    """The passes of the regions of one shape, in one model or two that must agree."""

    def __init__(self, shape: Shape, models: Sequence[Weighed]) -> None:
        self.models = [(one, RegionForms(shape, one.embedding)) for one in models]
        self.positions = range(len(shape.places))

    def look_at(self, region: Region) -> None:
        """NoText where a place whose number is linear in the variables has no token."""
        forms = self.models[0][1]
        for position in forms.linear:
            forms.held(position, region)

    def held(self, region: Region) -> Holdings:
        """What every position holds over a region, by model; NoText where one has no token."""
        return [[forms.held(k, region) for k in self.positions] for _model, forms in self.models]

    def work(self, held: Sequence[Holdings], questions: Sequence[Question]) -> Findings:
        """What the questions about regions that hold this are answered, by a pass of each model."""
        found: Findings | None = None
        for which, (model, forms) in enumerate(self.models):
            terms, errors, own = forms.of([one[which] for one in held], exact=model.precise)
            embedded = model.numbers.given(terms, errors)
            keys = [None] * model.numbers.weight_letters + own
            if isinstance(questions[0], Bounded):
                value = spread(model.step(embedded, questions[0].address), len(held))
                return bounded(value, keys, questions)
            logits = spread(model.last(embedded), len(held))
            more = leads(logits, keys, questions, None if found is None else found.ahead)
            found = more if found is None else _both(found, more)
        assert found is not None
        return found


def spread(form: Form, cases: int) -> Form:
    """The form with every case of its own."""
    if form.cases == cases:
        return form
    return Form(
        np.repeat(form.terms, cases, axis=1),
        np.repeat(form.errors, cases, axis=1),
        None if form.absent is None else np.broadcast_to(form.absent, (cases, *form.shape)),
    )


def leads(
    logits: Form, keys: list[Key | None], questions: Sequence[Question], ahead: Any = None
) -> Findings:
    """Whether a token that a question allows leads all that it does not, case by case."""
    cases, vocab = logits.terms.shape[1:]
    led = np.ones((cases, vocab), dtype=bool)  # which tokens must be behind
    by = np.zeros(cases)
    middles = nearly(logits.terms[0]).copy()
    for case, question in enumerate(questions):
        match question:
            case Leads(tokens) if tokens is not None:
                led[case, list(tokens)] = False
                middles[case, led[case]] = -np.inf
            case Ahead(token, others, least):
                led[case] = False
                led[case, list(others)] = True
                middles[case] = -np.inf
                middles[case, token] = 0
                by[case] = above(least)
    front = middles.argmax(axis=1) if ahead is None else ahead
    every = np.arange(cases)
    led[every, front] = False
    apart = differences(logits, front)
    low = np.where(led, ends(apart)[0], np.inf)
    worst = low.argmin(axis=1)
    lead = low[every, worst]
    if isinstance(questions[0], Leads):
        fine = (low > 0) | ((low == 0) & (np.arange(vocab) > front[:, None]))
    else:
        fine = low >= by[:, None]
    terms, errors = (nearly(part[:, every, worst]) for part in (apart.terms, apart.errors))
    terms[0] -= by
    return Findings((fine | ~led).all(axis=1), lead, front, terms, errors, keys)


def bounded(value: Form, keys: list[Key | None], questions: Sequence[Question]) -> Findings:
    """Whether the numbers that are asked for are within their bounds, case by case."""
    asked = [one for one in questions if isinstance(one, Bounded)]
    cases = np.arange(len(asked))
    index: tuple[Any, ...] = tuple(
        np.array([one.index[axis] % side for one in asked]) for axis, side in enumerate(value.shape)
    )
    terms, errors = (part[(slice(None), cases, *index)] for part in (value.terms, value.errors))
    low, high = ends(Form(terms, errors))
    if value.absent is not None:
        hidden = np.broadcast_to(value.absent, value.terms.shape[1:])[(cases, *index)]
        low, high = np.where(hidden, 0.0, low), np.where(hidden, 0.0, high)
    lead = np.array([
        _slack(one, Fraction(least), Fraction(most)) if isfinite(least) and isfinite(most) else -inf
        for one, least, most in zip(asked, low.tolist(), high.tolist(), strict=True)
    ])  # fmt: skip
    sign = np.where([one.most for one in asked], -1.0, 1.0)
    line = nearly(terms) * sign
    line[0] -= sign * np.array([float(one.bound) for one in asked])
    none = np.zeros(len(asked), dtype=np.intp)
    return Findings(lead >= 0, lead, none, line, nearly(errors), keys)


def _slack(asked: Bounded, low: Fraction, high: Fraction) -> float:
    """How far a number between these ends is from its bound, on the right side; rounded down."""
    return -above(high - asked.bound if asked.most else asked.bound - low)


def nearly(part: Any) -> Floats:
    """Terms or errors as floats, which are no bounds."""
    found: Floats = np.array(arithmetic_of(part).nearly(part), dtype=np.float64)
    return found


def _both(one: Findings, other: Findings) -> Findings:
    """What two models have found together: the smaller lead of each case."""
    keys = list(dict.fromkeys((*one.keys, *other.keys)))
    second = other.lead < one.lead
    terms, errors = (
        np.where(second, _lined_up(others, other.keys, keys), _lined_up(own, one.keys, keys))
        for own, others in ((one.terms, other.terms), (one.errors, other.errors))
    )
    least = np.minimum(one.lead, other.lead)
    return Findings(one.holds & other.holds, least, one.ahead, terms, errors, keys)


def _lined_up(rows: Floats, own: list[Key | None], keys: list[Key | None]) -> Floats:
    """Rows (letter + 1, case) in the order of other keys."""
    found = np.zeros((1 + len(keys), rows.shape[1]))
    found[0] = rows[0]
    for row, key in zip(rows[1:], own, strict=False):
        found[1 + keys.index(key)] += row
    return found
