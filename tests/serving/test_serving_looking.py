"""One passage at a time, with what stands around it, and what an edit changed."""

from __future__ import annotations

from typing import Any

import pytest
from asking import LIBRARY, asked, looked, state

from byhand.api import trace
from byhand.document.compose.book import STEP_PAGES
from byhand.document.compose.book.passages import topic_title
from byhand.editions import make_book
from byhand.errors import AddressError, InputError
from byhand.expression import parse
from byhand.numbers.exact import Exact
from byhand.serving import answer, read_state
from byhand.serving.changes import Forms, addresses, changes
from byhand.serving.edits import edited
from byhand.serving.worked_state import pass_of, trace_of
from byhand.tracing import Trace

MODELS = ("tiny", "journey", "abc", "minigpt")


# ------------------------------------------------------------------ passages


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("language", ["en", "es"])
def test_the_passages_are_those_of_the_book(model: str, language: str) -> None:
    shown = looked(model, language=language)
    book = make_book(model, claims=(), language=language)
    told = {
        passage.id: (page.slug, passage.title, list(passage.lit))
        for page in book.pages
        if page.slug in STEP_PAGES
        for passage in page.passages
    }
    found = {one["id"]: (one["page"], one["title"], one["steps"]) for one in shown["passages"]}
    assert found == told


def test_the_passages_come_in_the_order_of_the_pass() -> None:
    steps = [step for one in looked("journey")["passages"] for step in one["steps"]]
    order = [step.address for step in trace("journey").plan]
    firsts = [order.index(one["steps"][0]) for one in looked("journey")["passages"]]
    assert sorted(steps) == sorted(order)
    assert firsts == sorted(firsts)


@pytest.mark.parametrize("model", MODELS)
def test_every_passage_can_be_shown_alone(model: str) -> None:
    found = pass_of(read_state(state(model)), LIBRARY)
    for topic, one in zip(found.topics, looked(model)["passages"], strict=True):
        shown = looked(model, passage=one["id"])["passage"]
        assert shown["id"] == one["id"]
        assert shown["title"] == topic_title(found.edition, topic)
        assert shown["html"].startswith("<p>")
        assert [step["address"] for step in shown["steps"]] == one["steps"]


def test_numbers_are_buttons_without_their_workings() -> None:
    html = looked(passage="attention-0-attn-scores")["passage"]["html"]
    assert 'data-a="block.0.attn.scores[0,1,1]"' in html
    assert "popover" not in html


def test_a_passage_says_what_it_reads_and_what_reads_it() -> None:
    shown = looked(passage="attention-0-attn-scores")["passage"]
    assert shown["reads"] == ["attention-0-attn-qkv"]
    assert shown["read_by"] == ["attention-0-attn-weights"]
    (step,) = shown["steps"]
    assert step["reads"] == ["block.0.attn.q", "block.0.attn.k"]
    assert step["read_by"] == ["block.0.attn.weights"]


def test_a_passage_is_found_by_an_address_in_it_and_else_the_first_is_shown() -> None:
    assert looked(passage="logits[1,0]")["passage"]["id"] == "next-logits"
    assert looked(passage="attention-7-attn-scores")["passage"]["id"] == "tokens-tokens"


def test_the_map_leads_to_every_passage_and_marks_the_one_shown() -> None:
    shown = looked(passage="attention-0-attn-scores")
    for one in shown["passages"]:
        assert f'href="#{one["id"]}"' in shown["map"]
    assert shown["map"].count('aria-current="step"') == 1
    assert 'class="lit" data-node="block-0-attn-scores"' in shown["map"]


def test_the_map_holds_the_numbers_of_the_edit() -> None:
    assert "(0, 5/7)" in looked(weights={"embed.token[1,1]": "5/7"})["map"]


# ------------------------------------------------------------------ around it


