"""Claims about gradients and updates: their names, targets and texts, and how they are judged."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import byhand
from byhand import evaluate, forward
from byhand.backward import adjoint
from byhand.checking.claims import Claim
from byhand.checking.matches import match
from byhand.checking.matches.learned import learned_from, passing_on
from byhand.checking.matches.plans import plan_for
from byhand.checking.optimizers import read_rule
from byhand.checking.precisions import usual_precision
from byhand.checking.readers import read_claims
from byhand.checking.verdicts import Marking, Verdict
from byhand.errors import InputError
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.floats import Floats
from byhand.optimizer import update

Claims = dict[str, Any]
RULE = "adamw lr=0.001 betas=0.9,0.95 weight_decay=0.1 clip=1 step=1"


@pytest.fixture(scope="module")
def minigpt() -> Model:
    return open_model("minigpt")


def step_of(
    model: Model,
    tokens: tuple[int, ...],
    targets: tuple[int, ...],
    rule: str = "",
    given: Claims | None = None,
    **plan: Any,
) -> Claims:
    """A training step in float32: every line of it, as somebody would dump it."""
    passes = adjoint(forward.plan(model.spec, len(tokens), losses=True, **plan))
    whole = update(passes, read_rule(rule)) if rule else passes
    numbers = Floats("float32")
    done = evaluate.work_out(
        whole, model.weights, tokens, numbers, targets=targets, given=given
    )  # fmt: skip
    return {
        address: np.asarray(np.ma.getdata(worked.value))
        for address, worked in done.items()
        if worked.step.op not in ("given", "argmax")
    }


@pytest.fixture(scope="module")
def tokens(minigpt: Model) -> tuple[int, ...]:
    """Not the model's own text, whose last token has a target."""
    return minigpt.vocabulary.encode(minigpt.text or "")[:-1]


@pytest.fixture(scope="module")
def dump(minigpt: Model, tokens: tuple[int, ...]) -> Claims:
    return step_of(minigpt, tokens, (*tokens[1:], UNCOUNTED), RULE)


def marked(model: Model, claims: Claims, tokens: Any, **settings: Any) -> Marking:
    return byhand.check(model, {"tokens": np.asarray(tokens), **claims}, **settings)


def wrong(marking: Marking) -> dict[str, str]:
    return {line.address: line.verdict.value for line in marking if line.verdict.follows is False}


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("grad.logits", ("grad.", "logits")),
        ("lm_head.weight.grad", ("grad.", "lm_head.weight")),
        ("lm_head.weight.exp_avg", ("update.m.", "lm_head.weight")),
        ("exp_avg_sq.lm_head.weight", ("update.v.", "lm_head.weight")),
        ("momentum_buffer.embed.token", ("update.m.", "embed.token")),
        ("before.lm_head.weight.exp_avg_sq", ("before.v.", "lm_head.weight")),
        ("before.m.head", ("before.m.", "head")),
        ("clipped.lm_head.weight.grad", ("update.clipped.", "lm_head.weight")),
        ("updated.lm_head.weight", ("update.weight.", "lm_head.weight")),
        ("update.weight.head", ("update.weight.", "head")),
        ("logits", None),
    ],
)
def test_a_name_says_what_of_learning_it_means(name: str, found: tuple[str, str] | None) -> None:
    assert learned_from(name) == found


