"""A State is read from JSON, and what is wrong with it is said with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asking import LIBRARY, asked, looked, state
from hypothesis import given, settings
from hypothesis import strategies as st

from budgets import examples
from byhand.errors import ByhandError, InputError, UsageError
from byhand.files.writing import write_model
from byhand.model import Model
from byhand.serving import Library, answer, error_data, read_state


def refused(data: Any) -> ByhandError:
    with pytest.raises(ByhandError) as caught:
        answer(LIBRARY, "look", {"state": data})
    return caught.value


def test_a_state_needs_only_a_model() -> None:
    read = read_state({"model": {"name": "tiny"}})
    assert (read.name, read.weights, read.text, read.numbers) == ("tiny", (), None, "")
    assert read.own_target


@pytest.mark.parametrize(
    ("data", "where", "found"),
    [
        ([], "state", "a list of 0"),
        ({}, "state", None),
        ({"model": {"name": "tiny"}, "txt": "a"}, "state", "txt"),
        ({"model": {}}, "state.model", "nothing"),
        ({"model": {"name": "tiny", "file": "x"}}, "state.model", "name, file"),
        ({"model": {"path": "/etc/passwd"}}, "state.model", "path"),
        ({"model": {"name": 3}}, "state.model.name", "3"),
        (state(text=["a"]), "state.text", "a list of 1"),
        (state(weights=[1]), "state.weights", "a list of 1"),
        (state(weights={"embed.token[0,0]": None}), "state.weights.embed.token[0,0]", "nothing"),
        (state(numbers="float31"), "state.numbers", "float31"),
        (state(numbers="digits 0"), "state.numbers", "digits 0"),
        (state(numbers="digits 51"), "state.numbers", "digits 51"),
        (state(numbers="exact 2"), "state.numbers", "exact 2"),
        (state(language="de"), "state.language", "de"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(data: Any, where: str, found: str | None) -> None:
    error = refused(data)
    assert isinstance(error, InputError)
    assert (error.where, error.found) == (where, found)


def test_an_unknown_model_is_offered_the_nearest_name() -> None:
    error = refused({"model": {"name": "tinny"}})
    assert isinstance(error, UsageError)
    assert error.hint == "did you mean tiny?"


@pytest.mark.parametrize(
    "name", ["../tiny", "/etc/passwd", "tiny.yaml", "src/byhand/models/tiny.yaml"]
)
def test_a_path_is_not_a_name(name: str) -> None:
    assert "there is no model" in refused({"model": {"name": name}}).message


def test_a_file_named_beforehand_is_known_by_its_name_alone(tmp_path: Path, tiny: Model) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(write_model(tiny), "utf-8")
    library = Library({"mine": path})
    assert library.names[0] == "mine"
    assert answer(library, "look", {"state": {"model": {"name": "mine"}}})["next"]["token"] == "a"
    with pytest.raises(UsageError):
        answer(library, "look", {"state": {"model": {"name": str(path)}}})


def test_a_posted_file_is_a_model(tiny: Model) -> None:
    shown = asked("look", state={"model": {"file": write_model(tiny)}})
    assert shown["next"]["token"] == "a"


def test_a_posted_file_is_refused_with_its_line() -> None:
    error = refused(
        {"model": {"file": "name: x\nvocabulary: [a]\nmodel: {d_modell: 2}\nweights: {}\n"}}
    )
    assert (error.where or "").startswith("model.yaml:3")


def test_a_posted_file_cannot_read_files_beside_it() -> None:
    model = "name: x\nvocabulary: [a]\nmodel: {d_model: 1, layers: 0}\n"
    text = model + "weights: {file: minigpt.safetensors}\n"
    error = refused({"model": {"file": text}})
    assert error.message == "a model file that is posted can read no other file"
    assert error.where == "model.yaml:4: weights.file"


def test_a_missing_target_is_the_models_own_and_null_is_none() -> None:
    assert looked("journey")["loss"]["target"] == "mat"
    assert looked("journey", target=None)["loss"] is None
    assert looked("journey", target="dog")["loss"]["target"] == "dog"
    assert looked("journey", text="the cat")["loss"] is None


def test_a_target_has_its_log_probability_and_its_rank() -> None:
    loss, unlikely = looked("journey")["loss"], looked("journey", target="dog")["loss"]
    assert (loss["logprob"], loss["rank"], loss["rank_text"]) == ("-1.8313", 4, "4")
    assert float(unlikely["logprob"]) == pytest.approx(-unlikely["value"], abs=1e-4)


@pytest.mark.parametrize(
    ("numbers", "register"),
    [
        ("exact", "named"),
        ("digits 8", "enclosed"),
        ("float32", "rounded"),
        ("decimals 2", "rounded"),
    ],
)
def test_the_numbers_asked_for_are_shown(numbers: str, register: str) -> None:
    shown = looked(numbers=numbers, passage="attention-0-attn-weights")
    assert shown["numbers"] == numbers
    assert f'class="n {register}"' in shown["passage"]["html"]


def test_errors_come_in_the_language_of_the_state() -> None:
    english, spanish = refused(state(text="z")), refused(state(text="z", language="es"))
    assert "is not in the vocabulary" in english.message
    assert english.message != spanish.message
    assert error_data(spanish)["message"] == spanish.message


def test_an_unknown_question_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no question"):
        answer(LIBRARY, "lok", {})
    with pytest.raises(InputError, match="a request is a table"):
        answer(LIBRARY, "look", [])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
_STATES = st.fixed_dictionaries(
    {"model": st.just({"name": "tiny"})},
    optional={
        "weights": st.dictionaries(
            st.sampled_from(["embed.token[0,0]", "embed.token", "x[1]", "block.0.attn.q[5,0]"]),
            st.text(max_size=6) | _JSON,
            max_size=2,
        ),
        "architecture": st.dictionaries(
            st.sampled_from(["heads", "norm.eps", "position", "tied", "x"]), _JSON, max_size=2
        ),
        "text": st.text("abc ", max_size=5) | _JSON,
        "target": _JSON,
        "numbers": st.sampled_from(["exact", "float16", "decimals 1", "digits 3"]) | _JSON,
        "language": _JSON,
    },
)


@given(_STATES | _JSON, _JSON, _JSON)
@settings(max_examples=examples(120))
def test_whatever_is_sent_is_answered_or_refused_in_words(
    data: Any, passage: Any, place: Any
) -> None:
    try:
        found = answer(LIBRARY, "look", {"state": data, "passage": passage, "position": place})
    except ByhandError as error:
        said = error.message
    else:
        said = found["passage"]["html"]
    assert said
