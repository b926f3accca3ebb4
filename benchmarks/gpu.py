"""Certified passes on a GPU, beside plain float32 passes of torch on the same card.

Runs where nothing but torch and NumPy is installed: `PYTHONPATH=src python -m benchmarks.gpu`.  It
first checks the card (what is assumed of its float64, and that it gives the same bits as NumPy on
this machine's processor), then certifies a model of GPT-2's size and one of Llama's with a billion
parameters.  Times are those of device events; the table is Markdown.  Kernels are compiled at first
use, which takes a minute or two.  Parts can be named: `checks`, `texts`, `gpt2`, `llama`; `texts`
proves several texts and a generation by the doors of the product.

Preparation for a model and a length is reported separately: slicing weights, certifying their
norms, finding the precision, recording decisions and building a graph.  The timed pass is over a
new text: token ids in; logits with radii, proven next tokens and a check of all recorded decisions
out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from math import inf, log2
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from ml_dtypes import bfloat16

from benchmarks.gpu_trained import CONTEXT, train, trained_model
from benchmarks.large import LLAMA_1B, LLAMA_7B, STD, Plain, Size, gpt2, llama, random_model
from benchmarks.proven import ASKED, RADIUS, Certified
from byhand.bounds_file import kept_bounds
from byhand.evaluate import work_out
from byhand.generating import generate
from byhand.model import Model
from byhand.numbers.enclosed.gpu import kernels
from byhand.numbers.enclosed.gpu.repeated_pass import RepeatedPass, Steps
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.enclosed.limbs.prediction import LeadingTokens
from byhand.numbers.enclosed.selftest import checks
from byhand.parameters import Parameter, parameters
from byhand.proving.digits import enclosing_numbers, prove_texts
from byhand.repeating import prepare_texts
from byhand.spec import ModelSpec
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights

DEVICE = "cuda"
DIGITS = 6
ROUNDS = 5  # texts, each timed once, beside a plain pass over the same text
START = perf_counter()
MARGIN = 1  # bits more than one text needed
AMPLE = 64.0  # room of kept decisions: real texts differ more than random ids
FOLDER = Path(os.environ.get("TRAINED", "/tmp/trained"))
LAST: list[Any] = []  # the pass and the case that were certified last
HEAD = ("model", "tokens", "bits", "certified", "torch float32", "ratio", "largest radius",
        "proven", "repeated", "prepared")  # fmt: skip


def timed(work: Callable[[], tuple[Any, Any]]) -> tuple[float, Any, Any]:
    """The seconds of some work by device events, and its result."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _event in range(2))
    begin.record()
    one, other = work()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1000, one, other


def check_card() -> None:
    """Stops if the card does not meet the assumptions of the proofs."""
    for check in checks(DEVICE):
        print(f"  {'ok ' if check.passed else 'NO '} {check.name} {check.detail}", flush=True)
        if not check.passed:
            sys.exit("this card is not what the proofs assume")


def check_same_bits() -> None:
    """Checks that the card and NumPy give the same enclosures of small models."""
    for spec in (
        gpt2(Size(2, 128, 4, 4, 512, 500, 64)),
        llama(Size(2, 128, 4, 2, 384, 500, 64)),
    ):
        model = random_model(spec)
        here, there = Certified(model, 24), Certified(model, 24, DEVICE)
        mine, its = here.run(140), there.run(140)
        one, other = mine["logits"], its["logits"]
        overlap = [
            one.at((row, column)).overlaps(other.at((row, column)))
            for row in range(24)
            for column in range(0, spec.vocab, 7)
        ]
        middles = np.abs(here.middles(mine) - there.middles(its)).max()
        print(f"  {'ok ' if all(overlap) else 'NO '} {spec.name}: NumPy and the card agree "
              f"(middles differ by {middles:.0e})", flush=True)  # fmt: skip
        if not all(overlap):
            sys.exit("the card and the processor disagree")


