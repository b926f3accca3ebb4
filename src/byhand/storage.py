"""The space that weights take in their files: formats, bits an entry and bytes, by component.

A tensor that is another one again takes no space of its own.  Numbers that are written out, as in a
model file, have no format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from byhand.weights import Tensor, Weights


@dataclass(frozen=True, slots=True)
class Space:
    """What some weights take in their files."""

    formats: tuple[str, ...]  # such as BF16 or Q4_K, the commonest first
    entries: int
    size: Fraction  # in bits, scales and zero points included

    @property
    def bits(self) -> Fraction:
        """The bits of a weight, on average."""
        return self.size / max(1, self.entries)

    @property
    def bytes(self) -> int:
        """The bytes of all of them, rounded up."""
        return ceil(self.size / 8)


@dataclass(frozen=True, slots=True)
class Storage:
    """The space of each component, and of all of them together."""

    components: Mapping[str, Space]
    whole: Space


def stored_in_files(components: Mapping[str, Iterable[str]], weights: Weights) -> Storage | None:
    """The space of components, given by the names of their tensors; None without files."""
    tensors = {
        address: [weights[name] for name in names if weights[name].same_as is None]
        for address, names in components.items()
    }
    every = [tensor for some in tensors.values() for tensor in some]
    if not every or any(tensor.stored is None or tensor.bits is None for tensor in every):
        return None
    return Storage({address: _space(some) for address, some in tensors.items()}, _space(every))


def _space(tensors: list[Tensor]) -> Space:
    sizes: dict[str, int] = {}
    total = Fraction(0)
    for tensor in tensors:
        assert tensor.stored is not None
        assert tensor.bits is not None
        sizes[tensor.stored] = sizes.get(tensor.stored, 0) + tensor.size
        total += tensor.size * tensor.bits
    formats = sorted(sizes, key=lambda name: -sizes[name])
    return Space(tuple(formats), sum(sizes.values()), total)
