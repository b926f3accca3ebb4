"""Quantised folders: every code and scale read as the exact number that it stands for.

The recorded tensors hold all codes, subnormal and huge scales, negative ones and signed zeros, and
what transformers, compressed-tensors, bitsandbytes, auto_gptq and autoawq make of them
(benchmarks/quantised/readers.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import byhand
from byhand.errors import InputError
from byhand.files.mapped import Stored, open_file
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.quantised import Quantised, unpacked
from oracles.quantised_folders import FORMATS, gpt_oss, quantised_llama, tensors_of, write

RECORDED = Path(__file__).with_name("recorded") / "quantised.safetensors"
STORED, CASES = open_file(RECORDED)
OURS = {
    "q_proj": "attn.q", "k_proj": "attn.k", "v_proj": "attn.v", "o_proj": "attn.out",
    "gate_proj": "mlp.gate", "up_proj": "mlp.hidden", "down_proj": "mlp.out",
}  # fmt: skip


def _quantised(stored: dict[str, Stored], config: dict[str, Any], module: str) -> Quantised:
    table = Config(RECORDED, {"quantization_config": config})
    found, _notes = unpacked(table, stored, "here", False)
    assert list(found) == [module]
    tensor = found[module]
    assert isinstance(tensor, Quantised)
    return tensor


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_another_reader_to_the_bit(case: str) -> None:
    said = json.loads(CASES[case])
    own = {
        name.removeprefix(f"{case}/"): part
        for name, part in STORED.items()
        if name.startswith(f"{case}/") and not name.endswith("/reference")
    }
    found = _quantised(own, said["config"], said["module"]).finite()
    reference = STORED[f"{case}/reference"].array()
    assert found.shape == reference.shape
    assert np.count_nonzero(reference) > reference.size / 3
    if found.dtype == object:  # fractions: the reader rounds a quotient, in float64
        near = np.array([float(x) for x in found.flat]).reshape(found.shape)
        np.testing.assert_array_max_ulp(near, np.array(reference), maxulp=2)
        return
    assert found.dtype.itemsize >= 4
    rounded = found.astype(reference.dtype)
    assert (rounded == reference).all()
    if not case.startswith("gptq"):  # whose reader forgets the sign of 0
        assert (np.signbit(rounded) == np.signbit(reference)).all()


@pytest.mark.parametrize("kind", FORMATS)
def test_a_llama_in_every_format_is_traced_exactly(tmp_path: Path, kind: str) -> None:
    folder, matrices = quantised_llama(tmp_path, kind)
    model = byhand.open_model(folder)
    for module, matrix in matrices.items():
        tensor = model.weights["block.0." + OURS[module.rpartition(".")[2]]]
        assert [[Fraction(x) for x in row] for row in tensor.data.tolist()] == matrix.rows
    exact = byhand.trace(model, "5", numbers="exact")
    proven = byhand.trace(model, "5", numbers="digits 8")
    assert exact.next is not None
    assert proven.next is not None
    assert all(each.proven for each in (*exact.next, *proven.next))
    assert [each.id for each in exact.next] == [each.id for each in proven.next]


def test_the_experts_of_gpt_oss_in_mxfp4_are_traced(tmp_path: Path) -> None:
    folder, experts = gpt_oss(tmp_path)
    model = byhand.open_model(folder)
    gate, hidden, out = (model.weights[f"block.0.mlp.{name}"] for name in ("gate", "hidden", "out"))
    assert (out.stored, out.bits) == ("MXFP4", Fraction(17, 4))
    both = np.array([[[float(x) for x in row] for row in e] for e in experts["gate_up_proj"]])
    down = np.array([[[float(x) for x in row] for row in e] for e in experts["down_proj"]])
    assert (gate.data.swapaxes(1, 2) == both[:, :, 0::2]).all()
    assert (hidden.data.swapaxes(1, 2) == both[:, :, 1::2]).all()
    assert (out.data.swapaxes(1, 2) == down).all()
    trace = byhand.trace(model, "5 1", numbers="digits 8")
    assert trace.next is not None
    assert all(each.proven for each in trace.next)


def test_numbers_stay_packed_until_they_are_asked_for(tmp_path: Path) -> None:
    model = byhand.open_model(quantised_llama(tmp_path, "gptq")[0])
    tensor = model.weights["block.0.mlp.out"]
    assert (tensor.stored, tensor.bits, tensor.shape) == ("GPTQ 4", Fraction(17, 2), (16, 32))
    first = tensor.data
    assert tensor.data is first
    assert model.weights["embed.token"].bits == 16


def test_matrices_of_gpt2_are_turned(tmp_path: Path) -> None:
    tensors, matrices = tensors_of("gptq", 0)
    module = "model.layers.0.mlp.up_proj"
    own = {name: part for name, part in tensors.items() if name.startswith(module)}
    save_file({name: part.contiguous() for name, part in own.items()}, tmp_path / "x.safetensors")
    config = Config(tmp_path, {"quantization_config": FORMATS["gptq"][0]})
    found, _notes = unpacked(config, open_file(tmp_path / "x.safetensors")[0], "here", True)
    [tensor] = found.values()
    assert tensor.shape == (16, 32)
    assert tensor.finite().T.tolist() == [[float(x) for x in row] for row in matrices[module].rows]


@pytest.mark.parametrize(
    ("kind", "file", "settings"),
    [
        ("gptq", "quantize_config.json", {"bits": 4, "group_size": 8, "desc_act": True}),
        ("awq", "quant_config.json", {"w_bit": 4, "q_group_size": 8, "version": "GEMM"}),
    ],
)
def test_older_folders_have_their_settings_in_a_file_of_their_own(
    tmp_path: Path, kind: str, file: str, settings: dict[str, Any]
) -> None:
    folder, matrices = quantised_llama(tmp_path, kind)
    config = json.loads((folder / "config.json").read_text())
    del config["quantization_config"]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / file).write_text(json.dumps(settings))
    found = byhand.open_model(folder).weights["block.0.attn.q"].data
    assert found.tolist() == [[float(x) for x in row] for row in matrices[Q].rows]


def test_count_tells_the_bits_of_a_weight_and_opens_none(tmp_path: Path) -> None:
    folder, _matrices = quantised_llama(tmp_path, "nf4")
    inventory = byhand.count(folder)
    assert inventory.storage is not None
    attention = inventory.storage.components["count.block.0.attention"]
    # of 256 codes: half a byte each, 4 block sizes, a table of 16 floats, and the settings
    state = len(json.dumps(NF4_SAID))
    assert attention.bytes == 4 * (128 + 4 * 4 + 64 + state)
    assert attention.formats == ("NF4",)
    assert inventory.storage.components["count.embedding"].bits == 16
    assert inventory["count.bytes"] == inventory.storage.whole.bytes
    assert inventory.storage.whole.formats == ("NF4", "BF16")
    assert byhand.count("tiny").storage is None


NF4_SAID = {"quant_type": "nf4", "blocksize": 64, "dtype": "float16", "shape": [16, 16]}


# ------------------------------------------------------------------ what is refused

Q = "model.layers.0.self_attn.q_proj"
Spoil = Callable[[dict[str, torch.Tensor]], None]


def _set(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Spoil:
    def spoil(tensors: dict[str, torch.Tensor]) -> None:
        tensors[f"{Q}.{name}"] = change(tensors[f"{Q}.{name}"].clone())

    return spoil


def _without(name: str) -> Spoil:
    def spoil(tensors: dict[str, torch.Tensor]) -> None:
        del tensors[f"{Q}.{name}"]

    return spoil


def _put(index: Any, value: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        tensor[index] = value
        return tensor

    return change


def _state(**changes: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        said = {**json.loads(bytes(tensor.tolist())), **changes}
        return torch.tensor(list(json.dumps(said).encode()), dtype=torch.uint8)

    return change


NF4_STATE = "weight.quant_state.bitsandbytes__nf4"
SPOILED: list[tuple[str, Spoil, str]] = [
    ("gptq", _without("scales"), "q_proj.scales is missing"),
    ("gptq", _without("qzeros"), "q_proj.qzeros is missing"),
    ("gptq", _set("g_idx", _put(3, 2)), r"g_idx\[3\] is not a group"),
    ("gptq", _set("g_idx", _put(0, -1)), r"g_idx\[0\] is not a group"),
    ("gptq", _set("g_idx", lambda x: x[1:]), "g_idx has another shape"),
    ("gptq", _set("scales", _put((1, 2), torch.nan)), r"scales\[1,2\] is not a number"),
    ("gptq", _set("scales", lambda x: x.T), "scales has another shape"),
    ("gptq", _set("qweight", lambda x: x[:, :-1]), "has another shape"),
    ("gptq", _set("qweight", lambda x: x.float()), "qweight has another format"),
    ("gptq", _set("qweight", lambda x: x[0]), "qweight has another shape"),
    ("gptq", _set("qzeros", lambda x: x[:, :1]), "qzeros has another shape"),
    ("awq", _set("qzeros", lambda x: x[:1]), "qzeros has another shape"),
    ("awq", _set("scales", _put((0, 0), torch.inf)), r"scales\[0,0\] is not a number"),
    ("awq", _set("qweight", lambda x: x[:-1]), "qweight has another shape"),
    ("fp8", _without("weight_scale_inv"), "q_proj.weight_scale_inv is missing"),
    ("fp8", _set("weight_scale_inv", lambda x: x[:1]), "weight_scale_inv has another shape"),
    ("fp8", _set("weight_scale_inv", _put((0, 1), torch.nan)), "is not a number"),
    ("fp8", _set("weight", lambda x: _put((2, 3), 0x7F)(x.view(torch.uint8)).view(x.dtype)),
     r"weight\[2,3\] is not a number"),
    ("pack-quantized", _without("weight_shape"), "weight_shape is missing"),
    ("pack-quantized", _without("weight_zero_point"), "weight_zero_point is missing"),
    ("pack-quantized", _set("weight_shape", _put(0, 2**40)), "weight_packed has another shape"),
    ("pack-quantized", _set("weight_shape", _put(1, -5)), "weight_packed has another shape"),
    ("pack-quantized", _set("weight_scale", lambda x: x[:, :1]), "weight_scale has another"),
    ("nvfp4", _without("weight_global_scale"), "weight_global_scale is missing"),
    ("nvfp4", _set("weight_global_scale", lambda x: x * 0), "is 0, and the scales"),
    ("nvfp4", _set("weight_scale", lambda x: x.float()), "weight_scale has another format"),
    ("int8", _set("SCB", _put(4, torch.inf)), r"SCB\[4\] is not a number"),
    ("int8", _set("SCB", lambda x: x[:-1]), "SCB has another shape"),
    ("int8", _set("weight_format", lambda x: x + 2), "orders the numbers for one processor"),
    ("nf4", _without("weight.absmax"), "absmax is missing"),
    ("nf4", _set("weight.quant_map", _put(5, 0.25)), r"quant_map\[5\] is no number of nf4"),
    ("nf4", _set("weight", lambda x: x[1:]), "weight has another size"),
    ("nf4", _set(NF4_STATE, _state(shape=[10**9, 10**9])), "shape cannot be"),
    ("nf4", _set(NF4_STATE, _state(shape=[10**6, 10**6])), "weight has another size"),
    ("nf4", _set(NF4_STATE, _state(blocksize=48)), "blocksize cannot be 48"),
    ("nf4", _set(NF4_STATE, _state(nested_offset=0.5)), "nested_absmax is missing"),
    ("nf4", _set(NF4_STATE, _state(quant_type="fp4")), "quant_type cannot be fp4"),
    ("nf4", _set(NF4_STATE, lambda x: x[1:]), "is not a JSON object"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "spoil", "told"), SPOILED)
def test_inconsistent_tensors_are_refused(
    tmp_path: Path, kind: str, spoil: Spoil, told: str
) -> None:
    tensors, _matrices = tensors_of(kind, 0)
    spoil(tensors)
    with pytest.raises(InputError, match=told):
        byhand.open_model(write(tmp_path, kind, tensors)).weights["block.0.attn.q"].data  # noqa: B018


@pytest.mark.parametrize(
    ("kind", "config", "told"),
    [
        ("gptq", {"quant_method": "hqq"}, "does not read weights quantised by hqq"),
        ("gptq", {"quant_method": "torchao"}, "does not read weights quantised by torchao"),
        ("gptq", {"quant_method": None}, "does not read weights quantised by null"),
        ("gptq", {"bits": 5}, "bits cannot be 5"),
        ("gptq", {"bits": True}, "bits cannot be true"),
        ("gptq", {"group_size": 0}, "group_size cannot be 0"),
        ("gptq", {"checkpoint_format": "marlin"}, "checkpoint_format cannot be"),
        ("gptq", {"checkpoint_format": ["gptq"]}, "checkpoint_format cannot be"),
        ("gptq", {"desc_act": False}, "orders the inputs, and desc_act says"),
        ("gptq", {"dynamic": {"-:.*q_proj": {}}}, "dynamic cannot be"),
        ("gptq", {"modules_to_not_convert": ["q_proj"]}, "leaves q_proj as it is, but"),
        ("gptq", {"modules_to_not_convert": "q_proj"}, "modules_to_not_convert cannot be"),
        ("awq", {"version": "gemv"}, "version cannot be"),
        ("fp8", {"weight_block_size": [8]}, "weight_block_size cannot be"),
        ("fp8", {"weight_block_size": None}, "weight_scale_inv has another shape"),
        ("pack-quantized", {"format": "marlin-24"}, "format cannot be"),
        ("pack-quantized", {"ignore": ["re:.*self_attn.*"]}, "leaves re:.*self_attn.* as it is"),
        ("pack-quantized", {"ignore": ["re:(a+)+b"]}, "does not read the pattern"),
        ("pack-quantized", {"config_groups": {}}, "config_groups"),
        ("pack-quantized", {"sparsity_config": {"format": "sparse-24-bitmask"}}, "format cannot"),
    ],
)
def test_settings_that_byhand_does_not_have_are_refused(
    tmp_path: Path, kind: str, config: dict[str, Any], told: str
) -> None:
    tensors, _matrices = tensors_of(kind, 0)
    with pytest.raises(InputError, match=told):
        byhand.open_model(write(tmp_path, kind, tensors, **config)).weights["block.0.attn.q"].data  # noqa: B018


def test_a_weight_may_not_be_there_twice(tmp_path: Path) -> None:
    tensors, _matrices = tensors_of("gptq", 0)
    tensors[f"{Q}.weight"] = torch.ones(16, 16)
    with pytest.raises(InputError, match=r"q_proj.weight is stored twice"):
        byhand.open_model(write(tmp_path, "gptq", tensors))


def test_scales_of_activations_are_noted_and_left_out(tmp_path: Path) -> None:
    tensors, _matrices = tensors_of("fp8", 0)
    tensors[f"{Q}.input_scale"] = torch.tensor(0.5)
    model = byhand.open_model(write(tmp_path, "fp8", tensors))
    assert any("input_scale" in note for note in model.notes)
    assert "block.0.attn.q" in model.weights