def check_texts() -> None:
    """Checks that repeated passes prove several texts and a generation as NumPy does."""
    for spec in (
        gpt2(Size(2, 128, 4, 4, 512, 500, 64)),
        llama(Size(2, 128, 4, 2, 384, 500, 64)),
    ):
        model = random_model(spec)
        ids = np.random.default_rng(0).integers(0, spec.vocab, (8, 24)).tolist()
        numbers = enclosing_numbers(model, DIGITS, device=DEVICE)
        texts = [model.vocabulary.decode(row) for row in ids]
        jobs = prepare_texts(model, texts, lambda numbers=numbers: numbers, only=("logits", "next"))
        start = perf_counter()
        proven = list(prove_texts(jobs, DIGITS))
        seconds = perf_counter() - start
        finer = Limbs(220)
        right = all(
            trace.proof.complete and all(
                trace["logits"][row, token].overlaps(alone["logits"][row, token])
                for row in (0, 11, 23) for token in range(0, spec.vocab, 7))
            for trace, alone in zip(
                proven, (replace(job, numbers=finer).work() for job in jobs), strict=True)
        )  # fmt: skip
        start = perf_counter()
        ours = list(generate(model, texts[0], numbers, count=20, digits=DIGITS))
        times = seconds, perf_counter() - start
        theirs = list(generate(model, texts[0], Limbs(120), count=20, digits=DIGITS))
        right = right and all(
            one.id == other.id and one.proven and one.probability.overlaps(other.probability)
            for one, other in zip(ours, theirs, strict=True)
        )
        print(f"  {'ok ' if right else 'NO '} {spec.name}: 8 texts in {times[0]:.1f} s, "
              f"20 tokens in {times[1]:.1f} s, as NumPy proves them", flush=True)  # fmt: skip
        if not right:
            sys.exit("a repeated pass and NumPy disagree")


def prepared(case: Certified, bits: int) -> RepeatedPass:
    def work(tokens: Sequence[int]) -> dict[str, Any]:
        return work_out(case.plan, case.weights, tokens, case.numbers.at(bits), keep=ASKED)

    return RepeatedPass(work, case.ids, DEVICE, room=AMPLE)


def with_tokens(steps: Steps) -> tuple[Steps, list[int]]:
    """The steps, and the next tokens on the host; -1 where one is not proven."""
    found = steps["next"].value
    if isinstance(found, LeadingTokens):
        return steps, found.ids()
    return steps, [one.id if one.proven else -1 for one in found]


def widest(case: Certified, again: RepeatedPass, texts: list[list[int]]) -> float:
    """log2 of the largest radius of these texts' logits."""
    return max(case.radius(dict(again(text))) for text in texts)


def search(case: Certified, bits: int) -> tuple[int, float]:
    """The bits that certify one text to RADIUS; kernels are compiled meanwhile."""
    while True:
        with kernels.in_background():
            radius = case.radius(case.run(bits))
        torch.cuda.synchronize()
        print(f"    {bits} bits: 2^{radius:.1f}, {perf_counter() - START:.0f} s", flush=True)
        if radius <= log2(RADIUS):
            return bits - max(0, int(log2(RADIUS) - radius) - 1), radius
        bits += 44 if radius == inf else max(2, int(radius - log2(RADIUS)) + 2)


