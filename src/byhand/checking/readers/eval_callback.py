"""Claims in the text that llama-eval-callback prints: each tensor of the graph, as it is computed.

    common_debug_cb_eval:   attn_norm-0 = (f32)  MUL(norm-0{64, 5, 1, 1}, blk.0…}) = {64, 5, 1, 1}
        [
            [
                [     -0.0181,       0.0272,   ...,        0.1045  ],
                ...,
            ],
        ]
        sum = 12.345678

Of a side that is longer than six, the first and the last three are printed.  Only what is printed
is claimed, to four decimals.  Where nothing is left out, the numbers must add up to the sum.  The
ids of the text stand at the top, one a line.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.claims import Entry, Sheet
from byhand.checking.readers.arrays import no_claims
from byhand.errors import InputError
from byhand.files.mapped import shown
from byhand.language import _

LARGEST = 256 * 2**20  # bytes
MOST_NUMBERS = 2**26  # of one tensor, those that are left out included
MOST_PRINTED = 2**22  # numbers of one tensor
WORKED_IN = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
WHOLE = ("i8", "i16", "i32", "i64")
HALF_A_PLACE = 0.5e-4 * (1 + 1e-9)
_HEAD = re.compile(
    r"^\S*:\s+(?P<name>\S.*?) = \((?P<type>\w+)\)\s+(?P<op>\w[\w ]*)\((?P<reads>.*)\) = "
    r"\{(?P<sides>\d{1,12}(?:, \d{1,12}){0,3})\}\s*$"
)
_COUNT = re.compile(r"number of input tokens = (\d{1,7})")
_SUM = re.compile(r"\s*sum\s*=\s*(\S+)")
_LEFT_OUT = "..."


def read_eval_callback(path: Path) -> Sheet:
    """The claims of such a text, and the ids of its tokens."""
    lines = _lines(path)
    entries: list[Entry] = []
    seen: Counter[str] = Counter()
    head: re.Match[str] | None = None
    body: list[str] = []
    start = 0
    for number, line in enumerate(lines, 1):
        match = _HEAD.match(line)
        if match is None:
            body.append(line)
            continue
        if head is not None:
            entries.append(_entry(path, start, head, body, seen))
        head, body, start = match, [], number
    if head is None:
        raise InputError(
            _("this is not the text of llama-eval-callback"),
            where=str(path),
            expected=_("lines such as {example}").format(
                example="…: attn_norm-0 = (f32) MUL(…) = {64, 5, 1, 1}"
            ),
            found=shown(lines[0]) if lines else _("nothing"),
        )
    entries.append(_entry(path, start, head, body, seen))
    if not entries:
        no_claims(str(path))
    return Sheet(str(path), tuple(entries), tokens=_tokens(lines), precision=_precision(entries))


def _lines(path: Path) -> list[str]:
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(
                _("the file is too large"),
                where=str(path),
                expected=_("at most {count} bytes").format(count=f"{LARGEST:,}"),
            )
        return path.read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError(
            _("the file cannot be read: {reason}").format(reason=error.strerror or error),
            where=str(path),
        ) from None


def _precision(entries: list[Entry]) -> str | None:
    """What was worked in: what is printed in decimals does not tell it by itself."""
    formats = {entry.format for entry in entries if entry.format in WORKED_IN.values()}
    return "float32" if "float32" in formats else next(iter(formats), None)


def _tokens(lines: list[str]) -> npt.NDArray[np.int64] | None:
    for at, line in enumerate(lines):
        if match := _COUNT.search(line):
            ids = [re.fullmatch(r"(?:.*\s)?(\d{1,9})", text.rstrip())
                   for text in lines[at + 1 : at + 1 + int(match[1])]]  # fmt: skip
            if ids and all(ids) and len(ids) == int(match[1]):
                return np.asarray([int(each[1]) for each in ids if each], np.int64)
    return None


# ------------------------------------------------------------------ one tensor


def _entry(
    path: Path, line: int, head: re.Match[str], body: list[str], seen: Counter[str]
) -> Entry:
    name = head["name"]
    where = f"{path}:{line}"
    time, seen[name] = seen[name], seen[name] + 1
    source = re.match(r"([^{,]*)", head["reads"])
    entry = Entry(
        f"{name}#{time}" if time else name,
        np.zeros(0),
        where,
        format=WORKED_IN.get(head["type"], "int64" if head["type"] in WHOLE else "float32"),
        made_by=head["op"].strip(),
        made_of=source[1].strip() if source else "",
    )
    shape = tuple(int(side) for side in head["sides"].split(","))[::-1]
    if math.prod(shape) > MOST_NUMBERS:
        return replace(entry, problem=_("it has too many numbers"))
    printed = _Printed(shape)
    try:
        total = printed.read(body)
    except ValueError:
        return replace(entry, problem=_("its numbers cannot be read"))
    if printed.whole and total is not None and not printed.adds_up(total):
        return replace(entry, problem=_("its numbers do not add up to its sum"))
    slack: float = 0.0 if entry.format == "int64" else HALF_A_PLACE
    claimed = None if printed.whole else printed.claimed
    return replace(entry, values=printed.values, claimed=claimed, slack=slack)


class _Printed:
    """The numbers of a tensor that are printed, at their places."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.values = np.zeros(shape)
        self.claimed = np.zeros(shape, np.bool_)

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return bool(self.claimed.all())

    def read(self, body: list[str]) -> float | None:
        """Reads the lines of a tensor; returns the sum below them, if there is one."""
        rows: list[tuple[list[float], list[float]]] = []
        gaps: set[int] = set()  # rows before which others are left out
        total = None
        for line in body:
            text = line.strip()
            if match := _SUM.match(line):
                total = float(match[1])
            elif text.startswith("[") and any(sign.isdigit() or sign in "ni" for sign in text):
                rows.append(_row(text))
            elif text.startswith(_LEFT_OUT):
                gaps.add(len(rows))
        if sum(len(first) + len(last) for first, last in rows) > MOST_PRINTED:
            raise ValueError
        places = list(_places(self.values.shape[:-1], len(rows), bool(gaps)))
        if len(places) != len(rows):
            raise ValueError
        width = self.values.shape[-1]
        for place, (first, last) in zip(places, rows, strict=True):
            if len(first) + len(last) > width:
                raise ValueError
            self._put(place, 0, first)
            self._put(place, width - len(last), last)
        return total

    def _put(self, place: tuple[Any, ...], start: int, numbers: list[float]) -> None:
        cut = (*place, slice(start, start + len(numbers)))
        self.values[cut], self.claimed[cut] = numbers, True

    def adds_up(self, total: float) -> bool:
        """Whether the numbers add up to the sum, as far as their decimals and float32 go."""
        if not math.isfinite(total) or not np.isfinite(self.values).all():
            return True
        count, size = self.values.size, float(np.abs(self.values).sum())
        allowed = count * HALF_A_PLACE + (size + count * HALF_A_PLACE) * count * 2.0**-23 + 1e-6
        return bool(abs(float(self.values.sum()) - total) <= allowed)


def _row(text: str) -> tuple[list[float], list[float]]:
    """The numbers of a row before what is left out, and behind it."""
    first, gap, last = text.strip("[], ").partition(_LEFT_OUT)
    return _numbers(first), _numbers(last) if gap else []


def _numbers(text: str) -> list[float]:
    return [float(each) for each in text.replace(",", " ").split()]


def _places(sides: tuple[int, ...], rows: int, gaps: bool) -> Iterator[tuple[Any, ...]]:
    """The places of the printed rows: of a long side, the first and the last three."""
    each = [_kept(side, gaps) for side in sides]
    if not gaps and math.prod(sides) != rows:
        return
    yield from product(*each)


def _kept(side: int, gaps: bool) -> list[int]:
    return [*range(3), *range(side - 3, side)] if gaps and side > 6 else list(range(side))
