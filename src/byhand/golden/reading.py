"""The reader of golden files: numbers are views of the file, so that opening costs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.address import read_address, within
from byhand.display import Shown, one_line, quoted
from byhand.errors import AddressError, InputError, nearest
from byhand.files.mapped import Stored, open_tensors
from byhand.files.saved import EXACT, MANIFEST, VALUES, manifest_of, read_json, unexpected
from byhand.golden.manifest import BYHAND
from byhand.language import _
from byhand.numbers.enclosed.enclosure import EVERYTHING, Enclosure

SHIPPED = Path(__file__).parent.parent / "models" / "golden"  # of built-in models


@dataclass(frozen=True)
class SavedStep(Shown):
    """One step of a saved trace.

    >>> step = open_trace("minigpt-init")["logits"]
    >>> step.op, step.axes, step.shape, step.dtype, step.values.shape
    ('linear', ('pos', 'vocab'), (8, 64), 'float64', (8, 64))
    """

    address: str
    byhand: str  # its address; `address` may be a name in another style
    op: str
    reads: tuple[str, ...]
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    formula: str
    register: str | None
    dtype: str | None
    _trace: SavedTrace = field(repr=False, compare=False)
    _radius: str | None = field(default=None, repr=False)

    @cached_property
    def values(self) -> npt.NDArray[Any] | None:
        """The numbers, as a read-only view of the file; None where the step was not worked out."""
        return None if self.dtype is None else self._trace._array(self)

    @cached_property
    def radius(self) -> npt.NDArray[Any] | None:
        """For enclosures, a bound of each true value's distance from its float in `values`."""
        return None if self._radius is None else self._trace._array(self, self._radius)

    @property
    def exact(self) -> Any:
        """The exact values as nested lists of text (None where masked), or None without them."""
        return self._trace._exact["values"].get(self.address)

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.shape))
        return f"<{self.address} {shape} {self.register or 'missing'}>"


