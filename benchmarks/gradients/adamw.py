"""One step of AdamW in NumPy, with clipping by the norm of all gradients, and bugs on request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.gradients.passes import Data
from benchmarks.gradients.port import Port

NEARLY = 1e-6


@dataclass(frozen=True)
class Settings:
    """The settings of a step; the learning rate of step t of a warm-up is t · `rate`."""

    rate: float = 0.01
    clip: float = 0.1
    decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.99)
    eps: float = 1e-4
    step: int = 3

    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        return self.rate * step


class Learner(Port):
    """A port that takes a step: gradients, clipping, moments, new weights."""

    def learn(self, settings: Settings, old: dict[str, Data], before: dict[str, Data]) -> None:
        """Runs both passes and the step.  `old` are the gradients of the step before, `before` the
        moments after it, by their addresses."""
        self.settings, self.old = settings, old
        for address, value in before.items():
            self.keep(address, value)
        self.run()
        grads = {name: self[f"grad.weight.{name}"] for name in self.w}
        for name, grad in self._clipped(grads).items():
            self._step(name, grad, grads[name])

    def _clipped(self, grads: dict[str, Data]) -> dict[str, Data]:
        limit = self.wide(self.settings.clip)
        squares = [self.rounded(np.square(grad).sum()) for grad in grads.values()]
        norm = self.keep("update.norm", np.sqrt([self.wide(sum(squares))]))
        factor = self.keep(
            "update.clip", np.minimum(self.wide(1), limit / (norm + self.wide(NEARLY)))
        )
        result = {name: grad * factor for name, grad in grads.items()}
        if self.has("clipped by value"):
            result = {name: np.clip(grad, -limit, limit) for name, grad in grads.items()}
        if self.has("clipped tensor by tensor"):
            result = {
                name: grad * np.minimum(1, limit / (np.sqrt(np.square(grad).sum()) + NEARLY))
                for name, grad in grads.items()
            }
        return {name: self.keep(f"update.clipped.{name}", grad) for name, grad in result.items()}

    def _step(self, name: str, grad: Data, unclipped: Data) -> None:
        s, w = self.settings, self.w[name]
        b1, b2 = s.betas[::-1] if self.has("betas swapped") else s.betas
        decay = s.decay if w.ndim > 1 or self.has("decay on norms and biases") else 0.0
        if self.has("clipped after the step"):
            grad = unclipped
        if self.has("decay in the gradient"):
            grad, decay = grad + self.wide(decay) * w, 0.0
        kind = self.wide
        rest = kind(1) if self.has("moment without its factor") else kind(1 - b1)
        m = self.keep(f"update.m.{name}", kind(b1) * self[f"before.m.{name}"] + rest * grad)
        square = grad if self.has("second moment not squared") else grad * grad
        v = self.keep(
            f"update.v.{name}", kind(b2) * self[f"before.v.{name}"] + kind(1 - b2) * square
        )
        count = s.step - 1 if self.has("step counted from 0") else s.step
        whole_m, whole_v = kind(1 - b1**count), kind(1 - b2**count)
        if self.has("bias correction missing"):
            whole_m = whole_v = kind(1)
        if self.has("correction of v missing"):
            whole_v = kind(1)
        m, v, eps = m / whole_m, v / whole_v, kind(s.eps)
        root = np.sqrt(v + eps) if self.has("eps inside the root") else np.sqrt(v) + eps
        if self.has("root left out"):
            root = v + eps
        shift = {"rate of the step before": -1, "rate of the step after": 1}.get(self.bug, 0)
        rate = s.rate_at(s.step + shift)
        lost = decay if self.has("decay without the rate") else rate * decay
        kept = w if self.has("decay missing") else kind(1 - lost) * w
        sign = -1 if self.has("step uphill") else 1
        self.keep(f"update.weight.{name}", kept - kind(sign * rate) * (m / root))
