"""The tensors of a checkpoint under byhand's names, as views: nothing is folded, centred or copied.

Headers are checked at once: missing or unread tensors, wrong shapes, wrong formats.  The data of a
tensor are checked on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from math import prod

import numpy as np

from byhand.errors import InputError, ShapeError, nearest
from byhand.files.mapped import BLOCK, Stored, shown, sides
from byhand.language import _
from byhand.models.huggingface.families import Read
from byhand.models.huggingface.quantised import Quantised
from byhand.names.pieces import Form, Source
from byhand.parameters import Parameter, parameters
from byhand.spec import AttentionSpec
from byhand.weights import Data, Tensor, Weights

MOST_TOLD = 7  # missing tensors that are looked for
Entry = Stored | Quantised


def read_weights(read: Read, stored: Mapping[str, Entry], where: str) -> Weights:
    """All the tensors the spec needs; InputError for one that is missing, extra or misshapen."""
    return _Reader(read, stored, where).weights()


class _Reader:
    def __init__(self, read: Read, stored: Mapping[str, Entry], where: str) -> None:
        self.read = read
        self.stored = stored
        self.where = where
        names = read.names
        every = (names.prefix, *names.prefixes)
        there = (each for each in every if any(name.startswith(each) for name in stored))
        self.prefix = next(there, "")
        self.head = next((head for head in names.heads if head in stored), names.heads[0])
        self.wanted = {p.name: p for p in parameters(read.spec)}
        found = {name: self.source(name) for name in self.wanted}
        self.sources = {name: source for name, source in found.items() if source is not None}

    def source(self, name: str) -> Source | None:
        """Where the folder has a parameter; its usual place if it has it nowhere; None: no file."""
        every = self.read.names.sources(name, self.prefix, self.read.spec.layout)
        there = (each for each in every if next(self.files(name, each)) in self.stored)
        return next(there, every[0] if every else None)

    def files(self, name: str, source: Source) -> Iterator[str]:
        """The names of the tensors that a parameter is made of: one, or one for each expert."""
        return source.files(self.wanted[name].shape[0])

    def weights(self) -> Weights:
        self.complete()
        self.nothing_else()
        for name, source in self.sources.items():
            for file in self.files(name, source):
                self.fits(self.wanted[name], source, self.stored[file])
        tensors = {name: self.tensor(name, source) for name, source in self.sources.items()}
        tensors |= self.buffers()
        return Weights({name: tensors[name] for name in self.wanted})

    # ------------------------------------------------------------------ what the headers tell

    def complete(self) -> None:
        absent = (
            (file, name)
            for name, source in self.sources.items()
            for file in self.files(name, source)
            if file not in self.stored
        )
        shapes = dict(islice(absent, MOST_TOLD + 1))
        if not shapes:
            return
        missing = list(shapes)
        hint = nearest(missing[0], self.stored) if len(missing) == 1 else None
        if len(missing) > 1:
            hint = _("missing too: {names}").format(names=_some(missing[1:]))
        if missing == [self.head]:
            hint = _("if the head is tied to the embedding, config.json says tie_word_embeddings")
        form = self.in_file(self.wanted[shapes[missing[0]]], self.sources[shapes[missing[0]]])
        raise InputError(
            _("the tensor {name} is missing").format(name=missing[0]),
            where=self.where,
            expected=f"{missing[0]} {sides(form.shape)}",
            found=_some(list(self.stored)) or _("nothing"),
            hint=hint,
        )

    def nothing_else(self) -> None:
        known = {file for name, source in self.sources.items() for file in self.files(name, source)}
        known.update((self.head, *self.copies()))  # the embedding may be stored again
        names, layers = self.read.names, len(self.read.spec.blocks)
        extra = [n for n in self.stored if n not in known and not names.is_left(n, layers)]
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

    def fits(self, parameter: Parameter, source: Source, stored: Entry) -> None:
        form = self.in_file(parameter, source)
        if stored.shape != form.shape:
            raise ShapeError(
                _("the tensor {name} has another shape than config.json says").format(
                    name=stored.name
                ),
                where=stored.where,
                expected=f"{sides(form.shape)} ({' × '.join(form.axes)})",
                found=sides(stored.shape),
                hint=self.transposed(stored, form.axes[0])
                if stored.shape == form.shape[::-1]
                else None,
            )
        if not stored.floats:
            stored.array()  # raises an error with the format found

    def in_file(self, parameter: Parameter, source: Source) -> Form:
        """The shape and the axes that a tensor has in the file."""
        return source.stored(self.form(parameter), self.attention(parameter.name))

    def form(self, parameter: Parameter) -> Form:
        return Form.of(parameter, self.read.spec.layout)

    def attention(self, name: str) -> AttentionSpec | None:
        """The attention whose parameter has this name."""
        match name.split("."):
            case ["block", layer, "attn", *_]:
                return self.read.spec.blocks[int(layer)].attention
            case ["block", layer, "cross", *_]:
                return self.read.spec.blocks[int(layer)].cross
            case ["encoder", "block", layer, "attn", *_] if self.read.spec.encoder:
                return self.read.spec.encoder.blocks[int(layer)].attention
        return None

    def transposed(self, found: Entry, side: str) -> str:
        """The note on a tensor that fits transposed: which others do, and which are square."""
        others, square = [], []
        for name, source in self.sources.items():
            file = next(self.files(name, source))
            expected = self.in_file(self.wanted[name], source).shape
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

    # ------------------------------------------------------------------ what the data tells

    def tensor(self, name: str, source: Source) -> Tensor:
        parameter = self.wanted[name]
        stored = [self.stored[file] for file in self.files(name, source)]
        dtype = np.result_type(*{each.holds for each in stored})
        return Tensor.at(
            name,
            self.opening(parameter, source, stored),
            parameter.shape,
            dtype,
            kept=not (source.stacked or any(each.packed for each in stored)),  # else a copy
            stored=" + ".join(dict.fromkeys(each.dtype for each in stored)),
            bits=_bits(stored),
            misread=self.misread(parameter, source, stored),
            pages=tuple(each for each in stored if isinstance(each, Stored)),
        )

    def misread(
        self, parameter: Parameter, source: Source, stored: list[Entry]
    ) -> Callable[[], Iterator[tuple[str, Data]]] | None:
        """What readers may make of one packed tensor by mistake."""
        packed = stored[0]
        if source.stacked or not isinstance(packed, Quantised):
            return None
        form, attn = self.form(parameter), self.attention(parameter.name)

        def readings() -> Iterator[tuple[str, Data]]:
            for name, make in packed.mistakes.items():
                yield name, source.taken(make(), form, attn)

        return readings

    def copies(self) -> list[str]:
        """The tensors that hold the embedding again, where the file has them: a tied head's too."""
        copies = [self.prefix + file for file in self.read.names.copies]
        return [*copies, self.head] if self.read.spec.tied else copies

    def opening(
        self, parameter: Parameter, source: Source, stored: list[Entry]
    ) -> Callable[[], Data]:
        """What opens a parameter: a view of one tensor, or those of all experts, stacked."""
        again = [self.stored[file] for file in self.copies() if file in self.stored]
        if parameter.name == "embed.token" and again:
            for each in again:
                self.fits(parameter, source, each)
            return lambda: _tied(stored[0], again)
        form, attn = self.form(parameter), self.attention(parameter.name)
        if not source.stacked:
            return lambda: source.taken(stored[0].finite(), form, attn)
        return lambda: np.stack([source.taken(each.finite(), form, attn) for each in stored])

    def buffers(self) -> dict[str, Tensor]:
        """What no file has, made of the config: one array for all layers."""
        made: dict[str, Tensor] = {}
        first: dict[str, str] = {}
        for name in self.wanted:
            if name not in self.sources:
                last = name.rpartition(".")[2]
                made[name] = Tensor(name, self.read.buffers[last], first.get(last))
                first.setdefault(last, name)
        return made


