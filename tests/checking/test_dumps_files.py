"""Folders of arrays, raw binaries, Polygraphy, states of C ports, hidden states, maps of names."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import yaml
from dumped import IDS, LAYER, Array, Numbers, llama, marked, model_of, right

import byhand
from byhand.checking.dumps.name_maps import read_name_map
from byhand.checking.readers import read_claims
from byhand.errors import ByhandError, InputError
from byhand.model import Model
from byhand.names import ENGINES
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, over_root

N = len(IDS)


def said(call: Callable[[], Any]) -> str:
    with pytest.raises(InputError) as caught:
        call()
    return str(caught.value)


# ------------------------------------------------------------------ hidden states


def test_the_last_hidden_state_is_after_the_last_norm() -> None:
    n = Numbers(llama())
    states = [n("stream.0"), n("stream.1"), n("final.norm.out")]
    attentions = [n(f"block.{layer}.attn.weights") for layer in range(2)]
    numbered = {f"hidden_states.{at}": each[None] for at, each in enumerate(states)}
    numbered |= {f"attentions.{at}": each[None] for at, each in enumerate(attentions)}
    as_tuples = {
        "hidden_states": tuple(each[None] for each in states),
        "attentions": tuple(each[None] for each in attentions),
    }
    stacked = {"hidden_states": np.stack(states)[:, None], "last_hidden_state": states[2][None]}
    for dump in (numbered, as_tuples, stacked):
        read = right(marked(llama(), {"input_ids": np.array([IDS]), **dump}))
        assert "after the last norm" in read["final.norm.out"]
        assert {"embed.token", "block.0.mlp.add", "final.norm.out"} <= set(read)


def test_the_last_stream_in_place_of_the_last_hidden_state_is_an_error() -> None:
    n = Numbers(llama())
    dump = {
        "input_ids": np.array([IDS]),
        "hidden_states.2": n("stream.2"),
        "hidden_states.3": n("logits"),
    }
    marking = marked(llama(), dump, suspects=False)
    assert marking.first_error is not None
    assert marking.first_error.address == "final.norm.out"
    assert marking.unmatched[0].reason == "there are 3 of them: 0 to 2"


# ------------------------------------------------------------------ folders and binaries


def test_a_folder_of_npy_files_goes_by_their_paths(tmp_path: Path) -> None:
    n = Numbers(llama())
    (tmp_path / "model" / "layers" / "1").mkdir(parents=True)
    np.save(tmp_path / "input_ids.npy", np.array([IDS]))
    np.save(tmp_path / "model.layers.0.mlp.npy", n("block.0.mlp.out"))
    np.save(tmp_path / "model" / "layers" / "1" / "mlp.npy", n("block.1.mlp.out"))
    assert set(right(marked(llama(), tmp_path))) == {"block.0.mlp.out", "block.1.mlp.out"}
    np.save(tmp_path / "model.layers.0.mlp.npy", n("block.0.mlp.out") + np.float32(0.1))
    assert not marked(llama(), tmp_path, suspects=False).follows


def manifest(folder: Path, n: Numbers) -> dict[str, Any]:
    """Three arrays in two raw files: in C's order, in Fortran's, and with ggml's sides."""
    first, second = n("block.0.mlp.out"), n("block.1.mlp.out")
    (folder / "a.bin").write_bytes(b"\0" * 12 + first.astype("<f4").tobytes("F"))
    data = second.astype("<f4").tobytes() + n("logits").astype("<f4").tobytes()
    (folder / "b.bin").write_bytes(np.array(IDS, "<i4").tobytes() + data)
    return {
        "precision": "float32",
        "arrays": [
            {"name": "tokens", "file": "b.bin", "dtype": "int32", "shape": [N]},
            {"name": "model.layers.0.mlp", "file": "a.bin", "offset": 12, "dtype": "float32",
             "shape": [N, 24], "order": "F"},
            {"name": "ffn_out-1", "file": "b.bin", "offset": 20, "dtype": "float32",
             "shape": [24, N], "order": "ggml"},
            {"name": "result_output", "file": "b.bin", "offset": 20 + second.nbytes,
             "dtype": "float32", "shape": [N, 17]},
        ],
    }  # fmt: skip


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_raw_binaries_are_read_by_their_manifest(tmp_path: Path, ending: str) -> None:
    told = manifest(tmp_path, Numbers(llama()))
    text = json.dumps(told) if ending == "json" else yaml.safe_dump(told)
    (tmp_path / f"dump.{ending}").write_text(text, "utf-8")
    read = right(marked(llama(), tmp_path / f"dump.{ending}"))
    assert set(read) == {"block.0.mlp.out", "block.1.mlp.out", "logits"}


