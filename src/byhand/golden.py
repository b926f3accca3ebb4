"""Golden files: a trace saved as a folder that any program can read, and read back.

    manifest.json        what was worked out: model, numbers, tokens, every step with its axes
    values.safetensors   every step as a float64 array, each entry the nearest to its true value
    exact.json           every step's exact or named values as text, with the letters they use

docs/golden-files.md describes them for people who write readers.  The folder appears whole or
not at all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.address import read_address, within
from byhand.errors import AddressError, InputError, OutputError, nearest
from byhand.language import _
from byhand.numbers.base import ABSENT
from byhand.tracing import Trace, Worked

FORMAT, VERSION = "byhand trace", 1
MANIFEST, VALUES, EXACT = "manifest.json", "values.safetensors", "exact.json"
BEYOND = Fraction(2) ** 1024  # what float64 calls infinite
VANISHING = Fraction(1, 2**1075)  # below this, the nearest float64 is 0
ABSENT_AS = {"scores": -np.inf, "softmax": 0.0}  # what a masked entry is in floats


# ------------------------------------------------------------------ writing


def save(trace: Trace, folder: str | Path) -> None:
    """Writes a trace as a folder, whole or not at all; an older trace there is replaced."""
    target = Path(folder)
    try:
        _refuse_what_is_not_ours(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.parent / f".{target.name}-{token_hex(4)}"
        draft.mkdir()
    except OSError as error:
        raise _cannot_write(target, error) from None
    try:
        _write_files(trace, draft)
        _put_in_place(draft, target)
    except OSError as error:
        raise _cannot_write(target, error) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _refuse_what_is_not_ours(target: Path) -> None:
    if not target.exists() or (target.is_dir() and not any(target.iterdir())) or _is_trace(target):
        return
    raise OutputError(
        _("this is there already, and it is not a saved trace"),
        where=str(target),
        expected=_("a new folder, or a saved trace to replace"),
        hint=_("choose another folder"),
    )


def _is_trace(folder: Path) -> bool:
    try:
        return bool(_manifest_of(folder)["format"] == FORMAT)
    except InputError:
        return False


def _put_in_place(draft: Path, target: Path) -> None:
    """Renames the finished draft; what it replaces is moved aside first, and back if that fails."""
    if not target.exists() or not any(target.iterdir()):
        draft.replace(target)
        return
    aside = draft.with_name(draft.name + ".old")
    target.rename(aside)
    try:
        draft.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    shutil.rmtree(aside)


def _cannot_write(target: Path, error: OSError) -> OutputError:
    return OutputError(
        _("cannot be written"),
        where=str(target),
        found=error.strerror or str(error),
        hint=_("nothing was left there"),
    )


def _write_files(trace: Trace, folder: Path) -> None:
    from safetensors.numpy import save as tensors

    from byhand import __version__
    from byhand.render.data import document_of

    document = document_of(trace)
    exact = {
        "letters": document.pop("letters"),
        "values": {step["address"]: step.pop("value") for step in document["steps"]},
        "decimals": {step["address"]: step.pop("decimal", None) for step in document["steps"]},
    }
    arrays = {worked.address: _array(worked) for worked in trace if worked.missing is None}
    for step in document["steps"]:
        array = arrays.get(step["address"])
        step["dtype"] = None if array is None else str(array.dtype)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "byhand": __version__,
        "text": trace.text,
        **document,
        "aliases": dict(trace.plan.aliases),
    }
    _write_json(folder / MANIFEST, manifest)
    _write_json(folder / EXACT, exact)
    metadata = {"format": FORMAT, "version": str(VERSION)}
    _write_bytes(folder / VALUES, tensors(arrays, metadata=metadata))


def _write_json(path: Path, data: object) -> None:
    text = json.dumps(data, ensure_ascii=False, indent=1)
    _write_bytes(path, f"{text}\n".encode())


def _write_bytes(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _array(worked: Worked) -> npt.NDArray[Any]:
    """The step in numbers: int64 ids (-1: undecided), or the nearest float64 of each entry."""
    if worked.step.op == "given":
        return np.asarray(worked.value, dtype=np.int64)
    if worked.step.op == "argmax":
        return np.asarray([-1 if p.id is None else p.id for p in worked.value], dtype=np.int64)
    absent = ABSENT_AS.get(worked.step.op, np.nan)
    flat = [absent if x is ABSENT else nearest_float(x) for _index, x in worked.entries()]
    return np.asarray(flat, dtype=np.float64).reshape(worked.step.shape)


def nearest_float(entry: Any) -> float:
    """The float64 nearest to an entry; of an enclosed one, nearest to its middle.

    Proven wherever the entry can be separated from the middle between two floats.
    """
    if isinstance(entry, Fraction):
        return _to_float(entry)
    if (fraction := entry.fraction) is not None:
        return _to_float(fraction)
    if entry.register == "enclosed":
        return _to_float(Fraction(entry.interval(20)[0]))
    if not -BEYOND < entry < BEYOND:  # told apart first: e^(e^80) has more digits than fit anywhere
        return float("inf") if entry > 0 else float("-inf")
    if -VANISHING < entry < VANISHING:  # also what is not separated from 0
        return 0.0
    for digits in (20, 40, 80):
        text: str = entry.significant(digits)
        middle, unit = Fraction(text), _last_unit(text)
        low, high = _to_float(middle - unit), _to_float(middle + unit)
        if low == high:
            return low
    return _to_float(middle)


def _last_unit(text: str) -> Fraction:
    """One unit of the last place of a decimal such as -0.250 or 1.5e-7."""
    mantissa, _e, exponent = text.partition("e")
    places = len(mantissa.partition(".")[2])
    return Fraction(10) ** (int(exponent or 0) - places)


def _to_float(value: Fraction) -> float:
    """Rounded to nearest, ties to even; beyond the range infinite, as floats are."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


