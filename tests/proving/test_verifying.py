"""The checker: its own pass, its own regions, and nothing accepted that is not so."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from benchmarks.certificates import mutants, rejected, sealed
from flint import arb, ctx
from random_properties import random_property
from small_adder import adder, sums

import byhand
from byhand.files import parse_model
from byhand.files.making import make_model
from byhand.model import Model
from byhand.proving import certificates
from byhand.proving.certificates import certificate
from byhand.proving.domain import Place, Shape, Variable, Varies, Whole
from byhand.proving.properties import Property, read_property
from byhand.proving.search import cases, prove
from byhand.tokens import Ids
from byhand.verifying import claims, verify
from byhand.verifying.areas import Area, Span
from byhand.verifying.network import Network
from byhand.verifying.numbers import ACTIVATIONS, EXP, INVERSE, SQUARE, Form, ends
from oracles.architectures import at_random, make_case

EXAMPLES = Path("docs/examples")


def said(property: Property, tree: Mapping[str, Any]) -> dict[str, Any]:
    """A certificate with one goal, made up, with the right digests."""
    count = Area(
        property.goals[0].shape, {one.name: one.values for one in property.goals[0].shape.variables}
    ).texts
    others = certificates.others_of(property)
    found = {
        "format": certificates.FORMAT,
        "model": {"name": "", "digest": certificates.model_digest(property.own)},
        "property": certificates.as_json(property.source),
        "answer": "proven",
        "goals": [{"texts": str(count), "tree": tree}],
    }
    if others:
        digests = [certificates.model_digest(one) for one in others]
        found["others"] = [{"name": "", "digest": digest} for digest in digests]
    return sealed(found)


# ----------------------------------------------------------------------- numbers


def test_a_line_holds_the_function_over_all_its_letters() -> None:
    random = Random(1)
    with ctx.workprec(128):
        for bend in (
            EXP,
            SQUARE,
            INVERSE,
            *(f for name, f in ACTIVATIONS.items() if name != "identity"),
        ):
            for _case in range(40):
                centre, far = arb(random.uniform(-3, 3)), arb(random.choice((1e-6, 0.1, 2)))
                if bend is INVERSE:
                    centre = far + abs(centre) + 0.1
                found = bend(Form(centre, {"x": far}))
                for letter in (-1, -0.5, 0.25, 1):
                    at = found if isinstance(found, arb) else found.centre + sum(
                        one * letter for one in found.letters.values())  # fmt: skip
                    assert at.contains(bend(centre + far * letter).mid()), (bend, centre, far)


def test_products_of_forms_hold_what_letters_make() -> None:
    one, two = Form(arb(2), {"x": arb(1), "y": arb(0.5)}), Form(arb(-1), {"x": arb(0.25)})
    found = one * two - one + 3
    for x, y in product((-1, 0, 0.5, 1), repeat=2):
        at = found.centre + found.letters["x"] * x + found.letters["y"] * y
        a, b = 2 + x + 0.5 * y, -1 + 0.25 * x
        assert at.contains(arb(a * b - a + 3))
    assert one - one != 0
    assert [float(end) for end in ends(one - one)] == [0, 0]  # what they share cancels


# ----------------------------------------------------------------------- the pass


@pytest.mark.parametrize("seed", range(0, 40))
def test_its_pass_gives_the_logits_of_byhand(seed: int) -> None:
    """Random architectures, which between them have every option."""
    case = make_case(at_random(Random(seed)), seed)
    model = Model(case.spec, case.weights, Ids(case.spec.vocab))
    trace = byhand.trace(model, " ".join(map(str, case.tokens)), digits=15, only=["logits"])
    with ctx.workprec(128):
        (row,) = Network(model).texts([case.tokens])
    for id, logit in enumerate(row):
        true = trace["logits"].value[len(case.tokens) - 1][id]
        assert logit.rad() < 1e-25
        assert abs(float(logit.mid()) - float(true)) <= 1e-12 * max(1, abs(float(true)))


@pytest.mark.parametrize("seed", range(0, 12))
def test_a_pass_of_an_area_holds_the_logits_of_its_texts(seed: int) -> None:
    case = make_case(at_random(Random(seed)), seed)
    model = Model(case.spec, case.weights, Ids(case.spec.vocab))
    ids = {number: number for number in range(case.spec.vocab)}
    variables = (Variable("a", tuple(ids)), Variable("b", tuple(ids)))
    places = [Place(Whole(0, (("a", 1),)), ids), Place(Whole(0, (("b", 1),)), ids),
              Place(Whole(0, (("a", 1),)), ids)]  # fmt: skip
    shape = Shape(tuple(places[: len(case.tokens)]), variables)
    area = Area(shape, {"a": tuple(ids), "b": tuple(ids)[-2:]})
    with ctx.workprec(128):
        network = Network(model)
        (wide,) = network.area(area)
        for one in area.assignments():
            (row,) = network.texts([tuple(place.value.at(one) for place in shape.places)])
            for form, true in zip(wide, row, strict=True):
                low, high = ends(form)
                assert not low > true.upper()
                assert not high < true.lower()


def test_rows_beside_a_line_are_held_at_their_own_number() -> None:
    """Rows 0, 1, 4 by number 0, 1, 2: at 1 a line alone would say 2."""
    spec = {"d_model": 2, "layers": 0}
    model = make_model(spec, {"embed.token": [[0, 0], [1, 3], [4, 6]]}, ["a", "b", "c"])
    place = Place(Whole(0, (("v", 1),)), {0: 0, 1: 1, 2: 2})
    area = Area(Shape((place,)), {"v": (0, 1, 2)})
    network = Network(model)
    (token,) = [network._held(area, place)]
    for letter, true in ((-1, (0, 0)), (0, (1, 3)), (1, (4, 6))):
        for form, entry in zip(token, true, strict=True):
            rest = {key: far for key, far in form.letters.items() if key != "v"}
            low, high = ends(Form(form.centre + form.letters["v"] * letter, rest))
            assert low <= entry <= high
    assert set(token[0].letters) == {"v", (0, 0)}
    assert set(token[1].letters) == {"v"}  # on a line: nothing beside it


VOTE = """
vocabulary: [a, b, e]
model: {d_model: 2, layers: 1, attention: {heads: 1}, mlp: none, head: {tied: false}}
weights:
  embed.token: [[ONE, 0], [0, ONE], [0, 0]]
  block.0.attn.q: zeros
  block.0.attn.k: zeros
  block.0.attn.v: identity
  block.0.attn.out: identity
  head: [[1, 0, -9], [0, 1, -9]]
