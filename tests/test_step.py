"""`byhand.step` from Python: what comes back, what is shown in a notebook, what is saved."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byhand
from byhand import evaluate, forward, names
from byhand.backward import adjoint
from byhand.files import parse_model, read_model
from byhand.learning import Training
from byhand.new_weights import as_weight
from byhand.numbers.exact import Exact
from byhand.rules import Settings
from calling import Outcome

Call = Callable[..., Outcome]


@pytest.fixture
def call(request: pytest.FixtureRequest) -> Call:
    """Calls the command line; here `byhand` is the package."""
    called: Call = request.getfixturevalue("byhand")
    return called


@pytest.fixture(scope="module")
def training() -> Training:
    return byhand.step("tiny", "a b", target="c", optimizer="momentum", steps=2)


def test_a_training_has_its_losses_its_steps_and_the_pass_after_them(training: Training) -> None:
    assert len(training.losses) == 3
    assert len(training.steps) == 2
    assert training.losses[1] == training.steps[1].loss
    assert training.losses[2] == training.after.loss
    assert training.steps[1].rule.step == 2
    assert "before.m.embed.token" in training.steps[1].trace.steps
    assert not training.mean


def test_the_second_step_shows_the_weights_it_reads(training: Training) -> None:
    """Not those of the model that was given."""
    first, second = (step.trace for step in training.steps)
    assert first.model is training.model
    new = first["update.weight.block.0.mlp.norm.gain"]
    read = second.model.weights["block.0.mlp.norm.gain"].data
    numbers = second.numbers
    assert [numbers.entries(numbers.admit(read))[i] == new[i] for i in range(2)] == [True, True]
    assert training.after.model.weights["embed.token"].data[0, 0] != 1


def test_a_notebook_shows_the_losses_and_every_line(training: Training) -> None:
    html = training._repr_html_()
    assert html is not None
    assert "One training step" not in html
    assert "update.weight.block.0.mlp.norm.gain" in html
    assert "1.4076" in html
    step = training.steps[0]._repr_html_()
    assert step is not None
    assert "momentum, rate 0.1, momentum 0.9" in step


def test_a_trace_with_gradients_is_shown_and_saved_too(tmp_path: Path) -> None:
    trace = byhand.trace("tiny", "a b", target="c", backward=True)
    html = trace._repr_html_()
    assert html is not None
    assert "grad.weight.embed.token" in html
    trace.save(tmp_path / "golden")
    saved = byhand.open_trace(tmp_path / "golden")
    assert saved["grad.logits"].shape == (2, 3)


def test_a_step_of_learning_is_shown_alone() -> None:
    trace = byhand.trace("minigpt", losses=True, backward=True)
    for name in ("losses", "mean_loss", "grad.weight.embed.token", "grad.logits", "targets"):
        html = trace[name]._repr_html_()
        assert html is not None
        assert name in html


def test_the_gradient_of_a_large_table_shows_the_rows_of_the_text(call: Call) -> None:
    told = call("trace", "minigpt", "--only", "grad.weight.embed.token").out
    rows = re.findall(r"^    (\S+) ", told.split("grad.weight.embed.token =")[1], re.MULTILINE)
    assert {"yesterday", "climb", "sub", "-ió"} <= set(rows)
    assert "<pad3>" not in rows
    logits = call("trace", "minigpt", "--only", "grad.logits").out
    assert "-ió" in logits.split("grad.logits =")[1]  # the target has the largest one
    assert "59 more columns of smaller numbers" in logits


def test_gradients_are_a_mapping_by_what_they_are_gradients_of() -> None:
    trace = byhand.trace("tiny", "a b", target="c", backward=True)
    assert trace.grad["logits"] is trace["grad.logits"]
    assert trace.grad["stream.1"] is trace["grad.block.0.mlp.norm.out"]
    assert set(trace.grad) >= {"logits", "weight.embed.token", "weight.block.0.attn.q"}
    assert all(not name.startswith("grad.") and ".via." not in name for name in trace.grad)
    with pytest.raises(byhand.ByhandError, match="this trace has no gradients"):
        byhand.trace("tiny").grad["logits"]


def test_asking_for_a_gradient_or_the_losses_by_name_is_enough() -> None:
    trace = byhand.trace("tiny", "a b", only=["grad.logits", "losses"])
    assert trace.grad["logits"].step.shape == (2, 3)
    assert trace.losses is not None
    assert trace.losses[1] is None
    assert byhand.trace("tiny").losses is None


def test_long_numbers_become_proven_decimals_of_17_digits() -> None:
    numbers = Exact()
    third, long = Fraction(1, 3), Fraction(10**70 + 1, 3 * 10**69)
    value, digits = as_weight(numbers.admit(np.array([third], object))[0], numbers)
    assert (value, digits) == (third, None)
    value, digits = as_weight(numbers.admit(np.array([long], object))[0], numbers)
    assert digits == 17
    assert value == Fraction("3.3333333333333333")


def test_a_saved_expression_is_the_number_itself(tmp_path: Path) -> None:
    """Decided by algebra: the file's weights are equal to those that were worked out."""
    training = byhand.step("tiny", "a b", target="c", optimizer="adamw")
    training.save(tmp_path / "new.yaml")
    new = read_model(tmp_path / "new.yaml")
    numbers = training.after.numbers
    exact = 0
    for name, worked in training.new.items():
        read = numbers.entries(numbers.admit(new.weights[name].data))
        for index, entry in worked.entries():
            difference = abs(float(read[index]) - float(entry))
            assert read[index] == entry or difference < 1e-16
            exact += bool(read[index] == entry)
    assert exact > 30


