"""Mistakes where the gradients begin: the sum for the mean, other targets, a scale left in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import log2

import numpy as np

from byhand.checking.suspects.mistakes import Mistake, made, number, then
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.numbers.adjoints import UNCOUNTED
from byhand.plan import Step

NEAR = 1 / 64  # how far a measured factor may be from the one that is meant; replay then decides
LARGEST_SCALE = 24  # powers of 2 that losses are scaled by


def loss_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in the gradient of the logits."""
    for step in scene.of("loss_back"):
        targets = scene.context.targets
        if targets is not None:
            yield from _reductions(scene, step, targets)
            yield from _other_targets(scene, step, targets)
        yield from _factors(scene, step)


def _reductions(scene: Scene, step: Step, targets: Sequence[int]) -> Iterator[Edit]:
    """Edits with another divisor than the number of positions that count."""
    texts = scene.texts
    counted = sum(target != UNCOUNTED for target in targets)
    own = _("the model's loss is the mean over the {count} positions that count").format(
        count=counted
    )
    change = _("divide the sum of the losses by the number of positions that count, once")
    each = _counts(targets, texts)
    wrong = (
        (Fraction(counted), _("it follows if the loss is a sum; {own}")),
        (Fraction(1, counted), _("it follows if the mean is taken twice; {own}")),
        (Fraction(counted, len(targets)),
         _("it follows if the loss is divided by all {all} positions; {own}")),
        (Fraction(counted, len(texts)),
         _("it follows if the loss is a sum, divided by the {texts} texts; {own}")),
    )  # fmt: skip
    for factor, said in wrong:
        if factor != 1:
            mistake = Mistake("loss-reduction", said, change, then("scaled", factor=factor))
            yield from made(scene, [step], mistake, own=own, all=len(targets), texts=len(texts))
    if len(set(each)) > 1 and all(each):
        rows = [Fraction(counted, len(texts) * count) for count in each]
        said = _("it follows if the loss is the mean of each text's mean; {own}")
        mistake = Mistake("loss-reduction", said, change, partial(_by_row, scene, rows))
        yield from made(scene, [step], mistake, own=own)


def _counts(targets: Sequence[int], texts: Sequence[slice]) -> list[int]:
    return [sum(target != UNCOUNTED for target in targets[text]) for text in texts]


def _by_row(scene: Scene, factors: Sequence[Fraction], draft: Draft, step: Step) -> None:
    """Multiplies the rows of each text by a factor of its own."""
    column = np.empty((step.shape[0], 1), dtype=object)
    for text, factor in zip(scene.texts, factors, strict=True):
        column[text] = factor
    whole = np.broadcast_to(column, step.shape).copy()
    draft.then(step.address, "times_each", factors=whole)


def _factors(scene: Scene, step: Step) -> Iterator[Edit]:
    """Edits with a constant factor too much, as the claimed numbers show it."""
    ratio = scene.ratio if step is scene.target else None
    if ratio is None:
        return
    power = round(log2(abs(ratio))) if ratio else 0
    if ratio < 0 and abs(ratio + 1) < NEAR:
        yield from made(scene, [step], Mistake(
            "loss-sign",
            _("it follows if the gradient has the other sign: of the log-probability, not of the "
              "loss"),
            _("the loss is -ln p: its gradient is probs - 1 at the target"),
            then("scaled", factor=Fraction(-1))))  # fmt: skip
    if ratio > 0 and 0 < abs(power) <= LARGEST_SCALE and abs(ratio / 2.0**power - 1) < NEAR:
        yield from made(scene, [step], Mistake(
            "loss-scale",
            _("it follows if the loss is scaled by {factor}, and the scale is left in").format(
                factor=number(Fraction(2) ** power)),
            _("divide the gradients by the loss scale before they are used"),
            then("scaled", factor=Fraction(2) ** power), 1))  # fmt: skip


# ------------------------------------------------------------------------ other targets


def _other_targets(scene: Scene, step: Step, targets: Sequence[int]) -> Iterator[Edit]:
    tokens = scene.context.tokens
    if len(tokens) != len(targets):
        return
    shifted = partial(_shifted, targets, tokens)
    change = _("the target of a position is the token after it")
    padded = _padding_counted(targets, tokens, scene.texts)
    wrong = (
        ("target-shift", shifted(0), change,
         _("it follows if each position's target is its own token; the model predicts the next")),
        ("target-shift", shifted(2), change,
         _("it follows if each position's target is the token two places on; the model predicts "
           "the next")),
        ("target-shift", shifted(-1), change,
         _("it follows if each position's target is the token before it; the model predicts the "
           "next")),
        ("padding-counted", padded, _("leave positions that do not count out of the loss, and out "
                                      "of their number"),
         _("it follows if the positions that do not count are counted")),
    )  # fmt: skip
    for kind, others, advice, said in wrong:
        if others is not None and tuple(others) != tuple(targets):
            wrongly = Mistake(kind, said, advice, partial(_aim_at, tuple(others)))
            yield from made(scene, [step], wrongly)
    yield from made(scene, [step], Mistake(
        "target-term-missing",
        _("it follows if 1 is not subtracted at the target: the gradient is that of ln Σ eˣ alone"),
        _("subtract 1 from the target's probability"), partial(_probabilities_alone, targets)),
    )  # fmt: skip


def _shifted(targets: Sequence[int], tokens: Sequence[int], by: int) -> list[int] | None:
    """The targets, each another token of the text; none where it would lie outside."""
    count = len(tokens)
    found = []
    for place, target in enumerate(targets):
        if target == UNCOUNTED:
            found.append(UNCOUNTED)
        else:
            found.append(tokens[(place + by) % count])
    return found


def _padding_counted(
    targets: Sequence[int], tokens: Sequence[int], texts: Sequence[slice]
) -> list[int]:
    """The targets, with the next token where it did not count; the last of a text has none."""
    found = list(targets)
    for text in texts:
        for place in range(text.start, text.stop - 1):
            if found[place] == UNCOUNTED:
                found[place] = tokens[place + 1]
    return found


def _aim_at(targets: tuple[int, ...], draft: Draft, step: Step) -> None:
    draft.change(step.address, inputs={"targets": None}, targets=targets)


def _probabilities_alone(targets: Sequence[int], draft: Draft, step: Step) -> None:
    counted = np.array([target != UNCOUNTED for target in targets])
    share = Fraction(1, int(counted.sum()))
    factors = np.full(step.shape, Fraction(0), dtype=object)
    factors[counted] = share
    draft.change(
        step.address,
        op="times_each",
        inputs={"x": step.inputs["probs"]},
        only=True,
        factors=factors,
    )