def certify(
    name: str, model: Model, length: int, bits: int, texts: list[list[int]] | None = None
) -> dict[str, Any]:
    """One row of the table; `bits` is the first precision tried, unless another is kept."""
    spec = model.spec
    start = perf_counter()
    with kept_bounds(model.source) as kept:
        case = Certified(model, length, DEVICE)
        texts = texts or [
            [(one + 1013 * k) % spec.vocab for one in case.ids] for k in range(1, ROUNDS + 1)
        ]
        case.ids = texts[-1]
        known = None if kept is None else kept.noted(f"bits {length} {RADIUS}")
        if known is None:
            bits, _radius = search(case, bits)
            bits += MARGIN
        else:
            bits = known
        again = prepared(case, bits)
        while (radius := widest(case, again, texts)) > log2(RADIUS):
            print(f"  {name}: {bits} bits give a radius of 2^{radius:.1f}", flush=True)
            del again
            torch.cuda.empty_cache()
            bits += max(2, int(radius - log2(RADIUS)) + 1) if radius < inf else 44
            again = prepared(case, bits)
        if kept is not None:
            kept.note(f"bits {length} {RADIUS}", bits)
        torch.cuda.synchronize()
    preparation = perf_counter() - start
    print(f"  {name}: {bits} bits, prepared in {preparation:.1f} s", flush=True)
    plain = Plain(model, "float32", DEVICE)
    exactly = copy(plain)
    exactly.kind = torch.float64
    exactly.w = {key: weight.double() for key, weight in plain.w.items()}
    plain.logits(case.ids)
    pairs, distances, proven = [], [], 0
    before = again.fallen_back
    for text in texts:
        ours, steps, tokens = timed(lambda text=text: with_tokens(again(text)))
        theirs, *_logits = timed(lambda text=text: (plain.logits(text), None))
        pairs.append((ours, theirs))
        proven += sum(one >= 0 for one in tokens)
        wanted = exactly.logits(text)
        distances.append(float(np.abs(case.middles(dict(steps)) - wanted.cpu().numpy()).max()))
        assert all(
            mine in (-1, its) for mine, its in zip(tokens, wanted.argmax(-1).tolist(), strict=True)
        ), "other next tokens than float64"
    del exactly
    ours, theirs = (median(side) for side in zip(*pairs, strict=True))
    row = {
        "model": name,
        "tokens": length,
        "bits": bits,
        "certified": f"{ours:.3f} s",
        "torch float32": f"{theirs:.4f} s",
        "ratio": f"{median(a / b for a, b in pairs):.1f}",
        "largest radius": f"{2.0**radius:.1e}",
        "proven": f"{proven} of {len(texts) * length}",
        "repeated": f"{again.repeats * (len(texts) + before - again.fallen_back)} of {len(texts)}",
        "prepared": f"{preparation:.1f} s",
    }
    print(
        f"  {name}: {row}; float64 is within {max(distances):.0e}; {again.asked} decisions are"
        f" kept; pairs of times {[tuple(round(1000 * t, 2) for t in pair) for pair in pairs]} ms;"
        f" {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB",
        flush=True,
    )
    assert max(distances) < 1e-6, "a plain float64 pass is nowhere near the enclosures"
    LAST[:] = [again, case]
    return row


def trained(name: str = "GPT-2 small, trained, cold") -> dict[str, Any]:
    """The model that `benchmarks.gpu_trained` trained: real text that it was not trained on."""
    model, held_out = trained_model(FOLDER)
    texts = [held_out[k * CONTEXT : (k + 1) * CONTEXT].tolist() for k in range(ROUNDS)]
    return certify(name, model, CONTEXT, 108, texts)


def again_cached() -> dict[str, Any]:
    """The same in another process, which finds kept bounds and compiled kernels."""
    environment = {**os.environ, "OUT": ""}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", "trained_cached"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(done.stdout[-1500:], done.stderr[-1500:], flush=True)
    told = [line for line in done.stdout.splitlines() if line.startswith("JSON ")]
    found: dict[str, Any] = json.loads(told[0][5:])
    return found


def trained_cached() -> dict[str, Any]:
    torch.zeros(1, device=DEVICE)  # the driver's own start is not part of it
    row = trained("GPT-2 small, trained, cached")
    print("JSON " + json.dumps(row))
    return row


