"""Quantised weights in safetensors: codes and scales, read as the exact numbers they stand for.

`unpacked` reads quantization_config and puts one tensor in the place of the several that hold its
codes, zero points and scales; what is not quantised stays as it is.  No number is worked out before
it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from byhand.errors import InputError, nearest
from byhand.files.mapped import Stored, shown
from byhand.language import _
from byhand.models.huggingface.config import Config, read_json
from byhand.models.huggingface.quantised.bnb import read_bitsandbytes
from byhand.models.huggingface.quantised.choice import matched, names_in
from byhand.models.huggingface.quantised.compressed import read_compressed
from byhand.models.huggingface.quantised.fp8 import read_fp8
from byhand.models.huggingface.quantised.gptq import read_awq, read_gptq
from byhand.models.huggingface.quantised.matrix import Parts, Quantised
from byhand.models.huggingface.quantised.mxfp4 import read_mxfp4

__all__ = ["Quantised", "unpacked"]

KEY = "quantization_config"
METHODS: dict[str, Callable[[Config, Parts], Iterator[Quantised]]] = {
    "fp8": read_fp8,
    "fbgemm_fp8": read_fp8,
    "mxfp4": read_mxfp4,
    "gptq": read_gptq,
    "awq": read_awq,
    "compressed-tensors": read_compressed,
    "bitsandbytes": read_bitsandbytes,
}
BESIDE = {"quantize_config.json": "gptq", "quant_config.json": "awq"}  # of auto_gptq and autoawq
SKIPPED = ("modules_to_not_convert", "ignore", "llm_int8_skip_modules")
# Scales by which engines quantise activations and caches; no weight reads them.
ACTIVATIONS = re.compile(
    r".*\.((input|output|activation)_(scale|zero_point|global_scale)(_ub)?|[qkv]_scale"
    r"|[kv]_proj\.(output|[kv])_scale)"
)


def unpacked(
    config: Config, stored: Mapping[str, Stored], where: str, turned: bool
) -> tuple[dict[str, Stored | Quantised], tuple[str, ...]]:
    """The tensors of a folder, quantised ones put together, and notes on what is left out.

    `turned`: the family stores its matrices as (in, out), which quantised ones are not.
    """
    table = config.within(KEY) or _beside(config.path.parent)
    if table is None:
        return dict(stored), ()
    read = _method(table)
    skipped = [name for key in SKIPPED for name in names_in(table, key)]
    parts = Parts(stored, where)
    found: dict[str, Stored | Quantised] = {}
    for tensor in read(table, parts):
        module = tensor.name.removesuffix(".weight")
        if (name := matched(module, skipped, table, SKIPPED[0])) is not None:
            raise _quantised_though_skipped(tensor, name, table)
        if tensor.name in parts.left or tensor.name in found:
            raise InputError(
                _("the tensor {name} is stored twice").format(name=shown(tensor.name)),
                where=where,
                expected=_("either its numbers or its codes"),
                found=", ".join(shown(part.name) for part in tensor.made_of),
            )
        square = turned and len(tensor.shape) == 2 and module != "lm_head"
        found[tensor.name] = tensor.turned() if square else tensor
    scales = [name for name in parts.left if ACTIVATIONS.fullmatch(name)]
    plain = {name: part for name, part in parts.left.items() if name not in set(scales)}
    return {**plain, **found}, _notes(scales)


def _beside(folder: Path) -> Config | None:
    """The settings in a file of their own, as older folders have them."""
    for name, method in BESIDE.items():
        if (folder / name).is_file():
            return Config(folder / name, {"quant_method": method, **read_json(folder / name)})
    return None


def _method(table: Config) -> Callable[[Config, Parts], Iterator[Quantised]]:
    key, method = table.value("quant_method", None)
    if method is None and any(table.value(f"load_in_{bits}bit", False)[1] for bits in (4, 8)):
        method = "bitsandbytes"
    if not isinstance(method, str) or method not in METHODS:
        words = method[:80] if isinstance(method, str) else ""
        raise table.refuse(
            key,
            ", ".join(METHODS),
            method,
            message=_("byhand does not read weights quantised by {method}").format(
                method=shown(method)
            ),
            hint=nearest(words, METHODS),
        )
    return METHODS[method]


def _quantised_though_skipped(tensor: Quantised, name: str, table: Config) -> InputError:
    return InputError(
        _("config.json leaves {name} as it is, but its weights are quantised").format(
            name=shown(name)
        ),
        where=tensor.where,
        expected=shown(tensor.name),
        found=", ".join(shown(part.name) for part in tensor.made_of),
        hint=f"{table.path}: {table.prefix.rstrip('.')}",
    )


def _notes(scales: list[str]) -> tuple[str, ...]:
    if not scales:
        return ()
    text = _(
        "the folder has scales for quantised activations ({name}, …): here activations are not "
        "rounded"
    )
    return (text.format(name=shown(scales[0])),)
