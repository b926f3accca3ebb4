"""The recorder of a run: the values, masks, keys and values from a model's hooks.

Positions that start again within a text mean several texts packed into one.  `transformers` then
separates them if it gets neither a mask nor a cache; otherwise they attend to each other, as always
in older versions.  So the masks that the attention modules receive decide.

Caches grow, have a fixed size, or have a sliding window.  Only positions that were read count.  A
cache of fixed size holds them first and free room after them; a sliding window holds only the last.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.capturing.learning import Kept, Listener
from byhand.capturing.modules import Modules, row_of
from byhand.capturing.routing import choice_of, in_batch
from byhand.checking.masks import pairs_of, segments_of
from byhand.checking.readers.arrays import as_array
from byhand.errors import UsageError
from byhand.language import _
from byhand.names.families import MODULES
from byhand.plan import GRAD

Array = npt.NDArray[Any]
POSITIONS = "position_ids"
ATTENDING = (".attn.out", ".cross.out", ".attn.mixed")  # what modules with weights give
OWN_WEIGHTS = re.compile(r"block\.\d+\.attn\.weights")
COUNTING = ("wpe", "rotary_emb")  # modules that receive the positions


class Recorder(Kept):
    """Records the values that pass through the hooks."""

    def __init__(
        self,
        attention: str | None = None,
        back: Listener | None = None,
        sides: tuple[int, int] | None = None,
        family: str = "",
    ) -> None:
        super().__init__()
        self.family = family  # whose names the modules have
        self.sides = sides  # of the batch: texts and positions
        self.back = back  # what listens to the gradients, where they are asked for
        self.positions: npt.NDArray[np.int64] | None = None
        self.looking = Looking(attention)
        self.known: set[str] = set()  # leaf modules that ran and have a step
        self.unknown: list[str] = []  # leaf modules that ran and have none
        self._same: dict[tuple[str, int | None], list[str]] = {}  # names of the same step

    def as_step(self, address: str) -> Callable[..., None]:
        """The hook for a module whose step the caller has named."""
        return lambda _module, _args, _kwargs, output: self._keep(address, output)

    def hook(self, name: str, leaf: bool) -> Callable[..., None] | None:
        """The hook for a module of this name; None if nothing of it is recorded."""
        if name.rpartition(".")[2] == COUNTING[1]:
            return lambda _module, args, kwargs, _output: self._count(args[1:], kwargs)
        if (known := row_of(name, self.family)) is None:
            return self._note(name) if leaf else None

        def listen(_module: Any, args: Any, kwargs: Any, output: Any) -> None:
            if name.rpartition(".")[2] == COUNTING[0]:
                self._count(args, kwargs)
            if leaf:
                self.known.add(name)
            self._keep(name, output)
            self._same.setdefault(known, []).append(name)
            if known[0] == "block.L.attn.out":
                self.looking.listen(self.positions, kwargs)
            if known[0].endswith(ATTENDING):
                self._keep_weights(known, output)
            if known[0] == "block.L.mlp.router":
                self._keep_choice(known[1], output)

        return listen

    def _note(self, name: str) -> Callable[..., None]:
        def listen(_module: Any, _args: Any, _kwargs: Any, output: Any) -> None:
            if _floats(output) is not None:
                self.unknown.append(name)

        return listen

    def _keep(self, name: str, output: Any) -> None:
        if (value := _floats(output)) is None:
            return
        if self.back is not None and self.back.returning:  # worked out again: checkpointing
            self.back.listen(name, value)
            return
        before = self.arrays.pop(name, None)
        if name not in self.left_out:
            self._put(name, value)
        if before is not None and name in self.arrays and not _same(before, self.arrays[name]):
            del self.arrays[name]
            self.left_out[name] = _("it was called more than once")

    def _keep_weights(self, known: tuple[str, int | None], output: Any) -> None:
        """Keeps the attention weights that eager attention returns beside its output.

        T5 returns the scores of distances before them.
        """
        at = 2 if self.family == "t5" else 1
        weights: Any = output[at] if isinstance(output, tuple) and len(output) > at else None
        if hasattr(weights, "detach") and weights.ndim == 4:
            sublayer = known[0].rpartition(".")[0].replace(".L.", f".{known[1]}.")
            self._keep(f"{sublayer}.weights", weights)

    def _keep_choice(self, layer: int | None, output: Any) -> None:
        """Keeps which experts a router chooses, and by which shares."""
        for name, value in zip(("chosen", "shares"), choice_of(output) or (), strict=False):
            self._keep(f"block.{layer}.mlp.{name}", value)

    def _put(self, name: str, value: Any) -> None:
        """Keeps a copy of a tensor, and listens to its gradient."""
        self.put(name, in_batch(value, self.sides))
        if self.back is not None:
            self.back.listen(name, value)

    def _count(self, args: Any, kwargs: Mapping[str, Any]) -> None:
        positions = kwargs.get(POSITIONS, args[0] if args else None)
        if self.positions is None:
            self.positions = as_ids(positions)

    def add_cache(self, cached: Any, end: int) -> None:
        """Adds the cache's keys (after RoPE, if any) and values, as attention reads them.

        `end` is the number of positions read; the cache may have room for more.
        """
        for name, array in self.arrays.items():
            if OWN_WEIGHTS.fullmatch(name) and array.ndim == 4:
                self.arrays[name] = all_keys(array, end)
        for layer, *both in layers_of(cached):
            held = both[0].shape[2]
            if not held or self._latent(*both):
                continue  # a quantised cache, or one of latent attention, stores other numbers
            names = names_of(layer, first_held(held, end), end)
            for name, tensor in zip(names, both, strict=True):
                self._put(name, tensor if held <= end else tensor[:, :, :end])

    def _latent(self, keys: Any, values: Any) -> bool:
        """Whether a cache holds what keys and values are made of: one row, a part of all keys."""
        if not keys.shape[1] == values.shape[1] == 1:
            return False
        names = MODULES.get(self.family)
        known = names is not None and "attn.kv_latent" in names.inside
        return known or bool(keys.shape[3] != values.shape[3])

    def chosen(self) -> dict[str, Array]:
        """The values, each step under one of its modules' names."""
        again: set[str] = set()
        for same in self._same.values():
            there = [name for name in dict.fromkeys(same) if name in self.arrays]
            again.update(there[1:])
        back = {} if self.back is None else self.back.found()
        arrays = {**self.arrays, **back}
        return {name: x for name, x in arrays.items() if name.removeprefix(GRAD) not in again}


