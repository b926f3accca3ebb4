"""The modules of a family of checkpoints: what its files and its torch modules are called.

One table a family, read twice: for the tensors of a folder, and for the steps of a dump.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from byhand.names.pieces import Piece, Source, Turned

# A module's name in the files, a piece of one, or several of which a folder has one.
Place = str | Piece | tuple[str | Piece, ...]
_BLOCK_NAME = re.compile(r"(encoder\.)?block\.(\d+)\.(.+)")
_NOTHING_LEFT = re.compile(r"(?!)")


@dataclass(frozen=True)
class Names:
    """The names of a family's tensors in its files.

    A module keeps a weight and perhaps a bias; of a norm, the weight is its gain.
    """

    prefix: str  # of all tensors but the head; files without a head omit it
    embedding: str
    heads: tuple[str, ...]  # possible names of the head
    outside: Mapping[str, Place]  # byhand's name of a module → the file's
    layer: str  # before the number of a layer
    inside: Mapping[str, Place]  # likewise, within a layer
    leftovers: re.Pattern[str] = _NOTHING_LEFT  # buffers of older versions, which are ignored
    beside: Mapping[str, Place] = field(default_factory=dict)  # as outside, without the prefix
    prefixes: tuple[str, ...] = ()  # others than the usual one
    encoder_layer: str = ""  # before the number of a layer of the encoder
    encoder_inside: Mapping[str, Place] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)  # steps that `derived` would not find
    copies: tuple[str, ...] = ()  # tensors of some files that hold the embedding again
    heads_first: bool = False  # norms of q and k give head, pos, d_head; else pos, head, d_head
    further: bool = False  # layers behind the last guess further tokens, and are ignored

    def sources(self, name: str, prefix: str, layout: str) -> tuple[Source, ...]:
        """Where a parameter may be, the usual place first; nowhere: it is in no file."""
        if name == "head":
            rules = (Turned(),) if layout == "in_out" else ()
            return tuple(Source(head, rules) for head in self.heads)
        if name == "head_bias" and name not in self._beside:
            return tuple(Source(head.removesuffix("weight") + "bias") for head in self.heads)
        if name == "embed.token":
            return (Source(prefix + self.embedding),)
        if name in self._beside:
            return self._beside[name]
        if (block := _BLOCK_NAME.fullmatch(name)) is None:
            return _behind(prefix, self._outside.get(name, ()))
        inside, layer = self._inside, self.layer
        if block[1]:
            inside, layer = self._encoder_inside, self.encoder_layer
        return _behind(f"{prefix}{layer}{block[2]}.", inside.get(block[3], ()))

    def is_left(self, tensor: str, layers: int) -> bool:
        """Whether a tensor of a file is none of the model's, and may be there all the same."""
        if self.leftovers.fullmatch(tensor):
            return True
        layer = re.match(rf"(?:{re.escape(self.prefix)})?{re.escape(self.layer)}(\d+)\.", tensor)
        return self.further and layer is not None and int(layer[1]) >= layers

    @cached_property
    def _outside(self) -> dict[str, tuple[Source, ...]]:
        return _weights(self.outside)

    @cached_property
    def _beside(self) -> dict[str, tuple[Source, ...]]:
        return _weights(self.beside)

    @cached_property
    def _inside(self) -> dict[str, tuple[Source, ...]]:
        return _weights(self.inside)

    @cached_property
    def _encoder_inside(self) -> dict[str, tuple[Source, ...]]:
        return _weights(self.encoder_inside)


def pieces(place: Place) -> tuple[Piece, ...]:
    """The pieces that a table's entry stands for, of which a folder has one."""
    every = place if isinstance(place, tuple) else (place,)
    return tuple(Piece(each) if isinstance(each, str) else each for each in every)


def _behind(prefix: str, sources: tuple[Source, ...]) -> tuple[Source, ...]:
    return tuple(Source(prefix + source.file, source.rules) for source in sources)


def _weights(modules: Mapping[str, Place]) -> dict[str, tuple[Source, ...]]:
    """The weights of modules: byhand's name → where the files may have it."""
    found: dict[str, tuple[Source, ...]] = {}
    for ours, place in modules.items():
        norm = ours.endswith(("norm", ".after"))
        weight, bias = (f"{ours}.gain", f"{ours}.bias") if norm else (ours, f"{ours}_bias")
        every = pieces(place)
        found[weight] = tuple(Source(each.module + each.weight, each.rules) for each in every)
        found[bias] = tuple(Source(each.module + each.bias, each.rules) for each in every)
    return found
