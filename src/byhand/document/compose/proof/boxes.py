"""The tree of cases as boxes, level by level, whose widths are shares of the domain.

A picture has a bounded size: neighbours that are too narrow to be seen become one box, and levels
beyond the last are told by what is in them.  What is open or refuted is never hidden.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from byhand.document import words
from byhand.document.compose.proof.decisions import decision_words, goal_label, refuted_case
from byhand.document.compose.proof.trees import WORST, branches, kind_of, size
from byhand.document.compose.proof.wording import Speller, text_of
from byhand.document.parts import CaseBox, CaseTree, Decision
from byhand.language import _, amount, later
from byhand.proving.outcome import Leaf, Outcome, Split, Tree, leaves

MOST_LEVELS = 12
LEAST_WIDTH = 1 / 400  # share of the domain of a box by itself
TOGETHER = 4 * LEAST_WIDTH  # and of narrow boxes that are drawn as one


@dataclass(frozen=True, slots=True)
class _Room:
    """A part of the tree with its share of the picture."""

    tree: Tree
    start: float
    width: float
    name: str  # of the variable that was cut
    label: str
    goal: int

    @property
    def end(self) -> float:
        return self.start + self.width


def tree(outcome: Outcome, told: tuple[Decision, ...]) -> CaseTree:
    """The boxes level by level, as deep as a picture may be."""
    refuted = refuted_case(outcome)
    levels: list[tuple[CaseBox, ...]] = []
    rooms = _first(outcome)
    while rooms and len(levels) < MOST_LEVELS:
        last = len(levels) == MOST_LEVELS - 1
        levels.append(tuple(_boxes(rooms, refuted, last)))
        rooms = [inner for room in rooms for inner in _below(outcome, room)]
    count = sum(leaf.by != "none" for tree in outcome.trees for leaf in leaves(tree))
    about = _("{count} cases, their widths as shares of the domain; {told}").format(
        count=words.whole(count), told=", ".join(f"{one.words}: {one.count}" for one in told)
    )
    if any(box.kind == "several" for level in levels for box in level):
        told = (*told, Decision("several", decision_words("several")))
    return CaseTree(about, tuple(levels), told, _("deeper levels") if rooms else "")


def _first(outcome: Outcome) -> list[_Room]:
    """The whole domain, or a box for each goal."""
    if len(outcome.trees) == 1:
        return [_Room(outcome.trees[0], 0.0, 1.0, "", _("all texts"), 0)]
    names = [goal_label(outcome, at) for at in range(len(outcome.trees))]
    met = Counter(names)
    total, start, rooms = sum(map(size, outcome.trees)) or 1, 0, []
    for at, (tree, (name, label)) in enumerate(zip(outcome.trees, names, strict=True)):
        text = "" if met[name, label] == 1 else _text(outcome, tree)
        told = ("", text) if text else (name, label)
        rooms.append(_Room(tree, start / total, size(tree) / total, *told, at))
        start += size(tree)
    return rooms


def _text(outcome: Outcome, tree: Tree) -> str:
    """The text of a goal that has a single one."""
    if tree.region is None or tree.region.free:
        return ""
    assigned = {name: values[0] for name, values in tree.region.allowed.items()}
    return text_of(outcome.property.model, tree.region.text(assigned))


def _below(outcome: Outcome, room: _Room) -> Iterator[_Room]:
    """The parts of a room, side by side; nothing below a case or a box too narrow to see."""
    if isinstance(room.tree, Leaf) or room.width < LEAST_WIDTH:
        return
    speller = Speller(outcome.property.goals[room.goal].shape, outcome.property.model)
    found = [(one, size(one.tree)) for one in branches(room.tree)]
    total, start = sum(share for _one, share in found), 0
    for one, share in found:
        if share:
            place, width = (room.width * part / total for part in (start, share))
            label = speller.values(one.name, one.values)
            yield _Room(one.tree, room.start + place, width, one.name, label, room.goal)
        start += share


def _boxes(rooms: Sequence[_Room], refuted: Leaf | None, last: bool) -> Iterator[CaseBox]:
    """The boxes of one level; neighbours too narrow to be seen are one."""
    for narrow, group in groupby(rooms, lambda room: room.width < LEAST_WIDTH):
        if not narrow:
            yield from (_box(room, refuted, last) for room in group)
            continue
        together: list[_Room] = []
        for room in group:
            apart = together and room.start - together[-1].end > LEAST_WIDTH / 100
            if apart or (together and room.end - together[0].start > TOGETHER):
                yield _joined(together, refuted)
                together = []
            together.append(room)
        yield _joined(together, refuted)


def _box(room: _Room, refuted: Leaf | None, last: bool) -> CaseBox:
    kind = kind_of(room.tree, refuted)
    told = decision_words(kind)
    if isinstance(room.tree, Split):
        told = f"{_counted(room.tree)}, {told}" if kind != "several" else _counted(room.tree)
        kind = kind if last else "cut"
    where = f"{room.name} = {room.label}" if room.name else room.label
    return CaseBox(room.start, room.width, kind, room.name, room.label, f"{where}; {told}")


def _joined(rooms: Sequence[_Room], refuted: Leaf | None) -> CaseBox:
    """Several narrow boxes as one: the worst of their kinds."""
    kinds = {kind_of(room.tree, refuted) for room in rooms} - {"none"}
    kind = next((worst for worst in WORST if worst in kinds), "several")
    if len(kinds) == 1:
        (kind,) = kinds
    start = rooms[0].start
    return CaseBox(start, rooms[-1].end - start, kind, about=decision_words(kind))


def _counted(tree: Tree) -> str:
    count = sum(leaf.by != "none" for leaf in leaves(tree))
    return amount(count, later("1 case"), later("{count} cases"))
