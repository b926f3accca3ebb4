"""1,000 short texts scored in float32: byhand beside transformers' own batched scoring, one thread.

    python -m benchmarks.scoring_speed CHECKPOINT… [--record]

Both score the same random texts of 8 to 64 tokens, in batches of about one length; transformers is
given the best of several sizes of a batch.  Each runs once to warm up, then they take turns.
Times are those of the processor; the largest difference of a log-probability is told beside them.
`--record` writes the figures for docs/corpora.md.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch

from byhand import open_model
from byhand.scoring.samples import Sample
from byhand.scoring.scorer import Scorer

TEXTS, LENGTHS = 1_000, (8, 64)
SIZES = (16, 32, 64)  # texts of a batch of transformers
TURNS = 3
MOST = 1.5  # times the cost of transformers
RECORD = Path(__file__).parent.parent / "docs" / "scoring-speed.json"


def texts(vocab: int) -> list[Sample]:
    """Random texts, the same in each run."""
    random = np.random.default_rng(22)
    lengths = random.integers(LENGTHS[0], LENGTHS[1] + 1, TEXTS)
    return [
        Sample(str(number), tuple(random.integers(0, vocab, length).tolist()))
        for number, length in enumerate(lengths)
    ]


def by_transformers(model: torch.nn.Module, samples: list[Sample], size: int) -> list[np.ndarray]:
    """The log-probabilities of each text, `size` texts at a time, sorted by length and padded."""
    order = sorted(range(len(samples)), key=lambda place: len(samples[place].ids))
    found: dict[int, np.ndarray] = {}
    with torch.inference_mode():
        for start in range(0, len(order), size):
            places = order[start : start + size]
            longest = max(len(samples[place].ids) for place in places)
            ids = torch.zeros(len(places), longest, dtype=torch.long)
            mask = torch.zeros_like(ids)
            for row, place in enumerate(places):
                length = len(samples[place].ids)
                ids[row, :length] = torch.tensor(samples[place].ids)
                mask[row, :length] = 1
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1]
            shares = torch.log_softmax(logits, dim=-1)
            each = shares.gather(-1, ids[:, 1:, None])[..., 0].numpy()
            for row, place in enumerate(places):
                found[place] = each[row, : len(samples[place].ids) - 1]
    return [found[place] for place in range(len(samples))]


def measure(path: str) -> dict[str, Any]:
    """Prints the costs for one checkpoint; they are recorded."""
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    theirs = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    model = open_model(path)
    samples = texts(model.spec.vocab)
    scorer = Scorer(model, "float32")
    cost: dict[str, float] = {}

    def timed(name: str, work: object) -> object:
        start = process_time()
        result = work()  # type: ignore[operator]
        cost[name] = min(cost.get(name, float("inf")), process_time() - start)
        return result

    list(scorer.score(samples))
    for _turn in range(TURNS):
        ours = timed("byhand", lambda: list(scorer.score(samples)))
        for size in SIZES:
            each = timed(str(size), lambda size=size: by_transformers(theirs, samples, size))
    off = max(float(abs(one.logprobs - other).max()) for one, other in zip(ours, each, strict=True))
    best = min(cost[str(size)] for size in SIZES)
    tokens = sum(len(sample.ids) for sample in samples)
    print(f"{path}: {TEXTS:,} texts, {tokens:,} tokens, one thread")
    print(f"  byhand        {cost['byhand']:6.2f} s")
    for size in SIZES:
        print(f"  transformers  {cost[str(size)]:6.2f} s in batches of {size}")
    print(f"  ratio to the best {cost['byhand'] / best:.2f} (bar {MOST})")
    print(f"  largest difference of a log-probability {off:.1e}")
    return {
        "model": Path(path).name,
        "texts": TEXTS,
        "tokens": tokens,
        "seconds": {name: round(each, 2) for name, each in cost.items()},
        "ratio": round(cost["byhand"] / best, 2),
        "difference": off,
    }


def main() -> int:
    """Measures every checkpoint; 0 where the bar is met everywhere."""
    found = [measure(path) for path in sys.argv[1:] if path != "--record"]
    if "--record" in sys.argv:
        RECORD.write_text(json.dumps({"most": MOST, "models": found}, indent=1) + "\n", "utf-8")
    return 0 if all(each["ratio"] <= MOST for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
