"""Pre-norm against post-norm at growing depth: the numbers behind "why pre-LN won".

Both have the same block, initial weights and texts; only the place of the norms differs.  Two
things are measured: the size of each layer's gradient at initialisation, and the loss over some
steps at one learning rate, without a warm-up.  Matrices begin with the deviation 1/√d, so that an
update is about as large as the stream.

With the norm inside the side-trip, each layer of a deeper stack has smaller gradients: it adds less
to a stream that has grown.  With the norm after the add, the gradients of the last layers stay as
large as in a shallow stack.  So the same learning rate moves a deep stack too far, which a warm-up
prevents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from byhand.errors import OutputError
from byhand.files.normal import normal
from byhand.language import _
from byhand.models import open_spec
from byhand.parameters import Parameter, parameters
from byhand.spec import NO_NORM, ModelSpec
from byhand.train.batches import NOTHING, Texts
from byhand.train.corpora import open_corpus
from byhand.train.figure import save_figure
from byhand.train.flat import Flat
from byhand.train.folder import as_json, put_in_place
from byhand.train.module import TorchModel
from byhand.train.run import Optimizer
from byhand.weights import Tensor, Weights

DEPTHS, STEPS = (2, 6, 12), 100
PLACES = ("pre", "post")
INSIDE, TABLES = Fraction(1, 8), Fraction(1, 50)  # deviations: 1/√64 in the blocks
SVG, PNG, NUMBERS = "norms.svg", "norms.png", "norms.json"


@dataclass(frozen=True)
class Curve:
    """One stack of blocks: the place of its norms, its depth, and the measurements."""

    place: str
    depth: int
    gradients: tuple[float, ...]  # root mean square over the matrices of each layer, at the start
    losses: tuple[float, ...]  # after each step


@dataclass(frozen=True)
class Comparison:
    """All curves, and the settings that they were made with."""

    data: str
    steps: int
    batch: int
    rate: float
    seed: int
    curves: tuple[Curve, ...]

    def as_data(self) -> dict[str, object]:
        """The comparison as data for JSON."""
        return asdict(self)


def compare_norms(
    *,
    depths: Sequence[int] = DEPTHS,
    steps: int | None = None,
    batch: int = 32,
    rate: float = 4e-3,
    seed: int = 1234,
    data: str = "verbs",
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Trains minigpt's block in stacks of each depth, once with each place of the norms.

    It runs on one thread, so that the same processor gives the same numbers.  Deep post-norm stacks
    are so sensitive that the order of a sum can decide whether they learn.
    """
    steps = STEPS if steps is None else steps
    torch.set_num_threads(1)
    curves = []
    for depth in depths:
        for place in PLACES:
            if progress:
                progress(place, depth, steps)
            curves.append(_curve(place, depth, steps, batch, rate, seed, data))
    return Comparison(data, steps, batch, rate, seed, tuple(curves))


def stack(place: str, depth: int) -> ModelSpec:
    """A stack of minigpt blocks; a post-norm stack ends with a norm and needs no final norm."""
    spec = open_spec("minigpt-init")
    block = replace(spec.blocks[0], norm_place=place)
    final = spec.final_norm if place == "pre" else NO_NORM
    return replace(spec, name=f"{place}-{depth}", blocks=(block,) * depth, final_norm=final)


def initial(spec: ModelSpec, seed: int) -> Weights:
    """Normal weights: deviation INSIDE in matrices, TABLES in embeddings; gains 1, biases 0."""
    return Weights({p.name: Tensor(p.name, _entries(p, seed)) for p in parameters(spec)})


def _entries(parameter: Parameter, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    if parameter.kind == "matrix":
        std = TABLES if parameter.part == "embedding" else INSIDE
        return normal(parameter.name, parameter.shape, std, seed)
    return np.full(parameter.shape, parameter.kind == "gain", dtype=np.float32)


def _curve(
    place: str, depth: int, steps: int, batch: int, rate: float, seed: int, data: str
) -> Curve:
    spec = stack(place, depth)
    module = TorchModel(spec, initial(spec, seed))
    flat = Flat(module)
    corpus = open_corpus(data)
    texts = Texts(corpus, spec.context or 32, batch, seed, "cpu")
    settings = Optimizer()
    losses: list[float] = []
    gradients: tuple[float, ...] = ()
    for step in range(1, steps + 1):
        ids, targets = texts.take(texts.rows(step))
        logits = module(ids)
        loss = functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=NOTHING
        )
        flat.take_gradients(loss)
        if step == 1:
            gradients = by_layer(flat, spec)
        flat.clip(None)
        flat.update(settings, rate, step)
        losses.append(loss.item())
    return Curve(place, depth, gradients, tuple(losses))


def by_layer(flat: Flat, spec: ModelSpec) -> tuple[float, ...]:
    """The root mean square of the gradients of each layer's matrices."""
    found = flat.by_name(flat.grads)
    sizes = []
    for layer in range(len(spec.blocks)):
        parts = [
            found[p.name].flatten()
            for p in parameters(spec)
            if p.kind == "matrix" and p.name.startswith(f"block.{layer}.")
        ]
        sizes.append(float(torch.cat(parts).square().mean().sqrt()))
    return tuple(sizes)


# ------------------------------------------------------------------ the figure


def write_comparison(comparison: Comparison, folder: Path) -> None:
    """Writes the numbers and the figure; the same comparison gives the same bytes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        put_in_place(folder / NUMBERS, as_json(comparison.as_data()))
        save_figure(folder, (SVG, PNG), lambda: _drawn(comparison))
    except OSError as error:
        raise OutputError(
            _("cannot be written"), where=str(folder), found=error.strerror or str(error)
        ) from None


def _drawn(comparison: Comparison) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    depths = sorted({curve.depth for curve in comparison.curves})
    for curve in comparison.curves:
        shade = 0.35 + 0.65 * (depths.index(curve.depth) + 1) / len(depths)
        look = {
            "color": ("#1f5fa8" if curve.place == "pre" else "#b03a2e", shade),
            "linestyle": "-" if curve.place == "pre" else "--",
            "label": f"{curve.place}-LN, {curve.depth} layers",
        }
        places = [(layer + 1) / curve.depth for layer in range(curve.depth)]
        left.plot(places, curve.gradients, marker="o", markersize=3, **look)
        right.plot(range(1, comparison.steps + 1), curve.losses, linewidth=1.2, **look)
    left.set(title="gradients at initialisation", xlabel="layer / number of layers",
             ylabel="root mean square of a layer's gradients", yscale="log")  # fmt: skip
    right.set(title=f"learning at rate {comparison.rate:g}, without a warm-up", xlabel="step",
              ylabel="loss (nats a token)", ylim=(0, None))  # fmt: skip
    right.legend(frameon=False, fontsize="small")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
