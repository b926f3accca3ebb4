"""The face in Python: what a value, a step, a trace and a result can be asked, and how they show
themselves."""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Iterator, Mapping
from fractions import Fraction
from inspect import isclass, isfunction, signature
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.errors import AddressError, ModelFileError, TextError, UsageError
from byhand.evaluate import work_out
from byhand.numbers.base import ABSENT, Numbers
from byhand.numbers.enclosed.enclosure import EVERYTHING
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from oracles.architectures import at_random, make_case

sys.path.append(str(Path(__file__).parent.parent / "docs" / "examples"))

from slopes import Slope, Slopes

KINDS = ("exact", "digits 12", "decimals 4", "float64", "float32", "bfloat16")


# ------------------------------------------------------------------ what is exported


def public_functions() -> Iterator[Any]:
    return (one for name in byhand.__all__ if isfunction(one := getattr(byhand, name)))


def types_in(annotation: Any) -> Iterator[type]:
    """The classes that an annotation names, those within tuples and unions as well."""
    if isclass(annotation) and not typing.get_args(annotation):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from types_in(inner)


def returned(function: Any) -> Iterator[type]:
    module = sys.modules[function.__module__]
    names = {**vars(byhand), **{name: getattr(byhand, name) for name in byhand.__all__}}
    hints = typing.get_type_hints(function, {**vars(module), **names})
    yield from types_in(hints.get("return"))


def test_every_type_that_a_public_function_returns_is_exported() -> None:
    exported = {getattr(byhand, name) for name in byhand.__all__}
    found = {kind for function in public_functions() for kind in returned(function)}
    for kind in list(found):  # what a result is made of, where it is gone through
        for name in ("__iter__", "__next__", "values"):
            if isfunction(method := vars(kind).get(name)):
                found |= set(returned(method))
    own = {kind for kind in found if kind.__module__.startswith("byhand")}
    assert len(own) > 10
    assert own <= exported


@pytest.mark.parametrize("name", byhand.__all__)
def test_every_export_is_documented(name: str) -> None:
    thing = getattr(byhand, name)
    if name == "__version__":
        return
    told = (thing.__doc__ or "").strip()
    assert told
    assert not told.startswith(f"{name}("), "a dataclass documents itself only by its fields"
    for each, member in vars(thing).items() if isclass(thing) else ():
        if not each.startswith("_") and (isfunction(member) or isinstance(member, property)):
            assert (member.__doc__ or "").strip(), f"{name}.{each}"


@pytest.mark.parametrize("function", list(public_functions()), ids=lambda one: one.__name__)
def test_the_docstring_names_every_option(function: Any) -> None:
    shared = {"model", "text", "numbers", "device", "progress", "spelled", "inputs", "input_ids"}
    module = sys.modules[function.__module__].__doc__ or ""
    for name in set(signature(function).parameters) - shared:
        assert name in (function.__doc__ or "") + module, f"{function.__name__}: {name}"


def results() -> Iterator[Any]:
    trace = byhand.trace("journey")
    yield from (trace, trace["logits"], trace.loss, trace.next[-1], trace.model)
    yield from (trace.numbers, byhand.trace("tiny", numbers="digits 5").loss)
    yield from (byhand.check("journey"), *byhand.check("journey"), byhand.count("journey"))
    yield from (
        byhand.explain("tiny"),
        byhand.generate("tiny", count=1),
        byhand.open_trace("minigpt-init"),
    )
    floats, proven = byhand.trace("tiny", numbers="float32"), byhand.trace("tiny", digits=12)
    yield from (byhand.compare(floats, proven), floats["logits[0,0]"])


def test_every_result_prints_itself_in_a_line() -> None:
    for result in results():
        assert 0 < len(repr(result)) < 200, repr(result)
        assert "\n" not in repr(result)


# ------------------------------------------------------------------ numbers


@pytest.mark.parametrize("numbers", KINDS)
def test_a_number_of_any_kind_has_places_significant_digits_and_a_float(numbers: str) -> None:
    loss = byhand.trace("journey", numbers=numbers).loss
    assert (loss.places(1), loss.significant(2)) == ("1.8", "1.8")
    assert float(loss) == pytest.approx(1.83, abs=0.01)
    assert int(loss) == 1
    entry = byhand.trace("journey", numbers=numbers)["logits[0,5]"]
    assert (entry.places(2), entry.significant(1), int(entry)) == ("-0.02", "-0.02", 0)


