"""Random properties of random tiny models, and their truth by plain traces of every text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

from byhand import forward
from byhand.evaluate import check_reach, work_out
from byhand.model import Model
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.proving.claims import Agree, AtLeast, Claim, Function, Lead, Next, Same
from byhand.proving.domain import Computed, Place, Region, Shape, Variable, Whole
from byhand.proving.properties import Goal, Property
from byhand.proving.reading.wholes import Varies
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights
from oracles.architectures import at_random, make_case, nasty, ordinary

BITS = 300
TIED = Fraction(1, 2**200)  # nearer than this is the same
VOCAB = 3


def random_model(random: Random) -> Model:
    """A model of up to two blocks with three tokens; half of them with weights that tie."""
    choose = at_random(random)

    def asked(question: str, options: Any) -> Any:
        return VOCAB if question == "vocab" else choose(question, options)

    entry = random.choice((ordinary, nasty))
    case = make_case(asked, random.randrange(10**9), largest=3, entry=entry)
    return Model(case.spec, case.weights, Ids(VOCAB))


def shifted(model: Model, random: Random) -> Model:
    """The model with one entry of its embedding moved a little."""
    data = model.weights["embed.token"].data.copy()
    place = random.randrange(len(data)), random.randrange(data.shape[1])
    if isinstance(data[place], Fraction):
        data[place] += Fraction(random.choice((1, -1, 5)), 10 ** random.randint(1, 4))
    tensors = {**model.weights, "embed.token": Tensor("embed.token", data)}
    return replace(model, weights=Weights(tensors))


def random_shape(random: Random) -> Shape:
    """Some places: variables, sums and differences of them, fixed tokens, functions."""
    count = random.randint(1, 4)
    names = [f"v{k}" for k in range(random.randint(1, 3))]
    variables = tuple(
        Variable(name, tuple(sorted(random.sample(range(-2, 5), random.randint(2, 4)))))
        for name in names
    )
    places = []
    for _place in range(count):
        kind = random.random()
        tokens = {number: random.randrange(VOCAB) for number in range(-8, 12)}
        if kind < 0.5:
            places.append(Place(Whole(0, ((random.choice(names), 1),)), tokens))
        elif kind < 0.75:
            first, factor = random.choice(names), random.choice((1, -1, 2))
            other = random.choice(names)
            factors = ((first, factor), (other, 1)) if other != first else ((first, factor),)
            some = random.sample(sorted(tokens), random.randint(8, 20))
            places.append(
                Place(Whole(random.randint(-1, 1), factors), {n: tokens[n] for n in some})
            )
        elif kind < 0.9:
            places.append(Place.of_token(random.randrange(VOCAB)))
        else:
            name = random.choice(names)

            def parity(values: Mapping[str, Any], name: str = name) -> int:
                if not isinstance(values[name], int):
                    raise Varies(name)
                return values[name] % 2

            places.append(Place(Computed(parity, (0, 1)), {0: 0, 1: random.randrange(VOCAB)}))
    conditions = ()
    if random.random() < 0.3:
        conditions = (
            Whole(random.randint(0, 3), ((random.choice(names), random.choice((1, -1))),)),
        )
    return Shape(tuple(places), variables, conditions)


def table_of(answers: Mapping[tuple[tuple[str, int], ...], Any]) -> Function:
    """A function given by a table; over a region it varies until one answer is left."""

    def call(values: Mapping[str, Any]) -> Any:
        known = {name: value for name, value in values.items() if isinstance(value, int)}
        found = {
            answer
            for key, answer in answers.items()
            if all(dict(key)[name] == value for name, value in known.items())
        }
        if len(found) > 1:
            raise Varies(*(name for name in values if name not in known))
        return next(iter(found)) if found else (0,)

    return Function(call, "a table")


def key_of(assigned: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(assigned.items()))


class Truth:
    """Every text of a shape by a plain trace in balls."""

    def __init__(self, model: Model, shape: Shape) -> None:
        self.model = model
        whole = shape.whole
        self.region = whole if whole is not None else Region(shape, {})
        self.assignments = [] if whole is None else list(whole.assignments())
        self._worked: dict[tuple[int, ...], Any] = {}

    def step(self, assigned: Mapping[str, int], address: str) -> Any:
        tokens = self.region.text(assigned)
        if tokens not in self._worked:
            plan = forward.plan(self.model.spec, len(tokens))
            self._worked[tokens] = work_out(plan, self.model.weights, tokens, Balls(BITS))
        worked = self._worked[tokens][address]
        return None if worked.missing is not None else worked

    def logits(self, assigned: Mapping[str, int]) -> list[Fraction]:
        worked, last = self.step(assigned, "logits"), len(self.region.shape.places) - 1
        found: list[Enclosure] = [worked.at((last, id)) for id in range(self.model.spec.vocab)]
        assert all(one.rad < TIED for one in found)
        return [one.mid for one in found]

    def next(self, assigned: Mapping[str, int]) -> int:
        logits = self.logits(assigned)
        most = max(logits)
        return next(id for id, logit in enumerate(logits) if logit > most - TIED)


def random_property(seed: int) -> tuple[Property, list[tuple[int, ...]]]:
    """A property, and the texts for which it does not hold."""
    random = Random(seed)
    while True:
        model, shape = random_model(random), random_shape(random)
        truth = Truth(model, shape)
        if not truth.assignments:
            continue
        try:
            check_reach(forward.plan(model.spec, len(shape.places)), model.weights)
            kind = random.choice((_next, _next, _lead, _weight, _same, _agree))
            found = kind(random, truth)
        except (AssertionError, AttributeError):  # a number that nobody knows, such as 0/0
            continue
        if found is not None:
            claim, failing = found
            return Property(model, (Goal(shape, claim),), model, source={"seed": seed}), failing


Made = tuple[Claim, list[tuple[int, ...]]] | None


def _next(random: Random, truth: Truth) -> Made:
    """The true answers, or others in a few places; sometimes several are allowed."""
    right = {key_of(one): truth.next(one) for one in truth.assignments}
    answers = {key: (id,) for key, id in right.items()}
    if random.random() < 0.4:
        for key in random.sample(sorted(answers), random.randint(1, min(2, len(answers)))):
            answers[key] = (random.randrange(VOCAB),)
    if random.random() < 0.3:
        extra = random.randrange(VOCAB)
        answers = {key: tuple(dict.fromkeys((*ids, extra))) for key, ids in answers.items()}
    failing = [
        truth.region.text(one)
        for one in truth.assignments
        if right[key_of(one)] not in answers[key_of(one)]
    ]
    return Next(table_of(answers)), failing


def _lead(random: Random, truth: Truth) -> Made:
    """One logit leads another by what is just true, just false, or exactly so."""
    a, b = random.sample(range(VOCAB), 2)
    leads = {}
    for one in truth.assignments:
        logits = truth.logits(one)
        leads[key_of(one)] = logits[a] - logits[b]
    least = min(leads.values())
    nearby = least + random.choice((-1, 1)) * Fraction(1, 10 ** random.randint(1, 30))
    by = random.choice((nearby, least.limit_denominator(10**6)))
    failing = [truth.region.text(one) for one in truth.assignments
               if leads[key_of(one)] < by - TIED]  # fmt: skip
    claim = Lead(Function(lambda _values: a, str(a)), Function(lambda _values: b, str(b)), by)
    return claim, failing


def _weight(random: Random, truth: Truth) -> Made:
    """An attention weight of the last position is at least (or at most) a bound near the truth."""
    blocks = [n for n, block in enumerate(truth.model.spec.blocks) if block.attention]
    if not blocks:
        return None
    block = random.choice(blocks)
    attention = truth.model.spec.blocks[block].attention
    assert attention is not None
    place = random.randrange(attention.heads), -1, random.randrange(len(truth.region.shape.places))
    most = random.random() < 0.3
    shares = {}
    for one in truth.assignments:
        worked = truth.step(one, f"block.{block}.attn.weights")
        last = len(truth.region.shape.places) - 1
        share = worked.at((place[0], last, place[2]))
        if share is ABSENT:
            shares[key_of(one)] = Fraction(0)
        else:
            assert share.rad < TIED
            shares[key_of(one)] = share.mid
    edge = max(shares.values()) if most else min(shares.values())
    bound = edge + random.choice((-1, 1)) * Fraction(1, 10 ** random.randint(1, 25))
    failing = [
        truth.region.text(one)
        for one in truth.assignments
        if (shares[key_of(one)] > bound + TIED if most else shares[key_of(one)] < bound - TIED)
    ]
    address = f"block.{block}.attn.weights"
    return AtLeast(address, Function(lambda _values: place, str(place)), bound, most), failing


def _same(random: Random, truth: Truth) -> Made:
    """All predictions are the first one."""
    first = truth.next(truth.assignments[0])
    return Same(), [truth.region.text(one) for one in truth.assignments if truth.next(one) != first]


def _agree(random: Random, truth: Truth) -> Made:
    """A model that was moved a little predicts the same."""
    other = shifted(truth.model, random)
    again = Truth(other, truth.region.shape)
    return Agree(other), [
        truth.region.text(one) for one in truth.assignments if truth.next(one) != again.next(one)
    ]