def test_gradients_have_the_names_of_weights_and_of_modules(tmp_path: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=11, n_positions=8, n_embd=8, n_layer=1, n_head=2)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    model = open_model(tmp_path)
    claims = {
        "input_ids": np.arange(1, 5),
        "transformer.wte.weight.grad": np.zeros((11, 8), np.float32),
        "grad.transformer.h.0.attn.c_attn.weight": np.zeros((8, 24), np.float32),
        "grad.transformer.h.0.mlp": np.zeros((1, 4, 8), np.float32),
        "grad.block.0.mlp.norm.gain": np.zeros(8, np.float32),
        "transformer.h.0.mlp.c_fc.weight.exp_avg": np.zeros((8, 32), np.float32),
        "updated.transformer.ln_f.bias": np.zeros(8, np.float32),
        "grad.nothing": np.zeros(3, np.float32),
        "optimizer": "adamw lr=0.1",
    }
    (found,) = match(read_claims(claims), model)
    assert {claim.name: claim.address for claim in found.claims} == {
        "transformer.wte.weight.grad": "grad.weight.embed.token",
        "grad.transformer.h.0.attn.c_attn.weight": "grad.weight.block.0.attn.qkv",
        "grad.transformer.h.0.mlp": "grad.block.0.mlp.out",
        "grad.block.0.mlp.norm.gain": "grad.weight.block.0.mlp.norm.gain",
        "transformer.h.0.mlp.c_fc.weight.exp_avg": "update.m.block.0.mlp.hidden",
        "updated.transformer.ln_f.bias": "update.weight.final.norm.bias",
    }
    assert [each.name for each in found.unmatched] == ["grad.nothing"]
    assert found.targets == (2, 3, 4, UNCOUNTED)


def test_an_update_needs_its_optimizer(minigpt: Model, dump: Claims, tokens: Any) -> None:
    some = {name: dump[name] for name in ("update.norm", "grad.logits")}
    marking = marked(minigpt, some, tokens)
    assert [each.reason for each in marking.unmatched] == ["an update needs its optimizer"]
    assert "optimizer: adamw lr=0.001" in str(marking.unmatched[0].hint)


@pytest.mark.parametrize(
    "said", ["adams lr=1", "adam lr", "adam lr=x", "sgd lr=1/0", "adam betas=0.9", "adam step=0"]
)
def test_what_is_no_optimizer_is_refused(said: str) -> None:
    with pytest.raises(InputError):
        read_rule(said)


def test_an_optimizer_is_read_with_its_settings() -> None:
    rule = read_rule("AdamW lr=3e-4 betas=0.9,0.95 eps=1e-6 weight_decay=0.1 max_norm=1 step=4")
    assert (rule.kind, rule.rate, rule.step) == ("adamw", Fraction(3, 10_000), 4)
    assert rule.betas == (Fraction(9, 10), Fraction(19, 20))
    assert (rule.eps, rule.decay, rule.clip) == (Fraction(1, 10**6), Fraction(1, 10), 1)


# ------------------------------------------------------------------ judged


def test_a_correct_training_step_follows(minigpt: Model, dump: Claims, tokens: Any) -> None:
    marking = marked(minigpt, {**dump, "optimizer": RULE}, tokens)
    assert marking.passes(allow_unjudged=False)
    assert {line.verdict for line in marking} == {Verdict.RIGHT}
    assert len(list(marking)) == len(dump)


def test_gradients_are_read_from_npz(
    minigpt: Model, dump: Claims, tokens: Any, tmp_path: Path
) -> None:
    path = tmp_path / "step.npz"
    np.savez(path, tokens=np.asarray(tokens), optimizer=np.array(RULE), **dump)
    assert byhand.check(minigpt, path, suspects=False).follows is True
    other = RULE.replace("0.001", "0.002")  # the call says more than the file
    told = wrong(byhand.check(minigpt, path, optimizer=other, suspects=False))
    assert told
    assert all(name.startswith("update.weight.") for name in told)


