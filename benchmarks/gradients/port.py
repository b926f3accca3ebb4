"""A backward pass in NumPy, written by hand from the loss to every weight, with bugs on request.

It shares nothing with byhand's own: norms and softmax are each one function that gives the gradient
of what went in, as in most ports, and each weight's gradient is added up text by text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import ml_dtypes
import numpy as np

from benchmarks.gradients.lessons import PAD
from benchmarks.gradients.passes import Data, Pass, merged, sigmoid

LOSS_SCALE = 1024


class Port(Pass):
    """The way back.  Each gradient stands beside its value: `grad.` and the value's address."""

    def run(self) -> dict[str, Data]:
        """Every value and every gradient, by address."""
        self.forward()
        self.backward()
        return self.dump

    def backward(self) -> None:
        g = self._from_logits(self._to_logits())
        g = self._through_norm("final.norm", self._stream(len(self.spec.blocks)), g)
        g = self.keep(f"grad.block.{len(self.spec.blocks) - 1}.mlp.add", g)
        for layer in reversed(range(len(self.spec.blocks))):
            g = self._through_block(layer, g)
        self._to_tables(g)

    def _stream(self, layer: int) -> str:
        first = "stream.0" if "stream.0" in self.dump else "embed.token"
        return f"block.{layer - 1}.mlp.add" if layer else first

    # ------------------------------------------------------------------ the loss and the ends

    def _to_logits(self) -> Data:
        """(probs - 1 at the target) / positions that count."""
        probs, targets = self["probs"], self.lesson.targets
        following = np.roll(self.lesson.tokens, -1)
        if self.has("no shift"):
            targets = np.where(targets >= 0, self.lesson.tokens, targets)
        if self.has("shift by two"):
            targets = np.where(targets >= 0, np.roll(self.lesson.tokens, -2), targets)
        if self.has("padding counted"):
            targets = np.where(following == PAD, PAD, targets)
        counted = targets >= 0
        g = np.where(counted[:, None], probs, 0)
        if not self.has("one-hot missing"):
            g[counted, targets[counted]] -= 1
        count = counted.sum()
        if self.has("sum for mean"):
            count = 1
        if self.has("mean over all positions"):
            count = len(targets)
        if self.has("mean over texts"):
            count = len(self.lesson.texts)
        if self.has("mean twice"):
            count = count**2
        if self.has("loss scale left in"):
            g = g * LOSS_SCALE
        if self.has("sign"):
            g = -g
        return self.keep("grad.logits", g / self.wide(count))

    def _from_logits(self, g: Data) -> Data:
        name = "embed.token" if self.spec.tied else "head"
        x = self["final.norm.out"]
        self._table_from_head = self._summed(lambda rows: g[rows].T @ x[rows])
        if not self.spec.tied:
            self._learn("head", lambda rows: g[rows].T @ x[rows])
        return self.keep("grad.final.norm.out", g @ self.w[name])

    def _to_tables(self, g: Data) -> None:
        if "embed.position" in self.w:
            self._learn("embed.position", partial(self._rows_of_positions, g))
        token = self._summed(partial(self._rows_of_tokens, g))
        if self.spec.tied and not self.has("table from the embedding alone"):
            token = self._table_from_head + token
        if self.has("table from the head alone"):
            token = self._table_from_head
        self._file("embed.token", token)

    def _rows_of_positions(self, g: Data, rows: slice) -> Data:
        result = np.zeros_like(self.w["embed.position"])
        if self.has("positions not scattered"):
            result[rows] = g[rows]
        else:
            result[self.lesson.places[rows]] = g[rows]
        return result

    def _rows_of_tokens(self, g: Data, rows: slice) -> Data:
        result = np.zeros_like(self.w["embed.token"])
        if self.has("repeated tokens overwritten"):
            result[self.lesson.tokens[rows]] = g[rows]
        else:
            np.add.at(result, self.lesson.tokens[rows], g[rows])
        return result

    # ------------------------------------------------------------------ weights

    def _summed(self, of_text: Callable[[slice], Data]) -> Data:
        """The sum of what each text gives."""
        total: Data = self.wide(0)
        for rows in self.lesson.texts:
            part = of_text(rows)
            if self.has("added in bfloat16"):
                part = part.astype(ml_dtypes.bfloat16).astype(self.wide)
                total = (total + part).astype(ml_dtypes.bfloat16).astype(self.wide)
            else:
                total = total + part
        if self.has("only the last text"):
            total = part
        return total

    def _learn(self, name: str, of_text: Callable[[slice], Data]) -> None:
        self._file(name, self._summed(of_text))

    def _file(self, name: str, grad: Data) -> None:
        if self.has("accumulated twice"):
            grad = 2 * grad
        if self.has("not zeroed"):
            grad = grad + self.old[name]
        self.keep(f"grad.weight.{name}", grad)

    def _through_dense(self, name: str, x: Data, g: Data) -> Data:
        """Back through x·W + b; x is what went in."""
        in_out = self.spec.layout == "in_out"
        turned = self.has("gradient transposed") and x.shape[1] == g.shape[1]
        if self.has("input before the norm") and name.endswith((".hidden", ".qkv", ".q")):
            at = name.rpartition(".")[0]
            layer = int(name.split(".")[1])
            x = self[f"block.{layer}.attn.add" if at.endswith("mlp") else self._stream(layer)]

        def of_text(rows: slice) -> Data:
            result = x[rows].T @ g[rows]
            return result if in_out != turned else result.T

        self._learn(name, of_text)
        if f"{name}_bias" in self.w:
            self._learn(f"{name}_bias", partial(self._over_positions, g))
        return g @ (self.w[name].T if in_out else self.w[name])

    def _over_positions(self, g: Data, rows: slice) -> Data:
        if self.has("sum over the wrong axis") and g.shape[1] == len(g):
            padded = np.zeros_like(g)
            padded[rows] = g[rows]
            return padded.sum(1)
        if self.has("bias averaged"):
            return g[rows].sum(0) / len(g)
        return g[rows].sum(0)

    # ------------------------------------------------------------------ norms

    def _through_norm(self, at: str, stream: str, g: Data) -> Data:
        """Back through a norm, all at once."""
        normalized = self[f"{at}.normalized"]
        layered = f"{at}.std" in self.dump
        by = self[f"{at}.std" if layered else f"{at}.rms"][:, None]
        product = g * (self[stream] if self.has("gain from the input") else normalized)
        self._learn(f"{at}.gain", partial(self._over_positions, product))
        if f"{at}.bias" in self.w:
            self._learn(f"{at}.bias", partial(self._over_positions, g))
        if not self.has("gain left out"):
            g = g * self.w[f"{at}.gain"]
        result = g
        if layered and not self.has("norm without its mean"):
            result = result - g.mean(-1, keepdims=True)
        if not self.has("norm without its projection"):
            result = result - normalized * (g * normalized).mean(-1, keepdims=True)
        return result if self.has("norm not divided") else result / by

    # ------------------------------------------------------------------ blocks

    def _through_block(self, layer: int, g: Data) -> Data:
        at = f"block.{layer}"
        inner = self._through_mlp(f"{at}.mlp", g)
        inner = self._through_norm(f"{at}.mlp.norm", f"{at}.attn.add", inner)
        g = self.keep(f"grad.{at}.attn.add", inner if self.has("residual missing") else g + inner)
        inner = self._through_attention(f"{at}.attn", g)
        inner = self._through_norm(f"{at}.attn.norm", self._stream(layer), inner)
        g = inner if self.has("residual missing") else g + inner
        return self.keep(f"grad.{self._stream(layer)}", g)

    def _through_mlp(self, at: str, g: Data) -> Data:
        read, gated = self[f"{at}.norm.out"], self.mlp_spec.gated
        act = self[f"{at}.act"]
        inner = self[f"{at}.gated"] if gated else act
        g = self.keep(
            f"grad.{at}.{'gated' if gated else 'act'}", self._through_dense(f"{at}.out", inner, g)
        )
        if not gated:
            g = self.keep(f"grad.{at}.hidden", g * self._slope(self[f"{at}.hidden"], act))
            return self.keep(f"grad.{at}.norm.out", self._through_dense(f"{at}.hidden", read, g))
        to_act, to_hidden = g * self[f"{at}.hidden"], g * act
        if self.has("gate and up swapped"):
            to_act, to_hidden = to_hidden, to_act
        to_act = self.keep(f"grad.{at}.act", to_act)
        to_hidden = self.keep(f"grad.{at}.hidden", to_hidden)
        to_gate = self.keep(f"grad.{at}.gate", to_act * self._slope(self[f"{at}.gate"], act))
        result = self._through_dense(f"{at}.hidden", read, to_hidden)
        other = self._through_dense(f"{at}.gate", read, to_gate)
        if not self.has("gate's way back missing"):
            result = result + other
        return self.keep(f"grad.{at}.norm.out", result)

    def _slope(self, x: Data, act: Data) -> Data:
        if self.has("slope missing"):
            return np.ones_like(x)
        if self.has("slope at the result"):
            x = act
        if self.mlp_spec.activation == "silu":
            share = sigmoid(x)
            if self.has("slope of silu is sigmoid"):
                return share
            return share * (1 + x * (1 - share))
        kind = x.dtype.type
        if self.has("slope of the other GELU"):
            below = kind(0.5) * (1 + np.vectorize(math.erf)(x / math.sqrt(2)).astype(x.dtype))
            return below + x * np.exp(-x * x / 2) / kind(math.sqrt(2 * math.pi))
        root = kind(math.sqrt(2 / math.pi))
        bent = np.tanh(root * (x + kind(0.044715) * x**3))
        steep = root * (1 + kind(3 * 0.044715) * x * x)
        return kind(0.5) * (1 + bent) + kind(0.5) * x * (1 - bent * bent) * steep

    # ------------------------------------------------------------------ attention

    def _through_attention(self, at: str, g: Data) -> Data:
        mixed = self._through_dense(f"{at}.out", merged(self[f"{at}.mixed"]), g)
        g = self.keep(f"grad.{at}.mixed", self.by_head(mixed))
        turned = "_rotated" if self.attn.rotary else ""
        q, k, v = self[f"{at}.q{turned}"], self[f"{at}.k{turned}"], self[f"{at}.v"]
        weights, k, kv = self[f"{at}.weights"], self.spread(k), self.spread(v)
        if self.has("mask not applied"):
            raw = q @ k.transpose(0, 2, 1) * self.scale
            seen = np.where(self.sees, raw, -np.inf)
            top = seen.max(-1, keepdims=True)
            weights = np.exp(raw - top) / np.exp(seen - top).sum(-1, keepdims=True)
        to_weights = self.keep(f"grad.{at}.weights", g @ kv.transpose(0, 2, 1))
        to_v = self._to_shared(f"grad.{at}.v", weights.transpose(0, 2, 1) @ g)
        row = (self[f"{at}.weights"] * to_weights).sum(-1, keepdims=True)
        if self.has("row sum missing"):
            row = 0
        to_scores = self.keep(f"grad.{at}.scores", weights * (to_weights - row))
        of_q, of_k = (1 if self.has(f"scale missing in {name}") else self.scale for name in "qk")
        to_q = self.keep(f"grad.{at}.q{turned}", to_scores @ k * of_q)
        to_k = self._to_shared(f"grad.{at}.k{turned}", to_scores.transpose(0, 2, 1) @ q * of_k)
        if turned:
            way = {"RoPE turned forward": 1, "RoPE not turned back": 0}.get(self.bug, -1)
            to_k = self.keep(f"grad.{at}.k", self.turned(to_k, way))
            to_q = self.keep(f"grad.{at}.q", self.turned(to_q, way))
        return self._to_read(at, to_q, to_k, to_v)

    def _to_shared(self, address: str, each: Data) -> Data:
        """The gradients of keys or values, summed over the query heads that share them."""
        groups = each.reshape(self.attn.kv_heads, -1, *each.shape[1:])
        result = groups[:, 0] if self.has("one head of a group") else groups.sum(1)
        if self.has("heads averaged"):
            result = groups.mean(1)
        return self.keep(address, result)

    def _to_read(self, at: str, q: Data, k: Data, v: Data) -> Data:
        x = self[f"{at}.norm.out"]
        if self.attn.packed:
            parts = [k, q, v] if self.has("packed as k, q, v") else [q, k, v]
            packed = self.keep(f"grad.{at}.qkv", np.concatenate(list(map(merged, parts)), axis=1))
            return self.keep(f"grad.{at}.norm.out", self._through_dense(f"{at}.qkv", x, packed))
        parts = [
            self._through_dense(f"{at}.{name}", x, merged(g))
            for name, g in zip("vkq", (v, k, q), strict=True)
        ]
        if self.has("v's way back missing"):
            parts = parts[1:]
        return self.keep(f"grad.{at}.norm.out", sum(parts))

    old: dict[str, Data]  # the gradients of the step before
