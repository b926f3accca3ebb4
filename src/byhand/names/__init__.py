"""Steps under other people's names: TransformerLens, Hugging Face modules, and engines.

`ROWS` is the whole knowledge, one row a step; docs/names.md is printed from it.  A name stands for
what the library computes at that place, up to the order of the axes, which the row tells.  Which
step that is can depend on the model: `mlp.hook_pre` is the gate of a gated MLP, and parallel blocks
have no `hook_resid_mid`.  So every function takes the spec and `known`, the addresses and aliases
of the plan, each with the address of its step.

    steps(spec, known)              every foreign name that has a step here → the step's address
    matching(pattern, spec, known)  the addresses a foreign name, group or pattern with * stands for
    names(style, spec, known)       the steps' addresses → their names in one style, one to one

A plan asks `steps` where it does not know a name itself, and `matching` where a pattern fits none
of its own names.  To write another style, use `names(…).get(address, address)`: a step without a
name in the library keeps its own.  Values and axes stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from byhand.errors import UsageError, nearest
from byhand.language import _
from byhand.names.derived import HUGGING_FACE, derived_pairs
from byhand.names.engines import ENGINES, engine_pairs
from byhand.spec import BlockSpec, ModelSpec

FOREIGN = ("transformer_lens", "transformer_bridge", "gpt2", "llama", "gpt_neox")
# huggingface: by the names of the model's family
STYLES = ("byhand", *FOREIGN, HUGGING_FACE, *ENGINES)
PREFIXES = ("transformer.", "model.", "gpt_neox.")  # may be left out of a Hugging Face name
WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
_LAYER = re.compile(r"\bL(\+1)?(?!\w)")


@dataclass(frozen=True, slots=True)
class Row:
    """One step and its names.

    Several addresses, separated by blanks, are alternatives: a model has one of them.  Of several
    names, byhand writes the first and reads all.
    """

    address: str
    what: str
    transformer_lens: str = ""
    gpt2: str = ""
    llama: str = ""
    gpt_neox: str = ""
    remark: str = ""
    when: str = ""  # what must be true of the block: pre, post, gated, plain, middle, parallel
    transformer_bridge: str = ""  # TransformerLens from 4.0 on, which has its older hooks too

    def names(self, style: str) -> tuple[str, ...]:
        """The names of the step in one style, first the one that byhand writes."""
        return tuple(getattr(self, style).split())


def _norm_rows(at: str, hooks: str, what: str, flat: str = "") -> tuple[Row, Row]:
    """The rows of TransformerLens's hooks inside a norm, before gain and bias.

    Up to 2.x, a LayerNorm is hooked after gain and bias; `checking.matches.names` tells which it
    is.
    """
    one = "TransformerLens keeps a last axis of 1"
    return (
        Row(f"{at}.std {at}.rms", f"{what}: what is divided by", f"{hooks}.hook_scale",
            remark=flat or one),
        Row(f"{at}.normalized", f"{what}, before gain and bias", f"{hooks}.hook_normalized",
            remark=flat or "of a LayerNorm, after them in TransformerLens up to 2.x"),
    )  # fmt: skip


_HEADS_LAST = "TransformerLens: pos, head, d_head"
_FLAT = f"{_HEADS_LAST}; Hugging Face: pos, head·d_head"
_ROWS_OF_HEADS = "TransformerLens: one row for each position and head"
# fmt: off
_IN = (
    Row("tokens", "ids of the text", "hook_tokens",
        transformer_bridge="embed.hook_in"),
    Row("embed.token", "rows of the token table", "hook_embed",
        "transformer.wte", "model.embed_tokens", "gpt_neox.embed_in",
        transformer_bridge="embed.hook_out"),
    Row("embed.position", "rows of the position table", "hook_pos_embed",
        "transformer.wpe", transformer_bridge="pos_embed.hook_out"),
    Row("stream.0", "what enters the first block", "blocks.0.hook_resid_pre", "transformer.drop",
        gpt_neox="gpt_neox.emb_dropout"),
)
_BLOCK = (
    Row("stream.L", "what enters block L", "blocks.L.hook_resid_pre",
        transformer_bridge="blocks.L.hook_in"),
    Row("stream.L", "pre-norm: what the first norm reads", when="pre",
        transformer_bridge="blocks.L.ln1.hook_in"),
    *_norm_rows("block.L.attn.norm", "blocks.L.ln1", "first norm"),
    Row("block.L.attn.norm.out", "first norm", "", "transformer.h.L.ln_1",
        "model.layers.L.input_layernorm", "gpt_neox.layers.L.input_layernorm",
        transformer_bridge="blocks.L.ln1.hook_out"),
    Row("block.L.attn.norm.out", "pre-norm: what attention reads", when="pre",
        transformer_bridge="blocks.L.attn.hook_in blocks.L.attn.q.hook_in blocks.L.attn.k.hook_in"
        " blocks.L.attn.v.hook_in"),
    Row("block.L.attn.qkv", "q, k and v packed", "", "transformer.h.L.attn.c_attn", "",
        "gpt_neox.layers.L.attention.query_key_value", "the same order of columns"),
    Row("block.L.attn.q", "queries", "blocks.L.attn.hook_q",
        llama="model.layers.L.self_attn.q_proj", remark=_FLAT,
        transformer_bridge="blocks.L.attn.q.hook_out"),
    Row("block.L.attn.k", "keys", "blocks.L.attn.hook_k",
        llama="model.layers.L.self_attn.k_proj", remark=_FLAT,
        transformer_bridge="blocks.L.attn.k.hook_out"),
    Row("block.L.attn.v", "values", "blocks.L.attn.hook_v",
        llama="model.layers.L.self_attn.v_proj", remark=_FLAT,
        transformer_bridge="blocks.L.attn.v.hook_out"),
    *_norm_rows("block.L.attn.q_norm", "blocks.L.attn.q_norm", "norm of queries", _ROWS_OF_HEADS),
    Row("block.L.attn.q_norm", "norm of queries", llama="model.layers.L.self_attn.q_norm",
        remark="pos, head, d_head",
        transformer_bridge="blocks.L.attn.q_norm.hook_out blocks.L.attn.hook_q_normed"),
    *_norm_rows("block.L.attn.k_norm", "blocks.L.attn.k_norm", "norm of keys", _ROWS_OF_HEADS),
    Row("block.L.attn.k_norm", "norm of keys", llama="model.layers.L.self_attn.k_norm",
        remark="pos, head, d_head",
        transformer_bridge="blocks.L.attn.k_norm.hook_out blocks.L.attn.hook_k_normed"),
    Row("block.L.attn.q_rotated", "queries after RoPE", "blocks.L.attn.hook_rot_q",
        remark=_HEADS_LAST, transformer_bridge="blocks.L.attn.hook_rot_q"),
    Row("block.L.attn.k_rotated", "keys after RoPE", "blocks.L.attn.hook_rot_k",
        remark=_HEADS_LAST, transformer_bridge="blocks.L.attn.hook_rot_k"),
    Row("block.L.attn.scores", "scores, scaled and masked", "blocks.L.attn.hook_attn_scores",
        remark="masked: absent here, −∞ there",
        transformer_bridge="blocks.L.attn.hook_attn_scores"),
    Row("block.L.attn.weights", "softmax of the scores", "blocks.L.attn.hook_pattern",
        remark="masked: absent here, 0 there", transformer_bridge="blocks.L.attn.hook_pattern"),
    Row("block.L.attn.mixed", "weighted sums of values", "blocks.L.attn.hook_z",
        remark=_HEADS_LAST, transformer_bridge="blocks.L.attn.o.hook_in"),
    Row("block.L.attn.head_out", "each head through its part of W_out",
        "blocks.L.attn.hook_result", remark="TransformerLens: pos, head, d",
        transformer_bridge="blocks.L.attn.hook_result"),
    Row("block.L.attn.out", "what attention adds", "blocks.L.hook_attn_out",
        "transformer.h.L.attn.c_proj transformer.h.L.attn transformer.h.L.attn.resid_dropout",
        "model.layers.L.self_attn.o_proj model.layers.L.self_attn",
        "gpt_neox.layers.L.attention.dense gpt_neox.layers.L.attention"
        " gpt_neox.layers.L.post_attention_dropout",
        "an attention module gives a tuple: this is its first",
        transformer_bridge="blocks.L.attn.hook_out blocks.L.attn.o.hook_out"
        " blocks.L.attn.hook_hidden_states"),
    Row("block.L.attn.add", "the stream after attention", "blocks.L.hook_resid_mid",
        remark="not in parallel blocks", when="middle"),
    Row("block.L.attn.add", "pre-norm: what the second norm reads", when="pre middle",
        transformer_bridge="blocks.L.ln2.hook_in"),
    Row("stream.L", "parallel: what the second norm reads", when="pre parallel",
        transformer_bridge="blocks.L.ln2.hook_in"),
    *_norm_rows("block.L.mlp.norm", "blocks.L.ln2", "second norm"),
    Row("block.L.mlp.norm.out", "second norm", "", "transformer.h.L.ln_2",
        "model.layers.L.post_attention_layernorm", "gpt_neox.layers.L.post_attention_layernorm",
        transformer_bridge="blocks.L.ln2.hook_out"),
    Row("block.L.mlp.norm.out", "pre-norm: what the MLP reads", when="pre",
        transformer_bridge="blocks.L.mlp.hook_in blocks.L.mlp.in.hook_in"
        " blocks.L.mlp.gate.hook_in"),
    Row("block.L.mlp.gate", "gated MLP: the gate, before its activation", "blocks.L.mlp.hook_pre",
        llama="model.layers.L.mlp.gate_proj", when="gated",
        transformer_bridge="blocks.L.mlp.gate.hook_out"),
    Row("block.L.mlp.hidden", "gated MLP: what the gate multiplies", "blocks.L.mlp.hook_pre_linear",
        llama="model.layers.L.mlp.up_proj", when="gated",
        remark="a bias is in it here and in Hugging Face, not in TransformerLens up to 3.x",
        transformer_bridge="blocks.L.mlp.in.hook_out"),
    Row("block.L.mlp.hidden", "plain MLP: before the activation", "blocks.L.mlp.hook_pre",
        "transformer.h.L.mlp.c_fc", "model.layers.L.mlp.up_proj",
        "gpt_neox.layers.L.mlp.dense_h_to_4h", when="plain",
        transformer_bridge="blocks.L.mlp.in.hook_out"),
    Row("block.L.mlp.act", "gated MLP: activation of the gate", llama="model.layers.L.mlp.act_fn",
        when="gated"),
    Row("block.L.mlp.act", "plain MLP: activation", "blocks.L.mlp.hook_post",
        "transformer.h.L.mlp.act", "model.layers.L.mlp.act_fn", "gpt_neox.layers.L.mlp.act",
        when="plain", transformer_bridge="blocks.L.mlp.out.hook_in"),
    Row("block.L.mlp.gated", "gated MLP: act · hidden", "blocks.L.mlp.hook_post", when="gated",
        transformer_bridge="blocks.L.mlp.out.hook_in"),
    Row("block.L.mlp.out", "what the MLP adds", "blocks.L.hook_mlp_out",
        "transformer.h.L.mlp.c_proj transformer.h.L.mlp transformer.h.L.mlp.dropout",
        "model.layers.L.mlp.down_proj model.layers.L.mlp",
        "gpt_neox.layers.L.mlp.dense_4h_to_h gpt_neox.layers.L.mlp"
        " gpt_neox.layers.L.post_mlp_dropout",
        transformer_bridge="blocks.L.mlp.hook_out blocks.L.mlp.out.hook_out"),
    Row("block.L.mlp.add", "post-norm: the stream before its norm", "blocks.L.hook_resid_post",
        when="post"),
    Row("stream.L+1", "pre-norm: what leaves block L", "blocks.L.hook_resid_post",
        "transformer.h.L", "model.layers.L", "gpt_neox.layers.L", when="pre",
        transformer_bridge="blocks.L.hook_out"),
    Row("stream.L+1", "post-norm: what leaves block L", "blocks.L.hook_normalized_resid_post",
        "transformer.h.L", "model.layers.L", "gpt_neox.layers.L", when="post"),
)
_OUT = (
    Row("stream.L", "what the last norm reads", transformer_bridge="ln_final.hook_in"),
    *_norm_rows("final.norm", "ln_final", "last norm"),
    Row("final.norm.out", "last norm", "unembed.hook_in", "transformer.ln_f", "model.norm",
        "gpt_neox.final_layer_norm", "the hooks of unembed: from TransformerLens 3.0 on",
        transformer_bridge="ln_final.hook_out unembed.hook_in"),
    Row("logits", "logits", "unembed.hook_out", "lm_head", "lm_head", "lm_head embed_out",
        "embed_out: in older transformers", transformer_bridge="unembed.hook_out hook_unembed"),
)
# fmt: on
ROWS = (*_IN, *_BLOCK, *_OUT)


def steps(spec: ModelSpec, known: Mapping[str, str]) -> dict[str, str]:
    """Every foreign name that has a step here, with the step's address.

    A Hugging Face name may leave out its first word (`transformer`, `model`, `gpt_neox`).
    """
    found: dict[str, str] = {}
    for style in FOREIGN:
        for address, name in _every_pair(style, spec, known):
            found[name] = address
            grad = "grad." * name.startswith("grad.")
            for prefix in PREFIXES:
                if name.startswith(grad + prefix):
                    found[grad + name.removeprefix(grad + prefix)] = address
    for step, name in derived_pairs(spec.family, _layers(spec), known):
        if step is None:
            found.pop(name, None)  # in other families it is a step
    found |= {name: step for step, name in _every_pair(HUGGING_FACE, spec, known)}
    for style in ENGINES:  # where they name a module, it is as in transformers
        for address, name in _engine_pairs(style, spec, known):
            found.setdefault(name, address)
    return found


def matching(pattern: str, spec: ModelSpec, known: Mapping[str, str]) -> tuple[str, ...]:
    """The addresses of the steps that a foreign name, group or pattern with * stands for.

    A name stands for one step even if others lie under it: `transformer.h.0` is the output of block
    0, `blocks.0` all of its hooks.
    """
    found = steps(spec, known)
    if pattern in found:
        return (found[pattern],)
    return tuple(dict.fromkeys(
        address for name, address in found.items()
        if fnmatchcase(name, pattern) or name.startswith(pattern + ".")
    ))  # fmt: skip


def names(style: str, spec: ModelSpec, known: Mapping[str, str]) -> dict[str, str]:
    """The steps' addresses with their names in one style; no two steps have the same name.

    Steps without a name in this style are left out; the style "byhand" leaves out all.
    """
    if style not in STYLES:
        raise UsageError(
            _("there is no style of names called {style}").format(style=repr(style)),
            expected=", ".join(STYLES),
            found=repr(style),
            hint=nearest(style, STYLES),
        )
    found: dict[str, str] = {}
    pairs = _engine_pairs if style in ENGINES else _every_pair
    for address, name in pairs(style, spec, known) if style != "byhand" else ():
        found.setdefault(address, name)
    if style in ENGINES:  # a name that means another step elsewhere is read, and not written
        meant = steps(spec, known)
        found = {address: name for address, name in found.items() if meant[name] == address}
    return found


def _engine_pairs(
    style: str, spec: ModelSpec, known: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The pairs of an engine, most of them made from the module names of the family."""
    if spec.family:
        base = spec.family if spec.family in FOREIGN else HUGGING_FACE
    else:
        base = "gpt2" if spec.position == "learned" else "llama"
    yield from engine_pairs(style, _pairs(base, spec, known), spec, known)


