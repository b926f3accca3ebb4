"""The modules that a quantisation config names: by name, by ending, or by a small pattern.

A pattern is a regular expression without quantified groups and with few repetitions, so that no
config can make the search long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from byhand.files.mapped import shown
from byhand.language import _
from byhand.models.huggingface.config import Config

PATTERN = "re:"
MOST_NAMES = 100_000
MOST_REPEATS = 6
LONGEST = 500  # characters of a name or a pattern
_REPEATED_GROUP = re.compile(r"\)[*+?{]|[*+?}]{2,}.*[*+]{2}|\\[1-9]|\(\?(?!:)")
_REPEAT = re.compile(r"(?<!\\)[*+]|\{\d*,\d*\}")


def names_in(config: Config, key: str) -> tuple[str, ...]:
    """The list of names under a key, or none."""
    _key, found = config.value(key, None)
    if found is None:
        return ()
    if (
        not isinstance(found, list)
        or len(found) > MOST_NAMES
        or not all(isinstance(name, str) and 0 < len(name) <= LONGEST for name in found)
    ):
        raise config.refuse(key, _("a list of module names, or null"))
    return tuple(found)


def matched(module: str, names: Iterable[str], config: Config, key: str) -> str | None:
    """The first name of the list that means this module; None where none does."""
    return next((name for name in names if _means(name, module, config, key)), None)


def _means(name: str, module: str, config: Config, key: str) -> bool:
    if module == name or module.startswith(f"{name}.") or module.endswith(f".{name}"):
        return True
    pattern = name.removeprefix(PATTERN)
    if pattern == name and re.fullmatch(r"[\w.-]*", name):
        return False
    return _compiled(pattern, config, key).match(module[:LONGEST]) is not None


def _compiled(pattern: str, config: Config, key: str) -> re.Pattern[str]:
    try:
        return _pattern(pattern)
    except (ValueError, re.error, RecursionError, OverflowError):
        raise config.refuse(
            key,
            _("names, or patterns with few repetitions"),
            pattern,
            message=_("byhand does not read the pattern {pattern}").format(pattern=shown(pattern)),
        ) from None


@lru_cache(maxsize=1024)
def _pattern(pattern: str) -> re.Pattern[str]:
    if _REPEATED_GROUP.search(pattern) or len(_REPEAT.findall(pattern)) > MOST_REPEATS:
        raise ValueError(pattern)
    return re.compile(pattern)
