"""Candidates: the mistakes of the catalogue in every block of a gap at once, and in each alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from byhand.checking.claims import Floats
from byhand.checking.gaps.values import STUMBLES
from byhand.checking.suspects.casts import cast_suspects
from byhand.checking.suspects.catalogue import FORTH, placed
from byhand.checking.suspects.norms import norm_suspects
from byhand.checking.suspects.scenes import Edit, Scene

APART = 2  # how much less likely a mistake in one block is than the same in all of them


def listed(scene: Scene) -> Iterator[Edit]:
    """The mistakes that people make, wherever the gap has a place for them."""
    for source in (*FORTH, cast_suspects):
        for edit in source(scene):
            yield placed(scene, edit)
    for name in (".attn.norm.", ".mlp.norm."):  # the same norm in every block
        norms = tuple(step for step in scene.region if name in step.address)
        for edit in norm_suspects(replace(scene, region=norms)) if norms else ():
            yield placed(scene, replace(edit, unlikely=edit.unlikely + 1))


def listed_on_top(scene: Scene) -> Iterator[Edit]:
    """The same in a plan that is edited already; what cannot be written there is left out."""
    for source in (*FORTH, cast_suspects):
        try:
            yield from (placed(scene, edit) for edit in source(scene))
        except STUMBLES:
            continue


def listed_apart(scene: Scene) -> Iterator[Edit]:
    """The same in one block alone, and outside of the blocks, where a gap spans several parts."""
    parts = parts_of(scene)
    for part in parts if len(parts) > 1 else ():
        for edit in listed(replace(scene, region=part.region)):
            yield replace(edit, unlikely=edit.unlikely + APART)


def parts_of(scene: Scene) -> list[Scene]:
    """The blocks that a gap spans, and what is outside of them, in spine order."""
    parts = defaultdict(list)
    for step in scene.region:
        parts[scene.layer(step.address)].append(step)
    return [replace(scene, region=tuple(steps)) for steps in parts.values()]


def first_row(off: Floats, axis: int | None, times: float = 4.0) -> int | None:
    """The first position that differs, from the errors in usual units; None where none does."""
    if axis is None or off.ndim <= axis:
        return None
    rest = tuple(other for other in range(off.ndim) if other != axis)
    rows = np.sqrt(np.square(off).mean(axis=rest))
    found = np.flatnonzero(rows > times)
    return int(found[0]) if found.size else None
