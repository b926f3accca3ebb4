"""The report on a survey: its title and its sections, in reading order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from byhand.document import words
from byhand.document.compose.score.saying import amount, share
from byhand.document.compose.survey.plots import (
    plots_of_layers,
    plots_of_margins,
    plots_of_positions,
)
from byhand.document.parts import Column, Finding, Grid, Part, Section, Title
from byhand.language import _
from byhand.scoring.flips import Bin, Flips
from byhand.scoring.survey import QUANTILES, SMALL, Effects, Layer, Survey


def title(survey: Survey) -> Title:
    """The model, what was surveyed, and what the true values are."""
    facts = [
        (_("texts"), words.whole(len(survey.truth.scores))),
        (_("tokens"), words.whole(len(survey.truth))),
        (_("contexts"), words.whole(int(survey.fresh.sum()))),
        (_("true values"), _truth(survey)),
        (_("ties"), _ties(survey)),
    ]
    if survey.open.any():
        facts.append((_("open"), words.whole(int(survey.open.sum()))))
    return Title(words.printable(survey.model.name), words.told(survey.model.about), tuple(facts))


def _truth(survey: Survey) -> str:
    if not survey.enclosed:
        return _("those of byhand's own {format} run: nothing is proven").format(
            format=survey.truth.numbers
        )
    return _("proven, each within {radius}").format(
        radius=amount(float(survey.truth.radii.max()), 1)
    )


def _ties(survey: Survey) -> str:
    count = words.whole(int(survey.tied.sum()))
    return _("{count}, proven").format(count=count) if survey.enclosed else count


def sections(survey: Survey, *, drawn: bool = True) -> Iterator[Section]:
    """The sections; with plots where they are to be drawn."""
    yield Section("flips", _("How often another token?"), _about_flips(survey), (_flips(survey),))
    yield Section(
        "margins", _("How close are ties?"), _about_margins(),
        (_by_margin(survey), *(plots_of_margins(survey) if drawn else ())),
    )  # fmt: skip
    yield Section("errors", _("How large are the errors?"), _about_errors(), tuple(_errors(survey)))
    yield Section(
        "positions", _("Do they grow with the position?"), _about_positions(),
        (*_by_position(survey), *(plots_of_positions(survey) if drawn else ())),
    )  # fmt: skip
    yield Section(
        "layers", _("Do they grow with the layer?"), _about_layers(),
        (*_by_layer(survey), *(plots_of_layers(survey) if drawn else ())),
    )  # fmt: skip


# ------------------------------------------------------------------ other tokens


def _flips(survey: Survey) -> Grid:
    heads = [
        _("tokens"), _("flips"), _("of equals"), _("share"), _("95 in 100"), _("foretold"),
        _("ratio"),
    ]  # fmt: skip
    rows = tuple(
        (
            effects.format, words.whole(effects.flips.of), words.whole(effects.flips.count),
            words.whole(effects.equal), share(effects.flips.share), _interval(effects.flips),
            amount(effects.foretold), amount(effects.ratio),
        )
        for effects in survey.effects
    )  # fmt: skip
    note = "; ".join(
        _("{format} has no finite answer at {count} tokens").format(
            format=effects.format, count=words.whole(effects.failed)
        )
        for effects in survey.effects
        if effects.failed
    )
    return Grid(_("Another token than the true one"), _columns(heads), rows, note=note)


def _interval(flips: Flips) -> str:
    low, high = flips.interval
    return _("{low} to {high}").format(low=share(low), high=share(high))


def _about_flips(survey: Survey) -> str:
    text = _(
        "A flip: the run's likeliest token is not the truly likeliest one. Tokens behind the same "
        "tokens count once. Of equals: the run's two largest logits are equal, and the lower id "
        "counts. The interval is Wilson's, for independent tokens. The foretold number "
        "follows from the margins and the usual change of the lead: the sum of Φ(−margin/σ). The "
        "ratio is that of the flips to it."
    )
    if SMALL in survey.formats:
        text += " " + _(
            "{format} changes the model: its matrices are kept in 8 bits, with one scale for each, "
            "and worked out in float32."
        ).format(format=SMALL)
    return text


# ------------------------------------------------------------------ margins


def _by_margin(survey: Survey) -> Grid:
    heads = [_("tokens"), *survey.formats]
    rows = tuple(
        (
            _between(low, high),
            words.whole(count),
            *(_of(e.by_margin[place].flips) for e in survey.effects),
        )
        for place, (low, high, count) in enumerate(survey.margins)
        if count
    )
    return Grid(_("Flips by the margin"), _columns(heads, _("margin")), rows)


def _of(flips: Flips) -> str:
    """How many of how many, where there are any."""
    return "·" if not flips.of else words.whole(flips.count)


def _between(low: float, high: float) -> str:
    if high == inf:
        return _("{number} and more").format(number=f"{low:g}")
    return _("{low} to {high}").format(low=f"{low:g}", high=f"{high:g}")


def _about_margins() -> str:
    return _(
        "The margin is the largest true logit less the second largest. Rounding flips a token "
        "where it changes the lead by more than the margin."
    )


# ------------------------------------------------------------------ errors


def _errors(survey: Survey) -> Iterator[Part]:
    told: tuple[tuple[str, Callable[[Effects], tuple[float, ...]]], ...] = (
        (_("Errors of ln p, in nats"), lambda effects: effects.errors),
        (_("Changes of the lead, in logits"), lambda effects: effects.changes),
    )
    heads = [*(f"{100 * each:g} %" for each in QUANTILES[:-1]), _("largest")]
    for name, of in told:
        rows = tuple((e.format, *map(amount, of(e))) for e in survey.effects)
        yield Grid(name, _columns(heads), rows)
    if survey.blurred:
        text = _("the true values are known to {radius} only: more digits would tell more")
        radius = amount(float(survey.truth.radii.max()), 1)
        yield Finding(", ".join(survey.blurred), (text.format(radius=radius),))


def _about_errors() -> str:
    return _(
        "An error is what the run says less the true value; here are the sizes. 50 % of them are "
        "at most the first number."
    )


# ------------------------------------------------------------------ position and layer


def _by_position(survey: Survey) -> Iterator[Grid]:
    told: tuple[tuple[str, Callable[[Bin], str]], ...] = (
        (_("The median change of the lead by the position"), lambda own: amount(own.change)),
        (_("Flips by the position"), lambda own: _of(own.flips)),
    )
    every = list(zip(*(effects.by_position for effects in survey.effects), strict=True))
    for name, of in told:
        rows = tuple(
            (_positions(own[0]), words.whole(own[0].tokens), *map(of, own))
            for own in every
            if own[0].tokens
        )
        yield Grid(name, _columns([_("tokens"), *survey.formats], _("position")), rows)


def _positions(bin: Bin) -> str:
    low, high = int(bin.low), int(bin.high) - 1
    return str(low) if low == high else _("{low} to {high}").format(low=low, high=high)


def _about_positions() -> str:
    return _("The position counts the tokens before the one that is scored.")


def _by_layer(survey: Survey) -> Iterator[Grid]:
    told: tuple[tuple[str, Callable[[Layer], float]], ...] = (
        (_("The residual stream: median relative error"), lambda layer: layer.stream),
        (_("The logits read off it: median relative error"), lambda layer: layer.logits),
    )
    for name, of in told:
        rows = tuple(
            (place, *(amount(of(effects.layers[row])) for effects in survey.effects))
            for row, place in enumerate(survey.places)
        )
        yield Grid(name, _columns(list(survey.formats), _("after")), rows)


def _about_layers() -> str:
    return _(
        "The size of the error of each position's vector over the size of the true one. The logits "
        "are those that the end of the model makes of the residual stream there, less their mean."
    )


def _columns(heads: list[str], first: str = "") -> tuple[Column, ...]:
    return Column(first), *(Column(head, "number") for head in heads)
