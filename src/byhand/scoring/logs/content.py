"""The content of a log file: its bytes, its text, and the objects of JSON or of JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byhand.errors import InputError
from byhand.files.mapped import shown
from byhand.language import _, later
from byhand.scoring.logs.findings import Finding

LARGEST = 2 * 2**30  # bytes
STREAM = "data:"  # what lines of a stream of server-sent events begin with
STREAM_END = "[DONE]"
BLANKS = re.compile(r"\s*")
PACKED = {  # what files of other kinds begin with
    b"\x1f\x8b": later("the file is packed: gunzip unpacks it"),
    b"\x80": later("nothing is unpickled: write JSON lines or npz"),
}
PRINTED = re.compile(r"[\[({\s]*(\w+\(|')")  # how Python shows an object


@dataclass(frozen=True)
class Entry:
    """One object of a file, and where it stands."""

    where: str
    value: Any


def read_bytes(path: Path) -> bytes:
    """The bytes of a file that is no pipe, not empty and not too large."""
    try:
        if not path.exists():
            raise InputError(
                _("there is no file {name}").format(name=repr(str(path)[:80])),
                expected=_("the log of an engine"),
            )
        if not path.is_file():
            raise InputError(
                _("logs are read from files"),
                where=str(path),
                expected=_("a file"),
                found=_("a folder") if path.is_dir() else _("a pipe or a device"),
            )
        size = path.stat().st_size
        if size > LARGEST:
            raise InputError(
                _("the file is too large"),
                where=str(path),
                expected=_("at most {count} bytes").format(count=f"{LARGEST:,}"),
                found=_("{count} bytes").format(count=f"{size:,}"),
                hint=_("cut the log into several files"),
            )
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            _("the file cannot be read: {reason}").format(reason=reason),
            where=shown(str(path)),
        ) from None
    if not data.strip():
        raise InputError(_("the log is empty"), where=str(path))
    return data


def read_text(path: Path, data: bytes) -> str:
    """The file as text in UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            _("the log is not text in UTF-8"),
            where=str(path),
            expected=_("JSON, JSON lines, npz, Parquet or a file of llama-perplexity"),
            found=_("byte {value} at place {place}").format(
                value=f"0x{data[error.start]:02X}", place=f"{error.start:,}"
            ),
            hint=next((_(hint) for magic, hint in PACKED.items() if data.startswith(magic)), None),
        ) from None


def entries(path: Path, text: str) -> tuple[list[Entry], list[Finding]]:
    """The objects of a file of JSON or of JSON lines; what is cut off is an error."""
    findings: list[Finding] = []
    twice: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) < len(pairs):
            names = [name for name, _value in pairs]
            twice.append(next(name for name in names if names.count(name) > 1))
        return table

    decoder = json.JSONDecoder(object_pairs_hook=once)
    try:
        found = [Entry(str(path), decoder.decode(text))]
    except RecursionError:
        raise _nested(str(path)) from None
    except ValueError as whole:
        try:
            twice.clear()
            found = list(_one_after_another(path, text, decoder))
        except (ValueError, RecursionError):
            twice.clear()
            found = list(_lines(path, text, decoder, whole))
    if twice:
        findings.append(
            Finding(
                "repeated name",
                _("A name stands twice in one object; the last value was read."),
                shown(twice[0]),
                str(path),
            )
        )
    return found, findings


def _one_after_another(path: Path, text: str, decoder: json.JSONDecoder) -> Iterator[Entry]:
    """Objects one after the other, each on a line or over several; nothing else."""
    place, line = 0, 1
    while (begin := _after_blanks(text, place)) < len(text):
        line += text.count("\n", place, begin)
        value, place = decoder.raw_decode(text, begin)
        yield Entry(_("{file}: line {line}").format(file=path, line=line), value)
        line += text.count("\n", begin, place)


def _after_blanks(text: str, place: int) -> int:
    found = BLANKS.match(text, place)
    return found.end() if found else place


def _lines(path: Path, text: str, decoder: json.JSONDecoder, whole: ValueError) -> Iterator[Entry]:
    """The objects of a stream of server-sent events; else the error of a line that is no JSON."""
    lines = [(place, line.strip()) for place, line in enumerate(text.split("\n"), 1)]
    lines = [(place, line) for place, line in lines if line and not line.startswith(":")]
    for count, (place, line) in enumerate(lines):
        where = _("{file}: line {line}").format(file=path, line=place)
        line = line.removeprefix(STREAM).strip()
        if line == STREAM_END:
            continue
        try:
            yield Entry(where, decoder.decode(line))
        except RecursionError:
            raise _nested(where) from None
        except ValueError as error:
            raise _broken(path, text, count, len(lines), where, error, whole) from None


def _broken(
    path: Path, text: str, count: int, lines: int, where: str, error: ValueError, whole: ValueError
) -> InputError:
    """The error of JSON that cannot be read: where it breaks off, if it does."""
    first = count == 0
    reason = whole if first else error
    message = getattr(reason, "msg", None) or str(reason)
    if first and text.lstrip()[:1] not in ("{", "["):
        return InputError(
            _("this is not the log of an engine that byhand knows"),
            where=str(path),
            expected=_("JSON, JSON lines, npz, Parquet or a file of llama-perplexity"),
            found=shown(text.lstrip()[:60]),
            hint=_as_python(text),
        )
    place = getattr(reason, "pos", 0)
    end = len(text.rstrip()) if first else None
    if (first and end is not None and place >= end - 1) or (not first and count == lines - 1):
        return InputError(
            _("the log is cut off"),
            where=str(path) if first else where,
            expected=_("whole JSON"),
            found=shown(message),
            hint=_("copy the file again")
            if first
            else _("remove the last line: {count} before it are whole").format(count=count),
        )
    return InputError(
        _("this is not JSON"),
        where=str(path) if first else where,
        found=shown(message),
        hint=_as_python(text),
    )


def _as_python(text: str) -> str | None:
    """The hint where an object was written as Python shows it."""
    return (
        _("this is how Python shows an object; json.dumps writes JSON")
        if (PRINTED.match(text))
        else None
    )


def _nested(where: str) -> InputError:
    return InputError(_("the JSON is nested too deeply"), where=where)
