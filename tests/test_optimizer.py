"""Steps of an optimizer are torch's: five in a row, in float64, and those of `byhand train`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from byhand import forward
from byhand.backward import adjoint
from byhand.evaluate import work_out
from byhand.models import open_model
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.floats import Floats
from byhand.numbers.tensors import Tensors
from byhand.optimizer import OPTIMIZERS, Rule, update
from byhand.parameters import learned
from byhand.plan import Plan
from byhand.train.batches import NOTHING
from byhand.train.flat import Flat
from byhand.train.module import TorchModel
from byhand.train.run import Optimizer
from byhand.weights import Tensor, Weights
from oracles.learners import Learner, learners
from oracles.torch_pass import TorchPass

NEAR = 1e-12
RATES = [Fraction(1, 100), Fraction(1, 50), Fraction(3, 100), Fraction(1, 60), Fraction(1, 200)]
MOST = Fraction(1, 2)  # below the norm of the gradients, so that they are clipped


def rule_of(kind: str, *, clip: Fraction | None, decay: Fraction) -> Rule:
    return Rule(
        kind,
        clip=clip,
        decay=decay,
        momentum=Fraction(4, 5),
        betas=(Fraction(9, 10), Fraction(19, 20)),
        eps=Fraction(1, 10**6),
    )


def as_weights(values: dict[str, Any]) -> Weights:
    return Weights({name: Tensor(name, data) for name, data in values.items()})


# ------------------------------------------------------------------ five steps, in byhand and torch


@dataclass
class Ours:
    """Weights and moments, changed by the plan of a step."""

    plan: Plan  # up to the gradients
    weights: Weights
    numbers: Any
    moments: dict[str, Any] = field(default_factory=dict)  # by the addresses that are read
    norm: float = 0.0

    def step(self, rule: Rule, **text: Any) -> None:
        plan = update(self.plan, rule)
        steps = work_out(plan, self.weights, numbers=self.numbers, given=self.moments, **text)
        found = {address: self.numbers.entries(w.value) for address, w in steps.items()}
        names = [parameter.name for parameter in learned(plan.spec)]
        self.norm = float(found["update.norm"][0])
        self.moments = {
            f"before.{moment}.{name}": found[f"update.{moment}.{name}"]
            for moment in rule.moments
            for name in names
        }
        new = {name: found[f"update.weight.{name}"] for name in names}
        self.weights = as_weights({n: t.data for n, t in self.weights.items()} | new)


class Theirs:
    """The same with torch.optim, clip_grad_norm_ and autograd."""

    def __init__(self, learner: Learner, rule: Rule) -> None:
        self.learner, self.rule = learner, rule
        self.buffers = dict(learner.weights)
        self.parameters = {
            p.name: torch.nn.Parameter(torch.tensor(self.buffers.pop(p.name).data))
            for p in learned(learner.spec)
        }
        self.optimizer = _torch_optimizer(rule, self.parameters)

    def step(self, rate: Fraction) -> None:
        learner = self.learner
        values = {name: p.detach().numpy() for name, p in self.parameters.items()}
        weights = Weights(dict(self.buffers) | dict(as_weights(values)))
        oracle = TorchPass(
            learner.spec, weights, learner.tokens, 0, learner.positions, learner.mask, learning=True
        )
        for address, grad in oracle.gradients(learner.targets, last=learner.last).items():
            if address.startswith("grad.weight."):
                self.parameters[address.removeprefix("grad.weight.")].grad = grad
        every = list(self.parameters.values())
        most = float("inf") if self.rule.clip is None else float(self.rule.clip)
        self.norm = float(torch.nn.utils.clip_grad_norm_(every, most))
        for group in self.optimizer.param_groups:
            group["lr"] = float(rate)
        self.optimizer.step()

    def moments(self, name: str) -> list[Any]:
        state = self.optimizer.state[self.parameters[name]]
        kept = ("momentum_buffer", "exp_avg", "exp_avg_sq")
        return [state[moment].numpy() for moment in kept if moment in state]


def _torch_optimizer(rule: Rule, parameters: dict[str, Any]) -> Any:
    groups = [
        {"params": [p for p in parameters.values() if p.dim() >= 2], "weight_decay": rule.decay},
        {"params": [p for p in parameters.values() if p.dim() < 2], "weight_decay": 0.0},
    ]
    groups = [{**group, "weight_decay": float(group["weight_decay"])} for group in groups]
    if rule.kind in ("sgd", "momentum"):
        momentum = float(rule.momentum) if rule.kind == "momentum" else 0.0
        return torch.optim.SGD(groups, lr=0.1, momentum=momentum)
    make = torch.optim.Adam if rule.kind == "adam" else torch.optim.AdamW
    first, second = rule.betas
    return make(groups, lr=0.1, betas=(float(first), float(second)), eps=float(rule.eps))


def learner_with(**answers: str) -> Learner:
    wished = {question.replace("_", " "): answer for question, answer in answers.items()}
    return next(x for x in learners() if wished.items() <= x.row.items())


CASES = [
    pytest.param(kind, clip, decay, id=f"{kind}, clip {clip}, decay {decay}")
    for kind in OPTIMIZERS
    for clip, decay in (
        (None, Fraction(0)),
        (MOST, Fraction(1, 10)),
        (Fraction(1000), Fraction(1, 7)),
    )
]


@pytest.mark.parametrize(("kind", "clip", "decay"), CASES)
@pytest.mark.parametrize("make", [Floats, Tensors])
def test_five_steps_are_torchs(make: Any, kind: str, clip: Any, decay: Fraction) -> None:
    learner = learner_with(loss="uncounted", head="tied bias", affine="gain bias")
    rule = rule_of(kind, clip=clip, decay=decay)
    ours = Ours(adjoint(learner.plan()), learner.weights, make("float64"))
    theirs = Theirs(learner, rule)
    for step, rate in enumerate(RATES, 1):
        text = {"tokens": learner.tokens, "targets": learner.targets}
        ours.step(replace(rule, rate=rate, step=step), **text)
        theirs.step(rate)
        assert ours.norm == pytest.approx(theirs.norm, rel=NEAR)
        if clip == MOST:
            assert ours.norm > clip
    assert len(theirs.parameters) > 12
    for name, expected in theirs.parameters.items():
        assert near(ours.weights[name].data, expected.detach().numpy()), name
        moments = [ours.moments[f"before.{moment}.{name}"] for moment in rule.moments]
        for found, other in zip(moments, theirs.moments(name), strict=True):
            assert near(found, other), name


def near(found: Any, expected: Any) -> bool:
    return bool(np.allclose(found, expected, rtol=NEAR, atol=NEAR * np.abs(expected).max()))


# ------------------------------------------------------------------ several texts, as trainers do


class Trained:
    """A model of `byhand train`, whose gradients are autograd's, over rows that are padded."""

    def __init__(self, name: str, texts: list[list[int]], settings: Optimizer) -> None:
        model = open_model(name)
        self.module = TorchModel(model.spec, model.weights, format="float64")
        self.settings = settings
        self.ids, self.targets = padded(texts)

    def loss(self) -> Any:
        rows = self.module(self.ids).flatten(0, 1)
        return F.cross_entropy(rows, self.targets.flatten(), ignore_index=NOTHING)

    def values(self) -> dict[str, Any]:
        return {name: x.detach().numpy().copy() for name, x in self.module.tensors().items()}


