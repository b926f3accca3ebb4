"""The spelling of tokens: whether the text that an engine logged for a token is that of an id.

Engines write one token in several ways: with its blank or without, as the vocabulary has it (▁the,
Ġthe), as bytes, or as � where it is part of a character.
"""

from __future__ import annotations

from collections.abc import Iterable

from byhand.errors import ByhandError
from byhand.tokens import Tokenizer

LOST = "�"
RAW = str.maketrans({"▁": " ", "Ġ": " ", "Ċ": "\n", "ĉ": "\t"})
LEGACY = "bytes:"  # OpenAI's completions: bytes:\xe2\x80


class Spelling:
    """How a tokenizer's ids may be written."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._texts: dict[int, frozenset[str]] = {}

    def agrees(self, piece: str | bytes, id: int) -> bool:
        """Whether a piece may be the text of this token."""
        if isinstance(piece, bytes):
            try:
                return self.agrees(piece.decode("utf-8"), id)
            except UnicodeDecodeError:
                return self._part_of_a_character(id, piece)
        if not piece and (self.tokenizer.special(id) or self._part_of_a_character(id, None)):
            return True  # a sign, or a part of a character that the engine could not write
        if LOST in piece or piece.startswith(LEGACY):
            return self._part_of_a_character(id, None)
        return not self._texts_of(id).isdisjoint((piece, piece.translate(RAW)))

    def _texts_of(self, id: int) -> frozenset[str]:
        if id not in self._texts:
            shown = self.tokenizer.tokens[id]
            found = {shown, shown.translate(RAW), shown.translate(RAW).lstrip(" ")}
            try:
                alone, twice = self.tokenizer.decode([id]), self.tokenizer.decode([id, id])
                found |= {alone, twice[len(alone) :], twice[len(alone) :].strip(" ")}
            except ByhandError:
                pass  # the id by itself has no text
            self._texts[id] = frozenset(found)
        return self._texts[id]

    def _part_of_a_character(self, id: int, piece: bytes | None) -> bool:
        shown = self.tokenizer.tokens[id]
        if piece is not None and len(piece) == 1 and shown.startswith("<0x"):
            return shown == f"<0x{piece[0]:02X}>"
        return shown.startswith("<0x") or any(LOST in text for text in self._texts_of(id))

    def text(self, id: int) -> str:
        """The token for a message."""
        return repr(self.tokenizer.tokens[id]) if 0 <= id < len(self.tokenizer) else f"<{id}>"


def octets_of(pieces: Iterable[str | bytes]) -> bytes:
    """The bytes of pieces, one after the other."""
    return b"".join(
        piece if isinstance(piece, bytes) else piece.encode("utf-8", "replace") for piece in pieces
    )
