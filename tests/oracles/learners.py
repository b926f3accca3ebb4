"""Models that between them pair every two options of an architecture, to be differentiated.

Forty rows of a pairwise cover, each a small model with float weights, a text and its targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from random import Random

import numpy as np

from byhand import forward
from byhand.expression import Call, Number
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import ABSENT
from byhand.parameters import Parameter, parameters
from byhand.plan import Plan
from byhand.spec import (
    LAYOUTS,
    NO_NORM,
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)
from byhand.weights import Tensor, Weights
from oracles.architectures import KINDS
from oracles.pairwise import Pair, Row, cover

SEED = 36  # of a cover of forty rows
WIDTH, HEADS, CONTEXT, VOCAB, LENGTH = 16, 4, 9, 7, 5
INNER_NORMS = ("none", "rmsnorm", "rmsnorm gain", "layernorm", "layernorm gain bias")
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "rope": ("none", "half", "interleaved", "half partial given", "interleaved partial"),
    "q norm": INNER_NORMS,
    "k norm": INNER_NORMS,
    "activation": KINDS,
    "norm": ("layernorm", "rmsnorm"),
    "affine": ("plain", "gain", "gain bias"),
    "eps": ("0", "1/100000", "1/3"),
    "place": ("pre", "post", "parallel", "none"),
    "final norm": ("none", "layernorm bias", "rmsnorm gain"),
    "packed": ("none", "concatenated", "per_head"),
    "kv heads": ("4", "2", "1"),
    "qkv bias": ("none", "all", "q", "kv"),
    "out": ("matrix", "matrix bias", "none"),
    "sees": ("causal", "window", "all"),
    "scale": ("none", "root", "negative"),
    "alibi": ("no", "yes"),
    "score table": ("no", "yes"),
    "gated": ("no", "yes"),
    "mlp bias": ("none", "hidden", "gate", "out"),
    "blocks": ("one", "attention first", "mlp first", "two"),
    "position": ("none", "learned", "sinusoidal"),
    "embed scale": ("no", "yes"),
    "head": ("tied", "tied bias", "own", "own bias"),
    "layout": LAYOUTS,
    "loss": ("last", "mean", "uncounted"),
    "texts": ("one", "later", "two"),
}


def _never(one: str, *others: str) -> set[Pair]:
    """Pairs of answers, written "question: answer", that exclude each other."""
    first, *rest = (tuple(text.split(": ")) for text in (one, *others))
    return {frozenset({first, other}) for other in rest}  # type: ignore[arg-type]


FORBIDDEN = (
    _never("packed: per_head", "kv heads: 2", "kv heads: 1", "qkv bias: q", "qkv bias: kv")
    | _never("packed: concatenated", "qkv bias: q", "qkv bias: kv")
    | _never("affine: gain bias", "norm: rmsnorm")
    | _never("gated: no", "mlp bias: gate")
)
SILENCES = {("place", "none"): ("norm", "affine", "eps")}


@dataclass(frozen=True)
class Learner:
    """A model, and the texts that it learns from, side by side."""

    row: Row
    spec: ModelSpec
    weights: Weights
    tokens: tuple[int, ...]
    targets: tuple[int, ...]
    positions: tuple[int, ...]
    mask: tuple[tuple[bool, ...], ...] | None

    @property
    def last(self) -> bool:
        """Whether the loss is that of the last position alone."""
        return self.row["loss"] == "last"

    def plan(self) -> Plan:
        """The forward pass up to the loss."""
        return forward.plan(
            self.spec,
            len(self.tokens),
            positions=self.positions,
            mask=self.mask,
            target=self.last,
            losses=not self.last,
        )

    def __str__(self) -> str:
        return ", ".join(f"{question} {answer}" for question, answer in self.row.items())


@cache
def rows() -> tuple[Row, ...]:
    """The cover."""
    return tuple(cover(QUESTIONS, FORBIDDEN, SILENCES, seed=SEED))


@cache
def learners() -> tuple[Learner, ...]:
    """A model for each row; of two blocks, the first is that of the row before."""
    table = rows()
    return tuple(_learner(row, table[place - 1], place) for place, row in enumerate(table))


def _learner(row: Row, before: Row, seed: int) -> Learner:
    spec = _model(row, before)
    random = np.random.default_rng(seed)
    weights = {p.name: Tensor(p.name, _entries(p, random)) for p in parameters(spec)}
    tokens, targets = (tuple(map(int, random.integers(0, VOCAB, LENGTH))) for _both in range(2))
    if row["loss"] == "uncounted":
        targets = (UNCOUNTED, *targets[1:3], UNCOUNTED, targets[4])
    first = 3 if row["texts"] == "later" else 0
    positions, mask = tuple(range(first, first + LENGTH)), None
    if row["texts"] == "two":
        positions, text = (0, 1, 2, 0, 1), (0, 0, 0, 1, 1)
        mask = tuple(tuple(one == other for other in text) for one in text)
    return Learner(row, spec, Weights(weights), tokens, targets, positions, mask)


# ------------------------------------------------------------------ from answers to a model


def _model(row: Row, before: Row) -> ModelSpec:
    block = _block(row)
    alone = {
        "one": (),
        "attention first": (BlockSpec(block.attention, None, block.attn_norm, NO_NORM),),
        "mlp first": (BlockSpec(None, block.mlp, NO_NORM, block.mlp_norm),),
        "two": (_block(before),),
    }
    return ModelSpec(
        "learner",
        VOCAB,
        WIDTH,
        CONTEXT,
        (*alone[row["blocks"]], block),
        row["position"],
        embed_scale=Call("sqrt", Number(Fraction(WIDTH))) if row["embed scale"] == "yes" else None,
        final_norm=_norm(row["final norm"], "1/100000"),
        tied="tied" in row["head"],
        head_bias="bias" in row["head"],
        layout=row["layout"],
    )


def _norm(words: str, eps: str) -> NormSpec:
    kind = words.split()[0]
    if kind == "none":
        return NO_NORM
    return NormSpec(kind, Fraction(eps), gain="gain" in words, bias="bias" in words)


def _block(row: Row) -> BlockSpec:
    place = row["place"]
    norm = NO_NORM if place == "none" else _norm(f"{row['norm']} {row['affine']}", row["eps"])
    return BlockSpec(
        _attention(row),
        _mlp(row),
        norm,
        norm,
        "post" if place == "post" else "pre",
        parallel=place == "parallel",
    )


def _attention(row: Row) -> AttentionSpec:
    matrix = row["out"] != "none"
    d_head = 6 if matrix else WIDTH // HEADS
    biased = row["qkv bias"]
    scales = {"none": None, "root": over_root(d_head), "negative": Number(Fraction(-2, 3))}
    return AttentionSpec(
        HEADS,
        d_head,
        int(row["kv heads"]),
        scales[row["scale"]],
        causal=row["sees"] != "all",
        window=2 if row["sees"] == "window" else None,
        rotary=_rotary(row["rope"], d_head),
        alibi=row["alibi"] == "yes",
        score_table=row["score table"] == "yes",
        q_norm=_norm(row["q norm"], "1/100000"),
        k_norm=_norm(row["k norm"], "0"),
        q_bias=biased in ("all", "q"),
        k_bias=biased in ("all", "kv"),
        v_bias=biased in ("all", "kv"),
        packed=None if row["packed"] == "none" else row["packed"],
        out=matrix,
        out_bias=row["out"] == "matrix bias",
    )


def _rotary(words: str, d_head: int) -> RotarySpec | None:
    if words == "none":
        return None
    pairing, *kinds = words.split()
    return RotarySpec(
        d_head - 2 if "partial" in kinds else d_head,
        Fraction(100),
        pairing,
        given="given" in kinds,
    )


def _mlp(row: Row) -> MlpSpec:
    gated, biased = row["gated"] == "yes", row["mlp bias"]
    return MlpSpec(
        11,
        row["activation"],
        gated,
        hidden_bias=biased == "hidden",
        gate_bias=gated and biased == "gate",
        out_bias=biased == "out",
    )


def _entries(parameter: Parameter, random: np.random.Generator) -> np.ndarray:  # type: ignore[type-arg]
    data = random.standard_normal(parameter.shape)
    if parameter.kind == "matrix":
        return data / np.sqrt(parameter.shape[-1])
    if parameter.name.endswith("score_table"):
        masked = data.astype(object)
        hide = Random(1)
        for head, query, key in np.ndindex(*parameter.shape):
            masked[head, query, key] = Fraction(data[head, query, key])
            if query != key and hide.random() < 0.25:  # each may still look at itself
                masked[head, query, key] = ABSENT
        return masked
    return data / 4 + (parameter.kind == "gain")
