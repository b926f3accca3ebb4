"""The figure of the plane: well-formed, complete in words, and no label over another."""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree

import pytest

import byhand
from byhand.document.compose.explanation.plane import drawings, percent
from byhand.document.media.html.plane import figure as drawn_figure
from byhand.document.media.html.plane.shapes import bent, middle
from byhand.document.media.html.plane.sheet import Box, Room, roomiest
from byhand.document.media.outlines import distance, tick, within
from byhand.document.media.terminal.ink import width_of
from byhand.document.media.terminal.plane import drawn
from byhand.document.numerals import decimal
from byhand.explaining.geometry import Geometry, geometry_of
from byhand.files import parse_model

SVG = "{http://www.w3.org/2000/svg}"


@cache
def geometry(model: str) -> Geometry:
    return geometry_of(byhand.trace(model))


def figures(found: Geometry, name: str = "plane") -> list[str]:
    return [drawn_figure(part) for part in drawings(found, name=name)]


def characters(found: Geometry, width: int = 80) -> list[str]:
    return [line for part in drawings(found) for line in drawn(part, width)]


@cache
def figure(model: str) -> ElementTree.Element:
    (svg,) = figures(geometry(model))
    return ElementTree.fromstring(svg)


def texts(model: str) -> list[str]:
    found = ("".join(each.itertext()) for each in figure(model).iter(f"{SVG}text"))
    return [text.replace("\u200b", "") for text in found]


def by_class(model: str, name: str) -> list[ElementTree.Element]:
    return [each for each in figure(model).iter() if name in each.get("class", "").split()]


@pytest.mark.parametrize("model", ["abc", "tiny", "journey", "minigpt", "abc-walkthrough"])
def test_every_model_has_a_figure_with_title_and_description(model: str) -> None:
    root = figure(model)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert len(ids) == len(set(ids))
    assert set(root.get("aria-labelledby", "").split()) <= set(ids)


def test_references_inside_a_figure_carry_its_name() -> None:
    (svg,) = figures(geometry("abc"), name="mine")
    assert set(re.findall(r'id="([a-z]+)-', svg)) == {"mine"}
    assert set(re.findall(r"url\(#([a-z]+)-", svg)) == {"mine"}


def test_regions_differ_in_pattern_and_letter_as_well_as_colour() -> None:
    assert len(by_class("abc", "tint")) == 2 * 3  # in the plane and in the legend
    shapes = [each[0].get("d") for each in by_class("abc", "hatch")]
    assert len(set(shapes)) == 3
    assert [each.text for each in by_class("abc", "letter")] == ["A", "B", "C"]


def test_each_way_is_named_where_it_starts_and_what_it_predicts_where_it_ends() -> None:
    found = texts("abc")
    assert {"A0", "B1", "C2", "A0 → B", "B1 → C", "C2 → A"} <= set(found)
    assert {"wA", "wB", "wC"} <= set(found)


def test_ways_that_end_in_one_point_share_a_label_and_do_not_hide_each_other() -> None:
    assert "a0, b1 → a" in texts("tiny")
    ways = [each.get("d", "") for each in by_class("tiny", "way")]
    assert all("Q" in way for way in ways)  # both go to (2, -1) and back: bent lines
    assert bent(((0.0, 0.0), (10.0, 0.0)), 9.0) != bent(((0.0, 0.0), (10.0, 0.0)), 18.0)


def test_the_figure_says_how_sure_it_is() -> None:
    assert any("regions are exact" in text for text in texts("abc"))
    assert "proven" in " ".join(texts("abc"))
    assert "leaves only which of them is larger" in " ".join(texts("tiny"))
    assert "9.1 % of the squared distances are projected away" in " ".join(texts("journey"))
    assert "no prediction is proven" in " ".join(texts("minigpt"))
    assert "no regions" in " ".join(texts("abc-walkthrough"))


def test_the_description_says_every_stop_in_numbers() -> None:
    told = figure("abc").findtext(f"{SVG}desc", "")
    assert "C at position 2: embedding (1.22, 1.47); + position (1.40, 0.83)" in told
    assert "(−8.53, 7.89) → A." in told


def test_nothing_is_drawn_outside_the_picture() -> None:
    for model in ("abc", "tiny", "journey"):
        _left, _top, width, height = map(float, figure(model).get("viewBox", "").split())
        for each in figure(model).iter(f"{SVG}text"):
            if each.get("x") and each.get("class", "").startswith(("label", "w", "letter")):
                assert 0 < float(each.get("x", "")) < width
                assert 0 < float(each.get("y", "")) < height


def test_tokens_are_escaped() -> None:
    assert "<en>" not in "".join(figures(geometry("minigpt")))


