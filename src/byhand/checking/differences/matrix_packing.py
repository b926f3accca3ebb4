"""A packed matrix that was unpacked in another way than its format says.

The file's format knows which mistakes its readers make (`Tensor.misread`); each is tried.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.difference import Floats, Reading
from byhand.checking.differences.product import READ_OFF, Places, Product, good
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
        whole = entries.T if product.turned else entries
        matrix = np.asarray(whole[:, product.columns], np.float64)
        if not np.isfinite(matrix.sum()):
            continue
        if not _fits(product, matrix, part) or not _fits(product, matrix, slice(None)):
            continue
        said = _("it follows if {name}, which is {type}, is unpacked {words}")
        yield product.rewritten(
            "weight-packing", said, _("look for how {name} is unpacked: {words}"),
            Replaced(whole), unlikely=-READ_OFF, name=product.name, type=tensor.stored,
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
        "zeros too small": _("with zero points that are too small by 1"),
        "zeros too large": _("with zero points that are too large by 1"),
        "no zeros": _("without its zero points"),
        "in order": _("without g_idx, as if its groups followed each other"),
        "order of eight": _("without the order in which eight outputs share a word"),
        "order of zeros": _("with zero points that are not in the order of its codes"),
        "order of codes": _("with codes that are not in the order of its zero points"),
        "no scales": _("without its scales"),
        "divided": _("with a division by its scales in place of a product"),
        "turned": _("with the scales of its blocks transposed"),
        "nf4": _("with the numbers of nf4"),
        "fp4": _("with the numbers of fp4"),
        "block offset": _("without the offset of its blocks' sizes"),
        "undivided": _("with its scales not divided by 127"),
        "over 128": _("with its scales divided by 128"),
        "global product": _("with a product with its global scale in place of a division"),
        "no global": _("without its global scale"),
    }
