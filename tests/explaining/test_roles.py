"""What a head is for is said where its weights carry it, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import byhand
from byhand.document.compose.book.head_stories import stories
from byhand.document.parts import Finding, Remark
from byhand.explaining.roles import head_roles, role_of
from byhand.language import speaking

TOKENS = (0, 1, 2, 0, 1, 2, 0, 1)


def planted(wanted: dict[int, int], share: float = 0.8) -> np.ndarray:
    """Causal weights that give `share` to one position of each row, and the rest evenly."""
    weights = np.full((8, 8), np.nan)
    for row in range(8):
        weights[row, : row + 1] = 1 / (row + 1)
        if row and row in wanted:
            weights[row, : row + 1] = (1 - share) / row
            weights[row, wanted[row]] = share
    return weights


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("before", {row: row - 1 for row in range(8)}),
        ("itself", {row: row for row in range(8)}),
        ("start", dict.fromkeys(range(8), 0)),
        ("same", {row: row - 3 for row in range(3, 8)}),
        ("after_same", {row: row - 2 for row in range(3, 8)}),
        ("one", dict.fromkeys(range(2, 8), 2)),
        ("even", {}),
    ],
)
def test_a_planted_role_is_found(kind: str, wanted: dict[int, int]) -> None:
    role = role_of(planted(wanted), TOKENS)
    assert role is not None
    assert role.kind == kind
    assert role.average == pytest.approx(0 if kind == "even" else 0.8, abs=0.02)
    assert role.key == (2 if kind == "one" else None)


def test_of_weights_without_a_rule_nothing_is_said() -> None:
    assert role_of(planted({1: 0, 2: 2, 3: 1, 4: 0, 5: 5, 6: 2, 7: 3}), TOKENS) is None
    assert role_of(planted({row: row - 1 for row in range(8)}, share=0.3), TOKENS) is None
    assert role_of(planted({1: 0, 2: 1})[:3, :3], TOKENS[:3]) is None  # two rows are no rule


def test_minigpt_tells_which_head_finds_the_subject_and_which_the_tense() -> None:
    found = byhand.explain("minigpt")
    with speaking("en"):
        told = stories(found, found.facts)
    said = {each.lead: each.told for each in told if isinstance(each, Finding)}
    tense, subject, *_rest = said
    assert "head 1 of block 0 looks at “-ed” (position 4) and “yesterday” (position 1)" in tense
    assert said[tense] == ("Checked: without it, “-e” comes in place of “-ió”.",)
    assert "head 2 of block 0 looks just before it, at “ella” (position 6)" in subject
    assert said[subject] == ("Checked: without it, “-imos” comes in place of “-ió”.",)
    assert isinstance(told[-1], Remark)
    assert len(head_roles(found.trace, 7)) == 8
    assert told[-1].text.startswith(f"Of {8 - len(said)} other heads")


def test_journeys_head_has_no_clear_place_so_no_story_is_made_up() -> None:
    found = byhand.explain("journey")
    assert stories(found, found.facts) == ()
