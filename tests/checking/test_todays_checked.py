"""Dumps of today's models: correct ones pass, and what a port leaves out is named at its line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.checking.verdicts import Verdict
from byhand.model import Model
from byhand.spec import NO_NORM, BlockSpec, ModelSpec
from byhand.tokens import Ids
from byhand.tracing import Trace
from oracles.hand_set import dyadic
from oracles.todays import todays


def model(number: int) -> Model:
    case = todays(number, dyadic, d=8, vocab=11)
    source = None if case.source is None else " ".join(map(str, case.source))
    words = case.spec.encoder and case.spec.encoder.vocab and Ids(case.spec.encoder.vocab)
    text = " ".join(map(str, case.tokens))
    return Model(
        case.spec, case.weights, Ids(11), text=text, source_text=source, source_words=words or None
    )


def dumped(trace: Trace) -> dict[str, Any]:
    """Every line that holds numbers, as a port would save it."""
    return {"tokens": np.array(trace.tokens)} | {
        address: np.ma.filled(np.ma.asarray(np.asarray(worked), dtype=np.float64), 0.0)
        for address, worked in trace.steps.items()
        if worked.step.op not in ("given", "argmax")
    }


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("number", range(6))
def test_a_correct_run_raises_no_alarm(number: int, precision: str) -> None:
    made = model(number)
    claims = dumped(byhand.trace(made, numbers=precision))
    marking = byhand.check(made, claims, precision=precision, suspects=False)
    wrong = [line.address for line in marking if line.verdict is Verdict.ERROR]
    assert not wrong
    assert sum(line.verdict is Verdict.RIGHT for line in marking) > 30


def blocks(change: Callable[[BlockSpec], BlockSpec]) -> Callable[[ModelSpec], ModelSpec]:
    return lambda spec: replace(spec, blocks=tuple(map(change, spec.blocks)))


def attention(**settings: Any) -> Callable[[ModelSpec], ModelSpec]:
    return blocks(lambda b: replace(b, attention=b.attention and replace(b.attention, **settings)))


def without_one(spec: ModelSpec) -> ModelSpec:
    return replace(spec, embed_norm=replace(spec.embed_norm, plus_one=False))


LEFT_OUT: dict[str, tuple[int, Callable[[ModelSpec], ModelSpec], str, str]] = {
    "cap": (1, lambda s: replace(s, logit_cap=None), "logits", "logit-cap-missing"),
    "factor": (0, lambda s: replace(s, head_scale=None), "head.out", "factor-missing"),
    "clip": (0, attention(clip=None), "block.0.attn.scores", "limit-missing"),
    "norm": (1, blocks(lambda b: replace(b, attn_after=NO_NORM)), "block.0.attn.scaled",
             "norm-missing"),
    "one": (1, without_one, "embed.norm.out", "norm-gain-plus-one"),
    "distances": (0, attention(relative=False), "block.0.attn.scores", "distances-missing"),
    "buckets": (0, lambda s: replace(s, relative=s.relative and replace(s.relative, both=True)),
                "relative", "buckets-direction"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_a_port_leaves_out_is_named_at_its_line(name: str) -> None:
    number, change, where, kind = LEFT_OUT[name]
    made = model(number)
    wrong = change(made.spec)
    assert wrong != made.spec
    claims = dumped(byhand.trace(replace(made, spec=wrong), numbers="float32"))
    plan = byhand.trace(made, numbers="float32").plan
    told = {address: x for address, x in claims.items() if address in plan.known}
    told = {a: x for a, x in told.items() if x.shape == plan[a].shape}
    marking = byhand.check(made, told, precision="float32")
    first = next(line for line in marking if line.verdict is Verdict.ERROR)
    assert first.address == where
    assert kind in {suspect.kind for line in marking for suspect in line.suspects}
