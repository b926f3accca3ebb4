"""One run over a corpus: shards go to workers, each of which holds the model, and come back scored.

This process alone writes.  Each shard is written whole as soon as it is scored, so that a kill of
anything costs the shards that were being scored, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, fsum
from pathlib import Path

from byhand.display import Shown
from byhand.drafts import write_whole
from byhand.errors import InputError
from byhand.language import _
from byhand.model import Model
from byhand.models import open_model
from byhand.proving.search.journal import identity_of_model
from byhand.scoring.corpora import cutting, folder
from byhand.scoring.corpora.parquet import arrow, decoded, encoded
from byhand.scoring.samples import Sample
from byhand.scoring.scorer import Scorer
from byhand.scoring.scores import Scores
from byhand.version import __version__
from byhand.workers import Workers

AHEAD = 2  # shards that are handed in for each worker, so that none waits

Watch = Callable[[str, int, int], None]  # the numbers, and how many of how many texts are done


@dataclass(frozen=True)
class How:
    """The numbers that texts are scored in."""

    digits: int | None = None
    float: str | None = None
    device: str | None = None

    def scorer(self, model: Model) -> Scorer:
        """The scorer of a model in these numbers."""
        return Scorer(model, self.float, self.digits, self.device)


@dataclass(frozen=True)
class ScoredCorpus(Shown):
    """The scores of a corpus, in the shards of a folder.

    `byhand.score_corpus` makes one; `open_scores` opens one that is there.

    >>> from tempfile import TemporaryDirectory
    >>> import byhand
    >>> with TemporaryDirectory() as folder:
    ...     corpus = byhand.score_corpus("tiny", ["a b"], folder, float="float32")
    ...     [scores.ranks.tolist() for scores in corpus]
    [[3]]
    """

    path: Path
    texts: int
    tokens: int  # that are scored
    shards: int
    numbers: str

    def __iter__(self) -> Iterator[Scores]:
        """The scores of every text, shard by shard: from the shortest text to the longest."""
        for number in range(self.shards):
            yield from (scores for _place, scores in self.shard(number))

    def shard(self, number: int) -> list[tuple[int, Scores]]:
        """The texts of one shard: the place of each in the corpus, and its scores."""
        return list(decoded(folder.shard_path(self.path, number)))

    @property
    def digest(self) -> str:
        """The digest of all files: equal where two runs wrote the same bytes."""
        return folder.digest_of(self.path, self.shards)

    @cached_property
    def mean_logprob(self) -> float:
        """The mean of all log-probabilities."""
        return fsum(each for scores in self for each in scores.logprobs.tolist()) / self.tokens

    @property
    def perplexity(self) -> float:
        """e to the power of the mean loss."""
        return exp(-self.mean_logprob)

    def __repr__(self) -> str:
        return f"<ScoredCorpus {self.path}: {self.texts:,} texts, {self.numbers}>"


def open_scores(path: str | Path) -> ScoredCorpus:
    """The scores in the folder at `path`; an InputError where shards are still to be written.

    >>> from tempfile import TemporaryDirectory
    >>> import byhand
    >>> with TemporaryDirectory() as folder:
    ...     made = byhand.score_corpus("tiny", ["a b"], folder, float="float32")
    ...     byhand.open_scores(folder).digest == made.digest
    True
    """
    place = Path(path)
    facts = folder.read_manifest(place)
    missing = sum(
        not folder.shard_path(place, number).is_file() for number in range(facts["shards"])
    )
    if missing:
        raise InputError(
            _("these scores are not complete"),
            where=str(place),
            expected=_("{count} shards").format(count=facts["shards"]),
            found=str(facts["shards"] - missing),
            hint=_("the same command goes on with them"),
        )
    return _of(place, facts)


def _of(place: Path, facts: folder.Facts) -> ScoredCorpus:
    return ScoredCorpus(place, facts["texts"], facts["tokens"], facts["shards"], facts["numbers"])


def score_shards(
    model: Model,
    shipped: str | Model,
    samples: Sequence[Sample],
    place: Path,
    how: How,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Watch | None = None,
) -> ScoredCorpus:
    """Scores all samples into a folder; what is there already is not scored again.

    `shipped` is what workers open the model by: a path, or the model itself.
    """
    arrow()  # before the work starts
    scorer = how.scorer(model)  # refuses what does not fit, before anything is written
    shards = cutting.cut(model.spec, samples, how.digits is not None)
    facts = {
        "format": folder.FORMAT,
        "version": 1,
        "byhand": __version__,
        "model": model.name,
        "model_sha256": identity_of_model(model),
        "numbers": scorer.numbers.name if how.device else scorer.name,
        "texts": len(samples),
        "tokens": sum(len(sample.scored) for sample in samples),
        "texts_sha256": cutting.digest_of(samples),
        "shards": len(shards),
    }
    name = scorer.name
    del scorer
    with folder.opened(place, facts) as there:
        done = sum(len(shards[number].places) for number in there)
        if progress:
            progress(name, done, len(samples))
        left = [shard for shard in shards if shard.number not in there]
        begin = open_scorer, (shipped, how)
        gpus = how.device is not None and how.device.startswith("cuda")
        if left:
            with Workers(jobs, cluster, begin=begin, apart=True, gpus=gpus) as workers:
                for number, data in _scored(workers, left):
                    write_whole(folder.shard_path(place, number), data)
                    done += len(shards[number].places)
                    if progress:
                        progress(name, done, len(samples))
    return _of(place, facts)


def _scored(workers: Workers, left: Sequence[cutting.Shard]) -> Iterator[tuple[int, bytes]]:
    """The files of shards as they come; the longest texts go first, so that no worker is late."""
    coming = iter(reversed(left))
    for _ahead, shard in zip(range(AHEAD * workers.count), coming, strict=False):
        workers.submit(score_shard, shard)
    for result in workers.results():
        if (shard_after := next(coming, None)) is not None:
            workers.submit(score_shard, shard_after)
        yield result


# ------------------------------------------------------------------ in a worker


def open_scorer(shipped: str | Model, how: How) -> Scorer:
    """What a worker holds: the scorer of the model, with its weights."""
    return how.scorer(shipped if isinstance(shipped, Model) else open_model(shipped))


def score_shard(scorer: Scorer, shard: cutting.Shard) -> tuple[int, bytes]:
    """A shard's number and its file."""
    return shard.number, encoded(shard.places, list(scorer.score(shard.samples)))
