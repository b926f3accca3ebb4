"""The tensors of a GGUF file under byhand's names, each unpacked when it is first needed.

Headers are checked at once: missing or unread tensors, wrong shapes.  Some files pack two matrices
into one, or split one in two; their entries are put together here and not changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from byhand.errors import InputError, ShapeError, nearest
from byhand.files.gguf import Contents, Packed
from byhand.files.mapped import shown, sides
from byhand.language import _
from byhand.models.gguf.rotation import FREQUENCIES, LONG, SHORT
from byhand.parameters import Parameter, parameters
from byhand.spec import ModelSpec
from byhand.weights import Data, Tensor, Weights

OUTSIDE = {
    "embed.token": "token_embd.weight",
    "embed.position": "position_embd.weight",
    "final.norm.gain": "output_norm.weight",
    "final.norm.bias": "output_norm.bias",
    "head": "output.weight",
    "head_bias": "output.bias",
}
# within a block: byhand's module → the file's
INSIDE = {
    "attn.norm": "attn_norm",
    "attn.q": "attn_q",
    "attn.k": "attn_k",
    "attn.v": "attn_v",
    "attn.qkv": "attn_qkv",
    "attn.q_norm": "attn_q_norm",
    "attn.k_norm": "attn_k_norm",
    "attn.sinks": "attn_sinks",
    "attn.out": "attn_output",
    "attn.after": "post_attention_norm",
    "attn.q_latent": "attn_q_a",
    "attn.q_latent_norm": "attn_q_a_norm",
    "attn.q_wide": "attn_q_b",
    "attn.kv_latent": "attn_kv_a_mqa",
    "attn.kv_latent_norm": "attn_kv_a_norm",
    "attn.kv_wide": "attn_kv_b",
    "mlp.norm": "ffn_norm",
    "mlp.gate": "ffn_gate",
    "mlp.hidden": "ffn_up",
    "mlp.out": "ffn_down",
    "mlp.after": "post_ffw_norm",
    "mlp.router": "ffn_gate_inp",
    "mlp.shared.gate": "ffn_gate_shexp",
    "mlp.shared.hidden": "ffn_up_shexp",
    "mlp.shared.out": "ffn_down_shexp",
    "mlp.shared.score": "ffn_gate_inp_shexp",
}
EXPERTS = {"mlp.gate": "ffn_gate_exps", "mlp.hidden": "ffn_up_exps", "mlp.out": "ffn_down_exps"}
_BLOCK_NAME = re.compile(r"block\.(\d+)\.(.+)")
_KEPT = re.compile(r"(.+?)(\.gain|\.bias|_bias)?")


@dataclass(frozen=True)
class _Source:
    """Where the entries of a tensor come from: some tensors of the file, put together."""

    tensors: Sequence[Packed]
    shape: tuple[int, ...]  # as the file has it
    put_together: Callable[..., Data]

    def opened(self, shape: tuple[int, ...]) -> Data:
        return self.put_together(*(tensor.array() for tensor in self.tensors)).reshape(shape)

    def addends(self, shape: tuple[int, ...]) -> Data:
        """The sums of the sizes of each entry's terms."""
        return self.put_together(*(tensor.addends() for tensor in self.tensors)).reshape(shape)

    def misread(self, shape: tuple[int, ...]) -> Iterator[tuple[str, Data]]:
        """What readers of the format make of it by mistake."""
        for name, numbers in self.tensors[0].misread():
            yield name, self.put_together(numbers).reshape(shape)

    def as_tensor(self, parameter: Parameter) -> Tensor:
        """The tensor under byhand's name, still packed."""
        sizes = [tensor.size for tensor in self.tensors]
        bits = sum((tensor.size * tensor.bits for tensor in self.tensors), Fraction(0))
        return Tensor.at(
            parameter.name,
            partial(self.opened, parameter.shape),
            parameter.shape,
            np.result_type(*(tensor.dtype for tensor in self.tensors)),
            kept=False,
            portable=True,
            stored="+".join(dict.fromkeys(tensor.type.name for tensor in self.tensors)),
            bits=bits / sum(sizes),
            addends=partial(self.addends, parameter.shape)
            if any(tensor.of_two_terms for tensor in self.tensors)
            else None,
            misread=partial(self.misread, parameter.shape) if len(self.tensors) == 1 else None,
        )


def read_weights(contents: Contents, spec: ModelSpec) -> Weights:
    """All the tensors the spec needs; InputError for one that is missing, extra or misshapen."""
    return _Reader(contents, spec).weights()


