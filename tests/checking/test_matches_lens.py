"""Where TransformerLens hooks its norms: before gain and bias or after them, by its version."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.checking.matches import match
from byhand.checking.readers import read_claims
from byhand.model import Model
from byhand.parameters import parameters
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights

TEXT = "3 1 4 1 5"
NORMS = {"attn.norm": "ln1", "mlp.norm": "ln2"}


def model(**norm: Any) -> Model:
    settings = NormSpec("layernorm", Fraction(1, 1000), **norm)
    block = BlockSpec(AttentionSpec(2, 4, 2), MlpSpec(7, "silu"), settings, settings)
    spec = ModelSpec("case", 11, 6, 8, (block,), final_norm=settings)
    chance = np.random.default_rng(3)
    draw = {p.name: chance.standard_normal(p.shape).astype(np.float32) for p in parameters(spec)}
    weights = {name: Tensor(name, data) for name, data in draw.items()}
    return Model(spec, Weights(weights), Ids(11))


def dump(of: Model, part: str) -> dict[str, Any]:
    """The hooks of the norms, each with this part of its norm."""
    trace = byhand.trace(of, TEXT, float="float32")
    found = {
        f"blocks.0.{hooks}.hook_normalized": trace[f"block.0.{at}.{part}"].value
        for at, hooks in NORMS.items()
    }
    scale = trace["block.0.attn.norm.std"].value[:, None]
    resid = {"blocks.0.hook_resid_pre": trace["stream.0"].value, "blocks.0.ln1.hook_scale": scale}
    return {**found, **resid, "ln_final.hook_normalized": trace[f"final.norm.{part}"].value}


def places(of: Model, claims: dict[str, Any]) -> set[str]:
    (claimed,) = match(read_claims(claims), of, TEXT)
    return {claim.address for claim in claimed.claims if "normalized" in claim.name}


@pytest.mark.parametrize("norm", [{}, {"bias": False}], ids=["gain and bias", "gain alone"])
@pytest.mark.parametrize("part", ["out", "normalized"])
def test_numbers_tell_which_it_is(part: str, norm: dict[str, bool]) -> None:
    of = model(**norm)
    claims = dump(of, part)
    assert places(of, claims) == {
        f"{at}.{part}" for at in ("block.0.attn.norm", "block.0.mlp.norm", "final.norm")
    }
    assert byhand.check(of, claims, text=TEXT).follows


def test_from_3_0_on_it_is_before_them_whatever_the_numbers_are() -> None:
    of = model()
    claims = {**dump(of, "out"), "unembed.hook_in": dump(of, "out")["ln_final.hook_normalized"]}
    assert "block.0.attn.norm.normalized" in places(of, claims)
    assert not byhand.check(of, claims, text=TEXT).follows


def test_what_a_bridge_works_out_beside_its_norms_is_left_aside_with_the_reason() -> None:
    """Its norms are those of transformers, so that these numbers need not give theirs."""
    of = model()
    trace = byhand.trace(of, TEXT, float="float32")
    claims = dump(of, "normalized")
    claims["ln_final.hook_normalized"] = claims["ln_final.hook_normalized"] * np.float32(1.000001)
    claims["ln_final.hook_out"] = trace["final.norm.out"].value
    claims["hook_unembed"] = trace["logits"].value
    (text,) = byhand.check(of, claims, text=TEXT).texts
    assert byhand.check(of, claims, text=TEXT).follows
    assert {each.name for each in text.unmatched} == {
        "blocks.0.ln1.hook_normalized", "blocks.0.ln1.hook_scale",
        "blocks.0.ln2.hook_normalized", "ln_final.hook_normalized",
    }  # fmt: skip
    assert all("beside the norm" in each.reason for each in text.unmatched)
