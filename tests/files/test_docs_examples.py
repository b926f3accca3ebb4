"""The model files in the documentation can be opened, and do what they say."""

from __future__ import annotations

import re
from dataclasses import fields
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from byhand.counting import count
from byhand.evaluate import trace
from byhand.files import parse_model
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import Prediction

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "model-files.md").read_text("utf-8")
SHOWN = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
COMPLETE = [text for text in SHOWN if "vocabulary:" in text]


def example(name: str) -> Model:
    return open_model(DOCS / "examples" / f"{name}.yaml")


def found(name: str) -> str:
    """The model file of this name on the page."""
    return next(text for text in COMPLETE if text.startswith(f"name: {name}\n"))


def answer(model: Model, text: str) -> str:
    """The next token, which must be proven."""
    last: Prediction = trace(model, text, only=["next"])["next"][-1]
    assert last.proven
    assert not last.tied
    assert last.id is not None
    return model.outputs.tokens[last.id]


@pytest.mark.parametrize("text", COMPLETE, ids=range(len(COMPLETE)))
def test_every_model_file_on_the_page_opens(text: str, tmp_path: Path) -> None:
    tensors = {"embed.token": np.ones((3, 2)), "head": np.ones((2, 3))}
    save_file(tensors, tmp_path / "learned.safetensors")
    assert parse_model(text, "page.yaml", tmp_path).text


@pytest.mark.parametrize("name", ["two-experts", "sink", "humble"])
def test_the_example_on_the_page_is_the_file_beside_it(name: str) -> None:
    assert (DOCS / "examples" / f"{name}.yaml").read_text() in COMPLETE


def test_there_are_several_of_them() -> None:
    assert len(COMPLETE) == 9


def test_the_error_shown_on_the_page_is_the_real_one() -> None:
    from byhand.errors import ModelFileError

    shown = re.search(r"```console\n(echo\.yaml.*?)```", PAGE, re.DOTALL)
    assert shown
    with pytest.raises(ModelFileError) as caught:
        parse_model(COMPLETE[0].replace("  layers: 0", "  layer: 0"), "echo.yaml")
    for line in shown[1].splitlines():
        assert line.rstrip("…") in str(caught.value)


def fields_of(kind: type, *left_out: str) -> list[str]:
    """The fields of a spec, which are keys of a model file under the same name."""
    return [each.name for each in fields(kind) if each.name not in left_out]


def test_every_key_and_word_of_the_format_is_on_the_page() -> None:
    from byhand import spec, sublayer_specs
    from byhand.expression import FUNCTIONS
    from byhand.files import architecture, document, score_rules, tensors
    from byhand.files.architecture import settings
    from byhand.spec import LatentSpec, MlpSpec

    ours = ("hidden_bias", "gate_bias", "out_bias", "router_bias")  # written as `bias`
    words = [
        *document.KEYS, *architecture._BLOCK_KEYS, *architecture._STACK_KEYS, *settings.NORM_KEYS,
        *architecture.RELATIVE, *sublayer_specs.NORMED, *sublayer_specs.SCORINGS,
        *sublayer_specs.GROUP_RULES, *fields_of(MlpSpec, *ours),
        *fields_of(LatentSpec, "down_bias"),
        *spec.NORMS, *spec.PLACES, *spec.POSITIONS, *spec.PAIRINGS, *spec.PACKINGS,
        *spec.ACTIVATIONS, *spec.LAYOUTS, *tensors.WORDS, *FUNCTIONS, *score_rules.RULES,
        *score_rules._KEYS, "entries", "stream", "units", "queries", "nothing",
        "sinks", "cap", "magnitude", "experts", "chosen", "normalised", "router",
    ]  # fmt: skip
    assert [word for word in words if not re.search(rf"\b{word}\b", PAGE)] == []


