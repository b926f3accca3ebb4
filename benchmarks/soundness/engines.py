"""Real checkpoints three ways: along the stream, with a rule for each step alone, and in Arb.

What the two engines enclose must overlap, and Arb's number lies in both.  The forward pass in Arb
is written anew here for models of Llama's make: RMSNorm, RoPE in halves, SwiGLU, a tied head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

from benchmarks.soundness.counts import Count
from benchmarks.soundness.truth import (
    activation,
    balls,
    matrix,
    normalized,
    softmax,
    through,
    turned,
)
from byhand import forward
from byhand.evaluate import Admitted, work_out
from byhand.model import Model
from byhand.numbers.enclosed.limbs.operations import Limbs


class Llama:
    """The forward pass of a checkpoint in balls of so many bits."""

    def __init__(self, model: Model, bits: int = 500) -> None:
        self.model, self.bits = model, bits
        self.spec = model.spec
        self.attention = model.spec.blocks[0].attention
        assert self.attention is not None
        assert self.attention.rotary is not None

    def weight(self, name: str) -> arb_mat:
        return matrix(np.asarray(self.model.weights[name].data, dtype=np.float64))

    def normed(self, rows: Sequence[Sequence[arb]], name: str, eps: Any) -> arb_mat:
        gain = balls(np.asarray(self.model.weights[name].data, dtype=np.float64))
        exact = fmpq(eps.numerator, eps.denominator)
        made = [normalized(row, exact, centred=False) for row in rows]
        flat = [x * g for row in made for x, g in zip(row, gain, strict=True)]
        return arb_mat(len(rows), len(gain), flat)

    def logits(self, ids: Sequence[int]) -> list[list[arb]]:
        """Of each position."""
        before, ctx.prec = ctx.prec, self.bits
        try:
            return self._logits(ids)
        finally:
            ctx.prec = before

    def _logits(self, ids: Sequence[int]) -> list[list[arb]]:
        table = np.asarray(self.model.weights["embed.token"].data, dtype=np.float64)
        stream = [balls(table[id]) for id in ids]
        for layer, block in enumerate(self.spec.blocks):
            at = f"block.{layer}"
            rows = self.normed(stream, f"{at}.attn.norm.gain", block.attn_norm.eps)
            stream = _added(stream, self._attended(rows, at))
            rows = self.normed(stream, f"{at}.mlp.norm.gain", block.mlp_norm.eps)
            gate = through(rows, self.weight(f"{at}.mlp.gate"))
            up = through(rows, self.weight(f"{at}.mlp.hidden"))
            inner = [activation("silu", x) * y for one, other in zip(gate, up, strict=True)
                     for x, y in zip(one, other, strict=True)]  # fmt: skip
            answer = through(arb_mat(len(ids), len(gate[0]), inner), self.weight(f"{at}.mlp.out"))
            stream = _added(stream, answer)
        rows = self.normed(stream, "final.norm.gain", self.spec.final_norm.eps)
        return through(rows, matrix(table))

    def _attended(self, rows: arb_mat, at: str) -> list[list[arb]]:
        spec, count = self.attention, rows.nrows()
        d, group = spec.d_head, spec.heads // spec.kv_heads
        pairs = spec.rotary.width // 2
        angles = []
        for place in range(count):
            turns = [arb(place) / arb(10_000) ** arb(fmpq(2 * i, d)) for i in range(pairs)]
            angles.append(([x.cos() for x in turns], [x.sin() for x in turns]))

        def heads(name: str, *, turn: bool) -> list[list[list[arb]]]:
            made = through(rows, self.weight(f"{at}.attn.{name}"))
            return [
                [turned(row[i : i + d], *angles[place]) if turn else row[i : i + d]
                 for i in range(0, len(row), d)]
                for place, row in enumerate(made)
            ]  # fmt: skip

        q, k, v = heads("q", turn=True), heads("k", turn=True), heads("v", turn=False)
        scale = 1 / arb(d).sqrt()
        mixed: list[arb] = []
        for t in range(count):
            for h in range(spec.heads):
                key = h // group
                scores = [scale * _dot(q[t][h], k[s][key]) for s in range(t + 1)]
                shares = softmax(scores)
                mixed += [_dot(shares, [v[s][key][j] for s in range(t + 1)]) for j in range(d)]
        made = arb_mat(count, spec.heads * d, mixed)
        return through(made, self.weight(f"{at}.attn.out"))


def _dot(one: Sequence[arb], other: Sequence[arb]) -> arb:
    return sum((x * y for x, y in zip(one, other, strict=True)), arb(0))


def _added(rows: Any, others: Any) -> list[list[arb]]:
    return [[x + y for x, y in zip(*both, strict=True)] for both in zip(rows, others, strict=True)]


def texts_of(model: Model) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Texts of the kind that the checkpoint has learned, and stranger ones; and precisions."""
    if model.spec.vocab < 1000:
        told = (
            "Once upon a time, there was a little girl", "Tom had a big red ball. He wanted",
            "the the the the the the the", "zq!! 7 ~~", "She was three. 3 + 4",
        )  # fmt: skip
        return told, (64, 110, 150, 300)
    return ("def main(argv):\n    return", "import numpy as np\nfrom", "x = [[[[[[[["), (120, 220)


