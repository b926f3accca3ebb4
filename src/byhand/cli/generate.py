"""`byhand generate`: a text that goes on, one token after the other."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import click

from byhand.cli.choosing import numbers_options
from byhand.cli.speaking import Command, Option, json_option, language_option, later
from byhand.errors import ByhandError, InputError, UsageError
from byhand.language import _
from byhand.options import Chosen as ChosenNumbers
from byhand.options import no_comparison_of_tokens

if TYPE_CHECKING:
    from byhand.generating import Chosen, Generation

COUNT = 20  # tokens, where nothing is said
_WHOLE = re.compile("[0-9]{1,20}")
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{0,20})?|\.[0-9]{1,20}")


def whole(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A whole number; whether it is large enough, `generate` knows."""
    if value is None or _WHOLE.fullmatch(value):
        return None if value is None else int(value)
    raise _does_not_fit(param, _("a whole number of at least {low}").format(low=0), value)


def decimal(ctx: click.Context, param: click.Parameter, value: str | None) -> Fraction | None:
    """A decimal as the rational number it is; whether it is in its range, `generate` knows."""
    if value is None or _DECIMAL.fullmatch(value):
        return None if value is None else Fraction(value)
    raise _does_not_fit(param, _("a number such as 0.7"), value)


def _does_not_fit(param: click.Parameter, expected: str, value: str) -> UsageError:
    return UsageError(
        _("{name} has a value that does not fit").format(name=param.opts[-1]),
        expected=expected,
        found=repr(value[:40]),
    )


@click.command(
    cls=Command,
    short_help=later("how the text goes on, token by token"),
    help=later(
        "Continues a text, one token after the other, each with its probability: the most "
        "probable one, or one that is drawn. In exact numbers and with --digits, that it is the "
        "most probable one is proven. Earlier positions are not worked out again."
    ),
    arguments={
        "MODEL": later(
            "a built-in model (see byhand models), a model file, or the folder of a checkpoint"
        ),
        "[TEXT]": later("the text; without it, the model's own"),
    },
)
@click.argument("model", metavar="MODEL")
@click.argument("text", metavar="[TEXT]", required=False)
@click.option(
    "-n",
    "--count",
    cls=Option,
    callback=whole,
    metavar="N",
    help=later("how many tokens, at most (20 unless told)"),
)
@click.option(
    "--temperature",
    cls=Option,
    callback=decimal,
    metavar="T",
    help=later("draw from softmax(logits/T): below 1 safer, above 1 wilder"),
)
@click.option(
    "--top-k", cls=Option, callback=whole, metavar="K", help=later("draw from the K most probable")
)
@click.option(
    "--top-p",
    cls=Option,
    callback=decimal,
    metavar="P",
    help=later("draw from the fewest most probable that together reach P"),
)
@click.option(
    "--seed",
    cls=Option,
    callback=whole,
    metavar="S",
    help=later("draw the same again; without it, a new seed is taken and told"),
)
@numbers_options
@json_option
@language_option
def command(
    model: str,
    text: str | None,
    count: int | None,
    temperature: Fraction | None,
    top_k: int | None,
    top_p: Fraction | None,
    seed: int | None,
    chosen: ChosenNumbers,
    as_json: bool,
) -> int:
    from byhand.api import numbers_for
    from byhand.cli.progress import telling
    from byhand.generating import generate
    from byhand.models import open_model

    chosen.refuse_comparison(no_comparison_of_tokens())
    with telling():
        opened = open_model(model)
        generation = generate(
            opened,
            text,
            numbers_for(opened, chosen, many=True),
            count=COUNT if count is None else count,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            digits=chosen.digits,
        )
    if as_json:
        with whatever_came(generation, print_json):
            for _chosen in as_they_come(generation):
                pass
    else:
        show(generation)
    return 0


def show(generation: Generation) -> None:
    """Prints each token as soon as it is there, and then the whole text.

    The heading comes with the first one: a model that cannot be worked out has no page.
    """
    from byhand.cli.printing import print_parts
    from byhand.document.compose.generation import choice, closing, opening

    @cache
    def begin() -> None:
        print_parts([opening(generation)])
        print(flush=True)

    def end(generation: Generation) -> None:
        begin()
        print_parts(closing(generation))

    with whatever_came(generation, end):
        for chosen in as_they_come(generation):
            begin()
            print_parts([choice(generation, chosen)])
            sys.stdout.flush()


def as_they_come(generation: Generation) -> Iterator[Chosen]:
    """Each token as it comes; while one takes long, its steps are told on stderr."""
    from byhand.cli.progress import telling

    while True:
        with telling() as generation.progress:
            chosen = next(generation, None)
        if chosen is None:
            return
        yield chosen


@contextmanager
def whatever_came(generation: Generation, tell: Callable[[Generation], None]) -> Iterator[None]:
    """Tells the result; also where it was interrupted, or a later token cannot be worked out."""
    try:
        yield
    except (ByhandError, KeyboardInterrupt) as stopped:
        if generation.choices or not isinstance(stopped, InputError):
            tell(generation)
        raise
    tell(generation)


def print_json(generation: Generation) -> None:
    """Prints what has come as one JSON document."""
    from byhand.cli.printing import print_data
    from byhand.document.media.json.results import generation_data

    print_data(generation_data(generation))
