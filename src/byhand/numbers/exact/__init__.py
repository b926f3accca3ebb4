"""Exact-or-named numbers: rationals, and names such as e^x and √x where a value is not rational.

>>> from byhand.expression import parse
>>> from byhand.numbers.exact import Exact
>>> numbers = Exact()
>>> root = numbers.scalar(parse("sqrt(2)"))
>>> print(root * root, 2 / root, numbers.scalar(parse("exp(-3*ln(10))")))
2 √2 1/1000
"""

from byhand.numbers.exact.names import Limits
from byhand.numbers.exact.operations import Exact
from byhand.numbers.exact.space import Space
from byhand.numbers.exact.value import Value
from byhand.numbers.exact.write import Definition, Writer

__all__ = ["Definition", "Exact", "Limits", "Space", "Value", "Writer"]
