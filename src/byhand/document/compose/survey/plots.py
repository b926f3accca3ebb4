"""A survey in pictures: flips and changes over the margin, errors over position and layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf, isfinite, sqrt

import numpy as np

from byhand.document.parts import Scatter, ScatterSeries
from byhand.language import _
from byhand.scoring.survey import Layer, Survey

WIDTH = 3.0  # the ratio of the bounds that an open bin is drawn with
Spot = tuple[float, float]


def plots_of_margins(survey: Survey) -> Iterator[Scatter]:
    """The margins, the share of flips over them, and the changes of the lead beside them."""
    total = sum(count for _low, _high, count in survey.margins)
    found = [(_middle(low, high), count / total) for low, high, count in survey.margins if count]
    yield from _scatter(
        _("How large the margins are"),
        _("Each point is a range of margins: the share of the tokens whose margin lies there."),
        [("", found)], _("margin"), _("share of tokens"), ("log", "linear"),
    )  # fmt: skip
    yield from _scatter(
        _("Flips over the margin"),
        _("Each point is a range of margins: the share of the tokens there that are flips."),
        [
            (e.format, [(_middle(b.low, b.high), b.flips.share) for b in e.by_margin if b.flips.of])
            for e in survey.effects
        ],
        _("margin"), _("share of flips"), ("log", "linear"),
    )  # fmt: skip
    margins = survey.truth.margins
    yield from _scatter(
        _("Changes of the lead over the margin"),
        _(
            "Each point is a token: its margin, and how much the format changes the lead of the "
            "likeliest token. A change below −margin is a flip."
        ),
        [
            (run.format, _known(margins.tolist(), survey.changes(run).tolist()))
            for run in survey.runs
        ],
        _("margin"), _("change of the lead"), ("log", "signed"),
    )  # fmt: skip


def plots_of_positions(survey: Survey) -> Iterator[Scatter]:
    """The median change of the lead over the position."""
    yield from _scatter(
        _("Changes of the lead over the position"),
        _("Each point is a range of positions: the median size of the change of the lead there."),
        [
            (e.format, [(sqrt(b.low * (b.high - 1)), b.change) for b in e.by_position if b.tokens])
            for e in survey.effects
        ],
        _("position"), _("median change"), ("log", "log"),
    )  # fmt: skip


def plots_of_layers(survey: Survey) -> Iterator[Scatter]:
    """The errors of the residual stream, and of the logits read off it, over the layer."""

    def points(layers: Iterable[Layer], logits: bool) -> list[Spot]:
        sizes = (layer.logits if logits else layer.stream for layer in layers)
        return [(float(place), size) for place, size in enumerate(sizes)]

    for name, about, logits in (
        (
            _("The error of the residual stream over the layer"),
            _("Each point is a layer: the median relative error of the residual stream after it."),
            False,
        ),
        (
            _("The error of the logits over the layer"),
            _("Each point is a layer: the median relative error of the logits read off after it."),
            True,
        ),
    ):
        yield from _scatter(
            name, about, [(e.format, points(e.layers, logits)) for e in survey.effects],
            _("layer"), _("relative error"), ("linear", "log"),
        )  # fmt: skip


def _scatter(
    title: str,
    about: str,
    each: Iterable[tuple[str, list[Spot]]],
    across: str,
    along: str,
    scales: tuple[str, str],
) -> Iterator[Scatter]:
    """The plot of the points that its axes can show; none where there are none."""
    series = tuple(
        ScatterSeries(name, tuple(p for p in points if _shown(p, scales))) for name, points in each
    )
    if any(own.points for own in series):
        yield Scatter(title, about, series, across, along, scales)


def _shown(point: Spot, scales: tuple[str, str]) -> bool:
    return all(isfinite(x) and (x > 0 or s != "log") for x, s in zip(point, scales, strict=True))


def _known(across: list[float], along: list[float]) -> list[Spot]:
    pairs = zip(across, along, strict=True)
    return [(x, y) for x, y in pairs if np.isfinite(x) and np.isfinite(y)]


def _middle(low: float, high: float) -> float:
    """The middle of a range on a logarithmic axis; an open end is one step away."""
    if low == 0:
        return high / sqrt(WIDTH)
    return low * sqrt(WIDTH) if high == inf else sqrt(low * high)
