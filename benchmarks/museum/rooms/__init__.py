"""The rooms of the museum: which bugs hang in each."""

from benchmarks.museum.rooms import (
    attention,
    caches,
    ends,
    experts,
    learning,
    norms,
    positions,
    precision,
    weights,
)

__all__ = ["attention", "caches", "ends", "experts", "learning", "norms", "positions",
           "precision", "weights"]  # fmt: skip
