"""Differences of a product with a matrix: how the matrix must act for the claim to follow.

With few positions a matrix cannot be solved for as a whole.  So the readings look for a matrix that
differs in little: entries, rows, columns (`matrix_lines`), groups, orders and levels
(`matrix_kinds`), the bias (`biases`); or for one that was unpacked wrongly (`matrix_packing`).
"""

from __future__ import annotations

from collections.abc import Iterator

from byhand.checking.differences.biases import bias_readings
from byhand.checking.differences.difference import Description, Difference, Reading
from byhand.checking.differences.entering import entering_readings
from byhand.checking.differences.matrix_kinds import kind_readings
from byhand.checking.differences.matrix_lines import line_readings
from byhand.checking.differences.matrix_packing import packing_readings
from byhand.checking.differences.product import Product
from byhand.language import _

LOW = 3  # times fewer directions than positions: a low rank


def product_readings(difference: Difference) -> Iterator[Reading]:
    """How the matrix, or the bias, of a product acts in the claim."""
    product = Product.of(difference)
    if product is None or product.count < 2:
        return
    for read in (packing_readings, bias_readings, line_readings, kind_readings, entering_readings):
        found = list(read(product))
        yield from found
        if any(not isinstance(each, Description) for each in found):
            return
    yield from _low_rank(product)


def _low_rank(product: Product) -> Iterator[Reading]:
    """A difference of far fewer directions than it could have, as a merged adapter leaves it."""
    rank = product.rank
    if rank is None or rank * LOW > product.count or not product.everywhere:
        return
    sentence = _(
        "the difference has rank {rank} at {count} positions, as if a matrix of that rank "
        "(a LoRA adapter, say) were added to {name} or missing"
    )
    said = sentence.format(rank=rank, count=product.count, name=product.name)
    yield Description(said, 3)