def test_bfloat16_of_a_manifest_is_what_was_worked_in(tmp_path: Path) -> None:
    values = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    (tmp_path / "x.bin").write_bytes(values.tobytes())
    line = {"name": "logits", "file": "x.bin", "dtype": "bfloat16", "shape": [2, 3]}
    (tmp_path / "m.yaml").write_text(yaml.safe_dump({"arrays": [line]}), "utf-8")
    (entry,) = read_claims(tmp_path / "m.yaml").entries
    assert (entry.format, entry.values.tolist()) == ("bfloat16", [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"file": "../a.bin"}, "the file is not in the folder of the manifest"),
        ({"file": "/etc/passwd"}, "the file is not in the folder of the manifest"),
        ({"file": "none.bin"}, "there is no file 'none.bin'"),
        ({"offset": 13}, "the array ends before its last number"),
        ({"shape": [2**39, 2**39]}, "the file is too large"),
        ({"shape": [5, -1]}, "-1"),
        ({"shape": "5"}, "a shape is a list of whole numbers"),
        ({"dtype": "float31"}, "float31"),
        ({"order": "D"}, "D is not possible here"),
        ({"colour": "red"}, "there is no key 'colour' here"),
        ({"name": "tokens"}, "a name is in the file twice"),
    ],
)
def test_a_manifest_that_does_not_fit_says_where(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    told = manifest(tmp_path, Numbers(llama()))
    told["arrays"][1] |= change
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(told), "utf-8")
    message = said(lambda: read_claims(tmp_path / "m.yaml"))
    assert says in message
    assert "m.yaml:" in message


# ------------------------------------------------------------------ Polygraphy and nested JSON


def encoded(array: Array) -> dict[str, Any]:
    data = io.BytesIO()
    np.save(data, array, allow_pickle=False)
    text = base64.b64encode(data.getvalue()).decode()
    return {
        "values": {"array": text, "polygraphy_class": "ndarray"},
        "polygraphy_class": "LazyArray",
    }


def run_results(outputs: dict[str, Any]) -> dict[str, Any]:
    """What `polygraphy run --save-outputs` writes."""
    result = {"outputs": outputs, "runtime": 0.1, "runner_name": "onnxrt-runner",
              "polygraphy_class": "IterationResult"}  # fmt: skip
    return {"lst": [["onnxrt-runner", [result]]], "polygraphy_class": "RunResults"}


def test_outputs_of_polygraphy_are_judged(tmp_path: Path) -> None:
    n = Numbers(llama())
    outputs = {
        "input_ids": encoded(np.array([IDS])),
        "/model/layers.0/input_layernorm/Mul_1_output_0": encoded(n("block.0.attn.norm.out")[None]),
        "/model/layers.0/self_attn/v_proj/MatMul_output_0": encoded(n.flat("block.0.attn.v")[None]),
    }
    (tmp_path / "outputs.json").write_text(json.dumps(run_results(outputs)), "utf-8")
    read = right(marked(llama(), tmp_path / "outputs.json"))
    assert set(read) == {"block.0.attn.norm.out", "block.0.attn.v"}
    name = "/model/layers.0/self_attn/v_proj/MatMul_output_0"
    outputs[name] = encoded(n.flat("block.0.attn.v")[None, :, ::-1].copy())
    (tmp_path / "outputs.json").write_text(json.dumps(run_results(outputs)), "utf-8")
    assert not marked(llama(), tmp_path / "outputs.json", suspects=False).follows


