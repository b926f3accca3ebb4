"""Answers as students type them: a unit behind a number, a comma for a point, a bracket left out.

A worksheet's file is YAML, and its authors are people who learn something else.  A line that YAML
would refuse, or that a person reads at once, is written anew before it is read; every other line
stays as it is.
"""

from __future__ import annotations

import json
import re

import yaml

from byhand.checking.readers.numerals import BLANKS

_WORKSHEET = re.compile(r"^marks:[ \t]*$.*^claims:[ \t]*$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^claims:[ \t]*\n((?:[ \t]+.*\n?|\s*\n)*)", re.MULTILINE)
_LINE = re.compile(r'^([ \t]+)("(?:[^"\\]|\\.)*"|[^\s"#:][^:#]*?)[ \t]*:[ \t]*(.*)$')
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_COMMA = re.compile(r"[-+−~≈]?\s*\d*,\d+%?")
_POINT = re.compile(r"[-+−~≈]?\d*\.\d+%?")
_UNIT = re.compile(r"(?P<number>[-+−~≈]?\s?\d*\.?\d+(?:[eE][-+]?\d+)?)\s+[^\W\d_]{2,12}\.?")
_APART = re.compile(r",\s+|\s*;\s*")
_WORD = re.compile(r'"?next\b')
_SIGNS = ("&", "!", "*", "|", ">", "@", "`", "%", "{")  # YAML means something by them
_NOTHING = ("", "?", "-", "–", "—", "−", "...", "…")


def readable(text: str) -> str:
    """The text of a claims file; on a worksheet, every answer is something that YAML reads."""
    if _WORKSHEET.search(text) is None:
        return text
    comma = "\nprecision: decimals:" in text and "\ndecimal: comma" not in text
    return _BLOCK.sub(lambda block: _block(block[0], comma), text)


def _block(block: str, comma: bool) -> str:
    lines = block.split("\n")
    for place, line in enumerate(lines):
        found = _LINE.match(line)
        if found is None:
            continue
        following = lines[place + 1] if place + 1 < len(lines) else ""
        if following.strip() and _LINE.match(following) is None:
            continue  # the answer goes on below
        indent, key, value = found.groups()
        value = _COMMENT.sub("", value).strip()
        said = _answer(value, comma and _WORD.match(key) is None)
        if said is None:
            said = value if _is_yaml(f"x: {value}") else _quoted(value)
        lines[place] = f"{indent}{key}: {said}"
    return "\n".join(lines)


def _answer(value: str, comma: bool) -> str | None:
    """An answer as YAML, where that is more than was written; else None."""
    listed = value[:1] == "[" or value[-1:] == "]"
    inside = value.strip("[] \t")
    if not inside and listed:
        return "_"
    if not inside.strip(" ,;") or '"' in inside or "'" in inside or "[" in inside:
        return None
    parts = _parts(inside, listed)
    said = [_number(part, comma) for part in parts]
    plain = ";" in inside or value == f"[{inside}]" or (len(parts) == 1 and not listed)
    if said == parts and plain:
        return None  # read as it is
    quoted = [_quoted(each) for each in said]
    return f"[{', '.join(quoted)}]" if listed or len(quoted) > 1 else quoted[0]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _parts(inside: str, listed: bool) -> list[str]:
    """The numbers of a row: apart by commas, semicolons, or blanks alone."""
    parts = _APART.split(inside)
    if len(parts) == 1 and listed and inside.count(",") > 1:
        parts = inside.split(",")
    words = inside.split()
    if len(parts) == 1 < len(words) and all(_is_number(each) for each in words):
        parts = words
    return [part.strip() for part in parts]


def _is_number(text: str) -> bool:
    return text in BLANKS or bool(_POINT.fullmatch(text) or _COMMA.fullmatch(text))


def _number(text: str, comma: bool) -> str:
    """A number without what a person adds to it: an equals sign, a unit, a full stop."""
    if text in _NOTHING:
        return "_"
    text = text.removeprefix("=").strip()
    if (found := _UNIT.fullmatch(text)) is not None:
        text = found["number"]
    if re.fullmatch(r"[-+−]?\d*\.\d+\.", text):
        text = text[:-1]
    return text.replace(",", ".") if comma and _COMMA.fullmatch(text) else text


def _is_yaml(line: str) -> bool:
    if line.removeprefix("x: ").startswith(_SIGNS):
        return False
    try:
        return isinstance(yaml.safe_load(line), dict)
    except yaml.YAMLError:
        return False
