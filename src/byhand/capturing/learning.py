"""The way back of a captured run: inner gradients, gradients of parameters, an optimizer's step.

Hooks stand at the values that the forward pass gave.  A value that is worked out again during the
way back (checkpointing) is not recorded again; only its gradient is.  What the model, its gradients
and its optimizer were before is put back afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.capturing.modules import Modules
from byhand.checking.readers.arrays import as_array
from byhand.errors import InputError, UsageError
from byhand.language import _
from byhand.names import without_wrappers
from byhand.optimizer import BEFORE
from byhand.plan import GRAD

Array = npt.NDArray[Any]
Way = Callable[[Any], None]  # from a model's result back to its parameters
UNCOUNTED = -100  # in torch's labels: this token does not count
MOMENTS = ("exp_avg", "exp_avg_sq", "momentum_buffer")  # an optimizer's running means
UPDATED = "updated."  # before the name of a parameter: what it is after the step


class Kept:
    """Copies of tensors by name, and why some could not be kept."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.left_out: dict[str, str] = {}

    def put(self, name: str, value: Any) -> None:
        """Keeps a copy of a tensor, since the model may change it later."""
        try:
            self.arrays[name] = np.array(as_array(value, name))
        except InputError as error:
            self.left_out[name] = error.message


class Listener(Kept):
    """Hooks at tensors, and the gradients that came to them."""

    def __init__(self) -> None:
        super().__init__()
        self.returning = False  # whether the gradients are on their way
        self._handles: list[Any] = []
        self._heard: dict[str, Any] = {}  # the tensors of the forward pass

    def listen(self, name: str, tensor: Any) -> None:
        """Keeps the gradient of a tensor once it is there; none comes to what is frozen."""
        if not tensor.requires_grad:
            return
        if not self.returning and self._heard.setdefault(name, tensor) is not tensor:
            self.left_out[GRAD + name] = _("it was called more than once")
        self._handles.append(tensor.register_hook(partial(self.put, GRAD + name)))

    def leave_out_shared(self, rows: int) -> None:
        """Leaves out the gradients of what all rows of a batch share: those are sums over it."""
        for name, grad in self.arrays.items():
            if rows > 1 and grad.ndim and len(grad) == 1:
                self.left_out[name] = _("all rows of the batch share it")

    def found(self) -> dict[str, Array]:
        """The gradients of the values that were worked out once."""
        return {name: grad for name, grad in self.arrays.items() if name not in self.left_out}

    @contextmanager
    def on_the_way_back(self) -> Iterator[None]:
        """While the gradients return, what modules give has been there before."""
        self.returning = True
        try:
            yield
        finally:
            self.returning = False
            for handle in self._handles:
                handle.remove()
            self._handles.clear()
            self._heard.clear()


# ------------------------------------------------------------------ the loss


@dataclass(frozen=True)
class Goal:
    """What is learned: the labels or a loss, and in how many parts the batch runs."""

    labels: Any = None
    loss: Callable[[Any], Any] | None = None
    accumulate: int = 1
    aligned: bool = False  # each label stands where it is predicted, not one position later

    def targets(self, ids: Any, mask: Any) -> Any:
        """The label after each position, or UNCOUNTED: (batch, pos); None for a loss of its own."""
        import torch

        labels = self.labels
        if labels is None and self.loss is not None:
            return None
        if labels is None:
            labels = ids.clone()
            if hasattr(mask, "detach") and mask.ndim == 2:
                labels[mask.to(labels.device) == 0] = UNCOUNTED
        labels = torch.as_tensor(labels, device=ids.device).reshape(ids.shape)
        if self.aligned:
            return labels
        after = labels.roll(-1, dims=-1)
        after[..., -1] = UNCOUNTED
        return after

    def way(self, rows: slice, targets: Any) -> Way:
        """What takes the loss of some rows and sends its gradients back."""

        def back(result: Any) -> None:
            if self.loss is not None:
                _begin(self.loss(result) / self.accumulate)
            else:
                _begin(_sum_of_losses(result, targets[rows]) / (targets != UNCOUNTED).sum())

        return back

    def counted(self, targets: Any) -> npt.NDArray[np.int64]:
        """The targets as claims have them: -1 where a position does not count."""
        found = np.atleast_2d(as_array(targets, "targets")).astype(np.int64)
        return np.where(found == UNCOUNTED, -1, found)


def _sum_of_losses(result: Any, targets: Any) -> Any:
    """The sum of the losses that count, worked out in float32 as in training."""
    import torch

    logits = getattr(result, "logits", result)
    logits = logits[0] if isinstance(logits, tuple) else logits
    if not hasattr(logits, "detach") or logits.ndim < 2:
        raise UsageError(
            _("the model returns no logits to compute a loss from"),
            expected=_("logits, or a loss of your own"),
            found=type(result).__name__,
            hint=_("say what the loss is: loss=lambda result: …"),
        )
    return torch.nn.functional.cross_entropy(
        logits.float().flatten(0, -2),
        targets.flatten(),
        ignore_index=UNCOUNTED,
        reduction="sum",
    )


def _begin(loss: Any) -> None:
    if not getattr(loss, "requires_grad", False):
        raise UsageError(
            _("no gradient flows back from this loss"),
            expected=_("a model with parameters that learn"),
            hint=_("parameters with requires_grad=False are frozen"),
        )
    loss.backward()


