"""Commands in the user's language: their help and their errors, translated when shown.

Help texts are marked with `later` and translated when they are shown, since `--lang` and the locale
are known only then.  The commands themselves are in their own files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from shlex import quote
from typing import Any

import click

from byhand.cli.completing import BY_METAVAR, models, some_of
from byhand.errors import UsageError, nearest
from byhand.language import LANGUAGES, _
from byhand.language import later as later
from byhand.options import does_not_fit, refuse_unless_whole, whole_or_text

HELP = ["-h", "--help"]
_WORD = re.compile(r"[A-Z]{2,}")
VALUES = {  # the words that stand for values
    later("ADDRESS"), later("BOUND"), later("CERTIFICATE"), later("CLAIMS"), later("DEVICE"),
    later("DIR"), later("FILE"), later("FORMAT"), later("KIND"), later("KINDS"), later("LANG"),
    later("LEVEL"), later("LOG"), later("MODEL"), later("NAME"), later("NAMES"), later("NORM"),
    later("ORIGINAL"), later("OTHER"), later("PATTERN"), later("PROPERTY"), later("RANGE"),
    later("RATE"), later("RULE"), later("SECTION"), later("SHARE"), later("SHELL"),
    later("STYLE"), later("TEXT"), later("TEXTS"), later("TOKENS"), later("WHICH"), later("WORD"),
}  # fmt: skip


def translated(marked: str | None) -> str:
    """The message, marked with `later`, in the current language."""
    return _(marked) if marked else ""


def value_word(name: str) -> str:
    """The word that stands for a value, in the current language; signs around it stay."""
    return _WORD.sub(lambda found: _(found[0]) if found[0] in VALUES else found[0], name)


class HelpPage(click.HelpFormatter):
    """A help page that is no wider than the terminal."""

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Writes a list of terms; their column takes at most a third of the width."""
        super().write_dl(rows, min(col_max, self.width // 3), col_spacing)


class Context(click.Context):
    """The context of a call, with the width of its help."""

    formatter_class = HelpPage

    def make_formatter(self) -> click.HelpFormatter:
        """A help page as wide as the terminal, up to the usual width."""
        from byhand.cli.printing import USUAL, columns_of

        columns = min(columns_of(sys.stdout) or USUAL, USUAL)
        return HelpPage(width=columns - 2)


class Option(click.Option):
    """An option whose help, and the word for its value, are translated when they are shown."""

    def make_metavar(self, *context: Any, **named: Any) -> str:  # before click 8.2 without one
        """The word for the value: FILE, ARCHIVO."""
        return value_word(super().make_metavar(*context, **named))

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option and its help in the current language."""
        record = super().get_help_record(ctx)
        return None if record is None else (record[0], translated(self.help))


class Command(click.Command):
    """A command; `arguments` explains each of its arguments in a line."""

    context_class = Context

    def __init__(self, *args: Any, arguments: Mapping[str, str] | None = None, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.params.append(Option(["--lang"], **language_settings()))
        self.context_settings = {"help_option_names": HELP, "allow_extra_args": True}
        self.arguments = arguments or {}

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; extra arguments are a UsageError."""
        if ctx.args:
            raise UsageError(
                _("too many arguments"),
                found=" ".join(ctx.args),
                hint=_("put a text of several words in quotation marks")
                if "[TEXT]" in self.arguments
                else _see_help(ctx),
            )
        return super().invoke(ctx)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The option --help, with its text in the current language."""
        return _help_option(super().get_help_option(ctx))

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the usage line of the command."""
        _write_usage(ctx, formatter, " ".join([*map(value_word, self.arguments), _("[options]")]))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes what the command does."""
        _write_paragraphs(formatter, self.help)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the arguments and the options."""
        if self.arguments:
            with formatter.section(_("Arguments")):
                formatter.write_dl(
                    [(value_word(name), translated(text)) for name, text in self.arguments.items()]
                )
        _write_options(self, ctx, formatter)

    def get_short_help_str(self, limit: int = 45) -> str:
        """The command's line in the list of commands."""
        return translated(self.short_help)


class Group(click.Group):
    """Commands in their given order; `begin` are calls for a newcomer, each with a line."""

    context_class = Context

    def __init__(self, *args: Any, begin: Mapping[str, str] | None = None, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.begin = begin or {}
        self.context_settings = {"help_option_names": HELP}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands in their given order."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of a name; an unknown name is a UsageError with the nearest ones."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            raise UsageError(
                _("there is no command {name}").format(name=repr(args[0])),
                expected=", ".join(self.commands),
                hint=_hint_for(args[0], self.commands),
            )
        return super().resolve_command(ctx, args)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The option --help, with its text in the current language."""
        return _help_option(super().get_help_option(ctx))

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the usage line of the program."""
        _write_usage(ctx, formatter, _("COMMAND [arguments] [options]"))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes what the program does."""
        _write_paragraphs(formatter, self.help)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes what to begin with, the commands and the options."""
        if self.begin:
            with formatter.section(_("Begin with")):
                formatter.write_dl([(call, translated(text)) for call, text in self.begin.items()])
        with formatter.section(_("Commands")):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str())
                    for name in self.list_commands(ctx)
                    if (command := self.get_command(ctx, name)) is not None
                ]
            )
        _write_options(self, ctx, formatter)


def _hint_for(word: str, commands: Iterable[str]) -> str | None:
    from byhand.models import builtin_names

    if word in builtin_names():
        return _("did you mean {names}?").format(names=f"byhand trace {word}")
    return nearest(word, commands)


