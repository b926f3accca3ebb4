"""How tight the ranges of gradients are: allowed over actual errors, by operation.

    python -m benchmarks.tightness.learning [FORMAT…]

Training steps of byhand's own floats, every line judged from the lines above it: the median over
entries of what is allowed divided by the error.  An error that is twice what is allowed is that
much larger than what rounding usually does.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks.alarms.models import saved
from byhand import evaluate, forward
from byhand.backward import adjoint
from byhand.checking.optimizers import read_rule
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.allowed import Allowed
from byhand.numbers.floats import Floats
from byhand.optimizer import update
from byhand.worked import Worked

RULE = "adamw lr=0.001 weight_decay=0.1 clip=1 step=1"
FORMATS = ("float32", "bfloat16", "float16")
IDS = tuple(range(3, 27))


def ratios(model: Model, tokens: tuple[int, ...], format: str) -> dict[str, list[Any]]:
    """Allowed over actual error of every entry that is off, by operation."""
    plan = update(adjoint(forward.plan(model.spec, len(tokens), losses=True)), read_rule(RULE))
    given = {"targets": (*tokens[1:], UNCOUNTED)}
    done = evaluate.work_out(plan, model.weights, tokens, Floats(format), **given)
    numbers, found = Allowed(format), defaultdict(list)

    def judge(worked: Worked) -> Worked:
        if worked.step.op in ("given", "argmax"):
            return worked
        claim = np.asarray(np.ma.getdata(done[worked.address].value)).astype(np.float64)
        judged = numbers.judge(worked.value, (), claim)
        if worked.address.startswith(("grad.", "update.", "losses", "mean_loss")):
            found[worked.step.op].append(1 / judged.shares[judged.shares > 0])
        return Worked(worked.step, numbers.overlay(worked.value, (), claim), numbers)

    evaluate.work_out(plan, model.weights, tokens, numbers, revise=judge, **given)
    return found


def main(formats: list[str]) -> None:
    """Prints a row for each operation, a column for each format."""
    wanted = formats or FORMATS
    table: dict[str, dict[str, float]] = defaultdict(dict)
    for format in wanted:
        joined: dict[str, list[Any]] = defaultdict(list)
        minigpt = open_model("minigpt")
        models = [(minigpt, minigpt.vocabulary.encode(minigpt.text or ""))]
        with saved("gpt2", "trained", 0) as one, saved("llama", "trained", 0) as other:
            for model, tokens in (*models, (one.ours, IDS), (other.ours, IDS)):
                for op, parts in ratios(model, tokens, format).items():
                    joined[op] += parts
        for op, parts in joined.items():
            every = np.concatenate(parts)
            table[op][format] = float(np.median(every)) if every.size else 0.0
    print(f"{'':18}", *(f"{format:>10}" for format in wanted))
    for op, row in sorted(table.items()):
        print(f"{op:18}", *(f"{row.get(format, 0):10.3g}" for format in wanted))


if __name__ == "__main__":
    main(sys.argv[1:])
