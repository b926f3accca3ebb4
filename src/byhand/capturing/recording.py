"""What passes through the hooks of a model while it runs once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.capturing.caches import all_keys, first_held, layers_of, names_of
from byhand.capturing.looking import Looking
from byhand.capturing.modules import Modules, row_of
from byhand.checking.reading.arrays import as_array
from byhand.errors import InputError
from byhand.language import _
from byhand.names import ROWS

Array = npt.NDArray[Any]
POSITIONS = "position_ids"
COUNTING = ("wpe", "rotary_emb")  # modules that are told the positions


class Recorder:
    """What passes through the hooks."""

    def __init__(self, attention: str | None = None) -> None:
        self.arrays: dict[str, Array] = {}
        self.positions: npt.NDArray[np.int64] | None = None
        self.looking = Looking(attention)
        self.left_out: dict[str, str] = {}
        self.known: set[str] = set()  # modules at the ends of the tree that were run: with a step
        self.unknown: list[str] = []  # and without one
        self._same: dict[tuple[int, int | None], list[str]] = {}  # names of one step

    def as_step(self, address: str) -> Callable[..., None]:
        """What listens to a module of which the caller says which step it gives."""
        return lambda _module, _args, _kwargs, output: self._keep(address, output)

    def hook(self, name: str, leaf: bool) -> Callable[..., None] | None:
        """What listens to a module of this name; None where nothing of it is wanted."""
        if name.rpartition(".")[2] == COUNTING[1]:
            return lambda _module, args, kwargs, _output: self._count(args[1:], kwargs)
        if (known := row_of(name)) is None:
            return self._note(name) if leaf else None

        def listen(_module: Any, args: Any, kwargs: Any, output: Any) -> None:
            if name.rpartition(".")[2] == COUNTING[0]:
                self._count(args, kwargs)
            if leaf:
                self.known.add(name)
            self._keep(name, output)
            self._same.setdefault(known, []).append(name)
            if ROWS[known[0]].address == "block.L.attn.out":
                self.looking.listen(self.positions, kwargs)
                self._keep_weights(known[1], output)

        return listen

    def _note(self, name: str) -> Callable[..., None]:
        def listen(_module: Any, _args: Any, _kwargs: Any, output: Any) -> None:
            if _floats(output) is not None:
                self.unknown.append(name)

        return listen

    def _keep(self, name: str, output: Any) -> None:
        if (value := _floats(output)) is None:
            return
        before = self.arrays.pop(name, None)
        if name not in self.left_out:
            self._put(name, value)
        if before is not None and name in self.arrays and not _same(before, self.arrays[name]):
            del self.arrays[name]
            self.left_out[name] = _("it was called more than once")

    def _keep_weights(self, layer: int | None, output: Any) -> None:
        """What eager attention gives besides its output."""
        weights: Any = output[1] if isinstance(output, tuple) and len(output) > 1 else None
        if hasattr(weights, "detach") and weights.ndim == 4:
            self._put(f"block.{layer}.attn.weights", weights)

    def _put(self, name: str, value: Any) -> None:
        """Keeps a copy of a tensor: what goes on in the model may change it."""
        try:
            self.arrays[name] = np.array(as_array(value, name))
        except InputError as error:
            self.left_out[name] = error.message

    def _count(self, args: Any, kwargs: Mapping[str, Any]) -> None:
        positions = kwargs.get(POSITIONS, args[0] if args else None)
        if self.positions is None:
            self.positions = as_ids(positions)

    def add_cache(self, cached: Any, end: int) -> None:
        """Keys (after RoPE, where there is any) and values, as attention reads them.

        `end` is how many positions have been read, of all that the cache has room for.
        """
        for name, array in self.arrays.items():
            if name.endswith(".attn.weights") and array.ndim == 4:
                self.arrays[name] = all_keys(array, end)
        for layer, *both in layers_of(cached):
            held = both[0].shape[2]
            if not held:
                continue  # a quantised cache keeps them in another form
            names = names_of(layer, first_held(held, end), end)
            for name, tensor in zip(names, both, strict=True):
                self._put(name, tensor[:, :, :end])

    def chosen(self) -> dict[str, Array]:
        """The values, each step under one name of those its modules have."""
        again: set[str] = set()
        for same in self._same.values():
            there = [name for name in dict.fromkeys(same) if name in self.arrays]
            again.update(there[1:])
        return {name: array for name, array in self.arrays.items() if name not in again}


def as_ids(value: Any) -> npt.NDArray[np.int64] | None:
    """A tensor of ids or positions as a batch of rows; None where it is none."""
    if not hasattr(value, "detach") or value.is_floating_point() or value.ndim not in (1, 2):
        return None
    return np.atleast_2d(as_array(value, "")).copy()


def _floats(output: Any) -> Any:
    """The floats that a module gives, alone or first of several; None where it gives none."""
    value = output[0] if isinstance(output, (tuple, list)) and output else output
    return value if hasattr(value, "detach") and value.is_floating_point() else None


def _same(one: Array, other: Array) -> bool:
    """Whether two calls gave the same numbers: TransformerLens asks its first norm three times."""
    return one.shape == other.shape and one.tobytes() == other.tobytes()


@contextmanager
def running(
    model: Any, modules: Modules, recorder: Recorder, names: Mapping[str, str]
) -> Iterator[None]:
    """Listens to the modules, with dropout off; afterwards everything is as it was.

    `names` are those of modules of which the caller says which step they give.
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
        yield
    finally:
        for handle in handles:
            handle.remove()
        for name, module in modules.named.items():
            module.training = training[name]
