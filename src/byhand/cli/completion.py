"""`byhand completion`: what a shell runs to complete commands, options, models and files.

A shell asks by running byhand with ASKED in its environment; `answer` is what it gets.
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class, shell_complete

from byhand.cli.completing import some_of
from byhand.cli.speaking import as_command, later
from byhand.errors import UsageError, nearest
from byhand.language import _

ASKED = "_BYHAND_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def answer(program: click.Command, asked: str) -> int:
    """Prints the completions that a shell has asked for; returns the exit status."""
    return shell_complete(program, {}, "byhand", ASKED, asked)


@as_command(
    later("completion of commands, options and models in your shell"),
    later(
        "Prints a script that teaches your shell to complete byhand's commands, options, models "
        'and files. In bash: eval "$(byhand completion bash)", in ~/.bashrc to keep it; in zsh the '
        "same in ~/.zshrc; in fish: byhand completion fish | source."
    ),
    {"SHELL": later("bash, zsh or fish")},
)
@click.argument("shell", metavar="SHELL", shell_complete=some_of(*SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> int:
    """Prints the script for a shell; returns the exit status."""
    if shell not in SHELLS:
        raise UsageError(
            _("there is no completion for this shell"),
            expected=", ".join(SHELLS),
            found=shell,
            hint=nearest(shell, SHELLS),
        )
    kind = get_completion_class(shell)
    assert kind is not None
    maker = kind(ctx.find_root().command, {}, "byhand", ASKED)
    click.echo(maker.source_template % maker.source_vars())
    return 0
