"""`byhand verify`: the certificate of a proof, checked by a program that shares nothing with it."""

from __future__ import annotations

import click

from byhand.cli.speaking import MODEL, as_command, json_option, later, option, whole_from
from byhand.exit_status import FINE, NO

MOST_JOBS = 1_024


@as_command(
    later("the certificate of a proof, checked independently"),
    later(
        "Reads a certificate that byhand prove has written and decides every case of it again, "
        "with a forward pass and an arithmetic of its own: that the cases cover every text, that "
        "each of them holds, and that the model is the one that was proven."
    ),
    MODEL | {"CERTIFICATE": later("the file that byhand prove --certificate has written")},
)
@click.argument("model", metavar="MODEL")
@click.argument("certificate", metavar="CERTIFICATE")
@option(
    "--jobs",
    "N",
    later("work on N cores (all of them unless told)"),
    callback=whole_from(1, MOST_JOBS),
)
@json_option
def command(model: str, certificate: str, jobs: int | None, as_json: bool) -> int:
    """Checks a certificate and shows the result; returns the exit status."""
    from byhand.cli.progress import searching
    from byhand.proofs import verify

    with searching() as progress:
        found = verify(model, certificate, jobs=jobs, progress=progress)
    return FINE if found.accepted else NO
