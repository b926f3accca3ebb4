"""Quantised folders run by transformers, captured and judged: a correct run raises no alarm.

    python benchmarks/quantised/engines.py [--seeds 6]

A random Llama is quantised and saved by bitsandbytes (nf4, fp4, double quantised or not, int8) and
by compressed-tensors (4 bits in groups, int8 and float8 with activations in 8 bits); float8 blocks
and their folder are written here.  transformers loads each folder on the CPU and runs it.  byhand
opens the same folder and checks what the run captured.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file

import byhand

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
SIZES = {
    "vocab_size": 40, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 256, "max_position_embeddings": 64,
}  # fmt: skip


def llama(seed: int, dtype: torch.dtype) -> Any:
    """A random model."""
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(**SIZES, tie_word_embeddings=False)
    model = transformers.LlamaForCausalLM(config).to(dtype).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    return model


def bitsandbytes(folder: Path, seed: int, dtype: torch.dtype, **options: Any) -> None:
    """Saved by transformers and bitsandbytes."""
    llama(seed, dtype).save_pretrained(folder / "plain")
    four = {"bnb_4bit_compute_dtype": dtype} if "load_in_4bit" in options else {}
    config = transformers.BitsAndBytesConfig(**options, **four)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder / "plain", quantization_config=config, dtype=dtype
    )
    model.save_pretrained(folder / "quantised")


def float8(folder: Path, seed: int, dtype: torch.dtype) -> None:
    """Blocks of 128 × 128 with scales in float32, as DeepSeek and Qwen have them."""
    model = llama(seed, dtype)
    model.save_pretrained(folder / "quantised")
    path = folder / "quantised" / "model.safetensors"
    tensors = load_file(path)
    for name in [name for name in tensors if name.endswith("_proj.weight")]:
        matrix = tensors[name].float()
        rows, columns = (-(-side // 128) for side in matrix.shape)
        scales = torch.empty(rows, columns)
        codes = torch.empty(matrix.shape, dtype=torch.float8_e4m3fn)
        for r in range(rows):
            for c in range(columns):
                part = (slice(128 * r, 128 * r + 128), slice(128 * c, 128 * c + 128))
                scales[r, c] = matrix[part].abs().max() / 448
                codes[part] = (matrix[part] / scales[r, c]).to(torch.float8_e4m3fn)
        tensors[name], tensors[f"{name}_scale_inv"] = codes, scales
    save_file(tensors, path, {"format": "pt"})
    _configure(folder / "quantised", {
        "quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic",
    })  # fmt: skip


def compressed(folder: Path, seed: int, dtype: torch.dtype, format: str, **group: Any) -> None:
    """Saved as compressed-tensors' own compressors write it."""
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    weights = QuantizationArgs(**group["weights"])
    scheme = QuantizationScheme(targets=["Linear"], weights=weights, format=format)
    model = llama(seed, dtype)
    model.save_pretrained(folder / "quantised")
    path = folder / "quantised" / "model.safetensors"
    tensors = load_file(path)
    for name in [name for name in tensors if name.endswith("_proj.weight")]:
        matrix, stem = tensors.pop(name), name.removesuffix(".weight")
        size = weights.group_size or matrix.shape[1]
        top = {"int": 2 ** (weights.num_bits - 1) - 1, "float": 448}[
            group["weights"].get("type", "int")
        ]
        scale = matrix.float().reshape(len(matrix), -1, size).abs().amax(-1) / top
        own = {"weight": matrix, "weight_scale": scale.to(dtype)}
        made = BaseCompressor.get_value_from_registry(format).compress(own, scheme)
        tensors |= {f"{stem}.{key}": value for key, value in made.items()}
    save_file({k: v.contiguous() for k, v in tensors.items()}, path, {"format": "pt"})
    _configure(folder / "quantised", {
        "quant_method": "compressed-tensors", "format": format, "ignore": ["lm_head"],
        "quantization_status": "compressed",
        "config_groups": {"group_0": {"targets": ["Linear"], **group}},
    })  # fmt: skip


def _configure(folder: Path, quantisation: dict[str, Any]) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = quantisation
    (folder / "config.json").write_text(json.dumps(config))


Writer = Callable[[Path, int, torch.dtype], None]
FOUR = {"load_in_4bit": True}
GROUPED = {"num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": True}
BY_ROW = {"num_bits": 8, "strategy": "channel", "symmetric": True}
FORMATS: dict[str, Writer] = {
    "nf4": lambda *a: bitsandbytes(*a, **FOUR, bnb_4bit_quant_type="nf4"),
    "nf4 nested": lambda *a: bitsandbytes(
        *a, **FOUR, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True
    ),
    "fp4": lambda *a: bitsandbytes(*a, **FOUR, bnb_4bit_quant_type="fp4"),
    "int8 rows": lambda *a: bitsandbytes(*a, load_in_8bit=True),
    "fp8 blocks": float8,
    "pack-quantized": lambda *a: compressed(*a, "pack-quantized", weights=GROUPED),
    "int-quantized w8a8": lambda *a: compressed(
        *a, "int-quantized", weights=BY_ROW,
        input_activations={"num_bits": 8, "strategy": "token", "dynamic": True},
    ),
    "float-quantized w8a8": lambda *a: compressed(
        *a, "float-quantized", weights={**BY_ROW, "type": "float"},
        input_activations={"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True},
    ),
}  # fmt: skip


def judged(name: str, seed: int, dtype: torch.dtype) -> tuple[str, Any]:
    """The precision that was read off the run, and the marking of what it captured."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        FORMATS[name](folder, seed, dtype)
        path = folder / "quantised"
        model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=dtype).eval()
        for module in model.modules():  # else bitsandbytes works in bfloat16, whatever the format
            if hasattr(module, "support_avx512bf16_for_cpu"):
                module.support_avx512bf16_for_cpu = False
        ids = torch.randint(0, 40, (1, 9), generator=torch.Generator().manual_seed(seed))
        captured = byhand.capture(model, ids)
        marking = byhand.check(path, captured)
        return marking.texts[0].precision, marking


def main() -> None:
    """Prints a line for each format and dtype."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--only", default="")
    said = parser.parse_args()
    for name in FORMATS:
        if said.only not in name:
            continue
        for dtype in (torch.float32, torch.bfloat16):
            alarms, lines, precision, first = 0, 0, "", ""
            for seed in range(said.seeds):
                precision, marking = judged(name, seed, dtype)
                lines += len(list(marking))
                if not marking.follows:
                    alarms += 1
                    first = first or str(marking.first_error)
            print(f"{name:22} {precision:34} {lines:5} lines, {alarms} runs with an alarm {first}")


if __name__ == "__main__":
    main()
