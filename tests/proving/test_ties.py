"""Ties of logits: the lowest id comes next, whichever way a text or a region is decided."""

import pytest

from byhand.files import parse_model
from byhand.proving.outcome import PROVEN, REFUTED
from byhand.proving.properties import read_property
from byhand.proving.search import cases, prove

# a and b have the same row of the head, and every logit of theirs is larger than that of c
TIED = """
vocabulary: [a, b, c]
model: {d_model: 2, layers: 0, head: {tied: false}}
weights:
  embed.token: [[1, 0], [1, 1], [1, 2]]
  head: [[1, 1, 0], [1, 1, 0]]
"""


@pytest.mark.parametrize("fewest", [1, 64], ids=["by letters", "one by one"])
@pytest.mark.parametrize(("token", "answer"), [("a", PROVEN), ("b", REFUTED)])
def test_the_lowest_id_of_a_tie_comes_next(
    token: str, answer: str, fewest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases.GoalWork, "_enumerable", lambda _self, region: region.box <= fewest)
    model = parse_model(TIED)
    found = prove(read_property({"texts": {"length": 2}, "claim": {"next": f"'{token}'"}}, model))
    assert found.answer == answer
