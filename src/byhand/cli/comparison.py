"""`byhand trace --float FORMAT --digits N`: floats beside the true values."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from byhand.language import _
from byhand.options import Chosen, refuse_together

if TYPE_CHECKING:
    from byhand.document.compose.comparison import Compared
    from byhand.evaluate import Job, Progress


def refuse(**given: bool) -> None:
    """Raises a UsageError for an option that a comparison does not have."""
    for name, said in given.items():
        both = {name.replace("_", "-"): said, "float --digits": True}
        refuse_together(both, "--", _("leave out --float or --digits"))


def compared(
    job: Job,
    chosen: Chosen,
    shown: tuple[str, ...],
    style: str,
    progress: Progress | None,
) -> Compared:
    """The comparison of both runs; `job` is the proven run."""
    from byhand.comparing import compare
    from byhand.document.compose.comparison import Compared
    from byhand.number_choice import numbers_for
    from byhand.proving.digits import prove

    assert chosen.digits is not None
    floats_alone = Chosen(float=chosen.float, device=chosen.device)
    floats = replace(job, numbers=numbers_for(job.model, floats_alone)).work(progress=progress)
    proven = prove(job, chosen.digits, progress=progress)
    return Compared(compare(floats, proven), floats, proven, shown, style)


def show_comparison(
    found: Compared, only: tuple[str, ...], at: tuple[str, ...], as_json: bool
) -> None:
    """Prints the comparison: a line for each step, and all numbers of the steps asked for."""
    if as_json:
        from byhand.document.media.json.records import write_document
        from byhand.document.media.json.results import comparison_data

        write_document(comparison_data(found), sys.stdout)
        return
    from byhand.cli.printing import print_parts

    inside = [tuple(found.at(address)) for address in at]  # all of them, or an error
    if only or not at:
        print_parts(found.document())
    for parts in inside:
        print_parts(parts)
