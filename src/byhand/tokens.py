"""Text and tokens: words or characters of a fixed vocabulary.

How long a text may be is not known here: that is `ModelSpec.context`, which `too_long` checks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from byhand.errors import TextError, nearest
from byhand.language import _

KINDS = ("words", "characters")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The known tokens in the order of their ids; `kind` is "words" or "characters".

    Words are separated by white space and hold none; a character is one Unicode character.
    """

    tokens: tuple[str, ...]
    kind: str = "words"
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise TextError(
                _("there is no vocabulary of {kind}").format(kind=self.kind),
                expected=", ".join(KINDS),
                found=self.kind,
                hint=nearest(self.kind, KINDS),
            )
        for token in self.tokens:
            self._check(token)
        object.__setattr__(self, "_ids", {token: id for id, token in enumerate(self.tokens)})
        if len(self._ids) < len(self.tokens):
            twice = next(t for id, t in enumerate(self.tokens) if t in self.tokens[:id])
            raise TextError(
                _("the token {token} is in the vocabulary twice").format(token=repr(twice)),
                expected=_("each token once"),
                found=twice,
            )

    def _check(self, token: str) -> None:
        if self.kind == "characters" and len(token) != 1:
            expected = _("one character")
        elif self.kind == "words" and (not token or token.split() != [token]):
            expected = _("a word without white space")
        else:
            return
        raise TextError(
            _("a token cannot be {token}").format(token=repr(token[:40])),
            expected=expected,
            found=repr(token[:40]),
        )

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> tuple[int, ...]:
        """The ids of a text's tokens; an unknown token or an empty text is a TextError."""
        pieces = text.split() if self.kind == "words" else list(text)
        if not pieces:
            raise TextError(
                _("the text is empty"),
                expected=_("at least one token of {tokens}").format(tokens=self.sample()),
                found=repr(text),
            )
        return tuple(self.id(piece, place) for place, piece in enumerate(pieces))

    def id(self, token: str, place: int | None = None) -> int:
        """The id of one token; `place` is where it stands in a text, for the message."""
        if token in self._ids:
            return self._ids[token]
        shown = repr(token) if len(token) <= 40 else repr(token[:39] + "…")
        folded = [known for known in self.tokens if known.casefold() == token.casefold()]
        raise TextError(
            _("{token} is not in the vocabulary").format(token=shown),
            expected=self.sample(),
            found=shown
            if place is None
            else _("{token} at position {place}").format(token=shown, place=place),
            hint=_("did you mean {names}?").format(names=folded[0])
            if folded
            else nearest(token[:40], self.tokens),
        )

    def decode(self, ids: Iterable[int]) -> str:
        """The text of some ids, which `encode` reads back to them."""
        return ("" if self.kind == "characters" else " ").join(self.tokens[id] for id in ids)

    def sample(self) -> str:
        """The first tokens, for messages and listings."""
        first = [t if t.strip() == t else repr(t) for t in self.tokens[:12]]
        return ", ".join(first) + (", …" if len(self.tokens) > 12 else "")


def too_long(length: int, context: int | None) -> TextError | None:
    """The error for a text of more tokens than the model's context; None where it fits."""
    if context is None or length <= context:
        return None
    return TextError(
        _("the text is too long for this model"),
        expected=_("at most {count} tokens").format(count=context),
        found=_("{count} tokens").format(count=length),
    )
