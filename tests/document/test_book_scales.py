"""Books of other models: every architecture, larger ones, what is asked for, and the numbers."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from budgets import LONG
from byhand.document.book import Book, Passage
from byhand.document.compose.book import STEP_PAGES, bind, strips
from byhand.document.compose.book.topics import kind_of
from byhand.document.numerals import in_full, localised
from byhand.document.parts import (
    AttentionPattern,
    Grid,
    HeatStrip,
    LeftOut,
    NumberTable,
)
from byhand.editions import make_book, make_edition
from byhand.errors import AddressError
from byhand.language import speaking, spoken
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from byhand.parameters import parameters
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec
from byhand.tokens import Vocabulary
from byhand.weights import Tensor, Weights
from oracles.architectures import Case, nasty, spread

WORDS = ("a", "b", "c")
SIX_LAYERS = 6


def model_of(case: Case) -> tuple[Model, str, str]:
    """The model of a case, its text and its target."""
    words = WORDS[: case.spec.vocab]
    model = Model(case.spec, case.weights, Vocabulary(words, "words"))
    return model, " ".join(words[id] for id in case.tokens), words[case.target]


def large_model() -> Model:
    """Six blocks of width 72 with random floats: more than 200,000 parameters."""
    norm = NormSpec(eps=Fraction(1, 100000))
    block = BlockSpec(AttentionSpec(6, 12, 6), MlpSpec(144, "gelu"), attn_norm=norm, mlp_norm=norm)
    spec = ModelSpec("large", 40, 72, 16, (block,) * SIX_LAYERS, final_norm=norm)
    random = np.random.default_rng(7)
    weights = {
        p.name: Tensor(p.name, random.normal(0, 0.1, p.shape).astype(np.float32))
        for p in parameters(spec)
    }
    words = tuple(f"w{place}" for place in range(40))
    return Model(spec, Weights(weights), Vocabulary(words, "words"), text="w1 w2 w3")


@pytest.fixture(scope="module")
def large() -> Book:
    return make_book(large_model(), at=["block.2.mlp.act[1,:3]"])


def passage_of(book: Book, id: str) -> Passage:
    return next(passage for passage in book.passages if passage.id == id)


# ------------------------------------------------------------------ every architecture


@pytest.mark.parametrize("entry", [None, nasty], ids=["ordinary", "nasty"])
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "floats"])
def test_every_architecture_has_a_book_that_lights_each_step_once(entry, exact) -> None:  # type: ignore[no-untyped-def]
    wishes = {"first position": 0, "extra mask": False}
    for case in spread(12 if LONG else 3, seed=3, wishes=wishes, entry=entry):
        model, text, target = model_of(case)
        numbers = Exact() if exact else Floats("float64")
        edition = make_edition(model, text, target=target, numbers=numbers)
        book = bind(edition, "en")
        steps = Counter(step.address for step in edition.trace.plan)
        for slugs in (("whole",), STEP_PAGES):
            pages = [page for page in book.pages if page.slug in slugs]
            lit = Counter(s for page in pages for p in page.passages for s in p.lit)
            assert lit == steps, case
        assert len({p.id for p in book.passages}) == len(list(book.passages)), case


def test_a_step_that_no_passage_tells_is_an_error_and_not_left_out() -> None:
    with pytest.raises(LookupError):
        kind_of("block.0.attn.unheard_of")


# ------------------------------------------------------------------ a larger model


def test_a_large_model_is_told_by_shapes_statistics_and_some_numbers(large: Book) -> None:
    assert large.scale == "large"
    assert not any(isinstance(part, HeatStrip) for p in large.passages for part in p.show)
    scores = passage_of(large, "attention-0-attn-scores")
    kinds = [type(part) for part in scores.show]
    assert Grid in kinds
    assert NumberTable in kinds
    assert LeftOut in kinds
    shapes = passage_of(large, "parameters-shapes").show[0]
    assert isinstance(shapes, Grid)
    assert f"`block.0.attn.scores` × {SIX_LAYERS}" in [row[0] for row in shapes.rows]


def test_a_large_model_says_what_it_leaves_out(large: Book) -> None:
    between = passage_of(large, "attention-blocks-1-1")
    assert between.title == "Block 1"
    assert all(step.startswith("block.1.attn") for step in between.lit)
    told = next(part for part in between.show if isinstance(part, LeftOut))
    assert "left out" in told.text
    assert told.command.startswith("byhand book large --out book --at block.1.")


def test_statistics_are_those_of_the_tensor() -> None:
    edition = make_edition(large_model())
    worked = edition.trace.steps["block.0.mlp.hidden"]
    found = strips.statistics([(worked.address, strips.near(worked))])
    assert found is not None
    ((address, _shape, least, greatest, mean, _deviation, zeros, largest),) = found.rows
    assert (address, zeros) == (worked.address, str((worked.array == 0).sum()))
    known = (worked.array.min(), worked.array.max(), worked.array.mean())
    assert [float(x) for x in (least, greatest, mean)] == pytest.approx(known, rel=5e-3)
    assert abs(edition.trace[largest]) == np.abs(worked.array).max()


def test_what_is_asked_for_is_shown_with_its_working(large: Book) -> None:
    here = passage_of(large, "block-2-mlp-act")
    table = next(p for p in here.show if isinstance(p, NumberTable) and p.title == "asked for")
    assert [row.label for row in table.rows] == [f"block.2.mlp.act[1,{i}]" for i in range(3)]
    assert all(row.numbers[0].working is not None for row in table.rows)


def test_an_address_that_stands_for_nothing_is_refused_before_a_book_is_made() -> None:
    with pytest.raises(AddressError, match="no step"):
        make_edition("tiny", at=["block.7.attn.q"])


def test_a_long_text_on_a_small_model_is_no_longer_shown_whole() -> None:
    model = open_model("abc")
    assert make_edition(model, "A").scale == "pencil"
    edition = make_edition(large_model())
    assert (edition.scale, edition.layers_shown) == ("large", (0, SIX_LAYERS - 1))


# ------------------------------------------------------------------ colours


def test_a_tensor_that_is_too_large_is_pooled_by_the_entry_furthest_from_0() -> None:
    values = np.zeros((600, 3))
    values[7, 1], values[599, 2], values[0:3, 0] = -5.0, 2.0, np.nan
    by = strips.pooling(values.shape)
    assert by == (3, 1)
    pooled = strips.pool(values, by)
    assert pooled.shape == (200, 3)
    assert (pooled[2, 1], pooled[199, 2]) == (-5.0, 2.0)
    assert np.isnan(pooled[0, 0])
    assert pooled[1, 0] == 0.0


def test_masked_shares_are_no_numbers_in_a_pattern() -> None:
    book = make_book("minigpt")
    parts = passage_of(book, "attention-1-attn-weights").show
    pattern = next(part for part in parts if isinstance(part, AttentionPattern))
    assert len(pattern.patterns) == 4
    for head in pattern.patterns:
        hidden = np.isnan(head.values)
        assert hidden.sum() == 28
        assert not hidden[np.tril_indices(8)].any()
        np.testing.assert_allclose(np.nansum(head.values, axis=1), 1, atol=1e-5)


# ------------------------------------------------------------------ numbers, claims, languages


def test_other_numbers_can_be_asked_for() -> None:
    book = make_book("tiny", numbers=Pencil(2))
    assert book.numbers == "every line rounded to 2 decimals"
    assert [name for name, _about in book.registers] == ["rounded"]
    table = next(p for p in passage_of(book, "next-probs").show if isinstance(p, NumberTable))
    assert [n.cell.decimal for n in table.rows[1].numbers] == ["0.67", "0.09", "0.24"]


def test_claims_are_told_where_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "homework.yaml"
    file.write_text("claims:\n  block.0.attn.weights[0,1]: [0.269, 0.713]\n")
    book = make_book("tiny", claims=[file])
    told = [r for r in passage_of(book, "attention-0-attn-weights").remarks if r.kind == "claim"]
    assert told[0].text.startswith("homework.yaml:2 prints (0.269, 0.713) for")
    assert "0.713 for 0.731" in told[0].text  # the suspect
    assert book.claims_checked == "homework.yaml"


def test_a_built_in_document_is_checked_on_its_own_text_alone() -> None:
    assert make_book("journey").claims_checked == "The document behind this model"
    assert make_book("journey", "the dog").claims_checked == ""
    assert make_book("journey", claims=()).claims == ()


def test_a_model_file_that_has_a_built_in_s_name_is_not_that_model(tmp_path: Path) -> None:
    source = Path(str(open_model("journey").source)).read_text()
    (tmp_path / "journey.yaml").write_text(source)
    assert make_book(tmp_path / "journey.yaml").claims_checked == ""


def test_a_book_is_made_in_its_language_and_leaves_the_one_spoken() -> None:
    before = spoken()
    with speaking("es") as language:
        assert language == "es"
    assert make_book("tiny", language="es").language == "es"
    assert spoken() == before == "en"


def test_a_fraction_is_said_in_decimals_only_where_they_say_it_in_full() -> None:
    assert in_full(Fraction(-1, 5)) == "-0.2"
    assert in_full(Fraction(1, 3)) is None
    assert in_full(Fraction(1, 10**7)) is None
    assert localised("-0.25") == "−0.25"
