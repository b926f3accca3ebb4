"""Small Llama folders in every quantised format, packed here by code of its own.

`packed` draws codes and scales and packs them; what they stand for is worked out in fractions from
the codes before they are packed.  Nothing of byhand is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

D, HEADS, FF, VOCAB = 16, 2, 32, 8
LLAMA = {
    "model_type": "llama", "hidden_size": D, "num_attention_heads": HEADS, "vocab_size": VOCAB,
    "num_hidden_layers": 1, "intermediate_size": FF, "max_position_embeddings": 16,
    "tie_word_embeddings": False, "rms_norm_eps": 1e-5,
}  # fmt: skip
MODULES = {
    "model.layers.0.self_attn.q_proj": (D, D), "model.layers.0.self_attn.k_proj": (D, D),
    "model.layers.0.self_attn.v_proj": (D, D), "model.layers.0.self_attn.o_proj": (D, D),
    "model.layers.0.mlp.gate_proj": (FF, D), "model.layers.0.mlp.up_proj": (FF, D),
    "model.layers.0.mlp.down_proj": (D, FF),
}  # fmt: skip
Parts = dict[str, torch.Tensor]
Rows = list[list[Fraction]]


@dataclass(frozen=True)
class Matrix:
    """One quantised matrix: its tensors, its numbers, and what wrong readers take it for."""

    parts: Parts
    rows: Rows
    misread: dict[str, Rows]


Packer = Callable[[Random, int, int], Matrix]
Number = Callable[[int, int], Fraction]
FP4 = [Fraction(x, 2) for x in (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)]


def _rows(out: int, inputs: int, number: Number) -> Rows:
    return [[number(o, i) for i in range(inputs)] for o in range(out)]


def _codes(random: Random, bits: int, rows: int, columns: int) -> list[list[int]]:
    return [[random.randrange(1 << bits) for _ in range(columns)] for _ in range(rows)]


def _scale(random: Random) -> Fraction:
    """A scale that float16 and bfloat16 hold."""
    return Fraction(random.randrange(128, 256), 1 << random.randrange(11, 13))


def _tensor(rows: Any, dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor(np.array(rows, dtype=np.float64)).to(dtype)


def _words(codes: list[int], bits: int) -> list[int]:
    """The codes as one long number, cut into signed words of 32 bits."""
    whole = sum(code << (bits * place) for place, code in enumerate(codes))
    count = -(-len(codes) * bits // 32)
    words = [(whole >> (32 * place)) & 0xFFFFFFFF for place in range(count)]
    return [word - (1 << 32) if word >> 31 else word for word in words]


def gptq(random: Random, out: int, inputs: int, lacking: int = 1) -> Matrix:
    """4 bits in groups of 8 inputs, the inputs in any order."""
    groups = inputs // 8
    order = [place // 8 for place in range(inputs)]
    random.shuffle(order)
    codes = _codes(random, 4, out, inputs)
    zeros = [[random.randrange(lacking, 16) for _ in range(out)] for _ in range(groups)]
    scales = [[_scale(random) for _ in range(out)] for _ in range(groups)]

    def number(o: int, i: int, off: int = 0, swap: int = 0, group: int | None = None) -> Fraction:
        at = order[i] if group is None else group
        return (codes[o][i ^ swap] - zeros[at][o] - off) * scales[at][o]

    parts = {
        "qweight": torch.tensor([_words(row, 4) for row in codes], dtype=torch.int32).T,
        "qzeros": torch.tensor(
            [_words([z - lacking for z in row], 4) for row in zeros], dtype=torch.int32
        ),
        "scales": _tensor(scales, torch.float16),
        "g_idx": torch.tensor(order, dtype=torch.int32),
    }
    misread = {
        "zero points that are too small by 1": _rows(out, inputs, lambda o, i: number(o, i, -1)),
        "zero points that are too large by 1": _rows(out, inputs, lambda o, i: number(o, i, 1)),
        "the codes of each byte exchanged": _rows(out, inputs, lambda o, i: number(o, i, 0, 1)),
        "without g_idx": _rows(out, inputs, lambda o, i: number(o, i, group=i // 8)),
    }
    return Matrix(parts, _rows(out, inputs, number), misread)


def awq(random: Random, out: int, inputs: int) -> Matrix:
    """4 bits in groups of 8 inputs, eight outputs to a word."""
    codes = _codes(random, 4, inputs, out)
    zeros = _codes(random, 4, inputs // 8, out)
    scales = [[_scale(random) for _ in range(out)] for _ in range(inputs // 8)]

    def number(o: int, i: int, off: int = 0, at: int | None = None) -> Fraction:
        place = o if at is None else at
        return (codes[i][place] - zeros[i // 8][place] - off) * scales[i // 8][o]

    turn = (0, 2, 4, 6, 1, 3, 5, 7)

    def interleaved(row: list[int]) -> list[int]:
        eights = [row[at : at + 8] for at in range(0, len(row), 8)]
        return [eight[place] for eight in eights for place in turn]

    parts = {
        "qweight": torch.tensor([_words(interleaved(r), 4) for r in codes], dtype=torch.int32),
        "qzeros": torch.tensor([_words(interleaved(r), 4) for r in zeros], dtype=torch.int32),
        "scales": _tensor(scales, torch.float16),
    }
    misread = {
        "without the order in which eight outputs": _rows(
            out, inputs, lambda o, i: number(o, i, at=o - o % 8 + turn[o % 8])
        ),
        "zero points that are too large by 1": _rows(out, inputs, lambda o, i: number(o, i, 1)),
    }
    return Matrix(parts, _rows(out, inputs, number), misread)


def fp8(random: Random, out: int, inputs: int) -> Matrix:
    """8-bit floats in blocks of 8 × 12, the last of a row cut."""
    octets = [[random.randrange(0x20, 0x60) | random.choice((0, 128)) for _ in range(inputs)]
              for _ in range(out)]  # fmt: skip
    codes = torch.tensor(octets, dtype=torch.uint8).view(torch.float8_e4m3fn)
    down, across = -(-out // 8), -(-inputs // 12)
    scales = [[_scale(random) for _ in range(across)] for _ in range(down)]
    turned = [scales[at % down][at // down] for at in range(down * across)]
    code = [[Fraction(float(x)) for x in row] for row in codes]
    parts = {"weight": codes, "weight_scale_inv": _tensor(scales, torch.float32)}
    misread = {
        "without its scales": code,
        "a division by its scales": _rows(
            out, inputs, lambda o, i: code[o][i] / scales[o // 8][i // 12]
        ),
        "scales of its blocks transposed": _rows(
            out, inputs, lambda o, i: code[o][i] * turned[o // 8 * across + i // 12]
        ),
    }
    rows = _rows(out, inputs, lambda o, i: code[o][i] * scales[o // 8][i // 12])
    return Matrix(parts, rows, misread)


def pack(random: Random, out: int, inputs: int) -> Matrix:
    """compressed-tensors: 4 bits in groups of 8 inputs, with zero points."""
    codes, zeros = _codes(random, 4, out, inputs), _codes(random, 4, out, inputs // 8)
    scales = [[_scale(random) for _ in range(inputs // 8)] for _ in range(out)]

    def number(o: int, i: int, off: int = 0, swap: int = 0) -> Fraction:
        return (codes[o][i ^ swap] - zeros[o][i // 8] - off) * scales[o][i // 8]

    columns = [[zeros[o][g] for o in range(out)] for g in range(inputs // 8)]
    parts = {
        "weight_packed": torch.tensor([_words(row, 4) for row in codes], dtype=torch.int32),
        "weight_zero_point": torch.tensor([_words(c, 4) for c in columns], dtype=torch.int32).T,
        "weight_scale": _tensor(scales, torch.bfloat16),
        "weight_shape": torch.tensor([out, inputs]),
    }
    misread = {
        "zero points that are too large by 1": _rows(out, inputs, lambda o, i: number(o, i, 1)),
        "the codes of each byte exchanged": _rows(out, inputs, lambda o, i: number(o, i, 0, 1)),
    }
    return Matrix(parts, _rows(out, inputs, number), misread)


def nvfp4(random: Random, out: int, inputs: int) -> Matrix:
    """compressed-tensors: 4-bit floats by 16, over a number that is no power of 2."""
    codes = _codes(random, 4, out, inputs)
    octets = [[random.randrange(0x30, 0x48) for _ in range(inputs // 16)] for _ in range(out)]
    scales = torch.tensor(octets, dtype=torch.uint8).view(torch.float8_e4m3fn)
    over = Fraction(7)

    def number(o: int, i: int, power: int = -1, swap: int = 0) -> Fraction:
        return FP4[codes[o][i ^ swap]] * Fraction(float(scales[o, i // 16])) * over**power

    parts = {
        "weight_packed": torch.tensor(
            [[r[at] | r[at + 1] << 4 for at in range(0, inputs, 2)] for r in codes],
            dtype=torch.uint8,
        ),
        "weight_scale": scales,
        "weight_global_scale": torch.tensor([float(over)]),
    }
    misread = {
        "a product with its global scale": _rows(out, inputs, lambda o, i: number(o, i, 1)),
        "the codes of each byte exchanged": _rows(out, inputs, lambda o, i: number(o, i, -1, 1)),
    }
    return Matrix(parts, _rows(out, inputs, number), misread)


def int8_rows(random: Random, out: int, inputs: int) -> Matrix:
    """bitsandbytes: whole numbers of 8 bits, times the scale of their row over 127."""
    codes = [[random.randrange(-127, 128) for _ in range(inputs)] for _ in range(out)]
    scales = [_scale(random) for _ in range(out)]
    parts = {
        "weight": torch.tensor(codes, dtype=torch.int8),
        "SCB": _tensor(scales, torch.float32),
        "weight_format": torch.tensor(0, dtype=torch.uint8),
    }
    over = {
        divisor: _rows(out, inputs, lambda o, i, by=divisor: codes[o][i] * scales[o] / by)
        for divisor in (127, 128, 1)
    }
    misread = {"scales divided by 128": over[128], "scales not divided by 127": over[1]}
    return Matrix(parts, over[127], misread)


NF4 = [
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
]  # fmt: skip


def nf4(random: Random, out: int, inputs: int, block: int = 64) -> Matrix:
    """bitsandbytes: one of 16 numbers times the largest of its block of 64."""
    codes = [random.randrange(16) for _ in range(out * inputs)]
    largest = [_scale(random) for _ in range(-(-len(codes) // block))]

    def number(o: int, i: int, swap: int = 0) -> Fraction:
        at = o * inputs + i
        return Fraction(NF4[codes[at ^ swap]]) * largest[at // block]

    state = {"quant_type": "nf4", "blocksize": block, "dtype": "float16", "shape": [out, inputs]}
    parts = {
        "weight": torch.tensor(
            [[codes[at] << 4 | codes[at + 1]] for at in range(0, len(codes), 2)], dtype=torch.uint8
        ),
        "weight.absmax": _tensor(largest, torch.float32),
        "weight.quant_map": _tensor(NF4, torch.float32),
        "weight.quant_state.bitsandbytes__nf4": torch.tensor(
            list(json.dumps(state).encode()), dtype=torch.uint8
        ),
    }
    misread = {
        "the codes of each byte exchanged": _rows(out, inputs, lambda o, i: number(o, i, 1)),
    }
    return Matrix(parts, _rows(out, inputs, number), misread)


def _group(format: str, **weights: Any) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights}
    return {
        "quant_method": "compressed-tensors", "format": format, "ignore": ["lm_head"],
        "config_groups": {"group_0": group},
    }  # fmt: skip


FORMATS: dict[str, tuple[dict[str, Any], Packer]] = {
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": 8, "desc_act": True}, gptq),
    "gptq_v2": (
        {"quant_method": "gptq", "bits": 4, "group_size": 8, "desc_act": True,
         "checkpoint_format": "gptq_v2"},
        lambda random, out, inputs: gptq(random, out, inputs, lacking=0),
    ),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 8, "version": "gemm"}, awq),
    "fp8": (
        {"quant_method": "fp8", "weight_block_size": [8, 12], "activation_scheme": "dynamic",
         "modules_to_not_convert": ["lm_head"]},
        fp8,
    ),
    "pack-quantized": (
        _group("pack-quantized", num_bits=4, strategy="group", group_size=8, symmetric=False),
        pack,
    ),
    "nvfp4": (
        _group("nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group",
               group_size=16),
        nvfp4,
    ),
    "int8": (
        {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_skip_modules": None},
        int8_rows,
    ),
    "nf4": ({"quant_method": "bitsandbytes", "load_in_4bit": True}, nf4),
}  # fmt: skip


def tensors_of(kind: str, seed: int) -> tuple[dict[str, torch.Tensor], dict[str, Matrix]]:
    """The tensors of a small Llama's folder, and its quantised matrices."""
    tensors, matrices = _drawn(kind, seed)
    return dict(tensors), dict(matrices)


