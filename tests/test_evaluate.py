"""Working a plan out: shapes, what is given, what is missing, and where an error comes from."""

from __future__ import annotations

import weakref
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from byhand import forward
from byhand.errors import AddressError, ByhandError, InputError, ShapeError, TextError, Undecided
from byhand.evaluate import prepare, trace, usual_format, work_out
from byhand.expression import parse
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import ABSENT, Note, Unknown
from byhand.numbers.exact import Exact
from byhand.numbers.pencil import Pencil
from byhand.plan import Step
from byhand.spec import AttentionSpec, BlockSpec, ModelSpec
from byhand.tokens import Vocabulary
from byhand.weights import Tensor, Weights
from byhand.worked import Worked
from oracles.architectures import spread


def table(*rows: Any) -> np.ndarray[Any, Any]:
    """An object array of rational numbers."""
    data = np.array(rows, dtype=object)
    for index in np.ndindex(*data.shape):
        entry: Any = data[index]
        if isinstance(entry, int | str):
            data[index] = Fraction(entry)
    return data


def weights(**tensors: Any) -> Weights:
    named = {name.replace("__", "."): data for name, data in tensors.items()}
    return Weights({name: Tensor(name, data) for name, data in named.items()})


def changed(model: Model, name: str, data: np.ndarray[Any, Any]) -> Model:
    tensors = {**dict(model.weights), name: Tensor(name, data)}
    return Model(model.spec, Weights(tensors), model.vocabulary, model.text, model.target)


def unknown(model: Model, name: str) -> Model:
    data = np.full(model.weights[name].shape, Unknown(), dtype=object)
    return changed(model, name, data)


# ------------------------------------------------------------------ values


@pytest.mark.parametrize("numbers", [Exact, lambda: Pencil(3)], ids=["exact", "pencil"])
def test_values_have_the_shapes_their_steps_promise(numbers: Any) -> None:
    for case in spread(25, seed=6, among=2):
        steps = work_out(case.plan(), case.weights, case.tokens, numbers(), target=case.target)
        for worked in steps.values():
            assert worked.missing is None, worked
            if worked.step.op == "given":
                assert np.shape(worked.value) == worked.step.shape
            elif worked.step.op == "argmax":
                assert len(worked.value) == worked.step.shape[0]
            else:
                assert tuple(worked.value.shape) == worked.step.shape, worked.address


def test_steps_come_in_the_order_of_the_plan_and_report_their_progress(tiny: Model) -> None:
    seen: list[Step] = []
    found = trace(tiny, "a b", progress=seen.append)
    assert seen == list(found.plan) == [worked.step for worked in found.values()]


def test_only_the_steps_asked_for_and_what_they_need_are_worked_out(tiny: Model) -> None:
    found = trace(tiny, "a b", only=["block.0.attn.scores"])
    assert "block.0.attn.v" not in found.steps
    assert "logits" not in found.steps
    assert found["block.0.attn.scores"].value[0, 1].tolist() == [1, 2]
    with pytest.raises(AddressError, match="logits"):
        found["logits"]
    with pytest.raises(AddressError, match="did you mean"):
        trace(tiny, "a b", only=["block.0.attn.score"])


def test_each_weight_is_admitted_once(tiny: Model) -> None:
    class Counting(Exact):
        admitted = 0

        def admit(self, data: Any) -> Any:
            self.admitted += 1
            return super().admit(data)

    numbers = Counting()
    trace(tiny, "a b", numbers)
    assert numbers.admitted == len(tiny.weights)


def test_the_model_s_own_text_and_target_are_taken_where_none_is_given(journey: Model) -> None:
    assert trace(journey).text == "the cat sat on"
    assert trace(journey, "the cat sat on", only=["probs"]).target == 4
    other = trace(journey, "the dog", only=["probs"])
    assert (other.target, other.loss) == (None, None)
    asked = trace(journey, "the dog", target="cat", only=["loss"])
    assert asked.target == 1
    assert float(asked.loss.ball(64)) > 0


