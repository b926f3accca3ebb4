"""Models that TransformerLens processed: norms folded, writing weights and unembedding centred.

Unless told not to, TransformerLens changes the weights when it loads a model, so that

    fold_ln                 gains and biases of norms go into the matrices that read them
    center_writing_weights  what is added to the stream has mean 0 (with LayerNorms alone)
    center_unembed          the logits of a position have mean 0
    fold_value_biases       biases of values go into the bias of the output

The next tokens stay the same, but most numbers do not.  `processed` finds out from a dump what was
done, and makes the same of the model: the lines are judged by that, with a note that says so.
Matrices that were refactored have no such model: their lines are left aside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.claims import Entry, Sheet
from byhand.checking.dumps.view import Read, Text, View, aside
from byhand.language import _
from byhand.model import Model
from byhand.numbers.floats import FORMATS
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec
from byhand.weights import Tensor, Weights

Floats = npt.NDArray[np.float64]
WRITING, UNEMBED, VALUES = "center_writing_weights", "center_unembed", "fold_value_biases"
FOLD = "fold_ln"
NEGLIGIBLE = 1e-3  # the mean of a centred row, beside what is typical of its numbers
_STREAM = re.compile(
    r"hook_embed|hook_pos_embed|blocks\.\d+\.hook_(?:resid_\w+|attn_out|mlp_out|in|out)"
    r"|(?:pos_)?embed\.hook_out"
)
_EMBEDDED = re.compile(
    r"hook_(?:pos_)?embed|(?:pos_)?embed\.hook_out|blocks\.0\.(?:hook_resid_pre|(?:ln[12]\.)?hook_in)"
)
ROUNDINGS = 8
_LOGITS = ("unembed.hook_out", "hook_unembed", "logits")
_VALUE = re.compile(r"blocks\.0\.attn\.(?:hook_v|v\.hook_out)")
_OUT = ("blocks.0.hook_attn_out", "blocks.0.attn.hook_out")


def processed(sheet: Sheet, model: Model, text: Text | None) -> tuple[Model, tuple[str, ...]]:
    """The model as TransformerLens made it, and what it did; the model itself where nothing."""
    hooks = any("hook_" in entry.name for entry in sheet.entries)
    if not hooks or not _can_be_folded(model.spec):
        return model, ()
    try:
        done = tuple(_done(sheet.entries, model))
        if text is not None and _values_folded(sheet.entries, model, done, text):
            done = (*done, VALUES)
        return (_Folding(model, done).model(), (FOLD, *done)) if done else (model, ())
    except (TypeError, ValueError):  # weights that are no numbers
        return model, ()


def loosened(sheet: Sheet, done: tuple[str, ...]) -> Sheet:
    """The sheet with slack in its centred embeddings.

    Centring a table rounds in units of its numbers, not of the smaller ones that are left.
    """
    if WRITING not in done:
        return sheet
    return replace(sheet, entries=tuple(map(_with_slack, sheet.entries)))


def _with_slack(entry: Entry) -> Entry:
    if not _EMBEDDED.fullmatch(entry.name) or entry.format not in FORMATS or not entry.values.size:
        return entry
    unit = 2.0 ** (1 - FORMATS[entry.format].bits)
    largest = np.abs(entry.values.astype(np.float64)).max(axis=-1, keepdims=True)
    slack = np.broadcast_to(ROUNDINGS * unit * largest, entry.values.shape)
    return replace(entry, slack=slack.copy())


def processing_told(done: tuple[str, ...]) -> str:
    """What was done, in a sentence."""
    return _(
        "TransformerLens changed the weights when it loaded the model ({options}); "
        "its lines are judged by what that makes of the model"
    ).format(options=", ".join(done))


# ------------------------------------------------------------------ what was done


def _done(entries: tuple[Entry, ...], model: Model) -> Iterator[str]:
    named = {entry.name: entry for entry in entries if entry.values.dtype.kind == "f"}
    stream = [entry for name, entry in named.items() if _STREAM.fullmatch(name)]
    if _layer_norms(model.spec) and _most(stream) and not _by_itself(model):
        yield WRITING
    if _most([named[name] for name in _LOGITS if name in named]):
        yield UNEMBED


def _most(entries: list[Entry]) -> bool:
    """Whether most of the arrays are centred: one of them may be wrong."""
    return bool(entries) and sum(map(_centred, entries)) * 4 >= len(entries) * 3


def _centred(entry: Entry) -> bool:
    """Whether most rows have mean 0."""
    if entry.values.ndim < 2 or entry.values.shape[-1] < 2 or not entry.values.size:
        return False
    rows = np.asarray(entry.values, np.float64).reshape(-1, entry.values.shape[-1])
    rows = rows[np.isfinite(rows).all(axis=1)]
    size = float(np.sqrt(np.mean(rows**2))) if rows.size else 0.0
    return size > 0 and float(np.median(np.abs(rows.mean(axis=1)))) <= NEGLIGIBLE * size


def _by_itself(model: Model) -> bool:
    """Whether the rows of the model's own token table have mean 0."""
    table = _array(model.weights["embed.token"].data)
    return bool(np.all(np.abs(table.mean(axis=1)) <= NEGLIGIBLE * np.sqrt(np.mean(table**2))))


