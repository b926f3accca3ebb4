"""Reads kernels as Triton would, one program after another, on this machine's memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np


class Pointer:
    """The memory of an array, and places in it."""

    def __init__(self, memory: np.ndarray, places: Any = 0) -> None:
        self.memory, self.places = memory, places

    def __add__(self, more: Any) -> Pointer:
        return Pointer(self.memory, self.places + more)


class Entries(np.ndarray):
    """An array that is turned into other kinds as Triton writes it."""

    def to(self, kind: Any, bitcast: bool = False) -> Entries:
        made = np.asarray(self).view(kind) if bitcast else self.astype(kind)
        return np.asarray(made).view(Entries)


def load(pointer: Pointer, inside: Any = True, other: float = 0.0) -> Any:
    places = np.where(inside, pointer.places, 0)
    return np.where(inside, pointer.memory[places], other).view(Entries)


def store(pointer: Pointer, value: Any, inside: Any) -> None:
    pointer.memory[pointer.places[inside]] = value[inside]


def language(program: int) -> SimpleNamespace:
    return SimpleNamespace(
        program_id=lambda axis: np.array(program).view(Entries),
        arange=lambda start, stop: np.arange(start, stop, dtype=np.int32).view(Entries),
        zeros=lambda shape, kind: np.zeros(shape, kind).view(Entries),
        load=load,
        store=store,
        minimum=np.minimum,
        maximum=np.maximum,
        where=lambda condition, yes, no: np.where(condition, yes, no).view(Entries),
        int32=np.int32,
        int64=np.int64,
        float64=np.float64,
    )
