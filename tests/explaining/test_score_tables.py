"""Models whose table of scores forbids a position to see itself: every way of looking at them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from byhand import forward
from byhand.document.compose.book import bind
from byhand.document.compose.explanation.inputs import tell_inputs
from byhand.document.parts import NumberTable
from byhand.editions import edition_of
from byhand.errors import InputError
from byhand.evaluate import trace, work_out
from byhand.explaining.approximations import near_entry
from byhand.explaining.circuits import circuits
from byhand.explaining.inputs import table
from byhand.files import parse_model
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from byhand.numbers.tensors import Tensors
from byhand.serving import Library, answer

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SYSTEMS = [Exact, lambda: Balls(80), lambda: Floats("float32"), lambda: Pencil(4), Tensors]

MUTUAL = """
name: mutual
vocabulary: [a, b]
text: a b
model:
  d_model: 2
  context: 3
  layers: 1
  attention: {heads: 1, d_head: 2, score_table: true, causal: false}
  mlp: none
weights:
  embed.token: [[1, 0], [0, 1]]
  block.0.attn.q: identity
  block.0.attn.k: [[1, 1], [0, 1]]
  block.0.attn.v: [[1, 0], [1, 1]]
  block.0.attn.score_table: [[[masked, 0, 0], [0, masked, 0], [0, 0, masked]]]
  block.0.attn.out: identity
"""


def example(name: str) -> Model:
    return open_model(EXAMPLES / f"{name}.yaml")


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    ("name", "places"), [("clock", [(1, 0)]), ("thermometer", [(3, 3), (3, 0)])]
)
def test_a_key_stands_where_its_head_may_look(
    name: str, places: list[tuple[int, int]], system: Any
) -> None:
    whole = trace(example(name), numbers=system())
    found = circuits(whole, 0)
    assert [head.positions for head in found] == places
    scores = whole["block.0.attn.scores"]
    for head in found:
        query, key = head.positions
        mine = head.qk.at(whole.tokens[query], whole.tokens[key])
        assert mine is not ABSENT
        same = scores.at((head.head, query, key))
        assert near_entry(mine) == pytest.approx(near_entry(same))


@pytest.mark.parametrize("system", [*SYSTEMS, lambda: Limbs(80)])
def test_positions_that_see_only_each_other_are_looked_at_in_every_number_system(
    system: Any,
) -> None:
    found = circuits(trace(parse_model(MUTUAL), numbers=system()), 0)
    assert [head.positions for head in found] == [(1, 0)]
    assert [near_entry(x) for x in found.heads[0].ov.entries[0]] == [1, 0]


def test_of_heads_that_look_elsewhere_each_says_where() -> None:
    assert circuits(trace(example("thermometer")), 0).said[:2] == (
        "head 0: the query stands at position 3, the key at position 3",
        "head 1: the query stands at position 3, the key at position 0",
    )
    said = circuits(trace(example("clock")), 0).said
    assert said[0] == "the query stands at position 1, the key at position 0"


def test_what_is_written_does_not_ask_the_table() -> None:
    """MUTUAL has no MLP and a tied head: the attention's logits are its output, share by share."""
    whole = trace(parse_model(MUTUAL))
    found = circuits(whole, 0, positions=(0, 1)).heads[0]
    row = found.ov.entries[found.ov.rows.index(whole.tokens[1])]
    assert row.tolist() == whole["block.0.attn.out"].array[0].tolist()  # all of its share


def test_scores_may_all_be_masked_where_nothing_shares_them_out() -> None:
    model = parse_model(MUTUAL)
    plan = forward.plan(model.spec, 1)
    scores = work_out(plan.only(["block.0.attn.scores"]), model.weights, [0], Exact())
    assert scores["block.0.attn.scores"].at((0, 0, 0)) is ABSENT
    with pytest.raises(InputError, match="position 0 may look at no key"):
        work_out(plan, model.weights, [0], Exact())


def test_texts_in_which_a_position_would_see_no_key_are_left_out_and_said_so() -> None:
    found = table(parse_model(MUTUAL))
    assert (found.unread, sorted({len(row.tokens) for row in found.rows})) == ((1,), [2, 3])
    assert found.proven == len(found.rows) == 12
    assert tell_inputs(found)[1] == (
        "Texts of one token are left out: a position of theirs may look at no key."
    )
    with pytest.raises(InputError, match="position 0 may look at no key"):
        table(parse_model(MUTUAL), 1)


def test_a_book_shows_such_a_table_head_by_head() -> None:
    book = bind(edition_of(trace(example("thermometer"))), "en")
    tables = [
        part
        for page in book.pages
        for passage in page.passages
        for part in passage.show
        if isinstance(part, NumberTable)
    ]
    assert all(one.rows or one.word for one in tables)
    own = {one.address: one for one in tables if "score_table" in one.address}
    assert sorted(own) == [f"weight.block.0.attn.score_table[{head}]" for head in range(2)]
    rows = own["weight.block.0.attn.score_table[1]"].rows
    assert [[number.cell.masked for number in row.numbers] for row in rows] == [
        [False, True, True, True]
    ] * 4


@pytest.mark.parametrize("name", ["clock", "thermometer"])
def test_the_page_shares_such_a_model(name: str) -> None:
    library = Library({name: EXAMPLES / f"{name}.yaml"})
    shared = answer(library, "share", {"state": {"model": {"name": name}}})
    assert "a position that may not be looked at" in shared["html"]
    assert answer(library, "explain", {"state": {"model": {"name": name}}})["attribution"]
