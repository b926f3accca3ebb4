"""A model: what it is, its weights, and how text becomes its tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

from byhand.spec import ModelSpec
from byhand.tokens import Tokenizer
from byhand.weights import Weights


@dataclass(frozen=True)
class Model:
    """Everything a trace needs but the text."""

    spec: ModelSpec
    weights: Weights
    vocabulary: Tokenizer
    text: str | None = None  # the default text
    target: str | None = None  # the token the default text should continue with
    about: str = ""
    source: str = ""  # where it was read from, for messages
    family: str | None = None  # whose module names a checkpoint has: "gpt2", "llama", "gpt_neox"
    ends: tuple[int, ...] = ()  # ids of tokens that end a text
    notes: tuple[str, ...] = field(default=())  # what is known about it, shown with the trace

    @property
    def name(self) -> str:
        """The name of the model, as its spec has it."""
        return self.spec.name
