"""Steps under the names of engines: vLLM, llama.cpp, MLX, Flax and ONNX.

llama.cpp names the tensors of its graph: `LLAMA_CPP` is the whole knowledge, a row a step.  The
others keep the module names of `transformers`, each in its own spelling, so their names are made
from those of the family:

    vllm    model.layers.0.mlp                                  but for what vLLM packs or fuses
    mlx     model.layers.0.mlp
    flax    intermediates/model/layers/0/mlp/__call__/0         of capture_intermediates
    onnx    /model/layers.0/mlp/down_proj/MatMul_output_0       of torch.onnx: the last operation
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from byhand.parameters import parameters
from byhand.spec import BlockSpec, ModelSpec, NormSpec

ENGINES = ("vllm", "llama.cpp", "mlx", "flax", "onnx")


@dataclass(frozen=True, slots=True)
class TensorName:
    """A tensor of llama.cpp's graph, `-L` with the number of its layer behind it, and its step.

    Several addresses, separated by blanks, are alternatives: a model has one of them.  `axes` are
    the sides of the array as NumPy has them, the last one running fastest; ggml counts them the
    other way round.
    """

    name: str
    address: str
    axes: str  # one group of axes a side: "pos head·d_head"
    what: str
    when: str = ""  # what must be true of the block


# fmt: off
LLAMA_CPP = (
    TensorName("inp_embd", "embed.token", "pos d", "rows of the token table",
               "unscaled no_segments"),
    TensorName("inp_embd", "embed.sum stream.0", "pos d", "in BERT: the sum of all embeddings",
               "segments"),
    TensorName("embd", "embed.token", "pos d", "the same in newer versions", "unscaled"),
    TensorName("inp_scaled", "embed.token", "pos d", "the same, scaled", "scaled"),
    TensorName("pos_embd", "embed.position", "pos d", "rows of the position table"),
    TensorName("inpL", "stream.0", "pos d", "what enters the first block"),
    TensorName("inp_norm", "embed.norm.out", "pos d", "norm of the embeddings"),
    TensorName("attn_norm-L", "block.L.attn.norm.out", "pos d", "first norm", "pre"),
    TensorName("wqkv-L", "block.L.attn.qkv", "pos packed", "q, k and v packed", "no_qkv_bias"),
    TensorName("wqkv_b-L", "block.L.attn.qkv", "pos packed", "the same with its bias", "qkv_bias"),
    TensorName("Qcur-L", "block.L.attn.q_rotated block.L.attn.q", "pos head·d_head",
               "queries: before RoPE and after it"),
    TensorName("Kcur-L", "block.L.attn.k_rotated block.L.attn.k", "pos kv_head·d_head",
               "keys: before RoPE and after it"),
    TensorName("Vcur-L", "block.L.attn.v", "pos kv_head·d_head", "values"),
    TensorName("Qcur_normed-L", "block.L.attn.q_norm", "pos head·d_head", "norm of queries"),
    TensorName("Kcur_normed-L", "block.L.attn.k_norm", "pos kv_head·d_head", "norm of keys"),
    TensorName("Qcur_clamped-L", "block.L.attn.q_clipped", "pos head·d_head", "queries, clipped"),
    TensorName("Kcur_clamped-L", "block.L.attn.k_clipped", "pos kv_head·d_head", "keys, clipped"),
    TensorName("Vcur_clamped-L", "block.L.attn.v_clipped", "pos kv_head·d_head",
               "values, clipped"),
    TensorName("kq-L", "block.L.attn.scores", "head query key", "scores, not yet scaled or masked",
               "plain_scores"),
    TensorName("kq_soft_max-L", "block.L.attn.weights", "head query key", "softmax of the scores"),
    TensorName("kq_soft_max_ext-L", "block.L.attn.weights", "head query key",
               "the same in older versions"),
    TensorName("kqv-L", "block.L.attn.mixed", "head pos d_head", "weighted sums of values"),
    TensorName("kqv_out-L", "block.L.attn.mixed", "pos head·d_head",
               "the same, heads side by side"),
    TensorName("kqv_merged_cont-L", "block.L.attn.mixed", "pos head·d_head",
               "the same in older versions"),
    TensorName("attn_out-L", "block.L.attn.out", "pos d", "what attention adds"),
    TensorName("attn_post_norm-L", "block.L.attn.after.out", "pos d", "norm after attention",
               "attn_after"),
    TensorName("cross_inp-L", "block.L.attn.add", "pos d", "in T5: the stream after attention"),
    TensorName("attn_norm_cross-L", "block.L.cross.norm.out", "pos d", "norm before the source"),
    TensorName("ffn_inp-L", "block.L.cross.add block.L.attn.add", "pos d",
               "the stream after attention", "middle pre"),
    TensorName("ffn_inp-L", "block.L.attn.norm.out", "pos d", "the same, normed", "middle post"),
    TensorName("sa_out-L", "block.L.attn.add", "pos d", "the same in Gemma", "middle"),
    TensorName("ffn_norm-L", "block.L.mlp.norm.out", "pos d", "second norm", "pre"),
    TensorName("attn_post_norm-L", "block.L.mlp.norm.out", "pos d", "second norm of gpt-oss",
               "no_attn_after"),
    TensorName("ffn_gate-L", "block.L.mlp.gate", "pos d_ff", "gate", "gated no_gate_bias"),
    TensorName("ffn_gate_b-L", "block.L.mlp.gate", "pos d_ff", "gate with its bias",
               "gated gate_bias"),
    TensorName("ffn_up-L", "block.L.mlp.hidden", "pos d_ff", "what the gate multiplies, or hidden",
               "no_hidden_bias"),
    TensorName("ffn_up_b-L", "block.L.mlp.hidden", "pos d_ff", "the same with its bias",
               "hidden_bias"),
    TensorName("ffn_silu-L", "block.L.mlp.act", "pos d_ff", "SiLU: of the gate, or of a plain MLP"),
    TensorName("ffn_gelu-L", "block.L.mlp.act", "pos d_ff", "GELU, likewise"),
    TensorName("ffn_relu-L", "block.L.mlp.act", "pos d_ff", "ReLU, likewise", "not_squared"),
    TensorName("ffn_sqr(relu)-L", "block.L.mlp.act", "pos d_ff", "ReLU²", "squared"),
    TensorName("ffn_gate_par-L", "block.L.mlp.gated", "pos d_ff", "act · hidden", "gated"),
    TensorName("ffn_swiglu-L", "block.L.mlp.gated", "pos d_ff", "the same in one kernel", "gated"),
    TensorName("ffn_geglu-L", "block.L.mlp.gated", "pos d_ff", "the same with GELU", "gated"),
    TensorName("ffn_reglu-L", "block.L.mlp.gated", "pos d_ff", "the same with ReLU", "gated"),
    TensorName("ffn_moe_logits-L", "block.L.mlp.router", "pos expert", "the router's scores",
               "no_router_bias"),
    TensorName("ffn_moe_logits_biased-L", "block.L.mlp.router", "pos expert",
               "the same with their bias", "router_bias"),
    TensorName("ffn_moe_probs-L", "block.L.mlp.router_scores", "pos expert",
               "their sigmoids, where it scores by these", "sigmoid"),
    TensorName("ffn_moe_probs_biased-L", "block.L.mlp.ranked", "pos expert",
               "what experts are chosen by"),
    TensorName("ffn_moe_topk-L", "block.L.mlp.chosen", "pos chosen", "ids of the chosen experts"),
    TensorName("ffn_moe_weights-L", "block.L.mlp.shares", "pos chosen", "their shares",
               "shares_plain"),
    TensorName("ffn_moe_weights_softmax-L", "block.L.mlp.shares", "pos chosen", "their shares",
               "shares_normalised"),
    TensorName("ffn_moe_weights_norm-L", "block.L.mlp.shares", "pos chosen", "their shares",
               "shares_normalised"),
    TensorName("ffn_moe_weights_scaled-L", "block.L.mlp.shares", "pos chosen", "their shares",
               "shares_scaled"),
    TensorName("ffn_moe_gate-L", "block.L.mlp.gate", "pos chosen d_ff", "gates of the chosen",
               "no_gate_bias"),
    TensorName("ffn_moe_gate_biased-L", "block.L.mlp.gate", "pos chosen d_ff",
               "gates of the chosen", "gate_bias"),
    TensorName("ffn_moe_up-L", "block.L.mlp.hidden", "pos chosen d_ff", "hidden of the chosen",
               "no_hidden_bias"),
    TensorName("ffn_moe_up_biased-L", "block.L.mlp.hidden", "pos chosen d_ff",
               "hidden of the chosen", "hidden_bias"),
    TensorName("ffn_moe_gate_par-L", "block.L.mlp.gated", "pos chosen d_ff", "act · hidden"),
    TensorName("ffn_moe_swiglu-L", "block.L.mlp.gated", "pos chosen d_ff", "act · hidden"),
    TensorName("ffn_moe_geglu-L", "block.L.mlp.gated", "pos chosen d_ff", "act · hidden"),
    TensorName("ffn_moe_swiglu_oai-L", "block.L.mlp.gated", "pos chosen d_ff", "act · hidden"),
    TensorName("ffn_moe_down-L", "block.L.mlp.answers", "pos chosen d", "answers of the chosen",
               "no_out_bias"),
    TensorName("ffn_moe_down_biased-L", "block.L.mlp.answers", "pos chosen d",
               "answers of the chosen", "out_bias"),
    TensorName("ffn_moe_out-L", "block.L.mlp.combined block.L.mlp.out", "pos d",
               "their sum by shares", "experts"),
    TensorName("ffn_shexp-L", "block.L.mlp.shared.out", "pos d", "the shared expert's answer"),
    TensorName("ffn_shexp_gate_inp-L", "block.L.mlp.shared.score", "pos one", "its score"),
    TensorName("ffn_shexp_gate-L", "block.L.mlp.shared.share", "pos one", "its share"),
    TensorName("ffn_shexp_out-L", "block.L.mlp.shared.weighed", "pos d", "its answer by its share"),
    TensorName("ffn_out-L", "block.L.mlp.out", "pos d", "what the MLP adds"),
    TensorName("ffn_post_norm-L", "block.L.mlp.after.out", "pos d", "norm after the MLP"),
    TensorName("l_out-L", "stream.L+1", "pos d", "what leaves block L"),
    TensorName("norm", "final.norm.normalized", "pos d", "last norm, before gain and bias",
               "last"),
    TensorName("result_norm", "final.norm.out", "pos d", "last norm"),
    TensorName("result_embd", "final.norm.out", "pos d", "the same, of an encoder"),
    TensorName("result_output", "logits", "pos vocab", "logits"),
)
# fmt: on


def tensor_names(spec: ModelSpec, known: Mapping[str, str]) -> Iterator[tuple[str, TensorName]]:
    """(address of a step, llama.cpp's name of it), L filled in, in spine order."""
    layers = {layer: facts(spec, layer) for layer in (None, *range(len(spec.blocks)))}
    for row in LLAMA_CPP:
        for layer, true in layers.items():
            if ("-L" in row.name) is (layer is None):
                continue
            if not true.issuperset(row.when.split()):
                continue
            chosen = "chosen" in row.axes  # of experts, not of a single MLP
            if chosen != ("experts" in true) and (chosen or "d_ff" in row.axes):
                continue
            for address in row.address.split():
                step = known.get(_at(address, layer))
                if step is not None:
                    yield (
                        step,
                        TensorName(_at(row.name, layer), _at(address, layer), row.axes, row.what),
                    )
                    break


def facts(spec: ModelSpec, layer: int | None) -> set[str]:
    """What is true of a model and of one of its blocks, in the words of `TensorName.when`."""
    found = {"last", "scaled" if spec.embed_scale is not None else "unscaled"}
    found.add(_yes(spec.segments is not None, "segments"))
    if layer is None:
        return found
    block = spec.blocks[layer]
    found |= {block.norm_place, _yes(_there(block.attn_after), "attn_after")}
    if block.attention is not None:
        attn = block.attention
        found.add(_yes(attn.q_bias, "qkv_bias"))
        if attn.cap is None and not (attn.alibi or attn.score_table or attn.relative):
            found.add("plain_scores")
    return found | _facts_of_mlp(block)


def _facts_of_mlp(block: BlockSpec) -> set[str]:
    mlp = block.mlp
    if mlp is None:
        return set()
    found = {
        "parallel" if block.parallel else "middle",
        "gated" if mlp.gated else "plain",
        "squared" if mlp.activation == "relu2" else "not_squared",
        _yes(mlp.gate_bias, "gate_bias"),
        _yes(mlp.hidden_bias, "hidden_bias"),
        _yes(mlp.out_bias, "out_bias"),
        _yes(mlp.router_bias, "router_bias"),
    }
    if mlp.experts is not None:
        shares = "normalised" if mlp.normalised else "plain"
        found |= {"experts", "shares_scaled" if mlp.share_scale != 1 else f"shares_{shares}"}
    if mlp.scoring == "sigmoid":
        found.add("sigmoid")
    return found


def _yes(there: bool, word: str) -> str:
    return word if there else f"no_{word}"


def _there(norm: NormSpec) -> bool:
    return norm.kind != "none"


_LAYER = re.compile(r"\bL(\+1)?(?!\w)")


def _at(template: str, layer: int | None) -> str:
    if layer is None:
        return template
    return _LAYER.sub(lambda match: str(layer + bool(match.group(1))), template)


# ------------------------------------------------------------------ names that are written


Pair = tuple[str, str]  # the address of a step, its name


def engine_pairs(
    style: str, modules: Iterable[Pair], spec: ModelSpec, known: Mapping[str, str]
) -> Iterator[Pair]:
    """(address of a step, its name in an engine); `modules` has the names of `transformers`.

    What an engine has in another form (scores that are not scaled, the chosen experts alone) has no
    name here: a name stands for the same numbers in both worlds.
    """
    if style == "llama.cpp":
        for step, row in tensor_names(spec, known):
            if "chosen" not in row.axes and not row.name.startswith("kq-"):
                yield step, row.name
    elif style == "onnx":
        yield from _onnx_pairs(dict(_first(modules)), spec, known)
    else:
        for address, module in modules:
            if (name := of_module(style, module)) is not None:
                yield address, name
            if style == "vllm" and module.endswith(".o_proj"):  # what its attention kernel gives
                mixed = known.get(address.removesuffix(".out") + ".mixed")
                yield from ((mixed, module.removesuffix("o_proj") + "attn"),) if mixed else ()
            if style == "vllm" and address == "logits":
                yield address, "logits_processor"


def _first(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Of several names of a step, the first."""
    seen: set[str] = set()
    for address, name in pairs:
        if address not in seen:
            seen.add(address)
            yield address, name


FUSED = re.compile(  # what vLLM packs, fuses or gives as a tuple: it has no name of one step
    r".*\.(?:self_attn|attn)\.(?:q_proj|k_proj|v_proj)|.*\.mlp\.(?:gate_proj|up_proj|act_fn)"
    r"|.*\.(?:layers|h)\.\d+|lm_head"
)


def of_module(style: str, module: str) -> str | None:
    """An engine's name of what a module of `transformers` gives; None where it has none.

    >>> of_module("flax", "model.layers.0.mlp")
    'intermediates/model/layers/0/mlp/__call__/0'
    >>> of_module("mlx", "gpt_neox.layers.0.mlp"), of_module("vllm", "model.layers.0")
    ('model.h.0.mlp', None)
    """
    if style == "mlx":  # activations and dropout are no modules there
        if module.rpartition(".")[2] in ("act_fn", "act", "drop", "emb_dropout", "dropout"):
            return None
        module = module.replace("gpt_neox.layers.", "gpt_neox.h.")
        return re.sub(r"^(?:transformer|gpt_neox)\.", "model.", module)
    if style == "vllm":
        return None if FUSED.fullmatch(module) else module
    return "intermediates/" + module.replace(".", "/") + "/__call__/0"


def onnx_path(module: str) -> str:
    """A module's path in ONNX names: a number stays with the list that it counts in.

    >>> onnx_path("model.layers.0.mlp.down_proj")
    '/model/layers.0/mlp/down_proj'
    """
    return "/" + re.sub(r"/(\d+)(?=/|$)", r".\1", module.replace(".", "/"))


ACTIVATED = {  # the last operation of an activation
    "silu": "Mul", "relu": "Relu", "gelu": "Mul_1", "gelu_tanh": "Mul_3", "sigmoid": "Sigmoid",
    "tanh": "Tanh",
}  # fmt: skip
_WITHIN = {  # operations inside attention, an MLP and a layer
    "attn.q_rotated": "Add", "attn.k_rotated": "Add_1", "attn.weights": "Softmax",
    "attn.mixed": "MatMul_1",
}  # fmt: skip


def _onnx_pairs(
    modules: Mapping[str, str], spec: ModelSpec, known: Mapping[str, str]
) -> Iterator[Pair]:
    """What an operation gives that is the last one of its module, or a step inside it."""
    sizes = {each.name for each in parameters(spec)}
    for address, module in modules.items():
        last = _last_operation(address, module, spec, sizes)
        if last is not None:
            yield address, f"{onnx_path(module)}/{last}_output_0"
    for layer, block in enumerate(spec.blocks):
        at = f"block.{layer}"
        whole = modules.get(known.get(f"{at}.attn.out", ""), "")
        inside = {f"{at}.{name}": op for name, op in _WITHIN.items()} if whole else {}
        for name, op in inside.items():
            if name.endswith("_rotated") and not turns_whole_heads(block):
                continue
            if name in known and block.attention is not None and block.attention.out:
                yield known[name], f"{onnx_path(whole.rpartition('.')[0])}/{op}_output_0"
        down = modules.get(known.get(f"{at}.mlp.out", ""), "")
        above = down.rpartition(".")[0]
        if above and f"{at}.mlp.gated" in known and block.mlp and block.mlp.experts is None:
            yield known[f"{at}.mlp.gated"], f"{onnx_path(above)}/Mul_output_0"
        serial = not block.parallel and block.norm_place == "pre"
        if above and serial and f"{at}.attn.add" in known:
            yield known[f"{at}.attn.add"], f"{onnx_path(above.rpartition('.')[0])}/Add_output_0"


def turns_whole_heads(block: BlockSpec) -> bool:
    """Whether RoPE turns whole heads, so that one sum gives all of them."""
    rotary = block.attention.rotary if block.attention else None
    return rotary is not None and block.attention is not None and (
        rotary.width == block.attention.d_head and rotary.pairing == "half"
    )  # fmt: skip


def _last_operation(address: str, module: str, spec: ModelSpec, weights: set[str]) -> str | None:
    if re.fullmatch(r"(?:.*\.)?(?:layers|h)\.\d+", module):
        return "Add_1" if address.endswith(".mlp.add") else None
    if address == "embed.token":
        return "Gather"
    if address.endswith((".norm.out", ".after.out")):
        gain = f"{address.removesuffix('.out')}.bias"
        return "LayerNormalization" if gain in weights else "Mul_1"
    if address.endswith(".mlp.act"):
        own = address.removeprefix("encoder.")
        side = spec if own == address or spec.encoder is None else spec.encoder
        mlp = side.blocks[int(own.split(".")[1])].mlp
        return ACTIVATED.get(mlp.activation) if mlp is not None else None
    if address not in weights:
        return None
    if module.rpartition(".")[2] in ("c_attn", "c_proj", "c_fc"):  # Conv1D
        return "Reshape_1"
    return "Add" if f"{address}_bias" in weights else "MatMul"
