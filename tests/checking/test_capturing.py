"""`byhand.capture`: one call records what a torch model works out inside."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from captured_port import IDS, Port, addresses
from torch import nn

from byhand.capturing import Capture, capture, joined
from byhand.checking.matches import match
from byhand.checking.readers import read_claims
from byhand.errors import InputError, UsageError
from byhand.model import Model

FAMILIES = ("gpt2", "llama", "qwen3", "gpt_neox")


@pytest.fixture(params=FAMILIES)
def port(request: pytest.FixtureRequest, tmp_path: Path) -> Port:
    return Port(request.param, tmp_path / "model", "eager")


def test_one_call_records_every_step_that_has_a_module(port: Port) -> None:
    found = capture(port.theirs, IDS)
    (claimed,) = port.matched(found)
    port.assert_right(claimed)
    assert claimed.tokens == tuple(IDS)
    for part in ("attn.norm.out", "attn.weights", "attn.out", "mlp.out", "mlp.act", "mlp.add"):
        assert {f"block.0.{part}", f"block.1.{part}"} <= addresses(claimed)
    assert {"embed.token", "final.norm.out", "logits"} <= addresses(claimed)
    assert (found.dtype, found.attention) == ("float32", "eager")
    assert claimed.precision == "transformers:float32"


def test_keys_after_rope_come_from_the_cache(port: Port) -> None:
    (claimed,) = port.matched(capture(port.theirs, IDS))
    rotated = port.ours.spec.blocks[0].attention
    assert rotated is not None
    wanted = "block.1.attn.k_rotated" if rotated.rotary else "block.1.attn.k"
    assert {wanted, "block.1.attn.v"} <= addresses(claimed)


def test_without_a_cache_and_without_eager_attention_the_rest_is_recorded(tmp_path: Path) -> None:
    port = Port("llama", tmp_path / "model", "sdpa")
    found = capture(port.theirs, IDS, use_cache=False)
    (claimed,) = port.matched(found)
    port.assert_right(claimed)
    assert found.attention == "sdpa"
    assert not {"block.0.attn.weights", "block.0.attn.k_rotated"} & addresses(claimed)


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_batches_are_texts_without_padding(port: Port, side: str, positions: bool) -> None:
    rows = [IDS, [4, 5, 1]]
    ids, mask = np.zeros((2, 6), int), np.zeros((2, 6), int)
    for place, row in enumerate(rows):
        there = slice(6 - len(row), 6) if side == "left" else slice(len(row))
        ids[place, there], mask[place, there] = row, 1
    given = {"attention_mask": torch.tensor(mask)}
    if positions:
        given["position_ids"] = torch.tensor(np.clip(np.cumsum(mask, 1) - 1, 0, None))
    found = port.matched(capture(port.theirs, ids, **given))
    for claimed, row in zip(found, rows, strict=True):
        assert claimed.tokens == tuple(row)
        port.assert_right(claimed)
    shifted = side == "left" and not positions
    assert found[1].positions == ((3, 4, 5) if shifted else None)
    assert found[1].padding == ((3, 0) if side == "left" else (0, 3))


def test_the_pieces_of_a_cached_run_make_one_capture(port: Port) -> None:
    pieces, past = [], None
    for start, stop in ((0, 4), (4, 5), (5, 6)):
        results: list[Any] = []
        handle = port.theirs.register_forward_hook(lambda _m, _a, out, to=results: to.append(out))
        pieces.append(capture(port.theirs, IDS[start:stop], use_cache=True, past_key_values=past))
        handle.remove()
        past = results[0].past_key_values
    (claimed,) = port.matched(joined(pieces))
    assert claimed.tokens == tuple(IDS)
    assert "block.0.attn.weights" in addresses(claimed)
    port.assert_right(claimed)


@pytest.mark.parametrize("format", ["float32", "bfloat16", "float16"])
def test_a_saved_capture_is_read_back_as_it_was(port: Port, tmp_path: Path, format: str) -> None:
    found = capture(port.theirs.to(getattr(torch, format)), torch.tensor([IDS]))
    found.save(tmp_path / "dump.safetensors")
    (first,), (again,) = port.matched(found), port.matched(tmp_path / "dump.safetensors")
    assert first.precision == again.precision == f"transformers:{format}"
    assert {claim.format for claim in again.claims} == {format}
    assert first.tokens == again.tokens
    assert len(first.claims) == len(again.claims) > 20
    for one, other in zip(first.claims, again.claims, strict=True):
        assert one.address == other.address
        assert one.values.tobytes() == other.values.tobytes()
    port.assert_right(again, close=3e-4 if format == "float32" else 0.5)


def test_nothing_is_left_behind_by_a_write_that_fails(port: Port, tmp_path: Path) -> None:
    found = capture(port.theirs, IDS)
    with pytest.raises(InputError, match="cannot be written"):
        found.save(tmp_path / "nowhere" / "dump.safetensors")
    with pytest.raises(UsageError, match="saved as safetensors"):
        found.save(tmp_path / "dump.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_model_is_as_it_was_afterwards(port: Port) -> None:
    port.theirs.train()
    port.theirs.lm_head.eval()
    first, again = (capture(port.theirs, IDS) for _twice in range(2))
    for name, array in first.arrays.items():
        assert array.tobytes() == again.arrays[name].tobytes(), name  # dropout was off
    assert port.theirs.training
    assert not port.theirs.lm_head.training
    assert not any(module._forward_hooks for module in port.theirs.modules())


def test_weights_have_their_names_in_a_checkpoint_too(port: Port) -> None:
    dump = dict(port.theirs.state_dict())
    (claimed,) = port.matched({**dump, "input_ids": [IDS]})
    assert not claimed.unmatched
    for claim in claimed.claims:
        ours = port.ours.weights[claim.address.removeprefix("weight.")]
        assert claim.values.tolist() == ours.data.tolist()


# ------------------------------------------------------------------ any module


class Own(nn.Module):
    """A port with names of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(6, 4)
        self.ff = nn.Linear(4, 4)
        self.twice = nn.ReLU()
        self.head = nn.Linear(4, 6)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        hidden = self.ff(x)
        found: torch.Tensor = self.head(self.twice(hidden) + self.twice(x))
        hidden.zero_()  # a port may write over what it gave
        return found


