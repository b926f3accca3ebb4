"""The command line: `byhand COMMAND …`.  Each command has a small file; here is what they share.

Data goes to stdout, talk to stderr.  Exit status: 0 fine, 1 the answer is no (a claim does not
follow, a proof asked for was not found), 2 the call or the input is wrong, 130 interrupted, 141 the
output's reader has gone.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from io import StringIO
from typing import Any

import click

from byhand.cli.book import command as book
from byhand.cli.check import command as check
from byhand.cli.completion import ASKED, answer
from byhand.cli.completion import command as completion
from byhand.cli.count import command as count
from byhand.cli.course import command as course
from byhand.cli.explain import command as explain
from byhand.cli.generate import command as generate
from byhand.cli.models import command as models
from byhand.cli.printing import drop, talk
from byhand.cli.prove import command as prove
from byhand.cli.score import command as score
from byhand.cli.selftest import command as selftest
from byhand.cli.serve import command as serve
from byhand.cli.speaking import Group, Option, complaint, flag, language_settings, later
from byhand.cli.step import command as step
from byhand.cli.trace import command as trace
from byhand.cli.train import command as train
from byhand.cli.verify import command as verify
from byhand.errors import ByhandError, InputError, OutputError
from byhand.exit_status import FINE, INTERRUPTED, UNREAD
from byhand.language import LANGUAGES, _, preferred, speak
from byhand.version import __version__


class Byhand(Group):
    """The group of all commands; it reports every error on stderr, without a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs one command line; in standalone mode it ends the process with the exit status."""
        status = self.run(sys.argv[1:] if args is None else args)
        if standalone_mode:
            sys.exit(status)
        return status

    def run(self, arguments: Sequence[str]) -> int:
        """Runs one command line and returns its exit status."""
        speak(_language(arguments))
        sys.stdout = sys.stdout or StringIO()  # the caller may have closed it
        sys.stderr = sys.stderr or StringIO()
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a narrow encoding shows ? for missing characters
                stream.reconfigure(errors="replace")
        if asked := os.environ.get(ASKED):
            return answer(self, asked)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _tell_warning
                with self.make_context("byhand", list(arguments)) as ctx:
                    status = self.invoke(ctx)
            sys.stdout.flush()
            return status if isinstance(status, int) else FINE
        except click.exceptions.Exit as ending:
            return ending.exit_code
        except click.ClickException as error:
            return _tell(complaint(error, arguments))
        except ByhandError as error:
            return _tell(error)
        except KeyboardInterrupt:
            talk("\n" + _("interrupted"))
            return INTERRUPTED
        except BrokenPipeError:
            drop(sys.stdout)
            return UNREAD
        except OSError as error:
            drop(sys.stdout)
            return _tell(_of_the_system(error))


@click.command(
    cls=Byhand,
    commands={
        "trace": trace,
        "generate": generate,
        "check": check,
        "prove": prove,
        "score": score,
        "verify": verify,
        "explain": explain,
        "book": book,
        "course": course,
        "serve": serve,
        "step": step,
        "train": train,
        "models": models,
        "count": count,
        "selftest": selftest,
        "completion": completion,
    },
    begin={
        "byhand trace tiny": later("a whole pass, small enough to check with a pencil"),
        "byhand serve": later("the same as a page: change a number, and see what follows"),
        "byhand course --out course": later("a course with exercises, from the first word on"),
    },
    invoke_without_command=True,
    help=later(
        "Works a transformer out by hand: every number from the text to the next token. "
        "Numbers are exact where they can be, named where they can't, and proven where you "
        "want decimals."
    ),
)
@flag("--version", later("print the version and exit"))
@click.option("--lang", cls=Option, **language_settings())
@click.pass_context
def main(ctx: click.Context, version: bool) -> None:
    """Prints the version, or the help where no command is given."""
    if version:
        click.echo(f"byhand {__version__}")
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _tell_warning(message: Warning | str, *_where: Any, **_more: Any) -> None:
    """Prints a warning on stderr: its message, without its place in the code."""
    talk(str(message))


def _tell(error: ByhandError) -> int:
    talk(_("error: {message}").format(message=error))
    return error.exit_status


def _of_the_system(error: OSError) -> InputError:
    """An error of the operating system as an InputError; a stream has no name."""
    if error.filename is None:
        return OutputError(_("the output cannot be written"), found=error.strerror)
    return InputError(
        _("the file cannot be read: {reason}").format(reason=error.strerror or error),
        where=str(error.filename),
    )


def _language(arguments: Sequence[str]) -> str:
    """The value of --lang, anywhere among the arguments: help and errors need it early."""
    for place, word in enumerate(arguments):
        name, _sign, value = word.partition("=")
        if name == "--lang":
            asked = value or "".join(arguments[place + 1 : place + 2])
            return asked if asked in LANGUAGES else preferred()
    return preferred()
