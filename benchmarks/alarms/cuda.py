"""Correct runs on a GPU: `transformers` in 16 bits, float32 and TF32, eager, sdpa and autocast.

    python -m benchmarks.alarms.cuda

What the precision is, `byhand.capture` says.  Nothing is recorded: it needs a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from benchmarks.alarms import library, report, runs
from benchmarks.alarms.models import FAMILIES, WEIGHTS, saved
from byhand.capturing import capture

FORMATS = ("float32", "tf32", "bfloat16", "float16", "autocast:bfloat16", "autocast:float16")


@contextmanager
def _working(format: str) -> Iterator[torch.dtype]:
    """The settings of torch for a format, and the format of the weights."""
    cast = format.removeprefix("autocast:")
    torch.set_float32_matmul_precision("high" if format == "tf32" else "highest")
    narrow = None if cast in ("float32", "tf32") else getattr(torch, cast)
    with torch.autocast("cuda", dtype=narrow, enabled=cast != format):
        yield torch.float32 if narrow is None or cast != format else narrow


def device_runs(seed: int = 0) -> Iterator[runs.Run]:
    """Every family, weights of every kind, formats and kinds of attention."""
    for family in FAMILIES:
        for kind, weights in enumerate(WEIGHTS):
            with saved(family, weights, seed + kind) as pair:
                for number, format in enumerate(FORMATS):
                    for attention in ("eager", "sdpa"):
                        way = library.Way(format, attention, 8, ("none", "left")[number % 2], False)
                        texts = library.batch(way, seed + number)
                        with _working(format) as dtype:
                            model = pair.theirs(dtype, attention).cuda()
                            found = capture(
                                model, texts.ids.cuda(), attention_mask=texts.real.long().cuda(),
                                position_ids=texts.positions.cuda(),
                            )  # fmt: skip
                        yield runs.Run(
                            f"{family}, {weights}, {way}", "cuda", family, format,
                            found.precision or format, pair.ours, found,
                        )  # fmt: skip


def main() -> int:
    found = report.Report()
    for run in device_runs(int(sys.argv[1]) if sys.argv[1:] else 0):
        found.add(run)
    data = found.data()
    print(report.tables(data))
    print(*report.summary(data), sep="\n")
    print(*data["alarms"][:30], *data["unusual"][:30], sep="\n")
    return 1 if data["alarms"] else 0


if __name__ == "__main__":
    sys.exit(main())
