"""Embeddings moved by at most ε: what is proven holds for them, and large moves prove nothing."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from byhand import forward, open_model
from byhand.evaluate import work_out
from byhand.numbers.floats import Floats
from byhand.proving.outcome import PROVEN
from byhand.proving.properties import read_property
from byhand.proving.search import prove


def unmoved(model: str, distance: str) -> str:
    source = {"texts": {"length": 2}, "embeddings": {"within": distance}, "claim": "unmoved"}
    return prove(read_property(source, open_model(model))).answer


@pytest.mark.parametrize("distance", ["1/2", "1", "100"])
def test_a_move_that_changes_predictions_is_not_proven_harmless(distance: str) -> None:
    assert unmoved("abc", distance) != PROVEN


def test_what_is_proven_holds_wherever_the_rows_are_moved() -> None:
    distance = Fraction(1, 100)
    assert unmoved("abc", str(distance)) == PROVEN
    model, draw = open_model("abc"), Random(3)
    plan, numbers = forward.plan(model.spec, 2), Floats("float64")
    rows = np.array(model.weights["embed.token"].data, dtype=np.float64)

    def predicted(tokens: tuple[int, int], moves: list[list[float]]) -> int:
        given = {"embed.token": rows[list(tokens)] + np.array(moves)}
        worked = work_out(plan, model.weights, tokens, numbers, given=given)
        return worked["next"].value[-1].id

    for tokens in ((a, b) for a in range(3) for b in range(3)):
        still = predicted(tokens, [[0.0, 0.0]] * 2)
        for _try in range(10):
            corner = [[draw.choice((-0.01, 0.01)) for _entry in range(2)] for _row in range(2)]
            assert predicted(tokens, corner) == still