def million() -> dict[str, Any]:
    """A million tokens of the model that was certified last: windows of the held-out text."""
    again, case = LAST
    _model, held_out = trained_model(FOLDER)
    count = -(-1_000_000 // CONTEXT)
    limit = float(os.environ.get("MILLION_SECONDS", "300"))
    start, proven, worst, done = perf_counter(), 0, -inf, 0
    for k in range(count):
        at = (k * 997) % (len(held_out) - CONTEXT)
        steps, tokens = with_tokens(again(held_out[at : at + CONTEXT].tolist()))
        proven += sum(one >= 0 for one in tokens)
        if k % 50 == 0:
            worst = max(worst, case.radius(dict(steps)))
        done += CONTEXT
        if perf_counter() - start > limit:
            break
    seconds = perf_counter() - start
    print(
        f"  {done:,} tokens in {seconds:.1f} s; {proven:,} next tokens proven; radius up to"
        f" 2^{worst:.1f}; {again.fallen_back} passes worked out as usual",
        flush=True,
    )
    return {"model": "GPT-2 small, trained", "tokens": done, "certified": f"{seconds:.1f} s",
            "proven": f"{proven} of {done}", "largest radius": f"{2.0**worst:.1e}"}  # fmt: skip


def seven_billion() -> dict[str, Any]:
    """One text of 64 tokens by a random bfloat16 model of 7 billion parameters."""
    LAST.clear()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    start = perf_counter()
    model = large_random_model(llama(LLAMA_7B), bfloat16)
    print(f"  made in {perf_counter() - start:.0f} s", flush=True)
    start = perf_counter()
    case = Certified(model, 64, DEVICE)
    bits, radius = search(case, 370)
    bits += MARGIN
    preparation = perf_counter() - start
    case.run(bits)
    torch.cuda.synchronize()
    start = perf_counter()
    steps = case.run(bits)
    radius = case.radius(steps)
    torch.cuda.synchronize()
    seconds = perf_counter() - start
    steps, tokens = with_tokens(steps)
    memory = torch.cuda.max_memory_allocated() / 2**30
    row = {
        "model": "Llama-like, 7 billion, random bfloat16", "tokens": 64, "bits": bits,
        "certified": f"{seconds:.2f} s", "largest radius": f"{2.0**radius:.1e}",
        "proven": f"{sum(one >= 0 for one in tokens)} of 64", "prepared": f"{preparation:.0f} s",
        "memory": f"{memory:.0f} GiB",
    }  # fmt: skip
    print(f"  {row}", flush=True)
    return row


def large_random_model(spec: ModelSpec, kind: Any = None) -> Model:
    """As `random_model`, every tensor of a generator of its own, many at a time."""

    def drawn(numbered: tuple[int, Parameter]) -> Tensor:
        number, parameter = numbered
        rng = np.random.default_rng(number)
        data = rng.standard_normal(parameter.shape, dtype=np.float32)
        data *= np.float32(STD)
        if parameter.kind == "gain":
            data += np.float32(1)
        return Tensor(parameter.name, data if kind is None else data.astype(kind))

    with ThreadPoolExecutor() as pool:
        made = list(pool.map(drawn, enumerate(parameters(spec))))
    return Model(spec, Weights({tensor.name: tensor for tensor in made}), Ids(spec.vocab))


def checks_first() -> None:
    check_card()
    check_same_bits()


PARTS: dict[str, Callable[[], dict[str, Any] | None]] = {
    "checks": checks_first,
    "texts": check_texts,
    "gpt2": lambda: certify("GPT-2 small, random", random_model(gpt2()), 1024, 140),
    "llama": lambda: certify(
        "Llama-like, 1.2 billion, random", large_random_model(llama(LLAMA_1B)), 64, 209
    ),
    "train": lambda: train(FOLDER, Path(os.environ["TEXT"]), float(os.environ["SECONDS_"])),
    "trained": trained,
    "million": million,
    "cached": again_cached,
    "trained_cached": trained_cached,
    "seven": seven_billion,
}
USUAL = ("checks", "texts", "gpt2", "llama")


def main() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    card = torch.cuda.get_device_name()
    print(f"torch {torch.__version__} on {card}, certified to {RADIUS}")
    rows = []
    for part in sys.argv[1:] or USUAL:
        row = PARTS[part]()
        if row is None:
            continue
        rows.append(row)
        if out := os.environ.get("OUT"):
            record = {"card": card, "torch": torch.__version__, "rows": rows}
            Path(out, "proven-gpu.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        torch.cuda.empty_cache()
    print("\n| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    for row in rows:
        print("| " + " | ".join(str(row.get(name, "")) for name in HEAD) + " |")


if __name__ == "__main__":
    main()
