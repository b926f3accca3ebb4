"""A small book put together by hand, for tests of whatever shows books.  Its numbers are `tiny`'s
scores and weights at position 1; nothing is computed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from byhand.document.book import (
    Book,
    Node,
    Page,
    Passage,
    Spine,
)
from byhand.document.parts import (
    MASKED,
    AttentionPattern,
    Cell,
    Column,
    Facts,
    Formula,
    Grid,
    HeadPattern,
    HeatStrip,
    LeftOut,
    Matrix,
    NumberRow,
    NumberTable,
    RegisterLine,
    RegisterMap,
    Remark,
    Sign,
    Stop,
    StreamLine,
    WorkingLine,
)
from byhand.document.parts import Number as Figure
from byhand.document.parts.verdicts import VerdictLine, VerdictTable
from byhand.expression import Call, Entry, Name, Number, Product, Quotient, Sum, parse

SCORES, WEIGHTS = "block.0.attn.scores", "block.0.attn.weights"
LABELS = ("0 a", "1 b")


def whole(value: int) -> Cell:
    return Cell("exact", Number(Fraction(value)), decimal=f"{value}.0000")


def share(form: str, worked: str, decimal: str) -> Cell:
    return Cell("named", parse(form), parse(worked), decimal)


FIRST = share("1/(1 + e)", "e^1/(e^1 + e^2)", "0.2689")
SECOND = share("e/(1 + e)", "e^2/(e^1 + e^2)", "0.7311")


def sample_book(language: str = "en") -> Book:
    """Two pages: attention with its formula, tables and boundary; the parameters."""
    return Book(
        model="tiny",
        text="a b",
        title="tiny, by hand",
        about="Three words in two dimensions.",
        pages=(_attention(), _parameters()),
        spine=_spine(),
        language=language,
        numbers="exact where it can be, named where it can't",
        scale="pencil",
        tokens=LABELS,
        facts=(("text", "a b"),),
        registers=(("exact", "a rational number"), ("named", "written with e^… or √…")),
        claims_checked="worked.yaml",
        claims=(_checked(),),
    )


def _attention() -> Page:
    worked = WorkingLine(
        f"{SCORES}[0,1,1]",
        cell=whole(2),
        symbols=Sum(
            tuple(Product((Entry("q", (0, 1, i)), Entry("k", (0, 1, i)))) for i in range(2))
        ),
        values=parse("1*1 + 1*1"),
        sources=(("q", "block.0.attn.q"), ("k", "block.0.attn.k")),
    )
    scores = Passage(
        id="attention-0-scores",
        title="Scores",
        sentences=("Every question meets every key it may see.", "The result is `" + SCORES + "`."),
        lit=(SCORES,),
        formulas=(
            Formula(
                address=SCORES,
                symbols=(Name("scores"), Sign("="), Product((Name("q"), Name("k")))),
                numbers=(
                    Matrix(((whole(1), whole(1)),), "block.0.attn.q"),
                    Sign("·"),
                    Matrix(((whole(1), whole(0)), (whole(1), whole(1))), "block.0.attn.k"),
                    Sign("="),
                    Matrix(((whole(1), whole(2)),), SCORES),
                ),
                worked=worked,
            ),
        ),
        show=(_table(SCORES, ((whole(1), MASKED), (whole(1), whole(2))), ("exact", "exact")),),
        layer=0,
    )
    weights = Passage(
        id="attention-0-weights",
        title="Softmax",
        sentences=("A row of scores becomes shares that sum to 1.",),
        lit=(WEIGHTS,),
        formulas=(
            Formula(
                address=WEIGHTS,
                symbols=(Name("weights"), Sign("="), Call("softmax", Name("scores"))),
                worked=WorkingLine(
                    f"{WEIGHTS}[0,1,1]",
                    cell=SECOND,
                    symbols=Quotient(parse("e^x"), Sum((parse("e^x"), parse("e^y")))),
                    values=parse("e^2/(e^1 + e^2)"),
                ),
            ),
        ),
        show=(
            _table(WEIGHTS, ((whole(1), MASKED), (FIRST, SECOND)), ("exact", "named")),
            AttentionPattern(
                WEIGHTS,
                LABELS,
                (
                    HeadPattern(
                        f"{WEIGHTS}[0]", 0, np.array([[1, np.nan], [0.2689, 0.7311]], np.float32)
                    ),
                ),
            ),
            VerdictTable("worked.yaml", (_checked(),)),
            LeftOut("Other heads are not shown.", "byhand trace tiny --only block.0.attn"),
        ),
        remarks=(
            Remark("leaves", "position 1 (b) leaves the exact numbers here", WEIGHTS),
            Remark("claim", "0.25 is printed here; 0.2689 follows", f"{WEIGHTS}[0,1,0]"),
        ),
        layer=0,
    )
    return Page("attention", "Attention", "Who looks at whom, and why.", (scores, weights))


def _table(
    address: str, rows: tuple[tuple[Cell, ...], ...], registers: tuple[str, ...]
) -> NumberTable:
    return NumberTable(
        address=address,
        title="",
        axes=("head", "query", "key"),
        shape=(1, 2, 2),
        columns=(0, 1),
        heads=LABELS,
        rows=tuple(
            NumberRow(
                i,
                LABELS[i],
                registers[i],
                tuple(Figure(f"{address}[0,{i},{j}]", cell) for j, cell in enumerate(row)),
            )
            for i, row in enumerate(rows)
        ),
    )


def _checked() -> VerdictLine:
    return VerdictLine(
        address=f"{WEIGHTS}[0,1,0]",
        verdict="ERROR",
        sign="✗",
        word="error here",
        claimed="0.25",
        expected="0.2689",
        told=(("suspect", "it follows if the scores are halved"),),
        source="worked.yaml, line 3",
    )


def _parameters() -> Page:
    strip = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
    passages = (
        Passage(
            id="parameters-counted",
            title="Counted",
            sentences=("Every parameter, to the digit.",),
            show=(
                Facts((("d = 2", "width of the residual stream"),)),
                Grid(
                    "",
                    (
                        Column("component"),
                        Column("formula", "formula"),
                        Column("count", "number"),
                        Column("share", "share"),
                    ),
                    (("embedding\n`weight.embed.token`", "vocab·d", "6", "1.0000"),),
                    totals=(("all parameters", "", "6", ""),),
                    addresses=("count.embedding",),
                ),
                HeatStrip("weight.head", "W_head", ("vocab", "d"), (3, 8), strip, 1.0),
                Facts((("text", "a b"),)),
                RegisterMap(
                    LABELS,
                    (
                        RegisterLine(SCORES, ("exact", "exact"), ("", "")),
                        RegisterLine(WEIGHTS, ("exact", "named"), ("", "leaves")),
                    ),
                ),
                StreamLine(
                    1,
                    "1 b",
                    (
                        Stop("stream.0", "embedding", "stream", None, 1.414, "exact", _ones()),
                        Stop("block.0.attn.out", "attention", "trip", 0, 1.24, "named",
                             (Figure("block.0.attn.out[1,0]", whole(1)),
                              Figure("block.0.attn.out[1,1]", SECOND)), "attn"),
                    ),
                ),
            ),
        ),
    )  # fmt: skip
    return Page("parameters", "The parameters", "What the model has learned.", passages)


def _ones() -> tuple[Figure, ...]:
    return tuple(Figure(f"stream.0[1,{i}]", whole(1)) for i in range(2))


def _spine() -> Spine:
    nodes = (
        Node("tokens", "tokens", "end", None, "", ("tokens",)),
        Node("stream-0", "embed + position", "stream", None, "", ("stream.0",)),
        Node("block-0-attn-scores", "scores", "trip", 0, "attn", (SCORES,)),
        Node("block-0-attn-weights", "softmax", "trip", 0, "attn", (WEIGHTS,)),
        Node("block-0-attn-add", "+", "stream", 0, "attn", ("block.0.attn.add",)),
        Node("next", "next token", "end", None, "", ("next",)),
    )  # fmt: skip
    return Spine(nodes, 1)
