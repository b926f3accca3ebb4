"""Floats: float64, float32, bfloat16 and float16 on NumPy arrays, as programs compute.

>>> import numpy as np
>>> from byhand.numbers.floats import Floats
>>> numbers = Floats("bfloat16")
>>> numbers.multiply(numbers.admit(np.array([1.0])), numbers.admit(np.array([0.1])))
array([0.100098], dtype=bfloat16)
"""

from byhand.numbers.floats.formats import FORMATS
from byhand.numbers.floats.operations import Floats

__all__ = ["FORMATS", "Floats"]
