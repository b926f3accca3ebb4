"""Which way a vector points, and what a weight is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import byhand
from byhand.address import read_address
from byhand.checking.claims import DIRECTION, VALUE, Claim
from byhand.checking.directions import mark_directions
from byhand.checking.verdicts import Marked, Verdict
from byhand.checking.weights import mark_weights
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.allowed import Range
from byhand.numbers.base import Unknown
from byhand.weights import Tensor, Weights
from byhand.worked import Missing


@pytest.fixture(scope="module")
def walkthrough() -> Model:
    return open_model("abc-walkthrough")


def written(name: str, *words: str, kind: str = VALUE) -> Claim:
    """A claim of a vector as it is written: ~ is one unit of the last place, else half a unit."""
    address = read_address(name)
    values, slack = [], []
    for word in words:
        digits = word.removeprefix("~")
        unit = 10.0 ** -len(digits.partition(".")[2])
        values.append(float(digits))
        slack.append(unit if word.startswith("~") else unit / 2)
    shape = () if len(words) == 1 else (len(words),)
    return Claim(
        address.name,
        address.index,
        np.array(values).reshape(shape),
        name,
        "sheet.yaml:1",
        np.array(slack).reshape(shape),
        kind=kind,
    )


def direction(mid: Sequence[float], rad: Sequence[float] | float, *words: str) -> Marked:
    """The verdict on where a vector points of which this range is known."""
    known = Range(np.array(mid), np.broadcast_to(rad, np.shape(mid)))
    (line,) = mark_directions([written("stream.1", *words, kind=DIRECTION)], ANY, lambda _at: known)
    return line


ANY = open_model("tiny")


# ------------------------------------------------------------------ directions


def test_a_positive_multiple_points_the_same_way_and_a_negative_one_does_not() -> None:
    assert direction([3.0, -6.0], 0, "0.50", "-1.00").verdict is Verdict.RIGHT
    assert direction([-3.0, 6.0], 0, "0.50", "-1.00").verdict is Verdict.ERROR


def test_a_written_1_is_the_unit_itself_and_the_other_entry_is_judged_by_its_places() -> None:
    head = [-0.5150, 1.2707]  # -1 : 2.4674
    assert direction(head, 0, "-1", "2.5").verdict is Verdict.RIGHT
    assert direction(head, 0, "-1", "2.47").verdict is Verdict.RIGHT
    assert direction(head, 0, "-1", "2.48").verdict is Verdict.ERROR
    assert direction(head, 0, "-1", "~2.48").verdict is Verdict.ERROR
    assert direction(head, 0, "-1", "~2.46").verdict is Verdict.RIGHT


def test_a_1_with_decimals_is_rounded_like_any_other_entry() -> None:
    assert direction([0.996, 2.004], 0, "1.00", "2.00").verdict is Verdict.RIGHT
    assert direction([0.996, 2.004], 0, "1", "2.00").verdict is Verdict.ERROR


def test_how_much_of_the_rounding_is_used_is_the_ratio_s_own() -> None:
    line = direction([-1.0, 2.52], 0, "-1", "2.5")
    assert line.share == pytest.approx(0.4)


def test_a_range_of_the_vector_widens_what_is_allowed() -> None:
    assert direction([1.0, 2.56], 0, "1", "2.5").verdict is Verdict.ERROR
    assert direction([1.0, 2.56], [0.0, 0.02], "1", "2.5").verdict is Verdict.RIGHT
    assert direction([1.0, 2.56], [0.01, 0.0], "1", "2.5").verdict is Verdict.RIGHT


def test_an_entry_that_is_zero_must_be_zero() -> None:
    assert direction([0.0, 2.0], 0, "0", "1").verdict is Verdict.RIGHT
    assert direction([1.5, 2.0], 0, "0", "1").verdict is Verdict.ERROR
    assert direction([0.4, 2.0], 0, "0", "1").verdict is Verdict.RIGHT  # 0.2 is written 0


def test_the_zero_vector_points_nowhere() -> None:
    assert direction([0.0, 0.0], 0, "1.0", "2.0").verdict is Verdict.ERROR


def test_numbers_that_may_all_be_zero_say_nothing_of_a_direction() -> None:
    line = direction([1.0, 2.0], 0, "0.0", "~0.1")
    assert line.verdict is Verdict.UNJUDGED
    assert line.reason == "written this roughly, it may point anywhere"


def test_the_document_s_direction_for_c_has_a_sign_slip(walkthrough: Model) -> None:
    head = {
        row: [float(x.value) for x in walkthrough.weights["head"].data[row]] for row in range(3)
    }
    half = 0.00005
    assert direction(head[0], half, "-1", "~2.5").verdict is Verdict.RIGHT
    assert direction(head[1], half, "1", "~1").verdict is Verdict.RIGHT
    line = direction(head[2], half, "-1", "~1.75")
    assert line.verdict is Verdict.ERROR
    assert [suspect.kind for suspect in line.suspects] == ["slip-sign"]
    assert line.suspects[0].sentence == "it is right with −1.75 for 1.75: the sign of entry [1]"
    assert line.suspects[0].change == "write [−1, −1.75]"
    assert line.worst is not None
    assert (line.worst.index, round(line.worst.expected, 3)) == ((1,), -1.741)


def test_swapped_entries_a_moved_point_and_the_opposite_way_are_recognised() -> None:
    kinds = {
        "slip-swap": ("2.0", "3.0", "5.0"),
        "slip-point": ("3.0", "20.0", "5.0"),
        "slip-signs": ("-3.0", "-2.0", "-5.0"),
        "slip-sign": ("3.0", "2.0", "-5.0"),
    }
    for kind, words in kinds.items():
        line = direction([6.0, 4.0, 10.0], 0, *words)
        assert [suspect.kind for suspect in line.suspects][:1] == [kind]


def test_the_direction_of_another_row_is_recognised() -> None:
    table = Range(np.array([[1.0, 2.0], [5.0, -1.0]]))
    claim = written("stream.1[0]", "1", "-0.2", kind=DIRECTION)
    (line,) = mark_directions([claim], ANY, lambda _at: table)
    assert [suspect.sentence for suspect in line.suspects] == ["it is the direction of stream.1[1]"]


def test_a_column_has_a_direction_too() -> None:
    table = Range(np.array([[1.0, 5.0, 0.0], [2.0, -1.0, 0.0]]))
    claim = written("weight.head[:,0]", "1", "-0.2", kind=DIRECTION)
    (line,) = mark_directions([claim], ANY, lambda _at: table)
    assert [suspect.sentence for suspect in line.suspects] == [
        "it is the direction of weight.head[:,1]"
    ]
    assert line.worst_address == "weight.head[1,0]"


def test_nan_points_nowhere() -> None:
    claim = written("stream.1", "1", "2.0", kind=DIRECTION)
    known = Range(np.array([1.0, 2.0]))
    for wrong in (np.nan, inf):
        broken = replace(claim, values=np.array([1.0, wrong]))
        (line,) = mark_directions([broken], ANY, lambda _at: known)
        assert (line.verdict, line.share, line.suspects) == (Verdict.ERROR, inf, ())


def test_what_may_be_zero_may_point_anywhere() -> None:
    line = direction([0.1, -0.2], 0.3, "1", "2.0")
    assert line.verdict is Verdict.UNJUDGED
    assert line.reason == "so little is known of it that it may point anywhere"


def test_a_long_vector_is_judged_in_one_go() -> None:
    vector = np.linspace(-1, 1, 4096)
    known = Range(3 * vector)
    claim = Claim("stream.1", (), vector.astype(np.float32), "x", "x", format="float32",
                  kind=DIRECTION)  # fmt: skip
    off = claim.values.copy()
    off[7] += 0.01
    right, wrong = mark_directions([claim, replace(claim, values=off)], ANY, lambda _at: known)
    assert (right.verdict, wrong.verdict) == (Verdict.RIGHT, Verdict.ERROR)
    assert wrong.worst_address == "stream.1[7]"


def test_what_is_unknown_has_no_direction_to_judge() -> None:
    missing = Missing("unknown", "weight.block.0.attn.qkv")
    claim = written("stream.1[0]", "1", "2", kind=DIRECTION)
    (line,) = mark_directions([claim], ANY, lambda _at: missing)
    assert (line.verdict, line.reason) == (Verdict.UNJUDGED, "weight.block.0.attn.qkv is unknown")


def test_a_number_and_a_vector_of_another_length_have_no_direction_to_compare() -> None:
    table = Range(np.array([[1.0, 2.0], [5.0, -1.0]]))
    alone = written("stream.1[0,0]", "1", kind=DIRECTION)
    long = written("stream.1[0]", "1", "2", "3", kind=DIRECTION)
    reasons = [line.reason for line in mark_directions([alone, long], ANY, lambda _at: table)]
    assert reasons == ["one number has no direction", "it has another shape: 2"]


def test_blanks_of_a_direction_are_left_out() -> None:
    table = Range(np.array([[1.0, 2.0, 7.0]]))
    claim = written("stream.1[0]", "1", "2.0", "5.0", kind=DIRECTION)
    known = np.array([True, True, False])
    (line,) = mark_directions([replace(claim, claimed=known)], ANY, lambda _at: table)
    assert line.verdict is Verdict.RIGHT


@given(
    st.lists(st.floats(-5, 5).map(lambda x: round(x, 3)), min_size=2, max_size=5),
    st.floats(0.01, 100),
    st.data(),
)
def test_whatever_rounds_to_the_written_direction_follows(
    vector: list[float], scale: float, data: st.DataObject
) -> None:
    inside = [x + data.draw(st.floats(-0.0499, 0.0499)) for x in vector]
    words = [f"{x:.1f}" for x in vector]
    rounded = [float(word) for word in words]
    near = [r + (i - v) for r, i, v in zip(rounded, inside, vector, strict=True)]
    assume(any(rounded))
    assert direction([scale * x for x in near], 0, *words).verdict is Verdict.RIGHT


# ------------------------------------------------------------------ weights


def weight(model: Model, name: str, *words: str) -> Marked:
    (line,) = mark_weights([written(name, *words)], model)
    return line


def test_a_weight_is_right_to_the_written_places(journey: Model) -> None:
    assert weight(journey, "weight.head[0]", "0.1", "0.2", "0.2", "0.2", "0.1", "0.0").share == 0
    assert weight(journey, "weight.head[0,1]", "0.20").verdict is Verdict.RIGHT
    wrong = weight(journey, "weight.head[0,1]", "0.21")
    assert (wrong.verdict, wrong.outside) == (Verdict.ERROR, 1)
    assert wrong.worst_address == "weight.head[0,1]"


def test_printed_weights_allow_what_their_printing_allows(walkthrough: Model) -> None:
    assert weight(walkthrough, "weight.head[0]", "-0.51504", "1.27070").verdict is Verdict.RIGHT
    assert weight(walkthrough, "weight.head[0]", "-0.51507", "1.27070").verdict is Verdict.ERROR
    assert weight(walkthrough, "weight.head[0]", "-0.52", "1.27").verdict is Verdict.RIGHT


def test_an_unknown_weight_cannot_be_judged(walkthrough: Model) -> None:
    line = weight(walkthrough, "weight.head_bias[0]", "0.1")
    assert (line.verdict, line.reason) == (Verdict.UNJUDGED, "weight.head_bias is unknown")


def test_a_weight_that_is_not_there_offers_the_nearest(journey: Model) -> None:
    line = weight(journey, "weight.block.0.attn.wo", "0.1")
    assert line.verdict is Verdict.UNJUDGED
    assert "did you mean" in line.reason
    assert "block.0.attn.out" in line.reason or "block.0.attn.v" in line.reason


def test_a_weight_of_another_shape_says_which_it_has(journey: Model) -> None:
    line = weight(journey, "weight.head[0]", "0.1", "0.2")
    assert (line.verdict, line.reason) == (Verdict.UNJUDGED, "it has another shape: 6")


def test_another_row_another_weight_a_column_and_slips_are_recognised(journey: Model) -> None:
    def first(name: str, words: str) -> str:
        return weight(journey, name, *words.split()).suspects[0].sentence

    assert first("weight.embed.token[1]", "0.50 0.20 0.10 -0.30") == "it is weight.embed.token[2]"
    assert first("weight.block.0.attn.q[0]", "0.40 -0.20 0.30 0.10") == (
        "it is weight.block.0.attn.k[0]"
    )
    assert first("weight.block.0.attn.q[0]", "0.50 -0.20 0.10 0.30") == (
        "it is a column: weight.block.0.attn.q[:,0]"
    )
    assert first("weight.embed.token[3]", "0.20 0.20 0.40 0.10") == (
        "it is right with −0.2 for 0.2: the sign of entry [0]"
    )
    assert first("weight.embed.token[3]", "0.20 -0.20 0.40 0.10") == (
        "it is right with entries [0] and [1] swapped"
    )
    assert first("weight.embed.token[3,2]", "0.04") == (
        "it is right with 0.4 for 0.04: the decimal point of the number"
    )


def test_a_transposed_matrix_is_recognised(journey: Model) -> None:
    data = np.array(journey.weights["block.0.attn.q"].data, dtype=np.float64)
    claim = Claim("weight.block.0.attn.q", (), data.T, "q", "dump.npz", format="float64")
    (line,) = mark_weights([claim], journey)
    assert [suspect.kind for suspect in line.suspects] == ["weight-transposed"]


@pytest.mark.parametrize("format", ["float32", "float16", "bfloat16"])
def test_a_dump_may_have_rounded_the_weights_to_its_format_once(
    journey: Model, format: str
) -> None:
    from byhand.numbers.floats.formats import FORMATS, narrowed, widened

    data = np.array(journey.weights["head"].data, dtype=np.float64)
    cast = widened(narrowed(data, FORMATS[format].dtype), np.dtype(np.float64))
    claim = Claim("weight.head", (), cast, "head", "dump.npz", format=format)
    assert mark_weights([claim], journey)[0].verdict is Verdict.RIGHT
    wider = replace(claim, format="float64")
    assert mark_weights([wider], journey)[0].verdict is Verdict.ERROR


@pytest.mark.parametrize("name", ["block.0.attn.q", "final.norm.gain", "block.0.mlp.hidden_bias"])
@pytest.mark.parametrize("format", ["bfloat16", "float16"])
def test_weights_that_were_kept_in_fewer_bits_are_recognised(name: str, format: str) -> None:
    """Matrices, gains and biases alike."""
    from byhand.models import open_model
    from byhand.numbers.floats.formats import FORMATS, narrowed, widened

    model = open_model("minigpt")
    data = np.asarray(model.weights[name].data)
    cast = widened(narrowed(data, FORMATS[format].dtype), np.dtype(np.float32))
    claim = Claim(f"weight.{name}", (), cast, name, "dump.npz", format="float32")
    (line,) = mark_weights([claim], model)
    assert line.verdict is Verdict.ERROR
    assert line.suspects[0].sentence == f"it is the weight rounded to {format}"


def test_blanks_of_a_weight_are_not_judged(journey: Model) -> None:
    claim = written("weight.head[0]", "0.1", "9.9", "0.2", "0.2", "0.1", "0.0")
    known = np.array([True, False, True, True, True, True])
    (line,) = mark_weights([replace(claim, claimed=known)], journey)
    assert (line.verdict, line.entries) == (Verdict.RIGHT, 5)


def test_what_is_known_of_a_weight_is_judged_where_the_rest_is_unknown() -> None:
    data = np.array([Fraction(1, 2), Unknown()], dtype=object)
    model = replace(ANY, weights=Weights({"bias": Tensor("bias", data)}))
    claim = written("weight.bias", "0.5", "0.0")
    half, whole = mark_weights([replace(claim, claimed=np.array([True, False])), claim], model)
    assert (half.verdict, whole.verdict) == (Verdict.RIGHT, Verdict.UNJUDGED)


def test_nan_is_no_weight(journey: Model) -> None:
    claim = replace(written("weight.head[0,1]", "0.2"), values=np.array(np.nan))
    line = mark_weights([claim], journey)[0]
    assert (line.verdict, line.share) == (Verdict.ERROR, inf)


def test_the_index_of_an_entry_in_a_part_is_its_index_in_the_whole() -> None:
    def in_whole(address: str, *place: int) -> tuple[int, ...]:
        return Claim("x", read_address(address).index, np.zeros(1), "x", "x").in_whole(place)

    assert in_whole("x[2]", 1) == (2, 1)
    assert in_whole("x[:,3]", 1) == (1, 3)
    assert in_whole("x[2:,0]", 1, 5) == (3, 0, 5)
    assert in_whole("x", 4, 5) == (4, 5)


def test_places_counted_from_the_end_are_settled_when_a_claim_is_read() -> None:
    (line,) = byhand.check("tiny", {"logits[-1:]": [["1", "-1", "1/2"]]}, text="a b")
    assert line.claim.index == (slice(1, 2),)
    assert line.worst_address == "logits[1,2]"
