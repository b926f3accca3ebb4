"""The catalogue of mistakes, in the order they are tried: cheap and likely ones first.

Edits with equal arithmetic count once; edits that change nothing are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.checking.suspects.attention_back import attention_back_suspects
from byhand.checking.suspects.caps import cap_suspects
from byhand.checking.suspects.casts import cast_suspects
from byhand.checking.suspects.dropout import dropout_suspects
from byhand.checking.suspects.ends import end_suspects
from byhand.checking.suspects.expert_answers import expert_answer_suspects
from byhand.checking.suspects.experts import expert_suspects
from byhand.checking.suspects.heads import head_suspects
from byhand.checking.suspects.left_out import left_out_suspects
from byhand.checking.suspects.limits import limit_suspects
from byhand.checking.suspects.logprobs import logprob_suspects
from byhand.checking.suspects.losses import loss_suspects
from byhand.checking.suspects.matrices import matrix_suspects
from byhand.checking.suspects.mlps import mlp_suspects
from byhand.checking.suspects.norms import norm_suspects
from byhand.checking.suspects.pen_slips import slip_suspects
from byhand.checking.suspects.rotary import rotary_suspects
from byhand.checking.suspects.routing import routing_suspects
from byhand.checking.suspects.scenes import Context, Edit, Scene
from byhand.checking.suspects.scores import score_suspects
from byhand.checking.suspects.sinks import sink_suspects
from byhand.checking.suspects.streams import stream_suspects
from byhand.checking.suspects.student_slips import student_suspects
from byhand.checking.suspects.terms import term_suspects
from byhand.checking.suspects.updates import update_suspects
from byhand.checking.suspects.ways_back import back_suspects
from byhand.checking.suspects.weight_gradients import weight_gradient_suspects
from byhand.checking.suspects.wrong_operations import operation_suspects
from byhand.expression import Expression
from byhand.language import _
from byhand.model import Model
from byhand.numbers.floats.formats import FORMATS
from byhand.numbers.floats.nearest import constant
from byhand.plan import WEIGHT, Plan, Step

MOST = 60  # edits tried on a line directly below claimed ones
MOST_OF_MANY = 160  # the same with unclaimed lines in between, each of which may be wrong
Source = Callable[[Scene], Iterator[Edit]]
FORTH: tuple[Source, ...] = (
    mlp_suspects,
    expert_suspects,
    expert_answer_suspects,
    routing_suspects,
    limit_suspects,
    norm_suspects,
    score_suspects,
    sink_suspects,
    cap_suspects,
    left_out_suspects,
    rotary_suspects,
    head_suspects,
    end_suspects,
    logprob_suspects,
    matrix_suspects,
    stream_suspects,
    dropout_suspects,
)
BACK: tuple[Source, ...] = (
    loss_suspects,
    back_suspects,
    attention_back_suspects,
    weight_gradient_suspects,
    update_suspects,
)
BY_HAND: tuple[Source, ...] = (student_suspects, operation_suspects, term_suspects)
ANYWHERE: tuple[Source, ...] = (slip_suspects, cast_suspects)


def edits(
    plan: Plan, region: Sequence[Step], target: Step, model: Model, *, context: Context
) -> Iterator[Edit]:
    """The mistakes that may explain a line that does not follow, the likeliest first."""
    scene = Scene(plan, tuple(region), target, model, context)
    if target.op == "argmax" and len(region) > 1:
        yield from operation_suspects(scene)
        return  # an id is one of few values: other edits would fit by chance
    arithmetic = _Arithmetic(scene)
    seen = {arithmetic.of(plan)}
    found: list[Edit] = []
    for source, part in _sources(scene):
        for edit in source(part):
            meaning = arithmetic.of(edit.plan)
            if meaning not in seen:
                seen.add(meaning)
                found.append(edit)
    found.sort(key=lambda edit: edit.unlikely)  # stable: otherwise in the order of the catalogue
    if len(scene.region) == 1:
        yield from found[:MOST]
    else:
        yield from (placed(scene, edit) for edit in found[:MOST_OF_MANY])


def _sources(scene: Scene) -> Iterator[tuple[Source, Scene]]:
    """The sources of mistakes, each with the part of the region that it is about."""
    forth = tuple(step for step in scene.region if step.stage == "forward")
    back = tuple(step for step in scene.region if step.stage != "forward")
    every = scene.region
    for sources, region in ((BY_HAND, every), (FORTH, forth), (BACK, back), (ANYWHERE, every)):
        for source in sources if region else ():
            yield source, replace(scene, region=region)


def placed(scene: Scene, edit: Edit) -> Edit:
    """The edit, whose sentence names the line in between where the mistake is made."""
    own = {step.address: step for step in scene.plan}
    changed = [step.address for step in edit.plan if own.get(step.address, step) is not step]
    if not changed or changed == [scene.target.address]:
        return edit
    where = (
        _("{sentence} (at {address})") if len(changed) == 1 else _("{sentence} (from {address})")
    )
    return replace(edit, sentence=where.format(sentence=edit.sentence, address=changed[0]))


class _Arithmetic:
    """Tells whether the target is worked out in the same way in two plans."""

    def __init__(self, scene: Scene) -> None:
        self.target = scene.target.address
        self.leaves = scene.context.claimed - scene.inside
        self.weights = scene.model.weights
        self.numbers: dict[Any, int] = {}
        self.settings: dict[int, tuple[Any, Any]] = {}  # by the id of an attribute

    def of(self, plan: Plan) -> int:
        known = [address for address in self.leaves if address in plan.known]
        meaning: dict[str, int] = {}
        for step in plan.only([self.target], given=known):
            meaning[step.address] = self._step(step, meaning)
        return meaning[self.target]

    def _step(self, step: Step, meaning: dict[str, int]) -> int:
        if step.op == "given" or step.address in self.leaves:
            return self._number(("as it is", step.address))
        reads = {role: self._read(read, meaning) for role, read in step.inputs.items()}
        settings = {name: self._setting(value) for name, value in step.attributes.items()}
        if step.op == "scores" and settings.get("scale") is None:
            settings["scale"] = 1.0
        plain = (
            step.op == "keep"
            or (step.op == "activate" and settings["kind"] == "identity")
            or (step.op == "scaled" and settings["factor"] == 1.0)
            or (step.op == "affine" and len(reads) == 1)
        )
        if plain:
            return reads["x"]
        if step.op in ("add", "multiply", "total"):  # the order does not matter
            return self._number((step.op, tuple(sorted(reads.values()))))
        return self._number(
            (step.op, tuple(sorted(reads.items())), tuple(sorted(settings.items())))
        )

    def _read(self, read: str, meaning: dict[str, int]) -> int:
        if not read.startswith(WEIGHT):
            return meaning[read]
        name = read.removeprefix(WEIGHT)
        return self._number((WEIGHT, self.weights[name].same_as or name))

    def _setting(self, value: Any) -> Any:
        """A setting in a form that can be compared: numbers by their value."""
        if isinstance(value, Fraction | Expression):
            if id(value) not in self.settings:
                self.settings[id(value)] = (value, float(f"{_float(value):.12g}"))
            return self.settings[id(value)][1]
        if isinstance(value, np.ndarray):
            return (value.shape, value.tobytes())
        if isinstance(value, tuple) and any(isinstance(each, Fraction) for each in value):
            return tuple(map(self._setting, value))
        return value

    def _number(self, key: Any) -> int:
        return self.numbers.setdefault(key, len(self.numbers))


def _float(value: Fraction | Expression) -> float:
    if isinstance(value, Fraction):
        return float(value)
    return float(constant(value, FORMATS["float64"]))
