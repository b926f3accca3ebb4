"""Planted bugs: the ports are right, the bugs are where they are said to be, and check finds them.

The whole matrix takes minutes: `python -m benchmarks.planted`.  What it found stands in docs/, and
its bars are held here; a selection is checked anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.planted import matrix, models
from benchmarks.planted.bugs import BUGS, FORMATS
from benchmarks.planted.families import PORTS

from byhand import forward
from byhand.models import open_model
from oracles.checkpoints import by_hand, library, random_model, saved

IDS = [3, 1, 4, 1, 5, 9, 2, 6]
SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"vocab_size": 13, "n_positions": 9, "n_embd": 12, "n_layer": 2, "n_head": 3},
    "llama": {
        "vocab_size": 13, "max_position_embeddings": 16, "hidden_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 10,
    },
    "gpt_neox": {
        "vocab_size": 13, "max_position_embeddings": 16, "hidden_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 3, "intermediate_size": 10,
    },
}  # fmt: skip
KINDS = {"gpt2": "gpt2", "llama": "llama", "qwen": "qwen2", "gpt_neox": "gpt_neox"}


@pytest.mark.parametrize("family", PORTS)
def test_a_port_without_a_bug_gives_what_the_library_gives(family: str, tmp_path: Path) -> None:
    kind = KINDS[family]
    sizes = SIZES["llama" if kind == "qwen2" else kind]
    theirs = random_model(kind, bos_token_id=None, eos_token_id=7, **sizes)
    dump = PORTS[family](open_model(saved(theirs, tmp_path)), IDS, "float64").run()
    # The library computes RMSNorm, softmax and RoPE in float32; the same by hand does not.
    for expected, close in ((by_hand(theirs, IDS), 1e-12), (library(theirs, IDS), 2e-5)):
        for address, value in (
            ("block.0.mlp.add", expected.streams[1]),
            ("final.norm.out", expected.normed),
            ("logits", expected.logits),
        ):
            far = np.abs(dump[address] - value.numpy()).max() / np.abs(value.numpy()).max()
            assert far < close, address


@pytest.mark.parametrize("family", PORTS)
def test_a_port_files_every_step_that_byhand_has(family: str) -> None:
    plan = forward.plan(models.SPECS[family](), models.LENGTH)
    dump = matrix.dump(None, family, "float32")
    assert {plan[name].address for name in dump} == {step.address for step in plan} - {"tokens"}
    for name, value in dump.items():
        assert value.shape == plan[name].shape, name  # type: ignore[attr-defined]


def _first_difference(family: str, right: dict[str, Any], wrong: dict[str, Any]) -> str | None:
    """The first step, in spine order, at which two dumps differ where a number is."""
    plan = forward.plan(models.SPECS[family](), models.LENGTH)
    seen = np.tril(np.ones((models.LENGTH, models.LENGTH), dtype=bool))
    order = {step.address: place for place, step in enumerate(plan)}
    for name in sorted(wrong, key=lambda name: order[plan[name].address]):
        a, b = right[name], wrong[name]
        if name.endswith(".scores"):
            a, b = np.where(seen, a, 0), np.where(seen, b, 0)
        if not np.array_equal(a, b):
            return name
    return None


@pytest.mark.parametrize("family", PORTS)
def test_every_bug_first_shows_where_who_planted_it_says(family: str) -> None:
    right = matrix.dump(None, family, "float32")
    for bug in BUGS.values():
        if family in bug.shows:
            wrong = matrix.dump(bug.name, family, "float32")
            assert _first_difference(family, right, wrong) == bug.shows[family], bug.name


@pytest.mark.parametrize("family", PORTS)
@pytest.mark.parametrize("format", FORMATS)
def test_a_port_without_a_bug_is_right_in_every_line(family: str, format: str) -> None:
    marking = matrix.checked(None, family, format)
    assert {line.verdict.value for line in marking} == {"right"}
    assert not any(line.unusual for line in marking)
    assert not marking.unmatched


SELECTION = (
    ("gelu-erf-or-tanh", "gpt2", "float32"),
    ("eps-smaller", "llama", "float32"),
    ("scale-missing", "gpt_neox", "float32"),
    ("scale-missing", "gpt2", "bfloat16"),
    ("mask-missing", "qwen", "float32"),
    ("rope-interleaved", "llama", "bfloat16"),
    ("kv-heads-tiled", "qwen", "bfloat16"),
    ("packing", "gpt_neox", "float32"),
    ("residual-missing", "llama", "float32"),
    ("parallel-for-serial", "gpt2", "float32"),
    ("head-tied", "gpt_neox", "bfloat16"),
    ("weight-transposed", "gpt2", "float32"),
    ("last-layer-skipped", "llama", "float32"),
    ("cast-activation", "gpt_neox", "float32"),
    ("cast-norm-weights", "gpt2", "float32"),
    ("dropout-left-on", "llama", "float32"),
)


@pytest.mark.parametrize(("bug", "family", "format"), SELECTION)
def test_a_planted_bug_is_found_at_its_step_and_named(bug: str, family: str, format: str) -> None:
    found = matrix.found(bug, family, format)
    assert found.clear
    assert found.first == BUGS[bug].shows[family]
    assert found.cause in BUGS[bug].causes


def test_the_recorded_matrix_is_of_these_bugs_and_meets_its_bars() -> None:
    results = matrix.recorded()
    planted = {
        (bug.name, family, format)
        for bug in BUGS.values() for family in bug.shows for format in bug.formats
    }  # fmt: skip
    assert {(each.bug, each.family, each.format) for each in results} == planted
    for total, kinds in zip(matrix.totals(results), (25, 18), strict=True):
        assert total.kinds >= 30
        assert total.steps == total.clear
        assert total.causes >= 0.9 * total.clear
        assert total.kinds_found >= kinds