def as_ids(value: Any) -> npt.NDArray[np.int64] | None:
    """A tensor of ids or positions as a batch of rows; None for anything else."""
    if not hasattr(value, "detach") or value.is_floating_point() or value.ndim not in (1, 2):
        return None
    return np.atleast_2d(as_array(value, "")).copy()


def _floats(output: Any) -> Any:
    """The floats that a module returns, alone or first of several; None if it returns none."""
    value = output[0] if isinstance(output, (tuple, list)) and output else output
    return value if hasattr(value, "detach") and value.is_floating_point() else None


def _same(one: Array, other: Array) -> bool:
    """Whether two calls gave the same numbers: TransformerLens calls its first norm three times."""
    return one.shape == other.shape and one.tobytes() == other.tobytes()


@contextmanager
def running(
    model: Any, modules: Modules, recorder: Recorder, names: Mapping[str, str]
) -> Iterator[None]:
    """Hooks the modules and turns dropout off; restores everything afterwards.

    `names` maps modules to the steps that the caller gives for them.
    """
    training = {name: module.training for name, module in modules.named.items()}
    hooks = [(modules.named[name], recorder.as_step(address)) for name, address in names.items()]
    taken = {id(module) for module, _hook in hooks}
    for name, module in modules:
        leaf = next(module.children(), None) is None
        if id(module) not in taken and (hook := recorder.hook(name, leaf)) is not None:
            hooks.append((module, hook))
    handles = [module.register_forward_hook(hook, with_kwargs=True) for module, hook in hooks]
    try:
        model.eval()
        for name, module in modules.named.items():
            if recorder.back is not None and getattr(module, "gradient_checkpointing", False):
                module.training = training[name]  # transformers checkpoints in training alone
        yield
    finally:
        for handle in handles:
            handle.remove()
        for name, module in modules.named.items():
            module.training = training[name]


# ------------------------------------------------------------------ who may look at whom


