"""The machines of docs/examples against plain Python: hard texts, samples, and planted faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from benchmarks.machines import MACHINES, Machine, confirmed

import byhand
from byhand.model import Model
from byhand.proving.claims import Next
from byhand.proving.properties import read_property
from byhand.proving.search import prove
from byhand.train.corpora.verbs import questions

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
SAMPLES = Random(19)

Words = tuple[str, ...]


def opened(name: str) -> Model:
    return byhand.open_model(EXAMPLES / f"{name}.yaml")


def said(model: Model, texts: Iterable[Words], last: int = 1) -> list[Words]:
    """The tokens predicted after the last positions of each text, every one of them proven."""
    found = []
    for trace in byhand.traces(model, map(" ".join, texts), numbers="digits 3", only="next"):
        assert trace.next is not None
        assert all(one.proven and not one.tied for one in trace.next[-last:])
        found.append(tuple(model.outputs.tokens[one.id or 0] for one in trace.next[-last:]))
    return found


# ---------------------------------------------------------------------- the adder


def sum_text(a: int, b: int) -> Words:
    """The text of a sum of ten digits, up to the last digit but one."""
    return (*f"{a:010}", "+", *f"{b:010}", "=", *f"{a + b:011}"[:-1])


def chains() -> list[tuple[int, int]]:
    """Pairs whose lower digits make 99…9 or 100…0, at every place."""
    pairs = []
    for places in range(1, 11):
        low = SAMPLES.randrange(10**places)
        high = SAMPLES.randrange(10 ** (10 - places)) * 10**places
        other = SAMPLES.randrange(10 ** (10 - places)) * 10**places
        pairs += [(high + low, other + 10**places - 1 - low), (high + low, other)]
        if low:
            pairs.append((high + low, other + 10**places - low))
    return pairs


def test_the_adder_is_right_where_a_carry_hangs_on_the_last_digit() -> None:
    pairs = [*chains(), (0, 0), (10**10 - 1, 10**10 - 1), (10**10 - 1, 0), (10**10 - 1, 1)]
    texts = [sum_text(a, b) for a, b in pairs]
    assert said(opened("adder"), texts, 11) == [tuple(f"{a + b:011}") for a, b in pairs]


def test_the_coarse_adder_is_wrong_there_alone() -> None:
    coarse = opened("adder-coarse")
    pairs = [(SAMPLES.randrange(10**10), SAMPLES.randrange(10**10)) for _ in range(20)]
    assert said(coarse, [sum_text(*pair) for pair in pairs], 11) == [
        tuple(f"{sum(pair):011}") for pair in pairs
    ]
    text = sum_text(1234567890, 9999999999 - 1234567890)
    assert said(coarse, [text], 11) != [tuple("09999999999")]


def test_the_adder_knows_its_sums_exactly() -> None:
    text = sum_text(2718281828, 7281718172)
    trace = byhand.trace(opened("adder"), " ".join(text), numbers="exact")
    assert trace["block.0.attn.add"][21:, 1].tolist() == [0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 10]
    assert trace["block.0.attn.add"][21:, 2].tolist() == [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]
    assert trace["block.2.mlp.add"][21:, 1].tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]


# ---------------------------------------------------------------------- one token each


def balance(text: Sequence[str]) -> str:
    depth = 0
    for bracket in text:
        depth += 1 if bracket == "(" else -1
        if depth < 0:
            return "bad"
    return "bad" if depth else "ok"


def parity(bits: Sequence[str]) -> str:
    return "odd" if bits.count("1") % 2 else "even"


def repeated(text: Sequence[str]) -> str:
    """What came after the last token the last time; the token itself where it is new."""
    before = [place for place, token in enumerate(text[:-1]) if token == text[-1]]
    return text[before[-1] + 1] if before else text[-1]


def drawn(tokens: str, lengths: Iterable[int]) -> list[Words]:
    return [tuple(SAMPLES.choices(tokens, k=length)) for length in lengths]


CASES: dict[str, tuple[Callable[[Sequence[str]], str], list[Words]]] = {
    "brackets": (
        balance,
        [
            *(text for length in range(1, 6) for text in product("()", repeat=length)),
            *map(tuple, ("()" * 7 + ")(", "(" * 8 + ")" * 8, "(" * 7 + ")" * 7 + ")(", "()" * 8)),
            *drawn("()", [14, 15, 16] * 10),
        ],
    ),
    "parity": (parity, list(product("01", repeat=8))),
    "induction": (
        repeated,
        [
            *(text for length in range(1, 4) for text in product("abcd", repeat=length)),
            *map(tuple, ("abccccccca", "abbbbbbbba", "aabcbcbcda", "dcbaaaaaad", "aaaaaaaaaa")),
            *drawn("abcd", [6, 8, 10] * 15),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_machine_says_what_its_rule_says(name: str) -> None:
    rule, texts = CASES[name]
    assert said(opened(name), texts) == [(rule(text),) for text in texts]


def test_the_sorter_sorts() -> None:
    lists = [*drawn("0123", [5] * 40), *(tuple(digit * 5) for digit in "0123"), tuple("32100")]
    texts = [(*numbers, ">", *sorted(numbers)[:-1]) for numbers in lists]
    assert said(opened("sorter"), texts, 5) == [tuple(sorted(numbers)) for numbers in lists]


# ---------------------------------------------------------------------- proofs

# The texts of each property, or as many of them as a test has time for; the fault shows in them.
FEWER: dict[str, Any] = {
    "adder": {
        "pattern": "7 9 9 9 9 9 9 9 {a1} {a0} + 2 0 0 0 0 0 0 0 {b1} {b0} =",
        "where": {"a0..a1": "0..9", "s0..s1": "0..18", "b0..b1": "s - a in 0..9"},
    },
    "thermometer": "(?<sign>[+ -]) (?<degrees>[0 1] [0 9] [0 9])",
    "majority": {"up to": "6"},
    "induction": "a [b c]{8} a",
    "sorter": "[0 3]{5} >",
    "brackets": {
        "pattern": r"(?<steps>(\( \)){4} [\( \)]{8})",
        "spelling": {"1": "(", "-1": ")"},
    },
    "minigpt": "<en> yesterday I work -ed =",
}


def claimed(machine: Machine) -> dict[str, Any]:
    """A property as a table, with fewer texts where there are many."""
    tree: dict[str, Any] = yaml.load(machine.claimed.read_text("utf-8"), yaml.BaseLoader)
    if machine.name == "adder":
        tree["claim"] = {"continuation": "digits(9999999900 + number(s[::-1]), 11)"}
    if machine.name == "minigpt":
        program = (EXAMPLES / "verbs.py").read_text("utf-8")
        tree["claim"] = {"continuation": {"file": "verbs.py", "content": program}}
    return {**tree, "texts": FEWER.get(machine.name, tree["texts"])}


@pytest.mark.parametrize("machine", MACHINES, ids=lambda one: one.name)
def test_a_property_is_proven_and_its_certificate_accepted(machine: Machine) -> None:
    found = prove(read_property(claimed(machine), machine.opened()))
    assert found.answer == "proven", found.why
    assert byhand.verify(machine.opened(), found, claimed(machine)).reasons == ()


@pytest.mark.parametrize("machine", MACHINES, ids=lambda one: one.name)
def test_a_planted_fault_has_a_counterexample(machine: Machine) -> None:
    faulty = machine.fault.planted(machine.opened())
    found = prove(read_property(claimed(machine), faulty))
    assert found.counterexample is not None, found.why
    assert confirmed(faulty, found.counterexample)


def test_the_coarse_adder_is_refuted() -> None:
    coarse = opened("adder-coarse")
    found = prove(read_property(EXAMPLES / "adder.property.yaml", coarse)).counterexample
    assert found is not None
    assert confirmed(coarse, found)


def test_the_property_of_minigpt_is_about_its_whole_corpus() -> None:
    goals = read_property(EXAMPLES / "minigpt.property.yaml").goals
    asked = set()
    for goal in goals:
        assert goal.shape.whole is not None
        assert isinstance(goal.claim, Next)
        for assigned in goal.shape.whole.assignments():
            asked.add((goal.shape.whole.text(assigned), goal.claim.answers.at(assigned)))
    corpus = [*questions("train"), *questions("validation")]
    assert len(corpus) == 432
    assert asked == {
        ((*one.prompt, *one.answer[:place]), (token,))
        for one in corpus
        for place, token in enumerate(one.answer)
    }
