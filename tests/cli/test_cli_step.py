"""`byhand step` and `byhand trace --backward`: what is printed, saved and refused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from terminals import CTRL_C, on_a_terminal, running

import byhand as by

Call = Callable[..., Any]
TINY = ("step", "tiny", "a b", "--target", "c")


# ------------------------------------------------------------------ what is printed


def test_a_step_of_tiny_is_worked_out_line_by_line_and_exactly(byhand: Call) -> None:
    told = byhand(*TINY).out
    assert "loss       that of the last position" in told
    assert "optimizer  sgd, rate 0.1" in told
    headings = re.findall(r"^── (.+?) ─", told, flags=re.MULTILINE)
    assert headings[:4] == ["Loss before", "Gradients", "Norm", "embed.token"]
    assert headings[-1] == "Loss after"
    assert "= ln(1 + e + e^2) - 1" in told  # the loss before
    assert "-1/(1 + e + e^2)" in told  # of the gain's gradient
    assert "u2 = 1 + e^((11 + 10e + 9e^2)^2/(50(1 + e + e^2)^2))" in told  # of the loss after
    assert told.rstrip().endswith("loss ≈ 1.4076 → ≈ 1.1406")


def test_adamw_shows_clipping_moments_corrections_and_decay(byhand: Call) -> None:
    told = byhand(*TINY, "--optimizer", "adamw", "--clip", "1", "--float", "float64").out
    for line in (
        "update.norm = √(Σ squares)",
        "update.clip = min(1, 1 / (norm + 1e-06))",
        "update.clipped.embed.token = grad · clip",
        "update.m.embed.token = 0.1 · grad",
        "update.m_hat.embed.token = m / (1 - 0.9^1)",
        "update.v.embed.token = 0.001 · grad²",
        "update.v_hat.embed.token = v / (1 - 0.999^1)",
        "update.root.embed.token = √v̂ + 1e-08",
        "update.change.embed.token = m̂ / root",
        "update.weight.embed.token = 0.99999 · weight - 0.001 · change",
        "update.weight.block.0.mlp.norm.gain = weight - 0.001 · change",  # does not decay
    ):
        assert line in told, line


def test_several_steps_have_a_line_each_with_the_rate_of_the_schedule(byhand: Call) -> None:
    told = byhand(
        *TINY, "--steps", "4", "--warmup", "2", "--schedule", "cosine", "--clip", "1.5",
        "--only", "update.norm",
    ).out  # fmt: skip
    rows = re.findall(r"^ +(\d) +([\d.]+) +≈ ([\d.]+) +≈ ([\d.]+)(?: +≈ ([\d.]+))?$", told, re.M)
    assert [row[:2] for row in rows] == [("1", "0.05"), ("2", "0.1"), ("3", "0.055"), ("4", "0.01")]
    assert [bool(row[4]) for row in rows] == [
        True,
        True,
        False,
        False,
    ]  # norms over 1.5 are clipped
    losses = [float(row[2]) for row in rows]
    assert losses == sorted(losses, reverse=True)
    assert "at the end" in told


def test_a_batch_without_a_target_learns_from_the_mean_over_its_positions(byhand: Call) -> None:
    told = byhand("step", "tiny", "a b c", "b a", "--only", "losses", "--only", "mean_loss").out
    assert "texts      a b c · b a" in told
    assert "loss       the mean over 3 positions" in told
    assert re.findall(r"^  √ (\d \w → \w)", told, re.M) == ["0 a → b", "1 b → c", "2 b → a"]


def test_the_loss_of_each_position_is_shown_with_its_target_and_a_point_where_none_counts(
    byhand: Call,
) -> None:
    told = byhand("trace", "tiny", "--losses", "--only", "losses", "--float", "float64").out
    assert "    0 a → b   2.4076\n    1 b → ·        ·\n" in told


def test_a_prompt_is_not_learned(byhand: Call) -> None:
    data = json.loads(byhand("step", "tiny", "a b c", "--prompt", "2", "--json").out)
    assert data["targets"] == [None, {"id": 2, "text": "c"}]
    assert data["loss"] == "mean"


def test_a_large_model_shows_what_sums_it_up_and_how_to_see_more(byhand: Call) -> None:
    told = byhand("step", "minigpt").out
    assert "embed.token              vocab 64 × d 64" in told
    assert "--only 'update.*.embed.token'" in " ".join(told.split())
    assert "update.weight" not in told
    assert len(told.splitlines()) < 80
    lines = byhand("step", "minigpt", "--only", "update.*.final.norm.gain").out
    assert "update.weight.final.norm.gain = weight - 0.1 · change" in lines


def test_at_explains_a_new_weight(byhand: Call) -> None:
    told = byhand(*TINY, "--at", "update.weight.embed.token[0,0]").out
    assert "= 1 - 1/10·(e^2/(1 + e + e^2))" in told
    assert "= (10 + 10e + 9e^2)/(10(1 + e + e^2))" in told


def test_the_json_of_a_step_has_the_settings_the_losses_and_the_lines(byhand: Call) -> None:
    data = json.loads(byhand(*TINY, "--steps", "2", "--lr", "1/3", "--json").out)
    assert data["optimizer"] == {"name": "sgd", "decay": "0", "clip": None}
    assert [step["rate"] for step in data["steps"]] == ["1/3", "1/3"]
    assert data["steps"][0]["loss"] == {"value": "ln(1 + e + e^2) - 1", "decimal": "1.4076059644"}
    assert data["after"]["loss"]["decimal"] is not None
    lines = {line["address"]: line for line in data["working"]}
    assert lines["update.weight.embed.token"]["formula"] == "weight - 1/3 · change"
    assert "grad.weight.block.0.attn.q" in lines


def test_digits_of_a_step_are_proven_and_zeros_settled_exactly(byhand: Call) -> None:
    outcome = byhand(*TINY, "--digits", "9", "--only", "update.weight.block.0.mlp")
    assert outcome.status == 0, outcome.err
    assert "0.00900305732" in outcome.out  # a tenth of 1/(1 + e + e²)
    assert "9 significant digits, proven" in outcome.out


def test_pencil_numbers_learn_too(byhand: Call) -> None:
    told = byhand(*TINY, "--decimals", "2").out
    assert "every line rounded to 2 decimals" in told
    assert "  loss 1.43 → 1.14" in told


# ------------------------------------------------------------------ the way back


def test_backward_prints_the_gradients_behind_a_heading(byhand: Call) -> None:
    told = byhand("trace", "tiny", "--target", "c", "--backward").out
    headings = re.findall(r"^── (.+?) ─", told, flags=re.MULTILINE)
    assert headings[-5:] == [
        "Loss", "Backward", "Backward · Block 0 · MLP", "Backward · Block 0 · attention",
        "Backward · Embedding",
    ]  # fmt: skip
    assert "grad.logits = probs - 1 at the target of the last position" in told
    assert "grad.block.0.mlp.act.slope = relu′(x)" in told
    assert "grad.weight.embed.token = via logits + via embed.token" in told


def test_backward_without_a_target_takes_the_mean_over_the_text(byhand: Call) -> None:
    told = byhand("trace", "tiny", "--backward", "--only", "grad.logits", "--only", "losses").out
    assert "0 a → b" in told
    assert "1 b → ·" in told
    assert "grad.logits = (probs - 1 at the target)/positions that count" in told


def test_at_explains_a_gradient(byhand: Call) -> None:
    told = byhand(
        "trace", "tiny", "--target", "c", "--backward", "--at", "grad.logits[1,2]"
    ).out  # fmt: skip
    assert "= e/(1 + e + e^2) - 1" in told
    assert "= (-1 - e^2)/(1 + e + e^2)" in told


def test_shapes_of_the_way_back_need_no_numbers(byhand: Call) -> None:
    told = byhand("trace", "minigpt", "--backward", "--shapes", "--only", "grad.weight.*").out
    assert re.search(r"grad\.weight\.block\.0\.attn\.q = Σ_pos x·grad +d 64 × d 64", told)


def test_gradients_have_the_names_of_other_libraries(byhand: Call) -> None:
    data = json.loads(
        byhand(
            "trace", "minigpt", "--backward", "--names", "gpt2", "--json",
            "--only", "grad.weight.block.0.mlp.hidden", "--only", "grad.transformer.h.0.ln_1.bias",
        ).out
    )  # fmt: skip
    names = {step["byhand"]: step["address"] for step in data["steps"]}
    assert names == {
        "grad.weight.block.0.mlp.hidden": "grad.transformer.h.0.mlp.c_fc.weight",
        "grad.weight.block.0.attn.norm.bias": "grad.transformer.h.0.ln_1.bias",
    }


def test_golden_folders_hold_gradients(byhand: Call, tmp_path: Path) -> None:
    folder = tmp_path / "golden"
    byhand("trace", "tiny", "--backward", "--target", "c", "--out", str(folder))
    saved = by.open_trace(folder)
    assert [round(x, 4) for x in saved["grad.logits"].values[1].tolist()] == [
        0.6652,
        0.09,
        -0.7553,
    ]


def test_floats_of_gradients_are_compared_with_proven_digits(byhand: Call) -> None:
    told = byhand(
        "trace", "tiny", "--target", "c", "--backward", "--float", "float32", "--digits", "8"
    ).out  # fmt: skip
    assert re.search(r"grad\.weight\.embed\.token\s+0\.\d+ +\[\d,\d\]", told)


# ------------------------------------------------------------------ the new model


@pytest.mark.parametrize(
    ("numbers", "note", "rel"),
    [
        ([], "Every weight is exact.", 1e-9),
        (["--steps", "3"], "decimals of 17 digits", 1e-9),
        (["--float", "float32"], "float32 numbers", 1e-6),
        (["--digits", "6"], "proven digits", 1e-5),
        (["--decimals", "3"], "rounded to 3 decimals", 1e-2),
    ],
)
def test_the_saved_model_has_the_loss_that_was_worked_out(
    byhand: Call, tmp_path: Path, numbers: list[str], note: str, rel: float
) -> None:
    path = tmp_path / "new.yaml"
    outcome = byhand(*TINY, *numbers, "--out", str(path), "--json")
    assert outcome.status == 0
    assert note in outcome.err
    assert note in by.open_model(path).notes[0]
    after = json.loads(outcome.out)["after"]["loss"]
    told = float(after["decimal"] or after["value"])
    assert float(by.trace(path).loss) == pytest.approx(told, rel=rel)
    assert sorted(tmp_path.iterdir()) == [path]


def test_exact_weights_are_saved_as_the_expressions_they_are(byhand: Call, tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    byhand(*TINY, "--out", str(path))
    assert "(10 + 10e + 9e^2)/(10(1 + e + e^2))" in path.read_text("utf-8")
    training = by.step("tiny", "a b", target="c")
    again = by.trace(path, "a b", target="c")
    for name, new in training.new.items():
        read = [again.numbers.entries(again.numbers.admit(again.model.weights[name].data))]
        assert [float(x) for x in read[0].flat] == [float(x) for _i, x in new.entries()]


def test_many_floats_lie_beside_the_model_file(byhand: Call, tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    outcome = byhand("step", "minigpt", "--float", "float64", "--out", str(path), "--json")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["new.safetensors", "new.yaml"]
    assert by.trace(path).loss == json.loads(outcome.out)["after"]["loss"]["value"]


def test_weights_that_were_one_become_two_and_the_file_says_so(
    byhand: Call, tmp_path: Path
) -> None:
    text = by.open_model("tiny")
    model = tmp_path / "one.yaml"
    text.save(model)
    said = model.read_text("utf-8")
    model.write_text(
        said.replace("block.0.attn.k: identity", 'block.0.attn.k: "@block.0.attn.q"'), "utf-8"
    )
    outcome = byhand(
        "step", str(model), "a b", "--target", "c", "--out", str(tmp_path / "new.yaml")
    )
    told = "block.0.attn.k was the same as block.0.attn.q; now each is a weight of its own."
    assert told in outcome.err
    assert told in by.open_model(tmp_path / "new.yaml").notes


# ------------------------------------------------------------------ what is refused

WRONG: dict[str, tuple[list[str], str]] = {
    "an optimizer that is not there": (
        ["--optimizer", "adamx"],
        "error: --optimizer has a value that does not fit\n"
        "  expected: sgd, momentum, adam, adamw\n"
        "  found: 'adamx'\n"
        "  hint: did you mean adam, adamw?\n",
    ),
    "a rate of 0": (
        ["--lr", "0"],
        "error: --lr has a value that does not fit\n"
        "  expected: a number above 0, such as 0.1\n"
        "  found: '0'\n",
    ),
    "a rate that is no number": (
        ["--lr", "nan"],
        "error: --lr has a value that does not fit\n"
        "  expected: a number above 0, such as 0.1\n"
        "  found: 'nan'\n",
    ),
    "a rate over zero": (
        ["--lr", "1/0"],
        "error: --lr has a value that does not fit\n"
        "  expected: a number above 0, such as 0.1\n"
        "  found: '1/0'\n",
    ),
    "an absurd exponent": (
        ["--lr", "1e-999999999"],
        "error: --lr has a value that does not fit\n"
        "  expected: a number above 0, such as 0.1\n"
        "  found: '1e-999999999'\n",
    ),
    "no step": (
        ["--steps", "0"],
        "error: --steps has a value that does not fit\n"
        "  expected: a whole number from 1 to 100,000\n"
        "  found: 0\n",
    ),
    "steps that are no number": (
        ["--steps", "many"],
        "error: --steps has a value that does not fit\n"
        "  expected: a whole number from 1 to 100,000\n"
        "  found: 'many'\n",
    ),
    "a longer warm-up than there are steps": (
        ["--steps", "2", "--warmup", "3"],
        "error: --warmup has a value that does not fit\n"
        "  expected: a whole number from 0 to 2\n"
        "  found: 3\n",
    ),
    "clipping at 0": (
        ["--clip", "0"],
        "error: --clip has a value that does not fit\n"
        "  expected: a number above 0, such as 1\n"
        "  found: '0'\n",
    ),
    "one beta": (
        ["--optimizer", "adam", "--betas", "0.9"],
        "error: --betas has a value that does not fit\n"
        "  expected: two numbers, such as 0.9,0.999\n"
        "  found: '0.9'\n",
    ),
    "a beta of 1": (
        ["--optimizer", "adam", "--betas", "0.9,1"],
        "error: --betas has a value that does not fit\n"
        "  expected: numbers from 0 to below 1\n"
        "  found: '1'\n",
    ),
    "betas of sgd": (
        ["--betas", "0.9,0.99"],
        "error: sgd has no --betas\n  hint: adam, adamw have it\n",
    ),
    "momentum of adam": (
        ["--optimizer", "adam", "--momentum", "0.9"],
        "error: adam has no --momentum\n  hint: momentum has it\n",
    ),
    "a schedule that is not there": (
        ["--schedule", "cosin"],
        "error: --schedule has a value that does not fit\n"
        "  expected: constant, cosine\n"
        "  found: 'cosin'\n"
        "  hint: did you mean cosine?\n",
    ),
    "an end of a constant rate": (
        ["--end", "0.1"],
        "error: a constant rate has no --end\n  hint: --schedule cosine\n",
    ),
    "a loss that is not there": (
        ["--loss", "sum"],
        "error: --loss has a value that does not fit\n  expected: mean, last\n  found: 'sum'\n",
    ),
    "floats and digits at once": (
        ["--float", "float32", "--digits", "6"],
        "error: --digits and --float exclude each other\n"
        "  hint: a training step is worked out in one kind of numbers\n",
    ),
    "a line that is not there": (
        ["--only", "update.weights"],
        "error: there is no step 'update.weights'\n",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_setting_is_refused_before_any_work(case: str, byhand: Call) -> None:
    arguments, message = WRONG[case]
    outcome = byhand(*TINY, *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(message)


def test_python_refuses_in_the_same_words_without_dashes() -> None:
    with pytest.raises(by.ByhandError) as caught:
        by.step("tiny", "a b", optimizer="adamx")
    assert str(caught.value).startswith("optimizer has a value that does not fit")
    for wrong in (0, -1, float("nan"), float("inf"), "nan", True, "1e-999999999"):
        with pytest.raises(by.ByhandError, match="lr has a value that does not fit"):
            by.step("tiny", "a b", lr=wrong)


def test_texts_from_which_nothing_can_be_learned(byhand: Call) -> None:
    assert "there is no token to predict in this text" in byhand("step", "tiny", "a").err
    assert "the text is empty" in byhand("step", "tiny", "").err
    assert "there is no token to predict in this text" in (
        byhand("step", "tiny", "a b c", "--prompt", "9").err
    )
    assert "the text is too long for this model" in byhand("step", "tiny", "a b c a b").err
    assert "'z' is not in the vocabulary" in byhand("step", "tiny", "a z").err
    assert "'z' is not in the vocabulary" in byhand("step", "tiny", "a b", "--target", "z").err


def test_unknown_weights_are_refused(byhand: Call, tmp_path: Path) -> None:
    model = tmp_path / "unknown.yaml"
    by.open_model("tiny").save(model)
    said = model.read_text("utf-8")
    model.write_text(said.replace("block.0.attn.v: identity", "block.0.attn.v: unknown"), "utf-8")
    outcome = byhand("step", str(model), "a b", "--target", "c")
    assert outcome.status == 2
    assert outcome.err == (
        "error: nothing can be learned from unknown weights\n"
        "  expected: weights that are known\n"
        "  found: block.0.attn.v is unknown\n"
    )
    told = byhand("trace", str(model), "a b", "--target", "c", "--backward")
    assert told.status == 0
    assert "not worked out: weight.block.0.attn.v is unknown" in told.out


@pytest.mark.parametrize("where", ["nowhere/new.yaml", "", "."])
def test_a_place_that_cannot_be_written_is_told_before_the_work(where: str, byhand: Call) -> None:
    outcome = byhand(*TINY, "--out", where)
    assert (outcome.status, outcome.out) == (2, "")
    assert "cannot be written" in outcome.err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_told_and_leaves_no_file(byhand: Call) -> None:
    outcome = byhand(*TINY, "--out", "/dev/full")
    assert outcome.status == 2
    assert outcome.err.startswith("error: /dev/full: cannot be written")
    assert "Traceback" not in outcome.err


# ------------------------------------------------------------------ a terminal, a pipe, Ctrl-C


def test_a_terminal_shows_the_same_numbers_in_its_width() -> None:
    seen = on_a_terminal(*TINY, columns=60)
    assert seen.status == 0
    assert seen.screen.too_long == []
    assert any(line.startswith("── Gradients ───") for line in seen.screen.lines)
    assert any(line.startswith("grad.weight.embed.token") for line in seen.screen.lines)


def test_ctrl_c_in_the_second_step_ends_without_a_traceback_and_without_a_file(
    tmp_path: Path,
) -> None:
    out = tmp_path / "new.yaml"
    with running(
        *TINY, "--steps", "3", "--optimizer", "momentum", "--out", str(out),
        holds="before.m.embed.token",
    ) as seen:  # fmt: skip
        seen.until("working out before.m.embed.token")
        seen.press(CTRL_C)
        seen.close()
    assert seen.status == 130
    assert "Traceback" not in seen.text
    assert list(tmp_path.iterdir()) == []


def test_a_setting_is_taken_as_it_is_written() -> None:
    (step,) = by.step("tiny", "a b", target="c", lr=0.1, numbers="float64").steps
    assert step.rule.rate == Fraction(1, 10)
