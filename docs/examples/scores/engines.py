"""Makes the logs of docs/score.md: what three engines might log for the built-in minigpt.

half.jsonl     minigpt in float16, as an engine logs it: each token and its log-probability
shifted.jsonl  the same, but in one text every position from the sixth on is counted one too
               far: the mistake of a cache that was filled from the wrong place
tens.jsonl     the numbers of half.jsonl as logarithms to base 10

$ python docs/examples/scores/engines.py docs/examples/scores
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from math import log
from pathlib import Path

import numpy as np

import byhand
from byhand import forward
from byhand.evaluate import Job
from byhand.numbers.floats import Floats
from byhand.train.corpora import open_corpus

COUNT = 24  # translations, taken from the whole corpus
ODD = 16  # the text whose later positions are wrong
FROM, BY = 4, 4  # the first of them, and how far off they are


def texts() -> list[list[int]]:
    """Translations, evenly spaced: <en> yesterday she climb -ed = ella sub -ió <end>."""
    documents = [list(map(int, each)) for each in open_corpus("verbs").train]
    long = [each for each in documents if len(each) > 8]
    return long[:: len(long) // COUNT][:COUNT]


def logprobs(model: byhand.Model, ids: Sequence[int], format: str, shifted: bool) -> list[float]:
    """ln p of every token but the first, from one pass in a float format."""
    read = ids[:-1]
    places = [place + BY * (shifted and place >= FROM) for place in range(len(read))]
    plan = forward.plan(model.spec, len(read), positions=places).only(["logits"])
    trace = Job(model, plan, Floats(format), "", tuple(read), asked=("logits",)).work()
    logits = np.asarray(trace["logits"], dtype=np.float32)
    below = logits - logits.max(axis=1, keepdims=True)
    logs = below - np.log(np.exp(below).sum(axis=1, keepdims=True))
    return [float(logs[place, id]) for place, id in enumerate(ids[1:])]


def write(path: Path, model: byhand.Model, format: str, odd: int | None, scale: float) -> None:
    """One engine's log, a text on each line."""
    lines = []
    for number, ids in enumerate(texts()):
        values = [None, *(round(x * scale, 6) for x in logprobs(model, ids, format, number == odd))]
        lines.append(json.dumps({"input_ids": ids, "logprobs": values}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(folder: Path) -> None:
    """Writes the three logs."""
    model = byhand.open_model("minigpt")
    write(folder / "half.jsonl", model, "float16", None, 1.0)
    write(folder / "shifted.jsonl", model, "float16", ODD, 1.0)
    write(folder / "tens.jsonl", model, "float16", None, 1 / log(10))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
