"""`byhand prove`: a property of every text of a domain, proven or refuted."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from byhand.cli.completing import files, models
from byhand.cli.printing import talk
from byhand.cli.speaking import MODEL, as_command, flag, json_option, later, option, whole_from
from byhand.errors import ByhandError, UsageError
from byhand.exit_status import FINE, INTERRUPTED, NO
from byhand.language import _
from byhand.options import does_not_fit, refuse_together

if TYPE_CHECKING:
    from byhand.proving.outcome import Outcome

MOST_JOBS, MOST_SECONDS, MOST_TOKENS, MOST_DECIMALS = 1_024, 10**9, 10**6, 1_000
TEXTS = ("texts", "up_to", "length")  # options that say which texts
CLAIMS = ("next", "continuation", "file", "lead", "at", "agree", "constant", "unmoved")
PROPERTY = {
    "[PROPERTY.yaml]": later(
        "a file that says which texts are meant and what must hold for them; the options below "
        "say the same in simple cases"
    )
}


def ranges(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str] | None:
    """The variables and their ranges, each written as NAME: RANGE."""
    found: dict[str, str] = {}
    for value in values:
        name, colon, range = value.partition(":")
        if not colon or not name.strip() or not range.strip():
            raise does_not_fit(param.opts[-1], "a: 0..9", value)
        found[name.strip()] = range.strip()
    return found or None


@as_command(
    later("a property of every text of a domain: a proof, or a counterexample"),
    later(
        "Proves that something holds for every text of a domain, with the true numbers of "
        "the model. For instance: the next token is a function of the text, two models "
        "agree, or weights known to four decimals are enough. The answer is proven, or a "
        "text for which it does not hold, or open, with what is left. Ctrl-C keeps what is "
        "decided."
    ),
    MODEL | PROPERTY,
)
@click.argument("model", metavar="MODEL", shell_complete=models)
@click.argument("property", metavar="[PROPERTY.yaml]", required=False, shell_complete=files)
@option(
    "--texts",
    "PATTERN",
    later("the texts: tokens, sets, repetitions, variables: '[0-9]{3} + [0-9]{3} ='"),
)
@option("--up-to", "N", later("all texts of up to N tokens"), callback=whole_from(1, MOST_TOKENS))
@option("--length", "N", later("all texts of N tokens"), callback=whole_from(1, MOST_TOKENS))
@option("--of", "TOKENS", later("such texts of these tokens alone"))
@option(
    "--where",
    "NAME:RANGE",
    later("the values of a variable: 'a: 0..9', or what it depends on; may be repeated"),
    multiple=True,
    callback=ranges,
)
@option(
    "--next",
    "EXPR|TOKENS",
    later("what comes next: an expression such as '(a + b) % 7', or one of these tokens"),
)
@option("--continuation", "EXPR", later("how the text goes on, token by token"))
@option("--file", "FILE.py", later("what comes next, as a function in Python"))
@option("--lead", "A-OVER-B", later("how far a logit leads: 'yes over no by 1/2'"))
@option("--at", "BOUND", later("a bound of a number: 'block.0.attn.weights[0,-1,0] >= 0.9'"))
@option("--agree", "OTHER", later("another model predicts the same"))
@flag("--constant", later("the prediction is the same for all texts"))
@flag("--unmoved", later("the prediction of each text is that of the model as it is"))
@option(
    "--printed",
    "N",
    later("for any weights that print like these with N decimals"),
    callback=whole_from(0, MOST_DECIMALS),
)
@option("--within", "R", later("for any weights at most R from these"))
@option(
    "--known-to", "FORMAT", later("for any weights that this float format cannot tell from these")
)
@option("--rounded-to", "FORMAT", later("for these weights rounded to a float format"))
@option("--moved", "EPS", later("for any embeddings whose entries are moved by at most EPS"))
@option("--certificate", "FILE", later("write the proof, for byhand verify to check"))
@option("--resume", "FILE", later("keep all that is decided in this file, and go on from it"))
@option(
    "--jobs",
    "N",
    later("work on N cores (all of them unless told, where it is worth it)"),
    callback=whole_from(1, MOST_JOBS),
)
@option(
    "--seconds",
    "N",
    later("stop after N seconds, and say what is left"),
    callback=whole_from(1, MOST_SECONDS),
)
@option(
    "--cluster",
    "ADDRESS",
    later("work on the machines of a Ray cluster: auto, local, or its address"),
)
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
    from byhand.proving.outcome import PROVEN

    written = {"--certificate": certificate, "--resume": resume, "--html": html, "--pdf": pdf}
    files = {name: can_be_written(said) for name, said in written.items() if said is not None}
    refuse_same_file({"MODEL": model, "PROPERTY.yaml": property}, files)
    said = given(simple, property)
    if pdf is not None:
        from byhand.document.media.typst.writing import compiler

        compiler()  # before the work starts
    with searching() as progress, journal(model, resume) as kept:
        outcome = prove(
            model,
            property,
            jobs=jobs,
            seconds=seconds,
            resume=kept.path,
            cluster=cluster,
            progress=progress,
            **said,
        )
        begun = outcome.cases > 0 or len(outcome.open) > len(outcome.trees)  # decided, or cut
        kept.needed = stopped(outcome) and begun
    if certificate is not None and outcome.answer == PROVEN:
        outcome.save(certificate)
    write_reports(outcome, files)  # first, since the reader of stdout may stop reading
    show(outcome, as_json)
    tell(outcome, files.get("--certificate"), kept)
    if outcome.why == _("interrupted"):
        return INTERRUPTED
    return FINE if outcome.answer == PROVEN else NO


def given(simple: Mapping[str, Any], property: str | None) -> dict[str, Any]:
    """The options that make a property; none of them beside a PROPERTY.yaml."""
    said = {name: it for name, it in simple.items() if it is not None and it is not False}
    for name in said:
        refuse_together({"PROPERTY.yaml": property is not None, _dashed(name): True})
    for names, missing in ((TEXTS, _("no texts are given")), (CLAIMS, _("nothing is claimed"))):
        if property is None and not said.keys() & set(names):
            expected = ", ".join(("PROPERTY.yaml", *map(_dashed, names)))
            raise UsageError(missing, expected=_("one of {names}").format(names=expected))
    return said


def _dashed(name: str) -> str:
    return "--" + name.replace("_", "-")


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


@dataclass
class Kept:
    """The file in which what is decided is kept, and whether it is needed after the search."""

    path: Path
    needed: bool


@contextmanager
def journal(model: str, resume: str | None) -> Iterator[Kept]:
    """The file of --resume; without it one among the temporary files, removed unless needed.

    So a search that is stopped loses nothing, whether or not anybody thought of it before.
    """
    if resume is not None:
        path, there = Path(resume), Path(resume).exists()
        try:
            yield Kept(path, True)
        except ByhandError:  # nothing was decided
            if not there:
                path.unlink(missing_ok=True)
            raise
        return
    name = re.sub(r"[^\w-]+", "-", Path(model).stem)[:40]
    number, file = tempfile.mkstemp(".journal", f"byhand-{name}-")
    os.close(number)
    kept = Kept(Path(file), False)
    try:
        yield kept
    except KeyboardInterrupt:  # a second one, while the first was being answered
        kept.needed = len(kept.path.read_bytes().splitlines()) > 1
        if kept.needed:
            tell_how_to_go_on(kept)
        raise
    finally:
        if not kept.needed:
            kept.path.unlink(missing_ok=True)


def stopped(outcome: Outcome) -> bool:
    """Whether a search could have gone on."""
    return outcome.why in (_("interrupted"), _("out of time"))


def tell(outcome: Outcome, certificate: Path | None, kept: Kept) -> None:
    """Says on stderr where the certificate is, or how to go on."""
    from byhand.proving.outcome import PROVEN

    if certificate is not None and outcome.answer == PROVEN:
        talk(_("the certificate is in {file}; check it with").format(file=certificate))
        words = ["byhand", "verify", outcome.called, str(certificate)]
        talk(f"  {shlex.join(words)}", to_copy=True)
    elif certificate is not None:
        talk(_("there is no certificate: nothing is proven"))
    if stopped(outcome) and kept.needed:
        tell_how_to_go_on(kept)


def tell_how_to_go_on(kept: Kept) -> None:
    """Says on stderr how to go on with what is decided."""
    talk(_("what is decided is kept; go on with"))
    again = typed(click.get_current_context(), without=("resume", "seconds"))
    talk(f"  {again} --resume {shlex.quote(str(kept.path))}", to_copy=True)


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
            pairs = said.items() if isinstance(said, dict) else ()
            each = [f"{name}: {range}" for name, range in pairs] or [str(said)]
            words += [f"{param.opts[0]} {shlex.quote(one)}" for one in each]
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

    print_parts(report(outcome, outcome.called))


def write_reports(outcome: Outcome, files: Mapping[str, Path]) -> None:
    """Writes the report as a page and as a PDF, where it is asked for, and says where they are."""
    from byhand.document.proof import proof_page, proof_pdf
    from byhand.drafts import write_whole

    drawn = {}
    if "--html" in files:
        drawn[files["--html"]] = proof_page(outcome, outcome.called).encode()
    if "--pdf" in files:
        drawn[files["--pdf"]] = proof_pdf(outcome, outcome.called)
    for path, content in drawn.items():
        write_whole(path, content)
        talk(_("the report is in {file}").format(file=path))
