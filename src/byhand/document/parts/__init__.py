"""The parts of a document: about fifty kinds of things that can be shown.

    numbers   a number with its forms, address and working; tables of numbers; formulas
    steps     the pass: title, stages, steps, next tokens, loss
    drawn     tensors as colours, the way along the stream, sums as bars, pictures
    words     remarks, findings, facts, grids, what is left out
    verdicts  lines of somebody's working with their verdicts; reports, gradebooks
    proofs    what holds for all texts: the answer, the domain, the cases

A composer makes parts, a medium draws them.  `document.book` has the structure of a book (passages,
pages, the figure).  Parts are data: expression trees, words in the reader's language, and arrays of
floats.  They hold no computation, no markup and no widths.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

# fmt: off
if TYPE_CHECKING:
    from byhand.document.parts.drawn import (
        AttentionPattern,
        Curve,
        CurveLine,
        Drawing,
        Floats,
        HeadPattern,
        HeatStrip,
        LensLine,
        LensTable,
        RegisterLine,
        RegisterMap,
        Scatter,
        ScatterSeries,
        Stop,
        StreamLine,
        TermLine,
        Terms,
    )
    from byhand.document.parts.exercises import AnswerField, AnswerSheets
    from byhand.document.parts.numbers import (
        MASKED,
        Cell,
        Definitions,
        Formula,
        Letter,
        Line,
        Matrix,
        Number,
        NumberRow,
        NumberTable,
        Piece,
        Sign,
        Word,
        WorkingLine,
    )
    from byhand.document.parts.proofs import (
        Answer,
        CaseBox,
        CaseSquare,
        CaseTable,
        CaseTree,
        Decision,
        DomainPicture,
        PlaceCell,
        TextShape,
    )
    from byhand.document.parts.steps import (
        Candidate,
        Candidates,
        Choice,
        Loss,
        NotWorked,
        Prediction,
        Predictions,
        Stage,
        StepPart,
        Title,
    )
    from byhand.document.parts.verdicts import ClassTable, VerdictReport, VerdictTable
    from byhand.document.parts.words import (
        Column,
        Facts,
        Finding,
        Grid,
        LeftOut,
        Remark,
        Section,
    )

    Part: TypeAlias = (
        NumberTable | WorkingLine | Definitions
        | Title | Stage | StepPart | NotWorked | Predictions | Candidates | Choice | Loss
        | HeatStrip | AttentionPattern | StreamLine | RegisterMap | Terms | LensTable | Drawing
        | Curve | Scatter
        | Remark | Finding | Facts | LeftOut | Grid
        | AnswerField | AnswerSheets
        | VerdictTable | VerdictReport | ClassTable
        | Answer | DomainPicture | CaseTable | CaseTree
    )

__all__ = [
    "MASKED", "Answer", "AnswerField", "AnswerSheets", "AttentionPattern", "Candidate",
    "Candidates", "CaseBox", "CaseSquare", "CaseTable", "CaseTree", "Cell", "Choice", "Column",
    "Curve", "CurveLine", "Decision",
    "Definitions", "DomainPicture", "Drawing", "Facts", "Finding", "Floats", "Formula", "Grid",
    "HeadPattern", "HeatStrip", "LeftOut", "LensLine", "LensTable", "Letter", "Line", "Loss",
    "Matrix", "NotWorked", "Number", "NumberRow", "NumberTable", "Part", "Piece", "PlaceCell",
    "Prediction", "Predictions", "RegisterLine", "RegisterMap", "Remark", "Scatter",
    "ScatterSeries", "Section", "Sign", "Stage", "StepPart", "Stop", "StreamLine", "TermLine",
    "Terms", "TextShape", "Title", "Word", "WorkingLine",
]
# fmt: on

_ROOMS = {  # each module is imported on first use of its parts
    "drawn": (
        "AttentionPattern Curve CurveLine Drawing Floats HeadPattern HeatStrip LensLine LensTable "
        "RegisterLine RegisterMap Scatter ScatterSeries Stop StreamLine TermLine Terms"
    ),
    "exercises": ("AnswerField AnswerSheets"),
    "numbers": (
        "MASKED Cell Definitions Formula Letter Line Matrix Number NumberRow NumberTable "
        "Piece Sign Word WorkingLine"
    ),
    "proofs": (
        "Answer CaseBox CaseSquare CaseTable CaseTree Decision DomainPicture PlaceCell TextShape"
    ),
    "steps": (
        "Candidate Candidates Choice Loss NotWorked Prediction Predictions Stage StepPart Title"
    ),
    "verdicts": ("ClassTable VerdictReport VerdictTable"),
    "words": ("Column Facts Finding Grid LeftOut Remark Section"),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "Part":  # only for type checkers
        return Any
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
