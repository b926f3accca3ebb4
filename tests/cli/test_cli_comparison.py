"""--float FORMAT --digits N: what floats made of it, beside the true values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

import byhand as package
from byhand.comparing import StepComparison, compare, ulps_between
from byhand.document.compose.comparison import is_open, steps_grid
from byhand.document.media.terminal.ink import Ink, width_of
from byhand.document.media.terminal.tables import grid_lines
from byhand.document.sizes import as_text, at_least, right_digits, ulps
from byhand.numbers.enclosed.enclosure import EVERYTHING, Enclosure
from byhand.numbers.floats.formats import FORMATS

Call = Callable[..., Any]

# Formats of 16 bits, and texts whose roundings come out the same in whatever order a machine sums.
PAGES = {
    "tiny in bfloat16": ["tiny", "--float", "bfloat16"],
    "journey in bfloat16": ["journey", "--float", "bfloat16"],
    "journey in Spanish": ["journey", "--float", "bfloat16", "--lang", "es"],
    "abc in float16": ["abc", "CAB", "--target", "C", "--float", "float16"],
    "minigpt in bfloat16": ["minigpt", "--float", "bfloat16"],
    "every number of some steps": [
        "journey", "--float", "float16", "--only", "block.0.attn.scores", "--only", "logits",
        "--only", "next", "--only", "loss",
    ],
    "a mean, a number a position": [
        "journey", "--float", "float16", "--only", "block.0.attn.norm.mean",
    ],
    "how numbers come about": [
        "journey", "--float", "bfloat16", "--at", "block.0.attn.weights[0,1,:]",
        "--at", "next[2]", "--at", "weight.head[0,0]",
    ],
    "as TransformerLens calls it": [
        "journey", "--float", "bfloat16", "--names", "tl", "--only", "block.0.attn.scores",
    ],
}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_a_comparison_is_as_it_was_and_fits_80_columns(
    byhand: Call, snapshot: SnapshotAssertion, page: str
) -> None:
    shown = byhand("trace", *PAGES[page], "--digits", "12")
    assert (shown.status, shown.err) == (0, "")
    assert re.sub(r"\d+ bits", "… bits", shown.out) == snapshot  # how many is found on the way
    assert [line for line in shown.out.splitlines() if width_of(line) > 80] == []


def test_the_head_says_where_not_all_is_proven(byhand: Call, tmp_path: Path) -> None:
    path = tmp_path / "printed.yaml"
    path.write_text(PRINTED)
    shown = byhand("trace", str(path), "--float", "float32", "--digits", "12")
    assert shown.status == 1
    assert "12 digits, not all proven; worked" in shown.out
    assert "not proven to 12 digits" in shown.err


PRINTED = """\
name: printed
vocabulary: [a, b]
text: a
model: {d_model: 1, context: 1, layers: 0, position: none, final_norm: none, head: {tied: false}}
weights:
  embed.token: {printed: 2, values: [[1.25], [1.50]]}
  head: [[1, 2]]
