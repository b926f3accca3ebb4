"""`TorchModel`: a plan as a torch module, its parameters under byhand's names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from byhand import forward
from byhand.errors import ShapeError
from byhand.evaluate import Admitted, work_out
from byhand.language import _
from byhand.numbers.devices import to_numpy
from byhand.numbers.tensors import Masked
from byhand.parameters import Parameter, parameters
from byhand.plan import Plan
from byhand.spec import ModelSpec, refuse_forward_only
from byhand.train.fusion import fused
from byhand.train.learning import Learning
from byhand.weights import Tensor as Weight
from byhand.weights import Weights
from byhand.worked import Worked


class TorchModel(nn.Module):
    """The model of a spec; calling it works `forward.plan` out for a batch of ids.

    The keys of its state dict are the names of the weights: `block.0.attn.q`.  A masked entry of
    a table of scores is -∞ there.
    """

    def __init__(
        self,
        spec: ModelSpec,
        weights: Weights | None = None,
        *,
        format: str = "float32",
        device: str = "cpu",
    ) -> None:
        super().__init__()
        refuse_forward_only(spec, _("training"))
        self.spec = spec
        self.numbers = Learning(format, device)
        self._plans: dict[int, Plan] = {}
        for parameter in parameters(spec):
            self._register(parameter)
        if weights is not None:
            self.load_weights(weights)

    # ------------------------------------------------------------------- parameters

    def _register(self, parameter: Parameter) -> None:
        """Registers a parameter under its dotted name; each part but the last is a module."""
        *path, name = parameter.name.split(".")
        home: nn.Module = self
        for part in path:
            if part not in home._modules:
                home.add_module(part, nn.Module())
            home = home.get_submodule(part)
        empty = torch.empty(parameter.shape, dtype=self.numbers.kind, device=self.numbers.device)
        if parameter.kind == "buffer":
            home.register_buffer(name, empty)
        else:
            home.register_parameter(name, nn.Parameter(empty))

    def tensors(self) -> dict[str, Tensor]:
        """Every parameter and buffer by the name of its weight."""
        return {**dict(self.named_parameters()), **dict(self.named_buffers())}

    def kinds(self) -> Iterator[tuple[Parameter, Tensor]]:
        """Each tensor with its Parameter in the spec."""
        found = self.tensors()
        return ((parameter, found[parameter.name]) for parameter in parameters(self.spec))

    @torch.no_grad()
    def load_weights(self, weights: Weights) -> None:
        """Loads byhand's weights, each rounded once where the format is narrower."""
        for parameter, tensor in self.kinds():
            data = weights[parameter.name].data
            if data.shape != parameter.shape:
                raise ShapeError(
                    _("the given value has another shape than its step"),
                    where=parameter.name,
                    expected=" × ".join(map(str, parameter.shape)),
                    found=" × ".join(map(str, data.shape)),
                )
            value = self.numbers.admit(data)
            tensor.copy_(value.data if isinstance(value, Masked) else value)

    def weights(self) -> Weights:
        """The parameters and buffers as byhand's Weights, unchanged, in NumPy."""
        return Weights(
            {
                parameter.name: Weight(parameter.name, np.array(to_numpy(tensor)))
                for parameter, tensor in self.kinds()
            }
        )

    # ------------------------------------------------------------------- the pass

    def plan(self, length: int) -> Plan:
        """The fused plan for texts of this length, up to the logits."""
        if length not in self._plans:
            whole = forward.plan(self.spec, length)
            self._plans[length] = fused(whole.only(["logits"]))
        return self._plans[length]

    def forward(self, ids: Tensor) -> Tensor:
        """The logits (batch, pos, vocab) of ids (batch, pos)."""
        plan = self.plan(ids.shape[1])
        tokens = Worked(plan["tokens"], ids, self.numbers)
        steps = work_out(
            plan,
            _Parameters(self.tensors(), self.numbers),
            (),
            self.numbers,
            given={"tokens": tokens},
            keep=("logits",),
        )
        logits: Tensor = steps["logits"].value
        return logits


class _Parameters(Admitted):
    """The module's own tensors as the admitted weights of an evaluation."""

    def __init__(self, tensors: dict[str, Tensor], numbers: Learning) -> None:
        super().__init__(Weights({}), numbers)
        self.values: dict[str, Any] = tensors

    def unknown(self, name: str) -> bool:
        return False
