"""Today's models in documents: every page, table and count of a model with the newer parts."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase

import pytest

import byhand
from byhand.counting import count
from byhand.document import words
from byhand.document.compose.book.topics import topics
from byhand.document.compose.tables import Tables, Window
from byhand.errors import InputError
from byhand.model import Model
from byhand.numbers.exact import Exact
from byhand.tokens import Vocabulary
from byhand.tracing import Trace
from oracles.hand_set import dyadic
from oracles.todays import todays

ENCODER, EXPERTS = 2, 4  # numbers of cases


@cache
def model(number: int) -> Model:
    case = todays(number, dyadic)
    spoken = tuple(ascii_lowercase[: case.spec.vocab])
    source, read = None, None
    if case.source is not None:
        own = case.spec.encoder is not None and case.spec.encoder.vocab is not None
        letters = ascii_uppercase if own else ascii_lowercase
        source = " ".join(letters[id] for id in case.source)
        read = Vocabulary(tuple(ascii_uppercase[:5])) if own else None
    text = " ".join(spoken[id] for id in case.tokens)
    return Model(
        case.spec, case.weights, Vocabulary(spoken), text=text, source_text=source,
        source_words=read,
    )  # fmt: skip


@cache
def trace(number: int) -> Trace:
    return byhand.trace(model(number), numbers="float64")


@pytest.mark.parametrize("number", range(12))
def test_every_step_has_a_topic_and_a_stage_and_no_two_topics_one_id(number: int) -> None:
    plan = trace(number).plan
    found = topics(plan)
    assert sorted(a for topic in found for a in topic.addresses) == sorted(
        step.address for step in plan
    )
    assert len({topic.id for topic in found}) == len(found)
    for step in plan:
        place = words.place_of(step.address)
        assert words.stage_title(place)
        assert words.stage_about(place, plan.spec)


@pytest.mark.parametrize("number", range(12))
def test_the_formulas_of_counts_give_the_counts(number: int) -> None:
    inventory = count(model(number).spec)
    assert sum(line.count for line in inventory.lines) == inventory.total
    for line in inventory.lines:
        said = line.numbers.replace("·", "*").replace("²", "**2").replace("³", "**3")
        assert re.fullmatch(r"[\d*+() -]+", said), said
        assert eval(said) == line.count, line


def test_rows_of_the_encoder_are_labelled_with_the_words_of_the_source() -> None:
    tables = Tables(trace(ENCODER), Window())
    weights = next(tables.tables(trace(ENCODER).steps["block.0.cross.weights"]))
    assert weights.heads == ("0 B", "1 B")
    assert [row.label for row in weights.rows] == ["0 c", "1 a"]
    keys = next(tables.tables(trace(ENCODER).steps["block.0.cross.k"]))
    assert [row.label for row in keys.rows] == ["0 B", "1 B"]


@pytest.mark.parametrize("number", [ENCODER, EXPERTS])
def test_a_book_has_every_step_and_says_what_is_new(number: int, tmp_path: Path) -> None:
    pages = byhand.book(model(number), out=tmp_path / "book", numbers="float32")
    text = "".join(page.read_text() for page in pages if page.suffix == ".html")
    for step in trace(number).plan:
        assert step.address in text
    said = {
        ENCODER: "the encoder left it",
        EXPERTS: "One more MLP stands beside the experts",
    }
    assert said[number] in text


def test_an_explanation_says_what_it_does_not_know() -> None:
    with pytest.raises(InputError, match="an explanation does not know"):
        byhand.explain(model(ENCODER), numbers=Exact())
