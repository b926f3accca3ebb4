"""Causal attention by kernels, read by a stand-in for Triton: as tight as the whole square."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from test_kernels import as_tensor, digits, stand_in
from test_limbs_passes import gpt2, llama, random_weights

from byhand import forward
from byhand.evaluate import work_out
from byhand.numbers.enclosed.gpu import causal_attention, causal_scores, row_kernels, visible_keys
from byhand.numbers.enclosed.gpu.recording import Rows
from byhand.numbers.enclosed.gpu.row_kernels import RowInputs, RowResults
from byhand.numbers.enclosed.limbs import arithmetic, prediction
from byhand.numbers.enclosed.limbs.checksums import WrongProduct
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.enclosed.limbs.spectral import spectral_norms
from byhand.numbers.enclosed.limbs.values import Enclosed

BITS = 100
ATTENTION = ("scores", "weights", "mixed")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """VisibleKeys for few queries, four a step."""
    monkeypatch.setattr(visible_keys, "FEWEST", 1)
    monkeypatch.setattr(visible_keys, "STEP", 4)
    return monkeypatch


@pytest.mark.parametrize("make", [gpt2, llama])
def test_causal_attention_encloses_what_finer_numbers_enclose(
    make: Any, short: pytest.MonkeyPatch
) -> None:
    spec = make(2, 16)
    weights = random_weights(spec, np.random.default_rng(1), "random")
    tokens = [1, 4, 2, 0, 3, 5, 1, 2, 2]
    plan = forward.plan(spec, len(tokens))
    system, finer = Limbs(BITS, "cpu"), Limbs(BITS + 120)
    whole = work_out(plan, weights, tokens, system)
    truth = work_out(plan, weights, tokens, finer)
    seen = 0
    with stand_in(short):
        quick = work_out(plan, weights, tokens, system)
        for address, step in quick.items():
            if not isinstance(step.value, Enclosed):
                continue
            if address.endswith("weights"):
                assert isinstance(step.value, causal_attention.DeferredShares)
                seen += 1
            mine, real = system.entries(step.value), finer.entries(truth[address].value)
            for one, exactly in zip(_flat(mine), _flat(real), strict=True):
                if exactly is np.ma.masked:
                    assert one is np.ma.masked
                else:
                    assert abs(one.mid - exactly.mid) <= one.rad + exactly.rad, address
            if address.endswith(ATTENTION):
                limit = whole[address].value.box.max() * 1.5
                assert float(torch.where(_visible(step.value), step.value.box, 0.0).max()) < limit
    assert seen == 2


def _flat(entries: Any) -> list[Any]:
    return [entries[index] for index in np.ndindex(*entries.shape)]


def _visible(x: Enclosed) -> Any:
    return torch.ones(x.shape, dtype=torch.bool) if x.hidden is None else ~x.hidden


@pytest.mark.parametrize("which", [0, 3, 11, 25])
def test_a_wrong_product_of_causal_attention_is_found_out(
    which: int, short: pytest.MonkeyPatch
) -> None:
    spec = gpt2(1, 16)
    weights = random_weights(spec, np.random.default_rng(1), "random")
    plan, right, calls = forward.plan(spec, 6), causal_scores.multiply, [0]

    def wrong(x: Any, y: Any, into: Any, fresh: bool) -> None:
        right(x, y, into, fresh)
        calls[0] += 1
        if calls[0] == which + 1:
            into[0, -1, -1] += 1.0

    with stand_in(short):
        for room in (causal_scores, causal_attention):
            short.setattr(room, "multiply", wrong)
        with pytest.raises(WrongProduct):
            work_out(plan, weights, [1, 2, 3, 4, 5, 0], Limbs(BITS, "cpu"))


def test_only_first_keys_are_seen_by_causal_kernels(short: pytest.MonkeyPatch) -> None:
    like = torch.zeros(1, dtype=torch.float64)
    causal = np.tri(5, dtype=bool)
    window = causal & ~np.tri(5, k=-2, dtype=bool)
    with stand_in(short):
        assert visible_keys.visible_keys_of(causal, 2, like) is not None
        assert visible_keys.visible_keys_of(np.ones((3, 5), bool), 2, like) is not None
        assert visible_keys.visible_keys_of(window, 2, like) is None
    assert visible_keys.visible_keys_of(causal, 2, like) is None  # no kernels


def program(given: RowInputs) -> RowResults:
    """2·x + the row's number, and what can be gathered of it."""
    (x,), (more,), (key,) = given.entries, given.rows, given.keys
    made = Rows(x.engine, [row * 2.0 + more.rows[0] for row in x.rows])
    return RowResults(made, [made.rows[0], made.rows[1] * key], [abs(made.rows[1])], made.rows[0])


def test_rows_are_walked_as_far_as_they_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visible_keys, "STEP", 2)
    rng = np.random.default_rng(0)
    heads, queries, keys = 2, 5, 300
    seen = np.array([1, 128, 129, 256, 300])
    x = rng.integers(-9, 9, (2, heads, queries, keys)).astype(float)
    more, key = (
        rng.integers(-9, 9, (1, 10)).astype(float),
        rng.integers(0, 9, (2, 300)).astype(float),
    )
    with stand_in(monkeypatch):
        steps = visible_keys.VisibleKeys(seen, heads, keys, torch.zeros(1))
        out = torch.full((steps.size * 2,), np.nan, dtype=torch.float64)
        found = row_kernels.run(
            program,
            (),
            steps.walk(),
            [steps.dense(torch.from_numpy(x))],
            steps.folded(out, 2),
            rows=[torch.from_numpy(more)],
            keys=[torch.from_numpy(key)],
            results=4,
        )
    made = 2 * x + more.reshape(1, heads, queries, 1)
    for block in steps.blocks:
        part = steps.block_of(out, 2, block).numpy()
        for head in range(heads):
            for query in range(block.first, block.last):
                mine, end = part[head, query - block.first], seen[query]
                assert (mine[:, :end] == made[:, head, query, :end]).all()
                assert (mine[:, end:] == 0).all()
                row = made[:, head, query, :end]
                results = found[:, head * queries + query].tolist()
                assert results[0] == row[0].sum()
                assert results[1] == (row[1] * key[head, :end]).sum()
                assert results[2] == abs(row[1]).max()
                assert results[3] == row[0].argmax()


def test_leaders_found_by_kernels_are_those_of_the_array_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = as_tensor(digits(3, (4, 300), 5))
    box = torch.full((4, 300), 1e-9, dtype=torch.float64)
    box[2] = 100.0
    value = Enclosed(x, box[:, 0], box=box)
    plain = prediction.LeadingTokens(value).ids()
    with stand_in(monkeypatch):
        assert prediction.LeadingTokens(value).ids() == plain
    assert plain[2] == -1
    near = arithmetic.approx(x)
    assert [one for one in plain if one >= 0] == near.argmax(-1)[[0, 1, 3]].tolist()


@pytest.mark.parametrize("scale", [0.0, 1.0, 2.0**-300, 2.0**300])
@pytest.mark.parametrize("shape", [(3, 40, 8), (2, 8, 40), (1, 1, 1)])
def test_norms_of_stacks_on_a_device_are_bounds(shape: tuple[int, ...], scale: float) -> None:
    matrices = np.random.default_rng(0).normal(size=shape) * scale
    found = spectral_norms(torch.from_numpy(matrices)).numpy()
    real = np.linalg.norm(matrices, 2, axis=(1, 2))
    assert (found >= real).all()
    assert (found <= real * 1.08 + 1e-140).all()
