"""Scored texts as data: the JSON document of `byhand score`.

    {"model", "numbers", "proven", "mean_loss", "perplexity", "format", "usual_spread", "standings",
     "engines": [{"engine", "summary", "likeness": [{"format", "kind", "ratio", "low", "high",
                  "tokens", "beyond", "biased", "lean"}], "standings", "findings"}],
     "pairs": [{"engines", "summary"}],
     "tokens": [{"text", "position", "id", "token", "logprob", "radius", "rank", "best", "margin",
                 "entropy", "standing", "errors"}]}

A summary has the fields of `byhand.scoring.summaries.Summary`.  What is not known is null, and so
is a radius where nothing is proven.
"""

from __future__ import annotations

from dataclasses import asdict
from math import exp, isfinite
from typing import Any, TextIO

from byhand.document.media.json.records import write_document
from byhand.scoring.likeness import Likeness
from byhand.scoring.scored import Against, Scored, ScoredToken
from byhand.scoring.standings import STANDINGS, Standings
from byhand.scoring.summaries import MOST, Summary


def write_json(scored: Scored, to: TextIO) -> None:
    """Writes the document, an engine and a token on each line."""
    write_document(document_of(scored), to, ("engines", "pairs", "tokens"))


def document_of(scored: Scored) -> dict[str, Any]:
    """The document as Python data."""
    under = scored.standings
    mean = -float(scored.truth.logprobs.mean())
    return {
        "model": scored.model.name,
        "numbers": scored.truth.numbers,
        "proven": scored.truth.proven,
        "mean_loss": _known(mean),
        "perplexity": _known(exp(mean)) if mean < MOST else None,
        "format": scored.format,
        "usual_spread": None if under is None else _known(under.spread),
        "standings": _counts(under),
        "engines": [_engine(against) for against in scored.against],
        "pairs": [
            {"engines": [one.name, other.name], "summary": _summary(found)}
            for one, other, found in scored.pairs
        ],
        "tokens": [_token(token) for token in scored.tokens()],
    }


def _known(number: float) -> float | None:
    return number if isfinite(number) else None


def _counts(under: Standings | None) -> dict[str, int] | None:
    return None if under is None else {each: under.count(each) for each in STANDINGS}


def _summary(found: Summary) -> dict[str, Any]:
    plain = asdict(found)
    plain["quantiles"] = [_known(each) for each in found.quantiles]
    return {name: _known(x) if isinstance(x, float) else x for name, x in plain.items()}


def _engine(against: Against) -> dict[str, Any]:
    return {
        "engine": against.name,
        "summary": _summary(against.summary),
        "likeness": [_likeness(one) for one in against.likenesses],
        "standings": _counts(against.standings),
        "findings": list(against.engine.findings),
    }


def _likeness(one: Likeness) -> dict[str, Any]:
    return {
        "format": one.format,
        "kind": one.kind,
        "ratio": _known(one.ratio),
        "low": _known(one.low),
        "high": _known(one.high),
        "tokens": one.count,
        "beyond": one.beyond.tolist(),
        "biased": one.biased,
        "lean": [_known(each) for each in one.lean],
    }


def _token(token: ScoredToken) -> dict[str, Any]:
    return {
        "text": token.text,
        "position": token.position,
        "id": token.id,
        "token": token.token,
        "logprob": _known(token.logprob),
        "radius": _known(token.radius),
        "rank": token.rank,
        "best": token.best,
        "margin": _known(token.margin),
        "entropy": _known(token.entropy),
        "standing": token.standing or None,
        "errors": {name: _known(error) for name, error in token.errors.items()},
    }