def test_the_mean_loss_of_several_texts_at_their_last_positions() -> None:
    texts = ["a b", "c a"]
    both = byhand.step("tiny", texts, target="b", loss="last", numbers="float64")
    alone = [byhand.step("tiny", text, target="b", numbers="float64").losses[0] for text in texts]
    assert both.losses[0] == pytest.approx(sum(alone) / 2, rel=1e-15)
    assert [id for id in both.batch.targets if id >= 0] == [1, 1]


def test_a_large_model_of_many_steps_keeps_the_numbers_of_the_last_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("byhand.learning.MANY", 10)
    few = byhand.step("tiny", "a b", target="c", optimizer="adam", steps=3, numbers="float64")
    assert set(few.steps[0].trace.steps) == {"loss", "update.norm"}
    assert "grad.logits" in few.steps[2].trace.steps
    monkeypatch.undo()
    all_of_it = byhand.step("tiny", "a b", target="c", optimizer="adam", steps=3, numbers="float64")
    assert few.losses == all_of_it.losses


def test_a_table_of_scores_with_masked_entries_stays_as_it_is() -> None:
    model = parse_model(
        "name: tabled\nvocabulary: [a, b]\ntext: a b\ntarget: a\n"
        "model: {d_model: 2, context: 2, layers: 1, position: none, norm: none, final_norm: none, "
        "attention: {heads: 1, score_table: true}, mlp: none}\n"
        "weights:\n  embed.token: identity\n  block.0.attn.q: identity\n"
        "  block.0.attn.k: identity\n  block.0.attn.v: identity\n  block.0.attn.out: identity\n"
        "  block.0.attn.score_table: [[[0, masked], [masked, 1]]]\n",
        "tabled.yaml",
    )
    training = byhand.step(model)
    assert training.losses[1] < training.losses[0]
    assert "block.0.attn.score_table" not in training.new
    new = training.new_model()
    assert new.weights["block.0.attn.score_table"] is model.weights["block.0.attn.score_table"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "adamm"}, "optimizer has a value that does not fit"),
        ({"lr": -0.1}, "lr has a value that does not fit"),
        ({"steps": 0}, "steps has a value that does not fit"),
        ({"steps": 1.5}, "steps has a value that does not fit"),
        ({"clip": 0}, "clip has a value that does not fit"),
        ({"decay": -1}, "decay has a value that does not fit"),
        ({"eps": 0, "optimizer": "adam"}, "eps has a value that does not fit"),
        ({"betas": 0.9, "optimizer": "adam"}, "betas has a value that does not fit"),
        ({"betas": (0.9, 1), "optimizer": "adam"}, "betas has a value that does not fit"),
        ({"momentum": 1, "optimizer": "momentum"}, "momentum has a value that does not fit"),
        ({"eps": 1e-8}, "sgd has no eps"),
        ({"schedule": "linear"}, "schedule has a value that does not fit"),
        ({"end": 0.5}, "a constant rate has no end"),
        ({"end": 2, "schedule": "cosine"}, "end has a value that does not fit"),
        ({"warmup": 2}, "warmup has a value that does not fit"),
        ({"prompt": -1}, "prompt has a value that does not fit"),
        ({"loss": "sum"}, "loss has a value that does not fit"),
        ({"float": "float32", "digits": 6}, "digits and float exclude each other"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(byhand.ByhandError, match=re.escape(message)):
        byhand.step("tiny", "a b", **settings)


def test_a_cosine_is_exact_where_it_is_rational() -> None:
    rules = Settings(lr=1, steps=4, warmup=1, schedule="cosine", end="1/5").rules
    assert [rule.rate for rule in rules] == [1, Fraction(4, 5), Fraction(2, 5), Fraction(1, 5)]


def test_gradients_have_one_name_each_in_every_style() -> None:
    for name in ("tiny", "abc", "minigpt"):
        model = byhand.open_model(name)
        plan = adjoint(forward.plan(model.spec, 2, losses=True))
        for style in names.STYLES:
            called = plan.in_style(style)
            assert len(set(called.values())) == len(called)
            assert all(plan[told].address == address for address, told in called.items())


def test_a_text_that_was_too_long_for_the_file_is_not_written_into_it() -> None:
    training = byhand.step("tiny", "a b c")  # two tokens are read, the third is a target
    assert training.new_model().text == "a b"
    assert evaluate.trace(training.new_model(), "a b", Exact(), losses=True).mean_loss is not None


def test_a_step_reads_another_source_and_says_so(call: Call) -> None:
    read: Any = {"source": "el perro blanco corre", "target": "white", "numbers": "float64"}
    training = byhand.step("docs/examples/translator.yaml", "the", **read)
    assert training.losses[0] == byhand.trace("docs/examples/translator.yaml", "the", **read).loss
    shown = call("step", "docs/examples/translator.yaml", "the", "--source", read["source"])
    assert f"source     {read['source']}\n" in shown.out
    two = call("step", "docs/examples/translator.yaml", "the", "the", "--source", read["source"])
    assert "nothing, beside several texts" in two.err


def test_the_target_of_an_encoder_belongs_at_its_blank() -> None:
    text = """
        vocabulary: [hide, a, b]
        model: {d_model: 1, layers: 1, mlp: none, attention: {d_head: 1, causal: false}}
        weights: {embed.token: [[0], [1], [2]], block.0.attn.q: ones, block.0.attn.k: ones,
                  block.0.attn.v: ones, block.0.attn.out: ones}
    """
    model = parse_model(text)
    model = replace(model, blank=0, spec=replace(model.spec, in_place=True))
    training = byhand.step(model, "a hide", target="b", numbers="float64")
    assert training.batch.targets == (-1, 2)
    trace = byhand.trace(model, "a hide", target="b", numbers="float64")
    assert training.losses[0] == trace.mean_loss
    with pytest.raises(byhand.ByhandError, match="the text has no blank"):
        byhand.step(model, "a b", target="b")