def _bits(stored: list[Entry]) -> Fraction:
    """What an entry takes in the files."""
    sizes = [prod(each.shape) for each in stored]
    total = sum(each.bits * size for each, size in zip(stored, sizes, strict=True))
    return Fraction(total, max(1, sum(sizes)))


def _tied(embedding: Entry, copies: list[Entry]) -> Data:
    """The embedding, after checking that a tied head and other copies hold the same numbers."""
    ours = embedding.finite()
    for copy in copies:
        _check_the_same(ours, copy)
    return ours


def _check_the_same(ours: Data, copy: Entry) -> None:
    theirs = copy.array()
    rows = max(1, BLOCK // max(1, ours.shape[1]))
    for start in range(0, len(ours), rows):
        differ = ours[start : start + rows] != theirs[start : start + rows]
        if differ.any():
            row, column = (int(x) for x in np.argwhere(differ)[0])
            at = (start + row, column)
            raise InputError(
                _("config.json ties the head to the embedding, but the file holds another head"),
                where=f"{copy.where}[{at[0]},{at[1]}]",
                expected=str(float(ours[at])),
                found=str(float(theirs[at])),
                hint=_("a model with a head of its own says tie_word_embeddings: false"),
            )


def _some(names: list[str]) -> str:
    return ", ".join(map(shown, names[:6])) + (", …" if len(names) > 6 else "")
