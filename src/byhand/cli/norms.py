"""`byhand train --compare-norms`: gradients and losses with norms in different places."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from byhand.cli.printing import print_data, talk
from byhand.errors import OutputError
from byhand.language import _

if TYPE_CHECKING:
    from byhand.document.parts import Grid
    from byhand.train import Comparison


def show_norms(out: str, steps: int | None, as_json: bool) -> int:
    """Measures, writes figure and numbers into a folder, prints a table; returns the status."""
    from byhand.cli.printing import print_parts
    from byhand.document.parts import Finding
    from byhand.train import compare_norms, write_comparison

    folder = ready(Path(out))  # before half a minute of work
    comparison = compare_norms(steps=steps, progress=tell)
    write_comparison(comparison, folder)
    if as_json:
        print_data(comparison.as_data())
    else:
        print_parts([table(comparison), Finding(str(folder / "norms.svg"))])
    return 0


def ready(folder: Path) -> Path:
    """The folder, made if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            _("cannot be written"), where=str(folder), found=error.strerror or str(error)
        ) from None
    return folder


def tell(place: str, depth: int, steps: int) -> None:
    """Says on stderr what is being trained."""
    text = _("{place}-LN, {depth} layers, {steps} steps …")
    talk(text.format(place=place, depth=depth, steps=steps))


def table(comparison: Comparison) -> Grid:
    """A row for each run: its first gradients in the first and last layer, and its losses."""
    from byhand.document.parts import Column, Grid

    heads = (
        _("layers"),
        _("gradient of the first layer"),
        _("of the last"),
        _("loss at first"),
        _("after {count} steps").format(count=comparison.steps),
    )
    rows = (
        (
            f"{curve.place}-LN",
            str(curve.depth),
            f"{curve.gradients[0]:.1e}",
            f"{curve.gradients[-1]:.1e}",
            f"{curve.losses[0]:.3f}",
            f"{curve.losses[-1]:.3f}",
        )
        for curve in comparison.curves
    )
    columns = (Column(_("norm")), *(Column(head, "number") for head in heads))
    return Grid("", columns, tuple(rows))
