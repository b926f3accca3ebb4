"""Changes of scores, read off scores or off the logarithms of attention weights.

The logarithm of a weight is its score less a number that all keys of a query share.  So a change
that is read off weights is known up to a number for each row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.attention_seen import fit
from byhand.checking.differences.positions_read import ratio, roundest, shown
from byhand.language import _

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int_]
CAPS = np.geomspace(0.5, 200.0, 60)  # first guesses of a soft cap
MOST_GROUPS = 160  # distances or keys whose terms are solved
MOST_ROWS = 96  # queries that a soft cap is first fitted to
ROUNDS = 40  # of the search between two guesses


@dataclass(frozen=True)
class Seen:
    """Scores as they should be and as the claim shows them, (head, query, key)."""

    own: Floats
    found: Floats
    off: Floats  # the usual error of what was found
    there: Truths
    free: bool  # whether each row is known up to a number only
    queries: Ints
    keys: Ints
    fineness: float = 0.0  # the relative error of one rounding, also of what is added

    @property
    def back(self) -> Ints:
        """How far each key is behind the query."""
        return self.queries[:, None] - self.keys[None, :]

    @property
    def weight(self) -> Floats:
        """One over the squared error, 0 where nothing is known."""
        safe = np.where(self.there, self.off, 1.0)
        return np.where(self.there, 1 / np.square(safe), 0.0)

    def centred(self, data: Floats) -> Floats:
        """The data less the weighted mean of its row, where rows are free."""
        data = np.where(self.there, data, 0.0)
        if not self.free:
            return data
        weight = self.weight
        total = weight.sum(axis=-1, keepdims=True)
        mean = (weight * data).sum(axis=-1, keepdims=True) / np.where(total > 0, total, 1.0)
        return np.where(self.there, data - mean, 0.0)

    def thinned(self) -> Seen:
        """The same for some of the queries."""
        count = len(self.queries)
        if count <= MOST_ROWS:
            return self
        rows = np.unique(np.linspace(0, count - 1, MOST_ROWS).astype(int))
        return replace(
            self,
            own=self.own[:, rows],
            found=self.found[:, rows],
            off=self.off[:, rows],
            there=self.there[:, rows],
            queries=self.queries[rows],
        )

    def fits(self, predicted: Floats) -> bool:
        """Whether these scores explain what was found."""
        away = np.abs(self.centred(self.found - predicted))[self.there]
        added = np.abs(predicted - self.own)[self.there] * (0.4 * self.fineness)
        return fit(away / np.hypot(self.off[self.there], added))


@dataclass(frozen=True)
class Change:
    """An operation on scores, in words."""

    kind: str
    said: str
    change: str
    op: str
    attributes: dict[str, Any]
    fitted: int
    unlikely: int = 0


def changes(seen: Seen) -> Iterator[Change]:
    """The changes of scores that explain what was found, the simplest first."""
    if not seen.there.any() or seen.fits(seen.own):
        return
    for reader in (_scaled, _scaled_by_head, _by_distance, _by_key, _capped):
        found = reader(seen)
        if found is not None:
            yield found
            return


def _slope(seen: Seen, axis: tuple[int, ...]) -> tuple[Floats, Floats]:
    """By how much the scores are multiplied, by least squares over these axes; and its error."""
    own, found = seen.centred(seen.own), seen.centred(seen.found)
    power = (seen.weight * own * own).sum(axis=axis, keepdims=True)
    safe = np.where(power > 0, power, 1.0)
    slope = (seen.weight * own * found).sum(axis=axis, keepdims=True) / safe
    return np.where(power > 0, slope, 1.0), np.where(power > 0, safe**-0.5, np.inf)


def _scaled(seen: Seen) -> Change | None:
    slope, error = (float(each.ravel()[0]) for each in _slope(seen, (0, 1, 2)))
    error += 0.3 * seen.fineness * abs(slope)
    known = ratio(slope, error)
    factor = roundest(slope, error) if known is None else float(known)
    if not seen.fits(seen.own * slope):
        return None
    if not seen.fits(seen.own * factor):
        factor, known = slope, None
    said = _("the scores are multiplied by {factor}").format(factor=shown(known or factor))
    return Change("scores-scaled", said, _("look for a factor of {factor} on the scores").format(
        factor=shown(known or factor)), "scaled", {"factor": Fraction(factor)}, 1)  # fmt: skip


def _scaled_by_head(seen: Seen) -> Change | None:
    if len(seen.own) < 2:
        return None
    slope, error = _slope(seen, (1, 2))
    if not seen.fits(seen.own * slope):
        return None
    factors = np.array([roundest(float(a), float(b)) if np.isfinite(b) else 1.0
                        for a, b in zip(slope.ravel(), error.ravel(), strict=True)])  # fmt: skip
    other = np.flatnonzero(np.abs(factors - 1) > 6 * error.ravel())
    if not seen.fits(seen.own * factors[:, None, None]):
        factors = slope.ravel()
    told = ", ".join(f"{head}: {factors[head]:.4g}" for head in other[:6])
    said = _("the scores of heads are multiplied ({told})").format(
        told=told + ", …" * (len(other) > 6)
    )
    each = np.broadcast_to(factors[:, None, None], seen.own.shape)
    return Change("scores-scaled", said, _("look for a factor on the scores of these heads"),
                  "times_each", {"factors": np.array(each)}, max(1, len(other)), 1)  # fmt: skip


def _means(seen: Seen, group: Ints, count: int) -> Floats:
    """The change of each head, (head, group), so that rows that are free agree with each other."""
    change = seen.found - seen.own
    heads = len(seen.own)
    result = np.zeros((heads, count))
    weight = seen.weight
    for head in range(heads):
        there = seen.there[head]
        rows = np.nonzero(there)[0]
        places = np.broadcast_to(group, there.shape)[there]
        w = np.sqrt(weight[head][there])
        if not seen.free:
            total = np.bincount(places, w * w, count)
            sums = np.bincount(places, w * w * change[head][there], count)
            result[head] = np.divide(sums, total, out=np.zeros(count), where=total > 0)
            continue
        queries = there.shape[0]
        matrix = np.zeros((len(rows), count + queries))
        matrix[np.arange(len(rows)), places] = w
        matrix[np.arange(len(rows)), count + rows] = w
        solved = np.linalg.lstsq(matrix, w * change[head][there], rcond=None)[0][:count]
        used = np.bincount(places, minlength=count) > 0
        result[head] = np.where(used, solved - solved[used][0], 0.0)
    return result


def _by_distance(seen: Seen) -> Change | None:
    """A term for each distance: a slope of each head, as ALiBi's."""
    distance = np.abs(seen.back)
    count = int(distance.max()) + 1
    slopes, error = _slopes(seen, distance)
    terms = slopes[:, None, None] * distance
    if seen.fits(seen.own + terms):
        return _alibi(seen, slopes, error, distance)
    if count > MOST_GROUPS or count < 3:
        return None
    means = _means(seen, distance, count)
    terms = means[:, distance]
    if not seen.fits(seen.own + terms):
        return None
    same = bool(np.ptp(means, axis=0).max() < 1e-3 * max(1e-9, float(np.abs(means).max())))
    told = ", ".join(f"{each:.4g}" for each in means[0, :5])
    said = _("a term by the distance of query and key is added ({told}, …)").format(told=told)
    return Change("scores-by-distance", said, _("look for a bias by relative position"),
                  "plus_terms", {"terms": terms}, count if same else means.size, 2)  # fmt: skip


