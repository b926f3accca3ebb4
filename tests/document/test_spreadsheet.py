"""Spreadsheets recalculated by another program say what byhand says, and go on saying it when a
weight or a token is changed in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from recalculating import (
    Recalculated,
    Workbook,
    by_formulas,
    save_spreadsheet,
    without_results,
)

import byhand
from budgets import LONG
from byhand.document.media.xlsx import formulas, layout
from byhand.document.media.xlsx.training import DOWN
from byhand.errors import InputError
from byhand.evaluate import Job, prepare
from byhand.expression import Number
from byhand.files import parse_model, read_model
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.floats import Floats
from byhand.publication import training_plan
from byhand.tokens import Vocabulary
from byhand.tracing import Trace
from byhand.weights import Tensor, Weights
from oracles.architectures import Case, at_random, make_case, wishing

CLOSE = 1e-12


def assert_says(found: Recalculated, trace: Trace) -> int:
    """Every entry of every step of a float64 trace is in its cell; returns how many there were."""
    compared = 0
    for address, worked in trace.steps.items():
        if address.startswith("update.squares."):  # the norm is worked out without them
            continue
        rows = found.table(address)
        for index, expected in expected_entries(trace, address):
            cell = rows[index[0]][index[1]]
            where = f"{address}: row {index[0]}, column {index[1]}"
            if expected is None:
                assert cell is None, f"{where} should be empty, not {cell}"
                continue
            assert isinstance(cell, (int, float)), f"{where}: {cell!r}"
            assert cell == pytest.approx(expected, rel=CLOSE, abs=CLOSE), where
            compared += 1
        assert worked.missing is None
    return compared


def expected_entries(trace: Trace, address: str) -> Iterator[tuple[tuple[int, int], float | None]]:
    """The entries of a step by row and column: positions run down, all else runs to the right.

    A gradient of a weight, or a new weight, is laid out as the weight.
    """
    worked = trace.steps[address]
    step = worked.step
    if address == "target":
        yield (0, 0), float(worked.value)
    elif step.axes == ("pos",) and step.op in ("given", "argmax"):
        for place, chosen in enumerate(worked.value):
            id = getattr(chosen, "id", chosen)
            yield (place, 0), None if id == UNCOUNTED else float(id)
    else:
        axis = step.position_axis
        if axis is None:
            axis = DOWN.get(len(step.shape))
        for index, entry in worked.entries():
            column = 0
            for at, side in ((index[i], step.shape[i]) for i in range(len(index)) if i != axis):
                column = column * side + at
            row = 0 if axis is None else index[axis]
            yield (row, column), None if entry is None else float(entry)


def saved(work: Trace, folder: Path) -> Path:
    """A saved spreadsheet whose formulas stand beside wrong results."""
    path = folder / "pass.xlsx"
    save_spreadsheet(work, path)
    assert without_results(path) > 0
    return path


def float64(model: Model, text: str | None = None, **asked: Any) -> Trace:
    return prepare(model, text, Floats("float64"), **asked).work()


def learned(trace: Trace) -> Trace:
    """The pass of a trace in float64, with one training step where its spreadsheet has one."""
    plan, targets = training_plan(trace) or (trace.plan, trace.targets)
    asked = (trace.model, plan, Floats("float64"), trace.text, trace.tokens, trace.target)
    return Job(*asked, targets=targets).work()


def with_weight(model: Model, name: str, index: tuple[int, ...], value: Fraction) -> Model:
    """The model with one weight changed."""
    data = model.weights[name].data.copy()
    data[index] = value
    return replace(model, weights=Weights({**model.weights, name: Tensor(name, data)}))


@cache
def workbook(name: str, folder: Path) -> Workbook:
    """The spreadsheet of a built-in model; `formulas` takes seconds to read one."""
    (folder / name).mkdir()
    return Workbook(saved(byhand.trace(name), folder / name))


@cache
def recalculated(name: str, folder: Path) -> tuple[Recalculated, Trace]:
    return workbook(name, folder).recalculated(), float64(open_model(name))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spreadsheets")


# ------------------------------------------------------------------ the built-in models


@pytest.mark.parametrize(
    ("name", "numbers"), [("tiny", 90), ("journey", 270), ("abc", 130)][: 2 + LONG]
)
def test_every_number_of_a_built_in_model_is_recalculated(
    name: str, numbers: int, folder: Path
) -> None:
    found, trace = recalculated(name, folder)
    assert assert_says(found, trace) > numbers


def test_journeys_logits_and_loss_are_those_of_the_exact_trace(folder: Path) -> None:
    found, _trace = recalculated("journey", folder)
    exact = byhand.trace("journey")
    for position, row in enumerate(found.table("logits")):
        for token, logit in enumerate(row):
            assert abs(logit - float(exact[f"logits[{position},{token}]"].ball(64))) < 1e-9
    assert abs(found.table("loss")[0][0] - float(exact.loss.ball(64))) < 1e-9
    assert found.beside("next", 1) == ["cat", "cat", "sat", "cat"]


def test_the_prediction_stands_at_the_top_of_every_sheet(folder: Path) -> None:
    found, _trace = recalculated("journey", folder)
    lines = {sheet: text for (sheet, cell), text in found.cells.items() if cell == "A3"}
    pages = {"TEXT", "EMBEDDING", "ATTENTION 0", "MLP 0", "NEXT TOKEN", "BACKWARD", "STEP"}
    assert set(lines) == pages
    assert set(lines.values()) == {"the cat sat on → cat   ·   p = 0.2058   ·   loss = 1.8313"}


# ------------------------------------------------------------------ what is changed in it


def test_a_changed_weight_changes_the_result_as_the_trace_says(
    journey: Model, folder: Path
) -> None:
    book = workbook("journey", folder)
    found = book.recalculated({book.cell("weight.block.0.attn.k", 1, 2): -3})
    other = with_weight(journey, "block.0.attn.k", (1, 2), Fraction(-3))
    assert float64(other).loss != float64(journey).loss
    assert assert_says(found, float64(other)) > 270


def test_a_changed_token_and_target_change_the_result_as_the_trace_says(
    journey: Model, folder: Path
) -> None:
    book = workbook("journey", folder)
    typed = {book.token_cell(1): "dog", book.token_cell(0, "target"): "on"}
    found = book.recalculated(typed)
    assert assert_says(found, float64(journey, "the dog sat on", target="on")) > 270
    assert found.cells["ATTENTION 0", "A3"].startswith("the dog sat on → ")


# ------------------------------------------------------------------ training in it


@pytest.mark.parametrize(
    ("name", "loss", "steps"), [("tiny", "mean_loss", 5), ("journey", "loss", 2)][: 1 + LONG]
)
def test_new_weights_pasted_over_the_old_ones_train_as_byhand_does(
    name: str, loss: str, steps: int, folder: Path
) -> None:
    book, training = workbook(name, folder), byhand.step(name, steps=steps, numbers="float64")
    typed: dict[str, Any] = {}
    losses = []
    for step in (*training.steps, None):
        found = book.recalculated(typed)
        losses.append(found.table(loss)[0][0])
        if step is not None:
            assert found.table("update.norm")[0][0] == pytest.approx(float(step.norm), rel=CLOSE)
            typed = book.pasted(found, "new_weights", "old_weights")
    assert losses == pytest.approx([float(each) for each in training.losses], rel=CLOSE)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < (0.7 if steps == 5 else 0.9) * losses[0]
    for weight, worked in training.new.items():  # the pass reads what was pasted
        flat = [x for row in found.table(f"weight.{weight}") for x in row]
        assert flat == pytest.approx([float(x) for x in worked.array.flat], rel=CLOSE, abs=CLOSE)


def test_the_learning_rate_is_a_cell_and_the_gradients_follow_a_typed_token(folder: Path) -> None:
    book = workbook("tiny", folder)
    found = book.recalculated({book.cell("learning_rate", 0, 0): 0.25})
    new = byhand.step("tiny", lr="1/4", numbers="float64").new["embed.token"].array
    assert found.table("update.weight.embed.token") == pytest.approx(new, rel=CLOSE, abs=CLOSE)
    typed = book.recalculated({book.token_cell(1): "c"})
    assert assert_says(typed, learned(byhand.trace("tiny", "a c"))) > 200


def test_a_file_without_room_for_training_has_the_pass_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared.yaml").write_text(SHARED)
    for model in (open_model("minigpt"), read_model(tmp_path / "shared.yaml")):
        assert training_plan(byhand.trace(model, only=["tokens"])) is None
    assert training_plan(byhand.trace("tiny", "a")) is None  # nothing comes next
    assert training_plan(byhand.trace("tiny", "a", target="b")) is not None
    monkeypatch.setattr(layout, "MOST_TRAINED", 300)
    assert training_plan(byhand.trace("tiny")) is None


# ------------------------------------------------------------------ what is typed in it


def test_a_token_outside_the_vocabulary_leaves_no_prediction(folder: Path) -> None:
    book = workbook("tiny", folder)
    found = book.recalculated({book.token_cell(1): "z"})
    assert found.table("tokens") == [[0.0], ["#N/A"]]
    assert found.table("next") == [[0.0], ["#N/A"]]  # position 0 does not look at what follows


def test_weights_that_refer_to_others_follow_them(tmp_path: Path) -> None:
    (tmp_path / "shared.yaml").write_text(SHARED)
    model = read_model(tmp_path / "shared.yaml")
    book = Workbook(saved(byhand.trace(model), tmp_path))
    found = book.recalculated({book.cell("weight.block.0.attn.q", 0, 1): 5})
    assert found.table("weight.block.0.attn.q") == [[1, 5], [0, 1]]
    assert found.table("weight.block.0.attn.k") == [[1, 5], [0, 1]]
    assert found.table("weight.block.0.attn.v") == [[1, 0], [5, 1]]


SHARED = """
vocabulary: [a, b]
text: a b
model:
  d_model: 2
  layers: 1
  attention: {heads: 1, out: false}
  mlp: none
