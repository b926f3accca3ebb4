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
    found = pointer.memory[places]
    return np.where(inside, found, found.dtype.type(other)).view(Entries)


def store(pointer: Pointer, value: Any, inside: Any = None) -> None:
    if inside is None:
        pointer.memory[pointer.places] = value
    else:
        pointer.memory[pointer.places[inside]] = np.broadcast_to(value, inside.shape)[inside]


def language(program: int) -> SimpleNamespace:
    return SimpleNamespace(
        program_id=lambda axis: np.array(program).view(Entries),
        arange=lambda start, stop: np.arange(start, stop, dtype=np.int32).view(Entries),
        zeros=lambda shape, kind: np.zeros(shape, kind).view(Entries),
        load=load,
        store=store,
        sum=np.sum,
        max=np.max,
        min=np.min,
        minimum=np.minimum,
        maximum=np.maximum,
        where=lambda condition, yes, no: np.where(condition, yes, no).view(Entries),
        int32=np.int32,
        int64=np.int64,
        float64=np.float64,
    )