"""


@pytest.mark.parametrize(("one", "accepted"), [("1/7", True), ("√2", False)])
def test_a_tie_of_rational_numbers_is_decided_and_no_other(one: str, accepted: bool) -> None:
    """A vote for each: the lower id wins, exactly; with roots as weights the checker cannot say."""
    model = parse_model(VOTE.replace("ONE", one), "vote.yaml")
    property = read_property({"texts": {"list": ["a b e"]}, "claim": {"next": "a"}}, model)
    found = verify(model, certificate(prove(property)), property)
    assert found.accepted is accepted
    assert accepted or "cannot be decided" in found.reasons[0]
    wrong = read_property({"texts": {"list": ["a b e"]}, "claim": {"next": "b"}}, model)
    assert not verify(model, said(wrong, {"by": "each", "texts": 1}), wrong).accepted


# ----------------------------------------------------------------------- regions


def test_narrowing_drops_no_text_and_cuts_cover_all() -> None:
    random = Random(3)
    for _round in range(60):
        names = ["a", "b", "c"]
        values = {
            n: tuple(sorted(random.sample(range(-3, 7), random.randint(1, 5)))) for n in names
        }
        places = tuple(
            Place(
                Whole(random.randint(-2, 2), tuple((n, random.choice((-2, -1, 1, 2)))
                      for n in random.sample(names, random.randint(1, 2)))),
                dict.fromkeys(random.sample(range(-6, 12), 9), 0),
            ) for _place in range(2)
        )  # fmt: skip
        shape = Shape(places, (), (Whole(2, (("a", 1), ("c", -1))),))
        plain = [
            one
            for combination in product(*values.values())
            for one in [dict(zip(names, combination, strict=True))]
            if all(place.value.at(one) in place.tokens for place in places)
            and 2 + one["a"] - one["c"] >= 0
        ]
        area = Area(shape, values)
        assert list(area.assignments()) == plain
        assert area.texts == len(plain)
        name = random.choice(names)
        parts = area.cut(name, set(random.sample(range(-3, 7), 4)))
        assert sorted(map(str, plain)) == sorted(
            str(one) for part in parts for one in part.assignments()
        )


def test_whole_numbers_of_an_area_are_right_for_every_text() -> None:
    random, decided = Random(5), 0
    functions = [
        lambda a, b, c: (a + b) % 7,
        lambda a, b, c: (10 * a + b) // 10,
        lambda a, b, c: (100 * a + 10 * b + c) // 10 % 10,
        lambda a, b, c: a - b if a > b else b - a,
        lambda a, b, c: [a, b, c][0] * 3 - a,
        lambda a, b, c: abs(a - c) >= 2,
        lambda a, b, c: (a * b + c) // 50,
        lambda a, b, c: a == b,
        lambda a, b, c: (a + 1) * 2 != c,
        lambda a, b, c: divmod(3 * a - b, 4)[1] + (c < 12),
    ]
    for _round in range(600):
        starts = {n: random.randint(0, 7) for n in "abc"}
        allowed = {n: tuple(range(at, at + random.randint(1, 3))) for n, at in starts.items()}
        area, function = Area(Shape(()), allowed), random.choice(functions)
        truths = [function(**one) for one in area.assignments()]
        try:
            found = function(**area.variables)
        except Varies:
            continue
        decided += 1
        if isinstance(found, Span):
            low, high = found.ends
            assert all(low <= truth <= high for truth in truths)
            assert set(truths) <= set(found.among(range(-100, 100)))
            if found.linear is not None:
                assert truths == [
                    found.low + sum(f * one[n] for n, f in found.factors.items())
                    for one in area.assignments()
                ]
        else:
            assert {found} == set(truths)
    assert decided > 300


def test_a_number_is_no_word_and_neither_more_nor_less_than_one() -> None:
    number = Area(Shape(()), {"a": (1, 2)}).variables["a"]
    assert not number == "1"  # noqa: SIM201
    assert number != "1"
    with pytest.raises(TypeError):
        number < "1"  # noqa: B015
    for one in (int, str, hash, range, lambda a: [3, 4, 5][a], lambda a: 7 // a, lambda a: a == 1):
        with pytest.raises(Varies):
            one(number)


# ----------------------------------------------------------------------- certificates


@pytest.mark.parametrize("fewest", [1, 64], ids=["letters", "one by one"])
def test_random_proofs_are_accepted_and_false_ones_rejected(
    fewest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What plain traces refute is never accepted; what is proven is, ties of roots left out."""
    monkeypatch.setattr(cases, "FEWEST", fewest)
    seen = Counter[tuple[str, bool]]()
    for seed in range(212, 224):
        property, failing = random_property(seed)
        outcome = prove(property)
        if failing:
            count = property.goals[0].shape.whole.texts
            found = verify(property.own, said(property, {"by": "each", "texts": count}), property)
        else:
            found = verify(property.own, certificate(outcome), property)
        seen[outcome.answer, found.accepted] += 1
    assert seen["refuted", True] == 0
    assert seen["refuted", False] >= 3
    assert seen["proven", True] >= 6
    assert seen["proven", False] == 0


