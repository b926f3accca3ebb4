"""`byhand count`: the parameters of a model, to the digit."""

from __future__ import annotations

import click

from byhand.cli.speaking import MODEL, as_command, json_option, later


@as_command(
    later("the parameters of a model, to the digit"),
    later(
        "Counts the parameters of a model by component, each with its formula, with and without "
        "biases; tied and shared ones once, buffers apart.  Of a model file it also tells how many "
        "different numbers the weights hold."
    ),
    MODEL,
)
@click.argument("model", metavar="MODEL")
@json_option
def command(model: str, as_json: bool) -> int:
    """Prints the parameters of a model; returns the exit status."""
    from byhand.cli.opening import architecture
    from byhand.cli.printing import print_data, print_parts
    from byhand.counting import count
    from byhand.document.compose.listing import inventory_parts
    from byhand.document.media.json.results import inventory_data

    spec, weights = architecture(model)
    inventory = count(spec, weights, numbers=True)
    if as_json:
        print_data(inventory_data(inventory))
    else:
        print_parts(inventory_parts(inventory, weights_known=weights is not None))
    return 0
