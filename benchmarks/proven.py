"""Certified passes beside plain ones: the cost of a proof, and its growth.

One process, one thread, the processor time of the two passes measured in turn.  Weights are sliced
and their norms certified once for each model; that is reported separately.  `--record` writes the
rows of docs/proven.md for the kernels at hand, `--plot` its curves.  `--checkpoint FOLDER` adds a
trained Llama, and this file as its text; `--steps` adds the passes with rules for each step alone,
the cross-check.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf, log2
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from time import perf_counter, process_time
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is imported

import numpy as np  # noqa: E402

from benchmarks.large import Plain, Size, gpt2, random_model, some_ids  # noqa: E402
from byhand import forward  # noqa: E402
from byhand.evaluate import Admitted, prepare, work_out  # noqa: E402
from byhand.model import Model  # noqa: E402
from byhand.models import open_model  # noqa: E402
from byhand.numbers.enclosed.limbs.operations import Limbs  # noqa: E402

LENGTH, ROUNDS = 32, 7
START = 100  # bits of the first attempt
POINT = ("grows", "size", "seconds", "bits")
Row = dict[str, Any]
RADIUS = 1e-12  # radius to which every logit is certified
ASKED = ("logits", "next")
DOCS = Path(__file__).parent.parent / "docs"


@dataclass
class Certified:
    """A model whose passes are certified, its weights admitted once."""

    model: Model
    length: int = LENGTH
    device: str | None = None
    ids: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ids = self.ids or some_ids(self.model.spec, self.length)
        self.numbers = Limbs(64, self.device)
        self.plan = forward.plan(self.model.spec, self.length).only(ASKED)
        self.weights = Admitted(self.model.weights, self.numbers)

    def run(self, bits: int) -> dict[str, Any]:
        """The logits and next tokens, in this precision."""
        return work_out(self.plan, self.weights, self.ids, self.numbers.at(bits), keep=ASKED)

    def radius(self, steps: dict[str, Any]) -> float:
        """log2 of the largest radius of a logit."""
        logits = steps["logits"]
        return float(logits.numbers.magnitudes(logits.value)[1].max())

    def middles(self, steps: dict[str, Any]) -> Any:
        """The logits in float64."""
        value = steps["logits"].value
        return value.digits.engine.to_numpy(value.approx)

    def proven(self, steps: dict[str, Any]) -> int:
        return sum(found.proven for found in steps["next"].value)

    def precision(self, start: int = 110) -> int:
        """The bits that certify every logit to RADIUS and prove every next token."""
        bits = start
        while True:
            steps = self.run(bits)
            radius = self.radius(steps)
            if radius <= log2(RADIUS) and self.proven(steps) == self.length:
                return bits
            bits += (
                2
                if radius <= log2(RADIUS)
                else 44
                if radius == inf
                else max(2, int(radius - log2(RADIUS)) + 1)
            )


def in_turn(*works: Callable[[], object], rounds: int = ROUNDS) -> list[list[float]]:
    """The processor seconds of each in every round, in turn."""
    times: list[list[float]] = [[] for _work in works]
    for _round in range(rounds):
        for work, found in zip(works, times, strict=True):
            start = process_time()
            work()
            found.append(process_time() - start)
    return times


def against_torch(name: str, model: Model, ids: list[int] | None = None) -> tuple[Certified, Row]:
    """One line of the table, and the model."""
    plain = Plain(model)
    exactly = Plain(model, "float64")
    case = Certified(model, ids=ids or [])
    start = process_time()
    case.run(START)
    prepared = process_time() - start
    bits = case.precision(START)
    if "--steps" in sys.argv[1:]:
        step_by_step(name, case, plain, bits)
    steps = case.run(bits)
    distance = float(np.abs(case.middles(steps) - exactly.logits(case.ids).numpy()).max())
    times = in_turn(lambda: case.run(bits), lambda: plain.logits(case.ids))
    ours, theirs = map(median, times)
    row: Row = {
        "model": name,
        "tokens": case.length,
        "bits": bits,
        "certified": f"{ours:.2f} s",
        "torch float32": f"{theirs:.3f} s",
        "ratio": f"{median(a / b for a, b in zip(*times, strict=True)):.1f}",
        "largest radius": f"{2 ** case.radius(steps):.1e}",
        "proven": f"{case.proven(steps)} of {case.length}",
    }
    print(
        f"  {', '.join(f'{key} {value}' for key, value in row.items())}; float64 is within"
        f" {distance:.0e}; slicing, norms and the first pass {prepared:.0f} s;"
        f" {getrusage(RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB",
        flush=True,
    )
    return case, row


def step_by_step(name: str, case: Certified, plain: Plain, bits: int) -> None:
    """The same radius by the rules for each step alone; both have logits in common."""
    along, numbers = case.run(bits), case.numbers
    case.numbers = numbers.step_by_step()
    needed = case.precision(bits)
    steps = case.run(needed)
    apart = np.abs(case.middles(steps) - case.middles(along)).max()
    assert apart <= 2.0 ** (1 + max(case.radius(steps), case.radius(along))) + 1e-12
    times = in_turn(lambda: case.run(needed), lambda: plain.logits(case.ids), rounds=3)
    ratio = median(a / b for a, b in zip(*times, strict=True))
    print(f"  {name}, step by step: bits {needed}, ratio {ratio:.1f}", flush=True)
    case.numbers = numbers


def text_of(model: Model) -> list[int]:
    """The tokens of this file's beginning."""
    words = Path(__file__).read_text("utf-8")[:600]
    return list(prepare(model, words, Limbs(64)).tokens[:LENGTH])


