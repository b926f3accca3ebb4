"""`byhand trace --shapes`: the plan with its shapes, without weights."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from byhand.cli.opening import opened

if TYPE_CHECKING:
    from byhand.model import Model
    from byhand.spec import ModelSpec


@dataclass(frozen=True)
class Ends:
    """How a pass ends: with a loss, with the losses of all positions, with gradients, with
    log-probabilities."""

    loss: bool
    losses: bool = False
    backward: bool = False
    logprobs: bool = False


def show_shapes(
    model: str,
    texts: tuple[str | None, str | None],
    only: tuple[str, ...],
    heads: bool,
    ends: Ends,
    names: str,
    as_json: bool,
) -> int:
    """Prints the plan for a text, else for the model's own or for the longest possible text.

    texts = (the text, the source of an encoder).
    """
    from byhand import forward
    from byhand.backward import adjoint
    from byhand.cli.choosing import style_of
    from byhand.models import is_checkpoint, open_spec
    from byhand.plan import GRAD, LOGPROBS

    spec = open_spec(model)
    text, source = texts
    whole = opened(model) if text is None or not is_checkpoint(model) else with_tokenizer(model)
    style = style_of(names, None if whole is None else whole.family)
    length = length_of(whole, text) or min(spec.context or 8, 8)
    backward = ends.backward or any(pattern.startswith(GRAD) for pattern in only)
    losses = ends.losses or (backward and not ends.loss)
    plan = forward.plan(
        spec,
        length,
        target=ends.loss,
        losses=losses,
        logprobs=ends.logprobs or not {*LOGPROBS}.isdisjoint(only),
        head_outputs=heads,
        source=source_length(spec, whole, source),
    )
    plan = adjoint(plan) if backward else plan
    shown = set(plan.matching(only)) if only else {step.address for step in plan}
    if as_json:
        from byhand.document.media.json.trace import write_plan_json

        write_plan_json(plan, sys.stdout, only, style)
    else:
        from byhand.cli.printing import print_parts
        from byhand.document.compose.listing import plan_parts

        print_parts(plan_parts(plan, shown, style))
    return 0


def with_tokenizer(model: str) -> Model | None:
    """The model with its tokenizer; None for a bare config.json."""
    from byhand.models import open_model

    return open_model(model) if Path(model).is_dir() else None


def source_length(spec: ModelSpec, whole: Model | None, source: str | None) -> int | None:
    """The number of tokens that an encoder reads: of the source, the model's own, or at most 8."""
    if spec.encoder is None:
        return None if source is None else len(source.split())
    words = source if source is not None or whole is None else whole.source_text
    if words is None:
        return min(spec.encoder.context or 8, 8)
    return len(words.split()) if whole is None else len(whole.source_vocabulary.encode(words))


def length_of(whole: Model | None, text: str | None) -> int | None:
    """The number of tokens of the text; None without a text or a vocabulary."""
    if whole is None:
        return None if text is None else len(text.split())
    words = whole.text if text is None else text
    return None if words is None else len(whole.read(words))
