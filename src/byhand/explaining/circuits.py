"""QK and OV: which token a head looks at from which, and what it writes when it does.

A plan over a list of tokens instead of a text: every token stands at the same place, nothing but
the block's own mask is between them, and the block reads the embedding.

    QK   the scores of that plan.  In block 0 they are the scores of a real text wherever its tokens
         stand at these places.
    OV   what a head writes when it looks at one token alone, read by the unembedding (without its
         bias).  On its way it passes every norm that the stream passes from there to the logits:
         their centring and their gain, without their scale and bias.  The scales of a real text are
         one positive factor for each position, so that the signs and the order within a row are
         those of what the head writes directly.  A bias of v is inside its head; that of the output
         matrix belongs to none.

In later blocks the embedding stands in for what earlier blocks would have made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byhand import forward
from byhand.errors import AddressError, InputError
from byhand.evaluate import Admitted, pencil_sized, usual_format, work_out
from byhand.explaining.near import Floats, floats_near
from byhand.explaining.reading import clearest, strongest_of
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import Numbers
from byhand.plan import Plan, Step
from byhand.spec import ModelSpec
from byhand.tracing import Missing, Trace, Worked

WHOLE_VOCABULARY = 128  # tokens up to which every pair is worked out
MOST_ROWS = 16  # tokens of a text that are looked at, where the vocabulary is larger
SHOWN = 8  # of the most and of the least written tokens of each row, there


@dataclass(frozen=True)
class Table:
    """Numbers for pairs of tokens."""

    address: str  # explain.qk.block.0 or explain.ov.block.0, without the index
    head: int
    rows: tuple[int, ...]  # QK: the tokens that look; OV: the tokens looked at
    columns: tuple[int, ...]  # QK: the tokens looked at; OV: the tokens written
    entries: Any  # (row, column): numbers of the number system, ABSENT or masked where masked
    strongest: tuple[tuple[int, ...], ...] = ()  # of each row the foremost columns, as token ids

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
    qk: Table
    ov: Table
    looks: tuple[tuple[int, int], ...] = ()  # from which token it looks most at which
    writes: tuple[tuple[int, int], ...] = ()  # having read which token it writes which


@dataclass(frozen=True)
class Circuits:
    """Every head of a layer; none where the layer has no attention or `missing` says why."""

    layer: int
    positions: tuple[int, int]  # where the query and the key stand
    heads: tuple[HeadCircuits, ...]
    numbers: Numbers
    stands_in: bool  # the embedding stands in for the block's true input: every block but the first
    norms: tuple[str, ...]  # the norms that OV passes, without their scales
    left_out: int = 0  # tokens of the vocabulary that were not taken as rows
    missing: Missing | None = None

    def __iter__(self) -> Iterator[HeadCircuits]:
        return iter(self.heads)

    @property
    def said(self) -> tuple[str, ...]:
        """What a reader has to know to read the tables."""
        query, key = self.positions
        told = [_("the query stands at position {query}, the key at position {key}").format(
            query=query, key=key
        )]  # fmt: skip
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


def circuits(
    source: Trace | Model,
    layer: int,
    *,
    positions: tuple[int, int] | None = None,
    tokens: Iterable[int] | None = None,
    numbers: Numbers | None = None,
) -> Circuits:
    """QK and OV of every head of a layer.

    `positions` is where the query and the key stand: without, both at the last place of the text.
    `tokens` are the rows, and the columns of QK: without, the whole vocabulary; where that is
    large, the last tokens of the text, and as columns of OV those it writes most and least.  The
    numbers are those of the trace; of a model the usual ones.
    """
    scene = _Scene.of(source, layer, positions, tokens, numbers)
    norms = norms_passed(scene.model.spec, layer)
    empty = Circuits(
        layer,
        scene.positions,
        (),
        scene.numbers,
        layer > 0,
        norms,
        scene.model.spec.vocab - len(scene.tokens),
    )
    if scene.model.spec.blocks[layer].attention is None:
        return replace(empty, left_out=0)
    scores = scene.scores()
    written = scene.head_outputs()
    for worked in (scores, written):
        if worked.missing is not None:
            return replace(empty, missing=worked.missing)
    logits = scene.unembed(written, norms)
    if logits.missing is not None:
        return replace(empty, missing=logits.missing)
    return replace(empty, heads=tuple(scene.read(scores, logits)))


def norms_passed(spec: ModelSpec, layer: int) -> tuple[str, ...]:
    """The norms that the stream passes from a layer's attention to the logits."""
    passed = []
    for later, block in enumerate(spec.blocks[layer:], start=layer):
        if block.norm_place == "post":
            for name, part, norm in (
                ("attn", block.attention, block.attn_norm),
                ("mlp", block.mlp, block.mlp_norm),
            ):
                if part is not None and norm.kind != "none":
                    passed.append(f"block.{later}.{name}.norm")
    if spec.final_norm.kind != "none":
        passed.append("final.norm")
    return tuple(passed)