def _values_folded(
    entries: tuple[Entry, ...], model: Model, done: tuple[str, ...], text: Text
) -> bool:
    """Whether the values of the first block have lost their bias, and its output has it instead.

    A port that forgets the bias has lost it too; then the output is wrong.
    """
    named = {entry.name: entry for entry in entries}
    values = next((entry for name, entry in named.items() if _VALUE.fullmatch(name)), None)
    bias = _Folding(model, ()).value_bias(0)
    true = text.true(model, "block.0.attn.v")
    if values is None or bias is None or true is None or values.values.size != true.size:
        return False
    heads, length, width = true.shape
    theirs = np.asarray(values.values, np.float64).reshape(length, heads * width)
    ours = true.transpose(1, 0, 2).reshape(length, -1)
    if not _off(theirs, ours - bias) < _off(theirs, ours) / 2:
        return False
    out = next((named[name] for name in _OUT if name in named), None)
    added = text.true(model, "block.0.attn.out")
    if out is None or added is None or out.values.size != added.size:
        return bool(done)
    added = added - added.mean(axis=1, keepdims=True) * (WRITING in done)
    return _off(np.asarray(out.values, np.float64).reshape(added.shape), added) < NEGLIGIBLE


def _off(theirs: Floats, ours: Floats) -> float:
    """How far numbers are off, beside their size."""
    return float(np.linalg.norm(theirs - ours)) / max(float(np.linalg.norm(ours)), 1e-300)


# ------------------------------------------------------------------ which models can be made


def _can_be_folded(spec: ModelSpec) -> bool:
    """Whether it is a model of the plain kind, of which the folding is known."""
    more = (spec.encoder, spec.head, spec.embed_width, spec.segments, spec.relative,
            spec.head_scale, spec.logit_scale, spec.logit_cap, spec.outputs)  # fmt: skip
    return (
        all(each is None for each in more)
        and spec.embed_norm.kind == "none"
        and all(map(_is_plain, spec.blocks))
    )


def _is_plain(block: BlockSpec) -> bool:
    attn, mlp = block.attention, block.mlp
    if attn is None or mlp is None or block.norm_place != "pre":
        return False
    more = (block.cross, block.add_scale, mlp.experts, mlp.limit, attn.latent, attn.clip,
            attn.d_value)  # fmt: skip
    norms = (block.attn_after, block.mlp_after)
    return (
        all(each is None for each in more)
        and all(norm.kind == "none" for norm in norms)
        and not (block.one_norm or block.from_norm)
        and (attn.out and attn.queries)
    )


def _layer_norms(spec: ModelSpec) -> bool:
    norms = [spec.final_norm, *(norm for b in spec.blocks for norm in (b.attn_norm, b.mlp_norm))]
    return all(norm.kind == "layernorm" for norm in norms)


# ------------------------------------------------------------------ the model that it made


