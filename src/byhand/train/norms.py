"""Pre-norm against post-norm at growing depth: the numbers behind "why pre-LN won".

The same block, the same initial weights, the same texts; only the place of the norms differs.
What is measured: at initialisation, how large the gradient is in each layer; and what becomes of
the loss in a number of steps at one learning rate, without a warm-up.  With the norm after the
add, gradients at initialisation grow or shrink with the layer, and deep stacks do not get off the
ground without care; with the norm inside the side-trip they are nearly the same in every layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch
from torch.nn import functional

from byhand.files.normal import normal
from byhand.models import open_spec
from byhand.spec import NO_NORM, ModelSpec, Parameter, parameters
from byhand.train.batches import NOTHING, Texts
from byhand.train.corpora import open_corpus
from byhand.train.flat import Flat
from byhand.train.module import TorchModel
from byhand.train.run import Optimizer
from byhand.weights import Tensor, Weights

DEPTHS = (2, 4, 8, 16)
PLACES = ("pre", "post")


@dataclass(frozen=True)
class Curve:
    """One stack of blocks: where its norms stand, how deep it is, and what was measured."""

    place: str
    depth: int
    gradients: tuple[float, ...]  # root mean square over the matrices of each layer, at the start
    losses: tuple[float, ...]  # after each step

    @property
    def spread(self) -> float:
        """The largest gradient of a layer over the smallest."""
        return max(self.gradients) / min(self.gradients)


@dataclass(frozen=True)
class Comparison:
    """All curves, and how they came about."""

    data: str
    steps: int
    batch: int
    rate: float
    seed: int
    curves: tuple[Curve, ...]

    def as_data(self) -> dict[str, object]:
        """As JSON has it."""
        curves = [{**asdict(curve), "spread": curve.spread} for curve in self.curves]
        return {**asdict(self), "curves": curves}


def compare_norms(
    *,
    depths: Sequence[int] = DEPTHS,
    steps: int = 200,
    batch: int = 32,
    rate: float = 1e-3,
    seed: int = 1234,
    data: str = "verbs",
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Trains minigpt's block in stacks of each depth, once with each place of the norms."""
    curves = []
    for depth in depths:
        for place in PLACES:
            if progress:
                progress(place, depth, steps)
            curves.append(_curve(place, depth, steps, batch, rate, seed, data))
    return Comparison(data, steps, batch, rate, seed, tuple(curves))


def stack(place: str, depth: int) -> ModelSpec:
    """So many of minigpt's blocks; post-norm needs no final norm, its last block ends with one."""
    spec = open_spec("minigpt-init")
    block = replace(spec.blocks[0], norm_place=place)
    final = spec.final_norm if place == "pre" else NO_NORM
    return replace(spec, name=f"{place}-{depth}", blocks=(block,) * depth, final_norm=final)


def initial(spec: ModelSpec, seed: int) -> Weights:
    """Matrices of normal numbers with the deviation 0.02, gains of 1, biases of 0."""
    return Weights({p.name: Tensor(p.name, _entries(p, seed)) for p in parameters(spec)})


def _entries(parameter: Parameter, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    from fractions import Fraction

    if parameter.kind == "matrix":
        return normal(parameter.name, parameter.shape, Fraction(1, 50), seed)
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
