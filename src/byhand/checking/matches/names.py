"""Names in claims: the step, weight or count that each means, its index and its style.

The style of a name determines the order of its axes (`layouts`).  Tokens may stand in an index:
probs[3,mat], weights[0,on,cat].  Along the vocabulary a word is its id; along the positions it is
where it stands in the text.  A token with a comma or a bracket, or one that looks like a number,
needs quotes.

The hooks of TransformerLens inside a norm differ between versions:

    HookedTransformer, up to 2.x   a LayerNorm's hook_normalized is after gain and bias
    HookedTransformer, 3.x         it is before them, as an RMSNorm's always was; unembed has hooks
    the bridge, from 3.x on        before them too, but worked out beside the norm, not within it

Some names exist only in some versions and so identify them.  Without such names the numbers decide:
before gain and bias, the rows of a LayerNorm have mean 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from byhand import names
from byhand.address import Address, Index, read_address, within
from byhand.checking.claims import Entry, Unmatched
from byhand.checking.counts import known_counts
from byhand.checking.matches.learned import learned_from, of_all_texts
from byhand.checking.matches.texts import Row
from byhand.errors import AddressError, nearest
from byhand.language import _
from byhand.model import Model
from byhand.names.families import MODULES
from byhand.parameters import Parameter, parameters
from byhand.plan import GRAD, STANDINGS, WEIGHT, Plan
from byhand.spec import NormSpec

BYHAND, LENS, HUGGING_FACE, CACHE = "byhand", "transformer_lens", "huggingface", "cache"
HEADS_FIRST = "heads_first"
COUNT = "count."
AROUND = ("module.", "base_model.model.")  # prefixes that DataParallel and peft add to module names
ENDINGS = (".output[0]", ".output.0", ".output")  # suffixes for a module's output
MOST_HINTS = 40  # unknown names that get hints: a search takes a while
_PAST = re.compile(r"(?:past|present)(?:_key_values?)?\.(\d{1,6})\.(key|value)s?")


@dataclass(frozen=True, slots=True)
class Found:
    """The step, weight or count that a name means."""

    address: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    style: str
    op: str = ""

    @property
    def step(self) -> bool:
        """Whether the name means a step of one text, not a weight, its gradient or a count."""
        return not self.address.startswith((WEIGHT, COUNT)) and not of_all_texts(self.address)


class Known:
    """All names that are known for this model, at one text length.

    `instead` holds names that mean another step in these claims than they usually do.
    """

    def __init__(self, model: Model, plan: Plan, instead: Mapping[str, str] | None = None) -> None:
        self.model = model
        self.plan = plan
        self.instead = instead or {}
        self._hints = MOST_HINTS

    def look_up(self, name: str) -> Found | None:
        """The step, weight or count that the name means; None if it is unknown."""
        return (
            self._step(name, BYHAND)
            or self._weight(name)
            or self._count(name)
            or self._foreign(name)
            or self._learned(name)
        )

    def _step(self, name: str, style: str) -> Found | None:
        if name not in self.plan.known:
            return None
        step = self.plan[name]
        return Found(step.address, step.axes, step.shape, style, step.op)

    def _weight(self, name: str) -> Found | None:
        own = self._weights.get(name.removeprefix(WEIGHT)) if name.startswith(WEIGHT) else None
        parameter = own or self._foreign_weights.get(unwrapped(name))
        if parameter is None:
            return None
        address = WEIGHT + parameter.name
        return Found(address, parameter.axes, parameter.shape, BYHAND)

    def _count(self, name: str) -> Found | None:
        if name in STANDINGS:
            return Found(name, ("pos",), (self.plan.length,), BYHAND)
        known = name.startswith(COUNT) and name in self._counts
        return Found(name, (), (), BYHAND) if known else None

    def _foreign(self, name: str) -> Found | None:
        for ending in ("", *ENDINGS):
            if not name.endswith(ending):
                continue
            plain = unwrapped(name.removesuffix(ending))
            if (address := self._steps.get(plain)) is not None:
                return self._step(address, LENS if "hook_" in plain else self._style(address))
            if ending and (found := self._step(plain, BYHAND)):
                return found
        return self._past(unwrapped(name))

    def _style(self, address: str) -> str:
        """The order of axes that the library's module gives."""
        family = MODULES.get(self.plan.spec.family)
        normed = ".q_norm" in address or ".k_norm" in address
        return HEADS_FIRST if normed and family and family.heads_first else HUGGING_FACE

    def _learned(self, name: str) -> Found | None:
        """The gradient of a step or weight, or what an optimizer makes of a weight."""
        told = learned_from(name)
        if told is None:
            return None
        kind, rest = told
        own = self._weights.get(rest.removeprefix(WEIGHT))
        weight = self._weight(rest if own is None else WEIGHT + own.name)
        if kind == GRAD:
            inner = self._step(rest, BYHAND) or weight or self._foreign(rest)
            found = None if inner is None else self._step(GRAD + inner.address, BYHAND)
            return None if found is None or inner is None else replace(found, style=inner.style)
        return weight and self._step(kind + weight.address.removeprefix(WEIGHT), BYHAND)

    def _past(self, name: str) -> Found | None:
        """The step of a cache's keys or values: those that the scores and the mixing read."""
        match = _PAST.fullmatch(name)
        if match is None:
            return None
        step, role = ("scores", "k") if match[2] == "key" else ("mixed", "v")
        at = f"block.{match[1]}.attn.{step}"
        if at not in self.plan.known:
            return None
        return self._step(self.plan[at].inputs[role], CACHE)

    # ------------------------------------------------------------------ what there is

    @cached_property
    def _steps(self) -> Mapping[str, str]:
        return {**names.steps(self.plan.spec, self.plan.known), **self.instead}

    @cached_property
    def _weights(self) -> Mapping[str, Parameter]:
        return {parameter.name: parameter for parameter in parameters(self.plan.spec)}

    @cached_property
    def _counts(self) -> Mapping[str, int]:
        return known_counts(self.model)

    @cached_property
    def _foreign_weights(self) -> Mapping[str, Parameter]:
        """Tensors under the names that checkpoints have for them."""
        if self.model.family is None:
            return {}
        called, known = MODULES[self.model.family], self._weights
        found = {
            source.file: parameter
            for prefix in ("", called.prefix, *called.prefixes)
            for name, parameter in known.items()
            for source in called.sources(name, prefix, self.plan.spec.layout)
            if not source.rules and not source.stacked  # else it is another tensor
        }
        head = known.get("head", known["embed.token"])
        return found | dict.fromkeys(called.heads, head)

    # ------------------------------------------------------------------ near names

    def hint(self, name: str) -> str | None:
        """The known names nearest to an unknown one, in the style that it seems to have."""
        if not self._hints:
            return None
        self._hints -= 1
        return nearest(name[:120], self._pool(unwrapped(name)))

    def _pool(self, name: str) -> list[str]:
        if name.startswith(COUNT):
            return list(self._counts)
        if name.startswith(WEIGHT):
            return [WEIGHT + known for known in self._weights]
        lens = name.startswith(("blocks.", "unembed.", "ln_final.")) or "hook_" in name
        for theirs in (True, False):
            pool = [known for known in self._steps if theirs is ("hook_" in known)]
            if lens is theirs and (lens or self._modular(name)):
                weights = list(self._foreign_weights) if name.endswith(("weight", "bias")) else []
                return pool + weights
        return list(self.plan.known)

    def _modular(self, name: str) -> bool:
        """Whether the name looks like a module's."""
        first = {known.partition(".")[0] for known in self._steps if "hook_" not in known}
        return name.partition(".")[0] in first


