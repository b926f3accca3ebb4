"""config.json, read strictly: a value of the wrong kind is an error that names the key.

Decimals are exact: 1e-05 is 1/100000.  The families know which keys they have; `Config` records the
keys that are read, so that unread ones can be reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from byhand.errors import InputError, SpecError, nearest
from byhand.files.mapped import shown
from byhand.language import _

LARGEST_FILE = 10_000_000  # bytes; real ones have a few thousand
LARGEST_SIZE = 10_000_000  # largest width, vocabulary or head
LONGEST_CONTEXT = 1_000_000_000
MOST_LAYERS = 10_000
LARGEST_EXPONENT = 400  # of a decimal; float64 holds less
LARGEST_NUMBER = Fraction(10) ** 30  # largest number that is read
DEEPEST = 50  # nested lists and tables
_EXPONENT = re.compile(r"[eE]([+-]?\d+)$")
NEEDED: Any = object()
T = TypeVar("T")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object of a file, with exact decimals; an InputError if there is none."""
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE or not path.is_file():
            raise InputError(
                _("this is not a JSON file of settings"),
                where=str(path),
                expected=_("a file of at most {count} bytes").format(count=f"{LARGEST_FILE:,}"),
                found=_("{count} bytes").format(count=f"{size:,}")
                if path.is_file()
                else _("it is not a plain file"),
            )
        text = path.read_text("utf-8-sig")
        data = json.loads(text, parse_float=decimal, parse_constant=_no_number)
        if _deep(data):
            raise ValueError(_("lists within lists without end"))
    except OSError as error:
        raise InputError(
            _("the file cannot be read: {reason}").format(reason=error.strerror or error),
            where=str(path),
        ) from None
    except (ValueError, RecursionError) as error:  # broken JSON, or not text
        raise InputError(
            _("this is not a JSON file"), where=str(path), found=shown(str(error))
        ) from None
    if not isinstance(data, dict):
        raise InputError(
            _("this is not a JSON object"),
            where=str(path),
            expected='{"model_type": …}',
            found=shown(data),
        )
    return data


def decimal(text: str) -> Fraction:
    """The exact value of a decimal; a ValueError if float64 could not hold it."""
    exponent = _EXPONENT.search(text)
    if exponent and (len(exponent[1]) > 5 or abs(int(exponent[1])) > LARGEST_EXPONENT):
        raise ValueError(_("{number} is beyond all bounds").format(number=shown(text)))
    return Fraction(text)


def _no_number(name: str) -> NoReturn:
    raise ValueError(_("{number} is not a number").format(number=name))


def _deep(data: Any) -> bool:
    """Whether lists and tables are nested deeper than in any config."""
    level: list[Any] = [data]
    for _depth in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


class Config:
    """The keys of a config.json or of a table in it, each read as a required kind of value."""

    def __init__(self, path: Path, table: Mapping[str, Any], prefix: str = "") -> None:
        self.path = path
        self.table = table
        self.prefix = prefix
        self.asked: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self.table

    def refuse(
        self,
        key: str,
        expected: str,
        found: Any = NEEDED,
        *,
        message: str | None = None,
        hint: str | None = None,
    ) -> InputError:
        """The error for a key whose value is not what was expected."""
        name = self.prefix + key
        if found is NEEDED:
            found = self.table.get(key, NEEDED)
        if isinstance(found, str):  # quoted, to distinguish "8" from 8
            found = json.dumps(found, ensure_ascii=False)
        value = _("nothing") if found is NEEDED else shown(found)
        return InputError(
            message or _("{key} cannot be {found}").format(key=name, found=value),
            where=f"{self.path}: {name}",
            expected=expected,
            found=value,
            hint=hint,
        )

    def value(self, key: str, default: Any = NEEDED, also: str | None = None) -> tuple[str, Any]:
        """The key present (or its alias) and its value; two that differ are an error."""
        names = (key,) if also is None else (key, also)
        self.asked.update(names)
        there = [name for name in names if name in self.table]
        if not there:
            if default is NEEDED:
                raise self.refuse(
                    key,
                    _("a value for {key}").format(key=self.prefix + key),
                    message=_("{key} is missing").format(key=self.prefix + key),
                )
            return key, default
        first = there[0]
        for other in there[1:]:
            if self.table[other] != self.table[first]:
                raise self.refuse(
                    other,
                    _("the same as {key}, {value}").format(
                        key=self.prefix + first, value=shown(self.table[first])
                    ),
                )
        return first, self.table[first]

    def whole(
        self,
        key: str,
        default: Any = NEEDED,
        *,
        also: str | None = None,
        least: int = 1,
        most: int = LARGEST_SIZE,
    ) -> int:
        """A whole number within bounds, of this key or an alias of it."""
        name, found = self.value(key, default, also)
        if type(found) is not int or not least <= found <= most:
            raise self.refuse(
                name,
                _("a whole number from {least} to {most}").format(least=least, most=f"{most:,}"),
                found,
            )
        return found

    def whole_or_none(
        self, key: str, default: int | None = None, *, most: int = LARGEST_SIZE
    ) -> int | None:
        """A whole number of at least 1, or null; without the key, the default."""
        _name, found = self.value(key, default)
        return None if found is None else self.whole(key, default, most=most)

    def flag(self, key: str, default: bool) -> bool:
        """A key that is true or false."""
        name, found = self.value(key, default)
        if not isinstance(found, bool):
            raise self.refuse(name, "true, false", found)
        return found

    def number(self, key: str, default: Any = NEEDED) -> Fraction:
        """A key that is a number of at most 10^30, exactly."""
        name, found = self.value(key, default)
        if isinstance(found, bool) or not isinstance(found, int | Fraction):
            raise self.refuse(name, _("a number"), found)
        value = Fraction(found)
        if abs(value) > LARGEST_NUMBER:
            raise self.refuse(name, _("a number of at most 10^30"), found)
        return value

    def positive(self, key: str) -> Fraction:
        """A key that is a number above 0, exactly."""
        found = self.number(key)
        if found <= 0:
            raise self.refuse(key, _("a number above 0"), found)
        return found

    def epsilon(self, key: str, default: Fraction) -> Fraction:
        """A key that is a number from 0 to 1, exactly."""
        found = self.number(key, default)
        if not 0 <= found <= 1:
            raise self.refuse(key, _("a number from 0 to 1"), found)
        return found

    def word(self, key: str, default: Any, known: Mapping[str, T]) -> T:
        """The meaning of a word, from a table of known words."""
        name, found = self.value(key, default)
        if not isinstance(found, str) or found not in known:
            hint = nearest(found[:80], known) if isinstance(found, str) else None
            raise self.refuse(name, ", ".join(known), found, hint=hint)
        return known[found]

    def within(self, key: str) -> Config | None:
        """The table under a key; None where it is missing, null or empty."""
        _name, found = self.value(key, None)
        if found is None or found == {}:
            return None
        if not isinstance(found, dict):
            raise self.refuse(key, _("a table of keys, or null"), found)
        return Config(self.path, found, f"{self.prefix}{key}.")

    def impossible(self, error: SpecError) -> InputError:
        """The error for keys that contradict each other."""
        return InputError(
            error.message, where=str(self.path), expected=error.expected, found=error.found
        )