class _Folding:
    """The weights of a model, folded and centred as asked."""

    def __init__(self, model: Model, done: tuple[str, ...]) -> None:
        self.was, self.done = model, done
        self.turned = model.spec.layout == "out_in"
        self.found: dict[str, Any] = {}

    def model(self) -> Model:
        """The model with other weights: its norms have no gain and no bias."""
        spec = self.was.spec
        blocks = tuple(self._block(layer, block) for layer, block in enumerate(spec.blocks))
        centre = WRITING in self.done
        for name in ("embed.token", "embed.position"):
            if name in self.was.weights:
                table = _array(self.was.weights[name].data)
                self.found[name] = table - table.mean(axis=1, keepdims=True) * centre
        self._head()
        made = replace(
            spec, blocks=blocks, final_norm=_bare(spec.final_norm), tied=False, head_bias=True
        )
        tensors = {name: Tensor(name, data) for name, data in self.found.items()}
        return replace(self.was, spec=made, weights=Weights(tensors))

    def _head(self) -> None:
        spec = self.was.spec
        if spec.tied:
            matrix = _array(self.was.weights["embed.token"].data).T  # (d, vocab)
        else:
            matrix = self._matrix("head")
        bias = self._vector("head_bias", matrix.shape[1])
        matrix, bias = self._reading(matrix, bias, "final.norm", spec.final_norm)
        if UNEMBED in self.done:
            matrix = matrix - matrix.mean(axis=1, keepdims=True)
            bias = bias - bias.mean()
        self._put("head", matrix)
        self.found["head_bias"] = bias

    def _block(self, layer: int, block: BlockSpec) -> BlockSpec:
        assert block.attention is not None
        assert block.mlp is not None
        at = f"block.{layer}"
        attention = self._attention(f"{at}.attn", block.attention, block.attn_norm)
        mlp = self._mlp(f"{at}.mlp", block.mlp, block.mlp_norm)
        return replace(
            block, attention=attention, mlp=mlp, attn_norm=_bare(block.attn_norm),
            mlp_norm=_bare(block.mlp_norm),
        )  # fmt: skip

    def _attention(self, at: str, attn: AttentionSpec, norm: NormSpec) -> AttentionSpec:
        for name in ("q_norm.gain", "q_norm.bias", "k_norm.gain", "k_norm.bias", "slopes",
                     "score_table", "frequencies", "sinks"):  # fmt: skip
            if f"{at}.{name}" in self.was.weights:
                self.found[f"{at}.{name}"] = self.was.weights[f"{at}.{name}"].data
        out = self._matrix(f"{at}.out")
        out_bias = self._vector(f"{at}.out_bias", out.shape[1])
        for name in ("qkv",) if attn.packed else ("q", "k", "v"):
            matrix, bias = self._read_by(f"{at}.{name}", norm)
            if VALUES in self.done and name in ("qkv", "v"):
                places = _places_of_values(attn) if attn.packed else np.arange(bias.size)
                out_bias = out_bias + _repeated(bias[places], attn) @ out
                bias = bias.copy()
                bias[places] = 0
            self._put(f"{at}.{name}", matrix)
            self.found[f"{at}.{name}_bias"] = bias
        self._writing(f"{at}.out", out, out_bias)
        return replace(attn, q_bias=True, k_bias=True, v_bias=True, out_bias=True)

    def _mlp(self, at: str, mlp: MlpSpec, norm: NormSpec) -> MlpSpec:
        for name in ("gate", "hidden") if mlp.gated else ("hidden",):
            matrix, bias = self._read_by(f"{at}.{name}", norm)
            self._put(f"{at}.{name}", matrix)
            self.found[f"{at}.{name}_bias"] = bias
        out = self._matrix(f"{at}.out")
        self._writing(f"{at}.out", out, self._vector(f"{at}.out_bias", out.shape[1]))
        return replace(mlp, gate_bias=mlp.gated, hidden_bias=True, out_bias=True)

    def value_bias(self, layer: int) -> Floats | None:
        """The bias of a block's values, with what its norm adds to it."""
        block = self.was.spec.blocks[layer]
        attn = block.attention
        if attn is None:
            return None
        at = f"block.{layer}.attn"
        _matrix, bias = self._read_by(f"{at}.qkv" if attn.packed else f"{at}.v", block.attn_norm)
        return bias[_places_of_values(attn)] if attn.packed else bias

    # ------------------------------------------------------------------ matrices

    def _read_by(self, name: str, norm: NormSpec) -> tuple[Floats, Floats]:
        matrix = self._matrix(name)
        bias = self._vector(f"{name}_bias", matrix.shape[1])
        return self._reading(matrix, bias, f"{name.rpartition('.')[0]}.norm", norm)

    def _reading(
        self, matrix: Floats, bias: Floats, at: str, norm: NormSpec
    ) -> tuple[Floats, Floats]:
        """A matrix that reads a norm, with the norm's gain and bias in it."""
        if norm.bias:
            bias = bias + _array(self.was.weights[f"{at}.bias"].data) @ matrix
        if norm.gain:
            matrix = matrix * (_array(self.was.weights[f"{at}.gain"].data) + norm.plus_one)[:, None]
        return matrix, bias

    def _writing(self, name: str, matrix: Floats, bias: Floats) -> None:
        """A matrix that writes to the stream, and its bias."""
        if WRITING in self.done:
            matrix = matrix - matrix.mean(axis=1, keepdims=True)
            bias = bias - bias.mean()
        self._put(name, matrix)
        self.found[f"{name}_bias"] = bias

    def _matrix(self, name: str) -> Floats:
        """A matrix as (in, out)."""
        data = _array(self.was.weights[name].data)
        return data.T if self.turned else data

    def _put(self, name: str, matrix: Floats) -> None:
        self.found[name] = np.ascontiguousarray(matrix.T if self.turned else matrix)

    def _vector(self, name: str, size: int) -> Floats:
        there = name in self.was.weights
        return _array(self.was.weights[name].data) if there else np.zeros(size)


