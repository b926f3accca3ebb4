"""What the true values say of a log: another logarithm, probabilities, a shift, a temperature.

A suggestion is made where it makes the median error `TIMES` times smaller and the error that nine
in ten tokens do not exceed `WIDE_TIMES` times smaller, over at least `ENOUGH` tokens, and leaves
at most `MOST_LEFT` of the spread of the true values.  Values that are right are never explained
otherwise: nothing makes their error so much smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from byhand.language import _
from byhand.scoring.logs.findings import Finding
from byhand.scoring.logs.log import Floats
from byhand.scoring.logs.matching import Matched
from byhand.scoring.logs.odd_values import CLAMPED, ENOUGH, seen_in

TIMES, WIDE_TIMES = 8.0, 4.0
MOST_LEFT = 0.25  # of the spread of the true values: more explains nothing
LEAST_SPREAD = 0.05  # nats: values that are all alike tell nothing
LEAST_ERROR = 1e-6  # nats: an error as small as this needs no explanation
HALVINGS = 40  # of the range of temperatures
WORTH_A_PASS = 1e-3  # nats: smaller errors are not worth the pass that the true logits take
MOST_TOKENS = 2_000  # whose logits are asked for
TEMPERATURES = (0.1, 10.0)
UNLIKELY = -60.0  # nats: above this, no engine in 16 bits should say −∞
SHIFTS = (1, -1, 2, -2)  # places
Logits = Callable[[int], Floats]  # of a text: the true logits before each scored token


@dataclass(frozen=True)
class Errors:
    """The errors of some values: their median, and what nine in ten do not exceed."""

    median: float
    wide: float
    count: int
    spread: float = 0.0  # nine in ten true values are not further from their median

    def explains(self, before: Errors) -> bool:
        """Whether these errors are so much smaller that the explanation is borne out."""
        return (
            self.count >= max(ENOUGH, 0.9 * before.count)
            and before.median > LEAST_ERROR
            and self.median * TIMES <= before.median
            and self.wide <= MOST_LEFT * self.spread
            and self.wide * WIDE_TIMES <= before.wide
        )


def errors(values: Floats, truths: Floats) -> Errors:
    """The errors where both are finite."""
    both = np.isfinite(values) & np.isfinite(truths) & (values > CLAMPED)
    apart = np.abs(values[both] - truths[both])
    if not len(apart):
        return Errors(float("inf"), float("inf"), 0)
    true = truths[both]
    spread = float(np.quantile(np.abs(true - np.median(true)), 0.9))
    return Errors(float(np.median(apart)), float(np.quantile(apart, 0.9)), len(apart), spread)


def recognised(
    matched: Sequence[Matched], truths: Sequence[Floats], logits: Logits | None = None
) -> list[Finding]:
    """What is odd about the values of one engine; `truths` are those of each matched text.

    `logits` gives the true logits before each scored token of a text, which it takes to see a
    temperature, or values that were taken from the wrong rows.
    """
    logged = [each.logprobs for each in matched]
    found = list(seen_in(logged))
    values = np.concatenate([*logged, np.empty(0)])
    true = np.concatenate([*truths, np.empty(0)])
    found += _impossible(matched, truths)
    before = errors(values, true)
    if before.count < ENOUGH or np.ptp(true[np.isfinite(true)]) < LEAST_SPREAD:
        return found
    explained = [
        *_scales(values, true, before),
        *_sums(logged, true, before),
        *_shifts(logged, truths, before),
        *_from_logits(matched, logits, before),
        *_swapped(matched, truths, before),
    ]
    return found + explained


def _told(kind: str, says: str, before: Errors, after: Errors) -> Finding:
    evidence = _("median error {before:.3g} as it stands, {after:.3g} so, over {count} tokens")
    return Finding(
        kind,
        says,
        evidence.format(before=before.median, after=after.median, count=after.count),
        fact=False,
    )


def _scales(values: Floats, true: Floats, before: Errors) -> Iterator[Finding]:
    """Other logarithms, other signs, probabilities."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        readings = (
            ("base 10", values * log(10), _("The values look like logarithms to base 10.")),
            ("base 2", values * log(2), _("The values look like logarithms to base 2.")),
            ("negated", -values, _("The values look like −ln p: losses, with the other sign.")),
            ("base 2", -values * log(2), _("The values look like bits: −log₂ p.")),
            ("base 10", -values * log(10), _("The values look like −log₁₀ p.")),
            ("probabilities", np.log(values), _("The values look like probabilities.")),
            ("percent", np.log(values / 100), _("The values look like probabilities in percent.")),
            ("perplexities", -np.log(values), _("The values look like perplexities: 1/p.")),
        )
        judged = [(kind, says, errors(read, true)) for kind, read, says in readings]
    kind, says, after = min(judged, key=lambda each: each[2].median)
    if after.explains(before):
        yield _told(kind, says, before, after)


