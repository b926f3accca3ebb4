"""Subword tokens: the tokenizer.json of a Hugging Face folder, read by the `tokenizers` library.

`open_tokenizer` reads the file, `Subwords` is the `tokens.Tokenizer` it makes.  The file decides
how a text becomes tokens, including special ones such as a leading <s>.  Settings for training
(truncation, padding, dropout) are switched off, and `notes` says so.  The library is an extra
(`byhand[hf]`) and imported only when a file is opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from byhand.errors import InputError, TextError
from byhand.language import _
from byhand.tokens import Lazy, empty, sample

if TYPE_CHECKING:
    import tokenizers

FILE = "tokenizer.json"
# Files that a folder may hold instead, of which a tokenizer.json can be made.
FORERUNNERS = ("vocab.json", "merges.txt", "tokenizer.model", "spiece.model", "vocab.txt",
               "tekken.json")  # fmt: skip
VISIBLE = {"\n": "↵", "\t": "⇥"}
SIGNS = (*VISIBLE.values(), "<0x", "<U+")  # in them, `piece` differs from the text
_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_NUMBERED = re.compile(r"<([0-9]{1,9})>")


def open_tokenizer(folder: Path, vocab: int) -> Subwords | None:
    """The tokenizer of a folder for a model of `vocab` embeddings; None where it has none.

    A file that is no tokenizer is an InputError that names it.  So is a folder with only the files
    to make one from; the error says how.
    """
    path = folder / FILE
    if not path.exists():
        makings = [name for name in FORERUNNERS if (folder / name).exists()]
        if not makings:
            return None
        raise InputError(
            _("this folder has no {file}").format(file=FILE),
            where=str(folder),
            expected=FILE,
            found=", ".join(makings),
            hint=_("write it with transformers: {code}").format(
                code=f"t = AutoTokenizer.from_pretrained({str(folder)!r}); "
                f"t.save_pretrained({str(folder)!r})"
            ),
        )
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _broken(path, error) from error
    return Subwords(_load(path, text), vocab, str(path))


def tokenizer_of(text: str, vocab: int, source: str) -> Subwords:
    """The tokenizer of the text of a tokenizer.json; `source` is what messages name."""
    return Subwords(_load(Path(source), text), vocab, source)


def _load(path: Path, text: str) -> tokenizers.Tokenizer:
    try:
        import tokenizers
    except ImportError as error:
        raise InputError(
            _("to read {file}, byhand needs the tokenizers library").format(file=FILE),
            where=str(path),
            hint="pip install 'byhand[hf]'",
        ) from error
    with _told_as(partial(_broken, path)):
        return tokenizers.Tokenizer.from_str(text)


@contextmanager
def _told_as(refusal: Callable[[str], InputError]) -> Iterator[None]:
    """Turns what the library raises into an error of byhand.

    The library raises plain Exception; where its Rust code panics, a BaseException.
    """
    try:
        yield
    except BaseException as error:
        if type(error) is Exception or type(error).__name__ == "PanicException":
            raise refusal(str(error)) from error
        raise


def _broken(path: Path, found: object) -> InputError:
    return InputError(
        _("this is not a tokenizer"),
        where=str(path),
        expected=_("a {file} as the tokenizers library writes it").format(file=FILE),
        found=str(found)[:200],
    )


class Subwords:
    """The tokens of a tokenizer.json: a `tokens.Tokenizer`."""

    def __init__(self, library: tokenizers.Tokenizer, vocab: int, source: str) -> None:
        """`vocab` is the number of the model's embeddings, `source` names the file in messages."""
        self._library = library
        self._vocab = vocab
        self._source = source
        self.notes = tuple(_switch_off(library))
        self._added = library.get_added_tokens_decoder()
        self._spelling = _spelling(library)

    def __len__(self) -> int:
        return self._vocab

    @cached_property
    def tokens(self) -> Sequence[str]:
        """Each token as people read it, by id: `piece`, made on demand."""
        return Lazy(self._vocab, self.piece)

    def encode(self, text: str) -> tuple[int, ...]:
        """The ids of a text, with the special tokens that the tokenizer itself adds."""
        ids = self._known(self._cut(text, specials=True))
        if not ids:
            raise empty(text, _("at least one token of {tokens}").format(tokens=self.sample()))
        return ids

    def plain(self, text: str) -> tuple[int, ...]:
        """The ids of a text without the special tokens that the tokenizer itself adds."""
        return self._known(self._cut(text, specials=False))

    def _known(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The ids, after a check that the model has an embedding for each."""
        for place, id in enumerate(ids):
            if id >= self._vocab:
                raise TextError(
                    _("the tokenizer has a token that the model does not know"),
                    expected=_("ids from 0 to {last}").format(last=self._vocab - 1),
                    found=_("{token} at position {place}, id {id}").format(
                        token=repr(self.piece(id)), place=place, id=id
                    ),
                )
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of some ids; special tokens and ids beyond the tokenizer add nothing."""
        with _told_as(self._failed):
            return self._library.decode(list(ids), skip_special_tokens=True)

    def special(self, id: int) -> bool:
        """Whether the token is a sign for the model and not part of the text; true of padding."""
        if id in self._added:
            return self._added[id].special
        return self._library.id_to_token(id) is None

    def piece(self, id: int) -> str:
        """The token's text for people: a blank is a blank, ↵ a new line, <0xE2> a byte.

        Special tokens stand as they are written; <50280> is an id that the tokenizer lacks.
        """
        token = self._library.id_to_token(id)
        if token is None:
            return f"<{id}>"
        if id in self._added:
            return token if self._added[id].special else _shown(token.encode())
        own = self._spelling.bytes_of(token)
        if not self._spelling.is_byte(token):
            return _shown(own)
        character = own.decode("latin-1")
        alone = self._library.token_to_id(character) is None  # not a token itself
        return VISIBLE.get(character, token) if alone else token

    def id(self, token: str) -> int:
        """The id of one token: as `piece` shows it, as plain text, or as the file writes it.

        A plain text must be one token, alone or after a blank; if it is several, a TextError shows
        them.
        """
        for id in self._candidates(token) if token else ():
            if id is not None and id < self._vocab:
                return id
        cut = [self.piece(id) for id in self._cut(token, specials=False)]
        raise TextError(
            _("{token} is not one token").format(token=repr(token[:40])),
            expected=_("one token, such as {token}").format(
                token=repr(cut[0]) if cut else self.sample()
            ),
            found=" · ".join(map(repr, cut[:12])) + (" …" if len(cut) > 12 else ""),
        )

    def _candidates(self, text: str) -> Iterator[int | None]:
        yield self._library.token_to_id(self._spelling.token_of(_readable(text)))
        for plain in (text, " " + text):
            ids = self._cut(plain, specials=False)
            if len(ids) == 1 and self._library.id_to_token(ids[0]) != self._unknown:
                yield ids[0]
        yield self._library.token_to_id(text)
        if match := _NUMBERED.fullmatch(text):
            number = int(match.group(1))
            yield number if self._library.id_to_token(number) is None else None
        if any(sign in text for sign in SIGNS):
            yield self._by_piece.get(text)

    @cached_property
    def _by_piece(self) -> dict[str, int]:
        """The lowest id of every piece; made only for pieces that are not shown as they are."""
        known: dict[str, int] = {}
        for id in range(min(self._vocab, self._library.get_vocab_size())):
            known.setdefault(self.piece(id), id)
        return known

    @cached_property
    def _unknown(self) -> str | None:
        """The token that stands for what the tokenizer does not know."""
        model = self._library.model
        if type(model).__name__ != "Unigram":
            return getattr(model, "unk_token", None)
        state = json.loads(model.__getstate__())
        return None if state["unk_id"] is None else str(state["vocab"][state["unk_id"]][0])

    def _cut(self, text: str, specials: bool) -> tuple[int, ...]:
        with _told_as(self._failed):
            return tuple(self._library.encode(_readable(text), add_special_tokens=specials).ids)

    def _failed(self, found: str) -> TextError:
        return TextError(
            _("the tokenizer fails on this text"), where=self._source, found=found[:200]
        )

    def sample(self) -> str:
        """The first tokens, for messages and listings."""
        return sample(self.tokens)


def _readable(text: str) -> str:
    """The text itself; a TextError where it holds half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TextError(
            _("the text is not Unicode"),
            expected=_("a text that can be written in UTF-8"),
            found=_("{token} at position {place}").format(
                token=repr(text[error.start]), place=error.start
            ),
        ) from error
    return text


# ------------------------------------------------------------------ what the file says


def _switch_off(library: tokenizers.Tokenizer) -> Iterator[str]:
    """Removes settings that would cut, lengthen or shuffle a text, and yields a note on each."""
    if library.truncation is not None:
        yield _("{file} cuts texts after {count} tokens: switched off").format(
            file=FILE, count=library.truncation["max_length"]
        )
        library.no_truncation()
    if library.padding is not None:
        yield _("{file} fills texts up with {token}: switched off").format(
            file=FILE, token=library.padding["pad_token"]
        )
        library.no_padding()
    if dropout := getattr(library.model, "dropout", None):
        yield _("{file} leaves merges out at random (dropout {rate}): switched off").format(
            file=FILE, rate=dropout
        )
        library.model.dropout = None  # BPE alone has it


def _spelling(library: tokenizers.Tokenizer) -> Spelling:
    """How the file's decoder turns one written token into the bytes it stands for."""
    decoder = json.loads(library.decoder.__getstate__()) if library.decoder else {}
    parts = decoder.get("decoders", [decoder])
    kinds = {part.get("type") for part in parts}
    if "ByteLevel" in kinds:
        return Spelling(byte_level=True)
    swaps = [(part["replacement"], " ") for part in parts if part.get("type") == "Metaspace"]
    swaps += [
        (part["pattern"]["String"], part["content"])
        for part in parts
        if part.get("type") == "Replace" and part["pattern"].get("String") and part["content"]
    ]
    return Spelling(swaps=tuple(swaps), byte_fallback="ByteFallback" in kinds)


@dataclass(frozen=True, slots=True)
class Spelling:
    """What a written token stands for: Ġthe and ▁the are " the", <0xE2> may be a byte."""

    byte_level: bool = False  # GPT-2's: one visible character a byte
    byte_fallback: bool = False  # <0xE2> is a byte
    swaps: tuple[tuple[str, str], ...] = ()  # (written, meant)

    def is_byte(self, token: str) -> bool:
        """Whether a token such as <0x0A> stands for one byte."""
        return self.byte_fallback and _BYTE.fullmatch(token) is not None

    def bytes_of(self, token: str) -> bytes:
        """The bytes of a token; where it is not spelled as expected, it is plain text."""
        if self.byte_level and all(character in _BYTE_OF for character in token):
            return bytes(_BYTE_OF[character] for character in token)
        if self.is_byte(token):
            return bytes.fromhex(token[3:5])
        for written, meant in self.swaps:
            token = token.replace(written, meant)
        return token.encode()

    def token_of(self, text: str) -> str:
        """How a token with this text would be written."""
        if self.byte_level:
            return "".join(_CHARACTER_OF[byte] for byte in text.encode())
        for written, meant in self.swaps:
            text = text.replace(meant, written)
        return text


def _visible_bytes() -> dict[str, int]:
    """Bytes that print in Latin-1 are themselves; the others, in order, are U+0100, U+0101, …"""
    prints = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in prints]
    return {chr(byte): byte for byte in prints} | {
        chr(0x100 + place): byte for place, byte in enumerate(others)
    }


_BYTE_OF = _visible_bytes()
_CHARACTER_OF = {byte: character for character, byte in _BYTE_OF.items()}


def _shown(text: bytes) -> str:
    """The bytes as text in which everything can be seen."""
    decoded = text.decode("utf-8", "surrogateescape")
    return "".join(map(_visible, decoded))


def _visible(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no text, escaped by `decode`
        return f"<0x{code - 0xDC00:02X}>"
    if character.isprintable():
        return character
    return VISIBLE.get(character, f"<U+{code:04X}>")
