"""`byhand prove`: a property of every text of a domain, proven or refuted."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from byhand.cli.printing import talk
from byhand.cli.speaking import (
    MODEL,
    as_command,
    flag,
    json_option,
    later,
    option,
    whole_from,
)
from byhand.errors import UsageError
from byhand.exit_status import FINE, INTERRUPTED, NO
from byhand.language import _

if TYPE_CHECKING:
    from byhand.proving.outcome import Outcome

MOST_JOBS, MOST_SECONDS, MOST_TOKENS = 1_024, 10**8, 10**6
PROPERTY = {
    "[PROPERTY.yaml]": later(
        "a file that says which texts are meant and what must hold for them; the options below "
        "say the same in simple cases"
    )
}


@as_command(
    later("a property of every text of a domain: a proof, or a counterexample"),
    later(
        "Proves that something holds for every text of a domain, with the true numbers of the "
        "model: that the next token is a function of the text, that two models agree, that "
        "weights known to four decimals are enough. The answer is proven, or a text for which it "
        "does not hold, or open, with what is left. Ctrl-C keeps what is decided."
    ),
    MODEL | PROPERTY,
)
@click.argument("model", metavar="MODEL")
@click.argument("property", metavar="[PROPERTY.yaml]", required=False)
@option(
    "--texts",
    "PATTERN",
    later("the texts: tokens, groups and repetitions, '[0-9]{3} + [0-9]{3} ='; may be repeated"),
    multiple=True,
)
@option("--up-to", "N", later("all texts of up to N tokens"), callback=whole_from(1, MOST_TOKENS))
@option("--of", "TOKENS", later("with --up-to: texts of these tokens alone"))
@option("--next", "EXPR|TOKENS", later("the next token: one of these, or what this comes to"))
@option("--continuation", "EXPR", later("the text goes on like this, token by token"))
@option("--agree", "OTHER", later("this other model predicts the same"))
@flag("--constant", later("the prediction is the same for all texts"))
@flag("--unmoved", later("the prediction of each text is that of the model as it is"))
@option("--printed", "N", later("for all weights that are printed like this with N decimals"))
@option("--within", "R", later("for all weights that differ by at most R"))
@option("--rounded-to", "FORMAT", later("for all weights that round to the same floats"))
@option("--moved", "EPS", later("for all embeddings whose entries differ by at most EPS"))
@option("--certificate", "FILE", later("write the proof, for byhand verify to check"))
@option("--resume", "FILE", later("go on with what was decided before"))
@option(
    "--jobs",
    "N",
    later("work on N cores (all of them unless told)"),
    callback=whole_from(1, MOST_JOBS),
)
@option(
    "--seconds",
    "N",
    later("stop after N seconds, and say what is left"),
    callback=whole_from(1, MOST_SECONDS),
)
@option("--cluster", "ADDRESS", later("work on the machines of a Ray cluster: auto, or its address"))
@option("--html", "FILE", later("write the report as a page with pictures"))
@option("--pdf", "FILE", later("write the report as a PDF"))
@json_option
def command(
    model: str,
    property: str | None,
    certificate: str | None,
    resume: str | None,
    jobs: int | None,
    seconds: int | None,
    cluster: str | None,
    html: str | None,
    pdf: str | None,
    as_json: bool,
    **simple: Any,
) -> int:
    """Looks for a proof, shows what was found and writes it; returns the exit status."""
    from byhand.cli.progress import searching
    from byhand.cli.saving import can_be_written
    from byhand.proofs import prove
    from byhand.proving.outcome import INTERRUPTED as BY_CTRL_C
    from byhand.proving.outcome import PROVEN

    written = {"--certificate": certificate, "--html": html, "--pdf": pdf}
    files = {name: can_be_written(said) for name, said in written.items() if said is not None}
    refuse_same_file({"MODEL": model, "PROPERTY.yaml": property}, files)
    with searching() as progress:
        outcome = prove(
            model,
            property,
            jobs=jobs,
            seconds=seconds,
            resume=resume,
            cluster=cluster,
            progress=progress,
            **{name: said for name, said in simple.items() if said},
        )
    kept = keep(outcome, files.get("--certificate"), resume)
    write_reports(outcome, files)  # first, since the reader of stdout may stop reading
    show(outcome, as_json)
    if kept is not None:
        tell_kept(outcome, kept)
    if outcome.why == BY_CTRL_C:
        return INTERRUPTED
    return FINE if outcome.answer == PROVEN else NO


def refuse_same_file(read: Mapping[str, str | None], written: Mapping[str, Path]) -> None:
    """Raises a UsageError if a file would be written twice, or is one that is read."""
    taken = {Path(said).resolve(): name for name, said in read.items() if said}
    for name, path in written.items():
        if other := taken.get(path.resolve()):
            raise UsageError(
                _("this file is named twice"),
                where=str(path),
                expected=_("a file for each"),
                found=f"{other}, {name}",
            )
        taken[path.resolve()] = name


# ------------------------------------------------------------------ what is kept


def keep(outcome: Outcome, certificate: Path | None, resume: str | None) -> Path | None:
    """Writes the certificate, or what a search has decided that was stopped; returns the file.

    A search that was stopped loses nothing: without a file to write, there is one beside the user,
    named after the model.
    """
    from byhand.proving.outcome import INTERRUPTED, OUT_OF_TIME, REFUTED

    stopped = outcome.why in (INTERRUPTED, OUT_OF_TIME) and outcome.cases > 0
    path = certificate
    if path is None and stopped:
        path = Path(resume or f"{one_word(outcome.property.own.name)}.open.json")
    if path is None or outcome.answer == REFUTED:
        return None
    outcome.save(path)
    return path


def one_word(name: str) -> str:
    """A name as that of a file: letters, digits and hyphens."""
    return re.sub(r"[^\w-]+", "-", name)[:60].strip("-") or "proof"


def tell_kept(outcome: Outcome, path: Path) -> None:
    """Says on stderr where the certificate is, or how to go on."""
    from byhand.proving.outcome import PROVEN

    if outcome.answer == PROVEN:
        talk(_("the certificate is in {file}; check it with").format(file=path))
        talk(f"  byhand verify {shlex.quote(outcome.called)} {shlex.quote(str(path))}", to_copy=True)
        return
    talk(_("what is decided is in {file}; go on with").format(file=path))
    again = typed(click.get_current_context(), without=("resume",))
    talk(f"  {again} --resume {shlex.quote(str(path))}", to_copy=True)


def typed(ctx: click.Context, without: Sequence[str] = ()) -> str:
    """The command line of a call, to be typed again."""
    words = [ctx.command_path]
    for param in ctx.command.params:
        said = ctx.params.get(param.name or "")
        if said in (None, False, ()) or param.name in without:
            continue
        if isinstance(param, click.Argument):
            words.append(shlex.quote(str(said)))
        elif said is True:
            words.append(param.opts[-1])
        else:
            each = said if isinstance(said, tuple) else (said,)
            words += [f"{param.opts[0]} {shlex.quote(str(one))}" for one in each]
    return " ".join(words)


# ------------------------------------------------------------------ what is shown


def show(outcome: Outcome, as_json: bool) -> None:
    """Prints the report, or its JSON document."""
    if as_json:
        from byhand.document.media.json.proof import write_json

        write_json(outcome, sys.stdout)
        return
    from byhand.cli.printing import print_parts
    from byhand.document.compose.proof import report

    print_parts(report(outcome))


def write_reports(outcome: Outcome, files: Mapping[str, Path]) -> None:
    """Writes the report as a page and as a PDF, where it is asked for, and says where they are."""
    from byhand.document import proof
    from byhand.drafts import write_whole

    for name, draw in (("--html", proof.page), ("--pdf", proof.pdf)):
        if name in files:
            write_whole(files[name], draw(outcome))
            talk(_("the report is in {file}").format(file=files[name]))
