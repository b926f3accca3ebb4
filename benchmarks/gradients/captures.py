"""Correct training steps of `transformers`, captured: nothing in them should be called wrong.

    python -m benchmarks.gradients.captures [--seed=N] [--count=N]

Every capture is a way to train: eager or sdpa attention, at once, checkpointed or accumulated, in
float32, bfloat16 or with autocast, half of them with a step of an optimizer.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

import byhand
from benchmarks.alarms.models import FAMILIES, VOCAB, WEIGHTS, recompute_layers, saved
from byhand.capturing import Capture
from byhand.checking.verdicts import Verdict
from byhand.model import Model

ATTENTION = ("eager", "sdpa")
WAYS = ("at once", "checkpointed", "accumulated")
FORMATS = ("float32", "bfloat16", "autocast")


@dataclass(frozen=True)
class Way:
    """One way to train a model."""

    family: str
    weights: str
    attention: str
    way: str
    format: str
    seed: int

    def captures(self) -> tuple[Model, Capture]:
        """The model, and one training step of it as `byhand.capture` records it."""
        noise = torch.Generator().manual_seed(self.seed)
        ids = torch.randint(1, VOCAB, (2, 9), generator=noise)
        mask = torch.ones_like(ids)
        if self.seed % 3 == 0:
            mask[1, 6:] = 0  # padding, which does not count
        with saved(self.family, self.weights, self.seed) as pair:
            wide = torch.float32 if self.format == "autocast" else getattr(torch, self.format)
            theirs = pair.theirs(wide, self.attention)
            if self.way == "checkpointed":
                recompute_layers(theirs, use_reentrant=self.seed % 2 == 0)
                theirs.train()
            cast = torch.autocast("cpu", torch.bfloat16) if wide is torch.float32 else nullcontext()
            with cast if self.format == "autocast" else nullcontext():
                found = byhand.capture(
                    theirs,
                    ids,
                    backward=True,
                    attention_mask=mask,
                    use_cache=False,
                    accumulate=2 if self.way == "accumulated" else 1,
                    optimizer=_optimizer(theirs) if self.seed % 2 else None,
                    clip=1.0 if self.seed % 4 == 1 else None,
                )
            return pair.ours, found


def _optimizer(model: Any) -> Any:
    """AdamW, in which only matrices decay."""
    every = list(model.parameters())
    groups = [
        {"params": [each for each in every if each.ndim > 1], "weight_decay": 0.1},
        {"params": [each for each in every if each.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95))


def ways(seed: int, count: int) -> Iterator[Way]:
    """So many ways, each with a seed of its own; all combinations come before any comes again."""
    every = list(product(WAYS, FORMATS, ATTENTION, FAMILIES))
    for number in range(count):
        way, format, attention, family = every[number * 29 % len(every)]
        weights = WEIGHTS[number % len(WEIGHTS)]
        yield Way(family, weights, attention, way, format, 1000 * seed + number)


def main(arguments: list[str]) -> int:
    torch.set_num_threads(1)
    told = {name: int(value) for name, value in (each[2:].split("=") for each in arguments)}
    verdicts: Counter[str] = Counter()
    alarms, unusual, unjudged, unmatched, captures = [], [], [], set(), 0
    largest = 0.0
    for way in ways(told.get("seed", 0), told.get("count", 100)):
        model, found = way.captures()
        marking = byhand.check(model, found)
        captures += 1
        unmatched |= {each.name for each in marking.unmatched}
        for line in marking:
            verdicts[line.verdict.value] += 1
            largest = max(largest, line.times or 0.0)
            at = (way, line.address, f"{line.share:.3g} of the bound", f"{line.times} usual")
            if line.verdict in (Verdict.ERROR, Verdict.UNSUPPORTED, Verdict.CARRIED):
                alarms.append(at)
            elif line.verdict is Verdict.UNJUDGED:
                unjudged.append((*at, line.reason))
            elif line.unusual:
                unusual.append(at)
    for title, lines in (("wrong", alarms), ("unusual", unusual), ("not judged", unjudged)):
        for line in lines[:12]:
            print(f"{title}:", *line, file=sys.stderr)
    if unmatched:
        print("names that stand for nothing:", *sorted(unmatched), file=sys.stderr)
    print(
        f"{captures} correct captures, {sum(verdicts.values()):,} lines: {len(alarms)} called "
        f"wrong, {len(unusual)} called unusual, {len(unjudged)} not judged; at most {largest:.2g} "
        "times what rounding usually does"
    )
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
