"""The report of a proof: what it says, that its pictures are true, and that every medium has it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path

import html5lib
import pytest
from browser import CONTRASTS, DESKTOP, FAULTS, PHONE, Windows, run_axe
from hypothesis import given
from hypothesis import strategies as st
from proof_samples import (
    OUTCOMES,
    adder,
    listed_texts,
    open_adder,
    proven_clock,
    refuted_clock,
    texts_up_to,
)
from validating import Elements

from byhand.document.compose.proof import report, sections
from byhand.document.compose.proof.answers import answer
from byhand.document.compose.proof.boxes import LEAST_WIDTH, MOST_LEVELS
from byhand.document.compose.proof.wording import at_least, counted, example, share
from byhand.document.media.terminal.ink import Ink, width_of
from byhand.document.media.terminal.parts import Terminal
from byhand.document.parts import (
    CaseTable,
    CaseTree,
    DomainPicture,
    Facts,
    Grid,
    LeftOut,
    Part,
    Section,
)
from byhand.document.proof import lines, notebook_cell, proof_page, proof_pdf
from byhand.language import speaking
from byhand.proving.domain import Region
from byhand.proving.outcome import Leaf, Outcome, leaves


def part_of(outcome: Outcome, kind: type) -> object:
    """The first part of a kind in the report."""
    found = [part for section in sections(outcome) for part in section.parts]
    return next(part for part in found if isinstance(part, kind))


@cache
def reported(name: str) -> list[Part | Section]:
    return report(OUTCOMES[name]())


# ------------------------------------------------------------------ what it says


def test_the_answer_says_how_many_texts_cases_passes_and_what_is_to_spare() -> None:
    found = answer(proven_clock())
    assert (found.kind, found.sentence) == ("proven", "It holds for all 49 texts.")
    assert dict(found.facts) == {
        "texts": "49",
        "cases": "3",
        "passes": "43",
        "time": "42 ms",
        "least lead": "≥ 0.3333",
    }


def test_a_refutation_names_the_text_what_comes_and_the_number_that_goes_wrong() -> None:
    outcome = refuted_clock()
    assert answer(outcome).sentence == "After “3 5” comes “2”, not “1”."
    told = part_of(outcome, Facts)
    assert isinstance(told, Facts)
    assert dict(told.facts)["logits[1,1]"] == "0.97"
    assert dict(told.facts)["should be larger than"] == "0.98"
    (section, *_others) = sections(outcome, "my clock.yaml")
    command = next(part.command for part in section.parts if isinstance(part, LeftOut))
    assert command == "byhand trace 'my clock.yaml' --at 'logits[1,1]' '3 5'"


def test_what_is_open_says_how_much_is_done_why_and_which_regions_are_left() -> None:
    outcome = open_adder()
    left = sum(leaf.region.texts or 0 for leaf in outcome.open if leaf.region is not None)
    assert left == 15 * 10**18
    assert answer(outcome).sentence == (
        "85 % of the domain is proven, 49 regions are left: out of time after 10 minutes."
    )
    listed = part_of(outcome, Grid)
    assert isinstance(listed, Grid)
    assert listed.rows[0] == ("1.361·10¹⁸", "s2 = 7…18; s1 = 14, 15; s0 = 11…13")
    assert listed.left_out == "41 more regions"


@given(st.fractions(max_denominator=10**9).filter(lambda lead: abs(lead) < 10**9))
def test_a_lead_is_written_as_a_lower_bound(lead: Fraction) -> None:
    shown = Fraction(at_least(lead))
    assert shown <= lead
    assert lead - shown <= abs(lead) / 1000


@given(st.fractions(0, 1))
def test_a_share_is_all_of_the_domain_only_where_it_is(part: Fraction) -> None:
    shown = Fraction(share(part).removesuffix(" %")) / 100
    assert part - Fraction(1, 10_000) <= shown <= part


def test_large_counts_are_written_by_their_leading_digits() -> None:
    assert counted(10**15) == "1,000,000,000,000,000"
    assert counted(10**20) == "10²⁰"
    assert counted(123_456 * 10**16) == "1.235·10²¹"


# ------------------------------------------------------------------ the domain


def test_the_domain_shows_tokens_variables_relations_and_ranges() -> None:
    picture = part_of(adder(20), DomainPicture)
    assert isinstance(picture, DomainPicture)
    (shape,) = picture.shapes
    assert Counter(cell.kind for cell in shape.cells) == {"free": 10, "bound": 10, "fixed": 2}
    assert (shape.cells[0].text, shape.cells[0].values) == ("a9", "0…9")
    assert shape.cells[11].text == "s9 − a9"
    assert shape.about == "10²⁰ texts"
    assert shape.conditions == ("s9…s0 = 0…18",)


def test_a_counterexample_stands_below_the_cells_of_its_shape() -> None:
    picture = part_of(refuted_clock(), DomainPicture)
    assert isinstance(picture, DomainPicture)
    assert [cell.example for cell in picture.shapes[0].cells] == ["3", "5"]


def test_of_very_many_shapes_the_first_and_the_last_are_shown() -> None:
    texts = [" ".join([str(length % 7)] * length) for length in range(1, 13)]
    picture = part_of(listed_texts(dict.fromkeys(texts, "0")), DomainPicture)
    assert isinstance(picture, DomainPicture)
    assert [len(shape.cells) for shape in picture.shapes] == [1, 2, 3, 4, 5, 10, 11, 12]
    assert picture.left_out == "4 more shapes"


def test_the_longest_texts_stand_for_all_where_texts_of_every_length_are_meant() -> None:
    picture = part_of(texts_up_to(4), DomainPicture)
    assert isinstance(picture, DomainPicture)
    (shape,) = picture.shapes
    assert [cell.text for cell in shape.cells] == ["0…6"] * 4
    assert [cell.example for cell in shape.cells] == ["0", "", "", ""]
    assert shape.about == "2,800 texts of 1 to 4 tokens"


def test_an_example_is_a_text_of_its_region() -> None:
    for leaf in leaves(adder(60).trees[0]):
        region = leaf.region
        assert region is not None
        ids = example(region)
        assert {
            place.tokens[value] for place in region.shape.places for value in place.tokens
        } >= set(ids)
        assert _assigned(region, ids)


def _assigned(region: Region, ids: tuple[int, ...]) -> bool:
    """Whether the digits of a text, and their sums, are allowed in a region."""
    digits = dict(zip([f"a{k}" for k in range(9, -1, -1)], ids[:10], strict=True))
    sums = {f"s{k}": digits[f"a{k}"] + b for k, b in zip(range(9, -1, -1), ids[11:21], strict=True)}
    return all(value in region.allowed[name] for name, value in {**digits, **sums}.items())


# ------------------------------------------------------------------ the cases


def test_a_table_shows_what_comes_next_after_every_text_and_how_that_is_known() -> None:
    table = part_of(proven_clock(), CaseTable)
    assert isinstance(table, CaseTable)
    for a, row in enumerate(table.rows):
        assert [square.text for square in row] == [str((a + b) % 7) for b in range(7)]
        assert {square.kind for square in row} == {"each" if a else "letters"}
        assert len({square.case for square in row}) == 1
    assert [(one.kind, one.count) for one in table.decisions] == [("letters", "1"), ("each", "2")]


def test_a_table_marks_the_one_text_that_refutes() -> None:
    table = part_of(refuted_clock(), CaseTable)
    assert isinstance(table, CaseTable)
    kinds = Counter(square.kind for row in table.rows for square in row)
    assert kinds == {"letters": 7, "refuted": 1, "open": 41}
    assert (table.rows[3][5].kind, table.rows[3][5].text) == ("refuted", "2")


def test_the_boxes_of_a_tree_lie_side_by_side_within_the_domain_and_are_bounded_in_number() -> None:
    tree = part_of(adder(2_000), CaseTree)
    assert isinstance(tree, CaseTree)
    assert len(tree.levels) <= MOST_LEVELS
    for level in tree.levels:
        assert len(level) <= 2 / LEAST_WIDTH
        for one, other in pairwise(level):
            assert one.start + one.width <= other.start + 1e-9
        assert level[-1].start + level[-1].width <= 1 + 1e-9
    assert [box.label for box in tree.levels[1]][:3] == ["0…6", "7…10", "11…13"]
    shares = sum(box.width for level in tree.levels for box in level if box.kind != "cut")
    assert shares == pytest.approx(1)


def test_an_open_case_is_seen_however_small_it_is() -> None:
    """One of 2,000 cases, the narrowest."""
    outcome = adder(2_000)
    found = [leaf for leaf in leaves(outcome.trees[0]) if leaf.region is not None]
    smallest = min(found, key=lambda leaf: leaf.region.box if leaf.region else 0)
    tree = part_of(_reopened(outcome, smallest), CaseTree)
    assert isinstance(tree, CaseTree)
    assert "open" in {box.kind for level in tree.levels for box in level}
    drawn = "\n".join(Terminal(60).part(tree))
    assert "?" in drawn.partition("█ proven")[0]


def _reopened(outcome: Outcome, case: Leaf) -> Outcome:
    def changed(tree: object) -> object:
        if isinstance(tree, Leaf):
            return Leaf(tree.region, "open") if tree is case else tree
        return replace(tree, parts=tuple(map(changed, tree.parts)))  # type: ignore[attr-defined,type-var]

    return replace(outcome, trees=(changed(outcome.trees[0]),), answer="open")  # type: ignore[arg-type]


def test_the_tightest_cases_come_first_each_with_a_text() -> None:
    (*_others, last) = sections(adder(300))
    table = last.parts[0]
    assert isinstance(table, Grid)
    leads = [Fraction(row[0].replace("\u00a0", " ").removeprefix("≥ ")) for row in table.rows]
    assert leads == sorted(leads)
    assert leads[0] == Fraction("0.03092")  # 3/97, rounded down
    assert all(row[2].endswith("=") for row in table.rows)


# ------------------------------------------------------------------ every medium


@pytest.mark.parametrize("name", OUTCOMES)
@pytest.mark.parametrize("width", [40, 61, 100])
def test_a_terminal_of_any_width_has_every_word_without_colour(name: str, width: int) -> None:
    plain = list(Terminal(width).lines(reported(name)))
    assert max(map(width_of, plain)) <= width
    coloured = Terminal(width, Ink(colour=True)).lines(reported(name))
    assert [re.sub(r"\x1b\[[\d;]*m", "", line) for line in coloured] == plain


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_page_is_strict_html_whose_links_lead_somewhere(name: str) -> None:
    text = proof_page(OUTCOMES[name]())
    html5lib.HTMLParser(strict=True).parse(text)
    page = Elements(text)
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in page.values("href")} - {"data:,"} <= set(ids)
    assert page.all("script") == []


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("proofs")
    found = {name: folder / f"{name}.html" for name in ("refuted", "open")}
    for name, path in found.items():
        path.write_text(proof_page(OUTCOMES[name]()), encoding="utf-8")
    return found


@pytest.mark.parametrize(
    ("name", "viewport", "scheme"),
    [("refuted", PHONE, "dark"), ("open", DESKTOP, "light"), ("open", PHONE, "light")],
)
def test_a_page_fits_is_legible_and_stands_by_itself(
    opened: Windows, pages: dict[str, Path], name: str, viewport: dict[str, int], scheme: str
) -> None:
    shown = opened(pages[name], viewport=viewport, color_scheme=scheme)
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert shown.evaluate(CONTRASTS) == []
    assert shown.evaluate(FAULTS) == []
    assert run_axe(shown) == []


def test_paper_has_the_same_report() -> None:
    for name in ("refuted", "open"):
        assert proof_pdf(OUTCOMES[name]()).startswith(b"%PDF")


def test_a_notebook_has_the_answer_and_the_picture() -> None:
    cell = notebook_cell(proven_clock())
    assert "It holds for all 49 texts." in cell
    assert cell.count('class="by-letters') == 7 + 1  # squares, and what their colour means


def test_numbers_have_the_decimal_sign_of_the_language() -> None:
    with speaking("es"):
        assert "≥ 0,3333" in proof_page(proven_clock())
        assert any("≥ 0.3333" in line for line in lines(proven_clock(), 80, Ink()))


def test_a_report_can_be_drawn_twice_from_the_same_parts() -> None:
    shown = report(proven_clock())
    first, second = (list(Terminal(80).lines(shown)) for _time in range(2))
    assert first == second
