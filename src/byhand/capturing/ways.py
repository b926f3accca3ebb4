"""The ways in which a model computes, read off the model itself, as a precision names them.

flash attention → +flash      tensor parallel → +parallel:N      8-bit activations → +int8, +fp8
float32 products in TF32 → tf32      sums in float16 → +accumulate:float16
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from byhand.numbers.allowed.precisions import TRANSFORMERS, WAYS

FLASH = ("flash", "paged", "flex")  # in the name of an attention implementation
# in the name of a layer's class, or of its weight's: products of activations in 8 bits
IN_BYTES = {
    "int8": ("linear8bitlt", "dynamicquantizedlinear", "int8dynamicactivation", "w8a8int8"),
    "fp8": ("fp8linear", "float8linear", "float8dynamicactivation", "w8a8fp8"),
}
BY_TENSOR, BITS = "pertensor", 8


def with_ways(name: str | None, model: Any, attention: str | None) -> str | None:
    """The precision with the ways of the model; None stays None."""
    if name is None:
        return None
    base, plain = name, name.removeprefix(TRANSFORMERS)
    if plain == "float32" and _tf32(model):
        base = name.removesuffix(plain) + "tf32"
    found = [*_attention(plain, attention), *_sums(plain, model), *_bytes(model), *_parts(model)]
    return "+".join([base, *found])


def _attention(format: str, attention: str | None) -> Iterator[str]:
    if attention and any(word in attention for word in FLASH) and format != "float64":
        yield "flash"


def _on_gpu(model: Any) -> bool:
    return any(weight.device.type == "cuda" for weight in model.parameters())


def _tf32(model: Any) -> bool:
    """Whether products of float32 are worked out in TF32."""
    import torch

    return _on_gpu(model) and torch.get_float32_matmul_precision() != "highest"


def _sums(format: str, model: Any) -> Iterator[str]:
    """Sums that are kept in float16, where that is switched on."""
    import torch

    allowed = getattr(torch.backends.cuda.matmul, "allow_fp16_accumulation", False)
    if format.endswith("float16") and "bfloat16" not in format and allowed and _on_gpu(model):
        yield "accumulate:float16"


def _bytes(model: Any) -> Iterator[str]:
    """The 8-bit format that activations enter products in, by the names of layers' classes."""
    for module in model.modules():
        found = _scheme(module) or _class(module)
        if found is not None:
            way, by_tensor = found
            yield f"{way}:tensor" if by_tensor and f"{way}:tensor" in WAYS else way
            return


def _scheme(module: Any) -> tuple[str, bool] | None:
    """What the scheme of compressed-tensors says: the format, and whether one scale is for all."""
    scheme = getattr(module, "quantization_scheme", None)
    activations = getattr(scheme, "input_activations", None)
    if activations is None or getattr(activations, "num_bits", None) != BITS:
        return None
    kind, strategy = (str(getattr(activations, name, "")) for name in ("type", "strategy"))
    return ("fp8" if "float" in kind.lower() else "int8"), strategy.lower().endswith("tensor")


def _class(module: Any) -> tuple[str, bool] | None:
    """What the names of a layer's class and of its weight's class say."""
    names = [type(module).__name__, type(getattr(module, "weight", None)).__name__]
    told = "".join(names).lower().replace("_", "")
    for way, words in IN_BYTES.items():
        if any(word in told for word in words):
            static = getattr(module, "activation_scheme", None) == "static"  # of fp8: one scale
            return way, BY_TENSOR in told or static
    return None


def _parts(model: Any) -> Iterator[str]:
    """How many devices share the products: the size of the mesh that weights are spread over."""
    for weight in model.parameters():
        mesh = getattr(weight, "device_mesh", None)
        if mesh is not None and mesh.size() > 1:
            yield f"parallel:{mesh.size()}"
            return