def _slopes(seen: Seen, distance: Ints) -> tuple[Floats, Floats]:
    """What each head's scores lose by distance, and the error."""
    far = seen.centred(np.broadcast_to(distance.astype(float), seen.own.shape))
    change = seen.centred(seen.found - seen.own)
    power = (seen.weight * far * far).sum(axis=(1, 2))
    safe = np.where(power > 0, power, 1.0)
    slopes = (seen.weight * far * change).sum(axis=(1, 2)) / safe
    return np.where(power > 0, slopes, 0.0), np.where(power > 0, safe**-0.5, np.inf)


def _alibi(seen: Seen, slopes: Floats, error: Floats, distance: Ints) -> Change | None:
    heads = len(slopes)
    usual = 2.0 ** (-8.0 * np.arange(1, heads + 1) / heads)
    for factor, said in (
        (-1.0, _("slope·distance is subtracted with the slopes of ALiBi (2^(-8i/{heads}))")),
        (1.0, _("slope·distance is added with the slopes of ALiBi (2^(-8i/{heads}))")),
    ):
        near = 6 * error + 2 * seen.fineness * usual + 1e-6
        if (np.abs(slopes - factor * usual) <= near).all():
            terms = factor * usual[:, None, None] * distance
            return Change("alibi", said.format(heads=heads), _("take the term by distance away"),
                          "plus_terms", {"terms": terms}, 0)  # fmt: skip
    weight = 1 / np.square(error)
    mean = float((weight * slopes).sum() / weight.sum())
    one = roundest(mean, float(weight.sum() ** -0.5) + 0.3 * seen.fineness * abs(mean))
    if seen.fits(seen.own + one * distance):
        said = _("{slope} times the distance of query and key is added").format(slope=shown(one))
        return Change("scores-by-distance", said, _("take the term by distance away"),
                      "plus_terms", {"terms": one * distance}, 1)  # fmt: skip
    told = ", ".join(f"{each:.4g}" for each in slopes[:6])
    said = _("slope·distance is added, with the slopes {told}").format(
        told=told + ", …" * (heads > 6)
    )
    return Change("scores-by-distance", said, _("look for a term by the distance of query and key"),
                  "plus_terms", {"terms": slopes[:, None, None] * distance}, heads, 1)  # fmt: skip


