"""`byhand.capture`: what a torch model works out inside, recorded in one call.

    >>> capture = byhand.capture(model, input_ids)          # doctest: +SKIP
    >>> byhand.check("path/of/the/model", capture)        # doctest: +SKIP

The model runs once, unchanged, with a hook at every module that corresponds to a step: the modules
of `transformers` (gpt2, llama, mistral, qwen, gpt_neox), the hooks of TransformerLens, or any
modules with a map of names.  Nothing inside the model is replaced.  Values that no module returns
stay unknown (scores, queries after RoPE); keys after RoPE come from the cache, attention weights
from eager attention.  torch is imported only when a model is captured, never for a trace.

    captured   what was recorded, as claims or as a file      modules   names without wrappers
    recorder   what passes through the hooks
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from byhand.capturing.captured import IDS, Capture, joined
from byhand.capturing.recorder import length_of
from byhand.errors import UsageError
from byhand.language import _
from byhand.numbers.allowed.precisions import AUTOCAST, PLAIN, TRANSFORMERS

MASK, CACHE = "attention_mask", "past_key_values"
CAST = ("bfloat16", "float16")  # formats that autocast casts to
FEW = 0.5  # share of the modules run that are known; below it a warning says so
SHOWN = 4  # names in a message


def capture(
    model: Any,
    input_ids: Any = None,
    *,
    names: Mapping[str, str] | None = None,
    **inputs: Any,
) -> Capture:
    """Runs a torch model once; returns every inner value that corresponds to a step.

    `model` is one of `transformers`, or any module; it is called with `input_ids` and `inputs`.
    `names` maps modules to steps, where a module's own name is unknown: {"layers.3.ff":
    "block.3.mlp.out"}.  Dropout is off while it runs.  Wrappers of a model are ignored; a compiled
    model is run uncompiled.

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
    from byhand.capturing.modules import Modules
    from byhand.capturing.recorder import Recorder, as_ids, given_mask, running

    modules = Modules.of(model)
    modules.check(names or {})
    inner = modules.inner
    config = getattr(inner, "config", None)
    of_transformers = getattr(config, "model_type", None) is not None
    attention = getattr(config, "_attn_implementation", None)
    mask, pairs = given_mask(inputs.get(MASK), attention)
    recorder = Recorder(attention)
    arguments = [] if input_ids is None else [_batch(input_ids, model, of_transformers)]
    ids = arguments[0] if arguments else inputs.get(IDS)
    with running(model, modules, recorder, names or {}), _uncompiled(modules), torch.no_grad():
        result = model(*arguments, **inputs)
    cache = getattr(result, CACHE, None) or inputs.get(CACHE)
    new = int(getattr(ids, "shape", (0,))[-1])
    end = length_of(cache) or new
    recorder.add_cache(getattr(result, CACHE, None), end)
    _say_what_is_missing(recorder, modules, names or {})
    arrays, dtype = recorder.chosen(), _dtype(inner)
    return Capture(
        arrays,
        tokens=as_ids(ids),
        mask=mask,
        positions=recorder.positions,
        dtype=dtype,
        attention=attention,
        precision=_precision(arrays.values(), dtype, of_transformers),
        model=str(getattr(config, "_name_or_path", "") or type(inner).__name__),
        left_out=recorder.left_out,
        past=max(0, end - new),
        segments=recorder.looking.found(),
        pairs=pairs,
    )


def _torch() -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        raise UsageError(
            _("models are captured with torch, which is not installed"),
            hint="pip install 'byhand[train]'",
        ) from None
    return torch


@contextmanager
def _uncompiled(modules: Any) -> Iterator[None]:
    """Runs compiled modules uncompiled, with a warning: compiled code has no inner values."""
    if not modules.compiled:
        yield
        return
    import torch

    warnings.warn(_("the model is compiled: its eager run is recorded instead"), stacklevel=4)
    with torch.compiler.set_stance("force_eager"):
        yield


def _say_what_is_missing(recorder: Any, modules: Any, names: Mapping[str, str]) -> None:
    """Raises an error where nothing was recorded, and warns where it is little."""
    if not recorder.arrays:
        raise UsageError(
            _("no module of this model has a name that is known"),
            expected=_("modules of transformers, or hooks of TransformerLens"),
            found=", ".join(list(modules.named)[1:9]),
            hint=_('say which module gives which step: names={"layers.0.ff": "block.0.mlp.out"}'),
        )
    unknown = list(dict.fromkeys(recorder.unknown))
    known = len(recorder.known)
    if not names and known < FEW * (known + len(unknown)):
        shown = ", ".join(unknown[:SHOWN]) + ", …" * (len(unknown) > SHOWN)
        warnings.warn(
            _("only {known} of {count} modules have a known name; unknown are {others}").format(
                known=known, count=known + len(unknown), others=shown
            ),
            stacklevel=3,
        )


def _dtype(model: Any) -> str | None:
    """The float format of the weights."""
    formats = (weight.dtype for weight in model.parameters() if weight.is_floating_point())
    return next((str(format).removeprefix("torch.") for format in formats), None)


def _precision(arrays: Iterable[Any], dtype: str | None, of_transformers: bool) -> str | None:
    """The precision of the run, as `byhand check --precision` names it; None if it has no name.

    If weights are float32 and values have 16 bits, autocast was on.
    """
    formats = {str(array.dtype) for array in arrays}
    narrow = [name for name in CAST if name in formats]
    name = f"{AUTOCAST}{narrow[0]}" if dtype == "float32" and narrow else dtype
    if name not in PLAIN:
        return None
    return f"{TRANSFORMERS}{name}" if of_transformers else name


def _batch(ids: Any, model: Any, of_transformers: bool) -> Any:
    """The ids as a tensor on the model's device; models of transformers get a batch axis."""
    import torch

    device = next((parameter.device for parameter in model.parameters()), None)
    tensor = torch.as_tensor(ids, device=device)
    return tensor[None] if of_transformers and tensor.ndim == 1 else tensor


__all__ = ["Capture", "capture", "joined"]
