"""The hand-set translator of docs/examples: an encoder, a decoder, and attention across."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

import byhand
from byhand.files.document import parse_model
from byhand.files.writing import write_model

FILE = Path(__file__).parents[2] / "docs" / "examples" / "translator.yaml"
NOUNS = {"gato": "cat", "perro": "dog"}
ADJECTIVES = {"negro": "black", "blanco": "white"}
VERBS = {"duerme": "sleeps", "corre": "runs"}


@pytest.mark.parametrize("words", list(product(NOUNS, ADJECTIVES, VERBS)), ids=" ".join)
def test_every_sentence_is_translated_word_by_word_with_the_adjective_before_the_noun(
    words: tuple[str, str, str],
) -> None:
    noun, adjective, verb = words
    found = byhand.generate(
        str(FILE), "", source=f"el {noun} {adjective} {verb}", count=4, numbers="float64"
    )
    said = [chosen.token for chosen in found]
    assert said == ["the", ADJECTIVES[adjective], NOUNS[noun], VERBS[verb]]


def test_the_norms_leave_a_meaning_and_a_place_exactly_as_they_are() -> None:
    trace = byhand.trace(str(FILE), only=["stream.0", "encoder.stream.0"])
    for address in ("stream.0", "encoder.stream.0"):
        assert trace[address].array.sum(axis=1).tolist() == [2, 2, 2, 2]


def test_the_next_word_is_proven_to_be_sleeps() -> None:
    trace = byhand.trace(str(FILE), numbers="digits 6", only=["next"])
    last = trace.next[-1]
    assert last.proven
    assert trace.model.vocabulary.tokens[last.id] == "sleeps"


def test_it_is_written_and_read_back_as_the_same_model() -> None:
    model = byhand.open_model(str(FILE))
    back = parse_model(write_model(model), "translator.yaml")
    assert back.spec == model.spec
    assert (back.source_text, back.start) == (model.source_text, model.start)
    assert back.source_words == model.source_words
