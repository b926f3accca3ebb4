"""`transformers` as people train it: the gradients of its parameters and inner values, recorded.

attention   eager, sdpa             way   at once, layers checkpointed, several micro-batches
format      float32, float64, bfloat16, float16, autocast to bfloat16 and to float16
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks.alarms.models import FAMILIES, VOCAB, WEIGHTS, Pair, recompute_layers, saved
from benchmarks.alarms.report import LEARNED
from benchmarks.alarms.runs import Run
from benchmarks.planted.port import as_array
from byhand import forward, names
from byhand.optimizer import UPDATE

FORMATS = (
    "float32", "bfloat16", "float64", "float16", "autocast:bfloat16", "autocast:float16",
)  # fmt: skip
AT_ONCE, CHECKPOINTED, ACCUMULATED = "at once", "checkpointed", "accumulated"
SHARED = ".wpe"  # one row for the whole batch, and so is its gradient
OPTIMIZERS = {
    "": "",
    "adamw lr=0.001 betas=0.9,0.999 weight_decay=0.1 clip=1 step=1": "single",
    "adam lr=0.01 weight_decay=0.01 step=1": "foreach",
    "momentum lr=0.1 momentum=0.9 step=1": "foreach",
    "sgd lr=0.5 clip=0.5 step=1": "single",
    "adamw lr=0.003 betas=0.9,0.95 step=1": "fused",
}


@dataclass(frozen=True)
class Way:
    """One way to train a model."""

    format: str
    attention: str
    way: str
    batch: int
    optimizer: str = ""  # as claims name it

    @property
    def precision(self) -> str:
        """The class of implementations of the library."""
        return f"transformers:{self.format}"

    def __str__(self) -> str:
        kind = self.optimizer.partition(" ")[0]
        parts = (self.format, self.attention, self.way, f"batch {self.batch}", kind)
        return ", ".join(filter(None, parts))


def ways() -> Iterator[Way]:
    """Each format with each attention, at once, checkpointed and accumulated."""
    rules = list(OPTIMIZERS)
    for number, format in enumerate(FORMATS):
        for attention in ("eager", "sdpa"):
            yield Way(format, attention, AT_ONCE, 1, rules[number % len(rules)])
            yield Way(format, attention, AT_ONCE, 3)
            yield Way(format, attention, CHECKPOINTED, 1)
            yield Way(format, attention, ACCUMULATED, 2, rules[(number + 1) % len(rules)])


def learned_runs(seed: int = 0, families: tuple[str, ...] = FAMILIES) -> Iterator[Run]:
    """Runs of every way; the weights and the families change from way to way."""
    for family in families:
        for kind, weights in enumerate(WEIGHTS):
            with saved(family, weights, seed + kind) as pair:
                for number, way in enumerate(ways()):
                    if number % len(WEIGHTS) == kind:
                        yield Run(
                            f"{family}, {weights}, {way}", LEARNED, family, way.format,
                            way.precision, pair.ours, claims(pair, way, seed + number),
                        )  # fmt: skip


def claims(pair: Pair, way: Way, seed: int, length: int = 11) -> dict[str, Any]:
    """The values, gradients and updates of one training step, under the library's names."""
    cast = way.format.partition(":")[2]
    model = pair.theirs(getattr(torch, "float32" if cast else way.format), way.attention)
    if way.way == CHECKPOINTED:
        model.train()  # no layer is checkpointed otherwise; there is no dropout in `config`
        _without_dropout(model)
        recompute_layers(model)
    noise = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, VOCAB, (way.batch, length), generator=noise)
    recorder = Recorder(model, pair)
    optimizer = _optimizer(model, way)
    pieces = ids.split(1) if way.way == ACCUMULATED else (ids,)
    losses = []
    for piece in pieces:
        with torch.autocast("cpu", getattr(torch, cast or "bfloat16"), enabled=bool(cast)):
            loss = model(piece, labels=piece, use_cache=False).loss
        (loss / len(pieces)).backward()
        losses.append(loss.detach())
    found = recorder.found(way)
    if len(pieces) == 1:
        found["mean_loss"] = as_array(losses[0])
    found |= {"input_ids": ids.numpy(), "labels": ids.numpy()}
    known = _parameters(model)
    found |= {f"{name}.grad": as_array(weight.grad.clone()) for name, weight in known.items()}
    if optimizer is not None:
        found |= _updated(model, optimizer, way, known)
    return found


