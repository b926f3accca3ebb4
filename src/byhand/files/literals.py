"""Tensors written out number by number, and the errors for wrong shapes."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np

from byhand.errors import ShapeError
from byhand.files import scalars
from byhand.files.tree import List, Node, Scalar, Table, describe
from byhand.language import _
from byhand.numbers.base import ABSENT, Printed, Unknown
from byhand.parameters import Parameter
from byhand.weights import Data

_DECIMAL = re.compile(r"[-+]?[0-9]*\.?(?P<places>[0-9]*)")


def shape_of(parameter: Parameter) -> str:
    """A shape as errors show it: 4×6 (d × vocab)."""
    return f"{'×'.join(map(str, parameter.shape))} ({' × '.join(parameter.axes)})"


def misfit(node: Node, parameter: Parameter, found: tuple[int, ...]) -> ShapeError:
    """The error for a tensor whose shape is not the model's."""
    turned = _("it fits when transposed: rows are {side} here").format(side=parameter.axes[0])
    return ShapeError(
        _("{name} has the wrong shape").format(name=parameter.name),
        where=node.where,
        expected=shape_of(parameter),
        found="×".join(map(str, found)),
        hint=turned if found == parameter.shape[::-1] else None,
    )


class Literals:
    """Reads entries; each spelling is parsed once."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, int | None, bool], object] = {}

    def read(self, node: List, parameter: Parameter, *, masked: bool = False) -> Data:
        """The tensor written as nested lists, which must have the parameter's shape."""
        return self._fitting(node, parameter, None, masked)

    def read_printed(self, node: Table, parameter: Parameter, places: int) -> Data:
        """The tensor under `values`, whose decimals are known to `places` only."""
        expected = f"values: {shape_of(parameter)}"
        values = node.needed("values", expected)
        if not isinstance(values, List):
            raise node.wrong(_("a list is missing"), expected=expected, found=describe(values))
        return self._fitting(values, parameter, places, False)

    def read_entry(self, node: Node, *, masked: bool = False) -> object:
        """One entry on its own."""
        if not isinstance(node, Scalar):
            raise node.wrong(_("a number is missing"), expected=_("a number"))
        return self._known(node, None, masked)

    def read_square(self, node: List, side: int) -> Data:
        """A square of scores, of this side; entries may be masked."""
        found = _measured(node, 2)
        if found != (side, side):
            raise ShapeError(
                _("a table of scores is square, one row a query"),
                where=node.where,
                expected=f"{side}×{side}",
                found="×".join(map(str, found)),
            )
        return self._filled(node, found, None, True)

    def read_matrix(self, node: Node) -> Data:
        """A matrix of any shape, as the factor of a product."""
        if not isinstance(node, List):
            raise node.wrong(_("a matrix is missing"), expected=_("a list of rows, or a reference"))
        found = _measured(node, 2)
        return self._filled(node, found, None, False)

    def _fitting(self, node: List, parameter: Parameter, places: int | None, masked: bool) -> Data:
        found = _measured(node, len(parameter.shape))
        if found != parameter.shape:
            raise misfit(node, parameter, found)
        return self._filled(node, found, places, masked)

    def _filled(self, node: List, shape: tuple[int, ...], places: int | None, masked: bool) -> Data:
        level: list[Node] = [node]
        for _axis in shape:
            level = [item for inner in level if isinstance(inner, List) for item in inner.items]
        data = np.empty(len(level), dtype=object)
        for position, item in enumerate(level):
            assert isinstance(item, Scalar)
            data[position] = self._known(item, places, masked)
        return data.reshape(shape)

    def _known(self, item: Scalar, places: int | None, masked: bool) -> object:
        known = (item.text, places, masked)
        if known not in self._values:
            self._values[known] = _entry(item, places, masked)
        return self._values[known]


def _measured(node: List, axes: int) -> tuple[int, ...]:
    """The shape of nested lists: as deep as `axes` says, with rows of one length."""
    shape: list[int] = []
    level: list[Node] = [node]
    for axis in range(axes):
        inner: list[Node] = []
        for each in level:
            if not isinstance(each, List):
                raise each.wrong(
                    _("a list is missing"),
                    expected=_("{count} lists within each other").format(count=axes),
                )
            if axis == len(shape):
                shape.append(len(each.items))
            elif len(each.items) != shape[axis]:
                raise ShapeError(
                    _("the rows have different lengths"),
                    where=each.where,
                    expected=_("{count} numbers, as in the first row").format(count=shape[axis]),
                    found=str(len(each.items)),
                )
            inner.extend(each.items)
        if axis == len(shape):
            shape.append(0)
        level = inner
    for each in level:
        if not isinstance(each, Scalar):
            raise each.wrong(
                _("a number is missing"),
                expected=_("{count} lists within each other").format(count=axes),
            )
    return tuple(shape)


def _entry(node: Scalar, places: int | None, masked: bool) -> object:
    text = node.text.strip()
    if text == "unknown":
        return Unknown()
    if text == "masked":
        if masked:
            return ABSENT
        raise node.wrong(
            _("only an entry of score_table can be masked"), expected=_("a number"), found=text
        )
    if places is None:
        return scalars.value_of(node)
    return _printed(node, places)


def _printed(node: Scalar, places: int) -> Printed:
    match = _DECIMAL.fullmatch(node.text.strip())
    if match is None or not node.text.strip("+-. "):
        raise node.wrong(
            _("{found} is not a printed decimal").format(found=describe(node)),
            expected=_("a decimal such as -0.5150"),
        )
    if len(match["places"]) > places and "." in node.text:
        raise node.wrong(
            _("more decimals than were printed"),
            expected=_("at most {count} decimals").format(count=places),
        )
    return Printed(Fraction(node.text.strip()), places)
