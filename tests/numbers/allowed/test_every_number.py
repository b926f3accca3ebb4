"""Activations of every single number of the 16-bit formats."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.tightness.libraries import Torch
from benchmarks.tightness.machines import KINDS
from benchmarks.tightness.ports import adverse, ports

from byhand.numbers.allowed import Allowed, Range


@pytest.mark.parametrize("format", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["relu", "gelu", "gelu_tanh", "silu", "quick_gelu"])
def test_any_program_is_allowed_at_every_number(format: str, kind: str) -> None:
    with np.errstate(invalid="ignore"):  # of the numbers that are none
        every = np.arange(1 << 16, dtype=np.uint16).view(KINDS[format]).astype(np.float64)
    x = every[np.isfinite(every)][None]
    numbers = Allowed(format)
    value = numbers.activate(Range(x), kind=kind)
    real = (*ports(format), *(Torch(format, fused=fused) for fused in (False, True)))
    for port in (*real, *adverse(format)):
        judged = numbers.judge(value, (), port.activate(x, kind))
        assert judged.follows, (port.name, x[judged.worst], judged.share)
