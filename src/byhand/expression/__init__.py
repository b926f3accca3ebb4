"""Expressions as trees: one grammar for what people write and for what byhand prints.

`sqrt(2)/2` in a model file, `e/(1 + e)` in a trace and `(1·1 + 1·2)/√2` in a working are trees of
the classes below.  `parse` reads text into a tree, `write` writes a tree as text that `parse` reads
back to the same value.  The only arithmetic is `rational`, for trees of plain rational numbers;
roots and functions belong to a number system.

    sum      :=  [-] product  { (+|-) product }
    product  :=  power  { (*|·|/) [-] power  |  power }    2e and 2(1 + e) need no sign
    power    :=  atom [ ^ [-] power ]                      binds to the right; -x^2 is -(x^2)
    atom     :=  number | name | entry | function(sum) | √ atom | ( sum )

Values that are too large are refused: `10^10^10` has more digits than MOST_DIGITS.
"""

from byhand.expression.rational import MOST_DIGITS, rational
from byhand.expression.reading import (
    DEEPEST_NESTING,
    DEEPEST_TREE,
    LONGEST_TEXT,
    parse,
    read_number,
)
from byhand.expression.trees import (
    FUNCTIONS,
    ONE,
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
    leaves,
    substitute,
)
from byhand.expression.writing import write

__all__ = [
    "DEEPEST_NESTING",
    "DEEPEST_TREE",
    "FUNCTIONS",
    "LONGEST_TEXT",
    "MOST_DIGITS",
    "ONE",
    "Call",
    "Entry",
    "Expression",
    "Name",
    "Negative",
    "Number",
    "Power",
    "Product",
    "Quotient",
    "Sum",
    "leaves",
    "parse",
    "rational",
    "read_number",
    "substitute",
    "write",
]
