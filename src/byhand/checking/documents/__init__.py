"""The documents behind three of the built-in models, as claims: every number they print.

`byhand check journey` checks these if no other claims are given.  Statements of a document that are
not about a value of the model are in the comments of its file.
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
    """The document of a built-in model, for a check without claims; a UsageError if it has none."""
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
    """The claims file of the document behind a built-in model; None if there is none."""
    return _FOLDER / f"{model}.yaml" if model in _DOCUMENTS else None
