"""What an explanation does while somebody waits: it says so, and does nothing twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from lens_models import TEXT, gpt2_like, llama_like, post_norm, random_model

from byhand import forward
from byhand.cli import progress as cli_progress
from byhand.document.compose.explanation.sections import sections
from byhand.evaluate import Admitted, trace, work_out
from byhand.explaining import explain
from byhand.explaining.ablation import ablate, usual_parts
from byhand.explaining.facts import facts
from byhand.explaining.joint_ablation import _groups, predictions_without, tiled
from byhand.models import open_model
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.plan import Step


class Watching:
    """Remembers what was done, and every step with what it was for."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.steps: list[tuple[str, Step]] = []

    def doing(self, what: str, done: int, of: int) -> None:
        self.told.append(f"{what} {done}/{of}")

    def __call__(self, step: Step) -> None:
        self.steps.append((self.told[-1] if self.told else "", step))


def test_whoever_waits_is_told_what_the_steps_are_for() -> None:
    watching = Watching()
    found = explain(open_model("tiny"), progress=watching)
    assert watching.told == []  # the trace itself: its steps speak for themselves
    list(sections(found))
    assert [told for told in watching.told if told.startswith("taking out")] == [
        "taking out embed.position 0/3",
        "taking out block.0.attn.out 1/3",
        "taking out block.0.mlp.out 2/3",
    ]
    assert "what the heads of block 0 read and write 0/1" in watching.told
    assert {told.split(" ")[0] for told, _step in watching.steps} >= {"", "taking", "reading"}


def test_the_line_on_stderr_says_what_the_steps_are_for() -> None:
    status = cli_progress.Status("getting ready")
    step = next(iter(forward.plan(open_model("tiny").spec, 2)))
    status.doing("taking out block.0.mlp.out", 3, 25)
    assert status.text == "taking out block.0.mlp.out (3 of 25)"
    status(step)
    assert status.text == "taking out block.0.mlp.out (3 of 25): working out tokens (step 1)"


def test_without_a_part_only_the_positions_asked_for_are_unembedded() -> None:
    watching = Watching()
    whole = trace(random_model(gpt2_like()), TEXT, Floats("float64"))
    facts(whole, [2], progress=watching)
    parts = len(usual_parts(whole.model.spec))
    rows = [step.shape[0] for what, step in watching.steps
            if what.startswith("taking") and step.address == "logits"]  # fmt: skip
    assert sum(rows) == parts


def test_every_weight_is_admitted_once_for_all_that_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = random_model(gpt2_like())
    found = explain(model, TEXT, Floats("float64"))
    names = {id(tensor.data): name for name, tensor in model.weights.items()}
    admitted: Counter[str] = Counter()
    admit = Floats.admit

    def counted(self: Floats, data: Any) -> Any:
        admitted.update([names[id(data)]] if id(data) in names else [])
        return admit(self, data)

    monkeypatch.setattr(Floats, "admit", counted)
    _ = (found.facts, found.lens, found.attribution, found.stream, found.circuits(1))
    assert admitted["block.0.mlp.hidden"] == admitted["embed.token"] == 1
    assert max(admitted.values()) == 1


# ------------------------------------------------------------------ several at once


@pytest.mark.parametrize("system", [lambda: Floats("float64"), lambda: Limbs(100)])
@pytest.mark.parametrize("family", [gpt2_like, llama_like, post_norm])
def test_parts_taken_out_together_say_what_each_says_by_itself(family: Any, system: Any) -> None:
    whole = trace(random_model(family()), TEXT, system())
    parts = usual_parts(whole.model.spec)
    positions = range(len(whole.tokens))
    assert max(map(len, _groups(whole, parts))) > 1
    weights = Admitted(whole.model.weights, whole.numbers)
    for part, found in zip(
        parts, predictions_without(whole, parts, positions, weights), strict=True
    ):
        alone = ablate(whole, part, only=("next",)).next
        assert alone is not None
        assert [one.id for one in found] == [one.id for one in alone]


def test_exact_numbers_are_taken_out_one_by_one() -> None:
    whole = trace(open_model("abc"), numbers=Exact())
    assert {len(some) for some in _groups(whole, usual_parts(whole.model.spec))} == {1}


def test_copies_of_a_text_do_not_see_each_other() -> None:
    model = random_model(llama_like())
    whole = trace(model, TEXT, Floats("float64"))
    twice = tiled(whole.plan, 2)
    steps = work_out(twice, model.weights, whole.tokens * 2, whole.numbers)
    for half in (slice(0, twice.length // 2), slice(twice.length // 2, None)):
        assert np.allclose(steps["logits"].array[half], whole["logits"].array, rtol=0, atol=1e-12)
