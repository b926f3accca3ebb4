"""The books themselves: what they cover, and that every number in them is the trace's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from math import cos, erf, exp, isclose, log, pi, sin, sqrt, tanh

import pytest

from byhand.document.book import Book, Passage
from byhand.document.compose.book import STEP_PAGES, bind
from byhand.document.compose.book.edition import Edition
from byhand.document.parts import (
    AttentionPattern,
    Facts,
    Grid,
    HeatStrip,
    LeftOut,
    Number,
    NumberTable,
    Predictions,
    RegisterMap,
    StreamLine,
    WorkingLine,
)
from byhand.document.parts.verdicts import VerdictTable
from byhand.editions import make_edition
from byhand.expression import (
    Call,
    Expression,
    Name,
    Negative,
    Power,
    Product,
    Quotient,
    Sum,
    rational,
    write,
)
from byhand.expression import Number as Rational
from byhand.models import builtin_names

FUNCTIONS = {
    "sqrt": sqrt, "exp": exp, "ln": log, "sin": sin, "cos": cos, "tanh": tanh, "erf": erf,
    "relu": lambda x: max(0.0, x), "step": lambda x: float(x > 0),
}  # fmt: skip


@lru_cache
def edition_of(name: str) -> Edition:
    return make_edition(name)


@lru_cache
def book_of(name: str) -> Book:
    return bind(edition_of(name), "en")


def passage_of(book: Book, id: str) -> Passage:
    return next(passage for passage in book.passages if passage.id == id)


def tables(book: Book) -> Iterator[NumberTable]:
    for passage in book.passages:
        yield from (part for part in passage.show if isinstance(part, NumberTable))


def numbers(book: Book) -> dict[str, Number]:
    """Every number that stands in a table, by its address."""
    return {n.address: n for table in tables(book) for row in table.rows for n in row.numbers}


def value(tree: Expression) -> float:
    """An expression tree as a float, worked out by nothing but Python's own functions."""
    match tree:
        case Rational(value=fraction):
            return float(fraction)
        case Name(text=text):
            return {"e": exp(1), "pi": pi}.get(text) or float(text)
        case Negative(of=x):
            return -value(x)
        case Sum(terms=terms):
            return sum(map(value, terms))
        case Product(factors=factors):
            found = 1.0
            for factor in factors:
                found *= value(factor)
            return found
        case Quotient(top=top, bottom=bottom):
            return value(top) / value(bottom)
        case Power(base=base, exponent=exponent):
            return value(base) ** value(exponent)
        case Call(function=function, argument=x):
            return FUNCTIONS[function](value(x))
    raise TypeError(tree)


# ------------------------------------------------------------------ every step once


@pytest.mark.parametrize("name", builtin_names())
def test_the_whole_pass_lights_every_step_exactly_once(name: str) -> None:
    lit = Counter(step for p in book_of(name).page("whole").passages for step in p.lit)
    assert lit == Counter(step.address for step in edition_of(name).trace.plan)


@pytest.mark.parametrize("name", builtin_names())
def test_the_pages_of_the_parts_together_light_every_step_exactly_once(name: str) -> None:
    book = book_of(name)
    pages = [page for page in book.pages if page.slug in STEP_PAGES]
    lit = Counter(step for page in pages for p in page.passages for step in p.lit)
    assert lit == Counter(step.address for step in edition_of(name).trace.plan)


@pytest.mark.parametrize("name", builtin_names())
def test_each_passage_has_an_id_of_its_own_and_says_something(name: str) -> None:
    passages = list(book_of(name).passages)
    assert len({passage.id for passage in passages}) == len(passages)
    assert all(passage.title and all(passage.sentences) for passage in passages)


