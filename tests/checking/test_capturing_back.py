"""`byhand.capture(…, backward=True)`: what flows back through a torch model, and a step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.alarms.models import recompute_layers
from captured_port import IDS, Port
from torch import nn

import byhand
from byhand.capturing import Capture, capture
from byhand.errors import UsageError

ROWS = [IDS, IDS[::-1]]
MODULES = {
    "gpt2": ("transformer.h.0", "transformer.h.1.mlp.act", "transformer.wte"),
    "llama": ("model.layers.0", "model.layers.1.self_attn.k_proj", "model.embed_tokens"),
    "gpt_neox": ("gpt_neox.layers.0", "gpt_neox.layers.1.mlp.act", "gpt_neox.embed_in"),
}


@pytest.fixture(params=MODULES)
def port(request: pytest.FixtureRequest, tmp_path: Path) -> Port:
    made = Port(request.param, tmp_path / "model", "eager")
    made.theirs.modules_of_family = MODULES[request.param]
    return made


def by_torch(model: Any, rows: list[list[int]]) -> dict[str, Any]:
    """The gradients as torch gives them for the library's own loss."""
    outputs: dict[str, Any] = {}
    handles = [
        model.get_submodule(name).register_forward_hook(
            lambda _module, _args, output, name=name: outputs.__setitem__(name, _first(output))
        )
        for name in model.modules_of_family
    ]
    ids = torch.tensor(rows)
    result = model.eval()(ids, labels=ids)
    for output in outputs.values():
        output.retain_grad()
    result.loss.backward()
    for handle in handles:
        handle.remove()
    found = {f"grad.{name}": output.grad for name, output in outputs.items()}
    found |= {f"{name}.grad": each.grad for name, each in model.named_parameters()}
    model.zero_grad()
    return found


