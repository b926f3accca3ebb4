"""The data of one forward pass besides numbers: the model, the positions and the mask.

`forward.plan` writes a plan for a pass.  The data is checked here, before a line is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import and_
from typing import Any

from byhand.errors import InputError, TextError
from byhand.language import _
from byhand.spec import AttentionSpec, EncoderSpec, ModelSpec

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
    segments: tuple[int, ...] | None = None  # the kind of each token; None: all of kind 0
    source: int | None = None  # how many tokens the encoder reads
    stack: str = ""  # "encoder.": the pass of the encoder over its own text

    def __post_init__(self) -> None:
        side = self.encoding or self.spec
        context = side.context
        _check_length(context, self.length, self.positions)
        self._check_source()
        self._check_segments()
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
    def encoding(self) -> EncoderSpec | None:
        """The encoder, where this is its pass."""
        return self.spec.encoder if self.stack else None

    def of_encoder(self) -> Pass:
        """The pass of the encoder, over the source."""
        assert self.source is not None
        places = tuple(range(self.source))
        return Pass(
            self.spec, self.source, places, None, self.head_outputs, source=self.source,
            stack="encoder.",
        )  # fmt: skip

    def across(self) -> dict[str, Any]:
        """What cross-attention sees: each query all of the source."""
        assert self.source is not None
        row = (True,) * self.source
        keys = tuple(range(self.source))
        return {"mask": (row,) * self.length, "queries": self.positions, "keys": keys}

    def _check_source(self) -> None:
        if self.spec.encoder is None and self.source is not None:
            raise InputError(
                _("this model reads one text"),
                expected=_("no source, since there is no encoder"),
                found=_("a source of {count} tokens").format(count=self.source),
            )
        if self.spec.encoder is not None and not self.source:
            raise TextError(
                _("this model reads a source and writes a text"),
                expected=_("a source of at least one token"),
                found=_("nothing") if self.source is None else "0",
                hint=_("give the source"),
            )

    def _check_segments(self) -> None:
        if self.segments is None:
            return
        kinds = self.spec.segments or 0
        if len(self.segments) != self.length or not all(0 <= s < kinds for s in self.segments):
            raise InputError(
                _("the segments do not fit the text"),
                expected=_("{count} numbers from 0 to {last}").format(
                    count=self.length, last=kinds - 1
                )
                if kinds
                else _("no segments, since the model has no table for them"),
                found=" ".join(map(str, self.segments)),
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


def _check_length(context: int | None, length: int, positions: tuple[int, ...]) -> None:
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
    if context is not None and max(positions) >= context:
        raise TextError(
            _("the text is too long for this model"),
            expected=_("at most {count} tokens").format(count=context),
            found=str(max(positions) + 1),
            hint=_("shorten the text"),
        )
