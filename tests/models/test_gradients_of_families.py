"""Gradients of the six families are those of the transformers library's own classes.

The library works norms and angles out in float32, whatever the model's format is; here it is made
to use float64.  Its gradients are read as a checkpoint is: saved in place of the weights.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from types import MethodType
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from byhand import forward
from byhand.backward import adjoint
from byhand.evaluate import work_out
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.floats import Floats
from byhand.plan import Plan
from byhand.worked import Worked
from oracles.checkpoints import random_model, rates_of, saved
from oracles.differentiated import furthest

NEAR = 1e-11
IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5]
FAMILIES: dict[str, dict[str, Any]] = {
    "gpt2": {"vocab_size": 13, "n_positions": 9, "n_embd": 12, "n_layer": 2, "n_head": 3},
    "llama": {},
    "mistral": {"sliding_window": 3},
    "qwen2": {"tie_word_embeddings": True},
    "qwen3": {"head_dim": 6},
    "gpt_neox": {
        "vocab_size": 13, "max_position_embeddings": 16, "hidden_size": 24,
        "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 10,
    },
}  # fmt: skip
GROUPED = ("llama", "mistral", "qwen2", "qwen3")
USUAL: dict[str, Any] = {
    "vocab_size": 13, "max_position_embeddings": 16, "hidden_size": 12, "num_hidden_layers": 2,
    "num_attention_heads": 6, "num_key_value_heads": 3, "intermediate_size": 10,
}  # fmt: skip
every_family = pytest.mark.parametrize("family", FAMILIES)


class Family:
    """A random model of the library in float64, and byhand's reading of it."""

    def __init__(self, family: str, folder: Path) -> None:
        settings = {**USUAL, **FAMILIES[family]} if family in GROUPED else FAMILIES[family]
        ends: dict[str, Any] = {"bos_token_id": None, "eos_token_id": 7}
        self.theirs = random_model(family, **settings, **ends)
        self.theirs.set_attn_implementation("sdpa")  # the eager one has a softmax in float32
        self.folder = folder
        self.ours: Model = open_model(saved(self.theirs, folder / "weights"))
        for module in self.theirs.modules():
            _in_float64(module, self.theirs.config)

    def gradients(self, loss: Tensor, streams: tuple[Tensor, ...] = ()) -> dict[str, Any]:
        """Those of all parameters and of the streams, under byhand's addresses."""
        for stream in streams:
            stream.retain_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        read = deepcopy(self.theirs.state_dict())
        for name, parameter in self.theirs.named_parameters(remove_duplicate=False):
            read[name] = parameter.grad
        copy = random_model(self.theirs.config.model_type, **self.theirs.config.to_dict())
        copy.load_state_dict(read)
        found = open_model(saved(copy, self.folder / "gradients")).weights
        grads = {f"grad.weight.{name}": tensor.data for name, tensor in found.items()}
        inner = {f"grad.stream.{i}": stream.grad for i, stream in enumerate(streams)}
        return grads | {name: grad[0].numpy() for name, grad in inner.items() if grad is not None}

    def work(self, plan: Plan, **text: Any) -> tuple[Plan, dict[str, Worked]]:
        whole = adjoint(plan)
        return whole, work_out(whole, self.ours.weights, numbers=Floats("float64"), **text)


def _in_float64(module: Any, config: Any) -> None:
    kind = type(module).__name__
    if kind.endswith("RMSNorm"):
        module.forward = MethodType(_rms, module)
    elif kind.endswith("RotaryEmbedding"):
        width = 2 * len(module.inv_freq)
        module.rates = rates_of(width, config.rope_parameters)
        module.forward = MethodType(_angles, module)


def _rms(self: Any, x: Tensor) -> Tensor:
    weight: Tensor = self.weight
    return weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon))


def _angles(self: Any, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
    angles = position_ids[..., None].double() * self.rates
    twice = torch.cat((angles, angles), dim=-1)
    return twice.cos(), twice.sin()


@every_family
def test_gradients_of_parameters_and_streams_are_the_librarys(family: str, tmp_path: Path) -> None:
    model = Family(family, tmp_path)
    out = model.theirs(torch.tensor([IDS[:-1]]), output_hidden_states=True, use_cache=False)
    loss = F.cross_entropy(out.logits[0], torch.tensor(IDS[1:]))
    expected = model.gradients(loss, out.hidden_states[:-1])
    plan = forward.plan(model.ours.spec, len(IDS) - 1, losses=True)
    whole, steps = model.work(plan, tokens=IDS[:-1], targets=IDS[1:])
    assert float(steps["mean_loss"].value[0]) == pytest.approx(float(loss.detach()), rel=1e-13)
    assert len(expected) == len(model.ours.weights) + 2
    error, address = furthest(whole, steps, expected)
    assert error < NEAR, address


@every_family
def test_gradients_of_the_last_positions_loss_are_the_librarys(family: str, tmp_path: Path) -> None:
    model = Family(family, tmp_path)
    logits = model.theirs(torch.tensor([IDS[:-1]]), use_cache=False).logits
    expected = model.gradients(F.cross_entropy(logits[0, -1:], torch.tensor(IDS[-1:])))
    plan = forward.plan(model.ours.spec, len(IDS) - 1, target=True)
    error, address = furthest(*model.work(plan, tokens=IDS[:-1], target=IDS[-1]), expected)
    assert error < NEAR, address


@every_family
def test_texts_side_by_side_are_the_librarys_padded_batch(family: str, tmp_path: Path) -> None:
    """Three texts of different lengths; the first two positions are a prompt and do not count."""
    model = Family(family, tmp_path)
    texts = [[3, 1, 4, 1, 5, 9], [2, 6, 5, 3], [5, 8, 9, 7, 9]]
    longest, pad, nothing = max(map(len, texts)), 0, -100  # torch leaves -100 out
    batch = torch.tensor([text + [pad] * (longest - len(text)) for text in texts])
    there = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in texts])
    labels = batch.masked_fill(there == 0, nothing)
    labels[:, :2] = nothing
    logits = model.theirs(batch, attention_mask=there, use_cache=False).logits
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    expected = model.gradients(loss)

    inputs = [text[:-1] for text in texts]
    of_text = [number for number, text in enumerate(inputs) for _token in text]
    plan = forward.plan(
        model.ours.spec,
        len(of_text),
        positions=[place for text in inputs for place in range(len(text))],
        mask=[[one == other for other in of_text] for one in of_text],
        losses=True,
    )
    whole, steps = model.work(
        plan,
        tokens=[token for text in inputs for token in text],
        targets=[token for text in texts for token in (UNCOUNTED, *text[2:])],
    )
    assert float(steps["mean_loss"].value[0]) == pytest.approx(float(loss.detach()), rel=1e-13)
    error, address = furthest(whole, steps, expected)
    assert error < NEAR, address