class _Reader:
    def __init__(self, contents: Contents, spec: ModelSpec) -> None:
        self.contents, self.spec = contents, spec
        self.stored: Mapping[str, Packed] = contents.tensors
        self.used: set[str] = {FREQUENCIES, SHORT, LONG}

    def weights(self) -> Weights:
        made = {p.name: self.source(p).as_tensor(p) for p in parameters(self.spec)}
        self.nothing_else()
        return Weights(made)

    def source(self, parameter: Parameter) -> _Source:
        """Where a parameter's entries are."""
        block = _BLOCK_NAME.fullmatch(parameter.name)
        if block is None:
            return self.whole(parameter, OUTSIDE[parameter.name])
        at = f"blk.{block[1]}."
        if block[2] == "mlp.choice_bias":
            return self.whole(parameter, f"{at}exp_probs_b.bias")
        kept = _KEPT.fullmatch(block[2])
        assert kept is not None
        module, bias = kept[1], (kept[2] or "").endswith("bias")
        if module in ("mlp.gate", "mlp.hidden") and not bias:
            packed = self.halves(parameter, at, second=module == "mlp.hidden")
            if packed is not None:
                return packed
        if module == "attn.kv_wide" and f"{at}attn_k_b.weight" in self.stored:
            return self.keys_and_values(parameter, at)
        return self.whole(parameter, at + self.file_name(at, module, bias))

    def file_name(self, at: str, module: str, bias: bool) -> str:
        """What the file calls a weight or a bias within a block."""
        name = INSIDE.get(module, module)
        if module in EXPERTS and f"{at}ffn_gate_inp.weight" in self.stored:
            name = EXPERTS[module]
        if module == "mlp.norm" and self.spec.family == "gpt_oss":
            name = "post_attention_norm"
        if self.spec.family == "falcon" and f"{at}attn_norm_2.weight" in self.stored:
            name = {"attn.norm": "attn_norm_2", "mlp.norm": "attn_norm"}.get(module, name)
        if module == "attn.q_wide" and f"{at}attn_q_b.weight" not in self.stored:
            name = "attn_q"
        return f"{name}.{'bias' if bias else 'weight'}"

    # -------------------------------------------------------------- where entries are

    def whole(self, parameter: Parameter, file: str) -> _Source:
        """One tensor as it is; sides of 1 may be left out."""
        tensor = self.tensor(parameter, file, parameter.shape)
        if _long(tensor.shape) != _long(parameter.shape):
            raise _misshapen(tensor, parameter.shape)
        return _Source([tensor], tensor.shape, _itself)

    def halves(self, parameter: Parameter, at: str, *, second: bool) -> _Source | None:
        """One half of a tensor that holds the gate's rows and then the others'; None: it has not"""
        together = f"{at}ffn_gate_up_exps.weight"
        if together not in self.stored:
            together = f"{at}ffn_up.weight"
            apart = f"{at}ffn_gate.weight" in self.stored
            if apart or together not in self.stored or len(parameter.shape) != 2:
                return None
            if self.stored[together].shape[0] != 2 * parameter.shape[0]:
                return None
        *outer, rows, columns = parameter.shape
        both = (*outer, 2 * rows, columns)
        tensor = self.tensor(parameter, together, both)
        if tensor.shape != both:
            raise _misshapen(tensor, both)
        return _Source([tensor], both, partial(_half, second=second))

    def keys_and_values(self, parameter: Parameter, at: str) -> _Source:
        """Latent attention's matrix of keys and values, of the two that the file has.

        Keys are (head, rank, entry) and values (head, entry, rank).
        """
        layer = self.spec.blocks[int(at.split(".")[1])].attention
        assert layer is not None
        assert layer.latent is not None
        assert layer.rotary is not None
        still, rank = layer.d_head - layer.rotary.width, layer.latent.rank
        shapes = (layer.heads, rank, still), (layer.heads, layer.value_width, rank)
        pair = []
        for name, shape in zip(("attn_k_b.weight", "attn_v_b.weight"), shapes, strict=True):
            tensor = self.tensor(parameter, at + name, shape)
            if tensor.shape != shape:
                raise _misshapen(tensor, shape)
            pair.append(tensor)
        return _Source(pair, parameter.shape, _keys_then_values)

    def tensor(self, parameter: Parameter, file: str, shape: tuple[int, ...]) -> Packed:
        """A tensor of the file, which must be there."""
        if file not in self.stored:
            raise InputError(
                _("the tensor {name} is missing").format(name=file),
                where=str(self.contents.path),
                expected=f"{file} {sides(shape)}",
                found=_some(list(self.stored)) or _("nothing"),
                hint=nearest(file, self.stored),
            )
        self.used.add(file)
        return self.stored[file]

    def nothing_else(self) -> None:
        """Refuses tensors that nothing reads."""
        extra = [name for name in self.stored if name not in self.used]
        if extra:
            raise InputError(
                _("the tensor {name} is none of a {family} model with these settings").format(
                    name=shown(extra[0]), family=self.spec.family
                ),
                where=str(self.contents.path),
                expected=_("only tensors that the model reads"),
                found=_some(extra),
            )


def _itself(data: Data) -> Data:
    return data


def _half(data: Data, *, second: bool) -> Data:
    rows = data.shape[-2] // 2
    return data[..., rows:, :] if second else data[..., :rows, :]


def _keys_then_values(keys: Data, values: Data) -> Data:
    return np.concatenate((keys.transpose(0, 2, 1), values), axis=1)


def _long(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The sides that are longer than 1."""
    return tuple(side for side in shape if side != 1)


def _misshapen(tensor: Packed, expected: tuple[int, ...]) -> ShapeError:
    return ShapeError(
        _("the tensor {name} has another shape than the settings say").format(name=tensor.name),
        where=tensor.where,
        expected=sides(expected),
        found=sides(tensor.shape),
    )


def _some(names: list[str]) -> str:
    return ", ".join(map(shown, names[:6])) + (", …" if len(names) > 6 else "")