@pytest.mark.parametrize(
    ("outputs", "says"),
    [
        ({"logits": {"array": "!!!", "polygraphy_class": "ndarray"}}, "this is not an array"),
        ({"logits": {"array": "AAAA", "polygraphy_class": "ndarray"}}, "this is not an array"),
        ({"logits": {"array": "AAAA", "polygraphy_class": "Tensor"}}, "nothing is unpickled"),
        ({"logits": 3}, "this is not an array"),
        ({}, "there are no claims"),
    ],
)
def test_outputs_that_are_no_arrays_are_refused(
    tmp_path: Path, outputs: dict[str, Any], says: str
) -> None:
    (tmp_path / "o.json").write_text(json.dumps(run_results(outputs)), "utf-8")
    assert says in said(lambda: read_claims(tmp_path / "o.json"))


def test_nested_tables_of_json_go_by_their_paths(tmp_path: Path) -> None:
    n = Numbers(llama())
    layers = {str(at): {"mlp": n(f"block.{at}.mlp.out").tolist()} for at in range(2)}
    told = {"tokens": list(map(str, IDS)), "model": {"layers": layers}}
    (tmp_path / "d.json").write_text(json.dumps(told), "utf-8")
    assert set(right(marked(llama(), tmp_path / "d.json"))) == {
        "block.0.mlp.out",
        "block.1.mlp.out",
    }


# ------------------------------------------------------------------ C ports


BIASES = dict.fromkeys(("q_bias", "k_bias", "v_bias", "out_bias"), True)
ATTENTION = AttentionSpec(2, 4, 2, over_root(4), packed="concatenated", **BIASES)  # type: ignore[arg-type]
PLAIN = MlpSpec(12, "gelu_tanh", hidden_bias=True, out_bias=True)
BLOCK = BlockSpec(ATTENTION, PLAIN, LAYER, LAYER)
GPT2 = ModelSpec("gpt2", 17, 8, 6, (BLOCK, BLOCK), "learned", final_norm=LAYER, family="gpt2")
KINDS = ("attn.norm.gain", "attn.norm.bias", "attn.qkv", "attn.qkv_bias", "attn.out",
         "attn.out_bias", "mlp.norm.gain", "mlp.norm.bias", "mlp.hidden", "mlp.hidden_bias",
         "mlp.out", "mlp.out_bias")  # fmt: skip


@cache
def gpt2() -> Model:
    return model_of(GPT2)


@cache
def state(gradients: bool = True) -> bytes:
    """A state as llm.c writes it: matrices as (out, in), the token table padded to 128 rows."""
    model, text = gpt2(), "3 1 4 1 5"
    trace = byhand.trace(model, text, float="float32", losses=True, backward=True)
    header = struct.pack("<256i", 20240327, 2, 1, N, *[0] * 252)
    ids = np.array(IDS, "<i4").tobytes() + np.array([1, 4, 1, 5, -1], "<i4").tobytes()
    floats = [trace["logits"].array, trace["mean_loss"].array]
    table = np.zeros((128, 8), np.float32)
    table[:17] = trace["grad.weight.embed.token"].array
    grads = [table, trace["grad.weight.embed.position"].array]
    names = [f"block.{layer}.{kind}" for kind in KINDS for layer in range(2)]
    for name in (*names, "final.norm.gain", "final.norm.bias"):
        grads.append(trace[f"grad.weight.{name}"].array.T)
    every = floats + grads if gradients else floats
    return header + ids + b"".join(np.asarray(each).astype("<f4").tobytes() for each in every)