weights:
  embed.token: [[1, 2], [3, 4]]
  block.0.attn.q: [[1, 0], [0, 1]]
  block.0.attn.k: "@block.0.attn.q"
  block.0.attn.v: "@block.0.attn.q.T"
"""


# ------------------------------------------------------------------ tokens that are hard to find


CONFUSED = [("a", "A", "b"), ("*", "?", "~"), ("=", "<", "1"), ("1", "2")]


@pytest.mark.parametrize("tokens", CONFUSED if LONG else CONFUSED[::3])
def test_tokens_that_a_spreadsheet_would_confuse_are_told_apart(
    tokens: tuple[str, ...], tmp_path: Path
) -> None:
    model = bare_model(tokens)
    path = saved(float64(model, " ".join(tokens)), tmp_path)
    assert by_formulas(path).table("tokens") == [[float(id)] for id in range(len(tokens))]


def test_the_gradient_of_a_mean_loss_is_shared_by_the_positions_that_count(tmp_path: Path) -> None:
    model = with_weight(bare_model(("a", "b")), "embed.token", (1, 0), Fraction(3))
    trace = float64(model, "a b a a")  # one token comes three times
    assert assert_says(by_formulas(saved(trace, tmp_path)), learned(trace)) > 50
    assert learned(trace).targets == (1, 0, 0, UNCOUNTED)


def bare_model(tokens: tuple[str, ...]) -> Model:
    """No block at all: each token is followed by itself."""
    case = make_case(
        wishing({"layers": 0, "vocab": 3, "tied": True}, lambda _q, options: options[0]), seed=1
    )
    spec = replace(case.spec, vocab=len(tokens))
    data = case.weights["embed.token"].data[[0] * len(tokens)]
    return Model(spec, Weights({"embed.token": Tensor("embed.token", data)}), Vocabulary(tokens))


# ------------------------------------------------------------------ every family of models

FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "rope in halves, grouped heads, rmsnorm, gated silu": {
        "layers": 1, "heads": 4, "kv_heads": 2, "d_head": 4, "rope": True, "rope width": 4,
        "rope pairing": "half", "attn norm": "rmsnorm", "mlp norm": "rmsnorm", "gated": True,
        "activation": "silu", "layout": "out_in", "length": 3, "packed": None, "d_model": 4,
        "mlp": True, "attention": True, "tied": False,
    },
    "rope in neighbours with given angles, packed per head, parallel, gelu": {
        "layers": 1, "heads": 2, "kv_heads": 2, "d_head": 2, "rope": True, "rope given": True,
        "rope pairing": "interleaved", "packed": "per_head", "place": "pre", "parallel": True,
        "activation": "gelu", "attn norm": "layernorm", "length": 3, "first position": 2,
        "mlp": True, "attention": True, "q norm": "rmsnorm",
    },
    "alibi, a table of scores, post-norm without eps, sinusoids, gelu_tanh": {
        "layers": 1, "alibi": True, "score table": True, "place": "post", "attn eps": "0",
        "attn norm": "layernorm", "mlp norm": "layernorm", "mlp eps": "0", "d_model": 4,
        "position": "sinusoidal", "activation": "gelu_tanh", "length": 3, "causal": False,
        "rope": False, "mlp": True, "attention": True, "heads": 2, "kv_heads": 1,
        "packed": "concatenated", "extra mask": True,
    },
    "two blocks, learned positions, a window, scaled embeddings, no output matrix": {
        "layers": 2, "position": "learned", "causal": True, "window": 2, "length": 3,
        "out": False, "d_model": 2, "rope": False, "tied": True, "activation": "relu",
        "mlp": True, "attention": True, "block 1 attention": False, "kv_heads": 1,
    },
}  # fmt: skip


def family(name: str) -> Case:
    """The case as wished; what nobody wished for follows from a seed."""
    from random import Random

    random = Random(len(name))
    return make_case(wishing(FAMILIES[name], at_random(random)), seed=len(name))


def trace_of(case: Case) -> Trace:
    words = ("uno", "dos", "tres")[: case.spec.vocab]
    model = Model(case.spec, case.weights, Vocabulary(words))
    return Job(model, case.plan(), Floats("float64"), "", case.tokens, case.target).work()


WRITTEN = [*zip(FAMILIES, (4, 1, 4, 1), strict=True)]


@pytest.mark.parametrize(("name", "written_out"), WRITTEN if LONG else WRITTEN[::4])
def test_every_family_of_models_is_recalculated(
    name: str, written_out: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `written_out` 1, what is short here is read as ranges too, as in wider models."""
    monkeypatch.setattr(formulas, "WRITTEN_OUT", written_out)
    monkeypatch.setattr(formulas, "ADDED_UP", written_out - 1)
    trace = trace_of(family(name))
    assert assert_says(by_formulas(saved(trace, tmp_path)), learned(trace)) > 100


