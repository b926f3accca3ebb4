"""Trees of cases for pictures: branches by one variable, shares of the domain, what is below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from byhand.proving.domain import Values
from byhand.proving.outcome import Leaf, Split, Tree, leaves

WORST = ("refuted", "open")  # kinds that are never hidden behind others


@dataclass(frozen=True, slots=True)
class Branch:
    """A part of a split region: the values of the variable that was cut, and what is below."""

    name: str
    values: Values
    tree: Tree


def branches(split: Split) -> list[Branch]:
    """The parts of a region; repeated cuts by the same variable are one cut into many parts."""
    found: list[Branch] = []
    todo: list[tuple[Tree, Values]] = [(split, split.region.allowed[split.cut])]
    while todo:
        tree, values = todo.pop()
        if isinstance(tree, Leaf) or tree.cut != split.cut:
            found.append(Branch(split.cut, values, tree))
            continue
        first = tuple(value for value in values if value in tree.first)
        others = tuple(value for value in values if value not in tree.first)
        todo += [(tree.parts[1], others), (tree.parts[0], first)]
    return found


def size(tree: Tree) -> int:
    """How many assignments a part has, for its share of a picture; none where it has no text."""
    if tree.region is None or (isinstance(tree, Leaf) and tree.by == "none"):
        return 0
    return tree.region.box


def case_at(tree: Tree, assigned: Mapping[str, int]) -> Leaf:
    """The case that an assignment of values belongs to."""
    while isinstance(tree, Split):
        tree = tree.parts[0] if assigned[tree.cut] in tree.first else tree.parts[1]
    return tree


def kind_of(tree: Tree, refuted: Leaf | None) -> str:
    """How all cases of a tree were decided; the worst kind where there are several, "several" where
    all are decided."""
    kinds = {"refuted" if leaf is refuted else leaf.by for leaf in leaves(tree)} - {"none"}
    for worst in WORST:
        if worst in kinds:
            return worst
    if len(kinds) > 1:
        return "several"
    return kinds.pop() if kinds else "none"


def cases(tree: Tree) -> Iterator[tuple[Leaf, frozenset[str]]]:
    """Every case with the variables by which it was cut out of the domain."""
    todo: list[tuple[Tree, frozenset[str]]] = [(tree, frozenset())]
    while todo:
        one, names = todo.pop()
        if isinstance(one, Leaf):
            yield one, names
        else:
            todo += [(part, names | {one.cut}) for part in reversed(one.parts)]


def cuts(tree: Tree) -> Iterator[tuple[str, int]]:
    """Every cut of a tree: its variable, and how deep it is."""
    todo: list[tuple[Tree, int]] = [(tree, 0)]
    while todo:
        one, depth = todo.pop()
        if isinstance(one, Split):
            yield one.cut, depth
            todo += [(part, depth + 1) for part in one.parts]
