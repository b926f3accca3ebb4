"""The structure of a difference, read off arrays: places, factors, moves, copies, formats, rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from suspected import TOKENS, Judge, gpt2, own_pass, random_model

from byhand.checking.differences import Difference
from byhand.checking.differences import readings as every_reading
from byhand.checking.differences.closeness import Fitted
from byhand.checking.differences.constants import recognised, shown
from byhand.checking.differences.copies import copy_readings
from byhand.checking.differences.difference import Description, Reading
from byhand.checking.differences.factors import factor_readings
from byhand.checking.differences.formats import format_readings
from byhand.checking.differences.moves import move_readings
from byhand.checking.differences.orders import told
from byhand.checking.differences.pairs_read import pair_readings
from byhand.checking.differences.places import place_readings
from byhand.checking.differences.row_rules import rule_readings
from byhand.checking.differences.tables import table_readings
from byhand.checking.suspects import Context, Edit, Scene
from byhand.checking.suspects.grids import Grid, on_grid
from byhand.checking.suspects.scenes import Values
from byhand.plan import WEIGHT

READERS = (
    place_readings, factor_readings, copy_readings, move_readings, format_readings, table_readings,
    rule_readings, pair_readings,
)  # fmt: skip
HIDDEN, OUT, MIXED = "block.1.mlp.hidden", "block.1.attn.out", "block.1.attn.mixed"
SCORES, MEAN = "block.1.attn.scores", "block.1.mlp.norm.mean"
Change = Callable[[Any], Any]


@cache
def model() -> Any:
    return random_model(gpt2())


@cache
def dump() -> dict[str, Any]:
    return own_pass(model())


def token_rows() -> Any:
    return np.asarray(model().weights["embed.token"].data, dtype=np.float64)


class Around:
    """The lines of the right dump, and another text of the batch."""

    def __init__(self, others: Sequence[Values] = ()) -> None:
        self.others = others
        self.claimed_steps = tuple(dump())

    def claimed(self, address: str) -> Values | None:
        return dump().get(address)

    def expected(self, address: str) -> Values | None:
        return dump().get(address)

    def read(self, address: str) -> Values | None:
        if address.startswith(WEIGHT):
            return np.asarray(model().weights[address.removeprefix(WEIGHT)].data, dtype=np.float64)
        return dump().get(address)

    def elsewhere(self, address: str) -> Sequence[Values]:
        return self.others


def stored(values: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(values, dtype=np.float64).astype(np.float32).astype(np.float64)


def difference(address: str, change: Change, others: Sequence[Values] = (),
               index: Any = ()) -> tuple[Difference, Judge]:  # fmt: skip
    """The difference of one changed line of a right dump."""
    lines = {**dump(), address: stored(change(dump()[address].copy()))}
    judge = Judge(model(), lines)
    judged = judge.judged(judge.plan, address)
    part = index or ...
    context = Context(
        judge.claimed, TOKENS, tuple(range(len(TOKENS))), values=lines[address][part], index=index,
        expected=judged.expected[part], allowed=judged.allowed[part],
        usual=None if judged.usual is None else judged.usual[part], around=Around(others),
    )  # fmt: skip
    step = judge.plan[address]
    scene = Scene(judge.plan, (step,), step, model(), context)
    claimed = None if judged.claimed is None else judged.claimed[part]
    found = Difference.of(scene, claimed)
    assert found is not None
    return found, judge


def readings(address: str, change: Change, **more: Any) -> tuple[list[Reading], Judge]:
    found, judge = difference(address, change, **more)
    return [each for reader in READERS for each in reader(found)], judge


def causes(address: str, change: Change, **more: Any) -> list[Edit]:
    """The edits that make the changed line follow when they are worked out."""
    found, judge = readings(address, change, **more)
    edits = [each for each in found if isinstance(each, Edit)]
    return [edit for edit in edits if judge.judged(edit.plan, address).follows]


def descriptions(address: str, change: Change, **more: Any) -> list[str]:
    found, _judge = readings(address, change, **more)
    return [each.sentence for each in found if isinstance(each, Description)]


def at(*place: Any, to: Change) -> Change:
    """A change of a part of a line."""

    def change(x: Any) -> Any:
        x[place] = to(x[place])
        return x

    return change


# ------------------------------------------------------------------------ places


@pytest.mark.parametrize(
    ("address", "change", "said"),
    [
        (MIXED, at(2, to=lambda x: x**2 + 1), "only head 2 (of 4) differs"),
        (OUT, at([1, 4], to=np.cos), "only positions 1 and 4 (of 6) differ"),
        (OUT, at(slice(3, None), to=np.cos), "only positions from 3 on (of 6) differ"),
        (HIDDEN, at(..., slice(8, 20), to=np.cos), "only hidden units 8 to 19 (of 40) differ"),
        (HIDDEN, at(..., slice(0, None, 4), to=np.cos),
         "only hidden units 0, 4, … 36 (of 40) differ"),
        (MIXED, at(1, slice(3, None), to=np.cos),
         "only one part (head 1, positions from 3 on) differs"),
        (OUT, at(2, 3, to=lambda x: x + 1), "only entry [2,3] of 144 differs"),
        (SCORES, at(..., range(6), range(6), to=lambda x: x**2 + 1),
         "only each query's own key differs"),
        (OUT, lambda x: np.where(x < 0, np.sin(x * 9) - 1, x), "only numbers below 0 differ"),
        (OUT, at(2, to=lambda x: x * np.nan), "24 of 144 numbers are NaN (position 2)"),
    ],
)  # fmt: skip
def test_the_place_of_a_difference_is_told_in_words(
    address: str, change: Change, said: str
) -> None:
    assert descriptions(address, change)[0].startswith(said)


def test_the_size_of_a_difference_is_told_beside_the_numbers() -> None:
    told = descriptions(OUT, lambda x: x * (1 + 0.25 * np.sign(np.cos(np.arange(24)))))[0]
    assert told == "all 144 entries differ; by 25 % of their size, at the median"


def test_a_part_of_a_line_has_the_places_of_the_whole() -> None:
    row = slice(4, 5)
    told = descriptions(OUT, at(4, 7, to=lambda x: x + 1), index=(row,))[0]
    assert told.startswith("only entry [4,7] of 24 differs")


# ------------------------------------------------------------------------ constants


@pytest.mark.parametrize(
    ("value", "off", "written"),
    [
        (0.5, 1e-3, "1/2"), (2**-0.5, 1e-8, "1/√2"), (-2.0, 1e-8, "−2"), (1.702, 1e-8, "1.702"),
        ((2 / np.pi) ** 0.5, 1e-8, "√(2/π)"), (0.044715, 1e-9, "0.044715"), (24**0.5, 1e-8,
         "√24"), (24 / 23, 1e-8, "24/(24 − 1)"), (1 / 0.9, 1e-8, "10/9"),
        (np.log(2), 1e-8, "ln 2"), (1e-5, 1e-13, "1e−5"), (0.85, 1e-8, "0.85"),
    ],
)  # fmt: skip
def test_a_number_that_people_write_is_recognised(value: float, off: float, written: str) -> None:
    scene = difference(OUT, np.cos)[0].scene
    constant = recognised(Fitted(value, off), scene)
    assert constant is not None
    assert constant.written.partition(" (")[0] == written
    assert constant.chance < 0.02


def test_numbers_drawn_at_random_are_no_constants() -> None:
    scene = difference(OUT, np.cos)[0].scene
    drawn = np.exp(np.random.default_rng(1).uniform(-3, 3, 400))
    for precise, most in ((1e-8, 4), (1e-4, 12), (1e-2, 12)):
        hits = [recognised(Fitted(x, precise * x), scene) for x in map(float, drawn)]
        assert sum(each is not None for each in hits) <= most


def test_an_unknown_number_is_shown_with_the_digits_that_are_known() -> None:
    assert shown(Fitted(0.7312345678, 1e-3)) == "0.731"
    assert shown(Fitted(-0.7312345678, 1e-5)) == "−0.73123"


# ------------------------------------------------------------------------ factors and shifts


@pytest.mark.parametrize(
    ("address", "change", "said"),
    [
        (OUT, lambda x: x * 0.5, "everything is 1/2 × what follows"),
        (OUT, lambda x: x * 0.731234, "everything is 0.731234 × what follows"),
        (MIXED, at(3, to=lambda x: x / 2**0.5), "head 3 (of 4) is 1/√2 × what follows"),
        (OUT, at(slice(2, None), to=lambda x: -x), "positions from 2 on (of 6) are −1 × what"),
        (MIXED, at(slice(None), 5, to=lambda x: 0 * x), "position 5 (of 6) is 0"),
        (OUT, lambda x: np.where(x < 0, 0.01 * x, x), "numbers below 0 are 1/100 × what follows"),
        (HIDDEN, lambda x: x + 0.125, "1/8 is added everywhere"),
        (OUT, lambda x: x / np.arange(1, 7)[:, None], "multiplied by 1/(pos + 1)"),
        (HIDDEN, lambda x: x * np.array(model().weights["block.1.mlp.hidden_bias"].data),
         "multiplied by weight.block.1.mlp.hidden_bias"),
        (MIXED, at([0, 2], to=lambda x: 2 * x), "heads 0 and 2 (of 4) are 2 × what follows"),
        (MIXED, lambda x: x * np.array([3, 1, 2, 1])[:, None, None],
         "(head 2: 2 ×; head 0: 3 ×)"),
        (OUT, lambda x: np.where(x > 0, x / 1.25, x * 1.5),
         "numbers above 0 in the whole line are 0.8 × what follows, those below 0 3/2 ×"),
        (OUT, lambda x: np.outer([2] + [1] * 5, [-1] + [1] * 23) * x,
         "(position 0: 2 ×; channel 0: −1 ×)"),
        ("logits", at(..., 3, to=lambda x: 0 * x - 30), "token 3 (of 19) is −30 everywhere"),
        (OUT, lambda x: 0.5 * x[[1, 0, 2, 3, 4, 5]],
         "1/2 × what follows and, besides, positions 0 and 1 change places"),
        ("logits", lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)),
         "less the logarithm of its sum of exponentials, as in log-softmax"),
        ("logits", lambda x: x - x.max(-1, keepdims=True), "less its largest number"),
    ],
)  # fmt: skip
def test_a_factor_or_a_shift_is_read_off_and_named(address: str, change: Change, said: str) -> None:
    edit = causes(address, change)[0]
    assert said in edit.sentence
    assert edit.fitted == 2 * ("change places" in said) + ("0.731234" in said)


def test_a_factor_of_one_row_of_a_line_is_a_factor_of_that_row() -> None:
    found, judge = readings(OUT, at(4, to=lambda x: 3 * x), index=(slice(4, 5),))
    edit = next(each for each in found if isinstance(each, Edit))
    assert "everything is 3 × what follows" in edit.sentence
    assert float(judge.judged(edit.plan, OUT).shares[4].max()) <= 1


# ------------------------------------------------------------------------ moves and copies


@pytest.mark.parametrize(
    ("address", "change", "said"),
    [
        (MIXED, lambda x: x[[1, 0, 2, 3]], "heads 0 and 1 change places"),
        (OUT, lambda x: x[[0, 1, 2, 2, 4, 5]], "position 3 is position 2 again"),
        (HIDDEN, lambda x: np.roll(x, 3, 1), "hidden units are moved on by 3, the last of them"),
        (HIDDEN, lambda x: np.roll(x, 20, 1), "the two halves of the hidden units change places"),
        (HIDDEN, lambda x: x[:, ::-1], "hidden units stand in reverse"),
        (HIDDEN, lambda x: x.reshape(6, 2, 20).transpose(0, 2, 1).reshape(6, 40),
         "hidden units are interleaved: 2 × 20 read as 20 × 2"),
        (HIDDEN, lambda x: x.reshape(6, 5, 8)[:, [1, 0, 2, 3, 4]].reshape(6, 40),
         "in blocks of 8, blocks 0 and 1 change places"),
        (HIDDEN, lambda x: x.reshape(6, 5, 8)[..., ::-1].reshape(6, 40),
         "in each block of 8, hidden units stand in reverse"),
        (OUT, lambda x: np.concatenate([0 * x[:1], x[:-1]]),
         "positions are moved on by 1, and the rest is 0"),
        (OUT, lambda x: np.concatenate([x[:1], x[:-1]]), "moved by 1, the one at the end repeated"),
        (OUT, lambda x: np.repeat(x[:1], 6, 0), "all positions are position 0 again"),
        (MIXED, lambda x: 0 * x + x.mean(0), "all 4 heads are averaged: each is the mean of them"),
        (OUT, at([1, 4], to=lambda x: 0 * x + x.mean(0)), "positions 1 and 4 are averaged"),
        (MIXED, lambda x: x.transpose(1, 0, 2).reshape(x.shape), "memory as (pos, head, d_head)"),
        (OUT, lambda x: dump()["block.0.attn.out"], "holds the numbers of block.0.attn.out"),
        (OUT, lambda x: dump()["block.2.attn.out"], "of block.2.attn.out, a later line"),
        (OUT, at(3, to=lambda x: dump()["block.0.attn.out"][3]),
         "position 3 holds the numbers of block.0.attn.out"),
    ],
)  # fmt: skip
def test_numbers_in_the_wrong_place_are_found_where_they_belong(
    address: str, change: Change, said: str
) -> None:
    sentences = [edit.sentence for edit in causes(address, change)]
    assert any(said in each for each in sentences), sentences


def test_the_numbers_of_another_text_of_the_batch() -> None:
    other = stored(np.random.default_rng(0).standard_normal((6, 24)))
    edit = causes(OUT, lambda x: other, others=[0 * other, other])[0]
    assert "another text of the batch (number 1 of the others)" in edit.sentence


@pytest.mark.parametrize("seed", range(4))
def test_an_order_is_told_with_as_many_numbers_as_it_needs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 40))
    order = rng.permutation(count)
    words = told(order, "head")
    assert 0 <= words.fitted <= count
    assert told(np.roll(np.arange(count), 1), "head").fitted <= 1


# ------------------------------------------------------------------------ formats and tables


@pytest.mark.parametrize(
    ("address", "change", "said"),
    [
        (HIDDEN, lambda x: x * (np.random.default_rng(0).random(x.shape) >= 0.25) / 0.75,
         "the rest is larger by 1/(1 - 0.25)"),
        (HIDDEN, lambda x: on_grid(x, Grid(127.0, "row")), "int8, with a scale for each row"),
        (HIDDEN, lambda x: on_grid(x, Grid(7.0)), "int4, with one scale for the whole line"),
        (HIDDEN, lambda x: on_grid(x, Grid(448.0, float="float8_e4m3")), "float8_e4m3, with one"),
        (HIDDEN, lambda x: np.round(x, 2), "rounded to 2 decimals"),
        (HIDDEN, lambda x: np.clip(x, -0.5, 0.5), "clamped to −1/2 … 1/2"),
        (HIDDEN, lambda x: np.minimum(x, 0.75), "at most 3/4"),
        (MIXED, at(1, to=lambda x: np.clip(x, -0.1, 0.1)),
         "numbers of head 1 (of 4) are clamped to −1/10 … 1/10"),
        (HIDDEN, lambda x: np.rint(x * 16) / 16, "rounded to multiples of 1/16"),
        (HIDDEN, lambda x: np.where(np.abs(x) < 0.1, 0, x), "numbers below 0.1 in size are 0"),
        ("probs", lambda x: np.where(x >= np.sort(x)[:, -5, None], x, 0),
         "only the 5 largest of each row are kept;"),
        (OUT, lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True),
         "each row is scaled to length 1"),
        (OUT, lambda x: x + np.array(model().weights["block.2.mlp.out_bias"].data),
         "weight.block.2.mlp.out_bias is added at all positions"),
        (MIXED, at(2, to=lambda x: x.astype(np.float16).astype(np.float64)),
         "one part (head 2) is rounded to float16"),
        ("embed.token", lambda x: token_rows()[np.array(TOKENS) + 2],
         "each row is row id + 2 of embed.token"),
        ("embed.token", lambda x: token_rows()[np.minimum(TOKENS, 5)],
         "each row is row min(id, 5) of embed.token"),
        ("embed.position", lambda x: x[[0, 1, 2, 0, 1, 2]],
         "each row is row position mod 3 of embed.position"),
        ("embed.position", lambda x: token_rows()[:6],
         "each row is row position of embed.token"),
        ("embed.token", at(2, to=lambda x: token_rows()[17]),
         "position 2 has row 17 of embed.token, not row 1"),
    ],
)  # fmt: skip
def test_what_was_done_to_the_numbers_afterwards_leaves_a_mark(
    address: str, change: Change, said: str
) -> None:
    sentences = [edit.sentence for edit in causes(address, change)]
    assert any(said in each for each in sentences), sentences


@pytest.mark.parametrize(
    ("address", "change", "said"),
    [
        (OUT, lambda x: x + np.cos(np.arange(24)), "the same row is added at all positions"),
        (MIXED, lambda x: x * np.arange(1, 25).reshape(4, 6, 1),
         "each row (heads × positions) is a multiple of its own of what follows: from 1 to 24"),
        (OUT, lambda x: 3 * x + 0.5, "everything is 3 × what follows, plus 1/2"),
        (OUT, lambda x: at(2, to=np.sin)(x * 0.5),
         "everything but position 2 (of 6) is 1/2 × what follows"),
        (OUT, lambda x: at(2, 3, to=lambda _x: np.inf)(x * 0.5),
         "all finite numbers are 1/2 × what follows"),
        (HIDDEN, lambda x: x * (np.random.default_rng(5).random(x.shape) > 0.2),
         "numbers are 0, all over the line; the others follow"),
        (HIDDEN, lambda x: x * (1 + 0.01 * np.random.default_rng(6).standard_normal(x.shape)),
         "the differences look like noise of 1 % of each number"),
    ],
)  # fmt: skip
def test_what_has_no_plan_is_described(address: str, change: Change, said: str) -> None:
    told = descriptions(address, change)
    assert any(said in each for each in told), told


def test_the_place_of_claimed_tokens_among_the_logits() -> None:
    logits = dump()["logits"]
    second = np.argsort(logits, axis=-1)[:, -2].astype(np.float64)
    judge = Judge(model(), dump())
    step = judge.plan["next"]
    expected = logits.argmax(-1).astype(np.float64)
    context = Context(judge.claimed, TOKENS, values=second, expected=expected,
                      allowed=0 * expected, around=Around())  # fmt: skip
    found = Difference.of(Scene(judge.plan, (step,), step, model(), context), None)
    assert found is not None
    assert [each.sentence for each in every_reading(found)] == [
        "every claimed token has the second largest logit of its position"
    ]


def test_numbers_of_a_narrower_format_are_described() -> None:
    told = descriptions(OUT, lambda x: x.astype(np.float16).astype(np.float64))
    assert "every number of this line is a number of float16" in told


# ------------------------------------------------------------------------ nothing on noise

NOISE: list[Change] = [
    lambda x: np.random.default_rng(0).standard_normal(x.shape),
    lambda x: x + 0.01 * np.random.default_rng(1).standard_normal(x.shape),
    lambda x: x * np.exp(np.random.default_rng(2).standard_normal(x.shape)),
    lambda x: x * np.nan,
    lambda x: np.full(x.shape, np.inf),
    lambda x: np.where(np.random.default_rng(3).random(x.shape) < 0.5, np.nan, x * 7e30),
    lambda x: x * 1e-300,
    lambda x: np.full(x.shape, 3.25) + np.random.default_rng(4).random(x.shape),
    at(0, to=lambda x: x * np.nan),
]


@pytest.mark.parametrize("address", [OUT, MIXED, SCORES, MEAN, "embed.token", "logits", "loss"])
def test_noise_and_strange_numbers_have_a_place_and_no_cause(address: str) -> None:
    for place, change in enumerate(NOISE):
        found, judge = readings(address, change)
        size = judge.dump[address].size
        edits = [each for each in found if isinstance(each, Edit) and size >= 6 * each.fitted]
        explained = [each.sentence for each in edits if judge.judged(each.plan, address).follows]
        if place != 6:  # which is 0 in float32
            assert not explained
        assert any(isinstance(each, Description) for each in found)
        for each in found:
            assert not re.search(r"[{}]", each.sentence)


def test_a_line_in_which_one_number_is_expected_everywhere() -> None:
    found, _judge = difference(HIDDEN, lambda x: x)
    rng = np.random.default_rng(9)
    one = np.full(found.expected.shape, 0.25)
    for claimed in (one + rng.standard_normal(one.shape), 0 * one, 2 * one, -one, one * np.inf):
        alike = replace(found, claimed=claimed, expected=one)
        told = [each.sentence for reader in READERS for each in reader(alike)]
        assert told


def test_a_constant_line_and_a_line_of_one_number() -> None:
    assert "everything is 0" in causes(OUT, lambda x: 0 * x)[0].sentence
    assert "everything is 6 (d_head) ×" in causes("loss", lambda x: 6 * x)[0].sentence
    assert descriptions("loss", lambda x: 6 * x)[0].startswith("its only number differs")
