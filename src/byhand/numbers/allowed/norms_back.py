"""The way back through layernorm and RMSNorm on ranges, part by part or in one kernel.

A kernel that does it in one go rounds no part to a 16-bit format, adds the three terms of a row in
an order of its own, and may write x̂ as x/std - mean/std.  The parts know the sizes of these terms.
"""

from __future__ import annotations

import numpy as np

from byhand.numbers.allowed.attention_back import AttentionBack
from byhand.numbers.allowed.norms import Norms
from byhand.numbers.allowed.precisions import OWN, ROW, Precision
from byhand.numbers.allowed.ranges import Data, Origin, Range, gamma, plus, wide
from byhand.numbers.allowed.rounding import overflowing, quiet
from byhand.numbers.base import Array


class NormsBack(Norms, AttentionBack):
    """row_dots and the adjoints of the parts of a norm."""

    @quiet(all="ignore")
    def row_dots(self, x: Array, y: Array, *, kept: bool = False) -> Range:
        if kept:
            dots: Range = self.row_dots(x, y).each(lambda part: part[..., None])
            return dots
        if x.origin is not None and x.origin.shares:
            return self._attention_dots(self._read(x), self._read(y))
        p = self._back(x)
        y = self._read(y)
        rows, grads = wide(x.mid), wide(y.mid)
        parts = None if x.origin is None else x.origin.parts
        n = rows.shape[-1]
        mid = (rows * grads).sum(axis=-1)
        most = np.abs(rows) if parts is None else np.maximum(parts, np.abs(rows))
        sizes = (most * np.abs(grads)).sum(axis=-1)
        relative = (1 + gamma(n + 4, p.rows.half)) * (1 + 2 * p.work.half) - 1 + (n + 2) * OWN
        rad = sizes * relative + 2 * (n + 2) * (p.rows.least + p.work.least)
        r_x, r_y = self._again(x, p), y.radius()
        for one, other in ((np.abs(grads), r_x), (np.abs(rows), r_y), (r_x, r_y)):
            if one is not None and other is not None:
                rad += (one * other).sum(axis=-1) * (1 + relative)
        overflowing(rad, sizes, p.reach)
        across = p.usual_sum(n, ROW)[1] + 0.4 * p.work.half
        usual = np.sqrt(np.square(rows * grads).sum(axis=-1)) * across
        if parts is not None:  # of a mean that is kept in 16 bits: the whole row is shifted
            lean = np.abs(grads.sum(axis=-1)) * parts.mean(axis=-1)
            usual = np.hypot(usual, lean * (0.3 * self._kept_in(x, p)))
        for size, spread in ((grads, x.usual), (rows, y.usual)):
            if spread is not None:
                usual = np.hypot(usual, np.sqrt(np.square(size * spread).sum(axis=-1)))
        return self._part(p, mid, rad, usual, Origin(centred=_centred(x)))

    @quiet(all="ignore")
    def normalize_back(self, grad: Array, by: Array) -> Range:
        """grad / by: as a row is normalised."""
        p = self._back(by)
        rad = plus(by.radius(), np.abs(wide(by.mid)) * self._kept_in(by, p))
        kept = Range(by.mid, rad, by.usual, claimed=by.claimed, origin=by.origin)
        result = self.normalize(self._read(grad), kept)
        assert result.rad is not None
        if self.precision.narrow:  # as the reciprocal root, which may be kept in 16 bits
            most = np.broadcast_to(1 / wide(by.mid)[..., None], result.shape)
            overflowing(result.rad, most, self.precision.store.largest)
        return result

    @quiet(all="ignore")
    def divisor_back(self, dot: Array, by: Array) -> Range:
        return self._quotient(dot, by, -1.0)

    @quiet(all="ignore")
    def root_back(self, grad: Array, root: Array) -> Range:
        """With the quotient before and x̂ it is the root's third power, maybe used as such."""
        made, p = self._quotient(grad, root, 0.5), self._back(root)
        below = np.abs(wide(root.mid))
        assert made.rad is not None
        made.rad += np.abs(made.mid) * (2 * p.work.least * (below**2 + below**3))
        overflowing(made.rad, np.where(below == 0, 0.0, below**-3.0), p.reach)
        return made

    def _quotient(self, top: Range, by: Range, factor: float) -> Range:
        """factor · top / by, one number for each row; 0 where both are exactly 0."""
        p = self._back(by)
        data, below = wide(top.mid), wide(by.mid)
        r_top, r_by = top.radius(), by.radius()
        mid = np.where((data == 0) & (below == 0), 0.0, data / below) * factor
        size = np.abs(mid)
        rad = size * (3 * p.work.half + 4 * OWN)
        rad += (1 + (np.abs(data) if r_top is None else np.abs(data) + r_top)) * p.work.least
        if r_by is None or by.claimed:  # it is the root, what was used may be a reciprocal root
            rad += size * (2 * p.function)
        rad += size * self._kept_in(by, p)
        least = below
        if r_by is not None:
            least = np.maximum(below - r_by * (1 + 4 * OWN), 0.0)
            rad += size * (r_by / least) * (1 + 8 * p.work.half)
        if r_top is not None:
            rad += r_top / least * (abs(factor) * (1 + 8 * p.work.half))
        known = r_top is None and r_by is None
        rad = np.where(below == 0, 0.0 if known and not data.any() else np.inf, rad)
        usual = size * (0.5 * p.work.half)
        if by.usual is not None:
            usual = np.hypot(usual, np.where(below == 0, 0.0, size * by.usual / below))
        if top.usual is not None:
            usual = np.hypot(usual, np.where(below == 0, 0.0, top.usual * abs(factor) / below))
        return self._part(p, mid, rad, usual, Origin(centred=_centred(by)))

    @quiet(all="ignore")
    def mean_square_back(self, grad: Array, x: Array) -> Range:
        """grad · 2x/n.  Of centred rows, grad · 2/n · whole less grad · 2/n · mean is allowed."""
        p = self._back(x)
        n = x.shape[-1]
        share, data = wide(grad.mid)[..., None] * (2.0 / n), wide(x.mid)
        made = x.origin
        parts = np.abs(data) if made is None or made.parts is None else made.parts
        sizes = np.abs(share) * np.maximum(parts, np.abs(data))
        rad = sizes * (4 * p.work.half + 4 * OWN) + p.work.least * (2 + np.abs(data))
        r_grad, r_x = grad.radius(), self._again(x, p)
        if r_grad is not None:
            rad += np.abs(data) * (r_grad[..., None] * (2.0 / n))
        if r_x is not None:
            most = np.abs(share) if r_grad is None else np.abs(share) + r_grad[..., None] * (2 / n)
            rad += most * r_x
        if made is not None and made.parts is not None:
            # what one kernel leaves out: the sum of centred entries, which is 0
            rad += np.abs(share) * np.abs(data.mean(axis=-1, keepdims=True))
        overflowing(rad, sizes, p.reach)
        usual = np.abs(share * data) * (0.5 * p.work.half)
        if made is not None and made.parts is not None:  # of a mean that is kept in 16 bits
            usual += np.abs(share) * made.parts * (0.3 * self._kept_in(x, p))
        if grad.usual is not None:
            usual = np.hypot(usual, np.abs(data) * (grad.usual[..., None] * (2 / n)))
        if x.usual is not None:
            usual = np.hypot(usual, np.abs(share) * x.usual)
        made_so = Origin(centred=_centred(x), addends=sizes)
        return self._part(p, share * data, rad, usual, made_so)

    @quiet(all="ignore")
    def center_back(self, grad: Array) -> Range:
        """-Σ grad; of a sum that nobody claimed, the terms may be added up apart."""
        p = self._back(grad)
        data = wide(grad.mid)
        made = grad.origin
        sizes = np.abs(data) if made is None or made.addends is None else made.addends
        n = data.shape[-1]
        whole = sizes.sum(axis=-1)
        relative = gamma(n + 4, p.rows.half) + 2 * p.work.half + (n + 2) * OWN
        rad = whole * relative + (n + 2) * (p.rows.least + p.work.least)
        if (radius := grad.radius()) is not None:
            rad += radius.sum(axis=-1) * (1 + relative)
        overflowing(rad, whole, p.reach)
        mid = 0 - data.sum(axis=-1)
        along, across = p.usual_sum(n, ROW)
        usual = np.hypot(mid * along, np.sqrt(np.square(data).sum(axis=-1)) * across)
        if grad.usual is not None:
            usual = np.hypot(usual, np.sqrt(np.square(grad.usual).sum(axis=-1)))
        return self._part(p, mid, rad, usual, Origin(centred=True))

    @quiet(all="ignore")
    def mean_back(self, grad: Array, *, width: int) -> Range:
        p = self._back(grad)
        share = wide(grad.mid)[..., None] / width
        rad = np.abs(share) * (2 * p.work.half + 2 * OWN) + p.work.least
        if (radius := grad.radius()) is not None:
            rad = rad + radius[..., None] / width * (1 + 2 * p.work.half)
        usual = None if grad.usual is None else grad.usual[..., None] / width
        shape = (*grad.shape, width)
        mid, rad = (np.array(np.broadcast_to(part, shape)) for part in (share, rad))
        spread = None if usual is None else np.array(np.broadcast_to(usual, shape))
        return self._part(p, mid, rad, spread, Origin(centred=True, last=True))

    def _back(self, x: Range) -> Precision:
        """The precision of a norm's parts, of which x is one."""
        return self._norm_precision(_centred(x))

    def _kept_in(self, x: Range, p: Precision) -> float:
        """How far a mean, a root or a row may be, relative to it, from what the way back uses.

        A 16-bit kernel may keep mean and reciprocal root in 16 bits, though it works in float32.
        What was claimed may be worked out again.
        """
        kept = self.precision.store.half if self.precision.narrow else 0.0
        return kept + 4 * p.work.half * x.claimed

    def _again(self, x: Range, p: Precision) -> Data | None:
        """The radius of a row of the norm, as the way back has it."""
        kept = self._kept_in(x, p)
        if not kept:
            return x.radius()
        more = np.abs(wide(x.mid))
        if x.origin is not None and x.origin.parts is not None:
            more = more + x.origin.parts
        return plus(x.radius(), more * kept + self.precision.store.least)


def _centred(x: Range) -> bool:
    return x.origin is not None and x.origin.centred