def test_an_adder_is_verified_by_letters_for_all_its_sums() -> None:
    property = sums(2)
    tree = certificate(prove(property))
    found = verify(property.own, tree, property)
    assert (found.accepted, found.texts) == (True, 10**4)
    assert found.leaves == sum(
        "by" in n for g in tree["goals"] for n in certificates.nodes(g["tree"])
    )


def test_an_adder_whose_steps_are_too_wide_is_rejected() -> None:
    """The certificate of the right adder is sealed with the digest of the wrong one."""
    right, wrong = sums(2), adder(2, Fraction(1, 50))
    tree = certificate(prove(right))
    forged = sealed(tree, model={"name": "adder", "digest": certificates.model_digest(wrong)})
    found = verify(wrong, forged)
    assert not found.accepted
    assert found.reasons[0].startswith("goals[")


def test_a_case_that_the_prover_did_not_cut_is_cut_by_the_checker() -> None:
    """All sums of one digit are one case: too wide for one pass, so the checker cuts it."""
    property = sums(1)
    first = replace(property, goals=property.goals[:1], source={})
    few = {"cut": "s0", "first": list(range(10)), "parts": [
        {"by": "letters", "next": ["0"], "lead": "0.5"},
        {"by": "letters", "next": ["1"], "lead": "0.5"}]}  # fmt: skip
    assert verify(first.own, said(first, few), first).accepted
    whole = {"by": "letters", "next": ["0"], "lead": "0.5"}
    found = verify(first.own, said(first, whole), first)
    assert found.reasons == ("goals[0].tree: the certificate says 0, the property asks for 1",)


