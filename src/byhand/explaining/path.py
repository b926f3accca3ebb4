"""The path of each source to the logits: linear, with every norm's scale held at this input.

Sources are rows, stacked source by source, of the positions asked for.  A norm centres each row by
its own mean.  It divides the row by the standard deviation that the *whole* stream has in the
trace, and multiplies it by the gain.  The norm's bias is a source of its own.  Everything is done
by the operations of the trace's number system, so a term is exact, named, enclosed or rounded as
the trace is.  Nothing is folded into weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from byhand.address import Address
from byhand.errors import Undecided
from byhand.evaluate import Admitted
from byhand.explaining.sources import Source, Stage, bias_of, layer_of
from byhand.numbers.base import Numbers
from byhand.plan import WEIGHT, Step
from byhand.tracing import Trace
from byhand.worked import Missing


@dataclass(frozen=True)
class Part:
    """Some sources and their rows, (source · position, width), or why there are none."""

    sources: tuple[Source, ...]
    value: Any
    missing: Missing | None = None


@dataclass
class Way:
    """The sources of one trace at some positions, carried along the spine."""

    trace: Trace
    positions: tuple[int, ...]
    weights: Admitted
    neurons: bool = False
    keys: bool = False
    heads: bool = True  # each head is a source; else each attention is one
    sparing: bool = True  # weights are dropped as soon as their step is done
    limits: list[tuple[str, int]] = field(default_factory=list)  # norms that took 0/0 for 0

    @property
    def numbers(self) -> Numbers:
        """The number system of the trace."""
        return self.trace.numbers

    def parts(self, stages: Sequence[Stage], columns: Sequence[int] | None) -> list[Part]:
        """All parts after the last stage; of the last matrix, only these columns are used."""
        parts: list[Part] = []
        for stage in stages:
            if stage.enters:
                parts.extend(self._entering(stage.step))
            else:
                parts = self._passed(stage.step, parts, columns)
                parts.extend(self._bias(stage.step, columns))
            if self.sparing:
                self.weights.values.clear()
        return parts

    # ------------------------------------------------------------------- entering

    def _entering(self, step: Step) -> Iterator[Part]:
        layer = layer_of(step.address)
        if step.op in ("embed", "sinusoid"):
            kind = step.address.rpartition(".")[2]
            yield self._part([Source(step.address, kind, layer)], lambda: self._rows(step.address))
        elif step.op in ("linear", "merge_heads"):
            before = self.trace.plan[step.inputs["x"]]
            if before.op == "mix":
                yield from self._attention(step, before)
            else:
                yield self._mlp(step)
            yield from self._bias(step, None)
        else:
            yield self._part([Source(step.address, "step", layer)],
                             lambda: self._rows(step.address))  # fmt: skip

    def _attention(self, step: Step, mixed: Step) -> Iterator[Part]:
        if self.keys:
            yield from self._by_key(step, mixed)
        elif self.heads:
            yield from self._heads(step, mixed)
        else:
            address = head_out(step)
            source = Source(address, "head", layer_of(address))
            yield self._part([source], lambda: self._merged(step, self._rows(mixed.address)))

    def _merged(self, step: Step, mixed: Any) -> Any:
        """All heads at once."""
        if "weight" in step.inputs:
            return self._linear(step, mixed)
        return self.numbers.merge_heads(mixed)

    def _heads(self, step: Step, mixed: Step) -> Iterator[Part]:
        address = head_out(step)
        layer = layer_of(address)
        sources = [Source(address, "head", layer, (h,)) for h in range(mixed.shape[0])]
        yield self._part(sources, lambda: self._through(step, self._rows(mixed.address)))

    def _by_key(self, step: Step, mixed: Step) -> Iterator[Part]:
        """What each head read at each key: its attention weight times the value there."""
        address = head_out(step) + ".key"
        layer = layer_of(address)
        shares, v = (self.trace.plan[mixed.inputs[role]] for role in ("weights", "v"))
        for key in range(shares.shape[-1]):
            sources = [Source(address, "key", layer, (h, key)) for h in range(mixed.shape[0])]
            yield self._part(sources, lambda key=key: self._read_at(step, shares, v, key))

    def _read_at(self, step: Step, shares: Step, v: Step, key: int) -> Any:
        numbers = self.numbers
        share = numbers.take_columns(self._rows(shares.address), [key])
        value = numbers.take_rows(self._value(v.address), [key])
        return self._through(step, numbers.mix(weights=share, v=value))

    def _mlp(self, step: Step) -> Part:
        inner = step.inputs["x"]
        layer = layer_of(step.address)
        if not self.neurons:
            sources = [Source(step.address, "mlp", layer)]
            return self._part(sources, lambda: self._linear(step, self._rows(inner)))
        width = self.trace.plan[inner].shape[-1]
        sources = [Source(inner, "neuron", layer, (unit,)) for unit in range(width)]

        def units() -> Any:  # each a head of width 1: its slice of the matrix is its row
            act = self.numbers.split_heads(
                self._rows(inner), start=0, heads=width, width=1, stride=1
            )
            return self._through(step, act)

        return self._part(sources, units)

    def _through(self, step: Step, mixed: Any) -> Any:
        """Each head through its slice of the matrix."""
        address = step.inputs.get("weight")
        weight = None if address is None else self._weight(address)
        layout = step.attributes.get("layout", "in_out")
        return self.numbers.head_outputs(mixed, weight=weight, layout=layout)

    def _bias(self, step: Step, columns: Sequence[int] | None) -> Iterator[Part]:
        source = bias_of(step)
        if source is not None:
            wanted = columns if step.op == "linear" else None
            yield self._part([source], lambda: self._repeated(source.address, wanted))

    def _repeated(self, address: str, columns: Sequence[int] | None) -> Any:
        """A bias as a row for each position."""
        self._check_known(address)
        data = self.weights.weights[address.removeprefix(WEIGHT)].data[None, :]
        table = self.numbers.admit(data if columns is None else data[:, list(columns)])
        return self.numbers.embed(table, (0,) * len(self.positions))

    # ------------------------------------------------------------------- passing

    def _passed(self, step: Step, parts: list[Part], columns: Sequence[int] | None) -> list[Part]:
        """All parts after a step that the stream goes through; known parts are done at once."""
        known = [part for part in parts if part.missing is None]
        sources = tuple(source for part in known for source in part.sources)
        if not sources:
            return parts
        whole = self._part(
            sources, lambda: self._apply(step, stacked(self.numbers, known), columns)
        )
        if whole.missing is not None:
            return [replace(part, value=None, missing=part.missing or whole.missing)
                    for part in parts]  # fmt: skip
        if len(known) == len(parts):
            return [whole]
        return self._in_order(whole, parts)

    def _in_order(self, whole: Part, parts: list[Part]) -> list[Part]:
        """The parts in their order, with the missing ones at their places."""
        done, start = [], 0
        for part in parts:
            count = len(part.sources) * len(self.positions)
            if part.missing is None:
                rows = self.numbers.take_rows(whole.value, range(start, start + count))
                part, start = replace(part, value=rows), start + count
            done.append(part)
        return done

    def _apply(self, step: Step, x: Any, columns: Sequence[int] | None) -> Any:
        numbers = self.numbers
        if step.op == "center":
            return numbers.center(x, numbers.mean(x))
        if step.op == "normalize":
            return self._divided(step, x)
        if step.op == "affine":
            gain = step.inputs.get("gain")
            more = {"plus_one": True} if step.attributes.get("plus_one") else {}
            if gain is None:
                return x
            return numbers.affine(x, gain=self._weight(gain), **more)
        if step.op == "rescale":
            return numbers.rescale(x, by=step.attributes.get("by"))
        return self._linear(step, x, columns)

    def _divided(self, step: Step, x: Any) -> Any:
        """Every row divided by the scale of its position; where the scale is 0, the row is 0."""
        numbers, count = self.numbers, len(self.positions)
        sources = x.shape[0] // count
        by = numbers.take_rows(self._value(step.inputs["by"]), self.positions * sources)
        limits = {note.index[0] for note in self.trace.steps[step.address].notes
                  if note.kind == "zero-variance"}  # fmt: skip
        here = [position in limits for position in self.positions]
        if any(here):
            self.limits.extend((step.address, p) for p in self.positions if p in limits)
            kept = np.repeat(np.tile(~np.array(here), sources)[:, None], x.shape[1], axis=1)
            x = numbers.multiply(x, numbers.admit(kept.astype(np.float32)))
        return numbers.normalize(x, by)

    def _linear(self, step: Step, x: Any, columns: Sequence[int] | None = None) -> Any:
        """Through the step's matrix, or those of its columns that are asked for, without bias."""
        address, layout = step.inputs["weight"], step.attributes["layout"]
        if columns is None:
            return self.numbers.linear(x, self._weight(address), layout=layout)
        self._check_known(address)
        data = self.weights.weights[address.removeprefix(WEIGHT)].data
        chosen = data[list(columns)] if layout == "out_in" else data[:, list(columns)]
        return self.numbers.linear(x, self.numbers.admit(chosen), layout=layout)

    # ------------------------------------------------------------------- values

    def _part(self, sources: Sequence[Source], value: Any) -> Part:
        """The part of these sources; where a value is missing, the part that says why."""
        self.numbers.notes.clear()
        try:
            return Part(tuple(sources), value())
        except _Absent as absent:
            return Part(tuple(sources), None, absent.missing)
        except Undecided as error:
            missing = Missing("undecided", sources[0].address, error.message)
            return Part(tuple(sources), None, missing)

    def _value(self, address: str) -> Any:
        worked = self.trace.worked(Address(address))
        if worked.missing is not None:
            raise _Absent(worked.missing)
        return worked.value

    def _rows(self, address: str) -> Any:
        """A step's value at the positions."""
        return self.numbers.take_rows(self._value(address), self.positions)

    def _weight(self, address: str) -> Any:
        self._check_known(address)
        return self.weights[address.removeprefix(WEIGHT)]

    def _check_known(self, address: str) -> None:
        if self.weights.unknown(address.removeprefix(WEIGHT)):
            raise _Absent(Missing("unknown", address))


class _Absent(Exception):
    """A value that a source needs is missing."""

    def __init__(self, missing: Missing) -> None:
        super().__init__(missing)
        self.missing = missing


def stacked(numbers: Numbers, parts: Sequence[Part]) -> Any:
    """The rows of all parts, one below the other."""
    values = [part.value for part in parts]
    if len(values) == 1 and len(values[0].shape) == 2:
        return values[0]
    return numbers.stack_rows(values)


def head_out(step: Step) -> str:
    """The address of the heads' own outputs, beside the attention's output."""
    return step.address.rpartition(".")[0] + ".head_out"