def test_the_weights_of_the_sharing_example_are_shared() -> None:
    model = parse_model(found("sharing"), "sharing.yaml")
    inventory = count(model.spec, model.weights)
    assert (inventory.total, inventory.unique) == (129, 39)
    assert model.weights["block.1.attn.out"].same_as == "block.0.attn.v"
    assert model.weights["block.0.attn.q"].data.tolist() == [
        [Fraction(1, 2), 0, Fraction(1, 2)],
        [0, 0, 0],
        [Fraction(-1, 2), 0, Fraction(-1, 2)],
    ]


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (-999, "ice"), (-42, "ice"), (-1, "ice"), (0, "water"), (1, "water"), (50, "water"),
        (99, "water"), (100, "steam"), (101, "steam"), (999, "steam"),
    ],
)  # fmt: skip
def test_the_thermometer_reads_the_temperature_exactly(number: int, says: str) -> None:
    model = example("thermometer")
    text = " ".join(("-" if number < 0 else "+") + f"{abs(number):03}")
    assert answer(model, text) == says
    working = trace(model, text, only=["block.0.attn.weights", "block.0.mlp.add"])
    assert working["block.0.attn.weights"][0, 3].tolist()[1:] == [
        Fraction(100, 111), Fraction(10, 111), Fraction(1, 111),
    ]  # fmt: skip
    assert working["block.0.mlp.add"][3, 4] == Fraction(number, 111)


def test_the_clock_adds_modulo_seven() -> None:
    model = example("clock")
    for a, b in product(range(7), repeat=2):
        assert answer(model, f"{a} {b}") == str((a + b) % 7)
        assert trace(model, f"{a} {b}", only=["logits"])["logits"][1, (a + b) % 7] == 1


@pytest.mark.parametrize("length", [1, 3, 5])
def test_the_majority_wins(length: int) -> None:
    model = example("majority")
    assert count(model.spec, model.weights)["count.unique"] == 12
    for words in product(["left", "right"], repeat=length):
        winner = max(("left", "right"), key=words.count)
        assert answer(model, " ".join(words)) == winner


OTHERS = (".property", "own-names")  # what is to be proven, names of a dump
MACHINES = [
    path
    for path in sorted((DOCS / "examples").glob("*.yaml"))
    if not any(other in path.name for other in OTHERS)
]


@pytest.mark.parametrize("path", MACHINES, ids=lambda p: p.stem)
def test_an_example_meets_its_own_target(path: Path) -> None:
    model = open_model(path)
    assert model.text
    assert model.about
    assert answer(model, model.text) == model.target


def test_the_walker_of_the_page_turns_where_he_should() -> None:
    model = parse_model(found("turns"), "turns.yaml")
    assert model.dimensions.stream == ("north", "east", "turned")
    assert model.dimensions.units == (("turn",),)
    assert answer(model, "north right") == "east"
    assert model.weights["block.0.attn.score_table"].data.tolist() == [[[0, None]] * 2]


def test_the_first_bit_of_the_page_is_even_or_odd() -> None:
    model = parse_model(found("first"), "first.yaml")
    assert {text: answer(model, text) for text in ("0", "1", "0 1", "1 0 0 1")} == {
        "0": "even", "1": "odd", "0 1": "even", "1 0 0 1": "odd",
    }  # fmt: skip


def test_what_a_sink_leaves_over_tells_how_many_words_there_are() -> None:
    model = parse_model(found("long"), "long.yaml")
    answers = [answer(model, " ".join(["la"] * count)) for count in (1, 2, 3, 4)]
    assert answers == ["short", "short", "long", "long"]
    weights = trace(model, "la la la")["block.0.attn.weights"]
    assert [str(weights[0, 2, key]) for key in range(3)] == ["1/4"] * 3


def test_each_word_is_answered_by_its_expert() -> None:
    model = parse_model(found("two experts"), "experts.yaml")
    pairs = {"hot": "cold", "cold": "hot", "cat": "cats", "cats": "cat"}
    assert {word: answer(model, word) for word in pairs} == pairs
    shown = trace(model, "cold cat")
    assert np.asarray(shown["block.0.mlp.chosen"]).tolist() == [[1, 0], [0, 1]]
    assert shown["block.0.mlp.shares"].register == "exact"


def test_the_rules_shown_on_the_page_are_read() -> None:
    (line,) = (text for text in SHOWN if text not in COMPLETE)
    model = parse_model(
        "vocabulary: [a]\nmodel:\n  d_model: 3\n  context: 3\n  layers: 1\n  mlp: none\n"
        "  attention: {heads: 3, queries: false, score_table: true}\n"
        "weights:\n  embed.token: zeros\n  block.0.attn.v: zeros\n  block.0.attn.out: zeros\n  "
        + line
    )
    assert model.weights["block.0.attn.score_table"].data.tolist() == [
        [[0, None, None], [0, None, None], [None, 0, None]],
        [[0, None, None], [None, 0, None], [None, 0, 0]],
        [[0, None, None]] * 3,
    ]
