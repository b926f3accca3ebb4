"""A model: its architecture, its weights and its tokenizer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from byhand import display
from byhand.dimensions import UNNAMED, Dimensions
from byhand.display import Shown, one_line
from byhand.errors import TextError
from byhand.language import _
from byhand.parameters import size_of
from byhand.spec import ModelSpec
from byhand.tokens import Tokenizer
from byhand.weights import Weights


@dataclass(frozen=True)
class Model(Shown):
    """Everything a trace needs but the text: an architecture, weights and a vocabulary.

    `byhand.open_model` opens one, `byhand.make_model` makes one of arrays, lists and texts.

    >>> import byhand
    >>> model = byhand.open_model("tiny")
    >>> model, model.weights["embed.token"].data.tolist()[2], model.spec.d_model
    (<Model tiny: 38 parameters, 3 tokens>, [Fraction(1, 1), Fraction(1, 1)], 2)
    """

    spec: ModelSpec
    weights: Weights
    vocabulary: Tokenizer
    text: str | None = None  # the default text
    target: str | None = None  # the token the default text should continue with
    about: str = ""
    source: str = ""  # where it was read from, for messages
    ends: tuple[int, ...] = ()  # ids of tokens that end a text
    notes: tuple[str, ...] = field(default=())  # what is known about it, shown with the trace
    output_words: Tokenizer | None = None  # what the head's words are; None: the vocabulary's
    dimensions: Dimensions = UNNAMED  # the names of dimensions, where its maker gave some
    source_text: str | None = None  # the default text of its encoder
    source_words: Tokenizer | None = None  # the tokens its encoder reads; None: the vocabulary's
    start: tuple[int, ...] = ()  # the ids that every text of a decoder begins with
    blank: int | None = None  # the id of the token that stands for a word to be found: [MASK]
    never: tuple[int, ...] = ()  # ids that a generation must not choose
    padding: int | None = None  # the id of padding, where it has no position and no text holds it

    @property
    def name(self) -> str:
        """What the model is called."""
        return self.spec.name

    @property
    def family(self) -> str | None:
        """The family of a checkpoint, by which its modules are called; None for a model file."""
        return self.spec.family or None

    @property
    def outputs(self) -> Tokenizer:
        """The words that the model answers with: those of the vocabulary, or its own."""
        return self.vocabulary if self.output_words is None else self.output_words

    @property
    def in_place(self) -> bool:
        """Whether it says which word stands at each place, rather than which comes next."""
        return self.spec.in_place

    @property
    def source_vocabulary(self) -> Tokenizer:
        """The tokens that the encoder reads: those of the vocabulary, or its own."""
        return self.vocabulary if self.source_words is None else self.source_words

    def read(self, text: str) -> tuple[int, ...]:
        """The ids of a text.  That of a decoder begins with its start ids, written or not."""
        if not self.start:
            return self.checked(self.vocabulary.encode(text))
        ids = self.vocabulary.plain(text)
        return ids if ids[: len(self.start)] == self.start else (*self.start, *ids)

    def checked(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The ids of a text; a TextError where padding stands among them and has no position."""
        if self.padding is not None and self.padding in ids:
            raise TextError(
                _("padding stands in the text, and this model counts no position for it"),
                expected=_("a text without {token}").format(
                    token=repr(self.vocabulary.tokens[self.padding])
                ),
                found=_("position {place}").format(place=ids.index(self.padding)),
            )
        return ids

    def fed_back(self, output: int) -> int | None:
        """The id in the vocabulary of a word that was answered; None where it is not there."""
        if self.output_words is None:
            return output
        try:
            return self.vocabulary.id(self.output_words.tokens[output])
        except TextError:
            return None

    def save(self, path: str | Path) -> None:
        """Writes a model file, which reads back to the same model (docs/model-files.md)."""
        display.save(self, path)

    def __repr__(self) -> str:
        size, tokens = size_of(self.spec), len(self.vocabulary)
        return f"<Model {one_line(self.name)}: {size:,} parameters, {tokens:,} tokens>"
