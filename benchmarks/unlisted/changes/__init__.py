"""The changes: what each does to a port, where it first shows, and what is true of it.

registry   what a change is, and the list of them
handles    how a port is changed
scores · attention · rotary · norms · mlp · weights · stream · ends · precision   the changes
pairs      two of them at once
"""

from benchmarks.unlisted.changes import (  # noqa: I001 - pairs are made of the others
    attention, ends, mlp, norms, precision, rotary, scores, stream, weights, pairs,
)  # fmt: skip
from benchmarks.unlisted.changes.registry import CHANGES, FORMATS, Change, Part

__all__ = ["CHANGES", "FORMATS", "Change", "Part", "attention", "ends", "mlp", "norms", "pairs",
           "precision", "rotary", "scores", "stream", "weights"]  # fmt: skip
