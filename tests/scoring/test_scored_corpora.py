"""Corpora: every text once, the same bytes whatever the number of workers and the kills."""

import errno
import os
import signal
import subprocess
import sys
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import byhand
from byhand import drafts
from byhand.errors import InputError, OutputError, UsageError
from byhand.scoring.corpora import cutting, folder
from byhand.scoring.samples import Sample
from byhand.scoring.scorer import Scorer

pytest.importorskip("pyarrow")

TEXTS = 120
KILLED = """
import os, signal, sys
sys.path.insert(0, {here!r})
from test_scored_corpora import run, small_shards
def progress(numbers, done, of):
    if done:
        os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    small_shards()
    run({out!r}, jobs=2, progress=progress)
"""


def corpus() -> list[Sample]:
    random, model = Random(3), byhand.open_model("minigpt")
    found = []
    for number in range(TEXTS):
        length = random.randint(2, model.spec.context or 12)
        ids = tuple(random.randrange(model.spec.vocab) for _place in range(length))
        found.append(Sample(f"text {number}", ids, random.randint(1, length - 1)))
    return found


def small_shards() -> None:
    """Shards of few texts, so that a small corpus has several."""
    cutting.rows_of_batch = lambda spec: 100  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _several_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "rows_of_batch", lambda spec: 100)


def run(out: Path | str, **how: Any) -> byhand.ScoredCorpus:
    return byhand.score_corpus("minigpt", corpus(), out, float="float32", **how)


def files(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(place.iterdir()) if path.name != "lock"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("scores") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "rows_of_batch", lambda spec: 100)
        run(place)
    return place


def test_every_text_is_there_once_with_the_scores_of_a_scorer(whole: Path) -> None:
    found = byhand.open_scores(whole)
    texts = corpus()
    assert found.shards >= 5
    assert (found.texts, found.numbers) == (TEXTS, "float32")
    placed = [pair for number in range(found.shards) for pair in found.shard(number)]
    assert sorted(place for place, _scores in placed) == list(range(TEXTS))
    alone = list(Scorer(byhand.open_model("minigpt"), "float32").score(texts))
    for place, scores in placed:
        sample = texts[place]
        assert (scores.sample.name, scores.sample.ids, scores.sample.first) == (
            sample.name, sample.ids, sample.first,
        )  # fmt: skip
        np.testing.assert_allclose(scores.logprobs, alone[place].logprobs, rtol=0, atol=1e-4)
        assert np.isinf(scores.radii).all()
    everything = np.concatenate([scores.logprobs for scores in alone])
    assert found.mean_logprob == pytest.approx(everything.mean(), abs=1e-6)
    assert found.tokens == len(everything)


def test_a_killed_worker_changes_no_byte(whole: Path, tmp_path: Path) -> None:
    killed = []

    def progress(_numbers: str, done: int, _of: int) -> None:
        if done and not killed:
            killed.append(active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    found = run(tmp_path / "out", jobs=2, progress=progress)
    assert killed
    assert files(tmp_path / "out") == files(whole)
    assert found.digest == byhand.open_scores(whole).digest


def test_a_killed_run_goes_on_where_it_was_and_changes_no_byte(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = tmp_path / "killed.py"
    script.write_text(KILLED.format(here=str(Path(__file__).parent), out=str(out)))
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *sys.path]))
    done = subprocess.run([sys.executable, script], env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == -signal.SIGKILL
    there = sorted(out.glob("shard-*"))
    assert 1 <= len(there) < byhand.open_scores(whole).shards
    (out / ".shard-00001.parquet-12345678").write_bytes(b"half a shard")
    written = [path.stat().st_mtime_ns for path in there]
    with pytest.raises(InputError, match="not complete"):
        byhand.open_scores(out)
    run(out)
    assert [path.stat().st_mtime_ns for path in there] == written
    assert files(out) == files(whole)


def test_proven_digits_are_written_by_the_same_way(tmp_path: Path) -> None:
    texts = ["<en> she climb -ed", "<es> ayer"]
    found = byhand.score_corpus("minigpt", texts, tmp_path / "out", digits=4)
    scored = sorted(found, key=lambda scores: scores.sample.name)
    assert [scores.sample.name for scores in scored] == ["1", "2"]
    assert all((scores.radii < 1e-4).all() for scores in scored)
    assert scored[0].best_proven.all()


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("numbers", {"float": "float64"}),
        ("model_sha256", {}),
        ("texts_sha256", {}),
    ],
)
def test_a_folder_of_another_run_is_refused(
    whole: Path, what: str, other: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"model": "minigpt", "texts": corpus(), "float": "float32", **other}
    before = files(whole)
    if what == "model_sha256":
        monkeypatch.setitem(said, "model", renamed(byhand.open_model("minigpt-init")))
    if what == "texts_sha256":
        said["texts"] = with_another_token()
    with pytest.raises(InputError, match=f"another run: {what} differs"):
        byhand.score_corpus(said.pop("model"), said.pop("texts"), whole, **said)
    assert files(whole) == before


def renamed(model: byhand.Model) -> byhand.Model:
    return replace(model, spec=replace(model.spec, name="minigpt"))


def with_another_token() -> list[Sample]:
    """The same corpus with one token changed."""
    first, *others = corpus()
    ids = ((first.ids[0] + 1) % 3, *first.ids[1:])
    return [Sample(first.name, ids, first.first), *others]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("\\documentclass")
    with pytest.raises(OutputError, match="holds something else"):
        run(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.name != "lock"] == ["thesis.tex"]


def test_two_runs_do_not_write_into_one_folder(whole: Path) -> None:
    facts = folder.read_manifest(whole)
    with folder.opened(whole, facts), pytest.raises(OutputError, match="another process"):
        run(whole)


def test_a_full_disk_is_said_and_what_is_written_stays(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = drafts.write_bytes, [3]

    def full_after_three(path: Path, data: bytes) -> None:
        if not left[0]:
            path.write_bytes(data[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left[0] -= 1
        write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(drafts, "write_bytes", full_after_three)
        with pytest.raises(OutputError, match="No space left"):
            run(tmp_path / "out")
    assert len(list((tmp_path / "out").glob("shard-*"))) == 2
    run(tmp_path / "out")
    assert files(tmp_path / "out") == files(whole)


def test_what_is_no_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="on has a value that does not fit"):
        run(tmp_path / "out", on="slurm")
    with pytest.raises(UsageError, match="exclude each other"):
        run(tmp_path / "out", on="ray", jobs=2)
    assert not (tmp_path / "out").exists()


def test_a_cluster_writes_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    found = run(tmp_path / "out", on="ray")
    assert files(tmp_path / "out") == files(whole)
    assert found.digest == byhand.open_scores(whole).digest