@pytest.mark.parametrize("numbers", KINDS)
def test_numpy_reads_a_step(numbers: str) -> None:
    trace = byhand.trace("journey", numbers=numbers)
    truth = byhand.trace("journey", numbers="float64")
    close = {"rtol": 0.02, "atol": 0.01}
    for address in ("logits", "probs", "block.0.attn.weights", "loss"):
        found = np.asarray(trace[address]).astype(np.float64)
        np.testing.assert_allclose(found, np.asarray(truth[address]), **close)
    scores = np.asarray(trace["block.0.attn.scores"]).astype(np.float64)
    assert np.isneginf(scores[0, 0, 1])
    assert np.asarray(trace["block.0.attn.weights"])[0, 0, 1] == 0
    assert np.asarray(trace["tokens"]).dtype == np.asarray(trace["next"]).dtype == np.int64
    assert np.asarray(trace["logits"], dtype=np.float32).dtype == np.float32
    assert np.array(trace["logits"], copy=True).flags.writeable


def test_the_floats_of_exact_numbers_are_the_nearest() -> None:
    third = byhand.make_model(
        {"d_model": 1, "layers": 0}, {"embed.token": [["1/3"], ["sqrt(2)"]]}, ["a", "b"]
    )
    embedded = byhand.trace(third, "a b")["embed.token"]
    assert np.asarray(embedded).tolist() == [[1 / 3], [2**0.5]]


def test_what_is_not_known_is_no_number() -> None:
    with pytest.raises(byhand.Undecided, match="nothing is known of this number"):
        float(EVERYTHING)
    with pytest.raises(byhand.Undecided, match="nothing is known of this number"):
        int(EVERYTHING)
    with pytest.raises(byhand.Undecided, match="not known narrowly enough to be a whole number"):
        int(byhand.Enclosure(Fraction(1), Fraction(1, 10)))
    assert int(byhand.Enclosure(Fraction(-3, 2), Fraction(1, 10))) == -1
    unknown = byhand.make_model({"d_model": 1, "layers": 0}, {"embed.token": "unknown"}, ["a", "b"])
    with pytest.raises(byhand.ByhandError, match=r"weight\.embed\.token is unknown"):
        np.asarray(byhand.trace(unknown, "a")["logits"])
    with pytest.raises(TypeError):
        float(byhand.trace("tiny")["logits"])


@pytest.mark.parametrize(
    ("text", "whole"),
    [("sqrt(2)", 1), ("-sqrt(2)", -1), ("exp(1)", 2), ("-exp(1)", -2), ("1/2", 0), ("-7/2", -3),
     ("sqrt(2)*sqrt(2)", 2), ("sqrt(2)-1", 0), ("ln(2)-1", 0)],
)  # fmt: skip
def test_a_whole_number_is_cut_towards_zero(text: str, whole: int) -> None:
    from byhand.expression import parse

    assert int(Exact().scalar(parse(text))) == whole


def test_a_letter_says_what_it_stands_for() -> None:
    loss = byhand.trace("journey").loss
    in_form = {name for name in loss.letters if name in str(loss)}
    assert in_form >= {"u1", "u3", "u4", "u5"}
    assert byhand.trace("tiny")["logits[0,0]"].letters == {}


@pytest.mark.parametrize("numbers", KINDS)
def test_a_count_of_digits_is_a_whole_number_of_any_type(numbers: str) -> None:
    loss = byhand.trace("journey", numbers=numbers).loss
    for count in (3, 19, 25):  # 10^19 is beyond NumPy's whole numbers
        assert loss.places(np.int64(count)) == loss.places(count)
        assert loss.significant(np.int64(count)) == loss.significant(count)
    for wrong in (-1, 1001, True, 2.0, "3", None):
        for say in (loss.places, loss.significant, lambda n: trace_places(numbers, n)):
            with pytest.raises(UsageError, match="count has a value that does not fit"):
                say(wrong)
    with pytest.raises(UsageError, match="count has a value that does not fit"):
        loss.significant(0)


def trace_places(numbers: str, count: Any) -> str:
    return byhand.trace("tiny", "a b", numbers=numbers).places("logits[0,0]", count)


