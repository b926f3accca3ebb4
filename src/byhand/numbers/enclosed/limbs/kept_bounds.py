"""Bounds of weights that outlast the process: certified norms, metrics and grids, as bytes.

Certifying a norm takes much longer than reading it.  What is kept belongs to the entries of the
weights, told by their hash, and to the code that made it, told by the hash of its source.  So what
is found is what would be made again, but for the order of summation, which the bounds allow for.

The bytes are an npz archive without pickled objects: numbers and arrays, and a JSON index of them.
Whether bytes may be believed is not decided here (`byhand.bounds_file`).
"""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from byhand.numbers.enclosed.limbs.engine import engine_of

KINDS = (
    "attention sizes", "column", "columns", "grid", "largest", "mlp sizes", "norm", "norms",
    "typical",
)  # fmt: skip
LARGEST = 1 << 32  # numbers in keys; ids are larger
MOST = 1 << 26  # bytes of an array that is kept
MISSING = object()

_CLASSES: dict[str, type] = {}  # of the bounds that have fields, by name


def keepable(kind: type) -> type:
    """Marks a dataclass of bounds as one that is kept: as its fields, under its name."""
    _CLASSES[kind.__name__] = kind
    return kind


class Unreadable(Exception):
    """The bytes are not those of kept bounds."""


@lru_cache(1)
def code_version() -> str:
    """The hash of the sources that bounds are made by."""
    made = blake2b(digest_size=16)
    for path in sources():
        made.update(path.name.encode() + b"\0" + path.read_bytes())
    return made.hexdigest()


def sources() -> list[Path]:
    """The files that bounds are made by: arrays on a GPU have an engine of their own."""
    here = Path(__file__).parent
    return [path for folder in (here, here.parent / "gpu") for path in sorted(folder.glob("*.py"))]


class KeptBounds:
    """Bounds by the weights they belong to, and what was asked of these."""

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}  # trees of JSON; arrays are {"array": name}
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.seconds = 0.0  # that new entries took to make
        self.changed = False

    def find(self, weight: Any, key: Any) -> Any:
        """The kept value, MISSING where there is none."""
        name = name_of(weight, key)
        if name is None or name not in self.entries:
            return MISSING
        try:
            return self._value(self.entries[name], weight.floats)
        except KeyError:  # of a class that nobody has imported yet
            return MISSING

    def keep(self, weight: Any, key: Any, value: Any, seconds: float) -> None:
        """Keeps a value, where it is of a kind that can be kept."""
        name = name_of(weight, key)
        if name is None:
            return
        arrays: dict[str, Any] = {}
        try:
            tree = _tree(value, name, arrays)
        except TypeError:
            return
        self.entries[name] = tree
        self.arrays |= arrays
        self.seconds += seconds
        self.changed = True

    def note(self, name: str, value: int) -> None:
        """Keeps a number under a name of the caller's, for `noted`."""
        if self.entries.get("noted " + name) != value:
            self.entries["noted " + name] = value
            self.changed = True

    def noted(self, name: str) -> int | None:
        """The number kept under this name."""
        found = self.entries.get("noted " + name)
        return found if isinstance(found, int) else None

    # ------------------------------------------------------------------ bytes

    def to_bytes(self) -> bytes:
        """The archive."""
        index = json.dumps({"code": code_version(), "entries": self.entries})
        room = io.BytesIO()
        np.savez(room, index=np.frombuffer(index.encode(), np.uint8), **self.arrays)  # type: ignore[arg-type]
        return room.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> KeptBounds | None:
        """What an archive holds; None if other code made it.  Unreadable says that it is none."""
        made = cls()
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                index = json.loads(archive["index"].tobytes())
                if index["code"] != code_version():
                    return None
                made.entries = dict(index["entries"])
                made.arrays = {name: archive[name] for name in archive.files if name != "index"}
        except (ValueError, KeyError, TypeError, OSError, zipfile.BadZipFile) as error:
            raise Unreadable(str(error)) from error
        return made

    def _value(self, tree: Any, like: Any) -> Any:
        if isinstance(tree, list):
            return tuple(self._value(part, like) for part in tree)
        if not isinstance(tree, dict):
            return tree
        if "float" in tree:
            return float.fromhex(tree["float"])
        if "array" in tree:
            array = np.array(self.arrays[tree["array"]])
            return engine_of(like).constant(array, like)
        made = _CLASSES[tree["made of"]]
        return made(**{name: self._value(part, like) for name, part in tree["fields"].items()})


def _tree(value: Any, name: str, arrays: dict[str, Any]) -> Any:
    """The value as JSON; arrays go under names that begin with `name`."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": float(value).hex()}
    if isinstance(value, tuple):
        return [_tree(part, name, arrays) for part in value]
    if type(value) in _CLASSES.values():
        fields = {
            field.name: _tree(getattr(value, field.name), name, arrays)
            for field in dataclasses.fields(value)
        }
        return {"made of": type(value).__name__, "fields": fields}
    array = engine_of(value).to_numpy(value)
    if array.nbytes > MOST:
        raise TypeError("too large to be kept")
    place = f"{blake2b(name.encode(), digest_size=12).hexdigest()}-{len(arrays)}"
    arrays[place] = array
    return {"array": place}


# ------------------------------------------------------------------ what an entry belongs to


def name_of(weight: Any, key: Any) -> str | None:
    """The name of a bound; None where it is of no kind that is kept, or not of plain weights."""
    kind = key[0] if isinstance(key, tuple) else key
    if kind not in KINDS or weight.digest is None:
        return None
    parts: list[str] = [weight.digest]
    try:
        _describe(key, parts)
    except TypeError:
        return None
    return " ".join(parts)


def _describe(part: Any, parts: list[str]) -> None:
    if isinstance(part, tuple):
        parts.append("(")
        for one in part:
            _describe(one, parts)
        parts.append(")")
    elif isinstance(part, int) and part in _weights:  # the id of a weight
        _describe(_weights[part], parts)
    elif part is None or isinstance(part, str | bool) or (isinstance(part, int) and part < LARGEST):
        parts.append(repr(part))
    elif getattr(part, "digest", None):
        parts.append(part.digest)
    else:
        raise TypeError(type(part))


_weights: WeakValueDictionary[int, Any] = WeakValueDictionary()


def register(weight: Any) -> None:
    """Makes the weight known, so that keys may hold its id."""
    _weights[id(weight)] = weight


def digest_of(data: Any) -> str:
    """The hash of the entries of an array of floats, its shape and its format."""
    array = np.ascontiguousarray(data)
    made = blake2b(f"{array.dtype} {array.shape}".encode(), digest_size=16)
    made.update(array.reshape(-1).view(np.uint8).data)
    return made.hexdigest()


# ------------------------------------------------------------------ the one in use


_open: list[KeptBounds] = []


@contextmanager
def keeping(kept: KeptBounds | None) -> Iterator[None]:
    """Inside, bounds of weights are looked for here, and new ones are kept here."""
    if kept is None:
        yield
        return
    _open.append(kept)
    try:
        yield
    finally:
        _open.remove(kept)


def once(weight: Any, key: Any, make: Callable[[], Any]) -> Any:
    """The kept bound, or the one that is made now."""
    kept = _open[-1] if _open else None
    if kept is None:
        return make()
    found = kept.find(weight, key)
    if found is not MISSING:
        return found
    start = perf_counter()
    made = make()
    kept.keep(weight, key, made, perf_counter() - start)
    return made
