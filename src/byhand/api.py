"""`byhand.trace` and `byhand.count`: the whole job in one call, from a name to the result."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from byhand import evaluate
from byhand.counting import Inventory
from byhand.counting import count as count_parameters
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import Numbers
from byhand.spec import ModelSpec
from byhand.tracing import Trace


def trace(
    model: str | Path | Model,
    text: str | None = None,
    *,
    decimals: int | None = None,
    target: str | None = None,
    only: Iterable[str] = (),
    heads: bool = False,
    progress: evaluate.Progress | None = None,
) -> Trace:
    """Every number from the text to the next token: exact, or rounded to `decimals` line by line.

    `model` is a built-in name, a model file or a Model; without a text, its own is taken.
    `target` asks for the loss, `only` for some steps and what they need, `heads` for each head's
    own part of the attention output.
    """
    opened = model if isinstance(model, Model) else open_model(model)
    return evaluate.trace(
        opened,
        text,
        numbers_for(decimals),
        target=target,
        only=(only,) if isinstance(only, str) else only,
        head_outputs=heads,
        progress=progress,
    )


def numbers_for(decimals: int | None) -> Numbers:
    """The exact number system, or the pencil that rounds to so many decimals."""
    if decimals is None:
        from byhand.numbers.exact import Exact

        return Exact()
    from byhand.numbers.pencil import Pencil

    return Pencil(decimals)


def count(model: str | Path | Model | ModelSpec) -> Inventory:
    """The parameters of a model, to the digit, by component and with formulas.

    `model` is a built-in name, a model file, a Model, or an architecture without weights.
    """
    if isinstance(model, ModelSpec):
        return count_parameters(model)
    opened = model if isinstance(model, Model) else open_model(model)
    return count_parameters(opened.spec, opened.weights)
