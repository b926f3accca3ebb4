"""The registry of functions that draw an object as HTML or save it, by class.

The two tables below name a function for a class, as "module:function".  The function is imported
when it is first called, so a trace imports no drawing code.  A class that is not in a table is
drawn or saved like its bases.

>>> import byhand
>>> byhand.trace("tiny", "a b")._repr_html_()[:19]
'<div class="byhand"'
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_DRAWN = {  # class → the function that draws one of its objects, as one piece of HTML
    "byhand.checking.verdicts:Marked": "byhand.document.cells:marked_cell",
    "byhand.checking.verdicts:Marking": "byhand.document.cells:marking_cell",
    "byhand.comparing:Comparison": "byhand.document.cells:comparison_cell",
    "byhand.contrasting:Contrast": "byhand.document.cells:contrast_cell",
    "byhand.counting:Inventory": "byhand.document.cells:inventory_cell",
    "byhand.explaining:Explanation": "byhand.document.explanation:notebook_cell",
    "byhand.generating.generation:Generation": "byhand.document.cells:generation_cell",
    "byhand.learning:Training": "byhand.document.cells:training_cell",
    "byhand.learning:TrainingStep": "byhand.document.cells:training_step_cell",
    "byhand.numbers.exact.value:Value": "byhand.document.cells:value_cell",
    "byhand.proving.outcome:Outcome": "byhand.document.proof:notebook_cell",
    "byhand.scoring.scored:Scored": "byhand.document.reports:notebook_cell",
    "byhand.scoring.survey:Survey": "byhand.document.reports:notebook_cell",
    "byhand.tracing:Trace": "byhand.editions:notebook_passage",
    "byhand.worked:Worked": "byhand.document.cells:step_cell",
    # the smaller ones: what each of their fields holds
    "byhand.capturing.captured:Capture": "byhand.document.cells:fields_cell",
    "byhand.generating.generation:Chosen": "byhand.document.cells:fields_cell",
    "byhand.numbers.enclosed.enclosure:Enclosure": "byhand.document.cells:fields_cell",
    "byhand.model:Model": "byhand.document.cells:model_cell",
    "byhand.spec:ModelSpec": "byhand.document.cells:fields_cell",
    "byhand.numbers.base:Prediction": "byhand.document.cells:fields_cell",
    "byhand.golden.reading:SavedStep": "byhand.document.cells:fields_cell",
    "byhand.golden.reading:SavedTrace": "byhand.document.cells:fields_cell",
    "byhand.scoring.corpora.run:ScoredCorpus": "byhand.document.cells:fields_cell",
    "byhand.scoring.scores:Scores": "byhand.document.cells:fields_cell",
    "byhand.comparing:StepComparison": "byhand.document.cells:fields_cell",
    "byhand.contrasting:StepContrast": "byhand.document.cells:fields_cell",
    "byhand.verifying:Verification": "byhand.document.cells:fields_cell",
}
_SAVED = {  # class → the function that writes one of its objects to a path
    "byhand.model:Model": "byhand.files.writing:save_model",
    "byhand.proving.outcome:Outcome": "byhand.proving.certificates:write_certificate",
    "byhand.scoring.scored:Scored": "byhand.document.reports:save",
    "byhand.scoring.survey:Survey": "byhand.document.reports:save",
    "byhand.tracing:Trace": "byhand.golden:save",
}


class Shown:
    """A base for objects that a notebook shows as the registered function draws them."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        draw = _found(_DRAWN, type(self))
        return None if draw is None else str(draw(self))


def one_line(text: str, width: int = 60) -> str:
    """A name as one line that is not long, for a repr: what cannot be printed is escaped.

    >>> one_line("first\\nsecond"), one_line("a" * 100, 5)
    ('first\\\\nsecond', 'aaaa…')
    """
    return quoted(text, width + 2)[1:-1]


def quoted(text: str, width: int = 60) -> str:
    """The same between quotation marks."""
    shown = repr(str(text))
    return shown if len(shown) <= width else shown[: width - 2] + "…" + shown[-1]


def save(what: Any, *arguments: Any, **options: Any) -> None:
    """Saves an object with the function registered for its class; a TypeError where none is."""
    write = _found(_SAVED, type(what))
    if write is None:
        raise TypeError(f"{type(what).__qualname__} cannot be saved")
    write(what, *arguments, **options)


def _found(registry: dict[str, str], kind: type) -> Callable[..., Any] | None:
    """The function registered for a class or the nearest of its bases; None where there is none."""
    for each in kind.__mro__:
        if dotted := registry.get(f"{each.__module__}:{each.__qualname__}"):
            module, _colon, function = dotted.partition(":")
            found: Callable[..., Any] = getattr(import_module(module), function)
            return found
    return None
