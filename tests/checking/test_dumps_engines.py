"""Dumps of vLLM, llama.cpp, Flax and ONNX are read in their layouts, and judged as any other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dumped import (
    ATTENTION,
    D_HEAD,
    HEADS,
    IDS,
    KV_HEADS,
    RMS,
    Array,
    Numbers,
    llama,
    marked,
    model_of,
    right,
)

from byhand.checking.readers.eval_callback import read_eval_callback
from byhand.errors import InputError
from byhand.expression import Number
from byhand.model import Model
from byhand.spec import BlockSpec, MlpSpec, ModelSpec

N = len(IDS)


# ------------------------------------------------------------------ vLLM


def vllm(n: Numbers) -> dict[str, Any]:
    """What hooks on vLLM's modules see: tuples, packed projections, deferred residuals."""
    dump: dict[str, Any] = {"input_ids": np.array(IDS), "model.embed_tokens": n("embed.token")}
    for layer in range(2):
        at, b = f"model.layers.{layer}", f"block.{layer}"
        qkv = [n.flat(f"{b}.attn.{each}") for each in "qkv"]
        dump[f"{at}.self_attn.qkv_proj"] = (np.concatenate(qkv, axis=1), None)
        dump[f"{at}.self_attn.rotary_emb"] = tuple(
            n.flat(f"{b}.attn.{each}_rotated") for each in "qk"
        )
        dump[f"{at}.self_attn.attn"] = n.flat(f"{b}.attn.mixed")
        dump[f"{at}.self_attn.o_proj"] = (n(f"{b}.attn.out"), None)
        first = n(f"{b}.attn.norm.out")
        dump[f"{at}.input_layernorm"] = (first, n(f"stream.{layer}")) if layer else first
        dump[f"{at}.post_attention_layernorm"] = (n(f"{b}.mlp.norm.out"), n(f"{b}.attn.add"))
        both = [n(f"{b}.mlp.gate"), n(f"{b}.mlp.hidden")]
        dump[f"{at}.mlp.gate_up_proj"] = (np.concatenate(both, axis=1), None)
        dump[f"{at}.mlp.act_fn"] = n(f"{b}.mlp.gated")
        dump[at] = (n(f"{b}.mlp.out"), n(f"{b}.attn.add"))
    dump["model.norm"] = (n("final.norm.out"), n("stream.2"))
    dump["logits_processor"] = n("logits")[-1:]
    return dump


def test_packed_projections_tuples_and_deferred_residuals_of_vllm_are_right() -> None:
    read = right(marked(llama(), vllm(Numbers(llama()))))
    assert read["block.1.attn.v"] == "packed: cut into the columns of q, k, v"
    assert read["block.0.mlp.gate"] == "packed: cut into the columns of gate, hidden"
    assert read["block.0.mlp.gated"] == "one kernel: the activation of the gate, times up"
    assert read["block.0.attn.q_rotated"] == "a tuple: the first is read as block.L.attn.q_rotated"
    assert read["block.0.attn.add"] == "a tuple: the second is read as block.L.attn.add"
    assert read["block.0.mlp.out"] == "a tuple: the first is read as block.L.mlp.out"
    assert read["logits[4:5]"] == "the last position alone"
    assert len(read) == 33


def test_members_of_a_tuple_may_be_numbered_in_a_file(tmp_path: Path) -> None:
    named: dict[str, Array] = {}
    for name, value in vllm(Numbers(llama())).items():
        if isinstance(value, tuple):
            named |= {f"{name}.{at}": each for at, each in enumerate(value) if each is not None}
        else:
            named[name] = value
    np.savez(tmp_path / "dump.npz", **named)
    assert len(right(marked(llama(), tmp_path / "dump.npz"))) == 33


def test_one_array_of_a_layer_is_what_the_mlp_adds_where_it_equals_that() -> None:
    n = Numbers(llama())
    dump = vllm(n)
    dump |= {"model.layers.0": n("block.0.mlp.out"), "model.layers.0.mlp": n("block.0.mlp.out")}
    read = right(marked(llama(), dump))
    assert read["block.0.mlp.out"].startswith("the first member of a tuple")


