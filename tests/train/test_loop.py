"""The training loop: what a step learns from, how it steps, and what is left in the folder."""

from __future__ import annotations

import json
import math
import os
import signal
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from byhand import trace
from byhand.errors import InputError, OutputError
from byhand.files import parse_spec
from byhand.models import open_model, open_spec
from byhand.spec import ModelSpec
from byhand.train import Beat, Interrupted, Result, Run, TorchModel, train
from byhand.train.batches import NOTHING, Texts, held_out, share
from byhand.train.corpora import Corpus, open_corpus
from byhand.train.evaluation import mean_loss, right_answers
from byhand.train.flat import Flat
from byhand.train.loop import first_weights
from byhand.train.run import Optimizer, Schedule
from calling import Outcome

ABC = open_corpus("abc")
VERBS = open_corpus("verbs")


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kernels of this process stay as other tests expect them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than learning ABC."""
    monkeypatch.setattr("byhand.train.result.write_figure", lambda *_drawn: None)


def small(**settings: Any) -> Run:
    """The model of the repeating pattern, to be trained for a moment."""
    spec = open_spec("abc-walkthrough")
    usual: dict[str, Any] = {
        "name": "small", "corpus": ABC, "spec": spec, "steps": 40, "std": Fraction(1, 2),
        "batch": 8, "optimizer": Optimizer(lr=0.05, weight_decay=0.0), "evaluate_every": 10,
        "checkpoint_every": 20,
    }  # fmt: skip
    return Run(**{**usual, **settings})


def wordy(**settings: Any) -> Run:
    """A small model over the verbs, which are documents."""
    spec = parse_spec(
        "vocabulary: {size: 64}\n"
        "model: {d_model: 8, context: 16, layers: 1, position: rope, norm: {eps: 1e-5}, "
        "attention: {heads: 2}, mlp: {d_ff: 16, activation: gelu, bias: true}}\n"
    )
    usual: dict[str, Any] = {"name": "wordy", "corpus": VERBS, "spec": spec, "steps": 4, "batch": 6}
    return Run(**{**usual, **settings})


# ------------------------------------------------------------------ what a step learns from


def test_the_rows_of_a_step_depend_on_the_seed_and_the_step_alone() -> None:
    one = Texts(ABC, 3, 16, 5, "cpu")
    late = Texts(ABC, 3, 16, 5, "cpu").rows(7)
    assert [one.rows(step).tolist() for step in (1, 7, 7)][1:] == [late.tolist()] * 2
    assert Texts(ABC, 3, 16, 6, "cpu").rows(7).tolist() != late.tolist()
    assert late.tolist() == [2, 83, 76, 31, 66, 40, 45, 69, 64, 20, 64, 65, 65, 46, 0, 52]


def test_a_window_of_a_stream_is_followed_by_the_next_token() -> None:
    texts = Texts(ABC, 3, 50, 5, "cpu")
    ids, targets = texts.take(texts.rows(1))
    assert ids.shape == targets.shape == (50, 3)
    assert torch.equal(targets, (ids + 1) % 3)
    assert texts.tokens(texts.rows(1)) == 150


def test_windows_never_run_from_one_document_of_a_stream_into_the_next() -> None:
    corpus = replace(ABC, train=((0, 0, 0, 0, 0), (1, 1, 1), (2, 2, 2, 2)))
    texts = Texts(corpus, 3, 500, 5, "cpu")
    ids, targets = texts.take(texts.rows(1))
    whole = torch.cat([ids, targets[:, -1:]], dim=1)
    assert sorted(set(map(tuple, whole.tolist()))) == [(0,) * 4, (2,) * 4]


def test_every_document_is_learned_from_once_before_any_comes_again() -> None:
    texts = Texts(VERBS, 32, 50, 5, "cpu")
    count = len(VERBS.train)
    taken = np.concatenate([texts.rows(step) for step in range(1, 3 * count // 50 + 2)])
    for begin in (0, count, 2 * count):
        assert sorted(taken[begin : begin + count]) == list(range(count))
    assert taken[:count].tolist() != taken[count : 2 * count].tolist()


def test_after_the_end_of_a_document_nothing_is_learned() -> None:
    texts = Texts(VERBS, 32, 30, 5, "cpu")
    rows = texts.rows(1)
    ids, targets = texts.take(rows)
    for row, known, wanted in zip(rows, ids.tolist(), targets.tolist(), strict=True):
        document = VERBS.train[row]
        length = len(document) - 1
        assert tuple(known[:length]) == document[:-1]
        assert tuple(wanted[:length]) == document[1:]
        assert set(wanted[length:]) <= {NOTHING}
    assert texts.tokens(rows) == int((targets != NOTHING).sum())


def test_parts_of_a_step_are_all_of_it() -> None:
    rows = np.arange(11)
    parts = [share(share(rows, rank, 3), part, 2) for rank in range(3) for part in range(2)]
    assert np.concatenate(parts).tolist() == rows.tolist()
    assert min(map(len, parts)) == 1


# ------------------------------------------------------------------ AdamW, clipping


def odd_module(seed: int) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    module = nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5), nn.Linear(5, 2)).double()
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return module


@pytest.mark.parametrize("clip", [None, 0.3, 1e9])
def test_a_flat_adamw_is_torchs_adamw(clip: float | None) -> None:
    ours, theirs = odd_module(1), odd_module(1)
    settings = Optimizer(lr=0.02, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.3)
    flat = Flat(ours)
    groups = [
        {"params": [p for p in theirs.parameters() if p.dim() >= 2], "weight_decay": 0.3},
        {"params": [p for p in theirs.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    oracle = torch.optim.AdamW(groups, lr=0.02, betas=(0.8, 0.9), eps=1e-6)
    generator = torch.Generator().manual_seed(2)
    for step in range(1, 31):
        x = torch.randn(4, 3, generator=generator, dtype=torch.float64)
        rate = 0.02 / step
        flat.take_gradients(ours(x).square().sum())
        norm = flat.clip(clip)
        flat.update(settings, rate, step)
        oracle.zero_grad()
        theirs(x).square().sum().backward()
        expected = nn.utils.clip_grad_norm_(theirs.parameters(), clip or math.inf)
        for group in oracle.param_groups:
            group["lr"] = rate
        oracle.step()
        assert float(norm) == pytest.approx(float(expected), rel=1e-12)
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert torch.allclose(one, other, rtol=1e-12, atol=1e-13)


def test_matrices_and_tables_alone_are_decayed() -> None:
    model = TorchModel(open_spec("minigpt-init"), open_model("minigpt-init").weights)
    flat = Flat(model)
    before = flat.values.clone()
    flat.grads.zero_()
    flat.update(Optimizer(weight_decay=0.5), 0.1, 1)
    sizes = {name: part.dim() for name, part in flat.by_name(flat.values).items()}
    assert flat.decayed == sum(p.numel() for p in model.parameters() if p.dim() == 2) == 102_400
    after, was = flat.by_name(flat.values), flat.by_name(before)
    for name, axes in sizes.items():
        factor = 0.95 if axes == 2 else 1.0
        assert torch.allclose(after[name], was[name] * factor, rtol=1e-6, atol=0)


def test_the_parameters_of_the_module_are_views_of_the_flat_row() -> None:
    model = TorchModel(open_spec("tiny"), open_model("tiny").weights)
    flat = Flat(model)
    flat.values.fill_(2.0)
    assert all(bool((p == 2).all()) for p in model.parameters())


# ------------------------------------------------------------------ accumulation and evaluation


def final(result: Result) -> dict[str, Any]:
    return {name: tensor.data for name, tensor in result.model.weights.items()}


@pytest.mark.usefixtures("no_figure")
@pytest.mark.parametrize("make", [small, wordy], ids=["stream", "documents"])
def test_accumulating_is_one_large_step(tmp_path: Path, make: Callable[..., Run]) -> None:
    gentle = Optimizer(eps=1e-3)  # some gradients are nothing but rounding, which must stay small
    whole = train(make(format="float64", steps=6, optimizer=gentle), out=tmp_path / "whole")
    again = make(format="float64", steps=6, optimizer=gentle, accumulate=5)
    parts = train(again, out=tmp_path / "parts")
    assert parts.losses == pytest.approx(whole.losses, rel=1e-12)
    for name, data in final(whole).items():
        np.testing.assert_allclose(final(parts)[name], data, rtol=1e-12, atol=1e-13)


@torch.no_grad()
def test_the_held_out_loss_is_that_of_each_document_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("byhand.train.batches.AT_ONCE", 100)
    model = open_model("minigpt-init")
    module = TorchModel(replace(model.spec, vocab=64), model.weights, format="float64")
    total, count = 0.0, 0
    for document in VERBS.validation[:30]:
        logits = module(torch.tensor([document[:-1]]))[0]
        total += float(
            functional.cross_entropy(logits, torch.tensor(document[1:]), reduction="sum")
        )
        count += len(document) - 1
    corpus = replace(VERBS, validation=VERBS.validation[:30])
    texts = list(held_out(corpus, 32, "cpu"))
    assert len(texts) > 2
    found = mean_loss(module, texts, "float64", torch.device("cpu"))
    assert found == pytest.approx(total / count, rel=1e-12)


def test_a_held_out_stream_is_read_piece_by_piece_and_each_token_asked_once() -> None:
    corpus = replace(ABC, validation=(tuple(range(3)) * 4,))
    ((ids, targets),) = held_out(corpus, 5, "cpu")
    assert ids.tolist()[:2] == [[0, 1, 2, 0, 1], [2, 0, 1, 2, 0]]
    assert targets.tolist() == [[1, 2, 0, 1, 2], [0, 1, 2, 0, 1], [2] + [NOTHING] * 4]


def test_a_right_answer_is_right_from_its_first_token_to_its_last() -> None:
    class Counts(nn.Module):
        """Says the next number, whatever came before; never 5."""

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            following = torch.where(ids == 4, 0, ids + 1)
            return functional.one_hot(following, 8).float()

    from byhand.train.corpora import Question

    questions = [
        Question((1, 2), (3, 4), "right"),
        Question((1, 2), (3,), "right"),
        Question((1, 2), (4, 5), "wrong at once"),
        Question((2,), (3, 4, 5), "wrong at its end"),
    ]
    assert right_answers(Counts(), questions, torch.device("cpu")) == 2


# ------------------------------------------------------------------ a whole run


def test_abc_is_learned_and_everything_is_in_the_folder(tmp_path: Path) -> None:
    beats: list[Beat] = []
    result = train(small(), out=tmp_path / "run", progress=beats.append)
    folder = tmp_path / "run"
    assert sorted(p.name for p in folder.iterdir() if not p.name.startswith("events")) == [
        ".lock", "checkpoints", "log.jsonl", "loss.png", "loss.svg", "manifest.json",
        "model.safetensors", "model.yaml", "run.yaml", "timings.jsonl",
    ]  # fmt: skip
    assert result.losses[0] > 0.8
    assert result.losses[-1] < 0.1
    assert result.validation[-1] == (40, result.loss)
    assert [step for step, _loss in result.validation] == [10, 20, 30, 40]
    assert result.perplexity == pytest.approx(math.exp(result.loss))
    assert result.uniform == pytest.approx(math.log(3))
    assert (result.baseline, result.questions) == (None, 0)
    assert (result.tokens, result.steps, result.began) == (40 * 8 * 3, 40, 0)
    assert [beat.step for beat in beats] == list(range(1, 41))
    assert beats[-1].validation == result.validation[-2][1]
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert lines[0] == {
        "step": 1,
        "loss": result.losses[0],
        "lr": 0.05 / 4,
        "grad_norm": beats[0].norm,
        "tokens": 24,
    }
    assert lines[10] == {
        "step": 10,
        "validation_loss": result.validation[0][1],
        "perplexity": math.exp(result.validation[0][1]),
    }
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["data"] == {"name": "abc", "sha256": ABC.digest}
    assert (manifest["parameters"], manifest["seed"], manifest["threads"]) == (87, 1234, 1)
    assert manifest["torch"] == torch.__version__
    index = json.loads((folder / "checkpoints" / "index.json").read_text())
    assert index == {"last": "step-000040", "best": "step-000040"}
    assert sorted(p.name for p in (folder / "checkpoints").glob("step-*")) == [
        "step-000030",
        "step-000040",
    ]


@pytest.mark.usefixtures("no_figure")
def test_the_model_file_is_the_model_that_learned(tmp_path: Path) -> None:
    run = small()
    result = train(run, out=tmp_path / "run")
    model = open_model(tmp_path / "run" / "model.yaml")
    assert (model.name, model.text) == ("small", "ABC")
    module = TorchModel(run.spec, model.weights, format="float64")
    worked = trace(model, "ABC", float="float64")
    logits = module(torch.tensor([[0, 1, 2]]))[0].detach().numpy()
    np.testing.assert_allclose(worked["logits"].value, logits, rtol=0, atol=1e-12)
    for name, tensor in model.weights.items():
        assert np.array_equal(tensor.data, result.model.weights[name].data)
    assert [found.id for found in worked.next or ()] == [1, 2, 0]


@pytest.mark.usefixtures("no_figure")
def test_the_model_has_the_best_weights_not_the_last(tmp_path: Path) -> None:
    wild = Optimizer(lr=30.0, weight_decay=0.0)
    run = small(optimizer=wild, schedule=Schedule(30, 1.0), evaluate_every=1, clip=None)
    result = train(run, out=tmp_path / "run")
    assert result.best_step < 40
    module = TorchModel(run.spec, result.model.weights)
    texts = list(held_out(ABC, 3, "cpu"))
    found = mean_loss(module, texts, "float32", torch.device("cpu"))
    assert found == result.loss == min(loss for _step, loss in result.validation)


@pytest.mark.usefixtures("no_figure")
def test_equal_runs_have_equal_logs_and_weights(tmp_path: Path) -> None:
    one, two = (train(small(), out=tmp_path / name) for name in ("one", "two"))
    for file in ("log.jsonl", "model.safetensors", "checkpoints/step-000040/state.json"):
        assert (one.folder / file).read_bytes() == (two.folder / file).read_bytes()
    other = train(small(seed=5), out=tmp_path / "other")
    assert other.losses != one.losses


@pytest.mark.usefixtures("no_figure")
def test_the_resolved_run_gives_the_same_numbers(tmp_path: Path) -> None:
    first = train(wordy(), out=tmp_path / "one")
    again = train(tmp_path / "one" / "run.yaml", out=tmp_path / "two")
    assert again.losses == first.losses


@pytest.mark.usefixtures("no_figure")
def test_a_run_over_documents_knows_its_baseline_and_its_questions(tmp_path: Path) -> None:
    result = train(wordy(), out=tmp_path / "run")
    assert result.baseline is not None
    assert 0 < result.baseline < result.uniform
    assert result.questions == len(VERBS.questions)
    assert 0 <= result.right <= result.questions


@pytest.mark.usefixtures("no_figure")
def test_new_weights_are_normal_numbers_ones_and_zeros() -> None:
    weights = first_weights(wordy(seed=3))
    again = open_model("minigpt-init").weights["block.0.attn.q"]
    assert weights["block.0.attn.q"].data.std() == pytest.approx(0.02, rel=0.3)
    assert set(weights["block.0.attn.norm.gain"].data) == {1.0}
    assert set(weights["block.0.mlp.hidden_bias"].data) == {0.0}
    spec = open_spec("minigpt-init")
    same = first_weights(Run("x", VERBS, spec, steps=1, seed=1))["block.0.attn.q"]
    assert np.array_equal(same.data, again.data)


@pytest.mark.usefixtures("no_figure")
def test_a_run_can_start_from_a_models_own_weights(tmp_path: Path) -> None:
    first = train(small(), out=tmp_path / "first")
    model = open_model(first.folder / "model.yaml")
    second = train(small(start=model, std=None, steps=2), out=tmp_path / "second")
    assert second.losses[0] < 0.1


@pytest.mark.usefixtures("no_figure")
def test_buffers_are_used_and_handed_on_but_not_learned(tmp_path: Path) -> None:
    (tmp_path / "start.yaml").write_text(
        "vocabulary: {kind: characters, tokens: [A, B, C]}\n"
        "model: {d_model: 2, context: 3, layers: 1, position: alibi, mlp: none, attention: "
        "{score_table: true}}\n"
        "weights: {embed.token: {normal: {std: 1, seed: 1}}, block.0.attn.q: identity, "
        "block.0.attn.k: identity, block.0.attn.v: identity, block.0.attn.out: identity, "
        "block.0.attn.score_table: [[[0, 0, 0], [masked, 1/4, 0], [1/2, masked, 0.1]]]}\n"
    )
    (tmp_path / "run.yaml").write_text("data: abc\nmodel: start.yaml\nsteps: 3\n")
    train(tmp_path / "run.yaml", out=tmp_path / "out")
    model = open_model(tmp_path / "out" / "model.yaml")
    table = model.weights["block.0.attn.score_table"].data
    assert table[0, 1].tolist()[1:] == [Fraction(1, 4), 0]
    assert table[0, 2, 2] == Fraction(float(np.float32(0.1)))
    scores = trace(model, "ABC", float="float64")["block.0.attn.scores"]
    assert scores.at((0, 1, 0)) is None
    assert scores.at((0, 2, 1)) is None


@pytest.mark.usefixtures("no_figure")
def test_bfloat16_products_over_float32_weights_learn_too(tmp_path: Path) -> None:
    result = train(wordy(format="bfloat16", steps=30), out=tmp_path / "half")
    exact = train(wordy(steps=30), out=tmp_path / "full")
    assert result.losses != exact.losses
    assert result.losses[-1] == pytest.approx(exact.losses[-1], rel=0.02)
    assert result.model.weights["embed.token"].dtype == np.float32


def test_the_curve_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    train(small(steps=12), out=tmp_path / "one")
    train(small(steps=12), out=tmp_path / "two")
    for name in ("loss.svg", "loss.png"):
        drawn = (tmp_path / "one" / name).read_bytes()
        assert len(drawn) > 5_000
        assert drawn == (tmp_path / "two" / name).read_bytes()
    svg = (tmp_path / "one" / "loss.svg").read_text("utf-8")
    assert "<dc:date>" not in svg


def events(folder: Path) -> Iterator[Any]:
    """The events of all files of a folder: a length, its checksum, the event, its checksum."""
    from tensorboardX.proto.event_pb2 import Event

    for path in sorted(folder.glob("events.out.tfevents.*"), key=lambda p: p.stat().st_mtime):
        raw = path.read_bytes()
        while raw:
            (length,) = struct.unpack("<Q", raw[:8])
            yield Event.FromString(raw[12 : 12 + length])
            raw = raw[16 + length :]


@pytest.mark.usefixtures("no_figure")
def test_the_event_files_can_be_read(tmp_path: Path) -> None:
    result = train(small(), out=tmp_path / "run")
    found = {
        (event.step, value.tag): value.simple_value
        for event in events(result.folder)
        for value in event.summary.value
    }
    assert found[1, "loss/train"] == pytest.approx(result.losses[0])
    assert found[40, "loss/validation"] == pytest.approx(result.validation[-1][1])
    assert found[40, "lr"] == pytest.approx(0.005)
    assert {tag for _step, tag in found} == {"loss/train", "loss/validation", "lr", "grad_norm"}


@pytest.mark.usefixtures("no_figure")
def test_a_loss_that_is_no_number_ends_the_run_and_leaves_what_was_saved(tmp_path: Path) -> None:
    wild = Optimizer(lr=1e38, weight_decay=0.0)
    run = small(optimizer=wild, schedule=Schedule(0, 1.0), clip=None, steps=300)
    with pytest.raises(InputError, match="the loss is no longer a finite number") as caught:
        train(run, out=tmp_path / "run")
    assert str(caught.value.where).startswith("step ")
    assert "optimizer.lr" in str(caught.value.hint)
    for folder in (tmp_path / "run" / "checkpoints").glob("step-*"):
        assert b"NaN" not in (folder / "state.json").read_bytes()


# ------------------------------------------------------------------ stopping and going on


def stopping_at(step: int, number: int) -> Callable[[Beat], None]:
    def beat(beat: Beat) -> None:
        if beat.step == step:
            os.kill(os.getpid(), number)

    return beat


@pytest.mark.usefixtures("no_figure")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_saved_and_goes_on_to_the_same_end(
    tmp_path: Path, number: int
) -> None:
    whole = train(small(), out=tmp_path / "whole")
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted) as caught:
        train(small(), out=tmp_path / "run", progress=stopping_at(17, number))
    assert signal.getsignal(signal.SIGINT) is before
    assert 17 <= caught.value.step <= 18
    assert (tmp_path / "run" / "checkpoints" / f"step-{caught.value.step:06d}").is_dir()
    again = train(small(), out=tmp_path / "run", resume=True)
    assert (again.began, again.steps) == (caught.value.step, 40)
    assert again.losses == whole.losses
    for file in ("log.jsonl", "model.safetensors", "checkpoints/step-000040/state.json"):
        assert (again.folder / file).read_bytes() == (whole.folder / file).read_bytes()
    starts = [event.step for event in events(again.folder) if event.HasField("session_log")]
    assert starts == [caught.value.step + 1]


@pytest.mark.usefixtures("no_figure")
def test_a_finished_run_says_so(tmp_path: Path) -> None:
    first = train(small(), out=tmp_path / "run")
    again = train(small(), out=tmp_path / "run", resume=True)
    assert again.began == again.steps == 40
    assert (again.losses, again.loss) == (first.losses, first.loss)


@pytest.mark.usefixtures("no_figure")
def test_what_else_it_is_run_with_is_noted(tmp_path: Path) -> None:
    train(small(), out=tmp_path / "run")
    again = train(small(threads=2), out=tmp_path / "run", resume=True)
    assert again.notes == ("threads was 1 and is 2",)


@pytest.mark.usefixtures("no_figure")
def test_no_disk_space_loses_nothing_that_was_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(small(), out=tmp_path / "whole")
    calls = 0
    real = os.fsync

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 24:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError) as caught:
        train(small(), out=tmp_path / "run")
    assert caught.value.found == "No space left on device"
    assert caught.value.hint == "what was saved before is safe: make room and go on with --resume"
    assert list((tmp_path / "run" / "checkpoints").glob(".*")) == []
    monkeypatch.setattr(os, "fsync", real)
    again = train(small(), out=tmp_path / "run", resume=True)
    assert 0 < again.began < 40
    assert (again.folder / "log.jsonl").read_bytes() == (whole.folder / "log.jsonl").read_bytes()


# ------------------------------------------------------------------ the command


RUN = """\
data: abc
model: abc-walkthrough
init: {std: 0.5}
steps: 20
batch: 8
optimizer: {lr: 0.05}
evaluate: {every: 10}
"""


@pytest.mark.usefixtures("no_figure")
def test_the_command_trains_beside_its_file_and_shows_what_came_of_it(
    byhand: Callable[..., Outcome], tmp_path: Path
) -> None:
    (tmp_path / "abc.yaml").write_text(RUN)
    done = byhand("train", str(tmp_path / "abc.yaml"))
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[:4] == ["abc", "", "  steps            20", "  tokens           480"]
    assert lines[-1] == f"  byhand trace {tmp_path}/runs/abc/model.yaml"
    assert "  knowing nothing  1.0986 (perplexity 3.0000)" in lines
    again = byhand("train", str(tmp_path / "abc.yaml"))
    assert again.status == 2
    assert "this folder holds a run already" in again.err
    assert "hint: --resume goes on with it" in again.err
    over = byhand("train", str(tmp_path / "abc.yaml"), "--resume", "--json")
    assert over.err == "this run had already finished: nothing was left to do\n"
    found = json.loads(over.out)
    assert (found["run"], found["steps"], found["began"]) == ("abc", 20, 20)
    assert found["validation"]["step"] == 20
    assert found["baseline"] is None


@pytest.mark.usefixtures("no_figure")
def test_the_command_says_how_to_go_on(
    byhand: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "abc.yaml").write_text(RUN)

    @contextmanager
    def telling(steps: int) -> Iterator[Callable[[Beat], None]]:
        assert steps == 30
        yield stopping_at(7, signal.SIGINT)

    monkeypatch.setattr(import_module("byhand.cli.train"), "telling", telling)
    out = str(tmp_path / "a b")
    done = byhand("train", str(tmp_path / "abc.yaml"), "--steps", "30", "--out", out)
    assert done.status == 130
    first, second = done.err.splitlines()
    assert first in (
        "interrupted after step 7 of 30, and saved; go on with",
        "interrupted after step 8 of 30, and saved; go on with",
    )
    assert second == f"  byhand train {tmp_path}/abc.yaml --out '{out}' --steps 30 --resume"


@pytest.mark.parametrize("package", ["torch", "matplotlib", "tensorboardX"])
def test_a_package_that_is_missing_is_named(
    byhand: Callable[..., Outcome],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
) -> None:
    import sys

    (tmp_path / "abc.yaml").write_text(RUN)
    monkeypatch.setitem(sys.modules, package, None)
    done = byhand("train", str(tmp_path / "abc.yaml"))
    assert done.status == 2
    assert done.err.splitlines() == [
        f"error: {package} is not installed",
        "  hint: pip install 'byhand[train]'",
    ]


@pytest.mark.parametrize("steps", ["0", "-1", "x", "1e3", "9999999999"])
def test_a_number_of_steps_is_a_whole_number(byhand: Callable[..., Outcome], steps: str) -> None:
    done = byhand("train", "abc.yaml", "--steps", steps)
    assert done.status == 2
    assert "expected: a whole number from 1 to 1,000,000,000" in done.err


def corpus_of(*documents: tuple[int, ...]) -> Corpus:
    return replace(ABC, train=documents, validation=documents, stream=False)


def test_documents_longer_than_the_context_are_refused() -> None:
    spec: ModelSpec = open_spec("abc-walkthrough")
    with pytest.raises(InputError) as caught:
        Run("x", corpus_of((0, 1, 2, 0, 1)), spec, steps=5)
    assert caught.value.expected == "at least 4, for documents of 5 tokens"
    assert Run("x", corpus_of((0, 1, 2, 0)), spec, steps=5).window == 3