@pytest.mark.parametrize("name", builtin_names())
def test_the_figure_has_every_step_once_and_lights_what_a_passage_lights(name: str) -> None:
    book = book_of(name)
    steps = Counter(step for node in book.spine.nodes for step in node.steps)
    assert steps == Counter(step.address for step in edition_of(name).trace.plan)
    known = {node.id: set(node.steps) for node in book.spine.nodes}
    for passage in book.page("attention").passages:
        lit = set().union(*(known[node] for node in book.spine.lit(passage.lit)))
        assert lit >= set(passage.lit)
        assert all(known[node] & set(passage.lit) for node in book.spine.lit(passage.lit))


# ------------------------------------------------------------------ numbers and their working


@pytest.mark.parametrize("name", ["tiny", "journey", "abc"])
def test_a_pencil_sized_book_holds_every_number_of_the_trace(name: str) -> None:
    found, trace = numbers(book_of(name)), edition_of(name).trace
    for worked in trace.values():
        if worked.whole:
            continue
        for index, entry in worked.entries():
            number = found[f"{worked.address}[{','.join(map(str, index))}]"]
            assert number.cell.register == worked.register_at(index)
            if entry is not None and entry.fraction is not None:
                assert number.cell.form is not None
                assert rational(number.cell.form) == entry.fraction


@pytest.mark.parametrize("name", ["tiny", "journey", "abc"])
def test_every_line_of_working_gives_the_number_it_works_out(name: str) -> None:
    book, checked = book_of(name), 0
    lines = [n.working for n in numbers(book).values() if n.working is not None]
    lines += [f.worked for p in book.passages for f in p.formulas if f.worked is not None]
    for line in lines:
        if line.values is not None and line.cell.decimal is not None:
            assert isclose(value(line.values), decimal(line), rel_tol=1e-3, abs_tol=6e-4), line
            checked += 1
    assert checked > 100


def decimal(line: WorkingLine) -> float:
    assert line.cell.decimal is not None
    return float(line.cell.decimal)


def test_each_step_has_a_formula_in_symbols_and_one_entry_written_out() -> None:
    book = book_of("journey")
    pages = [page for page in book.pages if page.slug in STEP_PAGES]
    laws = {f.address: f for page in pages for p in page.passages for f in p.formulas}
    for step in edition_of("journey").trace.plan:
        if step.op != "given":
            assert len(laws[step.address].symbols) == 3
            assert (laws[step.address].worked is None) == (step.op == "argmax")


def test_matrices_of_a_formula_are_this_model_s_numbers() -> None:
    law = passage_of(book_of("tiny"), "attention-0-attn-scores").formulas[0]
    rows = [
        [[write(cell.form) for cell in row if cell.form is not None] for row in piece.rows]
        for piece in law.numbers
        if hasattr(piece, "rows")
    ]
    assert rows == [[["1", "1"]], [["1", "1"], ["0", "1"]], [["1", "2"]]]


# ------------------------------------------------------------------ tiny: documents 000 and 001

TINY = {  # what the documents print, position 0 and then 1, stage for stage
    "embed.token": ["1", "0", "0", "1"],
    "embed.position": ["0", "0", "1", "0"],
    "stream.0": ["1", "0", "1", "1"],
    "block.0.attn.q": ["1", "0", "1", "1"],
    "block.0.attn.k": ["1", "0", "1", "1"],
    "block.0.attn.scores": ["1", None, "1", "2"],
    "block.0.attn.norm.out": ["1", "-1", "1", "-1"],
    "block.0.mlp.act": ["1", "0", "1", "0"],
    "block.0.mlp.add": ["2", "-1", "2", "-1"],
    "block.0.mlp.norm.mean": ["1/2", "1/2"],
    "block.0.mlp.norm.centered": ["3/2", "-3/2", "3/2", "-3/2"],
    "block.0.mlp.norm.variance": ["9/4", "9/4"],
    "block.0.mlp.norm.std": ["3/2", "3/2"],
    "logits": ["1", "-1", "0", "1", "-1", "0"],
}


@pytest.mark.parametrize("step", TINY)
def test_the_book_of_tiny_shows_what_its_documents_print(step: str) -> None:
    found = [n for address, n in numbers(book_of("tiny")).items() if address.split("[")[0] == step]
    shown = [None if n.cell.form is None else write(n.cell.form) for n in found]
    assert shown == TINY[step]


