"""`byhand.score_corpus`: many texts scored by several workers, into shards that survive kills."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from byhand.api import as_model
from byhand.language import _
from byhand.model import Model
from byhand.models import called
from byhand.options import Chosen, does_not_fit, refuse_together, refuse_unless_whole
from byhand.proofs import MOST_JOBS
from byhand.scoring.corpora.run import How, ScoredCorpus, Watch, score_shards
from byhand.scoring.texts import Given, read_texts, refuse_unless_scorable

DIGITS = 6  # decimals that are proven unless told otherwise
RAY = "ray"


def score_corpus(
    model: str | Path | Model,
    texts: Given | Iterable[Given],
    out: str | Path,
    *,
    digits: int | None = None,
    float: str | None = None,
    device: str | None = None,
    jobs: int | None = None,
    on: str | None = None,
    progress: Watch | None = None,
) -> ScoredCorpus:
    """The scores of a corpus, in Parquet files of the folder `out`.

    `texts` are as `byhand.score` takes them.  The numbers are `digits` proven decimals (6 unless
    told otherwise), or floats of the format `float`, on a `device` if one is given.  `jobs`
    processes of this machine share the work, one unless told otherwise; each holds the model and
    has one thread.  `on` is "ray" for a cluster on this machine, or "ray:ADDRESS" for that one.
    Then a worker is a core, or with a CUDA device a GPU.

    Texts are cut into shards by their length, and each shard is written whole, once.  After any
    kill, the same call goes on where the last one ended.  The files hold the same bytes whatever
    the number of workers.  `progress` is called with the numbers, the texts done and all texts.

    >>> from tempfile import TemporaryDirectory
    >>> import byhand
    >>> with TemporaryDirectory() as folder:
    ...     corpus = byhand.score_corpus("minigpt", ["<en> she climb -ed"], folder, float="float32")
    ...     corpus.texts, corpus.tokens, corpus.numbers, round(corpus.perplexity, 2)
    (1, 3, 'float32', 216.84)
    """
    chosen = Chosen(digits=digits, float=float, device=device)
    chosen.refuse_comparison()
    refuse_together({"jobs": jobs is not None, "on": on is not None})
    refuse_unless_whole("jobs", jobs, 1, MOST_JOBS)
    cluster = cluster_of(on)
    opened = as_model(model)
    refuse_unless_scorable(opened)
    samples = read_texts(opened, texts)
    if chosen.digits is None and chosen.float is None:
        chosen = Chosen(digits=DIGITS, device=device)
    how = How(chosen.digits, chosen.float, device)
    said = called(model) if not isinstance(model, Model) else called(opened)
    shipped = said if Path(said).exists() or not isinstance(model, Model) else opened
    return score_shards(
        opened, shipped, samples, Path(out), how,
        jobs=jobs or 1, cluster=cluster, progress=progress,
    )  # fmt: skip


def cluster_of(on: str | None, dashes: str = "") -> str | None:
    """The address of a cluster: `ray` is one of this machine, `ray:ADDRESS` the one there."""
    if on is None:
        return None
    kind, _colon, address = on.partition(":")
    if kind != RAY:
        raise does_not_fit("on", _("ray, or ray:ADDRESS"), on, dashes)
    return address or "local"