Whole = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
MASK = "attention_mask"
CAUSAL = ("eager", "sdpa")  # kinds of attention that are causal without a mask


class Looking:
    """Records the masks of attention modules."""

    def __init__(self, attention: str | None) -> None:
        self.attention = attention
        self.segments: Whole | None = None
        self._across: bool | None = None  # whether a query attended to another segment

    def listen(self, positions: Whole | None, kwargs: Mapping[str, Any]) -> None:
        """Records one call of an attention module, given the positions of its queries."""
        if positions is None or MASK not in kwargs or self._across:
            return
        self.segments = segments_of(positions)
        if self.segments is None:
            return
        mask = kwargs[MASK]
        if mask is None:
            self._across = True if self.attention in CAUSAL else None
        elif hasattr(mask, "detach") and mask.ndim == 4:
            self._across = self._crossing(pairs_of(as_array(mask, MASK), MASK))

    def _crossing(self, pairs: Truths) -> bool:
        """Whether the first query of a segment attends to the key before it, in another segment."""
        assert self.segments is not None
        queries = self.segments.shape[-1]
        pairs = np.broadcast_to(pairs, (len(self.segments), *pairs.shape[1:]))
        keys = range(pairs.shape[2] - queries, pairs.shape[2])  # keys of these queries
        before = [pairs[:, query, keys[query] - 1] for query in range(1, queries)]
        other = np.diff(self.segments, axis=1) != 0
        return bool(np.any(np.stack(before, axis=1) & other))

    def found(self) -> Whole | None:
        """The segments that did not attend to each other; None if unknown or not packed.

        Segments that attend to each other count as one.
        """
        if self.segments is None or self._across is None:
            return None
        return np.zeros_like(self.segments) if self._across else self.segments


def given_mask(value: Any, attention: str | None) -> tuple[Truths | None, Truths | None]:
    """The mask given to the model: of positions, or of queries and keys."""
    if value is None:
        return None, None
    if not hasattr(value, "detach"):
        raise UsageError(
            _("this attention mask cannot be recorded"),
            expected=_("a tensor of positions, or of queries and keys"),
            found=type(value).__name__,
        )
    mask = as_array(value, MASK)
    if mask.ndim <= 2:
        return np.atleast_2d(mask).astype(np.bool_), None
    if attention == "eager" and mask.dtype == np.bool_:
        warnings.warn(
            _("eager attention adds a boolean mask to the scores as 0 and 1: it hides nothing"),
            stacklevel=3,
        )
    return None, pairs_of(mask, MASK)


# ------------------------------------------------------------------ keys and values


CACHE = "past_key_values."


def layers_of(cached: Any) -> Iterator[tuple[int, Any, Any]]:
    """The number, keys and values of each layer of any version's cache; empty ones are skipped."""
    cached = getattr(cached, "self_attention_cache", cached)
    layers = getattr(cached, "layers", cached)
    for number, layer in enumerate(layers if isinstance(layers, (list, tuple)) else ()):
        pair = layer if isinstance(layer, tuple) else (
            getattr(layer, "keys", None), getattr(layer, "values", None)
        )  # fmt: skip
        if len(pair) > 1 and all(hasattr(each, "detach") and each.ndim == 4 for each in pair[:2]):
            yield number, pair[0], pair[1]


def length_of(cached: Any) -> int:
    """The number of positions that a cache has read; 0 without a cache."""
    if hasattr(cached, "get_seq_length"):
        return int(cached.get_seq_length())
    return max((keys.shape[2] for _layer, keys, _values in layers_of(cached)), default=0)


def first_held(width: int, end: int) -> int:
    """The first position held, if `end` were read and there is room for `width`."""
    return max(0, end - width)


def all_keys(weights: Array, end: int) -> Array:
    """Attention weights over all keys before `end`; keys outside the window have weight 0."""
    first = first_held(weights.shape[3], end)
    return np.pad(weights[..., :end], [(0, 0), (0, 0), (0, 0), (first, 0)])


def names_of(layer: int, first: int, end: int) -> tuple[str, str]:
    """The names of the keys and values of some positions."""
    part = f"[:,{first}:{end}]" if first else ""
    return f"{CACHE}{layer}.key{part}", f"{CACHE}{layer}.value{part}"