def test_the_state_of_llm_c_is_cut_up_by_the_model(tmp_path: Path) -> None:
    (tmp_path / "state.bin").write_bytes(state())
    marking = marked(gpt2(), tmp_path / "state.bin")
    assert marking.passes(allow_unjudged=True)  # gradients alone are far from what is above them
    read = {line.address: line.claim.read for line in marking}
    assert read["grad.weight.block.1.attn.qkv"] == "cut out of llm.c's state"
    assert len(read) == 30
    whole = bytearray(state())
    whole[-4 * (8 + 8 + 1) * 2 : -4 * 16] = b"\0" * 72  # the end of the last biases
    (tmp_path / "state.bin").write_bytes(bytes(whole))
    assert not marked(gpt2(), tmp_path / "state.bin", suspects=False).passes(allow_unjudged=True)
    (tmp_path / "state.bin").write_bytes(state(gradients=False))
    assert set(right(marked(gpt2(), tmp_path / "state.bin"))) == {"logits", "mean_loss"}


def test_a_state_of_another_size_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.bin").write_bytes(state() + b"\0" * 4)
    message = said(lambda: marked(gpt2(), tmp_path / "state.bin"))
    assert "the state does not fit the model" in message
    (tmp_path / "state.bin").write_bytes(state()[:1100])
    assert "the state does not fit" in said(lambda: marked(gpt2(), tmp_path / "state.bin"))
    (tmp_path / "state.bin").write_bytes(state()[:1030])
    assert "not a whole state" in said(lambda: read_claims(tmp_path / "state.bin"))


def test_the_caches_of_llama2_c_hold_a_layer_after_the_other() -> None:
    n = Numbers(llama())
    keys, values = np.zeros((2, 2, 8, 12), np.float32)  # room for eight positions
    for layer in range(2):
        turned = n.flat(f"block.{layer}.attn.k_rotated").reshape(N, 2, 2, 3)
        keys[layer, :N] = turned.swapaxes(2, 3).reshape(N, 12)  # pairs side by side
        values[layer, :N] = n.flat(f"block.{layer}.attn.v")
    dump = {"tokens": np.array(IDS), "key_cache": keys, "value_cache": values}
    read = right(marked(llama(), dump))
    assert "reordered" in read["block.1.attn.k_rotated"]
    assert read["block.0.attn.v"] == "a layer of the cache"
    keys[1, 2, 5] += 0.5
    first = marked(llama(), dump, suspects=False).first_error
    assert first is not None
    assert first.address == "block.1.attn.k_rotated"


# ------------------------------------------------------------------ maps of names


MAP: dict[str, Any] = {
    "layer": 1,
    "names": {
        "dec.{L}.kv": {"split": ["block.{L}.attn.k", "block.{L}.attn.v"]},
        "dec.{L}.prob": {"step": "block.{L}.attn.weights", "axes": ["query", "head", "key"]},
        "dec.{L}.q": {"step": "block.{L}.attn.q", "axes": ["head·d_head", "pos"]},
        "dec.{L}.ff": {"step": "block.{L}.mlp.out", "transpose": True},
        "dec.{L}.up": {"step": "block.{L}.mlp.hidden", "slice": [":", "4:24"]},
        "dec.{L}.half": {"step": "block.{L}.mlp.gate", "times": "2"},
        "zero.{L}": {"step": "stream.{L}", "layer": 0},
        "head.{E}.{L}": "block.{L}.attn.mixed[{E}]",
    },
    "skip": ["time.*"],
}