def _bare(norm: NormSpec) -> NormSpec:
    return replace(norm, gain=False, bias=False, plus_one=False)


def _array(data: Any) -> Floats:
    return np.asarray(data, dtype=np.float64)


def _places_of_values(attn: AttentionSpec) -> npt.NDArray[np.intp]:
    """The columns of the values in a packed matrix."""
    width = attn.d_head
    if attn.packed == "per_head":
        starts = np.arange(attn.heads) * 3 * width + 2 * width
        return (starts[:, None] + np.arange(width)).reshape(-1)
    return np.arange(attn.q_width + attn.kv_width, attn.q_width + 2 * attn.kv_width)


def _repeated(bias: Floats, attn: AttentionSpec) -> Floats:
    """The bias of every head's values, where several heads share them."""
    each = bias.reshape(attn.kv_heads, -1)
    return np.repeat(each, attn.heads // attn.kv_heads, axis=0).reshape(-1)


# ------------------------------------------------------------------ refactored matrices


_MIXED = re.compile(r"blocks\.\d+\.attn\.(?:hook_[qkvz]|[qkv]\.hook_out|o\.hook_in)")


def read_refactored(entry: Entry, view: View) -> Read | None:
    """Leaves queries, keys, values and their mixture aside where their matrices were refactored."""
    if not _MIXED.fullmatch(entry.name) or not _refactored(view):
        return None
    reason = _("TransformerLens refactored the attention matrices: only products are the model's")
    hint = _("load the model without refactor_factored_attn_matrices")
    return [aside(entry, reason, hint)]


def _refactored(view: View) -> bool:
    """Whether queries and keys of the first block are others, and their products the same."""
    if "refactored" not in view.decided:
        view.decided["refactored"] = _others_with_the_same_products(view)
    return bool(view.decided["refactored"])


def _others_with_the_same_products(view: View) -> bool:
    found = [view.entries.get(f"blocks.0.attn.hook_{each}") for each in "qk"]
    true = [view.true(f"block.0.attn.{each}") if view.has(f"block.0.attn.{each}") else None
            for each in "qk"]  # fmt: skip
    pairs = list(zip(found, true, strict=True))
    turned = []
    for entry, value in pairs:
        if entry is None or value is None or entry.values.size != value.size:
            return False
        heads, length, width = value.shape
        theirs = np.asarray(entry.values, np.float64).reshape(length, heads, width)
        turned.append(theirs.transpose(1, 0, 2))
    q, k = (value for _entry, value in pairs if value is not None)
    if view.has("block.0.attn.q_rotated") or np.allclose(turned[0], q, rtol=1e-2, atol=1e-2):
        return False
    groups = len(q) // len(k)
    ours = q @ np.repeat(k, groups, 0).transpose(0, 2, 1)
    theirs = turned[0] @ np.repeat(turned[1], groups, 0).transpose(0, 2, 1)
    return bool(np.max(np.abs(ours - theirs)) <= NEGLIGIBLE * np.max(np.abs(ours)))