def _sums(logged: Sequence[Floats], true: Floats, before: Errors) -> Iterator[Finding]:
    """Sums of all values up to each token."""
    with np.errstate(invalid="ignore"):
        steps = [np.diff(values, prepend=0.0) for values in logged]
    after = errors(np.concatenate([*steps, np.empty(0)]), true)
    if after.explains(before):
        says = _("The values look like sums: each is that of its token and of all before it.")
        yield _told("cumulative", says, before, after)


def _shifts(
    logged: Sequence[Floats], truths: Sequence[Floats], before: Errors
) -> Iterator[Finding]:
    """Values that stand one or two places beside their tokens."""
    for places in SHIFTS:
        left, right = [np.empty(0)], [np.empty(0)]
        for values, true in zip(logged, truths, strict=True):
            if len(values) > abs(places):
                left.append(values[places:] if places > 0 else values[:places])
                right.append(true[:-places] if places > 0 else true[-places:])
        after = errors(np.concatenate(left), np.concatenate(right))
        fewer = replace(before, count=min(before.count, after.count))  # the ends drop out
        if after.explains(fewer):
            yield _told("shifted", _shifted(places), before, after)
            return


def _shifted(places: int) -> str:
    return {
        1: _("The values stand one place late: each belongs to the token before its own."),
        -1: _("The values stand one place early: each belongs to the token after its own."),
        2: _("The values stand two places late."),
        -2: _("The values stand two places early."),
    }[places]


def _from_logits(
    matched: Sequence[Matched], logits: Logits | None, before: Errors
) -> Iterator[Finding]:
    """What it takes the true logits to see, where the errors are large enough to ask for them."""
    if logits is None or before.median < WORTH_A_PASS:
        return
    few, count = [], 0
    for place, each in enumerate(matched):
        if count < MOST_TOKENS:
            few.append((each, np.asarray(logits(place), np.float64)))
            count += len(each.logprobs)
    own = errors(
        np.concatenate([each.logprobs for each, _rows in few]),
        np.concatenate([_logprobs(rows, each.sample.scored) for each, rows in few]),
    )
    yield from _rows_late(few, own)
    yield from _bare(few, own)
    yield from _temperature(few, own)


def _rows_late(few: Sequence[tuple[Matched, Floats]], before: Errors) -> Iterator[Finding]:
    """Values gathered from the logits after the token, where the shift of one was forgotten."""
    values = np.concatenate([each.logprobs[:-1] for each, _rows in few])
    late = np.concatenate([_logprobs(rows[1:], each.sample.scored[:-1]) for each, rows in few])
    after = errors(values, late)
    if after.explains(replace(before, count=min(before.count, after.count))):
        says = _("Each value was taken from the logits after its own token, not before it.")
        yield _told("unshifted", says, before, after)