def test_values_cut_at_the_wrong_place_are_an_error_of_that_line() -> None:
    dump = vllm(Numbers(llama()))
    packed = dump["model.layers.1.self_attn.qkv_proj"][0].copy()
    q, kv = HEADS * D_HEAD, KV_HEADS * D_HEAD
    packed[:, q:] = np.concatenate([packed[:, q + kv :], packed[:, q : q + kv]], axis=1)
    dump["model.layers.1.self_attn.qkv_proj"] = (packed, None)
    marking = marked(llama(), dump, suspects=False)
    wrong = [line.address for line in marking if not line.verdict.follows]
    assert wrong[:2] == ["block.1.attn.k", "block.1.attn.v"]


def test_a_packed_projection_of_another_width_is_listed_with_its_columns() -> None:
    dump = vllm(Numbers(llama()))
    dump["model.layers.0.mlp.gate_up_proj"] = np.zeros((N, 39), np.float32)
    (left,) = marked(llama(), dump).unmatched
    assert left.misfit
    assert left.reason == "columns of gate, hidden: 20 + 20 expected, 39 found"


def test_vllm_has_q_k_and_v_of_gpt_neox_side_by_side() -> None:
    attention = replace(ATTENTION, kv_heads=HEADS, packed="per_head")
    model = llama(attention, MlpSpec(20, "gelu"), family="gpt_neox")
    n = Numbers(model)
    at = "gpt_neox.layers.0.attention"
    qkv = np.concatenate([n.flat(f"block.0.attn.{each}") for each in "qkv"], axis=1)
    dump = {
        "input_ids": np.array(IDS),
        f"{at}.query_key_value": (qkv, None),
        f"{at}.attn": n.flat("block.0.attn.mixed"),
    }
    assert set(right(marked(model, dump))) == {
        f"block.0.attn.{s}" for s in ("q", "k", "v", "mixed")
    }
    del dump[f"{at}.attn"]  # then it is a module of transformers, packed head by head
    dump[f"{at}.query_key_value"] = n("block.0.attn.qkv")
    assert set(right(marked(model, dump))) == {"block.0.attn.qkv"}


# ------------------------------------------------------------------ llama.cpp


def paired(x: Array) -> Array:
    """Rows as GGUF files of llama have them: entry i beside entry i + d_head/2."""
    half = x.shape[-1] // 2
    return np.stack([x[..., :half], x[..., half:]], axis=-1).reshape(x.shape)