NAMES = {"table": "embed.token", "ff": "block.0.mlp.out", "head": "logits"}


def test_a_map_of_names_says_what_a_module_gives(journey: Model) -> None:
    module = Own()
    ids = torch.tensor([0, 1, 2, 3])
    found = capture(module, ids, names=NAMES)
    assert found.precision == "float32"
    (claimed,) = match(read_claims(found), journey)
    assert addresses(claimed) == set(NAMES.values())
    for claim in claimed.claims:
        if claim.address == "block.0.mlp.out":
            expected = module.ff(module.table(ids)).detach().numpy()
            np.testing.assert_array_equal(claim.values, expected)  # before it was written over


def test_a_module_that_is_called_twice_is_left_out_and_said_so() -> None:
    found = capture(Own(), torch.tensor([0, 1]), names={**NAMES, "twice": "block.0.mlp.act"})
    assert "block.0.mlp.act" not in found.arrays
    assert found.left_out == {"block.0.mlp.act": "it was called more than once"}


def test_the_whole_model_can_have_a_name() -> None:
    assert "logits" in capture(Own(), torch.tensor([0, 1]), names={"": "logits"}).arrays


@pytest.mark.parametrize(
    ("model", "names", "says"),
    [
        (Own(), {"fff": "block.0.mlp.out"}, "did you mean ff"),
        (Own(), None, "no module of this model has a name that is known"),
        (object(), None, "this is not a torch module"),
    ],
)
def test_what_cannot_be_captured_is_refused(model: Any, names: Any, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        capture(model, torch.tensor([0, 1]), names=names)
    assert says in str(caught.value)


def test_hooks_of_transformer_lens_are_modules_that_are_known(journey: Model) -> None:
    """TransformerLens hands every value through a module that does nothing: a HookPoint."""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hook_q = nn.Identity()
            self.hook_pattern = nn.Identity()

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attn = Attention()

    class Lens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hook_embed = nn.Identity()
            self.blocks = nn.ModuleList([Block()])

        def forward(self, ids: torch.Tensor) -> None:
            self.hook_embed(torch.ones(1, 4, 4))
            attention: Any = self.blocks[0].attn
            attention.hook_q(torch.ones(1, 4, 1, 4))
            attention.hook_pattern(torch.ones(1, 1, 4, 4))

    (claimed,) = match(read_claims(capture(Lens(), torch.tensor([[0, 1, 2, 3]]))), journey)
    assert addresses(claimed) == {"embed.token", "block.0.attn.q", "block.0.attn.weights"}


def test_a_capture_says_what_it_is(port: Port) -> None:
    found = capture(port.theirs, IDS)
    assert isinstance(found, Capture)
    assert repr(found) == f"<{found}: {len(found.arrays)} values, float32>"


def test_a_run_that_goes_on_from_a_cache_is_not_judged_by_itself(
    port: Port, tmp_path: Path
) -> None:
    ids = torch.tensor([IDS])
    first = capture(port.theirs, ids[:, :4], use_cache=True)
    with torch.no_grad():
        cache = port.theirs.eval()(ids[:, :4], use_cache=True).past_key_values
    second = capture(port.theirs, ids[:, 4:], past_key_values=cache, use_cache=True)
    for used in (second.sheet, lambda: second.save(tmp_path / "dump.safetensors")):
        with pytest.raises(UsageError, match="goes on from a cache") as caught:
            used()
        assert caught.value.found == "positions from 4 on"
    (claimed,) = port.matched(joined([first, second]))
    port.assert_right(claimed)


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError, match=r"not installed(.|\n)*byhand\[train\]"):
        capture(None)
