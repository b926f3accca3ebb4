"""The report: one page that needs nothing else, says everything, and can be read by everybody."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import marking_samples as samples
from byhand.checking.claims import Unmatched
from byhand.checking.verdicts import Marked, Marking, Verdict, Worst
from byhand.document import palette
from byhand.document.compose.evidence import MOST_PANELS, share_map, worst_entries
from byhand.document.compose.marking import MOST_MAPPED, report
from byhand.document.media.html import heat
from byhand.document.media.html.report import MOST_OPEN
from byhand.document.media.html.report import page as page_of
from byhand.document.parts.verdicts import ShareAxis, ShareMap
from byhand.language import speak
from marking_samples import marked, marking_of

VOID = {"br", "link", "meta", "input"}
MARKINGS: dict[str, Callable[[], Marking]] = {
    "everything follows": samples.good,
    "one of each verdict": samples.faulty,
    "a worksheet": samples.by_hand,
    "a large dump": samples.large,
    "two texts": samples.batch,
}


@pytest.fixture(autouse=True)
def english_afterwards() -> Iterator[None]:
    yield
    speak("en")


def page(marking: Marking) -> str:
    return page_of(report(marking, evidence=True))


def mapped(line: Marked) -> ShareMap:
    found = share_map(line)
    assert found is not None
    return found


def entries(line: Marked) -> tuple[tuple[str, ...], ...]:
    found = worst_entries(line)
    assert found is not None
    return found.rows


class Page(HTMLParser):
    """A page's text, its ids, links and attributes; every tag that opens is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [found["href"] or ""] if tag == "a" and "href" in found else []
        self.loaded += [str(found[key]) for key in ("src", "srcset", "action") if key in found]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text += data


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("name", MARKINGS)
def test_a_report_is_whole_and_its_links_lead_somewhere(name: str, language: str) -> None:
    speak(language)
    found = Page(page(MARKINGS[name]()))
    assert len(set(found.ids)) == len(found.ids)
    assert found.links
    assert [link for link in found.links if link.removeprefix("#") not in found.ids] == []