def test_the_families_use_every_operation() -> None:
    used = {step.op for name in FAMILIES for step in family(name).plan()}
    kinds = {
        step.attributes["kind"]
        for name in FAMILIES
        for step in family(name).plan()
        if step.op == "activate"
    }
    assert kinds >= {"relu", "gelu", "gelu_tanh", "silu"}
    assert used == {
        "given", "embed", "sinusoid", "add", "multiply", "mean", "center", "mean_square", "root",
        "normalize", "affine", "linear", "split_heads", "merge_heads", "rotate", "scores",
        "softmax", "mix", "head_outputs", "activate", "argmax", "loss",
    }  # fmt: skip


# ------------------------------------------------------------------ what stands beside a formula


def test_what_stands_beside_a_formula_is_what_the_formula_gives(
    folder: Path, tmp_path: Path
) -> None:
    """Every label, line of working and number of the pass, not only those with an address."""
    path = tmp_path / "pass.xlsx"
    save_spreadsheet(byhand.trace("journey"), path)
    found, _trace = recalculated("journey", folder)
    book = openpyxl.load_workbook(path)
    results = openpyxl.load_workbook(path, data_only=True)
    compared = 0
    for sheet in book:
        for row in sheet.iter_rows():
            for cell in row:
                if cell.data_type == "f":
                    result = results[sheet.title][cell.coordinate].value
                    recalculation = found.cells[sheet.title.upper(), cell.coordinate]
                    if isinstance(result, float):
                        result = pytest.approx(result, rel=CLOSE, abs=CLOSE)
                    assert recalculation == result, cell
                    compared += 1
    assert compared > 500


