"""One scalar of a model file as a number, a truth value or one of a few words.

A rational number is a Fraction; any other (`sqrt(2)/2`, `exp(80)`) stays an expression tree.  It is
proven at once to have a value, so `ln(0)` is refused with its line, not during a trace.  `eval` is
never used.
"""

from __future__ import annotations

import re
from fractions import Fraction

from byhand.errors import ByhandError, ExpressionError, nearest
from byhand.expression import Entry, Expression, Name, Number, leaves, parse, rational
from byhand.files.tree import Node, Scalar, describe
from byhand.language import _

CONSTANTS = ("e", "pi")
_WHOLE = re.compile(r"[0-9]{1,18}")
_DECIMAL = re.compile(r"[-+]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})")
_NOT_A_NUMBER = re.compile(r"[-+]?\.?(?:nan|inf|infinity)", re.IGNORECASE)


def text(node: Node) -> str:
    """The text of a scalar; an error if it is empty."""
    if not isinstance(node, Scalar) or not node.text.strip():
        raise node.wrong(_("some text is missing"), expected=_("text"))
    return node.text.strip()


def word(node: Node, *known: str) -> str:
    """One of the known words."""
    given = node.text if isinstance(node, Scalar) else None
    if given not in known:
        raise node.impossible(", ".join(known), nearest(given, known) if given else None)
    return given


def truth(node: Node) -> bool:
    """true or false."""
    if isinstance(node, Scalar) and node.text in ("true", "false"):
        return node.text == "true"
    said = node.text.lower() if isinstance(node, Scalar) else ""
    hint = None
    if said in ("yes", "on", "true", "y", "1"):
        hint = _("write {word}").format(word="true")
    elif said in ("no", "off", "false", "none", "n", "0"):
        hint = _("write {word}").format(word="false")
    raise node.wrong(
        _("{found} is not a truth value").format(found=describe(node)),
        expected="true, false",
        hint=hint,
    )


def whole(node: Node, least: int = 0, most: int = 10**9) -> int:
    """A whole number between two bounds."""
    if isinstance(node, Scalar) and _WHOLE.fullmatch(node.text):
        number = int(node.text)
        if least <= number <= most:
            return number
    raise node.impossible(
        _("a whole number from {least} to {most}").format(least=least, most=f"{most:,}")
    )


def number(node: Node) -> Fraction:
    """A rational number: 1e-5, 1/100000, 0.2."""
    value = value_of(node)
    if not isinstance(value, Fraction):
        raise node.wrong(
            _("{found} is not a rational number").format(found=describe(node)),
            expected=_("a decimal or a fraction"),
        )
    return value


def value_of(node: Node) -> Fraction | Expression:
    """The number of a scalar: a Fraction if it is rational, else its expression."""
    if not isinstance(node, Scalar):
        raise node.wrong(_("a number is missing"), expected=_("a number"))
    written = node.text.strip()
    if _DECIMAL.fullmatch(written):
        return Fraction(written)
    if _NOT_A_NUMBER.fullmatch(written):
        raise node.wrong(
            _("{found} is not a number").format(found=written),
            expected=_("a finite number"),
            found=written,
            hint=_("for a score that is never attended to, write {word} in score_table").format(
                word="masked"
            ),
        )
    if not written:
        raise node.wrong(_("a number is missing"), expected=_("a number"), found=_("nothing"))
    try:
        tree = parse(written)
        _only_constants(tree, written)
        value = rational(tree)
        if value is not None:
            return value
        _prove(tree)
    except ByhandError as error:
        raise node.wrong(
            _("{text} cannot be read: {reason}").format(
                text=repr(describe(node)), reason=error.message
            ),
            expected=error.expected or _("a number such as 0.2, -3/2 or sqrt(2)/2"),
            found=error.found or describe(node),
            hint=error.hint,
        ) from None
    return tree


def _only_constants(tree: Expression, written: str) -> None:
    for leaf in leaves(tree):
        if isinstance(leaf, Number) or (isinstance(leaf, Name) and leaf.text in CONSTANTS):
            continue
        name = leaf.address if isinstance(leaf, Entry) else leaf.text
        place = re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", written)
        column = place.start() + 1 if place else 1
        raise ExpressionError(
            _("there is no constant {name}").format(name=repr(name)),
            column=column,
            expected=", ".join(CONSTANTS),
            found=_("{what} at column {column}").format(what=name, column=column),
            hint=nearest(name, CONSTANTS),
        )


def _prove(tree: Expression) -> None:
    """Refuses an expression without a real value of a manageable size."""
    from byhand.numbers.exact import Exact  # only now: a rational model does not need it

    Exact().scalar(tree)


def constant(value: Fraction | Expression) -> Expression:
    """The value as an expression tree."""
    return Number(value) if isinstance(value, Fraction) else value
