"""The writer of RUN.yaml and of model files, from a run and a trained model.

`run_text` is a RUN.yaml in which nothing is left out, `model_text` a model file whose weights lie
beside it.  `reading` and `files` read them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from byhand.expression import Expression, Number, write
from byhand.files.tables import model_table
from byhand.spec import ModelSpec
from byhand.tokens import Vocabulary
from byhand.train.run import Run
from byhand.weights import Data

Table = dict[str, Any]


def settings(run: Run) -> Table:
    """Every setting of a run, usual or not, under the keys of a RUN.yaml."""
    assert run.schedule is not None
    optimizer = run.optimizer
    return {
        "context": run.context,
        "steps": run.steps,
        "batch": run.batch,
        "accumulate": run.accumulate,
        "optimizer": {
            "lr": optimizer.lr,
            "betas": list(optimizer.betas),
            "eps": optimizer.eps,
            "weight_decay": optimizer.weight_decay,
        },
        "schedule": {"warmup": run.schedule.warmup, "end": run.schedule.end},
        "clip": run.clip,
        "evaluate": {"every": run.evaluate_every},
        "checkpoint": {"every": run.checkpoint_every},
        "seed": run.seed,
        "format": run.format,
        "threads": run.threads,
    }


def run_text(run: Run, folder: Path) -> str:
    """The RUN.yaml of a run, for a file in this folder."""
    data = run.corpus.name if run.data is None else run.data
    named = run.std is None and run.model is not None
    table: Table = {
        "name": run.name,
        "data": _beside(data, folder),
        "model": _beside(run.model, folder) if named and run.model else model_table(run.spec),
    }
    if run.std is not None:
        table["init"] = {"std": _number(run.std)}
    table |= settings(run)
    return _dump(table | {"clip": "none" if run.clip is None else run.clip})


def model_text(
    spec: ModelSpec, vocabulary: Vocabulary, *, about: str, text: str, weights: Mapping[str, Any]
) -> str:
    """The model file of a spec; `weights` is its table of that name."""
    tokens: Any = list(vocabulary.tokens)
    if vocabulary.kind != "words":
        tokens = {"kind": vocabulary.kind, "tokens": tokens}
    table: Table = {"name": spec.name, "about": about, "vocabulary": tokens}
    if spec.context is None or len(vocabulary.encode(text)) <= spec.context:
        table["text"] = text
    return _dump(table | {"model": model_table(spec), "weights": dict(weights)})


def written_out(data: Data) -> Any:
    """A table of scores as a model file writes it: every number exactly, -∞ as masked."""
    if data.ndim:
        return [written_out(part) for part in data]
    return "masked" if np.isneginf(data) else str(Decimal(float(data)))


# ------------------------------------------------------------------ text


def _number(value: Fraction | Expression) -> int | float | str:
    """A number as model files write it, exactly."""
    if isinstance(value, Number):
        value = value.value
    if not isinstance(value, Fraction):
        return write(value)
    if value.denominator == 1:
        return value.numerator
    short = Fraction(repr(float(value))) == value  # 0.02 rather than 1/50
    return float(value) if short else str(value)


def _beside(named: str | Path, folder: Path) -> str:
    """A built-in's name, or the path to a file from this folder."""
    if isinstance(named, str):
        return named
    return Path(os.path.relpath(named.resolve(), folder.resolve())).as_posix()


def _dump(table: Table) -> str:
    return yaml.safe_dump(
        table, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
    )