def test_a_large_enclosure_has_an_exponent() -> None:
    assert byhand.Enclosure(Fraction(10) ** 5000, Fraction(1)).places(2) == "1.00e5000"


def test_a_float_of_ones_own_prints_itself() -> None:
    assert repr(byhand.Float(0.1)) == "0.1"
    assert byhand.Float(0.1).places(2) == "0.10"


@pytest.mark.parametrize("numbers", ["exact", "digits 12", "float32"])
def test_nobody_writes_into_a_trace(numbers: str) -> None:
    trace = byhand.trace("tiny", "a b", numbers=numbers)
    np.asarray(trace["logits"])[:] = 7
    assert np.asarray(trace["logits"]).tolist() == [[1, -1, 0], [1, -1, 0]]


def test_a_step_prints_its_numbers_as_their_format_does() -> None:
    assert "[[0.04740249, 0.3971432" in repr(byhand.trace("journey", numbers="float32")["logits"])
    assert repr(byhand.trace("tiny", "a b")["next"]) == "<next 2 exact: [0, 0]>"


# ------------------------------------------------------------------ the words of numbers


@pytest.mark.parametrize(
    "wrong", ["exakt", "float31", "digits", "digits many", "decimals -1", "", Exact, 12, b"exact"]
)
def test_numbers_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="has a value that does not fit"):
        byhand.trace("tiny", numbers=wrong)


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ({"numbers": "exact", "decimals": 2}, "exact and decimals exclude each other"),
        ({"numbers": "digits 4", "digits": 5}, "numbers and digits exclude each other"),
        ({"numbers": "float32", "digits": 5}, "digits and float exclude each other"),
        ({"numbers": Exact(), "exact": True}, "numbers and exact exclude each other"),
        ({"numbers": Exact(), "device": "cpu"}, "numbers and device exclude each other"),
        ({"numbers": "exact", "device": "cpu"}, "exact and device exclude each other"),
    ],
)
def test_what_does_not_go_together_is_refused(said: dict[str, Any], refusal: str) -> None:
    for function in (byhand.trace, byhand.generate, byhand.explain):
        with pytest.raises(UsageError, match=refusal):
            function("tiny", **said)
    with pytest.raises(UsageError, match=refusal):
        byhand.book("tiny", out="nowhere", **said)


@pytest.mark.parametrize("wrong", [None, 5, {}, b"tiny", np.eye(2), ["tiny"]])
def test_a_model_is_a_name_a_path_or_a_model(wrong: Any) -> None:
    for function in (byhand.trace, byhand.count, byhand.open_model):
        with pytest.raises(UsageError, match="model has a value that does not fit"):
            function(wrong)


@pytest.mark.parametrize("wrong", [None, 3, b"logits", ("logits", 1)])
def test_an_address_is_a_text(wrong: Any) -> None:
    trace = byhand.trace("tiny", "a b")
    assert wrong not in trace
    assert trace.get(wrong, "none") == "none"
    with pytest.raises(AddressError, match="this is not an address"):
        trace[wrong]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, None, "2"])
def test_a_number_of_tokens_is_whole(wrong: Any) -> None:
    with pytest.raises(UsageError, match="the number of tokens has a value that does not fit"):
        byhand.generate("tiny", "c", count=wrong)


@pytest.mark.parametrize("wrong", [5, ["a", "b"], b"a b"])
def test_a_text_is_a_text(wrong: Any) -> None:
    for function in (byhand.trace, byhand.generate, byhand.explain):
        with pytest.raises(UsageError, match="text has a value that does not fit"):
            function("tiny", wrong)


def test_an_option_that_is_none_is_a_type_error() -> None:
    for function in (byhand.trace, byhand.generate, byhand.explain, byhand.check):
        with pytest.raises(TypeError, match="nummers"):
            function("journey", nummers="exact")


def test_a_token_may_be_said_by_its_id() -> None:
    by_word = byhand.trace("tiny", target="b")
    assert str(byhand.trace("tiny", target=1).loss) == str(by_word.loss)
    assert byhand.trace("tiny", target=1).target == by_word.target == 1
    assert byhand.explain("tiny", token=1, against=2).against == 2
    for wrong in (7, -1, True, 1.0):
        with pytest.raises(UsageError, match="target has a value that does not fit"):
            byhand.trace("tiny", target=wrong)
    with pytest.raises(TextError):
        byhand.trace("tiny", target="z")


