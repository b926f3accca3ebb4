"""Texts to learn from, side by side: their tokens, positions, mask, and the token that should come.

A batch needs no pass of its own.  The texts stand one after another as one text; positions begin
again with each, and no position looks into another text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol

from byhand.errors import TextError
from byhand.language import _
from byhand.numbers.adjoints import UNCOUNTED
from byhand.tokens import Source, Tokenizer


@dataclass(frozen=True)
class Batch:
    """The tokens of one or several texts; `targets` are the next ids, or UNCOUNTED."""

    text: str
    tokens: tuple[int, ...]
    targets: tuple[int, ...]
    lengths: tuple[int, ...]  # of the texts
    texts: tuple[str, ...] = ()
    source: Source | None = None  # what the encoder reads beside one text
    segments: tuple[int, ...] | None = None  # the kind of each token, where one was given

    @property
    def positions(self) -> tuple[int, ...] | None:
        """The place of each token in its own text; None where there is one text."""
        if len(self.lengths) == 1:
            return None
        return tuple(place for length in self.lengths for place in range(length))

    @property
    def mask(self) -> tuple[tuple[bool, ...], ...] | None:
        """True where two tokens stand in the same text; None where there is one text."""
        if len(self.lengths) == 1:
            return None
        owners = [text for text, length in enumerate(self.lengths) for _place in range(length)]
        return tuple(tuple(one == other for other in owners) for one in owners)

    def ends(self) -> Batch:
        """The same texts; only their last positions count."""
        ends = set(accumulate(self.lengths))
        targets = (id if place in ends else UNCOUNTED for place, id in enumerate(self.targets, 1))
        return replace(self, targets=tuple(targets))


class Reader(Protocol):
    """What a batch asks of a model: how it reads a text, and whether it answers in its words."""

    @property
    def vocabulary(self) -> Tokenizer:
        """The tokens of texts."""

    @property
    def outputs(self) -> Tokenizer:
        """The words that are answered."""

    @property
    def in_place(self) -> bool:
        """Whether the words at the places themselves are answered, not those that come next."""

    @property
    def blank(self) -> int | None:
        """The token that stands for a word to be found, where there is one."""

    def read(self, text: str) -> tuple[int, ...]:
        """The ids of a text."""


def following_ids(model: Reader, ids: Sequence[int], target: int | None) -> tuple[int, ...]:
    """What should come after each token: the next one of the text, and at its end the target.

    Of a model that says the word at each place, the word itself, and at a blank the target.
    """
    if model.in_place:
        found = UNCOUNTED if target is None else target
        return tuple(found if id == model.blank else id for id in ids)
    own = model.outputs is not model.vocabulary
    between = [UNCOUNTED] * (len(ids) - 1) if own else ids[1:]
    return (*between, UNCOUNTED if target is None else target)


def at_blanks(model: Reader, ids: Sequence[int], target: int) -> tuple[int, ...]:
    """The target at each blank of a text, nothing elsewhere; a TextError where there is no blank.

    For a model that says the word at each place.
    """
    if model.blank is None or model.blank not in ids:
        word = "[MASK]" if model.blank is None else model.vocabulary.tokens[model.blank]
        raise TextError(
            _("this model says which word stands at each place, and the text has no blank"),
            expected=_("{token} where the target belongs").format(token=word),
            found=" ".join(model.vocabulary.tokens[id] for id in ids[:8]),
        )
    return tuple(target if id == model.blank else UNCOUNTED for id in ids)


def read_batch(
    model: Reader,
    texts: Sequence[str],
    *,
    target: int | None = None,
    shifted: bool = False,
    prompt: int = 0,
    padding: int | None = None,
) -> Batch:
    """The batch of these texts.  Each token should be followed by the next one of its text.

    The last one should be followed by the `target`; without it, it does not count.  With `shifted`,
    a last token that nothing follows is read as a target alone, as in training.  The first `prompt`
    tokens of each text are given: predicting them does not count.  Nor does predicting `padding`.
    Where a model answers with words of its own, a text does not say what should come: only the
    target counts.
    """
    if target is None and model.outputs is not model.vocabulary:
        raise _no_target(model.outputs)
    tokens, targets, lengths = list[int](), list[int](), list[int]()
    for text in texts:
        ids = model.read(text)
        following = following_ids(model, ids, target)
        if shifted and target is None and not model.in_place:
            ids, following = ids[:-1], following[:-1]
        if not ids:
            raise _too_short(text)
        counted = [
            id if place + 1 >= prompt and id != padding else UNCOUNTED
            for place, id in enumerate(following)
        ]
        tokens.extend(ids)
        targets.extend(counted)
        lengths.append(len(ids))
    if all(id == UNCOUNTED for id in targets):
        raise _too_short("\n".join(texts))
    return Batch("\n".join(texts), tuple(tokens), tuple(targets), tuple(lengths), tuple(texts))


def _no_target(outputs: Tokenizer) -> TextError:
    return TextError(
        _("this model answers with words of its own, so a text does not say what should come"),
        expected=_("a target: {tokens}").format(tokens=outputs.sample()),
        found=_("none"),
    )


def _too_short(text: str) -> TextError:
    return TextError(
        _("there is no token to predict in this text"),
        expected=_("two tokens, or a target"),
        found=repr(text[:40]),
    )
