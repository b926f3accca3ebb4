"""The rules of passes along the stream, each with the cases that try to break it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from flint import ctx

from benchmarks.soundness import attentions, mlps, pieces, rows
from benchmarks.soundness.counts import Count
from benchmarks.soundness.drawn import Drawn
from benchmarks.soundness.truth import BITS

Case = Callable[[Drawn, Count, int], None]
MORE_BITS = 2400  # where the truth was not known well enough to tell

RULES: dict[str, Case] = {
    "how far norms move rows": pieces.norm_case,
    "slopes of activations": pieces.slope_case,
    "factors of matrices": pieces.factor_case,
    "overlaps of heads": pieces.overlap_case,
    "norms of pairs of heads": pieces.pair_case,
    "spectral norms": pieces.spectral_case,
    "coherence of units": pieces.coherence_case,
    "MLPs": mlps.mlp_case,
    **{
        f"attention, {shown}, {length}": partial(
            attentions.attention_case, turning=shown == "turned", short=length == "every pair"
        )
        for shown in ("plain", "turned")
        for length in ("every pair", "lengths alone")
    },
    "log-probabilities and entropies": rows.logprob_case,
    "ranks, leads and ties": rows.rank_case,
}


def samples_of(rule: str, samples: int, *, seed: int, each: int = 100) -> Count:
    """At least so many samples of a rule, `each` of one case.

    A case whose truth is not known well enough to tell is done again with more bits.
    """
    count = Count(rule)
    number = 0
    before = ctx.prec
    try:
        while count.samples < samples:
            found = _one(rule, (seed, number), each, BITS)
            if found.open:
                found = _one(rule, (seed, number), each, MORE_BITS)
            count.join(found, f"case {number} of seed {seed}")
            number += 1
    finally:
        ctx.prec = before
    return count


def _one(rule: str, seed: tuple[int, int], each: int, bits: int) -> Count:
    ctx.prec = bits
    found = Count(rule)
    RULES[rule](Drawn(np.random.default_rng(seed)), found, each)
    return found
