"""A packed matrix that was unpacked in another way than its format says.

The file's format knows which mistakes its readers make (`Tensor.misread`); each is tried.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.difference import Floats, Reading
from byhand.checking.differences.product import Places, Product, good
from byhand.checking.suspects.rewritings import Replaced
from byhand.language import _

LEAST = 3  # positions


def packing_readings(product: Product) -> Iterator[Reading]:
    """The first mistake of unpacking that gives the claimed product."""
    tensor = product.difference.scene.model.weights[product.name]
    if tensor.misread is None or product.count < LEAST or not len(product.sample):
        return
    part, words = product.sample, slips_in_words()
    for slip, entries in tensor.misread():
        if not np.isfinite(entries.sum()):
            continue
        wide = np.asarray(entries, np.float64)
        whole = wide.T if product.turned else wide
        matrix = whole[:, product.columns]
        if not _fits(product, matrix, part) or not _fits(product, matrix, slice(None)):
            continue
        said = _("it follows if {name}, which is {type}, is unpacked {words}")
        yield product.rewritten(
            "weight-packing", said, _("look for how {name} is unpacked: {words}"),
            Replaced(whole), unlikely=0, name=product.name, type=tensor.stored,
            words=words.get(slip, slip))  # fmt: skip
        return


def _fits(product: Product, matrix: Floats, columns: Places | slice) -> bool:
    """Whether the matrix gives the claim, but for rounding: more of it where it is larger."""
    theirs, ours = (np.linalg.norm(each[:, columns], axis=0) for each in (matrix, product.matrix))
    larger = np.maximum(theirs / np.where(ours > 0, ours, 1.0), 1.0)
    left = product.left(product.times(matrix[:, columns], columns), columns) / larger
    return good(left, product.off[:, columns] / product.room[:, columns] / larger)


def slips_in_words() -> dict[str, str]:
    """The mistakes in words."""
    return {
        "nibbles": _("with the codes of each byte exchanged"),
        "pairs": _("with the two codes of each byte side by side"),
        "before": _("with each scale of the block before"),
        "behind": _("with each scale of the block behind"),
        "groups": _("with the scales of its groups moved by one"),
        "upper": _("without the upper bits of its codes"),
        "sign": _("with the sign of the minima turned round"),
        "minima": _("without its minima"),
        "exchanged": _("with the scales of codes and of minima exchanged"),
        "offset": _("without what is taken from each code"),
    }
