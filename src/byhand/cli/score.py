"""`byhand score`: the true log-probability of every token, and each engine's errors beside it.

With --survey: how often the rounding of each format says another token.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from byhand.cli.corpus import MOST_JOBS, score_into_shards, scoring
from byhand.cli.printing import talk
from byhand.cli.speaking import MODEL, as_command, flag, json_option, later, option, whole_from
from byhand.errors import OutputError, UsageError
from byhand.exit_status import FINE, NO
from byhand.language import _
from byhand.options import (
    Chosen,
    does_not_fit,
    refuse_together,
    refuse_unless_whole,
    whole_or_text,
)

if TYPE_CHECKING:
    from byhand.scoring.scored import Scored
    from byhand.scoring.survey import Survey

DASHES = "--"


@as_command(
    later("the true log-probability of every token, and how far engines are from it"),
    later(
        "Works out ln p of every token of some texts, proven to as many decimals as asked for. "
        "Compares it with what engines logged: their errors, and whether these look like rounding. "
        "Says where rounding can change the likeliest token, and which dump to make next."
    ),
    MODEL
    | {
        "[TEXTS…]": later(
            "texts, or files of them (.txt, .jsonl, .json, .ids, .npy, .npz); without any, those "
            "of the logs, else the model's own"
        )
    },
)
@click.argument("model", metavar="MODEL")
@click.argument("texts", metavar="[TEXTS…]", nargs=-1)
@option(
    "--against",
    "LOG",
    later("what an engine logged, also as NAME=LOG; may be repeated"),
    multiple=True,
)
@option("--digits", "N", later("N decimals of each log-probability, proven (6 unless told)"))
@option(
    "--float",
    "FORMAT",
    later("with --digits: byhand's own run in this format beside them; alone: the run, unproven"),
)
@option("--device", "DEVICE", later("work with torch on this device: cpu, cuda, cuda:1"))
@option("--clip", "EPS", later("count ratios outside 1 ± EPS as clipped (0.2 unless told)"))
@flag("--survey", later("how often each format says another token than the true one, and why"))
@option(
    "--formats",
    "NAMES",
    later("with --survey: some of float32, float16, bfloat16, float8_e4m3, with commas"),
)
@option("--html", "FILE", later("write the report as a page with plots"))
@option(
    "--out",
    "DIR",
    later("write the page and all data into a folder; with --jobs or --on, shards of scores"),
)
@option(
    "--jobs",
    "N",
    later("score a corpus into the shards of --out on N cores; the same command goes on with it"),
    callback=whole_from(1, MOST_JOBS),
)
@option("--on", "ray[:ADDRESS]", later("the same on a Ray cluster, here or at an address"))
@json_option
def command(
    model: str,
    texts: tuple[str, ...],
    against: tuple[str, ...],
    digits: str | None,
    float: str | None,
    device: str | None,
    clip: str | None,
    survey: bool,
    formats: str | None,
    html: str | None,
    out: str | None,
    jobs: int | None,
    on: str | None,
    as_json: bool,
) -> int:
    """Scores the texts, shows the report and writes it; returns the exit status."""
    from byhand.cli.saving import can_be_written
    from byhand.scoring.scorer import MOST_DIGITS

    if jobs is not None or on is not None:
        named = "--on" if jobs is None else "--jobs"
        for name, given in {
            "--against": against,
            "--clip": clip,
            "--html": html,
            "--survey": survey,
        }.items():
            refuse_together({named: True, name: bool(given)})
        return score_into_shards(model, texts, out, (digits, float, device), (jobs, on), as_json)
    for name, said in {"against": bool(against), "clip": clip is not None}.items():
        refuse_together({"survey": survey, name: said}, DASHES)
    if formats is not None and not survey:
        raise UsageError(
            _("--formats belongs to a survey"), hint=_("add --survey, or name one with --float")
        )
    chosen = Chosen(digits=whole_or_text(digits), float=float, device=device, dashes=DASHES)
    refuse_unless_whole("digits", chosen.digits, 1, MOST_DIGITS, DASHES)
    eps = None if clip is None else _number(clip)
    page = None if html is None else can_be_written(html)
    folder = None if out is None else _folder(out)
    found: Scored | Survey
    with scoring() as progress:
        if survey:
            from byhand.surveys import survey as survey_texts

            found = survey_texts(
                model,
                texts or None,
                formats=formats,
                digits=chosen.digits,
                float=chosen.float,
                device=device,
                progress=progress,
            )
        else:
            from byhand.likelihoods import score

            found = score(
                model,
                texts or None,
                against=against,
                digits=chosen.digits,
                float=chosen.float,
                device=device,
                clip=eps,
                progress=progress,
            )
    _tell(found, page, folder, as_json)
    return FINE if found.answered else NO


def _number(said: str) -> float:
    try:
        number = float(said)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise does_not_fit("clip", _("a number between 0 and 1"), said, DASHES)
    return number


def _folder(said: str) -> Path:
    """The folder to write into; an OutputError before the work starts."""
    place = Path(said)
    if place.exists() and not place.is_dir():
        raise OutputError(
            _("cannot be written"), where=said, expected=_("a folder"), found=_("a file")
        )
    return place


def _tell(found: Scored | Survey, page: Path | None, folder: Path | None, as_json: bool) -> None:
    """Writes the page, and the folder, and says where they are; then shows the report."""
    from byhand.cli.printing import print_parts
    from byhand.document.reports import report_of
    from byhand.drafts import write_whole

    report = report_of(found)
    written = []
    if page is not None:
        write_whole(page, report.page().encode())
        written.append(page)
    if folder is not None:
        written.append(report.save(folder))
    for file in written:
        talk(_("the report is in {file}").format(file=file))
    if as_json:
        report.write_json(sys.stdout)
    else:
        print_parts(report.parts())
