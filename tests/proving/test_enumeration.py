"""Enumeration: the texts of a region are all there, and each prefix is worked out once."""

from __future__ import annotations

import numpy as np
import pytest

import byhand
from byhand.models import open_model
from byhand.numbers.forms import ends
from byhand.proving.domain import Place, Region, Shape, Variable, Whole
from byhand.proving.search.enumeration import Enumeration
from byhand.proving.search.hulls import Embedding
from byhand.proving.search.region_passes import Weighed
from byhand.proving.search.text_tables import joined, sampled, texts_of

TOKENS = {number: number for number in range(3)}


def words(length: int) -> Region:
    """All texts of A, B and C of one length."""
    names = [f"t{place}" for place in range(length)]
    shape = Shape(
        tuple(Place(Whole(0, ((name, 1),)), TOKENS) for name in names),
        tuple(Variable(name, (0, 1, 2)) for name in names),
    )
    assert shape.whole is not None
    return shape.whole


def test_the_texts_of_a_region_are_those_of_its_assignments() -> None:
    shape = Shape(
        (
            Place(Whole(0, (("a", 1),)), {0: 5, 1: 4, 3: 6}),
            Place(Whole(1, (("a", -1), ("b", 2))), {0: 7, 1: 8, 4: 9}),
        ),
        (Variable("a", (0, 1, 2, 3)), Variable("b", (0, 1, 2))),
        (Whole(3, (("a", -1), ("b", -1))),),
    )
    region = Region(shape, {"a": (0, 1, 2, 3), "b": (0, 1, 2)})
    found = texts_of(region)
    assert sorted(map(tuple, found.tokens.tolist())) == sorted(
        map(region.text, region.assignments())
    )
    assert [region.text(found.assigned(k)) for k in range(len(found))] == list(
        map(tuple, found.tokens.tolist())
    )


@pytest.mark.parametrize("factor", [1, 10**30])
def test_conditions_are_met_however_large_their_factors_are(factor: int) -> None:
    shape = Shape(
        (Place(Whole(0, (("a", 1),)), TOKENS), Place(Whole(0, (("b", 1),)), TOKENS)),
        (Variable("a", (0, 1, 2)), Variable("b", (0, 1, 2))),
        (Whole(0, (("a", factor), ("b", -factor))),),
    )
    region = Region(shape, {"a": (0, 1, 2), "b": (0, 1, 2)})
    found = [tuple(row) for row in texts_of(region).tokens.tolist()]
    assert found == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]


def test_samples_are_texts_of_the_region() -> None:
    region = words(3).cut("t1", (1,))[0]
    assert region is not None
    found = sampled(region, 5)
    assert len(found) == 5
    assert (found.tokens[:, 1] == 1).all()


def test_every_logit_is_enclosed_and_each_prefix_worked_out_once() -> None:
    model = open_model("abc")
    enumeration = Enumeration(Weighed(model, Embedding(model)))
    texts = texts_of(words(3))
    (block,) = enumeration.logits(texts)
    low, high = ends(block.value)
    for text in (0, 7, 26):
        words_of = model.vocabulary.decode(texts.tokens[text].tolist())
        logits = np.asarray(byhand.trace(model, words_of)["logits"])[-1]
        case = block.nodes[text]
        assert (low[case] < logits).all()
        assert (logits < high[case]).all()
        assert (high[case] - low[case]).max() < 1e-11
    assert enumeration.passes == 3 + 9 + 27
    list(enumeration.logits(texts))  # its longest prefixes are known
    assert enumeration.passes == 3 + 9 + 27 + 27


def test_texts_of_several_regions_share_their_prefixes() -> None:
    one, other = words(3).cut("t2", (0,))
    assert one is not None
    assert other is not None
    texts, owners = joined([texts_of(one), texts_of(other)])
    assert texts.tokens.tolist() == texts_of(words(3)).tokens.tolist()
    assert owners.tolist() == [0, 1, 1] * 9
