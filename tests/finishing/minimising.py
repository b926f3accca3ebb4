"""What is left of a model file when everything is taken away that a failure does not need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from random_files import RandomFile, Tree

Path = tuple[str | int, ...]
PLAIN = ("0", "1", "zeros", "none")  # what a value may be instead


def minimised(file: RandomFile, fails: Callable[[RandomFile], bool]) -> RandomFile:
    """The smallest file found that still fails: parts are dropped, then made plain, greedily."""
    while True:
        for tree in _smaller(file.tree):
            other = file.with_tree(tree)
            if fails(other):
                file = other
                break
        else:
            return file


def _smaller(tree: Tree) -> Iterator[Tree]:
    """The tree without one of its branches, the large ones first; then with a plainer leaf."""
    paths = sorted(_paths(tree), key=len)
    for path in paths:
        if len(path) < 4:
            yield _without(tree, path)
    for path in paths:
        said = _at(tree, path)
        if path[0] in ("weights", "model"):
            rank = PLAIN.index(said) if isinstance(said, str) and said in PLAIN else len(PLAIN)
            for plain in PLAIN[:rank]:
                yield _with(tree, path, plain)


def _paths(node: Any, above: Path = ()) -> Iterator[Path]:
    inside = node.items() if isinstance(node, dict) else enumerate(node)
    for key, each in inside:
        yield (*above, key)
        if isinstance(each, dict | list):
            yield from _paths(each, (*above, key))


def _at(node: Any, path: Path) -> Any:
    for key in path:
        node = node[key]
    return node


def _without(tree: Tree, path: Path) -> Tree:
    made = deepcopy(tree)
    del _at(made, path[:-1])[path[-1]]
    return made


def _with(tree: Tree, path: Path, value: str) -> Tree:
    made = deepcopy(tree)
    _at(made, path[:-1])[path[-1]] = value
    return made
