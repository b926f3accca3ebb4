"""Several texts of one model: each is proven as if it were alone, its pass repeated or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import byhand
from byhand import repeating
from byhand.evaluate import Job, prepare
from byhand.generating import generate
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.proving.digits import enclosing_numbers, prove, prove_texts
from byhand.repeating import Passes, counted_down, prepare_texts, work_texts
from byhand.tracing import Trace

pytest.importorskip("torch")
DIGITS = 6


@pytest.fixture(scope="module")
def model() -> Model:
    return open_model("minigpt")


@pytest.fixture
def repeated(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Passes on this machine are repeated too; those that were prepared."""
    from byhand.numbers.enclosed.gpu.repeated_pass import RepeatedPass

    made: list[Any] = []

    class Noticed(RepeatedPass):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            made.append(self)
            self.passes = 0

        def lasting(self, tokens: Any) -> Any:
            self.passes += 1
            return super().lasting(tokens)

    monkeypatch.setattr("byhand.numbers.enclosed.gpu.repeated_pass.RepeatedPass", Noticed)
    monkeypatch.setattr(repeating, "can_repeat", lambda numbers: isinstance(numbers, Limbs))
    return made


def texts(model: Model, length: int, count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [
        model.vocabulary.decode(rng.integers(0, model.spec.vocab, length).tolist())
        for _text in range(count)
    ]


def jobs_of(model: Model, some: list[str], only: Any = ("logits", "next")) -> list[Job]:
    numbers = enclosing_numbers(model, DIGITS, device="cpu")
    return prepare_texts(model, some, lambda: numbers, only=only)


def truth(job: Job) -> Trace:
    """The same text in Arb balls, which share no arithmetic with limbs."""
    return replace(job, numbers=Balls(200)).work()


def assert_proven(trace: Trace, job: Job) -> None:
    assert trace.proof is not None
    assert trace.proof.complete
    assert trace.tokens == job.tokens
    assert trace.text == job.text
    arb = truth(job)
    for address in job.asked:
        if address == "next":
            assert [found.id for found in trace.next or ()] == [f.id for f in arb.next or ()]
            assert all(found.proven for found in trace.next or ())
        else:
            ours, theirs = trace.steps[address].array, arb.steps[address].array
            for index in np.ndindex(*trace.plan[address].shape):
                assert ours[index].overlaps(theirs[index])
                assert ours[index].proves(DIGITS)


def test_texts_of_one_length_are_proven_by_one_prepared_pass(
    model: Model, repeated: list[Any]
) -> None:
    jobs = jobs_of(model, texts(model, 5, 6))
    assert len({id(job.plan) for job in jobs}) == 1
    traces = list(prove_texts(jobs, DIGITS))  # kept: no pass writes over another's numbers
    for trace, job in zip(traces, jobs, strict=True):
        assert_proven(trace, job)
    (again,) = repeated
    assert again.repeats
    assert (again.passes, again.fallen_back) == (5, 0)  # the first text finds the precision


def test_a_repeated_proof_says_what_a_single_one_says(model: Model, repeated: list[Any]) -> None:
    jobs = jobs_of(model, texts(model, 4, 5, seed=1), only=("logits", "next", "probs"))
    for trace, job in zip(prove_texts(jobs, DIGITS), jobs, strict=True):
        alone = prove(job, DIGITS)
        assert [found.id for found in trace.next or ()] == [f.id for f in alone.next or ()]
        for address in ("logits", "probs"):
            ours, theirs = trace.steps[address].array, alone.steps[address].array
            for index in np.ndindex(*trace.plan[address].shape):
                assert ours[index].overlaps(theirs[index])
                assert abs(ours[index].mid - theirs[index].mid) < 10**-DIGITS
    assert repeated[0].passes == 4


def test_lengths_that_come_seldom_are_worked_out_as_usual(
    model: Model, repeated: list[Any]
) -> None:
    some = [*texts(model, 3, 2), *texts(model, 4, 4), *texts(model, 2, 1)]
    jobs = jobs_of(model, some)
    assert [times for _job, times in counted_down(jobs)] == [2, 1, 4, 3, 2, 1, 1]
    for trace, job in zip(prove_texts(jobs, DIGITS), jobs, strict=True):
        assert_proven(trace, job)
    assert [again.passes for again in repeated] == [4]


def test_whole_traces_are_repeated_with_their_own_tokens(model: Model, repeated: list[Any]) -> None:
    jobs = prepare_texts(model, texts(model, 3, 4), lambda: Limbs(120, "cpu"))
    for trace, job in zip(work_texts(jobs), jobs, strict=True):
        assert trace.steps["tokens"].value == job.tokens
        arb = truth(job)
        for address in ("embed.out", "block.1.attn.weights", "final_norm.out", "logits"):
            if address not in trace.steps:
                continue
            ours, theirs = trace.steps[address].array, arb.steps[address].array
            for index in np.ndindex(*trace.plan[address].shape):
                if ours[index] is not np.ma.masked:
                    assert ours[index].overlaps(theirs[index])
    assert repeated[0].passes == 4


def test_a_target_is_not_repeated(model: Model, repeated: list[Any]) -> None:
    some = texts(model, 3, 4)
    jobs = prepare_texts(model, some, lambda: Limbs(120, "cpu"), target=model.vocabulary.tokens[1])
    assert all("loss" in trace.steps for trace in work_texts(jobs))
    assert repeated == []


def test_only_so_many_plans_are_kept_prepared(model: Model, repeated: list[Any]) -> None:
    numbers = Limbs(90, "cpu")
    passes = Passes(repeating.Admitted(model.weights, numbers))
    for length in (2, 3, 4):
        job = prepare(model, texts(model, length, 1)[0], numbers, only=("next",))
        passes.work(job, keep=("next",), times=9)
    assert len(repeated) == repeating.PREPARED
    assert [ready.left for ready in passes._prepared] == [8, 8]


@pytest.mark.parametrize("numbers", ["exact", "digits 8", "decimals 3", "float32", None])
def test_traces_of_several_texts_are_those_of_each(numbers: str | None) -> None:
    some = ["a b", "c", "b a", "a b"]
    together = list(byhand.traces("tiny", iter(some), numbers=numbers, only="logits"))
    assert [trace.text for trace in together] == some
    for trace in together:
        alone = byhand.trace("tiny", trace.text, numbers=numbers, only="logits")
        assert trace.tokens == alone.tokens
        assert np.asarray(trace["logits"]).tolist() == np.asarray(alone["logits"]).tolist()
        assert trace.asked == alone.asked


def test_traces_share_the_refusals_of_trace() -> None:
    with pytest.raises(byhand.ByhandError):
        byhand.traces("tiny", ["a b"], numbers="exact", digits=3)
    with pytest.raises(byhand.ByhandError, match="zebra"):
        byhand.traces("tiny", ["a b", "zebra"])
    assert list(byhand.traces("tiny", [])) == []
    assert [trace.text for trace in byhand.traces("tiny", "a b")] == ["a b"]


def test_nothing_is_repeated_without_a_gpu(model: Model) -> None:
    assert not repeating.can_repeat(Limbs(90, "cpu"))
    assert not repeating.can_repeat(Balls(90))
    assert list(work_texts([])) == list(prove_texts([], 3)) == []


def test_a_generation_on_a_gpu_repeats_a_padded_pass(model: Model, repeated: list[Any]) -> None:
    prompt, model = model.text or "", replace(model, ends=())
    alone = generate(model, prompt, enclosing_numbers(model, 4), count=7, digits=4)
    ours = generate(model, prompt, enclosing_numbers(model, 4, device="cpu"), count=7, digits=4)
    for one, other in zip(alone, ours, strict=True):
        assert (one.id, one.proven, one.position) == (other.id, other.proven, other.position)
        assert one.probability.overlaps(other.probability)
        assert one.margin.overlaps(other.margin)
    assert sum(again.passes for again in repeated) >= 5
