"""Where a parameter stands in a family's files: a tensor, a part of one, or one for each expert.

A rule says how the file's tensor differs from the parameter, both ways: what shape it has in the
file, and which part of it the parameter is.  Rules follow each other from the parameter to the
file, and every part is a view of the file wherever strides can say it.

    piece("mlp.gate_up_proj", Part(0, 2))          the first half of the rows
    piece("mlp.gate_up_proj", Part(1, 2, "turn"))  every second row
    piece("attention.query_key_value", Grouped("k"))   by key head: queries, a key, a value
    piece("experts.{expert}.w1")                   a file's tensor for each expert, gathered
    piece("fc", Turned())                          the file has the transpose
    piece("embed_positions", Later(2))             the first two rows are not the parameter's
    piece("q_norm", Flat())                        without sides of 1: (head, d_head)
    piece("final_logits_bias", Row())              a matrix of one row
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from byhand.parameters import Parameter
from byhand.spec import AttentionSpec

NUMBER = re.compile(r"\{\w+\}")  # in a name: of each expert, or of each head


@dataclass(frozen=True, slots=True)
class Form:
    """The sides of a tensor and what they mean; `out` counts from the end to what it gives."""

    shape: tuple[int, ...]
    axes: tuple[str, ...]
    out: int
    matrix: bool

    @classmethod
    def of(cls, parameter: Parameter, layout: str) -> Form:
        """The form that byhand gives a parameter."""
        matrix = parameter.kind == "matrix" and len(parameter.shape) > 1
        out = -2 if matrix and layout == "out_in" else -1
        return cls(parameter.shape, parameter.axes, out, matrix)

    def with_out(self, size: int, name: str) -> Form:
        """The same form with another side of what it gives."""
        shape, axes = list(self.shape), list(self.axes)
        shape[self.out], axes[self.out] = size, name
        return replace(self, shape=tuple(shape), axes=tuple(axes))


class Rule(Protocol):
    """One difference between a parameter and the file's tensor."""

    def stored(self, form: Form, attn: AttentionSpec | None) -> Form:
        """The form in the file of what has this form here."""

    def taken(self, data: Any, form: Form, attn: AttentionSpec | None) -> Any:
        """What has this form here, of the file's data."""


@dataclass(frozen=True, slots=True)
class Part:
    """One of several parts of equal size, side by side or in turn."""

    place: int
    of: int
    order: str = "side"  # "turn": entry i of the file belongs to part i modulo `of`

    def stored(self, form: Form, _attn: AttentionSpec | None) -> Form:
        """All the parts together."""
        return form.with_out(self.of * form.shape[form.out], f"{self.of}·{form.axes[form.out]}")

    def taken(self, data: Any, form: Form, _attn: AttentionSpec | None) -> Any:
        """This part."""
        size = form.shape[form.out]
        part = slice(self.place * size, (self.place + 1) * size)
        if self.order == "turn":
            part = slice(self.place, None, self.of)
        return _along(data, form.out, part)


@dataclass(frozen=True, slots=True)
class Columns:
    """q, k or v of a matrix that has all three, one behind the other."""

    which: str

    def stored(self, form: Form, attn: AttentionSpec | None) -> Form:
        """q, then k, then v."""
        assert attn is not None
        values = attn.kv_heads * attn.value_width
        return form.with_out(attn.q_width + attn.kv_width + values, "q + k + v")

    def taken(self, data: Any, form: Form, attn: AttentionSpec | None) -> Any:
        """The one of the three."""
        assert attn is not None
        start = {"q": 0, "k": attn.q_width, "v": attn.q_width + attn.kv_width}[self.which]
        return _along(data, form.out, slice(start, start + form.shape[form.out]))


@dataclass(frozen=True, slots=True)
class Grouped:
    """q, k or v of a matrix that has, for each key head, its queries, the key and the value."""

    which: str

    def stored(self, form: Form, attn: AttentionSpec | None) -> Form:
        """All three, by key heads."""
        assert attn is not None
        size = attn.q_width + 2 * attn.kv_width
        return form.with_out(size, "kv_heads·(heads/kv_heads + 2)·d_head")

    def taken(self, data: Any, form: Form, attn: AttentionSpec | None) -> Any:
        """The one of the three; the queries of several key heads are copied together."""
        assert attn is not None
        each = attn.heads // attn.kv_heads
        rows = {"q": slice(0, each), "k": slice(each, each + 1), "v": slice(each + 1, each + 2)}
        at = data.ndim + form.out
        before, behind = data.shape[:at], data.shape[at + 1 :]
        groups = data.reshape(*before, attn.kv_heads, each + 2, attn.d_head, *behind)
        return _along(groups, at + 1 - groups.ndim, rows[self.which]).reshape(form.shape)


