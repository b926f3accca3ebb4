"""What a shell completes an argument to: words that are known, models, files, formats, steps.

A shell runs byhand at every press of the key: whatever a completion needs is imported only then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Completed = CompletionItem
Completion = Callable[[click.Context, click.Parameter, str], list[Completed]]
LONGEST_TEXT = 8  # positions of the plan whose steps are completed


def some_of(*known: str) -> Completion:
    """Completes a value to those of these words that begin like it."""
    return from_words(lambda: known)


def from_words(known: Callable[[], Iterable[str]]) -> Completion:
    """The same with words that are looked up when they are needed."""

    def found(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[Completed]:
        return [CompletionItem(word) for word in known() if word.startswith(begun)]

    return found


def listed(*known: str) -> Completion:
    """Completes the last of several words that stand between commas."""

    def found(ctx: click.Context, param: click.Parameter, begun: str) -> list[Completed]:
        before, comma, last = begun.rpartition(",")
        return [
            CompletionItem(before + comma + word)
            for word in known
            if word.startswith(last) and word not in before.split(",")
        ]

    return found


def files(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[Completed]:
    """Completes a value to a file, by the shell itself."""
    return [CompletionItem(begun, type="file")]


def models(ctx: click.Context, param: click.Parameter, begun: str) -> list[Completed]:
    """Completes the name of a built-in model, or else a file."""
    from byhand.models import builtin_names

    return some_of(*builtin_names())(ctx, param, begun) or files(ctx, param, begun)


def _formats() -> Iterable[str]:
    from byhand.numbers.floats.formats import FORMATS

    return FORMATS


def _styles() -> Iterable[str]:
    from byhand.names import STYLES

    return (*STYLES, "hf")


def _levels() -> Iterable[str]:
    from byhand.document.compose.worksheet.sheet import LEVELS

    return LEVELS


def steps(ctx: click.Context, _param: click.Parameter, begun: str) -> list[Completed]:
    """Completes the address of a step of the model that was named before."""
    from byhand.errors import ByhandError
    from byhand.forward import plan
    from byhand.models import open_spec

    unread = next((word for word in ctx.args if not word.startswith("-")), "")
    try:  # where an option has no value yet, click has read no argument either
        spec = open_spec(ctx.params.get("model") or unread)
        every = plan(spec, min(spec.context or LONGEST_TEXT, LONGEST_TEXT), target=True)
    except ByhandError:
        return []
    return [CompletionItem(step.address) for step in every if step.address.startswith(begun)]


formats, styles, levels = map(from_words, (_formats, _styles, _levels))
BY_METAVAR = {
    "FILE": files,
    "DIR": files,
    "OTHER": files,
    "FORMAT": formats,
    "STYLE": styles,
    "LEVEL": levels,
    "ADDRESS": steps,
    "PATTERN": steps,
    "DEVICE": some_of("cpu", "cuda"),
}
