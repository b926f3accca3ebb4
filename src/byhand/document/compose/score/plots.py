"""The errors of engines as points: over the position, over the margin, engine against engine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from byhand.document.parts import Scatter, ScatterSeries
from byhand.language import _
from byhand.scoring.scored import Scored
from byhand.scoring.scores import Floats
from byhand.scoring.tokens import own_run


def plots(scored: Scored) -> Iterator[Scatter]:
    """Every plot that there is something to draw in."""
    lines = list(_errors(scored))
    if not lines:
        return
    position = scored.truth.position.astype(np.float64)
    yield Scatter(
        _("Errors over the position"),
        _("Each point is a token: its position, and an error of its log-probability."),
        tuple(_series(name, position, errors) for name, errors in reversed(lines)),
        _("position"),
        _("error in nats"),
    )
    margins = scored.truth.margins
    if (np.isfinite(margins) & (margins > 0)).any():
        under = scored.standings
        known = under is not None and 0 < under.spread < np.inf
        spread = _("usual spread of {format}").format(format=scored.format)
        yield Scatter(
            _("Errors over the margin"),
            _(
                "Each point is a token: the lead of the likeliest token's logit, and an error of "
                "its log-probability."
            ),
            tuple(_series(name, margins, errors, above=0) for name, errors in reversed(lines)),
            _("margin"),
            _("error in nats"),
            ("log", "signed"),
            levels=((spread, under.spread),) if known and under is not None else (),
        )
    for (one, errors), (other, others) in combinations(lines, 2):
        yield Scatter(
            _("{one} against {other}").format(one=one, other=other),
            _("Each point is a token: its two errors. On the diagonal both are the same."),
            (_series("", errors, others),),
            one,
            other,
            ("signed", "signed"),
            diagonal=True,
        )


def _errors(scored: Scored) -> Iterator[tuple[str, Floats]]:
    """The errors of each engine, and of byhand's own run of the format."""
    for against in scored.against:
        if against.summary.count:
            yield against.name, against.errors
    if scored.format is not None:
        name = _("byhand in {format}").format(format=scored.format)
        yield name, scored.errors(own_run(scored.format, scored.run))


def _series(name: str, across: Floats, along: Floats, above: float = -np.inf) -> ScatterSeries:
    """The points whose two numbers are known."""
    known = np.isfinite(across) & np.isfinite(along) & (across > above)
    pairs = zip(across[known].tolist(), along[known].tolist(), strict=True)
    return ScatterSeries(name, tuple(pairs))
