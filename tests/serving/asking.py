"""A library and short ways to ask it, for the tests of serving."""

from __future__ import annotations

import json
from typing import Any

from byhand.serving import Library, answer

LIBRARY = Library()


def state(model: str = "tiny", **more: Any) -> dict[str, Any]:
    """A State of a built-in model."""
    return {"model": {"name": model}, **more}


def asked(question: str, **request: Any) -> dict[str, Any]:
    """The answer, as it arrives after a journey through JSON."""
    sent = json.loads(json.dumps(request))
    found: dict[str, Any] = json.loads(json.dumps(answer(LIBRARY, question, sent), allow_nan=False))
    return found


def looked(model: str = "tiny", **more: Any) -> dict[str, Any]:
    """What the page shows of a State, whose keys come among those of the request."""
    around = {key: more.pop(key) for key in ("passage", "position", "before") if key in more}
    return asked("look", state=state(model, **more), **around)
