"""RUN.yaml: what it says, what is wrong with it, and that what a run writes reads back to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand import forward
from byhand.errors import InputError, SpecError
from byhand.files import parse_model, parse_spec, tree
from byhand.files.architecture import read_architecture
from byhand.files.tables import model_table
from byhand.parameters import parameters
from byhand.plan import Step
from byhand.spec import ModelSpec
from byhand.tokens import Vocabulary
from byhand.train.corpora import open_corpus
from byhand.train.folder import usual_folder
from byhand.train.reading import builtin_runs, read_run
from byhand.train.run import Optimizer, Run, Schedule
from byhand.train.writing import model_text, run_text
from oracles.architectures import make_case

GOOD = """\
name: small
data: verbs
model: minigpt-init
init: {std: 0.02}
context: 16
steps: 200
batch: 8
accumulate: 2
optimizer: {lr: 3e-3, betas: [0.8, 0.9], eps: 1e-6, weight_decay: 0.2}
schedule: {warmup: 20, end: 0.5}
clip: 0.5
evaluate: {every: 10}
checkpoint: {every: 30}
seed: 5
format: float64
threads: 2
"""
TABLE = """\
model:
  d_model: 4
  layers: 1
  attention: {heads: 2}
  mlp: none
"""


def written(folder: Path, text: str, name: str = "small.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_setting_is_what_the_file_says(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, GOOD))
    assert run.name == run.spec.name == "small"
    assert run.corpus.name == "verbs"
    assert (run.spec.d_model, run.spec.vocab, run.start) == (64, 64, None)
    assert (run.std, run.context, run.steps) == (Fraction(1, 50), 16, 200)
    assert (run.batch, run.accumulate, run.clip, run.seed) == (8, 2, 0.5, 5)
    assert run.optimizer == Optimizer(3e-3, (0.8, 0.9), 1e-6, 0.2)
    assert run.schedule == Schedule(20, 0.5)
    assert (run.evaluate_every, run.checkpoint_every) == (10, 30)
    assert (run.format, run.threads) == ("float64", 2)
    assert usual_folder(run) == tmp_path / "runs" / "small"


def test_data_model_and_steps_are_enough(tmp_path: Path) -> None:
    run = read_run(
        written(tmp_path, "data: verbs\nsteps: 50\n" + TABLE + "context: 20\n", "x.yaml")
    )
    assert run.name == "x"
    assert run.std == Fraction(1, 50)
    assert run.schedule == Schedule(warmup=5, end=0.1)
    assert run.optimizer == Optimizer(1e-3, (0.9, 0.95), 1e-8, 0.1)
    assert (run.batch, run.accumulate, run.clip, run.seed) == (64, 1, 1.0, 1234)
    assert (run.format, run.threads) == ("float32", 1)
    assert (run.evaluate_every, run.checkpoint_every) == (100, 200)


def test_a_model_without_init_starts_from_its_own_weights(tmp_path: Path) -> None:
    tokens = "[" + ", ".join(f'"{token}"' for token in "ABC") + "]"
    written(
        tmp_path,
        f"vocabulary: {{kind: characters, tokens: {tokens}}}\n"
        "model: {d_model: 3, context: 4, layers: 0}\nweights: {embed.token: identity}\n",
        "start.yaml",
    )
    run = read_run(written(tmp_path, "data: abc\nmodel: start.yaml\nsteps: 5\n"))
    assert run.std is None
    assert run.start is not None
    assert run.model == tmp_path / "start.yaml"
    assert run.context == 4


def test_a_text_file_beside_the_run_is_read_by_characters(tmp_path: Path) -> None:
    written(tmp_path, "to be or not to be, that is the question\n" * 4, "hamlet.txt")
    run = read_run(written(tmp_path, f"data: hamlet.txt\nsteps: 5\ncontext: 8\n{TABLE}"))
    assert run.corpus.vocabulary.kind == "characters"
    assert run.spec.vocab == len(set("to be or not to be, that is the question\n"))


def test_the_built_in_runs_are_known_by_name_and_train_where_one_stands() -> None:
    assert builtin_runs() == ("abc", "minigpt")
    for name in builtin_runs():
        run = read_run(name)
        assert run.name == name
        assert usual_folder(run) == Path("runs") / name


def test_the_number_of_steps_can_be_given_in_place_of_the_files(tmp_path: Path) -> None:
    assert read_run(written(tmp_path, GOOD), steps=77).steps == 77


# ------------------------------------------------------------------ what is wrong


@dataclass(frozen=True)
class Bad:
    """GOOD with `old` replaced by `new`, and what the error must say."""

    old: str
    new: str
    where: str
    message: str
    expected: str | None = None
    found: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        return self.new.strip()[:50] or "nothing"


KEYS = (
    "name, data, model, init, context, steps, batch, accumulate, optimizer, schedule, clip, "
    "evaluate, checkpoint, seed, format, threads"
)
BAD = [
    Bad("seed: 5", "sead: 5", "14: sead", "there is no key 'sead' here", KEYS, "sead",
        "did you mean seed, threads, schedule?"),
    Bad("data: verbs\n", "", "1", "the key 'data' is missing", KEYS),
    Bad("data: verbs", "data: nouns", "2: data", "there is no corpus", None, "nouns"),
    Bad("model: minigpt-init", "model: minigtp-init", "3: model", "there is no model", None,
        "minigtp-init"),
    Bad("steps: 200", "steps: many", "6: steps", "many is not possible here",
        "a whole number from 1 to 1,000,000,000", "many"),
    Bad("steps: 200\n", "", "1", "the key 'steps' is missing", KEYS),
    Bad("accumulate: 2", "accumulate: 9", "8: accumulate", "accumulate cannot be 9",
        "at most the 8 texts of a step", "9"),
    Bad("lr: 3e-3", "lr: 0", "9: optimizer.lr", "optimizer.lr cannot be 0",
        "a number above 0", "0"),
    Bad("lr: 3e-3", "lr: fast", "9: optimizer.lr", "'fast' cannot be read"),
    Bad("lr: 3e-3", "lr: 10^400", "9: optimizer.lr", "10^400 is not possible here",
        "a number that a float can be"),
    Bad("lr: 3e-3", "rate: 3e-3", "9: optimizer.rate", "there is no key 'rate' here",
        "lr, betas, eps, weight_decay", "rate"),
    Bad("betas: [0.8, 0.9]", "betas: [0.8, 1]", "9: optimizer.betas[1]",
        "optimizer.betas[1] cannot be 1", "a number from 0 to below 1", "1"),
    Bad("betas: [0.8, 0.9]", "betas: 0.9", "9: optimizer.betas", "0.9 is not possible here",
        "a list of two numbers: [0.9, 0.95]", "0.9"),
    Bad("warmup: 20", "warmup: 201", "10: schedule.warmup", "schedule.warmup cannot be 201",
        "at most the 200 steps of the run", "201"),
    Bad("end: 0.5", "end: 2", "10: schedule.end", "schedule.end cannot be 2",
        "a number from 0 to 1"),
    Bad("clip: 0.5", "clip: -1", "11: clip", "clip cannot be -1", "a number above 0"),
    Bad("evaluate: {every: 10}", "evaluate: 10", "12: evaluate", "10 is not possible here",
        "a table with keys of every", "10"),
    Bad("format: float64", "format: float16", "15: format", "float16 is not possible here",
        "float64, float32, bfloat16", "float16"),
    Bad("context: 16", "context: 33", "5: context", "context cannot be 33",
        "a whole number from 1 to 32", "33"),
    Bad("context: 16", "context: 4", "5: context", "context cannot be 4"),
    Bad("name: small", "name: ../up", "1: name", "name cannot be ../up",
        "a name that a folder can have", "../up"),
    Bad("std: 0.02", "std: 0", "4: init.std", "init.std cannot be 0",
        "a number from 2^-60 to 2^60", "0"),
    Bad("model: minigpt-init\ninit: {std: 0.02}", "model: journey", "3: model",
        "the model's tokens are not those of the data", None, "the, cat, sat, on, mat, dog",
        "start from new weights: init: {std: 0.02}"),
    Bad("model: minigpt-init", "model: {d_model: 4, layers: 1, context: 32, attention: "
        "{causal: false}, mlp: none}", "3: model.attention.causal",
        "a model that learns what comes next must not see it", "true", "false in layer 0"),
    Bad("model: minigpt-init", "model: {d_model: 4, layers: 1, context: 32, attention: "
        "{score_table: true}, mlp: none}", "3: model",
        "block.0.attn.score_table is not learned, so it must be given", "a model file that has it",
        "an architecture alone"),
    Bad("model: minigpt-init", "model: {d_model: 4, layer: 1}", "3: model.layer",
        "there is no key 'layer' here"),
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_what_is_wrong_is_said_with_its_line_and_key(tmp_path: Path, bad: Bad) -> None:
    assert bad.old in GOOD
    path = written(tmp_path, GOOD.replace(bad.old, bad.new, 1))
    with pytest.raises(InputError) as caught:
        read_run(path)
    error = caught.value
    assert error.where == f"{path}:{bad.where}"
    assert error.message.startswith(bad.message)
    for name in ("expected", "found", "hint"):
        if getattr(bad, name) is not None:
            assert getattr(error, name) == getattr(bad, name)


def test_a_model_of_any_length_needs_a_context(tmp_path: Path) -> None:
    path = written(tmp_path, f"data: abc\nsteps: 5\n{TABLE}")
    with pytest.raises(InputError, match="the model takes texts of any length") as caught:
        read_run(path)
    assert caught.value.expected == "how many tokens are read at a time"


def test_a_stream_must_be_longer_than_the_context(tmp_path: Path) -> None:
    path = written(tmp_path, f"data: abc\nsteps: 5\ncontext: 96\n{TABLE}")
    with pytest.raises(InputError) as caught:
        read_run(path)
    assert caught.value.where == f"{path}:3: context"
    assert caught.value.expected == "at most 95, for a text of 96 tokens"


def test_weights_that_are_unknown_or_shared_are_no_start(tmp_path: Path) -> None:
    unknown = written(tmp_path, "data: abc\nmodel: abc-walkthrough\nsteps: 5\n")
    with pytest.raises(InputError, match=r"nothing can be learned from unknown weights") as caught:
        read_run(unknown)
    assert caught.value.found == "block.0.attn.qkv is unknown"
    written(
        tmp_path,
        "vocabulary: {kind: characters, tokens: [A, B, C]}\n"
        "model: {d_model: 3, layers: 0, head: {tied: false}}\n"
        'weights: {embed.token: identity, head: "@embed.token.T"}\n',
        "shared.yaml",
    )
    shared = written(tmp_path, "data: abc\nmodel: shared.yaml\nsteps: 5\ncontext: 3\n")
    with pytest.raises(InputError, match="would be learned apart") as caught:
        read_run(shared)
    assert caught.value.found == "head is the same as embed.token"


def test_from_python_the_same_is_refused_with_its_key() -> None:
    corpus = open_corpus("abc")
    spec = parse_spec("vocabulary: [a, b, c]\nmodel: {d_model: 2, layers: 0, context: 3}\n")
    with pytest.raises(SpecError, match=r"schedule.warmup cannot be 9") as caught:
        Run("x", corpus, spec, steps=5, schedule=Schedule(9))
    assert caught.value.key == "schedule.warmup"


# ------------------------------------------------------------------ the schedule


def test_the_learning_rate_rises_in_a_line_and_falls_along_a_cosine(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, GOOD))
    assert [run.rate(step) for step in (1, 10, 20)] == pytest.approx([0.00015, 0.0015, 0.003])
    assert run.rate(110) == pytest.approx(0.003 * 0.75)  # half way down, from 1 to 0.5
    assert run.rate(65) == pytest.approx(0.003 * (0.5 + 0.25 * (1 + math.cos(math.pi / 4))))
    assert run.rate(200) == 0.0015


def test_without_warm_up_and_with_nothing_but_warm_up(tmp_path: Path) -> None:
    assert Schedule(0, 0.1).share(1, 1) == 0.1
    assert Schedule(4, 0.1).share(4, 4) == 1
    assert Schedule(0, 1).share(3, 7) == 1


# ------------------------------------------------------------------ what is written reads back


def test_the_resolved_run_reads_back_to_the_same_run(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, GOOD))
    there = tmp_path / "runs" / "small"
    there.mkdir(parents=True)
    again = read_run(written(there, run_text(run, there), "run.yaml"))
    assert replace(again, data=run.data, model=run.model, file=run.file) == run
    assert run_text(again, there) == run_text(run, there)


def test_the_resolved_run_finds_a_text_file_and_a_model_file_again(tmp_path: Path) -> None:
    written(tmp_path, "abcabc" * 9, "letters.txt")
    tokens = "vocabulary: {kind: characters, tokens: [a, b, c]}\n"
    model = "model: {d_model: 3, context: 4, layers: 0}\nweights: {embed.token: identity}\n"
    written(tmp_path, tokens + model, "start.yaml")
    run = read_run(
        written(tmp_path, "data: letters.txt\nmodel: start.yaml\nsteps: 5\nclip: none\n")
    )
    there = tmp_path / "elsewhere" / "out"
    there.mkdir(parents=True)
    again = read_run(written(there, run_text(run, there), "run.yaml"))
    assert again.corpus.digest == run.corpus.digest
    assert again.start is not None
    assert (again.std, again.clip) == (None, None)


def meant(spec: ModelSpec) -> list[Step]:
    """The steps of a plan; a base that given angles make superfluous says nothing."""
    steps = []
    for step in forward.plan(spec, 3):
        attributes = dict(step.attributes)
        if "frequencies" in step.inputs:
            attributes.pop("base")
        steps.append(replace(step, attributes=attributes))
    return steps


@given(st.integers(0, 10**6))
def test_any_architecture_reads_back_to_the_same_plan(seed: int) -> None:
    random = Random(seed)
    spec = make_case(lambda _question, answers: random.choice(list(answers)), seed).spec
    vocabulary = Vocabulary(tuple("abc"[: spec.vocab]))
    text = model_text(spec, vocabulary, about="x", text="a", weights={})
    again = parse_spec(text)
    assert meant(again) == meant(spec)
    assert parameters(again) == parameters(spec)


def test_windows_that_differ_by_layer_read_back() -> None:
    table = """\
d_model: 4
layers: 3
attention: {heads: 2, window: 5}
mlp: {d_ff: 4}
blocks: {1: {attention: {window: 3}}}
"""
    spec = read_architecture(tree.read(table, "x"), "x", 3)
    first, middle, last = (replace(b) for b in spec.blocks)
    assert last.attention is not None
    free = replace(last, attention=replace(last.attention, window=None))
    spec = replace(spec, blocks=(first, middle, free))
    text = model_text(spec, Vocabulary(("a", "b", "c")), about="x", text="a", weights={})
    windows = [b.attention.window for b in parse_spec(text).blocks if b.attention]
    assert windows == [5, 3, None]
    assert model_table(parse_spec(text)) == model_table(spec)


@given(st.sets(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_any_characters_are_written_so_that_they_read_back(characters: set[str]) -> None:
    vocabulary = Vocabulary(tuple(sorted(characters)), "characters")
    spec = ModelSpec("x", len(vocabulary), 2, 4, ())
    text = vocabulary.tokens[0]
    weights = {"embed.token": "zeros"}
    model = parse_model(model_text(spec, vocabulary, about="x", text=text, weights=weights))
    assert model.vocabulary == vocabulary
    assert model.text == text
