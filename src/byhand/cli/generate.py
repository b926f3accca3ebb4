"""`byhand generate`: a text continued token by token."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import click

from byhand.cli.choosing import beside_options, numbers_options
from byhand.cli.speaking import as_text_command, json_option, later, option
from byhand.errors import ByhandError, InputError
from byhand.language import _
from byhand.options import Chosen as ChosenNumbers
from byhand.options import does_not_fit, no_comparison_of_tokens

if TYPE_CHECKING:
    from byhand.generating import Chosen, Generation

COUNT = 20  # tokens by default
_WHOLE = re.compile("[0-9]{1,20}")
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{0,20})?|\.[0-9]{1,20}")


def whole(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A whole number; `generate` checks its range."""
    if value is None or _WHOLE.fullmatch(value):
        return None if value is None else int(value)
    expected = _("a whole number of at least {low}").format(low=0)
    raise does_not_fit(param.opts[-1], expected, value)


def decimal(ctx: click.Context, param: click.Parameter, value: str | None) -> Fraction | None:
    """A decimal as an exact rational; `generate` checks its range."""
    if value is None or _DECIMAL.fullmatch(value):
        return None if value is None else Fraction(value)
    raise does_not_fit(param.opts[-1], _("a number such as 0.7"), value)


@as_text_command(
    later("how the text goes on, token by token"),
    later(
        "Continues a text, one token after the other, each with its probability: the most "
        "probable one, or one that is drawn. In exact numbers and with --digits, that it is the "
        "most probable one is proven. Earlier positions are not worked out again."
    ),
)
@beside_options
@option("-n --count", "N", later("how many tokens, at most (20 unless told)"), callback=whole)
@option(
    "--temperature",
    "T",
    later("draw from softmax(logits/T): below 1 safer, above 1 wilder"),
    callback=decimal,
)
@option("--top-k", "K", later("draw from the K most probable"), callback=whole)
@option(
    "--top-p",
    "P",
    later("draw from the fewest most probable that together reach P"),
    callback=decimal,
)
@option(
    "--seed",
    "S",
    later("draw the same tokens again; without it, a new seed is taken and printed"),
    callback=whole,
)
@numbers_options
@json_option
def command(
    model: str,
    text: str | None,
    source: str | None,
    segments: tuple[int, ...] | None,
    count: int | None,
    temperature: Fraction | None,
    top_k: int | None,
    top_p: Fraction | None,
    seed: int | None,
    chosen: ChosenNumbers,
    as_json: bool,
) -> int:
    """Continues a text token by token; returns the exit status."""
    from byhand.cli.progress import telling
    from byhand.generating import generate
    from byhand.models import open_model
    from byhand.number_choice import numbers_for

    chosen.refuse_comparison(no_comparison_of_tokens())
    with telling():
        opened = open_model(model)
        generation = generate(
            opened,
            text,
            numbers_for(opened, chosen, many=True),
            source=source,
            segments=segments,
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

    The heading comes with the first token, so that an error comes without one.
    """
    from byhand.cli.printing import print_parts
    from byhand.document.compose.generation import choice, closing, opening

    @cache
    def begin() -> None:
        print_parts([opening(generation)])
        print(flush=True)

    def end(generation: Generation) -> None:
        begin()
        print()
        print_parts(closing(generation))

    with whatever_came(generation, end):
        for chosen in as_they_come(generation):
            begin()
            print_parts([choice(generation, chosen)])
            sys.stdout.flush()


def as_they_come(generation: Generation) -> Iterator[Chosen]:
    """Each token as it comes; during long waits its steps are shown on stderr."""
    from byhand.cli.progress import telling

    while True:
        with telling() as generation.progress:
            chosen = next(generation, None)
        if chosen is None:
            return
        yield chosen


@contextmanager
def whatever_came(generation: Generation, tell: Callable[[Generation], None]) -> Iterator[None]:
    """Prints the result in the end, also after an interruption or an error at a later token."""
    try:
        yield
    except (ByhandError, KeyboardInterrupt) as stopped:
        if generation.choices or not isinstance(stopped, InputError):
            tell(generation)
        raise
    tell(generation)


def print_json(generation: Generation) -> None:
    """Prints the tokens so far as one JSON document."""
    from byhand.cli.printing import print_data
    from byhand.document.media.json.results import generation_data

    print_data(generation_data(generation))
