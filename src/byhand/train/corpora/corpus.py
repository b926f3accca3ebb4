"""A corpus: tokens, documents to learn from, and documents held out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256

from byhand.tokens import Vocabulary

Document = tuple[int, ...]


@dataclass(frozen=True)
class Question:
    """A prompt that has one right continuation; `what` says in words what is asked."""

    prompt: Document
    answer: Document
    what: str


@dataclass(frozen=True)
class Corpus:
    """Texts as token ids; nothing of `validation` may be learned from.

    With `stream`, a document is a text without a beginning or an end that may be cut anywhere.
    Without, each document stands by itself: what comes after its last token is not said, so it
    must not be learned that anything does.
    """

    name: str
    about: str
    vocabulary: Vocabulary
    train: tuple[Document, ...]
    validation: tuple[Document, ...]
    stream: bool
    text: str  # the canonical example
    questions: tuple[Question, ...] = ()  # what can be asked about the held-out documents
    groups: tuple[int, ...] | None = None  # of each of `train`: the same number, the same matter

    @property
    def digest(self) -> str:
        """The same for the same vocabulary and documents, whatever name and description say.

        SHA-256, in hexadecimal, of the compact UTF-8 JSON of
        [kind of tokens, tokens, train, validation].
        """
        content = [self.vocabulary.kind, self.vocabulary.tokens, self.train, self.validation]
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return sha256(text.encode("utf-8")).hexdigest()
