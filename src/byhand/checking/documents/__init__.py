"""The documents that three of the built-in models come from, as claims: every number they print.

`byhand check journey` takes these where no other claims are given.  What a document says that is
not about a value of the model is told in the comments of its file.
"""

from __future__ import annotations

from pathlib import Path

from byhand.errors import UsageError
from byhand.language import _

_FOLDER = Path(__file__).parent
_DOCUMENTS = ("abc-walkthrough", "journey", "minigpt")


def names() -> tuple[str, ...]:
    """The built-in models whose documents are here."""
    return _DOCUMENTS


def instead_of_claims(model: str, missing: str = "claims") -> Path:
    """The document of a built-in model, where nobody gave claims; a UsageError if it has none."""
    document = of(model)
    if document is None:
        raise UsageError(
            _("{name} is missing").format(name=missing),
            expected=_(
                "a file of claims; without one, a model that comes from a document: {names}"
            ).format(names=", ".join(names())),
            hint=_("see {command} --help").format(command="byhand check"),
        )
    return document


def of(model: str) -> Path | None:
    """The claims file of the document that a built-in model comes from, where there is one."""
    return _FOLDER / f"{model}.yaml" if model in _DOCUMENTS else None
