"""Rank, margin and entropy of next tokens: against Arb and torch, on ties and nasty logits."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from math import exp, log
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq

import byhand
from byhand.checking.standing_claims import _allowed
from byhand.document.media.json.trace import write_json
from byhand.numbers.allowed.operations import Allowed
from byhand.numbers.base import Numbers
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from byhand.numbers.standing import in_floats
from byhand.plan import Step
from byhand.standings import Standing, standings
from byhand.worked import Worked

NASTY = {
    "equal logits": ([[2.0, 2.0, 2.0, 2.0]], (2,), [3]),
    "one huge logit": ([[500.0, 0.0, -3.0, 1.0]], (1,), [3]),
    "all very small": ([[-3000.0, -3001.0, -2999.5, -3000.25]], (0,), [2]),
    "a vocabulary of one": ([[7.25]], (0,), [1]),
    "two ties": ([[1.0, 1.0, -2.0, 0.0], [0.0, 3.0, 0.0, 3.0]], (1, 2), [2, 4]),
}


def stood(numbers: Numbers, rows: Any, targets: tuple[int, ...]) -> list[Standing]:
    value = numbers.admit(np.array(rows))
    shape = np.shape(rows)
    step = Step("logits", "linear", {}, ("pos", "vocab"), shape, "")
    found = standings(Worked(step, value, numbers), numbers.argmax(value), targets)
    return [each for each in found if each is not None]


def entropy(row: list[float]) -> arb:
    with ctx.workprec(4_000):
        powers = [arb(fmpq(*x.as_integer_ratio())).exp() for x in row]
        total = sum(powers, arb(0))
        return -sum((p / total * (p / total).log() for p in powers), arb(0))


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("system", [Balls(120), Limbs(120)], ids=["balls", "limbs"])
def test_enclosures_hold_the_entropy_and_decide_the_rank(name: str, system: Numbers) -> None:
    rows, targets, ranks = NASTY[name]
    for found, row, rank in zip(stood(system, rows, targets), rows, ranks, strict=True):
        assert found.rank == rank
        assert found.entropy.overlaps(Enclosure.of(entropy(row)))
        assert found.entropy.rad < Fraction(1, 10**25)


@pytest.mark.parametrize("name", NASTY)
def test_floats_and_exact_numbers_agree(name: str) -> None:
    rows, targets, ranks = NASTY[name]
    fractions = [[Fraction(x) for x in row] for row in rows]
    for system, given in ((Floats("float64"), rows), (Exact(), fractions)):
        for found, row, rank in zip(stood(system, given, targets), rows, ranks, strict=True):
            assert found.rank == rank
            assert float(found.entropy) == pytest.approx(float(entropy(row)), rel=1e-9, abs=1e-12)


def test_the_pencil_has_the_rank_of_its_rounded_logits() -> None:
    found = stood(Pencil(2), [[Fraction(3), Fraction(1), Fraction(1)]], (2,))[0]
    assert (found.rank, found.margin) == (3, 2)
    assert abs(found.entropy - Fraction(float(entropy([3.0, 1.0, 1.0])))) < Fraction(1, 20)


def test_torch_finds_the_same_entropies_and_ranks() -> None:
    torch = pytest.importorskip("torch")
    rows = np.random.default_rng(4).normal(0, 3, (5, 30))
    targets = (3, 29, 0, 7, 11)
    logs = torch.tensor(rows).log_softmax(dim=-1)
    theirs = -(logs.exp() * logs).sum(dim=-1)
    order = torch.tensor(rows).argsort(dim=-1, descending=True).tolist()
    for place, found in enumerate(stood(Floats("float64"), rows, targets)):
        assert float(found.entropy) == pytest.approx(float(theirs[place]), abs=1e-12)
        assert found.rank == 1 + order[place].index(targets[place])


def test_an_order_that_is_not_proven_is_open_and_names_its_rivals() -> None:
    ball = np.array([[arb(1), arb("1.05", 0.25), arb("0.9", 0.2), arb(-5)]], dtype=object)
    system = Balls(60)
    step = Step("logits", "linear", {}, ("pos", "vocab"), (1, 4), "")
    (found,) = standings(Worked(step, ball, system), system.argmax(ball), (0,))
    assert found is not None
    assert (found.rank, found.lowest, found.rivals) == (None, 1, (1, 2))
    (last,) = standings(Worked(step, ball, system), system.argmax(ball), (3,))
    assert last is not None
    assert (last.rank, last.rivals) == (4, ())


def test_enclosures_decide_what_floats_cannot() -> None:
    with ctx.workprec(200):
        near = np.array([[arb(1), arb(1) + arb(2) ** -100]], dtype=object)
    system = Balls(200)
    step = Step("logits", "linear", {}, ("pos", "vocab"), (1, 2), "")
    found = standings(Worked(step, near, system), system.argmax(near), (0,))[0]
    assert found is not None
    assert found.rank == 2


def test_a_trace_has_the_mean_and_the_perplexity_in_every_number_system() -> None:
    true = exp((2 * log(1 + exp(1) + exp(2)) - 1) / 2)
    for numbers in ("exact", "digits 8", "decimals 3", "float32"):
        trace = byhand.trace("tiny", "a b", numbers=numbers, target="c", logprobs=True)
        assert float(trace.perplexity) == pytest.approx(true, rel=1e-3 if "3" in numbers else 1e-9)
        assert [each.rank for each in trace.standings] == [3, 2]
    assert byhand.trace("tiny", "a b").standings is None


def test_the_json_has_rank_margin_and_entropy() -> None:
    text = io.StringIO()
    write_json(byhand.trace("tiny", "a b", numbers="digits 6", logprobs=True), text)
    data = json.loads(text.getvalue())
    first, last = data["logprobs"]
    assert last is None
    assert (first["rank"], first["entropy"]["decimal"]) == (3, "0.832396")
    assert data["perplexity"]["decimal"] == "11.1073"


# ------------------------------------------------------------------ check


def checked(claims: list[float | None], name: str = "token_logprobs", **said: Any) -> Any:
    return byhand.check("journey", {"text": "the cat sat on", name: claims, **said})


def truth() -> list[float]:
    trace = byhand.trace("journey", "the cat sat on", logprobs=True, numbers="float64")
    return [float(number) for number in trace.logprobs]


def test_log_probabilities_beside_their_own_tokens_are_moved_and_that_is_said() -> None:
    (text,) = checked([None, *truth()[:-1]]).texts
    assert [line.verdict.name for line in text.lines] == ["RIGHT"]
    assert "moved by one position" in text.readings[0].how


def test_a_blank_first_is_a_blank_where_the_target_is_named() -> None:
    (text,) = checked([None, *truth()[1:]], target="mat").texts
    assert [line.verdict.name for line in text.lines] == ["RIGHT"]
    assert not text.readings


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (lambda x: x / log(2), "logprob-base"),
        (lambda x: x / log(10), "logprob-base"),
        (exp, "logprob-missing-log"),
        (lambda x: -x, "logprob-sign"),
    ],
)
def test_another_logarithm_or_none_is_named(wrong: Any, kind: str) -> None:
    (text,) = checked([None, *map(wrong, truth()[:-1])]).texts
    assert [cause.kind for cause in text.causes] == [kind]


def test_a_shift_by_one_token_is_named() -> None:
    trace = byhand.trace("journey", "the cat sat on", numbers="float64")
    logs = np.log(np.asarray(trace["probs"]))
    own = [float(logs[place, id]) for place, id in enumerate(trace.tokens)]
    (text,) = checked([*own[:3], None], "logprobs").texts
    assert [cause.kind for cause in text.causes] == ["logprob-shift"]


def standing_claims() -> dict[str, list[float]]:
    trace = byhand.trace("journey", "the cat sat on", logprobs=True, numbers="float64")
    return {
        "ranks": [float(each.rank) for each in trace.standings],
        "margins": [float(each.margin) for each in trace.standings],
        "entropies": [float(each.entropy) for each in trace.standings],
    }


@pytest.mark.parametrize("name", ["ranks", "margins", "entropies"])
def test_check_judges_claims_about_standings(name: str) -> None:
    claims = standing_claims()[name]
    (right,) = checked(claims, name)
    (wrong,) = checked([claims[0] + 1, *claims[1:]], name)
    assert (right.verdict.name, wrong.verdict.name) == ("RIGHT", "ERROR")
    assert wrong.worst_address == f"{name}[0]"


def test_standings_of_wrong_logits_are_carried_forward() -> None:
    logits = np.asarray(byhand.trace("journey", "the cat sat on", numbers="float32")["logits"])
    wrong = logits + np.array([0, 0, 0, 0, 0, 0.5], np.float32)
    two = np.sort(wrong, axis=-1)
    claims = {"text": "the cat sat on", "logits": wrong, "margins": two[:, -1] - two[:, -2]}
    lines = {line.address: line.verdict.name for line in byhand.check("journey", claims)}
    assert lines == {"logits": "ERROR", "margins": "CARRIED"}


def test_a_rank_that_rounding_leaves_open_is_not_judged() -> None:
    ranks = standing_claims()["ranks"]
    claims = {"text": "the cat sat on", "ranks": ranks}
    (line,) = byhand.check("journey", claims, precision="bfloat16")
    assert line.verdict.name == "UNJUDGED"
    assert "leaves it open" in line.reason


def test_the_room_of_entropies_and_margins_holds_what_moved_logits_give() -> None:
    draw = np.random.default_rng(6)
    replay = SimpleNamespace(numbers=Allowed("float32"))
    x, off = draw.normal(0, 3, (4, 9)), draw.uniform(0, 0.3, (4, 9))
    ids = np.array([0, 3, 8, 5])
    for name, which in (("margins", 3), ("entropies", 4), ("ranks", 1)):
        least, most = _allowed(name, replay, x, off, ids)  # type: ignore[arg-type]
        for _try in range(200):
            moved = in_floats(x + off * draw.choice((-1, 0, 1), (4, 9)), ids)[which]
            assert (least <= moved).all()
            assert (moved <= most).all()


@pytest.mark.parametrize("only", [(), ("logprobs",)])
def test_a_notebook_shows_a_trace_with_log_probabilities(only: tuple[str, ...]) -> None:
    trace = byhand.trace("tiny", "a b", logprobs=True, only=only)
    assert "logprobs" in (trace._repr_html_() or "")
