"""Claims written by hand: a heading, and names with numbers, words or lists of them.

YAML, JSON, CSV and spreadsheets become nodes with file and line (`files.tree`), under the same
limits as model files.  Here nodes become a sheet.  `numerals` reads numbers, `printed_floats` reads
floats that a program printed in full, and `matches` finds the steps of the names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.checking.claims import DIRECTION, VALUE, Entry, Sheet
from byhand.checking.readers.numerals import BLANK, Numeral, blank, exact_numeral, numeral
from byhand.checking.readers.printed_floats import floats_of
from byhand.errors import InputError, ModelFileError, ShapeError
from byhand.files import scalars
from byhand.files.tree import List, Node, Scalar, Table, describe
from byhand.language import _

CLAIMS, GIVEN, WORKING = "claims", "given", "working"
LABELS = ("name", "student")
HEADING = ("text", "source", "target", "precision", "optimizer", "about", "marks", "numbers",
           "decimal", *LABELS)  # fmt: skip
AS_IT_STANDS = ("text", "source", "target")
NOTHING = ("", "null")
WORDS = ("next", "tokens", "hook_tokens", "input_ids")  # lines whose values are tokens
POINTING = "direction."
CORRECTED = ("mistake", "correction")  # claims about a printed working
WHOLE = ("count.", "mistake")  # claims that are whole numbers: a comma is no decimal comma
RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_RAISED = re.compile(f"[{RAISED}]+")
_DECIMAL_COMMA = re.compile(r"([-+−~≈]?\s*[0-9]*),([0-9]+%?)")


@dataclass(frozen=True, slots=True)
class Manner:
    """How the numbers of a sheet are written."""

    comma: bool = False  # with a decimal comma; a row has semicolons between its numbers
    exact: bool = False  # a decimal is meant exactly


USUAL = Manner()


def sheet_of(source: str, table: Table) -> Sheet:
    """The sheet of a table: claims under `claims`, or beside the heading's keys."""
    claims, marks = _lines(table, CLAIMS), _marks(table.get("marks"))
    if claims is None:
        aside = (*HEADING, GIVEN, WORKING)
        claims = {k: node for k, node in table.entries.items() if k not in aside}
    else:
        table.only(*HEADING, CLAIMS, GIVEN, WORKING)
    if not claims:
        raise table.wrong(
            _("there are no claims"),
            expected=_("addresses with their values, such as {example}").format(
                example="loss: 1.8313"
            ),
            found=describe(table) if table.entries else _("nothing"),
        )
    manner = Manner(_is(table, "decimal", "comma", "point"), _is(table, "numbers", "exact"))
    given = _entries(_lines(table, GIVEN) or {}, replace(manner, comma=False))
    return Sheet(
        source,
        (
            *_entries(claims, manner, forgiving=bool(marks)),
            *(replace(entry, given=True) for entry in given),
        ),
        text=_heading(table, "text"),
        read_text=_heading(table, "source"),
        target=_heading(table, "target"),
        precision=_heading(table, "precision"),
        optimizer=_heading(table, "optimizer"),
        label=_heading(table, *LABELS),
        marks=marks,
        exact=manner.exact,
        working=_entries(_lines(table, WORKING) or {}, replace(manner, comma=False)),
    )


def _entries(
    lines: Mapping[str, Node], manner: Manner, *, forgiving: bool = False
) -> tuple[Entry, ...]:
    read = _answer if forgiving else entry_of
    return tuple(read(name, node, manner) for name, node in lines.items())


def _answer(name: str, node: Node, manner: Manner) -> Entry:
    """A student's answer; what cannot be read spoils its own line and not the whole sheet."""
    try:
        return entry_of(name, node, manner)
    except InputError:
        place = f"{node.file}:{node.line}" if node.line else f"{node.file}: {name}"
        return unread(Entry(name.strip(), np.zeros(()), place), _no_number(node))


def unread(entry: Entry, reason: str) -> Entry:
    """The entry of an answer that cannot be read: nothing is claimed, and the reason is kept."""
    return replace(
        entry, values=np.zeros(()), slack=0.0, claimed=np.zeros((), np.bool_), unread=reason
    )


