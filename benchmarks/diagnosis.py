"""The cost of a diagnosis: one wrong line in a dump of a GPT-2-small-sized model, on one core.

Random weights, a text of 64 tokens, float32.  Each case has one mistake, in one line; every other
line follows.  What is timed is the diagnosis alone: the check with suspects less the check without.

    python -m benchmarks.diagnosis [CASE …]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
LENGTH, BAR = 64, 10.0
Values = dict[str, Any]


def gelu_by_erf(values: Values, model: Any) -> tuple[str, Any]:
    """The activation of block 1 with erf, where the model says tanh."""
    import torch

    x = torch.from_numpy(values["block.1.mlp.hidden"])
    return "block.1.mlp.act", torch.nn.functional.gelu(x).numpy()


def scale_missing(values: Values, model: Any) -> tuple[str, Any]:
    """The scores of block 1 without their scale."""
    return "block.1.attn.scores", values["block.1.attn.scores"] * np.float32(8.0)


def one_weight(values: Values, model: Any) -> tuple[str, Any]:
    """The second matrix of the MLP of block 1 with one entry's sign changed."""
    found = values["block.1.mlp.out"].copy()
    weight = float(model.weights["block.1.mlp.out"].data[100, 20])
    found[:, 20] -= 2 * weight * values["block.1.mlp.act"][:, 100]
    return "block.1.mlp.out", found


def logits_of_noise(values: Values, model: Any) -> tuple[str, Any]:
    """Logits that nothing explains: the most expensive line."""
    rng = np.random.default_rng(5)
    found = values["logits"]
    return "logits", found + 0.01 * rng.standard_normal(found.shape).astype(found.dtype)


def logits_transposed(values: Values, model: Any) -> tuple[str, Any]:
    """Logits that are one position late."""
    return "logits", np.roll(values["logits"], 1, axis=0)


def norm_without_mean(values: Values, model: Any) -> tuple[str, Any]:
    """The final norm with RMSNorm's divisor."""
    x = values["block.11.mlp.add"].astype(np.float64)
    gain, bias = (
        np.asarray(model.weights[f"final.norm.{name}"].data, dtype=np.float64)
        for name in ("gain", "bias")
    )
    normed = x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + 1e-5)
    return "final.norm.out", (normed * gain + bias).astype(np.float32)


CASES: dict[str, Callable[[Values, Any], tuple[str, Any]]] = {
    "mlp.act": gelu_by_erf,
    "attn.scores": scale_missing,
    "mlp.out": one_weight,
    "norm": norm_without_mean,
    "logits": logits_transposed,
    "logits, noise": logits_of_noise,
}


def main(arguments: list[str]) -> None:
    import byhand
    from benchmarks.checking import dump
    from benchmarks.large import gpt2, random_model, some_ids

    model = random_model(gpt2())
    text = " ".join(map(str, some_ids(model.spec, LENGTH)))
    right = dump(model, text)
    for name in arguments or CASES:
        address, wrong = CASES[name](right, model)
        claims = {**right, address: wrong}
        if name == "norm":
            for inner in [each for each in claims if each.startswith("final.norm.")]:
                if inner != address:
                    del claims[inner]
        seconds = {}
        for suspects in (False, True):
            start = perf_counter()
            marking = byhand.check(model, claims, text=text, precision="float32", suspects=suspects)
            seconds[suspects] = perf_counter() - start
        first = marking.first_error
        assert first is not None
        assert first.address == address, first.address
        causes = "; ".join(cause.sentence for cause in first.suspects) or "no cause"
        print(f"{name}: {seconds[True] - seconds[False]:.1f} s (bar {BAR:.0f}): {causes}")


if __name__ == "__main__":
    if any(os.environ.get(name) != "1" for name in THREADS):  # BLAS reads them when it is loaded
        environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
        command = [sys.executable, "-m", "benchmarks.diagnosis", *sys.argv[1:]]
        os.execve(sys.executable, command, environment)
    main(sys.argv[1:])
