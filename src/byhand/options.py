"""The options that exclude each other: the same refusals for Python and the command line.

`Chosen` holds the options about the numbers of a job: in Python `numbers="digits 12"`, or
`digits=12` as on the command line.  Nothing is opened or worked out here: wrong options are refused
before that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from byhand.errors import UsageError, nearest
from byhand.language import _, whole

if TYPE_CHECKING:
    from byhand.numbers.base import Numbers

FORMATS = ("float64", "float32", "bfloat16", "float16")
TOGETHER = {"digits", "float", "device"}  # options that may be given together
MOST_DIGITS, MOST_DECIMALS = 1_000, 1_000


class Spelled(TypedDict, total=False):
    """The words of `numbers` as options of their own, as on the command line."""

    exact: bool
    digits: int | None
    decimals: int | None
    float: str | None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The options about the numbers; without any, the model decides.

    >>> Chosen.of("digits 12") == Chosen(digits=12), Chosen.of("bfloat16").float
    (True, 'bfloat16')
    """

    exact: bool = False
    digits: int | None = None
    decimals: int | None = None
    float: str | None = None
    device: str | None = None
    dashes: str = ""  # "--" where messages name options of the command line
    system: Numbers | None = None  # a number system that was handed in

    @classmethod
    def of(
        cls,
        numbers: str | Numbers | None = None,
        device: str | None = None,
        **spelled: Unpack[Spelled],
    ) -> Chosen:
        """What `numbers`, a device and the options spelled out say together, or a UsageError."""
        for name in spelled:
            if name not in Spelled.__annotations__:
                raise TypeError(f"got an unexpected keyword argument {name!r}")
        said = _read(numbers)
        for name, value in {**spelled, "device": device}.items():
            given = value is not None and value is not False
            clashing = name in said or "system" in said
            refuse_together({"numbers": clashing, name: given})
        return cls(**{**spelled, **said}, device=device)

    def __post_init__(self) -> None:
        refuse_unless_whole("digits", self.digits, 1, MOST_DIGITS, self.dashes)
        refuse_unless_whole("decimals", self.decimals, 0, MOST_DECIMALS, self.dashes)
        if self.float is not None and self.float not in FORMATS:
            raise does_not_fit("float", ", ".join(FORMATS), self.float, self.dashes)
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

    @property
    def compares(self) -> bool:
        """Whether floats are to be compared with proven digits."""
        return self.digits is not None and self.float is not None

    def refuse_comparison(self, hint: str | None = None) -> None:
        """Raises a UsageError where floats and proven digits were asked for at once."""
        both = {"digits": self.compares, "float": self.compares}
        refuse_together(both, self.dashes, hint)


def _read(numbers: Any) -> dict[str, Any]:
    """The options that the words of `numbers` stand for."""
    if numbers is None:
        return {}
    words = ("exact", "digits 12", "decimals 3", *FORMATS)
    error = does_not_fit("numbers", ", ".join(words), numbers)
    if not isinstance(numbers, str):
        from byhand.numbers.base import Numbers  # not needed by the command line

        if isinstance(numbers, Numbers):
            return {"system": numbers}
        raise error
    kind, _blank, amount = numbers.partition(" ")
    if kind in ("digits", "decimals"):
        return {kind: whole_or_text(amount)}
    if numbers == "exact":
        return {"exact": True}
    if numbers in FORMATS:
        return {"float": numbers}
    error.hint = nearest(numbers, words)
    raise error


def whole_or_text(said: str | None) -> Any:
    """The whole number that a text spells in plain digits; else the text itself, to be refused."""
    plain = said is not None and said.isascii() and said.isdigit() and len(said) < 10
    return int(said) if plain and said is not None else said


def refuse_numbers(said: Mapping[str, Any]) -> None:
    """Raises a UsageError where numbers are chosen for checking claims."""
    for name, value in said.items():
        if name not in ("numbers", "device", *Spelled.__annotations__):
            raise TypeError(f"check() got an unexpected keyword argument {name!r}")
        if value is not None and value is not False:
            raise UsageError(
                _("there is no option {name}").format(name=name),
                hint=_("precision says what the claims were worked in"),
            )


def refuse_together(said: Mapping[str, bool], dashes: str = "", hint: str | None = None) -> None:
    """Raises a UsageError where two options are given that exclude each other."""
    if all(said.values()):
        one, other = (dashes + name for name in said)
        raise UsageError(
            _("{one} and {other} exclude each other").format(one=one, other=other),
            hint=hint or _("leave one of them out"),
        )


def refuse_against_alone(against: str | int | None, alone: bool, dashes: str = "") -> None:
    """Raises a UsageError where `against` and `alone` are both given."""
    refuse_together({"alone": alone, "against": against is not None}, dashes)


def no_comparison_of_tokens() -> str:
    """The hint for whoever wants to generate in floats and in proven digits at once."""
    return _("byhand trace compares floats with proven digits")


def refuse_unless_whole(name: str, value: Any, least: int, most: int, dashes: str = "") -> None:
    """Raises a UsageError where a value is not a whole number within its range."""
    if value is None:
        return
    try:
        fits = not isinstance(value, bool) and least <= index(value) <= most
    except TypeError:
        fits = False
    if not fits:
        expected = _("a whole number from {least} to {most}")
        raise does_not_fit(name, expected.format(least=least, most=whole(most)), value, dashes)


def does_not_fit(name: str, expected: str, value: Any, dashes: str = "") -> UsageError:
    """The error for a value that an option cannot have."""
    return UsageError(
        _("{name} has a value that does not fit").format(name=dashes + name),
        expected=expected,
        found=repr(value[:40]) if isinstance(value, str) else repr(value)[:40],
    )