def test_a_softmax_of_large_numbers_does_not_overflow(tmp_path: Path) -> None:
    model = bare_model(("a", "b"))
    width = model.spec.d_model
    data = np.array([[Fraction(100)] * width, [Fraction(99)] * width], dtype=object)
    large = replace(model, weights=Weights({"embed.token": Tensor("embed.token", data)}))
    trace = float64(large, "a b")
    assert float(trace["logits[0,0]"]) > 10_000  # e to that power is no float
    assert assert_says(by_formulas(saved(trace, tmp_path)), trace) > 10


LOOKER = """\
vocabulary: [a, b]
text: a b a
target: a
model:
  d_model: 2
  context: 4
  layers: 1
  position: alibi
  attention: {heads: 2, d_head: 1, queries: false, score_table: true, nothing: zero}
  mlp: {d_ff: 1}
weights:
  embed.token: [[1, 0], [0, 1/2]]
  block.0.attn.v: identity
  block.0.attn.slopes: [0, ln(2)]
  block.0.attn.score_table: [previous, {offsets: {-1: 0, -2: ln(3)}}]
  block.0.attn.out: [[0, 1], [0, 1]]
  block.0.mlp.hidden: [[0], [1]]
  block.0.mlp.out: [[1, 0]]
"""


def test_scores_of_a_table_and_rows_that_see_nothing_are_recalculated(tmp_path: Path) -> None:
    trace = byhand.trace(parse_model(LOOKER))
    assert assert_says(by_formulas(saved(trace, tmp_path)), learned(trace)) > 150


def test_a_model_with_words_of_its_own_is_refused(tmp_path: Path) -> None:
    text = LOOKER.replace("target: a", "target: c\noutputs: [c]")
    model = parse_model(text + "  head: [[1], [2]]\n")
    with pytest.raises(InputError, match="and this model has two"):
        saved(byhand.trace(model), tmp_path)


def test_the_eps_of_a_norm_and_the_scale_of_the_scores_are_cells(folder: Path) -> None:
    model = open_model("journey")
    (block,) = model.spec.blocks
    assert block.attention is not None
    attention = replace(block.attention, scale=Number(Fraction(1, 4)))
    block = replace(block, attention=attention, attn_norm=replace(block.attn_norm, eps=Fraction(1)))
    changed = replace(model, spec=replace(model.spec, blocks=(block,)))
    book = workbook("journey", folder)
    typed = {
        book.cell("block.0.attn.norm.std.eps", 0, 0): 1,
        book.cell("block.0.attn.scores.scale", 0, 0): 0.25,
    }
    assert assert_says(book.recalculated(typed), learned(float64(changed))) > 270
