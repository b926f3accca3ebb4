"""A pass done again for other tokens: as right as an ordinary one, or an ordinary one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from test_kernels import stand_in
from test_limbs_passes import gpt2, random_weights

from byhand import forward
from byhand.evaluate import Admitted, work_out
from byhand.numbers.enclosed.gpu import visible_keys
from byhand.numbers.enclosed.gpu.repeated_pass import RepeatedPass
from byhand.numbers.enclosed.limbs import products
from byhand.numbers.enclosed.limbs.checksums import WrongProduct
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.weights import Tensor, Weights

LENGTH, BITS = 6, 110
KEEP = ("logits", "next")
SPEC = gpt2(2, 16)
TEXTS = [[1, 2, 3, 4, 5, 0], [5, 4, 3, 2, 1, 0], [3, 1, 2, 5, 4, 0]]


class Case:
    """A small model, and its passes on tensors of this machine."""

    def __init__(self, weights: Weights | None = None) -> None:
        self.given = weights or random_weights(SPEC, np.random.default_rng(5), "random")
        self.plan = forward.plan(SPEC, LENGTH)
        self.numbers = Limbs(BITS, "cpu")
        self.weights = Admitted(self.given, self.numbers)

    def work(self, tokens: Any) -> dict[str, Any]:
        return work_out(self.plan, self.weights, tokens, self.numbers.at(BITS), keep=KEEP)

    def truth(self, tokens: list[int]) -> Any:
        """Far narrower enclosures, from NumPy."""
        finer = Limbs(BITS + 120)
        made = work_out(self.plan, self.given, tokens, finer, keep=KEEP)
        return np.asarray(finer.entries(made["logits"].value))

    def encloses(self, steps: Any, tokens: list[int]) -> bool:
        found = np.asarray(self.numbers.entries(steps["logits"].value))
        return all(
            abs(one.mid - real.mid) <= one.rad + real.rad
            for one, real in zip(found.ravel(), self.truth(tokens).ravel(), strict=True)
        )


def token_ids(predictions: Any) -> list[int | None]:
    return [one.id for one in predictions]


def test_other_tokens_are_enclosed_without_a_question() -> None:
    case = Case()
    again = RepeatedPass(case.work, TEXTS[0], "cpu")
    assert again.repeats
    assert again.asked > 50
    for text in TEXTS:
        steps = again(text)
        assert case.encloses(steps, text)
        ordinary = case.work(text)
        assert token_ids(steps["next"].value) == token_ids(ordinary["next"].value)
        assert steps["next"].value.ids() == token_ids(ordinary["next"].value)
        radius = steps["logits"].value.box.max()
        assert radius < 4 * ordinary["logits"].value.box.max()
    assert again.fallen_back == 0


def test_what_is_kept_of_one_text_is_not_given_for_another() -> None:
    again = RepeatedPass(Case().work, TEXTS[0], "cpu")
    one, other = again(TEXTS[0]), again(TEXTS[0])
    assert one["logits"].value is not other["logits"].value
    assert one["logits"].value.origin is None
    assert one["next"].value is not other["next"].value


def test_a_text_that_breaks_decisions_is_worked_out_as_usual() -> None:
    weights = random_weights(SPEC, np.random.default_rng(5), "random")
    table = np.array(weights["embed.token"].data, dtype=np.float64)
    table[3] *= 2.0**30
    loud = Weights({**dict(weights.items()), "embed.token": Tensor("embed.token", table)})
    case = Case(loud)
    again = RepeatedPass(case.work, [1, 2, 4, 5, 0, 1], "cpu")
    steps = again([1, 2, 3, 4, 5, 0])
    assert again.fallen_back == 1
    assert case.encloses(steps, [1, 2, 3, 4, 5, 0])


def test_decisions_that_are_tampered_with_are_found_out() -> None:
    case = Case()
    again = RepeatedPass(case.work, TEXTS[0], "cpu")
    assert again._noted is not None
    again._noted.kept = [
        [bound / 4 for bound in kept] if isinstance(kept, list) and len(kept) == 2 else kept
        for kept in again._noted.kept
    ]
    try:
        again(TEXTS[0])
    except Exception:
        return
    assert again.fallen_back == 1


def test_a_wrong_product_in_a_repeated_pass_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case()
    again = RepeatedPass(case.work, TEXTS[0], "cpu")
    right = products.matmul

    def wrong(x: Any, y: Any, out: Any) -> None:
        right(x, y, out)
        if out.shape[-1] > 2:  # not the checksums themselves
            out.view(-1)[out.numel() // 2] += 1.0

    monkeypatch.setattr(products, "matmul", wrong)
    with pytest.raises(WrongProduct):
        again(TEXTS[1])
    assert again.fallen_back == 1


def test_texts_of_another_length_are_worked_out_as_usual() -> None:
    case = Case()
    again = RepeatedPass(case.work, TEXTS[0], "cpu")
    case.plan = forward.plan(SPEC, LENGTH - 1)
    assert len(again(TEXTS[0][:-1])["next"].value) == LENGTH - 1


def test_a_pass_that_needs_the_host_is_never_repeated() -> None:
    weights = random_weights(SPEC, np.random.default_rng(5), "random")
    zeros = np.zeros_like(weights["embed.token"].data, dtype=np.float64)
    silent = {**dict(weights.items()), "embed.token": Tensor("embed.token", zeros)}
    silent["embed.position"] = Tensor("embed.position", np.zeros_like(
        weights["embed.position"].data, dtype=np.float64))  # fmt: skip
    case = Case(Weights(silent))
    again = RepeatedPass(case.work, TEXTS[0], "cpu")
    if not again.repeats:
        assert again.fallen_back == 0
    assert case.encloses(again(TEXTS[1]), TEXTS[1])


def test_a_repeated_pass_through_kernels_of_causal_attention_encloses_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(visible_keys, "FEWEST", 1)
    monkeypatch.setattr(visible_keys, "STEP", 4)
    case = Case()
    with stand_in(monkeypatch):
        again = RepeatedPass(case.work, TEXTS[0], "cpu")
        assert again.repeats
        for text in TEXTS[:2]:
            steps = again(text)
            assert case.encloses(steps, text)
            assert steps["next"].value.ids() == token_ids(steps["next"].value)
    assert again.fallen_back == 0


def test_rows_of_a_table_by_ids_on_the_device_are_exact() -> None:
    table = np.array([[1.5, 2.0**-100], [3.0, -7.0], [0.0, 0.1]], dtype=np.float32)
    weight = Limbs(90, "cpu").admit(table)
    found = weight._rows_at(torch.tensor([2, 0]))
    from byhand.numbers.enclosed.limbs.arithmetic import to_fractions

    wanted = [[Fraction(float(x)) for x in row] for row in table[[2, 0]]]
    assert to_fractions(found).tolist() == wanted
