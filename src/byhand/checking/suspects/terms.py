"""Terms of a sum that a student leaves out, takes twice, or gives the wrong sign.

A number of a line may be a sum of products.  What is claimed differs from it by one of them, or by
two of the same: the difference says which, if only one fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from byhand.address import write_index
from byhand.checking.suspects.mistakes import Mistake, made, then
from byhand.checking.suspects.pen_slips import Written
from byhand.checking.suspects.scenes import Edit, Scene, Values
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.floats.formats import FORMATS
from byhand.numbers.floats.nearest import constant
from byhand.plan import Step

MOST_TERMS = 64
ALONE = ("mean", "mean_square")  # one number for each row
CLEARLY = 4  # × what is allowed: a term below it tells nothing
Index = tuple[int, ...]


class Slip(NamedTuple):
    """What happened to which term: how, its number, the change of the sum, a number in it."""

    way: str
    term: int
    shift: Fraction
    address: str


@dataclass(frozen=True)
class _Terms:
    """The terms of one entry, and the address of a number in each."""

    values: npt.NDArray[np.float64]
    addresses: Callable[[int], str]


Make = Callable[[Step, Scene, Index], _Terms | None]


def term_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits in which sums lack a term, or have it twice or with the wrong sign."""
    make = _TERMS.get(scene.target.op)
    written = Written.of(scene) if scene.context.by_hand else None
    if make is None or written is None or scene.context.around is None:
        return
    if written.values.size == 1 and scene.target.op not in ALONE:
        return  # a number without its row: too many terms would fit
    yield from _terms_slipped(scene, written, make)
    yield from _row_for_column(scene, written)


def _terms_slipped(scene: Scene, written: Written, make: Make) -> Iterator[Edit]:
    """The same thing done to the same term of one sum, or of every sum of the line."""
    outside = written.all_outside
    slips = [slip for place in outside if (slip := _slip(scene, written, place, make))]
    if not outside or len(slips) < len(outside):
        return
    if len({(slip.way, slip.term) for slip in slips}) > 1:
        return
    one, places = slips[0], tuple(int(written.places[place]) for place in outside)
    if len(slips) > 1 and not _every(scene, written, make, one):
        return
    kind, alone, everywhere = _SAID[one.way]()
    text = (everywhere if len(slips) > 1 else alone).format(
        address=one.address, at=written.address(scene, outside[0])
    )
    shifts = tuple(slip.shift for slip in slips)
    change = then("adjusted", places=places, factors=(Fraction(1),) * len(slips), shifts=shifts)
    advice = _("add up all the products, each once")
    yield from made(scene, [scene.target], Mistake(kind, text, advice, change, 1))


def _every(scene: Scene, written: Written, make: Make, slip: Slip) -> bool:
    """Whether it was done in every sum: where the line is right, the term is next to nothing."""
    outside = {*written.all_outside}
    for place in np.ndindex(written.values.shape):
        if place in outside:
            continue
        terms = make(scene.target, scene, _index(scene, written, place))
        if terms is None or abs(terms.values[slip.term]) > written.allowed[place]:
            return False
    return True


LEFT_OUT, TURNED, TWICE = "left out", "turned", "twice"
_SAID: Mapping[str, Callable[[], tuple[str, str, str]]] = {
    LEFT_OUT: lambda: (
        "term-left-out",
        _("it follows if the sum for {at} leaves out the term with {address}"),
        _("it follows if every sum leaves out the term with {address}"),
    ),
    TURNED: lambda: (
        "term-sign",
        _("it follows if the term with {address} has the wrong sign in the sum for {at}"),
        _("it follows if the term with {address} has the wrong sign in every sum"),
    ),
    TWICE: lambda: (
        "term-twice",
        _("it follows if the sum for {at} adds the term with {address} twice"),
        _("it follows if every sum adds the term with {address} twice"),
    ),
}
_WAYS = ((LEFT_OUT, -1), (TURNED, -2), (TWICE, 1))


def _slip(scene: Scene, written: Written, place: Index, make: Make) -> Slip | None:
    """What happened to which term of an entry; None where none fits, or more than one."""
    terms = make(scene.target, scene, _index(scene, written, place))
    if terms is None or not 1 < len(terms.values) <= MOST_TERMS:
        return None
    away = float(written.values[place] - written.expected[place])
    allowed = float(written.allowed[place])
    fits = [
        (way, term, Fraction(times * float(value)))
        for way, times in _WAYS
        for term, value in enumerate(terms.values)
        if abs(value) > CLEARLY * allowed and abs(away - times * value) <= allowed
    ]
    if len(fits) != 1:
        return None
    way, term, shift = fits[0]
    return Slip(way, term, shift, terms.addresses(term))


