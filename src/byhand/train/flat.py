"""The parameters of a module as one row of numbers, for clipping and AdamW in few operations.

    values    what the module's parameters are views of: matrices first, then biases and gains
    grads     their gradients, and behind them a few places for what processes tell each other
    first     AdamW's running mean of the gradients
    second    and of their squares

Weight decay is decoupled from the gradient.  Only tensors of two or more axes decay, as in nanoGPT:
matrices and embeddings, but no biases and gains.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from byhand.train.run import Optimizer

NEARLY = 1e-6  # added to the norm before it divides, as torch's clip_grad_norm_ does


class Flat:
    """A module's parameters, gradients and moments, each as one tensor."""

    def __init__(self, module: nn.Module, told: int = 0) -> None:
        """Keeps `told` places behind the gradients for numbers that processes exchange."""
        named = dict(module.named_parameters())
        names = sorted(named, key=lambda name: named[name].dim() < 2)  # stable: matrices first
        self.parameters = [named[name] for name in names]
        self.decayed = sum(p.numel() for p in self.parameters if p.dim() >= 2)
        self.size = sum(p.numel() for p in self.parameters)
        like = self.parameters[0]
        self.values = torch.cat([p.detach().reshape(-1) for p in self.parameters])
        self.first = torch.zeros_like(self.values)
        self.second = torch.zeros_like(self.values)
        self.shared = torch.zeros(self.size + told, dtype=like.dtype, device=like.device)
        self.grads, self.told = self.shared[: self.size], self.shared[self.size :]
        self._room = torch.empty_like(self.values)
        self._views = self.views(self.grads)
        self.names = names
        for parameter, view in zip(self.parameters, self.views(self.values), strict=True):
            parameter.data = view

    def views(self, row: Tensor) -> list[Tensor]:
        """The parts of a row in the shapes of the parameters."""
        views, begin = [], 0
        for parameter in self.parameters:
            end = begin + parameter.numel()
            views.append(row[begin:end].view(parameter.shape))
            begin = end
        return views

    def by_name(self, row: Tensor) -> dict[str, Tensor]:
        """The parts of a row by the names of the parameters."""
        return dict(zip(self.names, self.views(row), strict=True))

    def take_gradients(self, loss: Tensor, *, add: bool = False) -> None:
        """Stores the gradients of a loss; with `add`, adds them to those that are there."""
        found: Iterable[Tensor] = torch.autograd.grad(loss, self.parameters, materialize_grads=True)
        with torch.no_grad():
            if add:
                torch._foreach_add_(self._views, list(found))
            else:
                torch._foreach_copy_(self._views, list(found))

    @torch.no_grad()
    def clip(self, most: float | None) -> Tensor:
        """The norm of all gradients together, which are then scaled down to norm `most` at most."""
        norm: Tensor = torch.linalg.vector_norm(self.grads)
        if most is not None:
            self.grads.mul_((most / (norm + NEARLY)).clamp_(max=1.0))
        return norm

    @torch.no_grad()
    def update(self, settings: Optimizer, rate: float, step: int) -> None:
        """One step of AdamW, the `step`th (from 1), at this learning rate."""
        beta1, beta2 = settings.betas
        self.first.lerp_(self.grads, 1 - beta1)
        self.second.mul_(beta2).addcmul_(self.grads, self.grads, value=1 - beta2)
        if settings.weight_decay:
            self.values[: self.decayed].mul_(1 - rate * settings.weight_decay)
        # m/(1-β₁ᵗ) over √(v/(1-β₂ᵗ)) + ε, with the roots of the corrections taken out
        root = math.sqrt(1 - beta2**step)
        torch.sqrt(self.second, out=self._room).add_(settings.eps * root)
        self.values.addcdiv_(self.first, self._room, value=-rate * root / (1 - beta1**step))