def own(n: Numbers) -> dict[str, Any]:
    dump: dict[str, Any] = {"tokens": np.array(IDS), "time.q": np.zeros(3)}
    for layer in range(2):
        at, b = f"dec.{layer + 1}", f"block.{layer}"
        kv = [n.flat(f"{b}.attn.{each}") for each in "kv"]
        wide = np.concatenate([np.ones((N, 4), np.float32), n(f"{b}.mlp.hidden")], axis=1)
        dump |= {
            f"{at}.kv": np.concatenate(kv, axis=1),
            f"{at}.prob": n(f"{b}.attn.weights").transpose(1, 0, 2),
            f"{at}.q": n.flat(f"{b}.attn.q").T,
            f"{at}.ff": n(f"{b}.mlp.out").T,
            f"{at}.up": wide,
            f"{at}.half": n(f"{b}.mlp.gate") / 2,
            f"zero.{layer}": n(f"stream.{layer}"),
        }
    return dump | {f"head.{head}.1": n("block.0.attn.mixed")[head] for head in range(4)}


def test_a_map_explains_names_slices_splits_axes_and_factors(tmp_path: Path) -> None:
    dump = own(Numbers(llama()))
    read = right(marked(llama(), dump, names=MAP))
    assert len(read) == 20
    assert read["block.0.attn.k"] == "cut into 2"
    assert read["block.1.attn.q"] == read["block.0.attn.weights"] == "axes as the map has them"
    assert (read["block.1.mlp.out"], read["block.1.mlp.hidden"]) == ("transposed", "sliced")
    assert read["block.0.mlp.gate"] == "times 2"
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(MAP, allow_unicode=True), "utf-8")
    assert len(right(marked(llama(), dump, names=tmp_path / "map.yaml"))) == 20
    dump["dec.2.q"] = dump["dec.1.q"]
    first = marked(llama(), dump, names=MAP, suspects=False).first_error
    assert first is not None
    assert (first.address, first.claim.name) == ("block.1.attn.q", "dec.2.q")


def test_an_array_that_the_map_cannot_place_is_listed() -> None:
    dump = own(Numbers(llama())) | {"dec.1.prob": np.zeros((3, 3), np.float32)}
    (left,) = marked(llama(), dump, names=MAP).unmatched
    assert left.misfit
    assert left.reason == "another shape: query × head × key expected, 3×3 found"


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ({}, "a map of names says what each name means"),
        ({"x": "block.{L}.mlp.out"}, "{L} is not in their name"),
        ({"x{": "logits"}, "a brace is open in this name"),
        ({"x": "no address!"}, "this is not an address"),
        ({"x": {"step": "logits", "split": ["a", "b"]}}, "one step, or is split into several"),
        ({"x": {"split": ["logits"]}}, "a split has at least two steps"),
        ({"x": {"step": ["logits", "probs"]}}, "several stand under split"),
        ({"x": {"step": "logits", "axis": [0]}}, "there is no key 'axis' here"),
        ({"x": {"step": "logits", "transpose": [0, 0]}}, "this is no order of the sides"),
        ({"x": {"step": "logits", "slice": ["a:b"]}}, "this is not a slice"),
        ({"x": {"step": "logits", "dtype": "float31"}}, "float31"),
        ({"x": {"step": "logits", "times": "pi"}}, "pi"),
        ({"x": ["logits"]}, "a name stands for an address"),
    ],
)
def test_a_map_that_says_nothing_sensible_is_refused(names: dict[str, Any], says: str) -> None:
    assert says in said(lambda: read_name_map({"names": names}))


def test_a_map_that_does_not_fit_the_model_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "map.yaml"
    file.write_text("names:\n  x: block.9.mlp.out\n", "utf-8")
    dump = {"tokens": np.array(IDS), "x": np.zeros((N, 24), np.float32)}
    message = said(lambda: marked(llama(), dump, names=file))
    assert "map.yaml:2" in message
    assert "the model has no step 'block.9.mlp.out'" in message
    file.write_text("names:\n  x: {step: logits, axes: [pos, d]}\n", "utf-8")
    assert "the axes are not those of logits" in said(lambda: marked(llama(), dump, names=file))


