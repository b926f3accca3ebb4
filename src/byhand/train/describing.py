"""A run and a trained model written down as the files that read back to them.

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
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec, over_root
from byhand.tokens import Vocabulary
from byhand.train.run import Run
from byhand.weights import Data

Table = dict[str, Any]

PLACES = ("q", "k", "v", "out")


def run_text(run: Run, folder: Path) -> str:
    """The RUN.yaml of a run, for a file in this folder: every setting, usual or not."""
    assert run.schedule is not None
    optimizer = run.optimizer
    data = run.corpus.name if run.data is None else run.data
    named = run.std is None and run.model is not None
    table: Table = {
        "name": run.name,
        "data": _beside(data, folder),
        "model": _beside(run.model, folder) if named and run.model else model_table(run.spec),
    }
    if run.std is not None:
        table["init"] = {"std": _number(run.std)}
    table |= {
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
        "clip": "none" if run.clip is None else run.clip,
        "evaluate": {"every": run.evaluate_every},
        "checkpoint": {"every": run.checkpoint_every},
        "seed": run.seed,
        "format": run.format,
        "threads": run.threads,
    }
    return _dump(table)


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


# ------------------------------------------------------------------ the architecture


def model_table(spec: ModelSpec) -> Table:
    """The `model:` table of a spec, without what is usual."""
    table: Table = {"d_model": spec.d_model}
    if spec.context is not None:
        table["context"] = spec.context
    table |= {"layers": len(spec.blocks), "layout": spec.layout}
    if spec.embed_scale is not None:
        table["embed_scale"] = _number(spec.embed_scale)
    stream: Any = spec.position
    if spec.position == "sinusoidal":
        stream = {"kind": "sinusoidal", "base": _number(spec.position_base)}
    relative = [_relative(block.attention) for block in spec.blocks] or [[]]
    beside = relative[0] if stream == "none" else [stream, *relative[0]]
    table["position"] = _one_or_more(beside)
    if spec.blocks:
        table |= _first(spec.blocks)
    table["final_norm"] = _norm(spec.final_norm)
    table["head"] = {"tied": spec.tied, "bias": spec.head_bias}
    changes = _changes(spec.blocks, relative)
    return table | ({"blocks": changes} if changes else {})


def _first(blocks: tuple[BlockSpec, ...]) -> Table:
    """What the first block is, which the others are unless `blocks:` says otherwise."""
    block = blocks[0]
    windows = len({b.attention.window for b in blocks if b.attention}) > 1
    shared = _shared_norm(block)
    own = {} if shared else {"norm": ...}
    norm: Table = _norm(shared) if shared and shared.kind != "none" else {"kind": "none"}
    table: Table = {"norm": norm | {"place": block.norm_place}}
    table["attention"] = table["mlp"] = "none"
    if attention := block.attention:
        table["attention"] = _attention(attention, window=not windows)
        if own:
            table["attention"]["norm"] = _norm(block.attn_norm)
    if mlp := block.mlp:
        table["mlp"] = _mlp(mlp)
        if own:
            table["mlp"]["norm"] = _norm(block.mlp_norm)
    return table | {"residual": "parallel" if block.parallel else "serial"}


def _shared_norm(block: BlockSpec) -> NormSpec | None:
    """The norm of both sublayers, where it is the same (or there is just one)."""
    norms = [block.attn_norm] * bool(block.attention) + [block.mlp_norm] * bool(block.mlp)
    return norms[0] if norms and len(set(norms)) == 1 else None


def _changes(blocks: tuple[BlockSpec, ...], relative: list[list[Any]]) -> dict[int, Table]:
    """What is different in a layer: of what differs, every key, so that nothing is inherited."""
    windows = len({b.attention.window for b in blocks if b.attention}) > 1
    changes: dict[int, Table] = {}
    for layer, block in enumerate(blocks):
        change: Table = {}
        if block != blocks[0]:
            change["norm"] = {"kind": "none", "place": block.norm_place}
            change["attention"] = change["mlp"] = "none"
            if block.attention:
                norm = _norm(block.attn_norm, full=True)
                change["attention"] = _attention(block.attention, full=True) | {"norm": norm}
            if block.mlp:
                change["mlp"] = _mlp(block.mlp, full=True) | {"norm": _norm(block.mlp_norm, True)}
            change["residual"] = "parallel" if block.parallel else "serial"
            if relative[layer] != relative[0]:
                change["position"] = _one_or_more(relative[layer])
        elif windows and block.attention and block.attention.window is not None:
            change["attention"] = {"window": block.attention.window}
        if change:
            changes[layer] = change
    return changes


def _one_or_more(kinds: list[Any]) -> Any:
    return kinds[0] if len(kinds) == 1 else kinds or "none"


def _relative(attention: AttentionSpec | None) -> list[Any]:
    """RoPE and ALiBi, where an attention has them."""
    kinds: list[Any] = []
    if attention and (rotary := attention.rotary):
        rope: Table = {"kind": "rope", "width": rotary.width, "pairing": rotary.pairing}
        kinds.append(
            rope | ({"angles": "given"} if rotary.given else {"base": _number(rotary.base)})
        )
    if attention and attention.alibi:
        kinds.append("alibi")
    return kinds


def _norm(norm: NormSpec, full: bool = False) -> Any:
    if norm.kind == "none":
        return "none"
    table: Table = {"kind": norm.kind, "eps": _number(norm.eps), "gain": norm.gain}
    return table | ({"bias": norm.bias} if full or norm.kind == "layernorm" else {})


def _attention(attention: AttentionSpec, *, full: bool = False, window: bool = True) -> Table:
    scale = attention.scale
    table: Table = {"heads": attention.heads}
    if full or attention.kv_heads != attention.heads:
        table["kv_heads"] = attention.kv_heads
    table["d_head"] = attention.d_head
    if full or scale != over_root(attention.d_head):
        table["scale"] = "none" if scale is None else _number(scale)
    if window and attention.window is not None:
        table["window"] = attention.window
    biases = {place: getattr(attention, f"{place}_bias") for place in PLACES}
    others: Table = {
        "causal": (attention.causal, True),
        "bias": (biases, dict.fromkeys(PLACES, False)),
        "packed": (attention.packed or "none", "none"),
        "out": (attention.out, True),
        "q_norm": (_norm(attention.q_norm), "none"),
        "k_norm": (_norm(attention.k_norm), "none"),
        "score_table": (attention.score_table, False),
    }
    return table | {key: now for key, (now, usual) in others.items() if full or now != usual}


def _mlp(mlp: MlpSpec, full: bool = False) -> Table:
    table: Table = {"d_ff": mlp.d_ff, "activation": mlp.activation}
    biases = {place: getattr(mlp, f"{place}_bias") for place in ("hidden", "gate", "out")}
    if full or mlp.gated:
        table["gated"] = mlp.gated
    return table | ({"bias": biases} if full or any(biases.values()) else {})


# ------------------------------------------------------------------ text


def _number(value: Fraction | Expression) -> int | float | str:
    """A number as model files write it, without losing anything."""
    if isinstance(value, Number):
        value = value.value
    if not isinstance(value, Fraction):
        return write(value)
    if value.denominator == 1:
        return value.numerator
    short = Fraction(repr(float(value))) == value  # 0.02 rather than 1/50
    return float(value) if short else str(value)


def _beside(named: str | Path, folder: Path) -> str:
    """A built-in's name, or the way to a file from this folder."""
    if isinstance(named, str):
        return named
    return Path(os.path.relpath(named.resolve(), folder.resolve())).as_posix()


def _dump(table: Table) -> str:
    return yaml.safe_dump(
        table, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
    )