@dataclass
class Both:
    """What was compared of one text."""

    entries: Count
    widths: dict[str, float]  # log2 of the largest radius of a logit, by engine


def compared(
    model: Model, weights: Admitted, ids: Sequence[int], bits: int, *, truth: bool
) -> Both:
    """Every stream, logit and log-probability both ways; the logits beside Arb's, if wanted."""
    plan = forward.plan(model.spec, len(ids) - 1, logprobs=True)
    kept = [step.address for step in plan if step.op == "add"] + ["logits", "logprobs", "next"]
    numbers = Limbs(bits)
    found = {}
    for name, one in (("stream", numbers), ("steps", numbers.step_by_step())):
        found[name] = work_out(plan, weights, ids[:-1], one, keep=kept, targets=ids[1:])
    count = Count(f"{bits} bits, {len(ids) - 1} tokens")
    for address, mine in found["stream"].items():
        if mine.step.op == "argmax":
            continue
        other = found["steps"][address]
        for index in np.ndindex(*mine.step.shape):
            a, b = mine.at(index), other.at(index)
            count.samples += 1
            count.endless += inf in (a.rad, b.rad)
            if inf not in (a.rad, b.rad) and not abs(a.mid - b.mid) <= a.rad + b.rad:
                count.missed += 1
                count.first.append(f"{address}{index} {a} {b}")
    for one, other in zip(found["stream"]["next"].value, found["steps"]["next"].value, strict=True):
        count.samples += 1
        count.missed += one.proven and other.proven and one.id != other.id
    widths = {}
    for name, steps in found.items():
        logits = steps["logits"]
        widths[name] = float(logits.numbers.magnitudes(logits.value)[1].max())
    if truth:
        real = Llama(model).logits(ids[:-1])
        for name, steps in found.items():
            for place, token in np.ndindex(*steps["logits"].step.shape):
                _held(count, steps["logits"].at((place, token)), real[place][token], name)
            for place, target in enumerate(ids[1:]):
                with ctx.workprec(500):
                    most = max(real[place], key=float)
                    whole = sum(((x - most).exp() for x in real[place]), arb(0)).log()
                    exact = real[place][target] - most - whole
                _held(count, steps["logprobs"].at((place,)), exact, name)
    return Both(count, widths)


def _held(count: Count, found: Any, real: arb, said: str) -> None:
    count.samples += 1
    if found.rad == inf:
        count.endless += 1
        return
    with ctx.workprec(600):
        mid, rad = (arb(fmpq(x.numerator, x.denominator)) for x in (found.mid, found.rad))
        if abs(real - mid) > rad:
            count.missed += 1
            count.first.append(f"{said} {found} without {real}")
        elif not abs(real - mid) <= rad:
            count.open += 1
