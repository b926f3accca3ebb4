"""Claims in YAML and JSON files: handwriting, a manifest of binaries, or Polygraphy's outputs."""

from __future__ import annotations

import re
from pathlib import Path

from byhand.checking.claims import Sheet
from byhand.checking.readers.binaries import ARRAYS, sheet_of_manifest
from byhand.checking.readers.handwriting import as_claims_error, sheet_of
from byhand.checking.readers.polygraphy import is_polygraphy, read_polygraphy
from byhand.errors import ModelFileError
from byhand.files import tree
from byhand.language import _

_QUESTION = re.compile(rb"[\[,:]\s*\?\s*(?:[,\]]|$)", re.MULTILINE)


def read_text(path: Path) -> Sheet:
    """The claims of a YAML or JSON file."""
    try:
        if path.suffix.lower() == ".json" and is_polygraphy(path):
            return read_polygraphy(path)
        table = tree.load(path)
        if ARRAYS in table.entries:
            return sheet_of_manifest(path, table)
        return sheet_of(str(path), table)
    except ModelFileError as error:
        ours = as_claims_error(error)
        if ours.hint is None and _lone_question_mark(path):
            ours.hint = _("a blank is written _; a lone ? has another meaning in YAML")
        raise ours from None


def _lone_question_mark(path: Path) -> bool:
    """Whether a lone ? may be the reason why YAML cannot read the file."""
    try:
        with path.open("rb") as file:
            return _QUESTION.search(file.read(tree.LARGEST_FILE)) is not None
    except OSError:
        return False
