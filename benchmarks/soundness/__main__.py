"""Attempts to break the proofs, counted: `python -m benchmarks.soundness`.

Every rule of passes along the stream gets `--samples` samples, 10^6 unless told otherwise, and
`--passes` whole passes of random small models meet Arb: from their tokens, and from a stream whose
true rows stand at the rims of their balls.  With `--checkpoints FOLDER…` models of Llama's make
are worked out by both engines, and the last one's words by Arb, too.  `--record` writes what
docs/proven.md shows.  The status is 1 if anything was missed.

`python -m benchmarks.soundness.mutants` plants mistakes in the rules, which the tests must notice.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from benchmarks.soundness.counts import HEAD, Count
from benchmarks.soundness.engines import compared, texts_of
from benchmarks.soundness.passes import PASSES, passes_of
from benchmarks.soundness.rules import RULES, samples_of
from byhand.evaluate import Admitted
from byhand.models import open_model
from byhand.numbers.enclosed.limbs.operations import Limbs

RECORD = Path(__file__).parents[2] / "docs" / "proven-soundness.json"


def checkpoints(folders: list[str]) -> Iterator[tuple[Count, str]]:
    """Both engines on some texts of each checkpoint, and Arb on the first of them."""
    for folder in folders:
        model = open_model(folder)
        weights = Admitted(model.weights, Limbs(64))
        texts, precisions = texts_of(model)
        for bits in precisions:
            count = Count(f"{Path(folder).name}, both engines, {bits} bits")
            widths: dict[str, float] = {}
            for number, text in enumerate(texts):
                ids = model.vocabulary.encode(text)[:10]
                both = compared(model, weights, ids, bits, truth=number == 0)
                count.join(both.entries, text)
                for name, width in both.widths.items():
                    widths[name] = max(width, widths.get(name, width))
            said = ", ".join(f"{name} 2^{width:.0f}" for name, width in widths.items())
            yield count, f"largest radius of a logit: {said}"


def record(counts: list[Count], passes: dict[str, int]) -> None:
    """Writes the counts where docs/proven.md finds them, in place of those of the same name."""
    old = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {"passes": {}, "rows": []}
    rows = {row["what"]: row for row in old["rows"]} | {one.rule: one.row() for one in counts}
    order = {name: place for place, name in enumerate((*RULES, *PASSES))}
    made = sorted(rows.values(), key=lambda row: order.get(row["what"], len(order)))
    told = {"passes": old["passes"] | passes, "rows": made}
    RECORD.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main() -> int:
    """The table; 1 if anything was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--samples", type=int, default=10**6)
    parser.add_argument("--passes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="rules whose name holds this")
    parser.add_argument("--checkpoints", nargs="*", default=[], metavar="FOLDER")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    counts: list[Count] = []
    shown = {}
    print(HEAD, flush=True)

    def tell(count: Count, start: float, more: str = "") -> None:
        counts.append(count)
        print(count.told(), flush=True)
        for line in (*count.first, more, f"{perf_counter() - start:.0f} s"):
            if line:
                print(f"    {line}", file=sys.stderr, flush=True)

    for rule in (rule for rule in RULES if given.only in rule and given.samples):
        start = perf_counter()
        tell(samples_of(rule, given.samples, seed=given.seed), start)
    for name in (name for name in PASSES if given.only in name and given.passes):
        start = perf_counter()
        count, done = passes_of(name, given.passes, given.seed)
        shown[name] = done
        tell(count, start, f"{done} passes")
    start = perf_counter()
    for count, said in checkpoints(given.checkpoints):
        tell(count, start, said)
        start = perf_counter()
    missed = sum(count.missed for count in counts)
    print(f"{sum(count.samples for count in counts)} samples, {missed} missed")
    if given.record:
        record(counts, shown)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
