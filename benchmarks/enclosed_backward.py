"""Enclosed backward passes: their cost beside forward ones, and whether they contain the truth.

`python -m benchmarks.enclosed_backward [--passes N] [--seed N] [MODEL [TEXT]] …` works N random
models out in limbs and in Arb balls of far more bits, on NumPy and on torch tensors, step by step.
No entry may lie outside.  Then it times six proven digits of each model's forward pass, and of
its gradients too, in turn and in one thread.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, sqrt
from statistics import median
from time import perf_counter
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is imported

import numpy as np  # noqa: E402
from flint import arb, ctx, fmpz  # noqa: E402

from byhand import forward  # noqa: E402
from byhand.backward import adjoint  # noqa: E402
from byhand.evaluate import Admitted, prepare, work_out  # noqa: E402
from byhand.missing_bits import shortfall  # noqa: E402
from byhand.models import open_model  # noqa: E402
from byhand.numbers.adjoints import UNCOUNTED  # noqa: E402
from byhand.numbers.enclosed.balls.operations import Balls  # noqa: E402
from byhand.numbers.enclosed.limbs.operations import Limbs  # noqa: E402
from byhand.optimizer import OPTIMIZERS, Rule, update  # noqa: E402
from byhand.parameters import parameters  # noqa: E402
from byhand.plan import Plan  # noqa: E402
from byhand.proving.digits import asked_steps  # noqa: E402
from byhand.spec import (  # noqa: E402
    NO_NORM,
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)
from byhand.weights import Tensor, Weights  # noqa: E402

PRECISE = 4000  # bits of comparisons
VANISHING = arb(2) ** -300  # what is below this in Arb is taken for zero
KINDS = ("random", "outliers", "huge", "tiny", "saturated", "flat", "float64", "bfloat16")
DIGITS = 6


# ------------------------------------------------------------------ random models


@dataclass
class Learning:
    """A random model, a text, its targets, and a rule."""

    name: str
    plan: Plan
    weights: Weights
    tokens: tuple[int, ...]
    target: int
    targets: tuple[int, ...]

    def work(self, numbers: Any) -> dict[str, Any]:
        """All steps in a number system."""
        return work_out(self.plan, self.weights, self.tokens, numbers,
                        target=self.target, targets=self.targets)  # fmt: skip


def random_learning(seed: int) -> Learning:
    """A pass, its gradients and an update of a random small model."""
    random = np.random.default_rng(seed)
    spec, kind = _random_spec(random), str(random.choice(KINDS))
    length = int(random.integers(1, 6))
    first = int(random.choice([0, 0, 0, 7]))
    whole = bool(random.random() < 0.7)
    tokens = tuple(map(int, random.integers(0, spec.vocab, length)))
    targets = [int(x) if random.random() < 0.8 else UNCOUNTED
               for x in random.integers(0, spec.vocab, length)]  # fmt: skip
    targets[-1] = int(random.integers(0, spec.vocab))
    positions = tuple(range(first, first + length))
    passes = forward.plan(spec, length, positions=positions, target=True, losses=whole)
    rule = Rule(
        kind=OPTIMIZERS[seed % 4],
        clip=None if seed % 3 else Fraction(1, 2),
        decay=Fraction(seed % 2, 10),
    )
    plan = update(adjoint(passes), rule)
    name = f"seed {seed}, {kind}, {rule.kind}"
    return Learning(name, plan, _weights(spec, random, kind), tokens, targets[-1], tuple(targets))


def _random_spec(random: Any) -> ModelSpec:
    def one_of(*answers: Any) -> Any:
        return answers[int(random.integers(len(answers)))]

    def norm() -> NormSpec:
        kind = one_of("none", "layernorm", "layernorm", "rmsnorm", "rmsnorm")
        if kind == "none":
            return NO_NORM
        eps = one_of(Fraction(0), Fraction(1, 10**5), Fraction(1, 10**5), Fraction(1, 10**6))
        return NormSpec(kind, eps, gain=one_of(True, False), bias=kind == "layernorm")

    def block() -> BlockSpec:
        kv_heads, group, d_head = one_of(1, 2), one_of(1, 2), one_of(2, 4, 6)
        turns = one_of(None, RotarySpec(2, pairing=one_of("half", "interleaved")))
        bias, causal = one_of(True, False), one_of(True, True, False)
        attention = AttentionSpec(
            heads=kv_heads * group, d_head=d_head, kv_heads=kv_heads, scale=over_root(d_head),
            causal=causal, window=one_of(None, None, 2) if causal else None, rotary=turns,
            alibi=one_of(False, False, True), q_norm=one_of(NO_NORM, NO_NORM, norm()),
            k_norm=one_of(NO_NORM, NO_NORM, norm()), q_bias=bias, k_bias=bias, v_bias=bias,
            packed=one_of(None, "concatenated", "per_head") if group == 1 else None,
            out_bias=one_of(True, False),
        )  # fmt: skip
        kind = one_of("relu", "gelu", "gelu_tanh", "silu")
        mlp = MlpSpec(
            one_of(6, 12), kind, gated=one_of(True, False), hidden_bias=one_of(True, False)
        )
        place = one_of("pre", "pre", "post")
        parallel = place == "pre" and one_of(True, False, False)
        return BlockSpec(attention, mlp, norm(), norm(), norm_place=place, parallel=parallel)

    return ModelSpec(
        "random", one_of(3, 11), one_of(4, 6, 10), 32, tuple(block() for _ in range(one_of(1, 2))),
        position=one_of("none", "learned", "sinusoidal"), final_norm=norm(),
        tied=one_of(True, False), head_bias=one_of(True, False), layout=one_of("in_out", "out_in"),
    )  # fmt: skip


def _weights(spec: ModelSpec, random: Any, kind: str) -> Weights:
    """Weights of some kind: with outliers, huge, tiny, with saturated scores, nearly equal rows."""
    import ml_dtypes

    dtype: Any = {"float64": np.float64, "bfloat16": ml_dtypes.bfloat16}.get(kind, np.float32)
    size = {"huge": 2.0**12, "tiny": 2.0**-20, "saturated": 8.0}.get(kind, 1.0)
    made = {}
    for parameter in parameters(spec):
        data = random.standard_normal(parameter.shape) / sqrt(max(4, parameter.shape[0])) * size
        if parameter.kind == "gain":
            data = 1 + data / size
        elif parameter.kind == "buffer":
            data = np.abs(data) / size
        if kind == "flat" and parameter.name.startswith("embed"):
            data = 1 + data * 2.0**-16
        if kind == "outliers":
            data[..., 0] *= 100
        made[parameter.name] = Tensor(parameter.name, data.astype(dtype))
    return Weights(made)


# ------------------------------------------------------------------ containment


@dataclass
class Tally:
    """What a comparison found."""

    entries: int = 0
    outside: list[str] = field(default_factory=list)
    zeros: int = 0  # whose real value is 0
    known: int = 0  # and that are known to be 0
    still: Counter[str] = field(default_factory=Counter)  # infinite radii, by operation
    sharp: int = 0  # known to 2^-10 of their size

    def add(self, address: str, op: str, found: Any, real: arb) -> None:
        """Compares one entry with the real value, a narrow ball."""
        self.entries += 1
        if found.rad == inf:
            self.still[op] += 1
            return
        middle, radius = ball(found.mid), ball(found.rad)
        if abs(real - middle) > radius + VANISHING:
            self.outside.append(f"{address}: {found} without {real}")
        elif abs(real) <= VANISHING:
            self.zeros += 1
            self.known += found.rad == 0
        else:
            self.sharp += radius * 1024 <= abs(middle)


def ball(x: Fraction) -> arb:
    """A dyadic rational, exactly."""
    return arb((fmpz(x.numerator), fmpz(1 - x.denominator.bit_length())))


def compare(learning: Learning, bits: int, device: str | None, tally: Tally) -> None:
    """Every entry of every step in limbs beside that of Arb balls."""
    ours, truth = Limbs(bits, device), Balls(2 * bits + 400)
    mine, real = learning.work(ours), learning.work(truth)
    for step in learning.plan:
        if step.op in ("given", "argmax") or real[step.address].missing is not None:
            continue
        found = ours.entries(mine[step.address].value)
        known = real[step.address].value
        with ctx.workprec(PRECISE):
            for index in np.ndindex(*step.shape):
                if known[index] is None:
                    assert found[index] is np.ma.masked, f"{step.address}{list(index)}"
                    continue
                told = f"{learning.name}: {step.address}{list(index)}"
                tally.add(told, step.op, found[index], known[index])


def passes(seed: int, count: int) -> Iterator[tuple[Learning, int, str | None]]:
    """Random models, each with a precision and a device; always the same ones."""
    for number in range(seed, seed + count):
        device = "cpu" if number % 4 == 3 else None
        yield random_learning(number), (60, 120, 200)[number % 3], device


# ------------------------------------------------------------------ cost


def cost(name: str, text: str | None, rounds: int = 5) -> str:
    """Six digits of a forward pass beside six digits of every gradient of a weight."""
    model = open_model(name)
    jobs = [prepare(model, text, Limbs(64), losses=True, backward=back) for back in (False, True)]
    weights = Admitted(model.weights, jobs[0].numbers)

    def run(back: int, bits: int) -> Any:
        job = jobs[back]
        steps = work_out(job.plan, weights, job.tokens, job.numbers.at(bits), target=job.target,
                         targets=job.targets)  # fmt: skip
        return job.traced(steps)

    found = []
    for back in (0, 1):
        bits = 80
        while (short := shortfall(run(back, bits), asked_steps(jobs[back]), DIGITS)).count:
            bits = min(bits + max(int(min(short.bits, 60)), 2), 480)
            if bits == 480:
                break
        found.append((bits, short.count))
    one, both = (bits for bits, _short in found)
    times: list[list[float]] = [[], [], []]
    for _round in range(rounds):
        for place, (back, bits) in enumerate(((0, one), (1, both), (0, both))):
            start = perf_counter()
            run(back, bits)
            times[place].append(perf_counter() - start)
    ahead, everything, _same = map(median, times)
    alone = median((b - s) / f for f, b, s in zip(*times, strict=True))
    ratio = median(b / f for f, b, _s in zip(*times, strict=True))
    return (
        f"{name}, {len(jobs[0].tokens)} tokens: forward {ahead:.3f} s at {one} bits; with all"
        f" gradients {everything:.3f} s at {both} bits, {found[1][1]} numbers undecided;"
        f" {ratio:.2f} forward passes, {alone:.2f} for the backward pass alone"
    )


def main(arguments: list[str]) -> int:
    options = ArgumentParser(prog="python -m benchmarks.enclosed_backward", description=__doc__)
    options.add_argument("--passes", type=int, default=300)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("models", nargs="*", default=["minigpt"])
    given = options.parse_args(arguments)
    tally = Tally()
    for learning, bits, device in passes(given.seed, given.passes):
        compare(learning, bits, device, tally)
    for line in tally.outside[:20]:
        print(line)
    print(
        f"{given.passes} passes, {tally.entries} entries: {len(tally.outside)} outside;"
        f" {tally.zeros} are 0 and {tally.known} of them known to be;"
        f" {tally.sharp} known to 2^-10; infinite radii {dict(tally.still)}"
    )
    for model in given.models:
        name, _colon, text = model.partition("::")
        print(cost(name, text or None))
    return 1 if tally.outside else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
