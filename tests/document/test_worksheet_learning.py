"""Worksheets on learning: gradients and a training step are asked for, and marked."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from worksheet_samples import make_worksheet, write_worksheet

import byhand
from byhand.checking.grading import grade
from byhand.checking.verdicts import Verdict
from byhand.document.compose.worksheet.claims import claims_text
from byhand.errors import InputError, UsageError

LEARNING = ("gradients", "step")


def marks(model: str, file: Path) -> tuple[int, int]:
    """The marks won, and those to win."""
    graded = grade(byhand.check(model, file, suspects=False).texts[0])
    return int(graded.total), int(graded.out_of)


def test_gradients_are_lines_of_the_way_back_and_a_step_is_new_weights() -> None:
    back = make_worksheet("tiny", which=("gradients",), blanks=40)
    assert {blank.kind for blank in back.blanks} == {"gradients"}
    starts = ("grad.", "losses", "mean_loss")
    assert all(blank.address.startswith(starts) for blank in back.blanks)
    step = make_worksheet("journey", which=("step",), blanks=8)
    assert len(step.blanks) == 8
    assert all(blank.address.startswith("update.weight.") for blank in step.blanks)


def test_unless_asked_for_a_sheet_is_about_the_pass_alone() -> None:
    sheet = make_worksheet("tiny", blanks=30)
    assert {blank.kind for blank in sheet.blanks} == {"values", "shapes", "counts"}
    assert "optimizer:" not in claims_text(sheet)
    assert [page.slug for page in sheet.book.pages] == ["tokens", "attention", "block", "next"]


@pytest.mark.parametrize(("model", "seed"), [("tiny", 0), ("journey", 3), ("abc", 1)])
def test_the_key_wins_every_mark(model: str, seed: int, tmp_path: Path) -> None:
    asked = {"which": ("values", *LEARNING), "blanks": 40, "seed": seed}
    write_worksheet(model, tmp_path, **asked)
    assert marks(model, tmp_path / "worksheet-key.yaml") == (40, 40)
    marking = byhand.check(model, tmp_path / "worksheet-key.yaml", suspects=False)
    assert marking.follows  # what is printed follows too


def test_a_wrong_gradient_costs_its_mark_and_what_follows_from_it_is_right(tmp_path: Path) -> None:
    write_worksheet("tiny", tmp_path, which=LEARNING, blanks=60, decimals=3)
    file = tmp_path / "worksheet-key.yaml"
    told = yaml.safe_load(file.read_text("utf-8"))
    claims, rate = told["claims"], 0.1
    place = next(a for a in claims if a.startswith("grad.weight.embed.token[2"))
    row = place.removeprefix("grad.weight.embed.token")
    claims[place][0] = round(claims[place][0] + 0.3, 3)
    new = f"update.weight.embed.token{row}"
    assert new in claims
    claims[new][0] = round(1 - rate * claims[place][0], 3)  # the weight of c is (1, 1)
    file.write_text(yaml.safe_dump(told, sort_keys=False), "utf-8")
    (text,) = byhand.check("tiny", file, suspects=False).texts
    verdicts = {line.claim.name: line.verdict for line in text.lines}
    assert verdicts[place] is Verdict.ERROR
    assert verdicts[new] is Verdict.CARRIED
    assert marks("tiny", file) == (len(claims) - 1, len(claims))


def test_a_cause_is_looked_for_in_a_wrong_loss(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    probs = "[0.167, 0.180, 0.158, 0.163, 0.151, 0.181]"
    head = "text: the cat sat on\ntarget: mat\nprecision: decimals:3\nclaims:\n"
    file.write_text(f"{head}  probs[1]: {probs}\n  losses[1]: 1.890\n", "utf-8")
    marking = byhand.check("journey", file)
    assert marking.first_error is not None
    assert marking.first_error.address == "losses[1]"


def test_an_empty_sheet_wins_nothing(tmp_path: Path) -> None:
    write_worksheet("tiny", tmp_path, which=LEARNING, blanks=10)
    assert marks("tiny", tmp_path / "worksheet.yaml") == (0, 10)


def test_the_sheet_says_which_loss_and_which_step_it_is_about(tmp_path: Path) -> None:
    write_worksheet("tiny", tmp_path, which=LEARNING, blanks=10)
    told = yaml.safe_load((tmp_path / "worksheet.yaml").read_text("utf-8"))
    assert told["optimizer"] == "sgd lr=1/10"
    assert "losses" in told["given"] or any("losses" in name for name in told["claims"])
    page = (tmp_path / "worksheet.html").read_text("utf-8")
    assert "the new weight is the old one less 1/10 times its gradient" in page


def test_the_key_works_a_gradient_out(tmp_path: Path) -> None:
    write_worksheet("tiny", tmp_path, which=("gradients",), blanks=40)
    page = (tmp_path / "worksheet-key.html").read_text("utf-8")
    assert "<mi>∂</mi><mi>logits</mi>" in page


def test_a_model_too_large_for_a_pencil_is_not_asked_for_gradients() -> None:
    with pytest.raises(InputError, match="nothing to ask for") as refused:
        make_worksheet("minigpt", which=("gradients",))
    assert "small enough for a pencil" in str(refused.value)


def test_what_a_sheet_cannot_ask_for_is_refused_with_what_it_can() -> None:
    with pytest.raises(UsageError, match="values, shapes, counts, gradients, step"):
        make_worksheet("tiny", which=("gradient",))


def test_a_book_from_python_writes_such_a_sheet(tmp_path: Path) -> None:
    files = byhand.book("tiny", "a b", out=tmp_path, target="c", worksheet=True, ask=LEARNING)
    assert "worksheet.yaml" in [file.name for file in files]
    claims = yaml.safe_load((tmp_path / "worksheet.yaml").read_text("utf-8"))["claims"]
    assert all(name.startswith(("grad.", "update.", "losses", "mean_loss")) for name in claims)
