"""Worksheets of models, as `byhand book --worksheet` makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import byhand
from byhand import worksheets
from byhand.document.compose.worksheet import Questioning, Worksheet
from byhand.drafts import write_all
from byhand.language import speaking
from byhand.model import Model


def make_worksheet(
    model: str | Path | Model, text: str | None = None, *, language: str = "en", **asked: Any
) -> Worksheet:
    """The worksheet of a model and a text."""
    asking = Questioning.asked(**asked)
    with speaking(language):
        trace = byhand.trace(model, text)
        called = trace.model.name if isinstance(model, Model) else str(model)
        return worksheets.make_worksheet(trace, asking, called)


def write_worksheet(
    model: str, folder: Path, *, language: str = "en", pdf: bool = False, **asked: Any
) -> tuple[Path, ...]:
    """Writes the files of a worksheet, and returns their paths."""
    sheet = make_worksheet(model, language=language, **asked)
    with speaking(language):
        return write_all(worksheets.worksheet_files(sheet, pdf=pdf), folder)