def ggml(n: Numbers, order: Callable[[Array], Array] = paired) -> dict[str, Array]:
    """The tensors of llama.cpp's graph, as NumPy sees their memory."""
    dump = {"tokens": np.array(IDS), "inp_embd": n("embed.token")[None, None]}
    for layer in range(2):
        at, b = f"-{layer}", f"block.{layer}"
        last = slice(-1, None) if layer else slice(None)  # only the last position's logits
        turned = {each: n(f"{b}.attn.{each}_rotated") for each in "qk"}
        products = np.einsum("hqd,hkd->hqk", turned["q"], turned["k"].repeat(HEADS // KV_HEADS, 0))
        cache = np.zeros((2, HEADS, N, 32), np.float32)  # keys are padded
        cache[0, ..., :N], cache[1, ..., :N] = products, n(f"{b}.attn.weights")
        dump |= {
            f"attn_norm{at}": n(f"{b}.attn.norm.out"),
            f"Qcur{at}": order(n(f"{b}.attn.q")).transpose(1, 0, 2).reshape(N, -1),
            f"Qcur{at}#1": order(turned["q"]).transpose(1, 0, 2),
            f"Kcur{at}": order(turned["k"]).transpose(1, 0, 2),
            f"Vcur{at}": n.flat(f"{b}.attn.v"),
            f"kq{at}": cache[0],
            f"kq_soft_max{at}": cache[1],
            f"kqv{at}": n(f"{b}.attn.mixed"),
            f"kqv_out{at}": n.flat(f"{b}.attn.mixed"),
            f"attn_out{at}": n(f"{b}.attn.out"),
            f"ffn_inp{at}": n(f"{b}.attn.add")[last],
            f"ffn_norm{at}": n(f"{b}.mlp.norm.out")[last],
            f"ffn_gate{at}": n(f"{b}.mlp.gate")[last].T,  # as ggml counts its sides
            f"ffn_up{at}": n(f"{b}.mlp.hidden")[last],
            f"ffn_swiglu{at}": n(f"{b}.mlp.gated")[last],
            f"ffn_out{at}": n(f"{b}.mlp.out")[last],
            f"l_out{at}": n(f"stream.{layer + 1}")[last],
        }
    return dump | {"result_norm": n("final.norm.out")[-1:], "result_output": n("logits")[-1:]}


PAIRS = "pairs side by side, as in GGUF files: reordered"


def test_tensors_of_llama_cpp_are_right_in_its_order_of_axes_and_pairs() -> None:
    read = right(marked(llama(), ggml(Numbers(llama()))))
    assert read["block.0.attn.q"] == f"before RoPE; {PAIRS}"
    assert (
        read["block.0.attn.q_rotated"] == read["block.1.attn.k_rotated"] == f"after RoPE; {PAIRS}"
    )
    assert read["block.0.attn.weights"] == "keys behind the text cut off"
    assert read["block.0.attn.scores"].startswith("products, times the scale")
    assert read["block.0.mlp.gate"] == "axes in ggml's order"
    assert read["block.1.mlp.out[4:5]"] == "the last position alone"
    assert len(read) == 35


def test_files_that_keep_the_order_of_pairs_are_read_as_they_are() -> None:
    read = right(marked(llama(), ggml(Numbers(llama()), lambda x: x)))
    assert read["block.0.attn.q"] == "before RoPE"


def test_a_wrong_rope_is_found_behind_the_order_of_pairs() -> None:
    n = Numbers(llama())
    dump = ggml(n)
    turned = n("block.0.attn.q_rotated")
    turned[:, :, 1::2] = -turned[:, :, 1::2]
    dump["Qcur-0#1"] = paired(turned).transpose(1, 0, 2)
    first = marked(llama(), dump, suspects=False).first_error
    assert first is not None
    assert first.address == "block.0.attn.q_rotated"
    assert first.claim.name == "Qcur-0#1"


def test_a_product_before_its_bias_is_no_step_and_is_listed() -> None:
    model = llama(replace(ATTENTION, q_bias=True))
    n = Numbers(model)
    dump = ggml(n, lambda x: x)
    dump["Qcur-0#2"] = dump.pop("Qcur-0#1")
    dump["Qcur-0#1"] = dump["Qcur-0"]
    dump["Qcur-0"] = dump["Qcur-0"] - np.asarray(model.weights["block.0.attn.q_bias"].data)
    (left,) = marked(model, dump).unmatched
    assert left.name == "Qcur-0"
    assert left.reason.startswith("a product before its bias")


ROUTED = MlpSpec(20, "silu", gated=True, experts=4, chosen=2, normalised=True)


def test_what_the_chosen_experts_give_stands_where_each_expert_does() -> None:
    model = llama(mlp=ROUTED)
    n = Numbers(model)
    dump = {"tokens": np.array(IDS)}
    for layer in range(2):
        b, at = f"block.{layer}.mlp", f"-{layer}"
        ids = np.argsort(-n(f"{b}.router"), axis=1, kind="stable")[:, :2].astype(np.int32)
        pos = np.arange(N)[:, None]
        dump |= {
            f"ffn_norm{at}": n(f"{b}.norm.out"),
            f"ffn_moe_logits{at}": n(f"{b}.router"),
            f"ffn_moe_topk{at}": ids,
            f"ffn_moe_weights_norm{at}": n(f"{b}.shares")[pos, ids],
            f"ffn_moe_gate{at}": n(f"{b}.gate")[ids, pos],
            f"ffn_moe_up{at}": n(f"{b}.hidden")[ids, pos],
            f"ffn_moe_swiglu{at}": n(f"{b}.gated")[ids, pos],
            f"ffn_moe_down{at}": n(f"{b}.answers")[ids, pos],
            f"ffn_moe_out{at}": n(f"{b}.out"),
            f"l_out{at}": n(f"stream.{layer + 1}"),
        }
    read = right(marked(model, dump))
    assert read["block.1.mlp.answers"] == "of the chosen experts, in the order of ffn_moe_topk"
    assert read["block.0.mlp.chosen"] == "ids of experts"
    dump["ffn_moe_down-1"][2, 0, 3] += 0.1
    wrong = marked(model, dump, suspects=False).first_error
    assert wrong is not None
    assert wrong.worst_address == (f"block.1.mlp.answers[{dump['ffn_moe_topk-1'][2, 0]},2,3]")


# ------------------------------------------------------------------ norms on both sides


@cache
def gemma2() -> Model:
    """A small Gemma 2: norms on both sides, gains as 1 + w, caps, scaled embeddings."""
    norm = replace(RMS, plus_one=True)
    attention = replace(ATTENTION, cap=Fraction(50))
    gated = MlpSpec(20, "gelu_tanh", gated=True)
    block = BlockSpec(attention, gated, norm, norm, attn_after=norm, mlp_after=norm)
    spec = ModelSpec(
        "small", 17, 24, None, (block, block), final_norm=norm, layout="out_in", family="gemma2",
        embed_scale=Number(Fraction(5)), logit_cap=Fraction(30),
    )  # fmt: skip
    return model_of(spec)


def test_norms_on_both_sides_are_read_from_vllm() -> None:
    n = Numbers(gemma2())
    dump: dict[str, Any] = {"input_ids": np.array(IDS)}
    for layer in range(2):
        at, b = f"model.layers.{layer}", f"block.{layer}"
        first = n(f"{b}.attn.norm.out")
        dump |= {
            f"{at}.input_layernorm": (first, n(f"stream.{layer}")) if layer else first,
            f"{at}.self_attn.attn": n.flat(f"{b}.attn.mixed"),
            f"{at}.post_attention_layernorm": n(f"{b}.attn.after.out"),
            f"{at}.pre_feedforward_layernorm": (n(f"{b}.mlp.norm.out"), n(f"{b}.attn.add")),
            f"{at}.post_feedforward_layernorm": n(f"{b}.mlp.after.out"),
            at: (n(f"{b}.mlp.after.out"), n(f"{b}.attn.add")),
        }
    read = right(marked(gemma2(), dump))
    assert read["block.1.attn.add"] == "a tuple: the second is read as block.L.attn.add"
    assert {"block.0.attn.after.out", "block.1.mlp.after.out", "block.0.mlp.add"} <= set(read)


def test_norms_on_both_sides_are_read_from_llama_cpp() -> None:
    n = Numbers(gemma2())
    dump = {"tokens": np.array(IDS), "inp_scaled": n("embed.token")}
    for layer in range(2):
        at, b = f"-{layer}", f"block.{layer}"
        dump |= {
            f"attn_norm{at}": n(f"{b}.attn.norm.out"),
            f"Qcur{at}": paired(n(f"{b}.attn.q_rotated")).transpose(1, 0, 2),
            f"attn_post_norm{at}": n(f"{b}.attn.after.out"),
            f"sa_out{at}": n(f"{b}.attn.add"),
            f"ffn_norm{at}": n(f"{b}.mlp.norm.out"),
            f"ffn_geglu{at}": n(f"{b}.mlp.gated"),
            f"ffn_out{at}": n(f"{b}.mlp.out"),
            f"ffn_post_norm{at}": n(f"{b}.mlp.after.out"),
            f"l_out{at}": n(f"stream.{layer + 1}"),
        }
    dump |= {"result_norm": n("final.norm.out"), "result_output": n("logits")}
    read = right(marked(gemma2(), dump))
    assert len(read) == 21
    dump["ffn_post_norm-1"][3, 3] += 0.5
    first = marked(gemma2(), dump, suspects=False).first_error
    assert first is not None
    assert first.worst_address == "block.1.mlp.after.out[3,3]"


# ------------------------------------------------------------------ the text of its callback


def printed(name: str, op: str, array: Array, kind: str = "f32", of: str = "x") -> str:
    """One tensor as llama-eval-callback prints it: six of each side, four decimals."""
    sides = [*reversed(array.shape), 1, 1, 1][:4]
    whole = array.reshape(sides[::-1])
    shown = ", ".join(map(str, sides))
    head = f"{name:>24} = ({kind}) {op:>10}({of}{{1, 1, 1, 1}}, }}) = {{{shown}}}"
    lines = [f"common_debug_cb_eval: {head}"]

    def kept(count: int) -> list[int | None]:
        return list(range(count)) if count <= 6 else [0, 1, 2, None, *range(count - 3, count)]

    for cube in whole:
        lines.append("    [")
        for plane in kept(cube.shape[0]):
            if plane is None:
                lines.append("        ..., ")
                continue
            lines.append("        [")
            for row in kept(cube.shape[1]):
                if row is None:
                    lines.append("            ..., ")
                    continue
                cells = ", ".join(
                    "  ..." if at is None else f"{cube[plane, row, at]:12.4f}"
                    for at in kept(cube.shape[2])
                )
                lines.append(f"            [{cells}  ],")
            lines.append("        ],")
        lines.append("    ]")
        lines.append(f"    sum = {cube.astype(np.float32).sum():f}")
    return "\n".join(lines)


def callback(n: Numbers) -> str:
    """The text of a run, with the tensors that have no name of their own."""
    b = "block.0.attn"
    parts = ["number of input tokens = 5", *(f"  {each}" for each in IDS)]
    q, turned = (
        paired(n(f"{b}.q")).transpose(1, 0, 2),
        paired(n(f"{b}.q_rotated")).transpose(1, 0, 2),
    )
    parts += [
        printed("inp_embd", "GET_ROWS", n("embed.token"), of="token_embd.weight"),
        printed("norm-0", "RMS_NORM", n(f"{b}.norm.normalized"), of="inp_embd"),
        printed("attn_norm-0", "MUL", n(f"{b}.norm.out"), of="norm-0"),
        printed("Qcur-0", "MUL_MAT", q.reshape(N, -1), of="blk.0.attn_q.weight"),
        printed("Qcur-0 (reshaped)", "RESHAPE", q, of="Qcur-0"),
        printed("Qcur-0", "ROPE", turned, of="Qcur-0 (reshaped)"),
        printed("Vcur-0", "MUL_MAT", n.flat(f"{b}.v"), of="blk.0.attn_v.weight"),
        printed("kq_soft_max-0", "SOFT_MAX", n(f"{b}.weights"), of="kq-0"),
        printed("node_33", "CONT", n.flat(f"{b}.mixed"), of="kqv-0 (permuted)"),
        printed("ffn_inp-0", "ADD", n(f"{b}.add"), of="attn_out-0"),
        printed("norm-0", "RMS_NORM", n("block.0.mlp.norm.normalized"), of="ffn_inp-0"),
        printed("l_out-0", "ADD", n("stream.1"), of="ffn_out-0"),
        printed("result_output", "MUL_MAT", n("logits")[-1:], of="output.weight"),
    ]
    return "\n".join(parts) + "\n"


def test_the_text_of_the_callback_claims_what_it_prints(tmp_path: Path) -> None:
    file = tmp_path / "run.txt"
    file.write_text(callback(Numbers(llama())), "utf-8")
    sheet = read_eval_callback(file)
    assert sheet.tokens is not None
    assert tuple(sheet.tokens) == IDS
    embedded = next(entry for entry in sheet.entries if entry.name == "inp_embd")
    assert embedded.claimed is not None
    assert embedded.claimed.sum() == N * 6
    marking = marked(llama(), file)
    assert marking.passes(allow_unjudged=True)
    assert [left.name for left in marking.unmatched] == ["Qcur-0 (reshaped)", "node_33"]
    assert [line.address for line in marking.unjudged] == ["logits[4:5]"]  # too far below
    read = {line.address: line.claim.read for line in marking}
    assert read["block.0.attn.q_rotated"] == f"after RoPE; {PAIRS}"
    assert {"block.0.attn.norm.normalized", "block.0.mlp.norm.normalized"} <= set(read)
    assert read["logits[4:5]"] == "the last position alone"


def test_a_wrong_number_of_the_text_is_an_error(tmp_path: Path) -> None:
    n = Numbers(llama())
    wrong = n("stream.1")
    wrong[2, 1] += 0.5
    text = callback(n).split("common_debug_cb_eval:")
    at = next(i for i, part in enumerate(text) if "l_out-0 =" in part)
    text[at] = printed("l_out-0", "ADD", wrong).removeprefix("common_debug_cb_eval:") + "\n"
    (tmp_path / "run.log").write_text("common_debug_cb_eval:".join(text), "utf-8")
    first = marked(llama(), tmp_path / "run.log", suspects=False).first_error
    assert first is not None
    assert first.worst_address == "block.0.mlp.add[2,1]"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text.replace("[", "[ x", 4), "its numbers cannot be read"),
        (lambda text: text.replace("{24, 5, 1, 1}\n", "{24, 99999999999, 1, 1}\n", 1), "too many"),
        (lambda text: text.replace("{24, 5, 1, 1}\n", "{24, 9, 1, 1}\n", 1), "cannot be read"),
    ],
)
def test_a_damaged_tensor_of_the_text_is_listed(tmp_path: Path, change: Any, reason: str) -> None:
    (tmp_path / "a.txt").write_text(change(callback(Numbers(llama()))), "utf-8")
    marking = marked(llama(), tmp_path / "a.txt")
    assert any(reason in left.reason for left in marking.unmatched)


