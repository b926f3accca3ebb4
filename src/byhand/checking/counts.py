"""Claims about counts, checked against the inventory: a wrong count names what was counted instead.

    >>> from byhand.models import open_model
    >>> suspects = ways_to_count(open_model("minigpt-init"), "count.total", 57_000, 1_000)
    >>> suspects[0].sentence
    '57,344 = one layer of two, untied head, matrices only'

A wrong count is often a right count of something else.  Departures from the inventory (layers left
out, the head tied or not, biases or norms left out, …) are combined, and the simplest combination
that gives a number in the claimed range is named.  Simplest means fewest departures, where a rare
one counts as two and a number that would not round to the claimed one as one more. Where several
combinations are equally simple, all are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import inf, isfinite, prod

import numpy as np
import numpy.typing as npt

from byhand.checking.claims import Claim
from byhand.checking.entries import left_blank, unjudged
from byhand.checking.verdicts import Marked, Suspect, Verdict, Worst
from byhand.counting import Inventory, count
from byhand.errors import nearest
from byhand.language import _
from byhand.model import Model
from byhand.parameters import Parameter, parameters
from byhand.spec import ModelSpec

KIND = "counted-otherwise"
MOST_DEPARTURES = 4  # more departures could explain any number
MOST_COST = 5
MOST_SHOWN = 3
_PADDINGS = (8, 64, 128)  # vocabularies are often padded to multiples of these
_WHOLE = ("count.total", "count.unique", "count.without_biases")

Whole = npt.NDArray[np.int64]


def known_counts(model: Model) -> dict[str, int]:
    """Every count that may be claimed under count.…: the inventory's, and the model's sizes."""
    return sizes_and_counts(model.spec, _inventory(model))


def sizes_and_counts(spec: ModelSpec, inventory: Inventory) -> dict[str, int]:
    """The sizes of an architecture and the counts of its inventory, by address."""
    return {**_sizes(spec), **inventory.numbers}


def mark_counts(claims: Iterable[Claim], model: Model) -> list[Marked]:
    """The verdict on each claim about a count: right or wrong, since no line precedes a count."""
    known = known_counts(model)
    return [_marked(claim, model, known) for claim in claims]


def _marked(claim: Claim, model: Model, known: dict[str, int]) -> Marked:
    if claim.address not in known:
        reason = _("there is no count {address}").format(address=repr(claim.address))
        hint = nearest(claim.address, known)
        return unjudged(claim, f"{reason}; {hint}" if hint else reason)
    if np.size(claim.values) != 1:
        return unjudged(claim, _("a count is one number"))
    if claim.claimed is not None and not np.all(claim.claimed):
        return left_blank(claim)
    said = float(np.ravel(claim.values)[0])
    slack = float(np.max(claim.slack))
    if slack <= 0.5:
        slack = 0.0  # a whole number is written in full: there is nothing to round
    expected = known[claim.address]
    share = _share(said - expected, slack)
    right = share <= 1
    suspects: tuple[Suspect, ...] = ()
    if not right and isfinite(said):
        suspects = ways_to_count(model, claim.address, said, slack)
    return Marked(
        claim,
        Verdict.RIGHT if right else Verdict.ERROR,
        share=share,
        worst=Worst((), said, float(expected), slack, abs(said - expected)),
        suspects=suspects,
        shares=np.full(np.shape(claim.values), share, dtype=np.float32),
        outside=0 if right else 1,
        entries=1,
    )


def _share(difference: float, slack: float) -> float:
    if difference == 0:
        return 0.0
    return abs(difference) / slack if slack and isfinite(difference) else inf


def _inventory(model: Model) -> Inventory:
    return count(model.spec, model.weights or None)  # of a config, none are there


def _sizes(spec: ModelSpec) -> dict[str, int]:
    """The sizes that a configuration states; a block's size only where all blocks agree."""
    sizes = {"d_model": {spec.d_model}, "layers": {len(spec.blocks)}, "vocabulary": {spec.vocab}}
    if spec.context is not None:
        sizes["context"] = {spec.context}
    attentions = [block.attention for block in spec.blocks if block.attention]
    sizes["heads"] = {each.heads for each in attentions}
    sizes["kv_heads"] = {each.kv_heads for each in attentions}
    sizes["d_head"] = {each.d_head for each in attentions}
    sizes["d_ff"] = {block.mlp.d_ff for block in spec.blocks if block.mlp}
    sizes["experts"] = {block.mlp.experts or 0 for block in spec.blocks if block.mlp} - {0}
    return {f"count.{name}": min(found) for name, found in sizes.items() if len(found) == 1}


