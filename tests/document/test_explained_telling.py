"""Facts in sentences: what is said changes with every number and name it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import byhand
from byhand.document.compose.explanation.facts import tell
from byhand.document.compose.explanation.inputs import tell_inputs
from byhand.document.compose.explanation.wording import either, part_name, quoted
from byhand.explaining.ablation import Part
from byhand.explaining.facts import Fact, Facts, facts
from byhand.explaining.inputs import Table, table
from byhand.explaining.turning import Turning
from byhand.language import speak
from byhand.numbers.base import Prediction
from byhand.numbers.exact import Exact

UNDECIDED = Prediction(None, None, False, candidates=(0, 2))


@pytest.fixture(scope="module")
def abc() -> Facts:
    return facts(byhand.trace("abc"))


@pytest.fixture(scope="module")
def texts() -> Table:
    return table("abc")


def told(found: Facts, place: int = 0) -> tuple[str, ...]:
    return tell(found)[place].sentences


def test_the_three_facts_of_abc_are_told(abc: Facts) -> None:
    assert [one.position for one in tell(abc)] == [0, 1, 2]
    assert told(abc, 0) == (
        "After A (position 0) comes B, ahead of C by 10.9619, proven.",
        "The embedding alone says C; the MLP turns it to B, from 3.9881 behind C to 10.9619 ahead "
        "of it.",
        "The lead over C comes above all from the MLP (+14.9500); the attention takes most away "
        "(-2.4926).",
        "Without what the MLP adds, C would lead.",
        "Checked: without the MLP the prediction after A is C, as expected.",
        "Without the position table or the attention it stays B, as expected.",
    )
    assert told(abc, 1)[1] == (
        "The embedding alone says B; the MLP turns it to C, from 0.3411 behind B to 9.8368 ahead "
        "of it."
    )
    assert told(abc, 2)[4] == "Checked: without the MLP the prediction after C is B, as expected."


# ----------------------------------------------------------------------- other facts, other words


def changed(found: Facts, fact: Fact) -> Facts:
    return replace(found, facts=(fact, *found.facts[1:]))


def with_turning(found: Facts, **fields: Any) -> Facts:
    fact = found.facts[0]
    return changed(found, replace(fact, turning=replace(fact.turning, **fields)))


def with_check(found: Facts, place: int, /, **fields: Any) -> Facts:
    fact = found.facts[0]
    checks = list(fact.checks)
    checks[place] = replace(checks[place], **fields)
    return changed(found, replace(fact, checks=tuple(checks)))


def with_change(found: Facts, **fields: Any) -> Facts:
    (change,) = found.facts[0].turning.changes
    return with_turning(found, changes=(replace(change, **fields),))


def with_reading(found: Facts, place: int, **fields: Any) -> Facts:
    readings = list(found.facts[0].turning.readings)
    readings[place] = replace(readings[place], **fields)
    return with_turning(found, readings=tuple(readings))


def with_share(found: Facts, place: int, **fields: Any) -> Facts:
    shares = list(found.facts[0].turning.contributions)
    shares[place] = replace(shares[place], **fields)
    return with_turning(found, contributions=tuple(shares))


def number(found: Facts, value: int) -> Any:
    numbers = found.trace.numbers
    assert isinstance(numbers, Exact)
    return numbers.value(value)


def edits() -> Iterator[tuple[str, Callable[[Facts], Facts]]]:
    yield "prediction", lambda f: with_turning(f, prediction=Prediction(0, None, True))
    yield "proof", lambda f: with_turning(f, prediction=Prediction(1, None, False))
    yield "tie", lambda f: with_turning(f, prediction=Prediction(1, None, True, tied=(1, 2)))
    yield "undecided", lambda f: with_turning(f, prediction=UNDECIDED)
    yield "rival", lambda f: with_turning(f, rival=0)
    yield "position", lambda f: with_turning(f, position=1)
    yield "lead", lambda f: with_reading(f, 2, lead=number(f, 7))
    yield "first leader", lambda f: with_reading(f, 0, leader=Prediction(0, None, True))
    yield "first tie", lambda f: with_reading(f, 0, leader=Prediction(2, None, True, (0, 2)))
    yield "no change", lambda f: with_turning(f, changes=())
    yield "turned", lambda f: with_turning(f, turned=None)
    yield "turning part", lambda f: with_change(f, part=Part("attn", 0))
    yield "old", lambda f: with_change(f, old=0)
    yield "new", lambda f: with_change(f, new=0)
    yield "before", lambda f: with_change(f, before=number(f, -5))
    yield "level before", lambda f: with_change(f, before=number(f, 0))
    yield "after", lambda f: with_change(f, after=number(f, 5))
    yield "level after", lambda f: with_change(f, after=number(f, 0))
    yield "share", lambda f: with_share(f, 3, value=number(f, 9))
    yield (
        "equal shares",
        lambda f: with_share(f, 0, value=f.facts[0].turning.contributions[3].value),
    )
    yield "largest share", lambda f: with_share(f, 1, value=number(f, 99), near=99.0)
    yield "least share", lambda f: with_share(f, 1, value=number(f, -99), near=-99.0)
    for place in range(3):
        for name in ("said", "found"):
            for other in (Prediction(0, None, True), UNDECIDED, Prediction(1, None, True, (1, 2))):
                yield (
                    f"{name} {place} {other.id} {other.tied}",
                    (
                        lambda f, place=place, name=name, other=other: with_check(  # type: ignore[misc]
                            f, place, **{name: other}
                        )
                    ),
                )
        yield (
            f"part {place}",
            lambda f, place=place: with_check(  # type: ignore[misc]
                f, place, part=Part("head", 0, 7)
            ),
        )


def test_every_edited_fact_is_told_otherwise(abc: Facts) -> None:
    texts = {"as it is": told(abc)}
    for name, edit in edits():
        text = told(edit(abc))
        if name in ("said 0 1 (1, 2)", "said 1 1 (1, 2)"):
            # that a tie was expected where the same token leads is not worth a sentence
            assert text == texts["as it is"]
            continue
        assert text not in texts.values(), name
        texts[name] = text
    assert len(texts) > 35


def test_what_does_not_happen_as_said_is_told_so(abc: Facts) -> None:
    other = Prediction(0, None, True)
    assert told(with_check(abc, 2, found=other))[4] == (
        "Checked: without the MLP the prediction after A is A, not as expected: by what is "
        "added directly it would be C."
    )
    stays = told(with_check(abc, 2, found=abc.facts[0].prediction))
    assert (
        "Without the MLP it stays B, not as expected: by what is added directly it would be C."
        in stays
    )
    assert "Checked: no single part is needed." in stays
    surprising = told(with_check(abc, 1, found=other))
    assert surprising[4] == (
        "Checked: without the attention the prediction after A is A, not as expected: by what is "
        "added directly it would be B."
    )
    assert not any("not as expected" in sentence for sentence in told(abc))


def test_what_is_undecided_is_told_as_undecided(abc: Facts) -> None:
    assert told(with_turning(abc, prediction=UNDECIDED)) == (
        "What comes after A (position 0) is not known: undecided between A and C.",
    )
    assert told(with_check(abc, 2, found=UNDECIDED))[4] == (
        "Without the MLP the prediction is not known: undecided between A and C."
    )
    assert told(with_check(abc, 2, said=UNDECIDED))[3] == (
        "Checked: without the MLP the prediction after A is C; what to expect was undecided."
    )
    assert "Without the attention it stays B; what to expect was undecided." in told(
        with_check(abc, 1, said=UNDECIDED)
    )
    assert told(with_reading(abc, 0, leader=UNDECIDED))[1].startswith(
        "The embedding alone says nothing that is decided; the MLP turns it to B"
    )
    lost = with_reading(with_turning(abc, turned=None), 1, leader=UNDECIDED)
    assert told(lost)[1] == (
        "Which step turns it there is not known: who leads after block.0.attn.add is undecided."
    )


def test_a_tie_is_told_and_how_it_is_decided(abc: Facts) -> None:
    tied = Prediction(1, None, True, tied=(1, 2))
    assert told(with_turning(abc, prediction=tied))[0] == (
        "After A (position 0) comes B: the logits of B and C are proven to be equal, "
        "and the first of them is taken."
    )
    assert told(facts(byhand.trace("tiny")), 1)[-2] == (
        "Without the attention it stays a (level with b and c), as expected."
    )


def test_a_model_in_which_no_single_part_is_needed_is_told_so() -> None:
    assert told(facts(byhand.trace("journey")), 0)[-2:] == (
        "Checked: no single part is needed.",
        "Without the position table, the attention or the MLP it stays “cat”, as expected.",
    )


def test_parts_that_share_alike_are_named_together() -> None:
    assert told(facts(byhand.trace("tiny")), 0)[2] == (
        "The lead over c comes above all from the token's embedding, the attention and the MLP "
        "(+1/3 each)."
    )


def test_several_blocks_and_many_heads_are_told_apart_and_together() -> None:
    sentences = told(facts(byhand.trace("minigpt"), [2]))
    assert sentences[1].startswith(
        "The embedding alone says “she”; the MLP of block 0 turns it to “insist”, the attention of "
        "block 1 turns it to “visit”, the MLP of block 1 turns it to “insist”, from 0.0313 behind "
    )
    assert sentences[-1] == "Without any one of the other 9 parts it stays “insist”, as expected."


def test_where_many_parts_change_the_prediction_the_last_are_counted(abc: Facts) -> None:
    fact = abc.facts[0]

    def with_fates(*fates: tuple[int, int]) -> tuple[str, ...]:
        checks = tuple(
            replace(fact.checks[2], part=Part("head", 0, place), said=Prediction(said, None, True),
                    found=Prediction(found, None, True))
            for place, (said, found) in enumerate(fates)
        )  # fmt: skip
        found = told(changed(abc, replace(fact, checks=checks)))
        return tuple(sentence for sentence in found if sentence.startswith("Checked: "))

    five = ((0, 0), (1, 0), (2, 0), (0, 2), (1, 2))
    assert with_fates(*five)[-1] == (
        "Checked: without head 4 the prediction after A is C, not as expected: by what is "
        "added directly it would be B."
    )
    *_four, last = with_fates(*five, (2, 2))
    assert len(_four) == 4
    assert last == (
        "Checked: without head 4 or head 5 it is another token, too; 1 of these 2 as expected."
    )


def test_of_many_turns_the_last_are_told(abc: Facts) -> None:
    (change,) = abc.facts[0].turning.changes
    turns = (replace(change, part=Part("mlp", 0), new=0),) * 4 + (change,)
    story = told(with_turning(abc, changes=turns))[1]
    assert story.startswith("The embedding alone says C; after 2 other turns the MLP turns it to A")
    assert story.count("turns it to") == 3


def test_a_model_of_one_token_has_no_rival(abc: Facts) -> None:
    assert told(with_turning(abc, rival=None))[0] == "After A (position 0) comes B."


def test_unknown_weights_are_the_reason_given() -> None:
    (only,) = tell(facts(byhand.trace("abc-walkthrough")))
    assert only.position is None
    assert only.sentences == (
        "The predictions cannot be explained: weight.block.0.attn.qkv is unknown.",
    )


def test_numbers_are_told_as_their_system_has_them() -> None:
    assert told(facts(byhand.trace("abc", digits=3)))[0] == (
        "After A (position 0) comes B, ahead of C by 11.0, proven."
    )
    assert told(facts(byhand.trace("abc", decimals=2)))[0] == (
        "After A (position 0) comes B, ahead of C by 11.01."
    )
    assert told(facts(byhand.trace("abc", float="float32")))[0] == (
        "After A (position 0) comes B, ahead of C by 10.962."
    )


# ----------------------------------------------------------------------- every text


def test_the_texts_of_abc_are_told(texts: Table) -> None:
    assert tell_inputs(texts) == (
        "There are 39 texts of up to 3 tokens.",
        "Every prediction is proven.",
        "By the last token alone, after A comes B, after B comes C and after C comes A: so it is "
        "after 37 of 39 texts, but not after “CB” (A) and “CCB” (A).",
        "Without the position table no prediction changes.",
        "Without the attention the prediction changes after 2 of 39 texts: “CB” and “CCB”.",
        "Without the MLP the prediction changes after 38 of 39 texts.",
    )


def test_rules_without_exceptions_and_constants_are_told(texts: Table) -> None:
    def always(next: Callable[[tuple[int, ...]], int | None]) -> Table:
        rows = tuple(
            replace(
                row, prediction=Prediction(next(row.tokens), None, next(row.tokens) is not None)
            )
            for row in texts.rows
        )
        return replace(texts, rows=rows, parts=())

    assert tell_inputs(always(lambda text: (text[-1] + 1) % 3))[2:] == (
        "The last token alone decides: after A comes B, after B comes C and after C comes A.",
    )
    assert tell_inputs(always(lambda _text: 1))[2:] == ("Whatever the text is, B comes next.",)
    assert tell_inputs(always(lambda text: max(text[-2:])))[2].startswith(
        "The last 2 tokens decide."
    )
    assert tell_inputs(always(lambda text: 1 if text == (0, 0) else 2))[2] == (
        "After 38 of 39 texts C comes next, but not after “AA” (B)."
    )
    undecided = tell_inputs(always(lambda text: None if text == (0, 0) else 2))
    assert undecided[1:] == (
        "38 of 39 predictions are proven; the others are undecided.",
        "After 38 of 39 texts C comes next, but not after “AA” (undecided).",
    )


def test_where_it_is_undecided_whether_a_part_is_needed_that_is_told(texts: Table) -> None:
    rows = (replace(texts.rows[0], without=(UNDECIDED,) * 3), *texts.rows[1:])
    told = tell_inputs(replace(texts, rows=rows))
    assert told[3] == (
        "Without the position table no prediction changes that is decided. After one text that is "
        "undecided."
    )
    assert told[5] == (
        "Without the MLP the prediction changes after 37 of 39 texts. After one text that is "
        "undecided."
    )


def test_texts_of_some_tokens_and_unknown_weights_are_told() -> None:
    assert tell_inputs(table("journey", 2, tokens=["cat", "sat"]))[0] == (
        "6 texts of up to 2 tokens, made of “cat” and “sat”."
    )
    assert tell_inputs(table("abc-walkthrough")) == (
        "Nothing can be said about the texts: weight.block.0.attn.qkv is unknown.",
    )


# ----------------------------------------------------------------------- words


def test_parts_have_names_with_their_block_where_there_are_several(abc: Facts) -> None:
    one, two = abc.trace.model.spec, byhand.trace("minigpt").model.spec
    parts = [
        Part("position"), Part("token"), Part("attn", 1), Part("mlp", 1), Part("head", 1, 2),
        Part("neuron", 1, 3), Part("bias", name="head_bias"),
    ]  # fmt: skip
    assert [part_name(part, one) for part in parts] == [
        "the position table", "the token's embedding", "the attention", "the MLP", "head 2",
        "neuron 3", "the bias head_bias",
    ]  # fmt: skip
    assert [part_name(part, two) for part in parts[2:6]] == [
        "the attention of block 1",
        "the MLP of block 1",
        "head 2 of block 1",
        "neuron 3 of block 1",
    ]


def test_each_by_itself_is_told_with_or() -> None:
    assert either(["a"]) == "a"
    assert either(["a", "b", "c"]) == "a, b or c"
    assert either(list("abcdefgh")) == "a, b, c, d or one of 4 more"


def test_words_and_signs_are_quoted_and_letters_are_not() -> None:
    assert (quoted("A"), quoted("7"), quoted("the"), quoted(",")) == ("A", "7", "“the”", "“,”")
    assert (quoted("\n"), quoted(" a")) == ("'\\n'", "' a'")


def test_telling_leaves_the_language_to_the_speaker(abc: Facts) -> None:
    speak("es")
    try:
        assert all(telling.sentences for telling in tell(abc))
    finally:
        speak("en")


def test_a_turning_knows_what_adds_most(abc: Facts) -> None:
    turning: Turning = abc.facts[0].turning
    assert turning.foremost is not None
    assert turning.foremost.part == Part("mlp", 0)
    assert turning.against is not None
    assert turning.against.part == Part("attn", 0)