def test_a_wrong_value_of_the_way_forth_explains_wrong_gradients(
    minigpt: Model, dump: Claims, tokens: Any
) -> None:
    """From a wrong activation on everything follows, also on the way back."""
    passes = adjoint(forward.plan(minigpt.spec, len(tokens), losses=True))
    act = dump["block.1.mlp.act"] * 1.25
    done = evaluate.work_out(
        passes, minigpt.weights, tokens, Floats("float32"), targets=(*tokens[1:], UNCOUNTED),
        given={"block.1.mlp.act": act},
    )  # fmt: skip
    claims = {
        address: np.asarray(np.ma.getdata(worked.value))
        for address, worked in done.items()
        if worked.step.op not in ("given", "argmax")
    }
    marking = marked(minigpt, claims, tokens, suspects=False)
    verdicts = {line.address: line.verdict for line in marking}
    assert wrong(marking) == {"block.1.mlp.act": "error here"}
    assert verdicts["grad.logits"] is Verdict.CARRIED
    assert verdicts["grad.weight.block.1.mlp.out"] is Verdict.CARRIED
    assert verdicts["grad.weight.block.0.attn.q"] is Verdict.CARRIED
    assert verdicts["block.1.mlp.hidden"] is Verdict.RIGHT


def test_a_wrong_gradient_is_told_where_it_is_wrong_first(
    minigpt: Model, dump: Claims, tokens: Any
) -> None:
    """The row's sum is left out of softmax's way back."""
    claims = {name: value for name, value in dump.items() if not name.startswith("update.")}
    weights, grad = claims["block.0.attn.weights"], claims["grad.block.0.attn.weights"]
    grad = np.where(weights == 0, 0, grad)
    claims["grad.block.0.attn.scores"] = (weights * grad).astype(np.float32)
    marking = marked(minigpt, claims, tokens, suspects=False)
    assert marking.first_error is not None
    assert marking.first_error.address == "grad.block.0.attn.scores"


def test_a_gradient_at_a_masked_score_has_to_be_zero(
    minigpt: Model, dump: Claims, tokens: Any
) -> None:
    scores = dump["grad.block.0.attn.scores"].copy()
    assert scores[0, 0, 3] == 0
    scores[0, 0, 3] = 1e-3
    marking = marked(minigpt, {**dump, "grad.block.0.attn.scores": scores, "optimizer": RULE},
                     tokens, suspects=False)  # fmt: skip
    assert marking.first_error is not None
    assert marking.first_error.address == "grad.block.0.attn.scores"
    scores[0, 0, 3] = np.nan  # left blank
    some = {"grad.block.0.attn.scores": scores, "optimizer": RULE}
    assert not wrong(marked(minigpt, {**dump, **some}, tokens, suspects=False))


def test_a_gradient_that_is_passed_on_has_a_line_of_its_own(
    minigpt: Model, dump: Claims, tokens: Any
) -> None:
    """Both sides of a sum get its gradient; here the MLP's side gets twice as much."""
    claims = {name: value for name, value in dump.items() if not name.startswith("update.")}
    claims["grad.block.1.mlp.out"] = 2 * claims["grad.block.1.mlp.add"]
    marking = marked(minigpt, claims, tokens, suspects=False)
    assert marking.first_error is not None
    assert marking.first_error.address == "grad.block.1.mlp.out"
    told = wrong(marking)
    assert "grad.block.1.mlp.add" not in told
    # the MLP's gradients were worked out from the other side: they do not follow from this line
    assert {"grad.block.1.mlp.act", "grad.weight.block.1.mlp.out"} <= set(told)
    assert "grad.block.1.attn.add" not in told


def test_lines_of_their_own_are_read_by_what_flows_back_from_them(minigpt: Model) -> None:
    plan = adjoint(forward.plan(minigpt.spec, 3, losses=True))
    own = passing_on(plan, {"grad.block.0.mlp.out"})
    assert own["grad.block.0.mlp.out"].inputs == {"term_1": "grad.block.0.mlp.add"}
    assert own["grad.block.0.mlp.act"].inputs["x"] == "grad.block.0.mlp.out"
    assert own["grad.weight.block.0.mlp.out_bias"].inputs["x"] == "grad.block.0.mlp.out"
    assert own["grad.block.0.attn.add"].inputs["term_1"] == "grad.block.0.mlp.add"
    assert len(own) == len(plan) + 1
    assert passing_on(plan, {"grad.stream.1"}).aliases == plan.aliases  # another name, no line


