"""The functions that properties may call, on plain numbers and words and on those of regions.

Numbers and lists are kept small, so that no function of a property takes all memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType, MappingProxyType
from typing import Any

from byhand.errors import InputError
from byhand.language import _
from byhand.proving.domain import Reckoned
from byhand.proving.reading.wholes import largest, least
from byhand.proving.reading.words import Words

LARGEST = 100_000  # bits of a number, entries of a list


def _too_large() -> InputError:
    return InputError(
        _("a number or a list becomes too large"),
        expected=_("at most {count} bits or entries").format(count=f"{LARGEST:,}"),
    )


def _times(one: Any, other: Any) -> Any:
    if isinstance(one, int) and isinstance(other, int):
        if one.bit_length() + other.bit_length() > LARGEST:
            raise _too_large()
    elif not isinstance(one, Reckoned) and not isinstance(other, Reckoned):
        count, several = (one, other) if isinstance(one, int) else (other, one)
        if isinstance(count, int) and len(several) * count > LARGEST:
            raise _too_large()
    return one * other


def _plus(one: Any, other: Any) -> Any:
    if isinstance(one, str | list | tuple) and len(one) + len(other) > LARGEST:
        raise _too_large()
    return one + other


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(exponent, Reckoned):
        raise exponent.varies()
    if not isinstance(exponent, int) or exponent < 0:
        raise TypeError(_("a power needs a whole exponent that is not negative"))
    if isinstance(base, Reckoned):
        if exponent > 8:
            raise base.varies()
        result: Any = 1
        for _round in range(exponent):
            result = result * base
        return result
    if isinstance(base, int) and base.bit_length() * exponent > LARGEST:
        raise _too_large()
    return base**exponent


def _range(*ends: int) -> range:
    found = range(*ends)
    if len(found) > LARGEST:
        raise _too_large()
    return found


def _whole(value: Any) -> Any:
    if isinstance(value, Words):
        return value.whole()
    return value if isinstance(value, Reckoned) else int(value)


def _text(value: Any) -> Any:
    return value if isinstance(value, Words) else str(value)


def _ordered(pick: Callable[[Iterable[Any]], Any], usual: Callable[..., Any]) -> Callable[..., Any]:
    """min and max: of Ranges by their ends, of anything else as Python has them."""

    def call(*values: Any, **how: Any) -> Any:
        several = list(values[0]) if len(values) == 1 else list(values)
        if not how and any(isinstance(value, Reckoned) for value in several):
            return pick(several)
        return usual(several, **how)

    return call


def _number(digits: Iterable[Any], base: Any = 10) -> Any:
    """The number that digits spell, the first one being worth the most."""
    total: Any = 0
    for digit in digits:
        total = _times(total, base) + _whole(digit)
    return total


def _digits(number: Any, count: Any, base: Any = 10) -> list[Any]:
    """So many last digits of a number, the one that is worth the most first."""
    return [number // _power(base, place) % base for place in reversed(_range(count))]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs, "all": all, "any": any, "bool": bool, "dict": dict, "digits": _digits,
    "divmod": divmod, "enumerate": enumerate, "int": _whole, "len": len, "list": list,
    "max": _ordered(largest, max), "min": _ordered(least, min), "number": _number, "range": _range,
    "reversed": reversed, "set": set, "sorted": sorted, "str": _text, "sum": sum, "tuple": tuple,
    "zip": zip,
}  # fmt: skip


def _method(value: Any, name: str, *arguments: Any, **named: Any) -> Any:
    if isinstance(value, Words):
        return value.map(lambda word: getattr(word, name)(*arguments, **named))
    if type(value) not in (str, list, tuple, dict, set, MappingProxyType):
        raise TypeError(f"{type(value).__name__}.{name}")
    size = len(value)
    if name == "replace":
        size = value.count(arguments[0]) * len(arguments[1])
    elif name in ("join", "extend"):
        arguments = (list(arguments[0]),)
        size += len(arguments[0]) + sum(len(one) for one in arguments[0] if name == "join")
    if size > LARGEST:
        raise _too_large()
    return getattr(value, name)(*arguments, **named)


def frozen(value: Any, name: str) -> Any:
    """A value of a file that no call can change, so that equal texts have equal answers."""
    if value is None or isinstance(value, bool | int | str | FunctionType):
        return value
    if isinstance(value, list | tuple):
        return tuple(frozen(one, name) for one in value)
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, dict):
        return MappingProxyType({key: frozen(one, name) for key, one in value.items()})
    raise InputError(
        _("{name} can be used up").format(name=name),
        expected=_("numbers, texts, lists, sets and tables"),
        found=type(value).__name__,
    )


GUARDED: dict[str, Callable[..., Any]] = {
    "*times": _times,
    "*plus": _plus,
    "*power": _power,
    "*method": _method,
}  # names that nobody can write
