"""A backward pass of GPT-2 small's size beside torch's autograd: time, memory, and agreement.

Ours works every step and every gradient out in float32 and keeps all of them; torch's keeps what it
needs and gives the gradients of all parameters.  Both have one thread and are timed in turn in one
process.  Memory is measured in separate processes: a pass that keeps everything, one that keeps the
gradients of the weights alone (values go after their last reader), and torch's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.checkpoints import ONE_THREAD, THREADS, peak

LENGTH, ROUNDS = 128, 11
NEAR = 1e-4  # how far a gradient may be from torch's, next to its largest entry

Gradients = dict[str, Any]


class Ours:
    """The steps of the adjoint plan, in NumPy."""

    def __init__(self) -> None:
        from benchmarks.large import gpt2, random_model, some_ids
        from byhand.evaluate import Admitted
        from byhand.numbers.floats import Floats

        self.model = random_model(gpt2())
        self.ids = some_ids(self.model.spec, LENGTH + 1)
        self.numbers = Floats("float32")
        self.weights = Admitted(self.model.weights, self.numbers)

    def work(self, keep_all: bool = True) -> Gradients:
        """Every step by its address, or the gradients of the weights alone."""
        from byhand import forward
        from byhand.backward import adjoint
        from byhand.evaluate import work_out
        from byhand.parameters import learned

        spec = self.model.spec
        plan = adjoint(forward.plan(spec, LENGTH, losses=True))
        asked = [plan[f"grad.weight.{p.name}"].address for p in learned(spec)]
        steps = work_out(
            plan if keep_all else plan.only(asked),
            self.weights,
            self.ids[:-1],
            self.numbers,
            targets=self.ids[1:],
            keep=None if keep_all else asked,
        )
        self.steps = len(steps)
        return {p.name: steps[at].value for p, at in zip(learned(spec), asked, strict=True)}


class Theirs:
    """A plain pass in torch, and autograd."""

    def __init__(self) -> None:
        import torch

        from benchmarks.large import Plain, gpt2, random_model, some_ids

        torch.set_num_threads(1)
        model = random_model(gpt2())
        self.ids = some_ids(model.spec, LENGTH + 1)
        self.plain = Plain(model)
        for weight in self.plain.w.values():
            weight.requires_grad_()

    def work(self) -> Gradients:
        import torch

        logits = self.plain.forward(self.ids[:-1])
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(self.ids[1:]))
        found = torch.autograd.grad(loss, list(self.plain.w.values()))
        return dict(zip(self.plain.w, found, strict=True))


def furthest(ours: Gradients, theirs: Gradients) -> float:
    """The largest difference of two gradients, next to the largest entry of its tensor."""
    import numpy as np

    assert ours.keys() == theirs.keys()
    return max(
        float(np.abs(mine - theirs[name].numpy()).max() / np.abs(mine).max())
        for name, mine in ours.items()
    )


def in_turn(rounds: int = ROUNDS) -> list[tuple[float, float]]:
    """Seconds of both, round by round; first they are compared."""
    ours, theirs = Ours(), Theirs()
    distance = furthest(ours.work(), theirs.work())
    assert distance < NEAR, f"the gradients differ by {distance}"
    print(f"  {ours.steps} steps kept; gradients differ by {distance:.0e} of their largest entry")
    return [(_seconds(ours.work), _seconds(theirs.work)) for _round in range(rounds)]


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def memory() -> dict[str, int]:
    """The peak resident bytes of a process that holds the weights and makes one pass."""
    begin = "from benchmarks.learning import Ours, Theirs\n"
    return {
        "every step kept": peak(f"{begin}Ours().work()"),
        "weight gradients kept": peak(f"{begin}Ours().work(keep_all=False)"),
        "torch": peak(f"{begin}Theirs().work()"),
    }


def main() -> None:
    print(f"GPT-2 small, {LENGTH} tokens, float32, one thread: forward and backward")
    pairs = in_turn()
    ours, theirs = zip(*pairs, strict=True)
    ratio = median(a / b for a, b in pairs)
    print(
        f"  byhand {median(ours):.2f} s, torch autograd {median(theirs):.2f} s, ratio {ratio:.2f} "
        f"(of the fastest rounds {min(ours) / min(theirs):.2f})"
    )
    print("  peak memory: " + ", ".join(f"{n} {b / 1e6:,.0f} MB" for n, b in memory().items()))


if __name__ == "__main__":
    if any(os.environ.get(name) != "1" for name in THREADS):  # BLAS reads them when it is loaded
        os.execve(
            sys.executable,
            [sys.executable, "-m", "benchmarks.learning"],
            {**os.environ, **ONE_THREAD},
        )
    main()