@pytest.mark.parametrize("name", MARKINGS)
def test_a_report_loads_nothing(name: str) -> None:
    html = page(MARKINGS[name]())
    assert Page(html).loaded == []
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org/2000/svg)|import\(", html)


def test_the_result_stands_on_top_and_every_line_in_the_strip_and_in_the_table() -> None:
    marking = samples.large()
    found = Page(page(marking))
    assert "First error: block.3.mlp.act — not rounding (103× the bound)" in found.text
    lines = list(marking)
    cells = [a for tag, a in found.tags if tag == "a" and "--share" in (a.get("style") or "")]
    assert [str(cell["aria-label"]).split(":")[0] for cell in cells] == [
        line.address for line in lines
    ]
    assert [id for id in found.ids if id.startswith("line-0-")] == [
        f"line-0-{number}" for number in range(len(lines))
    ]


def test_a_verdict_can_be_read_without_colour() -> None:
    text = Page(page(samples.faulty())).text
    for sign in "✓→~✗?!":
        assert sign in text


def test_a_failing_line_has_its_suspects_its_numbers_and_a_map() -> None:
    found = Page(page(samples.faulty()))
    for piece in (
        "It follows if GELU is erf; the model says tanh",
        "Use the tanh form: gelu(x, approximate='tanh')",
        "Then 2% of the allowed error is used",
        "0.84113000± 3e-7",
        "Judged from block.3.mlp.hidden, as claimed.",
        "dump.npz, called transformer.h.3.mlp.act there",
        "Within the worst case, but 38 times what rounding usually does.",
        "transformer.h.9.mlp.cat (dump.npz): no step has this name.",
    ):
        assert piece in found.text
    maps = [a for tag, a in found.tags if tag == "svg"]
    assert len(maps) == 1 + 2  # the line that is wrong, and two heads of the one that is unusual
    assert all(a["role"] == "img" and a["aria-label"] for a in maps)


def test_what_the_claims_say_is_escaped() -> None:
    evil = "<script>alert(1)</script>"
    line = marked("logits", Verdict.ERROR, 3.0, name=evil, source=evil)
    marking = marking_of(
        replace(line, suspects=(replace(samples.GELU, sentence=evil, change=evil),)),
        marked("probs", Verdict.UNJUDGED, reason=evil),
        text=evil,
        label=evil,
        unmatched=(Unmatched(evil, evil, evil, evil),),
    )
    html = page(replace(marking, model=evil))
    assert evil not in html
    assert html.count("<script>") == 1


def test_only_so_many_lines_have_maps_and_only_the_first_are_open() -> None:
    wrong = [marked(f"stream.{i}", Verdict.ERROR, 3.0) for i in range(30)]
    html = page(marking_of(*wrong))
    assert html.count("<figure") == MOST_MAPPED
    assert html.count("<details") == 30
    assert len(re.findall(r"<details[^>]* open>", html)) == MOST_OPEN


def test_the_page_says_its_language() -> None:
    assert '<html lang="en">' in page(samples.good())
    speak("es")
    assert '<html lang="es">' in page(samples.good())


def test_a_report_of_a_large_dump_stays_small() -> None:
    assert len(page(samples.large(wrong=0)).encode()) < 1_000_000


# ------------------------------------------------------------------ contrast


PALETTES = {"light": palette.LIGHT, "dark": palette.DARK, "print": palette.PRINTED}


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(2 * d for d in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_text_has_the_contrast_of_level_aa(scheme: str) -> None:
    colours = PALETTES[scheme]
    for ink in ("ink", "quiet"):
        for ground in ("paper", "card"):
            assert contrast(colours[ink], colours[ground]) >= 4.5
    for verdict in ("right", "carried", "warn", "error", "unjudged"):
        tone, tint = colours[verdict], colours[f"{verdict}-tint"]
        assert contrast(tone, tint) >= 4.5
        assert contrast(tone, colours["card"]) >= 4.5
        assert contrast(colours["ink"], tint) >= 4.5
        assert contrast(colours["quiet"], tint) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_the_colours_of_a_map_go_one_way_in_brightness(scheme: str) -> None:
    levels = [luminance(PALETTES[scheme][f"h{level}"]) for level in range(7)]
    assert levels in (sorted(levels), sorted(levels, reverse=True))


# ------------------------------------------------------------------ heat maps


def test_a_small_map_has_a_cell_an_entry() -> None:
    (panel,) = mapped(marked("block.0.mlp.act", Verdict.ERROR, 5.0, shape=(4, 8))).panels
    assert panel.cells.shape == (4, 8)
    assert (panel.rows, panel.columns) == (ShareAxis("pos", 0, 4), ShareAxis("d_ff", 0, 8))
    assert panel.address == "block.0.mlp.act[{row},{column}]"


@pytest.mark.parametrize("at", [(0, 0), (7, 1033), (31, 3071)])
def test_a_large_map_keeps_the_largest_share_of_its_cells(at: tuple[int, int]) -> None:
    line = marked("block.0.mlp.act", Verdict.ERROR, 412.0, shape=(32, 3072), at=at)
    found = mapped(line)
    (panel,) = found.panels
    assert panel.cells.shape == (32, 96)
    assert panel.cells.max() == panel.largest == 412
    place = np.unravel_index(panel.cells.argmax(), panel.cells.shape)
    assert place == (at[0], at[1] // 32)
    assert "A cell holds up to 32 entries (1 × 32)" in found.caption


def test_heads_are_maps_of_their_own_and_the_worst_of_many_are_kept() -> None:
    line = marked("block.0.attn.scores", Verdict.ERROR, 9.0, shape=(20, 6, 6), at=(17, 5, 0))
    whole = mapped(line)
    found = whole.panels
    assert len(found) == MOST_PANELS
    assert "8 further maps are left out: these are the worst." in whole.caption
    assert found[-3].title == "head 17"
    assert found[-3].address == "block.0.attn.scores[17,{row},{column}]"
    assert [panel.title for panel in found] == [f"head {i}" for i in range(8, 20)]


def test_a_part_of_a_step_has_its_own_places() -> None:
    row = marked("block.0.attn.scores", Verdict.ERROR, 9.0, index=(1, 2), shape=(4,))
    (panel,) = mapped(row).panels
    assert (panel.rows, panel.columns.name) == (None, "key")
    assert panel.address == "block.0.attn.scores[1,2,{column}]"
    column = marked("logits", Verdict.ERROR, 9.0, index=(slice(1, 4), 7), shape=(3,))
    (panel,) = mapped(column).panels
    assert panel.columns == ShareAxis("pos", 1, 3)
    assert panel.address == "logits[{column},7]"


def test_a_part_of_a_step_has_its_places_in_the_whole() -> None:
    line = marked("logits", Verdict.ERROR, 9.0, index=(slice(6, 8), slice(3, 6)), shape=(2, 3))
    (panel,) = mapped(line).panels
    assert (panel.rows, panel.columns) == (ShareAxis("pos", 6, 2), ShareAxis("vocab", 3, 3))
    assert [entry[0] for entry in entries(line)][:2] == ["[7,5]", "[6,5]"]


def test_blanks_are_left_out_and_a_single_number_has_no_map() -> None:
    line = marked("logits", Verdict.ERROR, 9.0, shape=(2, 2))
    blanks = np.array([[True, False], [False, True]])
    (panel,) = mapped(replace(line, claim=replace(line.claim, claimed=blanks))).panels
    assert np.isnan(panel.cells).tolist() == (~blanks).tolist()
    assert share_map(marked("loss", Verdict.ERROR, 9.0, shape=(1,))) is None
    assert share_map(marked("count.total", Verdict.ERROR, 9.0, shape=())) is None
    nothing = replace(line, claim=replace(line.claim, claimed=np.zeros((2, 2), bool)))
    assert share_map(nothing) is None


def test_levels_change_at_the_bound() -> None:
    assert heat.level_of(1.0) == heat.WITHIN - 1
    assert heat.level_of(1.0001) == heat.WITHIN
    assert heat.level_of(float("inf")) == len(heat.EDGES)


def test_cells_of_a_level_are_one_path_of_runs() -> None:
    line = marked("logits", Verdict.ERROR, 2.0, shape=(2, 4))
    shares = np.array([[0, 0, 2, 2], [np.inf, 0, 0, 0]], np.float32)
    drawn = heat.figure(mapped(replace(line, shares=shares)))
    assert '<path class="h0" d="M0 0h2v1h-2zM1 1h3v1h-3z"/>' in drawn
    assert '<path class="h4" d="M2 0h2v1h-2z"/>' in drawn
    assert '<path class="h6" d="M0 1h1v1h-1z"/>' in drawn
    assert '<rect class="ring" x="0" y="1"' in drawn


def test_the_shares_that_a_map_carries_read_back() -> None:
    line = marked("logits", Verdict.ERROR, 412.0, shape=(3, 5))
    assert line.shares is not None
    drawn = heat.figure(mapped(line))
    carried = re.search(r'data-shares="([^"]*)"', drawn)
    assert carried is not None
    steps = np.frombuffer(b64decode(carried[1]), "<u2").reshape(3, 5)
    read = heat.LEAST * 10.0 ** ((steps.astype(float) - 1) / heat.STEPS)
    assert read == pytest.approx(line.shares, rel=1e-3)


# ------------------------------------------------------------------ the worst entries


def test_the_worst_entries_come_first_and_those_within_the_bound_are_left_out() -> None:
    line = marked("logits", Verdict.ERROR, 4.0, shape=(2, 3), index=(slice(1, 3),), at=(1, 2))
    found = entries(line)
    assert [entry[0] for entry in found] == ["[2,2]", "[1,2]", "[2,1]"]
    assert (found[0][1], *found[0][3:]) == ("4×", "0.84113000", "± 3e-7")
    assert found[1][3] == ""
    second = Worst((1, 2), 0.5, 0.25, 0.125, 0.25)
    assert entries(replace(line, among=(second,)))[1][3] == "0.25"
    unusual = marked("logits", share=0.5, unusual=True, times=40.0, shape=(9, 9))
    assert len(entries(unusual)) == 8


def test_a_line_of_one_number_is_called_by_its_address() -> None:
    line = samples.faulty().texts[0].lines[0]
    assert [entry[0] for entry in entries(line)] == ["count.total"]


def test_a_page_with_a_line_that_cannot_be_judged_is_not_green() -> None:
    unjudged = marked("logits", Verdict.UNJUDGED, reason="weight.head is unknown")
    right, blank = marked("embed.token"), replace(unjudged, blank=True)

    def tone(*lines: Marked) -> str:
        return re.findall(r'class="banner (\w+)"', page(marking_of(*lines)))[0]

    assert tone(right) == tone(right, blank) == "right"
    assert tone(right, unjudged) == "unjudged"
