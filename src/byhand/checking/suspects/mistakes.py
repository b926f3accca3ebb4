"""Mistakes that are made alike in several lines, and the ways in which a line goes wrong.

`setting`, `reading`, `rerouting`, `keeping`, `first` and `then` each say in a word what becomes of
a line; a `Mistake` has one of them, or a function of its own, and the words for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Generic, NamedTuple, TypeVar

from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.expression import Expression, write
from byhand.language import _
from byhand.plan import Step

Line = TypeVar("Line")
Wrong = Callable[[Draft, Step], None]


class Mistake(NamedTuple, Generic[Line]):
    """A mistake that is made in some lines alike, and how to say so."""

    kind: str
    sentence: str
    change: str
    make: Callable[[Draft, Line], None]
    unlikely: int = 0


def made(
    scene: Scene,
    lines: Iterable[Line],
    *mistakes: Mistake[Line],
    unlikely: int = 0,
    **words: object,
) -> Iterator[Edit]:
    """Each of the mistakes, made in all of the lines; nothing where there are none.

    `words` are put into the sentences.
    """
    every = tuple(lines)
    for kind, sentence, change, make, rarer in mistakes if every else ():
        draft = scene.draft()
        for line in every:
            make(draft, line)
        if words:
            sentence, change = sentence.format(**words), change.format(**words)
        yield Edit(kind, sentence, change, draft.made(), rarer + unlikely)


def setting(**attributes: Any) -> Wrong:
    """The line with other attributes, or with another operation (`op`)."""
    return lambda draft, step: draft.change(step.address, **attributes)


def reading(**inputs: str | None) -> Wrong:
    """The line with other inputs; what is None goes away."""
    return lambda draft, step: draft.change(step.address, inputs=inputs)


def rerouting(routes: Mapping[str, str]) -> Wrong:
    """The line, reading other things: what stands at the routes' values, not at their keys."""

    def reroute(draft: Draft, step: Step) -> None:
        for read in step.reads:
            if read in routes:
                draft.reroute(step.address, read, routes[read])

    return reroute


def keeping(role: str) -> Wrong:
    """The line as a copy of what it reads as `role`."""
    return lambda draft, step: draft.keep(step.address, step.inputs[role])


def first(role: str, op: str, **attributes: Any) -> Wrong:
    """The line, reading what `op` makes of what it read as `role`."""
    return lambda draft, step: draft.first(step.address, role, op, **attributes)


def then(op: str, **attributes: Any) -> Wrong:
    """What `op` makes of the line's own result."""
    return lambda draft, step: draft.then(step.address, op, **attributes)


def together_and_apart(steps: Iterable[Step]) -> Iterator[tuple[tuple[Step, ...], int]]:
    """All the steps at once, then each alone where there are several; how unlikely that makes it.

    A port makes a mistake wherever it has the same code; a slip in one place is rarer.
    """
    every = tuple(steps)
    if every:
        yield every, 0
    if 1 < len(every) <= 4:
        for step in every:
            yield (step,), 2


def number(value: Fraction | int) -> str:
    """A setting as people write it: 0, 1e-05, 10000, 0.5."""
    if isinstance(value, int) or value.denominator == 1:
        return str(value)
    return f"{float(value):g}"


def factor(value: Expression | None) -> str:
    """A scale: "no scale", or the expression."""
    return _("no scale") if value is None else write(value)


def padding_counted(count: int, start: int, make: Wrong) -> Mistake[Step]:
    """Positions that count on from the padding, which stands before the text."""
    sentence = _("it follows if the {count} positions of padding are counted; the model counts the "
                 "text from {own}").format(count=count, own=start)  # fmt: skip
    change = _("take position ids from the attention mask, not from the row")
    return Mistake("padding-positions", sentence, change, make)