def _bare(few: Sequence[tuple[Matched, Floats]], before: Errors) -> Iterator[Finding]:
    """Logits in place of their log-softmax."""
    true = [rows[np.arange(len(rows)), list(each.sample.scored)] for each, rows in few]
    values = np.concatenate([each.logprobs for each, _rows in few])
    after = errors(values, np.concatenate(true))
    if after.explains(before):
        yield _told("logits", _("The values look like logits, without a softmax."), before, after)


def _temperature(few: Sequence[tuple[Matched, Floats]], before: Errors) -> Iterator[Finding]:
    """Logits that were divided by a number before the softmax."""
    logged = np.concatenate([each.logprobs for each, _rows in few])

    def at(log_temperature: float) -> Errors:
        temperature = np.exp(log_temperature)
        scaled = [_logprobs(rows / temperature, each.sample.scored) for each, rows in few]
        return errors(logged, np.concatenate(scaled))

    grid = np.linspace(log(TEMPERATURES[0]), log(TEMPERATURES[1]), 61)
    best = int(np.argmin([at(each).median for each in grid]))
    low, high = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    for _round in range(HALVINGS):
        third = (high - low) / 3
        if at(low + third).median <= at(high - third).median:
            high -= third
        else:
            low += third
    temperature, after = float(np.exp((low + high) / 2)), at((low + high) / 2)
    if after.explains(before):
        says = _("The values look like those of logits divided by {value:.4g}, a temperature.")
        yield _told("temperature", says.format(value=temperature), before, after)


def _logprobs(rows: Floats, targets: Sequence[int]) -> Floats:
    """ln p of each token in its row of logits."""
    most = rows.max(axis=1)
    sums = np.log(np.exp(rows - most[:, None]).sum(axis=1))
    found: Floats = rows[np.arange(len(targets)), list(targets)] - most - sums
    return found


def _swapped(
    matched: Sequence[Matched], truths: Sequence[Floats], before: Errors
) -> Iterator[Finding]:
    """Texts whose values are those of another text of the same length."""
    lengths: dict[int, list[int]] = {}
    for place, true in enumerate(truths):
        lengths.setdefault(len(true), []).append(place)
    for place, each in enumerate(matched):
        own = errors(each.logprobs, truths[place])
        if own.count < ENOUGH or own.median <= LEAST_ERROR:
            continue
        for other in lengths[len(truths[place])][:200]:
            after = errors(each.logprobs, truths[other])
            if other != place and after.explains(own):
                says = _("A text has the values of another one: of {name}.")
                found = _told("swapped", says.format(name=matched[other].sample.name), own, after)
                yield Finding(
                    found.kind, found.says, found.evidence, each.sample.name, None, fact=False
                )
                break


def _impossible(matched: Sequence[Matched], truths: Sequence[Floats]) -> Iterator[Finding]:
    """−∞ where the token has a probability that any format can hold; 0 where it is not certain."""
    for each, true in zip(matched, truths, strict=True):
        low = (each.logprobs <= CLAMPED) & (true > UNLIKELY)
        if low.any():
            place = int(np.flatnonzero(low)[0])
            says = _("The engine says that a token is impossible, and it is not.")
            evidence = _("position {place}: true {value:.5g}").format(
                place=each.sample.first + place, value=true[place]
            )
            yield Finding("impossible", says, evidence, each.sample.name, each.sample.first + place)
            break
    certain = [
        (n, t)
        for e, t in zip(matched, truths, strict=True)
        for n, t in zip(e.logprobs, t, strict=True)
    ]
    least = min((abs(n) for n, _t in certain if n), default=0.0)  # less may be rounded to 0
    zeros = [t for n, t in certain if n == 0 and t < -max(0.01, least)]
    if len(zeros) >= 2:
        says = _(
            "Values are exactly 0 where the token is not certain: padding, or a mask was lost."
        )
        evidence = _("{count} of {all}; true {value:.4g} at the least").format(
            count=len(zeros), all=len(certain), value=min(zeros)
        )
        yield Finding("zeros", says, evidence)
