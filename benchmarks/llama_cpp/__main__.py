"""llama.cpp's own numbers of every step, judged by `check`: a correct engine raises no alarm.

`python -m benchmarks.llama_cpp FOLDER… [--kinds F32 Q8_0 Q4_K] [--scratch FOLDER]` converts each
Llama folder, quantises it with llama.cpp, runs a text with its callback, and judges the dump: with
flash attention and without, with weights repacked for the processor and not.  It prints what share
of the allowed error is used and how many times the usual, and ends with an error after an alarm.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import byhand
from benchmarks.llama_cpp.convert import convert
from benchmarks.llama_cpp.engine import F16, F32, quantise, run
from byhand.models import open_model

TEXTS = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside",
    "import numpy as np\n\ndef mean(values):\n    return sum(values) / len(values)\n",
)
WAYS = (
    # flash, repacked, format of the cache
    (False, True, F16),
    (False, False, F16),
    (False, True, F32),
    (True, True, F16),
)


def judged(path: Path, text: str, flash: bool, repack: bool, cache: int) -> bool:
    """Whether no line of the dump is an error, or far beyond the usual."""
    model = open_model(path)
    tokens = model.vocabulary.encode(text)
    dump = run(path, tokens, steps=True, flash=flash, repack=repack, cache=cache)
    precision = "float32+ggml" + "+flash" * flash
    marking = byhand.check(model, dump.steps, text=text, suspects=False)
    assert marking.texts[0].precision == precision
    lines = marking.texts[0].lines
    wrong = [line for line in lines if line.verdict.value != "right"]
    odd = [line for line in lines if line.unusual]
    share = max(lines, key=lambda line: line.share or 0.0)
    times = max(lines, key=lambda line: line.times or 0.0)
    told = f"flash {flash:d}  repacked {repack:d}  cache {'F32' if cache == F32 else 'F16'}"
    print(
        f"{path.stem:22} {told}  {len(lines)} lines, {len(wrong)} not right, {len(odd)} unusual;"
        f" {share.share or 0:.0%} of allowed ({share.address}),"
        f" {times.times or 0:.1f} × usual ({times.address})"
    )
    for line in (*wrong, *odd)[:6]:
        print("   ", line, line.share, line.times)
    return not wrong and not odd


def main() -> None:
    """Judges every file in every way."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--kinds", nargs="+", default=["F32", "Q8_0", "Q4_K"])
    parser.add_argument("--scratch", type=Path)
    asked = parser.parse_args()
    fine = True
    with tempfile.TemporaryDirectory() as made:
        scratch = asked.scratch or Path(made)
        for folder in asked.folders:
            plain = scratch / f"{folder.name}-F32.gguf"
            convert(folder, plain)
            for kind in asked.kinds:
                path = plain if kind == "F32" else scratch / f"{folder.name}-{kind}.gguf"
                if kind != "F32":
                    quantise(plain, path, kind)
                for text in TEXTS:
                    for way in WAYS:
                        fine &= judged(path, text, *way)
    sys.exit(not fine)


if __name__ == "__main__":
    main()
