"""Training steps as data: the JSON document of `byhand step --json`."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TextIO

from byhand.document.compose.learning import LOSSES, MOST_WEIGHTS
from byhand.document.media.json.records import write_document
from byhand.document.media.json.trace import TraceData, proof_data
from byhand.numbers.adjoints import UNCOUNTED
from byhand.optimizer import UPDATE, Rule
from byhand.parameters import size_of
from byhand.plan import GRAD, WEIGHT

if TYPE_CHECKING:
    from byhand.learning import Training, TrainingStep


def write_training(training: Training, to: TextIO, only: Iterable[str] = ()) -> None:
    """Writes the document; each training step and each line of working has its own line."""
    write_document(training_data(training, only), to, ("steps", "working"))


def training_data(training: Training, only: Iterable[str] = ()) -> dict[str, Any]:
    """The losses and norms of every step, and the lines of the last one."""
    last = training.steps[-1].trace
    data = TraceData(last)
    working = [data.step(last.steps[address]) for address in _shown(training, tuple(only))]
    steps = [_step_data(step) for step in training.steps]
    after = TraceData(training.after)
    targets = [None if id == UNCOUNTED else data.token(id) for id in training.batch.targets]
    return {
        "model": training.model.name,
        "numbers": last.numbers.name,
        **proof_data(last),
        "texts": list(training.batch.texts),
        "tokens": data.tokens(),
        "targets": targets,
        "loss": "mean" if training.mean else "last",
        "optimizer": _rule_data(training.steps[0].rule),
        "steps": steps,
        "after": {"loss": after.bare(training.losses[-1]), "letters": after.letters()},
        "letters": data.letters(),
        "working": working,
    }


def _rule_data(rule: Rule) -> dict[str, Any]:
    """The settings that the optimizer has, each as a fraction."""
    settings: dict[str, Any] = {"name": rule.kind, "decay": _exactly(rule.decay)}
    if rule.kind == "momentum":
        settings["momentum"] = _exactly(rule.momentum)
    if "v" in rule.moments:
        settings |= {"betas": list(map(_exactly, rule.betas)), "eps": _exactly(rule.eps)}
    return {**settings, "clip": None if rule.clip is None else _exactly(rule.clip)}


def _exactly(number: Fraction) -> str:
    return str(number)


def _step_data(step: TrainingStep) -> dict[str, Any]:
    data = TraceData(step.trace)
    return {
        "step": step.rule.step,
        "rate": _exactly(step.rule.rate),
        "loss": data.bare(step.loss),
        "norm": data.bare(step.norm),
        "clip": data.bare(step.clip),
    }


def _shown(training: Training, only: tuple[str, ...]) -> list[str]:
    """The addresses of the lines that are written: of a large model, those that sum it up."""
    trace = training.steps[-1].trace
    if only:
        return list(trace.plan.matching(only))
    large = size_of(training.model.spec) > MOST_WEIGHTS
    starts = (f"{UPDATE}squares.",) if large else (UPDATE,)
    kept = {*LOSSES, f"{UPDATE}norm", f"{UPDATE}clip"}
    if not large:
        kept |= {trace.plan.known[GRAD + WEIGHT + name] for name in training.new}
    return [a for a in trace.steps if a in kept or a.startswith(starts)]
