"""Commands that speak the user's language: their help and their complaints, translated late.

Help texts are marked with `later` where they are written, and translated when they are shown, so
that `--lang` and the locale are known by then.  What a command does is not here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from byhand.errors import UsageError, nearest
from byhand.language import LANGUAGES, _


def later(message: str) -> str:
    """Marks a message that is translated when it is shown."""
    return message


class Option(click.Option):
    """An option whose help is translated when it is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return None if record is None else (record[0], _(self.help or ""))


class Command(click.Command):
    """A command; `arguments` explains its arguments, each with a line."""

    def __init__(self, *args: Any, arguments: dict[str, str] | None = None, **rest: Any) -> None:
        rest.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*args, **rest)
        self.arguments = arguments or {}

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _help_option(super().get_help_option(ctx))

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_usage(ctx, formatter, " ".join([*self.arguments, _("[options]")]))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_paragraphs(formatter, self.help)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.arguments:
            with formatter.section(_("Arguments")):
                formatter.write_dl([(name, _(text)) for name, text in self.arguments.items()])
        _write_options(self, ctx, formatter)

    def get_short_help_str(self, limit: int = 45) -> str:
        return _(self.short_help or "")


class Group(click.Group):
    """The commands by name, in the order of their listing; each lives in the file of its name."""

    def __init__(self, *args: Any, modules: dict[str, str], **rest: Any) -> None:
        rest.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*args, **rest)
        self.modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.modules:
            return None
        command: click.Command = import_module(self.modules[cmd_name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.modules and not args[0].startswith("-"):
            raise UsageError(
                _("there is no command {name}").format(name=repr(args[0])),
                expected=", ".join(self.modules),
                hint=nearest(args[0], self.modules),
            )
        return super().resolve_command(ctx, args)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return _help_option(super().get_help_option(ctx))

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_usage(ctx, formatter, _("COMMAND [arguments] [options]"))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_paragraphs(formatter, self.help)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(_("Commands")):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str())
                    for name in self.list_commands(ctx)
                    if (command := self.get_command(ctx, name)) is not None
                ]
            )
        _write_options(self, ctx, formatter)


def _help_option(option: click.Option | None) -> click.Option | None:
    if option is not None:
        option.help = _("show this help and stop")
    return option


def _write_usage(ctx: click.Context, formatter: click.HelpFormatter, pieces: str) -> None:
    formatter.write_usage(ctx.command_path, pieces, prefix=_("Usage:") + " ")


def _write_paragraphs(formatter: click.HelpFormatter, text: str | None) -> None:
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(_(text or ""))


def _write_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    options = [one for one in command.get_params(ctx) if isinstance(one, click.Option)]
    records = [option.get_help_record(ctx) for option in options]
    with formatter.section(_("Options")):
        formatter.write_dl([record for record in records if record is not None])


# ------------------------------------------------------------------ options that all commands have


def language_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--lang, which `run` has already obeyed when the command starts."""
    return click.option(
        "--lang",
        cls=Option,
        type=click.Choice(LANGUAGES),
        metavar="LANG",
        expose_value=False,
        help=later("speak this language: en or es (else that of the locale)"),
    )(command)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--json: the result as data."""
    return click.option(
        "--json", "as_json", cls=Option, is_flag=True, help=later("print one JSON document")
    )(command)


# ------------------------------------------------------------------ click's complaints


def complaint(error: click.ClickException) -> UsageError:
    """What click has to say about a call, as one of byhand's own errors."""
    command = getattr(getattr(error, "ctx", None), "command_path", "byhand")
    see = _("see {command} --help").format(command=command)
    match error:
        case click.NoSuchOption():
            close = ", ".join(error.possibilities or ())
            return UsageError(
                _("there is no option {name}").format(name=error.option_name),
                hint=_("did you mean {names}?").format(names=close) if close else see,
            )
        case click.MissingParameter():
            name = error.param.make_metavar(error.ctx) if error.param and error.ctx else "?"
            return UsageError(_("{name} is missing").format(name=name), hint=see)
        case click.BadParameter():
            return _bad_value(error, see)
        case click.BadOptionUsage():
            return UsageError(
                _("{name} cannot be used like this").format(name=error.option_name),
                expected=_("one value after it, or none if it takes none"),
                hint=see,
            )
        case click.UsageError() if error.ctx is not None and error.ctx.args:
            found = " ".join(error.ctx.args)
            quoted = _("put a text of several words in quotation marks")
            return UsageError(_("too many arguments"), found=found, hint=quoted)
        case _:
            return UsageError(error.format_message(), hint=see)


def _bad_value(error: click.BadParameter, see: str) -> UsageError:
    parameter, kind = error.param, error.param.type if error.param else None
    name = parameter.opts[0] if parameter else "?"
    message = _("{name} has a value that does not fit").format(name=name)
    match kind:
        case click.IntRange(min=low):
            expected = _("a whole number of at least {low}").format(low=low)
        case click.Choice(choices=choices):
            expected = ", ".join(map(str, choices))
        case _:
            return UsageError(message, found=error.message, hint=see)
    return UsageError(message, expected=expected, hint=see)
