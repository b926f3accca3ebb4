"""`byhand count`: the parameters of a model, to the digit."""

from __future__ import annotations

import sys

import click

from byhand.cli.printing import columns_of, print_data
from byhand.cli.speaking import MODEL, as_command, json_option, later


@as_command(
    later("the parameters of a model, to the digit"),
    later(
        "Counts the parameters of a model by component, each with its formula, with and without "
        "biases; tied and shared ones once, buffers apart."
    ),
    MODEL,
)
@click.argument("model", metavar="MODEL")
@json_option
def command(model: str, as_json: bool) -> int:
    from byhand.cli.opening import architecture
    from byhand.cli.printing import print_lines
    from byhand.counting import count
    from byhand.document.compose.listing import inventory_data, inventory_lines

    spec, weights = architecture(model)
    inventory = count(spec, weights)
    if as_json:
        print_data(inventory_data(inventory))
    else:
        known, terminal = weights is not None, columns_of(sys.stdout)
        print_lines(lambda width, ink: inventory_lines(inventory, known, width, ink, terminal))
    return 0