# ------------------------------------------------------------------ Arb


def arb_pass(case: Certified, bits: int) -> float:
    """Seconds of the same pass in Arb's matrices: one layer measured, times their number.

    Products are complete.  Of the head one column in 64 is timed, of GELU and softmax one element
    in 32, each scaled up.  Conversions of weights are left out.
    """
    from flint import arb, arb_mat, ctx

    ctx.prec = bits + 20  # guard bits for entry-wise balls are not even counted
    rng = np.random.default_rng(0)
    spec, length = case.model.spec, case.length

    def matrix(rows: int, columns: int) -> Any:
        numbers = [arb(x) for x in rng.standard_normal(rows * columns)]
        return arb_mat(rows, columns, numbers) * arb(1).exp()

    def weights(name: str, columns: slice = slice(None)) -> Any:
        data = np.asarray(case.model.weights[name].data)[:, columns].astype(np.float64)
        return arb_mat(*data.shape, [arb(x) for x in data.ravel().tolist()])

    def timed(work: Callable[[], object]) -> float:
        start = perf_counter()
        work()
        return perf_counter() - start

    layer = 0.0
    for name in ("attn.qkv", "attn.out", "mlp.hidden", "mlp.out"):
        right = weights(f"block.0.{name}")
        left = matrix(length, right.nrows())
        layer += timed(lambda left=left, right=right: left * right)
    block = spec.blocks[0]
    assert block.mlp is not None
    assert block.attention is not None
    hidden = [arb(x) * arb(1).exp() for x in rng.standard_normal(length * block.mlp.d_ff // 32)]
    root = (arb(8) / arb.pi()).sqrt()
    bend = arb(44715) / 1_000_000
    layer += 32 * timed(
        lambda: [x / (1 + (-(root * (x + bend * x * x * x))).exp()) for x in hidden]
    )
    scores = block.attention.heads * length * (length + 1) // 2
    some = [arb(x) for x in rng.standard_normal(scores // 32)]
    layer += 32 * timed(lambda: [x.exp() / 3 for x in some])
    table = np.asarray(case.model.weights["embed.token"].data)[::64].astype(np.float64)
    columns = arb_mat(*table.T.shape, [arb(x) for x in table.T.ravel().tolist()])
    left = matrix(length, spec.d_model)
    head = timed(lambda: left * columns) * spec.vocab / table.shape[0]
    return layer * len(spec.blocks) + head


# ------------------------------------------------------------------ how it grows


def growth() -> Iterator[tuple[str, int, float, int]]:
    """(what grows, its size, seconds, bits) around a model of 6 layers, 384 wide, 32 tokens."""
    vocab = 8192

    def size(layers: int = 6, width: int = 384) -> Size:
        return Size(layers, width, width // 64, width // 64, 4 * width, vocab)

    def measured(case: Certified, bits: int) -> float:
        return median(in_turn(lambda: case.run(bits), rounds=3)[0])

    middle = Certified(random_model(gpt2(size())))
    found = middle.precision()
    for bits in (66, 88, 110, 132, 176, 220, 264, 330):
        yield "bits", bits, measured(middle, bits), bits
    for length in (8, 16, 32, 64, 128, 256):
        case = Certified(middle.model, length)
        bits = case.precision(found)
        yield "tokens", length, measured(case, bits), bits
    for layers in (1, 2, 4, 6, 9, 12):
        case = Certified(random_model(gpt2(size(layers))))
        bits = case.precision(60)
        yield "layers", layers, measured(case, bits), bits
    for width in (128, 256, 384, 512, 768):
        case = Certified(random_model(gpt2(size(width=width))))
        bits = case.precision(80)
        yield "width", width, measured(case, bits), bits


def measure_growth() -> None:
    """Writes docs/proven-cost.json."""
    record = [dict(zip(POINT, point, strict=True)) for point in growth()]
    (DOCS / "proven-cost.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def draw_growth() -> None:
    """Draws docs/proven-cost.svg from the measurements."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "byhand"
    from matplotlib import pyplot

    record = json.loads((DOCS / "proven-cost.json").read_text("utf-8"))
    points = [tuple(point[key] for key in POINT) for point in record]
    figure, axes = pyplot.subplots(1, 4, figsize=(12, 3), sharey=True, layout="constrained")
    for axis, name in zip(axes, ("tokens", "layers", "width", "bits"), strict=True):
        mine = [point for point in points if point[0] == name]
        sizes, seconds = [p[1] for p in mine], [p[2] for p in mine]
        axis.loglog(sizes, seconds, "o-", color="#1f4e79", markersize=4)
        if name != "bits":
            for _name, at, height, bits in mine:
                axis.annotate(str(bits), (at, height), textcoords="offset points", xytext=(0, 6),
                              ha="center", fontsize=7, color="#555555")  # fmt: skip
        axis.set_xlabel(name)
        axis.set_xticks(sizes, [str(s) for s in sizes], fontsize=7)
        axis.minorticks_off()
        axis.margins(y=0.1)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds a pass")
    figure.savefig(DOCS / "proven-cost.svg", metadata={"Date": None})


def kernels() -> str:
    """The processor whose kernels NumPy's OpenBLAS works with; most of the cost hangs on them."""
    for path in Path(np.__file__).parent.parent.glob("numpy.libs/*openblas*"):
        library = ctypes.CDLL(str(path))
        for prefix in ("scipy_openblas", "openblas"):
            for suffix in ("64_", ""):
                name = getattr(library, f"{prefix}_get_corename{suffix}", None)
                if name is not None:
                    name.restype = ctypes.c_char_p
                    return str(name().decode())
    return "unknown"


def main() -> None:
    import torch

    torch.set_num_threads(1)
    if "--plot" in sys.argv[1:]:
        measure_growth()
        draw_growth()
        return
    print(f"certified passes, {LENGTH} tokens, one thread, medians of {ROUNDS} rounds in turn, "
          f"kernels for {kernels()}")  # fmt: skip
    case, first = against_torch("GPT-2 small, random", random_model(gpt2()))
    arb = arb_pass(case, first["bits"])
    times = arb / float(first["certified"].split()[0])
    print(f"  the same in Arb's matrices: {arb:,.0f} s (a layer measured and scaled up), "
          f"{times:.0f} times as long", flush=True)  # fmt: skip
    del case
    rows = [first]
    for name, kind in (("as trained", True), ("with outliers", "outliers")):
        rows.append(against_torch(f"GPT-2 small, {name}", random_model(gpt2(), trained=kind))[1])
    if "--checkpoint" in sys.argv[1:]:
        model = open_model(sys.argv[sys.argv.index("--checkpoint") + 1])
        rows.append(against_torch("a trained Llama, 19 million", model, text_of(model))[1])
    if "--record" in sys.argv[1:]:
        file = DOCS / "proven-cpu.json"
        known = json.loads(file.read_text("utf-8")) if file.exists() else {}
        known[kernels()] = {"rows": rows, "arb": {"seconds": round(arb), "times": round(times)}}
        file.write_text(json.dumps(known, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
