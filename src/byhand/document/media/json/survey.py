"""A survey as data: the JSON document of `byhand score --survey`.

    {"model", "numbers", "proven", "texts", "tokens", "contexts", "judged", "ties", "open",
     "largest_radius", "layers_doubt", "margins": [{"low", "high", "tokens"}],
     "formats": [{"format", "flips", "of", "share", "interval", "equal", "failed",
                  "foretold", "ratio", "near", "deviation", "errors", "changes",
                  "by_margin": [{"low", "high", "tokens", "flips", "of", "error", "change"}],
                  "by_position": [the same],
                  "layers": [{"address", "stream", "stream_high", "logits", "logits_high"}]}]}

What is not known is null, and so is the upper end of an open range.  `errors` and `changes` are
quantiles of sizes: 50, 90, 99 and 100 in 100.
"""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import Any, TextIO

from byhand.document.media.json.records import write_document
from byhand.scoring.flips import Bin
from byhand.scoring.survey import Effects, Survey


def write_json(survey: Survey, to: TextIO) -> None:
    """Writes the document, a range of margins and a format on each line."""
    write_document(document_of(survey), to, ("margins", "formats"))


def document_of(survey: Survey) -> dict[str, Any]:
    """The document as Python data."""
    truth = survey.truth
    return {
        "model": survey.model.name,
        "numbers": truth.numbers,
        "proven": survey.proven,
        "texts": len(truth.scores),
        "tokens": len(truth),
        "contexts": int(survey.fresh.sum()),
        "judged": int(survey.judged.sum()),
        "ties": int(survey.tied.sum()),
        "open": int(survey.open.sum()),
        "largest_radius": _known(float(truth.radii.max())),
        "layers_doubt": _known(survey.doubt),
        "margins": [
            {"low": low, "high": _known(high), "tokens": count}
            for low, high, count in survey.margins
        ],
        "formats": list(map(_effects, survey.effects)),
    }


def _known(number: float) -> float | None:
    return number if isfinite(number) else None


def _effects(effects: Effects) -> dict[str, Any]:
    return {
        "format": effects.format,
        "flips": effects.flips.count,
        "of": effects.flips.of,
        "share": _known(effects.flips.share),
        "interval": list(effects.flips.interval),
        "equal": effects.equal,
        "failed": effects.failed,
        "foretold": effects.foretold,
        "ratio": _known(effects.ratio),
        "near": effects.near,
        "deviation": _known(effects.deviation),
        "errors": list(map(_known, effects.errors)),
        "changes": list(map(_known, effects.changes)),
        "by_margin": list(map(_bin, effects.by_margin)),
        "by_position": list(map(_bin, effects.by_position)),
        "layers": [
            {name: _known(x) if isinstance(x, float) else x for name, x in asdict(layer).items()}
            for layer in effects.layers
        ],
    }


def _bin(bin: Bin) -> dict[str, Any]:
    return {
        "low": bin.low,
        "high": _known(bin.high),
        "tokens": bin.tokens,
        "flips": bin.flips.count,
        "of": bin.flips.of,
        "error": _known(bin.error),
        "change": _known(bin.change),
    }
