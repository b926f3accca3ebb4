"""Attribution, the lens and ablation a second time, in NumPy alone: no plan, no number system.

A stream is a dictionary of rows by the name of what wrote them.  A norm centres and scales each of
them by what the sum of them all has; nothing of byhand is used but the specs and the weights.
Rotations, biases of scores and norms of queries and keys are left out: no term passes them.
"""

from __future__ import annotations

from math import erf, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.expression import Expression
from byhand.numbers.floats import Floats
from byhand.spec import AttentionSpec, BlockSpec, NormSpec
from oracles.architectures import Case

Rows = npt.NDArray[np.float64]
Stream = dict[str, Rows]

WISHES = {
    "rope": False, "alibi": False, "score table": False, "q norm": "none", "k norm": "none"
}  # fmt: skip
_erf = np.vectorize(erf, otypes=[float])
BENT = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + _erf(x / sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "identity": lambda x: x,
}


def whole(parts: Stream) -> Rows:
    return np.sum(list(parts.values()), axis=0)


def _floats(data: Any) -> Rows:
    return np.asarray(Floats("float64").admit(data), np.float64)


def _scale(scale: Expression | None) -> float:
    return 1.0 if scale is None else float(_floats(np.array([scale], object))[0])


class Net:
    """One pass over a case without the parts named by `gone` (addresses of parts and weights)."""

    def __init__(self, case: Case, *gone: str) -> None:
        self.case, self.spec, self.gone = case, case.spec, frozenset(gone)
        self.weights = {name: _floats(tensor.data) for name, tensor in case.weights.items()}
        self.limits = False  # whether a norm had nothing to divide by
        self.stops: list[Rows] = []  # the stream after the embedding and after each side-trip
        self.stream = self._run()
        self.terms = self.end(self.stream)
        self.logits = whole(self.terms)

    def lens(self) -> list[Rows]:
        return [whole(self.end({"": rows})) for rows in self.stops]

    def end(self, parts: Stream) -> Stream:
        """Through the final norm and the unembedding."""
        spec = self.spec
        table = self.weights["embed.token"].T if spec.tied else self._matrix("head")
        found = {
            name: rows @ table
            for name, rows in self._norm(spec.final_norm, "final.norm", parts).items()
        }
        return found | self._bias("head_bias", spec.head_bias)

    def _run(self) -> Stream:
        spec, case, w = self.spec, self.case, self.weights
        parts: Stream = {}
        if "embed.token" not in self.gone:
            parts["embed.token"] = w["embed.token"][list(case.tokens)] * _scale(spec.embed_scale)
        if spec.position != "none" and "embed.position" not in self.gone:
            parts["embed.position"] = self._places()
        self.stops.append(whole(parts))
        for layer, block in enumerate(spec.blocks):
            parts = self._block(f"block.{layer}", block, parts)
        return parts

    def _places(self) -> Rows:
        spec, places = self.spec, np.array(self.case.positions)
        if spec.position == "learned":
            return self.weights["embed.position"][places]
        entry = np.arange(spec.d_model)
        turn = places[:, None] / float(spec.position_base) ** (entry // 2 * 2 / spec.d_model)
        return np.where(entry % 2 == 0, np.sin(turn), np.cos(turn))

    def _block(self, at: str, block: BlockSpec, parts: Stream) -> Stream:
        entering = parts
        trips = (
            ("attn", block.attention, block.attn_norm, self._attention),
            ("mlp", block.mlp, block.mlp_norm, self._mlp),
        )
        for name, spec, norm, write in trips:
            if spec is None:
                continue
            read = entering if block.parallel and name == "mlp" else parts
            pre = block.norm_place == "pre"
            x = whole(self._norm(norm, f"{at}.{name}.norm", read) if pre else read)
            if f"{at}.{name}.out" not in self.gone:
                parts = parts | write(f"{at}.{name}", spec, x)
            if not pre:
                parts = self._norm(norm, f"{at}.{name}.norm", parts)
            self.stops.append(whole(parts))
        return parts

    def _norm(self, norm: NormSpec, at: str, parts: Stream) -> Stream:
        if norm.kind == "none":
            return parts
        if norm.kind == "layernorm":
            parts = {name: x - x.mean(axis=1, keepdims=True) for name, x in parts.items()}
        square = (whole(parts) ** 2).mean(axis=1, keepdims=True)
        std = np.sqrt(square + float(norm.eps))
        flat = std < 1e-9
        self.limits |= bool(flat.any())
        gain = self.weights[f"{at}.gain"] if norm.gain else 1.0
        parts = {
            name: np.where(flat, 0, x / np.where(flat, 1, std)) * gain for name, x in parts.items()
        }
        return parts | self._bias(f"{at}.bias", norm.bias)

    def _attention(self, at: str, spec: AttentionSpec, x: Rows) -> Stream:
        q, k, v = self._queries_keys_values(at, spec, x)
        found: Stream = {}
        for head in range(spec.heads):
            group = head // (spec.heads // spec.kv_heads)
            shares = self._shares(spec, q[:, head] @ k[:, group].T * _scale(spec.scale))
            if f"{at}.mixed[{head}]" in self.gone:
                shares = shares * 0
            columns = slice(head * spec.d_head, (head + 1) * spec.d_head)
            for key, value in enumerate(v[:, group]):
                mixed = np.zeros((len(x), spec.q_width))
                mixed[:, columns] = shares[:, [key]] * value
                written = mixed @ self._matrix(f"{at}.out") if spec.out else mixed
                found[f"{at}.head_out.key[{head},{key}]"] = written
        return found | self._bias(f"{at}.out_bias", spec.out_bias)

    def _queries_keys_values(self, at: str, spec: AttentionSpec, x: Rows) -> list[Rows]:
        if not spec.packed:
            made = [x @ self._matrix(f"{at}.{n}") + self._plain(f"{at}.{n}_bias") for n in "qkv"]
            return [rows.reshape(len(x), -1, spec.d_head) for rows in made]
        rows = x @ self._matrix(f"{at}.qkv") + self._plain(f"{at}.qkv_bias")
        if spec.packed == "per_head":
            split = rows.reshape(len(x), spec.heads, 3, spec.d_head)
            return [split[:, :, i] for i in range(3)]
        ends = [spec.q_width, spec.q_width + spec.kv_width]
        return [part.reshape(len(x), -1, spec.d_head) for part in np.split(rows, ends, axis=1)]

    def _shares(self, spec: AttentionSpec, scores: Rows) -> Rows:
        mask = self.case.mask
        for i, j in np.ndindex(*scores.shape):
            later = spec.causal and j > i
            far = spec.window is not None and i - j >= spec.window
            if later or far or (mask is not None and not mask[i][j]):
                scores[i, j] = -np.inf
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def _mlp(self, at: str, spec: Any, x: Rows) -> Stream:
        units = x @ self._matrix(f"{at}.hidden") + self._plain(f"{at}.hidden_bias")
        if spec.gated:
            gate = x @ self._matrix(f"{at}.gate") + self._plain(f"{at}.gate_bias")
            units = units * BENT[spec.activation](gate)
        else:
            units = BENT[spec.activation](units)
        name = f"{at}.gated" if spec.gated else f"{at}.act"
        out = self._matrix(f"{at}.out")
        found = {
            f"{name}[{unit}]": np.outer(
                units[:, unit] * (f"{at}.act[:,{unit}]" not in self.gone), out[unit]
            )
            for unit in range(spec.d_ff)
        }
        return found | self._bias(f"{at}.out_bias", spec.out_bias)

    def _matrix(self, name: str) -> Rows:
        return self.weights[name] if self.spec.layout == "in_out" else self.weights[name].T

    def _plain(self, name: str) -> Rows | float:
        return 0.0 if f"weight.{name}" in self.gone else self.weights.get(name, 0.0)

    def _bias(self, name: str, there: bool) -> Stream:
        """A bias as a source of its own."""
        if not there:
            return {}
        row = self.weights[name] * (f"weight.{name}" not in self.gone)
        return {f"weight.{name}": np.tile(row, (len(self.case.tokens), 1))}
