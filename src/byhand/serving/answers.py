"""The answer to any question of the page, in the language asked for; errors as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from math import isfinite
from typing import Any

from byhand.errors import ByhandError, UsageError, nearest
from byhand.evaluate import Progress
from byhand.language import LANGUAGES, _, speaking
from byhand.serving.questions import QUESTIONS, read_request
from byhand.serving.states import Library

Answer = dict[str, Any]
Answering = Callable[[Library, Mapping[str, Any], Progress | None], Answer]


def answer(
    library: Library, question: str, request: Any, progress: Progress | None = None
) -> Answer:
    """The answer to a question, as data for JSON; raises a ByhandError if there is none.

    `progress` is called before every step of a pass, and may raise to stop it.
    """
    with speaking(language_of(request)):
        if question not in QUESTIONS:
            raise UsageError(
                _("there is no question {name}").format(name=repr(question[:40])),
                expected=", ".join(QUESTIONS),
                hint=nearest(question[:40], QUESTIONS),
            )
        asked = QUESTIONS[question]
        values = read_request(asked, request)
        # the question's module is imported when it is first asked
        answers: Answering = getattr(import_module(f"byhand.serving.{asked.room}"), question)
        said: Answer = _sayable(answers(library, values, progress))
        return said


def _sayable(data: Any) -> Any:
    """The data with null for every float that is not finite, which JSON lacks."""
    if isinstance(data, float):
        return data if isfinite(data) else None
    if isinstance(data, dict):
        return {key: _sayable(value) for key, value in data.items()}
    return [_sayable(value) for value in data] if isinstance(data, list) else data


def error_data(error: ByhandError) -> dict[str, str | None]:
    """An error as JSON: the message of the command line, in its parts."""
    return {
        "message": error.message,
        "where": error.where,
        "expected": error.expected,
        "found": error.found,
        "hint": error.hint,
    }


def language_of(request: Any) -> str:
    """The language of the request or of its first State; English if that is invalid."""
    if not isinstance(request, dict):
        return "en"
    states = (request.get(key) for key in ("state", "a"))
    said = [request, *(state for state in states if isinstance(state, dict))]
    found = [table.get("language") for table in said]
    return next((one for one in found if isinstance(one, str) and one in LANGUAGES), "en")
