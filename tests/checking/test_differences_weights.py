"""Differences that show in a line's inputs: weights, sums, functions, norms.

A dump holds the lines above a wrong one, and the wrong one as a port with a mistake gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import byhand
from byhand import forward
from byhand.checking import diagnosis, differences
from byhand.checking.differences.functions import function_readings
from byhand.checking.differences.products import product_readings
from byhand.checking.differences.statistics import statistic_readings
from byhand.checking.differences.sums import sum_readings
from byhand.checking.differences.updates import update_readings
from byhand.checking.suspects.curves import FAMILIES, Curve
from byhand.checking.suspects.rewritings import Cut, Pruned, Quantised
from byhand.checking.suspects.row_statistics import MEANS, OVER, SQUARES, Statistic
from byhand.checking.verdicts import Marked
from byhand.evaluate import work_out
from byhand.model import Model
from byhand.numbers.floats import Floats
from byhand.parameters import parameters
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec, over_root
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights

Data = npt.NDArray[Any]
TOKENS = (3, 5, 1, 7, 2, 11, 13, 4, 9, 16, 6, 12)
OUT, HIDDEN, ACT = "block.1.mlp.norm.out", "block.1.mlp.hidden", "block.1.mlp.act"
ADD, STREAM = "block.1.mlp.add", "block.1.attn.add"
READERS = (product_readings, function_readings, statistic_readings, sum_readings, update_readings)


@pytest.fixture(autouse=True)
def _these_readers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other reader and no list of suspects; and no reader may stumble."""
    monkeypatch.setattr(differences, "STUMBLES", ())
    monkeypatch.setattr(differences, "READERS", READERS)
    monkeypatch.setattr(diagnosis, "edits", lambda *_scene, **_context: iter(()))


@cache
def model() -> Model:
    norm = NormSpec("layernorm", Fraction(1, 100_000))
    attention = AttentionSpec(4, 8, 4, over_root(8), out_bias=True)
    mlp = MlpSpec(64, "silu", hidden_bias=True, out_bias=True)
    blocks = (BlockSpec(attention, mlp, norm, norm),) * 2
    spec = ModelSpec("small", 19, 32, 16, blocks, "learned", final_norm=norm)
    rng = np.random.default_rng(4)
    tensors = {}
    for each in parameters(spec):
        data = rng.standard_normal(each.shape) * 0.3 + (each.kind == "gain")
        tensors[each.name] = Tensor(each.name, data.astype(np.float32))
    return Model(spec, Weights(tensors), Ids(spec.vocab))


def weight(name: str) -> Data:
    return np.asarray(model().weights[name].data, dtype=np.float64)


@cache
def _pass() -> dict[str, Data]:
    plan = forward.plan(model().spec, len(TOKENS))
    done = work_out(plan, model().weights, TOKENS, Floats("float32"))
    return {address: np.ma.filled(worked.array, 0.0) for address, worked in done.items()
            if worked.step.op not in ("given", "argmax")}  # fmt: skip


def right(address: str) -> Data:
    return _pass()[address].astype(np.float64)


def checked(target: str, wrong: Data, *above: str) -> Marked:
    """The wrong line, marked from the right lines above it."""
    claims: dict[str, object] = {each: _pass()[each] for each in above}
    claims[target] = wrong.astype(np.float32)
    text = " ".join(map(str, TOKENS))
    marking = byhand.check(model(), claims, text=text, precision="float32")
    return next(line for line in marking if line.claim.address == target)


def cause(target: str, wrong: Data, *above: str) -> str:
    """What the check says of it first."""
    line = checked(target, wrong, *above)
    assert line.suspects, line.described
    return line.suspects[0].sentence


def product(matrix: Data, bias: Data | None = None) -> Data:
    """The hidden layer with another matrix, or another bias."""
    return right(OUT) @ matrix + (weight(HIDDEN + "_bias") if bias is None else bias)


# ------------------------------------------------------------------------ products


def entry(change: Callable[[float], float]) -> Data:
    matrix = weight(HIDDEN)
    matrix[7, 20] = change(matrix[7, 20])
    return product(matrix)


def test_one_weight_is_named_with_both_its_values() -> None:
    own = weight(HIDDEN)[7, 20]
    said = cause(HIDDEN, entry(lambda value: -value), OUT)
    assert said == (
        f"it follows if one weight differs: {HIDDEN}[7,20] acts as {-own:.6g}, its sign is "
        f"changed; the file has {own:.6g}"
    )


def test_a_weight_that_is_nothing_known_is_read_off_the_claim() -> None:
    suspect = checked(HIDDEN, entry(lambda _value: 0.7654), OUT).suspects[0]
    assert f"{HIDDEN}[7,20] acts as 0.7654" in suspect.sentence
    assert suspect.evidence.fitted == 1


