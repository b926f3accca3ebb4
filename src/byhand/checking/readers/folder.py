"""Claims from a trace: the folder that `byhand trace --out` writes.

The manifest gives the text and the address of each step.  Floats are claims in their own format.
Exact values are stored as the nearest floats, enclosed ones with their radii, decimals as rounded.
These count as written numbers, with that slack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.claims import Entry, Floats, Sheet
from byhand.checking.readers.arrays import FLOATS
from byhand.checking.readers.tensors import read_tensors
from byhand.files.saved import MANIFEST, VALUES, manifest_of, not_a_trace, unexpected
from byhand.language import _

GIVEN = ("tokens", "source", "target")  # inputs of the trace; all other steps are claims
AS_IT_STANDS = "exact"  # the precision of numbers that were not computed in floats
_DECIMALS = re.compile(r"decimals ([0-9]{1,3})")


def read_folder(path: Path) -> Sheet:
    """The claims of a saved trace, with its text and its target."""
    manifest = _manifest(path)
    numbers = manifest["numbers"]
    stored = {entry.name: entry for entry in read_tensors(path / VALUES).entries}
    loss = manifest.get("loss")
    target = loss.get("target") if isinstance(loss, dict) else None
    return Sheet(
        str(path),
        tuple(_entries(path, manifest, stored)),
        text=manifest["text"],
        target=target if isinstance(target, str) else None,
        tokens=_ids(path, manifest["tokens"]),
        **_beside(path, manifest),
        precision=None if numbers in FLOATS.values() else AS_IT_STANDS,
    )


def _beside(path: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The source that an encoder read, and the kinds of tokens, where the trace has them."""
    found: dict[str, Any] = {}
    source, kinds = manifest.get("source"), manifest.get("segments")
    if isinstance(source, dict) and isinstance(source.get("tokens"), list):
        found["read_tokens"] = _ids(path, source["tokens"])
    if isinstance(kinds, list) and all(type(kind) is int for kind in kinds):
        found["kinds"] = np.array(kinds, dtype=np.int64)
    return found


def _entries(
    path: Path, manifest: Mapping[str, Any], stored: Mapping[str, Entry]
) -> Iterator[Entry]:
    for step in manifest["steps"]:
        name = step.get("address") if isinstance(step, dict) else None
        if not isinstance(name, str):
            raise not_a_trace(path / MANIFEST, _("a step without an address"))
        address = step.get("byhand", name)
        if address in GIVEN or step.get("dtype") is None:  # an input, or without numbers
            continue
        if name not in stored:
            raise not_a_trace(path / VALUES, _("{name} is missing").format(name=name))
        entry = stored[name]
        yield _entry(str(address), entry, manifest["numbers"], stored.get(str(step.get("radius"))))


def _entry(address: str, entry: Entry, numbers: str, radius: Entry | None) -> Entry:
    values, claimed, format = entry.values, entry.claimed, entry.format
    if address == "next":
        claimed = None if np.all(values >= 0) else np.asarray(values >= 0)  # -1: undecided
        return Entry(address, values, entry.source, 0.0, claimed, format)
    if numbers in FLOATS.values():
        return Entry(address, values, entry.source, 0.0, claimed, format)
    return Entry(address, values, entry.source, _slack(values, numbers, radius), claimed, format)


def _slack(values: npt.NDArray[Any], numbers: str, radius: Entry | None) -> Floats | float:
    """How far a number of the trace may be from its stored float."""
    finite = np.where(np.isfinite(values), np.abs(values.astype(np.float64)), 0.0)
    stored: Floats = 0.5 * np.spacing(finite)
    if radius is not None:
        return np.nextafter(radius.values.astype(np.float64) + stored, np.inf)
    if decimals := _DECIMALS.fullmatch(numbers):
        return stored + 0.5 * 10.0 ** -int(decimals[1]) * (1 + 1e-15)
    return stored


def _manifest(path: Path) -> Mapping[str, Any]:
    """The manifest of a trace of this version; an InputError for any other file."""
    manifest = manifest_of(path)
    for key, kind in {"numbers": str, "text": str, "tokens": list, "steps": list}.items():
        if not isinstance(manifest.get(key), kind):
            raise unexpected(path / MANIFEST, key)
    return manifest


def _ids(path: Path, tokens: list[Any]) -> npt.NDArray[np.int64]:
    ids = [token.get("id") if isinstance(token, dict) else None for token in tokens]
    if not ids or not all(isinstance(id, int) and abs(id) < 2**31 for id in ids):
        raise unexpected(path / MANIFEST, "tokens")
    return np.asarray(ids, dtype=np.int64)
