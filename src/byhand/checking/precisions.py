"""The precision that claims were worked out in, inferred from their numbers.

NumPy has no bfloat16, so such values are saved as float32, and Python lists hold float64.  So the
format of an array may be wider than the precision of its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.claims import Claim
from byhand.checking.replay import EXACT
from byhand.numbers.allowed.precisions import AUTOCAST
from byhand.numbers.floats.formats import FORMATS, Format
from byhand.optimizer import BEFORE, UPDATE
from byhand.plan import GRAD, WEIGHT

READ_BY_PRODUCTS = ("embed.token", "embed.position", ".norm.out")  # inputs of products, or of norms


def usual_precision(claims: Sequence[Claim]) -> str:
    """The narrowest float format that holds the claims; "exact" where all are handwritten.

    Where the inputs of products are float32 and their results have 16 bits, autocast was on.
    """
    floats = [claim for claim in claims if claim.format in FORMATS]
    if not floats:
        return EXACT
    # only computed values count; embeddings have the checkpoint's format, optimizers their own
    aside = ("embed.", UPDATE, BEFORE)
    told = [claim for claim in floats if not claim.address.startswith(aside)] or floats
    narrowest = min((str(claim.format) for claim in told), key=lambda name: FORMATS[name].bits)
    found = narrowest_format((claim.values for claim in told), narrowest)
    read = (claim for claim in floats if _float32_with_autocast(claim.address))
    if any(cast_on_the_way(claim.values, str(claim.format), found) for claim in read):
        return f"{AUTOCAST}{found}"
    products = [claim for claim in told if _of_a_product(claim)]
    if found == "float32" and products:
        inside = narrowest_format((claim.values for claim in products), found)
        return found if inside == found else f"{AUTOCAST}{inside}"
    return found


def _float32_with_autocast(address: str) -> bool:
    """Whether autocast leaves a step in float32: what products read, and gradients of weights."""
    if address.startswith(GRAD):
        return address.startswith(GRAD + WEIGHT)
    return address.endswith(READ_BY_PRODUCTS)


def _of_a_product(claim: Claim) -> bool:
    """Whether it is the gradient of a matrix, which a product gives; rows of tables are added."""
    name = claim.address.removeprefix(GRAD + WEIGHT)
    return name != claim.address and claim.values.ndim == 2 and not name.startswith("embed.")


NARROWER = ("bfloat16", "float16", "float32")  # the fewest bits of precision first
ENOUGH = 32  # numbers that need the last bit of the format; fewer may be chance or round numbers
SHARE = 8  # at least one number in SHARE needs the last bit; half of them are expected to


def narrowest_format(arrays: Iterable[npt.NDArray[Any]], kept_in: str) -> str:
    """The narrowest format that holds all numbers of all arrays; `kept_in` where none does.

    Numbers that every format holds (0, 1, 1/2) are no evidence: enough numbers must need the last
    bit.
    """
    all_of_them = [np.asarray(array) for array in arrays]
    for name in NARROWER:
        if FORMATS[name].bits < FORMATS[kept_in].bits and _holds(FORMATS[name], all_of_them):
            return name
    return kept_in


def cast_on_the_way(array: npt.NDArray[Any], kept_in: str, others: str) -> bool:
    """Whether the array needs a wider format than `others`, a format of 16 bits."""
    narrow = FORMATS[others]
    if narrow.bits >= FORMATS["float32"].bits or FORMATS[kept_in].bits <= narrow.bits:
        return False
    return not _fits(narrow, np.asarray(array))


def _fits(form: Format, array: npt.NDArray[Any]) -> bool:
    """Whether the format holds every number."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = array.astype(form.dtype).astype(np.float64)
        return np.array_equal(rounded, array.astype(np.float64), True)


def _holds(form: Format, arrays: list[npt.NDArray[Any]]) -> bool:
    count = using = 0
    for array in arrays:
        if not _fits(form, array):
            return False
        rounded = array.astype(form.dtype)
        bits = rounded.view(f"u{form.dtype.itemsize}")
        count += int(np.count_nonzero(rounded))
        using += int(np.count_nonzero(bits & 1))
    return using >= max(ENOUGH, count / SHARE)
