"""`byhand score … --jobs N` and `--on ray`: a corpus is scored into the shards of a folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from byhand.cli.printing import talk
from byhand.errors import UsageError
from byhand.exit_status import FINE
from byhand.language import _, whole
from byhand.options import Chosen, refuse_together, whole_or_text

MOST_JOBS = 1_024


def score_into_shards(
    model: str,
    texts: tuple[str, ...],
    out: str | None,
    numbers: tuple[str | None, str | None, str | None],
    where: tuple[int | None, str | None],
    as_json: bool,
) -> int:
    """Scores the texts into the folder `out`, and says what is there; returns the exit status."""
    from byhand.corpora import cluster_of, score_corpus

    jobs, on = where
    refuse_together({"--jobs": jobs is not None, "--on": on is not None})
    cluster_of(on, "--")
    if out is None:
        raise UsageError(
            _("a corpus is scored into a folder, and none is given"), expected="--out DIR"
        )
    if not texts:
        raise UsageError(
            _("there is no text to score"), expected=_("texts, or files of them"), found="0"
        )
    digits, float, device = numbers
    chosen = Chosen(digits=whole_or_text(digits), float=float, device=device, dashes="--")
    try:
        with scoring() as progress:
            found = score_corpus(
                model, texts, out, digits=chosen.digits, float=float, device=device,
                jobs=jobs, on=on, progress=progress,
            )  # fmt: skip
    except KeyboardInterrupt:
        talk(_("the shards that are written stay; the same command goes on with the others"))
        raise
    facts = {
        "texts": found.texts,
        "tokens": found.tokens,
        "shards": found.shards,
        "numbers": found.numbers,
        "mean_logprob": found.mean_logprob,
        "perplexity": found.perplexity,
        "digest": found.digest,
    }
    if as_json:
        json.dump(facts, sys.stdout, indent=2)
        click.echo()
        return FINE
    counts = {"texts": whole(found.texts), "tokens": whole(found.tokens)}
    click.echo(_("texts: {texts}; tokens that are scored: {tokens}").format(**counts))
    click.echo(
        _("in {numbers}, ln p is {mean} on average: perplexity {perplexity}").format(
            numbers=found.numbers,
            mean=f"{found.mean_logprob:.6f}", perplexity=f"{found.perplexity:.4f}",
        )
    )  # fmt: skip
    click.echo(_("digest of the files: {digest}").format(digest=found.digest))
    talk(_("the scores are in {folder}").format(folder=out))
    return FINE


@contextmanager
def scoring() -> Iterator[Callable[[str, int, int], None] | None]:
    """A callback for the texts that are done; None without a terminal."""
    from byhand.cli.progress import Status, can_move, shown_later

    if not can_move():
        yield None
        return
    status = Status(_("getting ready"))
    with shown_later(status):
        yield lambda numbers, done, of: status.doing(
            _("scoring texts in {numbers}").format(numbers=numbers), done, of
        )
