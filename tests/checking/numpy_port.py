"""A port of three families of models to NumPy, with one mistake in it on request.

Written as a person would write it, without the plan and without byhand's numbers.  Each line is
computed in float64 and stored in float32; `dump` holds what was stored, under the addresses of the
trace.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.model import Model
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, NormSpec, RotarySpec

Data = npt.NDArray[Any]


class Port:
    """One forward pass; `bug` names the mistake that is made."""

    def __init__(
        self, model: Model, tokens: Sequence[int], target: int, bug: str = "", padding: int = 0
    ) -> None:
        self.spec, self.bug, self.padding = model.spec, bug, padding
        self.w = {name: np.asarray(t.data, np.float64) for name, t in model.weights.items()}
        self.tokens, self.target = list(tokens), target
        self.dump: dict[str, Data] = {}
        self._run()

    def store(self, address: str, value: Data) -> Data:
        """What a port in float32 goes on with."""
        stored = np.asarray(value).astype(np.float32).astype(np.float64)
        if address:
            self.dump[address] = stored
        return stored

    def has(self, *bugs: str) -> bool:
        return self.bug in bugs

    def _run(self) -> None:
        x = self._embed()
        for layer, block in enumerate(self.spec.blocks):
            x = self._block(layer, block, x)
        stream = x
        if not self.has("final norm missing"):
            x = self._norm("final.norm", self.spec.final_norm, x)
        if self.has("final norm twice"):
            again = self._norm("", self.spec.final_norm, x, "final.norm")
            x = self.store("final.norm.out", again)
        if self.has("final norm skipped"):
            x = stream
        self._end(x)

    # ---------------------------------------------------------------- embedding

    def _embed(self) -> Data:
        ids = np.array(self.tokens)
        if self.has("token row"):
            ids = ids - 1
        x = self.w["embed.token"][ids]
        if self.has("embedding scaled"):
            x = x * math.sqrt(self.spec.d_model)
        x = self.store("embed.token", x)
        if self.spec.position == "learned":
            places = np.arange(len(ids))
            if self.has("position offset"):
                places = places + 1
            if self.has("padding counted"):
                places = places + self.padding
            position = self.store("embed.position", self.w["embed.position"][places])
            x = self.store("stream.0", x if self.has("position missing") else x + position)
        return x

    # ---------------------------------------------------------------- blocks

    def _block(self, layer: int, block: BlockSpec, entering: Data) -> Data:
        at = f"block.{layer}"
        assert block.attention is not None
        assert block.mlp is not None
        weights = "block.1" if self.has("layer swapped") else at
        read = self._norm(f"{at}.attn.norm", block.attn_norm, entering, f"{weights}.attn.norm")
        if self.has("attention reads the stream"):
            read = entering
        attended = self._attention(f"{at}.attn", block.attention, read, f"{weights}.attn")
        stream = self._add(f"{at}.attn", entering, attended, read, entering)
        if self.has("norm after the add"):
            stream = self._norm("", block.attn_norm, stream, f"{at}.attn.norm")
        stream = self.store(f"{at}.attn.add", stream)
        parallel = block.parallel != self.has("parallel", "serial")
        before = entering if parallel else stream
        read = self._norm(f"{at}.mlp.norm", block.mlp_norm, before, f"{weights}.mlp.norm")
        thought = self._mlp(f"{at}.mlp", block.mlp, read, f"{weights}.mlp")
        result = self._add(f"{at}.mlp", stream, thought, read, entering)
        return self.store(f"{at}.mlp.add", result)

    def _add(self, at: str, stream: Data, update: Data, normed: Data, entering: Data) -> Data:
        if self.has("residual missing"):
            return update
        if self.has("residual doubled"):
            return 2 * stream + update
        if self.has("residual from the norm"):
            return normed + update
        if self.has("residual from before attention"):
            return entering + update
        return stream + update

    def _norm(self, at: str, norm: NormSpec, x: Data, weights: str = "") -> Data:
        n, eps = x.shape[-1], float(norm.eps)
        eps = {"eps 1e-3": 1e-3, "eps 0": 0.0}.get(self.bug, eps)
        less = n - 1 if self.has("variance over n - 1", "torch std") else n
        kind = norm.kind
        if self.has("other norm"):
            kind = "rmsnorm" if kind == "layernorm" else "layernorm"
        layered = norm.kind == "layernorm"

        def store(name: str, value: Data, has: bool = True) -> Data:
            return self.store(f"{at}.{name}" if at and has else "", value)

        mean = store("mean", x.mean(-1), layered)
        centered = store("centered", x - mean[:, None] if kind == "layernorm" else x, layered)
        square = store("variance" if layered else "mean_square", (centered**2).sum(-1) / less)
        if self.has("eps after the root", "torch std"):
            root = np.sqrt(square) + eps
        else:
            root = np.sqrt(square + eps)
        root = store("std" if layered else "rms", root)
        normalized = store("normalized", centered / root[:, None])
        gain, bias = (self.w.get(f"{weights or at}.{part}") for part in ("gain", "bias"))
        out = normalized
        if gain is not None and not self.has("gain missing"):
            out = out * (1 + gain if self.has("gain plus one") else gain)
        if bias is not None and not self.has("norm bias missing"):
            out = out + bias
        return store("out", out)

    def _linear(self, x: Data, name: str, bug: str = "") -> Data:
        weight = self.w[name]
        rows, columns = weight.shape
        stored_in_out = self.spec.layout == "in_out"
        if bug and self.has(bug):
            if rows == columns:
                stored_in_out = not stored_in_out
            else:
                weight = weight.reshape(columns, rows)
                stored_in_out = not stored_in_out
        result = x @ weight if stored_in_out else x @ weight.T
        bias = self.w.get(f"{name}_bias")
        if bias is not None and not self.has("bias missing"):
            result = result + (2 * bias if self.has("bias doubled") else bias)
        return result

    # ---------------------------------------------------------------- attention

    def _attention(self, at: str, attn: AttentionSpec, x: Data, weights: str) -> Data:
        q, k, v = self._queries_keys_values(at, attn, x, weights)
        q, k, v = (self.store(f"{at}.{name}", x) for name, x in zip("qkv", (q, k, v), strict=True))
        if attn.rotary:
            if not self.has("rope missing", "rope missing on q"):
                q = self._rotated(attn.rotary, q)
            if not self.has("rope missing"):
                k = self._rotated(attn.rotary, k)
            q, k = self.store(f"{at}.q_rotated", q), self.store(f"{at}.k_rotated", k)
            if self.has("rope on v"):
                v = self._rotated(attn.rotary, v)
        groups = attn.heads // attn.kv_heads
        if self.has("kv tiled"):
            k, v = np.tile(k, (groups, 1, 1)), np.tile(v, (groups, 1, 1))
        else:
            k, v = k.repeat(groups, 0), v.repeat(groups, 0)
        root = math.sqrt(attn.d_head)
        scale = {
            "scale missing": 1.0,
            "scale doubled": 1 / attn.d_head / 1.0,
            "scale by d_model": 1 / math.sqrt(self.spec.d_model),
            "scale inverted": root,
        }.get(self.bug, 1 / root)
        raw = self.store("", q @ k.transpose(0, 2, 1) * scale)
        count = len(self.tokens)
        sees = np.tril(np.ones((count, count), bool))
        if self.has("mask missing"):
            sees |= True
        if self.has("mask ahead"):
            sees = np.tril(np.ones((count, count), bool), 1)
        if self.has("mask strict"):
            sees = np.tril(sees, -1)
            sees[0, 0] = True
        if self.has("mask transposed"):
            sees = sees.T
        scores = self.store(f"{at}.scores", np.where(sees, raw, -np.inf))
        shares = _softmax(raw if self.has("mask late") else scores)
        if self.has("mask late"):
            shares = np.where(sees, shares, 0.0)
        if self.has("softmax over queries"):
            shares = _softmax(scores.transpose(0, 2, 1)).transpose(0, 2, 1)
        if self.has("softmax twice"):
            shares = np.where(sees, _softmax(np.where(sees, shares, -np.inf)), 0.0)
        shares = self.store(f"{at}.weights", shares)
        mixed = self.store(f"{at}.mixed", shares @ v)
        heads, _count, width = mixed.shape
        rows = mixed.transpose(1, 0, 2).reshape(count, heads * width)
        if self.has("heads merged without transpose"):
            rows = mixed.reshape(count, heads * width)
        out = self._linear(rows, f"{weights}.out", "attention matrix transposed")
        return self.store(f"{at}.out", out)

    def _queries_keys_values(
        self, at: str, attn: AttentionSpec, x: Data, weights: str
    ) -> list[Data]:
        count, heads, width = len(x), attn.heads, attn.d_head
        names = ["q", "k", "v"]
        if self.has("q and k exchanged"):
            names = ["k", "q", "v"]
        if self.has("k and v exchanged"):
            names = ["q", "v", "k"]
        if attn.packed is None:
            flat = [self._linear(x, f"{weights}.{name}", "q matrix transposed") for name in names]
            return [self._cut(part, width) for part in flat]
        packed = self._linear(x, f"{weights}.qkv", "qkv transposed")
        packed = self.store(f"{at}.qkv", packed)
        per_head = (attn.packed == "per_head") != self.has("packing")
        if per_head:
            cut = packed.reshape(count, heads, 3, width)
            parts = {name: cut[:, :, i].transpose(1, 0, 2) for i, name in enumerate("qkv")}
        else:
            cut = packed.reshape(count, 3, heads * width)
            parts = {name: self._cut(cut[:, i], width) for i, name in enumerate("qkv")}
        return [parts[name] for name in names]

    def _cut(self, rows: Data, width: int) -> Data:
        count, heads = len(rows), rows.shape[1] // width
        if self.has("heads interleaved"):
            return rows.reshape(count, width, heads).transpose(2, 0, 1)
        if self.has("heads cut without transpose"):
            return rows.reshape(heads, count, width)
        return rows.reshape(count, heads, width).transpose(1, 0, 2)

    def _rotated(self, rotary: RotarySpec, x: Data) -> Data:
        count, d_head = x.shape[1:]
        width = {"rope on the whole head": d_head, "rope on half the head": d_head // 2}.get(
            self.bug, rotary.width
        )
        base = {"rope base": 1e6}.get(self.bug, float(rotary.base))
        places = np.arange(count) + (1 if self.has("rope from 1") else 0)
        angles = np.outer(places, base ** (-np.arange(0, width, 2) / width))
        if self.has("rope backwards"):
            angles = -angles
        cos, sin = np.cos(angles), np.sin(angles)
        start = d_head - width if self.has("rope on the last part") else 0
        part = x[..., start : start + width]
        result = x.copy()
        turned = result[..., start : start + width]
        if (rotary.pairing == "half") != self.has("rope pairing"):
            a, b = part[..., : width // 2], part[..., width // 2 :]
            turned[..., : width // 2], turned[..., width // 2 :] = (
                a * cos - b * sin,
                a * sin + b * cos,
            )
        else:
            a, b = part[..., 0::2], part[..., 1::2]
            turned[..., 0::2], turned[..., 1::2] = a * cos - b * sin, a * sin + b * cos
        return result

    # ---------------------------------------------------------------- MLP

    def _mlp(self, at: str, mlp: MlpSpec, x: Data, weights: str) -> Data:
        hidden = self._linear(x, f"{weights}.hidden", "hidden transposed")
        hidden = self.store(f"{at}.hidden", hidden)
        kind = mlp.activation
        if self.bug.startswith("activation "):
            kind = self.bug.removeprefix("activation ")
        if mlp.gated:
            gate = self._linear(x, f"{weights}.gate", "gate transposed")
            gate = self.store(f"{at}.gate", gate)
            if self.has("gate and up exchanged"):
                gate, hidden = hidden, gate
            act = self.store(f"{at}.act", _bent(kind, gate))
            both = act + hidden if self.has("gate added") else act * hidden
            inner = self.store(f"{at}.gated", both)
        else:
            inner = self.store(f"{at}.act", _bent(kind, hidden))
        if self.has("weight swapped"):
            weights = weights.replace("block.0", "block.1")
        return self.store(f"{at}.out", self._linear(inner, f"{weights}.out", "out transposed"))

    # ---------------------------------------------------------------- the end

    def _end(self, x: Data) -> None:
        if self.spec.tied:
            matrix = self.w["head"] if self.has("head untied") else self.w["embed.token"]
            logits = x @ matrix.T
        elif self.has("head tied"):
            logits = x @ self.w["embed.token"].T
        else:
            logits = self._linear(x, "head", "head transposed")
        if self.has("logits shifted"):
            logits = np.roll(logits, 1, axis=0)
        logits = self.store("logits", logits)
        probs = _softmax(logits / (0.7 if self.has("temperature") else 1.0))
        if self.has("softmax of probabilities"):
            probs = _softmax(probs)
        if self.has("softmax left out"):
            probs = logits
        probs = self.store("probs", probs)
        with np.errstate(invalid="ignore"):
            loss = -np.log(probs[-1, self.target])
        if self.has("loss in bits"):
            loss = -np.log2(probs[-1, self.target])
        if self.has("loss over positions"):
            following = [*self.tokens[1:], self.target]
            loss = np.mean([-np.log(probs[i, t]) for i, t in enumerate(following)])
        if self.has("loss sign"):
            loss = -loss
        self.store("loss", np.array([loss]))


def _softmax(x: Data) -> Data:
    with np.errstate(invalid="ignore"):
        powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _bent(kind: str, x: Data) -> Data:
    match kind:
        case "relu":
            return np.maximum(x, 0)
        case "silu":
            return x / (1 + np.exp(-x))
        case "gelu":
            return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
        case "gelu_tanh":
            return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        case "gelu_quick":
            return x / (1 + np.exp(-1.702 * x))
        case "identity":
            return x
    raise ValueError(kind)
