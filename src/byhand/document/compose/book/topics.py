"""The topics of a plan: groups of steps, one for each passage.

Examples are the norm before attention, the queries, keys and values, or the scores.  Every step
belongs to exactly one topic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from byhand.plan import Plan, Step

_KINDS = (  # the first match counts
    (r"tokens", "tokens"),
    (r"embed\.token", "embed"),
    (r"embed\.position", "position"),
    (r"stream\.0", "stream"),
    (r"block\.\d+\.(attn|mlp)\.norm\..*", "norm"),
    (r"block\.\d+\.attn\.(qkv|q|k|v)", "qkv"),
    (r"block\.\d+\.attn\.[qk]_norm.*", "qk_norm"),
    (r"block\.\d+\.attn\.[qk]_rotated", "rotate"),
    (r"block\.\d+\.attn\.scores", "scores"),
    (r"block\.\d+\.attn\.weights", "weights"),
    (r"block\.\d+\.attn\.mixed", "mixed"),
    (r"block\.\d+\.attn\.(head_out|out)", "attn_out"),
    (r"block\.\d+\.(attn|mlp)\.add", "add"),
    (r"block\.\d+\.mlp\.(router|chosen|shares)", "router"),
    (r"block\.\d+\.mlp\.(gate|hidden)", "hidden"),
    (r"block\.\d+\.mlp\.(act|gated)", "act"),
    (r"block\.\d+\.mlp\.(answers|out)", "mlp_out"),
    (r"final\.norm\..*", "norm"),
    (r"logits", "logits"),
    (r"probs", "probs"),
    (r"next", "next"),
    (r"targets?|loss(es)?|mean_loss", "loss"),
)


@dataclass(frozen=True, slots=True)
class Topic:
    """Steps of one passage; `trip` is attn or mlp inside a block, else empty."""

    kind: str
    layer: int | None
    trip: str
    steps: tuple[Step, ...]

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of its steps."""
        return tuple(step.address for step in self.steps)

    @property
    def id(self) -> str:
        """An id that is unique in the plan: 0-attn-scores, final-norm."""
        place = [] if self.layer is None else [str(self.layer), self.trip]
        if self.kind == "norm" and self.layer is None:
            place = ["final"]
        kind = {"attn_out": "out", "mlp_out": "out", "qk_norm": "qk-norm"}.get(self.kind, self.kind)
        return "-".join([*place, kind])

    def step(self, ending: str) -> Step | None:
        """The step whose address has this ending; None if there is none."""
        return next((s for s in self.steps if s.address.rpartition(".")[2] == ending), None)


def kind_of(address: str) -> str:
    """The kind of topic that a step belongs to."""
    for pattern, kind in _KINDS:
        if re.fullmatch(pattern, address):
            return kind
    raise LookupError(address)  # a step of the forward pass without a topic


def topics(plan: Plan) -> tuple[Topic, ...]:
    """The topics of a plan, in spine order of their first steps."""
    found: dict[tuple[str, int | None, str], list[Step]] = {}
    for step in plan:
        parts = step.address.split(".")
        inside = parts[0] == "block"
        place = (int(parts[1]), parts[2]) if inside else (None, "")
        found.setdefault((kind_of(step.address), *place), []).append(step)
    return tuple(
        Topic(kind, layer, trip, tuple(steps)) for (kind, layer, trip), steps in found.items()
    )