# ------------------------------------------------------------------------ suspects


@dataclass(frozen=True)
class _Cells:
    """All tensors that somebody may count: the model's own, and common ones that it lacks."""

    spec: ModelSpec
    tensors: tuple[Parameter, ...]
    layers: Whole  # of each tensor; -1 outside the blocks
    sizes: Whole
    counted: Whole  # how often the inventory counts it at this address: 0 or 1

    @classmethod
    def of(cls, model: Model, address: str) -> _Cells:
        spec = model.spec
        own = [tensor for tensor in parameters(spec) if tensor.kind != "buffer"]
        counted = _counted(_inventory(model), address, own)
        others = list(_not_there(spec)) if address in _WHOLE else []
        tensors = (*own, *others)
        layers = [_layer(tensor) for tensor in tensors]
        return cls(
            spec,
            tensors,
            np.array(layers, dtype=np.int64),
            np.array([tensor.size for tensor in tensors], dtype=np.int64),
            np.array([*counted, *(0 for _other in others)], dtype=np.int64),
        )

    def where(self, *, part: str | None = None, kind: str | None = None, end: str = "") -> Whole:
        """1 for each tensor of this part and kind whose name has this ending, 0 for the others."""
        return np.array(
            [
                part in (None, tensor.part)
                and kind in (None, tensor.kind)
                and tensor.name.endswith(end)
                for tensor in self.tensors
            ],
            dtype=np.int64,
        )


def _layer(tensor: Parameter) -> int:
    start, _dot, rest = tensor.name.partition(".")
    return int(rest.partition(".")[0]) if start == "block" else -1


def _counted(inventory: Inventory, address: str, own: Sequence[Parameter]) -> list[bool]:
    """Which tensors the inventory counts at an address."""
    repeated = {name for name, _owner in inventory.shared}
    members = {line.address: line.names for line in inventory.lines}

    def counts(tensor: Parameter) -> bool:
        if address in members:
            return tensor.name in members[address]
        if address == "count.without_biases":
            return tensor.kind != "bias" or tensor.part == "norm"
        if address == "count.norms":
            return tensor.part == "norm"
        if address == "count.unique":
            return tensor.name not in repeated
        return address == "count.total" or address == f"count.block.{_layer(tensor)}"

    return [counts(tensor) for tensor in own]


def _not_there(spec: ModelSpec) -> Iterator[Parameter]:
    """Tensors that similar models often have and this one does not."""
    if spec.tied:
        yield Parameter("head", (spec.d_model, spec.vocab), ("d", "vocab"), "head", "matrix")
    if spec.position != "learned" and spec.context is not None:
        shape = (spec.context, spec.d_model)
        yield Parameter("embed.position", shape, ("context", "d"), "position", "matrix")


@dataclass(frozen=True)
class _Departure:
    """One other way of counting: extra copies of each tensor, then a factor for each."""

    group: str  # at most one departure of a group is taken
    phrase: str
    more: Whole
    times: Whole
    sizes: Whole | None = None  # set where it changes the sizes of tensors
    cost: int = 1  # 2 for rare departures

    def same(self, other: _Departure) -> bool:
        pairs = ((self.more, other.more), (self.times, other.times), (self.sizes, other.sizes))
        return all(
            (a is None and b is None)
            or (a is not None and b is not None and bool(np.array_equal(a, b)))
            for a, b in pairs
        )


Way = tuple[int, tuple[_Departure, ...]]  # a number, and the departures that give it


