"""`byhand models`: the built-in models."""

from __future__ import annotations

from byhand.cli.speaking import as_command, json_option, later


@as_command(
    later("the built-in models"),
    later("Lists the built-in models, each with its size and its own text."),
)
@json_option
def command(as_json: bool) -> int:
    """Prints the built-in models; returns the exit status."""
    from byhand.cli.printing import print_data, print_parts
    from byhand.counting import count
    from byhand.document.compose.listing import model_parts
    from byhand.document.media.json.results import models_data
    from byhand.models import builtin_names, open_model

    found = [(model, count(model.spec).total) for model in map(open_model, builtin_names())]
    if as_json:
        print_data(models_data(found))
    else:
        print_parts(model_parts(found))
    return 0
