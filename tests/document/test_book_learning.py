"""The chapters on learning: how wrong the model was, backward, one step, and its training."""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import isclose

import numpy as np
import pytest

import byhand
from byhand import editions
from byhand.document.book import Book, Passage
from byhand.document.compose.book import bind
from byhand.document.compose.book.edition import Edition
from byhand.document.media.html import pages
from byhand.document.media.typst import typst_source
from byhand.document.parts import Curve, Grid, HeatStrip, LeftOut, Number, NumberTable
from byhand.editions import make_edition
from byhand.models import builtin_names, open_model
from byhand.models.records import record_of
from byhand.optimizer import Rule

LEARNING = ("losses", "backward", "step")


@cache
def edition_of(name: str, text: str | None = None, target: str | None = None) -> Edition:
    return make_edition(name, text, target=target)


@cache
def book_of(name: str, text: str | None = None, target: str | None = None) -> Book:
    return bind(edition_of(name, text, target), "en")


def numbers_on(book: Book, slug: str) -> dict[str, Number]:
    return {
        number.address: number
        for passage in book.page(slug).passages
        for table in passage.show
        if isinstance(table, NumberTable)
        for row in table.rows
        for number in row.numbers
    }


def parts_of(book: Book, slug: str, kind: type) -> list:  # type: ignore[type-arg]
    found = (part for passage in book.page(slug).passages for part in passage.show)
    return [part for part in found if isinstance(part, kind)]


def said(passage: Passage) -> str:
    left_out = [part.text for part in passage.show if isinstance(part, LeftOut)]
    return " ".join((*passage.sentences, *left_out))


# ------------------------------------------------------------------ tiny, exactly


def test_a_book_tells_of_learning_after_the_prediction() -> None:
    slugs = [page.slug for page in book_of("tiny").pages]
    assert slugs[4:9] == ["next", *LEARNING, "explained"]


def test_the_losses_are_those_of_the_text_shifted_by_one() -> None:
    book = book_of("tiny", "a b", "c")
    shown = numbers_on(book, "losses")
    assert list(shown) == ["probs[0,1]", "probs[1,2]", "losses[0]", "losses[1]", "mean_loss[0]"]
    assert shown["losses[0]"].cell.decimal == "2.4076"  # ln(1 + e + e²)
    assert shown["losses[1]"].cell.decimal == "1.4076"
    assert shown["mean_loss[0]"].cell.decimal == "1.9076"
    assert "the target `c` should come" in said(book.page("losses").passages[0])


def test_the_book_says_where_the_next_tokens_stood() -> None:
    passage = book_of("tiny", "a b", "c").page("losses").passages[1]
    (table,) = (part for part in passage.show if isinstance(part, Grid))
    assert table.heads == ("next token", "ln p", "rank", "margin", "entropy")
    assert [row[2:4] for row in table.rows] == [("3", "1"), ("2", "1")]
    assert [row[4] for row in table.rows] == ["≈ 0.8324"] * 2
    assert "likeliest one at 0 of 2 positions" in said(passage)


def test_without_a_target_the_last_position_does_not_count() -> None:
    book = book_of("tiny", "a b")
    assert list(numbers_on(book, "losses")) == ["probs[0,1]", "losses[0]", "mean_loss[0]"]
    assert "does not count" in said(book.page("losses").passages[0])


@pytest.mark.parametrize("name", ["tiny", "journey", "abc"])
def test_every_step_of_the_backward_pass_is_told_once_from_the_end_to_the_start(name: str) -> None:
    edition, book = edition_of(name), book_of(name)
    assert edition.one_step is not None
    steps = [step.address for step in edition.one_step.trace.plan if step.stage == "backward"]
    passages = [passage for passage in book.page("backward").passages if passage.backward]
    assert Counter(law.address for p in passages for law in p.formulas) == Counter(steps)
    order = [step.address for step in edition.trace.plan]
    lit = [min(map(order.index, passage.lit)) for passage in passages]
    assert lit == sorted(lit, reverse=True)
    assert passages[0].lit == ("probs",)