def rolled(matrix: Data) -> Data:
    return np.roll(matrix, 1, axis=0)


def nibbles(matrix: Data) -> Data:
    return matrix.reshape(-1, 2, 64)[:, ::-1].reshape(32, 64)


def exchanged(matrix: Data) -> Data:
    return matrix[[*range(11), 12, 11, *range(13, 32)]]


def zeroed(matrix: Data) -> Data:
    return np.where(np.arange(32)[:, None] == 5, 0.0, matrix)


def grouped(matrix: Data) -> Data:
    return matrix * np.where(np.arange(32) // 16 == 1, 1.5, 1.0)[:, None]


def mixed(matrix: Data) -> Data:
    return (matrix + weight("block.0.mlp.hidden")) / 2


@pytest.mark.parametrize(("wrong", "words"), [
    (rolled, f"{HIDDEN} has its input channels moved by 1"),
    (nibbles, f"{HIDDEN} has its input channels in exchanged pairs, as two nibbles"),
    (exchanged, f"rows 11, 12 of {HIDDEN} change places"),
    (zeroed, f"row 5 of {HIDDEN} is 0"),
    (grouped, f"input channels 16…31 of {HIDDEN} act times 1.5"),
    (mixed, f"{HIDDEN} is mixed with block.0.mlp.hidden, which has a share of 1/2"),
    (Quantised("int4", 16), f"{HIDDEN} is rounded to int4 in groups of 16 input channels"),
    (Quantised("int8", 16, scales=1), "with the neighbouring group's scale"),
    (Pruned(0.3), f"the smallest 30 % of {HIDDEN} are 0"),
])  # fmt: skip
def test_a_matrix_that_differs_in_one_way_is_told(
    wrong: Callable[[Data], Data], words: str
) -> None:
    assert words in cause(HIDDEN, product(wrong(weight(HIDDEN))), OUT)


def test_a_bias_that_is_subtracted_or_has_one_other_entry_is_told() -> None:
    name, bias, matrix = HIDDEN + "_bias", weight(HIDDEN + "_bias"), weight(HIDDEN)
    assert f"the bias {name} is subtracted" in cause(HIDDEN, product(matrix, -bias), OUT)
    other = np.where(np.arange(64) == 9, bias + 0.5, bias)
    assert f"{name}[9] acts as {bias[9] + 0.5:.6g}"[:-1] in cause(
        HIDDEN, product(matrix, other), OUT
    )


def test_a_low_rank_that_is_added_is_described() -> None:
    rng = np.random.default_rng(0)
    more = rng.standard_normal((32, 2)) @ rng.standard_normal((2, 64)) * 0.1
    line = checked(HIDDEN, product(weight(HIDDEN) + more), OUT)
    assert not line.suspects
    assert any("the difference has rank 2" in each for each in line.described)


def test_what_enters_a_product_is_solved_for() -> None:
    kept = np.random.default_rng(1).random((len(TOKENS), 32)) > 0.25
    dropped = (right(OUT) * kept / 0.75) @ weight(HIDDEN) + weight(HIDDEN + "_bias")
    assert "the rest grows by 1/(1 - 0.25)" in cause(HIDDEN, dropped, OUT)
    rounded = Cut(8)(right(OUT)) @ weight(HIDDEN) + weight(HIDDEN + "_bias")
    assert "rounded to bfloat16" in cause(HIDDEN, rounded, OUT)


# ------------------------------------------------------------------------ sums


def test_a_term_with_another_factor_or_one_more_term_is_told() -> None:
    x, y, older = right(STREAM), right("block.1.mlp.out"), right("stream.0")
    above = (STREAM, "block.1.mlp.out", "stream.0")
    assert f"it is {STREAM} + 1/2 × block.1.mlp.out" in cause(ADD, x + y / 2, *above)
    assert f"it is {STREAM} - block.1.mlp.out" in cause(ADD, x - y, *above)
    assert f"it is {STREAM} + block.1.mlp.out + stream.0" in cause(ADD, x + y + older, *above)


def test_a_term_that_is_moved_or_limited_is_told() -> None:
    x, y, above = right(STREAM), right("block.1.mlp.out"), (STREAM, "block.1.mlp.out")
    moved = cause(ADD, x + np.roll(y, 1, axis=1), *above)
    assert "block.1.mlp.out is moved by 1 channels before it is added" in moved
    limited = cause(ADD, x + np.clip(y, -0.5, 0.5), *above)
    assert "block.1.mlp.out is limited to ±1/2 before it is added" in limited


# ------------------------------------------------------------------------ functions


@pytest.mark.parametrize(("curve", "words"), [
    (Curve("swish", (1.3,)), "the activation is x·σ(13/10·x); the model says SiLU"),
    (Curve("mish"), "the activation is mish(x)"),
    (Curve("leaky", (0.02,)), "times 1/50 below 0"),
    (Curve("at_most", (0.5,), within="silu"), "the activation is min(silu(x), 1/2)"),
])  # fmt: skip
def test_another_activation_is_recognised_with_its_constants(curve: Curve, words: str) -> None:
    assert words in cause(ACT, curve(right(HIDDEN)), HIDDEN)


def test_a_soft_cap_is_read_off_logits_and_an_unknown_function_is_described() -> None:
    capped = 5 * np.tanh(right("logits") / 5)
    assert "becomes 5·tanh(x/5)" in cause("logits", capped, "final.norm.out")
    odd = right(ACT) + 0.1 * np.sin(3 * right(HIDDEN))
    line = checked(ACT, odd, HIDDEN)
    assert not line.suspects
    assert any("a function of its input alone" in each for each in line.described)


def test_every_curve_is_finite_where_activations_are() -> None:
    x = np.linspace(-30.0, 30.0, 41)
    for name, family in FAMILIES.items():
        made = Curve(name, family.usual)(x)
        assert made.shape == x.shape
        assert np.isfinite(made).all(), name


# ------------------------------------------------------------------------ norms


def normed(
    eps: float = 1e-5, square: Callable[[Data], Data] | None = None, groups: int = 1
) -> Data:
    """The whole norm before the MLP, with another part."""
    x = right(STREAM).reshape(len(TOKENS) * groups, -1)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1) if square is None else square(centred)
    made = (centred / np.sqrt(variance + eps)[:, None]).reshape(len(TOKENS), -1)
    return np.asarray(made * weight("block.1.mlp.norm.gain") + weight("block.1.mlp.norm.bias"))