def unwrapped(name: str) -> str:
    """The name without wrappers of the module, such as `module.` and `_orig_mod.`"""
    name = names.without_wrappers(name)
    for prefix in AROUND * 2:
        name = name.removeprefix(prefix)
    return name


# ------------------------------------------------------------------ names with an index


POSITIONS = ("pos", "query", "key")
SOURCE = ("source", "source_query", "source_key")  # likewise, of the text that an encoder reads
VOCABULARY, OUTPUTS = "vocab", "outputs"
_NAME = re.compile(r"\s*(?P<name>[^\[\]]*?)\s*(?:\[(?P<inside>.*)\])?\s*", re.DOTALL)
_PLACE = re.compile(r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^,"'\[\]]*))\s*""")
_NUMBERS = re.compile(r"\s*[-+]?[0-9]*\s*(?::\s*[-+]?[0-9]*\s*)?")


@dataclass(frozen=True, slots=True)
class Word:
    """A token in an index."""

    text: str


@dataclass(frozen=True, slots=True)
class Named:
    """A name in the claims, and the places of its index."""

    name: str
    places: tuple[int | slice | Word, ...] = ()


def read_name(text: str) -> Named:
    """The name and the index of a claim; an AddressError if the index cannot be read."""
    match = _NAME.fullmatch(text)
    if match is None:
        raise AddressError(
            _("this is not an address"),
            expected=_("a name such as logits or block.0.attn.scores[1,2,0]"),
            found=repr(text[:80]),
        )
    if match["inside"] is None:
        return Named(match["name"])
    return Named(match["name"], tuple(_places(match["inside"], text)))


def _places(inside: str, text: str) -> list[int | slice | Word]:
    found: list[int | slice | Word] = []
    at = 0
    while True:
        match = _PLACE.match(inside, at)
        if match is None or (match.end() < len(inside) and inside[match.end()] != ","):
            raise AddressError(
                _("this is not an index"),
                where=text[:80],
                expected=_("whole numbers, slices and tokens, such as [0,2], [:,1:3] or [-1,cat]"),
                found=repr(inside[:40]),
            )
        found.append(_place(match, text))
        if match.end() == len(inside):
            return found
        at = match.end() + 1


def _place(match: re.Match[str], text: str) -> int | slice | Word:
    bare = match["bare"]
    if bare is None:
        return Word(match["single"] if match["double"] is None else match["double"])
    if bare.strip() and not _NUMBERS.fullmatch(bare):
        return Word(bare.strip())
    return read_address(f"x[{bare}]").index[0]  # raises for an empty place


