"""The documents behind the built-in models, marked: what follows, what does not, and why."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml

from byhand.api import check
from byhand.checking import documents
from byhand.checking.verdicts import Marked, MarkedText, Verdict
from byhand.models import builtin_names, open_model

RIGHT, CARRIED, UNSUPPORTED, ERROR, UNJUDGED = Verdict


@cache
def marked(model: str) -> MarkedText:
    document = documents.of(model)
    assert document is not None
    (text,) = check(model, document).texts
    return text


def line(model: str, name: str) -> Marked:
    return next(each for each in marked(model).lines if each.claim.name == name)


def verdicts(model: str) -> dict[str, Verdict]:
    return {each.claim.name: each.verdict for each in marked(model).lines}


def test_each_document_belongs_to_a_built_in_model_and_the_others_have_none() -> None:
    assert set(documents.names()) < set(builtin_names())
    for name in builtin_names():
        document = documents.of(name)
        assert (document is not None and document.is_file()) == (name in documents.names())


@pytest.mark.parametrize("model", documents.names())
def test_every_line_of_a_document_is_about_something_of_its_model(model: str) -> None:
    assert marked(model).unmatched == ()
    document = documents.of(model)
    assert document is not None
    written = yaml.safe_load(document.read_text("utf-8"))["claims"]
    assert set(verdicts(model)) == set(written)


# ------------------------------------------------------------------ journey


def test_journey_s_tables_and_matrices_are_the_model_s() -> None:
    weights = {name: verdict for name, verdict in verdicts("journey").items() if "weight" in name}
    assert len(weights) == 9 == len(open_model("journey").weights)
    assert set(weights.values()) == {RIGHT}


def test_journey_s_attention_line_does_not_follow_and_everything_behind_it_does() -> None:
    found = {each.address: each.verdict for each in marked("journey").lines[-6:]}
    assert found == {
        "stream.0[3]": RIGHT,
        "block.0.attn.out[3]": ERROR,
        "block.0.attn.add[3]": CARRIED,
        "block.0.mlp.out[3]": CARRIED,
        "block.0.mlp.add[3]": CARRIED,
        "next[3]": RIGHT,  # the argmax of the true pass is cat as well
    }


def test_no_usual_mistake_explains_journey_s_attention_line() -> None:
    error = marked("journey").first_error
    assert error is not None
    assert error.address == "block.0.attn.out[3]"
    assert error.suspects == ()
    assert error.outside == 4


H2 = "block.0.mlp.add[3]: [-0.02, 0.66, 0.81, 0.30]"


def after_h2(tmp_path: Path, *lines: str) -> list[Verdict]:
    """The verdicts on further lines of the document, behind its own h2."""
    sheet = tmp_path / "further.yaml"
    sheet.write_text("\n".join(["target: mat", H2, *lines]), "utf-8")
    (text,) = check("journey", sheet).texts
    return [each.verdict for each in text.lines][1:]


def test_journey_s_own_h2_gives_mat_15_percent_and_the_loss_1_8933(tmp_path: Path) -> None:
    assert after_h2(tmp_path, "probs[3,mat]: 0.1506", "loss: 1.8933") == [CARRIED, CARRIED]


def test_the_true_loss_of_journey_does_not_follow_from_the_document_s_h2(tmp_path: Path) -> None:
    assert after_h2(tmp_path, "loss: 1.8313") == [UNSUPPORTED]


# ------------------------------------------------------------------ abc-walkthrough


def test_the_walkthrough_s_sums_follow_within_the_printing_of_their_terms() -> None:
    for position in range(3):
        found = line("abc-walkthrough", f"stream.0[{position}]")
        assert found.verdict is RIGHT
        assert 0.5 < found.share < 1  # one unit of the last place, of one and a half allowed


def test_the_walkthrough_s_direction_for_c_has_a_sign_slip_and_the_others_are_right() -> None:
    assert line("abc-walkthrough", "direction.weight.head[0]").verdict is RIGHT
    assert line("abc-walkthrough", "direction.weight.head[1]").verdict is RIGHT
    slip = line("abc-walkthrough", "direction.weight.head[2]")
    assert slip.verdict is ERROR
    assert [suspect.kind for suspect in slip.suspects] == ["slip-sign"]
    assert slip.suspects[0].change == "write [−1, −1.75]"


def test_what_needs_the_walkthrough_s_unprinted_weights_cannot_be_judged() -> None:
    for name in ("next", "loss"):
        found = line("abc-walkthrough", name)
        assert (found.verdict, found.reason) == (UNJUDGED, "weight.block.0.attn.qkv is unknown")


def test_everything_else_in_the_walkthrough_is_right() -> None:
    others = {"direction.weight.head[2]", "next", "loss"}
    rest = {verdict for name, verdict in verdicts("abc-walkthrough").items() if name not in others}
    assert rest == {RIGHT}


# ------------------------------------------------------------------ minigpt


def test_minigpt_s_configuration_is_right_and_its_count_is_another_model_s() -> None:
    found = verdicts("minigpt")
    assert found.pop("count.total") is ERROR
    assert set(found.values()) == {RIGHT}
    total = line("minigpt", "count.total")
    assert [suspect.sentence for suspect in total.suspects] == [
        "57,344 = one layer of two, untied head, matrices only"
    ]
    assert total.worst is not None
    assert total.worst.expected == 103_680
