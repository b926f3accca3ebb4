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

from benchmarks.large import LLAMA_1B, STD, Plain, Size, gpt2, llama, random_model
from benchmarks.proven import ASKED, RADIUS, Certified
from byhand.evaluate import work_out
from byhand.generating import generate
from byhand.model import Model
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

    return RepeatedPass(work, case.ids, DEVICE)


def with_tokens(steps: Steps) -> tuple[Steps, list[int]]:
    """The steps, and the next tokens on the host; -1 where one is not proven."""
    found = steps["next"].value
    if isinstance(found, LeadingTokens):
        return steps, found.ids()
    return steps, [one.id if one.proven else -1 for one in found]


def widest(case: Certified, again: RepeatedPass, texts: list[list[int]]) -> float:
    """log2 of the largest radius of these texts' logits."""
    return max(case.radius(dict(again(text))) for text in texts)


def certify(name: str, model: Model, length: int, bits: int) -> dict[str, Any]:
    """One row of the table; `bits` is the first precision tried."""
    spec = model.spec
    start = perf_counter()
    case = Certified(model, length, DEVICE)
    texts = [[(one + 1013 * k) % spec.vocab for one in case.ids] for k in range(1, ROUNDS + 1)]
    again = prepared(case, bits)
    while (radius := widest(case, again, texts)) > log2(RADIUS):
        print(f"  {name}: {bits} bits give a radius of 2^{radius:.1f}", flush=True)
        del again
        torch.cuda.empty_cache()
        bits += 44 if radius == inf else max(2, int(radius - log2(RADIUS)) + 1)
        again = prepared(case, bits)
    torch.cuda.synchronize()
    preparation = perf_counter() - start
    print(f"  {name}: {bits} bits, prepared in {preparation:.0f} s", flush=True)
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
    ours, theirs = (median(side) for side in zip(*pairs, strict=True))
    row = {
        "model": name,
        "tokens": length,
        "bits": bits,
        "certified": f"{ours:.3f} s",
        "torch float32": f"{theirs:.4f} s",
        "ratio": f"{median(a / b for a, b in pairs):.1f}",
        "largest radius": f"{2.0**radius:.1e}",
        "proven": f"{proven} of {ROUNDS * length}",
        "repeated": f"{again.repeats * (ROUNDS + before - again.fallen_back)} of {ROUNDS}",
        "prepared": f"{preparation:.0f} s",
    }
    print(
        f"  {name}: {row}; float64 is within {max(distances):.0e}; {again.asked} decisions are"
        f" kept; pairs of times {[tuple(round(1000 * t, 2) for t in pair) for pair in pairs]} ms;"
        f" {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB",
        flush=True,
    )
    assert max(distances) < 1e-6, "a plain float64 pass is nowhere near the enclosures"
    return row


def large_random_model(spec: ModelSpec) -> Model:
    """As `random_model`, every tensor of a generator of its own, many at a time."""

    def drawn(numbered: tuple[int, Parameter]) -> Tensor:
        number, parameter = numbered
        rng = np.random.default_rng(number)
        data = rng.standard_normal(parameter.shape, dtype=np.float32)
        data *= np.float32(STD)
        if parameter.kind == "gain":
            data += np.float32(1)
        return Tensor(parameter.name, data)

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
        "Llama-like, 1.2 billion, random", large_random_model(llama(LLAMA_1B)), 64, 254
    ),
}


def main() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    card = torch.cuda.get_device_name()
    print(f"torch {torch.__version__} on {card}, certified to {RADIUS}")
    rows = []
    for part in sys.argv[1:] or PARTS:
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
        print("| " + " | ".join(str(row[name]) for name in HEAD) + " |")


if __name__ == "__main__":
    main()
