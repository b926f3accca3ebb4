"""The books of all built-in models, made once a run, and one of a model as large as a checkpoint.

The workers of a parallel run share one folder: whoever needs a book first makes it, writes its
pages and stores it beside them; the others wait at its lock.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byhand.document.book import Book
from byhand.document.media.html import write_book
from byhand.editions import make_book
from byhand.model import Model
from byhand.parameters import parameters
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec
from byhand.tokens import Vocabulary
from byhand.weights import Tensor, Weights

TOOL = Path(__file__).parents[2] / "tools" / "books.py"


def books_tool() -> Any:
    """`tools/books.py`, which knows which books there are and which the repository keeps."""
    import sys

    if "books_tool" not in sys.modules:
        spec = spec_from_file_location("books_tool", TOOL)
        assert spec is not None
        assert spec.loader is not None
        sys.modules["books_tool"] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules["books_tool"])
    return sys.modules["books_tool"]


EDITIONS = {each.name: each for each in books_tool().editions()}
ALIKE = () if os.environ.get("BYHAND_LONG") else ("two-experts", "sink", "humble", "journey-es")
NAMES = tuple(name for name in EDITIONS if name not in ALIKE)  # some books are like others
LARGE = "large"


@dataclass(frozen=True)
class Made:
    """A book that lies in a folder as pages, and as what they were written from."""

    name: str
    language: str
    folder: Path
    book: Book

    @property
    def texts(self) -> dict[str, str]:
        """File name → text of every page, the index first."""
        names = ("index", *(page.slug for page in self.book.pages))
        return {f"{name}.html": (self.folder / f"{name}.html").read_text("utf-8") for name in names}


@dataclass
class Shelf:
    """Where the books of one run of the tests stand."""

    folder: Path
    taken: dict[str, Made] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Made:
        if name not in self.taken:
            self.taken[name] = self._take(name)
        return self.taken[name]

    def _take(self, name: str) -> Made:
        target = self.folder / name
        stored = self.folder / f"{name}.pickle"
        with _alone(self.folder / f"{name}.lock"):
            if not stored.exists():
                stored.write_bytes(pickle.dumps(_write(name, target)))
        book: Book = pickle.loads(stored.read_bytes())
        return Made(name, book.language, target, book)


def shelf_of(factory: pytest.TempPathFactory) -> Shelf:
    """The shelf of this run, the same for all its workers."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / "books"
    folder.mkdir(exist_ok=True)
    return Shelf(folder)


def _write(name: str, folder: Path) -> Book:
    if name == LARGE:
        large = make_book(checkpoint_sized(), language="en")
        write_book(large, folder)
        return large
    book: Book = EDITIONS[name].write(folder)
    return book


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """While this lasts, no other process is here."""
    import fcntl

    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def checkpoint_sized() -> Model:
    """Six blocks with random floats, above the size up to which every tensor is shown."""
    norm = NormSpec(eps=Fraction(1, 100000))
    block = BlockSpec(AttentionSpec(6, 12, 6), MlpSpec(144, "gelu"), attn_norm=norm, mlp_norm=norm)
    spec = ModelSpec(LARGE, 40, 72, 16, (block,) * 6, final_norm=norm)
    random = np.random.default_rng(7)
    weights = {
        each.name: Tensor(each.name, random.normal(0, 0.1, each.shape).astype(np.float32))
        for each in parameters(spec)
    }
    words = tuple(f"w{place}" for place in range(40))
    return Model(spec, Weights(weights), Vocabulary(words, "words"), text="w0 w1 w2 w3")
