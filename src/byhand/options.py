"""Which options go together: one refusal for Python and for the command line, in the same words.

`Chosen` is what somebody said about the numbers of a job.  Here nothing is opened and nothing is
worked out: what cannot be is refused before that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

from byhand.errors import UsageError
from byhand.language import _, whole

FORMATS = ("float64", "float32", "bfloat16", "float16")
TOGETHER = {"digits", "float", "device"}  # options that may be given together
MOST_DIGITS, MOST_DECIMALS = 1_000, 1_000


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the user said about the numbers; nothing said leaves it to the model."""

    exact: bool = False
    digits: int | None = None
    decimals: int | None = None
    float: str | None = None
    device: str | None = None
    dashes: str = ""  # before the names of options, as they are called where they were said

    def __post_init__(self) -> None:
        said = {
            "exact": self.exact,
            "digits": self.digits is not None,
            "decimals": self.decimals is not None,
            "float": self.float is not None,
            "device": self.device is not None,
        }
        names = [name for name, given in said.items() if given]
        if len(names) > 1 and not set(names) <= TOGETHER:
            refuse_together(dict.fromkeys(names[:2], True), self.dashes)
        refuse_unless_whole("digits", self.digits, 1, MOST_DIGITS, self.dashes)
        refuse_unless_whole("decimals", self.decimals, 0, MOST_DECIMALS, self.dashes)
        if self.float is not None and self.float not in FORMATS:
            raise _does_not_fit("float", ", ".join(FORMATS), self.float, self.dashes)

    @property
    def compares(self) -> bool:
        """Whether floats are to be compared with proven digits."""
        return self.digits is not None and self.float is not None

    def refuse_comparison(self, hint: str | None = None) -> None:
        """A UsageError where floats and proven digits were asked for at once."""
        both = {"digits": self.compares, "float": self.compares}
        refuse_together(both, self.dashes, hint)


def refuse_together(said: Mapping[str, bool], dashes: str = "", hint: str | None = None) -> None:
    """A UsageError where two options are both said that exclude each other."""
    if all(said.values()):
        one, other = (dashes + name for name in said)
        raise UsageError(
            _("{one} and {other} exclude each other").format(one=one, other=other),
            hint=hint or _("leave one of them out"),
        )


def refuse_against_alone(against: str | None, alone: bool, dashes: str = "") -> None:
    """A logit by itself is compared with no other."""
    refuse_together({"alone": alone, "against": against is not None}, dashes)


def no_comparison_of_tokens() -> str:
    """The hint for whoever wants to generate in floats and in proven digits at once."""
    return _("byhand trace compares floats with proven digits")


def refuse_unless_whole(name: str, value: Any, least: int, most: int, dashes: str = "") -> None:
    """A UsageError where a value is not a whole number within its range."""
    if value is None:
        return
    try:
        fits = not isinstance(value, bool) and least <= index(value) <= most
    except TypeError:
        fits = False
    if not fits:
        expected = _("a whole number from {least} to {most}")
        raise _does_not_fit(name, expected.format(least=least, most=whole(most)), value, dashes)


def _does_not_fit(name: str, expected: str, value: Any, dashes: str) -> UsageError:
    return UsageError(
        _("{name} has a value that does not fit").format(name=dashes + name),
        expected=expected,
        found=repr(value)[:40],
    )
