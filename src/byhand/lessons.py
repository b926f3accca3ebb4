"""`byhand.step`: training steps of a model, worked out in one call; and what is to be learned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Unpack

from byhand import evaluate
from byhand.api import as_model, as_word
from byhand.batch import at_blanks, read_batch
from byhand.errors import InputError
from byhand.language import _
from byhand.learning import Lesson, Training
from byhand.model import Model
from byhand.number_choice import numbers_for
from byhand.numbers.base import Numbers, Unknown
from byhand.numbers.enclosed.enclosure import Enclosing
from byhand.options import Chosen, Spelled, does_not_fit, refuse_unless_whole
from byhand.reading import read
from byhand.rules import Given, Settings

LOSSES = ("mean", "last")


def step(
    model: str | Path | Model,
    text: str | Iterable[str] | None = None,
    *,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    target: str | int | None = None,
    loss: str | None = None,
    prompt: int = 0,
    optimizer: str = "sgd",
    lr: Given | None = None,
    momentum: Given | None = None,
    betas: tuple[Given, Given] | None = None,
    eps: Given | None = None,
    decay: Given | None = None,
    clip: Given | None = None,
    steps: int = 1,
    warmup: int = 0,
    schedule: str = "constant",
    end: Given | None = None,
    numbers: str | Numbers | None = None,
    device: str | None = None,
    progress: evaluate.Progress | None = None,
    **spelled: Unpack[Spelled],
) -> Training:
    """Training steps worked out: losses, gradients, the optimizer's lines and the new weights.

    Each token of the `text` (or of several texts, a batch) should be followed by the next one, and
    the last by the `target`.  `loss` is "mean", over all positions, or "last", the last position's;
    unless told, it is the last one's of one text with a target.  The first `prompt` tokens of a
    text are given, so predicting them does not count.  An encoder reads the `source` beside one
    text, whose tokens are of the kinds `segments`.  Where a model says the word at each place, the
    target is the word at the blanks, and the loss is theirs.

    The `optimizer` is "sgd", "momentum", "adam" or "adamw", with torch's rules and usual settings:
    `lr` 1/10 (adam and adamw: 1/1000), `momentum` 9/10, `betas` 0.9 and 0.999, `eps` 1e-8, `decay`
    0 (adamw: 1/100).  `clip` limits the norm of all gradients together.  Over several `steps` the
    rate grows for `warmup` steps.  The `schedule` then keeps it "constant", or lets it fall along a
    "cosine" to the share `end` of it, a tenth.  Numbers are taken as they are written: 0.1 is one
    tenth.  The numbers worked in are chosen as for `trace`.

    >>> import byhand
    >>> training = byhand.step("tiny", "a b", target="c")
    >>> training.losses[0], training.losses[1].places(4)
    (ln(1 + e + e^2) - 1, '1.1406')
    >>> training.new["block.0.mlp.norm.bias"]
    <update.weight.block.0.mlp.norm.bias 2 named: [1/(10(1 + e + e^2)), e^2/(10(1 + e + e^2))]>
    >>> training = byhand.step("journey", optimizer="adamw", clip=1, steps=2, digits=5)
    >>> [loss.significant(5) for loss in training.losses]
    ['1.8313', '1.8265', '1.8216']
    """
    chosen = Chosen.of(numbers, device, **spelled)
    texts = () if text is None else (text,) if isinstance(text, str) else tuple(text)
    settings = Settings(
        optimizer, lr, momentum, betas, eps, decay, clip, steps, warmup, schedule, end
    )
    ready = as_model(model)
    goal = as_word(ready, "target", target)
    return teach(
        ready,
        texts,
        settings,
        chosen,
        source=source,
        segments=segments,
        target=goal,
        loss=loss,
        prompt=prompt,
        progress=progress,
    )


def teach(
    model: Model,
    texts: Sequence[str],
    settings: Settings,
    chosen: Chosen,
    *,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    target: str | None = None,
    loss: str | None = None,
    prompt: int = 0,
    wanted: Iterable[str] = (),
    progress: evaluate.Progress | None = None,
) -> Training:
    """The training steps that options ask for, in Python or on the command line.

    Lines that are `wanted` and not there are refused before any work.
    """
    chosen.refuse_comparison(_("a training step is worked out in one kind of numbers"))
    rules = settings.rules
    lesson = read_lesson(
        model,
        texts,
        source=source,
        segments=segments,
        target=target,
        loss=loss,
        prompt=prompt,
        dashes=chosen.dashes,
    )
    lesson.plan(rules[-1]).matching(wanted)
    system = numbers_for(model, chosen)
    if chosen.digits is None:
        return lesson.learn(rules, system, progress=progress)
    assert isinstance(system, Enclosing)
    return lesson.prove(rules, system, chosen.digits, progress=progress)


def read_lesson(
    model: Model,
    texts: Sequence[str] = (),
    *,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    target: str | None = None,
    loss: str | None = None,
    prompt: int = 0,
    dashes: str = "",
) -> Lesson:
    """What is to be learned from these texts, or from the model's own.

    Each token should be followed by the next of its text, and the last by the `target`; without a
    target, the last token is only read as one.  `loss` is "mean", over all positions, or "last",
    the last position's of each text.  Unless told, it is the last one's of one text with a target.
    Where a model says the word at each place, the target belongs at the blanks: only they count.
    """
    if loss is not None and loss not in LOSSES:
        raise does_not_fit("loss", ", ".join(LOSSES), loss, dashes)
    refuse_unless_whole("prompt", prompt, 0, 10**9, dashes)
    _refuse_unknown(model)
    if len(texts) > 1:
        for name, given in (("source", source), ("segments", segments)):
            if given is not None:
                raise does_not_fit(name, _("nothing, beside several texts"), given, dashes)
        words = tuple(texts)
    else:
        found = read(
            model, texts[0] if texts else None, source=source, segments=segments, target=target
        )
        words, target = (found.text,), found.target
    goal = None if target is None else model.outputs.id(target)
    batch = read_batch(model, words, target=goal, shifted=True, prompt=prompt)
    if len(texts) < 2:
        kinds = None if found.segments is None else found.segments[: len(batch.tokens)]
        batch = replace(batch, source=found.source, segments=kinds)
    if model.in_place and goal is not None:
        blanks = (at_blanks(model, model.read(each), goal) for each in words)
        return Lesson(model, replace(batch, targets=tuple(chain.from_iterable(blanks))))
    last = loss == "last" or (loss is None and goal is not None and len(words) == 1 and not prompt)
    if last:  # of several texts, the mean
        return Lesson(model, batch.ends(), last=len(words) == 1)
    return Lesson(model, batch)


def _refuse_unknown(model: Model) -> None:
    """Raises an InputError where a weight is unknown: nothing flows back through it."""
    for name, tensor in model.weights.items():
        if not tensor.floats and any(isinstance(x, Unknown) for x in tensor.data.flat):
            raise InputError(
                _("nothing can be learned from unknown weights"),
                expected=_("weights that are known"),
                found=_("{name} is unknown").format(name=name),
            )
