"""Odd values: what the numbers of a log show by themselves, without the true ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from byhand.language import _
from byhand.scoring.logs.findings import Finding
from byhand.scoring.logs.log import Floats, LoggedText

CLAMPED = -9999.0  # what vLLM and OpenAI's clients write in place of −∞
LOWEST = float(np.finfo(np.float32).min)  # what llama.cpp writes
ENOUGH = 8  # values that it takes to say something of all of them
MOST_DECIMALS = 6  # a float32 has more
NARROW = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def odd_values(text: LoggedText) -> Iterator[Finding]:
    """Values that no log-probability has, and places without one."""
    values, given = text.logprobs, text.given
    scored = np.arange(len(text)) >= text.first
    yield from _places(given & np.isnan(values), text, "NaN", _("There are values that are NaN."))
    low = given & (np.isneginf(values) | (values <= CLAMPED))
    stands = _("There are values −∞, or what stands for it: no token has probability 0.")
    yield from _places(low, text, "minus infinity", stands)
    above = _("There are values above 0: a log-probability is never that large.")
    yield from _places(given & (values > 0), text, "above zero", above)
    gaps = scored & ~given
    if text.prompt_length is not None:
        gaps &= np.arange(len(text)) >= text.prompt_length
    if not any(found.kind == "top only" for found in text.findings):
        yield from _places(gaps, text, "no value", _("There are tokens without a value."))


def _places(where: NDArray[np.bool_], text: LoggedText, kind: str, says: str) -> Iterator[Finding]:
    places = np.flatnonzero(where)
    if len(places):
        first = int(places[0])
        evidence = _("{count} of {all}, first at position {place}").format(
            count=len(places), all=len(text), place=first
        )
        if not np.isnan(text.logprobs[first]):
            evidence += f": {text.logprobs[first]:.5g}"
        yield Finding(kind, says, evidence, text.name, first)


def seen_in(logprobs: Sequence[Floats]) -> Iterator[Finding]:
    """What all values of an engine share: few decimals, a narrow format, a lowest value."""
    values = np.concatenate([np.asarray(each) for each in logprobs]) if logprobs else np.empty(0)
    values = values[np.isfinite(values) & (values > CLAMPED)]
    if len(values) < ENOUGH:
        return
    if values.min() >= 0 and values.max() > 0:
        says = _("All values are 0 or above: these are no natural logarithms of probabilities.")
        evidence = _("from {least:.4g} to {most:.4g}").format(least=values.min(), most=values.max())
        yield Finding("not logarithms", says, evidence)
    yield from _rounding(values)
    lowest = values.min()
    count = int(np.count_nonzero(values == lowest))
    if count >= 3 and count >= len(values) / 50 and np.ptp(values) > 0:
        says = _(
            "The lowest value stands several times: values below it may have been raised to it."
        )
        evidence = _("{count} times {value:.6g}").format(count=count, value=lowest)
        yield Finding("clipped", says, evidence)


def _rounding(values: Floats) -> Iterator[Finding]:
    count = int(np.count_nonzero(values))
    for name, kind in NARROW.items():
        with np.errstate(over="ignore"):
            again = values.astype(kind).astype(np.float64)
        if count >= ENOUGH and (again == values).all():
            step = float(np.abs(np.spacing(np.abs(values).max().astype(kind)).astype(np.float64)))
            yield Finding(
                "rounded",
                _("All values are numbers of {format}: the log keeps no more.").format(format=name),
                _("{count} values; up to {step:.2g} of each error is the log's own").format(
                    count=len(values), step=step / 2
                ),
            )
            return
    for decimals in range(MOST_DECIMALS + 1):
        if (np.round(values, decimals) == values).all():
            yield Finding(
                "rounded",
                _("The log keeps one decimal of each value.")
                if decimals == 1
                else _("The log keeps {count} decimals of each value.").format(count=decimals),
                _("up to {step:.2g} of each error is the log's own").format(
                    step=0.5 * 10.0**-decimals
                ),
            )
            return
