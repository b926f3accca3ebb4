"""All the correct runs, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.alarms import classes, library, own
from benchmarks.alarms.models import FAMILIES, WEIGHTS, saved
from benchmarks.planted import models as small
from benchmarks.planted.families import PORTS
from byhand.capturing import Capture
from byhand.model import Model


@dataclass(frozen=True)
class Run:
    """Correct values for a model, and their precision."""

    name: str
    source: str  # transformers, byhand, port, kernel
    family: str
    format: str
    precision: str  # the class of implementations
    model: Model
    claims: dict[str, Any] | Capture
    text: str | None = None


def library_runs(seed: int = 0) -> Iterator[Run]:
    """Runs of `transformers` in every way; the weights change from way to way."""
    for family in FAMILIES:
        for kind, weights in enumerate(WEIGHTS):
            with saved(family, weights, seed + kind) as pair:
                for number, way in enumerate(library.ways(family)):
                    if number % len(WEIGHTS) != kind:
                        continue
                    texts = library.batch(way, seed + number)
                    yield Run(
                        f"{family}, {weights}, {way}", "transformers", family, way.format,
                        way.precision, pair.ours, library.claims(pair, way, texts),
                    )  # fmt: skip


def traced_runs(seed: int = 0) -> Iterator[Run]:
    """byhand's own floats."""
    for family in FAMILIES:
        for kind, weights in enumerate(WEIGHTS):
            with saved(family, weights, seed + kind) as pair:
                ids = library.batch(library.Way("float32", "eager", 1, "none", False), seed + kind)
                text = " ".join(map(str, ids.ids[0].tolist()))
                for format in own.FORMATS:
                    yield Run(
                        f"{family}, {weights}, {format}", "byhand", family, format, format,
                        pair.ours, own.traced(pair.ours, text, format), text,
                    )  # fmt: skip


def ported_runs(seed: int = 0) -> Iterator[Run]:
    """Runs of benchmarks/planted's ports without a bug, in several correct ways."""
    for family in small.SPECS:
        for number, way in enumerate(own.WAYS):
            for format in own.FORMATS:
                draw = seed + number
                text = " ".join(map(str, small.some_ids(family, draw)))
                # torch's own functions work in float32 inside, whatever the format
                precision = f"transformers:{format}" if way is own.fused else format
                yield Run(
                    f"{family}, {way.__name__.replace('_', ' ')}, {format}", "port", family,
                    format, precision, small.model(family, draw),
                    own.ported(family, way, format, draw), text,
                )  # fmt: skip


def classed_runs(seed: int = 0) -> Iterator[Run]:
    """Ports in the ways that kernels have, each judged by the class that allows it."""
    for number, (way, format, precision) in enumerate(classes.classes()):
        for family in small.SPECS:
            draw = seed + number
            ids = small.some_ids(family, draw)
            model = small.model(family, draw)
            yield Run(
                f"{family}, {way.__name__.replace('_', ' ')}, {format}", "kernel", family, format,
                precision, model, classes.ran(PORTS[family](model, ids, format), way),
                " ".join(map(str, ids)),
            )  # fmt: skip


def every_run(seed: int = 0) -> Iterator[Run]:
    """All of them."""
    yield from ported_runs(seed)
    yield from classed_runs(seed)
    yield from traced_runs(seed)
    yield from library_runs(seed)
