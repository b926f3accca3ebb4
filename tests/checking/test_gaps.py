"""Sparse dumps: causes are searched through unclaimed steps, and the step to dump next is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.planted import models
from benchmarks.planted.families import PORTS
from benchmarks.planted.port import Port
from benchmarks.planted.sparse import MODES

import byhand
from byhand.checking.gaps.asking import halving
from byhand.checking.gaps.inferred import inferred
from byhand.checking.gaps.search import Search
from byhand.checking.gaps.values import Values
from byhand.checking.judging import judge_text
from byhand.checking.matches import match
from byhand.checking.readers import read_claims
from byhand.checking.replay import Replay
from byhand.checking.suspects import Context, Scene
from byhand.checking.verdicts import Marked, Marking, Verdict
from byhand.numbers.allowed import Judged
from byhand.testing import assert_follows


def port(family: str, format: str = "float32") -> Port:
    return PORTS[family](models.model(family), models.some_ids(family), format)


def thinned(values: dict[str, Any], mode: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if MODES[mode].fullmatch(name)}


def checked(family: str, values: dict[str, Any], format: str = "float32") -> Marking:
    text = " ".join(map(str, models.some_ids(family)))
    return byhand.check(models.model(family), values, text=text, precision=format)


def first_doubtful(marking: Marking) -> Marked:
    return next(line for line in marking if line.unusual or line.verdict is Verdict.ERROR)


def replayed(family: str, values: dict[str, Any]) -> Replay:
    text = " ".join(map(str, models.some_ids(family)))
    [claimed] = match(read_claims(values), models.model(family), text, None)
    return judge_text(models.model(family), claimed, "float32", suspects=False)[1]


def scene_and_search(replay: Replay, address: str) -> tuple[Scene, Search]:
    [line] = replay.lines[address]
    judged = replay.judged(replay.try_edit(replay.plan, address), line)
    assert isinstance(judged, Judged)
    region = tuple(replay.region(line.claim).steps)
    scene = Scene(replay.plan, region, replay.plan[address], replay.model, Context())
    return scene, Search(Values(replay, line), judged, 1e10)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gpt_neox"])
def test_plain_middles_are_the_middles_of_the_ranges(family: str) -> None:
    replay = replayed(family, thinned(port(family).run(), "logits"))
    _scene, search = scene_and_search(replay, "logits")
    plain = search.values.predicted(replay.plan)
    assert plain is not None
    assert np.abs(plain - search.expected).max() < 1e-12
    assert 0.3 < search.model < 1.2  # what rounding leaves over three blocks


def test_a_mistake_of_the_list_is_named_from_the_logits_alone_in_bfloat16() -> None:
    own = port("gpt_neox", "bfloat16")
    own.scale = 1.0
    line = first_doubtful(checked("gpt_neox", thinned(own.run(), "logits"), "bfloat16"))
    assert line.verdict is Verdict.UNJUDGED
    assert [cause.kind for cause in line.suspects] == ["scale-missing"]
    assert line.suspects[0].evidence.left is not None
    assert line.suspects[0].evidence.left < 1.5
    assert line.ask is None


def test_a_factor_is_read_through_a_block_and_recognised() -> None:
    own = port("llama")
    added = own.added
    own.instead(added=lambda at, x, y: added(at, x, y * (0.75 if at == "block.1.attn" else 1)))
    line = first_doubtful(checked("llama", thinned(own.run(), "blocks")))
    assert line.address == "block.1.mlp.add"
    [cause] = line.suspects
    assert "attn.out is multiplied by 0.75 before it is added" in cause.sentence
    assert cause.evidence.fitted == 0


def test_a_blocks_output_tells_what_its_heads_gave() -> None:
    own = port("gpt2")
    mixed = own.mixed
    own.instead(mixed=lambda weights, v: mixed(weights, v) * 1.5)
    values = own.run()
    scene, search = scene_and_search(replayed("gpt2", thinned(values, "blocks")), "block.0.mlp.add")
    lines = {line.step.address: line for line in inferred(search, scene)}
    heads = lines["block.0.attn.mixed"]
    off = (heads.claimed - values["block.0.attn.mixed"]) / heads.usual
    assert float(np.sqrt(np.mean(np.square(off)))) < 1.0
    assert float(heads.usual.max()) < 1e-4


def test_a_correct_sparse_dump_is_near_and_asks_for_the_step_that_would_judge_it() -> None:
    marking = checked("gpt2", thinned(port("gpt2", "bfloat16").run(), "blocks"), "bfloat16")
    unjudged = [line for line in marking if line.verdict is Verdict.UNJUDGED]
    assert len(unjudged) == 3
    assert all(line.near and line.times is not None and line.times < 1.5 for line in unjudged)
    assert not any(line.suspects or line.unusual for line in marking)
    assert [line.ask for line in unjudged] == ["block.0.attn.out", None, None]


def test_the_step_to_dump_halves_a_gap() -> None:
    plan = replayed("gpt2", thinned(port("gpt2").run(), "logits")).plan
    steps = [step for step in plan if step.stage == "forward"]
    end = next(place for place, step in enumerate(steps) if step.address == "logits")
    assert halving(steps[: end + 1]) == "block.1.mlp.add"
    block = [step for step in steps if step.address.startswith("block.1.")]
    assert halving(block) == "block.1.attn.out"
    assert halving(block, attention=True) == "block.1.attn.weights"


def test_logits_alone_pass_an_assertion_if_they_may_and_are_near() -> None:
    text, model = " ".join(map(str, models.some_ids("llama"))), models.model("llama")
    logits = thinned(port("llama", "bfloat16").run(), "logits")
    with pytest.raises(AssertionError, match="nothing can be judged"):
        assert_follows(model, logits, text, precision="bfloat16")
    found = assert_follows(model, logits, text, precision="bfloat16", allow_unjudged=True)
    assert not found.passed
    far = {"logits": (logits["logits"].astype(np.float32)[:, ::-1]).copy()}
    with pytest.raises(AssertionError, match="times what rounding usually does"):
        assert_follows(model, far, text, precision="bfloat16", allow_unjudged=True)
