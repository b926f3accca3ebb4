"""The topics of a plan: groups of steps, one for each passage.

Examples are the norm before attention, the queries, keys and values, or the scores.  Every step
belongs to exactly one topic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from byhand.plan import Plan, Step

_KINDS = (  # the first match counts; of an encoder's step, without `encoder.`
    (r"tokens|source", "tokens"),
    (r"embed\.(token|projected)", "embed"),
    (r"embed\.segment", "segment"),
    (r"embed\.position", "position"),
    (r"stream\.0|embed\.(\w+_added|sum)", "stream"),
    (r"embed\.norm\..*", "embed_norm"),
    (r"relative", "distances"),
    (r"block\.\d+\.(attn|cross|mlp)\.norm\..*", "norm"),
    (r"block\.\d+\.(attn|mlp)\.after\..*", "after_norm"),
    (r"block\.\d+\.attn\.(q_latent|kv_latent|kv_few|[qk]v?_wide|[qk]_still|[qk]_turned).*",
     "latent"),
    (r"block\.\d+\.(attn|cross)\.(qkv|q|k|v)", "qkv"),
    (r"block\.\d+\.(attn|cross)\.[qk]_(norm.*|heads)", "qk_norm"),
    (r"block\.\d+\.(attn|cross)\.[qkv]_clipped", "clip"),
    (r"block\.\d+\.attn\.([qk]_rotated|frequencies)", "rotate"),
    (r"block\.\d+\.(attn|cross)\.scores", "scores"),
    (r"block\.\d+\.(attn|cross)\.weights", "weights"),
    (r"block\.\d+\.(attn|cross)\.mixed", "mixed"),
    (r"block\.\d+\.(attn|cross)\.(head_out|out)", "attn_out"),
    (r"block\.\d+\.(attn|cross|mlp)\.(scaled|add)", "add"),
    (r"block\.\d+\.mlp\.(router|router_scores|ranked|chosen|shares)", "router"),
    (r"block\.\d+\.mlp\.(gate|hidden)(_limited)?", "hidden"),
    (r"block\.\d+\.mlp\.(act|raised|gated)", "act"),
    (r"block\.\d+\.mlp\.shared\..*", "shared"),
    (r"block\.\d+\.mlp\.(answers|combined|out)", "mlp_out"),
    (r"final\.norm\..*", "norm"),
    (r"head\.norm\..*", "head_norm"),
    (r"head\.(hidden|act|projected|in)", "head"),
    (r"logits|head\.(out|biased|scaled)", "logits"),
    (r"probs", "probs"),
    (r"next", "next"),
    (r"targets?|loss(es)?|mean_loss|logprobs", "loss"),
)  # fmt: skip
ENCODER = "encoder."


@dataclass(frozen=True, slots=True)
class Topic:
    """Steps of one passage; `trip` is attn, cross or mlp inside a block, else empty."""

    kind: str
    layer: int | None
    trip: str
    steps: tuple[Step, ...]
    encoder: bool = False

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of its steps."""
        return tuple(step.address for step in self.steps)

    @property
    def id(self) -> str:
        """An id that is unique in the plan: 0-attn-scores, final-norm."""
        place = ["encoder"] * self.encoder
        place += [] if self.layer is None else [str(self.layer), self.trip]
        if self.kind == "norm" and self.layer is None:
            place.append("final")
        kind = {"attn_out": "out", "mlp_out": "out"}.get(self.kind, self.kind.replace("_", "-"))
        return "-".join([*place, kind])

    def step(self, ending: str) -> Step | None:
        """The step whose address has this ending; None if there is none."""
        return next((s for s in self.steps if s.address.rpartition(".")[2] == ending), None)


def kind_of(address: str) -> str:
    """The kind of topic that a step belongs to."""
    for pattern, kind in _KINDS:
        if re.fullmatch(pattern, address.removeprefix(ENCODER)):
            return kind
    raise LookupError(address)  # a step of the forward pass without a topic


def topics(plan: Plan) -> tuple[Topic, ...]:
    """The topics of a plan, in spine order of their first steps."""
    found: dict[tuple[str, int | None, str, bool], list[Step]] = {}
    for step in plan:
        encoder = step.address == "source" or step.address.startswith(ENCODER)
        parts = step.address.removeprefix(ENCODER).split(".")
        place = (int(parts[1]), parts[2]) if parts[0] == "block" else (None, "")
        found.setdefault((kind_of(step.address), *place, encoder), []).append(step)
    return tuple(
        Topic(kind, layer, trip, tuple(steps), encoder)
        for (kind, layer, trip, encoder), steps in found.items()
    )
