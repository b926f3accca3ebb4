"""Golden files of proven numbers: what is told in floats is still true there."""

from __future__ import annotations

import json
from fractions import Fraction
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import byhand
from byhand.errors import AddressError, InputError
from byhand.evaluate import prepare
from byhand.golden import open_trace, save, writing
from byhand.golden.enclosed import pair, upward
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.enclosure import EVERYTHING, Enclosure
from byhand.numbers.enclosed.limbs.operations import Limbs

fractions = st.fractions(min_value=-(10**9), max_value=10**9)


@given(fractions, st.fractions(min_value=0, max_value=1))
def test_the_float_and_its_radius_cover_the_whole_enclosure(mid: Fraction, rad: Fraction) -> None:
    value, radius = pair(Enclosure(mid, rad))
    assert value == float(mid)
    assert abs(mid - Fraction(value)) + rad <= Fraction(radius)
    assert radius == 0 or Fraction(np.nextafter(radius, 0.0)) < abs(mid - Fraction(value)) + rad


@pytest.mark.parametrize(
    "entry",
    [EVERYTHING, Enclosure(Fraction(10) ** 400, Fraction(1))],
    ids=["nothing is known", "beyond float64"],
)
def test_what_floats_cannot_enclose_has_an_infinite_radius(entry: Enclosure) -> None:
    assert pair(entry)[1] == inf
    assert upward(Fraction(10) ** 400) == inf


def test_every_true_value_lies_within_the_saved_radius(tmp_path: Path) -> None:
    byhand.trace("journey", digits=25).save(tmp_path)
    saved, exact = open_trace(tmp_path), byhand.trace("journey")
    for step in saved.values():
        if step.radius is None:
            continue
        worked = exact[step.address]
        assert step.values is not None
        for index, entry in worked.entries():
            if entry is ABSENT:
                assert step.radius[index] == 0
                assert step.values[index] in (-inf, 0)
                continue
            true = Fraction(entry.decimal(60))
            apart = abs(true - Fraction(float(step.values[index])))
            assert apart <= Fraction(float(step.radius[index])) + Fraction(1, 10**59)
            enclosure = saved.enclosure(f"{step.address}[{','.join(map(str, index))}]")
            assert abs(true - enclosure.mid) <= enclosure.rad + Fraction(1, 10**59)


def test_whole_arrays_of_limbs_are_covered_as_well(tmp_path: Path) -> None:
    job = prepare(byhand.open_model("minigpt"), "<en> today she climb -s", Limbs(120))
    trace = job.work()
    trace.save(tmp_path)
    saved = open_trace(tmp_path)
    for address in ("embed.token", "block.0.attn.weights", "block.1.mlp.act", "logits"):
        step = saved.step(address)
        assert step.values is not None
        assert step.radius is not None
        entries = dict(trace[address].entries())
        for index in list(np.ndindex(*step.shape))[::29]:
            value, radius = Fraction(float(step.values[index])), float(step.radius[index])
            if entries[index] is ABSENT:
                assert (value, radius) == (0, 0)
                continue
            apart = abs(value - entries[index].mid) + entries[index].rad
            assert apart <= Fraction(radius) <= apart + abs(value) * Fraction(1, 2**50)


def test_all_the_digits_read_back(tmp_path: Path) -> None:
    trace = byhand.trace("journey", digits=40)
    trace.save(tmp_path)
    saved = open_trace(tmp_path)
    assert saved.enclosure("loss[0]").decimal(40) == trace.loss.decimal(40)
    assert saved.manifest["digits"] == 40
    assert saved.loss is not None
    assert saved.loss["decimal"] == trace.loss.decimal(40)
    assert saved.next is not None
    assert saved.next[0]["margin"]["decimal"].startswith("0.17240390710472310753313234120563366")


def test_many_numbers_are_saved_without_their_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MOST_TEXT", 10)
    trace = byhand.trace("journey", digits=12, only=["logits", "next", "loss"])
    trace.save(tmp_path)
    assert not (tmp_path / "exact.json").exists()
    saved = open_trace(tmp_path)
    assert saved.enclosure("logits[3,1]").contains(trace["logits[3,1]"])
    assert saved.enclosure("logits[3,1]").decimal(12) == "0.350901300290"
    assert saved.next is not None
    assert saved.next[3]["margin"]["decimal"] == "0.175512114573"
    assert saved.loss is not None
    assert saved.loss["decimal"] == "1.83129263705"


def test_the_radii_have_the_names_of_their_steps(tmp_path: Path) -> None:
    save(byhand.trace("journey", digits=6), tmp_path, names="transformer_lens")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    scores = next(s for s in manifest["steps"] if s.get("byhand") == "block.0.attn.scores")
    assert scores["radius"] == "blocks.0.attn.hook_attn_scores.rad"
    saved = open_trace(tmp_path)
    assert saved.step("block.0.attn.scores").radius is not None
    assert saved.step("tokens").radius is None


def test_what_is_not_one_enclosed_number_is_refused(tmp_path: Path) -> None:
    byhand.trace("tiny", digits=6).save(tmp_path / "digits")
    byhand.trace("tiny").save(tmp_path / "exact")
    saved = open_trace(tmp_path / "digits")
    for address in ("logits", "logits[0]", "tokens[0]"):
        with pytest.raises(AddressError, match="is not one enclosed number"):
            saved.enclosure(address)
    with pytest.raises(AddressError, match="masked"):
        saved.enclosure("block.0.attn.weights[0,0,1]")
    with pytest.raises(AddressError, match="is not one enclosed number"):
        open_trace(tmp_path / "exact").enclosure("logits[0,0]")


def test_a_radius_tensor_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    byhand.trace("tiny", digits=6).save(tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace('"logits.rad"', '"logits.lost"'))
    saved = open_trace(tmp_path)
    with pytest.raises(InputError, match=r"logits\.lost"):
        _radius = saved.step("logits").radius
    path.write_text(path.read_text().replace('"logits.lost"', "3"))
    with pytest.raises(InputError, match="radius"):
        open_trace(tmp_path)
