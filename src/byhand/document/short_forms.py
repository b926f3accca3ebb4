"""The rule for exact numbers in tables: which form a person would write, and which is too long.

Books and pages show a short form as it is.  Of a longer one they show the decimals, with ≈, and the
form on demand: on a page behind the number, on paper below its table.
"""

from __future__ import annotations

from byhand.document.numerals import in_full
from byhand.expression import Call, Expression, Number, leaves, write
from byhand.expression.trees import parts_of

LONGEST_FRACTION = 9  # characters of a rational number
LONGEST_NAMED = 20  # characters of a form with roots, powers of e, …
LARGEST_INSIDE = 999  # whole number inside such a form


def short_form(tree: Expression) -> bool:
    """Whether a person would write the number like this.

    A rational number is short up to LONGEST_FRACTION characters.  Any other form is short up to
    LONGEST_NAMED, if no root stands inside a root and no whole number inside it is large.

    >>> from byhand.expression import parse
    >>> [short_form(parse(text)) for text in ("3/4", "e/(1 + e)", "115√532967754/88827959")]
    [True, True, False]
    """
    if isinstance(tree, Number):
        return len(write(tree)) <= LONGEST_FRACTION
    return len(write(tree)) <= LONGEST_NAMED and not is_long(tree)


def is_long(tree: Expression | None) -> bool:
    """Whether a line of working has a root in a root, or a number that no person would write."""
    return tree is not None and (_nested(tree) or _large(tree))


def _large(tree: Expression) -> bool:
    numbers = (leaf for leaf in leaves(tree) if isinstance(leaf, Number))
    return any(
        abs(x.value) > LARGEST_INSIDE
        if x.value.denominator == 1
        else not short_form(x) and in_full(x.value) is None  # 0.3363 is short as a decimal
        for x in numbers
    )


def _nested(tree: Expression, inside: bool = False) -> bool:
    """Whether a root stands inside a root."""
    root = isinstance(tree, Call) and tree.function == "sqrt"
    return (inside and root) or any(_nested(part, inside or root) for part in parts_of(tree))