def index_of(
    named: Named, axes: Sequence[str], shape: tuple[int, ...], row: Row, model: Model
) -> Index:
    """The index in numbers, each place inside the shape; an AddressError where it is not."""
    places: list[int | slice] = []
    for at, place in enumerate(named.places):
        if isinstance(place, Word):
            place = _looked_up(place, named, axes[at] if at < len(axes) else "", row, model)
        places.append(place)
    checked = within(Address(named.name, tuple(places)), shape)
    return tuple(
        slice(*place.indices(size)[:2]) if isinstance(place, slice) else place
        for place, size in zip(checked, shape, strict=False)
    )


def _looked_up(word: Word, named: Named, axis: str, row: Row, model: Model) -> int:
    if axis not in (VOCABULARY, OUTPUTS, *POSITIONS, *SOURCE):
        raise AddressError(
            _("there are no tokens along this axis"),
            where=named.name,
            expected=_("a whole number or a slice along {axis}").format(axis=axis or _("nothing")),
            found=repr(word.text[:40]),
        )
    if axis == OUTPUTS:
        return model.outputs.id(word.text)
    read = axis in SOURCE
    id = (model.source_vocabulary if read else model.vocabulary).id(word.text)
    if axis == VOCABULARY:
        return id
    ids = row.source.tokens if read and row.source else row.tokens
    found = [place for place, token in enumerate(ids) if token == id]
    if len(found) != 1:
        raise AddressError(
            _("{token} does not name one position").format(token=repr(word.text[:40])),
            where=named.name,
            expected=_("a token that is in the text once, or the number of the position"),
            found=_("positions {places}").format(places=", ".join(map(str, found)))
            if found
            else _("no such token in the text"),
        )
    return (row.padding(axis) or (0, 0))[0] + found[0]


# ------------------------------------------------------------------ hooks inside a norm


_INSIDE = re.compile(r"(?:blocks\.(\d{1,6})\.(ln1|ln2)|ln_final)\.hook_(normalized|scale)")
_BRIDGE = re.compile(r"(?:blocks\.\d+\.(?:ln[12]\.hook_(?:in|out)|hook_(?:in|out))|(?:pos_)?embed"
                     r"\.hook_out|ln_final\.hook_(?:in|out)|hook_unembed)")  # fmt: skip
_NEWER = ("unembed.hook_in", "unembed.hook_out")
PARTS = {"ln1": "attn.norm", "ln2": "mlp.norm"}


def beside_the_norm(entries: Iterable[Entry]) -> list[Unmatched]:
    """The hooks that a bridge works out beside its norms: no other step reads them."""
    named = list(entries)
    if not any(_BRIDGE.fullmatch(entry.name) for entry in named):
        return []
    reason = _("TransformerLens' bridge computes it beside the norm: nothing follows from it")
    return [
        Unmatched(entry.name, entry.source, reason)
        for entry in named
        if re.search(r"\.hook_(?:normalized|scale)$", entry.name)
    ]


def after_gain_and_bias(entries: Iterable[Entry], model: Model) -> Mapping[str, str]:
    """The hooks that are the output of their norm, each with that output's address."""
    named = list(entries)
    if any(entry.name in _NEWER for entry in named):
        return {}
    found: dict[str, str] = {}
    for entry in named:
        match = _INSIDE.fullmatch(entry.name)
        if match is None or match[3] == "scale":
            continue
        at = f"block.{match[1]}.{PARTS[match[2]]}" if match[2] else "final.norm"
        norm = _norm(model, match)
        if norm is not None and norm.kind == "layernorm" and _after(entry, at, norm, model):
            found[entry.name] = f"{at}.out"
    return found


def _norm(model: Model, match: re.Match[str]) -> NormSpec | None:
    if not match[2]:
        return model.spec.final_norm
    if int(match[1]) >= len(model.spec.blocks):
        return None
    block = model.spec.blocks[int(match[1])]
    return block.attn_norm if match[2] == "ln1" else block.mlp_norm


def _after(entry: Entry, at: str, norm: NormSpec, model: Model) -> bool:
    """Whether the rows' means come nearer to 0 if gain and bias are undone."""
    width = model.spec.d_model
    if entry.values.dtype.kind == "O" or entry.values.shape[-1:] != (width,):
        return False
    rows = entry.values.astype(np.float64).reshape(-1, width)
    gain = _weight(model, f"{at}.gain") if norm.gain else np.ones(width)
    bias = _weight(model, f"{at}.bias") if norm.bias else np.zeros(width)
    if gain is None or bias is None or not gain.all():
        return False
    return _off_centre((rows - bias) / gain) < _off_centre(rows)


def _weight(model: Model, name: str) -> npt.NDArray[np.float64] | None:
    try:
        return np.asarray(model.weights[name].data, dtype=np.float64)
    except (TypeError, ValueError):  # not numbers
        return None


def _off_centre(rows: npt.NDArray[np.float64]) -> float:
    """How far the rows' means typically are from 0."""
    means = np.abs(rows.mean(axis=1))
    return float(np.median(means[np.isfinite(means)])) if np.isfinite(means).any() else 0.0
