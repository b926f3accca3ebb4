"""`byhand.capture`: what a torch model works out inside, recorded in one call.

    >>> capture = byhand.capture(model, input_ids)          # doctest: +SKIP
    >>> byhand.check("path/of/the/model", capture)        # doctest: +SKIP

The model runs once, unchanged, with a hook at every module that corresponds to a step: the modules
of `transformers` (gpt2, llama, mistral, qwen, gpt_neox), the hooks of TransformerLens, or any
modules with a map of names.  Nothing inside the model is replaced.  Values that no module returns
stay unknown (scores, queries after RoPE); keys after RoPE come from the cache, attention weights
from eager attention.  torch is imported only when a model is captured, never for a trace.

With `backward=True` the loss is taken as well, and its gradients are recorded: of the values
inside, of the parameters, and on request one step of an optimizer.

    captured   what was recorded, as claims or as a file      modules   names without wrappers
    recorder   what passes through the hooks                  learning  what flows back
    runs       a run of the model, with its hooks
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from byhand.capturing.captured import Capture, joined
from byhand.errors import UsageError
from byhand.language import _


def capture(
    model: Any,
    input_ids: Any = None,
    *,
    names: Mapping[str, str] | None = None,
    backward: bool = False,
    labels: Any = None,
    loss: Callable[[Any], Any] | None = None,
    accumulate: int = 1,
    optimizer: Any = None,
    clip: float | None = None,
    **inputs: Any,
) -> Capture:
    """Runs a torch model once; returns every inner value that corresponds to a step.

    `model` is one of `transformers`, or any module; it is called with `input_ids` and `inputs`.
    `names` maps modules to steps, where a module's own name is unknown: {"layers.3.ff":
    "block.3.mlp.out"}.  Dropout is off while it runs.  Wrappers of a model are ignored; a compiled
    model is run uncompiled.

    `backward` records the gradients of the mean loss too: of the values inside, and of every
    parameter that is not frozen.  The loss is that of the `labels` (the text itself unless given;
    -100 does not count), or what `loss` makes of the model's result.  With `accumulate`, the rows
    of the batch run in so many parts, and the gradients of the parts are added up.  Gradients that
    the parameters have already are put aside: they are not counted.

    `optimizer` records one step of it: the running means before and after, and the new weights.
    `clip` is the norm that the gradients are clipped to before.  Model and optimizer are then put
    back as they were.

    >>> capture = byhand.capture(model, input_ids)  # doctest: +SKIP
    >>> byhand.check("path/of/the/model", capture)  # doctest: +SKIP
    """
    torch = _torch()
    if not isinstance(model, torch.nn.Module):
        raise UsageError(
            _("this is not a torch module"),
            expected=_("a model of transformers, or another torch module"),
            found=type(model).__name__,
        )
    from byhand.capturing.learning import Goal
    from byhand.capturing.runs import Run

    run = Run.of(model, names or {}, input_ids, inputs)
    if not backward and optimizer is None:
        with torch.no_grad():
            return run.forward()
    return run.backward(Goal(labels, loss, accumulate), optimizer, clip)


def _torch() -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        raise UsageError(
            _("models are captured with torch, which is not installed"),
            hint="pip install 'byhand[train]'",
        ) from None
    return torch


__all__ = ["Capture", "capture", "joined"]