"""


def test_a_token_that_floats_get_wrong_is_told_with_the_true_one(byhand: Call) -> None:
    out = byhand("trace", "minigpt", "--float", "bfloat16", "--digits", "6").out
    assert "  next     7 of 8 tokens are the true ones\n" in out
    told = " ".join(out[out.index("after position") :].split())
    assert told == (
        "after position 2 (she): bfloat16 says visit, the true next token is insist, ahead by "
        "≈ 0.0166875, proven"
    )


def test_the_data_has_the_worst_number_of_each_step_and_both_tokens(byhand: Call) -> None:
    shown = byhand("trace", "minigpt", "--float", "bfloat16", "--digits", "6", "--json")
    document = json.loads(shown.out)
    assert (document["numbers"], document["digits"]) == ("bfloat16", 6)
    steps = {step["address"]: step for step in document["steps"]}
    logits = steps["logits"]
    assert logits["entries"] == 8 * 64
    true, float_value = Fraction(logits["true"]["value"]["mid"]), Fraction(logits["float"])
    unit = Fraction(2) ** (int(np.floor(np.log2(abs(float(true))))) - 7)
    assert float(abs(true - float_value) / unit) == pytest.approx(logits["ulps"], rel=1e-3)
    wrong = [found for found in document["next"] if not found["same"]]
    assert [(w["position"], w["token"], w["float_token"]) for w in wrong] == [
        (2, "insist", "visit")
    ]


def test_the_error_of_one_number_is_that_of_the_comparison() -> None:
    floats = package.trace("minigpt", float="float32")
    proven = package.trace("minigpt", digits=12)
    for step in compare(floats, proven).steps:
        true, found = proven.steps[step.address].at(step.at), floats.steps[step.address].at(step.at)
        least, most = ulps_between(true, found, FORMATS["float32"])
        assert least == pytest.approx(step.ulps, rel=1e-6)
        assert most == pytest.approx(step.ulps, rel=1e-6)


@pytest.mark.parametrize("other", [["--out", "x"], ["--stop-at-boundary"]])
def test_a_comparison_is_not_saved_and_has_no_boundary(byhand: Call, other: list[str]) -> None:
    shown = byhand("trace", "tiny", "--float", "float32", "--digits", "3", *other)
    assert shown.status == 2
    assert f"{other[0]} and --float --digits exclude each other\n" in shown.err


def test_what_is_not_proven_is_told_of_a_comparison_too(byhand: Call) -> None:
    shown = byhand("trace", "abc-walkthrough", "--float", "float32", "--digits", "8")
    assert shown.status == 1
    assert shown.err.startswith("not proven to 8 digits, with ")


# ------------------------------------------------------------------ numbers as text


def test_errors_are_rounded_up_and_right_digits_down() -> None:
    assert [ulps(x) for x in (0, 1e-9, 0.5, 0.501, 9.999, 10.2, 4198.7, 2.34e7, np.inf)] == [
        "0", "<0.01", "0.50", "0.51", "10.00", "11", "4,199", "2.4e7", "∞",
    ]  # fmt: skip
    assert [right_digits(x) for x in (0.0, 6.99, np.inf)] == ["0.0", "6.9", "all"]


def test_what_is_proven_of_an_error_is_rounded_down() -> None:
    assert [at_least(x) for x in (1e-9, 0.0199, 0.379, 12.9, 2.39e7)] == [
        "> 0", "≥ 0.01", "≥ 0.37", "≥ 12", "≥ 2.3e7",
    ]  # fmt: skip


def test_an_error_that_may_be_larger_is_never_told_as_the_largest(
    byhand: Call, tmp_path: Path
) -> None:
    """8 digits are fewer than float64 has: 0.02 of the 0.23 ulps of the loss are proven."""
    model = tmp_path / "shares.yaml"
    model.write_text(
        "vocabulary: [a, b, c, d]\ntext: a\ntarget: b\n"
        "model: {d_model: 1, layers: 0, head: {tied: false}}\n"
        "weights: {embed.token: ones, head: [[-45, 4, 3, -3]]}\n",
        encoding="utf-8",
    )

    def told(digits: int) -> str:
        shown = byhand("trace", str(model), "--float", "float64", "--digits", str(digits)).out
        (line,) = [line for line in shown.splitlines() if line.startswith("    loss")]
        return line.removeprefix("    loss").partition("[")[0].strip()

    assert (told(8), told(30)) == ("≥ 0.02", "0.23")


def test_a_float_that_is_written_with_an_exponent_keeps_it() -> None:
    assert as_text(np.float32(1e18)) == "1e18"


def table_of(*errors: float, width: int = 80) -> list[str]:
    """The table of steps with these errors: a head, a stage, a row a step."""
    address = "block.0.attn.norm.normalized"
    steps = [StepComparison(address, 8, error, (1, 3), 6.8, 7.4, 0, error) for error in errors]
    return list(grid_lines(steps_grid(steps, {address: address}, is_open), width, Ink()))


def test_a_bar_grows_by_a_column_when_the_error_doubles() -> None:
    def bars(*errors: float) -> list[str]:
        return [line.partition("7.4")[2].strip() for line in table_of(*errors)[2:]]

    assert bars(0, 1, 3, 7, np.inf) == ["", "█", "██", "███", "█" * 10]
    assert bars(3, 2.0**20 - 1) == ["█", "█" * 10]


def test_bars_take_the_room_that_is_left_and_a_narrow_page_has_two_lines_a_step() -> None:
    for width in range(44, 81):
        shown = table_of(1000.0, width=width)
        assert max(map(width_of, shown)) <= width
        assert len(shown) == (3 if width >= 61 else 5)
    assert table_of(1.5, width=40) == [
        "  step",
        "      ulps  at     digits  usual",
        "  Block 0 · attention",
        "    block.0.attn.norm.normalized",
        "      1.50  [1,3]     6.8    7.4",
    ]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_is_written_so_that_it_reads_back(number: float) -> None:
    assert np.float32(as_text(np.float32(number))) == np.float32(number)


@given(st.floats(width=32, min_value=2.0**-100, max_value=2.0**100))
def test_a_number_rounded_once_is_at_most_half_an_ulp_away(number: float) -> None:
    below, above = np.float32(number), np.nextafter(np.float32(number), np.float32(np.inf))
    between = (Fraction(float(below)) + Fraction(float(above))) / 2
    true = Enclosure(between, Fraction(0))
    for found in (below, above):
        assert ulps_between(true, found, FORMATS["float32"]) == (0.5, 0.5)


def test_what_is_no_number_is_infinitely_wrong() -> None:
    true = Enclosure(Fraction(1), Fraction(0))
    for found in (np.float32("inf"), np.float32("nan")):
        assert ulps_between(true, found, FORMATS["float32"]) == (np.inf, np.inf)
    assert ulps_between(EVERYTHING, np.float32(1), FORMATS["float32"]) == (0.0, np.inf)


fractions = st.fractions(-4, 4, max_denominator=1000)
powers = st.integers(-1200, 40).map(lambda e: Fraction(2) ** e)


@given(fractions, powers, st.fractions(0, 2, max_denominator=9), fractions, powers, fractions)
def test_the_error_lies_between_its_bounds_for_every_number_of_a_set(
    mid: Fraction, scale: Fraction, rad: Fraction, far: Fraction, off: Fraction, share: Fraction
) -> None:
    true = Enclosure(mid * scale, rad * scale)
    found = float(mid * scale + far * off)
    least, most = ulps_between(true, found, FORMATS["float64"])
    x = true.mid + Fraction(true.rad) * share / 4  # one of them
    exponent = -1022
    while x and abs(x) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    error = abs(x - Fraction(found)) / Fraction(2) ** (exponent - 52)
    assert Fraction(least) * (1 - Fraction(1, 2**50)) <= error + Fraction(1, 10**300)
    assert most == np.inf or error <= Fraction(most) * (1 + Fraction(1, 2**50))
    assert (most == 0) == (true.exact and true.mid == found)


SMALL = """
name: small
vocabulary: [a, b, c, d]
text: a b
model: {d_model: 2, context: 4, layers: 0, attention: none, mlp: none, head: {tied: false}}
weights:
  embed.token: [[1, 0], [0, 1], [1, 1], [1, 2]]
  head: [[0, -1600, 3, -1000000000000000000], [0, 1/3, -800, -740]]
