"""Parts are plain data: whoever draws one, stores it or sends it on needs nothing of the pass."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from proof_samples import open_adder, proven_clock
from worksheet_samples import make_worksheet

import byhand
from byhand.document.compose import comparison, generation, marking, proof, trace
from byhand.document.compose.explanation import SECTIONS
from byhand.document.compose.explanation.sections import sections, title
from byhand.editions import make_book

HOMES = ("byhand.document.", "byhand.expression.")  # where the dataclasses of a part may live


def strangers(part: Any, place: str = "") -> Iterator[str]:
    """What is no plain data in a part: where it is, and its class."""
    place = place or type(part).__name__
    match part:
        case None | str() | bool() | int() | float() | Fraction():
            pass
        case np.ndarray() if part.dtype.kind in "fiub":
            pass
        case tuple() | list() | frozenset():
            for at, inner in enumerate(part):
                yield from strangers(inner, f"{place}[{at}]")
        case Mapping():
            for key, inner in part.items():
                yield from strangers(key, f"{place} key")
                yield from strangers(inner, f"{place}[{key!r}]")
        case _ if is_dataclass(part) and type(part).__module__.startswith(HOMES):
            for field in fields(part):
                yield from strangers(getattr(part, field.name), f"{place}.{field.name}")
        case _:
            yield f"{place}: {type(part).__module__}.{type(part).__qualname__}"


def explained(model: str, only: Sequence[str] = ()) -> tuple[Any, ...]:
    found = byhand.explain(model)
    return title(found), *sections(found, only, full=True)


def compared() -> tuple[Any, ...]:
    floats = byhand.trace("tiny", float="bfloat16")
    found = byhand.compare(floats, byhand.trace("tiny", digits=12))
    return tuple(comparison.cell_parts(found))


DOCUMENTS: dict[str, Callable[[], Any]] = {
    "trace of tiny": lambda: tuple(trace.document(byhand.trace("tiny"))),
    "trace of journey, proven": lambda: tuple(trace.document(byhand.trace("journey", digits=9))),
    "marking of journey": lambda: marking.report(byhand.check("journey"), evidence=True),
    "explanation of tiny": lambda: explained("tiny", SECTIONS),
    "explanation of abc, enclosed": lambda: explained("abc"),
    "explanation of minigpt": lambda: explained("minigpt"),
    "generation of tiny": lambda: tuple(generation.cell_parts(byhand.generate("tiny", count=2))),
    "comparison of tiny": compared,
    "report of a proof": lambda: proof.report(proven_clock()),
    "report of a search that is open": lambda: proof.report(open_adder()),
    "worksheet of journey": lambda: make_worksheet("journey"),
    "book of tiny": lambda: make_book("tiny", language="en"),
    "book of journey": lambda: make_book("journey", language="en"),
    "book of minigpt": lambda: make_book("minigpt", language="en"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_holds_only_plain_data_and_can_be_stored(name: str) -> None:
    found = DOCUMENTS[name]()
    assert found
    assert sorted(set(strangers(found)))[:5] == []
    assert type(pickle.loads(pickle.dumps(found))) is type(found)


def test_a_number_of_a_number_system_is_no_plain_data() -> None:
    loss = byhand.trace("tiny", "a b", target="b").loss
    assert len(list(strangers((1.0, {"a": loss})))) == 1
    assert list(strangers(byhand.trace("tiny")))
