"""`byhand verify`: the certificate of a proof, checked by a program that shares nothing with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from byhand.cli.completing import files, models
from byhand.cli.speaking import MODEL, as_command, json_option, later, option, whole_from
from byhand.exit_status import FINE, NO
from byhand.language import _

MOST_JOBS = 1_024


@as_command(
    later("the certificate of a proof, checked independently"),
    later(
        "Reads a certificate that byhand prove has written and decides every case again, "
        "with a forward pass and an arithmetic of its own. It checks that the cases cover "
        "every text, that each of them holds, and that the model is the one that was "
        "proven."
    ),
    MODEL | {"CERTIFICATE": later("the file that byhand prove --certificate has written")},
)
@click.argument("model", metavar="MODEL", shell_complete=models)
@click.argument("certificate", metavar="CERTIFICATE", shell_complete=files)
@option("--property", "FILE", later("a property file; the certificate must prove this property"))
@option(
    "--jobs",
    "N",
    later("work on N cores (all of them unless told, where it is worth it)"),
    callback=whole_from(1, MOST_JOBS),
)
@json_option
def command(
    model: str, certificate: str, property: str | None, jobs: int | None, as_json: bool
) -> int:
    """Checks a certificate and shows the result; returns the exit status."""
    from byhand.cli.printing import print_data, print_parts
    from byhand.document.compose.verification import report
    from byhand.document.media.json.proof import verification_data
    from byhand.models import open_model
    from byhand.proofs import verify
    from byhand.proving.certificates import read_certificate

    with checking() as progress:
        opened = open_model(model)
        read = read_certificate(Path(certificate))
        found = verify(opened, read, property, jobs=jobs, progress=progress)
    if as_json:
        print_data(verification_data(found, opened.name))
    else:
        print_parts(report(found, read["property"], opened.name))
    return FINE if found.accepted else NO


@contextmanager
def checking() -> Iterator[Callable[[int, int], None] | None]:
    """A callback for the tasks that are done, and how many there are; None without a terminal."""
    from byhand.cli.progress import Status, can_move, shown_later

    if not can_move():
        yield None
        return
    status = Status(_("getting ready"))
    with shown_later(status):
        yield lambda done, of: status.doing(_("checking the cases"), done, of)
