"""Checksums of products: what the columns of an exact product must add up to.

Beside a matrix stand two columns, lo + 2^22·hi = the sum of its columns (`slices.check_columns`).
Multiplied in a product of their own, they must agree with the product that they check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from byhand.errors import ByhandError
from byhand.language import _
from byhand.numbers.enclosed.limbs.arithmetic import BASE, carry
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array


class WrongProduct(ByhandError):
    """The error for a wrong product of integers: BLAS or the machine is broken."""


def check(sums: Array, known: Array, bias: Array | None = None, added: Array | None = None) -> None:
    """Compares the sum of the columns with lo and hi, `known`; an error where they differ.

    Both are carried, so sums of less than 2^30 columns are exact.  A bias, in the same limbs, is
    part of the sums but not of `known`; so are limbs of which `added` are the sums.
    """
    if NUMPY.largest(differences(sums, known, bias, added)) != 0.0:
        raise disagrees()


def assure(engine: Any, wrong: Sequence[Array]) -> None:
    """The same check for the results of `differences` on a device."""
    sizes = [engine.largest_of(found.reshape(1, -1)) for found in wrong]
    if sizes and any(size != 0.0 for size in engine.bounds(engine.concatenate(sizes))):
        raise disagrees()


def disagrees() -> WrongProduct:
    """The error for a checksum that does not agree."""
    return WrongProduct(
        _("a product of matrices is wrong: its checksum does not agree"),
        expected=_("exact float64 products"),
        hint="byhand selftest",
    )


def differences(
    sums: Array, known: Array, bias: Array | None = None, added: Array | None = None
) -> Array:
    """The differences that `check` tests: carried, and zero if all is right."""
    found = sums.sum(-1)
    found -= known[..., 0]
    high = known[..., 1]
    found[:-1] -= high[1:]  # 2^22·hi: one limb up
    found[0] -= high[0] * BASE
    if bias is not None:
        found -= bias.sum(1)[:, None]
    if added is not None:
        found -= added
    return carry(found)
