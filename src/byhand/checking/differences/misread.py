"""A quantised matrix that a port unpacked wrongly: its own codes, read as by a known mistake.

The file's codes, zero points and scales are there, so every usual mistake of a reader gives a
matrix of its own, and nothing has to be fitted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.difference import Floats, Reading
from byhand.checking.differences.product import READ_OFF, TYPICAL, Places, Product, good
from byhand.checking.suspects.casts import bits_of
from byhand.checking.suspects.rewritings import Replaced
from byhand.language import _, later

HOW = {  # the names of mistakes, as `Tensor.misread` has them, in words
    "zeros too small": later("with zero points that are too small by 1"),
    "zeros too large": later("with zero points that are too large by 1"),
    "no zeros": later("without its zero points"),
    "nibbles": later("with the two halves of each byte exchanged"),
    "groups in order": later("without g_idx, as if its groups followed each other"),
    "order of eight": later("without the order in which eight outputs share a word"),
    "order of zeros": later("with zero points that are not in the order of its codes"),
    "order of codes": later("with codes that are not in the order of its zero points"),
    "no scales": later("without its scales"),
    "divided by scales": later("with a division by its scales in place of a product"),
    "blocks turned": later("with the scales of its blocks transposed"),
    "nf4": later("with the numbers of nf4"),
    "fp4": later("with the numbers of fp4"),
    "no offset": later("without the offset of its block sizes"),
    "scales as they are": later("with its scales not divided by 127"),
    "over 128": later("with its scales divided by 128"),
    "times the global scale": later("with a product with its global scale in place of a division"),
    "no global scale": later("without its global scale"),
}


def misread_readings(product: Product) -> Iterator[Reading]:
    """The mistake of a reader that explains the line, if one does."""
    tensor = product.difference.scene.model.weights[product.name]
    part = product.sample
    for name, make in tensor.misread.items():
        data = make()
        matrix = data.T if product.turned else data  # (input, output)
        floats = _floats(matrix)[:, product.columns]
        if np.isfinite(floats).all() and all(
            _fits(product, floats, columns) for columns in (part, np.arange(floats.shape[1]))
        ):
            yield _edit(product, name, matrix, tensor.stored or "")
            return


def _fits(product: Product, matrix: Floats, columns: Places) -> bool:
    """Whether a matrix explains some columns, with the rounding that its own size brings."""
    unit = TYPICAL * 2.0 ** -bits_of(product.format_name)
    with np.errstate(all="ignore"):
        terms = np.square(product.x) @ np.square(matrix[:, columns])
        room = np.sqrt(np.square(product.room[:, columns]) + unit**2 * terms)
        left = (product.claimed[:, columns] - product.times(matrix[:, columns], columns)) / room
        return good(left, product.off[:, columns] / room)


def _edit(product: Product, name: str, matrix: Floats, stored: str) -> Reading:
    said = _("it follows if {name} is unpacked {how}; its file ({stored}) says otherwise")
    return product.rewritten(
        "weight-layout", said, _("look for how {name} is unpacked: it is read {how}"),
        Replaced(np.asarray(matrix)), unlikely=-READ_OFF, name=product.name, how=_(HOW[name]),
        stored=stored,
    )  # fmt: skip


def _floats(matrix: Floats) -> Floats:
    if matrix.dtype != np.dtype(object):
        return matrix.astype(np.float64)
    return np.array([float(x) for x in matrix.flat]).reshape(matrix.shape)
