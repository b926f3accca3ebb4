"""Readers of claims: files, mappings and captures become sheets of named arrays.

    text_files      YAML and JSON: of which kind    handwriting  what people write
    rows            CSV and spreadsheets            arrays    what all arrays share
    numerals        one number as people write it   tensors   safetensors and npz
    printed_floats  floats that a program printed   folder    what `byhand trace --out` writes
    eval_callback   what llama.cpp prints           binaries  .npy files, and raw binaries
    polygraphy      its JSON, arrays in base64      llm_c     its debug state
    class_folder    worksheets of a class

Nothing here knows a model: `matches` finds the step of each name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from byhand.checking.claims import Sheet
from byhand.checking.readers import class_folder
from byhand.errors import InputError, ModelFileError, UsageError
from byhand.language import _
from byhand.tracing import Trace

if TYPE_CHECKING:
    from byhand.capturing import Capture


def read_claims(source: str | Path | Mapping[str, Any] | Capture) -> Sheet:
    """The sheet of a claims file, of a mapping from names to arrays, or of a capture.

    Files are YAML, JSON, CSV, xlsx, npz or safetensors, or the folder of a saved trace.  An
    InputError says what is wrong, and where.
    """
    from byhand.checking.readers.handwriting import as_claims_error

    try:
        if isinstance(source, (str, Path)):
            return _read_path(Path(source))
        if hasattr(source, "sheet"):
            found = source.sheet()
            assert isinstance(found, Sheet)
            return found
        if isinstance(source, Trace):  # as its golden files say it: the floats of a step say less
            with TemporaryDirectory() as folder:
                source.save(folder)
                return _read_path(Path(folder))
        if isinstance(source, Mapping):
            from byhand.checking.readers.arrays import sheet_of_mapping

            return sheet_of_mapping(source, _("claims"))
    except ModelFileError as error:
        raise as_claims_error(error) from None
    raise UsageError(
        _("these are not claims"),
        expected=_("a file, a mapping from names to arrays, or a capture"),
        found=type(source).__name__,
    )


def read_sheets(source: str | Path | Mapping[str, Any] | Capture) -> list[Sheet]:
    """The sheets of a source: of a folder of worksheets all, of anything else one."""
    if not isinstance(source, (str, Path)) or not _is_class(Path(source)):
        return [read_claims(source)]
    found = []
    for path in class_folder.sheets_in(Path(source)):
        sheet = read_claims(path)
        if not class_folder.is_nobodys(sheet, path):
            label = sheet.label or class_folder.student_of(path.stem)
            found.append(replace(sheet, label=label))
    if not found:
        raise InputError(_("the folder has no sheet with a name or an answer"), where=str(source))
    return found


def _is_class(path: Path) -> bool:
    """Whether a path is a folder of worksheets: no saved trace, and no arrays in it."""
    from byhand.files.saved import MANIFEST

    try:
        if not path.is_dir() or (path / MANIFEST).exists():
            return False
        return bool(class_folder.sheets_in(path)) and next(path.rglob("*.npy"), None) is None
    except (OSError, ValueError):  # too long a name, or a folder that cannot be read
        return False


def _read_path(path: Path) -> Sheet:
    try:
        there, folder, plain = path.exists(), path.is_dir(), path.is_file()
    except (OSError, ValueError):  # too long a name, or a NUL in it
        there = folder = plain = False
    if not there:
        raise InputError(
            _("there is no file {name}").format(name=repr(str(path)[:80])),
            expected=_("a file of claims: {endings}").format(endings=", ".join(READERS)),
        )
    if folder:
        return _read_folder(path)
    if not plain:  # a pipe may never end
        raise InputError(
            _("claims are read from files"),
            where=str(path),
            expected=_("a file"),
            found=_("a pipe or a device"),
        )
    read = READERS.get(path.suffix.lower())
    if read is None:
        from byhand.checking.readers.llm_c import is_state, read_state

        if is_state(path):
            return read_state(path)
        hint = None
        if path.suffix == ".npy":
            hint = _("an array by itself has no name: save it with numpy.savez")
        elif path.suffix in (".pt", ".pth", ".bin", ".pkl", ".pickle"):
            hint = _("nothing is unpickled: save the tensors as safetensors or npz")
        raise InputError(
            _("claims are not read from such a file"),
            where=str(path),
            expected=", ".join(READERS),
            found=path.suffix or _("no ending"),
            hint=hint,
        )
    module, function = read  # imported on first use
    sheet: Sheet = getattr(import_module(f"{__name__}.{module}"), function)(path)
    return sheet


def _read_folder(path: Path) -> Sheet:
    """A saved trace, or else a folder of .npy files."""
    from byhand.checking.readers.binaries import read_npy_folder
    from byhand.checking.readers.folder import read_folder
    from byhand.files.saved import MANIFEST

    if not (path / MANIFEST).is_file() and (found := read_npy_folder(path)) is not None:
        return found
    return read_folder(path)


READERS: Mapping[str, tuple[str, str]] = {  # file ending → module here, and its function
    ".yaml": ("text_files", "read_text"),
    ".yml": ("text_files", "read_text"),
    ".json": ("text_files", "read_text"),
    ".csv": ("rows", "read_csv"),
    ".xlsx": ("rows", "read_spreadsheet"),
    ".txt": ("eval_callback", "read_eval_callback"),
    ".log": ("eval_callback", "read_eval_callback"),
    ".npz": ("tensors", "read_zipped"),
    ".safetensors": ("tensors", "read_tensors"),
}

__all__ = ["READERS", "read_claims", "read_sheets"]