def _no_number(node: Node) -> str:
    """That an answer cannot be read, with the part of it that is no number."""
    parts = node.items if isinstance(node, List) else (node,)
    for part in parts:
        try:
            numeral(part)
        except InputError:
            return _("“{written}” is not a number").format(written=describe(part))
    return _("this is not a row of numbers")


def _is(table: Table, key: str, word: str, *others: str) -> bool:
    """Whether a heading says this word; an error where it says something unknown."""
    node = table.get(key)
    return node is not None and scalars.word(node, word, *others) == word


def _lines(table: Table, key: str) -> Mapping[str, Node] | None:
    """The lines under a key; None without the key."""
    node = table.get(key)
    if node is None or isinstance(node, Table):
        return None if node is None else node.entries
    raise node.wrong(
        _("claims are a table") if key == CLAIMS else _("what is given is a table"),
        expected=_("addresses with their values, one a line"),
    )


def _heading(table: Table, *keys: str) -> str | None:
    for key in keys:
        if (node := table.get(key)) is None or (isinstance(node, Scalar) and node.text in NOTHING):
            continue
        if isinstance(node, Scalar) and key in AS_IT_STANDS:
            return node.text  # a trailing space may be a character token
        return scalars.text(node)
    return None


def _marks(node: Node | None) -> Mapping[str, Fraction]:
    """The marks for each line, by the line's name."""
    if node is None:
        return {}
    if not isinstance(node, Table):
        raise node.wrong(
            _("marks are a table"), expected=_("names of lines with what each is worth")
        )
    marks = {name.strip(): scalars.number(mark) for name, mark in node.entries.items()}
    for name, worth in marks.items():
        if worth < 0:
            raise node.entries[name].wrong(
                _("a line cannot be worth less than nothing"),
                expected=_("a number that is not negative"),
                found=str(worth),
            )
    return marks


# ------------------------------------------------------------------ one claim


def entry_of(name: str, node: Node, manner: Manner = USUAL) -> Entry:
    """One claim: a number, a token, or nested lists of them with rows of one length."""
    name = name.strip()
    node = _as_written(name, node, manner)
    kind = DIRECTION if name.startswith(POINTING) else VALUE
    place = f"{node.file}:{node.line}" if node.line else f"{node.file}: {name}"
    shape = _shape(node) or ()
    flat = list(_leaves(node, shape))
    if name.partition("[")[0].rstrip() in WORDS:
        words = np.empty(len(flat), dtype=object)
        words[:] = [
            "" if leaf is None else leaf.text.strip() or leaf.text  # a space may be a token
            for leaf in flat
        ]
        claimed = np.asarray([leaf is not None for leaf in flat], dtype=np.bool_)
        return Entry(name, words.reshape(shape), place, 0.0, _shaped(claimed, shape), None, kind)
    dumped = None if manner.exact else floats_of([leaf.text for leaf in flat if leaf is not None])
    if dumped is not None:
        claimed = np.asarray([leaf is not None for leaf in flat], dtype=np.bool_)
        values, format = np.zeros(len(flat)), dumped[1]
        values[claimed] = dumped[0]
        return Entry(name, values.reshape(shape), place, 0.0, _shaped(claimed, shape), format, kind)
    number = exact_numeral if manner.exact else numeral
    read = [BLANK if leaf is None else number(leaf) for leaf in flat]
    return _numbers(name, kind, place, read, shape)


def _as_written(name: str, node: Node, manner: Manner) -> Node:
    """The same numbers in lists, with decimal points: "0,3; 0,1" is [0.3, 0.1]."""
    if isinstance(node, List):
        return replace(node, items=tuple(_as_written(name, item, manner) for item in node.items))
    if not isinstance(node, Scalar) or name.partition("[")[0].rstrip() in WORDS:
        return node
    if ";" in node.text:
        parts = (replace(node, text=text.strip()) for text in node.text.strip("[] ;").split(";"))
        return List(
            node.file,
            node.line,
            node.key,
            tuple(_as_written(name, part, manner) for part in parts),
        )
    if manner.exact:
        node = replace(node, text=_RAISED.sub(_raised, node.text))
    if manner.comma and not name.startswith(WHOLE):
        found = _DECIMAL_COMMA.fullmatch(node.text.strip())
        return node if found is None else replace(node, text=f"{found[1]}.{found[2]}")
    return node


