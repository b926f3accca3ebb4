"""QK and OV: which token a head looks at from which token, and what it then writes.

Both come from a plan over a list of tokens instead of a text.  Every token stands at the same
place, only the block's own mask applies, and the block reads the embedding.

    QK   the scores of that plan.  In block 0 they are the scores of a real text wherever its tokens
         stand at these places.
    OV   what a head writes when it looks at one token alone, read by the unembedding (without its
         bias).  On its way it passes every norm that the stream passes from there to the logits:
         their centring and their gain, without their scale and bias.  The scales of a real text are
         one positive factor for each position, so that the signs and the order within a row are
         those of what the head writes directly.  A bias of v is inside its head; that of the output
         matrix belongs to none.

In later blocks the embedding replaces the output of the earlier blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byhand import forward
from byhand.errors import InputError
from byhand.evaluate import Admitted, Progress, work_out
from byhand.explaining.approximations import Floats, floats_near, room_around
from byhand.explaining.asked import check_inside
from byhand.explaining.circuit_plans import (
    head_outputs_plan,
    norms_passed,
    scores_plan,
    unembedding_plan,
)
from byhand.explaining.foremost import clearest, strongest_of
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import ABSENT, Numbers
from byhand.plan import WEIGHT, Plan
from byhand.tracing import Trace
from byhand.worked import Missing, Worked

WHOLE_VOCABULARY = 128  # tokens up to which every pair is worked out
MOST_ROWS = 16  # tokens of the text that are rows, where the vocabulary is larger
SHOWN = 8  # of the most and of the least written tokens of each such row

Pairs = tuple[tuple[int, int], ...]  # of tokens
Near = tuple[Floats, Floats]  # floats near some numbers, and the room around them


@dataclass(frozen=True)
class Table:
    """Numbers for pairs of tokens."""

    address: str  # explain.qk.block.0 or explain.ov.block.0, without the index
    head: int
    rows: tuple[int, ...]  # QK: the tokens that look; OV: the tokens looked at
    columns: tuple[int, ...]  # QK: the tokens looked at; OV: the tokens written
    entries: Any  # (row, column): numbers of the number system, ABSENT or masked where masked
    strongest: tuple[tuple[int, ...], ...] = ()  # token ids of each row's largest columns

    def at(self, row: int, column: int) -> Any:
        """The number for two tokens."""
        return self.entries[self.rows.index(row), self.columns.index(column)]

    def address_of(self, row: int, column: int) -> str:
        """explain.qk.block.0[head,row token,column token]"""
        return f"{self.address}[{self.head},{row},{column}]"


@dataclass(frozen=True)
class HeadCircuits:
    """The two tables of one head, and the pairs of tokens for which they are clearest."""

    head: int
    positions: tuple[int, int]  # where the query and the key stand
    qk: Table
    ov: Table
    looks: Pairs = ()  # (token that looks, token it looks at most)
    writes: Pairs = ()  # (token read, token written most)


@dataclass(frozen=True)
class Circuits:
    """Every head of a layer; none where the layer has no attention or `missing` says why."""

    layer: int
    positions: tuple[int, int]  # where query and key should stand; heads may differ
    heads: tuple[HeadCircuits, ...]
    numbers: Numbers
    stands_in: bool  # the embedding replaces the block's input: all blocks but the first
    norms: tuple[str, ...]  # the norms that OV passes, without their scales
    left_out: int = 0  # tokens of the vocabulary that were not taken as rows
    missing: Missing | None = None

    def __iter__(self) -> Iterator[HeadCircuits]:
        return iter(self.heads)

    @property
    def said(self) -> tuple[str, ...]:
        """The remarks that a reader needs for the tables."""
        told = list(self._places())
        if self.stands_in:
            told.append(
                _("block {layer} reads the bare embedding here, in a text what the blocks before"
                  " it made of that").format(layer=self.layer)
            )  # fmt: skip
        if self.norms:
            told.append(
                _(
                    "what is written passes {norms}: their centring and gain, not their scale"
                ).format(norms=", ".join(self.norms))
            )
        if self.left_out:
            told.append(_("{count} tokens of the vocabulary are left out").format(
                count=f"{self.left_out:,}"
            ))  # fmt: skip
        return tuple(told)

    def _places(self) -> Iterator[str]:
        """Where query and key stand; head by head where they differ."""
        apart: dict[tuple[int, int], list[str]] = {}
        for each in self.heads:
            apart.setdefault(each.positions, []).append(str(each.head))
        for (query, key), heads in (apart or {self.positions: []}).items():
            text = _("the query stands at position {query}, the key at position {key}")
            if len(apart) > 1:
                own = _("head {heads}: {text}") if len(heads) == 1 else _("heads {heads}: {text}")
                text = own.format(heads=", ".join(heads), text=text)
            yield text.format(query=query, key=key)


def circuits(
    trace: Trace,
    layer: int,
    *,
    positions: tuple[int, int] | None = None,
    tokens: Iterable[int] | None = None,
    weights: Admitted | None = None,
    progress: Progress | None = None,
) -> Circuits:
    """QK and OV of every head of a layer, in the numbers of the trace.

    `positions` is where the query and the key stand.  By default the query stands at the last place
    of the text, and the key at the last place that the head may look at from there.  `tokens` are
    the rows, and the columns of QK; by default the whole vocabulary.  A large vocabulary has the
    last tokens of the text as rows, and the tokens written most and least as columns of OV.
    `weights` are the model's, if they were admitted before.
    """
    model, numbers = trace.model, trace.numbers
    check_inside([layer], len(model.spec.blocks), _("there is no such layer"))
    if weights is None:
        weights = Admitted(model.weights, numbers)
    scene = _Scene(model, layer, _rows(trace, tokens), numbers, weights, progress)
    last = len(trace.tokens) - 1
    norms = norms_passed(scene.model.spec, layer)
    empty = Circuits(
        layer,
        positions or (last, last),
        (),
        scene.numbers,
        layer > 0,
        norms,
        scene.model.spec.vocab - len(scene.tokens),
    )
    if scene.model.spec.blocks[layer].attention is None:
        return replace(empty, left_out=0)
    heads: list[HeadCircuits] = []
    for pair, own in _stands(scene, last, positions).items():
        found = scene.heads(pair, own, norms)
        if isinstance(found, Missing):
            return replace(empty, missing=found)
        heads += found
    return replace(empty, heads=tuple(sorted(heads, key=lambda each: each.head)))


def _stands(
    scene: _Scene, last: int, asked: tuple[int, int] | None
) -> dict[tuple[int, int], list[int]]:
    """(query, key) → heads: as asked, or the key at the last place that a head may look at."""
    scores = forward.plan(scene.model.spec, last + 1)[f"block.{scene.layer}.attn.scores"]
    heads = range(scores.shape[0])
    if asked is not None or "table" not in scores.inputs:
        return {asked or (last, last): list(heads)}
    table = scene.model.weights[scores.inputs["table"].removeprefix(WEIGHT)].data
    found: dict[tuple[int, int], list[int]] = {}
    for head in heads:
        keys = [key for key, seen in enumerate(scores.attributes["mask"][last])
                if seen and table[head, last, key] is not ABSENT]  # fmt: skip
        found.setdefault((last, max(keys, default=last)), []).append(head)
    return found


@dataclass(frozen=True)
class _Scene:
    """The block, the tokens and the number system that the tables are about."""

    model: Model
    layer: int
    tokens: tuple[int, ...]
    numbers: Numbers
    weights: Admitted
    progress: Progress | None

    def heads(
        self, positions: tuple[int, int], some: Sequence[int], norms: Sequence[str]
    ) -> list[HeadCircuits] | Missing:
        """The tables of some heads for these places of query and key; or why there are none."""
        query, key = positions
        scores, written = self.scores(query, key), self.head_outputs(key)
        for worked in (scores, written):
            if worked.missing is not None:
                return worked.missing
        logits = self.unembed(written, norms)
        if logits.missing is not None:
            return logits.missing
        return [each for each in self.read(positions, scores, logits) if each.head in some]

    def scores(self, query: int, key: int) -> Worked:
        """Of every token against every token; where they stand apart, keys first, then queries."""
        count = len(self.tokens)
        plan = scores_plan(self.model.spec, self.layer, count, (query, key))
        return self._work_out(plan, self.tokens * (plan.length // count))

    def head_outputs(self, key: int) -> Worked:
        """Each head's output where each token looks at itself alone, with attention weight 1."""
        plan = head_outputs_plan(self.model.spec, self.layer, len(self.tokens), key)
        return self._work_out(plan, self.tokens)

    def _work_out(self, plan: Plan, tokens: Sequence[int]) -> Worked:
        steps = work_out(plan, self.weights, tokens, self.numbers, progress=self.progress)
        return steps[plan.steps[-1].address]

    def unembed(self, written: Worked, norms: Sequence[str]) -> Worked:
        """What the heads write as logits, (head · token, vocab)."""
        heads, count, _width = written.step.shape
        tail = unembedding_plan(self.model.spec, self.layer, heads * count, norms)
        first = tail.steps[0]
        rows = Worked(first, self.numbers.stack_rows([written.value]), self.numbers)
        given = {first.address: rows}
        return work_out(tail, self.weights, (), self.numbers, given=given)[tail.steps[-1].address]

    def read(
        self, positions: tuple[int, int], scores: Worked, logits: Worked
    ) -> Iterator[HeadCircuits]:
        """The two tables of every head."""
        count = len(self.tokens)
        seen, unseen = (part[:, -count:, :count] for part in self._near(scores))
        written, room = (part.reshape(len(seen), count, -1) for part in self._near(logits))
        for head in range(len(seen)):
            looked = scores.array[head][-count:, :count]
            entries = logits.array[head * count : (head + 1) * count]
            qk, looks = self._qk(head, looked, (seen[head], unseen[head]))
            ov, writes = self._ov(head, entries, (written[head], room[head]))
            yield HeadCircuits(head, positions, qk, ov, looks, writes)

    def _near(self, worked: Worked) -> Near:
        return floats_near(self.numbers, worked.value), room_around(self.numbers, worked.value)

    def _qk(self, head: int, scores: Any, near: Near) -> tuple[Table, Pairs]:
        rows = self.tokens
        qk = Table(
            f"explain.qk.block.{self.layer}",
            head,
            rows,
            rows,
            scores,
            strongest_of(*near, rows),
        )
        return qk, tuple((rows[row], rows[column]) for row, column in clearest(*near))

    def _ov(self, head: int, entries: Any, near: Near) -> tuple[Table, Pairs]:
        written, room = near
        rows, columns = self.tokens, _columns(written)
        some = list(columns)
        ov = Table(
            f"explain.ov.block.{self.layer}",
            head,
            rows,
            columns,
            entries if len(columns) == written.shape[1] else entries[:, some],
            strongest_of(written[:, some], room[:, some], columns),
        )
        return ov, tuple((rows[row], column) for row, column in clearest(*near))


def _rows(trace: Trace, tokens: Iterable[int] | None) -> tuple[int, ...]:
    vocab = trace.model.spec.vocab
    if tokens is None:
        if vocab <= WHOLE_VOCABULARY:
            return tuple(range(vocab))
        return tuple(reversed(dict.fromkeys(reversed(trace.tokens))))[-MOST_ROWS:]
    rows = tuple(dict.fromkeys(tokens))
    check_inside(rows, vocab, _("there is no such token"))
    if not rows:
        raise InputError(_("no tokens were given"), expected=_("at least one token"), found="0")
    return rows


def _columns(written: Any) -> tuple[int, ...]:
    """Every token; of a large vocabulary, the tokens that a row writes most or least."""
    vocab = written.shape[1]
    if vocab <= WHOLE_VOCABULARY:
        return tuple(range(vocab))
    order = np.argpartition(written, (SHOWN, vocab - SHOWN), axis=1)
    ends = np.concatenate([order[:, :SHOWN], order[:, -SHOWN:]], axis=1)
    return tuple(np.unique(ends).tolist())