@dataclass(frozen=True)
class SavedTrace(Mapping[str, Any], Shown):
    """A trace read back from its folder: arrays, and the exact values as text.

    It is a mapping from addresses to steps, as a trace is.

    >>> import byhand
    >>> saved = byhand.open_trace("minigpt-init")
    >>> saved["logits"], saved["block.0.attn.weights[0,0,0]"].item()
    (<logits 8×64 named>, 1.0)
    """

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def model(self) -> str:
        """What the model is called."""
        return str(self.manifest["model"])

    @property
    def numbers(self) -> str:
        """The name of the number system."""
        return str(self.manifest["numbers"])

    @property
    def text(self) -> str:
        """The text that was worked out."""
        return str(self.manifest["text"])

    @property
    def names(self) -> str:
        """The style of its names; "byhand" where they are addresses."""
        return str(self.manifest.get("names", BYHAND))

    @property
    def tokens(self) -> tuple[int, ...]:
        """The ids of the text."""
        return tuple(token["id"] for token in self.manifest["tokens"])

    @property
    def next(self) -> list[dict[str, Any]] | None:
        """The prediction after each position, as the manifest has it."""
        found: list[dict[str, Any]] | None = self.manifest["next"]
        return found

    @property
    def loss(self) -> dict[str, Any] | None:
        """The loss as the manifest has it; None where there was no target."""
        found: dict[str, Any] | None = self.manifest["loss"]
        return found

    @property
    def letters(self) -> dict[str, Any]:
        """What the letters in exact values stand for."""
        found: dict[str, Any] = self._exact["letters"]
        return found

    @cached_property
    def _exact(self) -> dict[str, Any]:
        """The contents of exact.json; empty where the trace has none."""
        if self.manifest.get("exact", EXACT) is None:
            return {"letters": {}, "values": {}}
        exact = read_json(self.folder / EXACT)
        _check_keys(self.folder / EXACT, "", exact, {"letters": dict, "values": dict})
        return exact

    @cached_property
    def _stored(self) -> dict[str, Stored]:
        return open_tensors(self.folder / VALUES)

    def _array(self, step: SavedStep, tensor: str | None = None) -> npt.NDArray[Any]:
        name = tensor or step.address
        stored, array, found = self._stored.get(name), None, _("nothing")
        if stored is not None:
            array = stored.ids() if stored.dtype == "I64" else stored.array()
            found = f"{array.dtype} {list(array.shape)}"
        if array is None or (str(array.dtype), array.shape) != (step.dtype, step.shape):
            raise InputError(
                _("the numbers are not those of the manifest"),
                where=f"{self.folder / VALUES}: {name}",
                expected=f"{step.dtype} {list(step.shape)}",
                found=found,
            )
        return array

    @cached_property
    def steps(self) -> dict[str, SavedStep]:
        """The steps by address, in spine order."""
        return {
            step["address"]: SavedStep(
                address=step["address"],
                byhand=step.get("byhand", step["address"]),
                op=step["op"],
                reads=tuple(step["reads"]),
                axes=tuple(step["axes"]),
                shape=tuple(step["shape"]),
                formula=step["formula"],
                register=step["register"],
                dtype=step["dtype"],
                _trace=self,
                _radius=step.get("radius"),
            )
            for step in self.manifest["steps"]
        }

    @cached_property
    def _second_names(self) -> dict[str, str]:
        """Alias or address → the step's name in the files."""
        own = {step.byhand: step.address for step in self.steps.values()}
        return {**self.manifest["aliases"], **own}

    def __iter__(self) -> Iterator[str]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def step(self, name: str) -> SavedStep:
        """A step by its name in the files, its address or its alias."""
        found = self.steps.get(name) or self.steps.get(self._second_names.get(name, ""))
        if found is None:
            raise AddressError(
                _("there is no step {name}").format(name=repr(name)),
                hint=nearest(name, list(dict.fromkeys([*self.steps, *self._second_names]))),
            )
        return found

    def __getitem__(self, address: str) -> Any:
        """A step by its address or alias; with an index, its entry or a part as floats."""
        wanted = read_address(address)
        step = self.step(wanted.name)
        if not wanted.index:
            return step
        return self._worked_out(step)[within(wanted, step.shape)]

    def _worked_out(self, step: SavedStep) -> npt.NDArray[Any]:
        if step.values is None:
            raise AddressError(_("{name} was not worked out").format(name=step.address))
        return step.values

    def exact(self, address: str) -> Any:
        """The exact or named value at an address as text; a part of it as nested lists."""
        wanted = read_address(address)
        step = self.step(wanted.name)
        if not wanted.index and step.dtype is None:
            return None
        self._worked_out(step)
        if step.exact is None:
            raise AddressError(
                _("{name} is saved in floats alone").format(name=wanted.name),
                where=str(self.folder),
                expected=EXACT,
                found=_("nothing"),
            )
        index = within(wanted, step.shape)
        if not index:
            return step.exact
        table = _table(step.exact, len(step.shape))
        if table is None or table.shape != step.shape:
            raise unexpected(self.folder / EXACT, wanted.name)
        return table[index]

    def enclosure(self, address: str) -> Enclosure:
        """The proven set of the number at an address: as narrow as it was saved.

        An AddressError where the trace has no enclosures, or where the entry is masked.
        """
        wanted = read_address(address)
        step = self.step(wanted.name)
        values, radius = self._worked_out(step), step.radius
        index = within(wanted, step.shape)
        if radius is None or len(index) < len(step.shape) or values[index].shape != ():
            raise AddressError(
                _("{name} is not one enclosed number").format(name=address),
                where=str(self.folder),
                hint=_("a trace with --digits has enclosures; an index names one of them"),
            )
        text = self.exact(address) if step.exact is not None else ""
        if text is None:
            raise AddressError(_("{name} is masked: absent, not a number").format(name=address))
        if isinstance(text, dict):  # the written enclosure; the form of a rounded number has none
            if text["rad"] != "inf":
                return Enclosure(Fraction(text["mid"]), Fraction(text["rad"]))
            return EVERYTHING
        if not np.isfinite(radius[index]) or not np.isfinite(values[index]):
            return EVERYTHING
        return Enclosure(Fraction(float(values[index])), Fraction(float(radius[index])))

    def __repr__(self) -> str:
        return (
            f"Saved trace of {one_line(self.model)} on {quoted(self.text)} ({self.numbers}): "
            f"{len(self.manifest['steps'])} steps in {self.folder}"
        )