def test_the_precision_is_told_by_gradients_too() -> None:
    """Under autocast, gradients of matrices are 16-bit numbers in float32, others are not."""
    chance = np.random.default_rng(0)

    def claim(address: str, *shape: int, cast: bool = False, format: str = "float32") -> Claim:
        values = chance.standard_normal(shape).astype(np.float32)
        if cast:
            values = values.astype(bfloat16).astype(np.float32)
        return Claim(address, (), values, address, "", format=format)

    matrix, gain = ("grad.weight.block.0.mlp.hidden", 16, 16), ("grad.weight.final.norm.gain", 64)
    table = ("grad.weight.embed.token", 16, 16)
    assert usual_precision([claim(*matrix), claim(*gain)]) == "float32"
    assert usual_precision([claim(*matrix, cast=True), claim(*gain)]) == "autocast:bfloat16"
    both = [claim(*matrix, cast=True), claim(*gain, cast=True), claim(*table, cast=True)]
    assert usual_precision(both) == "bfloat16"
    states = [*both, claim("update.m.head", 16, 16)]  # kept in float32 by some optimizers
    assert usual_precision(states) == "bfloat16"
    logits = claim("logits", 16, 16, cast=True, format="bfloat16")
    assert usual_precision([logits, claim(*table)]) == "autocast:bfloat16"


# ------------------------------------------------------------------ targets


def test_the_gradients_are_those_of_the_loss_that_the_claims_name(
    minigpt: Model, tokens: Any
) -> None:
    last = adjoint(forward.plan(minigpt.spec, len(tokens), target=True))
    done = evaluate.work_out(last, minigpt.weights, tokens, Floats("float32"), target=5)
    claims = {name: np.asarray(done[name].value) for name in ("probs", "loss", "grad.logits")}
    word = minigpt.vocabulary.decode((5,))
    assert marked(minigpt, {"target": word, **claims}, tokens).texts[0].lines[-1].verdict.follows
    found = match(read_claims({"target": word, "tokens": np.asarray(tokens), **claims}), minigpt)
    assert found[0].targets is None
    assert "mean_loss" not in plan_for(found[0], minigpt).known
    # with the mean loss claimed, it is the mean of all losses, the last one by the target
    claims["mean_loss"] = np.float32(1)
    found = match(read_claims({"target": word, "tokens": np.asarray(tokens), **claims}), minigpt)
    assert found[0].targets == (*tokens[1:], 5)


def test_labels_and_targets_say_what_counts(minigpt: Model, tokens: Any) -> None:
    ids = np.asarray(tokens)
    labels = np.where(np.arange(len(ids)) < 3, -100, ids)
    counted = tuple(UNCOUNTED if place < 2 else int(id) for place, id in enumerate(ids[1:]))
    for given in ({"labels": labels}, {"targets": np.array([*counted, -1])}):
        dumped = step_of(minigpt, tokens, (*counted, UNCOUNTED))
        claims = {**given, "probs": dumped["probs"], "loss": dumped["mean_loss"]}
        claims |= {name: dumped[name] for name in ("losses", "grad.logits")}
        marking = marked(minigpt, claims, tokens)
        assert {line.address for line in marking} == {"probs", "losses", "mean_loss", "grad.logits"}
        assert not wrong(marking)


# ------------------------------------------------------------------ batches


def batch_of(model: Model, rows: list[tuple[int, ...]]) -> Claims:
    """A batch worked out as its rows are, and their gradients as those of all."""
    owners = [text for text, row in enumerate(rows) for _id in row]
    return step_of(
        model,
        tuple(id for row in rows for id in row),
        tuple(id for row in rows for id in (*row[1:], UNCOUNTED)),
        positions=tuple(place for row in rows for place in range(len(row))),
        mask=tuple(tuple(one == other for other in owners) for one in owners),
    )