# ------------------------------------------------------------------ reading


@dataclass(frozen=True)
class SavedStep:
    """One step of a saved trace; `values` is None where it was not worked out."""

    address: str
    op: str
    reads: tuple[str, ...]
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    formula: str
    register: str | None
    values: npt.NDArray[Any] | None
    exact: Any  # nested lists of text, None where masked

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.shape))
        return f"<{self.address} {shape} {self.register or 'missing'}>"


@dataclass(frozen=True)
class SavedTrace:
    """A trace read back from its folder: arrays, and the exact values as text."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def model(self) -> str:
        return str(self.manifest["model"])

    @property
    def numbers(self) -> str:
        return str(self.manifest["numbers"])

    @property
    def text(self) -> str:
        return str(self.manifest["text"])

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(token["id"] for token in self.manifest["tokens"])

    @property
    def next(self) -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] | None = self.manifest["next"]
        return found

    @property
    def loss(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self.manifest["loss"]
        return found

    @property
    def letters(self) -> dict[str, Any]:
        found: dict[str, Any] = self._exact["letters"]
        return found

    @cached_property
    def _exact(self) -> dict[str, Any]:
        return _read_json(self.folder / EXACT)

    @cached_property
    def _values(self) -> dict[str, npt.NDArray[Any]]:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            arrays: dict[str, npt.NDArray[Any]] = load_file(self.folder / VALUES)
        except (OSError, SafetensorError) as error:
            raise _not_a_trace(self.folder / VALUES, str(error)) from None
        return arrays

    @cached_property
    def steps(self) -> dict[str, SavedStep]:
        """The steps by address, in spine order."""
        return {
            step["address"]: SavedStep(
                address=step["address"],
                op=step["op"],
                reads=tuple(step["reads"]),
                axes=tuple(step["axes"]),
                shape=tuple(step["shape"]),
                formula=step["formula"],
                register=step["register"],
                values=self._values.get(step["address"]),
                exact=self._exact["values"][step["address"]],
            )
            for step in self.manifest["steps"]
        }

    def __iter__(self) -> Iterator[SavedStep]:
        return iter(self.steps.values())

    def __getitem__(self, address: str) -> Any:
        """A step by its address or alias; with an index, its entry or a part as floats."""
        wanted = read_address(address)
        name = self.manifest["aliases"].get(wanted.name, wanted.name)
        if name not in self.steps:
            raise AddressError(
                _("there is no step {name}").format(name=repr(wanted.name)),
                hint=nearest(wanted.name, [*self.steps, *self.manifest["aliases"]]),
            )
        step = self.steps[name]
        if not wanted.index:
            return step
        if step.values is None:
            raise AddressError(_("{name} was not worked out").format(name=name))
        return step.values[within(wanted, step.shape)]

    def exact(self, address: str) -> Any:
        """The exact or named value at an address as text; a part of it as nested lists."""
        wanted = read_address(address)
        step: SavedStep = self[wanted.name]
        index = within(wanted, step.shape)
        return np.asarray(step.exact, dtype=object)[index] if index else step.exact

    def __repr__(self) -> str:
        return (
            f"Saved trace of {self.model} on {self.text!r} ({self.numbers}): "
            f"{len(self.manifest['steps'])} steps in {self.folder}"
        )


def open_trace(folder: str | Path) -> SavedTrace:
    """The trace saved in a folder; an InputError if there is none."""
    path = Path(folder)
    manifest = _manifest_of(path)
    if manifest["format"] != FORMAT or manifest.get("version") != VERSION:
        raise InputError(
            _("this is not a saved trace that can be read"),
            where=str(path / MANIFEST),
            expected=f"{FORMAT}, version {VERSION}",
            found=f"{manifest['format']}, version {manifest.get('version')}",
        )
    return SavedTrace(path, manifest)


def _manifest_of(folder: Path) -> dict[str, Any]:
    manifest = _read_json(folder / MANIFEST)
    if "format" not in manifest:
        raise _not_a_trace(folder / MANIFEST, _("no format"))
    return manifest


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise _not_a_trace(path, error.strerror or str(error)) from None
    except ValueError as error:  # broken JSON, or no text at all
        raise _not_a_trace(path, str(error)) from None
    if not isinstance(data, dict):
        raise _not_a_trace(path, _("not an object"))
    return data


def _not_a_trace(path: Path, found: str) -> InputError:
    return InputError(
        _("this is not a saved trace"),
        where=str(path),
        expected=_("a folder written by byhand trace --out"),
        found=found,
    )