# ------------------------------------------------------------------ notebooks


@pytest.mark.parametrize("numbers", ["exact", "digits 8", "decimals 3", "float32"])
def test_every_step_shows_itself(numbers: str) -> None:
    for worked in byhand.trace("journey", numbers=numbers).values():
        shown = worked._repr_html_()
        assert shown is not None
        assert worked.address in shown
        assert " id=" not in shown


def test_a_number_shows_itself_with_its_letters() -> None:
    shown = byhand.trace("journey").loss._repr_html_()
    assert all(f">{name} =" in shown or f"where {name} =" in shown for name in ("u1", "u5"))
    assert '<data value="1.8313">' in shown


@pytest.mark.parametrize("result", [each for each in results() if hasattr(each, "_repr_html_")],
                         ids=lambda each: type(each).__name__)  # fmt: skip
def test_every_result_shows_itself(result: Any) -> None:
    shown = result._repr_html_()
    assert shown.startswith('<div class="byhand"')
    assert not re.search(r"\s(id|for|popovertarget)=", shown), "many cells stand on one page"


# ------------------------------------------------------------------ a number system of one's own


@pytest.fixture(scope="module")
def sloping() -> byhand.Trace:
    model = byhand.open_model("journey")
    return byhand.trace(model, numbers=Slopes(model.weights["embed.token"].data, (1, 1)))


def test_slopes_are_those_of_differences(sloping: byhand.Trace) -> None:
    model = sloping.model

    def moved(step: Fraction) -> byhand.Trace:
        weights: dict[str, Any] = {name: t.data.copy() for name, t in model.weights.items()}
        weights["embed.token"][1, 1] += step
        other = byhand.make_model(model.spec, weights, model.vocabulary)
        return byhand.trace(other, model.text, target=model.target, numbers="digits 30")

    step = Fraction(1, 10**8)
    above, below = moved(step), moved(-step)
    compared = 0
    for worked in sloping.values():
        for index, entry in worked.entries():
            if isinstance(entry, Slope):
                ends = (each.steps[worked.address].at(index).mid for each in (above, below))
                slope = float((next(ends) - next(ends)) / (2 * step))
                assert entry.slope == pytest.approx(slope, abs=1e-9), worked.address
                compared += 1
    assert compared > 350


@pytest.mark.parametrize("seed", range(40))
def test_slopes_work_every_architecture_out(seed: int) -> None:
    case = make_case(at_random(Random(seed)), seed)
    floats, slopes = (
        work_out(case.plan(), case.weights, case.tokens, each, target=case.target)
        for each in (Floats("float64"), Slopes())
    )
    for address, worked in floats.items():
        found = np.asarray(slopes[address])
        np.testing.assert_allclose(found, np.asarray(worked), rtol=1e-7, atol=1e-9, err_msg=address)


@pytest.mark.parametrize("name", ["abc", "journey", "minigpt"])
def test_the_values_of_slopes_are_those_of_float64(name: str) -> None:
    floats, slopes = (byhand.trace(name, numbers=each) for each in ("float64", Slopes()))
    for address in floats:
        one, other = np.asarray(floats[address]), np.asarray(slopes[address])
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)


def test_a_trace_in_numbers_of_ones_own_is_saved_and_shown(
    sloping: byhand.Trace, tmp_path: Path
) -> None:
    from byhand.document.compose.trace import document
    from byhand.document.media.json.trace import document_of
    from byhand.document.media.terminal.ink import Ink
    from byhand.document.media.terminal.parts import Terminal

    sloping.save(tmp_path / "golden")
    saved = byhand.open_trace(tmp_path / "golden")
    assert (saved.numbers, saved.exact("loss[0]")) == ("slopes", "1.8313 -0.0067ε")
    np.testing.assert_array_equal(saved["logits"].values, np.asarray(sloping["logits"]))
    assert document_of(sloping)["loss"]["value"] == "1.8313 -0.0067ε"
    assert any("1.8313 -0.0067ε" in line for line in Terminal(80, Ink()).lines(document(sloping)))
    assert "1.8313 -0.0067ε" in (sloping._repr_html_() or "")
    assert "-0.0160ε" in (sloping["probs"]._repr_html_() or "")


