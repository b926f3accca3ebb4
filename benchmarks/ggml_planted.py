"""Every mistake of unpacking, planted in a small model of every block format of GGUF: is it named?

`python -m benchmarks.ggml_planted [--seed N]` unpacks one matrix wrongly in each way that its
format allows, takes the products of a row of bytes with it as llama.cpp's kernels do, and asks
`check` for the cause.  It ends with an error where a mistake is not named, or another is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import byhand
from byhand.checking.differences.matrix_packing import slips_in_words
from byhand.files.ggml_slips import LAYOUTS
from byhand.weights import Tensor, Weights
from oracles.gguf_files import BLOCKS
from oracles.gguf_models import llama

NAME, READ = "block.0.mlp.out", "block.0.mlp.gated"
CLAIMED = ("block.0.attn.add", READ, NAME)


def in_bytes(rows: np.ndarray, size: int) -> np.ndarray:
    """Rows rounded to signed bytes in blocks."""
    blocks = rows.astype(np.float32).reshape(len(rows), -1, size)
    scales = np.abs(blocks).max(axis=-1, keepdims=True) / np.float32(127)
    codes = np.rint(blocks / np.where(scales > 0, scales, 1))
    return (codes * scales.astype(np.float16)).reshape(rows.shape).astype(np.float64)


def named(kind: str, slip: str, seed: int, folder: Path) -> str | None:
    """The cause that `check` gives for one planted mistake; None: none."""
    path = folder / "m.gguf"
    path.write_bytes(llama(kind, d=32 if BLOCKS[kind][0] == 32 else 16, vocab=16, seed=seed))
    model = byhand.open_model(path)
    tokens = np.random.default_rng(seed).permutation(16)[:12]
    text = " ".join(map(str, tokens))
    misread = model.weights[NAME].misread
    assert misread is not None
    wrong = np.asarray(dict(misread())[slip], np.float64)
    weights = Weights(dict(model.weights) | {NAME: Tensor(NAME, wrong)})
    trace = byhand.trace(replace(model, weights=weights), text, numbers="float32")
    claims = {address: np.asarray(trace[address].array) for address in CLAIMED}
    claims[NAME] = (in_bytes(claims[READ], BLOCKS[kind][0]) @ wrong.T).astype(np.float32)
    marking = byhand.check(model, claims, text=text, precision="float32+ggml")
    causes = marking.texts[0].causes
    return causes[0].sentence if causes and causes[0].kind == "weight-packing" else None


def main() -> None:
    """Plants them all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    words, missed, count = slips_in_words(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in LAYOUTS:
            path = Path(folder) / "m.gguf"
            path.write_bytes(llama(kind))
            misread = byhand.open_model(path).weights[NAME].misread
            assert misread is not None
            for slip, _numbers in misread():
                found = named(kind, slip, asked.seed, Path(folder))
                count += 1
                if found is None or words[slip] not in found:
                    missed += 1
                    print(f"{kind:7} {slip:10} {found}")
    print(f"{count - missed} of {count} planted mistakes are named")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