def test_the_gradients_of_a_batch_are_those_of_its_texts_together(
    minigpt: Model, tokens: Any
) -> None:
    rows = [tokens[:5], tokens[1:6]]
    whole = batch_of(minigpt, rows)

    def by_row(address: str) -> Any:
        return np.stack(np.split(whole[address], 2, axis=-2))

    claims: Claims = {
        name: by_row(name)
        for name in ("block.0.attn.norm.out", "block.1.mlp.act", "logits", "grad.logits")
    }
    claims |= {name: value for name, value in whole.items() if name.startswith("grad.weight.")}
    scores = whole["block.0.attn.weights"]
    claims["block.0.attn.weights"] = np.stack([scores[:, :5, :5], scores[:, 5:, 5:]])
    marking = marked(minigpt, claims, rows, suspects=False)
    assert len(marking.texts) == 1
    assert not wrong(marking)
    assert marking.texts[0].tokens == (*rows[0], *rows[1])
    names = {line.address for line in marking}
    assert {"grad.weight.embed.token", "block.0.attn.weights", "grad.logits"} <= names
    claims["grad.logits"] = claims["grad.logits"] * 2  # the mean of each text, added up
    told = wrong(marked(minigpt, claims, rows, suspects=False))
    assert told["grad.logits"] == "error here"


def test_padding_takes_no_part_in_a_batch(minigpt: Model, tokens: Any) -> None:
    whole = batch_of(minigpt, [tokens[:6], tokens[2:6]])
    logits = np.zeros((2, 6, whole["logits"].shape[1]), np.float32)
    logits[0], logits[1, :4] = whole["logits"][:6], whole["logits"][6:]
    ids = np.zeros((2, 6), np.int64)
    ids[0], ids[1, :4] = tokens[:6], tokens[2:6]
    mask = np.array([[1] * 6, [1] * 4 + [0] * 2])
    claims = {"logits": logits, "attention_mask": mask, "labels": np.where(mask, ids, -100),
              "grad.weight.embed.token": whole["grad.weight.embed.token"]}  # fmt: skip
    (found,) = match(read_claims({"tokens": ids, **claims}), minigpt)
    assert found.lengths == (6, 4)
    assert found.targets is not None
    assert found.targets.count(UNCOUNTED) == 2
    assert not wrong(marked(minigpt, claims, ids, suspects=False))
    with pytest.raises(InputError, match="the loss counts what comes after padding"):
        match(read_claims({"tokens": ids, **claims, "labels": ids}), minigpt)


# ------------------------------------------------------------------ the step after


def test_a_later_step_is_judged_from_the_moments_before_it(minigpt: Model, tokens: Any) -> None:
    rule = "momentum lr=0.1 momentum=0.9 step=2"
    targets = (*tokens[1:], UNCOUNTED)
    chance = np.random.default_rng(0)
    before = {
        f"before.m.{name}": chance.standard_normal(tensor.data.shape).astype(np.float32)
        for name, tensor in minigpt.weights.items()
    }
    dumped = step_of(minigpt, tokens, targets, rule, given=before)
    some = {name: value for name, value in dumped.items()
            if name.startswith(("grad.weight.", "update.m.", "update.weight."))}  # fmt: skip
    claims = {**some, **before, "optimizer": rule}
    verdicts = {line.address: line for line in marked(minigpt, claims, tokens, suspects=False)}
    assert verdicts["update.m.embed.token"].verdict is Verdict.RIGHT
    assert verdicts["update.weight.embed.token"].verdict is Verdict.RIGHT
    claims["before.m.embed.token"] = before["before.m.embed.token"] + 1
    told = wrong(marked(minigpt, claims, tokens, suspects=False))
    assert told == {"update.m.embed.token": "error here"}
    del claims["before.m.embed.token"]
    verdicts = {line.address: line for line in marked(minigpt, claims, tokens, suspects=False)}
    assert verdicts["update.m.embed.token"].verdict is Verdict.UNJUDGED
