"""The step to dump next: the one that tells the explanations that are left apart.

Where none is left, it is the step that halves what may be wrong: the middle block's output, then
what attention gives, or the attention weights where the first position is right, since only
attention and positions tell positions apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from byhand.checking.claims import Floats
from byhand.checking.gaps.search import Candidate, Search
from byhand.checking.suspects.scenes import Scene
from byhand.errors import ByhandError
from byhand.plan import Step

EASY = (  # what ports have at hand, by the end of its address
    ".mlp.add", ".attn.out", ".attn.weights", ".mlp.act", ".attn.norm.out", ".mlp.norm.out",
    ".mlp.out", ".attn.q", ".attn.k", ".attn.v", ".attn.add", ".attn.mixed", ".mlp.hidden",
    ".mlp.gate", "final.norm.out", "stream.0", "embed.token",
)  # fmt: skip
MOST = 4  # explanations that are told apart
APART = 0.01  # relative: a difference that any format shows


def step_to_dump(
    scene: Scene, search: Search, left: Sequence[Candidate], start: int | None
) -> str | None:
    """The address of an unclaimed step of the gap; None where there is none to ask for.

    `left` are the explanations that fit alike, `start` is the first position that differs.
    """
    easy = [step for step in scene.region[:-1] if step.address.endswith(EASY)]
    told = _telling(search, easy, left[:MOST]) if len(left) > 1 else None
    return told or halving(scene.region, attention=bool(start))


def halving(gap: Sequence[Step], *, attention: bool = False) -> str | None:
    """The step in the middle of a gap, whose last step is claimed.

    With `attention`, the mistake is in attention.
    """
    easy = [step for step in gap[:-1] if step.address.endswith(EASY)]
    blocks = [step.address for step in easy if step.address.endswith(".mlp.add")]
    if blocks:
        return blocks[len(blocks) // 2]
    for ending in (".attn.weights", ".attn.out") if attention else (".attn.out",):
        named = [step.address for step in easy if step.address.endswith(ending)]
        if named:
            return named[0]
    return easy[len(easy) // 2].address if easy else None


def _telling(search: Search, easy: Sequence[Step], left: Sequence[Candidate]) -> str | None:
    """The step at which the explanations differ most, each from each; the first of equals."""
    values = [_values(search, easy, candidate) for candidate in left]
    best, most = None, 0.0
    for step in easy:
        apart = min(
            _apart(one[step.address], other[step.address]) for one, other in combinations(values, 2)
        )
        if min(apart, APART) > most:
            best, most = step.address, min(apart, APART)
    return best


def _values(search: Search, easy: Sequence[Step], candidate: Candidate) -> dict[str, Floats]:
    """What an edited plan gives for these steps."""
    values = search.values
    try:
        fresh = values.worked_out(values.changed(candidate.edit.plan))
    except ByhandError:
        fresh = {}
    return {
        step.address: np.asarray(fresh[step.address].mid, dtype=np.float64)
        if step.address in fresh
        else values.read(step.address)
        for step in easy
    }


def _apart(one: Floats, other: Floats) -> float:
    """How far two values are apart, relative to their size."""
    if one.shape != other.shape:
        return 1.0
    with np.errstate(all="ignore"):
        size = float(np.sqrt(np.mean(np.square(one)) + np.mean(np.square(other))))
        apart = float(np.sqrt(np.mean(np.square(one - other))))
    return apart / size if size and np.isfinite(apart) else 0.0
