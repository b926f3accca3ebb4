"""`byhand count`: the parameters of a model, to the digit."""

from __future__ import annotations

import click

from byhand.cli.completing import models
from byhand.cli.speaking import MODEL, as_command, json_option, later


@as_command(
    later("the parameters of a model, to the digit"),
    later(
        "Counts the parameters of a model by component, each with its formula, with and "
        "without biases. Tied and shared ones are counted once, buffers apart. For a "
        "checkpoint it also says how many bits a weight takes in its files. For a model "
        "file it says how many different numbers the weights hold."
    ),
    MODEL,
)
@click.argument("model", metavar="MODEL", shell_complete=models)
@json_option
def command(model: str, as_json: bool) -> int:
    """Prints the parameters of a model; returns the exit status."""
    from byhand.cli.printing import print_data, print_parts
    from byhand.counting import count
    from byhand.document.compose.listing import inventory_parts
    from byhand.document.media.json.results import inventory_data
    from byhand.models import is_checkpoint, open_spec, weights_of

    spec, weights = open_spec(model), weights_of(model)
    written = weights is not None and not is_checkpoint(model)
    inventory = count(spec, weights, numbers=written)
    if as_json:
        print_data(inventory_data(inventory))
    else:
        print_parts(inventory_parts(inventory, weights_known=written))
    return 0
