"""The questions of the page: the keys of each, their readers, and the module that answers.

One table has three uses: requests are read by it, the OpenAPI document is written from it, and
`answers` finds the answering module in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Any

from byhand.errors import InputError
from byhand.language import LANGUAGES, _
from byhand.serving import fields
from byhand.serving.states import read_state

CLAIMS = ("table", "next", "function", "constant")  # about all texts of a model
MOST_TABLES = 50_000  # tables and lists of one request


@dataclass(frozen=True)
class Kind:
    """A kind of value: its reader, its schema's name, and its default."""

    read: Callable[[Any, str], Any]
    schema: str
    absent: Any = None


STATE = Kind(read_state, "State")
TEXT = Kind(fields.text, "Text")
ADDRESS = Kind(fields.text, "NeededText")
PLACE = Kind(fields.place, "Place")
FLAG = Kind(fields.flag, "Flag", False)
PATTERNS = Kind(fields.texts, "Patterns", ())
CLAIM = Kind(partial(fields.word, choices=CLAIMS), "Claim")
LANGUAGE = Kind(partial(fields.word, choices=LANGUAGES), "Language")


@dataclass(frozen=True)
class Question:
    """The keys of a question, and its answer in a line; `room` is the module that answers."""

    room: str
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
        "views",
        "One passage of the pass, and all around it: the map, the prediction, what changed.",
        {"state": STATE},
        {"passage": TEXT, "position": PLACE, "before": STATE, "weights": FLAG, "gradients": FLAG},
        {"state": {**_TINY, "weights": {"embed.token[0,1]": "1/3"}}, "position": 1},
        ("model", "text", "tokens", "numbers", "map", "passages", "passage", "next", "loss"),
    ),
    "number": Question(
        "number",
        "One number: what it means, how it comes about, what it is made of, what reads it.",
        {"state": STATE, "address": ADDRESS},
        {},
        {"state": _TINY, "address": "block.0.attn.scores[0,1,1]"},
        ("address", "meaning", "html", "ancestors", "readers", "passage"),
    ),
    "learn": Question(
        "teaching",
        "The losses of a State's lessons; with `gradients`, those that the next step would use.",
        {"state": STATE},
        {"gradients": FLAG},
        {
            "state": {
                **_TINY,
                "target": "c",
                "lessons": [{"text": "a b", "target": "c", "steps": 3}],
            }
        },
        ("losses",),
    ),
    "weight": Question(
        "tables",
        "A window of one weight, from a row and a column on: ten by ten numbers.",
        {"state": STATE, "name": ADDRESS},
        {"row": PLACE, "column": PLACE},
        {"state": {"model": {"name": "minigpt"}}, "name": "block.0.mlp.hidden", "column": 200},
        ("name", "shape", "row", "column", "rows", "columns", "entries"),
    ),
    "trace": Question(
        "downloads",
        "Every step with its numbers: what `byhand trace --json` prints.",
        {"state": STATE},
        {"only": PATTERNS},
        {"state": _TINY, "only": ["logits", "next"]},
        ("model", "numbers", "tokens", "steps"),
    ),
    "compare": Question(
        "comparison",
        "Two States side by side: where they part, and how far.",
        {"a": STATE, "b": STATE},
        {"position": PLACE},
        {"a": _TINY, "b": {**_TINY, "text": "b a"}},
        ("a", "b", "steps", "first", "next", "loss", "map", "sentences"),
    ),
    "practice": Question(
        "practice",
        "A number to work out; with an answer, its verdict and what probably went wrong.",
        {"state": STATE},
        {"seed": PLACE, "passage": TEXT, "address": TEXT, "answer": TEXT, "reveal": FLAG},
        {"state": _TINY, "address": "block.0.attn.scores[0,1,1]", "answer": "2"},
        ("address",),
    ),
    "explain": Question(
        "explanation",
        "What the numbers say: the prediction as a sum, and read after every block.",
        {"state": STATE},
        {"position": PLACE, "token": TEXT},
        {"state": _TINY, "position": 1},
        ("position", "token", "attribution", "lens"),
    ),
    "prove": Question(
        "all_texts",
        "Whether a claim holds for all texts of some length; without one, which texts there are.",
        {"state": STATE},
        {"texts": TEXT, "claim": CLAIM, "token": TEXT, "expression": TEXT},
        {"state": _TINY, "texts": "up to 2", "claim": "next", "token": "c"},
        ("texts", "choices", "names", "claim"),
    ),
    "file": Question(
        "downloads",
        "The model, with every edit, as a model file.",
        {"state": STATE},
        {},
        {"state": {**_TINY, "weights": {"embed.token[0,1]": "1/3"}}},
        ("name", "text"),
    ),
    "share": Question(
        "downloads",
        "The whole pass as one HTML page that needs nothing else.",
        {"state": STATE},
        {},
        {"state": _TINY},
        ("name", "html"),
    ),
}
MODELS = Question(
    "views",
    "The models that can be asked for by name.",
    {},
    {"language": LANGUAGE},
    {},
    ("models",),
)
QUESTIONS: Mapping[str, Question] = {"models": MODELS, **ASKED}


def read_body(body: bytes, most_depth: int) -> Any:
    """The JSON of a request; an InputError if it is broken, too deep or too large."""
    try:
        data = json.loads(body, parse_constant=_no_constant, object_pairs_hook=_once)
        if _nested(data, most_depth):
            raise InputError(
                _("tables within tables within tables"),
                expected=_("at most {count} deep").format(count=most_depth),
            )
        json.dumps(data, ensure_ascii=False).encode()  # an unpaired surrogate is not text
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # broken, not UTF-8, or a number too long
        found = str(error) if isinstance(error, json.JSONDecodeError) else None
        raise InputError(_("this is not JSON"), expected="{…}", found=found) from None
    return data


def read_request(question: Question, data: Any) -> dict[str, Any]:
    """The value of every key of a question; an InputError if any is wrong."""
    if not isinstance(data, dict):
        raise InputError(_("a request is a table"), expected="{…}")
    fields.refuse_others(data, question.keys)
    values = {}
    for key, kind in question.keys.items():
        given = data.get(key)
        if given is not None or (kind is FLAG and key in data):  # a flag may not be null
            values[key] = kind.read(given, key)
        elif key in question.needed:
            raise fields.missing(key)
        else:
            values[key] = kind.absent
    return values


def canonical(question: str, request: Any) -> str:
    """A text that is equal for equal questions, however they were written.

    The order of edits is kept: a later one may need an earlier one.
    """
    return sha256(json.dumps([question, request]).encode()).hexdigest()


def _nested(data: Any, most_depth: int) -> bool:
    """Whether tables and lists are nested too deeply, or too many."""
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
