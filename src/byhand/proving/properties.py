"""Properties: a model, a domain of texts, and what must hold for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from byhand.model import Model
from byhand.proving.claims import Claim
from byhand.proving.domain import Shape


@dataclass(frozen=True, slots=True)
class Goal:
    """One claim about the texts of one shape.  A continuation of n tokens makes n goals."""

    shape: Shape
    claim: Claim


@dataclass(frozen=True)
class Property:
    """What is to be proven: goals about a model, whose weights may be known within ranges."""

    model: Model  # with weights that are Printed or Within, where the property says so
    goals: tuple[Goal, ...]
    own: Model  # the model with its own numbers
    moved: Fraction = Fraction(0)  # how far each entry of an embedding may be moved
    source: Mapping[str, Any] = field(default_factory=dict)  # as it was written: a plain tree
