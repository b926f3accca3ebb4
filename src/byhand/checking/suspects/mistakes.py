"""Mistakes made in the same way in several lines, and the changes of a line that make them.

`setting`, `reading`, `rerouting`, `keeping`, `first` and `then` each return a change of a line.  A
`Mistake` has one of them, or a function of its own, and the words for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.expression import Expression, write
from byhand.language import _
from byhand.plan import Step

Line = TypeVar("Line")
Wrong = Callable[[Draft, Step], None]


class Mistake(NamedTuple, Generic[Line]):
    """A mistake made in several lines in the same way, and its wording."""

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
    """The edit for each mistake, made in all of the lines; no edits without lines.

    `words` fill the placeholders of the sentences.
    """
    every = tuple(lines)
    for kind, sentence, change, make, rarer in mistakes if every else ():
        draft, again = scene.draft(), partial(_each, make, every)
        again(draft)
        if words:
            sentence, change = sentence.format(**words), change.format(**words)
        yield Edit(kind, sentence, change, draft.made(), rarer + unlikely, again=again)


def _each(make: Callable[[Draft, Line], None], lines: Iterable[Line], draft: Draft) -> None:
    for line in lines:
        make(draft, line)


def setting(**attributes: Any) -> Wrong:
    """A change: the line with other attributes, or with another operation (`op`)."""
    return lambda draft, step: draft.change(step.address, **attributes)


def reading(**inputs: str | None) -> Wrong:
    """A change: the line with other inputs; None removes an input."""
    return lambda draft, step: draft.change(step.address, inputs=inputs)


def rerouting(routes: Mapping[str, str]) -> Wrong:
    """A change: the line reads a route's value wherever it read the route's key."""

    def reroute(draft: Draft, step: Step) -> None:
        for read in step.reads:
            if read in routes:
                draft.reroute(step.address, read, routes[read])

    return reroute


def keeping(role: str) -> Wrong:
    """A change: the line copies its input `role`."""
    return lambda draft, step: draft.keep(step.address, step.inputs[role])


def first(role: str, op: str, **attributes: Any) -> Wrong:
    """A change: the line reads `op` applied to its input `role`."""
    return lambda draft, step: draft.first(step.address, role, op, **attributes)


def then(op: str, **attributes: Any) -> Wrong:
    """A change: `op` applied to the line's own result."""
    return lambda draft, step: draft.then(step.address, op, **attributes)


def together_and_apart(steps: Iterable[Step]) -> Iterator[tuple[tuple[Step, ...], int]]:
    """All the steps at once, then each alone if there are several; with how unlikely that is.

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
    """The mistake of positions that continue from the padding before the text."""
    sentence = _("it follows if the {count} positions of padding are counted; the model counts the "
                 "text from {own}").format(count=count, own=start)  # fmt: skip
    change = _("take position ids from the attention mask, not from the row")
    return Mistake("padding-positions", sentence, change, make)
