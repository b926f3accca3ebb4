"""The transformers library in float64 throughout: what it casts to float32 is not cast.

Norms, softmax and RoPE are worked out in float32 whatever the dtype of a model is.  Within `lifted`
each such cast is one to float64, while a model is made as well as while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

NARROW = (torch.float32, torch.bfloat16, torch.float16)
CASTS = (torch.Tensor.float, torch.Tensor.bfloat16, torch.Tensor.half)


class _Lifted(TorchFunctionMode):
    """Every cast to a narrower float is one to float64."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if function in CASTS:
            return args[0].double()
        wide = {key: _wide(value) for key, value in (kwargs or {}).items()}
        if function in (torch.Tensor.to, torch.Tensor.type, torch.Tensor.view):
            args = (args[0], *map(_wide, args[1:]))
        return function(*args, **wide)


def _wide(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in NARROW else value


@contextmanager
def lifted() -> Iterator[None]:
    """Torch with float64 for float32, as the dtype of new tensors too."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Lifted():
            yield
    finally:
        torch.set_default_dtype(before)
