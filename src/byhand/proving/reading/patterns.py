r"""Patterns: the notation for many texts at once, read into the sequences of places that it allows.

    [0-9]{10} + [0-9]{10} =      tokens, sets of tokens, repetitions
    {a9} … {a0} + {b9} … {b0} =  variables, one after the other
    (?<a>[A B C]) . {1,3} {a}    a place with a name, any tokens, and the same token again
    (yes | no){2}                alternatives, in parentheses

In a vocabulary of words, tokens are separated by white space; in one of characters, each character
is a token, and white space that is no token is skipped.  A backslash takes the meaning from the
sign behind it: `\(` is a parenthesis.  Texts of different lengths make different sequences.
docs/property-files.md has the whole notation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from byhand.errors import InputError, TextError, nearest
from byhand.language import _
from byhand.proving.reading.sequences import (
    Named,
    OneOf,
    Part,
    Row,
    Sequence,
    Times,
    Value,
    as_lists,
    either,
    expanded,
)
from byhand.tokens import Tokenizer, Vocabulary

DEEPEST = 50  # parentheses within each other
_COUNT = re.compile(r"\{\s*([0-9]{1,6})\s*(?:(,)\s*([0-9]{1,6})?\s*)?\}")
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBERED = re.compile(r"([^\W\d]\w*?)(?:([0-9]{1,6})|\[([0-9]{1,6})\])")
_RANGE = re.compile(r"(.+)-(.+)", re.DOTALL)
_SPECIAL = frozenset("[](){}|")


def read_pattern(
    text: str, tokenizer: Tokenizer, groups: Mapping[str, tuple[int, ...]] | None = None
) -> tuple[Sequence, ...]:
    """Every sequence of places that a pattern allows, the shortest alternatives first."""
    part = _Reader(text, tokenizer, groups or {}).whole()
    return expanded(part)


# --------------------------------------------------------------------------- the notation


class _Reader:
    def __init__(
        self, text: str, tokenizer: Tokenizer, groups: Mapping[str, tuple[int, ...]]
    ) -> None:
        self.text = text
        self.at = 0
        self.tokenizer = tokenizer
        self.groups = groups
        self.characters = isinstance(tokenizer, Vocabulary) and tokenizer.kind == "characters"
        self.names: set[str] = set()
        self.depth = 0

    def wrong(
        self, message: str, expected: str | None = None, hint: str | None = None
    ) -> InputError:
        found = self.text[self.at : self.at + 20] or _("the end")
        return InputError(
            message,
            expected=expected,
            found=_("{what} at column {column}").format(what=found, column=self.at + 1),
            hint=hint,
        )

    def whole(self) -> Part:
        row = self.row()
        if self.at < len(self.text):
            sign = self.text[self.at]
            hint = _("write \\{sign} for the token").format(sign=sign)
            raise self.wrong(_("{sign} closes nothing").format(sign=repr(sign)), hint=hint)
        return row

    # ----------------------------------------------------------------------- rows and parts

    def row(self) -> Row:
        parts: list[Part] = []
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign in ")]}" or (sign == "|" and self.depth):
                break
            if sign.isspace() and not (self.characters and self.token(sign) is not None):
                self.at += 1
            elif (run := self.dots()) is not None:
                self.at += run
                self.run(parts)
            else:
                parts.append(self.times(self.part()))
        return Row(tuple(parts))

    def token(self, word: str) -> int | None:
        try:
            return self.tokenizer.id(word)
        except TextError:
            return None

    def part(self) -> Part:
        sign = self.text[self.at]
        if sign == "(":
            return self.parentheses()
        if sign == "[":
            return OneOf(self.bracketed())
        if sign == "." and self.alone():
            self.at += 1
            return OneOf(tuple(range(len(self.tokenizer))))
        return self.literal()

    def alone(self) -> bool:
        """Whether the sign here is no part of a longer word."""
        if self.characters:
            return True
        before = self.text[self.at - 1] if self.at else " "
        behind = self.text[self.at + 1] if self.at + 1 < len(self.text) else " "
        return (before.isspace() or before in _SPECIAL) and (behind.isspace() or behind in _SPECIAL)

    def times(self, part: Part) -> Part:
        """The part, repeated as often as stands behind it."""
        found = _COUNT.match(self.text, self.at)
        if found is None:
            return part
        least = int(found[1])
        if found[2] and not found[3]:
            raise self.wrong(
                _("a repetition needs an end"), expected=_("{least,most}, such as {1,10}")
            )
        most = int(found[3]) if found[3] else least
        if most < least:
            raise self.wrong(
                _("a repetition goes from the smaller to the larger number"),
                expected=f"{{{most},{least}}}",
            )
        self.at = found.end()
        return Times(as_lists(part), least, most)

    def parentheses(self) -> Part:
        start = self.at
        self.at += 1
        name = ""
        if self.text.startswith("?<", self.at):
            end = self.text.find(">", self.at)
            name = self.text[self.at + 2 : end].strip() if end > 0 else ""
            if not _NAME.fullmatch(name):
                raise self.wrong(_("a place is named like this: (?<a>[0-9])"))
            if name in self.names:
                raise self.wrong(_("the name {name} is given twice").format(name=repr(name)))
            self.names.add(name)
            self.at = end + 1
        if self.depth >= DEEPEST:
            raise self.wrong(_("nested more than {count} deep").format(count=DEEPEST))
        self.depth += 1
        options = [self.row()]
        while self.text[self.at : self.at + 1] == "|":
            self.at += 1
            options.append(self.row())
        self.depth -= 1
        if self.text[self.at : self.at + 1] != ")":
            self.at = start
            hint = _("write \\{sign} for the token").format(sign="(")
            raise self.wrong(_("a parenthesis is not closed"), expected=")", hint=hint)
        self.at += 1
        part = either(options)
        return Named(name, part, alone=isinstance(part, OneOf)) if name else part

    # ----------------------------------------------------------------------- tokens

    def bracketed(self) -> tuple[int, ...]:
        """The ids of a set: [0-9], [A B C], [^A], [:group:]."""
        start = self.at
        self.at += 1
        but = self.text[self.at : self.at + 1] == "^"
        self.at += but
        pieces: list[str] = []
        plain: list[bool] = []  # whether a piece has no escaped sign
        begun = False
        while self.text[self.at : self.at + 1] != "]":
            if self.at >= len(self.text):
                self.at = start
                hint = _("write \\{sign} for the token").format(sign="[")
                raise self.wrong(_("a set of tokens is not closed"), expected="]", hint=hint)
            sign, escaped = self.sign()
            blank = sign.isspace() and not escaped
            if blank and not (self.characters and self.token(sign) is not None):
                begun = False
            elif begun:
                pieces[-1] += sign
                plain[-1] = plain[-1] and not escaped
            else:
                pieces.append(sign)
                plain.append(not escaped)
                begun = True
        self.at += 1
        ids = list(chain.from_iterable(map(self.members, pieces, plain)))
        if but:
            ids = [id for id in range(len(self.tokenizer)) if id not in set(ids)]
        if not ids:
            self.at = start
            raise self.wrong(_("a set without tokens"), expected="[A B C]")
        return tuple(dict.fromkeys(ids))

    def members(self, piece: str, plain: bool) -> Iterator[int]:
        """The ids that one piece of a set means: a group, a token, a range, or characters."""
        if plain and len(piece) > 2 and piece[0] == piece[-1] == ":":
            yield from self.group(piece[1:-1])
        elif not self.characters:
            yield from set_of_words(piece, self.tokenizer) if plain else (self.id(piece),)
        else:
            rest = piece
            while rest:
                if plain and len(rest) > 2 and rest[1] == "-":
                    yield from set_of_words(rest[:3], self.tokenizer)
                    rest = rest[3:]
                else:
                    yield self.id(rest[0])
                    rest = rest[1:]

    def group(self, name: str) -> tuple[int, ...]:
        if name not in self.groups:
            raise InputError(
                _("there is no group {name}").format(name=repr(name)),
                expected=", ".join(self.groups) or _("groups: {digit: [0, 1, 2]}"),
                found=name,
                hint=nearest(name, self.groups),
            )
        return self.groups[name]

    def id(self, word: str) -> int:
        return self.tokenizer.id(word)

    def sign(self) -> tuple[str, bool]:
        """The next sign, and whether a backslash stands before it."""
        sign = self.text[self.at]
        self.at += 1
        if sign != "\\":
            return sign, False
        if self.at >= len(self.text):
            raise self.wrong(_("a backslash stands before a sign"), expected="\\\\")
        self.at += 1
        return self.text[self.at - 1], True

    def literal(self) -> Part:
        """A token, or a place with a variable in braces."""
        if self.characters:
            if self.text[self.at] == "{":
                return Value(self.braces())
            return OneOf((self.id(self.sign()[0]),))
        word, value = "", None
        before = ""
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign == "{" and value is None and not _COUNT.match(self.text, self.at):
                value, before, word = self.braces(), word, ""
            elif sign in "[](){}" or sign.isspace() or (sign == "|" and self.depth):
                break
            else:
                word += self.sign()[0]
        if value is not None:
            return Value(value, before, word)
        if not word:
            raise self.wrong(
                _("a token is missing"),
                hint=_("a repetition stands right behind what it repeats: [0-9]{3}"),
            )
        return OneOf((self.id(word),))

    def braces(self) -> str:
        end = self.text.find("}", self.at)
        inside = self.text[self.at + 1 : end].strip() if end > 0 else ""
        if not inside:
            hint = _("write \\{sign} for the token").format(sign="{")
            raise self.wrong(
                _("braces hold a variable or a repetition"), expected="{a}, {3}, {1,10}", hint=hint
            )
        self.at = end + 1
        return inside

    # ----------------------------------------------------------------------- runs

    def dots(self) -> int | None:
        """How many signs the dots of {a9} … {a0} take, where they stand here."""
        for dots in ("…", "..."):
            if self.text.startswith(dots, self.at):
                end = self.at + len(dots)
                behind = self.text[end : end + 1] or " "
                if behind.isspace() or behind == "{":
                    return len(dots)
        return None

    def run(self, parts: list[Part]) -> None:
        """The variables between {a9} … {a0}, and the last of them."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        first = parts[-1] if parts else None
        last = self.part() if self.at < len(self.text) else None
        ends = [
            _NUMBERED.fullmatch(end.written) if isinstance(end, Value) else None
            for end in (first, last)
        ]
        one, two = ends
        if one is None or two is None or not _alike(first, last, one, two):
            raise self.wrong(
                _("dots stand between two variables of one family"),
                expected="{a9} … {a0}",
                hint=_("write \\{sign} for the token").format(sign="…"),
            )
        assert isinstance(first, Value)
        start, stop = (int(end[2] or end[3]) for end in (one, two))
        step = 1 if stop >= start else -1
        for place in range(start + step, stop + step, step):
            written = f"{one[1]}{place}" if one[2] else f"{one[1]}[{place}]"
            parts.append(replace(first, written=written))


def _alike(first: object, last: object, one: re.Match[str], two: re.Match[str]) -> bool:
    assert isinstance(first, Value)
    assert isinstance(last, Value)
    same = (first.before, first.after) == (last.before, last.after)
    return same and one[1] == two[1] and bool(one[2]) == bool(two[2])


def set_of_words(piece: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids of a token, or of all tokens of a range such as 0-9 or a-z."""
    try:
        return (tokenizer.id(piece),)
    except TextError:
        words = range_of_words(piece)
        if words is None:
            raise
        return tuple(tokenizer.id(word) for word in words)


def range_of_words(piece: str) -> list[str] | None:
    """The words from one to another: 0-12 by number, a-z by letter; None for no range."""
    ends = _RANGE.fullmatch(piece)
    if ends is None:
        return None
    first, last = ends[1], ends[2]
    if first.isdecimal() and last.isdecimal() and len(last) < 7 and int(first) <= int(last):
        return [str(n) for n in range(int(first), int(last) + 1)]
    if len(first) == len(last) == 1 and first <= last:
        return [chr(code) for code in range(ord(first), ord(last) + 1)]
    return None
