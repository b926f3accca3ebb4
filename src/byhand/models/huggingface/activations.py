"""Activation functions under the names of config.json."""

from __future__ import annotations

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "linear": "identity",
    "relu2": "relu2",
    "quick_gelu": "quick_gelu",
    "gelu_fast": "gelu_fast",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
}
