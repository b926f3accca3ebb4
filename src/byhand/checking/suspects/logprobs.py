"""Mistakes in the log-probabilities of next tokens: another logarithm, other tokens, no softmax."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import isclose, log

from byhand.checking.suspects.mistakes import Mistake, made, then
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.expression import Call, Number, Quotient
from byhand.language import _
from byhand.numbers.adjoints import UNCOUNTED
from byhand.plan import Step

ONE = Fraction(1)
BASES = (2, 10)
Told = tuple[str, str, str]  # kind, sentence, change


def logprob_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in the log-probabilities, or in the losses of a text."""
    for step in scene.of("logprobs", "losses"):
        yield from made(scene, [step], *_logarithms(step))
    for step in scene.of("logprobs"):
        yield from made(scene, [step], *_other_tokens(scene, step))


def _logarithms(step: Step) -> Iterator[Mistake[Step]]:
    for base in BASES:
        inverse = Quotient(Number(ONE), Call("ln", Number(Fraction(base))))
        yield Mistake(*_of_base(base), then("scaled", factor=inverse))
    if step.op == "logprobs":
        yield Mistake(*_of_sign(), then("scaled", factor=-ONE))
        yield Mistake(
            "logprob-missing-log",
            _("it follows if it is the probability itself; a log-probability is ln of it"),
            _("take the natural logarithm of the token's probability"),
            then("exponential"),
        )


def told_by_factor(step: Step, factor: float) -> Told | None:
    """The mistake that gives such a factor of a whole line of logarithms: kind, sentence, change.

    The factor has been recognised as a constant, so floats need only tell constants apart.
    """
    if step.op not in ("logprobs", "losses"):
        return None
    if factor == -1 and step.op == "logprobs":
        return _of_sign()
    return next((_of_base(base) for base in BASES if isclose(factor, 1 / log(base))), None)


def _of_base(base: int) -> Told:
    return (
        "logprob-base",
        _("it follows if the logarithm is {other}; the model says ln").format(other=f"log{base}"),
        _("take the natural logarithm of the token's probability"),
    )


def _of_sign() -> Told:
    return (
        "logprob-sign",
        _("it follows if it is the loss, -ln p; a log-probability is ln p"),
        _("take ln p, which is never above 0"),
    )


def _other_tokens(scene: Scene, step: Step) -> Iterator[Mistake[Step]]:
    """Mistakes of which token's probability is taken at which position."""
    tokens, targets = scene.context.tokens, scene.context.targets
    if targets is None or len(tokens) != len(targets):
        return
    change = _("at position p, take the probability of the token at position p + 1")
    for by, said in (
        (0, _("it follows if each position has the probability of its own token; the model "
              "predicts the next")),
        (2, _("it follows if each position has the probability of the token two places on; the "
              "model predicts the next")),
        (-1, _("it follows if each position has the probability of the token before it; the model "
               "predicts the next")),
    ):  # fmt: skip
        others = _moved(targets, tokens, by)
        if others != targets:
            yield Mistake("logprob-shift", said, change, partial(_aim_at, others))


def _moved(targets: Sequence[int], tokens: Sequence[int], by: int) -> tuple[int, ...]:
    """The targets, each another token of the text; round its ends."""
    count = len(tokens)
    return tuple(
        UNCOUNTED if target == UNCOUNTED else tokens[(place + by) % count]
        for place, target in enumerate(targets)
    )


def _aim_at(targets: tuple[int, ...], draft: Draft, step: Step) -> None:
    draft.change(step.address, inputs={"targets": None}, targets=targets)
