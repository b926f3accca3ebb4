"""The loss curve of a run as loss.svg and loss.png: training, held-out, and baselines.

A function of the log alone: the same log gives the same files, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from byhand.train.folder import put_in_place

SVG, PNG = "loss.svg", "loss.png"
LOOK: Any = {"svg.hashsalt": "byhand", "font.family": "DejaVu Sans"}


def write_figure(
    folder: Path, title: str, records: Sequence[Mapping[str, Any]], levels: Mapping[str, float]
) -> None:
    """Draws the records of a log; `levels` are losses to compare with, by their labels."""
    save_figure(folder, (SVG, PNG), lambda: _drawn(title, records, levels))


def save_figure(folder: Path, names: Sequence[str], draw: Callable[[], Any]) -> None:
    """Writes a drawing as files of these names, without dates in them."""
    import matplotlib

    metadata: Any = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
    with matplotlib.rc_context(LOOK):
        figure = draw()
        for name in names:
            kind, room = name.rpartition(".")[2], BytesIO()
            figure.savefig(room, format=kind, metadata=metadata[kind], dpi=150)
            put_in_place(folder / name, room.getvalue())


def _drawn(title: str, records: Sequence[Mapping[str, Any]], levels: Mapping[str, float]) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    trained = [(record["step"], record["loss"]) for record in records if "loss" in record]
    held_out = [(r["step"], r["validation_loss"]) for r in records if "validation_loss" in r]
    axes.plot(*zip(*trained, strict=True), color="#9ab8d8", linewidth=0.8, label="training")
    if held_out:
        mark = "o" if len(held_out) < 60 else None
        axes.plot(
            *zip(*held_out, strict=True), color="#b03a2e", marker=mark, markersize=3,
            linewidth=1.6, label="validation",
        )  # fmt: skip
    for (name, loss), style in zip(levels.items(), ("--", ":", "-."), strict=False):
        axes.axhline(
            loss, color="#555555", linestyle=style, linewidth=1, label=f"{name}: {loss:.4f}"
        )
    lowest = min(loss for _step, loss in (*trained, *held_out))
    highest = max(loss for _step, loss in (*trained, *held_out))
    if lowest > 0 and highest / lowest > 100:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set(title=title, xlabel="step", ylabel="loss (nats a token)")
    axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