@cache
def _drawn(kind: str, seed: int) -> tuple[dict[str, torch.Tensor], dict[str, Matrix]]:
    random = Random(f"{kind} {seed}")
    _config, pack = FORMATS[kind]

    def plain(*shape: int) -> torch.Tensor:
        size = int(np.prod(shape))
        entries = [random.randrange(-64, 65) / 64 for _ in range(size)]
        return torch.tensor(entries).reshape(shape).to(torch.bfloat16)

    tensors = {"model.embed_tokens.weight": plain(VOCAB, D), "lm_head.weight": plain(VOCAB, D)}
    for norm in ("layers.0.input_layernorm", "layers.0.post_attention_layernorm", "norm"):
        tensors[f"model.{norm}.weight"] = plain(D) + 2
    matrices = {}
    for module, (out, inputs) in MODULES.items():
        matrices[module] = pack(random, out, inputs)
        tensors |= {f"{module}.{name}": part for name, part in matrices[module].parts.items()}
    return tensors, matrices


def write(folder: Path, kind: str, tensors: dict[str, torch.Tensor], **config: Any) -> Path:
    """A folder of these tensors; `config` changes the quantisation's settings."""
    folder.mkdir(parents=True, exist_ok=True)
    said = {**LLAMA, "quantization_config": {**FORMATS[kind][0], **config}}
    (folder / "config.json").write_text(json.dumps(said))
    whole = {name: each.contiguous() for name, each in tensors.items()}
    save_file(whole, folder / "model.safetensors")
    return folder