def test_a_certificate_is_about_the_property_that_is_asked_for() -> None:
    property = read_property(EXAMPLES / "clock.property.yaml")
    tree = certificate(prove(property))
    other = read_property(
        {**property.source, "claim": {"next": {"sum": {"modulo": 8}}}}, property.own
    )
    assert verify(property.own, tree).accepted
    assert verify(property.own, tree, property).accepted
    assert verify(property.own, tree, other).reasons == (
        "the certificate is about another property",
    )


@pytest.mark.parametrize("name", ["clock", "parity", "abc"])
def test_every_mutant_is_rejected(name: str) -> None:
    """benchmarks/certificates.py does the same with all examples."""
    property = read_property(EXAMPLES / f"{name}.property.yaml")
    tree = json.loads(json.dumps(certificate(prove(property))))
    assert verify(property.own, tree).accepted
    count = 0
    for what, model, mutant in mutants(property.own, tree):
        assert rejected(model, mutant), what
        count += 1
    assert count > 50


def test_a_weaker_bound_is_true_and_accepted_with_a_digest_of_its_own() -> None:
    property = read_property(EXAMPLES / "clock.property.yaml")
    tree = certificate(prove(property))
    tree["goals"][0]["tree"]["lead"] = "0.1"
    assert verify(property.own, sealed(tree)).accepted
    assert verify(property.own, tree).reasons == ("the digest is not that of this certificate",)


def test_two_processes_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    property = read_property(EXAMPLES / "clock.property.yaml")
    tree = certificate(prove(property))
    told: list[tuple[int, int]] = []
    found = verify(property.own, tree, jobs=2, progress=lambda *done: told.append(done))
    assert (found.accepted, found.texts, told) == (True, 49, [(1, 1)])


def test_bounds_of_attention_are_checked_and_others_are_not() -> None:
    model = byhand.open_model("tiny")
    for claim, reasons in (
        ({"at": "block.0.attn.weights[0,-1,0]", "at least": "1/100"}, ()),
        ({"at": "block.0.attn.scores[0,-1,0]", "at least": "-100"}, ("are not checked",)),
    ):
        property = read_property({"texts": {"up to": 2}, "claim": claim}, model)
        found = verify(model, certificate(prove(property)))
        assert len(found.reasons) == len(reasons)
        assert all(one in found.reasons[0] for one in reasons)


@pytest.mark.parametrize(
    ("moves", "further"),
    [
        ({"weights": {"printed": 4}}, {"weights": {"printed": 1}}),
        ({"embeddings": {"within": "1/10000"}}, {"embeddings": {"within": 1}}),
    ],
    ids=["weights", "embeddings"],
)
def test_ranges_of_weights_and_embeddings_are_letters_of_its_own(
    moves: dict[str, Any], further: dict[str, Any]
) -> None:
    """The same certificate sealed for wider ranges is false, and rejected."""
    tree = {"texts": {"list": ["AB", "CCA"]}, "claim": {"unmoved": "true"}, **moves}
    property = read_property(tree, "abc")
    proof = certificate(prove(property))
    assert verify(property.own, proof).accepted
    forged = sealed(proof, property={**proof["property"], **further})
    assert not verify(property.own, forged).accepted


def test_what_cannot_be_decided_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "FEW", 0)
    monkeypatch.setattr(claims, "MOST_CUTS", 2)
    property = read_property(EXAMPLES / "clock.property.yaml")
    tree = said(property, {"by": "letters", "next": ["0"]})
    assert "cannot be decided" in verify(property.own, tree, property).reasons[0]
