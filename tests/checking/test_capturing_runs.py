"""Ways to run a model that captures must understand: packed texts, masks, caches, wrappers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from captured_port import IDS, Port, addresses
from torch import nn

import byhand
from byhand.capturing import capture, joined
from byhand.checking.matches import match
from byhand.checking.readers import read_claims
from byhand.errors import InputError, UsageError

PACKED = [[0, 1, 2, 0, 1, 2]]
BACK = np.tril(np.ones((6, 6), bool))


@pytest.fixture(params=["gpt2", "mistral"])
def port(request: pytest.FixtureRequest, tmp_path: Path) -> Port:
    return Port(request.param, tmp_path / "model", "eager")


# ------------------------------------------------------------------ who looks at whom


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("apart", [True, False])
def test_packed_texts_see_each_other_as_the_run_had_it(
    tmp_path: Path, attention: str, apart: bool
) -> None:
    """transformers keeps them apart without a mask and a cache, and else lets them look back."""
    port = Port("mistral", tmp_path / "model", attention)
    found = capture(port.theirs, IDS, position_ids=torch.tensor(PACKED), use_cache=not apart)
    assert found.segments is not None
    assert found.segments.tolist() == ([[0, 0, 0, 1, 1, 1]] if apart else [[0] * 6])
    found.save(tmp_path / "dump.safetensors")
    for source in (found, tmp_path / "dump.safetensors"):
        (claimed,) = port.matched(source)
        assert claimed.positions == (0, 1, 2, 0, 1, 2)
        port.assert_right(claimed)
        assert byhand.check(port.ours, source).follows


def test_positions_that_start_again_without_a_word_on_segments_are_refused(port: Port) -> None:
    found = capture(port.theirs, IDS, position_ids=torch.tensor(PACKED))
    dump = {**found.arrays, "input_ids": [IDS], "position_ids": PACKED}
    with pytest.raises(InputError, match="the positions start again") as caught:
        port.matched(dump)
    assert caught.value.hint is not None
    (claimed,) = port.matched({**dump, "segment_ids": [[0] * 6]})
    port.assert_right(claimed)


def test_positions_of_another_length_are_refused(port: Port) -> None:
    dump = {"input_ids": [IDS], "position_ids": [[0, 1, 2]], "logits": np.zeros((1, 6, 17))}
    with pytest.raises(InputError, match="positions do not fit the text"):
        port.matched(dump)


def holes() -> np.ndarray[Any, Any]:
    seen = BACK.copy()
    seen[4:, 1] = False
    return seen


def padded() -> np.ndarray[Any, Any]:
    seen = BACK.copy()
    seen[:, :2] = False
    return seen


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize(
    "seen", [holes(), np.ones((6, 6), bool), padded()], ids=["holes", "ahead", "padded"]
)
def test_a_mask_of_queries_and_keys_is_honoured(
    tmp_path: Path, attention: str, seen: np.ndarray[Any, Any]
) -> None:
    """It stands in place of a block's own, its sliding window and its looking back alone."""
    port = Port("mistral", tmp_path / "model", attention)
    lowest = torch.finfo(torch.float32).min
    given = torch.where(torch.tensor(seen), 0.0, lowest)[None, None]
    found = capture(port.theirs, IDS, attention_mask=given)
    found.save(tmp_path / "dump.safetensors")
    for source in (found, tmp_path / "dump.safetensors"):
        (claimed,) = port.matched(source)
        port.assert_right(claimed)
        assert byhand.check(port.ours, source).follows


def test_a_mask_that_cannot_be_honoured_is_refused(port: Port) -> None:
    bias = torch.zeros(1, 1, 6, 6)
    bias[..., 2, 0] = -0.5
    with pytest.raises(InputError, match="adds numbers to the scores"):
        capture(port.theirs, IDS, attention_mask=bias)
    each = torch.zeros(1, 3, 6, 6)
    each[:, 1, 2, 0] = -torch.inf
    with pytest.raises(InputError, match="not the same for all heads"):
        capture(port.theirs, IDS, attention_mask=each)
    with pytest.raises(UsageError, match="cannot be recorded"):
        capture(port.theirs, IDS, attention_mask={"full_attention": bias})
    dump = {"input_ids": [IDS], "attention_mask": np.ones((1, 1, 4, 4), int), "logits": [[0.0]]}
    with pytest.raises(InputError, match="the mask does not fit the text"):
        port.matched(dump)


def test_a_mask_of_truths_hides_nothing_from_eager_attention(port: Port) -> None:
    with pytest.warns(UserWarning, match="hides nothing"):
        found = capture(port.theirs, IDS, attention_mask=torch.tensor(holes())[None, None])
    assert not byhand.check(port.ours, found).follows


# ------------------------------------------------------------------ caches


@pytest.mark.parametrize("kind", ["dynamic", "static"])
@pytest.mark.parametrize("cuts", [(0, 6), (0, 4, 5, 6), (0, 2, 6)])
def test_caches_of_every_kind_are_read(port: Port, kind: str, cuts: tuple[int, ...]) -> None:
    config = port.theirs.config
    cache: Any = (
        transformers.DynamicCache(config=config)
        if kind == "dynamic"
        else transformers.StaticCache(config=config, max_cache_len=8)
    )
    pieces = [
        capture(port.theirs, IDS[start:stop], past_key_values=cache)
        for start, stop in pairwise(cuts)
    ]
    (claimed,) = port.matched(joined(pieces))
    assert {"block.1.attn.weights", "block.1.attn.v"} <= addresses(claimed)
    port.assert_right(claimed)