@dataclass(frozen=True)
class _Scene:
    """What is looked at: a block, tokens, where they stand, and the numbers."""

    model: Model
    layer: int
    positions: tuple[int, int]
    tokens: tuple[int, ...]
    numbers: Numbers
    weights: Admitted

    @classmethod
    def of(
        cls,
        source: Trace | Model,
        layer: int,
        positions: tuple[int, int] | None,
        tokens: Iterable[int] | None,
        numbers: Numbers | None,
    ) -> _Scene:
        model = source.model if isinstance(source, Trace) else source
        if not 0 <= layer < len(model.spec.blocks):
            raise AddressError(
                _("there is no such layer"),
                expected=_("a place from 0 to {last}").format(last=len(model.spec.blocks) - 1),
                found=str(layer),
            )
        text = _text(source)
        if numbers is None:
            numbers = source.numbers if isinstance(source, Trace) else _usual_numbers(model)
        last = max(len(text) - 1, 0)
        rows = _rows(model, text, tokens)
        weights = Admitted(model.weights, numbers)
        return cls(model, layer, positions or (last, last), rows, numbers, weights)

    @property
    def at(self) -> str:
        return f"block.{self.layer}.attn"

    def scores(self) -> Worked:
        """Of every token against every token; where they stand apart, keys first, then queries."""
        query, key = self.positions
        count = len(self.tokens)
        twice = query != key
        places = (key,) * count + (query,) * count if twice else (key,) * count
        plan = forward.plan(self.model.spec, len(places), positions=places)
        return self._work_out(plan, f"{self.at}.scores", self.tokens * (1 + twice))

    def head_outputs(self) -> Worked:
        """Each head's output where each token looks at itself alone, with the whole of 1."""
        count = len(self.tokens)
        alone = tuple(tuple(row) for row in np.eye(count, dtype=bool).tolist())
        places = (self.positions[1],) * count
        plan = forward.plan(self.model.spec, count, positions=places, mask=alone, head_outputs=True)
        return self._work_out(plan, f"{self.at}.head_out", self.tokens)

    def _work_out(self, plan: Plan, address: str, tokens: Sequence[int]) -> Worked:
        steps = work_out(
            reading_embedding(plan, self.layer, address), self.weights, tokens, self.numbers
        )
        return steps[address]

    def unembed(self, written: Worked, norms: Sequence[str]) -> Worked:
        """What the heads write as logits, (head · token, vocab)."""
        heads, count, _width = written.step.shape
        tail = _tail(self.model.spec, self.layer, heads * count, norms)
        first = tail.steps[0]
        rows = Worked(first, self.numbers.stack_rows([written.value]), self.numbers)
        return work_out(tail, self.weights, (), self.numbers, given={first.address: rows})["logits"]

    def read(self, scores: Worked, logits: Worked) -> Iterator[HeadCircuits]:
        """The two tables of every head."""
        count = len(self.tokens)
        seen = floats_near(self.numbers, scores.value)[:, -count:, :count]
        written = floats_near(self.numbers, logits.value).reshape(len(seen), count, -1)
        for head, near in enumerate(seen):
            looked = scores.array[head][-count:, :count]
            entries = logits.array[head * count : (head + 1) * count]
            yield self._head(head, looked, near, entries, written[head])

    def _head(
        self, head: int, scores: Any, near: Floats, entries: Any, written: Floats
    ) -> HeadCircuits:
        rows = self.tokens
        qk = Table(
            f"explain.qk.block.{self.layer}",
            head,
            rows,
            rows,
            scores,
            strongest_of(near, rows),
        )
        columns = _columns(written)
        ov = Table(
            f"explain.ov.block.{self.layer}",
            head,
            rows,
            columns,
            entries if len(columns) == written.shape[1] else entries[:, list(columns)],
            strongest_of(written[:, list(columns)], columns),
        )
        looks = tuple((rows[row], rows[column]) for row, column in clearest(near))
        writes = tuple((rows[row], column) for row, column in clearest(written))
        return HeadCircuits(head, qk, ov, looks, writes)


