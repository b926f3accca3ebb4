"""The corpora that models are trained on: the built-in ones, text files, and `open_corpus`."""

from __future__ import annotations

from pathlib import Path

from byhand.errors import UsageError, nearest
from byhand.language import _
from byhand.tokens import Vocabulary
from byhand.train.corpora import textfile, verbs
from byhand.train.corpora.corpus import Corpus, Document, Question

__all__ = ["Corpus", "Document", "Question", "builtin_corpora", "open_corpus"]

TIMES, HELD_OUT = 32, 8  # repetitions of the pattern for training and held out


def pattern() -> Corpus:
    """The pattern A B C, repeated: each token follows from the one before."""
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


_BUILT_IN = {"abc": pattern, "verbs": verbs.corpus}


def builtin_corpora() -> tuple[str, ...]:
    """The names of the built-in corpora."""
    return tuple(_BUILT_IN)


def open_corpus(name_or_path: str | Path, *, held_out: float = 0.1) -> Corpus:
    """The built-in corpus of this name, or the text file of this path by characters.

    `held_out` is the share of a text file, at its end, that is not learned from; the built-in
    corpora say themselves what is held out.  A file that has the name of a built-in corpus is
    opened as `./abc`, or as a Path.
    """
    if isinstance(name_or_path, str) and name_or_path in _BUILT_IN:
        return _BUILT_IN[name_or_path]()
    path = Path(name_or_path)
    try:
        there = path.exists()
    except (OSError, ValueError):  # too long a name, or a NUL in it
        there = False
    if there:
        return textfile.read(path, held_out)
    shown = str(name_or_path)
    raise UsageError(
        _("there is no corpus {name}").format(name=repr(shown[:80])),
        expected=_("a text file, or one of {names}").format(names=", ".join(_BUILT_IN)),
        found=shown[:80] or _("nothing"),
        hint=nearest(shown[:80], _BUILT_IN),
    )