def _parameters(model: Any) -> dict[str, Any]:
    return {name: weight for name, weight in model.named_parameters() if weight.grad is not None}


def _without_dropout(model: Any) -> None:
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0


class Recorder:
    """Keeps the outputs of known modules and their gradients."""

    def __init__(self, model: Any, pair: Pair) -> None:
        spec = pair.ours.spec
        known = names.steps(spec, forward.plan(spec, 1).known)
        self.values: dict[str, list[Tensor]] = {}
        self.grads: dict[str, list[Tensor]] = {}
        for name, module in model.named_modules():
            if name in known and not name.endswith(SHARED):
                module.register_forward_hook(self._keeping(name, known[name]))

    def _keeping(self, name: str, address: str) -> Any:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            first = output[0] if isinstance(output, tuple) else output
            self._keep(name, first)
            shares = output[1] if isinstance(output, tuple) and len(output) > 1 else None
            if isinstance(shares, Tensor) and address.endswith(".attn.out"):
                self._keep(address.replace(".out", ".weights"), shares)

        return hook

    def _keep(self, name: str, value: Tensor) -> None:
        self.values.setdefault(name, []).append(value.detach().clone())
        if value.requires_grad:
            kept = self.grads.setdefault(name, [])
            value.register_hook(lambda grad: kept.append(grad.detach().clone()))

    def found(self, way: Way) -> dict[str, Any]:
        """The values and gradients, those of micro-batches one below the other."""
        count = way.batch if way.way == ACCUMULATED else 1
        found = {name: torch.cat(values[:count]) for name, values in self.values.items()}
        for name, grads in self.grads.items():
            if len(grads) == count:
                found[f"grad.{name}"] = torch.cat(grads)
        return {name: as_array(value) for name, value in found.items()}


# ------------------------------------------------------------------ the optimizer's step


def _optimizer(model: Any, way: Way) -> torch.optim.Optimizer | None:
    if not way.optimizer:
        return None
    kind, *settings = way.optimizer.split()
    said = dict(setting.split("=") for setting in settings)
    rate, decay = float(said["lr"]), float(said.get("weight_decay", 0))
    weights = list(model.parameters())
    groups = [
        {"params": [w for w in weights if w.ndim > 1], "weight_decay": decay},
        {"params": [w for w in weights if w.ndim < 2], "weight_decay": 0.0},
    ]
    made = OPTIMIZERS[way.optimizer]
    how: dict[str, Any] = {"foreach": made == "foreach"}
    if made == "fused":
        how = {"fused": True}
    if kind in ("sgd", "momentum"):
        return torch.optim.SGD(groups, rate, momentum=float(said.get("momentum", 0)), **how)
    betas = tuple(map(float, said.get("betas", "0.9,0.999").split(",")))
    make: Any = torch.optim.AdamW if kind == "adamw" else torch.optim.Adam
    made_so: torch.optim.Optimizer = make(groups, rate, betas=betas, **how)
    return made_so


def _updated(
    model: Any, optimizer: torch.optim.Optimizer, way: Way, known: dict[str, Any]
) -> dict[str, Any]:
    """What the optimizer makes of the gradients, under torch's names."""
    found: dict[str, Any] = {"optimizer": way.optimizer}
    limit = next((each[5:] for each in way.optimizer.split() if each.startswith("clip=")), None)
    if limit is not None:
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), float(limit))
        found[f"{UPDATE}norm"] = as_array(norm)
        for name, weight in known.items():
            found[f"clipped.{name}.grad"] = as_array(weight.grad.clone())
    optimizer.step()
    for name, weight in known.items():
        found[f"updated.{name}"] = as_array(weight.detach())
        for kind in ("exp_avg", "exp_avg_sq", "momentum_buffer"):
            state = optimizer.state[weight].get(kind)
            if state is not None:
                found[f"{name}.{kind}"] = as_array(state)
    return found