def _see_help(ctx: click.Context | None) -> str:
    command = "byhand" if ctx is None else ctx.command_path
    return _("see {command} --help").format(command=command)


def _after_dashes(ctx: click.Context | None, option: str, arguments: Sequence[str]) -> str | None:
    """What to do with a text that begins with a dash; None where the command takes no text."""
    if ctx is None or not isinstance(ctx.command, Command):
        return None
    if not any("TEXT" in name for name in ctx.command.arguments):
        return None
    text = next((word for word in arguments if word.startswith(option)), option)
    others = [word for word in arguments if word != text]
    told = _("put -- before a text that begins with a dash: {command}")
    return told.format(command=" ".join(map(quote, ["byhand", *others, "--", text])))


def _help_option(option: click.Option | None) -> click.Option | None:
    if option is not None:
        option.help = _("show this help and exit")
    return option


def _write_usage(ctx: click.Context, formatter: click.HelpFormatter, pieces: str) -> None:
    formatter.write_usage(ctx.command_path, pieces, prefix=_("Usage:") + " ")


def _write_paragraphs(formatter: click.HelpFormatter, text: str | None) -> None:
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(translated(text))


def _write_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    options = [one for one in command.get_params(ctx) if isinstance(one, click.Option)]
    records = [option.get_help_record(ctx) for option in options]
    with formatter.section(_("Options")):
        formatter.write_dl([record for record in records if record is not None])


# ------------------------------------------------------------------ kinds of values


def whole_from(least: int, most: int) -> Callable[..., int | None]:
    """A callback that reads a whole number within its range, in plain digits."""

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        number = whole_or_text(value)
        refuse_unless_whole(param.opts[-1], number, least, most)
        return None if number is None else int(number)

    return read


whole_number = whole_from(0, 10**9 - 1)


def one_of(*known: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """A callback that reads one of some words."""

    def check(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        if value is not None and value not in known:
            raise does_not_fit(param.opts[0], ", ".join(known), value)
        return value

    return check


# ------------------------------------------------------------------ commands and options


def as_command(
    short: str, about: str, arguments: Mapping[str, str] | None = None
) -> Callable[[Callable[..., Any]], Command]:
    """A decorator that makes a command: its short line, its help, and its arguments.

    Every command has --lang, which `run` has handled before the command starts.
    """
    return click.command(cls=Command, short_help=short, help=about, arguments=arguments)


def as_text_command(short: str, about: str) -> Callable[[Callable[..., Any]], Command]:
    """A decorator that makes a command with a model and a text."""

    def make(function: Callable[..., Any]) -> Command:
        model = click.argument("model", metavar="MODEL", shell_complete=models)
        text = click.argument("text", metavar="[TEXT]", required=False)
        return as_command(short, about, MODEL | TEXT)(model(text(function)))

    return make


MODEL = {
    "MODEL": later(
        "a built-in model (see byhand models), a model file, the folder of a checkpoint, "
        "or a .gguf file"
    )
}
TEXT = {"[TEXT]": later("the text; without it, the model's own")}


def option(names: str, metavar: str, help: str, **more: Any) -> Callable[..., Any]:
    """An option with a value; `names` are its spellings, and its name in Python."""
    if metavar in BY_METAVAR:
        more.setdefault("shell_complete", BY_METAVAR[metavar])
    return click.option(*names.split(), cls=Option, metavar=metavar, help=help, **more)


def flag(names: str, help: str, **more: Any) -> Callable[..., Any]:
    """An option without a value."""
    return click.option(*names.split(), cls=Option, is_flag=True, help=help, **more)


def language_settings() -> dict[str, Any]:
    """The settings of --lang, which every command has."""
    return {
        "metavar": "LANG",
        "help": later("speak this language: en or es (else that of the locale)"),
        "callback": one_of(*LANGUAGES),
        "shell_complete": some_of(*LANGUAGES),
        "expose_value": False,
    }


def _as_data(ctx: click.Context, param: click.Parameter, asked: bool) -> bool:
    """Makes stdout escape characters outside its encoding, for JSON; returns the flag."""
    if asked:
        from byhand.cli.printing import escape_for_json

        escape_for_json(sys.stdout)
    return asked


json_option = flag("--json as_json", later("print one JSON document"), callback=_as_data)


# ------------------------------------------------------------------ click's complaints


def complaint(error: click.ClickException, arguments: Sequence[str] = ()) -> UsageError:
    """An error of click as a UsageError of byhand's; `arguments` are those of the call."""
    ctx = getattr(error, "ctx", None)
    match error:
        case click.NoSuchOption():
            close = ", ".join(error.possibilities or ())
            return UsageError(
                _("there is no option {name}").format(name=error.option_name),
                hint=_("did you mean {names}?").format(names=close)
                if close
                else _after_dashes(ctx, error.option_name, arguments) or _see_help(ctx),
            )
        case click.MissingParameter():
            name = (error.param.metavar if error.param else None) or "?"
            return UsageError(
                _("{name} is missing").format(name=value_word(name)), hint=_see_help(ctx)
            )
        case click.BadOptionUsage():
            return UsageError(
                _("{name} cannot be used like this").format(name=error.option_name),
                expected=_("one value after it, or none if it takes none"),
                hint=_see_help(ctx),
            )
        case _:
            return UsageError(error.format_message(), hint=_see_help(ctx))
