"""Claims about sinks and experts: right ones pass, a wrong choice is found, near ties stay open."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.experts import FORMATS, LENGTH, WAYS, Run, cases, gpt_oss, mixtral, model
from benchmarks.experts import claims as dumped

import byhand
from byhand.checking.verdicts import Verdict
from byhand.files import parse_model
from byhand.model import Model

IDS = list(range(3, 3 + LENGTH))
ROUTER, CHOSEN, SHARES = (f"block.0.mlp.{name}" for name in ("router", "chosen", "shares"))


@cache
def run(kind: str = "float32") -> tuple[Model, Run]:
    made = model(gpt_oss(), 0)
    return made, Run(made, WAYS[2], FORMATS[kind], IDS)


def marked(claims: dict[str, Any], **more: Any) -> dict[str, Any]:
    made, _run = run()
    marking = byhand.check(made, {"tokens": IDS, **claims}, precision="float32", **more)
    return {line.address: line for line in marking}


def claimed(**changed: Any) -> dict[str, Any]:
    claims = {name: x.clone() for name, x in dumped(run()[1]).items()}
    return claims | {f"block.0.{name.replace('_', '.', 1)}": x for name, x in changed.items()}


@pytest.mark.parametrize("number", [2, 26, 35, 58, 75])
def test_a_share_of_the_correct_runs_raises_no_alarm(number: int) -> None:
    torch.set_num_threads(1)
    case = list(cases(number % 3))[number]
    counts, alarms = case.judged()
    assert not alarms, (str(case), alarms)
    assert counts["right"] > 0


def test_ids_in_any_order_and_marks_are_the_same_claim() -> None:
    _made, found = run()
    ids = found.dump[CHOSEN]
    marks = torch.zeros(LENGTH, 6).scatter(-1, ids, 1.0)
    for choice in (ids, ids.flip(-1), ids.sort(-1).values, marks):
        lines = marked(claimed(mlp_chosen=choice), suspects=False)
        assert lines[CHOSEN].verdict is Verdict.RIGHT
    assert ids.shape == (LENGTH, 2)


def test_of_two_experts_a_row_of_1_and_0_is_no_row_of_ids() -> None:
    model = parse_model(
        "vocabulary: [a, b]\ntext: a b\n"
        "model: {d_model: 2, layers: 1, attention: none, mlp: {d_ff: 1, experts: 2, chosen: 1}}\n"
        "weights: {embed.token: identity, block.0.mlp.router: identity,\n"
        "          block.0.mlp.hidden: ones, block.0.mlp.out: ones}\n"
    )
    for said, right in (([[1, 0], [0, 1]], True), ([[0, 1], [1, 0]], False), ([[0], [1]], True)):
        marking = byhand.check(model, {CHOSEN: np.array(said)}, text="a b", suspects=False)
        assert marking.follows is right, said


def test_another_expert_is_an_error_and_later_lines_go_on_from_it() -> None:
    _made, found = run()
    ids = found.dump[CHOSEN].clone()
    lowest = found.dump[ROUTER].argmin(-1)
    ids[4, 1] = lowest[4]
    best = found.dump[ROUTER].gather(-1, ids)
    shares = torch.zeros(LENGTH, 6).scatter(-1, ids, best.softmax(-1))
    answers = found.dump["block.0.mlp.answers"]
    out = torch.einsum("pe,epd->pd", shares, answers)
    claims = claimed(mlp_chosen=ids, mlp_shares=shares, mlp_out=out)
    upto = {name: x for name, x in claims.items() if name.startswith("block.0.")}
    lines = marked({name: x for name, x in upto.items() if name != "block.0.mlp.add"})
    assert lines[CHOSEN].verdict is Verdict.ERROR
    assert lines[CHOSEN].outside == 2  # one too many, one missing
    assert lines[SHARES].verdict is Verdict.CARRIED
    assert lines["block.0.mlp.out"].verdict is Verdict.CARRIED


def test_one_expert_more_is_found_and_named() -> None:
    found = run()[1].dump[ROUTER]
    lines = marked(claimed(mlp_chosen=found.topk(3).indices))
    assert lines[CHOSEN].verdict is Verdict.ERROR
    assert "3 experts" in lines[CHOSEN].suspects[0].sentence


@pytest.mark.parametrize("name", ["weights", "shares", "out"])
def test_a_mistake_is_found_at_its_line(name: str) -> None:
    _made, found = run()
    dump = found.dump
    if name == "weights":  # the sink left out of the sum
        wrong = {"attn_weights": dump["block.0.attn.scores"].softmax(-1)}
    elif name == "shares":  # softmax over all, not divided by the sum of the chosen
        every = dump[ROUTER].softmax(-1)
        marks = torch.zeros(LENGTH, 6).scatter(-1, dump[CHOSEN], 1.0)
        wrong = {"mlp_shares": every * marks}
    else:  # the answers added up without shares
        marks = torch.zeros(LENGTH, 6).scatter(-1, dump[CHOSEN], 1.0)
        wrong = {"mlp_out": torch.einsum("pe,epd->pd", marks, dump["block.0.mlp.answers"])}
    address = f"block.0.{next(iter(wrong)).replace('_', '.')}"
    lines = marked(claimed(**wrong), suspects=False)
    assert lines[address].verdict is Verdict.ERROR
    before = list(lines)[: list(lines).index(address)]
    assert all(lines[each].verdict is Verdict.RIGHT for each in before)


def test_an_open_choice_is_not_judged_and_what_follows_is_bounded() -> None:
    made = model(mixtral(), 1)  # experts 0 and 1 have the same scores, and 2 and 3
    found = Run(made, WAYS[1], torch.float32, IDS)
    scores = found.dump[ROUTER]
    found.dump[ROUTER] = scores = scores.clone()
    scores[:, 0] += 9  # chosen everywhere; of 2 and 3 either may come second
    scores[:, 1] -= 99
    picked = {"block.0.mlp.norm.out", ROUTER, "block.0.mlp.answers"}
    given = {name: x for name, x in found.dump.items() if name in picked}
    for other in (2, 3):
        ids = torch.tensor([[0, other]] * LENGTH)
        shares = scores.gather(-1, ids).softmax(-1)
        answers = found.dump["block.0.mlp.answers"]
        out = sum(shares[:, k, None] * answers[ids[0, k]] for k in range(2))
        claims = {"tokens": IDS, **given, "block.0.mlp.out": out}
        marking = byhand.check(made, claims, precision="float32", suspects=False)
        lines = {line.address: line for line in marking}
        assert lines["block.0.mlp.out"].verdict is not Verdict.ERROR
        claims = {"tokens": IDS, **given, CHOSEN: ids, "block.0.mlp.out": out}
        marking = byhand.check(made, claims, precision="float32", suspects=False)
        lines = {line.address: line for line in marking}
        assert lines[CHOSEN].verdict is Verdict.UNJUDGED
        assert "which experts" in lines[CHOSEN].reason
        assert lines["block.0.mlp.out"].verdict is Verdict.CARRIED  # the router is another
    wild = np.full((LENGTH, 32), 1e6, dtype=np.float32)
    claims = {"tokens": IDS, **given, "block.0.mlp.out": torch.tensor(wild)}
    (line,) = (line for line in byhand.check(made, claims, precision="float32", suspects=False)
               if line.address == "block.0.mlp.out")  # fmt: skip
    assert line.verdict is Verdict.ERROR  # no choice of experts gives it
