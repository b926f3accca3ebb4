"""The State that a request is about, read from JSON, and the Library of models.

A State determines everything that the page shows: model, edits, text, numbers and language.  The
server keeps nothing about its users, and the same State always gives the same answer.  A State is
hashable, so answers can be cached.

Models come by name, from the library alone, or as the text of a model file; a client never sends a
path.  Errors read as on the command line, with the key as `where`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

from byhand.errors import InputError, UsageError, nearest
from byhand.files import parse_model
from byhand.language import LANGUAGES, _
from byhand.model import Model
from byhand.models import builtin_names, open_model
from byhand.numbers.base import Numbers
from byhand.options import FORMATS, Chosen
from byhand.serving import fields
from byhand.serving.lessons import Lesson, Pairs, read_lessons

MOST_DIGITS, MOST_DECIMALS = 50, 12
MOST_EDITS = 4_096  # edited weights of one State
LONGEST_ENTRY = 400  # characters of one edited weight
LONGEST_FILE = 4 * 2**20  # characters of a posted model file
LEARNED_IN = "float64"  # the numbers of lessons
POSTED = "model.yaml"  # name of a posted file in messages

_LIBRARIES = count()


class Library:
    """The models available by name: the built-ins, and files named at the start."""

    def __init__(self, files: Mapping[str, str | Path] | None = None) -> None:
        self.files = {name: Path(path) for name, path in (files or {}).items()}
        self.number = next(_LIBRARIES)  # key of cached results
        self._opened: dict[str, Model] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names, files first: a user who names a file wants to see it."""
        return (*self.files, *(name for name in builtin_names() if name not in self.files))

    def open(self, name: str) -> Model:
        """The model of a name; an error with the nearest names if there is none."""
        if name not in self.names:
            raise UsageError(
                _("there is no model {name}").format(name=repr(name[:80])),
                expected=", ".join(self.names),
                found=name[:80] or _("nothing"),
                hint=nearest(name[:80], self.names),
            )
        if name not in self._opened:
            self._opened[name] = open_model(self.files.get(name, name))
        return self._opened[name]


@dataclass(frozen=True)
class State:
    """Everything that a request is about.  The model is given by `name` or `file`, not both."""

    name: str | None = None
    file: str | None = None
    architecture: Pairs = ()  # key → text
    lessons: tuple[Lesson, ...] = ()  # what the model of this architecture has learned
    weights: Pairs = ()  # address of one entry → text, in the order of the edits, after all lessons
    text: str | None = None  # None: the model's own
    target: str | None = None
    own_target: bool = True  # without a target: the model's own, if the text is its own
    numbers: str = ""  # "exact", "digits 12", "float32", "decimals 2"; empty: the usual ones
    language: str = "en"

    @property
    def digits(self) -> int | None:
        """The number of significant digits to prove; None if none."""
        return Chosen.of(self.numbers or None).digits

    @property
    def edited(self) -> bool:
        """Whether weights or the architecture were changed, by hand or by lessons."""
        return bool(self.weights or self.architecture or self.lessons)

    def numbers_for(self, model: Model) -> Numbers:
        """The number system asked for; else the model's usual one, or float64 after a lesson."""
        from byhand.number_choice import numbers_for

        usual = LEARNED_IN if self.lessons else None
        return numbers_for(model, Chosen.of(self.numbers or usual))


def read_state(data: Any, where: str = "state") -> State:
    """The State of JSON data; an InputError names a wrong key."""
    table = fields.table(data, where)
    known = (
        "model",
        "weights",
        "architecture",
        "lessons",
        "text",
        "target",
        "numbers",
        "language",
    )
    fields.refuse_others(table, known, where)
    name, file = _model(table.get("model"), f"{where}.model")
    weights = _edits(table.get("weights"), f"{where}.weights")
    return State(
        name=name,
        file=file,
        weights=weights,
        architecture=_pairs(table.get("architecture"), f"{where}.architecture"),
        lessons=read_lessons(table.get("lessons"), f"{where}.lessons", _edits),
        text=_words(table.get("text"), f"{where}.text"),
        target=_words(table.get("target"), f"{where}.target"),
        own_target="target" not in table,
        numbers=_numbers(table.get("numbers"), f"{where}.numbers"),
        language=fields.word(table.get("language") or "en", f"{where}.language", LANGUAGES),
    )


@lru_cache(maxsize=8)
def _parsed(text: str) -> Model:
    try:
        return parse_model(text, POSTED)
    except InputError as error:
        if (error.where or "").endswith(": weights.file"):
            error.message = _("a model file that is posted can read no other file")
            error.expected = _("weights that are written in the file itself")
            error.hint = _("byhand serve FILE opens it with the files beside it")
        raise


def base_model(state: State, library: Library) -> Model:
    """The model of a State before its edits."""
    if state.file is not None:
        return _parsed(state.file)
    assert state.name is not None
    return library.open(state.name)


# ------------------------------------------------------------------ the keys


def _model(data: Any, where: str) -> tuple[str | None, str | None]:
    expected = '{"name": "tiny"}, {"file": "…"}'
    if data is None:
        raise fields.missing("model", where.rpartition(".")[0], expected)
    table = fields.table(data, where)
    fields.refuse_others(table, ("name", "file"), where)
    given = [key for key in ("name", "file") if table.get(key) is not None]
    if len(given) != 1:
        raise InputError(
            _("a model is said by its name or by its file"),
            where=where,
            expected=expected,
            found=", ".join(given) or _("nothing"),
        )
    said = fields.text(table[given[0]], f"{where}.{given[0]}", LONGEST_FILE)
    return (said, None) if given[0] == "name" else (None, said)


def _numbers(data: Any, where: str) -> str:
    if data is None or data == "":
        return ""
    said = " ".join(fields.text(data, where).split())
    try:
        chosen = Chosen.of(said)
        fits = (chosen.digits or 0) <= MOST_DIGITS and (chosen.decimals or 0) <= MOST_DECIMALS
    except UsageError:
        fits = False
    if fits:
        return said
    ways = ("exact", f"digits 1 … {MOST_DIGITS}", f"decimals 0 … {MOST_DECIMALS}", *FORMATS)
    raise InputError(
        _("there are no numbers of this kind"),
        where=where,
        expected=", ".join(ways),
        found=said[:60],
        hint=nearest(said.partition(" ")[0][:60], ("exact", "digits", "decimals", *FORMATS)),
    )


def _edits(data: Any, where: str) -> Pairs:
    """Edited weights; too many of them are refused."""
    found = _pairs(data, where)
    if len(found) > MOST_EDITS:
        raise InputError(
            _("too many edited weights"),
            where=where,
            expected=_("at most {count} numbers").format(count=f"{MOST_EDITS:,}"),
            found=f"{len(found):,}",
            hint=_("keep it as a model file, and go on from that"),
        )
    return found


def _pairs(data: Any, where: str) -> Pairs:
    """A table of short texts; numbers and truth values are taken as text."""
    if data is None:
        return ()
    return tuple(
        (key, fields.text(_scalar(value), f"{where}.{key[:80]}", LONGEST_ENTRY))
        for key, value in fields.table(data, where).items()
    )


def _scalar(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _words(data: Any, where: str) -> str | None:
    return None if data is None else fields.text(data, where)