# ------------------------------------------------------------------ parameters


@dataclass(frozen=True)
class Parameters:
    """The parameters of a model, each once, by their names without wrappers."""

    named: Mapping[str, Any]

    @classmethod
    def of(cls, model: Any, modules: Modules) -> Parameters:
        """The parameters; of those that are shared, the first name."""
        return cls({
            without_wrappers(name).removeprefix(modules.prefix): parameter
            for name, parameter in model.named_parameters()
        })  # fmt: skip

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Without gradients of earlier runs, which are put back afterwards."""
        before = {name: parameter.grad for name, parameter in self.named.items()}
        try:
            for parameter in self.named.values():
                parameter.grad = None
            yield
        finally:
            for name, parameter in self.named.items():
                parameter.grad = before[name]

    def gradients(self, kept: Kept) -> None:
        """Keeps the gradient of each parameter that has one."""
        for name, parameter in self.named.items():
            if parameter.grad is not None:
                kept.put(f"{name}.{GRAD[:-1]}", parameter.grad)

    # -------------------------------------------------------------- an optimizer's step

    def step(self, optimizer: Any, clip: float | None, kept: Kept) -> None:
        """Keeps one step of an optimizer: its running means before and after, the new weights."""
        import torch

        if clip is not None:
            norm = torch.nn.utils.clip_grad_norm_(self.named.values(), clip)
            kept.put("update.norm", norm.reshape(1))
        with self._as_it_was(optimizer):
            self._moments(optimizer, BEFORE, kept)
            optimizer.step()
            self._moments(optimizer, "", kept)
            for name, parameter in self.named.items():
                if parameter.grad is not None:
                    kept.put(UPDATED + name, parameter)

    def _moments(self, optimizer: Any, when: str, kept: Kept) -> None:
        for name, parameter in self.named.items():
            state = optimizer.state.get(parameter, {})
            for moment in MOMENTS:
                if hasattr(state.get(moment), "detach"):
                    kept.put(f"{when}{name}.{moment}", state[moment])

    @contextmanager
    def _as_it_was(self, optimizer: Any) -> Iterator[None]:
        """Puts parameters and the optimizer's state back afterwards."""
        import torch

        before = {name: parameter.detach().clone() for name, parameter in self.named.items()}
        state = deepcopy(optimizer.state_dict())
        try:
            yield
        finally:
            optimizer.load_state_dict(state)
            with torch.no_grad():
                for name, parameter in self.named.items():
                    parameter.copy_(before[name])


RULES = {"SGD": "sgd", "Adam": "adam", "AdamW": "adamw"}
UNKNOWN = ("nesterov", "dampening", "amsgrad", "maximize")  # settings that make another rule
SHARED = ("lr", "momentum", "betas", "eps")  # settings that all groups of weights must share


def rule_of(optimizer: Any, clip: float | None) -> str:
    """The settings of an optimizer's next step, as claims write them: adamw lr=0.001 step=1.

    A UsageError where no rule of byhand's is that of the optimizer: what is judged by another rule
    would be called wrong.
    """
    name, groups = type(optimizer).__name__, optimizer.param_groups
    others = [each for each in UNKNOWN if any(group.get(each) for group in groups)]
    if name not in RULES or others:
        raise UsageError(
            _("the rule of this optimizer is not known"),
            expected=", ".join(RULES),
            found=" ".join([name, *others]),
        )
    told = {each: _shared(each, groups) for each in SHARED if each in groups[0]}
    kind = RULES[name]
    if not told.get("momentum"):
        told.pop("momentum", None)
    elif kind == "sgd":
        kind = "momentum"
    if any(group.get("decoupled_weight_decay") for group in groups):
        kind = "adamw"
    if "betas" in told:
        told["betas"] = ",".join(map(str, told["betas"]))
    told["lr"] = float(told["lr"])
    told |= _decays(groups)
    taken = [int(state["step"]) for state in optimizer.state.values() if "step" in state]
    told["step"] = 1 + max(taken, default=0)
    if clip is not None:
        told["clip"] = clip
    return " ".join([kind, *(f"{each}={value}" for each, value in told.items())])


def _decays(groups: Any) -> dict[str, Any]:
    """The weight decay, and whether biases and gains have it too, as in torch unless told."""
    matrices, vectors = (
        [
            {**group, "weight_decay": float(group["weight_decay"])}
            for group in groups
            if any((parameter.dim() > 1) is several for parameter in group["params"])
        ]
        for several in (True, False)
    )
    decay = _shared("weight_decay", matrices or vectors)
    also = _shared("weight_decay", vectors) if vectors else 0.0
    if also:
        _shared("weight_decay", [*matrices, *vectors])
    return {"weight_decay": decay, **({"decays": "all"} if also else {})}


def _shared(name: str, groups: Any) -> Any:
    """The value of a setting, which must be the same in all these groups."""
    values = list(dict.fromkeys(group[name] for group in groups))
    if len(values) > 1:
        raise UsageError(
            _("the groups of this optimizer have different settings"),
            expected=_("one {name} for all of them").format(name=name),
            found=", ".join(map(str, values)),
        )
    return values[0]
