"""Scores of many texts in floats: texts of about one length side by side, each weight read once.

The plan is that of one text, cut in two: up to the residual stream that the head reads, and the
head, which works on the scored positions alone.  A text that is shorter than its batch is filled
up behind its end.  No position looks there, since a model that fills up is causal.

Which texts form a batch depends on the texts and the model, never on the machine or on who asks.
So the numbers are the same to the last bit wherever the batch is worked out by the same kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from byhand import forward
from byhand.errors import InputError
from byhand.evaluate import Admitted, work_out
from byhand.language import _
from byhand.model import Model
from byhand.numbers.floats import Floats
from byhand.numbers.floats.formats import Data, find_format
from byhand.numbers.floats.together import Together
from byhand.parameters import size_of
from byhand.plan import WEIGHT, Plan
from byhand.rope_scaling import BY_LENGTH
from byhand.scoring.float_rows import Rows, joined, rows_of
from byhand.scoring.samples import Sample
from byhand.scoring.scores import Scores
from byhand.spec import ModelSpec
from byhand.weights import Weights
from byhand.worked import Worked

HELD = 1 << 30  # bytes of weights, widened, that are held; those of larger models stay on the disk
ROWS = 2048  # positions of a batch of a model that is held
ENTRIES = 1 << 28  # numbers that a batch of a larger model may have at a time: 1 GiB of float32
SQUARES = 1 << 26  # attention scores of a layer, for all heads and texts
LOGITS = {True: 1 << 21, False: 1 << 26}  # logits at a time, of a model that is held or is not
FEWEST = 64  # positions whose logits are worked out at a time, at least
FINE = 16  # lengths are rounded up by at most a part of them like this, so that plans are shared
PLANS = 32  # plans of different lengths that are kept


@dataclass(frozen=True)
class Batch:
    """Texts that are worked out side by side: which ones, and the length that each is given."""

    places: tuple[int, ...]
    length: int


def batches(spec: ModelSpec, samples: Sequence[Sample]) -> list[Batch]:
    """All texts by their length, in batches; the last token of a text is not read."""
    fills = may_fill(spec)
    order = sorted(range(len(samples)), key=lambda place: (len(samples[place].ids), place))
    rows, heads = rows_of_batch(spec), most_heads(spec)
    found: list[Batch] = []
    group: list[int] = []
    shared = 0
    for place in order:
        read = len(samples[place].ids) - 1
        length = rounded_up(spec, read) if fills else read
        texts = len(group) + 1
        fits = texts * length <= rows and texts * heads * length * length <= SQUARES
        if group and not (fits and (fills or length == shared)):
            found.append(Batch(tuple(group), shared))
            group = []
        group.append(place)
        shared = length
    return [*found, Batch(tuple(group), shared)] if group else found


def may_fill(spec: ModelSpec) -> bool:
    """Whether what stands behind a text leaves its numbers as they are."""
    scalings = [
        block.attention.rotary.scaling
        for block in spec.blocks
        if block.attention is not None and block.attention.rotary is not None
    ]
    return spec.causal and not any(each and each.kind in BY_LENGTH for each in scalings)


def rounded_up(spec: ModelSpec, length: int) -> int:
    """A length at which texts of about this one can share a plan."""
    step = max(1, length // FINE)
    longer = -(-length // step) * step
    return longer if spec.context is None else max(length, min(longer, spec.context))


def most_heads(spec: ModelSpec) -> int:
    """The number of heads of the layer that has most of them."""
    return max((block.attention.heads for block in spec.blocks if block.attention), default=1)


def held(spec: ModelSpec, itemsize: int = 4) -> bool:
    """Whether the weights are widened once and held in memory."""
    return size_of(spec) * itemsize <= HELD


def rows_of_batch(spec: ModelSpec) -> int:
    """How many positions are worked out at a time: more where weights come from the disk."""
    if held(spec):
        return ROWS
    widest = max((block.mlp.d_ff for block in spec.blocks if block.mlp), default=0)
    return max(1, ENTRIES // (8 * spec.d_model + 4 * widest))


class FloatBatches:
    """Scores texts in one float format; the weights are admitted once, or read for each batch."""

    def __init__(self, model: Model, format: str) -> None:
        self.model = model
        self.format = format
        self.held = held(model.spec, find_format(format).working.dtype.itemsize)
        self._admitted: Weights | Admitted = model.weights
        if self.held:
            self._admitted = Admitted(model.weights, Floats(format, convert_once=True))
        self._plans: dict[int, tuple[Plan, Plan, str]] = {}

    def score(self, samples: Sequence[Sample]) -> Iterator[Scores]:
        """The scores of each sample, in their order, as soon as all before it are known."""
        ready: dict[int, Scores] = {}
        then = 0
        for batch in batches(self.model.spec, samples):
            texts = [samples[place] for place in batch.places]
            try:
                scored = self.work(texts, batch.length)
            except InputError as error:
                names = ", ".join(text.name for text in texts[:4]) + " …" * (len(texts) > 4)
                error.where = _("text {name}").format(name=names)
                raise
            ready.update(zip(batch.places, scored, strict=True))
            while then in ready:
                yield ready.pop(then)
                then += 1

    def work(self, texts: Sequence[Sample], length: int) -> list[Scores]:
        """The scores of one batch of texts, each filled up to this length."""
        before, head, stream = self._plan(length)
        numbers = Together(self.format, len(texts), length)
        tokens = [id for text in texts for id in filled(text.ids[:-1], length)]
        steps = work_out(before, self._admitted, tokens, numbers, keep={stream})
        scored = np.asarray(
            [
                number * length + place
                for number, text in enumerate(texts)
                for place in range(text.first - 1, len(text.ids) - 1)
            ]
        )
        rows = known(steps[stream])[scored]
        del steps
        found = self._head(head, stream, rows, [id for text in texts for id in text.scored])
        scores, start = [], 0
        for text in texts:
            end = start + len(text.scored)
            scores.append(found.taken(slice(start, end)).of(text, self.format))
            start = end
        return scores

    def _head(self, head: Plan, stream: str, rows: Data, ids: Sequence[int]) -> Rows:
        """What the logits of these rows of the stream say of the tokens, a few rows at a time."""
        count = max(FEWEST, LOGITS[self.held] // self.model.spec.answers)
        parts = []
        for start in range(0, len(rows), count):
            part = rows[start : start + count]
            numbers = Together(self.format, 1, len(part))
            given = {stream: Worked(head[stream], part, numbers)}
            steps = work_out(head, self._admitted, (), numbers, given=given, keep={"logits"})
            parts.append(rows_of(known(steps["logits"]), ids[start : start + count]))
        return joined(parts)

    def _plan(self, length: int) -> tuple[Plan, Plan, str]:
        """The plan of a text in two parts, and the address of the stream between them."""
        if length not in self._plans:
            if len(self._plans) >= PLANS:
                self._plans.pop(next(iter(self._plans)))
            whole = forward.plan(self.model.spec, length)
            stream = head_reads(whole)
            before, head = whole.only([stream]), whole.only(["logits"], given=[stream])
            self._plans[length] = before, head, stream
        return self._plans[length]


def filled(ids: tuple[int, ...], length: int) -> tuple[int, ...]:
    """The ids of a text, its last one again behind its end up to this length."""
    return ids + ids[-1:] * (length - len(ids))


def head_reads(plan: Plan) -> str:
    """The address of what the head reads: the stream after the last norm."""
    first = next(step for step in plan if step.address == "logits" or _of_head(step.address))
    return next(read for read in first.reads if not read.startswith(WEIGHT))


def known(worked: Worked) -> Data:
    """The numbers of a step; the error that says why where it has none."""
    if worked.missing is not None:
        raise worked.missing.error(worked.address)
    found: Data = worked.value
    return found


def _of_head(address: str) -> bool:
    return address.startswith("head.")
