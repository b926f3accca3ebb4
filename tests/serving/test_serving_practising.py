"""A line is hidden, worked out, and marked by checking; the number is not given away."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from asking import asked, state

from byhand.api import trace
from byhand.errors import AddressError, InputError
from byhand.serving.practice import gives_away

SCORE = "block.0.attn.scores[0,3,1]"


def practised(address: str, answer: str, model: str = "journey", **more: Any) -> dict[str, Any]:
    reveal = {"reveal": True} if more.pop("reveal", False) else {}
    return asked("practice", state=state(model, **more), address=address, answer=answer, **reveal)


def test_a_line_is_chosen_by_its_seed() -> None:
    chosen = [asked("practice", state=state("journey"), seed=seed)["address"] for seed in range(8)]
    again = asked("practice", state=state("journey"), seed=3)["address"]
    assert again == chosen[3]
    assert len(set(chosen)) > 4


def test_a_question_has_all_that_is_needed_and_not_the_answer() -> None:
    found = asked("practice", state=state("journey"), address=SCORE)
    assert {one["address"] for one in found["given"]} == {
        f"block.0.attn.{which}[0,{place},{i}]"
        for which, place in (("q", 3), ("k", 1))
        for i in range(4)
    }
    assert "<math" in found["html"]
    assert "0.4237" not in str(found)
    assert "position 3 (on)" in found["meaning"]  # in words, before the address
    assert SCORE not in found["meaning"]


def test_a_line_of_the_passage_asked_for_is_chosen() -> None:
    found = asked("practice", state=state(), seed=1, passage="attention-0-attn-scores")
    assert found["passage"] == "attention-0-attn-scores"


@pytest.mark.parametrize("answer", ["-0.4237", "-0.424", "-0.42", "−0.424", "-42.37%"])
def test_a_right_answer_is_right_to_the_decimals_it_has(answer: str) -> None:
    found = practised(SCORE, answer)
    assert (found["verdict"], found["sign"]) == ("right", "✓")
    assert "expected" not in found


def test_a_decimal_comma_is_read() -> None:
    assert practised(SCORE, "-0,4237", language="es")["verdict"] == "right"


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [("-0.423", "rounding"), ("-0.4230", "wrong"), ("-0.8474", "wrong"), ("7", "wrong")],
)
def test_a_wrong_answer_is_wrong_or_nearly_right(answer: str, verdict: str) -> None:
    assert practised(SCORE, answer)["verdict"] == verdict


def test_the_mistake_is_named_with_what_to_change() -> None:
    found = practised(SCORE, "-0.8474")
    assert "scale" in found["suspect"]
    assert found["change"]
    sign = practised("block.0.attn.scores[0,1,1]", "-2", model="tiny")
    assert "wrong sign" in sign["suspect"]


def test_the_number_is_said_only_where_it_is_asked_for() -> None:
    for wrong in ("0.4237", "-4.237", "-0.8474", "-0.423", "12"):
        found = practised(SCORE, wrong)
        assert "expected" not in found
        assert "0.4237" not in str({**found, "answer": ""})
    assert practised(SCORE, "1", reveal=True)["expected"] == "−0.4237"


def test_a_sentence_with_the_number_in_it_gives_it_away() -> None:
    assert gives_away("write -0.4237 at block.0.attn.scores[0,3,1]", -0.42366)
    assert not gives_away("it follows if block.0.attn.scores[0,3,1] has the wrong sign", 3.0)
    assert gives_away("write −1 at logits[0,1]", -1.0)


def test_fractions_and_expressions_are_answers_too() -> None:
    share = "block.0.attn.weights[0,1,1]"
    assert practised(share, "e/(1 + e)", model="tiny")["verdict"] == "right"
    assert practised(share, "1/(1 + e)", model="tiny")["verdict"] == "wrong"
    assert practised("block.0.attn.norm.mean[0]", "3/10")["verdict"] == "right"


def test_what_follows_from_the_numbers_shown_is_right() -> None:
    """0.2763 and its kin are rounded: a logit worked out from them may be off in its last place."""
    found = asked("practice", state=state("journey"), address="logits[0,1]")
    numbers = {one["address"]: one["text"].replace("−", "-") for one in found["given"]}
    total = sum(
        eval(numbers[f"block.0.mlp.add[0,{i}]"]) * eval(numbers[f"weight.head[{i},1]"])
        for i in range(4)
    )
    assert practised("logits[0,1]", f"{total:.4f}")["verdict"] == "right"


def test_the_next_word_can_be_asked_for() -> None:
    assert practised("next[3]", "cat")["verdict"] == "right"
    assert practised("next[3]", "mat")["verdict"] == "wrong"


@pytest.mark.parametrize("answer", ["x y", "1/0", "nan", "0.1.2"])
def test_what_cannot_be_read_is_said_so(answer: str) -> None:
    found = practised(SCORE, answer)
    assert found["verdict"] == "unread"
    assert found["sentences"]


def test_an_edited_model_has_answers_of_its_own() -> None:
    edit = {"block.0.attn.q[0,0]": "3"}
    address = "block.0.attn.q[0,1,0]"
    assert practised(address, "1", model="tiny")["verdict"] == "right"
    assert practised(address, "3", model="tiny", weights=edit)["verdict"] == "right"
    assert practised(address, "1", model="tiny", weights=edit)["verdict"] == "wrong"


def test_what_depends_on_an_unknown_weight_cannot_be_judged() -> None:
    found = practised("logits[0,0]", "1", model="abc-walkthrough")
    assert found["verdict"] == "unjudged"


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(AddressError):
        practised("scores", "1")
    with pytest.raises(InputError, match="too long"):
        practised(SCORE, "1" * 300)
    with pytest.raises(InputError, match="'address' is missing"):
        asked("practice", state=state(), answer="1")


@pytest.mark.parametrize("model", ["tiny", "journey", "abc"])
def test_the_true_value_is_right_wherever_it_is_asked_for(model: str) -> None:
    true = trace(model)
    for seed in range(6):
        address = asked("practice", state=state(model), seed=seed)["address"]
        text = true[address].decimal(6)
        assert practised(address, text, model=model)["verdict"] == "right", (address, text)


def products() -> list[float]:
    """The four products that the score is the half of the sum of."""
    pass_ = trace("journey", exact=True)
    q, k = (pass_.steps[f"block.0.attn.{which}"] for which in "qk")
    return [
        float(q.at((0, 3, i)).decimal(12)) * float(k.at((0, 1, i)).decimal(12)) for i in range(4)
    ]


def test_a_slip_in_working_out_one_line_is_named_by_the_numbers_it_is_about() -> None:
    terms = products()
    out = practised(SCORE, f"{(sum(terms) - terms[0]) / 2:.3f}")
    assert out["suspect"] == (
        "it follows if `block.0.attn.q[0,3,0]` · `block.0.attn.k[0,1,0]` is left out"
    )
    sign = practised(SCORE, f"{(sum(terms) - 2 * terms[2]) / 2:.3f}")
    assert sign["sentences"] == [
        "it follows if `block.0.attn.q[0,3,2]` · `block.0.attn.k[0,1,2]` has the other sign"
    ]


def test_an_unknown_mistake_is_told_which_way_it_lies_and_how_such_a_line_is_worked_out() -> None:
    found = practised(SCORE, "-0.312")
    assert found["sentences"] == found["hints"][:1]
    assert found["hints"] == [
        "Write the products one under the other, each with its sign, then add them.",
        "Your number is too large.",
    ]
    assert found["suspect"] is None
    far = practised("block.0.attn.weights[0,3,1]", "0.93")
    assert "several times too large" in far["hints"][1]
    assert "e to the power" in far["sentences"][0]


# ------------------------------------------------------------------ guesses


def test_a_guess_is_not_right_and_gets_the_first_hint() -> None:
    random = Random(7)
    for model in ("tiny", "journey", "abc"):
        for seed in range(3):
            address = asked("practice", state=state(model), seed=seed)["address"]
            guess = f"{random.uniform(-2, 2):.{random.choice([1, 2])}f}"
            found = practised(address, guess, model=model)
            if found["verdict"] == "wrong":
                assert found["word"] == "not right"
                assert found["suspect"] is None, (address, guess)
                assert found["sentences"] == found["hints"][:1]


def test_zero_and_few_decimals_name_no_mistake() -> None:
    for answer in ("0", "-0.8", "-0.85"):  # two of them are near a score without its scale
        assert practised(SCORE, answer)["suspect"] is None
    assert "scale" in practised(SCORE, "-0.847")["suspect"]


@pytest.mark.parametrize("answer", ["hello", "unknown", "one half", "√", "?", "-"])
def test_words_in_place_of_a_number_are_no_attempt(answer: str) -> None:
    found = practised(SCORE, answer)
    assert found["verdict"] in ("unread", "unjudged")
    assert "does not count" in found["word"]
