"""The parameter inventory of a model, to the digit and with its formulas, as data.

    >>> from byhand.models import open_model
    >>> inventory = count(open_model("minigpt-init").spec)
    >>> inventory["count.total"], inventory["count.without_biases"]
    (103680, 103040)
    >>> {line.address: f"{line.formula} = {line.count:,}" for line in inventory.lines}[
    ...     "count.block.0.attention"
    ... ]
    '4·d² = 16,384'

A tied head has no parameters of its own.  "Without biases" leaves out the biases of attention, MLP
and head; a norm's bias belongs to its gain and is counted.  Buffers (slopes, given angles, score
tables) are not parameters and are listed apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from byhand.display import Shown, one_line
from byhand.distinct import Held, held_by
from byhand.errors import AddressError, nearest
from byhand.language import _
from byhand.parameters import Parameter, learned, parameters
from byhand.spec import ModelSpec
from byhand.storage import Space, Storage, stored_in_files
from byhand.weights import Weights

_ORDER = (  # in a product
    *("vocab", "source_vocab", "outputs", "context", "segments", "experts", "d", "d_ff"),
    *("d_shared", "heads", "kv_heads", "d_head", "d_value"),
)
_SYMBOL = re.compile(r"[a-z][a-z_]*")
_PLACE = re.compile(r"(encoder\.)?(?:block\.(\d+)\.(cross\.)?)?")
PARTS = ("embedding", "position", "attention", "mlp", "norm", "head")


@dataclass(frozen=True, slots=True)
class Line:
    """One component: the tensors of one part of a layer, either the biases alone or the others."""

    address: str  # count.block.0.attention, count.block.0.mlp.bias, count.embedding, …
    part: str  # a word of PARTS
    kind: str  # "matrix", "bias", "norm", "buffer"
    layer: int | None  # None outside the blocks
    stack: str  # "encoder.": of the encoder
    names: tuple[str, ...]  # the names of the tensors
    formula: str  # 4·d²
    symbols: tuple[tuple[str, int], ...]  # what the letters of the formula stand for: d is 64
    count: int

    @property
    def numbers(self) -> str:
        """The formula with its numbers: 4·64²"""
        known = dict(self.symbols)
        return _SYMBOL.sub(lambda match: str(known[match[0]]), self.formula)

    @property
    def sort(self) -> tuple[object, ...]:
        """What a component shares with those of other blocks that are alike."""
        place = re.sub(r"\d+", "", self.address)
        return place, self.kind, self.formula, self.symbols


@dataclass(frozen=True, slots=True)
class Group:
    """Equal lines of several layers, as one."""

    line: Line  # of the first of the layers
    layers: tuple[int, ...]  # empty outside the blocks

    def has(self, line: Line) -> bool:
        """Whether this is the group of a line: the same but for the number of its block."""
        return line.sort == self.line.sort

    @property
    def times(self) -> int:
        """How many layers have these parameters; 1 for those outside the layers."""
        return max(1, len(self.layers))

    @property
    def total(self) -> int:
        """The parameters of the group in all its layers."""
        return self.times * self.line.count


@dataclass(frozen=True, slots=True)
class Inventory(Shown):
    """Every component of a model, and the totals; each number has an address.

    >>> import byhand
    >>> byhand.count("minigpt")
    <Inventory of minigpt: 103,680 parameters in 27 tensors>
    """

    model: str
    tied: bool
    lines: tuple[Line, ...]  # parameters, in spine order
    buffers: tuple[Line, ...]
    total: int
    without_biases: int
    norms: int
    unique: int  # the number of tensors; shared ones count once
    shared: tuple[tuple[str, str], ...]  # a tensor, and the one whose parameters it has
    held: Held | None = None  # the different numbers of the weights, where these are known
    storage: Storage | None = None  # the space in files, where the weights are in some

    def space(self, group: Group) -> Space | None:
        """The space that a group takes in its files, in all its layers."""
        if self.storage is None:
            return None
        same = [self.storage.components[line.address] for line in self.lines if group.has(line)]
        formats = dict.fromkeys(name for space in same for name in space.formats)
        size = sum((space.size for space in same), Fraction(0))
        return Space(tuple(formats), sum(space.entries for space in same), size)

    @property
    def layers(self) -> tuple[int, ...]:
        """The parameters of each block."""
        return self.blocks("")

    def blocks(self, stack: str) -> tuple[int, ...]:
        """The parameters of each block of the model, or of its encoder: "encoder."."""
        lines = [line for line in self.lines if line.stack == stack and line.layer is not None]
        return tuple(
            sum(line.count for line in lines if line.layer == layer)
            for layer in range(max((line.layer or 0 for line in lines), default=-1) + 1)
        )

    @property
    def groups(self) -> tuple[Group, ...]:
        """The lines with equal ones of different layers put together, in spine order."""
        found: dict[tuple[object, ...], list[Line]] = {}
        for line in self.lines:
            found.setdefault(line.sort, []).append(line)
        return tuple(
            Group(same[0], tuple(line.layer for line in same if line.layer is not None))
            for same in found.values()
        )

    @property
    def numbers(self) -> dict[str, int]:
        """Every number by its address."""
        return {
            **{line.address: line.count for line in self.lines},
            **{line.address: line.count for line in self.buffers},
            **{
                f"count.{stack}block.{layer}": size
                for stack in ("", "encoder.")
                for layer, size in enumerate(self.blocks(stack))
            },
            "count.total": self.total,
            "count.without_biases": self.without_biases,
            "count.norms": self.norms,
            "count.unique": self.unique,
            "count.buffers": sum(line.count for line in self.buffers),
            **({} if self.held is None else {"count.different": self.held.whole.different}),
            **({} if self.storage is None else {"count.bytes": self.storage.whole.bytes}),
        }

    def __repr__(self) -> str:
        tensors = sum(len(line.names) for line in self.lines)
        told = f"{self.total:,} parameters in {tensors} tensor{'s' * (tensors != 1)}"
        return f"<Inventory of {one_line(self.model)}: {told}>"

    def __getitem__(self, address: str) -> int:
        """One number by its address, such as count.block.0; an AddressError where it has none."""
        numbers = self.numbers
        if address not in numbers:
            raise AddressError(
                _("there is no count {address}").format(address=repr(address)),
                expected="count.total, count.unique, count.block.0, …",
                found=address,
                hint=nearest(address, numbers),
            )
        return numbers[address]


def count(spec: ModelSpec, weights: Weights | None = None, *, numbers: bool = False) -> Inventory:
    """The inventory of a model; given its weights, shared tensors are counted once.

    With `numbers`, the different numbers that they hold are counted too: all weights are read.
    """
    own = learned(spec)
    shared = tuple(
        (p.name, tensor.same_as)
        for p in own
        if weights is not None and (tensor := weights[p.name]).same_as is not None
    )
    repeated = {name for name, _owner in shared}
    lines = _lines(spec, own)
    named = {line.address: line.names for line in lines}
    return Inventory(
        model=spec.name,
        tied=spec.tied,
        lines=lines,
        buffers=_lines(spec, (p for p in parameters(spec) if p.kind == "buffer")),
        total=_size(own),
        without_biases=_size(p for p in own if p.kind != "bias" or p.part == "norm"),
        norms=_size(p for p in own if p.part == "norm"),
        unique=_size(p for p in own if p.name not in repeated),
        shared=shared,
        held=held_by(weights) if numbers and weights is not None else None,
        storage=None if weights is None else stored_in_files(named, weights),
    )


def _size(some: Iterable[Parameter]) -> int:
    return sum(parameter.size for parameter in some)


def _lines(spec: ModelSpec, some: Iterable[Parameter]) -> tuple[Line, ...]:
    components: dict[str, list[Parameter]] = {}
    for parameter in some:
        components.setdefault(_address(parameter), []).append(parameter)
    return tuple(_line(spec, address, members) for address, members in components.items())


def _address(parameter: Parameter) -> str:
    stack, layer, cross = _placed(parameter.name)
    place = "" if layer is None else f"block.{layer}."
    part = parameter.part
    if cross:
        part = "cross" if part == "attention" else f"cross.{part}"
    if part == "norm" and layer is None:  # embed.norm, final.norm, head.norm
        part = parameter.name.removeprefix(stack).rpartition(".")[0]
    apart = f".{_kind(parameter)}" if _kind(parameter) in ("bias", "buffer") else ""
    return f"count.{stack}{place}{part}{apart}"


def _placed(name: str) -> tuple[str, int | None, bool]:
    """Of a tensor: "encoder." or nothing, its layer, and whether it is of cross-attention."""
    match = _PLACE.match(name)
    assert match is not None
    return match[1] or "", None if match[2] is None else int(match[2]), match[3] is not None


def _kind(parameter: Parameter) -> str:
    return "norm" if parameter.part == "norm" else parameter.kind


def _line(spec: ModelSpec, address: str, members: list[Parameter]) -> Line:
    stack, layer, cross = _placed(members[0].name)
    terms: Counter[tuple[str, ...]] = Counter()
    for parameter in members:
        times, factors = _monomial(parameter)
        terms[factors] += times
    formula = " + ".join(_written(times, factors) for factors, times in terms.items())
    used = _SYMBOL.findall(formula)
    return Line(
        address=address,
        part=members[0].part,
        kind=_kind(members[0]),
        layer=layer,
        stack=stack,
        names=tuple(p.name for p in members),
        formula=formula,
        symbols=tuple((s, n) for s, n in _symbols(spec, stack, layer, cross).items() if s in used),
        count=_size(members),
    )


def _symbols(spec: ModelSpec, stack: str, layer: int | None, cross: bool) -> dict[str, int]:
    """What the letters of the glossary stand for in this layer."""
    side = spec.encoder if stack else spec
    assert side is not None
    symbols = {
        "vocab": spec.vocab,
        spec.answer_axis: spec.answers,
        "d": spec.d_model,
        "context": side.context or 0,
        "segments": spec.segments or 0,
        "embed_width": spec.embed_width or 0,
        "source_vocab": (spec.encoder.vocab if spec.encoder else None) or 0,
        "buckets": side.relative.buckets if side.relative else 0,
    }
    block = None if layer is None else side.blocks[layer]
    attention = next((b.attention for b in side.blocks if b.attention), None)  # whose buckets
    if block is not None:
        attention = block.cross if cross else block.attention
    if attention:
        symbols |= {"heads": attention.heads, "kv_heads": attention.kv_heads}
        symbols |= {"d_head": attention.d_head, "d_value": attention.value_width}
        symbols["rope_width"] = attention.rotary.width if attention.rotary else 0
        if attention.latent:
            symbols["rank"] = attention.latent.rank
            symbols["query_rank"] = attention.latent.query_rank or 0
    if block is not None and block.mlp:
        symbols |= {"d_ff": block.mlp.d_ff, "d_shared": block.mlp.shared or 0}
        symbols["experts"] = block.mlp.experts or 0
    return symbols


def _monomial(parameter: Parameter) -> tuple[int, tuple[str, ...]]:
    """A tensor's size as a whole number times symbols: 3·d × d is 3 times (d, d)."""
    times = 1
    factors: list[str] = []
    for axis in parameter.axes:
        for factor in [axis] if axis.startswith("(") else axis.split("·"):
            if factor.isdigit():
                times *= int(factor)
            else:
                factors.append(f"({factor})" if factor[0] != "(" and " " in factor else factor)
    last = len(_ORDER)
    return times, tuple(
        sorted(factors, key=lambda f: (_ORDER.index(f) if f in _ORDER else last, f))
    )


def _written(times: int, factors: tuple[str, ...]) -> str:
    powers = Counter(factors)
    raised = {1: "", 2: "²", 3: "³"}
    pieces = [factor + raised[power] for factor, power in powers.items()]
    return "·".join([str(times)] * (times != 1) + pieces)
