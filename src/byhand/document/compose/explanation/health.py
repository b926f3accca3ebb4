"""The sections on health and on the places of norms: sizes, entropies, ranks, dead units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from byhand.document.compose.explanation.numerals import measure, share
from byhand.document.compose.explanation.scope import Scope, numbers
from byhand.document.parts import Column, Grid, Part, Remark
from byhand.document.words import joined, whole
from byhand.language import _, amount, later

if TYPE_CHECKING:
    from byhand.explaining.health import Health, LayerHealth, Pattern, Size, Update
    from byhand.explaining.norm_places import PlaceRun

MOST_PATTERNS = 24  # heads that are listed
MOST_DEAD = 8  # units that are named


def cosine(value: float | None) -> str:
    """A rounded cosine: two decimals."""
    return "–" if value is None else f"{round(value, 2) + 0.0:.2f}"


def _mean(size: Size | None) -> str:
    return measure(None if size is None else size.mean)


def part(value: float | None) -> str:
    """A rounded share."""
    return "–" if value is None else share(value)


# ------------------------------------------------------------------ health


def parts(scope: Scope) -> Iterator[Part]:
    """The health of the layers; in full, every head and every MLP."""
    health, rows = scope.found.health, []
    if health.entering is not None:
        rows.append((_("enters"), _mean(health.entering), *[""] * 6))
    rows += [_layer(layer) for layer in health.layers]
    yield Grid(
        _("block by block"),
        numbers(
            Column(_("block")),
            (
                _("stream"),
                _("attn added"),
                _("cosine"),
                _("MLP added"),
                _("cosine"),
                _("entropy"),
                _("dead"),
            ),
        ),
        tuple(rows),
    )
    for layer in health.layers:
        yield from _remarks(layer)
    if scope.full:
        yield from _patterns(scope, health)
        yield from _units(health)


def _layer(layer: LayerHealth) -> tuple[str, ...]:
    shares = [each.mean_share_of_most for each in layer.patterns]
    known = [each for each in shares if each is not None]
    entropy = sum(known) / len(known) if known else None
    units = layer.units
    dead = "" if units is None else f"{whole(len(units.dead))}/{whole(units.count)}"
    return (
        str(layer.layer),
        _mean(layer.stream),
        *_update(layer.attention),
        *_update(layer.mlp),
        part(entropy) if layer.patterns else "",
        dead,
    )


def _update(update: Update | None) -> tuple[str, str]:
    if update is None:
        return "", ""
    return measure(update.mean_ratio), cosine(update.mean_cosine)


def _remarks(layer: LayerHealth) -> Iterator[Remark]:
    name = f"block.{layer.layer}"
    units = layer.units
    if units is not None and units.dead:
        few = [str(unit) for unit in units.dead[:MOST_DEAD]]
        which = joined(few) + ("…" if len(units.dead) > MOST_DEAD else "")
        if units.exact_zero:
            text = _("{name}: units {which} are 0 at every position of this text")
        else:
            text = _("{name}: units {which} stay below 1/1000 of the largest on this text")
        if len(units.dead) == 1:
            text = (
                _("{name}: unit {which} is 0 at every position of this text")
                if units.exact_zero
                else _("{name}: unit {which} stays below 1/1000 of the largest on this text")
            )
        yield Remark("more", text.format(name=name, which=which))
    if layer.not_finite:
        text = _("{name}: not finite: {steps}")
        yield Remark("open", text.format(name=name, steps=joined(layer.not_finite)))
    if layer.missing:
        text = _("{name}: no value: {steps}")
        yield Remark("open", text.format(name=name, steps=joined(layer.missing)))


def _units(health: Health) -> Iterator[Part]:
    found = [(layer.layer, layer.units) for layer in health.layers if layer.units is not None]
    if found:
        yield Grid(
            _(
                "every MLP: its units, and those that are dead on this text. Flat and "
                "straight: the shares of units, over all positions, where almost nothing "
                "comes out, and where what goes in comes out"
            ),
            numbers(Column(_("block")), (_("units"), _("dead"), _("flat"), _("straight"))),
            tuple(
                (
                    str(layer),
                    whole(units.count),
                    whole(len(units.dead)),
                    part(units.flat),
                    part(units.linear),
                )
                for layer, units in found
            ),
        )


def _patterns(scope: Scope, health: Health) -> Iterator[Part]:
    found = [(layer.layer, pattern) for layer in health.layers for pattern in layer.patterns]
    if not found:
        return
    shown = found if scope.every else found[:MOST_PATTERNS]
    hidden = len(found) - len(shown)
    yield Grid(
        _(
            "every head: the entropy of its attention, in nats and as a share of the "
            "largest possible, and the rank of its pattern. Then how much of it lies on "
            "the first token and on the own one, and how many rows lie on one token alone"
        ),
        numbers(
            Column(_("heads"), "address"),
            (
                _("entropy"),
                _("of most"),
                _("eff. rank"),
                _("rank"),
                _("first"),
                _("own"),
                _("on one"),
            ),
        ),
        tuple(_pattern(layer, pattern) for layer, pattern in shown),
        left_out=amount(hidden, later("1 more head"), later("{count} more heads"))
        if hidden
        else "",
    )


def _pattern(layer: int, pattern: Pattern) -> tuple[str, ...]:
    rank = pattern.numerical_rank
    return (
        f"block.{layer}.attn[{pattern.head}]",
        measure(pattern.mean_entropy),
        part(pattern.mean_share_of_most),
        measure(pattern.effective_rank),
        "–" if rank is None else str(rank),
        part(pattern.first),
        part(pattern.own),
        part(pattern.saturated),
    )


# ------------------------------------------------------------------ the place of norms


def norms_parts(scope: Scope) -> Iterator[Part]:
    """The sizes of the stream with norms before and after the side-trips."""
    found = scope.found.norm_places
    if found.reason:
        yield Remark("more", found.reason)
    if not found.runs:
        return
    layers = max(len(run.health.layers) for run in found.runs)
    rows = []
    rows.append((_("enters"), *(_mean(run.health.entering) for run in found.runs)))
    for layer in range(layers):
        rows.append((str(layer), *(_mean(run.health.layers[layer].stream) for run in found.runs)))
    rows.append((_("next token"), *(_next(scope, run) for run in found.runs)))
    columns = numbers(Column(_("after block")), map(_run_name, found.runs))
    yield Grid(_("size of the stream"), columns, tuple(rows))


def _run_name(run: PlaceRun) -> str:
    name = _("pre-norm") if run.place == "pre" else _("post-norm")
    return _("{name} (its own)").format(name=name) if run.own else name


def _next(scope: Scope, run: PlaceRun) -> str:
    return "?" if run.next is None else scope.leader(run.next[scope.found.position])
