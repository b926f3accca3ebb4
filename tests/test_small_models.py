"""A model is small by its parameters, whatever tables it carries; a large table costs what is read.

`small` here has eight parameters and a table of 6,400 scores.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.counting import count
from byhand.document.compose.book.edition import PENCIL
from byhand.editions import make_edition
from byhand.evaluate import Admitted, pencil_sized, prepare
from byhand.model import Model
from byhand.models import open_model
from byhand.number_choice import numbers_for
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.parameters import size_of
from byhand.proving.digits import enclosing_numbers
from byhand.serving.views import model_data
from byhand.weights import Tensor, Weights

CONTEXT = 80


@pytest.fixture
def small(tmp_path: Any) -> Model:
    """Scores from a table that falls by one a position; the logits of a and b differ by a zero
    that only algebra sees."""
    file = tmp_path / "small.yaml"
    rows = [[f"{j - i}" if j <= i else "masked" for j in range(CONTEXT)] for i in range(CONTEXT)]
    table = ", ".join(f"[{', '.join(row)}]" for row in rows)
    file.write_text(
        "name: small\n"
        "vocabulary: [a, b]\n"
        "text: a b a\n"
        f"model: {{d_model: 1, context: {CONTEXT}, layers: 1,"
        " attention: {heads: 1, d_head: 1, scale: none, score_table: true}, mlp: none,"
        " head: {tied: false}}\n"
        "weights:\n"
        "  embed.token: [[1], [sqrt(2)*sqrt(3) - sqrt(6) + 1]]\n"
        "  block.0.attn.q: [[0]]\n"
        "  block.0.attn.k: [[0]]\n"
        "  block.0.attn.v: [[1]]\n"
        "  block.0.attn.out: [[sqrt(2)]]\n"
        "  head: [[sqrt(3) + sqrt(2), sqrt(5 + 2*sqrt(6))]]\n"
        f"  block.0.attn.score_table: [[{table}]]\n"
    )
    return open_model(file)


def test_parameters_make_a_model_large_and_buffers_do_not(small: Model) -> None:
    assert size_of(small.spec) == count(small.spec).total == 8
    assert count(small.spec)["count.buffers"] == CONTEXT**2 > 2_000
    assert pencil_sized(small)


def test_everybody_who_chooses_numbers_chooses_the_same(small: Model) -> None:
    assert isinstance(numbers_for(small), Exact)
    assert byhand.trace(small).numbers.name == "exact"
    edition = make_edition(small)
    assert (edition.trace.numbers.name, edition.scale) == ("exact", PENCIL)
    assert model_data(small, None)["exact"] is True


def test_exact_numbers_are_asked_about_ties_however_large_a_table_is(small: Model) -> None:
    trace = byhand.trace(small, digits=10, only=["next"])
    assert trace.proof is not None
    assert trace.proof.complete
    assert [found.tied for found in trace.next or []] == [(0, 1)] * 3


def test_balls_or_limbs_are_chosen_by_the_parameters(small: Model) -> None:
    wide = np.zeros((1, 4096, 4096), dtype=np.float32)
    floats = {
        name: Tensor(name, np.ones(tensor.shape, dtype=np.float32))
        for name, tensor in small.weights.items()
    }
    floats["block.0.attn.score_table"] = Tensor("block.0.attn.score_table", wide)
    model = replace(
        small, spec=replace(small.spec, context=4096), weights=Weights(floats), text="a b a"
    )
    assert isinstance(enclosing_numbers(model, 12), Balls)


@pytest.mark.parametrize(
    "numbers",
    [Exact(), Floats("float64"), Balls(80), Limbs(88)],
    ids=["exact", "floats", "balls", "limbs"],
)
def test_of_a_table_no_more_is_admitted_than_positions_reach(small: Model, numbers: Any) -> None:
    weights = {name: Tensor(name, np.zeros(tensor.shape)) for name, tensor in small.weights.items()}
    place = np.arange(CONTEXT, dtype=np.float64)
    table = (place[None, :] - 100 * place[:, None])[None]
    weights["block.0.attn.score_table"] = Tensor("block.0.attn.score_table", table)
    job = prepare(replace(small, weights=Weights(weights)), "a b a b a", numbers)
    seen: list[int] = []

    class Watched(Admitted):
        def _admit(self, name: str, data: Any, *more: Any) -> Any:
            if name.endswith(".score_table"):
                seen.append(data.shape[-1])
            return super()._admit(name, data, *more)

    trace = job.work(weights=Watched(job.model.weights, numbers))
    assert seen == [64]
    for (_head, query, key), score in trace["block.0.attn.scores"].entries():
        if score is not ABSENT:
            assert (score.mid if isinstance(score, Enclosure) else score) == key - 100 * query


def test_a_text_that_goes_on_reads_on_in_the_table(small: Model) -> None:
    whole = byhand.trace(small, "a b a a a a a a", exact=True)
    told = byhand.generate(small, "a b a", count=5, exact=True)
    assert [step.id for step in told] == [0] * 5
    assert [found.id for found in whole.next or []] == [0] * 8
