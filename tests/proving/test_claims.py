"""Claims: what each asks for, text by text and over regions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from property_samples import MACHINE, answers, machine, read

from byhand.errors import InputError
from byhand.files.making import make_model
from byhand.proving.claims import Agree, AtLeast, Lead, Next, Same, Unmoved
from byhand.proving.domain import Computed, Region
from byhand.proving.properties import Property, read_property
from byhand.proving.reading.wholes import Varies


def same_over_every_part(property: Property) -> None:
    """What a goal asks of a region is what it asks of each of its texts."""
    for goal in property.goals:
        assert isinstance(goal.claim, Next)
        todo: list[Region | None] = [goal.shape.whole]
        while todo:
            region = todo.pop()
            if region is None:
                continue
            each = {goal.claim.answers.at(assigned) for assigned in region.assignments()}
            for place in goal.shape.places:
                if isinstance(place.value, Computed):
                    held = {place.value.function(assigned) for assigned in region.assignments()}
                    assert held <= set(region.values_at(place))
            try:
                found = goal.claim.answers.over(region)
            except Varies as varies:
                name = varies.names[0]
                values = region.allowed[name]
                todo.extend(region.cut(name, values[: len(values) // 2]))
            else:
                assert each <= {found}


# ------------------------------------------------------------------------------- next


def test_the_next_token_is_an_expression_of_the_variables() -> None:
    found = read(texts="(?<a>[0-6]) + (?<b>[0-6]) =", claim={"next": "(a + b) % 7"})
    assert answers(found)["5 + 4 ="] == "2"
    same_over_every_part(found)


def test_the_next_token_is_one_of_a_list() -> None:
    assert answers(read(texts="A", claim={"next": ["C", "B"]})) == {"A": "B C"}


def test_an_expression_may_give_several_right_tokens() -> None:
    found = read(texts="(?<a>[0-8])", claim={"next": "[a, a + 1]"})
    assert answers(found)["3"] == "3 4"


def test_a_token_needs_no_quotes_unless_it_may_be_something_else() -> None:
    assert answers(read(texts="A", claim={"next": "("})) == {"A": "("}
    assert answers(read(texts="A", claim={"next": "7"})) == {"A": "7"}
    texts = "(?<A>[0-1])"
    assert answers(read(texts=texts, claim={"next": {"token": "A"}})) == {"0": "A", "1": "A"}
    assert answers(read(texts=texts, claim={"next": {"expression": "A"}})) == {"0": "0", "1": "1"}


def test_words_are_compared_with_words() -> None:
    next = "'even' if text.count('A') % 2 == 0 else 'odd'"
    found = read(texts={"up to": 4, "of": ["A", "B"]}, claim={"next": next})
    assert answers(found)["A B A A"] == "odd"
    same_over_every_part(found)


def test_text_holds_words_and_named_places_hold_numbers() -> None:
    next = "a + 1 if text[1] == 'A' else int(text[0])"
    found = read(texts="(?<a>[0-5]) [A B]", claim={"next": next})
    assert answers(found)["4 A"] == "5"
    assert answers(found)["4 B"] == "4"
    same_over_every_part(found)


def test_a_table_gives_the_token_of_each_text() -> None:
    table = {"A B": "C", "B A": ["A", "B"], "C": "="}
    found = read(claim={"next": {"table": table}})
    assert answers(found) == {"A B": "C", "B A": "A B", "C": "="}
    same_over_every_part(found)
    with pytest.raises(InputError) as caught:
        read(texts="[A B] B", claim={"next": {"table": {"B B": "C"}}})
    assert caught.value.message == "the table has no line for a text"
    assert caught.value.found == "A B"


def test_a_program_gives_the_token(tmp_path: Path) -> None:
    (tmp_path / "mod.py").write_text("def answer(a, b):\n    c = a + b\n    return c % 7\n")
    (tmp_path / "p.yaml").write_text(
        "texts: (?<a>[0-6]) + (?<b>[0-6])\nclaim:\n  next: {file: mod.py}\n"
    )
    found = read_property(tmp_path / "p.yaml", MACHINE)
    assert answers(found)["6 + 6"] == "5"
    same_over_every_part(found)
    (tmp_path / "mod.py").unlink()
    again = read_property(found.source, MACHINE)  # which holds the program
    assert answers(again) == answers(found)


# ------------------------------------------------------------------------------- built-ins

BITS = "[0 1]{4} ="


@pytest.mark.parametrize(
    ("texts", "next", "right"),
    [
        ("[0-9]{2} =", {"sum": {"modulo": 7}}, lambda t: str((int(t[0]) + int(t[1])) % 7)),
        ("[0-4]{2} =", "sum", lambda t: str(int(t[0]) + int(t[1]))),
        (BITS, "parity", lambda t: ("even", "odd")[t.count("1") % 2]),
        (BITS, {"parity": {"even": "A", "odd": "B"}}, lambda t: "AB"[t.count("1") % 2]),
        (BITS, {"parity": {"counting": "0"}}, lambda t: ("even", "odd")[t.count("0") % 2]),
        (BITS, {"count": {"counting": "1"}}, lambda t: str(t.count("1"))),
        (BITS, {"count": {"of": "text[:2]", "counting": ["0"]}}, lambda t: str(t[:2].count("0"))),
        ("[A B C]{3} =", {"majority": {"tie": "="}}, lambda t: majority(t[:3])),
    ],
)
def test_a_built_in_function_gives_the_next_token(texts: str, next: Any, right: Any) -> None:
    found = read(texts=texts, claim={"next": next})
    for text, token in answers(found).items():
        assert token == right(text.split()), text
    same_over_every_part(found)


def majority(tokens: list[str]) -> str:
    (first, most), *rest = Counter(tokens).most_common()
    return "=" if rest and rest[0][1] == most else first


def test_in_a_tie_all_tokens_of_it_are_right() -> None:
    found = read(texts="[A B]{2}", claim={"next": "majority"})
    assert answers(found) == {"A A": "A", "A B": "A B", "B A": "A B", "B B": "B"}


@pytest.mark.parametrize(
    ("texts", "continuation", "right"),
    [
        ("[0-3]{3} =", "sorted", lambda t: " ".join(sorted(t[:3]))),
        ("[B A C]{2} =", "sorted", lambda t: " ".join(sorted(t[:2]))),
        ("[0-3]{2} =", {"sorted": {"descending": True, "then": "<end>"}},
         lambda t: " ".join([*sorted(t[:2], reverse=True), "<end>"])),
        ("[A B]{2} = [A B]", "copy", lambda t: f"{t[0]} {t[1]} {t[3]}"),
        ("(?<a>[A B]{2}) = [A B]", {"copy": {"of": "a"}}, lambda t: f"{t[0]} {t[1]}"),
        ("(?<a>[5-6]{2}) + (?<b>[4-5]{2}) =", {"sum": {"of": ["a", "b"], "digits": 3}},
         lambda t: " ".join(f"{int(t[0] + t[1]) + int(t[3] + t[4]):03}")),
        ("(?<a>[5-6]{2}) + (?<b>[4-5]) =",
         {"sum": {"of": ["a", "b"], "digits": 2, "backwards": True, "then": ["<end>"]}},
         lambda t: " ".join([*f"{int(t[0] + t[1]) + int(t[3]):02}"[::-1], "<end>"])),
        ("(?<a>[0-9]{2}) =", "digits(number(a) + 1, 3)",
         lambda t: " ".join(f"{int(t[0] + t[1]) + 1:03}")),
        ("(?<a>[0-9]) =", ["a", "'even' if a % 2 == 0 else 'odd'", "<end>"],
         lambda t: f"{t[0]} {('even', 'odd')[int(t[0]) % 2]} <end>"),
        ("A", "B A <end>", lambda t: "B A <end>"),
    ],
)  # fmt: skip
def test_a_continuation_is_one_goal_for_each_token(
    texts: str, continuation: Any, right: Any
) -> None:
    found = read(texts=texts, claim={"continuation": continuation})
    for text, tokens in answers(found).items():
        assert tokens == right(text.split()), text
    for number, goal in enumerate(found.goals):
        assert goal.shape.after == number
        whole = goal.shape.whole
        assert whole is not None
        for assigned in whole.assignments():
            text, *_rest = (MACHINE.vocabulary.decode(whole.text(assigned)),)
            before = right(text.split()).split()[:number]
            assert text.split()[len(text.split()) - number :] == before
    same_over_every_part(found)


def test_what_a_place_of_a_continuation_may_hold_is_narrowed_by_the_region() -> None:
    found = read(texts="(?<a>[0-9]{2}) =", claim={"continuation": "digits(number(a) + 1, 3)"})
    last = found.goals[2]
    whole = last.shape.whole
    assert whole is not None
    hundreds, tens = last.shape.places[-2:]
    assert whole.values_at(hundreds) == (0, 1)
    low = whole.cut("a[0]", (3,))[0]
    assert low is not None
    assert low.values_at(hundreds) == (0,)
    assert low.values_at(tens) == (3, 4)


def test_texts_of_a_list_may_have_continuations_of_different_lengths() -> None:
    table = {"A B": "C C", "B A": "A", "C": "B"}
    found = read(claim={"continuation": {"table": table}})
    assert answers(found) == table


def test_texts_of_one_form_are_continued_by_the_same_number_of_tokens() -> None:
    found = read(texts="(?<a>[0-9])", claim={"continuation": "digits(a, a + 1)"})
    with pytest.raises(InputError) as caught:
        answers(found)
    assert caught.value.message == "the continuations have different lengths"


def test_a_continuation_is_not_dropped_where_no_text_is_found() -> None:
    texts = {"pattern": "(?<a>[0-9]{20})", "conditions": ["2*a[0] + 2*a[1] + 2*a[2] == 5"]}
    with pytest.raises(InputError) as caught:
        read(texts=texts, claim={"continuation": "A B"})
    assert caught.value.message == "no text was found to continue"


def test_a_model_may_answer_with_words_of_its_own() -> None:
    model = make_model(
        {"d_model": 2, "layers": 0, "head": {"tied": False}},
        {"embed.token": [[1, 0], [0, 1]], "head": [[1, 0, 0], [0, 1, 0]]},
        ["0", "1"],
        outputs=["yes", "no", "1"],
    )
    found = read(model, texts="(?<a>[0 1])", claim={"next": "'yes' if a else 'no'"})
    assert [found.goals[0].claim.answers.at({"a": a}) for a in (0, 1)] == [(1,), (0,)]  # type: ignore[union-attr]
    read(model, texts="(?<a>[0 1])", claim={"continuation": "1 yes"})
    with pytest.raises(InputError) as caught:
        read(model, texts="(?<a>[0 1])", claim={"continuation": "yes 1"})
    assert caught.value.message == "'yes' is not in the vocabulary"
    assert caught.value.hint == "only the last token may be a word that no text has"


# ------------------------------------------------------------------------------- other claims


def test_one_logit_leads_another() -> None:
    (goal,) = read(
        texts="(?<a>[0-8])", claim={"lead": {"of": "a", "over": "a + 1", "by": "1/3"}}
    ).goals
    assert isinstance(goal.claim, Lead)
    assert goal.claim.by == Fraction(1, 3)
    assert goal.claim.ahead.at({"a": 4}) == 4
    assert goal.claim.behind is not None
    assert goal.claim.behind.at({"a": 4}) == 5
    for others in ({"of": "A"}, {"of": "A", "over": "others"}):
        (goal,) = read(texts="A", claim={"lead": others}).goals
        assert isinstance(goal.claim, Lead)
        assert (goal.claim.behind, goal.claim.by) == (None, 0)


def test_a_number_of_the_pass_has_a_bound_and_its_place_may_depend_on_the_text() -> None:
    claim = {"at": "block.0.attn.weights[0, -1, min(k, 2)]", "at least": "0.9", "at most": 1}
    least, most = read(texts="(?<k>[0-9]) + +", claim=claim).goals
    assert isinstance(least.claim, AtLeast)
    assert isinstance(most.claim, AtLeast)
    assert (least.claim.address, least.claim.bound) == ("block.0.attn.weights", Fraction(9, 10))
    assert least.claim.index.at({"k": 1}) == (0, -1, 1)
    assert least.claim.index.at({"k": 7}) == (0, -1, 2)
    assert (least.claim.most, most.claim.most) == (False, True)


def test_models_agree_and_the_other_model_is_kept_whole() -> None:
    other = machine()
    found = read(texts="A", claim={"same as": other})
    assert isinstance(found.goals[0].claim, Agree)
    assert "embed.token" in found.source["claim"]["same as"]["content"]


def test_another_model_is_found_beside_the_property(tmp_path: Path) -> None:
    machine().save(tmp_path / "other.yaml")
    (tmp_path / "p.yaml").write_text("texts: A\nclaim: {same as: other.yaml}\n")
    found = read_property(tmp_path / "p.yaml", MACHINE)
    (tmp_path / "other.yaml").unlink()
    again = read_property(found.source, MACHINE).goals[0].claim
    assert isinstance(again, Agree)
    assert again.other.vocabulary == MACHINE.vocabulary


def test_predictions_are_constant_or_unmoved() -> None:
    assert read(texts="[A B]", claim="constant").goals[0].claim == Same()
    assert read(texts="[A B]", claim={"constant": True}).goals[0].claim == Same()
    found = read(texts="[A B]", claim="unmoved", embeddings={"within": 0.01})
    assert found.goals[0].claim == Unmoved()
    assert found.moved == Fraction(1, 100)


def test_several_claims_are_goals_of_the_same_texts() -> None:
    found = read(texts="[A B]{1,2}", claim=[{"next": "A"}, "constant"])
    assert [type(goal.claim) for goal in found.goals] == [Next, Next, Same, Same]
    assert found.goals[0].shape is found.goals[2].shape


# ------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("claim", "where", "message"),
    [
        ({"next": "Z"}, "claim.next", "'Z' is neither a token nor a variable"),
        ({"next": "b + 1"}, "claim.next", "there is no variable 'b' here"),
        ({"next": "a / 2"}, "claim.next", "this part of Python is not possible here"),
        ({"next": "a +"}, "claim.next", "this is not Python: invalid syntax"),
        ({"next": "a > 2"}, "claim.next", "the function gives something that is no token"),
        ({"next": "a + 100"}, "claim.next", "the function gives something that is no token"),
        ({"next": "[]"}, "claim.next", "the function gives something that is no token"),
        ({"next": "1 // a"}, "claim.next", "the function has no value where a = 0"),
        ({"next": []}, "claim.next", "a list of tokens is empty"),
        ({"next": ["Z"]}, "claim.next", "'Z' is not in the vocabulary"),
        ({"next": {"tables": {}}}, "claim.next",
         "a table with the keys tables is not possible here"),
        ({"next": {"table": {"Z": "A"}}}, "claim.next.table.Z", "'Z' is not in the vocabulary"),
        ({"next": {"token": "Z"}}, "claim.next", "'Z' is not in the vocabulary"),
        ({"next": "sorted"}, "claim.next", "sorted gives several tokens"),
        ({"next": "count"}, "claim.next", "the key 'counting' is missing"),
        ({"next": {"parity": {"even": "A"}}}, "claim.next.parity.even",
         "even and odd are given together"),
        ({"next": {"count": {"counting": "Z"}}}, "claim.next.count.counting",
         "'Z' is not in the vocabulary"),
        ({"next": {"majority": {"tie": "Z"}}}, "claim.next.majority.tie",
         "'Z' is not in the vocabulary"),
        ({"next": {"parity": {"even": "A", "odd": "Z"}}}, "claim.next.parity.odd",
         "'Z' is not in the vocabulary"),
        ({"continuation": {"copy": {"then": ["Z"]}}}, "claim.continuation.copy.then[0]",
         "'Z' is not in the vocabulary"),
        ({"next": {"sum": {"of": "b"}}}, "claim.next.sum.of", "there is no variable 'b' here"),
        ({"next": {"sum": {"modulus": "7"}}}, "claim.next.sum.modulus",
         "there is no key 'modulus' here"),
        ({"continuation": "[]"}, "claim.continuation",
         "a continuation has from 1 to 1,000 tokens"),
        ({"lead": "A"}, "claim.lead", "A is not possible here"),
        ({"lead": {"over": "A"}}, "claim.lead", "the key 'of' is missing"),
        ({"lead": {"of": "A", "by": "x"}}, "claim.lead.by",
         "'x' cannot be read: there is no constant 'x'"),
        ({"at": "logits", "at least": 1}, "claim.at",
         "one number is needed, with a place on every axis"),
        ({"at": "logits[0]", "at least": 1}, "claim.at",
         "one number is needed, with a place on every axis"),
        ({"at": "logit[0,0]", "at least": 1}, "claim.at", "there is no step 'logit'"),
        ({"at": "logits[0,0]"}, "claim", "a bound is missing"),
        ({"at": "logits[0,b]", "at least": 1}, "claim.at", "there is no variable 'b' here"),
        ({"at": "logits[9,0]", "at least": 1}, "claim.at", "the index lies outside the step"),
        ({"next": "A", "at least": 1}, "claim.at least", "there is no key 'at least' here"),
        ({"next": "A", "constant": True}, "claim", "a claim says one thing"),
        ({"nxt": "A"}, "claim.nxt", "there is no key 'nxt' here"),
        ("constantly", "claim", "constantly is not possible here"),
        ("unmoved", "claim", "nothing can move the prediction"),
        ([], "claim", "a claim is missing"),
        ({"same as": "tiny"}, "claim.same as", "the two models have different vocabularies"),
        ({"same as": "nowhere.yaml"}, "claim.same as", "there is no model 'nowhere.yaml'"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_claim_is_named(claim: Any, where: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(texts="(?<a>[0-9])", claim=claim)
    assert caught.value.message == message
    assert caught.value.where == where


def test_a_token_that_may_be_an_expression_is_asked_about() -> None:
    for name in ("A", "B"):
        with pytest.raises(InputError) as caught:
            read(texts="(?<A>[0-9]) (?<B>[0-9])", claim={"next": name})
        assert caught.value.message == f"'{name}' may be a token or an expression"
        assert caught.value.expected == f"{{token: {name}}}, {{expression: {name}}}"


def test_a_mistake_in_a_program_has_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def answer(a):\n    import os\n    return a\n")
    (tmp_path / "p.yaml").write_text("texts: (?<a>[0-9])\nclaim: {next: {file: f.py}}\n")
    with pytest.raises(InputError) as caught:
        read_property(tmp_path / "p.yaml", MACHINE)
    assert caught.value.where == "f.py:2"
    assert caught.value.found == "import os"


def test_a_continuation_beyond_the_context_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        read(machine(["A", "B"], context=3), texts="[A B]{2}", claim={"continuation": "A A A"})
    assert caught.value.message == "the text is too long for this model"
