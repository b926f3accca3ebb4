"""The golden file that comes with byhand: every number of it is proven again, by others."""

from __future__ import annotations

from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from flint import arb, ctx

import byhand
from byhand import evaluate, forward
from byhand.errors import AddressError
from byhand.golden import SavedTrace, save
from byhand.golden.reading import SHIPPED, shipped_names
from byhand.model import Model
from byhand.numbers.exact import Exact
from oracles.arb_pass import BITS, ArbPass
from oracles.torch_pass import TorchPass, float_tensors

ROOT = Path(__file__).parent.parent.parent
NAME = "minigpt-init"


@pytest.fixture(scope="module")
def model() -> Model:
    return byhand.open_model(NAME)


@pytest.fixture(scope="module")
def shipped() -> SavedTrace:
    return byhand.open_trace(NAME)


def test_it_is_the_whole_pass_over_the_models_own_eight_tokens(
    shipped: SavedTrace, model: Model
) -> None:
    assert (shipped.model, shipped.numbers, shipped.text) == (NAME, "exact", model.text)
    assert len(shipped.tokens) == 8
    plan = forward.plan(model.spec, 8)
    assert [(s.address, s.op, s.axes, s.shape) for s in shipped.values()] == [
        (s.address, s.op, s.axes, s.shape) for s in plan
    ]
    assert all(step.values is not None for step in shipped.values())
    assert shipped.next is not None
    assert all(found["proven"] for found in shipped.next)
    assert "named" in {step.register for step in shipped.values()}


def test_every_number_is_the_float_nearest_to_arbs_ball(shipped: SavedTrace, model: Model) -> None:
    """Both ends of a ball of 400 bits round to the number: so does the true value between them."""
    oracle = ArbPass(forward.plan(model.spec, 8), model.weights, shipped.tokens)
    compared = 0
    for address, balls in oracle.values.items():
        step = shipped[address]
        masked = -np.inf if step.op == "scores" else 0.0
        expected = np.empty(step.shape)
        for index, ball in balls.items():
            expected[index] = masked if ball is None else nearest_to(ball)
            compared += ball is not None
        assert np.array_equal(expected, step.values), address
    assert compared == 28_344


def nearest_to(ball: arb) -> float:
    with ctx.workprec(BITS):  # the ends, too, are rounded to the precision at hand
        low, high = (float(fraction(end)) for end in (ball.lower(), ball.upper()))
    assert low == high
    return low


def fraction(end: arb) -> Fraction:
    mantissa, exponent = end.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def test_a_float64_pass_of_torch_agrees_to_twelve_digits(shipped: SavedTrace, model: Model) -> None:
    found = torch_steps(model, shipped.tokens)
    for step in shipped.values():
        if step.op != "given":
            assert torch.allclose(
                found[step.address], torch.tensor(step.values), rtol=1e-12, atol=1e-12
            ), step.address


def torch_steps(model: Model, tokens: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """Every step in torch: what the oracle keeps, and the lines between, from what it keeps."""
    oracle = TorchPass(model.spec, model.weights, tokens, target=0)
    found, weight = dict(oracle.found), float_tensors(model.weights)

    def norm(at: str, x: torch.Tensor) -> None:
        found[f"{at}.mean"] = x.mean(-1)
        found[f"{at}.centered"] = x - x.mean(-1, keepdim=True)
        found[f"{at}.variance"] = x.var(-1, unbiased=False)
        found[f"{at}.std"] = (x.var(-1, unbiased=False) + eps).sqrt()
        found[f"{at}.normalized"] = F.layer_norm(x, x.shape[-1:], eps=eps)

    def heads(x: torch.Tensor, name: str) -> torch.Tensor:
        matrix = weight[name] if model.spec.layout == "in_out" else weight[name].T
        return (x @ matrix).reshape(len(tokens), 4, -1).transpose(0, 1)

    eps = float(model.spec.final_norm.eps)
    found["embed.token"] = found["stream.0"]
    for layer in (0, 1):
        attn, mlp = f"block.{layer}.attn", f"block.{layer}.mlp"
        norm(f"{attn}.norm", found[f"stream.{layer}"])
        for name in "qkv":
            found[f"{attn}.{name}"] = heads(found[f"{attn}.norm.out"], f"{attn}.{name}")
        found[f"{attn}.add"] = found[f"stream.{layer}"] + found[f"{attn}.out"]
        norm(f"{mlp}.norm", found[f"{attn}.add"])
        matrix = weight[f"{mlp}.hidden"]
        matrix = matrix.T if model.spec.layout == "in_out" else matrix
        bias = weight[f"{mlp}.hidden_bias"]
        found[f"{mlp}.hidden"] = F.linear(found[f"{mlp}.norm.out"], matrix, bias)
        found[f"{mlp}.add"] = found[f"stream.{layer + 1}"]
    norm("final.norm", found["stream.2"])
    return found


def test_the_first_steps_are_written_again_with_the_same_bytes(
    shipped: SavedTrace, model: Model, tmp_path: Path
) -> None:
    trace = evaluate.trace(model, None, Exact(), only=["embed", "block.0.attn.norm"])
    save(trace, tmp_path / "again", exact_text=False)
    again = byhand.open_trace(tmp_path / "again")
    assert len(again.steps) == 7
    for step in again.values():
        assert step.values is not None
        assert step.values.tobytes() == shipped[step.address].values.tobytes()
    lines = (SHIPPED / NAME / "manifest.json").read_text("utf-8").splitlines()
    for line in (tmp_path / "again" / "manifest.json").read_text("utf-8").splitlines():
        if '"address"' in line:
            assert line.rstrip(",") in {found.rstrip(",") for found in lines}


def test_there_is_no_text_of_the_values_and_it_says_so(shipped: SavedTrace) -> None:
    assert shipped.manifest["exact"] is None
    assert shipped.letters == {}
    assert shipped["logits"].exact is None
    with pytest.raises(AddressError, match="logits is saved in floats alone"):
        shipped.exact("logits[0,0]")
    assert shipped.next is not None
    assert shipped.next[0]["margin"] == {"value": None, "decimal": "0.0065222661"}


def test_what_the_tool_writes_is_what_is_shipped() -> None:
    tool = the_tool()
    assert tool.FOLDER == SHIPPED
    assert tool.SHIPPED == shipped_names() == (NAME,)


def the_tool() -> ModuleType:
    spec = spec_from_file_location("golden_tool", ROOT / "tools" / "golden.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_folder_of_the_same_name_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert byhand.open_trace(NAME).folder == SHIPPED / NAME
    byhand.trace("tiny", "a").save(NAME)
    assert byhand.open_trace(NAME).model == "tiny"