def test_the_position_asked_for_is_followed() -> None:
    first, last = looked("journey", position=1), looked("journey")
    assert first["next"]["place"] == first["stream"]["place"] == 1
    assert (last["position"], last["next"]["place"]) == (3, 3)
    scores = looked("journey", position=1, passage="attention-0-attn-scores")["passage"]["html"]
    assert "1 (cat)" in scores
    assert "3 (on)" not in scores
    with pytest.raises(InputError, match="no position 4"):
        looked("journey", position=4)


def test_the_loss_is_that_of_the_last_position_whichever_is_followed() -> None:
    html = [looked("journey", position=p, passage="next-loss")["passage"]["html"] for p in (0, 3)]
    assert html[0].partition("</p>")[0] == html[1].partition("</p>")[0]
    assert "1.8313" in html[0]


def test_candidates_have_the_probabilities_of_the_trace() -> None:
    probs = trace("journey")["probs"]
    for one in looked("journey")["next"]["candidates"]:
        assert one["share"] == pytest.approx(float(probs.at((3, one["id"])).decimal(12)))
        assert one["probability"] == probs.at((3, one["id"])).decimal(4)
        assert one["target"] == (one["token"] == "mat")


def test_the_stream_has_what_the_trace_has() -> None:
    stops = {stop["address"]: stop for stop in looked()["stream"]["stops"]}
    assert [one["text"] for one in stops["stream.0"]["numbers"]] == ["1", "1"]
    assert [one["text"] for one in stops["block.0.mlp.norm.out"]["numbers"]] == ["1", "−1"]
    assert stops["stream.0"]["size"] == pytest.approx(2**0.5)


def test_attention_is_shown_head_by_head_with_masks() -> None:
    (pattern,) = looked()["attention"]
    assert pattern["values"][0] == [1.0, None]
    assert sum(pattern["values"][1]) == pytest.approx(1)
    assert len(looked("minigpt")["attention"]) == 8


def test_unknown_weights_leave_gaps_and_no_errors() -> None:
    for one in looked("abc-walkthrough")["passages"]:
        shown = looked("abc-walkthrough", passage=one["id"])
        assert (shown["next"], shown["loss"]) == (None, None)


def test_weights_are_listed_where_they_are_asked_for() -> None:
    shown = asked("look", state=state(weights={"embed.token[0,1]": "sqrt(2)/2"}), weights=True)
    table = {weight["name"]: weight for weight in shown["weights"]}
    assert table["embed.token"]["entries"] == [["1", "√2/2"], ["0", "1"], ["1", "1"]]
    assert "weights" not in looked()


def test_models_are_listed_with_what_can_be_edited() -> None:
    models = {model["name"]: model for model in asked("models", language="es")["models"]}
    assert models["tiny"]["parameters"] == 38
    assert models["abc"]["kind"] == "characters"
    assert models["minigpt"]["exact"] is False
    assert any(one["key"] == "norm.eps" for one in models["tiny"]["edit"]["architecture"])
    assert models["tiny"]["about"] != looked()["model"]["about"]


# ------------------------------------------------------------------ what changed


def both(model: str, numbers: str, **more: Any) -> tuple[Trace, Trace]:
    before = trace_of(read_state(state(model, numbers=numbers)), LIBRARY)
    return before, trace_of(read_state(state(model, numbers=numbers, **more)), LIBRARY)


@pytest.mark.parametrize("numbers", ["exact", "float64", "decimals 3", "digits 10"])
def test_what_changed_is_what_differs(numbers: str) -> None:
    before, after = both("journey", numbers, weights={"block.0.mlp.out[0,0]": "1/7"})
    marked = set(addresses(changes(before, after)))
    assert "block.0.mlp.out[1,0]" in marked
    for address, worked in after.steps.items():
        if worked.whole:
            continue
        for index, entry in worked.entries():
            name = f"{address}[{','.join(map(str, index))}]"
            old = before.steps[address].at(index)
            if entry is None or old is None:
                assert name not in marked
            elif str(entry) != str(old):
                assert name in marked
            elif numbers != "exact":
                assert name not in marked
    upstream = [a for a in marked if a.startswith(("embed", "block.0.attn", "block.0.mlp.hidden"))]
    assert not upstream


