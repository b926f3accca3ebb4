"""The newer operations of the way back in limbs: real values are inside, alone and in whole passes.

The truth is `oracles.learning` on Arb balls, written from the definitions alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import ctx
from real_values import ORACLE, Pair, contained

import byhand
from byhand import forward
from byhand.backward import adjoint
from byhand.evaluate import work_out
from byhand.models import open_model
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.limbs import arithmetic
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.enclosed.limbs.values import Enclosed, by_entry
from byhand.proving.digits import gradients_of_weights
from oracles import learning, vocabulary_models
from oracles.vocabulary import Truth, number

TRUTH = Truth(ORACLE.bits)
SEEN = [[j <= i for j in range(4)] for i in range(3)]
RADII = (None, 2.0**-60, 2.0**-5)
SIZES = (2.0**-9, 1.0, 20.0)
NEW = ("relu2", "quick_gelu", "gelu_fast", "gelu_bloom", "sigmoid", "tanh")
CAPS = tuple(map(Fraction, ("1/3", "5/2", "30")))


class Sides:
    """Draws values for limbs and for the truth, and works an operation out on both sides."""

    def __init__(self, system: Limbs, seed: int, *, aligned: bool = False) -> None:
        self.system, self.random, self.aligned = system, np.random.default_rng(seed), aligned

    def one_of(self, choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def pair(self, *shape: int, size: float | None = None) -> tuple[Any, Any]:
        size = self.one_of(SIZES) if size is None else size
        made = Pair(self.random, shape, self.one_of(RADII), size, self.system, aligned=self.aligned)
        return made.enclosed, TRUTH._balls(made.known)

    def both(self, operation: str, *values: tuple[Any, Any], **settings: Any) -> tuple[Any, Any]:
        with ctx.workprec(TRUTH.bits):
            known = {name: number(x) if isinstance(x, Fraction) else x
                     for name, x in settings.items()}  # fmt: skip
            real = [np.where(side[1] == ABSENT, None, side[1]) for side in values]
            truth = getattr(learning, operation)(*real, **known)
            truth[truth == 0] = number(0)  # a masked place is the integer 0
        made = getattr(self.system, operation)(*(side[0] for side in values), **settings)
        return made, truth

    def inside(self, operation: str, *values: tuple[Any, Any], **settings: Any) -> float:
        return contained(self.system, *self.both(operation, *values, **settings), finite=False)


def columns(s: Sides) -> float:
    return s.inside("columns", s.pair(2, 3, 5), start=1, width=3)


def hidden(s: Sides, size: float = 1.0) -> tuple[Any, Any]:
    """Scores of three queries and four keys, some of them masked."""
    q, k = s.pair(2, 3, 2, size=size), s.pair(2, 4, 2, size=1.0)
    seen: dict[str, Any] = {"mask": SEEN, "queries": range(3), "keys": range(4)}
    return s.system.scores(q[0], k[0], **seen), TRUTH.scores(q[1], k[1], **seen)


def unmasked(s: Sides) -> float:
    return s.inside("unmasked", hidden(s))


def bucket_back(s: Sides) -> float:
    buckets = s.random.integers(0, 4, (3, 4)).tolist()
    grad = hidden(s)
    grad = s.system.unmasked(grad[0]), learning.shown(np.where(grad[1] == ABSENT, None, grad[1]))
    return s.inside("bucket_back", grad, buckets=buckets, rows=6)


def sinks_back(s: Sides) -> float:
    scores, sinks = hidden(s), s.pair(1, 2, size=2.0)
    one = by_entry(sinks[0].digits[0], None if sinks[0].exact else sinks[0].box[0])
    ours = s.system.softmax(scores[0], sinks=one)
    real = TRUTH.softmax(scores[1], sinks=sinks[1][0])
    return s.inside("sinks_back", (ours, real), s.pair(2, 3))


def cap_back(s: Sides) -> float:
    return s.inside("cap_back", hidden(s), hidden(s, size=s.one_of(SIZES)), cap=s.one_of(CAPS))


def clamp_back(s: Sides) -> float:
    most = s.one_of((None, *CAPS))
    least = s.one_of((None, -CAPS[0], CAPS[0] / 2) if most else (-CAPS[0],))
    limits = {name: x for name, x in (("least", least), ("most", most)) if x is not None}
    return s.inside("clamp_back", s.pair(3, 5), s.pair(3, 5), **limits)


def sum_experts(s: Sides) -> float:
    return s.inside("sum_experts", s.pair(3, 2, 4))


def expert_outer(s: Sides) -> float:
    x = s.pair(3, 4, 2) if s.one_of((True, False)) else s.pair(4, 2)
    return s.inside("expert_outer", x, s.pair(3, 4, 5), layout=s.one_of(("in_out", "out_in")))


def expert_sums(s: Sides) -> float:
    return s.inside("expert_sums", s.pair(3, 4, 2))


def spread(s: Sides) -> float:
    return s.inside("spread", s.pair(3, 4), s.pair(3, 2))


def expert_dots(s: Sides) -> float:
    return s.inside("expert_dots", s.pair(3, 2, 4), s.pair(2, 4))


def expert_shares_back(s: Sides) -> float:
    scores = s.pair(3, 5, size=1.0)
    settings: dict[str, Any] = {"normalised": s.one_of((True, False))}
    settings["alone"] = s.one_of((True, False))
    if settings["alone"]:
        scores = (
            s.system.activate(scores[0], kind="sigmoid"),
            TRUTH.activate(scores[1], kind="sigmoid"),
        )
        settings |= s.one_of(({}, {"eps": Fraction(1, 3)}))
    settings |= s.one_of(({}, {"scale": Fraction(5, 2)}))
    count = s.one_of((1, 2))
    chosen = s.system.choose(scores[0], count=count), TRUTH.choose(scores[1], count=count)
    shares = (
        s.system.expert_shares(scores[0], chosen[0], **settings),
        TRUTH.expert_shares(scores[1], chosen[1], **settings),
    )
    return s.inside("expert_shares_back", scores, chosen, shares, s.pair(3, 5), **settings)


OPERATIONS: dict[str, Callable[[Sides], float]] = {
    one.__name__: one
    for one in (
        columns, unmasked, bucket_back, sinks_back, cap_back, clamp_back, sum_experts, expert_outer,
        expert_sums, spread, expert_dots, expert_shares_back,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_real_values_lie_in_what_an_operation_makes_of_enclosures(name: str) -> None:
    used = 0.0
    for seed in range(8):
        sides = Sides(Limbs(60), seed, aligned=seed % 4 > 1)
        used = max(used, OPERATIONS[name](sides))
    assert 0.05 < used <= 1


@pytest.mark.parametrize("name", OPERATIONS)
def test_tensors_work_out_the_same(name: str) -> None:
    pytest.importorskip("torch")
    OPERATIONS[name](Sides(Limbs(90, "cpu"), 1))


def test_slopes_of_the_newer_activations() -> None:
    used = 0.0
    for kind, radius in product(NEW, (None, 2.0**-30, 0.5)):
        made = Pair(np.random.default_rng(3), (2, 4), radius, 3.0, aligned=True)
        pair = made.enclosed, TRUTH._balls(made.known)
        used = max(used, Sides(Limbs(44), 0).inside("slope", pair, kind=kind))
    assert used > 0.9


@pytest.mark.parametrize(("kind", "place"), [("sigmoid", 1.3169578969), ("tanh", 0.6584789485)])
def test_a_slope_that_bends_as_much_as_it_can_uses_its_whole_radius(
    kind: str, place: float
) -> None:
    """The slopes of sigmoid and tanh change fastest where s and t are 1/2 ± 1/√12 and ±1/√3."""
    x = known([[place]], 2.0**-20)
    real = np.array([[Fraction(place) - Fraction(1, 2**20)]], object)
    pair = x, TRUTH._balls(ORACLE.admit(real))
    assert 0.96 < Sides(Limbs(44), 0).inside("slope", pair, kind=kind) <= 1


# ------------------------------------------------------------------ whole passes


@pytest.mark.parametrize("drawn", [(0, 0), (5, 4)], ids=["a decoder", "an encoder too"])
def test_gradients_of_models_with_every_newer_field_contain_the_real_values(drawn: Any) -> None:
    """Between them the two models have every operation of this room."""
    model = vocabulary_models.drawn_model(*drawn)
    source = None if model.source is None else len(model.source)
    given: dict[str, Any] = {"source": source, "segments": model.segments}
    plan = adjoint(forward.plan(model.spec, len(model.tokens), losses=True, **given))
    targets = tuple((token + 1) % model.spec.vocab for token in model.tokens)
    system = Limbs(90)
    ours, real = (
        work_out(plan, model.weights, model.tokens, numbers, source=model.source, targets=targets)
        for numbers in (system, TRUTH)
    )
    for step in plan:
        if step.address.startswith("grad."):
            made = ours[step.address].value
            contained(system, made, real[step.address].value)
            assert made.exact or made.box.max() < 2.0**-24, step.address


# ------------------------------------------------------------------ what is known to be zero


def known(rows: Any, radius: float = 0.0) -> Enclosed:
    digits = arithmetic.from_floats(np.array(rows))[0]
    return by_entry(digits, np.full(digits.shape, radius) if radius else None)


def ends(value: Any) -> Any:
    entries = np.asarray(Limbs(100).entries(value))
    return [(float(entry.lower), float(entry.upper)) for entry in entries.ravel()]


def test_a_gradient_beyond_a_limit_is_zero_and_open_where_the_limit_is_not_decided() -> None:
    grad, x = known([[3.0, 3.0, 3.0, 3.0]]), known([[0.5, 2.0, 1.2, 0.8]], 0.25)
    made = Limbs(100).clamp_back(grad, x, most=Fraction(1))
    wanted = [(3.0, 3.0), (0.0, 0.0), (0.0, 3.0), (0.0, 3.0)]
    assert np.allclose(ends(made), wanted, rtol=0, atol=0.02)
    assert ends(made)[1] == (0.0, 0.0)


@pytest.mark.parametrize("beyond", [False, True])
def test_a_limit_belongs_to_what_is_within(beyond: bool) -> None:
    x = known([[1 + 2.0**-50, -1 - 2.0**-50] if beyond else [1.0, -1.0]])
    made = Limbs(100).clamp_back(known([[3.0, 5.0]]), x, least=Fraction(-1), most=Fraction(1))
    assert ends(made) == ([(0.0, 0.0)] * 2 if beyond else [(3.0, 3.0), (5.0, 5.0)])


@pytest.mark.parametrize("way", [-1, 1])
def test_what_a_limit_decides_is_open_up_to_the_radius(way: int) -> None:
    """A number 95 parts of a hundred of its radius away from a limit may be on the other side."""
    x = known([[1 + way * 0.95 * 2.0**-8]], 2.0**-8)
    made = Limbs(100).clamp_back(known([[3.0]]), x, most=Fraction(1))
    assert ends(made)[0][0] <= 0 < 3 <= ends(made)[0][1]


def test_an_expert_that_is_not_chosen_gets_exactly_nothing() -> None:
    system, x = Limbs(100), known([[2.0, 1.0, 1.5]], 2.0**-9)
    chosen = system.choose(x, count=2)
    shares = system.expert_shares(x, chosen, normalised=True)
    grad = known([[1.0, -1.0]], 2.0**-9)
    spread = system.spread(grad, shares)
    assert ends(spread)[2:4] == [(0.0, 0.0)] * 2
    outer = ends(system.expert_outer(known([[1.0, 3.0]], 2.0**-9), spread, layout="in_out"))
    assert outer[4:8] == [(0.0, 0.0)] * 4
    assert all(low < high for low, high in outer[:4])
    assert ends(system.expert_sums(spread))[2:4] == [(0.0, 0.0)] * 2


@pytest.mark.parametrize(("alone", "eps"), [(False, None), (True, None), (True, Fraction(1, 2))])
def test_nothing_moves_the_share_of_one_expert_but_eps(alone: bool, eps: Fraction | None) -> None:
    system, x = Limbs(100), known([[2.0, 1.0]], 2.0**-9)
    how: dict[str, Any] = {"normalised": True, "alone": alone, "eps": eps}
    chosen = system.choose(x, count=1)
    shares = system.expert_shares(x, chosen, **how)
    made = ends(system.expert_shares_back(x, chosen, shares, known([[3.0, 4.0]], 2.0**-9), **how))
    assert made[1] == (0.0, 0.0)
    assert (made[0] == (0.0, 0.0)) == (eps is None)
    assert eps is None or made[0][0] < 3 * 0.5 / 2.5**2 < made[0][1]


# ------------------------------------------------------------------ proven digits


def test_digits_of_gradients_of_an_encoder_and_a_decoder_are_proven_by_limbs() -> None:
    drawn = vocabulary_models.drawn_model(5, 4)
    own: Any = open_model("tiny")
    letters = replace(own.vocabulary, tokens=tuple("abcde"))
    model = replace(own, spec=drawn.spec, weights=drawn.weights, vocabulary=letters,
                    text=None, output_words=None, dimensions={})  # fmt: skip
    plan = adjoint(forward.plan(drawn.spec, 2, source=3, losses=True))
    asked = [address for address in gradients_of_weights(plan)
             if re.search(r"relative|sinks|router|attn\.k", address)]  # fmt: skip
    assert len(asked) > 3
    trace = byhand.trace(
        model, "a c", source="b a d", numbers="digits 8", device="cpu", losses=True, backward=True,
        only=asked,
    )  # fmt: skip
    assert trace.proof is not None
    assert trace.proof.complete
    assert {type(worked.numbers) for worked in trace.values()} == {Limbs}


def test_entries_that_are_zero_by_algebra_are_set_to_zero_and_no_others() -> None:
    x = known([[1e-9, 2.0], [0.5, 1e-9]], 2.0**-9)
    made = Limbs(100).with_zeros(x, [(0, 0), (1, 1)])
    assert ends(made) == [(0.0, 0.0), ends(x)[1], ends(x)[2], (0.0, 0.0)]
