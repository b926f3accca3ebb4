"""Folders of saved traces: the names of their files, and their manifest.

`golden` writes them and reads them back; `checking` reads them as claims.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from byhand.errors import InputError
from byhand.language import _

FORMAT, VERSION = "byhand trace", 1
MANIFEST, VALUES, EXACT = "manifest.json", "values.safetensors", "exact.json"
LARGEST_MANIFEST = 256 * 2**20  # bytes


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; an InputError if there is none."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise not_a_trace(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:  # broken JSON, or not text
        raise not_a_trace(path, str(error)) from None
    if not isinstance(data, dict):
        raise not_a_trace(path, _("not an object"))
    return data


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest of a trace of this version; an InputError for any other file."""
    manifest = _any_manifest(folder)
    said = manifest["format"], manifest.get("version")
    if said != (FORMAT, VERSION):
        raise InputError(
            _("this is not a saved trace that can be read"),
            where=str(folder / MANIFEST),
            expected=f"{FORMAT}, version {VERSION}",
            found=f"{said[0]}, version {said[1]}",
        )
    return manifest


def _any_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder, of any format and version."""
    path = folder / MANIFEST
    if path.is_file() and path.stat().st_size > LARGEST_MANIFEST:
        raise not_a_trace(path, _("a manifest that is too large"))
    manifest = read_json(path)
    if "format" not in manifest:
        raise not_a_trace(path, _("no format"))
    return manifest


def is_trace(folder: Path) -> bool:
    """Whether a folder holds a trace, of any version."""
    try:
        return bool(_any_manifest(folder)["format"] == FORMAT)
    except InputError:
        return False


def not_a_trace(path: Path, found: str) -> InputError:
    """The error for a file that is not what byhand writes."""
    return InputError(
        _("this is not a saved trace"),
        where=str(path),
        expected=_("a folder written by byhand trace --out"),
        found=found,
    )


def unexpected(path: Path, key: str) -> InputError:
    """The error for a key that is missing or has an unexpected value."""
    return not_a_trace(path, _("{key} is missing, or something else").format(key=key))