FORMS = [
    "sqrt(2)",
    "sqrt(3)",
    "exp(1)",
    "exp(2)",
    "exp(sqrt(2))",
    "exp(1)/(1 + exp(1))",
    "exp(1/3)/(1 + exp(1/3))",
    "ln(2) + pi",
    "ln(3) + pi",
    "1 + 2*sqrt(2)",
    "2 + sqrt(2)",
    "cos(1)*sqrt(2)",
    "sin(1)*sqrt(2)",
    "7/3",
    "3/7",
]


def test_values_of_two_spaces_have_the_same_form_only_where_they_are_the_same() -> None:
    forms, one, other, turned = Forms(), Exact(), Exact(), Exact()
    first, second = ([space.scalar(parse(text)) for text in FORMS] for space in (one, other))
    third = [turned.scalar(parse(text)) for text in reversed(FORMS)][::-1]
    for i, value in enumerate(first):
        assert forms.same(value, second[i]), FORMS[i]
        for j in range(len(FORMS)):
            if i != j:
                assert not forms.same(value, second[j]), (FORMS[i], FORMS[j])
                assert not forms.same(value, third[j]), (FORMS[i], FORMS[j])
    roots = FORMS.index("1 + 2*sqrt(2)")
    assert forms.same(first[roots], third[roots])  # whatever was met before


def test_the_same_state_changes_nothing() -> None:
    changed = looked("journey", before=state("journey"))["changed"]
    assert (changed["count"], changed["addresses"], changed["first"]) == (0, [], None)
    assert changed["weights"] == []


def test_positions_before_the_edited_word_do_not_change() -> None:
    changed = looked("journey", weights={"embed.token[3,0]": "0.9"}, before=state("journey"))
    marked = changed["changed"]["addresses"]
    assert "stream.0[3,0]" in marked
    assert not [a for a in marked if a.startswith(("stream.0[0", "stream.0[1", "logits[2"))]


def test_an_edit_says_how_the_prediction_moved() -> None:
    changed = looked(weights={"embed.token[1,1]": "6"}, before=state())["changed"]
    assert (changed["next"]["before"], changed["next"]["after"]) == ("a", "b")
    assert changed["first"] == "embed.token"
    assert changed["weights"] == ["embed.token"]
    moved = {word["token"]: word for word in changed["next"]["words"]}
    assert moved["b"]["after"] > moved["b"]["before"]
    assert sum(word["after"] for word in moved.values()) == pytest.approx(1)


def test_another_text_or_architecture_can_be_compared_with_what_was_before() -> None:
    longer = looked("journey", text="the cat sat", before=state("journey", text="the cat"))
    assert "stream.0[2,0]" in longer["changed"]["addresses"]
    assert "stream.0[1,0]" not in longer["changed"]["addresses"]
    other = looked(architecture={"norm.place": "pre", "heads": 2}, before=state())["changed"]
    assert other["count"] > 10
    rounded = looked("journey", numbers="decimals 1", before=state("journey"))["changed"]
    assert rounded["count"] > 50


# ------------------------------------------------------------------ one number


def test_a_number_comes_with_its_working_and_its_ancestors() -> None:
    found = asked("number", state=state(), address="block.0.attn.scores[0,1,0]")
    assert "<math" in found["html"]
    assert found["passage"] == "attention-0-attn-scores"
    assert set(found["ancestors"]) >= {
        "block.0.attn.q[0,1,0]",
        "block.0.attn.k[0,0,1]",
        "stream.0[1,0]",
        "weight.embed.token[0,0]",
        "weight.block.0.attn.q[0,0]",
    }
    assert not [a for a in found["ancestors"] if a.startswith(("block.0.attn.v", "logits"))]
    assert found["readers"] == ["block.0.attn.weights[0,1,0]", "block.0.attn.weights[0,1,1]"]
    assert "block-0-attn-scores" in found["nodes"]
    assert "node-logits" not in found["nodes"]


