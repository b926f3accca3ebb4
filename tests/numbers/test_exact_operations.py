"""The operations of a transformer, exactly."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from byhand.errors import InputError, Undecided
from byhand.expression import parse, write
from byhand.numbers.base import ABSENT, Note, Printed
from byhand.numbers.exact import Exact

F = Fraction


@pytest.fixture
def numbers():
    return Exact()


def admit(numbers, data):
    """Numbers and expressions as text."""
    entries = np.array(data, dtype=object)
    read = [parse(x) if isinstance(x, str) else x for x in entries.ravel()]
    return numbers.admit(np.array([*read, None], dtype=object)[:-1]).reshape(entries.shape)


def texts(array):
    return np.vectorize(lambda v: "" if v is ABSENT else str(v), otypes=[object])(array).tolist()


def causal(length):
    return [[key <= query for key in range(length)] for query in range(length)]


def attend(numbers, q, k, v, length, **settings):
    places = range(length)
    scores = numbers.scores(q, k, mask=causal(length), queries=places, keys=places, **settings)
    weights = numbers.softmax(scores)
    return scores, weights, numbers.mix(weights, v)


def layernorm(numbers, x):
    mean = numbers.mean(x)
    centered = numbers.center(x, mean)
    variance = numbers.mean_square(centered)
    std = numbers.root(variance, eps=F(0))
    return centered, variance, std, numbers.normalize(centered, std)


def test_tiny_crosses_the_softmax_boundary_and_comes_back(numbers):
    embedding = admit(numbers, [[1, 0], [0, 1], [1, 1]])
    x = numbers.add(numbers.embed(embedding, (0, 1)), admit(numbers, [[0, 0], [1, 0]]))
    heads = numbers.split_heads(x, start=0, heads=1, width=2, stride=2)
    scores, weights, mixed = attend(numbers, heads, heads, heads, 2)
    assert texts(scores) == [[["1", ""], ["1", "2"]]]
    assert texts(weights) == [[["1", ""], ["1/(1 + e)", "e/(1 + e)"]]]
    writer = numbers.writer()
    assert write(writer.worked(weights[0, 0, 0])) == "1"
    assert write(writer.worked(weights[0, 1, 0])) == "e^1/(e^1 + e^2)"
    assert write(writer.worked(weights[0, 1, 1])) == "e^2/(e^1 + e^2)"
    x = numbers.add(x, numbers.merge_heads(mixed))
    *_parts, std, h = layernorm(numbers, x)
    assert texts(std) == ["1", "1/(2(1 + e))"]
    assert texts(h) == [["1", "-1"], ["1", "-1"]]
    x = numbers.add(h, numbers.activate(h, kind="relu"))
    *_parts, variance, std, out = layernorm(numbers, x)
    assert texts(variance) == ["9/4", "9/4"]
    assert texts(std) == ["3/2", "3/2"]
    logits = numbers.linear(out, embedding, layout="out_in")
    assert texts(logits) == [["1", "-1", "0"]] * 2
    assert [v.register for v in logits.ravel()] == ["exact"] * 6
    for prediction in numbers.argmax(logits):
        assert (prediction.id, prediction.proven, prediction.tied) == (0, True, ())
        assert prediction.margin == 1


def test_layernorm_of_one_two_three(numbers):
    centered, variance, std, normalized = layernorm(numbers, admit(numbers, [[1, 2, 3]]))
    assert texts(centered) == [["-1", "0", "1"]]
    assert texts(variance) == ["2/3"]
    assert texts(std) == ["√6/3"]
    assert std[0].register == "named"
    assert write(numbers.writer().worked(std[0])) == "√(2/3)"
    assert texts(normalized) == [["-√6/2", "0", "√6/2"]]


def test_a_row_without_variance_is_zero_with_a_note(numbers):
    x = admit(numbers, [[1, 2], ["e", "e"], ["sqrt(2)*sqrt(3)", "sqrt(6)"]])
    normalized = layernorm(numbers, x)[-1]
    assert texts(normalized) == [["-1", "1"], ["0", "0"], ["0", "0"]]
    assert numbers.notes == [Note("zero-variance", (1,)), Note("zero-variance", (2,))]


# ------------------------------------------------------------------------- coming back to exact


def test_equal_scores_give_exactly_one_nth(numbers):
    scores = admit(numbers, [[["sqrt(2)*sqrt(3) + e", "e + sqrt(6)", "sqrt(24)/2 + e"]]])
    assert texts(numbers.softmax(scores)) == [[["1/3", "1/3", "1/3"]]]


def test_equal_values_under_unequal_weights_come_back(numbers):
    weights = numbers.softmax(admit(numbers, [[["1/3", "sqrt(2)", "-e"]]]))
    mixed = numbers.mix(weights, admit(numbers, [[[7, 1], [7, 2], [7, 3]]]))
    assert mixed[0, 0, 0].fraction == 7
    assert mixed[0, 0, 1].register == "named"


def test_equal_values_under_many_weights_come_back_too(numbers):
    scores = [f"sqrt({n})" for n in range(2, 42)]
    weights = numbers.softmax(admit(numbers, [[scores]]))
    mixed = numbers.mix(weights, admit(numbers, [[[F(-7, 3), n] for n in range(40)]]))
    assert mixed[0, 0, 0].fraction == F(-7, 3)
    assert mixed[0, 0, 1].register == "named"


def test_products_of_roots_come_back(numbers):
    x = admit(numbers, [["sqrt(2)", "sqrt(3)", "1/sqrt(6)"]])
    w = admit(numbers, [["sqrt(8)"], ["sqrt(12)"], ["sqrt(6)"]])
    assert numbers.linear(x, w, layout="in_out")[0, 0].fraction == 4 + 6 + 1


def test_centred_multiples_of_one_named_value_come_back(numbers):
    name = "e/(1 + e)"
    x = admit(numbers, [[f"7*{name} + 3", f"{name} + 3", f"4*{name} + 3", f"4*{name} + 3"]])
    *_parts, normalized = layernorm(numbers, x)
    assert texts(normalized) == [["√2", "-√2", "0", "0"]]
    weighted = numbers.linear(normalized, admit(numbers, [["sqrt(2)", 0, 0, 0]]), layout="out_in")
    assert weighted[0, 0].fraction == 2


@pytest.mark.parametrize(
    "row",
    [
        ("1 + sqrt(2)", "0"),
        ("sqrt(2) + sqrt(3) + sqrt(5) + sqrt(7)", "ln(10)*cos(1)"),
        (
            "sin(1)*cos(2)*sqrt(2) + ln(3)*exp(sqrt(2)) - erf(1)",
            "sin(3) + exp(1/3)*sqrt(7)/(1 + e)",
        ),
        ("exp(sin(1))/(1 + exp(cos(1))) + sqrt(1 + sqrt(2))", "tanh(1)*sqrt(3 + sin(1)) + pi^3/30"),
    ],
)
def test_a_layernorm_in_two_dimensions_leaves_just_a_sign(numbers, row):
    x = admit(numbers, [list(row)])
    centered, _variance, std, normalized = layernorm(numbers, x)
    sign = 1 if x[0, 0] > x[0, 1] else -1
    assert [v.fraction for v in normalized[0]] == [sign, -sign]
    assert std[0] == abs(centered[0, 0])


def test_multiples_of_one_wide_value_come_back_in_any_dimension(numbers):
    c = "(sqrt(2) + sqrt(3)*sin(1) + ln(5) + exp(cos(1))/(2 + e))"
    x = admit(numbers, [[f"3*{c}", f"-{c}", f"-2*{c}", 0]])
    *_parts, normalized = layernorm(numbers, x)
    root = numbers.scalar(parse("sqrt(7/2)"))
    assert [(v * root).fraction for v in normalized[0]] == [3, -1, -2, 0]


def test_a_slope_of_ln_ten_gives_exact_weights(numbers):
    q = k = admit(numbers, [[[0]] * 4])
    scores, weights, _mixed = attend(numbers, q, k, k, 4, slopes=admit(numbers, ["ln(10)"]))
    assert texts(scores)[0][3] == ["-3·ln(10)", "-2·ln(10)", "-ln(10)", "0"]
    assert [w.fraction for w in weights[0, 3]] == [F(n, 1111) for n in (1, 10, 100, 1000)]


def test_a_hand_set_model_with_anchors_and_routing_stays_exact(numbers):
    q = k = admit(numbers, [[["exp(80)"], [0], ["ln(10)"]]])
    table = np.full((1, 3, 3), None, dtype=object)
    for query, key, entry in [(0, 0, 0), (1, 0, 0), (1, 1, "ln(10)"), (2, 1, 0), (2, 2, 80)]:
        table[0, query, key] = parse(entry) if isinstance(entry, str) else entry
    scores, weights, _mixed = attend(numbers, q, k, k, 3, table=numbers.admit(table))
    assert texts(scores) == [[["e^160", "", ""], ["0", "ln(10)", ""], ["", "0", "80 + ln(10)^2"]]]
    assert [w.fraction for w in weights[0, 1, :2]] == [F(1, 11), F(10, 11)]
    assert texts(weights)[0][2][1:] == [
        "1/(1 + e^(80 + ln(10)^2))",
        "e^(80 + ln(10)^2)/(1 + e^(80 + ln(10)^2))",
    ]


def test_softmax_of_towers_is_worked_out(numbers):
    weights = numbers.softmax(admit(numbers, [[["exp(80)", "exp(79)", 0]]]))[0, 0]
    assert sum(weights[1:], weights[0]).fraction == 1
    assert weights[0] > weights[1] > weights[2] > 0
    assert 1 - weights[0] < F(1, 10**100)


# ------------------------------------------------------------------------- attention


def test_masked_and_absent_scores_stay_absent(numbers):
    x = admit(numbers, [[[1], [2]]])
    table = admit(numbers, [[[0, None], [None, 5]]])
    scores, weights, mixed = attend(numbers, x, x, x, 2, table=table)
    assert texts(scores) == [[["1", ""], ["", "9"]]]
    assert texts(weights) == [[["1", ""], ["", "1"]]]
    assert texts(mixed) == [[["1"], ["2"]]]


def test_scores_are_scaled_also_by_a_root(numbers):
    x = admit(numbers, [[[1, 2], [3, 4]]])
    settings = {"mask": causal(2), "queries": range(2), "keys": range(2)}
    scaled = numbers.scores(x, x, scale=parse("1/sqrt(2)"), **settings)
    assert texts(scaled) == [[["5√2/2", ""], ["11√2/2", "25√2/2"]]]
    assert write(numbers.writer().worked(scaled[0, 1, 0])) == "(3·1 + 4·2)/√2"
    halved = numbers.scores(x, x, scale=parse("1/2"), **settings)
    assert texts(halved)[0][1] == ["11/2", "25/2"]


def test_query_heads_share_key_heads_in_groups(numbers):
    q = admit(numbers, [[[1]], [[2]], [[3]], [[4]]])
    k = admit(numbers, [[[10]], [[100]]])
    scores, _weights, mixed = attend(numbers, q, k, k, 1)
    assert texts(scores[:, 0, 0]) == ["10", "20", "300", "400"]
    assert texts(mixed[:, 0, 0]) == ["10", "10", "100", "100"]


def test_positions_index_the_table_and_the_slopes(numbers):
    zero = admit(numbers, [[[0]]])
    table = admit(numbers, [[[0, 0, 0], [0, 0, 0], [0, 50, 0]]])
    scores = numbers.scores(
        zero, zero, table=table, slopes=admit(numbers, [7]), mask=[[True]], queries=[2], keys=[1]
    )
    assert scores[0, 0, 0].fraction == 50 - 7


# ------------------------------------------------------------------------- positions


def test_rotation_by_powers_of_the_base_is_exact_where_they_are(numbers):
    x = np.stack([admit(numbers, [[1, 0, 0, 0]] * 3)])
    settings = {"positions": [0, 1, 5], "width": 4, "base": F(10000)}
    half = numbers.rotate(x, pairing="half", **settings)
    assert texts(half[0, 0]) == ["1", "0", "0", "0"]
    assert texts(half[0, 1]) == ["cos(1)", "0", "sin(1)", "0"]
    assert half[0, 2, 0] == numbers.scalar(parse("cos(5)"))
    second = np.stack([admit(numbers, [[0, 0, 1, 0]])])
    turned = numbers.rotate(second, positions=[3], width=4, base=F(10000), pairing="interleaved")
    assert texts(turned[0, 0]) == ["0", "0", "cos(3/100)", "sin(3/100)"]


def test_rotation_leaves_the_entries_beyond_its_width(numbers):
    x = np.stack([admit(numbers, [[1, 2, 3, 4]])])
    turned = numbers.rotate(x, positions=[1], width=2, base=F(10), pairing="half")
    assert texts(turned[0, 0, 2:]) == ["3", "4"]
    assert turned[0, 0, 0] == numbers.scalar(parse("cos(1) - 2*sin(1)"))


def test_rotation_takes_explicit_angles(numbers):
    x = np.stack([admit(numbers, [[1, 0]] * 4)])
    turned = numbers.rotate(
        x, frequencies=admit(numbers, ["pi/2"]), positions=range(4), width=2, base=F(1),
        pairing="half",
    )  # fmt: skip
    assert texts(turned[0]) == [["1", "0"], ["0", "1"], ["-1", "0"], ["0", "-1"]]
    still = numbers.rotate(
        x, frequencies=admit(numbers, [0]), positions=range(4), width=2, base=F(7), pairing="half"
    )
    assert texts(still[0]) == [["1", "0"]] * 4


def test_rotated_scores_depend_on_the_distance_alone(numbers):
    x = np.stack([admit(numbers, [["e", 2, 3, "sqrt(5)"]] * 5)])
    turned = numbers.rotate(x, positions=range(5), width=4, base=F(10000), pairing="half")
    scores = numbers.scores(
        turned, turned, mask=causal(5), queries=range(5), keys=range(5), scale=None
    )
    for distance in range(4):
        first = scores[0, distance, 0]
        for key in range(1, 5 - distance):
            assert (scores[0, key + distance, key] - first).fraction == 0


def test_sinusoids(numbers):
    table = numbers.sinusoid(positions=range(3), width=4, base=F(10000))
    assert texts(table[1]) == ["sin(1)", "cos(1)", "sin(1/100)", "cos(1/100)"]
    assert texts(table[0]) == ["0", "1", "0", "1"]
    assert (table[2, 0] ** 2 + table[2, 1] ** 2).fraction == 1


# ------------------------------------------------------------------------- products


def test_linear_reads_heads_side_by_side_and_splits_the_result(numbers):
    heads = admit(numbers, [[[1, 2]], [[3, 4]]])
    identity = admit(numbers, np.eye(4, dtype=int).tolist())
    bias = admit(numbers, [10, 20, 30, 40])
    flat = numbers.linear(heads, identity, bias=bias, layout="in_out")
    assert texts(flat) == [["11", "22", "33", "44"]]
    split = numbers.linear(heads, identity, layout="out_in", heads=2)
    assert texts(split) == [[["1", "2"]], [["3", "4"]]]


def test_the_layout_says_which_way_a_matrix_lies(numbers):
    x, w = admit(numbers, [[1, 10]]), admit(numbers, [[1, 2], [3, "e"]])
    assert texts(numbers.linear(x, w, layout="in_out")) == [["31", "2 + 10e"]]
    assert texts(numbers.linear(x, w, layout="out_in")) == [["21", "3 + 10e"]]


def test_wide_sums_get_letters_and_still_cancel(numbers):
    names = [f"sqrt({p})" for p in range(2, 60)]
    x = admit(numbers, [names])
    one = admit(numbers, [[1] * len(names), [2] * len(names), [0] + [1] * (len(names) - 1)])
    first, double, most = numbers.linear(x, one, layout="out_in")[0]
    assert (double - 2 * first).fraction == 0
    assert first - most == x[0, 0]
    total = sum((entry.ball(200) for entry in x[0]), 0)
    assert first.ball(200).overlaps(total)


def test_heads_go_through_their_slices_of_the_output_matrix(numbers):
    mixed = admit(numbers, [[[1, 2]], [[3, "e"]]])
    weight = admit(numbers, [[1, 0], [0, 1], [1, 1], [2, 0]])
    apart = numbers.head_outputs(mixed, weight=weight, layout="in_out")
    assert texts(apart) == [[["1", "2"]], [["3 + 2e", "3"]]]
    together = numbers.linear(mixed, weight, layout="in_out")
    assert texts(numbers.add(apart[0], apart[1])) == texts(together)
    plain = numbers.head_outputs(mixed, layout="in_out")
    assert texts(plain) == [[["1", "2", "0", "0"]], [["0", "0", "3", "e"]]]


def test_embeddings_are_scaled_and_gains_and_biases_applied(numbers):
    table = admit(numbers, [[1, 2], [3, 4]])
    assert texts(numbers.embed(table, (1, 0), scale=parse("sqrt(2)")))[0] == ["3√2", "4√2"]
    x = numbers.embed(table, (1,))
    gain, bias = admit(numbers, ["e", 2]), admit(numbers, [1, "sqrt(3)"])
    assert texts(numbers.affine(x, gain=gain, bias=bias)) == [["1 + 3e", "8 + √3"]]
    assert texts(numbers.affine(x, gain=gain)) == [["3e", "8"]]
    assert texts(numbers.affine(x, bias=bias)) == [["4", "4 + √3"]]
    assert texts(numbers.multiply(x, x)) == [["9", "16"]]


# ------------------------------------------------------------------------- activations


def test_activations_are_what_their_formulas_say(numbers):
    x = admit(numbers, [["1", "-2", "0"]])
    wanted = {
        "relu": ["1", "0", "0"],
        "identity": ["1", "-2", "0"],
        "gelu": ["(1 + erf(√2/2))/2", "erf(√2) - 1", "0"],
        "silu": ["e/(1 + e)", "-2/(1 + e^2)", "0"],
    }
    for kind, expected in wanted.items():
        assert texts(numbers.activate(x, kind=kind)) == [expected]
    tanh = numbers.activate(x, kind="gelu_tanh")[0, 0]
    formula = parse("(1 + tanh(sqrt(2/pi)*(1 + 0.044715)))/2")
    assert tanh == numbers.scalar(formula)
    with pytest.raises(InputError, match="no activation 'swish'"):
        numbers.activate(x, kind="swish")


def test_an_open_sign_stays_a_name_and_the_work_goes_on(numbers):
    w, v = numbers.admit([Printed(F(1, 2), 1), Printed(F(1, 2), 1)])
    zero = numbers.scalar(parse("tanh(1) - (e^2 - 1)/(e^2 + 1)"))
    x = np.array([[w - v, w, -w, zero]], dtype=object)
    result = numbers.activate(x, kind="relu")
    assert numbers.notes == [Note("undecided-sign", (0, 0)), Note("undecided-sign", (0, 3))]
    assert (result[0, 1] - w).fraction == 0
    assert result[0, 2].fraction == 0
    assert str(numbers.activate(result, kind="relu")[0, 3]).startswith("relu(")


# ------------------------------------------------------------------------- the end


def test_a_tie_is_decided_for_the_lowest_and_listed(numbers):
    logits = admit(numbers, [[0, "sqrt(6)", "e - 1", "sqrt(2)*sqrt(3)"]])
    (prediction,) = numbers.argmax(logits)
    assert (prediction.id, prediction.tied, prediction.proven) == (1, (1, 3), True)
    assert prediction.margin == 0


def test_an_undecided_argmax_names_its_candidates(numbers):
    logits = admit(numbers, [[0, "tanh(1)", "(e^2 - 1)/(e^2 + 1)", "tanh(1)/2"]])
    (prediction,) = numbers.argmax(logits)
    assert (prediction.id, prediction.proven, prediction.candidates) == (None, False, (1, 2))
    assert prediction.margin is None


def test_the_margin_is_to_the_next_smaller_logit(numbers):
    (prediction,) = numbers.argmax(admit(numbers, [["e", 1, 2]]))
    assert prediction.id == 0
    assert str(prediction.margin) == "e - 2"


def test_the_loss_is_the_negative_logarithm(numbers):
    probs = numbers.softmax(admit(numbers, [[1, 2], [3, 4]]))
    (loss,) = numbers.loss(probs, target=0)
    assert str(loss) == "ln(1 + e)"
    assert write(numbers.writer().worked(loss)) == "-ln(1/(1 + e))"
    assert loss.decimal(4) == "1.3133"


def test_normalizing_by_an_open_zero_gives_what_a_row_of_two_allows(numbers):
    w, v = numbers.admit([Printed(F(1, 2), 1), Printed(F(1, 2), 1)])
    x = np.array([[w, v]], dtype=object)
    for entry in layernorm(numbers, x)[-1][0]:
        assert entry.register == "enclosed"
        ball = entry.ball(64)
        assert ball.contains(-1)
        assert ball.contains(1)
        assert abs(ball) < 1.0001


def test_normalizing_by_a_given_open_zero_is_undecided(numbers):
    w, v = numbers.admit([Printed(F(1, 2), 1), Printed(F(0), 1)])
    with pytest.raises(Undecided):
        numbers.normalize(np.array([[w, v]], dtype=object), np.array([v], dtype=object))


# ------------------------------------------------------------------------- three layers deep


def test_in_three_blocks_every_softmax_adds_up_to_one_and_every_centred_row_to_zero():
    numbers = Exact()
    choose = random.Random(1)

    def matrix(rows, columns):
        entries = [choose.randint(-3, 3) for _entry in range(rows * columns)]
        return admit(numbers, entries).reshape(rows, columns)

    x = matrix(8, 3)
    seen = 0
    for _block in range(3):
        centered, *_parts, n = layernorm(numbers, x)
        q, k, v = (numbers.linear(n, matrix(3, 3), layout="in_out", heads=1) for _w in range(3))
        _scores, weights, mixed = attend(numbers, q, k, v, 8)
        x = numbers.add(x, numbers.linear(mixed, matrix(3, 3), layout="in_out"))
        for row in weights[0]:
            present = [w for w in row if w is not ABSENT]
            assert sum(present[1:], present[0]) == 1
            seen += 1
        for row in centered:
            assert sum(row[1:], row[0]) == 0
            seen += 1
    assert seen == 48
    assert x[7, 0].register == "named"
