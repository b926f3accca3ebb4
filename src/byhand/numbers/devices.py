"""Torch's devices by name, and copies of arrays to them and back: no arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from ml_dtypes import bfloat16

from byhand.errors import InputError
from byhand.language import _

try:
    import torch
    from torch import Tensor
except ImportError:
    raise InputError(_("torch is not installed"), hint="pip install torch") from None

Data = npt.NDArray[Any]
BFLOAT16 = np.dtype(bfloat16)


def find_device(name: str) -> torch.device:
    """The device of this name, "cpu", "cuda" or "cuda:1"; an InputError where there is none."""
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    known = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    if device is None or device.type not in ("cpu", "cuda"):
        raise InputError(
            _("there is no device {name}").format(name=repr(name)),
            expected=", ".join(known),
            found=str(name),
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(
            _("this machine has no device {name} that torch can use").format(name=name),
            expected=", ".join(known),
            found=str(name),
            hint=_("a build of torch without CUDA sees no such device"),
        )
    return device


def from_numpy(array: Data) -> Tensor:
    """A copy of the array as a tensor; bfloat16 is copied by its bits."""
    if array.dtype == BFLOAT16:
        return torch.tensor(array.view(np.int16)).view(torch.bfloat16)
    return torch.tensor(array)


def to_numpy(tensor: Tensor) -> Data:
    """The tensor as an array on this machine."""
    here = tensor.detach().cpu()
    if here.dtype == torch.bfloat16:
        bits: Data = here.contiguous().view(torch.int16).numpy()
        return bits.view(BFLOAT16)
    array: Data = here.numpy()
    return array