def test_ancestors_are_what_a_number_depends_on() -> None:
    told = asked("number", state=state("journey"), address="block.0.attn.mixed[0,1,2]")["ancestors"]
    assert "weight.embed.token[0,0]" in told
    edit = {"embed.token[2,0]": "5"}  # sat, which position 1 cannot see
    assert f"weight.{next(iter(edit))}" not in told
    before, after = both("journey", "exact", weights=edit)
    marked = set(addresses(changes(before, after)))
    assert not marked.intersection(told)


def test_a_weight_can_be_touched_and_says_how_it_is_written() -> None:
    edit = {"embed.token[0,1]": "1/3"}
    found = asked("number", state=state(weights=edit), address="weight.embed.token[0,1]")
    assert found["weight"] == {"address": "embed.token[0,1]", "text": "1/3"}
    assert found["ancestors"] == []
    assert "embed.token[0,1]" in found["readers"]
    assert asked("number", state=state(), address="logits[0,0]")["weight"] is None


def test_a_prediction_comes_from_the_logits() -> None:
    found = asked("number", state=state(), address="next[1]")
    assert {"logits[1,0]", "logits[1,1]", "logits[1,2]"} <= set(found["ancestors"])


@pytest.mark.parametrize(
    "address",
    ["logits", "logits[0]", "logits[0,9]", "logit[0,0]", "weight.embed[0,0]", "[", "logits[0,:]"],
)
def test_what_is_not_one_number_is_refused(address: str) -> None:
    with pytest.raises(AddressError):
        answer(LIBRARY, "number", {"state": state(), "address": address})


def test_a_trace_is_the_documents_json() -> None:
    found = asked("trace", state=state(), only=["logits"])
    assert found["steps"][0]["value"] == [["1", "-1", "0"], ["1", "-1", "0"]]
    assert found["next"][1]["token"] == "a"


def test_the_models_of_two_states_are_kept_apart() -> None:
    one, other = (
        edited(read_state(state(weights={"embed.token[0,0]": text})), LIBRARY).model
        for text in ("2", "3")
    )
    assert one.weights["embed.token"].data[0, 0] == 2
    assert other.weights["embed.token"].data[0, 0] == 3


def test_a_weight_with_many_entries_is_seen_by_windows() -> None:
    found = asked("look", state=state("minigpt"), weights=True)
    large = next(one for one in found["weights"] if one["name"] == "block.0.mlp.hidden")
    assert (large["shape"], large["entries"]) == ([64, 256], None)
    address = "block.0.mlp.hidden[63,255]"
    edited = state("minigpt", weights={address: "1/2"})
    window = asked("weight", state=edited, name="block.0.mlp.hidden", row=60, column=250)
    assert (window["row"], window["column"]) == (60, 250)
    assert [len(row) for row in window["entries"]] == [6, 6, 6, 6]
    assert window["entries"][3][5] == "0.5"
    whole = asked("number", state=edited, address="weight.block.0.mlp.hidden[60,250]")
    assert window["entries"][0][0] == whole["weight"]["text"]


@pytest.mark.parametrize(
    ("asking", "where"),
    [
        ({"name": "block.0.mlp.hiden"}, "name"),
        ({"name": "block.0.mlp.hidden", "row": 64}, "row"),
        ({"name": "block.0.mlp.hidden", "column": 256}, "column"),
    ],
)
def test_a_window_that_is_not_there_is_refused(asking: dict[str, Any], where: str) -> None:
    with pytest.raises(InputError) as error:
        asked("weight", state=state("minigpt"), **asking)
    assert error.value.where == where


def test_the_stream_of_a_medium_model_has_a_row_to_draw_at_every_stop() -> None:
    stops = looked("minigpt")["stream"]["stops"]
    assert {len(stop["row"]) for stop in stops} == {64}
    size = sum(x * x for x in stops[0]["row"]) ** 0.5
    assert stops[0]["size"] == pytest.approx(size)
    assert looked("journey")["stream"]["stops"][0]["row"] is None
