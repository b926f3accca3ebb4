"""`MiniGPT`: the class of one locked configuration, checked by a digest.

The digest covers every step of the plan for a full context, with its inputs and settings, and every
parameter with its shape.  If the architecture or the forward pass changes, making the class is an
error.
"""

from __future__ import annotations

import hashlib

from byhand import forward
from byhand.errors import InputError
from byhand.language import _
from byhand.models import open_model, open_spec
from byhand.parameters import parameters
from byhand.spec import ModelSpec
from byhand.train.module import TorchModel
from byhand.weights import Weights

NAME = "minigpt-init"
LOCKED = "5bbc948a60e436cd13de2b720483014fce34487232132acfc13a9155f01f3f6d"


def digest_of(spec: ModelSpec) -> str:
    """SHA-256 over everything that a model of this spec computes for a full context."""
    lines = [
        f"{step.address} {step.op} {sorted(step.inputs.items())} {step.shape} "
        f"{sorted((name, repr(value)) for name, value in step.attributes.items())}"
        for step in forward.plan(spec, spec.context or 1)
    ]
    lines += [f"{p.name} {p.shape} {p.kind}" for p in parameters(spec)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class MiniGPT(TorchModel):
    """103,680 parameters: d 64, 4 heads, 2 layers, d_ff 256, 64 tokens, context 32, RoPE, pre-LN.

    It has the weights given, or those of `minigpt-init`, which never change.

    >>> from byhand import MiniGPT  # needs torch
    >>> sum(weight.numel() for weight in MiniGPT().parameters())
    103680
    """

    def __init__(
        self, weights: Weights | None = None, *, format: str = "float32", device: str = "cpu"
    ) -> None:
        spec = open_spec(NAME)
        found = digest_of(spec)
        if found != LOCKED:
            raise InputError(
                _("MiniGPT is locked, and this is another model"), expected=LOCKED, found=found
            )
        start = open_model(NAME).weights if weights is None else weights
        super().__init__(spec, start, format=format, device=device)
