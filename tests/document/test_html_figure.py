"""The figure of the whole pass, and tensors as colours."""

from __future__ import annotations

import re
from base64 import b64decode

import numpy as np
import pytest
from samples import sample_book

from byhand.document.book import Node, Spine
from byhand.document.media.html.figure import CENTRE, LANES, Figures
from byhand.document.media.html.strips import STEPS, attention_pattern, heat_strip
from byhand.document.media.stations import stations
from byhand.document.parts import AttentionPattern, HeadPattern, HeatStrip
from byhand.editions import make_book


def layered(layers: int) -> Spine:
    """A pass of so many layers, each with a side-trip of attention and one of the MLP."""
    nodes = [Node("tokens", "tokens", "end", None, "", ("tokens",))]
    for layer in range(layers):
        for trip in ("attn", "mlp"):
            name = f"block-{layer}-{trip}"
            step = f"block.{layer}.{trip}"
            nodes.append(Node(f"{name}-out", "output", "trip", layer, trip, (f"{step}.out",)))
            nodes.append(Node(f"{name}-add", "+ it", "stream", layer, trip, (f"{step}.add",)))
    return Spine((*nodes, Node("next", "next token", "end", None, "", ("next",))), layers)


def marked(drawing: str) -> list[str]:
    return re.findall(r'<g class="lit" data-node="([^"]*)"', drawing)


# ------------------------------------------------------------------ the whole pass


def test_a_passage_marks_its_stations_with_a_band_a_pointer_and_words() -> None:
    book = sample_book()
    drawing = Figures(book.spine, book.tokens).of(("block.0.attn.scores",))
    assert marked(drawing) == ["block-0-attn-scores"]
    assert drawing.count('class="band"') == drawing.count('class="pointer"') == 1
    assert 'aria-label="The whole pass; worked out here: block 0 attention scores"' in drawing
    assert "worked out here: scores" in drawing


@pytest.mark.parametrize("model", ["tiny", "journey", "abc-walkthrough"])
def test_columns_of_numbers_hold_their_heads_and_all_rows_or_the_last_position_alone(
    model: str,
) -> None:
    book = make_book(model)
    figures = Figures(book.spine, book.tokens)
    places, widths = figures.beside.places, figures.columns
    assert places
    assert all(width >= len(book.tokens[at]) for at, width in zip(places, widths, strict=True))
    if len(places) > 1:
        [embed] = [node for node in book.spine.nodes if node.steps == ("embed.token",)]
        assert all(figures.beside.text(embed, place)[0] for place in places)
    else:
        assert places == (len(book.tokens) - 1,)


def test_nothing_is_marked_where_nothing_is_computed() -> None:
    book = sample_book()
    assert marked(Figures(book.spine, book.tokens).of(("no.such.step",))) == []


def test_attention_leaves_the_stream_to_the_left_and_the_mlp_to_the_right() -> None:
    figures = Figures(layered(1), ())
    figures.of(("tokens",))
    drawn = "".join(figures.drawn())
    trips = re.findall(r'<path class="trip" d="M(\d+) \d+C\d+ \d+ (\d+)', drawn)
    assert trips == [(str(CENTRE), str(LANES["attn"])), (str(CENTRE), str(LANES["mlp"]))]
    assert LANES["attn"] < CENTRE < LANES["mlp"]


def test_the_figure_is_drawn_once_and_shown_by_every_passage() -> None:
    figures = Figures(layered(1), ())
    shown = [figures.of((step,)) for step in ("tokens", "next", "block.0.attn.out")]
    assert all('<use href="#pass-0"/>' in each for each in shown)
    assert "".join(figures.drawn()).count('id="pass-0"') == 1


def test_layers_that_a_passage_does_not_enter_are_folded() -> None:
    spine = layered(12)
    labels = [row.label for row in stations(spine, (5,))]
    assert labels == [
        "tokens", "block 0", "blocks 1–3", "block 4", "output", "+ it", "output", "+ it",
        "block 6", "blocks 7–10", "block 11", "next token",
    ]  # fmt: skip
    figures = Figures(spine, ())
    assert marked(figures.of(("block.5.mlp.out",))) == ["block-5-mlp-out"]


def test_a_passage_about_several_layers_marks_their_folded_stations() -> None:
    figures = Figures(layered(3), ())
    found = marked(figures.of(("block.0.attn.out", "block.2.attn.out")))
    assert [each.split()[0] for each in found] == ["block-0-attn-out", "block-2-attn-out"]


def test_every_node_stands_in_the_figure_however_it_is_folded() -> None:
    spine = layered(7)
    for full in ((), (0,), (3,), (6,)):
        drawn = [node.id for row in stations(spine, full) for node in row.nodes]
        assert drawn == [node.id for node in spine.nodes]


