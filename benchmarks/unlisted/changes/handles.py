"""Handles on a port: a value changed where it is filed, a part changed in one block, a matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks.planted.families import Gpt2
from benchmarks.planted.port import Port

Turn = Callable[[Tensor], Tensor]
ENDS = ("embed.", "stream.", "final.", "logits", "probs", "next", "block.")


def after(port: Port, step: str, turn: Turn, layers: Sequence[int] | None = None) -> None:
    """The value of a step is changed before it is filed and read; None: in every block."""
    blocks = port.layers if layers is None else layers
    names = {step} if step.startswith(ENDS) else {f"block.{each}.{step}" for each in blocks}
    usual = port.keep
    port.instead(
        keep=lambda address, value: usual(address, turn(value) if address in names else value)
    )


def before(port: Port, part: str, turn: Callable[..., Any], layer: int | None = None) -> None:
    """A part reads other inputs than those that were filed: `turn` gives all of them."""
    inside(port, layer, part, lambda usual: lambda *inputs: usual(*turn(*inputs)))


def inside(port: Port, layer: int | None, part: str, wrong: Callable[[Any], Any]) -> None:
    """`wrong`, given the usual part, is the part; in one block, or with None everywhere."""
    if layer is None:
        port.instead(**{part: wrong(getattr(port, part))})
        return
    usual = port.block

    def block(at: str, x: Tensor) -> Tensor:
        if at != f"block.{layer}":
            return usual(at, x)
        own = getattr(port, part)
        port.instead(**{part: wrong(own)})
        found = usual(at, x)
        port.instead(**{part: own})
        return found

    port.instead(block=block)


def matrix(port: Port, name: str, edit: Callable[[Tensor], object]) -> None:
    """A weight is changed in place by `edit`, which sees matrices as (outputs, inputs)."""
    own = port.w[name].clone()
    turned = isinstance(port, Gpt2) and own.ndim == 2 and name.startswith("block.")
    edit(own.T if turned else own)
    port.w[name] = own


def replaced(port: Port, name: str, turn: Turn) -> None:
    """A weight is replaced by what `turn` makes of it, as (outputs, inputs)."""

    def edit(own: Tensor) -> None:
        own.copy_(turn(own.clone()))

    matrix(port, name, edit)


def every(port: Port, ending: str) -> list[str]:
    """The weights of all blocks with this ending."""
    return [f"block.{layer}.{ending}" for layer in port.layers]


def of_text(port: Port, number: int = 0) -> torch.Generator:
    """Chance that is another one for every text."""
    return torch.Generator().manual_seed(1000 * number + int(port.ids.sum()))


def fixed(number: int) -> torch.Generator:
    """Chance that is the same for every text, as in a file."""
    return torch.Generator().manual_seed(number)


def with_row(x: Tensor, row: int, value: Tensor | float, axis: int = -2) -> Tensor:
    """The same with one row (position, channel, head) of another value."""
    own = x.clone()
    own.select(axis, row).copy_(
        torch.as_tensor(value, dtype=x.dtype).expand_as(own.select(axis, row))
    )
    return own


def exchanged(x: Tensor, one: int, other: int, axis: int = -2) -> Tensor:
    """The same with two rows (positions, channels, heads) in each other's place."""
    order = torch.arange(x.shape[axis])
    order[one], order[other] = other, one
    return x.index_select(axis, order)