class ByTorch(Trained):
    """Its steps are torch.optim's."""

    def __init__(self, *setting: Any) -> None:
        super().__init__(*setting)
        parameters = dict(self.module.named_parameters())
        rule = Rule(
            "adamw",
            decay=Fraction(self.settings.weight_decay),
            betas=(Fraction(self.settings.betas[0]), Fraction(self.settings.betas[1])),
            eps=Fraction(self.settings.eps),
        )
        self.optimizer = _torch_optimizer(rule, parameters)

    def step(self, rate: float, number: int) -> float:
        self.optimizer.zero_grad()
        self.loss().backward()
        norm = torch.nn.utils.clip_grad_norm_(self.module.parameters(), float(MOST))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        return float(norm)


class ByTrain(Trained):
    """Its steps are those of `byhand train`."""

    def __init__(self, *setting: Any) -> None:
        super().__init__(*setting)
        self.flat = Flat(self.module)

    def step(self, rate: float, number: int) -> float:
        self.flat.take_gradients(self.loss())
        norm = self.flat.clip(float(MOST))
        self.flat.update(self.settings, rate, number)
        return float(norm)


@pytest.mark.parametrize("make", [ByTorch, ByTrain])
@pytest.mark.parametrize(("name", "lengths"), [("abc", (4, 3, 4)), ("minigpt-init", (7, 4, 6))])
def test_trainers_take_the_same_five_steps(name: str, lengths: Any, make: Any) -> None:
    spec = open_model(name).spec
    random = np.random.default_rng(5)
    texts = [random.integers(0, spec.vocab, size=length).tolist() for length in lengths]
    settings = Optimizer(betas=(0.9, 0.95), weight_decay=0.1)
    trained = make(name, texts, settings)
    start = trained.values()
    ours = Ours(side_by_side(texts, spec), as_weights(start), Floats("float64"))
    rule = Rule(
        "adamw",
        clip=MOST,
        decay=Fraction(settings.weight_decay),
        betas=(Fraction(settings.betas[0]), Fraction(settings.betas[1])),
        eps=Fraction(settings.eps),
    )
    for step, rate in enumerate((0.01, 0.02, 0.005, 0.01, 0.015), 1):
        norm = trained.step(rate, step)
        ours.step(
            replace(rule, rate=Fraction(rate), step=step),
            tokens=[token for text in texts for token in text[:-1]],
            targets=[token for text in texts for token in (UNCOUNTED, *text[2:])],
        )
        assert ours.norm == pytest.approx(norm, rel=NEAR)
    for parameter, expected in ((p, trained.values()[p.name]) for p in learned(spec)):
        assert np.abs(expected - start[parameter.name]).max() > 0.01
        off = np.abs(ours.weights[parameter.name].data - expected)
        noise = np.sqrt(ours.moments[f"before.v.{parameter.name}"]) < 1e-13
        assert off[~noise].max(initial=0) < NEAR, parameter.name
        assert off[noise].max(initial=0) < 100 * NEAR, (
            parameter.name
        )  # the bias of keys: 0/(0 + eps)


def padded(texts: list[list[int]]) -> tuple[Any, Any]:
    """Rows as `byhand train` takes them; the first position of each text does not count."""
    width = max(map(len, texts)) - 1
    ids = torch.zeros((len(texts), width), dtype=torch.int64)
    targets = torch.full((len(texts), width), NOTHING)
    for row, text in enumerate(texts):
        ids[row, : len(text) - 1] = torch.tensor(text[:-1])
        targets[row, 1 : len(text) - 1] = torch.tensor(text[2:])
    return ids, targets


def side_by_side(texts: list[list[int]], spec: Any) -> Plan:
    of_text = [number for number, text in enumerate(texts) for _token in text[:-1]]
    return adjoint(
        forward.plan(
            spec,
            len(of_text),
            positions=[place for text in texts for place in range(len(text) - 1)],
            mask=[[one == other for other in of_text] for one in of_text],
            losses=True,
        )
    )
