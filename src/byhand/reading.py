"""A text as a model reads it: its ids, the kind of each token, and the source of an encoder.

Where nothing is given, the model's own text, source and target are taken.  What a model has no use
for is refused: a source without an encoder, segments without a table for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

from byhand.errors import InputError, UsageError
from byhand.language import _
from byhand.model import Model
from byhand.options import does_not_fit
from byhand.tokens import Source

__all__ = ["Reading", "Source", "beside", "read", "read_segments"]


@dataclass(frozen=True, slots=True)
class Reading:
    """A text, and what is read beside it; the target is the token that should come next."""

    text: str
    tokens: tuple[int, ...]
    target: str | None = None
    source: Source | None = None
    segments: tuple[int, ...] | None = None

    @property
    def beside(self) -> dict[str, Any]:
        """What is read beside the text, as `forward.plan` takes it."""
        return beside(self.source, self.segments)


def beside(source: Source | None, segments: tuple[int, ...] | None) -> dict[str, Any]:
    """What is read beside a text, as arguments of `forward.plan`."""
    return {"source": None if source is None else len(source.tokens), "segments": segments}


def read(
    model: Model,
    text: str | None = None,
    *,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    target: str | None = None,
) -> Reading:
    """The text with its ids, and the source with its own; the model's where none are given.

    The text of a decoder may be empty: its first token is then predicted from the source alone.
    """
    read_from = _source(model, source)
    own = read_from is None or read_from.text == model.source_text
    words = text
    if words is None:
        words = model.text if own or not model.start else None
        words = "" if words is None and model.start else words
    if words is None:
        raise InputError(
            _("this model has no default text"), where=model.source, hint=_("give a text")
        )
    if not isinstance(words, str):
        raise does_not_fit("text", _("text"), words)
    if target is None and own and words == model.text:
        target = model.target
    tokens = model.read(words)
    return Reading(words, tokens, target, read_from, _segments(model, segments, len(tokens)))


def _source(model: Model, source: str | None) -> Source | None:
    """The source as the encoder reads it; an InputError where there is no encoder, or no source."""
    if model.spec.encoder is None:
        if source is None:
            return None
        raise InputError(
            _("this model reads one text"),
            where=model.source,
            expected=_("no source, since there is no encoder"),
            found=repr(source)[:40],
        )
    words = model.source_text if source is None else source
    if words is None:
        raise InputError(
            _("this model reads a source and writes a text"),
            where=model.source,
            expected=_("a source"),
            found=_("nothing"),
            hint=_("give the source"),
        )
    if not isinstance(words, str):
        raise does_not_fit("source", _("text"), words)
    return Source(words, model.source_vocabulary.encode(words))


def _segments(model: Model, segments: Sequence[int] | None, length: int) -> tuple[int, ...] | None:
    """The kind of each token; `passes` checks how many there are and their range."""
    if segments is None:
        return None
    try:
        return tuple(index(each) for each in segments)
    except TypeError:
        expected = _("a whole number for each of the {count} tokens").format(count=length)
        raise does_not_fit("segments", expected, segments) from None


def read_segments(text: str | None) -> tuple[int, ...] | None:
    """The segments that a text spells, with commas or blanks between: 0,0,1."""
    if text is None:
        return None
    said = text.replace(",", " ").split()
    if not said or not all(each.isascii() and each.isdigit() and len(each) < 10 for each in said):
        raise UsageError(
            _("{name} has a value that does not fit").format(name="--segments"),
            expected=_("a whole number for each token, such as {example}").format(example="0,0,1"),
            found=repr(text[:40]),
        )
    return tuple(map(int, said))