def test_the_numbers_of_a_small_model_stand_in_its_figure() -> None:
    book = make_book("tiny")
    figures = Figures(book.spine, book.tokens)
    figures.of(("tokens",))
    drawn = "".join(figures.drawn())
    assert ">(2, −1)</text>" in drawn
    assert '<text class="v named"' in drawn
    assert ">(1, 0.7311) √</text>" in drawn  # which colour alone does not say


def test_where_the_positions_do_not_fit_the_last_one_stands_alone() -> None:
    wide = make_book("journey")
    figures = Figures(wide.spine, wide.tokens, finite=True)
    figures.of(("tokens",))
    drawn = "".join(figures.drawn())
    assert re.findall(r'class="head"[^>]*>([^<]*)<', drawn) == ["3 on"]
    assert ">(−0.2, 0.3, 0.5, 0.1)</text>" in drawn
    assert ">(−0.5321, 0.3475, 0.6666, −0.2077) √</text>" in drawn


def test_the_end_of_the_figure_says_the_next_token_in_words() -> None:
    book = make_book("tiny")
    figures = Figures(book.spine, book.tokens)
    figures.of(("next",))
    drawn = "".join(figures.drawn())
    assert drawn.count(">a 0.6652 √</text>") == 2
    assert drawn.count(">a</text>") == 2


def test_what_is_added_says_its_plus() -> None:
    book = make_book("tiny")
    drawn = Figures(book.spine, book.tokens).inline(())
    for label in ("+ position", "+ attention", "+ MLP"):
        assert f">{label}</text>" in drawn


# ------------------------------------------------------------------ colours


def strip(values: list[list[float]], **settings: object) -> str:
    array = np.array(values, np.float32)
    known = {"reach": 1.0, "axes": ("pos", "d"), "shape": array.shape, **settings}
    return "".join(heat_strip(HeatStrip("stream.0", "", values=array, **known)))  # type: ignore[arg-type]


def painted(drawing: str, wide: int, high: int) -> list[list[str]]:
    """The class of every cell, read back from the strokes."""
    cells = [["" for _ in range(wide)] for _ in range(high)]
    for kind, path in re.findall(r'<path class="([a-z0-9]+)" d="([^"]*)"', drawing):
        x = y = 0.0
        for move, a, b, length in re.findall(r"([Mm])(-?[\d.]+) (-?[\d.]+)h(\d+)", path):
            x, y = (float(a), float(b)) if move == "M" else (x + float(a), y + float(b))
            for _cell in range(int(length)):
                assert cells[int(y)][int(x)] == ""
                cells[int(y)][int(x)] = kind
                x += 1
    return cells


def test_colours_are_symmetric_about_zero_and_deepen_towards_the_ends() -> None:
    row = [-1.0, -0.5, -0.3, -0.1, 0.0, 0.1, 0.3, 0.5, 1.0]
    assert painted(strip([row]), 9, 1) == [["n4", "n3", "n2", "n1", "z", "p1", "p2", "p3", "p4"]]


def test_every_cell_is_painted_once() -> None:
    values = np.random.default_rng(3).uniform(-1, 1, (5, 7)).round(2)
    cells = painted(strip(values.tolist()), 7, 5)
    assert all(kind for row in cells for kind in row)


def test_a_masked_cell_has_no_colour() -> None:
    assert painted(strip([[float("nan"), 1.0]]), 2, 1) == [["none", "p4"]]


def test_a_strip_carries_its_values_for_who_points_at_it() -> None:
    drawing = strip([[-0.5, 0.25], [float("nan"), 1.0]])
    match = re.search(r'data-values="([^"]*)"', drawing)
    assert match is not None
    steps = np.frombuffer(b64decode(match[1]), "<u2").astype(int) - 32768
    assert steps[2] == -STEPS - 1
    assert (steps[[0, 1, 3]] / STEPS).tolist() == pytest.approx([-0.5, 0.25, 1.0], abs=1e-4)
    assert 'data-address="stream.0[{row},{column}]"' in drawing


def test_what_a_strip_leaves_out_is_said() -> None:
    drawing = strip([[0.0, 1.0]], pooled=(2, 3), left_out="12 rows")
    assert "A cell stands for 2 × 3 entries and shows the one furthest from 0." in drawing
    assert "12 rows" in drawing
    assert 'aria-label="stream.0: from 0 to 1"' in drawing


def test_a_pattern_says_who_looks_at_whom() -> None:
    values = np.array([[1.0, np.nan], [0.25, 0.75]], np.float32)
    pattern = AttentionPattern("w", ("0 a", "1 b"), (HeadPattern("w[0]", 0, values),))
    drawing = "".join(attention_pattern(pattern))
    assert (
        "head 0: 0 a gives 0 a 100 % of its attention; 1 b gives 1 b 75 % of its attention"
        in drawing
    )
    assert drawing.count('class="mask"') == 1
    assert re.findall(r'class="number on(\d)"[^>]*>([\d.]+)<', drawing) == [
        ("4", "1.00"), ("1", "0.25"), ("3", "0.75"),
    ]  # fmt: skip
