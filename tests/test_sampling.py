"""Drawing a token: the chances are those of transformers, and a seed pins what is drawn."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.generation.logits_process import (
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from byhand.errors import InputError, UsageError
from byhand.expression import parse
from byhand.generating import Sampling, generate
from byhand.generating.sampling import Dice, nucleus
from byhand.model import Model
from byhand.numbers.base import nearest_float
from byhand.numbers.exact import Exact
from byhand.numbers.pencil import Pencil
from byhand.plan import Step
from byhand.worked import Worked
from oracles.counter import counter


def floats_of(logits: np.ndarray[Any, Any]) -> tuple[Worked, Worked]:
    class Plain(Pencil):
        """Stands for any system of rounded numbers."""

    step = Step("logits", "linear", {}, ("pos", "vocab"), (1, logits.size), "")
    worked = Worked(step, logits.reshape(1, -1), Plain(3))
    return worked, worked


@pytest.mark.parametrize("seed", range(30))
def test_chances_are_those_of_transformers(seed: int) -> None:
    random = np.random.default_rng(seed)
    logits = random.normal(scale=3, size=random.integers(2, 60))
    temperature = float(random.choice([0.3, 0.7, 1.0, 1.9]))
    top_k = random.choice([None, 1, 3, 10, 1000])
    top_p = random.choice([None, 0.1, 0.5, 0.9, 0.999])
    scores = torch.from_numpy(logits).unsqueeze(0)
    ids: Any = None
    scores = TemperatureLogitsWarper(temperature)(ids, scores)
    if top_k is not None:
        scores = TopKLogitsWarper(int(top_k))(ids, scores)
    if top_p is not None:
        scores = TopPLogitsWarper(float(top_p))(ids, scores)
    expected = scores.softmax(-1)[0].numpy()
    sampling = Sampling(Fraction(str(temperature)), top_k, top_p and Fraction(str(top_p)), seed=0)
    chances = sampling.chances(*floats_of(logits))
    assert np.array_equal(chances > 0, expected > 0)
    np.testing.assert_allclose(chances, expected, rtol=1e-13, atol=0)


def test_all_that_tie_with_the_last_of_the_top_k_may_be_drawn() -> None:
    logits = np.array([1.0, 2.0, 1.0, 0.0])
    expected = TopKLogitsWarper(2)(None, torch.from_numpy(logits)[None]).softmax(-1)[0]
    chances = Sampling(top_k=2, seed=0).chances(*floats_of(logits))
    assert (chances > 0).tolist() == (expected > 0).tolist() == [True, True, True, False]


def test_the_top_p_ends_with_the_token_that_reaches_it() -> None:
    shares = np.array([0.25, 0.5, 0.25])
    assert nucleus(shares, 0.5).tolist() == [False, True, False]
    assert nucleus(shares, 0.51).tolist() == [True, True, False]  # of a tie, the lowest id
    assert nucleus(shares, 0.01).tolist() == [False, True, False]  # always one at least
    assert nucleus(shares, 0.76).tolist() == [True, True, True]
    assert np.flatnonzero(nucleus(np.full(100, 0.01), 0.295)).tolist() == list(range(30))


def test_a_top_p_of_one_leaves_every_token_in() -> None:
    logits = np.array([0.0, -40.0, -45.0])
    chances = Sampling(top_p=Fraction(1), seed=0).chances(*floats_of(logits))
    assert (chances > 0).all()


@pytest.mark.parametrize("temperature", ["1e-400", "1e-320", "1e308", "1e400"])
def test_extreme_temperatures_are_their_limits(temperature: str) -> None:
    logits = np.array([3.0, 1.0, 3.0, -np.inf])
    chances = Sampling(Fraction(temperature), seed=0).chances(*floats_of(logits))
    cold = temperature.startswith("1e-")
    expected = [0.5, 0.0, 0.5, 0.0] if cold else [1 / 3, 1 / 3, 1 / 3, 0.0]
    assert chances == pytest.approx(expected)


@pytest.mark.parametrize("wrong", [np.inf, np.nan])
def test_nothing_is_drawn_from_what_is_not_a_number(wrong: float) -> None:
    with pytest.raises(InputError, match="logits: the logits are not finite numbers"):
        Sampling(seed=0).chances(*floats_of(np.array([1.0, wrong])))


def test_exact_chances_are_exact_with_the_temperature_and_rounded_once(tiny: Model) -> None:
    generation = generate(tiny, "a", temperature=0.5, seed=1)
    chosen = next(generation)
    logit = (2, -2, 0)[chosen.id]  # 1, -1 and 0, over one half
    value = Exact().scalar(parse(f"exp({logit})/(exp(2) + exp(-2) + 1)"))
    assert chosen.chance == nearest_float(value)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20).filter(any), st.integers(0, 2**64 - 1))
def test_what_has_no_chance_is_never_drawn(chances: list[float], seed: int) -> None:
    array = np.array(chances)
    assert array[Dice(seed).draw(array)] > 0


@pytest.mark.parametrize(
    ("throw", "chances", "drawn"),
    [
        (0.0, [0.0, 0.5, 0.5], 1),
        (0.5, [0.5, 0.0, 0.5], 2),
        (0.4999, [0.5, 0.0, 0.5], 0),
        (1 - 2**-53, [0.1, 0.7, 0.2, 0.0], 2),
        (1 - 2**-53, [0.1] * 10, 9),
    ],
)
def test_a_throw_on_an_edge_draws_the_token_that_begins_there(
    throw: float, chances: list[float], drawn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dice, "throw", lambda self: throw)
    assert Dice(0).draw(np.array(chances)) == drawn


def test_the_dice_are_those_of_numpy() -> None:
    dice, generator = Dice(7), np.random.Generator(np.random.PCG64(7))
    throws = [dice.throw() for _throw in range(1000)]
    assert throws == generator.random(1000).tolist()


def test_tokens_are_drawn_as_often_as_their_chances_say() -> None:
    dice, chances = Dice(0), np.array([0.1, 0.0, 0.6, 0.3])
    counts = np.bincount([dice.draw(chances) for _throw in range(20_000)], minlength=4)
    assert counts / 20_000 == pytest.approx(chances, abs=0.01)


def drawn(**settings: Any) -> str:
    generation = generate(counter(), "a", count=24, **settings)
    list(generation)
    return generation.added


def test_a_seed_draws_the_same_text_on_every_machine() -> None:
    assert drawn(temperature=1, seed=1) == "bdadabcdaabcdbcdabccdabd"
    assert drawn(temperature=1, seed=2) != drawn(temperature=1, seed=1)
    assert drawn(top_k=4, seed=1) == drawn(temperature=1, seed=1)


def test_a_cold_draw_is_the_most_probable_token_but_never_proven() -> None:
    assert drawn(temperature=0.01, seed=1) == "bcdabcdabcdabcdabcdabcda"
    assert drawn(top_k=1, seed=1) == "bcdabcdabcdabcdabcdabcda"
    chosen = next(generate(counter(), "a", top_k=1, seed=1))
    assert (chosen.proven, chosen.rank, chosen.chance, chosen.margin) == (False, 1, 1.0, None)


def test_a_seed_that_was_not_given_is_told_and_draws_the_same_again() -> None:
    first = generate(counter(), "a", temperature=1)
    again = generate(counter(), "a", temperature=1, seed=first.seed)
    assert [c.id for c in first] == [c.id for c in again]
    assert generate(counter(), "a").seed is None
    assert len({generate(counter(), "a", temperature=1).seed for _time in range(4)}) > 1


def test_a_float_is_the_decimal_it_was_written_as() -> None:
    generation = generate(counter(), "a", temperature=0.7, top_p=0.9)
    assert generation.sampling is not None
    assert generation.sampling.temperature == Fraction(7, 10)
    assert generation.sampling.top_p == Fraction(9, 10)


def test_the_rank_counts_the_more_probable_tokens() -> None:
    for chosen in generate(counter(), "a", count=24, temperature=3, seed=5):
        assert chosen.rank == (1 if chosen.probability > Fraction(1, 2) else 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0}, "the temperature has a value that does not fit\n"
         "  expected: a number above 0\n  found: 0\n"
         "  hint: without a temperature, the most probable token is taken"),
        ({"temperature": -1.5}, "the temperature has a value that does not fit\n"
         "  expected: a number above 0\n  found: -1.5"),
        ({"temperature": float("nan")}, "an option has a value that does not fit\n"
         "  expected: a finite number\n  found: nan"),
        ({"top_k": 0}, "top-k has a value that does not fit\n"
         "  expected: a whole number of at least 1\n  found: 0"),
        ({"top_p": 0}, "top-p has a value that does not fit\n"
         "  expected: a number above 0 and at most 1\n  found: 0"),
        ({"top_p": 1.5}, "top-p has a value that does not fit\n"
         "  expected: a number above 0 and at most 1\n  found: 1.5"),
        ({"count": 0}, "the number of tokens has a value that does not fit\n"
         "  expected: a whole number of at least 1\n  found: 0"),
        ({"temperature": 1, "seed": -1}, "the seed has a value that does not fit\n"
         "  expected: a whole number of at least 0\n  found: -1"),
        ({"seed": 3}, "a seed is given, but nothing is drawn\n"
         "  hint: give a temperature, a top-k or a top-p as well"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_told(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        generate(counter(), "a", **settings)
    assert str(caught.value) == message