def test_the_book_of_tiny_goes_past_the_boundary_of_position_1_to_the_end() -> None:
    book = book_of("tiny")
    shares = numbers(book)["block.0.attn.weights[0,1,1]"].cell
    assert shares.form is not None
    assert write(shares.form) == "e/(1 + e)"
    assert shares.worked is not None
    assert write(shares.worked) == "e^2/(e^1 + e^2)"
    weights = passage_of(book, "attention-0-attn-weights")
    assert any(r.kind == "leaves" and "position 1 (b)" in r.text for r in weights.remarks)
    norm = passage_of(book, "block-0-attn-norm")
    assert any(r.kind == "returns" and "position 1 (b)" in r.text for r in norm.remarks)
    ends = passage_of(book, "exact-ends").sentences
    assert ends[1].endswith("ends with logits that are exactly (1, −1, 0).")
    assert "exact all the way to its logits, (1, −1, 0)" in ends[0]


def test_a_row_of_one_score_is_said_to_be_exactly_1() -> None:
    said = " ".join(passage_of(book_of("tiny"), "attention-0-attn-weights").sentences)
    assert "Position 0 (a) has a single score, so its weight is exactly 1" in said
    assert "1/(1 + e) and e/(1 + e), and never rounded" in said


def test_the_map_of_registers_shows_where_a_position_leaves_and_returns() -> None:
    part = passage_of(book_of("tiny"), "exact-map").show[0]
    assert isinstance(part, RegisterMap)
    lines = {line.address: line for line in part.lines}
    assert lines["block.0.attn.weights"].registers == ("exact", "named")
    assert lines["block.0.attn.weights"].crossings == ("", "leaves")
    assert lines["block.0.attn.norm.normalized"].crossings == ("", "returns")


def test_the_stream_of_each_position_is_drawn_from_start_to_end() -> None:
    lines = passage_of(book_of("tiny"), "whole-stream").show
    assert [line.position for line in lines if isinstance(line, StreamLine)] == [0, 1]
    second = lines[1]
    assert isinstance(second, StreamLine)
    assert [(stop.address, stop.kind) for stop in second.stops] == [
        ("stream.0", "stream"),
        ("block.0.attn.out", "trip"),
        ("block.0.attn.add", "stream"),
        ("block.0.attn.norm.out", "stream"),
        ("block.0.mlp.out", "trip"),
        ("block.0.mlp.add", "stream"),
        ("block.0.mlp.norm.out", "stream"),
    ]
    assert isclose(second.stops[0].size, sqrt(2))


# ------------------------------------------------------------------ journey: document 002


def test_the_book_of_journey_has_the_loss_of_its_target() -> None:
    said = " ".join(passage_of(book_of("journey"), "next-loss").sentences)
    assert "`mat`" in said
    assert "Its probability is 0.1602, so the loss is 1.8313." in said
    assert "The model would have said `cat`." in said


def test_the_book_of_journey_says_which_printed_numbers_do_not_follow_and_where() -> None:
    book = book_of("journey")
    here = passage_of(book, "attention-0-attn-out")
    claim = next(remark for remark in here.remarks if remark.kind == "claim")
    assert claim.address == "block.0.attn.out[3]"
    assert "(0.14, 0.19, 0.22, 0.24)" in claim.text
    assert "does not follow" in claim.text
    printed = {a: n.claim.claimed for a, n in numbers(book).items() if n.claim is not None}
    row = dict(
        zip((f"block.0.attn.out[3,{i}]" for i in range(4)), claim_row(claim.text), strict=True)
    )
    assert printed.items() <= row.items()
    assert printed["block.0.attn.out[3,3]"] == "0.24"
    carried = passage_of(book, "block-0-mlp-add").remarks
    assert any("an earlier error is carried along" in remark.text for remark in carried)


def claim_row(text: str) -> list[str]:
    """The numbers in the first brackets of a remark."""
    return text[text.index("prints (") + 8 :].split(")")[0].split(", ")