def _table(nested: Any, depth: int) -> npt.NDArray[Any] | None:
    """Nested lists as an array of the items at that depth; None if their lengths differ."""
    shape: list[int] = []
    level = [nested]
    for _axis in range(depth):
        if not all(isinstance(row, list) and len(row) == len(level[0]) for row in level):
            return None
        shape.append(len(level[0]))
        level = [entry for row in level for entry in row]
    table = np.empty(len(level), dtype=object)
    for place, entry in enumerate(level):
        table[place] = entry
    return table.reshape(shape)


def open_trace(folder: str | Path) -> SavedTrace:
    """The trace saved in a `folder`, or shipped for a built-in model of that name.

    A folder comes first; an InputError if there is neither.

    >>> open_trace("minigpt-init").text
    '<en> yesterday she climb -ed = ella sub'
    """
    path = Path(folder)
    if isinstance(folder, str) and folder in shipped_names() and not path.exists():
        path = SHIPPED / folder
    manifest = manifest_of(path)
    _check(path / MANIFEST, manifest)
    return SavedTrace(path, manifest)


def shipped_names() -> tuple[str, ...]:
    """The built-in models that come with golden files of their default text."""
    return tuple(sorted(path.name for path in SHIPPED.iterdir()))


# ------------------------------------------------------------------ what a manifest must have

Kinds = Mapping[str, type | tuple[type, ...]]
NOTHING = type(None)
KEYS: Kinds = {
    "model": str,
    "numbers": str,
    "text": str,
    "tokens": list,
    "steps": list,
    "next": (list, NOTHING),
    "loss": (dict, NOTHING),
    "aliases": dict,
}
TOKEN_KEYS: Kinds = {"id": int, "text": str}
STEP_KEYS: Kinds = {
    "address": str,
    "op": str,
    "reads": list,
    "axes": list,
    "shape": list,
    "formula": str,
    "register": (str, NOTHING),
    "dtype": (str, NOTHING),
}


def _check(path: Path, manifest: Mapping[str, Any]) -> None:
    """Raises an InputError for a manifest with missing or wrong contents."""
    later = {"names": BYHAND, "exact": None}  # keys that not every trace has
    _check_keys(path, "", {**later, **manifest}, {**KEYS, "names": str, "exact": (str, NOTHING)})
    for place, token in enumerate(manifest["tokens"]):
        _check_keys(path, f"tokens[{place}].", token, TOKEN_KEYS)
    for place, step in enumerate(manifest["steps"]):
        at = f"steps[{place}]."
        _check_keys(path, at, step, STEP_KEYS)
        _check_keys(path, at, {"byhand": "", "radius": "", **step}, {"byhand": str, "radius": str})
        _check_all(path, f"{at}reads", step["reads"], str)
        _check_all(path, f"{at}axes", step["axes"], str)
        _check_all(path, f"{at}shape", step["shape"], int)
        if min(step["shape"], default=0) < 0:
            raise unexpected(path, f"{at}shape")
    _check_all(path, "aliases", manifest["aliases"].values(), str)


def _check_keys(path: Path, at: str, found: Any, kinds: Kinds) -> None:
    if not isinstance(found, dict):
        raise unexpected(path, at.rstrip("."))
    for key, kind in kinds.items():
        if key not in found or not isinstance(found[key], kind):
            raise unexpected(path, at + key)


def _check_all(path: Path, at: str, found: Iterable[Any], kind: type) -> None:
    if not all(isinstance(item, kind) for item in found):
        raise unexpected(path, at)