def reading_embedding(plan: Plan, layer: int, wanted: str) -> Plan:
    """The steps that a step of a block needs, the block reading the embedding."""
    source, entering = plan["stream.0"].address, plan[f"stream.{layer}"].address
    before = plan.only([source]).steps
    known = {step.address for step in before} | {entering}
    steps = [step for step in plan.only([wanted], given=[entering]) if step.address not in known]
    rewired = (
        replace(step, inputs={role: source if read == entering else read
                              for role, read in step.inputs.items()})
        for step in steps
    )  # fmt: skip
    return Plan(plan.spec, plan.length, (*before, *rewired), {})


def _tail(spec: ModelSpec, layer: int, rows: int, norms: Sequence[str]) -> Plan:
    """From a head's output to logits: the plan's own lines, without scales and biases."""
    whole = forward.plan(spec, rows, positions=(0,) * rows)
    entering = whole[f"block.{layer}.attn.out"]
    lines: list[Step] = [replace(entering, op="given", inputs={}, attributes={})]
    for at in norms:
        if f"{at}.centered" in whole.known:
            x = lines[-1].address
            lines.append(replace(whole[f"{at}.mean"], inputs={"x": x}))
            mean = lines[-1].address
            lines.append(replace(whole[f"{at}.centered"], inputs={"x": x, "mean": mean}))
        out = whole[f"{at}.out"]
        if "gain" in out.inputs:
            reads = {"x": lines[-1].address, "gain": out.inputs["gain"]}
            lines.append(replace(out, inputs=reads))
    logits = whole["logits"]
    reads = {"x": lines[-1].address, "weight": logits.inputs["weight"]}
    lines.append(replace(logits, inputs=reads))
    return Plan(spec, rows, tuple(lines), {})


def _text(source: Trace | Model) -> tuple[int, ...]:
    """The ids of the trace's text, or of the model's own; none where it has none."""
    if isinstance(source, Trace):
        return source.tokens
    return () if source.text is None else tuple(source.vocabulary.encode(source.text))


def _rows(model: Model, text: Sequence[int], tokens: Iterable[int] | None) -> tuple[int, ...]:
    vocab = model.spec.vocab
    if tokens is None:
        if vocab <= WHOLE_VOCABULARY:
            return tuple(range(vocab))
        seen = tuple(reversed(dict.fromkeys(reversed(text))))[-MOST_ROWS:]
        if not seen:
            raise InputError(_("this model has no default text"), hint=_("give a text"))
        return seen
    rows = tuple(dict.fromkeys(tokens))
    for token in rows:
        if not 0 <= token < vocab:
            raise AddressError(
                _("there is no such token"),
                expected=_("a place from 0 to {last}").format(last=vocab - 1),
                found=str(token),
            )
    if not rows:
        raise InputError(_("no tokens were given"), expected=_("at least one token"), found="0")
    return rows


def _columns(written: Any) -> tuple[int, ...]:
    """Every token, or of a large vocabulary those that a row writes most or least."""
    vocab = written.shape[1]
    if vocab <= WHOLE_VOCABULARY:
        return tuple(range(vocab))
    order = np.argpartition(written, (SHOWN, vocab - SHOWN), axis=1)
    ends = np.concatenate([order[:, :SHOWN], order[:, -SHOWN:]], axis=1)
    return tuple(np.unique(ends).tolist())


def _usual_numbers(model: Model) -> Numbers:
    if pencil_sized(model):
        from byhand.numbers.exact import Exact

        return Exact()
    from byhand.numbers.floats import Floats

    return Floats(usual_format(model))