def test_numbers_that_do_not_add_up_to_their_sum_are_not_judged(tmp_path: Path) -> None:
    n = Numbers(llama())
    text = printed("Kcur-0", "ROPE", paired(n("block.0.attn.k_rotated")).transpose(1, 0, 2))
    body, _sum, _total = text.rpartition("sum = ")
    whole = callback(n) + body + "sum = 99.5\n"
    (tmp_path / "a.txt").write_text(whole, "utf-8")
    *_unnamed, left = marked(llama(), tmp_path / "a.txt").unmatched
    assert left.reason == "its numbers do not add up to its sum"


def test_another_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("llama_model_loader: loaded\n", "utf-8")
    with pytest.raises(InputError) as caught:
        marked(llama(), tmp_path / "a.txt")
    assert caught.value.message == "this is not the text of llama-eval-callback"


# ------------------------------------------------------------------ Flax and ONNX


def test_intermediates_of_flax_are_nested_and_in_tuples() -> None:
    n = Numbers(llama())
    layers: dict[str, Any] = {
        str(layer): {
            "self_attn": {
                "q_proj": {"__call__": (n.flat(f"block.{layer}.attn.q")[None],)},
                "__call__": (n(f"block.{layer}.attn.out")[None],),
            },
            "mlp": {"__call__": (n(f"block.{layer}.mlp.out")[None],)},
            "__call__": (n(f"stream.{layer + 1}")[None],),
        }
        for layer in range(2)
    }
    kernel = np.asarray(llama().weights["block.1.mlp.gate"].data).T
    dump = {
        "input_ids": np.array([IDS]),
        "intermediates": {"model": {"layers": layers}},
        "params": {"model": {"layers": {"1": {"mlp": {"gate_proj": {"kernel": kernel}}}}}},
    }
    read = right(marked(llama(), dump))
    assert read["weight.block.1.mlp.gate"] == "a kernel: transposed"
    assert len(read) == 9
    layers["1"]["mlp"]["__call__"][0][0, 2, 3] += 0.1
    first = marked(llama(), dump, suspects=False).first_error
    assert first is not None
    assert first.worst_address == "block.1.mlp.out[2,3]"


