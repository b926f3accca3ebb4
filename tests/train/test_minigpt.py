"""MiniGPT is locked: what it computes cannot drift."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import byhand
from byhand.errors import InputError
from byhand.evaluate import trace
from byhand.models import open_spec
from byhand.numbers.floats import Floats
from byhand.train import minigpt


def test_it_computes_what_the_built_in_model_computes() -> None:
    model = byhand.open_model("minigpt-init")
    ids = model.vocabulary.encode(model.text or "")
    logits = byhand.MiniGPT(format="float64")(torch.tensor([ids]))[0].detach().numpy()
    expected = trace(model, numbers=Floats("float64"), only=["logits"])["logits"].array
    assert abs(logits - expected).max() < 1e-14


def test_every_change_of_what_is_computed_changes_the_digest() -> None:
    spec = open_spec("minigpt-init")
    block = spec.blocks[0]
    assert block.attention is not None
    assert block.mlp is not None
    others = [
        replace(spec, blocks=(block,)),
        replace(spec, context=33),
        replace(spec, tied=False),
        replace(spec, blocks=(replace(block, norm_place="post"),) * 2),
        replace(spec, blocks=(replace(block, mlp=replace(block.mlp, activation="gelu_tanh")),) * 2),
        replace(spec, blocks=(replace(block, attention=replace(block.attention, scale=None)),) * 2),
    ]
    digests = {minigpt.digest_of(other) for other in (spec, *others)}
    assert len(digests) == 7
    assert minigpt.digest_of(replace(spec, name="another name")) == minigpt.LOCKED


def test_another_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minigpt, "LOCKED", "0" * 64)
    with pytest.raises(InputError, match="MiniGPT is locked") as caught:
        byhand.MiniGPT()
    assert caught.value.expected == "0" * 64