def test_a_model_without_a_text_asks_for_one(tiny: Model) -> None:
    silent = Model(tiny.spec, tiny.weights, tiny.vocabulary, source="tiny.yaml")
    with pytest.raises(InputError, match="this model has no default text") as caught:
        trace(silent)
    assert caught.value.where == "tiny.yaml"


def test_a_text_that_is_too_long_or_unknown_is_refused(tiny: Model) -> None:
    with pytest.raises(TextError, match="too long"):
        trace(tiny, "a b c")
    with pytest.raises(TextError, match="not in the vocabulary"):
        trace(tiny, "a d")
    with pytest.raises(TextError, match="not in the vocabulary"):
        trace(tiny, "a b", target="d")
    with pytest.raises(TextError, match="the text is empty"):
        trace(tiny, "")


# ------------------------------------------------------------------ what is given


def test_one_step_is_replayed_from_given_inputs_alone(tiny: Model) -> None:
    plan = forward.plan(tiny.spec, 2)
    given = {
        "block.0.attn.q": table([[1, 2], [3, 4]]),
        "block.0.attn.k": table([["1/2", 0], [0, "1/3"]]),
    }
    part = plan.only(["block.0.attn.scores"], given=given)
    assert [step.address for step in part] == [*given, "block.0.attn.scores"]
    steps = work_out(part, tiny.weights, [], Exact(), given=given)
    found = steps["block.0.attn.scores"].value
    assert [x if x is ABSENT else x.fraction for x in found.flat] == [
        Fraction(1, 2), None, Fraction(3, 2), Fraction(4, 3),
    ]  # fmt: skip


def test_a_given_value_replaces_a_step_and_what_follows_follows_from_it(tiny: Model) -> None:
    plan = forward.plan(tiny.spec, 1)
    steps = work_out(plan, tiny.weights, [0], Exact(), given={"stream.1": table([5, 7])})
    assert steps["block.0.mlp.norm.out"].value.tolist() == [[5, 7]]
    assert steps["logits"].value.tolist() == [[5, 7, 12]]
    assert steps["block.0.attn.add"].value.tolist() == [[2, 0]]


def test_a_given_mean_is_the_one_that_is_taken_away_from_a_named_row(tiny: Model) -> None:
    numbers = Exact()
    root = numbers.scalar(parse("sqrt(2)"))
    row, ten = np.array([[root, numbers.value(3)]]), np.array([numbers.value(10)])
    given = {"block.0.attn.add": row, "block.0.attn.norm.mean": ten}
    part = forward.plan(tiny.spec, 1).only(["block.0.attn.norm.centered"], given=given)
    steps = work_out(part, tiny.weights, [], numbers, given=given)
    assert steps["block.0.attn.norm.centered"][0, 0] == root - 10
    assert steps["block.0.attn.norm.centered"][0, 1] == -7


def test_a_given_value_of_another_shape_is_refused(tiny: Model) -> None:
    plan = forward.plan(tiny.spec, 1)
    with pytest.raises(ShapeError) as caught:
        work_out(plan, tiny.weights, [0], Exact(), given={"logits": table([1, 2])})
    assert caught.value.where == "logits"
    assert (caught.value.expected, caught.value.found) == ("1 × 3", "1 × 2")


def test_a_given_step_that_does_not_exist_comes_with_a_hint(tiny: Model) -> None:
    plan = forward.plan(tiny.spec, 1)
    with pytest.raises(AddressError, match="did you mean"):
        work_out(plan, tiny.weights, [0], Exact(), given={"logit": table([1, 2])})


# ------------------------------------------------------------------ what is missing