def _index(scene: Scene, written: Written, place: Index) -> Index:
    """The index in the whole step of an entry of the claimed part."""
    index = np.unravel_index(int(written.places[place]), scene.target.shape)
    return tuple(map(int, index))


def _row_for_column(scene: Scene, written: Written) -> Iterator[Edit]:
    """One number for which a row of a square matrix was taken in place of its column."""
    step, outside = scene.target, written.all_outside
    if step.op != "linear" or len(outside) != 1 or "bias" in step.inputs:
        return
    place = outside[0]
    index = _index(scene, written, place)
    terms = _linear(step, scene, index, across=True)
    value = None if terms is None else float(terms.values.sum())
    if value is None or abs(value - written.values[place]) > written.allowed[place]:
        return
    text = _("it follows if row {number} of the matrix is taken for its column at {at}")
    shift = Fraction(value) - Fraction(float(written.expected[place]))
    said = text.format(number=_column(step, index), at=written.address(scene, place))
    yield from made(scene, [step], Mistake(
        "row-for-column", said,
        _("take the column of the matrix"),
        then("adjusted", places=(int(written.places[place]),), factors=(Fraction(1),),
             shifts=(shift,)), 1))  # fmt: skip


def _column(step: Step, index: Index) -> int:
    """The column of the matrix that an entry is made with: heads stand side by side."""
    return index[-1] + (index[0] * step.shape[-1] if len(index) == 3 else 0)


# ------------------------------------------------------------------ the terms of an entry


def _linear(step: Step, scene: Scene, index: Index, *, across: bool = False) -> _Terms | None:
    """The products with a column of the matrix; `across`, with its row."""
    x, matrix = _values(scene, step.inputs["x"]), _values(scene, step.inputs["weight"])
    if x is None or matrix is None or matrix.ndim != 2:
        return None
    position, column = index[-2], _column(step, index)
    row = x[:, position, :].reshape(-1) if x.ndim == 3 else x[position]
    own = matrix if step.attributes["layout"] == "in_out" else matrix.T
    own = own.T if across else own
    if column >= own.shape[1] or len(own) != len(row):
        return None
    along = own[:, column]
    size = x.shape[-1]

    def address(term: int) -> str:
        place = (term // size, position, term % size) if x.ndim == 3 else (position, term)
        return step.inputs["x"] + write_index(place)

    return _Terms(row * along, address)


def _scores(step: Step, scene: Scene, index: Index) -> _Terms | None:
    q, k = _values(scene, step.inputs["q"]), _values(scene, step.inputs["k"])
    if q is None or k is None or not {*step.inputs} <= {"q", "k"}:
        return None
    head, query, key = index
    scale = step.attributes.get("scale")
    factor = float(constant(scale, FORMATS["float64"])) if isinstance(scale, Expression) else 1.0
    products = q[head, query] * k[head * len(k) // len(q), key] * factor
    return _Terms(products, lambda term: step.inputs["q"] + write_index((head, query, term)))


def _mix(step: Step, scene: Scene, index: Index) -> _Terms | None:
    weights, v = _values(scene, step.inputs["weights"]), _values(scene, step.inputs["v"])
    if weights is None or v is None:
        return None
    head, position, entry = index
    shares = np.nan_to_num(weights[head, position], neginf=0.0)
    products = shares * v[head * len(v) // len(weights), : len(shares), entry]
    return _Terms(
        products, lambda term: step.inputs["weights"] + write_index((head, position, term))
    )


def _average(step: Step, scene: Scene, index: Index) -> _Terms | None:
    x = _values(scene, step.inputs["x"])
    if x is None:
        return None
    row = x[index]
    products = row if step.op == "mean" else row * row
    return _Terms(products / len(row), lambda term: step.inputs["x"] + write_index((*index, term)))


_TERMS: Mapping[str, Make] = {
    "linear": _linear,
    "scores": _scores,
    "mix": _mix,
    "mean": _average,
    "mean_square": _average,
}


def _values(scene: Scene, address: str) -> npt.NDArray[Any] | None:
    around = scene.context.around
    found: Values | None = None if around is None else around.read(address)
    return None if found is None else np.asarray(found, dtype=np.float64)
