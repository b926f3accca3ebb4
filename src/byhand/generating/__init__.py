"""Generation: the continuation of a text, token by token, each at the cost of one position.

`generation` works the tokens out and chooses the most probable ones, `proven` proves each choice,
and `sampling` draws instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.errors import UsageError
from byhand.evaluate import Progress, prepare
from byhand.generating.generation import Chosen, Generation
from byhand.generating.sampling import Rational, Sampling, as_rational
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import Numbers

__all__ = ["Chosen", "Generation", "Sampling", "generate"]


def generate(
    model: Model,
    text: str | None = None,
    numbers: Numbers | None = None,
    *,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    count: int = 20,
    temperature: Rational | None = None,
    top_k: int | None = None,
    top_p: Rational | None = None,
    seed: int | None = None,
    digits: int | None = None,
    progress: Progress | None = None,
) -> Generation:
    """The text's next tokens, at most `count`, each worked out when it is asked for.

    Each is the most probable one; with a temperature, a top k or a top p it is drawn instead.  The
    default text is the model's own, and the default numbers are exact.  An encoder reads the
    `source`; new tokens are of the kind of the last of the `segments`.  It ends after `count`
    tokens, at a token that ends a text, or where the model's context is full.  With `digits`, the
    numbers are enclosures, and each choice and the digits of its probability are proven.
    """
    if not isinstance(count, int | np.integer) or count < 1:
        raise UsageError(
            _("the number of tokens has a value that does not fit"),
            expected=_("a whole number of at least {low}").format(low=1),
            found=str(count),
        )
    sampling = None
    if temperature is not None or top_k is not None or top_p is not None:
        given: dict[str, Any] = {"top_k": top_k}
        if temperature is not None:
            given["temperature"] = as_rational(temperature)
        if top_p is not None:
            given["top_p"] = as_rational(top_p)
        if seed is not None:
            given["seed"] = seed
        sampling = Sampling(**given)
    elif seed is not None:
        raise UsageError(
            _("a seed is given, but nothing is drawn"),
            hint=_("give a temperature, a top-k or a top-p as well"),
        )
    if model.spec.in_place:
        raise UsageError(
            _("this model says which word stands at each place, so no text goes on from it"),
            hint=_("trace shows its words"),
        )
    job = prepare(model, text, numbers, source=source, segments=segments, only=("tokens",))
    if digits is not None:
        from byhand.generating.proven import ProvenGeneration

        return ProvenGeneration(
            model, job.numbers, job.tokens, count=count, sampling=sampling, progress=progress,
            source=job.source, segments=job.segments, digits=digits,
        )  # fmt: skip
    return Generation(
        model, job.numbers, job.tokens, count=count, sampling=sampling, progress=progress,
        source=job.source, segments=job.segments,
    )  # fmt: skip
