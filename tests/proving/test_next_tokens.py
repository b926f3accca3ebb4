"""The next token after every text is the one that a trace of the text gives."""

from __future__ import annotations

from time import monotonic

import pytest

import byhand
from byhand.proving.properties import simple
from byhand.proving.search.next_tokens import next_tokens


@pytest.mark.parametrize(("name", "length"), [("tiny", 2), ("abc", 3), ("journey", 2)])
def test_every_text_has_the_token_of_its_trace(name: str, length: int) -> None:
    model = byhand.open_model(name)
    (goal,) = simple(model, length=length, constant=True).goals
    assert goal.shape.whole is not None
    found = list(next_tokens(model, goal.shape.whole, until=monotonic() + 60))
    assert len(found) == len(model.vocabulary) ** length
    assert [one.tokens for one in found] == sorted(one.tokens for one in found)
    for one in found[:: max(1, len(found) // 12)]:
        trace = byhand.trace(model, model.vocabulary.decode(one.tokens), digits=6)
        assert trace.next is not None
        assert trace.next[-1].id == one.next


def test_what_enclosures_leave_open_is_undecided_when_time_is_up() -> None:
    """Two tokens with the logits √2·√3 and √6: only algebra shows that they tie."""
    model = byhand.make_model(
        {"d_model": 1, "layers": 0, "head": {"tied": False}},
        {"embed.token": [["sqrt(2)"], ["sqrt(2)"]], "head": [["sqrt(3)", "sqrt(6)/sqrt(2)"]]},
        vocabulary=["a", "b"],
    )
    (goal,) = simple(model, length=1, constant=True).goals
    assert goal.shape.whole is not None
    in_time = next_tokens(model, goal.shape.whole, until=monotonic() + 60)
    assert [one.next for one in in_time] == [0, 0]
    too_late = next_tokens(model, goal.shape.whole, until=0.0)
    assert [one.next for one in too_late] == [None, None]
