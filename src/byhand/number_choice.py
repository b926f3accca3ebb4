"""The number system that options ask for; where nothing is said, the one that suits the model."""

from __future__ import annotations

from byhand import evaluate
from byhand.model import Model
from byhand.numbers.base import Numbers
from byhand.options import Chosen


def numbers_for(model: Model, chosen: Chosen | None = None, *, many: bool = False) -> Numbers:
    """The number system asked for; where nothing is said, the one that suits the model.

    `many` says that many passes of a position each will use the same weights, so that converting
    them once pays.  Where floats are compared with proven digits, this is the system of the digits.
    """
    chosen = chosen or Chosen()
    if chosen.system is not None:
        return chosen.system
    pencil_sized = chosen.float is None and chosen.device is None and evaluate.pencil_sized(model)
    if chosen.digits is not None:
        from byhand.proving.digits import USUAL_LENGTH, enclosing_numbers

        positions = 1 if many else USUAL_LENGTH
        return enclosing_numbers(model, chosen.digits, device=chosen.device, positions=positions)
    if chosen.decimals is not None:
        from byhand.numbers.pencil import Pencil

        return Pencil(chosen.decimals)
    if chosen.exact or pencil_sized:
        from byhand.numbers.exact import Exact

        return Exact()
    format = chosen.float or evaluate.usual_format(model)
    if chosen.device is not None:
        from byhand.numbers.tensors import Tensors

        return Tensors(format, chosen.device)
    from byhand.numbers.floats import Floats

    return Floats(format, convert_once=many)
