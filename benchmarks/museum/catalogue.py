"""Exhibits: what a bug of the museum is, and the list of them, room by room.

An exhibit is a function that changes a correct port as the bug did.  Its first paragraph says what
was wrong, its second what it teaches; the issue or pull request that tells of it is linked.  The
step where it first shows, and what the sentence about its cause has to say, were written down
before anything was checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.gradients import lessons, matrix
from benchmarks.gradients.adamw import Learner
from benchmarks.museum import models
from benchmarks.museum.replicas import Replica, replica
from benchmarks.planted.port import Port
from byhand import forward
from byhand.model import Model

Plant = Callable[..., None]  # of a port; in a batch, of the padding before its text as well
LINK = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+)/(issues|pull)/(\d+)")
SHORTER = 7  # tokens of the second text of a batch; the rest is padding on the left


@dataclass(frozen=True)
class Room:
    """A room: what its bugs are about, and what they have in common."""

    title: str
    says: str


ROOMS: dict[str, Room] = {
    "positions": Room(
        "Positions",
        "RoPE has a base, a width, a pairing, a direction and a table of frequencies. Each is a "
        "convention, and none changes a shape. At position 0 all of them agree, and for a few "
        "tokens more they nearly do. So these bugs pass every test with a short prompt.",
    ),
    "attention": Room(
        "Attention",
        "Attention repairs itself: whatever the scores, the weights sum to 1 and the output is a "
        "mean of values. A wrong scale or mask gives fluent text that is a little worse.",
    ),
    "experts": Room(
        "Experts",
        "A router scores experts, picks a few and weighs them. Whether it normalises before or "
        "after it picks, and whether a factor comes last, differs from model to model.",
    ),
    "norms": Room(
        "Norms and activations",
        "A norm is four lines long and has as many conventions: eps under the root or after it, "
        "the gain or 1 plus the gain, the mean or none. The next layer's norm hides most of what "
        "goes wrong in this one.",
    ),
    "weights": Room(
        "Weights and packing",
        "A packed matrix is read by code that knows the order of bytes, bits, groups and heads. "
        "All orders fit into the same file. A wrong one gives numbers of the right size.",
    ),
    "caches": Room(
        "Caches and batches",
        "A model that generates is run in two ways: over a prompt, and token by token. Both must "
        "give the same numbers. These bugs are where they did not.",
    ),
    "precision": Room(
        "Precision",
        "Most numbers of a model may be coarse, and a few must not. Which ones is told nowhere "
        "but in the code that trained it.",
    ),
    "ends": Room(
        "The two ends",
        "The embedding and the head are the largest matrices of a small model. They are often "
        "one matrix, and sometimes not.",
    ),
    "learning": Room(
        "Learning",
        "Training forgives everything that points roughly downhill. The loss falls, and nobody "
        "knows how far it would have fallen.",
    ),
}


@dataclass(frozen=True)
class Case:
    """What is handed to `byhand.check`."""

    model: Model
    claims: Mapping[str, Any]
    text: str | None
    precision: str


@dataclass(frozen=True)
class Exhibit:
    """One bug that really happened."""

    name: str
    room: str
    link: str
    year: int
    title: str  # of the issue or pull request
    wrong: str  # what was wrong
    lesson: str  # what it teaches
    family: str
    precision: str
    shows: str  # the first step that is wrong
    says: str  # a pattern that the sentence of the right cause matches
    dumped: Callable[[bool], Case]  # with the bug, or with the fix

    @property
    def project(self) -> str:
        """owner/repository#number"""
        found = LINK.fullmatch(self.link)
        assert found is not None, self.link
        owner, repository, _kind, number = found.groups()
        return f"{owner}/{repository}#{number}"


EXHIBITS: dict[str, Exhibit] = {}


def exhibit(
    room: str,
    link: str,
    year: int,
    title: str,
    *,
    family: str,
    shows: str,
    says: str,
    precision: str = "float32",
    length: int = models.LENGTH,
    packed: str = "",
    batch: bool = False,
    texts: tuple[int, ...] = (),
) -> Callable[[Plant], Plant]:
    """A decorator that registers a function as an exhibit of its name.

    `packed` names the way in which the model's MLPs are packed.  With `batch` the dump is of two
    texts, of which the second is shorter and padded on the left; `texts` are the lengths of texts
    that are packed into one row.
    """

    def entered(plant: Plant) -> Plant:
        def dumped(fixed: bool) -> Case:
            model = models.model(family, packed)
            ids = models.some_ids(length)
            if batch:
                return _batch(model, ids, None if fixed else plant, precision)
            port = replica(model, ids, precision)
            told = _packed(port, texts) if texts else {}
            if not fixed:
                plant(port)
            return Case(model, told | port.run(), " ".join(map(str, ids)), precision)

        name = plant.__name__.replace("_", "-")
        wrong, lesson = _paragraphs(plant.__doc__)
        assert name not in EXHIBITS, name
        EXHIBITS[name] = Exhibit(
            name, room, link, year, title, wrong, lesson, family, precision, shows, says, dumped
        )
        return plant

    return entered


def learning_exhibit(
    name: str,
    link: str,
    year: int,
    title: str,
    about: str,
    *,
    bug: str,
    family: str,
    shows: str,
    says: str,
    precision: str = "float32",
    port: type[Learner] = Learner,
) -> None:
    """Registers a bug on the way back, or in the optimizer, that a port of gradients can make."""

    def dumped(fixed: bool) -> Case:
        learner = matrix.learner("" if fixed else bug, family, precision, port=port)
        return Case(lessons.model(family), matrix.claims(learner), None, precision)

    wrong, lesson = _paragraphs(about)
    assert name not in EXHIBITS, name
    EXHIBITS[name] = Exhibit(
        name, "learning", link, year, title, wrong, lesson, family, precision, shows, says, dumped
    )


def _paragraphs(text: str | None) -> tuple[str, str]:
    wrong, lesson = (text or "").strip().split("\n\n")
    return " ".join(wrong.split()), " ".join(lesson.split())


def _packed(port: Port, texts: tuple[int, ...]) -> dict[str, Any]:
    """Packs texts into the row of a port; returns what the claims say about that."""
    assert isinstance(port, Replica)
    port.side_by_side(*texts)
    return {"position_ids": port.places.numpy(), "segment_ids": port.owners.numpy()}


def _batch(model: Model, ids: list[int], plant: Plant | None, precision: str) -> Case:
    """Two texts side by side, the second padded on the left; both know of the bug."""
    rows = []
    for own in (ids, ids[:SHORTER]):
        port = replica(model, own, precision)
        if plant is not None:
            plant(port, len(ids) - len(own))
        rows.append((own, port.run()))
    plan = forward.plan(model.spec, len(ids))
    claims: dict[str, Any] = {
        "tokens": np.array([[0] * (len(ids) - len(own)) + own for own, _dump in rows]),
        "attention_mask": np.array([[0] * (len(ids) - len(own)) + [1] * len(own)
                                    for own, _dump in rows]),
    }  # fmt: skip
    for name in rows[0][1]:
        filled = []
        for own, dump in rows:
            before = len(ids) - len(own)
            room = [(before * (axis in ("pos", "query", "key")), 0) for axis in plan[name].axes]
            filled.append(np.pad(np.asarray(dump[name]), room))
        claims[name] = np.stack(filled)
    return Case(model, claims, None, precision)
