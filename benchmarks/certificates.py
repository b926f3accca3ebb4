"""Mutants of certificates and of models: each says something false, and the checker must reject it.

`python -m benchmarks.certificates` proves the small examples, verifies their certificates, makes
mutants of each and verifies those.  A mutant is sealed again: its least lead and its digests are
what an attacker would make them, so that it is rejected for what it says.  It ends with status 1 if
a certificate is rejected or a mutant is accepted.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from byhand.errors import InputError
from byhand.model import Model
from byhand.proving.certificates import (
    certificate,
    certificate_digest,
    least_of,
    model_digest,
    nodes,
)
from byhand.proving.properties import read_property
from byhand.proving.search import prove
from byhand.tokens import Vocabulary
from byhand.verifying import verify
from byhand.weights import Tensor, Weights

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
NAMES = ("clock", "parity", "sorter", "abc", "majority", "thermometer")
MOST = 12  # nodes of a certificate that are changed
LITTLE = Fraction(1, 10**9)

Tree = dict[str, Any]
Mutant = tuple[str, Model, Tree]


def sealed(tree: Mapping[str, Any], **changes: Any) -> Tree:
    """The certificate with its least lead and its digest made anew, and then these changes."""
    found = {**tree, "least": least_of(tree["goals"]), **changes}
    return {**found, "digest": certificate_digest(found)}


def rejected(model: Model, tree: Mapping[str, Any], property: Any = None) -> bool:
    """Whether the checker rejects a certificate, or refuses to read it."""
    try:
        return not verify(model, tree, property).accepted
    except InputError:
        return True


def mutants(model: Model, tree: Mapping[str, Any]) -> Iterator[Mutant]:
    """Every mutant of a certificate and its model, each with what was done to it."""
    yield from ((what, model, one) for what, one in _heads(model, tree))
    yield from ((what, model, one) for what, one in _goals(tree))
    count = sum(1 for goal in tree["goals"] for _node in nodes(goal["tree"]))
    for place in range(0, count, max(1, count // MOST)):
        yield from ((what, model, one) for what, one in _nodes(model, tree, place))
    yield from _models(model, tree)


def _copied(tree: Mapping[str, Any], change: Callable[[Tree], Any]) -> Tree:
    found: Tree = json.loads(json.dumps(tree))
    change(found)
    return found


def _heads(model: Model, tree: Mapping[str, Any]) -> Iterator[tuple[str, Tree]]:
    """What a certificate says of itself."""
    least = tree["least"] or {"lead": "1", "goal": 0}
    other = "0" * 64
    first = model.outputs.tokens[0]
    yield "least raised", sealed(tree, least={**least, "lead": least["lead"] + "9"})
    yield "least of another goal", sealed(tree, least={**least, "goal": least["goal"] + 1})
    yield "no least", sealed(tree, least=None)
    yield "another answer", sealed(tree, answer="open")
    yield "another format", sealed(tree, format="byhand certificate 2")
    yield "model digest", sealed(tree, model={**tree["model"], "digest": other})
    yield "a second model", sealed(tree, others=[{"name": "x", "digest": other}])
    yield "its digest", {**tree, "digest": other}
    claim = {"next": {"token": first}}
    yield "another claim", sealed(tree, property={**tree["property"], "claim": claim})
    texts = {"list": [first]}
    yield "other texts", sealed(tree, property={**tree["property"], "texts": texts})
    yield "no texts", sealed(tree, property={"claim": tree["property"]["claim"]})
    weaker = _copied(tree, lambda it: _weaken(it["goals"]))
    yield "weaker, with the old digest", {**weaker, "least": least_of(weaker["goals"])}


def _weaken(goals: list[Tree]) -> None:
    for goal in goals:
        for node in nodes(goal["tree"]):
            if "lead" in node:
                node["lead"] = "0.0000001"


def _goals(tree: Mapping[str, Any]) -> Iterator[tuple[str, Tree]]:
    """What it says of whole goals."""
    goals = tree["goals"]
    yield "a goal dropped", sealed({**tree, "goals": goals[:-1]})
    yield "a goal twice", sealed({**tree, "goals": [*goals, goals[-1]]})
    for place, goal in enumerate(goals):
        others = goals[:place], goals[place + 1 :]
        for what, texts in (
            ("a text more", str(int(goal["texts"] or 0) + 1)),
            ("a text less", str(int(goal["texts"] or 0) - 1)),
            ("texts not counted", None if goal["texts"] else "1"),
        ):
            yield (
                what,
                sealed({**tree, "goals": [*others[0], {**goal, "texts": texts}, *others[1]]}),
            )
        none = {**goal, "tree": {"by": "none"}}
        yield "a goal without texts", sealed({**tree, "goals": [*others[0], none, *others[1]]})
    if len({goal["texts"] for goal in goals}) > 1:  # else each tree may fit another goal as well
        yield "goals in another order", sealed({**tree, "goals": goals[1:] + goals[:1]})


def _nodes(model: Model, tree: Mapping[str, Any], place: int) -> Iterator[tuple[str, Tree]]:
    """What it says at one node."""

    def changed(change: Callable[[Tree], Any]) -> Tree:
        return sealed(_copied(tree, lambda it: change(_at(it, place))))

    node, words = _at(tree, place), model.outputs.tokens
    if "cut" in node:
        one, other = node["parts"]
        yield "cut at another variable", changed(lambda it: it.update(cut=it["cut"] + "'"))
        yield "a part without texts", changed(lambda it: it["parts"].__setitem__(0, {"by": "none"}))
        if one != other:
            yield "parts swapped", changed(lambda it: it["parts"].reverse())
        if _told_apart(one, other) and len(node["first"]) > 1:
            yield "a value moved over", changed(lambda it: it["first"].pop())
        yield "a part dropped", changed(lambda it: it["parts"].pop())
        yield "first are all", changed(lambda it: it.update(first=list(range(-99, 999))))
        return
    if node["by"] == "none":
        yield "letters where no text is", changed(lambda it: it.update(by="letters"))
        return
    yield "said to have no text", changed(lambda it: (it.clear(), it.update(by="none")))
    yield "decided by nobody", changed(lambda it: it.update(by="open"))
    if "lead" in node:
        little = f"{float(Fraction(node['lead'])) * 1.05 + 0.001:.9f}"
        higher = little if node["by"] == "each" else "1000000" + node["lead"]
        yield "lead raised", changed(lambda it: it.update(lead=higher))
        told = _copied(tree, lambda it: _at(it, place).update(lead="much"))
        yield "lead no number", {**told, "digest": certificate_digest(told)}
    if node["by"] == "each":
        yield "each: a text more", changed(lambda it: it.update(texts=it["texts"] + 1))
        yield "each: a text less", changed(lambda it: it.update(texts=it["texts"] - 1))
    if "next" in node:
        others = [word for word in words if word not in node["next"]]
        for word in others[:3]:
            yield "another token", changed(lambda it, word=word: it.update(next=[word]))
        yield "token left out", changed(lambda it: it.pop("next"))
        yield "no token", changed(lambda it: it.update(next=[]))
        yield "two tokens", changed(lambda it: it.update(next=[*it["next"], others[0]]))


def _at(tree: Mapping[str, Any], place: int) -> Tree:
    return [node for goal in tree["goals"] for node in nodes(goal["tree"])][place]


def _told_apart(one: Tree, other: Tree) -> bool:
    """Whether two cases say different things of their texts, or how many they have."""
    return "each" in (one.get("by"), other.get("by")) or (
        one.get("next", ["?"]) != other.get("next", ["?"]) and "next" in one and "next" in other
    )


def _models(model: Model, tree: Mapping[str, Any]) -> Iterator[Mutant]:
    """Models with a weight moved a little, other words, another architecture; or without a head."""
    for name, tensor in model.weights.items():
        for place in {0, tensor.size // 2, tensor.size - 1}:
            found = _moved(model, name, place)
            if found is not None:
                yield f"{name} moved", found, dict(tree)
    words = tuple(model.vocabulary.tokens)
    if isinstance(model.vocabulary, Vocabulary):
        turned = replace(model.vocabulary, tokens=(words[1], words[0], *words[2:]))
        yield "words in another order", replace(model, vocabulary=turned), dict(tree)
    for what, spec in (
        ("base of positions", replace(model.spec, position_base=model.spec.position_base + 1)),
        ("context", replace(model.spec, context=(model.spec.context or 99) + 1)),
        ("no blocks", replace(model.spec, blocks=())),
    ):
        yield f"{what} of another model", replace(model, spec=spec), dict(tree)
    name = "embed.token" if model.spec.tied else "head"
    blank = _with(model, name, np.full(model.weights[name].shape, Fraction(0)))
    digest = {**tree["model"], "digest": model_digest(blank)}
    yield "a head of zeros", blank, sealed(tree, model=digest)


def _with(model: Model, name: str, data: Any) -> Model:
    return replace(model, weights=Weights({**model.weights, name: Tensor(name, data)}))


def _moved(model: Model, name: str, place: int) -> Model | None:
    """The model with one weight a little larger; None where that one is no plain number."""
    tensor = model.weights[name]
    data = tensor.data.astype(object) if tensor.floats else tensor.data.copy()
    entry = data.flat[place]
    if not isinstance(entry, Fraction | float | int | np.floating):
        return None
    data.flat[place] = Fraction(float(entry) if tensor.floats else entry) + LITTLE
    return _with(model, name, data)


def main() -> int:
    """Proves, verifies, mutates, and tells how it went."""
    total, living, wrong = Counter[str](), list[str](), list[str]()
    for name in NAMES:
        property = read_property(EXAMPLES / f"{name}.property.yaml")
        start = perf_counter()
        tree = certificate(prove(property))
        found = verify(property.own, tree)
        if not found.accepted:
            wrong.append(f"{name}: {found.reasons[0]}")
        count = 0
        for what, model, mutant in mutants(property.own, tree):
            count += 1
            total[what] += 1
            if not rejected(model, mutant):
                living.append(f"{name}: {what}")
        told = f"{found.leaves} cases verified in {found.seconds:.2f} s, {count} mutants"
        print(f"{name}: {told}, {perf_counter() - start:.1f} s in all", flush=True)
    print(f"{sum(total.values())} mutants of {len(total)} kinds, {len(living)} accepted")
    for line in (*wrong, *living):
        print(line)
    return int(bool(wrong or living))


if __name__ == "__main__":
    sys.exit(main())