def ways_to_count(model: Model, address: str, said: float, slack: float) -> tuple[Suspect, ...]:
    """The simplest ways to count that give a number within `slack` of `said`.

    Where more ways are equally simple than are shown, the last one says so.
    """
    if address not in _inventory(model).numbers:
        return tuple(_other_sizes(model, address, said))
    cells = _Cells.of(model, address)
    departures = _that_matter(cells)
    further: list[Way] = []  # found at a cost one lower, but they round to another number
    for cost in range(1, MOST_COST + 1):
        near, far = [], []
        for chosen in _combined(departures, cost):
            total = _total(cells, chosen)
            if abs(total - said) <= slack / 2:
                near.append((total, chosen))
            elif abs(total - said) <= slack:
                far.append((total, chosen))
        if near or further:
            return _as_suspects(model.name, [*near, *further], said, slack)
        further = far
    return _as_suspects(model.name, further, said, slack)


def _other_sizes(model: Model, address: str, said: float) -> Iterator[Suspect]:
    """The other sizes of the model that are this number; of the vocabulary also its last id."""
    sizes = _sizes(model.spec)
    change = _("{command} lists what there is to count").format(
        command=f"byhand count {model.name}"
    )
    for name, size in sizes.items():
        if name != address and size == said:
            sentence = _("{count} is {other}").format(count=f"{size:,}", other=name)
            yield Suspect(KIND, sentence, change, 0.0)
    if address == "count.vocabulary" and said == sizes[address] - 1:
        sentence = _("{count} is the last id: ids are counted from 0").format(count=f"{said:,.0f}")
        yield Suspect(KIND, sentence, change, 0.0)


def _combined(departures: Sequence[_Departure], cost: int) -> Iterator[tuple[_Departure, ...]]:
    """The combinations of exactly this cost, with at most one departure from each group."""
    groups = {
        (name, each): [d for d in departures if d.group == name and d.cost == each]
        for name in dict.fromkeys(departure.group for departure in departures)
        for each in (1, 2)
    }
    for size in range(1, MOST_DEPARTURES + 1):
        for some in combinations(groups, size):
            names = [name for name, _cost in some]
            if sum(each for _name, each in some) == cost and len(set(names)) == size:
                yield from product(*(groups[key] for key in some))


def _total(cells: _Cells, chosen: Sequence[_Departure]) -> int:
    counted, sizes = cells.counted, cells.sizes
    for departure in chosen:
        counted = counted + departure.more
        sizes = sizes if departure.sizes is None else departure.sizes
    for departure in chosen:
        counted = counted * departure.times
    return int(sizes @ counted)


def _as_suspects(
    model: str, found: Sequence[Way], said: float, slack: float
) -> tuple[Suspect, ...]:
    suspects = []
    change = _("{command} lists what there is to count").format(command=f"byhand count {model}")
    others = len(found) - MOST_SHOWN
    for place, (total, chosen) in enumerate(found[:MOST_SHOWN]):
        what = ", ".join(departure.phrase for departure in chosen)
        sentence = f"{total:,} = {what}"
        if place == MOST_SHOWN - 1 and others > 0:
            sentence += " " + _("({count} other ways fit as well)").format(count=others)
        suspects.append(Suspect(KIND, sentence, change, _share(said - total, slack)))
    return tuple(suspects)


def _that_matter(cells: _Cells) -> list[_Departure]:
    """The departures that change this count, without duplicates, the commonest first."""
    plain = _total(cells, ())
    kept: list[_Departure] = []
    for departure in _departures(cells):
        if _total(cells, [departure]) == plain and departure.sizes is None:
            continue
        if not any(departure.same(other) for other in kept):
            kept.append(departure)
    return kept


