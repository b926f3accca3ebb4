"""`byhand trace MODEL --against ORIGINAL`: what a change of weights did, step by step."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from byhand.language import _
from byhand.options import Chosen, refuse_together

if TYPE_CHECKING:
    from byhand.evaluate import Job, Progress
    from byhand.model import Model
    from byhand.numbers.base import Numbers
    from byhand.tracing import Trace


def refuse_beside(at: tuple[str, ...], out: str | None, stop: bool, chosen: Chosen) -> None:
    """Raises a UsageError for an option that does not go with --against."""
    given = {
        "at": bool(at),
        "out": out is not None,
        "stop-at-boundary": stop,
        "float --digits": chosen.compares,
    }
    for name, said in given.items():
        refuse_together({name: said, "against": True}, "--", _("leave out --against"))


def show_against(
    model: Model,
    original: str,
    job_of: Callable[..., Job],
    chosen: Chosen,
    only: tuple[str, ...],
    style: str,
    as_json: bool,
    progress: Progress | None,
) -> int:
    """Works the text out with both models and prints how far they are apart; the exit status."""
    from byhand.contrasting import contrast, same_plan
    from byhand.document.compose.contrast import Contrasted
    from byhand.models import open_model

    before = open_model(original)
    same_plan(model.spec, before.spec)
    ours, theirs = _numbers((model, before), chosen)
    job = job_of(model, ours)
    trace = _worked(job, chosen.digits, progress)
    other = _worked(job_of(before, theirs, job.text), chosen.digits, progress)
    found = Contrasted(contrast(trace, other), trace, other, only, style)
    if as_json:
        from byhand.document.media.json.contrast import contrast_data
        from byhand.document.media.json.records import write_document

        write_document(contrast_data(found), sys.stdout)
    else:
        from byhand.cli.printing import print_parts

        print_parts(found.document())
    unproven = any(each.proof is not None and not each.proof.complete for each in found.traces)
    return 1 if unproven or any(each.changed is None for each in found.contrast.predicted) else 0


def _worked(job: Job, digits: int | None, progress: Progress | None) -> Trace:
    if digits is None:
        return job.work(progress=progress)
    from byhand.proving.digits import prove

    return prove(job, digits, progress=progress)


def _numbers(models: tuple[Model, Model], chosen: Chosen) -> tuple[Numbers, Numbers]:
    """The numbers of two models: the same floats, if they are floats; the finer ones."""
    from byhand.number_choice import numbers_for

    ours, theirs = (numbers_for(model, chosen) for model in models)
    if "rounded" in (ours.uniform, theirs.uniform) and ours.name != theirs.name:
        finer = replace(chosen, float="float64")
        ours, theirs = (numbers_for(model, finer) for model in models)
    return ours, ours if ours.uniform is None else theirs  # exact ones are subtracted: one space
