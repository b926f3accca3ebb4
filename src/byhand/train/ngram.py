"""The baseline: an interpolated n-gram model, which a network has to beat.

Jelinek–Mercer: the estimate from a context of k tokens is mixed with the one from k - 1, and so on
down to the uniform distribution.  The weight of each estimate depends on the average count of its
context with each token that followed.  The weights are tuned by expectation maximisation on the
training documents alone (deleted interpolation): a document is predicted from the counts of all the
others.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byhand.errors import TextError
from byhand.language import _, amount, later
from byhand.train.corpora.corpus import Document, Question

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]

PIECES = 10  # parts of a single document for tuning
LEVELS = 12  # of trust: average counts from 1, 2, 4, … up to 2048 and more
SAMPLE = 2**15  # evenly spaced tokens for tuning the 60 numbers of trust
ROUNDS, ENOUGH = 200, 1e-7  # of expectation maximisation, and the change at which it stops


@dataclass(frozen=True)
class _Order:
    """The counts for contexts of one length.

    A context has a number: the place of (number of the context one shorter, token before that) in
    `contexts`.  An event is a context and the token that followed.
    """

    contexts: Integers  # sorted keys; empty for the context of no token
    events: Integers  # sorted keys
    counts: Integers  # of each event
    totals: Integers  # of each context: how many tokens followed it
    distinct: Integers  # of each context: how many different tokens followed it


@dataclass(frozen=True)
class _Places:
    """Every token of some documents but their first, with the tokens before it."""

    token: Integers
    before: Integers  # (order - 1, place): the token 1 back, 2 back, …
    document: Integers


class NGram:
    """An n-gram model: after every context each token has a probability above 0; they sum to 1."""

    def __init__(self, vocab_size: int, orders: tuple[_Order, ...], trust: Reals) -> None:
        self.vocab_size = vocab_size
        self._orders = orders
        self.trust = trust  # (order, level): the share of this order's own estimate

    @classmethod
    def fit(
        cls,
        documents: Sequence[Document],
        vocab_size: int,
        *,
        orders: int = 5,
        groups: Sequence[Hashable] | None = None,
    ) -> NGram:
        """The model of contexts of up to `orders` - 1 tokens, with its trust in each tuned.

        Documents of the same group are left out together when the others predict them; without
        `groups` each is left out by itself.
        """
        places = _places(documents, vocab_size, orders)
        counted, numbers = _count(places, vocab_size, orders)
        left_out = _left_out(places, len(documents), groups)
        level, own = _without(left_out, counted, numbers)
        step = -(-len(places.token) // SAMPLE)
        return cls(vocab_size, counted, _tune(level[:, ::step], own[:, ::step], vocab_size))

    def probabilities(self, context: Sequence[int]) -> Reals:
        """The probability of each token after a context that begins a document."""
        known = _checked(context, self.vocab_size)
        padded = [*[self.vocab_size] * len(self._orders), *known]
        before = np.array(padded[:0:-1][: len(self._orders) - 1], dtype=np.int64)
        token = np.arange(self.vocab_size)
        return self._mix(token, np.repeat(before[:, None], self.vocab_size, axis=1))

    def log_probabilities(self, document: Document) -> Reals:
        """The natural logarithms of the probabilities of all tokens but the first."""
        return np.log(self._probabilities([document]))

    def perplexity(self, documents: Sequence[Document]) -> float:
        """e to the mean of minus the log-probabilities of all tokens but the first of each."""
        return float(np.exp(-np.log(self._probabilities(documents)).mean()))

    def accuracy(self, questions: Sequence[Question]) -> float:
        """The share of questions that are answered completely, by the likeliest token each time."""
        right = 0
        for question in questions:
            known = list(question.prompt)
            for _answer in question.answer:
                known.append(int(self.probabilities(known).argmax()))
            right += tuple(known[len(question.prompt) :]) == question.answer
        return right / len(questions)

    def _probabilities(self, documents: Sequence[Document]) -> Reals:
        places = _places(documents, self.vocab_size, len(self._orders))
        return self._mix(places.token, places.before)

    def _mix(self, token: Integers, before: Integers) -> Reals:
        """The probability of each token after the tokens before it."""
        result = np.full(len(token), 1 / self.vocab_size)
        number = np.zeros(len(token), dtype=np.int64)  # of the context; -1: never seen
        for length, (order, trust) in enumerate(zip(self._orders, self.trust, strict=True)):
            if length:
                key = number * (self.vocab_size + 1) + before[length - 1]
                number = np.where(number >= 0, _find(order.contexts, key), -1)
            seen = number >= 0
            context = number[seen]
            event = _find(order.events, context * self.vocab_size + token[seen])
            count = np.where(event >= 0, order.counts[event], 0)
            total = order.totals[context]
            share = trust[_level(total, order.distinct[context])]
            result[seen] = share * count / total + (1 - share) * result[seen]
        return result


def _checked(ids: Sequence[int], vocab_size: int) -> Sequence[int]:
    for id in (min(ids, default=0), max(ids, default=0)):
        if not 0 <= id < vocab_size:
            raise TextError(
                _("there is no token {id}").format(id=id),
                expected=_("ids from 0 to {last}").format(last=vocab_size - 1),
                found=str(id),
            )
    return ids


def _places(documents: Sequence[Document], vocab_size: int, orders: int) -> _Places:
    nothing = [vocab_size] * (orders - 1)  # a sign that nothing came before
    flat: list[int] = []
    owner: list[int] = []  # -1: not to be predicted
    for number, document in enumerate(documents):
        flat += [*nothing, *_checked(document, vocab_size)]
        owner += [-1] * (len(nothing) + min(len(document), 1)) + [number] * (len(document) - 1)
    text, whose = np.array(flat, dtype=np.int64), np.array(owner, dtype=np.int64)
    at = np.flatnonzero(whose >= 0)
    if not len(at):
        raise TextError(
            _("there is no token to predict"),
            expected=_("a document of two tokens or more"),
            found=amount(len(documents), later("1 document"), later("{count} documents")),
        )
    before = np.array([text[at - back] for back in range(1, orders)], dtype=np.int64)
    return _Places(text[at], before, whose[at])


def _count(
    places: _Places, vocab_size: int, orders: int
) -> tuple[tuple[_Order, ...], list[tuple[Integers, Integers]]]:
    """The counts, and of each place the numbers of its context and of its event, by order."""
    number = np.zeros(len(places.token), dtype=np.int64)
    contexts = np.zeros(0, dtype=np.int64)
    counted, numbers = [], []
    for length in range(orders):
        if length:
            key = number * (vocab_size + 1) + places.before[length - 1]
            contexts, number = np.unique(key, return_inverse=True)
        events, event, counts = np.unique(
            number * vocab_size + places.token, return_inverse=True, return_counts=True
        )
        totals, distinct = np.bincount(number), np.bincount(events // vocab_size)
        counted.append(_Order(contexts, events, counts, totals, distinct))
        numbers.append((number, event))
    return tuple(counted), numbers


def _left_out(places: _Places, documents: int, groups: Sequence[Hashable] | None) -> Integers:
    """The group of each place: places of one group are left out together."""
    if groups is not None:
        known: dict[Hashable, int] = {}
        group = [known.setdefault(name, len(known)) for name in groups]
        return np.array(group, dtype=np.int64)[places.document]
    if documents < PIECES:
        return np.arange(len(places.token)) * PIECES // len(places.token)
    return places.document


def _without(
    left_out: Integers, counted: tuple[_Order, ...], numbers: list[tuple[Integers, Integers]]
) -> tuple[Integers, Reals]:
    """The estimates for each place from all other groups, (order, place).

    The level of trust, -1 where the context is not seen, and the order's own estimate.
    """
    levels, estimates = [], []
    for order, (number, event) in zip(counted, numbers, strict=True):
        of_context, gone_total = np.unique(
            left_out * len(order.totals) + number, return_inverse=True, return_counts=True
        )[1:]
        first, of_event, gone = np.unique(
            left_out * len(order.events) + event,
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )[1:]
        vanished = gone == order.counts[event[first]]  # there is no such event elsewhere
        gone_distinct = np.bincount(of_context[first], vanished).astype(np.int64)
        total = order.totals[number] - gone_total[of_context]
        distinct = order.distinct[number] - gone_distinct[of_context]
        count = order.counts[event] - gone[of_event]
        some = np.maximum(total, 1), np.maximum(distinct, 1)
        levels.append(np.where(total > 0, _level(*some), -1))
        estimates.append(count / some[0])
    return np.array(levels), np.array(estimates)


def _tune(level: Integers, own: Reals, vocab_size: int) -> Reals:
    """The trust (order, level) that gives the left-out places the largest probability."""
    orders, count = own.shape
    trust = np.full((orders, LEVELS), 0.5)
    likelihood = -np.inf
    for _round in range(ROUNDS):
        share = np.where(level >= 0, np.take_along_axis(trust, np.maximum(level, 0), 1), 0.0)
        mixed = np.empty((orders + 1, count))
        mixed[0] = 1 / vocab_size
        for k in range(orders):
            mixed[k + 1] = share[k] * own[k] + (1 - share[k]) * mixed[k]
        reached = np.ones(count)  # how probably the token was not drawn from a longer context
        for k in reversed(range(orders)):
            drawn = reached * share[k] * own[k] / mixed[k + 1]
            seen = level[k] >= 0
            hits = np.bincount(level[k][seen], drawn[seen], LEVELS)
            visits = np.bincount(level[k][seen], reached[seen], LEVELS)
            trust[k] = (hits + 1) / (visits + 2)  # never 0 or 1: no token is impossible
            reached = reached - drawn
        before, likelihood = likelihood, float(np.log(mixed[-1]).mean())
        if likelihood - before < ENOUGH:
            break
    return trust


def _level(total: Integers, distinct: Integers) -> Integers:
    """How well a context is known: the doublings of its average count."""
    return np.minimum(np.log2(total / distinct).astype(np.int64), LEVELS - 1)


def _find(keys: Integers, wanted: Integers) -> Integers:
    """The place of each wanted key among sorted keys; -1 where it is not there."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)
