"""The planes of a stream as drawings: their numbers, the names of their signs, their notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from byhand.document.numerals import decimal, localised
from byhand.document.parts.drawn import Drawing, Spot, TokenArrow, Way, WonRegion
from byhand.document.words import token_label
from byhand.language import _

if TYPE_CHECKING:
    from byhand.explaining.geometry import Geometry, Path, Stop
    from byhand.explaining.planes import Plane

MOST_TOLD = 8  # tokens or positions that a sentence lists
MOST_TIED = 3  # tokens of one region that are named


def drawings(geometry: Geometry, *, small: bool = False, name: str = "plane") -> list[Drawing]:
    """A drawing of each plane; if none can be drawn, the first describes them in words."""
    planes = geometry.planes
    return [
        _drawing(
            geometry,
            plane,
            name if len(planes) == 1 else f"{name}-{place}",
            small=small,
            instead="" if place else _instead(geometry),
        )
        for place, plane in enumerate(planes)
    ]


def _drawing(geometry: Geometry, plane: Plane, name: str, *, small: bool, instead: str) -> Drawing:
    frame = plane.frame
    shown = {each.id: place for place, each in enumerate(geometry.directions)}
    regions = (
        WonRegion(
            _tokens(geometry, (each.tied or (each.token,))[:MOST_TIED]),
            shown.get(each.token, each.token),
            tuple(tuple((float(x), float(y)) for x, y in line) for line in each.outlines),
        )
        for each in plane.regions
    )
    arrows = zip(geometry.directions, plane.arrows, strict=True)
    return Drawing(
        name,
        _title(geometry),
        description(geometry, plane),
        tuple(notes(geometry, plane)),
        axis_names(plane),
        geometry.width,
        (float(frame.left), float(frame.bottom)),
        (float(frame.right), float(frame.top)),
        plane.origin,
        tuple(regions),
        tuple(TokenArrow(token_label(each.token), shown[each.id], along) for each, along in arrows),
        tuple(
            _way(path, points, geometry, shown)
            for path, points in zip(geometry.paths, plane.points, strict=True)
        ),
        kinds(geometry),
        small,
        instead,
    )


def _way(path: Path, points: Sequence[Spot], geometry: Geometry, shown: Mapping[int, int]) -> Way:
    led = None if path.last is None or path.last.leads is None else path.last.leads.id
    return Way(
        path.position,
        token_label(path.token),
        tuple((stop.kind, point) for stop, point in zip(path.stops, points, strict=True)),
        path.last is not None,
        end_label(path, geometry),
        None if led is None else shown.get(led, led),
    )


def _tokens(geometry: Geometry, ids: Sequence[int]) -> str:
    return ", ".join(token_label(geometry.trace.answer(id)) for id in ids)


def _title(geometry: Geometry) -> str:
    text = _("The residual stream of {model} with the path of {text}, in two dimensions")
    if geometry.width == 2:
        text = _("The plane of {model} with the path of {text}")
    return text.format(model=geometry.trace.model.name, text=geometry.trace.text)


def _instead(geometry: Geometry) -> str:
    """What a picture of a wider stream shows, and what it does not; empty in two dimensions."""
    if geometry.width <= 2:
        return ""
    if geometry.width == 3:
        return _("--report draws the residual stream in its three coordinate planes")
    seen = geometry.planes[0].projection
    text = _(
        "the two main directions keep {first} and {second} of the residual stream's spread "
        "on this text; {away} is lost in projection. --report draws them"
    )
    return text.format(
        first=percent(seen.kept[0]), second=percent(seen.kept[1]), away=percent(seen.away)
    )


def kinds(geometry: Geometry) -> dict[str, str]:
    """The name of each kind of stop on the paths."""
    words = {
        "token": _("embedding"),
        "position": _("+ position"),
        "attn": _("+ attention"),
        "attn.norm": _("norm"),
        "mlp": _("+ MLP"),
        "mlp.norm": _("norm"),
    }
    there = {stop.kind for path in geometry.paths for stop in path.stops}
    return {kind: text for kind, text in words.items() if kind in there}


def axis_names(plane: Plane) -> tuple[str, str]:
    """x₀ and x₁; for a projection, the main direction and the share it keeps."""
    projection = plane.projection
    if projection.names != ("1", "2"):
        return projection.names
    first, second = (localised(percent(share)) for share in projection.kept[:2])
    return (
        _("first main direction ({share} of the spread)").format(share=first),
        _("second ({share})").format(share=second),
    )


def percent(share: float) -> str:
    """0.662 → 66 %; small shares keep a digit, with a decimal point."""
    value = 100 * share
    text = f"{value:.0f}" if value >= 9.95 or value < 0.05 else f"{value:.1f}"
    return text + " %"


def end_label(path: Path, geometry: Geometry) -> str:
    """→ B, after the name of a position; a question mark if it is undecided."""
    led = None if path.last is None else path.last.leads
    if led is None:
        return ""
    return " → " + ("?" if led.id is None else token_label(geometry.trace.answer(led.id)))


# ------------------------------------------------------------------ notes


def notes(geometry: Geometry, plane: Plane) -> Iterator[str]:
    """What a reader must know of the figure, a sentence each."""
    if plane.cut is not None and plane.regions:
        yield _(
            "The regions are those of the cut at {axis} ≈ {level}, through the end after "
            "position {position}. The other paths lie in front of it or behind it."
        ).format(
            axis="x" + "₀₁₂"[plane.cut.axis],
            level=decimal(plane.cut.level, 0.0001),
            position=geometry.paths[-1].position,
        )
    match plane.drawn_from:
        case "exact":
            yield _("The regions are exact: polygons with rational corners.")
        case "printed":
            yield _("The regions are those of the weights as they are printed.")
        case "grid":
            yield _(
                "The regions are what the model's own last steps say on a grid, in float64;"
                " nothing is proven between its points."
            )
        case _ if geometry.width <= 3:
            yield _("There are no regions: not all weights of the head are known.")
    if plane.never:
        tokens = _tokens(geometry, plane.never[:MOST_TOLD])
        more = " …" if len(plane.never) > MOST_TOLD else ""
        if plane.drawn_from == "grid":
            yield _("Not seen to win here: {tokens}.").format(tokens=tokens + more)
        elif plane.cut is not None:
            yield _("Never wins in this cut: {tokens}.").format(tokens=tokens + more)
        else:
            yield _("Never wins, however far out: {tokens}.").format(tokens=tokens + more)
    if plane.projection.away:
        yield _("{share} of the squared distances are projected away.").format(
            share=localised(percent(plane.projection.away))
        )
    if geometry.width > 3 and plane.arrows:
        yield _("Arrows, of the tokens seen best from here, show where their logits grow.")
    if _leaves_a_sign(geometry):
        yield _("A layernorm of two numbers leaves only which of them is larger.")
    missing = next((path.ended for path in geometry.paths if path.ended is not None), None)
    if missing is not None:
        yield _("The paths end where {cause} is not known.").format(cause=missing.cause)
    yield from _proofs(geometry)


def _leaves_a_sign(geometry: Geometry) -> bool:
    spec = geometry.trace.model.spec
    after = [
        norm
        for block in spec.blocks
        if block.norm_place == "post"
        for norm in (block.attn_norm, block.mlp_norm)
    ]
    return geometry.width == 2 and any(
        norm.kind == "layernorm" and not norm.eps for norm in (*after, spec.final_norm)
    )


def _proofs(geometry: Geometry) -> Iterator[str]:
    ends = [path.last for path in geometry.paths if path.last is not None]
    led = [stop.leads for stop in ends if stop.leads is not None]
    if not led:
        return
    if all(each.proven for each in led):
        yield _("Every prediction is proven.")
    elif any(each.id is None for each in led):
        yield _("A question mark: which token wins is undecided.")
    else:
        yield _("The numbers are rounded, so no prediction is proven.")


# ------------------------------------------------------------------ for those who hear it


def description(geometry: Geometry, plane: Plane) -> str:
    """The figure in words: every way with its stops, and what is noted below it."""
    told = [_told_way(path, geometry) for path in geometry.paths[-MOST_TOLD:]]
    return " ".join((*told, *notes(geometry, plane)))


def _told_way(path: Path, geometry: Geometry) -> str:
    words = kinds(geometry)
    stops = "; ".join(f"{words[stop.kind]} {_numbers(stop)}" for stop in path.stops)
    return _("{token} at position {position}: {stops}{end}.").format(
        token=token_label(path.token),
        position=path.position,
        stops=stops,
        end=end_label(path, geometry),
    )


def _numbers(stop: Stop) -> str:
    if len(stop.near) > 3:
        return _("of length {length}").format(length=decimal(stop.length, 0.01))
    separator = "; " if _(".") == "," else ", "
    return f"({separator.join(decimal(x, 0.01) for x in stop.near)})"