def test_another_eps_is_read_off_a_norm_of_which_only_the_end_is_claimed() -> None:
    assert cause(OUT, normed(3e-3), STREAM) == (
        "it follows if eps is 0.003; the model says 1e-05"
    )  # fmt: skip


def test_statistics_of_other_numbers_are_told() -> None:
    half = cause(OUT, normed(square=lambda c: np.square(c[:, :16]).mean(axis=-1)), STREAM)
    assert "the first half of the channels" in half
    before = cause(OUT, normed(square=lambda c: np.roll(np.square(c).mean(axis=-1), 1)), STREAM)
    assert "the variance of the position before" in before
    assert "over 4 groups of 8 channels" in cause(OUT, normed(groups=4), STREAM)


def test_a_gain_that_is_squared_moved_or_1_in_a_part_is_told() -> None:
    gain, above = weight("block.1.mlp.norm.gain"), "block.1.mlp.norm.normalized"

    def said(acts: Data) -> str:
        return cause(OUT, right(above) * acts + weight("block.1.mlp.norm.bias"), above)

    assert "acts as its square" in said(gain**2)
    assert "is moved by 1 channels" in said(np.roll(gain, 1))
    assert "is 1 at channels 0…8" in said(np.where(np.arange(32) < 9, 1.0, gain))


def test_statistics_have_one_number_for_each_row() -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, 8))
    for what in (*MEANS, *SQUARES):
        for over in OVER:
            assert Statistic(what, over)(x).shape == (3, 5), (what, over)
    assert Statistic("variance", less=1)(x)[0, 0] == pytest.approx(x[0, 0].var(ddof=1))


# ------------------------------------------------------------------------ what says nothing


@pytest.mark.parametrize("target", [HIDDEN, ACT, ADD, OUT, "logits"])
def test_noise_has_no_cause(target: str) -> None:
    above = {HIDDEN: (OUT,), ACT: (HIDDEN,), ADD: (STREAM, "block.1.mlp.out"), OUT: (STREAM,),
             "logits": ("final.norm.out",)}[target]  # fmt: skip
    noise = np.random.default_rng(2).standard_normal(right(target).shape)
    for size in (1e-3, 1.0):
        assert not checked(target, right(target) + size * noise, *above).suspects


@pytest.mark.parametrize("filling", [np.nan, 1e30])
def test_a_line_of_odd_numbers_makes_no_reader_stumble(filling: float) -> None:
    lines = {HIDDEN: (OUT,), ACT: (HIDDEN,), ADD: (STREAM, "block.1.mlp.out"), OUT: (STREAM,)}
    for target, above in lines.items():
        wrong = right(target)
        wrong.flat[::3] = filling
        checked(target, wrong, *above)
        checked(target, np.zeros(wrong.shape), *above)
