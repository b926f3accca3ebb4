"""Floats on torch tensors: for large models, other devices, training.

Nothing is changed in place and no value is read on the way, so gradients flow from every step to
the admitted tensors, also through the steps of a backward pass.  bfloat16 and float16 products are
torch's own; norms, softmax, sums, activations and RoPE are done in float32 and each entry of the
result is rounded once.
"""

import byhand.numbers.devices  # noqa: F401 - first: it says what to do where torch is missing
from byhand.numbers.tensors.operations import Tensors
from byhand.numbers.tensors.system import Masked

__all__ = ["Masked", "Tensors"]
