"""What experts cost: `python -m benchmarks.experts_cost [LENGTHS …]`.

A model with 64 experts, of which 8 answer at each position, in float32.  Beside the forward pass
stands the same pass with every expert worked out at every position, as a reader of all numbers
would have it.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from time import perf_counter

import numpy as np

from byhand.evaluate import trace
from byhand.model import Model
from byhand.numbers.floats import Floats
from byhand.parameters import parameters
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec, over_root
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights

NORM = NormSpec("rmsnorm", Fraction(1, 100_000), bias=False)
WIDTH, VOCAB, AGAIN = 512, 100, 3


def model() -> Model:
    """Two blocks with 64 experts each, 50 million numbers."""
    mlp = MlpSpec(256, "silu", gated=True, experts=64, chosen=8)
    block = BlockSpec(AttentionSpec(8, 64, 2, over_root(64)), mlp, NORM, NORM)
    spec = ModelSpec("64 experts", VOCAB, WIDTH, None, (block, block), final_norm=NORM)
    rng = np.random.default_rng(0)
    drawn = {
        p.name: Tensor(p.name, rng.standard_normal(p.shape, np.float32) / p.shape[-1] ** 0.5)
        for p in parameters(spec)
    }
    return Model(spec, Weights(drawn), Ids(VOCAB))


def main(lengths: list[int]) -> None:
    """Prints seconds and their ratio for texts of these lengths."""
    subject = model()
    for length in lengths:
        text = " ".join(str(7 * place % VOCAB) for place in range(length))
        chosen, every = [], []
        for _again in range(AGAIN):
            start = perf_counter()
            found = trace(subject, text, Floats("float32"))
            chosen.append(perf_counter() - start)
            for worked in found.steps.values():
                _read = worked.array
            every.append(perf_counter() - start)
        print(f"{length:4} positions: {min(chosen):.3f} s, with every expert {min(every):.3f} s, "
              f"{min(every) / min(chosen):.1f} times as long")  # fmt: skip


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1, 4, 16, 64])