def test_terms_are_summed_where_the_stream_was_left() -> None:
    norm = next(
        p for p in book_of("tiny").page("backward").passages if p.id.endswith("0-attn-norm")
    )
    laws = [law.address for law in norm.formulas]
    assert laws[0] == "grad.block.0.attn.norm.out"  # what the sum and the MLP hand back, together


def test_the_gradients_of_tiny_are_those_of_a_training_step() -> None:
    shown = numbers_on(book_of("tiny", "a b", "c"), "backward")
    training = byhand.step("tiny", "a b", target="c", loss="mean")
    trace = training.steps[0].trace
    assert shown["grad.logits[0,1]"].cell.decimal == "-0.4550"
    for address, number in shown.items():
        if not number.cell.masked:
            assert number.cell.decimal in (None, trace.places(address, 4)), address


def test_the_new_weights_and_the_loss_after_are_those_of_a_training_step() -> None:
    book = book_of("tiny", "a b", "c")
    training = byhand.step("tiny", "a b", target="c", loss="mean")
    shown = numbers_on(book, "step")
    after = [n.cell.decimal for n in _after(book)]
    assert after[-1] == training.losses[1].places(4)
    assert shown["mean_loss[0]"].cell.decimal == training.losses[0].places(4)
    new = training.new["block.0.mlp.norm.gain"]
    assert shown["update.weight.block.0.mlp.norm.gain[0]"].cell.decimal == new[0].places(4)
    assert "the step has helped" in said(book.page("step").passages[-1])


def _after(book: Book) -> list[Number]:
    table = parts_of(book, "step", NumberTable)[-1]
    return [row.numbers[1] for row in table.rows]


def test_what_does_not_move_is_said_and_not_shown() -> None:
    book = book_of("tiny", "a b", "c")
    weights = next(p for p in book.page("step").passages if p.id == "step-weights")
    assert "`weight.block.0.attn.q`" in said(weights)
    assert not any("attn.q" in address for address in numbers_on(book, "step"))
    words = [table.word for table in parts_of(book, "backward", NumberTable) if not table.rows]
    assert set(words) == {"zeros"}


def test_a_passage_says_what_it_reads() -> None:
    scores = next(p for p in book_of("journey").page("backward").passages if "scores" in p.id)
    assert "It reads `grad.block.0.attn.scores`, `block.0.attn.k` and `block.0.attn.q`." in said(
        scores
    )


# ------------------------------------------------------------------ what cannot be known


def test_unknown_weights_are_named_once() -> None:
    book = book_of("abc-walkthrough")
    (passage,) = book.page("losses").passages
    assert "weight.block.0.attn.qkv is unknown" in said(passage)
    assert set(LEARNING) & {page.slug for page in book} == {"losses"}  # it says so for all three


def test_a_norm_of_equal_numbers_without_eps_has_no_gradient() -> None:
    book = book_of("tiny", "c a")
    assert "losses[0]" in numbers_on(book, "losses")
    assert "its eps is 0" in said(book.page("backward").passages[0])
    assert "grad.logits[0,0]" in numbers_on(book, "backward")  # what comes before the norm
    assert "step" not in [page.slug for page in book]  # backward has said why there is none


def test_one_token_without_a_target_has_nothing_to_learn() -> None:
    book = book_of("tiny", "a")
    assert "no token to predict" in said(book.page("losses").passages[0])
    assert set(LEARNING) & {page.slug for page in book} == {"losses"}


def test_a_model_that_is_too_large_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editions, "LEARNING_PARAMETERS", 30)
    book = bind(make_edition("tiny"), "en")
    assert "more than 30 parameters" in said(book.page("losses").passages[0])


# ------------------------------------------------------------------ larger models


def test_a_toy_shows_the_gradient_of_every_weight_as_colours() -> None:
    edition, book = edition_of("minigpt"), book_of("minigpt")
    assert edition.one_step is not None
    strips = {strip.address for strip in parts_of(book, "backward", HeatStrip)}
    assert strips >= {f"grad.weight.{name}" for name in edition.model.weights}
    assert not parts_of(book, "backward", NumberTable)


