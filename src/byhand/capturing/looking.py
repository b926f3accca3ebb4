"""Who may look at whom in a run: what the caller says, and what the model makes of it.

Positions that start again within a text mean several texts packed into one.  `transformers` then
keeps them apart where it is given neither a mask nor a cache, and lets them look back at each other
otherwise; older versions always did the latter.  So it is asked of the run itself: the masks that
its attention modules were called with.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.masks import pairs_of, segments_of
from byhand.checking.reading.arrays import as_array
from byhand.errors import UsageError
from byhand.language import _

Whole = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
MASK = "attention_mask"
CAUSAL = ("eager", "sdpa")  # kinds of attention for which no mask at all means: look back


class Looking:
    """Listens to the masks of attention modules."""

    def __init__(self, attention: str | None) -> None:
        self.attention = attention
        self.segments: Whole | None = None
        self._across: bool | None = None  # whether a query saw a key of another segment

    def listen(self, positions: Whole | None, kwargs: Mapping[str, Any]) -> None:
        """One call of an attention module, told the positions of its queries."""
        if positions is None or MASK not in kwargs or self._across:
            return
        self.segments = segments_of(positions)
        if self.segments is None:
            return
        mask = kwargs[MASK]
        if mask is None:
            self._across = True if self.attention in CAUSAL else None
        elif hasattr(mask, "detach") and mask.ndim == 4:
            self._across = self._crossing(pairs_of(as_array(mask, MASK), MASK))

    def _crossing(self, pairs: Truths) -> bool:
        """Whether the first query of a segment looks at the key before it, of another one."""
        assert self.segments is not None
        queries = self.segments.shape[-1]
        pairs = np.broadcast_to(pairs, (len(self.segments), *pairs.shape[1:]))
        keys = range(pairs.shape[2] - queries, pairs.shape[2])  # those of these queries
        before = [pairs[:, query, keys[query] - 1] for query in range(1, queries)]
        other = np.diff(self.segments, axis=1) != 0
        return bool(np.any(np.stack(before, axis=1) & other))

    def found(self) -> Whole | None:
        """The segments that did not see each other; None where it is not known, or nothing to say.

        Where all looked back at each other, they are one segment.
        """
        if self.segments is None or self._across is None:
            return None
        return np.zeros_like(self.segments) if self._across else self.segments


def given_mask(value: Any, attention: str | None) -> tuple[Truths | None, Truths | None]:
    """The mask that the model is called with: of the positions, or of queries and keys."""
    if value is None:
        return None, None
    if not hasattr(value, "detach"):
        raise UsageError(
            _("this attention mask cannot be recorded"),
            expected=_("a tensor of positions, or of queries and keys"),
            found=type(value).__name__,
        )
    mask = as_array(value, MASK)
    if mask.ndim <= 2:
        return np.atleast_2d(mask).astype(np.bool_), None
    if attention == "eager" and mask.dtype == np.bool_:
        warnings.warn(
            _("eager attention adds a boolean mask to the scores as 0 and 1: it hides nothing"),
            stacklevel=3,
        )
    return None, pairs_of(mask, MASK)