def _departures(cells: _Cells) -> Iterator[_Departure]:
    spec, where = cells.spec, cells.where
    none, once = np.zeros_like(cells.counted), np.ones_like(cells.counted)

    def without(group: str, phrase: str, left_out: Whole, cost: int = 1) -> _Departure:
        return _Departure(group, phrase, none, once - left_out, cost=cost)

    def with_more(group: str, phrase: str, more: Whole, cost: int = 1) -> _Departure:
        return _Departure(group, phrase, more, once, cost=cost)

    def resized(group: str, phrase: str, sizes: Whole) -> _Departure:
        return _Departure(group, phrase, none, once, sizes, cost=2)

    layers = len(spec.blocks)
    for kept in range(1, layers):
        yield without("layers", _layers_of(kept, layers), _ones(cells.layers >= kept))
    if layers:
        yield without("layers", _("blocks left out"), _ones(cells.layers >= 0), 2)
        last = cells.counted * (cells.layers == layers - 1)
        yield with_more("layers", _("one layer too many"), last, 2)
    head = where(part="head", kind="matrix")
    if spec.tied:
        yield with_more("head", _("untied head"), head)
    else:
        yield without("head", _("tied head"), head)
        yield _Departure("head", _("head counted twice"), none, once + head, cost=2)
    norms = where(part="norm")
    biases = where(kind="bias") * (once - norms)
    yield without("small", _("biases left out"), biases)
    yield without("small", _("norms left out"), norms)
    yield without("small", _("matrices only"), norms + biases)
    yield without("small", _("biases of the norms left out"), norms * where(kind="bias"), 2)
    if spec.position == "learned":
        yield without("position", _("positions left out"), where(part="position"))
    else:
        yield with_more("position", _("a table of positions"), where(part="position"), 2)
    yield without("embedding", _("embedding left out"), where(part="embedding"))
    mlp, attention = where(part="mlp"), where(part="attention")
    later = _ones(cells.layers > 0)
    yield without("mlp", _("MLP counted once"), mlp * later, 2)
    yield without("mlp", _("MLP left out"), mlp, 2)
    yield without("mlp", _("gate left out"), where(part="mlp", end=".gate"), 2)
    yield without("attention", _("attention counted once"), attention * later, 2)
    yield without("attention", _("attention left out"), attention, 2)
    yield without("attention", _("output matrix of attention left out"),
                  where(part="attention", kind="matrix", end=".out"), 2)  # fmt: skip
    for multiple in _PADDINGS:
        rows = -(-spec.vocab // multiple) * multiple
        if rows != spec.vocab:
            phrase = _("vocabulary padded to {rows}").format(rows=f"{rows:,}")
            yield resized("vocabulary", phrase, _padded(cells, rows))
    if any(block.attention and block.attention.kv_heads != block.attention.heads
           for block in spec.blocks):  # fmt: skip
        phrase = _("as many key heads as query heads")
        yield resized("key heads", phrase, _all_heads(cells))


def _ones(where: npt.NDArray[np.bool_]) -> Whole:
    return where.astype(np.int64)


def _padded(cells: _Cells, rows: int) -> Whole:
    """The sizes with this many rows in the embedding."""
    return np.array([_size(tensor, {"vocab": rows}) for tensor in cells.tensors], dtype=np.int64)


def _size(tensor: Parameter, instead: dict[str, int]) -> int:
    sides = zip(tensor.axes, tensor.shape, strict=True)
    return prod(instead.get(axis, side) for axis, side in sides)


def _all_heads(cells: _Cells) -> Whole:
    """The sizes if every query head had its own key and value head."""
    sizes = []
    for tensor, layer in zip(cells.tensors, cells.layers, strict=True):
        attention = cells.spec.blocks[layer].attention if layer >= 0 else None
        instead: dict[str, int] = {}
        if attention is not None:
            width = attention.q_width
            instead = {axis: 3 * width if "2·" in axis else width
                       for axis in tensor.axes if "kv_heads" in axis}  # fmt: skip
        sizes.append(_size(tensor, instead))
    return np.array(sizes, dtype=np.int64)


def _layers_of(kept: int, layers: int) -> str:
    if kept == 1:
        return _("one layer of {all}").format(all=_word(layers))
    return _("{kept} layers of {all}").format(kept=_word(kept), all=_word(layers))


def _word(number: int) -> str:
    words = {2: _("two"), 3: _("three"), 4: _("four"), 5: _("five"), 6: _("six")}
    return words.get(number, str(number))
