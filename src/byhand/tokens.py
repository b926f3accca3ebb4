"""Text and tokens: what every tokenizer offers, and the vocabularies that need no library.

`Tokenizer` is what byhand asks of a tokenizer.  `Vocabulary` (words or characters) and `Ids`
(numbers, for a checkpoint without a tokenizer) live here; subwords, read from a tokenizer.json,
live in `subwords`.  The longest text is `ModelSpec.context`, which `too_long` checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, overload

from byhand.errors import TextError, nearest
from byhand.language import _, amount, later

KINDS = ("words", "characters")
BLANKS = ("[MASK]", "<mask>")  # tokens that stand for a word to be found
WINDOW = 64  # ids that are decoded again, at most, to find the text of one more
MANY = 10_000  # tokens above which no near names are searched: it would take seconds


class Tokenizer(Protocol):
    """What byhand asks of a tokenizer, whatever its tokens are."""

    @property
    def tokens(self) -> Sequence[str]:
        """Each token as people read it, by id."""

    def __len__(self) -> int:
        """How many ids there are: the rows of the model's table of embeddings."""

    def encode(self, text: str) -> tuple[int, ...]:
        """The ids of a text, at least one; a TextError where it cannot be read."""

    def plain(self, text: str) -> tuple[int, ...]:
        """The ids of a text without signs that the tokenizer adds itself; none if it is empty."""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of some ids, special tokens left out."""

    def id(self, token: str, /) -> int:
        """The id of one token, as people write it; a TextError where there is none."""

    def special(self, id: int, /) -> bool:
        """Whether the token is a sign for the model (such as <s>) and no part of the text."""

    def sample(self) -> str:
        """The first tokens, for messages and listings."""


class Lazy(Sequence[str]):
    """The text of each id from 0 to size - 1, made on demand."""

    def __init__(self, size: int, text: Callable[[int], str]) -> None:
        self._size = size
        self._text = text

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            return tuple(self._text(id) for id in range(self._size)[place])
        return self._text(range(self._size)[place])


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
        ids: dict[str, int] = {}
        for id, token in enumerate(self.tokens):
            self._check(token)
            if ids.setdefault(token, id) != id:
                raise TextError(
                    _("the token {token} is in the vocabulary twice").format(token=repr(token)),
                    expected=_("each token once"),
                    found=token,
                )
        object.__setattr__(self, "_ids", ids)

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
            raise empty(text, _("at least one token of {tokens}").format(tokens=self.sample()))
        return tuple(self.id(piece, place) for place, piece in enumerate(pieces))

    def plain(self, text: str) -> tuple[int, ...]:
        """The ids of a text's tokens; none for an empty text."""
        return self.encode(text) if text.strip() or (text and self.kind == "characters") else ()

    def id(self, token: str, place: int | None = None) -> int:
        """The id of one token; `place` is where it stands in a text, for the message."""
        if token in self._ids:
            return self._ids[token]
        folded = [known for known in self.tokens if known.casefold() == token.casefold()]
        hint = None
        if folded:
            hint = _("did you mean {names}?").format(names=folded[0])
        elif len(self.tokens) <= MANY:
            hint = nearest(token[:40], self.tokens)
        raise _unknown(token, place, self.sample(), hint)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of some ids, which `encode` reads back to them."""
        return ("" if self.kind == "characters" else " ").join(self.tokens[id] for id in ids)

    def special(self, id: int) -> bool:
        """Whether a token stands for no text of its own: none does here."""
        return False

    def sample(self) -> str:
        """The first tokens, for messages and listings."""
        return sample(self.tokens)


@dataclass(frozen=True, slots=True)
class Ids:
    """Tokens without a text, for a checkpoint without a tokenizer: ids separated by blanks."""

    size: int

    @property
    def tokens(self) -> Sequence[str]:
        """The ids themselves, as texts."""
        return Lazy(self.size, str)

    def __len__(self) -> int:
        return self.size

    def encode(self, text: str) -> tuple[int, ...]:
        """The ids a text spells; anything else, or an empty text, is a TextError."""
        pieces = text.split()
        if not pieces:
            raise empty(text, self.sample())
        return tuple(self.id(piece, place) for place, piece in enumerate(pieces))

    def plain(self, text: str) -> tuple[int, ...]:
        """The ids a text spells; none for an empty text."""
        return self.encode(text) if text.strip() else ()

    def id(self, token: str, place: int | None = None) -> int:
        """The id a numeral spells; `place` is where it stands in a text, for the message."""
        if token.isascii() and token.isdecimal() and len(token) < 20 and int(token) < self.size:
            return int(token)
        hint = None
        if not token.isdecimal():
            hint = _("this model has no tokenizer: its text is ids, such as 0 1 2")
        raise _unknown(token, place, self.sample(), hint)

    def decode(self, ids: Iterable[int]) -> str:
        """The ids, separated by blanks, which `encode` reads back to them."""
        return " ".join(map(str, ids))

    def special(self, id: int) -> bool:
        """Whether a token stands for no text of its own: none does here."""
        return False

    def sample(self) -> str:
        """What ids there are, for messages and listings."""
        return _("ids from 0 to {last}").format(last=self.size - 1)


@dataclass(frozen=True, slots=True)
class Source:
    """The text that an encoder reads, and its ids."""

    text: str
    tokens: tuple[int, ...]


class Continuation:
    """The text that further ids add to a text, handed out as soon as it is certain.

    The text of an id depends on its neighbours.  A blank before a word may belong to the word's own
    token, and a character may be spread over several tokens.  So all ids are decoded, and the text
    handed out before is taken off.  The rest is held back while it ends within a character.
    """

    def __init__(self, tokenizer: Tokenizer, ids: Iterable[int]) -> None:
        self._tokenizer = tokenizer
        self._ids = list(ids)
        self._start = 0  # ids before it do not change the text to come
        self._settled = len(self._ids)  # the ids whose text was handed out
        self._shown = tokenizer.decode(self._ids)

    def add(self, id: int) -> str:
        """The text that is certain after one more id; empty within a character."""
        self._ids.append(id)
        return self._hand_out(at_the_end=False)

    def rest(self) -> str:
        """The text still held back: bytes that are no character, as the tokenizer shows them."""
        return self._hand_out(at_the_end=True)

    def _hand_out(self, at_the_end: bool) -> str:
        text = self._tokenizer.decode(self._ids[self._start :])
        if text.endswith(INCOMPLETE) and not at_the_end:
            return ""
        known = self._shown
        if not text.startswith(known):  # an incomplete character is complete now
            known = known.rstrip(INCOMPLETE)
        if text.startswith(known):
            new = text[len(known) :]
        else:  # a broken character made the tokenizer take back the sound one before it
            self._start = self._settled
            text = new = self._tokenizer.decode(self._ids[self._start :])
        self._settled, self._shown = len(self._ids), text
        if self._settled - self._start > WINDOW:
            self._forget()
        return new

    def _forget(self) -> None:
        """Moves the start on where the last ids give the same text, so that no id costs more."""
        start = self._settled - WINDOW // 4
        text = self._tokenizer.decode(self._ids[start:])
        if text and INCOMPLETE not in text and self._shown.endswith(text):
            self._start, self._shown = start, text


INCOMPLETE = "\N{REPLACEMENT CHARACTER}"  # a decoder's sign for bytes that are no character


def blank_of(tokenizer: Tokenizer) -> int | None:
    """The id of the token that stands for a word to be found; None where none is known."""
    if isinstance(tokenizer, Ids):
        return None
    for token in BLANKS:
        try:
            return tokenizer.id(token)
        except TextError:
            continue
    return None


def sample(tokens: Sequence[str]) -> str:
    """The first tokens, those with blanks quoted."""
    first = [t if t.strip() == t else repr(t) for t in tokens[:12]]
    return ", ".join(first) + (", …" if len(tokens) > 12 else "")


def empty(text: str, expected: str) -> TextError:
    """The error for a text without a single token."""
    return TextError(_("the text is empty"), expected=expected, found=repr(text))


def _unknown(token: str, place: int | None, expected: str, hint: str | None) -> TextError:
    shown = repr(token) if len(token) <= 40 else repr(token[:39] + "…")
    return TextError(
        _("{token} is not in the vocabulary").format(token=shown),
        expected=expected,
        found=shown
        if place is None
        else _("{token} at position {place}").format(token=shown, place=place),
        hint=hint,
    )


def too_long(length: int, context: int | None) -> TextError | None:
    """The error for a text of more tokens than the model's context; None where it fits."""
    if context is None or length <= context:
        return None
    return TextError(
        _("the text is too long for this model"),
        expected=_("at most {count} tokens").format(count=context),
        found=amount(length, later("1 token"), later("{count} tokens")),
    )
