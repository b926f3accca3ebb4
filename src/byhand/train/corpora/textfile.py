"""A UTF-8 text file as a corpus of characters.

The tokens are all characters of the file in the order of their code points.  So the ids do not
depend on the order of the text.  Nothing is normalised: upper and lower case, combining accents and
all kinds of line ends are kept.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from byhand.errors import TextError, UsageError
from byhand.language import _
from byhand.tokens import Vocabulary
from byhand.train.corpora.corpus import Corpus

LARGEST = 2**24  # bytes of a file; toys learn from less
LEAST = 2  # characters on either side: with fewer there is nothing to predict
SHOWN = 8  # characters of the canonical example


def read(path: Path, held_out: float) -> Corpus:
    """The corpus of a file: its first part to learn from, its last `held_out` share held out.

    The vocabulary is that of the whole file: a character that only the last part has is never
    learned.
    """
    if not 0 < held_out < 1:
        raise UsageError(
            _("the held-out share cannot be {found}").format(found=held_out),
            expected=_("a number between 0 and 1, such as 0.1"),
            found=str(held_out),
        )
    text = _text(path)
    count = int(len(text) * Fraction(str(held_out)))  # the decimal as it is written
    if min(count, len(text) - count) < LEAST:
        raise TextError(
            _("the file is too short"),
            where=str(path),
            expected=_("at least {count} characters to learn from and {count} held out").format(
                count=LEAST
            ),
            found=_("{train} to learn from and {validation} held out").format(
                train=len(text) - count, validation=count
            ),
        )
    vocabulary = Vocabulary(tuple(sorted(set(text))), "characters")
    ids = vocabulary.encode(text)
    return Corpus(
        name=path.name,
        about=_("the characters of {file}").format(file=path.name),
        vocabulary=vocabulary,
        train=(ids[:-count],),
        validation=(ids[-count:],),
        stream=True,
        text=text[: min(SHOWN, len(text) - count)],
    )


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except IsADirectoryError:
        raise TextError(_("this is a folder, not a text file"), where=str(path)) from None
    except OSError as error:
        raise TextError(
            _("the file cannot be read: {reason}").format(reason=error.strerror), where=str(path)
        ) from None
    if len(raw) > LARGEST:
        raise TextError(
            _("the file is too large"),
            where=str(path),
            expected=_("at most {count} bytes").format(count=LARGEST),
        )
    if not raw:
        raise TextError(_("the file is empty"), where=str(path), expected=_("a text to learn from"))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise TextError(
            _("the file is not UTF-8 text"),
            where=f"{path}:{line}",
            found=f"0x{error.object[error.start]:02x}",
        ) from None
