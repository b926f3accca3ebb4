"""The step to dump next: the one that tells the explanations that are left apart."""

from __future__ import annotations

from byhand.checking.gaps.search import Search
from byhand.checking.suspects import Scene

EASY = (  # what ports have at hand, by the end of its address
    "mlp.add", "attn.out", "attn.add", "mlp.out", "attn.weights", "mlp.act", "attn.norm.out",
    "mlp.norm.out", "attn.q", "attn.k", "attn.v", "attn.mixed", "mlp.hidden", "mlp.gate",
    "stream.0", "final.norm.out", "embed.token",
)  # fmt: skip


def step_to_dump(scene: Scene, search: Search) -> str | None:
    """The address of an unclaimed step of the gap; None where there is none to ask for."""
    easy = [
        step.address
        for step in scene.region
        if step.address != scene.target.address and step.address.endswith(EASY)
    ]
    return easy[len(easy) // 2] if easy else None
