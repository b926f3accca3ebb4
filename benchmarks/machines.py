"""The machines of docs/examples: every property proven, every planted fault found.

    python -m benchmarks.machines [NAME …]     proves, refutes and prints two tables
    … --record                                 writes them to docs/prove-machines.json

A fault is one weight, changed a little, so that a few texts go wrong.  Its counterexample is
checked by a trace of that text alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

import numpy as np

import byhand
from byhand.expression import parse, rational
from byhand.model import Model
from byhand.proving.outcome import PROVEN, REFUTED, Counterexample, Outcome
from byhand.weights import Tensor, Weights

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "docs" / "examples"
RECORD = ROOT / "docs" / "prove-machines.json"
CORES = 2
RANDOM_TESTS = 10_000


@dataclass(frozen=True)
class Fault:
    """One weight with another value."""

    weight: str
    place: tuple[int, ...]
    value: str

    def planted(self, model: Model) -> Model:
        """The model with the fault; tensors that share the weight have it too."""
        tensors = dict(model.weights)
        whose = model.weights[self.weight].same_as or self.weight
        for name, tensor in model.weights.items():
            if whose in (name, tensor.same_as):
                data = np.array(tensor.data)
                exact = rational(parse(self.value))
                data[self.place] = (parse(self.value) if exact is None else exact)
                tensors[name] = Tensor(name, data, tensor.same_as)
        return replace(model, weights=Weights(tensors))


@dataclass(frozen=True)
class Machine:
    """A model, a property of it, and a fault that breaks it."""

    model: str  # built in, or a file of docs/examples
    fault: Fault
    property: str = ""  # named like the model unless given

    def opened(self) -> Model:
        file = EXAMPLES / f"{self.model}.yaml"
        return byhand.open_model(file if file.exists() else self.model)

    @property
    def name(self) -> str:
        return self.property or self.model

    @property
    def claimed(self) -> Path:
        return EXAMPLES / f"{self.name}.property.yaml"


MACHINES = (
    Machine("adder", Fault("embed.token", (7, 0), "7.000000001")),
    Machine("thermometer", Fault("head_bias", (14,), "-401/4")),
    Machine("clock", Fault("embed.token", (0, 1), "1/4")),
    Machine("majority", Fault("embed.token", (0, 0), "51/50")),
    Machine("sorter", Fault("block.0.attn.out", (0, 3), "-22/5")),
    Machine("induction", Fault("block.1.attn.q", (0, 0), "8.36*ln(3)")),
    Machine("brackets", Fault("block.1.attn.out", (0, 2), "7.9")),
    Machine("parity", Fault("block.0.mlp.hidden_bias", (6,), "-7.6")),
    Machine("abc", Fault("embed.token", (1, 0), "0.4807")),
    Machine("minigpt", Fault("embed.token", (56, 9), "0.4")),
)
