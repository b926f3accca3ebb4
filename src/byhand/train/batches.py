"""The texts of each training step, as a function of the seed and the step alone.

So a run that is resumed, split over processes or accumulated reads the same texts in the same
order.  No state of a random generator is stored.

A stream is read through windows at random places.  Documents are taken in a random order, each once
before any is taken again, one to a row.  A row ends with its document: nothing is learned about
what would follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from byhand.train.corpora import Corpus, Document

Rows = NDArray[np.int64]

NOTHING = -100  # the target where there is none; torch takes no loss there
AT_ONCE = 4096  # tokens of the held-out split in one batch
_WINDOWS, _DOCUMENTS = 1, 2  # purposes of draws: they give different words for one seed


def words(seed: int, purpose: int, number: int, count: int) -> NDArray[np.uint64]:
    """`count` random 64-bit words that never change: Philox 4×64 keyed by seed and number."""
    source = np.random.Philox(key=[seed, number], counter=[0, 0, 0, purpose])
    return source.random_raw(count)


class Texts:
    """The training split as rows, of which each step takes some."""

    def __init__(
        self, corpus: Corpus, context: int, batch: int, seed: int, device: torch.device | str
    ) -> None:
        self.batch = batch
        self.seed = seed
        self.device = torch.device(device)
        if corpus.stream:
            self._rows = self._windows
            inputs, targets, self._starts = _windows(corpus.train, context, self.device)
            self._tokens = np.full(inputs.shape[0], context)
        else:
            self._rows = self._documents
            known = [document for document in corpus.train if len(document) > 1]
            inputs, targets = _padded(known)
            self._tokens = np.array([len(document) - 1 for document in known])
        self._inputs, self._targets = inputs.to(self.device), targets.to(self.device)

    def rows(self, step: int) -> Rows:
        """The rows of a step (from 1), for all processes together."""
        return self._rows(step)

    def tokens(self, rows: Rows) -> int:
        """How many tokens are predicted in these rows."""
        return int(self._tokens[rows].sum())

    def take(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """(row, pos): the ids, and the next id at each place, or NOTHING."""
        index = torch.from_numpy(rows).to(self.device, non_blocking=True)
        return self._inputs[index], self._targets[index]

    def _windows(self, step: int) -> Rows:
        count = np.uint64(len(self._starts))
        drawn = (words(self.seed, _WINDOWS, step, self.batch) >> np.uint64(32)) * count
        return self._starts[(drawn >> np.uint64(32)).astype(np.int64)]

    def _documents(self, step: int) -> Rows:
        count = len(self._tokens)
        place = np.arange((step - 1) * self.batch, step * self.batch)
        rounds = place // count
        return np.concatenate(
            [
                _shuffled(self.seed, int(number), count)[place[rounds == number] % count]
                for number in range(rounds[0], rounds[-1] + 1)
            ]
        )


def share(rows: Rows, part: int, parts: int) -> Rows:
    """One of `parts` nearly equal parts of the rows."""
    return rows[len(rows) * part // parts : len(rows) * (part + 1) // parts]


@lru_cache(maxsize=4)
def _shuffled(seed: int, number: int, count: int) -> Rows:
    """All rows in a random order that depends on the round `number`."""
    return np.argsort(words(seed, _DOCUMENTS, number, count), kind="stable")


def _windows(
    documents: Sequence[Document], context: int, device: torch.device
) -> tuple[Tensor, Tensor, Rows]:
    """Inputs and targets of every window of the joined documents, and which lie in one document."""
    text = torch.tensor([id for document in documents for id in document], device=device)
    view = text.unfold(0, context + 1, 1)
    starts, begin = [], 0
    for document in documents:
        starts.append(np.arange(begin, begin + max(len(document) - context, 0)))
        begin += len(document)
    return view[:, :-1], view[:, 1:], np.concatenate(starts)


def _padded(documents: Sequence[Document]) -> tuple[Tensor, Tensor]:
    """Inputs and targets with one document in each row, padded to the longest."""
    width = max(map(len, documents)) - 1
    inputs = torch.zeros((len(documents), width), dtype=torch.int64)
    targets = torch.full((len(documents), width), NOTHING)
    for row, document in enumerate(documents):
        inputs[row, : len(document) - 1] = torch.tensor(document[:-1])
        targets[row, : len(document) - 1] = torch.tensor(document[1:])
    return inputs, targets


def held_out(
    corpus: Corpus, context: int, device: torch.device | str
) -> Iterator[tuple[Tensor, Tensor]]:
    """The whole validation split, each token but a document's first to be predicted once.

    A document stands by itself; a stream is cut into pieces of the context's length.
    """
    pieces = [
        document[begin : begin + context + 1]
        for document in corpus.validation
        for begin in range(0, len(document) - 1, context)
    ]
    inputs, targets = _padded(pieces)
    rows = max(1, AT_ONCE // inputs.shape[1])
    for begin in range(0, len(pieces), rows):
        end = begin + rows
        yield inputs[begin:end].to(device), targets[begin:end].to(device)
