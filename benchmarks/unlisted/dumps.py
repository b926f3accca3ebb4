"""A port's dump, whole or sparse, and its check, with the edited plans of the causes kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.planted import models
from benchmarks.planted.families import PORTS
from benchmarks.unlisted.changes import Change
from byhand.checking.evidence import Trial
from byhand.checking.judging import judge_text
from byhand.checking.matches import match
from byhand.checking.readers import read_claims
from byhand.checking.replay import Replay
from byhand.checking.verdicts import MarkedText, Suspect
from byhand.plan import Plan

MODES = ("full", "blocks", "logits")


def text_ids(family: str, seed: int, text: int = 0) -> list[int]:
    """The first text, or another one of the same length that shares half of its tokens."""
    first = models.some_ids(family, seed)
    if not text:
        return first
    vocab = models.SPECS[family]().vocab
    drawn = np.random.default_rng([seed, 2, text]).permutation(vocab - 1)[: len(first)].tolist()
    both = zip(first[::-1], drawn, strict=True)
    return [old if place % 2 else new for place, (old, new) in enumerate(both)]


def dump(
    change: Change | None, family: str, format: str, *, seed: int = 0, text: int = 0
) -> dict[str, Any]:
    """The values of a port with this change."""
    port = PORTS[family](models.model(family, seed), text_ids(family, seed, text), format)
    if change is not None:
        change.plant(port)
    return port.run()


def thinned(values: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """What a dump of this mode holds: everything, the stream after each block, or the logits."""
    if mode == "full":
        return dict(values)
    kept = [name for name in values if name.endswith(".mlp.add")] if mode == "blocks" else []
    return {name: values[name] for name in (*kept, "logits")}


def claimed_after(step: str, names: list[str], order: Mapping[str, int]) -> str:
    """The first claimed step that reads a step, or the step itself: in a sparse dump, the next."""
    later = [name for name in names if order[name] >= order[step]]
    return min(later, key=lambda name: order[name])


@contextmanager
def keeping() -> Iterator[dict[str, list[Plan]]]:
    """Keeps the edited plans of the causes that are named meanwhile, by their sentences."""
    kept: dict[str, list[Plan]] = defaultdict(list)
    usual = Trial.suspect

    def suspect(trial: Trial, *arguments: Any, **named: Any) -> Suspect:
        kept[trial.edit.sentence].append(trial.edit.plan)
        return usual(trial, *arguments, **named)

    with patch.object(Trial, "suspect", suspect):
        yield kept


def checked(
    values: Mapping[str, Any],
    family: str,
    format: str,
    *,
    seed: int = 0,
    text: int = 0,
    suspects: bool = True,
) -> tuple[MarkedText, Replay]:
    """A dump, marked; and the replay that judged it."""
    model = models.model(family, seed)
    words = " ".join(map(str, text_ids(family, seed, text)))
    [claimed] = match(read_claims(values), model, words, None)
    return judge_text(model, claimed, format, suspects=suspects)
