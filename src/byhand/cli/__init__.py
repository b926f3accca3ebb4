"""The command line: `byhand COMMAND …`.  One small file a command; here is what they share.

Data goes to stdout, talk to stderr.  Exit status: 0 fine, 1 the answer is no (a proof asked for
was not found), 2 the call or the input is wrong, 130 interrupted, 141 nobody reads the output.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from byhand.cli.speaking import Group, Option, complaint, language_option, later
from byhand.errors import ByhandError
from byhand.language import LANGUAGES, _, preferred, speak

INTERRUPTED, UNREAD = 130, 141  # what a shell says of a program that SIGINT or SIGPIPE ended

COMMANDS = {
    "trace": "byhand.cli.trace",
    "models": "byhand.cli.models",
    "count": "byhand.cli.count",
}


@click.command(
    cls=Group,
    modules=COMMANDS,
    invoke_without_command=True,
    help=later(
        "Works a transformer out by hand: every number from the text to the next token, exact "
        "where it can be, named where it can't, proven where you want decimals."
    ),
)
@click.option("--version", cls=Option, is_flag=True, help=later("say the version and stop"))
@language_option
@click.pass_context
def group(ctx: click.Context, version: bool) -> None:
    if version:
        from byhand import __version__

        click.echo(f"byhand {__version__}")
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    """The console entry point."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit status; every error is told on stderr."""
    speak(_language(arguments))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a narrow encoding shows ? where it has no sign
            stream.reconfigure(errors="replace")
    try:
        with group.make_context("byhand", list(arguments)) as ctx:
            status = group.invoke(ctx)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.ClickException as error:
        return _tell(complaint(error))
    except ByhandError as error:
        return _tell(error)
    except KeyboardInterrupt:
        print("\n" + _("interrupted"), file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # What is still in the buffer must not be written at the end of the process either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD


def _tell(error: ByhandError) -> int:
    print(_("error: {message}").format(message=error), file=sys.stderr)
    return error.exit_status


def _language(arguments: Sequence[str]) -> str:
    """What --lang asks for, wherever it stands: help and complaints need it before the rest."""
    for place, word in enumerate(arguments):
        name, _sign, value = word.partition("=")
        if name == "--lang":
            asked = value or "".join(arguments[place + 1 : place + 2])
            return asked if asked in LANGUAGES else preferred()
    return preferred()