def test_sizes_are_the_lengths_of_the_gradients() -> None:
    edition = edition_of("minigpt")
    (sizes,) = [
        part
        for part in book_of("minigpt").page("backward").passages[-1].show
        if isinstance(part, Grid)
    ]
    assert edition.one_step is not None
    trace = edition.one_step.trace
    squares = 0.0
    for address, shape, length, *_rest in sizes.rows:
        grad = np.asarray(trace.grad[address], np.float64)
        assert shape == " × ".join(map(str, grad.shape))
        assert isclose(float(length), np.linalg.norm(grad), rel_tol=0.01)
        squares += float(np.square(grad).sum())
    assert isclose(squares**0.5, float(trace.number("update.norm")), rel_tol=1e-4)


def test_the_step_of_a_book_is_one_of_gradient_descent() -> None:
    one_step = edition_of("minigpt").one_step
    assert one_step is not None
    assert one_step.rule == Rule("sgd")
    assert "less 1/10 times its gradient" in said(book_of("minigpt").page("step").passages[0])


# ------------------------------------------------------------------ the run that made a model


def test_only_trained_models_have_a_record() -> None:
    found = [name for name in builtin_names() if record_of(open_model(name)) is not None]
    assert found == ["abc", "minigpt"]
    assert "training" not in [page.slug for page in book_of("tiny").pages]


@pytest.mark.parametrize("name", ["abc", "minigpt"])
def test_the_record_is_of_the_run_that_made_the_model(name: str) -> None:
    record = record_of(open_model(name))
    assert record is not None
    steps = record.settings["steps"]
    assert len(record.losses) == len(record.norms) == len(record.rates) == steps
    assert record.held_out[-1][0] == steps
    assert max(record.rates) == record.rates[record.settings["warmup"] - 1]
    assert [step for step in range(1, steps + 1) if record.norms[step - 1] > 1.0] == list(
        record.clipped
    )
    own = byhand.trace(name, numbers="float64")
    assert own.target is not None
    share = float(own["probs"][len(own.tokens) - 1, own.target])
    assert isclose(share, record.samples[-1].share, abs_tol=1e-3)


def test_the_page_of_a_run_draws_losses_gradients_and_rates() -> None:
    book = book_of("abc")
    losses, norms, rates = parts_of(book, "training", Curve)
    assert losses.lines[0].points[0] == (1.0, 1.142)
    assert [line.kind for line in norms.lines] == ["line", "marks", "level"]
    assert [step for step, _norm in norms.lines[1].points] == [129.0, 140.0]
    assert max(rate for _step, rate in rates.lines[0].points) == 0.003
    told = said(next(p for p in book.page("training").passages if p.id == "training-norms"))
    assert "at 2 of 500 steps: 129 and 140" in told


def test_a_run_says_that_it_was_made_again() -> None:
    assert "differ by up to 0.007248" in said(book_of("abc").page("training").passages[0])


# ------------------------------------------------------------------ pages and paper


def test_the_stream_is_lit_from_its_end_on_pages_and_on_paper() -> None:
    book = book_of("tiny")
    backward = pages(book)["backward.html"]
    count = sum(passage.backward for passage in book.page("backward").passages)
    assert backward.count('class="way-back"') == count
    assert 'class="way-back"' not in pages(book)["block.html"]
    assert typst_source(book).count("back: true") == count


def test_the_figure_of_the_index_leads_to_where_a_step_is_worked_out_first() -> None:
    index = pages(book_of("tiny"))["index.html"]
    assert 'href="attention.html#attention-0-attn-scores"' in index
    assert "backward.html#" not in index


def test_curves_are_drawn_on_pages_and_on_paper() -> None:
    book = book_of("abc")
    page, source = pages(book)["training.html"], typst_source(book)
    assert page.count('<figure class="curve">') == 3
    assert "var(--" not in source
    assert source.count("<svg") >= 3
