"""Pre-norm and post-norm runs of the same weights, side by side.

Only `norm_place` of the blocks that have norms changes; the final norm stays where it is.  The
weights were made for one place.  So the comparison shows how the place of a norm changes the sizes
of the stream, not which place is better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from byhand import evaluate
from byhand.errors import SpecError
from byhand.explaining.health import Health, health
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import Numbers, Prediction
from byhand.numbers.floats import Floats
from byhand.spec import PLACES, BlockSpec, ModelSpec
from byhand.tracing import Trace


@dataclass(frozen=True)
class PlaceRun:
    """The text worked out with every norm of the blocks in one place."""

    place: str  # "pre" | "post"
    own: bool  # whether this is the model's own place
    trace: Trace
    health: Health

    @property
    def next(self) -> list[Prediction] | None:
        """The predicted tokens; None where they were not worked out."""
        return self.trace.next


@dataclass(frozen=True)
class NormPlaces:
    """The runs; `reason` says why one or both are missing."""

    own: str | None  # "pre", "post", "mixed"; None: the blocks have no norms
    runs: tuple[PlaceRun, ...]
    reason: str | None = None


def norm_places(
    model: Model, text: str | None = None, numbers: Numbers | None = None
) -> NormPlaces:
    """The text worked out with pre-norm and with post-norm blocks of the same weights.

    The default numbers are float64.
    """
    own = _own_place(model.spec)
    if own is None:
        return NormPlaces(None, (), _("the blocks of this model have no norms"))
    runs, reason = [], None
    for place in PLACES:
        try:
            spec = with_norms(model.spec, place)
        except SpecError as error:
            reason = _("the norms cannot be moved: {why}").format(why=error.message)
            continue
        chosen = Floats("float64") if numbers is None else numbers
        trace = evaluate.trace(replace(model, spec=spec), text, chosen)
        runs.append(PlaceRun(place, place == own, trace, health(trace)))
    return NormPlaces(own, tuple(runs), reason)


def with_norms(spec: ModelSpec, place: str) -> ModelSpec:
    """The spec with every norm of its blocks in this place; a SpecError where it is impossible."""
    blocks = (replace(block, norm_place=place) if _normed(block) else block
              for block in spec.blocks)  # fmt: skip
    return replace(spec, blocks=tuple(blocks))


def _normed(block: BlockSpec) -> bool:
    return any(norm.kind != "none" for _name, norm in block.trips)


def _own_place(spec: ModelSpec) -> str | None:
    places = {block.norm_place for block in spec.blocks if _normed(block)}
    if not places:
        return None
    return places.pop() if len(places) == 1 else "mixed"