def test_tokens_that_do_not_print_are_quoted(tmp_path: Path) -> None:
    file = tmp_path / "spaces.yaml"
    text = (resources.files("byhand.models") / "abc.yaml").read_text("utf-8")
    file.write_text(text.replace("tokens: [A, B, C]", 'tokens: [A, B, "\\n"]').replace("ABC", "AB"))
    (svg,) = figures(geometry_of(byhand.trace(str(file))))
    assert r"'\n' wins" in unescape(svg)


# ------------------------------------------------------------------ placing


def test_labels_never_cover_each_other_and_stay_inside() -> None:
    room = Room(Box(0, 0, 200, 100))
    placed = [room.beside((100.0, 50.0), 40, 12, 6) for _label in range(40)]
    boxes = [Box.around(place, 40, 12) for place in placed if place is not None]
    assert 4 < len(boxes) < 40
    for i, box in enumerate(boxes):
        assert box.inside(room.whole)
        assert not any(box.covers(other) for other in boxes[:i])


def test_a_label_along_a_line_is_never_upside_down() -> None:
    for segment in (((10.0, 10.0), (190.0, 90.0)), ((190.0, 90.0), (10.0, 10.0))):
        found = Room(Box(0, 0, 200, 100)).along(segment, 50, 11)
        assert found is not None
        assert -1.6 < found[1] < 1.6
        assert distance(found[0], segment) > 8
    assert Room(Box(0, 0, 200, 100)).along(((10.0, 10.0), (40.0, 10.0)), 50, 11) is None


def test_a_bent_line_has_its_label_outside_of_the_bend() -> None:
    for segment in (((10.0, 50.0), (190.0, 50.0)), ((190.0, 50.0), (10.0, 50.0))):
        found = Room(Box(0, 0, 200, 100)).along(segment, 50, 11, bow=20.0)
        assert found is not None
        bend = middle(segment, 20.0)
        assert abs(found[0][1] - bend[1]) < 15
        assert abs(found[0][1] - 50) > abs(bend[1] - 50)


def test_a_region_s_letter_lies_inside_it() -> None:
    corner = [(0.0, 0.0), (100.0, 0.0), (0.0, 100.0)]
    place = roomiest(corner, Room(Box(0, 0, 100, 100)), 20, 20)
    assert place is not None
    assert all(within(each, corner) for each in Box.around(place, 20, 20).corners)
    assert roomiest(corner, Room(Box(0, 0, 100, 100)), 90, 20) is None
    assert (
        roomiest([(0.0, 0.0), (100.0, 0.0), (0.0, 3.0)], Room(Box(0, 0, 100, 100)), 20, 20) is None
    )


@pytest.mark.parametrize(("span", "unit"), [(20.7, 5.0), (3.2, 1.0), (1.0, 0.2), (0.07, 0.02)])
def test_ticks_are_round_numbers(span: float, unit: float) -> None:
    assert tick(span) == pytest.approx(unit)


def test_numbers_are_written_for_readers() -> None:
    assert (decimal(-5.0, 5.0), decimal(-0.0001, 0.01), decimal(0.5, 0.25)) == ("−5", "0", "0.5")
    assert (percent(0.6622), percent(0.0909), percent(0.0)) == ("66 %", "9.1 %", "0 %")


# ------------------------------------------------------------------ in characters


def test_the_plane_in_characters_is_a_frame_with_ways_and_letters() -> None:
    lines = characters(geometry("abc"))
    inner = [line[7:-1] for line in lines if line.endswith("│")]
    assert {len(line) for line in inner} == {64}
    whole = "\n".join(inner)
    assert whole.count("@") == 3
    assert whole.count("o") == 3
    for label in ("A₀ → B", "B₁ → C", "C₂ → A"):
        assert label in whole
    assert inner[1].strip()[0] == "A"  # the upper left is where A wins
    assert inner[-3].rstrip()[-1] == "B"


def test_the_plane_in_characters_has_its_numbers_at_the_sides() -> None:
    lines = characters(geometry("tiny"), 54)
    assert [line.split()[0] for line in lines if "┤" in line] == ["1", "0", "−1"]
    assert lines[-2].split() == ["0", "1", "2"]


def test_beside_the_plane_in_characters_long_numbers_have_exponents() -> None:
    model = parse_model("""\
vocabulary: [a, b]
text: a b
model: {d_model: 2, layers: 0, head: {tied: false}}
weights:
  embed.token: [[1, 0], [0, 1]]
  head: [[1e18, 0], [-1e18, 1e-3]]
""")
    lines = characters(geometry_of(byhand.trace(model)), 54)
    assert {width_of(line) for line in lines[1:-2]} == {48}
    assert [line.split()[0] for line in lines if "┤" in line][-1] == "−1e18"
    assert lines[-2].split() == ["0", "2e17", "4e17", "6e17", "8e17", "1e18"]
