"""Every quantised format against an independent reader: equal to the bit.

    python benchmarks/quantised/readers.py [--seeds 10]
    python benchmarks/quantised/readers.py --record tests/models/recorded/quantised.safetensors

Needs torch, transformers, compressed-tensors and bitsandbytes; for GPTQ and AWQ also the sources of
auto_gptq and autoawq, in the folders that AUTO_GPTQ and AUTO_AWQ name.  The readers work in
float64, so that they round nothing, or in float32: byhand's exact numbers are then rounded once.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bitsandbytes.functional as bnb
import numpy as np
import torch
from bitsandbytes.backends.default.ops import _dequantize_4bit_compute
from bitsandbytes.backends.utils import _get_4bit_code
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import _convert_moe_packed_tensors

from byhand.files.mapped import open_tensors
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.quantised import unpacked

OUT, IN = 32, 64
Tensors = dict[str, torch.Tensor]


@dataclass
class Case:
    """One quantised matrix, and what another library makes of it."""

    name: str
    config: dict[str, Any]
    tensors: Tensors
    reference: torch.Tensor  # float64: exact; float32: byhand's numbers are rounded to it
    module: str = "m.weight"


class Maker:
    """Random and adversarial codes and scales."""

    def __init__(self, seed: int) -> None:
        self.random = torch.Generator().manual_seed(seed)
        self.seed = seed

    def whole(self, low: int, high: int, *shape: int) -> torch.Tensor:
        """Whole numbers, each possible one first."""
        found = torch.randint(low, high, shape, generator=self.random)
        every = torch.arange(low, high)[: found.numel()]
        flat = found.reshape(-1)
        flat[: len(every)] = every
        return flat[torch.randperm(flat.numel(), generator=self.random)].reshape(shape)

    def words(self, *shape: int) -> torch.Tensor:
        """Words of 32 bits, all of them possible."""
        return torch.randint(-(2**31), 2**31, shape, generator=self.random).to(torch.int32)

    def scales(self, dtype: torch.dtype, *shape: int) -> torch.Tensor:
        """Scales of every size that the format has: subnormal, huge, negative, powers of 2."""
        info = torch.finfo(dtype)
        exponents = torch.randint(-12, 4, shape, generator=self.random)
        found = torch.randn(shape, generator=self.random, dtype=torch.float64) * 2.0**exponents
        found = found.to(dtype)
        odd = [info.smallest_normal, info.tiny / 4, -info.tiny, 1.0, 2.0**-10, info.max / 2**18]
        odd += [-0.0, 0.0]
        flat = found.reshape(-1)
        if self.seed % 2 and flat.numel() > len(odd):
            flat[: len(odd)] = torch.tensor(odd, dtype=torch.float64).to(dtype)
        return found


def fp8(make: Maker) -> Iterator[Case]:
    """Float8 by tensor, row and block: torch's own conversion, times the scale in float64."""
    for kind in (torch.float8_e4m3fn, torch.float8_e5m2):
        octets = make.whole(0, 256, OUT, IN).to(torch.uint8)
        codes = octets.view(kind)
        codes = torch.where(codes.double().isfinite(), octets, 0x80).to(torch.uint8).view(kind)
        for way, shape in {"tensor": (), "row": (OUT, 1), "block": (3, -(-IN // 24))}.items():
            for dtype in (torch.float32, torch.bfloat16):
                scale = make.scales(dtype, *shape)
                spread = scale.double()
                config: dict[str, Any] = {"quant_method": "fp8", "activation_scheme": "dynamic"}
                if way == "block":
                    config["weight_block_size"] = [12, 24]
                    spread = spread.repeat_interleave(12, 0).repeat_interleave(24, 1)[:OUT, :IN]
                suffix = "_scale_inv" if way == "block" else "_scale"
                tensors = {"m.weight": codes, "m.weight" + suffix: scale}
                name = f"fp8 {str(kind)[13:]} {way} {str(dtype)[6:]}"
                yield Case(name, config, tensors, codes.double() * spread)


def mxfp4(make: Maker) -> Iterator[Case]:
    """gpt-oss experts: transformers' conversion in float32."""
    blocks = make.whole(0, 256, 3, OUT, 2, 16).to(torch.uint8)
    scales = make.whole(0, 252, 3, OUT, 2).to(torch.uint8)
    reference = _convert_moe_packed_tensors(blocks, scales, dtype=torch.float64)
    tensors = {"m.gate_up_proj_blocks": blocks, "m.gate_up_proj_scales": scales}
    yield Case("mxfp4", {"quant_method": "mxfp4"}, tensors, reference, "m.gate_up_proj")


def gptq(make: Maker) -> Iterator[Case]:
    """auto_gptq's QuantLinear on the unit matrix, in float64."""
    module = _source("AUTO_GPTQ", "auto_gptq/nn_modules/qlinear/qlinear_cuda.py", GPTQ_STUBS)
    for bits in (2, 3, 4, 8):
        for ordered in (False, True):
            for size in (16, -1):
                groups = IN // size if size > 0 else 1
                order = torch.arange(IN) // (size if size > 0 else IN)
                if ordered:
                    order = order[torch.randperm(IN, generator=make.random)]
                tensors = {
                    "m.qweight": make.words(IN * bits // 32, OUT),
                    "m.qzeros": make.words(groups, OUT * bits // 32),
                    "m.scales": make.scales(torch.float16, groups, OUT),
                    "m.g_idx": order.to(torch.int32),
                }
                layer = module.QuantLinear(bits, size, IN, OUT, bias=False)
                layer.qweight, layer.qzeros = tensors["m.qweight"], tensors["m.qzeros"]
                layer.scales, layer.g_idx = tensors["m.scales"].double(), tensors["m.g_idx"]
                config = {
                    "quant_method": "gptq", "bits": bits, "group_size": size, "desc_act": ordered,
                }  # fmt: skip
                name = f"gptq {bits} group {size}{' act-order' * ordered}"
                yield Case(name, config, tensors, layer(torch.eye(IN).double()).T)


def awq(make: Maker) -> Iterator[Case]:
    """autoawq's dequantize_gemm, in float64."""
    module = _source("AUTO_AWQ", "awq/utils/packing_utils.py", {})
    for size in (16, 32):
        tensors = {
            "m.qweight": make.words(IN, OUT // 8),
            "m.qzeros": make.words(IN // size, OUT // 8),
            "m.scales": make.scales(torch.float16, IN // size, OUT),
        }
        qweight, qzeros, scales = tensors.values()
        reference = module.dequantize_gemm(qweight, qzeros, scales.double(), 4, size).T
        config = {"quant_method": "awq", "bits": 4, "group_size": size, "version": "gemm"}
        yield Case(f"awq group {size}", config, tensors, reference)


def compressed(make: Maker) -> Iterator[Case]:
    """compressed-tensors' own decompress; its scales in float64."""
    schemes: list[tuple[str, dict[str, Any]]] = []
    for bits in (2, 3, 4, 8):
        for strategy in ({"strategy": "group", "group_size": 16}, {"strategy": "channel"}):
            for symmetric in (True, False):
                plan = {"num_bits": bits, "symmetric": symmetric, **strategy}
                schemes.append(("pack-quantized", plan))
    schemes += [
        ("int-quantized", {"num_bits": 8, "strategy": "channel", "symmetric": False}),
        ("int-quantized", {"num_bits": 8, "strategy": "tensor"}),
        ("naive-quantized", {"num_bits": 4, "strategy": "group", "group_size": 16}),
        ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "tensor"}),
        ("float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel"}),
        ("float-quantized",
         {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [16, 32]}),
        ("nvfp4-pack-quantized",
         {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}),
        ("mxfp4-pack-quantized",
         {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}),
        ("mxfp8-quantized",
         {"num_bits": 8, "type": "float", "strategy": "group", "group_size": 32}),
    ]  # fmt: skip
    for format, weights in schemes:
        yield _compressed(make, format, weights)


def _compressed(make: Maker, format: str, weights: dict[str, Any]) -> Case:
    scheme = QuantizationScheme(
        targets=["Linear"], weights=QuantizationArgs(**weights), format=format
    )
    bits, inputs = weights["num_bits"], IN
    if format == "pack-quantized" and bits == 3:
        inputs = 96  # a shape that says how it was packed
    grid = {
        "tensor": (1,), "channel": (OUT, 1), "block": (2, IN // 32),
    }.get(weights["strategy"], (OUT, inputs // weights.get("group_size", 1)))  # fmt: skip
    own: Tensors = {}
    dtype = (torch.float16, torch.bfloat16, torch.float32)[make.seed % 3]
    own["weight_scale"] = make.scales(dtype, *grid)
    if format == "pack-quantized":
        own["weight_packed"] = make.words(OUT, -(-inputs * bits // 32))
        own["weight_shape"] = torch.tensor([OUT, inputs])
        if not weights["symmetric"]:
            own["weight_zero_point"] = make.words(OUT * bits // 32, grid[1])
    elif "fp4" in format:
        own["weight_packed"] = make.whole(0, 256, OUT, IN // 2).to(torch.uint8)
        own["weight_scale"] = make.whole(0, 246, *grid).to(torch.uint8)
        if format.startswith("nvfp4"):
            codes = make.whole(1, 127, *grid).to(torch.uint8)
            own["weight_scale"] = codes.view(torch.float8_e4m3fn)
            own["weight_global_scale"] = torch.tensor([317.25 + make.seed])
    elif weights.get("type") == "float":
        octets = make.whole(0, 127, OUT, IN) + 128 * make.whole(0, 2, OUT, IN)
        own["weight"] = octets.to(torch.uint8).view(torch.float8_e4m3fn)
        if format.startswith("mxfp8"):
            own["weight_scale"] = make.whole(0, 246, *grid).to(torch.uint8)
    else:
        own["weight"] = make.whole(-(2 ** (bits - 1)), 2 ** (bits - 1), OUT, IN).to(torch.int8)
        if not weights.get("symmetric", True):
            own["weight_zero_point"] = make.whole(-100, 100, *grid).to(torch.int8)
    config = {
        "quant_method": "compressed-tensors", "format": format, "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
    }  # fmt: skip
    name = f"{format} {bits} {weights['strategy']}{' zeros' * ('weight_zero_point' in own)}"
    tensors = {f"m.{key}": value for key, value in own.items()}
    return Case(f"{name}", config, tensors, _decompressed(own, scheme, format))


def _decompressed(own: Tensors, scheme: QuantizationScheme, format: str) -> torch.Tensor:
    """The library's decompress, or its dequantize where it would round the scales."""
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    if "fp4" in format:
        codes = unpack_fp4_from_uint8(own["weight_packed"], OUT, IN).double()
    elif format.startswith("mxfp8"):
        codes = own["weight"].double()
    else:
        wide = {**own, "weight_scale": own["weight_scale"].double()}
        return BaseCompressor.get_value_from_registry(format).decompress(wide, scheme)["weight"]
    scale = own["weight_scale"]
    scale = 2.0 ** (scale.double() - 127) if scale.dtype == torch.uint8 else scale.double()
    over = own["weight_global_scale"].double() if "weight_global_scale" in own else None
    return dequantize(codes, scale, None, scheme.weights, torch.float64, over)


def bitsandbytes(make: Maker) -> Iterator[Case]:
    """bitsandbytes' quantize_4bit and dequantize_4bit, in float32; rows of int8."""
    for kind in ("nf4", "fp4"):
        for nested in (False, True):
            matrix = torch.randn(OUT, IN, generator=make.random)
            matrix *= 2.0 ** torch.randint(-30, 20, (OUT, 1), generator=make.random)
            if make.seed % 2:
                matrix[3] = 0.0
            packed, state = bnb.quantize_4bit(
                matrix, blocksize=64, compress_statistics=nested, quant_type=kind
            )
            packed = make.whole(0, 256, *packed.shape).to(torch.uint8)
            own = {f"m.weight.{key}": value for key, value in state.as_dict(packed=True).items()}
            tensors = {"m.weight": packed, **own}
            config = {"quant_method": "bitsandbytes", "load_in_4bit": True}
            reference = bnb.dequantize_4bit(packed, state)
            if IN % 64:  # its CPU kernel takes other blocks there than its portable code
                reference = _portable(packed, state, kind)
            yield Case(f"{kind}{' nested' * nested}", config, tensors, reference)
    codes = make.whole(-128, 128, OUT, IN).to(torch.int8)
    rows = make.scales(torch.float32, OUT)
    tensors = {"m.weight": codes, "m.SCB": rows, "m.weight_format": torch.tensor(0).to(torch.uint8)}
    config = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    reference = codes.double() * rows.double()[:, None] / 127
    yield Case("int8", config, tensors, reference)


def _portable(packed: torch.Tensor, state: Any, kind: str) -> torch.Tensor:
    tops = state.absmax
    if state.nested:
        tops = bnb.dequantize_blockwise(state.absmax, state.state2) + state.offset
    table = _get_4bit_code(kind, packed.device)
    octets, block = packed.reshape(-1), state.blocksize
    return _dequantize_4bit_compute(octets, tops, table, block, (OUT, IN), torch.float32)


GPTQ_STUBS = {"autogptq_cuda_64": None, "autogptq_cuda_256": None}


def _source(variable: str, path: str, stubs: dict[str, Any]) -> Any:
    """One file of another project, without the rest of its package."""
    sys.modules.update(dict.fromkeys(stubs, None))
    file = Path(os.environ[variable]) / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FORMATS: tuple[Callable[[Maker], Iterator[Case]], ...] = (
    fp8, mxfp4, gptq, awq, compressed, bitsandbytes,
)  # fmt: skip


def ours(case: Case) -> np.ndarray[Any, Any]:
    """byhand's numbers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save_file({k: v.contiguous() for k, v in case.tensors.items()}, path)
        config = Config(path, {"quantization_config": case.config})
        found, _notes = unpacked(config, open_tensors(path), str(path), False)
        assert set(found) == {case.module}, set(found)
        return np.array(found[case.module].finite())


def same(case: Case) -> tuple[int, int]:
    """How many numbers differ from the reader's, and how many there are."""
    found, reference = ours(case), case.reference.numpy()
    assert found.shape == reference.shape, (case.name, found.shape, reference.shape)
    assert reference.any(), case.name
    if found.dtype == object:
        found = np.array([float(each) for each in found.flat]).reshape(found.shape)
        near = np.abs(found - reference) <= 2.0**-51 * np.abs(reference)  # the reader divides
        return int((~near).sum()), found.size
    wide = found.astype(np.float64)
    if case.name.startswith("gptq"):  # its product with the unit matrix forgets the sign of 0
        wide, reference = wide + 0.0, reference + 0.0
    if reference.dtype == np.float32:
        with np.errstate(over="ignore"):
            wide = wide.astype(np.float32)
    bits = f"u{wide.itemsize}"
    return int((wide.view(bits) != np.ascontiguousarray(reference).view(bits)).sum()), found.size


RECORDED = {
    "fp8 e4m3fn tensor float32", "fp8 e4m3fn row bfloat16", "fp8 e4m3fn block float32",
    "fp8 e5m2 block bfloat16", "mxfp4", "gptq 2 group 16", "gptq 3 group 16 act-order",
    "gptq 4 group 16 act-order", "gptq 4 group -1", "gptq 8 group 16", "awq group 16",
    "pack-quantized 4 group", "pack-quantized 4 group zeros", "pack-quantized 8 channel zeros",
    "pack-quantized 3 channel", "int-quantized 8 channel zeros", "naive-quantized 4 group",
    "float-quantized 8 channel", "float-quantized 8 block", "nvfp4-pack-quantized 4 tensor_group",
    "mxfp4-pack-quantized 4 group", "mxfp8-quantized 8 group", "nf4", "nf4 nested", "fp4",
    "fp4 nested", "int8",
}  # fmt: skip


def record(path: Path) -> None:
    """Writes one small case of each kind: what the tests compare with."""
    global IN
    IN = 32
    tensors: Tensors = {}
    configs: dict[str, str] = {}
    for format in FORMATS:
        for case in format(Maker(1)):
            if case.name not in RECORDED:
                continue
            assert same(case)[0] == 0, case.name
            configs[case.name] = json.dumps({"config": case.config, "module": case.module})
            for name, tensor in case.tensors.items():
                tensors[f"{case.name}/{name}"] = tensor.clone().contiguous()
            tensors[f"{case.name}/reference"] = case.reference.clone().contiguous()
    save_file(tensors, path, configs)


def main() -> None:
    """Compares, or records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--record", type=Path)
    said = parser.parse_args()
    if said.record:
        record(said.record)
        return
    totals: dict[str, list[int]] = {}
    for seed in range(said.seeds):
        for format in FORMATS:
            for case in format(Maker(seed)):
                differ, size = same(case)
                line = totals.setdefault(case.name, [0, 0])
                line[0] += differ
                line[1] += size
    for name, (differ, size) in totals.items():
        print(f"{name:45} {size:8,} numbers, {differ} differ")
    print(f"{sum(each[1] for each in totals.values()):,} numbers of {len(totals)} formats")
    sys.exit(any(each[0] for each in totals.values()))


if __name__ == "__main__":
    main()
