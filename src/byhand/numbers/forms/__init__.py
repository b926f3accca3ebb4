"""Affine forms: one pass for many texts, or for all numbers within ranges, in float64 or Arb.

`form` has the arrays and what can be asked of them; `operations` the operations of a transformer.
`products`, `functions`, `smooth` and `shares` bound what is not linear; `rounding` what float64
rounds.  `weights` and `angles` bring numbers in.
"""

from byhand.numbers.forms.form import Form, differences, ends, influence, take_cases
from byhand.numbers.forms.operations import Forms
from byhand.numbers.forms.precise import PreciseForms

__all__ = ["Form", "Forms", "PreciseForms", "differences", "ends", "influence", "take_cases"]
