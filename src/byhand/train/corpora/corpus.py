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
    """Texts as token ids; `validation` is never learned from.

    With `stream`, a document is a text without a beginning or an end that may be cut anywhere.
    Without it, each document stands by itself, and nothing may be learned about what follows its
    last token.
    """

    name: str
    about: str
    vocabulary: Vocabulary
    train: tuple[Document, ...]
    validation: tuple[Document, ...]
    stream: bool
    text: str  # the canonical example
    questions: tuple[Question, ...] = ()  # what can be asked about the held-out documents
    groups: tuple[int, ...] | None = None  # of each of `train`: related documents share a number

    @property
    def digest(self) -> str:
        """A digest of the vocabulary and the documents, but not of the name and the description.

        SHA-256, in hexadecimal, of the compact UTF-8 JSON of
        [kind of tokens, tokens, train, validation].
        """
        content = [self.vocabulary.kind, self.vocabulary.tokens, self.train, self.validation]
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return sha256(text.encode("utf-8")).hexdigest()
