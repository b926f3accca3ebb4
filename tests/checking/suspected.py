"""What the tests of suspects share: small models, the first line that is wrong, who is suspected.

A judge of its own, so that suspects are tested without the rest of `check`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand import forward
from byhand.checking.suspects import Context, Edit, Mistaken, edits
from byhand.errors import InputError
from byhand.evaluate import Admitted, work_out
from byhand.model import Model
from byhand.numbers.allowed import Judged, Range
from byhand.numbers.floats import Floats
from byhand.parameters import parameters
from byhand.plan import Plan, Step
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights
from byhand.worked import Worked

Data = npt.NDArray[Any]
EPS = Fraction(1, 100_000)
TOKENS = (3, 5, 1, 7, 2, 11)
TARGET = 4


def gpt2() -> ModelSpec:
    norm = NormSpec("layernorm", EPS)
    attention = AttentionSpec(
        4, 6, 4, over_root(6), q_bias=True, k_bias=True, v_bias=True, packed="concatenated",
        out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(40, "gelu_tanh", hidden_bias=True, out_bias=True)
    blocks = (BlockSpec(attention, mlp, norm, norm),) * 3
    return ModelSpec("gpt2-like", 19, 24, 16, blocks, "learned", final_norm=norm)


def llama() -> ModelSpec:
    norm = NormSpec("rmsnorm", EPS, bias=False)
    rotary = RotarySpec(6, Fraction(10_000), "half")
    attention = AttentionSpec(4, 6, 2, over_root(6), rotary=rotary)
    blocks = (BlockSpec(attention, MlpSpec(40, "silu", gated=True), norm, norm),) * 3
    return ModelSpec("llama-like", 19, 24, 16, blocks, final_norm=norm, tied=False, layout="out_in")


def gpt_neox() -> ModelSpec:
    norm = NormSpec("layernorm", EPS)
    attention = AttentionSpec(
        4, 8, 4, over_root(8), rotary=RotarySpec(4, Fraction(10_000), "half"), q_bias=True,
        k_bias=True, v_bias=True, packed="per_head", out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(40, "gelu", hidden_bias=True, out_bias=True)
    blocks = (BlockSpec(attention, mlp, norm, norm, parallel=True),) * 3
    return ModelSpec("neox-like", 19, 32, 16, blocks, final_norm=norm, tied=False, layout="out_in")


SPECS = {"gpt2": gpt2, "llama": llama, "gpt_neox": gpt_neox}


def random_model(spec: ModelSpec, *, untied_too: bool = False, seed: int = 1) -> Model:
    """Weights of a size at which every mistake shows."""
    rng = np.random.default_rng(seed)
    tensors = {}
    for parameter in parameters(spec):
        data = rng.standard_normal(parameter.shape) * (0.35 if parameter.kind == "matrix" else 0.3)
        data += parameter.kind == "gain"
        tensors[parameter.name] = Tensor(parameter.name, data.astype(np.float32))
    if untied_too:
        head = rng.standard_normal((spec.vocab, spec.d_model)).astype(np.float32)
        tensors["head"] = Tensor("head", head)
    return Model(spec, Weights(tensors), Ids(spec.vocab))


@dataclass
class Judge:
    """Judges the lines of a dump from the lines above, in float32."""

    model: Model
    dump: Mapping[str, Data]
    padding: tuple[int, int] = (0, 0)
    precision: str = "float32"
    slack: float = 0.0
    by_hand: bool = False

    def __post_init__(self) -> None:
        self.plan = forward.plan(self.model.spec, len(TOKENS), target=True)
        self.numbers = Mistaken(self.precision)
        self.weights = Admitted(self.model.weights, self.numbers)
        names = [step.address for step in self.plan if step.address in self.dump]
        self.claimed = frozenset(names) - {"next"}

    def worked(self, plan: Plan, target: str) -> Worked:
        """The target, from the claimed lines above it."""
        above = self.claimed - {target}
        plan = plan.only([target], given=above)
        given = {step.address: self._claimed(step) for step in plan if step.address in above}
        return work_out(plan, self.weights, TOKENS, self.numbers, target=TARGET, given=given)[
            target
        ]

    def _claimed(self, step: Step) -> Worked:
        absent = None
        if step.op == "scores":
            absent = np.broadcast_to(~np.asarray(step.attributes["mask"]), step.shape)
        elif step.address.endswith(".weights"):
            scores = self.plan[step.inputs["x"]]
            absent = np.broadcast_to(~np.asarray(scores.attributes["mask"]), step.shape)
        values = self.dump[step.address]
        slack = np.full(step.shape, self.slack) if self.slack else None
        with np.errstate(invalid="ignore"):
            value = Range(np.where(np.isfinite(values), values, 0.0), slack, slack, absent)
        return Worked(step, value, self.numbers)

    def judged(self, plan: Plan, target: str) -> Judged:
        worked = self.worked(plan, target)
        return self.numbers.judge(worked.value, (), self.dump[target], self.slack)

    def first_error(self) -> str | None:
        for step in self.plan:
            if step.address in self.claimed and not self.judged(self.plan, step.address).follows:
                return step.address
        return None

    def suspects(self, address: str) -> list[tuple[Edit, Judged]]:
        """The edits that explain a line, the best first."""
        target = self.plan[address]
        above = self.claimed - {address}
        region = [
            step for step in self.plan.only([address], given=above)
            if step.address not in above and step.op != "given"
        ]  # fmt: skip
        found = self.judged(self.plan, address)
        context = Context(
            self.claimed, TOKENS, tuple(range(len(TOKENS))), self.padding, self.precision,
            self.by_hand, (), self.dump[address], found.expected, found.allowed, self.slack,
        )  # fmt: skip
        explained = []
        for place, edit in enumerate(edits(self.plan, region, target, self.model, context=context)):
            try:
                judged = self.judged(edit.plan, address)
            except InputError:  # a mask that leaves a position nothing to look at
                continue
            if judged.follows and np.isfinite(judged.allowed).all():
                times = judged.times or 0.0
                explained.append(
                    ((times if times > 3 else 0.0, edit.unlikely, place), edit, judged)
                )
        explained.sort(key=lambda each: each[0])
        return [(edit, judged) for _order, edit, judged in explained]


def only(dump: Mapping[str, Data], lines: Collection[str] | None) -> dict[str, Data]:
    """The dump, or those of its lines whose addresses end so."""
    return {
        name: value
        for name, value in dump.items()
        if lines is None or any(name == each or name.endswith("." + each) for each in lines)
    }


def stored(value: Data) -> Data:
    return np.asarray(value).astype(np.float32).astype(np.float64)


def own_pass(model: Model) -> dict[str, Data]:
    """A right dump: byhand's own float32."""
    plan = forward.plan(model.spec, len(TOKENS), target=True)
    done = work_out(plan, model.weights, TOKENS, Floats("float32"), target=TARGET)
    return {
        address: np.ma.filled(worked.array, -np.inf if address.endswith("scores") else 0.0).astype(
            np.float64
        )
        for address, worked in done.items()
        if worked.step.op not in ("given", "argmax")
    }


def suspected(model: Model, address: str, wrong: Data, **more: Any) -> list[Edit]:
    """Who is suspected where this line is wrong and the others are as they should be."""
    lines = {**own_pass(model), address: wrong}
    judge = Judge(model, lines, **more)
    assert judge.first_error() == address
    return [edit for edit, _judged in judge.suspects(address)]
