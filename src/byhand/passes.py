"""The data of one forward pass besides numbers: the model, the positions and the mask.

`forward.plan` writes a plan for a pass.  The data is checked here, before a line is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import and_

from byhand.errors import InputError, TextError
from byhand.language import _
from byhand.spec import AttentionSpec, ModelSpec

Mask = Sequence[Sequence[bool]]


@dataclass(frozen=True)
class Pass:
    """The model and the data of a plan; data that does not fit is an InputError."""

    spec: ModelSpec
    length: int
    positions: tuple[int, ...]
    allowed: Mask | None
    head_outputs: bool
    past: int = 0  # tokens before these, whose keys and values are given

    def __post_init__(self) -> None:
        _check_length(self.spec, self.length, self.positions)
        if self.allowed is not None:
            rows = [len(row) for row in self.allowed]
            if rows != [self.past + self.length] * self.length:
                raise InputError(
                    _("the mask does not fit the text"),
                    expected=_("{count} rows of {keys}").format(
                        count=self.length, keys=self.past + self.length
                    ),
                    found=_("rows of {lengths}").format(lengths=", ".join(map(str, rows))),
                )

    @property
    def keys(self) -> tuple[int, ...]:
        """The positions of the keys: those of the past, then those of the text."""
        return (*range(self.past), *self.positions)

    def mask(self, attn: AttentionSpec) -> tuple[tuple[bool, ...], ...]:
        """True where a query may look at a key; at none only where the model allows that."""
        kind = attn.causal, attn.window, attn.nothing
        if kind not in self._masks:
            self._masks[kind] = self._mask(*kind)
        return self._masks[kind]

    @cached_property
    def _masks(self) -> dict[tuple[bool, int | None, bool], tuple[tuple[bool, ...], ...]]:
        return {}

    def _mask(
        self, causal: bool, window: int | None, nothing: bool
    ) -> tuple[tuple[bool, ...], ...]:
        keys = self.keys
        rows = []
        for place, query in enumerate(self.positions):
            last = query if causal else max(keys)
            first = 0 if window is None else query - window + 1
            row = tuple(first <= key <= last for key in keys)
            if self.allowed is not None:
                row = tuple(map(and_, row, map(bool, self.allowed[place])))
            if not nothing and not any(row):
                raise no_key(place)
            rows.append(row)
        return tuple(rows)


def no_key(position: int) -> InputError:
    """The error for a query that may look at no key: its softmax would be 0/0."""
    return InputError(
        _("position {position} may look at no key").format(position=position),
        expected=_("at least one key that is not masked"),
        found="0",
    )


def _check_length(spec: ModelSpec, length: int, positions: tuple[int, ...]) -> None:
    if length < 1:
        raise TextError(_("the text is empty"), expected=_("at least one token"), found="0")
    if len(positions) != length:
        raise InputError(
            _("positions do not fit the text"), expected=str(length), found=str(len(positions))
        )
    if min(positions) < 0:
        raise InputError(
            _("positions count from 0"), expected=_("no negative one"), found=str(min(positions))
        )
    if spec.context is not None and max(positions) >= spec.context:
        raise TextError(
            _("the text is too long for this model"),
            expected=_("at most {count} tokens").format(count=spec.context),
            found=str(max(positions) + 1),
            hint=_("shorten the text"),
        )