def _layers(spec: ModelSpec) -> int:
    """How many blocks the longer of a model's stacks has."""
    return max(len(spec.blocks), len(spec.encoder.blocks) if spec.encoder else 0)


def without_wrappers(name: str) -> str:
    """A module's name without what torch.compile, FSDP and checkpointing put into it.

    >>> without_wrappers("_orig_mod.model.layers.0._checkpoint_wrapped_module.mlp")
    'model.layers.0.mlp'
    """
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def _every_pair(style: str, spec: ModelSpec, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The pairs of the steps, then of their gradients and of the weights' gradients.

    A gradient is called `grad.` and what it is the gradient of: grad.transformer.h.0.mlp.c_fc.bias.
    """
    yield from _pairs(style, spec, known)
    grads = {name.removeprefix("grad."): step for name, step in known.items()
             if name.startswith("grad.")}  # fmt: skip
    if not grads:
        return
    for address, name in _pairs(style, spec, grads):
        yield address, f"grad.{name}"
    modules = _pairs(style, spec, {name: name for name in grads if not name.startswith("weight.")})
    named: dict[str, str] = {}
    for name, module in modules:
        named.setdefault(name, module)
    for name, step in grads.items():
        whose, kept = _module_of(name.removeprefix("weight."))
        module = named.get(whose) or named.get(whose.removesuffix(".out"), "hook")
        if name.startswith("weight.") and "hook" not in module:  # hooks keep no weights
            yield step, f"grad.{module}.{kept}"


def _module_of(weight: str) -> tuple[str, str]:
    """The step that a module with this weight gives, and what the module calls the weight.

    >>> _module_of("block.0.attn.qkv_bias"), _module_of("final.norm.gain"), _module_of("head")
    (('block.0.attn.qkv', 'bias'), ('final.norm.out', 'weight'), ('logits', 'weight'))
    """
    head, _point, last = weight.rpartition(".")
    if head.endswith("norm"):
        return f"{head}.out", "weight" if last == "gain" else "bias"
    if weight in ("head", "head_bias"):
        return "logits", "bias" if weight == "head_bias" else "weight"
    bias = weight.endswith("_bias")
    return weight.removesuffix("_bias"), "bias" if bias else "weight"


def _pairs(style: str, spec: ModelSpec, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(address of a step, its name) in spine order; of several names the better one first."""
    if style == HUGGING_FACE:
        pairs = derived_pairs(spec.family, _layers(spec), known)
        yield from ((step, name) for step, name in pairs if step is not None)
        return
    for row in _IN:
        yield from _named(row, style, None, known)
    for layer, block in enumerate(spec.blocks):
        kind = _kind(block)
        for row in _BLOCK:
            if kind.issuperset(row.when.split()):
                yield from _named(row, style, layer, known)
    for row in _OUT:  # behind the last block
        yield from _named(row, style, len(spec.blocks), known)


def _kind(block: BlockSpec) -> set[str]:
    """What is true of a block, in the words of `Row.when`."""
    kind = {block.norm_place}
    if block.mlp:
        kind.add("gated" if block.mlp.gated else "plain")
        kind.add("parallel" if block.parallel else "middle")  # a place between the sublayers
    return kind


def _named(
    row: Row, style: str, layer: int | None, known: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    for address in row.address.split():
        if (step := known.get(_at(address, layer))) is not None:
            for name in row.names(style):
                yield step, _at(name, layer)


def _at(template: str, layer: int | None) -> str:
    """The template with the layer's number for L, and the next one's for L+1."""
    if layer is None:
        return template
    return _LAYER.sub(lambda match: str(layer + bool(match.group(1))), template)