def test_what_depends_on_an_unknown_weight_is_missing_and_the_rest_is_not(tiny: Model) -> None:
    found = trace(unknown(tiny, "block.0.attn.v"), "a b")
    missing = {w.address: w.missing for w in found.values() if w.missing is not None}
    first = next(iter(missing))
    assert first == "block.0.attn.v"
    assert {cause.cause for cause in missing.values()} == {"weight.block.0.attn.v"}
    assert {cause.kind for cause in missing.values()} == {"unknown"}
    assert found["block.0.attn.weights"].missing is None
    assert set(missing) >= {"block.0.attn.mixed", "block.0.attn.add", "logits", "next"}
    assert found.next is None
    assert found["logits"].register is None
    assert found["logits"].row_registers == ()
    assert repr(found["logits"]) == "<logits 2×3 unknown: weight.block.0.attn.v>"


def test_asking_for_a_missing_number_says_why_it_is_missing(tiny: Model) -> None:
    found = trace(unknown(tiny, "block.0.attn.v"), "a b")
    with pytest.raises(InputError) as caught:
        found["logits[0,0]"]
    assert caught.value.message == "logits cannot be worked out"
    assert caught.value.hint == "weight.block.0.attn.v is unknown"


def test_one_unknown_entry_makes_the_whole_weight_unknown(tiny: Model) -> None:
    data = tiny.weights["embed.token"].data.astype(object)
    data[2, 1] = Unknown()  # of a word that the text does not have
    found = trace(changed(tiny, "embed.token", data), "a b")
    assert found["embed.token"].missing is not None


def test_an_undecided_operation_is_missing_with_what_follows(tiny: Model) -> None:
    class Doubtful(Exact):
        def activate(self, x: Any, *, kind: str) -> Any:
            raise Undecided("the sign is open")

    found = trace(tiny, "a", Doubtful())
    missing = found["logits"].missing
    assert missing is not None
    assert (missing.kind, missing.cause) == ("undecided", "block.0.mlp.act")
    assert found["block.0.mlp.hidden"].missing is None
    with pytest.raises(Undecided, match="the sign is open") as caught:
        found["logits[0]"]
    assert caught.value.where == "block.0.mlp.act"


# ------------------------------------------------------------------ notes and errors


def test_a_zero_variance_is_noted_at_the_step_that_takes_the_limit(tiny: Model) -> None:
    found = trace(tiny, "c a")
    noted = {w.address: w.notes for w in found.values() if w.notes}
    assert noted == {
        "block.0.attn.norm.normalized": (Note("zero-variance", (0,)),),
        "block.0.mlp.norm.normalized": (Note("zero-variance", (0,)),),
    }


def test_an_error_inside_an_operation_says_at_which_step(tiny: Model) -> None:
    class Broken(Exact):
        def softmax(self, x: Any) -> Any:
            raise ByhandError("no")

    with pytest.raises(ByhandError) as caught:
        trace(tiny, "a", Broken())
    assert caught.value.where == "block.0.attn.weights"


def test_an_error_in_a_weight_says_in_which(tiny: Model) -> None:
    data = tiny.weights["embed.token"].data.astype(object)
    data[0, 0] = "not a number"
    with pytest.raises(InputError) as caught:
        trace(changed(tiny, "embed.token", data), "a")
    assert caught.value.where == "weight.embed.token"


def test_a_table_of_scores_that_leaves_a_query_no_key_is_refused() -> None:
    attention = AttentionSpec(
        heads=1, d_head=1, kv_heads=1, scale=None, score_table=True, causal=False, out=False
    )
    spec = ModelSpec("routing", 2, 1, 2, (BlockSpec(attention, None),))
    one = table([1])

    def route(*rows: Any, **more: Any) -> Any:
        tensors = weights(
            embed__token=table([1], [2]),
            block__0__attn__q=one,
            block__0__attn__k=one,
            block__0__attn__v=one,
            block__0__attn__score_table=table(rows),
        )
        return work_out(forward.plan(spec, 2, **more), tensors, [0, 1], Exact())

    steps = route([0, ABSENT], [ABSENT, 0])
    assert steps["block.0.attn.mixed"].value.tolist() == [[[1], [2]]]
    swapped = route([ABSENT, 0], [0, ABSENT])
    assert swapped["block.0.attn.mixed"].value.tolist() == [[[2], [1]]]
    with pytest.raises(InputError, match="position 1 may look at no key") as caught:
        route([0, 0], [ABSENT, ABSENT])
    assert caught.value.where == "block.0.attn.scores[0,1]"
    with pytest.raises(InputError, match="position 0 may look at no key"):
        route([ABSENT, 0], [0, 0], mask=[[True, False], [True, True]])