@dataclass(frozen=True, slots=True)
class Sharded:
    """q, k or v of a matrix in shards, each with the q, v and k of some heads."""

    which: str
    shards: int

    def stored(self, form: Form, attn: AttentionSpec | None) -> Form:
        """All three, by shards."""
        assert attn is not None
        return form.with_out(3 * attn.q_width, "shards·3·(heads/shards)·d_head")

    def taken(self, data: Any, form: Form, _attn: AttentionSpec | None) -> Any:
        """The one of the three, copied together from all shards."""
        at = data.ndim + form.out
        before, behind = data.shape[:at], data.shape[at + 1 :]
        parts = data.reshape(*before, self.shards, 3, form.shape[form.out] // self.shards, *behind)
        place = "qvk".index(self.which)
        part = _along(parts, at + 1 - parts.ndim, slice(place, place + 1))
        return part.reshape(form.shape)


@dataclass(frozen=True, slots=True)
class Turned:
    """The transpose, of a matrix; other parameters are stored as they are."""

    def stored(self, form: Form, _attn: AttentionSpec | None) -> Form:
        """The last two sides the other way round."""
        if not form.matrix:
            return form
        shape, axes = form.shape, form.axes
        return replace(
            form,
            shape=(*shape[:-2], shape[-1], shape[-2]),
            axes=(*axes[:-2], axes[-1], axes[-2]),
            out=-3 - form.out,
        )

    def taken(self, data: Any, form: Form, _attn: AttentionSpec | None) -> Any:
        """The same numbers with the last two axes exchanged."""
        return data.swapaxes(-1, -2) if form.matrix else data


@dataclass(frozen=True, slots=True)
class Later:
    """The rows of a table from one on; those before it are not used."""

    first: int

    def stored(self, form: Form, _attn: AttentionSpec | None) -> Form:
        """More rows."""
        shape = (form.shape[0] + self.first, *form.shape[1:])
        return replace(form, shape=shape, axes=(f"{self.first} + {form.axes[0]}", *form.axes[1:]))

    def taken(self, data: Any, _form: Form, _attn: AttentionSpec | None) -> Any:
        """The rows behind the first ones."""
        return data[self.first :]


@dataclass(frozen=True, slots=True)
class Flat:
    """The same numbers without sides of 1."""

    def stored(self, form: Form, _attn: AttentionSpec | None) -> Form:
        """The sides above 1."""
        kept = [place for place, axis in enumerate(form.axes) if axis != "1"]
        shape = tuple(form.shape[place] for place in kept)
        return replace(form, shape=shape, axes=tuple(form.axes[place] for place in kept))

    def taken(self, data: Any, form: Form, _attn: AttentionSpec | None) -> Any:
        """With the sides of 1."""
        return data.reshape(form.shape)


@dataclass(frozen=True, slots=True)
class Row:
    """The one row of a matrix."""

    def stored(self, form: Form, _attn: AttentionSpec | None) -> Form:
        """With a side of 1 before it."""
        return replace(form, shape=(1, *form.shape), axes=("1", *form.axes))

    def taken(self, data: Any, _form: Form, _attn: AttentionSpec | None) -> Any:
        """The row itself."""
        return data[0]


@dataclass(frozen=True, slots=True)
class Piece:
    """A module of a file, the rules from a parameter to it, and how it calls weight and bias."""

    module: str
    rules: tuple[Rule, ...] = ()
    weight: str = ".weight"
    bias: str = ".bias"


def piece(module: str, *rules: Rule, weight: str = ".weight", bias: str = ".bias") -> Piece:
    """A parameter that some rules take out of a module's."""
    return Piece(module, rules, weight, bias)


@dataclass(frozen=True, slots=True)
class Source:
    """Where one parameter is: the name of a file's tensor, and the rules that lead to it.

    A name with `{expert}` or `{head}` is one for each: the parameter is stacked of them.
    """

    file: str
    rules: tuple[Rule, ...] = ()

    @property
    def stacked(self) -> bool:
        """Whether the parameter is stacked of several tensors."""
        return NUMBER.search(self.file) is not None

    def files(self, count: int) -> Iterator[str]:
        """The names of the tensors: one, or so many as there are experts or heads."""
        if not self.stacked:
            return iter((self.file,))
        return (NUMBER.sub(str(number), self.file) for number in range(count))

    def forms(self, form: Form, attn: AttentionSpec | None) -> list[Form]:
        """The forms from the parameter, or that of one expert, to the file's tensor."""
        if self.stacked:
            form = replace(form, shape=form.shape[1:], axes=form.axes[1:])
        found = [form]
        for rule in self.rules:
            found.append(rule.stored(found[-1], attn))
        return found

    def stored(self, form: Form, attn: AttentionSpec | None) -> Form:
        """The form of the file's tensor."""
        return self.forms(form, attn)[-1]

    def taken(self, data: Any, form: Form, attn: AttentionSpec | None) -> Any:
        """The parameter, or that of one expert, in the file's data."""
        forms = self.forms(form, attn)
        for rule, here in zip(reversed(self.rules), reversed(forms[:-1]), strict=True):
            data = rule.taken(data, here, attn)
        return data


def _along(data: Any, axis: int, part: slice) -> Any:
    """A part of the data along one axis, counted from the end."""
    return data[(..., part, *(slice(None),) * (-1 - axis))]
