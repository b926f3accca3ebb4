"""The repeating pattern A B C: the smallest text there is something to learn from."""

from __future__ import annotations

from byhand.tokens import Vocabulary
from byhand.train.corpora.corpus import Corpus

TIMES = 32  # as often the pattern is repeated to learn from
HELD_OUT = 8  # and to be held out; it is the same pattern, so nothing new is asked there


def corpus() -> Corpus:
    """B follows A, C follows B, A follows C: three facts, which one token back decides."""
    vocabulary = Vocabulary(("A", "B", "C"), "characters")
    return Corpus(
        name="abc",
        about="the pattern ABC, repeated",
        vocabulary=vocabulary,
        train=(vocabulary.encode("ABC" * TIMES),),
        validation=(vocabulary.encode("ABC" * HELD_OUT),),
        stream=True,
        text="ABC",
    )
