"""What every number means, in a sentence: true of its index, in words that a reader knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from byhand.api import trace
from byhand.document.glossary import ENTRIES, glossary
from byhand.document.meanings import ANY, ANY_WEIGHT, meaning
from byhand.language import speaking
from byhand.tracing import Trace

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
MODELS = ["tiny", "abc", "abc-walkthrough", "journey", "minigpt"]
FILES = ["translator.yaml", "two-experts.yaml", "adder.yaml", "induction.yaml"]
LONGEST = 25  # words of a sentence


def every_meaning(found: Trace) -> list[str]:
    """The meaning of the last entry of each step and weight."""
    sizes = {step.address: step.shape for step in found.plan}
    sizes |= {f"weight.{name}": tensor.shape for name, tensor in found.model.weights.items()}
    return [meaning(found, name, tuple(n - 1 for n in shape)) for name, shape in sizes.items()]


@pytest.mark.parametrize("model", [*MODELS, *FILES])
@pytest.mark.parametrize("language", ["en", "es"])
def test_every_kind_of_step_has_a_sentence_of_its_own(model: str, language: str) -> None:
    found = trace(EXAMPLES / model if model in FILES else model)
    with speaking(language):
        for said in every_meaning(found):
            assert said.endswith("."), said
            assert len(said.split()) <= LONGEST, said
            assert "{" not in said, said
            assert "  " not in said, said
    if language == "en":
        general = ANY.partition("{step}")[0].partition("}")[2]
        assert not [said for said in every_meaning(found) if general in said]


def test_a_meaning_names_the_positions_the_head_and_the_word_of_its_index() -> None:
    journey, minigpt = trace("journey"), trace("minigpt")
    weights = "block.0.attn.weights"
    assert meaning(journey, weights, (0, 3, 1)) == (
        "How much position 3 (on) attends to position 1 (cat) in head 0."
    )
    assert meaning(journey, weights, (0, 1, 3)) == (
        "Position 1 (cat) may not look at position 3 (on): the mask hides it, so here is no number."
    )
    assert meaning(journey, "probs", (3, 4)) == "The probability of `mat` after position 3 (on)."
    assert meaning(minigpt, "block.1.mlp.act", (7, 5)) == (
        "In block 1: what the activation leaves of unit 5 of the MLP at position 7 (sub)."
    )
    with speaking("es"):
        assert meaning(journey, weights, (0, 3, 1)) == (
            "Cuánto atiende la posición 3 (on) a la posición 1 (cat) en la cabeza 0."
        )


@pytest.mark.parametrize(
    ("model", "name", "index", "said"),
    [  # journey has its matrices input × output, abc the other way round
        (
            "journey",
            "block.0.mlp.hidden",
            (1, 2),
            "how much number 1 of its input counts for unit 2.",
        ),
        ("abc", "block.0.mlp.hidden", (1, 0), "how much number 0 of its input counts for unit 1."),
        ("journey", "head", (2, 4), "how strongly number 2 of the residual stream favours `mat`."),
        ("abc", "head", (2, 1), "how strongly number 1 of the residual stream favours `C`."),
        ("journey", "embed.token", (1, 0), "number 0 of the row that stands for `cat`."),
    ],
)
def test_a_weight_is_read_in_the_layout_of_its_matrix(
    model: str, name: str, index: tuple[int, ...], said: str
) -> None:
    assert meaning(trace(model), f"weight.{name}", index) == f"A weight: {said}"
    assert said != ANY_WEIGHT


def test_the_glossary_is_complete_in_both_languages() -> None:
    keys = set()
    for language in ("en", "es"):
        with speaking(language):
            entries = glossary()
        assert len(entries) == len(ENTRIES) >= 40
        assert [one.word.casefold() for one in entries] == sorted(
            one.word.casefold() for one in entries
        )
        owner: dict[str, str] = {}
        for one in entries:
            for form in one.forms:  # a form belongs to one word
                assert owner.setdefault(form.lower(), one.key) == one.key, form
        for one in entries:
            for sentence in one.says.rstrip(".").split(". "):
                assert len(sentence.split()) <= LONGEST, sentence
            keys.add(one.key)
    assert keys == set(ENTRIES)
    with speaking("es"):
        assert "pesos de atención" in {form for one in glossary() for form in one.forms}
