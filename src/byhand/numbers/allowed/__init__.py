"""Allowed: the range of values that correct implementations in a float format may give.

>>> import numpy as np
>>> from byhand.numbers.allowed import Allowed, Range
>>> numbers = Allowed("bfloat16")
>>> sum = numbers.add(Range(np.array([1.0])), Range(np.array([0.001])))
>>> numbers.judge(sum, (), np.array([1.0]), 0.0).follows
True
>>> numbers.judge(sum, (), np.array([1.01]), 0.0).follows
False
"""

from byhand.numbers.allowed.judged import Judged
from byhand.numbers.allowed.largest import Contest
from byhand.numbers.allowed.operations import Allowed
from byhand.numbers.allowed.precisions import PRECISIONS, Precision, Unit, precision
from byhand.numbers.allowed.ranges import Range

__all__ = ["PRECISIONS", "Allowed", "Contest", "Judged", "Precision", "Range", "Unit", "precision"]
