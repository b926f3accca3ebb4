"""Claims in YAML and JSON (which is YAML): text → tree → sheet.

The tree is that of model files, with their care: no duplicate keys, aliases, anchors, tags or
merge keys, nothing too large or too deep, every error with its line.
"""

from __future__ import annotations

import re
from pathlib import Path

from byhand.checking.claims import Sheet
from byhand.checking.reading.written import sheet_of
from byhand.errors import InputError, ModelFileError
from byhand.files import tree
from byhand.language import _

_QUESTION = re.compile(rb"[\[,:]\s*\?\s*(?:[,\]]|$)", re.MULTILINE)


def read_text(path: Path) -> Sheet:
    """The claims of a YAML or JSON file."""
    try:
        return sheet_of(str(path), tree.load(path))
    except ModelFileError as error:
        ours = as_claims_error(error)
        if ours.hint is None and _lone_question_mark(path):
            ours.hint = _("a blank is written _; a lone ? has another meaning in YAML")
        raise ours from None


def _lone_question_mark(path: Path) -> bool:
    """Whether a blank may have been written in a way that YAML does not read."""
    try:
        with path.open("rb") as file:
            return _QUESTION.search(file.read(tree.LARGEST_FILE)) is not None
    except OSError:
        return False


def as_claims_error(error: ModelFileError) -> InputError:
    """The same error, said of a claims file."""
    message, hint = _in_our_words().get(error.message, error.message), error.hint
    if error.message == _("the file is too large"):
        hint = _("large arrays belong in a safetensors or npz file")
    expected = error.expected
    if error.message == _("a model file is a table"):
        expected = _("addresses with their values, such as {example}").format(
            example="loss: 1.8313"
        )
    where = (error.where or "").replace(":0: ", ": ", 1)  # a mapping in Python has no lines
    return InputError(message, where=where, expected=expected, found=error.found, hint=hint)


def _in_our_words() -> dict[str, str]:
    """What is said of a model file, and what is said of claims instead."""
    return {
        _("a model file is a table"): _("a claims file is a table"),
        _("a model file is one document"): _("a claims file is one document"),
        _("a model file has no aliases"): _("a claims file has no aliases"),
        _("a model file has no anchors"): _("a claims file has no anchors"),
        _("a model file has no tags"): _("a claims file has no tags"),
        _("a model file has no merge keys"): _("a claims file has no merge keys"),
        _("this is a folder, not a model file"): _("this is a folder, not a claims file"),
    }
