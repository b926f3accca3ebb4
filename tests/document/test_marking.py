"""A marking on the terminal: the line on top, the table, what is folded, and how lines are said."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

import marking_samples as samples
from byhand.checking.claims import Unmatched
from byhand.checking.verdicts import Evidence, Marked, Marking, Verdict, Worst
from byhand.document.compose.marked import SIGNS, claimed_text, worst_texts
from byhand.document.compose.marking import (
    folded,
    precision_text,
    report,
    run_text,
    summary,
    unmatched_lines,
)
from byhand.document.media.terminal.ink import Ink, width_of
from byhand.document.media.terminal.parts import Terminal
from byhand.document.parts.verdicts import VerdictLine
from byhand.document.sizes import number_text, share_text, size_text, times_text
from byhand.errors import AddressError
from byhand.language import speak
from marking_samples import marked, marking_of, text_of

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


def shown(marking: Marking, width: int = 80, **rest: Any) -> list[str]:
    return list(Terminal(width).lines([report(marking, **rest)]))


@pytest.mark.parametrize("name", MARKINGS)
def test_a_marking_looks_as_it_did(name: str, snapshot: SnapshotAssertion) -> None:
    assert "\n".join(shown(MARKINGS[name]())) == snapshot


@pytest.mark.parametrize("width", [40, 50, 64, 80, 110])
@pytest.mark.parametrize("name", MARKINGS)
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    for language in ("en", "es"):
        speak(language)
        for line in shown(MARKINGS[name](), width):
            longest_word = max(map(width_of, line.split()), default=0)
            assert width_of(line) <= max(width, longest_word + 8), line


def test_on_a_narrow_page_a_line_of_working_takes_two() -> None:
    text = shown(samples.good(), 40)
    place = text.index("  ✓  block.0.attn.scores")
    assert text[place + 1].split() == ["1.3%", "0.8", "[1,3,3]"]
    assert "  ✓  block.0.attn.scores        1.3%      0.8  [1,3,3]" in shown(samples.good(), 60)


def test_colour_only_repeats_what_a_sign_says() -> None:
    plain = shown(samples.faulty())
    coloured = list(Terminal(80, Ink(colour=True)).lines([report(samples.faulty())]))
    assert any("\x1b[1;31m✗" in line for line in coloured)
    assert [re.sub(r"\x1b\[[\d;]*m", "", line) for line in coloured] == plain


def test_every_verdict_has_a_sign_of_its_own() -> None:
    assert len(set(SIGNS.values())) == len(Verdict)


# ------------------------------------------------------------------ the line on top


SUMMARIES = {
    "first error: block.3.mlp.act — not rounding (412× the bound); it follows if GELU is erf; "
    "the model says tanh": samples.faulty(),
    "first error: text 2 of 2, block.3.mlp.act — not rounding (412× the bound); it follows if "
    "GELU is erf; the model says tanh": samples.batch(),
    "all 3 lines follow (float32; at most 2.8% of the allowed error used)": samples.good(),
    "the line follows (float32; 2% of the allowed error used)": marking_of(marked("logits")),
    "first error: logits — not rounding": marking_of(marked("logits", Verdict.ERROR, float("inf"))),
    "logits is right, but does not follow from the lines above": marking_of(
        marked("logits", Verdict.UNSUPPORTED, 7.0)
    ),
    "nothing can be judged: 2 lines": marking_of(
        marked("logits", Verdict.UNJUDGED), marked("probs", Verdict.UNJUDGED)
    ),
    "there is nothing to judge": marking_of(),
    "all 2 lines that can be judged follow (float32; at most 2% of the allowed error used), 1 "
    "cannot be judged": marking_of(
        marked("logits"), marked("probs"), marked("loss", Verdict.UNJUDGED)
    ),
    "all 2 lines follow (float32; at most 90% of the allowed error used), but probs is 38 times "
    "what rounding usually does": marking_of(
        marked("logits"), marked("probs", share=0.9, unusual=True, times=38.2)
    ),
}


@pytest.mark.parametrize("line", SUMMARIES)
def test_the_result_in_one_line(line: str) -> None:
    assert summary(SUMMARIES[line]) == line


def test_an_error_comes_before_a_right_value_out_of_nowhere() -> None:
    marking = marking_of(
        marked("embed.token", Verdict.UNSUPPORTED, 3.0), marked("logits", Verdict.ERROR, 2.5)
    )
    assert summary(marking) == "first error: logits — not rounding (2.5× the bound)"


def test_a_sheet_is_called_by_its_label() -> None:
    bad = text_of(marked("logits", Verdict.ERROR, 9.0), label="Ben")
    assert "first error: Ben, logits" in summary(Marking("tiny", (text_of(label="Ana"), bad)))


# ------------------------------------------------------------------ folding


def test_a_short_table_is_shown_whole() -> None:
    assert {len(run) for run in folded(samples.faulty().texts[0].lines)} == {1}


def test_runs_of_a_long_table_are_folded_and_the_last_good_line_before_an_error_stays() -> None:
    every = samples.large().texts[0].lines
    found = list(folded(every))
    assert len(found[0]) > 1
    assert [line.address for line in found[1]] == ["block.3.mlp.hidden"]
    assert [line.verdict for line in found[2]] == [Verdict.ERROR]
    assert [line for run in found for line in run] == list(every)


def test_all_folds_nothing() -> None:
    every = samples.large()
    rows = report(every, every=True).sheets[0].table.rows
    assert [row.address for row in rows if isinstance(row, VerdictLine)] == [
        line.address for line in every
    ]
    assert sum(line.lstrip().startswith("✓") for line in shown(every, every=True)) >= 55


def test_what_does_not_follow_or_is_unusual_is_never_folded() -> None:
    lines_ = [marked(f"stream.{i}") for i in range(60)]
    lines_[30] = replace(lines_[30], unusual=True, times=40.0)
    alone = [run[0] for run in folded(lines_) if len(run) == 1]
    assert [line.address for line in alone] == ["stream.30"]
    wrong = [marked(f"stream.{i}", Verdict.ERROR, 3.0) for i in range(60)]
    assert list(folded(wrong)) == [[line] for line in wrong]


def test_a_run_says_how_much_of_the_bound_its_worst_line_uses() -> None:
    lines_ = tuple(marked(f"stream.{i}", share=i / 100) for i in range(1, 50))
    (run,) = folded(lines_)
    assert run_text(run) == (
        "49 lines follow, stream.1 to stream.49: at most 49% of the allowed error"
    )


def test_lines_that_cannot_be_judged_for_one_reason_are_one_run() -> None:
    lines_ = [marked(f"stream.{i}", Verdict.UNJUDGED, reason="W is unknown") for i in range(45)]
    lines_[10] = replace(lines_[10], reason="another")
    runs = [run_text(run) for run in folded(lines_) if len(run) > 1]
    assert runs == [
        "10 lines cannot be judged, stream.0 to stream.9: W is unknown",
        "34 lines cannot be judged, stream.11 to stream.44: W is unknown",
    ]


def test_a_reason_is_told_once_of_lines_that_share_it() -> None:
    marking = marking_of(
        *(marked(name, Verdict.UNJUDGED, reason="W is unknown") for name in ("logits", "probs"))
    )
    assert "\n".join(shown(marking)).count("W is unknown") == 1


# ------------------------------------------------------------------ only some lines


def test_only_some_lines_count_where_only_some_are_asked_for() -> None:
    marking = samples.faulty()
    assert not marking.follows
    kept = marking.only(["block.4", "logits"])
    assert [line.address for line in kept] == ["block.4.attn.scores", "logits"]
    assert kept.follows
    assert [line.address for line in marking.only(["block.*.mlp.act"])] == ["block.3.mlp.act"]


def test_a_pattern_that_no_claim_fits_is_an_error_with_the_nearest() -> None:
    with pytest.raises(AddressError, match=r"no claim is about 'block\.3\.mlp\.cat'") as error:
        samples.faulty().only(["block.3.mlp.cat"])
    assert "block.3.mlp.act" in (error.value.hint or "")


# ------------------------------------------------------------------ shares and numbers


def test_shares_are_rounded_up_and_what_is_beyond_never_looks_like_the_bound() -> None:
    shares = (0, 1e-9, 0.012, 0.0123, 0.5001, 0.996, 1, 1.0001, 1.5, 9.99, 412.2, 3.2e7, np.inf)
    assert [share_text(x) for x in shares] == [
        "0%", "<0.1%", "1.2%", "1.3%", "51%", "100%", "100%", "1.01×", "1.5×", "9.99×", "412×",
        "3.2e7×", "∞",
    ]  # fmt: skip
    assert share_text(float(np.float32(0.61))) == "61%"


@given(st.floats(min_value=0, allow_nan=False))
def test_a_share_has_a_times_sign_exactly_beyond_the_bound(share: float) -> None:
    text = share_text(share)
    assert text.endswith("×") == (1 < share < np.inf)
    if text.endswith("%") and not text.startswith("<"):
        assert 100 * share <= float(text[:-1]) * (1 + 1e-9) + 2e-4


def test_factors_have_two_or_three_digits() -> None:
    assert [times_text(x) for x in (0.83, 9.94, 38.4, 5312, 1e6, np.inf)] == [
        "0.8", "9.9", "38", "5,312", "1e6", "∞",
    ]  # fmt: skip


def worst_of(line: Marked) -> Worst:
    assert line.worst is not None
    return line.worst


def test_a_number_is_told_as_the_claimant_wrote_it() -> None:
    written = samples.by_hand().texts[0].lines[0]
    assert worst_texts(written, worst_of(written)) == ("0.30", "0.2973", "0.005")
    single = marked("logits", claimed=float(np.float32(0.1)), expected=0.1).claim
    assert claimed_text(single, (3, 7), single.values[3, 7]) == "0.1"
    half = marked("logits", claimed=float(np.float16(0.1)), format="float16").claim
    assert claimed_text(half, (0, 0), half.values[0, 0]) == "0.1"
    assert claimed_text(single, (0, 0), float("nan")) == "nan"


def test_each_entry_keeps_its_own_decimals() -> None:
    line = marked("logits", format=None, shape=(2, 2), index=(slice(1, 3), slice(0, 2)))
    slack = np.array([[0.5, 0.05], [0.005, 0.0]])
    claim = replace(line.claim, slack=slack)
    assert claimed_text(claim, (1, 1), 0.3) == "0.3"
    assert claimed_text(claim, (2, 0), 0.3) == "0.30"
    assert claimed_text(claim, (2, 1), 0.3) == "0.3"
    assert claimed_text(claim, (1, 0), 3.0) == "3"


def test_counts_and_ids_are_whole_numbers() -> None:
    count = samples.faulty().texts[0].lines[0]
    assert worst_texts(count, worst_of(count)) == ("57,000", "103,680", "0")
    next_ = marked("next", Verdict.ERROR, shape=(4,), claimed=4.0, expected=5.0, allowed=0.0)
    assert worst_texts(next_, worst_of(next_))[:2] == ("4", "5")


def test_the_expected_value_is_written_finely_enough_to_see_the_difference() -> None:
    line = marked("logits")
    close = Worst((0, 0), 0.5, 0.50000012, 1e-6, 1.2e-7)
    assert worst_texts(line, close) == ("0.5", "0.50000012", "1e-6")
    tiny = Worst((0, 0), 1.5e-9, 1.25e-9, 3e-10, 2.5e-10)
    assert worst_texts(line, tiny)[1] == "1.25e-9"
    endless = Worst((0, 0), float("nan"), 1.0, 0.0, float("nan"))
    assert worst_texts(line, endless) == ("nan", "1", "0")


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(1e-12, 1))
def test_a_number_is_written_to_its_unit(value: float, unit: float) -> None:
    assert abs(float(number_text(value, unit)) - value) <= unit


def test_bounds_have_two_digits() -> None:
    assert [size_text(x) for x in (0, 3e-7, 0.005, 0.0123, 12.3, 1234.0, 1e9, np.inf)] == [
        "0", "3e-7", "0.005", "0.012", "12", "1,234", "1e9", "∞",
    ]  # fmt: skip


# ------------------------------------------------------------------ names and precisions


def test_names_that_stand_for_nothing_are_told_with_what_is_nearest() -> None:
    assert list(unmatched_lines(samples.faulty())) == [
        "one name of the claims was left aside:",
        "  transformer.h.9.mlp.cat (dump.npz): no step has this name",
        "    hint: did you mean transformer.h.9.mlp.act?",
    ]
    many = tuple(Unmatched(f"x{i}", "dump.npz", "no step has this name") for i in range(13))
    told = list(unmatched_lines(marking_of(unmatched=many)))
    assert told[0] == "13 names of the claims were left aside:"
    assert told[-1] == "  and 3 more"
    assert list(unmatched_lines(samples.good())) == []


def test_precisions_are_told_in_words() -> None:
    names = ("float32", "transformers:bfloat16", "decimals:2", "exact", "as written")
    assert [precision_text(name) for name in names] == [
        "float32",
        "bfloat16, as transformers does it",
        "every line rounded to 2 decimals",
        "no rounding but that of the printed decimals",
        "the decimals as they are written",
    ]


def test_what_a_worksheet_is_worth_stands_on_top() -> None:
    text = replace(samples.by_hand().texts[0], marks={"loss": Fraction(3)})
    assert "  marks      4 of 5" in shown(Marking("journey", (text,)))


def test_a_name_cannot_write_on_the_terminal() -> None:
    evil = "x\n\x1b[31m"
    lost = Unmatched(evil, f"some/dump.npz: {evil!a}", "nothing here has this name")
    told = list(unmatched_lines(marking_of(unmatched=(lost,))))
    assert told[1] == r"  'x\n\x1b[31m' (dump.npz: 'x\n\x1b[31m'): nothing here has this name"


def test_lines_that_are_left_blank_are_told_apart_from_those_that_cannot_be_judged() -> None:
    blank = marked("loss", Verdict.UNJUDGED, reason="left blank", blank=True)
    unknown = marked("probs", Verdict.UNJUDGED, reason="weight.head is unknown")
    assert summary(marking_of(blank)) == "the sheet is empty: its one line is left blank"
    assert summary(marking_of(marked("logits"), blank, blank)).endswith("; 2 lines are left blank")
    told = summary(marking_of(marked("logits"), unknown, blank))
    assert "1 cannot be judged; 1 line is left blank" in told


def test_a_cause_says_how_sure_it_is_and_in_which_blocks_it_recurs() -> None:
    evidence = Evidence(entries=96, lines=3, without=1, fitted=1, alike=1)
    cause = replace(samples.GELU, evidence=evidence)
    address = "block.{}.mlp.act"
    first = marked(
        address.format(0), Verdict.ERROR, 40, suspects=(cause, samples.SCALE), blocks=(0, 1, 2)
    )
    later = [marked(address.format(n), Verdict.ERROR, 40, like=first.address) for n in (1, 2)]
    other = marked(address.format(3))
    some, every = marking_of(first, *later, other), marking_of(first, *later)
    assert summary(some).endswith("fits as well; it explains 3 lines; the same step of another "
                                  "block follows without it; one number is read off the claim, "
                                  "and 96 entries bear it out; in blocks 0, 1 and 2")  # fmt: skip
    assert summary(every).endswith("; in every block")
    lines = "\n".join(shown(some))
    assert "one other explanation fits as well" in lines


def test_without_a_cause_what_differs_is_described_and_the_next_step_asked_for() -> None:
    line = marked(
        "logits", Verdict.ERROR, 40, described=("only head 2 (of 4) differs",),
        ask="block.1.attn.weights",
    )  # fmt: skip
    marking = marking_of(line)
    assert summary(marking).endswith("; no cause is sure, but only head 2 (of 4) differs")
    lines = [each.strip() for each in shown(marking)]
    assert "≠ only head 2 (of 4) differs" in lines
    assert "+ dump block.1.attn.weights as well and run again: that would help most" in lines