def _by_key(seen: Seen) -> Change | None:
    """A term for each key, or for each head and key."""
    count = len(seen.keys)
    if count > MOST_GROUPS or count < 3:
        return None
    means = _means(seen, np.arange(count)[None, :], count)
    shared = np.broadcast_to(np.median(means, axis=0), means.shape)
    for terms, numbers in ((shared, count), (means, means.size)):
        if seen.fits(seen.own + terms[:, None, :]):
            large = np.argsort(-np.abs(terms[0]))[:5]
            told = ", ".join(f"{seen.keys[at]}: {terms[0, at]:.4g}" for at in sorted(large))
            said = _("a term of each key is added ({told}, …)").format(told=told)
            return Change("scores-by-key", said, _("look for a bias of the keys"), "plus_terms",
                          {"terms": np.array(terms[:, None, :])}, numbers, 2)  # fmt: skip
    return None


def _capped(seen: Seen) -> Change | None:
    """c·tanh(score/c)."""
    seen = seen.thinned()

    def left(cap: float) -> float:
        off = seen.centred(seen.found - cap * np.tanh(seen.own / cap))
        return float((seen.weight * np.square(off)).sum())

    tried = [left(cap) for cap in CAPS]
    best = int(np.argmin(tried))
    if best in (0, len(CAPS) - 1):
        return None
    low, high = float(CAPS[best - 1]), float(CAPS[best + 1])
    for _round in range(ROUNDS):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, two) if left(one) < left(two) else (one, high)
    cap = (low + high) / 2
    if not seen.fits(cap * np.tanh(seen.own / cap)):
        return None
    for digits in range(1, 5):
        short = float(f"{cap:.{digits - 1}e}")
        if seen.fits(short * np.tanh(seen.own / short)) and left(short) < left(cap) + 9:
            cap = short
            break
    said = _("the scores are capped as {cap}·tanh(score/{cap})").format(cap=f"{cap:.6g}")
    return Change("soft-cap", said, _("take the soft cap away"), "softcapped", {"cap": cap}, 1)