def test_a_book_is_made_in_numbers_of_ones_own(sloping: byhand.Trace, tmp_path: Path) -> None:
    pages = byhand.book(sloping.model, out=tmp_path, numbers=sloping.numbers, xlsx=True)
    assert any(
        "1.8313 -0.0067ε" in page.read_text("utf-8") for page in pages if ".html" in str(page)
    )
    explained = byhand.explain(sloping.model, numbers=sloping.numbers)
    assert explained._repr_html_()


def test_a_number_system_has_a_name(sloping: byhand.Trace) -> None:
    assert isinstance(sloping.numbers, Numbers)
    assert repr(sloping.numbers) == "<Slopes: slopes>"
    assert "(slopes)" in repr(sloping)


@pytest.mark.parametrize("numbers", KINDS)
@pytest.mark.parametrize("name", ["tiny", "journey", "abc"])
def test_a_trace_is_right_about_its_own_model(name: str, numbers: str) -> None:
    assert byhand.check(name, byhand.trace(name, numbers=numbers)).passed


def test_a_book_marks_claims_that_are_a_mapping(tmp_path: Path) -> None:
    claims = {"logits[1,0]": 2}
    assert byhand.book("tiny", "a b", out=tmp_path, claims=claims)[0].exists()


class Within(Slopes):
    """Slopes that call every entry enclosed, and have no way to say its interval."""

    uniform = None
    name = "within"

    def register(self, entry: Any) -> str:
        return "enclosed"


def test_entries_of_ones_own_may_be_enclosed(tmp_path: Path) -> None:
    trace = byhand.trace("tiny", "a b", numbers=Within())
    assert "byhand" in trace._repr_html_()
    assert byhand.book("tiny", "a b", out=tmp_path, numbers=Within())[0].exists()
    for say in (trace.places, trace.significant):
        with pytest.raises(byhand.Undecided, match="not known narrowly enough"):
            say("logits[0,0]", 3)


# ------------------------------------------------------------------ models from Python


def test_a_model_of_arrays_is_the_model_of_the_file(tmp_path: Path) -> None:
    tiny = byhand.open_model("tiny")
    exact = {name: tensor.data for name, tensor in tiny.weights.items()}
    floats = {name: data.astype(np.float32) for name, data in exact.items()}
    lists = {name: data.tolist() for name, data in exact.items()}
    for weights in (exact, floats, lists):
        model = byhand.make_model(tiny.spec, weights, ["a", "b", "c"], text="a b")
        assert byhand.trace(model)["logits"].value.tolist() == [[1, -1, 0], [1, -1, 0]]
        model.save(tmp_path / "again.yaml")
        again = byhand.open_model(tmp_path / "again.yaml")
        assert (again.spec, again.vocabulary, again.text) == (tiny.spec, tiny.vocabulary, "a b")
        assert byhand.trace(again)["logits"].value.tolist() == [[1, -1, 0], [1, -1, 0]]


def test_a_model_from_python_goes_wherever_a_name_does(tmp_path: Path) -> None:
    tiny = byhand.open_model("tiny")
    weights = {name: tensor.data for name, tensor in tiny.weights.items()}
    model = byhand.make_model(tiny.spec, weights, tiny.vocabulary, name="mine", text="a b")
    assert [chosen.token for chosen in byhand.generate(model, count=1)] == ["a"]
    assert byhand.explain(model).position == 1
    assert byhand.check(model, {"logits[1]": [1, -1, 0]}).passed
    assert byhand.count(model).model == "mine"
    assert byhand.book(model, out=tmp_path / "book")[0].exists()
    with pytest.raises(UsageError, match="claims is missing"):
        byhand.check(model)


SMALL: Mapping[str, Any] = {
    "spec": {"d_model": 2, "layers": 0},
    "weights": {"embed.token": [[1, 0], [0, 1]]},
    "vocabulary": ["no", "yes"],
}


