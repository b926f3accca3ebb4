"""Claims about weights: the model's own, to the written places, or which other numbers they are.

Weights are not worked out, so a claim about them is right or wrong, never carried forward.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf, prod
from typing import Any

import numpy as np

from byhand.address import Index, write_index
from byhand.checking.claims import Claim, Floats, Truths
from byhand.checking.digit_slips import slips
from byhand.checking.entries import as_written, left_blank, radius_of, sides, unjudged
from byhand.checking.suspects.casts import rounded_to
from byhand.checking.verdicts import Marked, Suspect, Verdict, Worst
from byhand.errors import nearest
from byhand.language import _
from byhand.model import Model
from byhand.numbers.allowed import Allowed, Range
from byhand.numbers.base import Unknown
from byhand.numbers.floats.formats import FORMATS
from byhand.plan import WEIGHT
from byhand.weights import Tensor

MOST_COMPARED = 4_000_000  # numbers of other weights that are searched for a claim
MOST_SHOWN = 3
KEPT_IN = ("bfloat16", "float16", "float8_e4m3", "float8_e5m2")  # coarser formats of weights
_FLOAT = 2.0**-52


def mark_weights(claims: Iterable[Claim], model: Model) -> list[Marked]:
    """The verdict on each claim about a weight: right if it is the model's as written."""
    return [_mark_weight(claim, model) for claim in claims]


def _mark_weight(claim: Claim, model: Model) -> Marked:
    name = claim.address.removeprefix(WEIGHT)
    if name not in model.weights:
        reason = _("there is no weight {name}").format(name=repr(name))
        hint = nearest(name, model.weights)
        return unjudged(claim, f"{reason}; {hint}" if hint else reason)
    part = _part(model.weights[name], claim.index)
    if part.shape != np.shape(claim.values):
        return unjudged(claim, _("it has another shape: {shape}").format(shape=sides(part.shape)))
    use = np.ones(part.shape, dtype=bool) if claim.claimed is None else claim.claimed
    if not use.any():
        return left_blank(claim)
    if _is_unknown(part[use]):
        return unjudged(claim, _("{name} is unknown").format(name=claim.address))
    said = np.asarray(claim.values, dtype=np.float64)
    there = _numbers(part, use)
    shares = _shares(claim, said, there, use)
    share = float(shares.max())
    right = share <= 1
    return Marked(
        claim,
        Verdict.RIGHT if right else Verdict.ERROR,
        share=share,
        worst=_worst_weight(claim, there, shares),
        suspects=() if right else _other_weights(claim, part, use, model),
        shares=shares.astype(np.float32),
        outside=int((shares > 1).sum()),
        entries=int(use.sum()),
    )


def _part(tensor: Tensor, index: Index) -> Any:
    """The part of a weight that an index cuts out, as an array of its own kind."""
    data = np.asarray(tensor.data)
    if not index:
        return data
    cut = data[index]
    if isinstance(cut, np.ndarray):
        return cut
    alone = np.empty((), dtype=data.dtype)
    alone[()] = cut
    return alone


def _is_unknown(data: Any) -> bool:
    return data.dtype == np.object_ and any(isinstance(x, Unknown) for x in data.flat)


def _numbers(part: Any, use: Truths) -> Range:
    """The entries as ranges; unclaimed entries are 0, since they may be unknown."""
    if part.dtype == np.object_ and not use.all():
        part = np.where(use, part, 0)
    admitted: Range = Allowed("exact").admit(part)
    return admitted


def _shares(claim: Claim, said: Floats, there: Range, use: Truths) -> Floats:
    """The share of the allowed error that each entry uses: writing, format, the model's own."""
    mid = np.asarray(there.mid, dtype=np.float64)
    form = FORMATS.get(claim.format or "")
    stored: Floats | float = 0.0
    if form is not None:  # saved in a format that may be narrower than the weight's
        stored = np.abs(mid) * 2.0**-form.bits + 2.0 ** (form.least - form.bits)
    rounding = _FLOAT * (np.abs(mid) + np.abs(said))  # of this comparison itself
    allowed = np.asarray(claim.slack) + radius_of(there) + stored + rounding
    difference = np.abs(said - mid)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(difference == 0, 0.0, difference / allowed)
    shares = np.where(np.isfinite(said), shares, inf)
    return np.where(use, shares, 0.0)


def _worst_weight(claim: Claim, there: Range, shares: Floats) -> Worst:
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(shares)), shares.shape))
    said, mid = float(np.asarray(claim.values)[place]), float(there.mid[place])
    slack = float(np.broadcast_to(np.asarray(claim.slack), shares.shape)[place])
    allowed = slack + float(radius_of(there)[place])
    return Worst(claim.in_whole(place), said, mid, allowed, abs(said - mid))


def _other_weights(claim: Claim, part: Any, use: Truths, model: Model) -> tuple[Suspect, ...]:
    """The likely mistakes: a slip of the pen, a rounding, a transpose, another row or weight."""
    said = np.asarray(claim.values, dtype=np.float64)

    def fits(values: Floats, data: Any) -> float:
        if data.shape != values.shape or _is_unknown(data[use]):
            return inf
        return float(_shares(claim, values, _numbers(data, use), use).max())

    found = []
    for slip in slips(said):
        if (share := fits(slip.values, part)) <= 1:
            change = _("write {values}").format(values=as_written(slip.values))
            found.append(Suspect(slip.kind, slip.sentence, change, share))
    for kind, sentence, data in (*_rounded(claim, part, use), *_elsewhere(claim, model)):
        if (share := fits(said, data)) <= 1:
            found.append(Suspect(kind, sentence, sentence, share))
    return tuple(found[:MOST_SHOWN])


def _rounded(claim: Claim, part: Any, use: Truths) -> Iterator[tuple[str, str, Any]]:
    """The weight itself, rounded to a coarser format: matrices, biases and gains alike."""
    if claim.by_hand:  # handwritten lines have no casts
        return
    data = np.asarray(_numbers(part, use).mid, dtype=np.float64)
    for name in KEPT_IN:
        sentence = _("it is the weight rounded to {format}").format(format=name)
        yield "precision", sentence, rounded_to(name, data)


def _elsewhere(claim: Claim, model: Model) -> Iterator[tuple[str, str, Any]]:
    """Other places of the model that the numbers may be copied from."""
    own = claim.address.removeprefix(WEIGHT)
    data = model.weights[own].data
    if data.ndim == 2 and not claim.index:
        yield "weight-transposed", _("it is the matrix transposed"), data.T
    row = claim.index if len(claim.index) == 1 and isinstance(claim.index[0], int) else ()
    if data.ndim == 2 and row and data.size <= MOST_COMPARED:
        for other in range(data.shape[0]):
            if other != row[0]:
                name = f"{claim.address}[{other}]"
                yield "other-row", _("it is {name}").format(name=name), data[other]
        for column in range(data.shape[1]):
            name = f"{claim.address}[:,{column}]"
            yield (
                "weight-transposed",
                _("it is a column: {name}").format(name=name),
                data[:, column],
            )
    budget = MOST_COMPARED
    for name, tensor in model.weights.items():
        if name == own or tensor.shape != data.shape or tensor.same_as == own:
            continue
        budget -= prod(tensor.shape)
        if budget < 0:
            return
        address = WEIGHT + name + write_index(claim.index)
        yield "other-weight", _("it is {name}").format(name=address), _part(tensor, claim.index)
