"""Edits make a valid model, and what was done to it is said."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from asking import LIBRARY, asked, looked, state

from byhand.errors import ByhandError
from byhand.expression import parse
from byhand.files import parse_model
from byhand.files.writing import write_model
from byhand.model import Model
from byhand.numbers.base import ABSENT, Printed, Unknown
from byhand.parameters import parameters
from byhand.serving import Library, read_state
from byhand.serving.edits import Edited, edited
from byhand.serving.settings import SETTINGS, settings


def made(model: str = "tiny", **more: Any) -> Edited:
    return edited(read_state(state(model, **more)), LIBRARY)


def refused(**more: Any) -> ByhandError:
    with pytest.raises(ByhandError) as caught:
        made(**more)
    return caught.value


def file_state(model: Model, **more: Any) -> dict[str, Any]:
    return {"model": {"file": write_model(model)}, **more}


# ------------------------------------------------------------------ weights


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("1/3", Fraction(1, 3)),
        ("-0.25", Fraction(-1, 4)),
        (" 2 ", Fraction(2)),
        ("sqrt(2)/2", parse("sqrt(2)/2")),
        ("unknown", Unknown()),
    ],
)
def test_an_entry_is_what_the_text_says(text: str, entry: Any) -> None:
    model = made(weights={"embed.token[1,0]": text}).model
    assert model.weights["embed.token"].data[1, 0] == entry
    assert model.weights["embed.token"].data[1, 1] == 1


def test_the_address_of_a_weight_may_be_said_in_full_or_from_the_end() -> None:
    for address in ("weight.embed.token[2,1]", "embed.token[-1,-1]"):
        assert made(weights={address: "5"}).model.weights["embed.token"].data[2, 1] == 5


def test_an_edit_leaves_the_library_as_it_is() -> None:
    made(weights={"embed.token[0,0]": "9"})
    assert LIBRARY.open("tiny").weights["embed.token"].data[0, 0] == 1


@pytest.mark.parametrize(
    ("address", "text", "message"),
    [
        ("embed.tokn[0,0]", "1", "no weight"),
        ("embed.token[3,0]", "1", "not the address of one number"),
        ("embed.token[0]", "1", "not the address of one number"),
        ("embed.token[0,:]", "1", "not the address of one number"),
        ("embed.token[0,0]", "ln(0)", "cannot be read"),
        ("embed.token[0,0]", "nan", "not a number"),
        ("embed.token[0,0]", "", "a number is missing"),
        ("embed.token[0,0]", "10^10^10", "cannot be read"),
        ("embed.token[0,0]", "masked", "score_table"),
    ],
)
def test_an_impossible_entry_is_refused_with_its_address(
    address: str, text: str, message: str
) -> None:
    error = refused(weights={address: text})
    assert message in error.message
    assert address in (error.where or "")


def test_weights_that_are_the_same_change_together(tiny: Model) -> None:
    text = write_model(tiny)
    for key, name in (("k", '"@block.0.attn.q"'), ("v", '"@block.0.attn.q.T"')):
        text = text.replace(f"block.0.attn.{key}: identity", f"block.0.attn.{key}: {name}")
    data = {"model": {"file": text}, "weights": {"block.0.attn.k[0,1]": "7"}}
    found = edited(read_state(data), LIBRARY)
    weights = found.model.weights
    assert weights["block.0.attn.q"].data[0, 1] == weights["block.0.attn.k"].data[0, 1] == 7
    assert (weights["block.0.attn.v"].data[1, 0], weights["block.0.attn.v"].data[0, 1]) == (7, 0)
    assert weights["block.0.attn.k"].same_as == "block.0.attn.q"
    assert sum("both were changed" in note for note in found.notes) == 2


def test_an_entry_of_a_printed_weight_is_printed_too() -> None:
    weights = made("abc-walkthrough", weights={"head[0,0]": "0.5"}).model.weights
    assert weights["head"].data[0, 0] == Printed(Fraction(1, 2), 4)
    error = refused(model="abc-walkthrough", weights={"head[0,0]": "0.12345"})
    assert "more decimals than were printed" in error.message


def test_an_entry_of_floats_becomes_the_nearest_float() -> None:
    found = made("minigpt", weights={"embed.token[0,0]": "0.1", "embed.token[0,1]": "1/2"})
    data = found.model.weights["embed.token"].data
    assert data[0, 0] == np.float32(0.1)
    assert data[0, 1] == 0.5
    assert found.notes == ("`embed.token[0,0]` holds floats: 0.1 became 0.10000000149011612.",)
    expression = made("minigpt", weights={"embed.token[0,0]": "sqrt(2)"}).model
    assert expression.weights["embed.token"].data[0, 0] == np.float32(2**0.5)
    error = refused(model="minigpt", weights={"embed.token[0,0]": "10^60"})
    assert "too large for float32" in error.message


# ------------------------------------------------------------------ the architecture


@pytest.mark.parametrize("name", ["tiny", "journey", "abc"])
def test_every_setting_can_be_set_to_each_of_its_choices(name: str) -> None:
    impossible = {("residual", "parallel")} if name == "tiny" else set()
    for setting in settings(LIBRARY.open(name).spec):
        for choice in setting["choices"] or [setting["value"]]:
            if (setting["key"], choice) in impossible:
                continue
            found = made(name, architecture={setting["key"]: choice}).model
            needed = {p.name: p.shape for p in parameters(found.spec)}
            assert needed == {name: tensor.shape for name, tensor in found.weights.items()}
            now = {told["key"]: told["value"] for told in settings(found.spec)}
            assert now.get(setting["key"], choice) == choice


def test_settings_are_told_as_they_are() -> None:
    found = {setting["key"]: setting["value"] for setting in settings(LIBRARY.open("minigpt").spec)}
    assert found["position"] == "rope"
    assert (found["heads"], found["norm.eps"], found["activation"]) == ("4", "0.00001", "gelu")
    assert set(found) <= set(SETTINGS)


@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        ({"norm.kind": "none"}, {"block.0.attn.norm.gain", "block.0.attn.norm.bias"}),
        ({"position": "none"}, {"embed.position"}),
        ({"norm.bias": "false"}, {"block.0.attn.norm.bias", "block.0.mlp.norm.bias"}),
    ],
)
def test_weights_without_a_place_are_left_out_and_named(
    architecture: dict[str, str], names: set[str]
) -> None:
    found = made(architecture=architecture)
    assert names.isdisjoint(found.model.weights)
    assert all(any(f"`{name}`" in note for note in found.notes) for name in names)


def test_new_weights_change_nothing() -> None:
    before = looked("journey", numbers="exact")
    after = looked("journey", architecture={"norm.gain": True, "norm.bias": True, "context": 9})
    assert after["model"]["parameters"] == before["model"]["parameters"] + 16 + 20
    assert after["next"]["candidates"] == before["next"]["candidates"]
    assert after["loss"] == before["loss"]


def test_untying_the_head_starts_from_the_embedding() -> None:
    tied, untied = looked(), looked(architecture={"tied": False})
    assert untied["next"]["candidates"] == tied["next"]["candidates"]
    model = made(architecture={"tied": "false"}, weights={"head[0,2]": "4"}).model
    assert model.weights["head"].data[0, 2] == 4
    assert model.weights["embed.token"].data[2, 0] == 1


def test_more_context_gives_positions_rows_of_zeros() -> None:
    model = made(architecture={"context": 4}).model
    rows = model.weights["embed.position"].data
    assert rows.tolist() == [[0, 0], [1, 0], [0, 0], [0, 0]]
    assert looked(text="a b c", architecture={"context": "3"})["position"] == 2


def test_heads_share_the_same_numbers_out() -> None:
    spec = made("journey", architecture={"heads": 2}).model.spec
    attention = spec.blocks[0].attention
    assert attention is not None
    assert (attention.heads, attention.d_head, attention.kv_heads) == (2, 2, 2)
    assert attention.scale != LIBRARY.open("journey").spec.blocks[0].attention.scale  # type: ignore[union-attr]
    error = refused(model="journey", architecture={"heads": 3})
    assert (error.where, error.expected) == ("architecture.heads", "1, 2, 4")


def test_edits_that_need_each_other_are_taken_together() -> None:
    both = {"residual": "parallel", "norm.place": "pre"}
    assert made(architecture=both).model.spec.blocks[0].parallel
    error = refused(architecture={"residual": "parallel"})
    assert error.hint == "set norm.place to pre first"
    assert refused(architecture={"heads": 2, "position": "rope"}).expected == "an even number"


def test_an_edit_that_has_lost_its_place_is_told_and_not_refused() -> None:
    found = made(architecture={"position": "none"}, weights={"embed.position[1,0]": "3"})
    assert "The edit of `embed.position[1,0]` has no place in this architecture." in found.notes


def test_unknown_keys_are_offered_the_nearest() -> None:
    assert (
        refused(architecture={"norm.kin": "none"}).hint
        == "did you mean norm.kind, norm.gain, norm.bias?"
    )


def test_eps_is_a_fraction_that_is_not_negative() -> None:
    spec = made("journey", architecture={"norm.eps": "1/7"}).model.spec
    assert spec.blocks[0].attn_norm.eps == Fraction(1, 7)
    assert (
        refused(model="journey", architecture={"norm.eps": "-1"}).where == "architecture.norm.eps"
    )
    assert "no norms" in refused(model="abc", architecture={"norm.eps": "1"}).message


def test_a_score_table_keeps_its_masks() -> None:
    text = write_model(LIBRARY.open("tiny")).replace(
        "out: false}", "out: false, score_table: true}"
    )
    text += "  block.0.attn.score_table:\n    - - [0, 0]\n      - [0, 1]\n"
    data = {"model": {"file": text}, "weights": {"block.0.attn.score_table[0,1,0]": "masked"}}
    model = edited(read_state(data), LIBRARY).model
    assert model.weights["block.0.attn.score_table"].data[0, 1, 0] is ABSENT
    shown = asked("look", state=data, passage="attention-0-attn-weights")
    assert shown["attention"][0]["values"][1] == [None, 1.0]


@pytest.mark.parametrize(
    ("place", "kind"), list(product(["pre", "post"], ["layernorm", "rmsnorm", "none"]))
)
def test_what_was_edited_can_be_kept_and_read_again(place: str, kind: str) -> None:
    more = {
        "architecture": {"norm.place": place, "norm.kind": kind, "position": "rope"},
        "weights": {"embed.token[0,1]": "1/3", "block.0.mlp.out[1,0]": "sqrt(3)"},
    }
    kept = asked("file", state=state(**more))
    model = made(**more).model
    again = parse_model(kept["text"])
    assert kept["name"] == "tiny-edited.yaml"
    assert again.spec.blocks == model.spec.blocks
    for name, tensor in model.weights.items():
        assert again.weights[name].data.tolist() == tensor.data.tolist()


def test_a_library_of_its_own_has_edits_of_its_own(tmp_path: Any, journey: Model) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(write_model(journey), "utf-8")
    other = Library({"tiny": path})
    assert edited(read_state(state()), other).model.spec.d_model == 4
    assert made().model.spec.d_model == 2


def test_a_printed_weight_beside_floats_is_cut_to_another_size() -> None:
    from byhand.parameters import Parameter
    from byhand.serving.fitted_weights import _resized
    from byhand.weights import Tensor, Weights

    printed = np.array([[Printed(Fraction(1, 2), 1)] * 2] * 2, dtype=object)
    floats = Weights({"embed.token": Tensor("embed.token", np.ones((2, 2), np.float32))})
    made = _resized(Parameter("head", (3, 2), ("vocab", "d"), "head", "matrix"), printed, floats)
    assert made.dtype == object
    assert made[:2].tolist() == printed.tolist()
    assert made[2].tolist() == [Fraction(0), Fraction(0)]
