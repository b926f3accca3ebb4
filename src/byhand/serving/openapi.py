"""The OpenAPI document of the server, made from the table of `questions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from byhand.language import LANGUAGES
from byhand.optimizer import OPTIMIZERS
from byhand.options import FORMATS
from byhand.serving.exchange import NDJSON
from byhand.serving.fields import LONGEST_TEXT, MOST_TEXTS
from byhand.serving.lessons import MOST_LESSONS, MOST_STEPS
from byhand.serving.questions import ASKED, CLAIMS, MODELS, Kind, Question
from byhand.serving.states import (
    LONGEST_ENTRY,
    LONGEST_FILE,
    MOST_DECIMALS,
    MOST_DIGITS,
    MOST_EDITS,
)
from byhand.version import __version__

_SCALAR = {"type": ["string", "number", "boolean"], "maxLength": LONGEST_ENTRY}
_TEXT_OR_NONE = {"type": ["string", "null"], "maxLength": LONGEST_TEXT}
_NUMBERS = r"^(exact|digits [1-9][0-9]?|decimals [0-9][0-9]?|" + "|".join(FORMATS) + ")$"


def _table(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """The schema of a table with these keys and no others."""
    return {
        "type": "object",
        "required": list(required),
        "additionalProperties": False,
        "properties": dict(properties),
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_WEIGHTS = {
    "description": "Edited weights: the address of one entry, and a decimal, a fraction or an "
    "expression.",
    "type": ["object", "null"],
    "maxProperties": MOST_EDITS,
    "additionalProperties": _SCALAR,
}
_LESSON = _table(
    {
        "text": {"type": "string", "maxLength": LONGEST_TEXT},
        "target": {**_TEXT_OR_NONE, "description": "null: the text's own next tokens"},
        "optimizer": {"enum": list(OPTIMIZERS)},
        "rate": {"type": ["string", "number"], "description": "A decimal from 0 to 9999."},
        "steps": {"type": "integer", "minimum": 0, "maximum": MOST_STEPS},
        "weights": _WEIGHTS,
    },
    "text",
)


def _state(names: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": "Everything a request is about; the server remembers nothing.",
        "required": ["model"],
        "additionalProperties": False,
        "properties": {
            "model": {
                "description": "A model by its name, or the text of a model file.",
                "oneOf": [
                    _table({"name": {"enum": list(names)}}, "name"),
                    _table({"file": {"type": "string", "maxLength": LONGEST_FILE}}, "file"),
                ],
            },
            "weights": _WEIGHTS,
            "architecture": {
                "description": "What is changed of the model; /api/models lists the choices.",
                "type": ["object", "null"],
                "additionalProperties": _SCALAR,
            },
            "lessons": {
                "description": "What the model has learned, in order; edited weights come after.",
                "type": ["array", "null"],
                "maxItems": MOST_LESSONS,
                "items": _LESSON,
            },
            "text": {**_TEXT_OR_NONE, "description": "null: the model's own"},
            "target": {**_TEXT_OR_NONE, "description": "The word that should come next."},
            "numbers": {
                "type": ["string", "null"],
                "description": f"exact, digits 1 … {MOST_DIGITS}, decimals 0 … {MOST_DECIMALS}, "
                + ", ".join(FORMATS),
                "anyOf": [{"pattern": _NUMBERS}, {"maxLength": 0}, {"type": "null"}],
            },
            "language": _ref("Language"),
        },
    }


SCHEMAS: Mapping[str, Any] = {
    "Text": _TEXT_OR_NONE,
    "NeededText": {"type": "string", "maxLength": LONGEST_TEXT},
    "Place": {"type": ["integer", "null"], "minimum": 0, "maximum": 10**9 - 1},
    "Flag": {"type": "boolean"},
    "Patterns": {
        "type": ["array", "null"],
        "maxItems": MOST_TEXTS,
        "items": {"type": "string", "maxLength": LONGEST_TEXT},
    },
    "Claim": {"enum": [*CLAIMS, None]},
    "Language": {"enum": [*LANGUAGES, None]},
    "Error": _table(
        {
            "error": _table(
                {
                    "message": {"type": "string"},
                    **{
                        key: {"type": ["string", "null"]}
                        for key in ("where", "expected", "found", "hint")
                    },
                },
                "message",
            )
        },
        "error",
    ),
    "Line": {
        "description": "One line of an answer told as it goes on: the last has the result.",
        "type": "object",
        "properties": {
            "progress": {
                "type": "object",
                "properties": {
                    "address": {"type": "string"},
                    "count": {"type": "integer"},
                    "pass": {"type": "integer"},
                    "waiting": {"type": "integer"},
                },
            },
            "result": {"type": "object"},
            "error": {"type": "object"},
        },
    },
}
REFUSALS = {
    "400": "Something in the request is wrong.",
    "403": "The request comes from another page.",
    "408": "The request did not come in time.",
    "413": "The request is too large.",
    "415": "The request is not JSON.",
    "421": "The request is meant for another host.",
    "422": "No proof was found, or it takes more time or memory than a request may take.",
    "500": "The work broke off.",
    "503": "There is too much to do just now.",
}


def document(names: Sequence[str]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of a server with models of these names."""
    paths: dict[str, Any] = {
        "/api/models": {"get": _get("models", MODELS)},
        **{f"/api/{name}": {"post": _post(name, one)} for name, one in ASKED.items()},
        "/healthz": {
            "get": {
                "operationId": "healthz",
                "summary": "Whether the server is well: its workers, and who waits for one.",
                "responses": {"200": _answer(("workers", "free", "waiting")), **_refusals("421")},
            }
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "byhand serve",
            "version": __version__,
            "description": "A transformer worked out by hand, on this machine. "
            "The same request always has the same answer.",
        },
        "paths": paths,
        "components": {"schemas": {"State": _state(names), **SCHEMAS}},
    }


def _get(name: str, question: Question) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": question.about,
        "parameters": [
            {"name": key, "in": "query", "required": False, "schema": {"enum": list(LANGUAGES)}}
            for key in question.possible
        ],
        "responses": {"200": _answer(question.answer), **_refusals(*REFUSALS)},
    }


def _post(name: str, question: Question) -> dict[str, Any]:
    schema = _table({key: _schema(kind, key, question) for key, kind in question.keys.items()},
                    *question.needed)  # fmt: skip
    return {
        "operationId": name,
        "summary": question.about,
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema, "example": question.example}},
        },
        "responses": {"200": _answer(question.answer, lines=True), **_refusals(*REFUSALS)},
    }


def _schema(kind: Kind, key: str, question: Question) -> dict[str, Any]:
    """The schema of a key; an optional State may be null."""
    if kind.schema == "State" and key not in question.needed:
        return {"oneOf": [_ref("State"), {"type": "null"}]}
    return _ref(kind.schema)


def _answer(keys: tuple[str, ...], *, lines: bool = False) -> dict[str, Any]:
    whole = {"schema": {"type": "object", "required": list(keys)}}
    content: dict[str, Any] = {"application/json": whole}
    if lines:
        content[NDJSON] = {"schema": _ref("Line")}
    return {"description": "The answer.", "content": content}


def _refusals(*which: str) -> dict[str, Any]:
    content = {"application/json": {"schema": _ref("Error")}}
    return {status: {"description": REFUSALS[status], "content": content} for status in which}