def onnx(n: Numbers) -> dict[str, Array]:
    """What torch.onnx calls the tensors of a Llama with eager attention; every output is marked."""
    dump = {"input_ids": np.array([IDS]), "logits": n("logits")[None]}
    for layer in range(2):
        at, b = f"/model/layers.{layer}", f"block.{layer}"
        dump |= {
            f"{at}/input_layernorm/Sqrt_output_0": n(f"{b}.attn.norm.rms")[None, :, None],
            f"{at}/input_layernorm/Mul_output_0": n(f"{b}.attn.norm.normalized")[None],
            f"{at}/input_layernorm/Mul_1_output_0": n(f"{b}.attn.norm.out")[None],
            f"{at}/self_attn/q_proj/MatMul_output_0": n.flat(f"{b}.attn.q")[None],
            f"{at}/self_attn/Add_output_0": n(f"{b}.attn.q_rotated")[None],
            f"{at}/self_attn/Add_1_output_0": n(f"{b}.attn.k_rotated")[None],
            f"{at}/self_attn/Softmax_output_0": n(f"{b}.attn.weights")[None],
            f"{at}/self_attn/MatMul_1_output_0": n(f"{b}.attn.mixed")[None],
            f"{at}/self_attn/o_proj/MatMul_output_0": n(f"{b}.attn.out")[None],
            f"{at}/Add_output_0": n(f"{b}.attn.add")[None],
            f"{at}/mlp/act_fn/Mul_output_0": n(f"{b}.mlp.act")[None],
            f"{at}/mlp/Mul_output_0": n(f"{b}.mlp.gated")[None],
            f"{at}/Add_1_output_0": n(f"stream.{layer + 1}")[None],
        }
    return dump


def test_operations_of_an_onnx_graph_are_steps() -> None:
    read = right(marked(llama(), onnx(Numbers(llama()))))
    assert read["block.1.attn.mixed"] == "what MatMul_1 gives inside model.layers.L.self_attn"
    assert len(read) == 27


def test_an_operation_that_is_no_step_is_listed_and_a_wrong_one_found() -> None:
    dump = onnx(Numbers(llama()))
    dump["/model/layers.0/mlp/act_fn/Sigmoid_output_0"] = np.zeros((1, N, 20), np.float32)
    dump["/model/layers.1/Add_output_0"][0, 1, 7] -= 0.2
    marking = marked(llama(), dump, suspects=False)
    assert [left.reason for left in marking.unmatched] == [
        "an operation of the graph, which is no step here"
    ]
    assert marking.first_error is not None
    assert marking.first_error.worst_address == "block.1.attn.add[1,7]"
