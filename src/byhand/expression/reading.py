"""Text → tree: a hand-written reader of the grammar that the package states.  Never `eval`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NoReturn

from byhand.errors import ExpressionError, nearest
from byhand.expression.rational import MOST_DIGITS, too_large
from byhand.expression.trees import (
    FUNCTIONS,
    Call,
    Entry,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    parts_of,
)
from byhand.language import _

LONGEST_TEXT = 20_000  # characters
DEEPEST_NESTING = 60  # brackets, roots and exponents within each other
DEEPEST_TREE = 150  # 1/2/3/… is deep without a bracket; trees are walked recursively

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[^\W\d]\w*(?:\.\w+)*)
    | (?P<index>\[\s*[0-9]{1,9}(?:\s*,\s*[0-9]{1,9})*\s*\])
    | (?P<sign>\*\*|[-+*/^()√·×−])
    )""",
    re.VERBOSE,
)
_SAME_SIGN = {"**": "^", "·": "*", "×": "*", "−": "-"}


def read_number(text: str) -> Fraction:
    """The rational number a decimal literal stands for: "0.2" is 1/5.

    Returns the exact value; refuses literals of more than MOST_DIGITS digits.
    """
    mantissa, _e, exponent = text.lower().partition("e")
    power = int(exponent or 0) if len(exponent) <= 6 else MOST_DIGITS
    if len(mantissa) + abs(power) > MOST_DIGITS:
        raise too_large(text)
    whole, _dot, places = mantissa.partition(".")
    return Fraction(int(whole + places)) * Fraction(10) ** (power - len(places))


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self.scan())
        self.at = 0
        self.depth = 0

    def scan(self) -> Iterator[tuple[str, str, int]]:
        position = 0
        text = self.text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                start = position + len(text[position:]) - len(text[position:].lstrip())
                self.fail(_("this sign has no meaning here"), start, text[start])
            word = match[match.lastgroup]
            yield match.lastgroup, _SAME_SIGN.get(word, word), match.start(match.lastgroup)
            position = match.end()
        yield "end", "", len(text)

    def fail(self, message: str, start: int, found: str, hint: str | None = None) -> NoReturn:
        shown = found if len(found) <= 40 else found[:39] + "…"
        raise ExpressionError(
            message,
            column=start + 1,
            found=_("{what} at column {column}").format(
                what=shown or _("the end"), column=start + 1
            ),
            hint=hint,
        )

    def take(self, *words: str) -> str | None:
        kind, word, _start = self.tokens[self.at]
        if kind == "sign" and word in words:
            self.at += 1
            return word
        return None

    def demand(self, word: str) -> None:
        if not self.take(word):
            _kind, found, start = self.tokens[self.at]
            self.fail(_("{word} is missing").format(word=repr(word)), start, found)

    def deeper(self, read: Callable[[], Expression]) -> Expression:
        """The result of `read`, one level deeper."""
        if self.depth == DEEPEST_NESTING:
            _kind, found, start = self.tokens[self.at]
            message = _("nested more than {count} deep").format(count=DEEPEST_NESTING)
            self.fail(message, start, found)
        self.depth += 1
        tree = read()
        self.depth -= 1
        return tree

    def whole(self) -> Expression:
        tree = self.sum()
        kind, found, start = self.tokens[self.at]
        if kind != "end":
            self.fail(_("the expression should end here"), start, found)
        return tree

    def sum(self) -> Expression:
        terms = [self.signed(self.product)]
        while sign := self.take("+", "-"):
            term = self.product()
            terms.append(Negative(term) if sign == "-" else term)
        return terms[0] if len(terms) == 1 else Sum(tuple(terms))

    def signed(self, read: Callable[[], Expression]) -> Expression:
        if self.take("-", "+") == "-":
            return Negative(read())
        return read()

    def product(self) -> Expression:
        factors = [self.power()]
        while True:
            if self.take("*"):
                factors.append(self.signed(self.power))
            elif self.take("/"):
                top = factors[0] if len(factors) == 1 else Product(tuple(factors))
                factors = [Quotient(top, self.signed(self.power))]
            elif self.starts_atom():
                factors.append(self.power())
            else:
                return factors[0] if len(factors) == 1 else Product(tuple(factors))

    def starts_atom(self) -> bool:
        kind, word, _start = self.tokens[self.at]
        return kind == "name" or (kind == "sign" and word in ("(", "√"))

    def power(self) -> Expression:
        base = self.atom()
        if not self.take("^"):
            return base
        return Power(base, self.deeper(lambda: self.signed(self.power)))

    def atom(self) -> Expression:
        kind, word, start = self.tokens[self.at]
        self.at += kind != "end"
        if kind == "number":
            return Number(read_number(word))
        if kind == "name":
            return self.named(word, start)
        if kind == "sign" and word == "√":
            return Call("sqrt", self.deeper(self.atom))
        if kind == "sign" and word == "(":
            return self.bracketed()
        self.fail(_("a number, a name or a bracket is missing"), start, word)

    def bracketed(self) -> Expression:
        inner = self.deeper(self.sum)
        self.demand(")")
        return inner

    def named(self, word: str, start: int) -> Expression:
        kind, text, _start = self.tokens[self.at]
        if kind == "index":
            self.at += 1
            return Entry(word, tuple(int(part) for part in text[1:-1].split(",")))
        if kind == "sign" and text == "(" and word in FUNCTIONS:
            self.at += 1
            return Call(word, self.bracketed())
        if kind == "sign" and text == "(" and len(word) > 1 and word != "pi":
            self.fail(
                _("there is no function {name}").format(name=repr(word[:40])),
                start,
                word,
                nearest(word[:40], FUNCTIONS)
                or _("known: {names}").format(names=", ".join(FUNCTIONS)),
            )
        return Name("pi" if word == "π" else word)


def parse(text: str) -> Expression:
    """The tree of an expression; an ExpressionError says what is wrong and at which column."""
    if len(text) > LONGEST_TEXT:
        raise ExpressionError(
            _("an expression of more than {count} characters").format(count=LONGEST_TEXT)
        )
    tree = _Reader(text).whole()
    if _depth(tree) > DEEPEST_TREE:
        raise ExpressionError(_("nested more than {count} deep").format(count=DEEPEST_TREE))
    return tree


def _depth(tree: Expression) -> int:
    """How many levels the tree has, found without recursion."""
    levels, level = 0, [tree]
    while level:
        levels += 1
        level = [part for above in level for part in parts_of(above)]
    return levels
