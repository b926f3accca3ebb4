"""The tensors of a checkpoint under byhand's names, as views: nothing is folded, centred or copied.

Headers are checked at once: missing or unread tensors, wrong shapes, wrong formats.  The data of a
tensor are checked on first use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from byhand.errors import InputError, ShapeError, nearest
from byhand.files.mapped import BLOCK, FLOATS, Stored, shown, sides
from byhand.language import _
from byhand.models.huggingface.families import Read
from byhand.parameters import Parameter, parameters
from byhand.weights import Data, Tensor, Weights

_BLOCK_NAME = re.compile(r"block\.(\d+)\.(.+)")


def read_weights(read: Read, stored: Mapping[str, Stored], where: str) -> Weights:
    """All the tensors the spec needs; InputError for one that is missing, extra or misshapen."""
    return _Reader(read, stored, where).weights()


class _Reader:
    def __init__(self, read: Read, stored: Mapping[str, Stored], where: str) -> None:
        self.read = read
        self.stored = stored
        self.where = where
        names = read.names
        prefixed = any(name.startswith(names.prefix) for name in stored)
        self.prefix = names.prefix if prefixed else ""
        self.head = next((head for head in names.heads if head in stored), names.heads[0])
        self.wanted = {p.name: p for p in parameters(read.spec)}
        self.files = {n: self.file_name(n) for n, p in self.wanted.items() if p.kind != "buffer"}

    def file_name(self, name: str) -> str:
        names = self.read.names
        if name == "head":
            return self.head
        if name == "embed.token":
            return self.prefix + names.embedding
        if (block := _BLOCK_NAME.fullmatch(name)) is None:
            return self.prefix + names.weights_outside[name]
        return f"{self.prefix}{names.layer}{block[1]}.{names.weights_inside[block[2]]}"

    def weights(self) -> Weights:
        self.complete()
        self.nothing_else()
        for name, file in self.files.items():
            self.fits(self.wanted[name], self.stored[file])
        tensors = {name: self.tensor(name) for name in self.files}
        tensors |= self.frequencies()
        return Weights({name: tensors[name] for name in self.wanted})

    # ------------------------------------------------------------------ what the headers tell

    def complete(self) -> None:
        missing = [file for file in self.files.values() if file not in self.stored]
        if not missing:
            return
        hint = nearest(missing[0], self.stored) if len(missing) == 1 else None
        if len(missing) > 1:
            hint = _("missing too: {names}").format(names=_some(missing[1:]))
        if missing == [self.head]:
            hint = _("if the head is tied to the embedding, config.json says tie_word_embeddings")
        raise InputError(
            _("the tensor {name} is missing").format(name=missing[0]),
            where=self.where,
            expected=f"{missing[0]} {self.shape_of(missing[0])}",
            found=_some(list(self.stored)) or _("nothing"),
            hint=hint,
        )

    def shape_of(self, file: str) -> str:
        name = next(name for name, known in self.files.items() if known == file)
        return sides(self.wanted[name].shape)

    def nothing_else(self) -> None:
        known = {*self.files.values(), self.head}  # a tied head may also be stored
        leftovers = self.read.names.leftovers
        extra = [n for n in self.stored if n not in known and not leftovers.fullmatch(n)]
        if not extra:
            return
        raise InputError(
            _("the tensor {name} is none of a {family} model with this config.json").format(
                name=shown(extra[0]), family=self.read.family
            ),
            where=self.where,
            expected=_("only tensors that the model reads"),
            found=_some(extra),
            hint=nearest(extra[0][:200], known),
        )

    def fits(self, parameter: Parameter, stored: Stored) -> None:
        expected, axes = self.in_file(parameter)
        if stored.shape != expected:
            raise ShapeError(
                _("the tensor {name} has another shape than config.json says").format(
                    name=stored.name
                ),
                where=stored.where,
                expected=f"{sides(expected)} ({' × '.join(axes)})",
                found=sides(stored.shape),
                hint=self.transposed(stored, axes[0]) if stored.shape == expected[::-1] else None,
            )
        if not stored.floats:
            stored.array()  # raises an error with the format found

    def in_file(self, parameter: Parameter) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """The shape and the axes that a tensor has in the file."""
        if self.turned(parameter.name):
            return parameter.shape[::-1], parameter.axes[::-1]
        return parameter.shape, parameter.axes

    def transposed(self, found: Stored, side: str) -> str:
        """The note on a tensor that fits transposed: which others do, and which are square."""
        others, square = [], []
        for name, file in self.files.items():
            expected, _axes = self.in_file(self.wanted[name])
            if self.wanted[name].kind != "matrix" or file == found.name:
                continue
            if expected == expected[::-1]:
                square.append(file)
            elif self.stored[file].shape == expected[::-1]:
                others.append(file)
        told = [_("it fits when transposed: rows are {side} here").format(side=side)]
        if others:
            told.append(_("so do {names}").format(names=_some(others)))
        if square:
            told.append(
                _("no shape tells whether square ones are transposed too: {names}").format(
                    names=_some(square)
                )
            )
        return "; ".join(told)

    def turned(self, name: str) -> bool:
        """Whether the file holds the transpose: the head of a model with matrices as x·W."""
        return name == "head" and self.read.spec.layout == "in_out"

    # ------------------------------------------------------------------ what the data tells

    def tensor(self, name: str) -> Tensor:
        parameter, stored = self.wanted[name], self.stored[self.files[name]]
        dtype = FLOATS[stored.dtype]
        if self.turned(name):
            return Tensor.at(name, lambda: stored.finite().T, parameter.shape, dtype)
        head = self.stored.get(self.head)
        if name == "embed.token" and self.read.spec.tied and head is not None:
            self.fits(parameter, head)
            return Tensor.at(name, lambda: _tied(stored, head), parameter.shape, dtype)
        return Tensor.at(name, stored.finite, parameter.shape, dtype)

    def frequencies(self) -> dict[str, Tensor]:
        """RoPE's frequencies, if they are scaled: one array for all layers."""
        made: dict[str, Tensor] = {}
        for name, parameter in self.wanted.items():
            if parameter.kind == "buffer":
                assert self.read.rope is not None
                assert self.read.rope.frequencies is not None
                first = next(iter(made), None)
                made[name] = Tensor(name, self.read.rope.frequencies, first)
        return made


def _tied(embedding: Stored, head: Stored) -> Data:
    """The embedding, after checking that the tied head holds the same numbers."""
    ours, theirs = embedding.finite(), head.array()
    rows = max(1, BLOCK // max(1, ours.shape[1]))
    for start in range(0, len(ours), rows):
        differ = ours[start : start + rows] != theirs[start : start + rows]
        if differ.any():
            row, column = (int(x) for x in np.argwhere(differ)[0])
            at = (start + row, column)
            raise InputError(
                _("config.json ties the head to the embedding, but the file holds another head"),
                where=f"{head.where}[{at[0]},{at[1]}]",
                expected=str(float(ours[at])),
                found=str(float(theirs[at])),
                hint=_("a model with a head of its own says tie_word_embeddings: false"),
            )
    return ours


def _some(names: list[str]) -> str:
    return ", ".join(map(shown, names[:6])) + (", …" if len(names) > 6 else "")