def quantised_llama(folder: Path, kind: str, seed: int = 0) -> tuple[Path, dict[str, Matrix]]:
    """The folder of a small Llama in this format, and its quantised matrices."""
    tensors, matrices = tensors_of(kind, seed)
    return write(folder, kind, tensors), matrices


# ------------------------------------------------------------------ gpt-oss

GPT_OSS = {
    "model_type": "gpt_oss", "hidden_size": 32, "num_attention_heads": 2, "head_dim": 8,
    "num_key_value_heads": 1, "num_hidden_layers": 1, "intermediate_size": 32, "vocab_size": 8,
    "num_local_experts": 3, "num_experts_per_tok": 2, "sliding_window": 4,
    "layer_types": ["full_attention"], "max_position_embeddings": 16, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False, "attention_bias": True, "rope_theta": 10000.0,
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
}  # fmt: skip


def gpt_oss(folder: Path, seed: int = 0) -> tuple[Path, dict[str, list[Rows]]]:
    """A small gpt-oss with experts in MXFP4, and what each expert's matrices are: (in, out)."""
    random = Random(f"gpt-oss {seed}")

    def plain(*shape: int) -> torch.Tensor:
        entries = [random.randrange(-64, 65) / 128 for _ in range(int(np.prod(shape)))]
        return torch.tensor(entries).reshape(shape).to(torch.bfloat16)

    layer = "model.layers.0."
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (8, 32), "model.norm.weight": (32,), "lm_head.weight": (8, 32),
        f"{layer}input_layernorm.weight": (32,), f"{layer}post_attention_layernorm.weight": (32,),
        f"{layer}self_attn.sinks": (2,), f"{layer}mlp.router.weight": (3, 32),
        f"{layer}mlp.router.bias": (3,), f"{layer}mlp.experts.gate_up_proj_bias": (3, 64),
        f"{layer}mlp.experts.down_proj_bias": (3, 32),
    }  # fmt: skip
    for name, (out, inputs) in {"q": (16, 32), "k": (8, 32), "v": (8, 32), "o": (32, 16)}.items():
        shapes[f"{layer}self_attn.{name}_proj.weight"] = (out, inputs)
        shapes[f"{layer}self_attn.{name}_proj.bias"] = (out,)
    tensors = {name: plain(*shape) for name, shape in shapes.items()}
    experts = {}
    for name, out in {"gate_up_proj": 64, "down_proj": 32}.items():
        codes = [_codes(random, 4, out, 32) for _expert in range(3)]
        exponents = [[random.randrange(120, 126) for _ in range(out)] for _expert in range(3)]
        experts[name] = [
            [[FP4[codes[e][o][i]] * Fraction(2) ** (exponents[e][o] - 127) for o in range(out)]
             for i in range(32)]
            for e in range(3)
        ]  # fmt: skip
        tensors[f"{layer}mlp.experts.{name}_blocks"] = torch.tensor(
            [[[[r[at] | r[at + 1] << 4 for at in range(0, 32, 2)]] for r in e] for e in codes],
            dtype=torch.uint8,
        )
        tensors[f"{layer}mlp.experts.{name}_scales"] = torch.tensor(
            [[[x] for x in e] for e in exponents], dtype=torch.uint8
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(GPT_OSS))
    save_file(tensors, folder / "model.safetensors")
    return folder, experts