def _raised(signs: re.Match[str]) -> str:
    """e² is e^2."""
    return "^" + "".join(str(RAISED.index(sign)) for sign in signs[0])


def _numbers(
    name: str, kind: str, place: str, read: list[Numeral], shape: tuple[int, ...]
) -> Entry:
    values = np.asarray([each.value for each in read], dtype=np.float64)
    slack = np.asarray([each.slack for each in read], dtype=np.float64)
    if kind == VALUE:
        _mean_whole_numbers(read, slack)
    claimed = np.asarray([each.claimed for each in read], dtype=np.bool_)
    return Entry(
        name,
        values.reshape(shape),
        place,
        slack.reshape(shape),
        _shaped(claimed, shape),
        None,
        kind,
    )


def _mean_whole_numbers(read: list[Numeral], slack: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    """Gives whole numbers the slack of the decimals beside them; without any they are exact."""
    if not any(each.whole for each in read):
        return
    beside = max((each.slack for each in read if not each.whole), default=0.0)
    for place, each in enumerate(read):
        if each.whole:
            slack[place] = min(each.slack, beside)


def _shaped(
    claimed: np.ndarray[tuple[int], np.dtype[np.bool_]], shape: tuple[int, ...]
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None:
    return None if claimed.all() else claimed.reshape(shape)


def _shape(node: Node) -> tuple[int, ...] | None:
    """The shape of nested lists; None for a blank, which may cover a whole row."""
    if isinstance(node, Table):
        raise node.wrong(_("a claim is a number, or a list of numbers"), expected=_("a number"))
    if not isinstance(node, List):
        return None if blank(node) else ()
    first: tuple[int, ...] | None = None
    for item in node.items:
        shape = _shape(item)
        if shape is None or shape == first:
            continue
        if first is not None:
            raise _ragged(item, first, shape)
        first = shape
    return (len(node.items), *(first or ()))


def _ragged(node: Node, first: tuple[int, ...], found: tuple[int, ...]) -> InputError:
    return ShapeError(
        _("the rows have different lengths"),
        where=node.where,
        expected=_("as in the first row: {shape}").format(shape=_sides(first)),
        found=_sides(found),
    )


def _sides(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) if shape else _("one number")


def _leaves(node: Node, shape: tuple[int, ...]) -> Iterator[Scalar | None]:
    """The entries in order; None for each entry that a blank covers."""
    if isinstance(node, List):
        for item in node.items:
            yield from _leaves(item, shape[1:])
    elif blank(node):
        yield from [None] * int(np.prod(shape, dtype=np.int64))
    else:
        assert isinstance(node, Scalar)
        yield node


# ------------------------------------------------------------------ errors


def as_claims_error(error: ModelFileError) -> InputError:
    """The same error, worded for a claims file."""
    message, hint = _in_our_words().get(error.message, error.message), error.hint
    if error.message == _("the file is too large"):
        hint = _("large arrays belong in a safetensors or npz file")
    expected = error.expected
    if error.message == _("a model file is a table"):
        expected = _("addresses with their values, such as {example}").format(
            example="loss: 1.8313"
        )
    where = (error.where or "").replace(":0: ", ": ", 1)  # a Python mapping has no lines
    return InputError(message, where=where, expected=expected, found=error.found, hint=hint)


def _in_our_words() -> dict[str, str]:
    """Wordings for model files → wordings for claims."""
    return {
        _("a model file is a table"): _("a claims file is a table"),
        _("a model file is one document"): _("a claims file is one document"),
        _("a model file has no aliases"): _("a claims file has no aliases"),
        _("a model file has no anchors"): _("a claims file has no anchors"),
        _("a model file has no tags"): _("a claims file has no tags"),
        _("a model file has no merge keys"): _("a claims file has no merge keys"),
        _("this is a folder, not a model file"): _("this is a folder, not a claims file"),
    }