def test_a_vocabulary_of_one_word_predicts_it() -> None:
    spec = ModelSpec("one", 1, 1, 1, ())
    model = Model(spec, weights(embed__token=table([3])), Vocabulary(("word",)))
    found = trace(model, "word", target="word")
    assert found.next is not None
    assert (found.next[0].id, found.next[0].proven, found.next[0].tied) == (0, True, ())
    assert found.loss.fraction == 0


# ------------------------------------------------------------------ what is kept


def test_rounded_numbers_are_kept_where_they_were_asked_for_and_nowhere_else() -> None:
    model = open_model("journey")
    found = trace(model, numbers=Pencil(4), only=["block.0.attn.weights", "logits"])
    assert list(found.steps) == ["block.0.attn.weights", "logits"]
    whole = trace(model, numbers=Pencil(4))
    assert found["logits"].value.tolist() == whole["logits"].value.tolist()
    with pytest.raises(AddressError, match="probs"):
        found["probs"]


def test_exact_numbers_keep_what_their_letters_stand_for() -> None:
    found = trace(open_model("journey"), only=["logits"])
    assert "block.0.attn.scores" in found.steps
    assert found.asked == ("logits",)


def test_values_live_from_their_step_to_their_last_reader() -> None:
    job = prepare(open_model("journey"), numbers=Pencil(3))
    alive: dict[str, weakref.ref[Any]] = {}
    most = 0

    def sink(worked: Worked) -> None:
        nonlocal most
        alive[worked.address] = weakref.ref(worked)
        most = max(most, sum(ref() is not None for ref in alive.values()))

    assert not job.work(keep=(), sink=sink).steps
    assert list(alive) == [step.address for step in job.plan]
    assert most < len(job.plan) / 3


def test_steps_asked_for_with_what_they_read_are_kept_together() -> None:
    job = prepare(open_model("journey"), numbers=Pencil(3), at=["block.0.attn.scores"])
    assert set(job.work().steps) == {
        "block.0.attn.scores",
        "block.0.attn.q",
        "block.0.attn.k",
    }


@pytest.mark.parametrize(
    ("name", "format"),
    [("tiny", "float32"), ("minigpt-init", "float32"), ("journey", "float64"), ("abc", "float64")],
)
def test_the_usual_floats_hold_every_weight(name: str, format: str) -> None:
    assert usual_format(open_model(name)) == format  # journey's 0.2 is no float32


def test_weights_in_float64_are_worked_out_in_float64(tiny: Model) -> None:
    wide = changed(tiny, "embed.token", np.array([[0.1, 0], [0, 1], [1, 1]]))
    assert usual_format(wide) == "float64"


def test_who_may_look_at_nothing_is_named_by_its_position_in_the_text() -> None:
    """With keys of before given, the first query of a pass is not the first position."""
    from byhand.evaluate import check_reach
    from byhand.files import parse_model

    model = parse_model(HIDDEN)
    with pytest.raises(ByhandError, match="position 1 may look at no key"):
        check_reach(forward.plan(model.spec, 1, positions=(1,)), model.weights)


HIDDEN = """
vocabulary: [a, b]
model: {d_model: 1, layers: 1, context: 2, mlp: none, attention: {score_table: true, window: 1}}
weights:
  embed.token: [[1], [2]]
  block.0.attn.q: ones
  block.0.attn.k: ones
  block.0.attn.v: ones
  block.0.attn.out: ones
  block.0.attn.score_table: [[[0, 0], [0, masked]]]
"""
