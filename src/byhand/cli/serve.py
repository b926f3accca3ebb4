"""`byhand serve`: the interactive page, served on this machine."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import click

from byhand.cli.completing import models as model_or_file
from byhand.cli.printing import talk
from byhand.cli.speaking import as_command, flag, later, option, whole_from
from byhand.errors import InputError
from byhand.language import _, spoken

LARGEST_PORT = 65_535


@as_command(
    later("a page on which everything can be changed and seen at once"),
    later(
        "Serves a page on this machine, for a browser. Type a text, change a weight or the "
        "architecture, and every number of the pass changes with it. It prints its address "
        "and runs until Ctrl-C. Nothing leaves the machine, and no file but the models "
        "named can be read."
    ),
    {
        "[MODEL…]": later(
            "built-in models, model files, or folders of checkpoints; the first is shown first"
        ),
    },
)
@click.argument("models", metavar="[MODEL…]", nargs=-1, shell_complete=model_or_file)
@option(
    "--port",
    "N",
    later("where to listen; without it, a port that is free"),
    callback=whole_from(0, LARGEST_PORT),
)
@flag("--open opens", later("open the page in a browser"))
def command(models: tuple[str, ...], port: int | None, opens: bool) -> int:
    """Serves the page until it is interrupted; returns the exit status."""
    from byhand.models import open_model

    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError:
        raise InputError(
            _("the page needs starlette and uvicorn"), hint="pip install 'byhand[serve]'"
        ) from None
    from byhand.serving.server import HOST, bound, run, server_for

    for model in models:  # report a broken file now rather than on the page
        open_model(model)
    files, first = named(models)
    listening = bound(port or 0)
    wanted = {"model": first, "language": None if spoken() == "en" else spoken()}
    query = urlencode({key: value for key, value in wanted.items() if value is not None})
    at = listening.getsockname()[1]
    where = f"http://{HOST}:{at}/" + (f"?{query}" if query else "")

    def ready() -> None:
        print(where, flush=True)
        talk(_("the page is at this address; Ctrl-C stops it"))
        if opens:
            _open(where)

    try:
        run(server_for(at, files), listening, ready)
    except KeyboardInterrupt:  # the usual end
        talk("\n" + _("stopped"))
    return 0


def named(models: tuple[str, ...]) -> tuple[dict[str, Path], str | None]:
    """The files by their names on the page, and the name of the first model."""
    from byhand.models import builtin_names

    builtins = builtin_names()
    files: dict[str, Path] = {}
    first = None
    for model in models:
        name = model
        if model not in builtins:
            path = Path(model)
            stem = path.stem if path.is_file() else path.resolve().name
            name = stem
            count = 1
            while name in builtins or files.get(name, path) != path:
                count += 1
                name = f"{stem}-{count}"
            files[name] = path
        first = first or name
    return files, first


def _open(where: str) -> None:
    """Opens a browser, without waiting for it."""
    import webbrowser
    from threading import Thread

    Thread(target=webbrowser.open, args=(where,), daemon=True).start()