@pytest.mark.parametrize(
    ("given", "where", "message"),
    [
        ({"weights": {"embed.token": [[1, 0], [0, "sqrt(-2)"]]}}, "weights.embed.token[1,1]",
         "square root of a negative number"),
        ({"weights": {"embed.token": [[1, 0], [0, float("inf")]]}}, "weights.embed.token[1,1]",
         "inf is not a number"),
        ({"weights": {"embed.token": np.array([[1, 0], [np.nan, 1]])}}, "weights.embed.token[1,0]",
         "nan is not a number"),
        ({"weights": {"embed.token": [[1, None], [0, 1]]}}, "weights.embed.token[0,1]",
         "only an entry of score_table can be masked"),
        ({"weights": {"embed.token": np.ones((3, 2))}}, "weights.embed.token", "wrong shape"),
        ({"weights": {"embed.tokn": [[1]]}}, "weights.embed.tokn", "no weight 'embed.tokn'"),
        ({"weights": {}}, "weights", "the weight embed.token is missing"),
        ({"weights": [1]}, "weights", "weights is a table"),
        ({"spec": {"d_mdel": 2}}, "model.d_mdel", "no key 'd_mdel'"),
        ({"spec": [2]}, "model", "model is a table"),
        ({"weights": {"embed.token": [[1, byhand.Enclosure(Fraction(1), Fraction(1))], [0, 1]]}},
         "weights.embed.token[0,1]", "cannot be read"),
        ({"weights": {"embed.token": np.ma.array(np.eye(2), mask=[[0, 1], [0, 0]])}},
         "weights.embed.token[0,1]", "only an entry of score_table can be masked"),
        ({"weights": {"embed.token": np.eye(2) * 1j}}, "weights.embed.token[0,0]",
         "cannot be read"),
        ({"vocabulary": ["no", "no"]}, "vocabulary[1]", "twice"),
        ({"vocabulary": "no"}, "vocabulary", "a list of tokens"),
        ({"text": "maybe"}, "text", "'maybe' is not in the vocabulary"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_model_is_said_with_its_place(
    given: dict[str, Any], where: str, message: str
) -> None:
    with pytest.raises(byhand.ByhandError, match=message) as refused:
        byhand.make_model(**{**SMALL, **given})
    assert refused.value.where == where


def test_a_number_of_a_trace_is_a_weight_exactly_or_not_at_all() -> None:
    trace = byhand.trace("tiny", "a b")
    named = {"embed.token": trace["probs"][:, :2]}
    model = byhand.make_model(SMALL["spec"], named, SMALL["vocabulary"])
    assert str(byhand.trace(model, "no")["embed.token[0,0]"]) == str(trace["probs[0,0]"])
    model = byhand.make_model(
        {"d_model": 3, "layers": 0}, {"embed.token": trace["probs"]}, SMALL["vocabulary"]
    )
    assert str(byhand.trace(model, "no")["embed.token[0,0]"]) == str(trace["probs[0,0]"])
    with pytest.raises(ModelFileError, match="cannot be read"):  # its letters are the trace's
        byhand.make_model(
            SMALL["spec"],
            {"embed.token": byhand.trace("journey")["logits"][:2, :2]},
            SMALL["vocabulary"],
        )


def test_tensors_of_torch_are_weights() -> None:
    torch = pytest.importorskip("torch")
    for tensor in (torch.eye(2, dtype=torch.bfloat16) / 10, torch.nn.Parameter(torch.eye(2) / 10)):
        model = byhand.make_model(SMALL["spec"], {"embed.token": tensor}, SMALL["vocabulary"])
        assert byhand.trace(model, "no")["embed.token[0,0]"] == Fraction(
            float(tensor.detach()[0, 0])
        )


def test_names_and_texts_stay_on_one_line() -> None:
    for name in ("first\nsecond", "long" * 100):
        model = byhand.make_model(**SMALL, name=name, text="no " * 200)
        trace = byhand.trace(model)
        marking = byhand.check(model, {"logits[0,0]": 2})
        for shown in (model, trace, byhand.count(model), byhand.explain(model), marking):
            assert "\n" not in repr(shown)
            assert len(repr(shown)) < 200


def test_a_vocabulary_must_have_the_size_of_the_spec() -> None:
    with pytest.raises(ModelFileError, match="another size than the model needs"):
        byhand.make_model(byhand.open_model("tiny").spec, {}, ["no", "yes"])


def test_an_address_that_is_not_there_is_a_key_error_too() -> None:
    with pytest.raises(KeyError):
        byhand.trace("tiny")["nothing"]
    assert issubclass(AddressError, KeyError)
    assert byhand.trace("tiny").get("nothing") is None
    assert byhand.trace("tiny")["block.0.attn.scores[0,0,1]"] is ABSENT
