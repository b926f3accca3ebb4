"""byhand works a transformer out by hand: exact where it can be, named where it can't.

>>> import byhand
>>> trace = byhand.trace("tiny", "a b")
>>> trace["logits[1]"].tolist()
[1, -1, 0]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from byhand.version import __version__

if TYPE_CHECKING:
    from byhand.api import book, check, count, explain, generate, trace
    from byhand.capturing import capture
    from byhand.checking.verdicts import Marking
    from byhand.comparing import compare
    from byhand.errors import ByhandError, Undecided
    from byhand.golden import open_trace
    from byhand.model import Model
    from byhand.models import open_model
    from byhand.numbers.enclosed.enclosure import Enclosure
    from byhand.spec import ModelSpec
    from byhand.tracing import Trace
    from byhand.train.minigpt import MiniGPT

_HOMES = {  # imported when first asked for, so that `import byhand` costs nothing
    "ByhandError": "byhand.errors",
    "Enclosure": "byhand.numbers.enclosed.enclosure",
    "MiniGPT": "byhand.train.minigpt",
    "Marking": "byhand.checking.verdicts",
    "Model": "byhand.model",
    "ModelSpec": "byhand.spec",
    "Trace": "byhand.tracing",
    "Undecided": "byhand.errors",
    "book": "byhand.api",
    "capture": "byhand.capturing",
    "check": "byhand.api",
    "compare": "byhand.comparing",
    "count": "byhand.api",
    "explain": "byhand.api",
    "generate": "byhand.api",
    "open_model": "byhand.models",
    "open_trace": "byhand.golden",
    "trace": "byhand.api",
}

__all__ = [
    "ByhandError",
    "Enclosure",
    "Marking",
    "MiniGPT",
    "Model",
    "ModelSpec",
    "Trace",
    "Undecided",
    "__version__",
    "book",
    "capture",
    "check",
    "compare",
    "count",
    "explain",
    "generate",
    "open_model",
    "open_trace",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
