"""The workings that a page carries: worked out in floats, they give the numbers of the trace."""

from __future__ import annotations

import json
import math

import pytest

import byhand
from byhand.document.media.html.rechecking import Workings, data_script, numbers_in, slack_of
from byhand.editions import make_book

TWO = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": lambda a, b: a**b,
}
ONE = {
    "neg": lambda a: -a,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "ln": math.log,
    "relu": lambda a: max(a, 0.0),
    "step": lambda a: float(a > 0),
    "erf": math.erf,
    "tanh": math.tanh,
}


def worth(lines: list[tuple[str, str]], place: int, known: dict[int, float]) -> float:
    """A working in postfix, in plain floats."""
    if place not in known:
        stack: list[float] = []
        for token in lines[place][1].split():
            if token in TWO:
                b, a = stack.pop(), stack.pop()
                stack.append(TWO[token](a, b))
            elif token in ONE:
                stack.append(ONE[token](stack.pop()))
            elif token.startswith("@"):
                stack.append(worth(lines, int(token[1:]), known))
            else:
                stack.append({"e": math.e, "pi": math.pi}.get(token) or float(token.lstrip("~")))
        (known[place],) = stack
    return known[place]


@pytest.mark.parametrize("model", ["tiny", "journey", "abc"])
def test_the_workings_of_every_page_give_the_numbers_of_the_trace(model: str) -> None:
    book, trace = make_book(model), byhand.trace(model)
    workings, seen = Workings(book), 0
    for page in book.pages:
        lines, known = workings.of(page), {}
        for place, (address, _text) in enumerate(lines):
            step, _bracket, index = address.rstrip("]").partition("[")
            if step.startswith("weight.") or step not in trace.plan.known:
                continue
            worked = trace.steps[trace.plan[step].address]
            if worked.whole:
                continue
            entry = worked.at(tuple(map(int, index.split(","))) if index else ())
            assert worth(lines, place, known) == pytest.approx(
                float(entry.decimal(12)), rel=1e-9, abs=1e-9
            ), address
            seen += 1
    assert seen > 150


def test_a_working_starts_from_the_weights_and_not_from_rounded_lines() -> None:
    book = make_book("journey")
    lines = Workings(book).of(book.page("next"))
    addresses = {address for address, _text in lines}
    assert "block.0.attn.out[3,0]" in addresses  # not on this page, but where its numbers come from
    assert not any("~" in text for _address, text in lines)


def test_a_number_that_only_its_decimals_tell_is_not_called_checked() -> None:
    book = make_book("minigpt")
    workings = Workings(book)
    for page in book.pages:
        with_working = {n.address for n in numbers_in(page) if n.working or n.cell.form}
        assert {address for address, _text in workings.of(page)} <= with_working


def test_the_data_cannot_end_the_script_they_stand_in() -> None:
    text = data_script([("</script>", "1")], 1e-12)
    assert text.count("</script>") == 1
    assert json.loads(text.partition(">")[2].partition("</script>")[0])["lines"] == [
        ["</script>", "1"]
    ]


def test_floats_may_round_at_every_operation_and_exact_numbers_may_not() -> None:
    assert slack_of("float32, with its roundings") == 1e-6
    assert slack_of("bfloat16, with its roundings") == 1e-2
    assert slack_of("exact where it can be, named where it can't") == 1e-12