"""


def test_a_share_below_every_float_is_no_error_of_a_float_that_is_zero(
    byhand: Call, tmp_path: Path
) -> None:
    model = tmp_path / "small.yaml"
    model.write_text(SMALL)
    call = ("trace", str(model), "--float", "float64", "--digits", "12")
    found = byhand(*call)
    assert (found.status, found.err) == (0, "")
    assert "probs        1.32  [0,2]     0.0   15.8" in found.out
    assert "truly 0" not in found.out
    (steps,) = [
        step for step in json.loads(byhand(*call, "--json").out)["steps"]
        if step["address"] == "probs"
    ]  # fmt: skip
    assert steps["missed_zeros"] == []
    told = byhand(*call, "--at", "probs[0]").out
    assert "6.38034687676e-697\n  float64: 0, <0.01 ulps away" in told
    assert "1.05897672924e-434294481903251829\n  float64: 0, <0.01 ulps away" in told
    assert "exactly" not in told


def test_what_is_not_known_narrowly_enough_is_no_error_and_not_right(
    byhand: Call, tmp_path: Path
) -> None:
    model = tmp_path / "printed.yaml"
    model.write_text(
        SMALL.split("weights:")[0]
        + "weights:\n  embed.token: [[1, 0], [0, 1], [1, 1], [1, 2]]\n"
        + "  head: {printed: 1, values: [[0.0, 1.0, 2.0, 3.0], [0.5, 1.5, 2.5, 4.0]]}\n"
    )
    call = ("trace", str(model), "--float", "float32", "--digits", "6")
    found = byhand(*call)
    assert "logits          ?           ?      ?" in found.out
    assert "? says that nothing is" in " ".join(found.out.split())
    told = byhand(*call, "--at", "logits[0,1]").out
    assert "at most 8.4e5 ulps away" in told
    assert "exactly" not in told
