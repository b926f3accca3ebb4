"""The way back and an optimizer's step as a port would do them: part by part, or in one kernel.

A port that is `whole` takes a norm's way back in one go, one that is `online` works attention
weights out again and takes Σ grad·mixed for the rows' sums: neither has the steps between.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import log, pi, sqrt
from typing import Any

import numpy as np

from benchmarks.hostile.simulated import Data, Simulated
from benchmarks.tightness.machines import NARROW
from benchmarks.tightness.ports import Port
from byhand.expression import Expression
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import Array
from byhand.numbers.floats import nearest as constants
from byhand.numbers.floats.formats import FORMATS
from byhand.numbers.floats.learning import for_each_row


class Learner(Simulated):
    """What a port gives for every step of a training step."""

    def __init__(self, port: Port, *, islands: bool = False, seed: int = 0) -> None:
        super().__init__(port, islands=islands)
        self.rng = np.random.default_rng(seed)
        self.back: dict[int, dict[str, Any]] = {}  # of a part of a norm's way back: all it reads
        self.mixed: dict[int, Data] = {}  # of attention weights: what they mixed
        self.alive: list[Data] = []  # ids stay those of these values
        self.kept_narrow = bool(self.rng.random() < 0.5)  # mean and root kept in the format

    def _remember(self, value: Data, *parts: Data) -> Data:
        self.alive.append(value)
        return super()._remember(value, *parts)

    # ------------------------------------------------------------------- losses

    def losses(self, probs: Array, targets: Sequence[int]) -> Array:
        ids = np.asarray(targets)
        logs = self._logs(probs)
        found = self.machine.store(-logs[np.arange(len(ids)), np.where(ids < 0, 0, ids)])
        return np.ma.MaskedArray(found, mask=ids == UNCOUNTED)

    def _logs(self, probs: Array) -> Data:
        """ln p: of the shares, or through log-softmax."""
        m = self.inner.machine
        if not self.port.reciprocal:
            with np.errstate(divide="ignore"):
                return m.function("log", self._into(self.inner, np.ma.getdata(probs)))
        logits = self._into(self.inner, self.made_of[id(probs)][1])
        down = m.step(logits - logits.max(axis=-1, keepdims=True))
        whole = m.function("log", self.inner.total(m.function("exp", down)))
        return m.step(down - whole[..., None])

    def average(self, losses: Array) -> Array:
        m = self.inner.machine
        counted = np.ma.compressed(losses)
        return self.machine.store(m.step(self.inner.total(counted[None]) / len(counted)))

    def loss_back(self, probs: Array, targets: int | Sequence[int]) -> Array:
        m = self.inner.machine
        ids = for_each_row(targets, len(probs))
        counted = np.flatnonzero(ids != UNCOUNTED)
        share = self._into(self.inner, np.ma.getdata(probs))
        if self.port.reciprocal:
            share = m.function("exp", self._logs(probs))
        hot = np.zeros(share.shape)
        hot[counted, ids[counted]] = 1.0
        n = len(counted)
        if self.port.fused:
            each = m.step(1 / n)
            result = m.step(m.step(share * each) - hot * each)
        else:
            result = m.step(m.step(share - hot) / n)
        result[ids == UNCOUNTED] = 0.0
        return self.machine.store(result)

    # ------------------------------------------------------------------- sums

    def total(self, **terms: Array) -> Array:
        parts: list[Data] = []
        norms: dict[int, list[tuple[dict[str, Any], Data]]] = {}
        for term in terms.values():
            value, known = self.machine.read(np.ma.getdata(term)), self.back.get(id(term))
            if known is None:
                parts.append(value)
            else:
                norms.setdefault(id(known["by"]), []).append((known, term))
        for within in norms.values():
            whole = {name: part for known, _term in within for name, part in known.items()}
            m = self._norm_machine(whole)
            value = m.step(sum(m.read(term) for _known, term in within))
            if "centred" in whole and "last" not in whole:
                return self._of({**whole, "last": True}, self._remember(value))
            if self._fused:
                parts.append(self.machine.store(self._in_one_go(whole)))
            elif self.inner is not self.port:  # in float32, and stored then
                parts.append(self.machine.store(value))
            else:
                parts += [term for _known, term in within]
        so_far = None
        for place in self.rng.permutation(len(parts)):
            so_far = parts[place] if so_far is None else self.machine.store(so_far + parts[place])
        return self._remember(so_far)

    def column_sums(self, x: Array, *, by: Array | None = None, merged: bool = False) -> Array:
        m = self.machine
        rows = m.read(self.merge_heads(x) if merged and x.ndim == 3 else x)
        if by is not None:
            rows = m.step(rows * m.read(by))
        columns = rows.reshape(-1, rows.shape[-1]).T
        if merged or m.format not in NARROW or m.wide_steps:
            return m.store(self.port.total(columns))
        so_far = columns[:, 0]  # kept in the format, as torch does on processors
        for column in columns.T[1:]:
            so_far = m.store(so_far + column)
        return so_far

    def row_dots(self, x: Array, y: Array) -> Array:
        left, right = np.ma.getdata(x), np.ma.getdata(y)
        if isinstance(x, np.ma.MaskedArray):
            left, right = (np.ma.filled(x, 0.0), np.where(np.ma.getmaskarray(x), 0.0, right))
        whole = self.back.get(id(y), {"grad": y})
        port = self._norm(x) if not isinstance(x, np.ma.MaskedArray) else self.inner
        m = port.machine
        value = m.step(port.total(m.step(m.read(left) * m.read(right))))
        return self._of({**whole, "rows": x}, self._remember(value))

    def sum_groups(self, x: Array, *, heads: int) -> Array:
        grouped = self.machine.read(x).reshape(heads, -1, *x.shape[1:])
        so_far = grouped[:, 0]
        for place in range(1, grouped.shape[1]):
            so_far = self.machine.store(so_far + grouped[:, place])
        return so_far

    # ------------------------------------------------------------------- products

    def outer(self, x: Array, grad: Array, *, layout: str) -> Array:
        m = self.machine
        one, other = (m.read(self.merge_heads(y) if y.ndim == 3 else y) for y in (x, grad))
        left, right = (one, other) if layout == "in_out" else (other, one)
        return m.store(self.port.dot(left.T[:, None], right.T[None]))

    def along_keys(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        rows = self.machine.read(np.ma.filled(x, 0.0))
        keys = np.repeat(self.machine.read(y), len(rows) // len(y), axis=0)
        return self._scaled(rows[:, :, None], keys.transpose(0, 2, 1)[:, None], scale)

    def along_queries(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        rows = np.ma.filled(x, 0.0)
        if self.port.online and id(x) in self.mixed:
            rows = self.machine.store(self._again(x))
        rows = self.machine.read(rows).transpose(0, 2, 1)
        return self._scaled(
            rows[:, :, None], self.machine.read(y).transpose(0, 2, 1)[:, None], scale
        )

    def _scaled(self, x: Data, y: Data, scale: Expression | None) -> Data:
        m = self.machine
        if scale is None:
            return m.store(self.port.dot(x, y))
        factor = float(constants.constant(scale, FORMATS["float64"]))
        if self.port.scale_first:
            return m.store(self.port.dot(m.scaled(x, sqrt(factor)), m.scaled(y, sqrt(factor))))
        return m.scaled(m.store(self.port.dot(x, y)), factor)

    def scale_by(self, x: Array, by: Array) -> Array:
        return self.machine.store(self.machine.read(x) * self.machine.read(by))

    # ------------------------------------------------------------------- places

    def scatter(
        self, grad: Array, ids: Sequence[int], *, rows: int, scale: Expression | None = None
    ) -> Array:
        m = self.machine
        data = m.read(grad)
        if scale is not None:
            data = m.store(data * self._constant(scale))
        table = np.zeros((rows, data.shape[1]))
        for place in self.rng.permutation(len(ids)):
            row = table[ids[place]]
            table[ids[place]] = m.store(row + data[place]) if row.any() else data[place]
        return table

    def pack_heads(
        self, queries: Array, keys: Array, values: Array, *, starts: Sequence[int], stride: int
    ) -> Array:
        parts = (queries, keys, values)
        columns = sum(part.shape[0] * part.shape[2] for part in parts)
        result = np.zeros((queries.shape[1], columns))
        for start, part in zip(starts, parts, strict=True):
            for head, rows in enumerate(part):
                result[:, start + head * stride : start + head * stride + part.shape[2]] = rows
        return result

    # ------------------------------------------------------------------- attention

    def mix(self, weights: Array, v: Array) -> Array:
        value = super().mix(weights, v)
        self.mixed[id(weights)] = value
        self.alive += [value, weights]
        return value

    def scores(self, q: Array, k: Array, **settings: Any) -> Array:
        return self._remember(super().scores(q, k, **settings), q, k)

    def _again(self, weights: Array) -> Data:
        """Attention weights from the scores and the logarithm of their sum, in float32."""
        m = self._single
        scores = self.made_of[id(weights)][1]
        top = scores.max(axis=-1, keepdims=True)
        whole = self.port.total(m.function("exp", m.sum(scores - top)))[..., None]
        logs = m.sum(m.function("log", whole) + top)
        return m.function("exp", np.where(np.isneginf(scores), -np.inf, m.sum(scores - logs)))

    @property
    def _single(self) -> Any:
        return self.inner.machine

    def softmax_back(self, weights: Array, grad: Array, dot: Array) -> Array:
        m = self._single
        away = np.ma.getmaskarray(weights)
        shares, grads = (self._into(self.inner, np.ma.getdata(x)) for x in (weights, grad))
        row = m.read(dot)
        if self.port.online:
            grad_mixed = self.machine.read(self.made_of[id(grad)][1])
            mixed = self.machine.read(self.mixed[id(weights)])
            shares, row = self._again(weights), self.port.total(m.sum(grad_mixed * mixed))
        if self.port.fused:
            value = m.step(shares * grads) - m.step(shares * row[..., None])
        else:
            value = shares * m.step(grads - row[..., None])
        return np.ma.MaskedArray(self.machine.store(np.where(away, 0.0, value)), mask=away)

    # ------------------------------------------------------------------- norms

    @property
    def _fused(self) -> bool:
        return self.port.whole

    def _norm_machine(self, whole: dict[str, Any] | None) -> Any:
        return self.machine if whole is None else self._norm(whole["by"]).machine

    def _of(self, whole: dict[str, Any], value: Data) -> Data:
        self.back[id(value)] = whole
        return value

    def affine(self, x: Array, *, gain: Array | None = None, bias: Array | None = None) -> Array:
        value = super().affine(x, gain=gain, bias=bias)
        return self._remember(value, x, gain)

    def normalize_back(self, grad: Array, by: Array) -> Array:
        port = self._norm(by)
        value = port.normalize(self._into(port, grad), port.machine.read(by))
        return self._of({"grad": grad, "by": by}, self._remember(value))

    def divisor_back(self, dot: Array, by: Array) -> Array:
        m = self._norm(by).machine
        value = m.step(-m.read(dot) / m.read(by))
        return self._of({**self.back[id(dot)], "by": by}, self._remember(value))

    def root_back(self, grad: Array, root: Array) -> Array:
        m = self._norm(root).machine
        value = m.step(m.step(m.read(grad) / m.read(root)) * 0.5)
        return self._of(self.back[id(grad)], self._remember(value))

    def mean_square_back(self, grad: Array, x: Array) -> Array:
        whole = {**self.back[id(grad)], "x": x}
        if id(x) in self.centred:
            whole["centred"] = x
        port = self._norm(x)
        m, n = port.machine, x.shape[-1]
        each = m.step(m.read(grad) * m.step(2 / n))[..., None]
        return self._of(whole, self._remember(m.step(self._into(port, x) * each)))

    def center_back(self, grad: Array) -> Array:
        whole = self.back[id(grad)]
        port = self._norm(whole["by"])
        value = port.machine.step(-port.total(port.machine.read(grad)))
        return self._of(whole, self._remember(value))

    def mean_back(self, grad: Array, *, width: int) -> Array:
        whole = self.back[id(grad)]
        m = self._norm_machine(whole)
        value = np.repeat(m.step(m.read(grad) / width)[..., None], width, axis=-1)
        return self._of(whole, self._remember(value))

    def _in_one_go(self, whole: dict[str, Any]) -> Data:
        """rstd·(grad - mean(grad) - x̂·mean(grad·x̂)), or a·grad + b·x + c as torch has it."""
        port = self._norm(whole["by"])
        m = port.machine
        grad = self._into(port, whole["grad"])
        made = self.made_of.get(id(whole["grad"]))
        if made is not None and made[2] is not None and self.inner is not self.port:
            grad = m.step(made[1] * made[2])  # times the gain, not stored
        n = grad.shape[-1]
        x = self._into(port, whole["x"])
        mean = np.zeros(x.shape[:-1])
        if "centred" in whole:
            x, mean = (self._into(port, part) for part in self.made_of[id(whole["centred"])][1:3])
        root = m.step(1 / m.read(whole["by"]))
        if self.kept_narrow and self.machine.format in NARROW:
            root, mean = self.machine.store(root), self.machine.store(mean)
        if not self.port.reciprocal:
            row = m.step(m.step(x - mean[..., None]) * root[..., None])
            dot = m.step(port.total(m.step(grad * row)) / n)
            lean = m.step(port.total(grad) / n) if "centred" in whole else np.zeros(dot.shape)
            less = m.step(m.step(grad - lean[..., None]) - m.step(row * dot[..., None]))
            return m.step(root[..., None] * less)
        products, sums = port.total(m.step(grad * x)), port.total(grad)
        b = m.step(m.step(sums * mean) - products)
        b = m.step(m.step(b * m.step(m.step(root * root) * root)) / n)
        c = m.step(-b * mean)
        if "centred" in whole:
            c = m.step(c - m.step(m.step(sums * root) / n))
        a = m.step(grad * root[..., None])
        return m.step(m.step(a + m.step(b[..., None] * x)) + c[..., None])

    # ------------------------------------------------------------------- activations

    def slope(self, x: Array, *, kind: str) -> Array:
        m = self.machine
        x = m.read(x)
        with np.errstate(all="ignore"):
            if kind == "relu":
                return np.where(x > 0, 1.0, 0.0)
            if kind == "gelu":
                share = m.step(m.step(1 + m.function("erf", m.step(x * m.step(sqrt(0.5))))) * 0.5)
                dense = m.step(
                    m.function("exp", m.step(m.step(x * x) * -0.5)) * m.step(1 / sqrt(2 * pi))
                )
                return m.store(share + m.step(x * dense))
            if kind == "gelu_tanh":
                square = m.step(x * x)
                cube = m.step(m.step(0.044715) * m.function("cube", x))
                t = m.function("tanh", m.step(m.step(sqrt(2 / pi)) * m.step(x + cube)))
                steep = m.step(
                    m.step(sqrt(2 / pi)) * m.step(1 + m.step(m.step(3 * 0.044715) * square))
                )
                right = m.step(m.step(m.step(x * 0.5) * m.step(1 - m.step(t * t))) * steep)
                return m.store(
                    m.step(m.step(1 + t) * 0.5) + np.where(np.isfinite(right), right, 0.0)
                )
            share = m.step(1 / m.step(1 + m.function("exp", -x)))
            return m.store(share * m.step(1 + m.step(x * m.step(1 - share))))

    # ------------------------------------------------------------------- an optimizer's step

    def sum_squares(self, x: Array) -> Array:
        m = self.machine
        flat = m.read(x).reshape(1, -1)
        whole = self.port.total(m.sum(flat * flat))
        return m.sum(m.store(m.sum(np.sqrt(whole))) ** 2) if m.format in NARROW else whole

    def norm(self, **squares: Array) -> Array:
        m = self.machine
        return m.store(np.sqrt(self.port.total(np.stack(list(squares.values()), axis=-1))))

    def clip_factor(self, norm: Array, *, limit: Fraction, eps: Fraction) -> Array:
        m = self.machine
        below = m.step(m.read(norm) + m.step(float(eps)))
        return np.minimum(m.store(m.step(float(limit)) / below), 1.0)

    def blend(
        self,
        y: Array,
        x: Array | None = None,
        *,
        of_y: Fraction,
        of_x: Fraction = Fraction(0),
        squared: bool = False,
    ) -> Array:
        m = self.machine
        single = np.float64 if m.format == "float64" else np.float32
        one = m.read(y)
        one = m.step(one * one) if squared else one
        f_y, f_x = float(of_y), float(of_x)
        if of_x + of_y == 1 and self.port.fused:  # 1 - β in floats
            f_x, f_y = float(single(f_x)), float(single(1) - single(f_x))
        elif not of_x and self.port.fused and f_y > 1:  # 1/(1 - β^t), β rounded
            beta = single(log(1 - 1 / f_y) and (1 - 1 / f_y))
            f_y = float(single(1) / (single(1) - beta))
        if x is None:
            return m.store(one * f_y)
        other = m.read(x)
        if of_x + of_y == 1 and self.port.whole:  # x moves to y
            return m.store(other + m.step(f_y * m.step(one - other)))
        return m.store(m.step(one * f_y) + m.step(other * f_x))

    def root_plus(self, x: Array, *, eps: Fraction) -> Array:
        m = self.machine
        return m.store(m.function("sqrt", m.read(x)) + float(eps))

    def divide(self, x: Array, y: Array) -> Array:
        with np.errstate(all="ignore"):
            return self.machine.store(self.machine.read(x) / self.machine.read(y))