@pytest.mark.parametrize("style", ENGINES)
def test_a_trace_under_an_engines_names_is_read_back(tmp_path: Path, style: str) -> None:
    trace = Numbers(llama()).trace
    trace.save(tmp_path / "golden", names=style)
    assert marked(llama(), tmp_path / "golden").passed
    written = trace.plan.in_style(style)
    example = {"vllm": "model.layers.0.self_attn.attn", "llama.cpp": "kqv-0"}.get(style)
    assert example is None or written["block.0.attn.mixed"] == example
    other = {written[step.address]: trace[step.address].array for step in trace.plan
             if step.op not in ("given", "argmax", "softmax", "scores")}  # fmt: skip
    assert marked(llama(), {"tokens": np.array(IDS), **other}).follows


# ------------------------------------------------------------------ hostile files


@pytest.mark.parametrize(
    "kind", ["callback.txt", "outputs.json", "manifest.yaml", "state.bin", "x.npy"]
)
def test_a_damaged_file_is_an_error_of_ours_or_is_read(tmp_path: Path, kind: str) -> None:
    n, chance = Numbers(llama()), np.random.default_rng(2)
    if kind == "callback.txt":
        rows = b"[ 0.1, nan ],\n" * 5
        whole = b"number of input tokens = 5\n  3\n  1\n  4\n  1\n  5\n"
        whole += b"cb: l_out-0 = (f32) ADD(a{1}, }) = {2, 5, 1, 1}\n [\n [\n" + rows + b"],\n]\n"
    elif kind == "outputs.json":
        whole = json.dumps(run_results({"logits": encoded(n("logits"))})).encode()
    elif kind == "manifest.yaml":
        whole = yaml.safe_dump(manifest(tmp_path, n)).encode()
    elif kind == "state.bin":
        whole = state(gradients=False)
    else:
        whole = encoded(n("logits"))["values"]["array"].encode()
        whole = base64.b64decode(whole)
    (tmp_path / "d").mkdir()
    file = tmp_path / "d" / kind if kind == "x.npy" else tmp_path / kind
    for _again in range(25):
        data = bytearray(whole[: chance.integers(1, len(whole) + 1)])
        for place in chance.integers(0, len(data), 3):
            data[place] = chance.integers(0, 256)
        file.write_bytes(bytes(data))
        with suppress(ByhandError):
            marked(gpt2(), tmp_path / "d" if kind == "x.npy" else file, suspects=False)


def test_names_and_shapes_of_any_kind_are_read_or_listed() -> None:
    chance = np.random.default_rng(3)
    kinds = [
        "model.layers.{}.self_attn.qkv_proj", "model.layers.{}.input_layernorm.{}", "model.norm.1",
        "model.layers.{}.mlp.gate_up_proj", "model.layers.{}", "model.layers.{}.self_attn.attn",
        "model.layers.{}.self_attn.rotary_emb.{}", "logits_processor", "Qcur-{}", "Kcur-{}#{}",
        "kq-{}", "kq_soft_max-{}", "ffn_moe_topk-{}", "ffn_moe_gate-{}", "l_out-{}", "norm-{}",
        "result_output", "/model/layers.{}/Add_output_0", "/model/layers.{}/self_attn/Add_output_0",
        "intermediates/model/layers/{}/mlp/__call__/{}", "hidden_states.{}", "attentions",
        "key_cache",
        "params/model/layers/{}/mlp/up_proj/kernel", "/Gather_output_0", "blocks.{}.attn.hook_v",
        "hook_embed", "unembed.hook_out",
    ]  # fmt: skip
    for _again in range(12):
        dump: dict[str, Any] = {"input_ids": np.array([IDS])}
        for kind in chance.choice(kinds, 8):
            name = kind.replace("{}", str(chance.choice([0, 1, 2, 77, 999999])))
            shape = tuple(chance.choice([0, 1, 2, 5, 6, 12, 24], chance.integers(0, 5)))
            array = chance.normal(size=shape).astype(chance.choice(["f4", "f2", "i8"]))
            dump[name] = (array, array) if chance.random() < 0.3 else array
        with suppress(ByhandError):
            marked(llama(), dump, suspects=False)
