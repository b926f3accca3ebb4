"""The errors that people see, and their messages.  No arithmetic lives here.

    ByhandError
    ├── InputError              the call or the input is wrong          exit status 2
    │   ├── UsageError          a flag or an argument
    │   ├── SpecError           an impossible architecture: has the key that is wrong
    │   ├── ModelFileError      a model file: has a file, a line and a key
    │   ├── ExpressionError     an expression such as sqrt(2)/2: has a column
    │   ├── ShapeError          a tensor of another shape than the model needs
    │   ├── TextError           an unknown token, too long a text
    │   ├── AddressError        no such step, or an index outside it
    │   └── OutputError         a file that cannot be written
    └── Undecided               a proof was asked for and not found     exit status 1

Every error says what is wrong and, as far as they are known, where, what was expected, what was
found, and a hint.  `str(error)` is the whole message, one fact a line.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from byhand.exit_status import NO, WRONG
from byhand.language import _


class ByhandError(Exception):
    """The base of every error byhand raises on purpose.

    >>> import byhand
    >>> try:
    ...     byhand.trace("tiny", "z")
    ... except byhand.ByhandError as error:
    ...     print(error.message, "|", error.expected)
    'z' is not in the vocabulary | a, b, c
    """

    exit_status = WRONG

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.expected = expected
        self.found = found
        self.hint = hint

    def __str__(self) -> str:
        first = f"{self.where}: {self.message}" if self.where else self.message
        facts = [
            (_("expected"), self.expected),
            (_("found"), self.found),
            (_("hint"), self.hint),
        ]
        return "\n".join([first, *(f"  {name}: {fact}" for name, fact in facts if fact)])


class InputError(ByhandError):
    """The call or the input is wrong."""


class UsageError(InputError):
    """A flag or an argument is wrong."""


class SpecError(InputError):
    """The architecture is impossible; `key` is the offending key as model files spell it."""

    def __init__(self, key: str, *, expected: str, found: str, hint: str | None = None) -> None:
        super().__init__(
            _("{key} cannot be {found}").format(key=key, found=found),
            expected=expected,
            found=found,
            hint=hint,
        )
        self.key = key


class ModelFileError(InputError):
    """A model file is wrong; `where` is file:line: key."""


class ExpressionError(InputError):
    """An expression cannot be read; `column` counts from 1."""

    def __init__(self, message: str, *, column: int | None = None, **facts: str | None) -> None:
        super().__init__(message, **facts)
        self.column = column


class ShapeError(InputError):
    """A tensor has another shape than the model needs."""


class TextError(InputError):
    """The text cannot be turned into tokens of this model."""


class AddressError(InputError, KeyError):
    """No step or weight has this address, or the index lies outside it."""


class OutputError(InputError):
    """A file cannot be written."""


class Undecided(ByhandError):
    """Neither algebra nor enclosures up to the precision limit settle the question.

    >>> import byhand
    >>> try:
    ...     int(byhand.Enclosure(2, 1))
    ... except byhand.Undecided as error:
    ...     print(error.found)
    [2 ± 1]
    """

    exit_status = NO


def nearest(wrong: str, known: Iterable[str]) -> str | None:
    """A hint with the known names nearest to a wrong one, or None."""
    close = get_close_matches(wrong, list(known), n=3, cutoff=0.5)
    return _("did you mean {names}?").format(names=", ".join(close)) if close else None
