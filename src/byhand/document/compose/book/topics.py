"""The topics of a plan: groups of steps, one for each passage.

Examples are the norm before attention, the queries, keys and values, or the scores.  Every step
belongs to exactly one topic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from byhand.plan import Plan, Step

ENCODER = "encoder."
_ATTN = r"block\.\d+\.(attn|cross)\."
_KINDS = (  # the first match counts
    (r"tokens|source", "tokens"),
    (r"embed\.(token|projected)", "embed"),
    (r"embed\.segment", "segment"),
    (r"embed\.position", "position"),
    (r"stream\.0|embed\.(\w+_added|sum)", "stream"),
    (r"embed\.norm\..*", "embed_norm"),
    (r"relative", "relative"),
    (r"block\.\d+\.(attn|cross|mlp)\.norm\..*", "norm"),
    (r"block\.\d+\.(attn|mlp)\.after\..*", "after"),
    (_ATTN + r"[qk](_norm|_heads).*", "qk_norm"),
    (_ATTN + r"([qk]_rotated|frequencies)", "rotate"),
    (_ATTN + r"scores", "scores"),
    (_ATTN + r"weights", "weights"),
    (_ATTN + r"mixed", "mixed"),
    (_ATTN + r"(head_out|out)", "attn_out"),
    (r"block\.\d+\.(attn|cross|mlp)\.(add|scaled)", "add"),
    (_ATTN + r"(qkv|[qkv])(_clipped|_wide)?|" + _ATTN + r"(past|all)_[kv]", "qkv"),
    (_ATTN + r"(q_latent.*|kv_latent.*|kv_wide|kv_few|[qk]_still|[qk]_turned)", "qkv"),
    (r"block\.\d+\.mlp\.(router|router_scores|ranked|chosen|shares)", "router"),
    (r"block\.\d+\.mlp\.(gate|hidden)(_limited)?", "hidden"),
    (r"block\.\d+\.mlp\.(act|raised|gated)", "act"),
    (r"block\.\d+\.mlp\.(answers|combined|shared\..*|out)", "mlp_out"),
    (r"final\.norm\..*", "norm"),
    (r"head\.(hidden|act|norm\..*|projected|in)", "head"),
    (r"logits|head\..*", "logits"),
    (r"probs", "probs"),
    (r"next", "next"),
    (r"targets?|loss(es)?|mean_loss", "loss"),
)


@dataclass(frozen=True, slots=True)
class Topic:
    """Steps of one passage; `trip` is attn, cross or mlp inside a block, else empty.

    `stack` is "encoder." for steps of the encoder's stream.
    """

    kind: str
    layer: int | None
    trip: str
    steps: tuple[Step, ...]
    stack: str = ""

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
        kind = {"attn_out": "out", "mlp_out": "out"}.get(self.kind, self.kind).replace("_", "-")
        return "-".join([*(["encoder"] if self.stack else []), *place, kind])

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
    found: dict[tuple[str, int | None, str, str], list[Step]] = {}
    for step in plan:
        stack = ENCODER if step.address.startswith(ENCODER) or step.address == "source" else ""
        parts = step.address.removeprefix(ENCODER).split(".")
        place = (int(parts[1]), parts[2]) if parts[0] == "block" else (None, "")
        found.setdefault((kind_of(step.address), *place, stack), []).append(step)
    return tuple(
        Topic(kind, layer, trip, tuple(steps), stack)
        for (kind, layer, trip, stack), steps in found.items()
    )
