"""What can be asked over HTTP: every question with its keys, how each is read and described.

One table, used twice: a request is read by it before a worker sees it, and the OpenAPI document is
written from it.  What the keys mean is known where questions are answered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import Any

from byhand.errors import InputError
from byhand.language import LANGUAGES, _
from byhand.serving.requests import (
    Request,
    a_flag,
    a_place,
    a_state,
    a_text,
    needed_text,
    only,
    some_texts,
)
from byhand.serving.states import State

MOST_TABLES = 50_000  # tables and lists of one request


@dataclass(frozen=True)
class Kind:
    """A kind of value: how it is read, and its name among the schemas of the document."""

    read: Callable[[Request, str], Any]
    schema: str


STATE = Kind(a_state, "State")
TEXT = Kind(a_text, "Text")
ADDRESS = Kind(needed_text, "NeededText")
PLACE = Kind(a_place, "Place")
FLAG = Kind(a_flag, "Flag")
PATTERNS = Kind(some_texts, "Patterns")


def _language(request: Request, key: str) -> str | None:
    said = a_text(request, key)
    if said is not None and said not in LANGUAGES:
        raise InputError(
            _("{found} is not possible here").format(found=said[:40]),
            where=key,
            expected=", ".join(LANGUAGES),
            found=said[:40],
        )
    return said


LANGUAGE = Kind(_language, "Language")


@dataclass(frozen=True)
class Question:
    """What a question takes, and in a line what it gives."""

    about: str
    needed: Mapping[str, Kind]
    possible: Mapping[str, Kind]
    example: Mapping[str, Any]
    answer: tuple[str, ...]  # keys that every answer has

    @property
    def keys(self) -> dict[str, Kind]:
        """All keys of the question with their kinds."""
        return {**self.needed, **self.possible}


_TINY: Mapping[str, Any] = {"model": {"name": "tiny"}, "text": "a b"}

ASKED: Mapping[str, Question] = {
    "look": Question(
        "One passage of the pass, and all around it: the map, the prediction, what changed.",
        {"state": STATE},
        {"passage": TEXT, "position": PLACE, "before": STATE, "weights": FLAG},
        {"state": {**_TINY, "weights": {"embed.token[0,1]": "1/3"}}, "position": 1},
        ("model", "text", "tokens", "numbers", "map", "passages", "passage", "next", "loss"),
    ),
    "number": Question(
        "One number: how it comes about, what it is made of, what reads it.",
        {"state": STATE, "address": ADDRESS},
        {},
        {"state": _TINY, "address": "block.0.attn.scores[0,1,1]"},
        ("address", "html", "ancestors", "readers", "passage"),
    ),
    "weight": Question(
        "A window of one weight, from a row and a column on: ten by ten numbers.",
        {"state": STATE, "name": ADDRESS},
        {"row": PLACE, "column": PLACE},
        {"state": {"model": {"name": "minigpt"}}, "name": "block.0.mlp.hidden", "column": 200},
        ("name", "shape", "row", "column", "rows", "columns", "entries"),
    ),
    "trace": Question(
        "Every step with its numbers: what `byhand trace --json` prints.",
        {"state": STATE},
        {"only": PATTERNS},
        {"state": _TINY, "only": ["logits", "next"]},
        ("model", "numbers", "tokens", "steps"),
    ),
    "compare": Question(
        "Two States side by side: where they part, and how far.",
        {"a": STATE, "b": STATE},
        {"position": PLACE},
        {"a": _TINY, "b": {**_TINY, "text": "b a"}},
        ("a", "b", "steps", "first", "next", "loss", "map", "sentences"),
    ),
    "practice": Question(
        "A number to work out; with an answer, its verdict and what probably went wrong.",
        {"state": STATE},
        {"seed": PLACE, "passage": TEXT, "address": TEXT, "answer": TEXT, "reveal": FLAG},
        {"state": _TINY, "address": "block.0.attn.scores[0,1,1]", "answer": "2"},
        ("address",),
    ),
    "explain": Question(
        "What the numbers say: the prediction as a sum, and read after every block.",
        {"state": STATE},
        {"position": PLACE, "token": TEXT},
        {"state": _TINY, "position": 1},
        ("position", "token", "attribution", "lens"),
    ),
    "file": Question(
        "The model, with every edit, as a model file.",
        {"state": STATE},
        {},
        {"state": {**_TINY, "weights": {"embed.token[0,1]": "1/3"}}},
        ("name", "text"),
    ),
    "share": Question(
        "The whole pass as one HTML page that needs nothing else.",
        {"state": STATE},
        {},
        {"state": _TINY},
        ("name", "html"),
    ),
}
MODELS = Question(
    "The models that can be asked for by name.", {}, {"language": LANGUAGE}, {}, ("models",)
)


def read_body(body: bytes, most_depth: int) -> Any:
    """The JSON of a request; an InputError where it is none that can be worked with."""
    try:
        data = json.loads(body, parse_constant=_no_constant, object_pairs_hook=_once)
        if _nested(data, most_depth):
            raise InputError(
                _("tables within tables within tables"),
                expected=_("at most {count} deep").format(count=most_depth),
            )
        json.dumps(data, ensure_ascii=False).encode()  # half of a pair of surrogates is no text
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # broken, not UTF-8, numbers without end
        found = str(error) if isinstance(error, json.JSONDecodeError) else None
        raise InputError(_("this is not JSON"), expected="{…}", found=found) from None
    return data


def read_request(question: Question, data: Any) -> dict[str, State]:
    """The States of a request by their keys; an InputError where any key is wrong."""
    if not isinstance(data, dict):
        raise InputError(_("a request is a table"), expected="{…}")
    only(data, *question.keys)
    states = {}
    for key, kind in question.keys.items():
        if kind is STATE and key not in question.needed and data.get(key) is None:
            continue
        value = kind.read(data, key)
        if isinstance(value, State):
            states[key] = value
    return states


def canonical(question: str, request: Any) -> str:
    """The same for the same question, however it was written down.

    The order of edits is kept: a later one may need an earlier one.
    """
    return sha256(json.dumps([question, request]).encode()).hexdigest()


def _nested(data: Any, most_depth: int) -> bool:
    """Whether tables and lists lie deeper in each other than they may, or are far too many."""
    level, seen = [data], 0
    for _depth in range(most_depth + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level or (seen := seen + len(level)) > MOST_TABLES:
            break
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = list(chain.from_iterable(inner))
    return bool(level)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(_("the key {key} comes twice").format(key=repr(twice[:60])))
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)