def test_pieces_with_a_mask_of_queries_and_keys_are_joined(tmp_path: Path) -> None:
    port = Port("llama", tmp_path / "model", "sdpa")
    cache, seen = transformers.DynamicCache(config=port.theirs.config), torch.tensor(holes())
    pieces = [
        capture(
            port.theirs, IDS[start:stop], past_key_values=cache,
            attention_mask=seen[None, None, start:stop, :stop],
        )
        for start, stop in pairwise((0, 4, 6))
    ]  # fmt: skip
    (claimed,) = port.matched(joined(pieces))
    port.assert_right(claimed)
    assert claimed.masks == (tuple(map(tuple, holes().tolist())),) * 2


def test_joining_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to check"):
        joined([])


# ------------------------------------------------------------------ wrappers


class Around(nn.Module):
    """Somebody's own class around a model, with a module of its own beside it."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.llm = model
        self.norm = nn.LayerNorm(17)

    def forward(self, ids: torch.Tensor) -> Any:
        result = self.llm(ids)
        self.norm(result.logits)
        return result


def compiled(model: Any) -> Any:
    return torch.compile(model, backend="eager")


def layer_compiled(model: Any) -> Any:
    model.transformer.h[0] = compiled(model.transformer.h[0])
    return model


@pytest.mark.filterwarnings("ignore:the model is compiled")
@pytest.mark.parametrize(
    "wrapped",
    [nn.DataParallel, Around, compiled, layer_compiled, lambda model: Around(compiled(model))],
    ids=["parallel", "own class", "compiled", "layer compiled", "both"],
)
def test_what_is_wrapped_around_a_model_is_seen_through(tmp_path: Path, wrapped: Any) -> None:
    port = Port("gpt2", tmp_path / "model", "eager")
    plain = capture(port.theirs, IDS)
    found = capture(wrapped(port.theirs), torch.tensor([IDS]))
    assert set(found.arrays) == set(plain.arrays)
    for name, array in plain.arrays.items():
        assert array.tobytes() == found.arrays[name].tobytes(), name
    assert (found.precision, found.attention) == ("transformers:float32", "eager")


def test_a_compiled_model_is_said_to_run_without_that(tmp_path: Path) -> None:
    port = Port("gpt2", tmp_path / "model", "eager")
    with pytest.warns(UserWarning, match="the model is compiled"):
        capture(compiled(port.theirs), IDS)


def test_two_models_inside_one_are_refused(tmp_path: Path) -> None:
    port = Port("gpt2", tmp_path / "model", "eager")
    with pytest.raises(UsageError, match="more than one model") as caught:
        capture(nn.ModuleDict({"actor": port.theirs, "ref": Port(
            "gpt2", tmp_path / "other", "eager").theirs}), IDS)  # fmt: skip
    assert caught.value.found == "ref, actor"


def test_few_modules_with_a_known_name_are_said(journey: Any) -> None:
    class Few(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wte, self.first, self.second = nn.Embedding(6, 4), nn.Linear(4, 4), nn.Linear(4, 6)

        def forward(self, ids: torch.Tensor) -> Any:
            return self.second(self.first(self.wte(ids)))

    ids = torch.tensor([[0, 1, 2, 3]])
    said = "only 1 of 3 modules have a known name; unknown are first, second"
    with pytest.warns(UserWarning, match=said):
        found = capture(Few(), ids)
    (claimed,) = match(read_claims(found), journey)
    assert addresses(claimed) == {"embed.token"}
    capture(Few(), ids, names={"second": "logits"})  # whoever says which is not told


# ------------------------------------------------------------------ autocast


@pytest.mark.parametrize("format", ["bfloat16", "float16"])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_run_under_autocast_follows(tmp_path: Path, attention: str, format: str) -> None:
    port = Port("gpt_neox", tmp_path / "model", attention)
    with torch.autocast("cpu", getattr(torch, format)):
        found = capture(port.theirs, IDS)
    assert found.precision == f"transformers:autocast:{format}"
    assert byhand.check(port.ours, found).follows
    dump = {**found.arrays, "input_ids": [IDS]}  # somebody's own hooks
    marking = byhand.check(port.ours, dump)
    assert {text.precision for text in marking.texts} == {f"autocast:{format}"}
    assert marking.follows
    wrong = dump["gpt_neox.layers.1.mlp.dense_h_to_4h"] * 1.25
    marking = byhand.check(port.ours, {**dump, "gpt_neox.layers.1.mlp.dense_h_to_4h": wrong})
    assert marking.first_error is not None
    assert marking.first_error.claim.address == "block.1.mlp.hidden"


def test_a_format_that_has_no_precision_is_not_named(tmp_path: Path) -> None:
    port = Port("gpt2", tmp_path / "model", "eager")
    port.theirs.register_parameter("packed", nn.Parameter(torch.zeros(2, dtype=torch.uint8), False))
    assert capture(port.theirs, IDS).precision == "transformers:float32"
