"""`byhand check`: somebody else's working, marked line by line."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from byhand.cli.choosing import beside_options
from byhand.cli.completing import files, models
from byhand.cli.printing import talk
from byhand.cli.speaking import MODEL, as_command, flag, json_option, later, option
from byhand.errors import UsageError
from byhand.language import _

if TYPE_CHECKING:
    from byhand.checking.verdicts import Marking
    from byhand.model import Model

PICKLED = (".npy", ".pt", ".pth", ".bin", ".pkl", ".pickle")  # not readable, but meant as claims


@as_command(
    later("mark somebody else's working: which line does not follow, and why"),
    later(
        "Judges every line of somebody's working from the lines above it. It says whether "
        "the line follows, whether rounding can explain a difference, where the first real "
        "error is, and what the mistake probably is."
    ),
    {
        **MODEL,
        "[CLAIMS…]": later(
            "files of claims (YAML, JSON, CSV, xlsx, npz, safetensors, the text of "
            "llama-eval-callback), or folders of golden files, npy files or worksheets. "
            "Without them: the document behind a built-in model"
        ),
        "[TEXT]": later("the text; without it, the one the claims name, or the model's own"),
    },
)
@click.argument("model", metavar="MODEL", shell_complete=models)
@click.argument("arguments", metavar="[CLAIMS…] [TEXT]", nargs=-1, shell_complete=files)
@option("--text", "TEXT", later("the text, where it could be taken for a file"))
@beside_options
@option("--target", "WORD", later("the word that should come next: the loss is judged by it"))
@option(
    "--precision",
    "F",
    later(
        "the numbers it was worked in: float64, float32, tf32, float16, bfloat16, "
        "transformers:bfloat16 (with its float32 parts), bfloat16+flash and other kernels, "
        "decimals:2. Without it: what the claims are in"
    ),
)
@option(
    "--optimizer",
    "RULE",
    later(
        "what updates are judged by, with its settings: 'adamw lr=0.001 weight_decay=0.1 step=1'"
    ),
)
@option(
    "--names",
    "FILE",
    later("a map of names (YAML or JSON): what the dump's own names mean, and their axes"),
)
@option(
    "--only",
    "PATTERN",
    later("only these lines count: block.0.attn, 'block.*.mlp.act'; may be repeated"),
    multiple=True,
)
@flag("--all every", later("do not fold the lines that follow"))
@flag("--no-suspects", later("do not look for the cause of what is wrong"))
@flag(
    "--allow-unjudged",
    later(
        "pass lines that cannot be judged too, if they are as near as rounding usually leaves them"
    ),
)
@option("--report", "FILE", later("write a page (HTML) with heat maps of where entries exceed"))
@option(
    "--gradebook",
    "FILE",
    later("mark the claims as worksheets: a table of students, and their marks as CSV"),
)
@option(
    "--feedback",
    "DIR",
    later("mark the claims as worksheets: a page for each student, and one for the class"),
)
@json_option
def command(
    model: str,
    arguments: tuple[str, ...],
    text: str | None,
    source: str | None,
    segments: tuple[int, ...] | None,
    target: str | None,
    precision: str | None,
    optimizer: str | None,
    names: str | None,
    only: tuple[str, ...],
    every: bool,
    no_suspects: bool,
    allow_unjudged: bool,
    report: str | None,
    gradebook: str | None,
    feedback: str | None,
    as_json: bool,
) -> int:
    """Marks the claims named on the command line; returns the exit status."""
    from byhand.api import check
    from byhand.checking.architectures import open_for
    from byhand.cli.progress import telling
    from byhand.cli.saving import can_be_written

    asked = read_arguments(model, arguments, text)
    page = None if report is None else can_be_written(report)
    grades = None if gradebook is None else can_be_written(gradebook)
    refuse_to_overwrite(asked.claims, page, grades)
    with telling() as progress:
        opened = open_for(model, asked.claims)
        marking = check(
            opened,
            *asked.claims,
            text=asked.text,
            source=source,
            segments=segments,
            target=target,
            precision=precision,
            optimizer=optimizer,
            names=names,
            suspects=not no_suspects,
            progress=progress,
        )
    tell_unmatched(marking)
    if only:
        marking = marking.only(only)
    if page is not None:  # first, since the reader of stdout may stop reading
        save_report(marking, page)
    if feedback is not None:
        save_feedback(marking, feedback, opened)
    show(marking, as_json=as_json, every=every, grades=grades, apart=feedback is not None)
    if marking.passes(allow_unjudged=allow_unjudged):
        return 0
    if marking.follows:
        tell_not_passed(marking, allow_unjudged=allow_unjudged)
    return 1


# ------------------------------------------------------------------ which argument is what


@dataclass(frozen=True, slots=True)
class Asked:
    """The files of claims, and the text where one was given."""

    claims: tuple[str | Path, ...]
    text: str | None


def read_arguments(model: str, arguments: tuple[str, ...], text: str | None) -> Asked:
    """The arguments sorted into files of claims and a text, which may be the last argument.

    The last argument is the text if --text is absent, no such file exists, and it has no ending of
    a claims file.  Without files, the document of a built-in model is checked.
    """
    claims: list[str | Path] = list(arguments)
    if arguments and text is None and not _is_file(arguments[-1]):
        text = arguments[-1]
        claims.pop()
    if not claims:
        from byhand.checking.documents import instead_of_claims

        claims.append(instead_of_claims(model, "CLAIMS"))
    return Asked(tuple(claims), text)


def _is_file(argument: str) -> bool:
    from byhand.checking.readers import READERS

    if Path(argument).suffix.lower() in (*READERS, *PICKLED):
        return True
    try:
        return bool(argument.strip()) and Path(argument).exists()
    except (OSError, ValueError):  # too long for a name, or a NUL in it
        return False


def refuse_to_overwrite(claims: tuple[str | Path, ...], *written: Path | None) -> None:
    """Raises a UsageError if an output file is one of the claims, or is written twice."""
    taken = {Path(claim).resolve(): str(claim) for claim in claims}
    for path in written:
        if path is None:
            continue
        if (other := taken.get(path.resolve())) is not None:
            raise UsageError(
                _("this file is named twice"),
                where=str(path),
                expected=_("a file for each: the claims, the report, the gradebook"),
                found=other,
            )
        taken[path.resolve()] = str(path)


# ------------------------------------------------------------------ what is shown and written


def tell_unmatched(marking: Marking) -> None:
    """Prints the unknown names on stderr."""
    from byhand.document.compose.marking import unmatched_lines

    for line in unmatched_lines(marking):
        talk(line)


def tell_not_passed(marking: Marking, *, allow_unjudged: bool) -> None:
    """Says on stderr why nothing is wrong and yet the check did not pass, with a hint."""
    unjudged = [line for line in marking.unjudged if not (allow_unjudged and line.near)]
    count, hint = len(unjudged), ""
    misfits = sum(each.misfit for each in marking.unmatched)
    if count and allow_unjudged:
        text = _("not passed: {count} lines are not known to be near to what is expected")
        if count == 1:
            text = _("not passed: {count} line is not known to be near to what is expected")
        hint = _("claim more of the steps before them")
    elif marking.empty:
        text = _("not passed: nothing is filled in")
    elif count:
        text = _("not passed: {count} lines cannot be judged")
        if count == 1:
            text = _("not passed: {count} line cannot be judged")
        hint = _("claim more of the steps before them, or accept it with --allow-unjudged")
    elif misfits:
        count = misfits
        text = _("not passed: {count} claims do not fit the model")
        if count == 1:
            text = _("not passed: {count} claim does not fit the model")
    else:
        text = _("not passed: there is nothing to judge")
    talk(text.format(count=count))
    if hint:
        talk(_("hint") + f": {hint}")


def show(
    marking: Marking, *, as_json: bool, every: bool, grades: Path | None, apart: bool = False
) -> None:
    """Prints the marking, and the class of several sheets; with a gradebook, that alone.

    Where feedback is written `apart`, the class alone is printed too.
    """
    brief = (grades is not None or apart) and not every
    several = len(marking.texts) > 1 and all(text.label for text in marking.texts)
    book = None
    if several or grades is not None or apart:
        from byhand.checking.gradebooks import gradebook, write_csv

        book = gradebook(marking.texts)
        if grades is not None:
            write_csv(book, grades)
    if as_json:
        from byhand.document.media.json.marking import gradebook_data, write_json

        further = {} if book is None else {"gradebook": gradebook_data(book)}
        write_json(marking, sys.stdout, **further)
    else:
        from byhand.cli.printing import print_parts
        from byhand.document.compose.grades import class_table
        from byhand.document.compose.marking import report

        if not brief:
            print_parts([report(marking, every)])
        if book is not None:
            if not brief:
                print("\n")
            print_parts([class_table(book)])
    if grades is not None:
        talk(_("the marks are in {file}").format(file=grades))


def save_feedback(marking: Marking, folder: str, model: Model) -> None:
    """Writes the pages of feedback, and says where they are."""
    from byhand.feedback import write_feedback

    first = write_feedback(marking, folder, model.outputs.tokens)[0]
    talk(_("the feedback is in {file}").format(file=first))


def save_report(marking: Marking, path: Path) -> None:
    """Writes the page of a marking, and says where it is."""
    from byhand.document.compose.marking import report
    from byhand.document.media.html.report import page
    from byhand.drafts import write_whole

    write_whole(path, page(report(marking, evidence=True)).encode())
    talk(_("the report is in {file}").format(file=path))