def test_the_book_of_journey_says_where_the_printed_stream_would_lead() -> None:
    said = passage_of(book_of("journey"), "next-loss").sentences[-1]
    assert said.endswith("the probability of `mat` would be 0.1506 and the loss 1.8933.")


def test_every_line_of_the_document_is_in_the_table_of_claims() -> None:
    table = passage_of(book_of("journey"), "exact-claims").show[0]
    assert isinstance(table, VerdictTable)
    verdicts = Counter(line.verdict for line in table.lines)
    assert verdicts == {"RIGHT": 13, "CARRIED": 3, "ERROR": 1}


# ------------------------------------------------------------------ abc: document 003


def test_the_book_of_abc_tells_the_three_facts_it_has_learned() -> None:
    parts = passage_of(book_of("abc"), "next-next").show
    found = next(part for part in parts if isinstance(part, Predictions))
    assert [one.token for one in found.predictions] == ["B", "C", "A"]
    qkv = " ".join(passage_of(book_of("abc"), "attention-0-attn-qkv").sentences)
    assert "(3 × 2) · (2 × 6) = 3 × 6" in qkv
    assert "`A` (−0.6736, 1.2074)" in " ".join(passage_of(book_of("abc"), "next-logits").sentences)


def test_the_book_of_the_walkthrough_tells_the_slip_and_what_is_unknown() -> None:
    book = book_of("abc-walkthrough")
    logits = passage_of(book, "next-logits")
    slip = [remark for remark in logits.remarks if remark.kind == "claim"]
    assert len(slip) == 1
    assert "(−1, 1.75) for `direction.weight.head[2]`" in slip[0].text
    qkv = passage_of(book, "attention-0-attn-qkv")
    why = [part.text for part in qkv.show if isinstance(part, LeftOut)]
    assert why == ["`block.0.attn.qkv` – not worked out: weight.block.0.attn.qkv is unknown"]


# ------------------------------------------------------------------ minigpt: document 004


def test_the_book_of_minigpt_counts_to_the_digit_with_formulas() -> None:
    counted = passage_of(book_of("minigpt"), "parameters-counted")
    table = next(part for part in counted.show if isinstance(part, Grid))
    lines = dict(zip(table.addresses, table.rows, strict=True))
    assert lines["count.block.0.mlp"][1:5] == ("2·d·d_ff", "2·64·256", "32,768", "65,536")
    assert sum(int((row[4] or row[3]).replace(",", "")) for row in table.rows) == 103_680
    assert table.totals[0][:4] == ("total", "", "", "103,680")
    symbols = next(part for part in counted.show if isinstance(part, Facts))
    assert ("d = 64", "width of the residual stream") in symbols.facts
    assert any("57,344 = one layer of two" in remark.text for remark in counted.remarks)


def test_a_toy_is_shown_whole_as_colours_every_step_and_every_tensor() -> None:
    book, edition = book_of("minigpt"), edition_of("minigpt")
    strips = {
        part.address: part
        for passage in book.passages
        for part in passage.show
        if isinstance(part, HeatStrip)
    }
    patterns = {  # the colours of the shares: every head, every position
        part.address
        for passage in book.passages
        for part in passage.show
        if isinstance(part, AttentionPattern) and not part.left_out
    }
    steps = {worked.address for worked in edition.trace.values() if not worked.whole}
    weights = {f"weight.{name}" for name in edition.showing.parameters}
    assert patterns == {address for address in steps if address.endswith(".attn.weights")}
    gradients = {address for address in strips if address.startswith("grad.")}
    assert {*strips, *patterns} - gradients == steps | weights
    assert gradients >= {f"grad.{address}" for address in weights}
    assert all(strip.pooled == (1, 1) for strip in strips.values())
    probs = strips["probs"]
    assert probs.values.shape == (8, 64)
    assert probs.values[7].argmax() == edition.trace.next[7].id  # type: ignore[index]