def _first(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output


def assert_same(found: Capture, expected: dict[str, Any], close: float = 1e-5) -> None:
    for name, grad in expected.items():
        far = np.abs(found.arrays[name] - grad.numpy()).max() / np.abs(grad.numpy()).max()
        assert far < close, name


def test_inner_gradients_and_those_of_parameters_are_recorded(port: Port) -> None:
    found = capture(port.theirs, ROWS, backward=True)
    assert_same(found, by_torch(port.theirs, ROWS))
    assert found.arrays["grad.block.0.attn.weights"].shape == (2, 3, 6, 6)
    assert {"grad.lm_head", "grad.past_key_values.1.key"} <= set(found.arrays)
    forward = capture(port.theirs, ROWS)
    assert all((found.arrays[name] == x).all() for name, x in forward.arrays.items())


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_checkpointing_works_out_again_is_recorded_once(port: Port, reentrant: bool) -> None:
    plain = capture(port.theirs, ROWS, backward=True, use_cache=False)
    recompute_layers(port.theirs, use_reentrant=reentrant)
    port.theirs.train()
    found = capture(port.theirs, ROWS, backward=True, use_cache=False)
    assert found.arrays.keys() == plain.arrays.keys()
    assert found.left_out == plain.left_out
    for name, array in plain.arrays.items():
        np.testing.assert_allclose(found.arrays[name], array, atol=1e-6, err_msg=name)


def test_gradients_of_parts_of_a_batch_add_up_to_those_of_the_whole(port: Port) -> None:
    rows = [*ROWS, [5] * 6, [1, 2] * 3]
    mask = torch.ones(4, 6, dtype=torch.long)
    mask[2, 4:] = 0  # the parts have different numbers of tokens that count
    whole = capture(port.theirs, rows, backward=True, attention_mask=mask)
    parts = capture(port.theirs, rows, backward=True, attention_mask=mask, accumulate=2)
    assert whole.targets is not None
    assert (whole.targets == -1).sum() == 6  # the last of each row, and two of padding
    for name, array in whole.arrays.items():
        np.testing.assert_allclose(parts.arrays[name], array, atol=2e-5, err_msg=name)
    one = capture(port.theirs, IDS, backward=True)
    assert ("grad.transformer.wpe" in one.arrays) == ("transformer.wpe" in one.arrays)
    assert "grad.transformer.wpe" not in whole.arrays  # one row for the batch: its sum
    assert parts.tokens is not None
    assert parts.tokens.tolist() == rows
    with pytest.raises(UsageError, match="cannot be split evenly"):
        capture(port.theirs, rows, backward=True, accumulate=3)


def test_gradients_that_are_there_do_not_count_and_stay(port: Port) -> None:
    for parameter in port.theirs.parameters():
        parameter.grad = torch.full_like(parameter, 7.0)
    before = {name: each.detach().clone() for name, each in port.theirs.named_parameters()}
    optimizer = torch.optim.AdamW(port.theirs.parameters())
    found = capture(port.theirs, ROWS, backward=True, optimizer=optimizer, clip=1.0)
    for name, parameter in port.theirs.named_parameters():
        assert (parameter.grad == 7.0).all()
        assert (parameter == before[name]).all()
    assert not optimizer.state
    assert not any(module._forward_hooks for module in port.theirs.modules())
    port.theirs.zero_grad()
    assert_same(found, by_torch(port.theirs, ROWS))


def test_frozen_parameters_have_no_gradient_and_shared_ones_have_one(tmp_path: Path) -> None:
    port = Port("gpt2", tmp_path / "model", "sdpa")
    for name, parameter in port.theirs.named_parameters():
        parameter.requires_grad = ".h.1." in name or "ln_f" in name
    found = capture(port.theirs, ROWS, backward=True)
    assert {"transformer.h.1.ln_1.weight.grad", "grad.transformer.h.1"} <= set(found.arrays)
    absent = {
        "transformer.h.0.ln_1.weight.grad",
        "transformer.wte.weight.grad",
        "grad.transformer.h.0",
    }
    assert not absent & set(found.arrays)
    port.theirs.requires_grad_(True)
    found = capture(port.theirs, ROWS, backward=True)
    assert "transformer.wte.weight.grad" in found.arrays
    assert "lm_head.weight.grad" not in found.arrays  # tied: the same parameter
    port.theirs.requires_grad_(False)
    with pytest.raises(UsageError, match="no gradient flows back"):
        capture(port.theirs, ROWS, backward=True)


def test_a_step_is_recorded_with_the_state_before_it_and_after(port: Port) -> None:
    model = port.theirs
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    first = capture(model, ROWS, optimizer=optimizer)
    assert not any(name.startswith("before.") for name in first.arrays)
    said = "adamw lr=0.01 betas=0.9,0.999 eps=1e-08 weight_decay=0.1 decays=all step="
    assert first.optimizer == f"{said}1"
    by_torch(model, ROWS)  # their own first step
    model(torch.tensor(ROWS), labels=torch.tensor(ROWS)).loss.backward()
    optimizer.step()
    model.zero_grad()
    name, parameter = next(iter(model.named_parameters()))
    found = capture(model, ROWS, optimizer=optimizer, clip=0.01)
    state = optimizer.state[parameter]["exp_avg"]
    grad, rest = found.arrays[f"{name}.grad"], 0.01 / (found.arrays["update.norm"] + 1e-6)
    np.testing.assert_array_equal(found.arrays[f"before.{name}.exp_avg"], state.numpy())
    new = 0.9 * state.numpy() + 0.1 * grad * rest
    np.testing.assert_allclose(found.arrays[f"{name}.exp_avg"], new, rtol=1e-5, atol=1e-9)
    assert (first.arrays[f"updated.{name}"] == parameter.detach().numpy()).mean() > 0.9
    assert found.optimizer == f"{said}2 clip=0.01"


@pytest.mark.parametrize("groups", [1, 2])
def test_a_captured_step_is_right_in_every_line_and_so_is_its_file(
    port: Port, tmp_path: Path, groups: int
) -> None:
    vectors = [each for each in port.theirs.parameters() if each.ndim < 2]
    matrices = [each for each in port.theirs.parameters() if each.ndim > 1]
    decays = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    everything = [{"params": [*matrices, *vectors], "weight_decay": 0.1}]  # biases decay as well
    optimizer = torch.optim.AdamW(decays if groups == 2 else everything, lr=0.01)
    found = capture(port.theirs, ROWS, optimizer=optimizer, clip=1.0)
    found.save(tmp_path / "step.safetensors")
    for claims in (found, tmp_path / "step.safetensors"):
        marking = byhand.check(port.ours, claims)
        assert not marking.unmatched
        assert {line.verdict.value for line in marking} == {"right"}
        judged = {line.claim.address for line in marking}
        assert {"grad.logits", "grad.weight.embed.token", "grad.block.0.attn.weights"} <= judged
        assert {"update.norm", "update.m.embed.token", "update.weight.final.norm.gain"} <= judged


def test_a_wrong_gradient_of_a_capture_is_found_and_named(tmp_path: Path) -> None:
    port = Port("llama", tmp_path / "model", "eager")
    found = capture(port.theirs, ROWS, backward=True)
    name = "model.layers.1.mlp.up_proj.weight.grad"
    wrong = replace(found, arrays={**found.arrays, name: 2 * found.arrays[name]})
    first = byhand.check(port.ours, wrong).first_error
    assert first is not None
    assert (first.claim.name, first.suspects[0].kind) == (name, "accumulated-twice")


def test_autocast_gives_gradients_in_both_formats(tmp_path: Path) -> None:
    port = Port("llama", tmp_path / "model", "sdpa")
    with torch.autocast("cpu", torch.bfloat16):
        found = capture(port.theirs, ROWS, backward=True)
    assert found.precision == "transformers:autocast:bfloat16"
    assert str(found.arrays["grad.model.layers.0.mlp.up_proj"].dtype) == "bfloat16"
    assert found.arrays["model.layers.0.mlp.up_proj.weight.grad"].dtype == np.float32


class Own(nn.Module):
    """A module of one's own, with a part that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.twice, self.head = nn.Embedding(6, 4), nn.Linear(4, 4), nn.Linear(4, 6)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.twice(self.twice(self.table(ids))))


def test_any_module_may_have_a_loss_of_its_own(tmp_path: Path) -> None:
    names = {"table": "embed.token", "twice": "block.0.mlp.out", "head": "logits"}
    model, ids = Own(), torch.tensor([[0, 1, 2]])
    found = capture(
        model, ids, names=names, backward=True, loss=lambda logits: logits.square().sum()
    )
    expected = 2 * found.arrays["logits"]
    np.testing.assert_allclose(found.arrays["grad.logits"], expected, rtol=1e-6)
    assert "grad.block.0.mlp.out" not in found.arrays
    assert found.left_out["grad.block.0.mlp.out"] == "it was called more than once"
    found.save(tmp_path / "dump.safetensors")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True), "SGD nesterov"),
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5), "SGD dampening"),
        (lambda p: torch.optim.AdamW(p, amsgrad=True), "AdamW amsgrad"),
        (lambda p: torch.optim.Adam(p, maximize=True), "Adam maximize"),
        (lambda p: torch.optim.RMSprop(p), "RMSprop"),
        (lambda p: torch.optim.SGD([{"params": p[:2]}, {"params": p[2:], "lr": 0.2}], lr=0.1),
         "0.1, 0.2"),
        (lambda p: torch.optim.AdamW([{"params": p[:2]}, {"params": p[2:], "weight_decay": 0.3}]),
         "0.01, 0.3"),
    ],
)  # fmt: skip
def test_an_optimizer_of_another_rule_is_refused(made: Any, said: str, tmp_path: Path) -> None:
    port = Port("gpt2", tmp_path / "model", "eager")
    with pytest.raises(UsageError) as refused:
        capture(port.theirs, ROWS, optimizer=made(list(port.theirs.parameters())))
    assert refused.value.found == said


def test_adam_with_a_decoupled_decay_is_adamw(tmp_path: Path) -> None:
    port = Port("gpt2", tmp_path / "model", "eager")
    optimizer = torch.optim.Adam(
        port.theirs.parameters(), lr=0.01, weight_decay=0.1, decoupled_weight_decay=True
    )
    found = capture(port.theirs, ROWS, optimizer=optimizer)
    assert found.optimizer is not None
    assert found.optimizer.startswith("adamw lr=0.01 betas=0.9,0.999 eps=1e-08 weight_decay=0.1")
    assert byhand.check(port.ours, found).follows
