"""Files and folders that appear whole or not at all: written beside their place, then renamed.

`write_whole` writes one file, `write_all` several, `folder_draft` gives a folder to write into.  A
reader sees the old file or the new one, never a part.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from byhand.errors import OutputError
from byhand.language import _


def write_whole(
    path: Path, content: bytes | Callable[[Path], None], *, make_folder: bool = False
) -> Path:
    """Writes a file whole, or leaves everything as it was; an OutputError says why.

    `content` is the bytes to write, or a function that writes them to a path.  A link stays a link.
    A pipe or a device (/dev/stdout) is written into: renaming would put a file in its place.
    """
    with writing(path):
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes) and path.exists() and not path.is_file():
            with path.open("wb") as there:
                there.write(content)
            return path
    target = path.resolve() if path.is_symlink() else path
    with writing(target), draft_of(target) as draft:
        if isinstance(content, bytes):
            write_bytes(draft, content)
        else:
            content(draft)
    return path


def write_all(files: Mapping[str, bytes], folder: Path) -> tuple[Path, ...]:
    """Writes several files into a folder, each of them whole, and returns their paths."""
    return tuple(write_whole(folder / name, data, make_folder=True) for name, data in files.items())


@contextmanager
def draft_of(target: Path, name: str = "") -> Iterator[Path]:
    """A path beside the target; the file written there replaces the target, or is removed on error.

    An OSError is raised as it is.  `name` is the name of the draft; without it, the draft has a
    unique name.
    """
    draft = target.parent / (name or f".{target.name}-{token_hex(4)}")
    try:
        yield draft
        draft.replace(target)
    finally:
        _remove(draft)
        with suppress(OSError):
            draft.unlink()


@contextmanager
def folder_draft(target: Path, replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    """A folder to write into; at the end it replaces the target, or is removed on error.

    The target stays there until then.  Only an empty folder, or a `replaceable` one, is replaced.
    """
    if target.is_symlink():  # the link stays: its target is replaced
        target = target.resolve()
    draft = target.parent / f".{target.name}-{token_hex(4)}"
    try:
        with writing(target):
            _refuse_what_is_not_ours(target, replaceable)
            target.parent.mkdir(parents=True, exist_ok=True)
            draft.mkdir()
        yield draft
        with writing(target):
            _put_in_place(draft, target)
    finally:
        _remove(draft)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turns an OSError of the block into an OutputError."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            _("cannot be written"),
            where=str(target),
            found=error.strerror or str(error),
            hint=_("nothing was left there"),
        ) from None


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file and waits until it is on the disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _refuse_what_is_not_ours(target: Path, replaceable: Callable[[Path], bool]) -> None:
    empty = target.is_dir() and not any(target.iterdir())
    if not target.exists() or empty or replaceable(target):
        return
    raise OutputError(
        _("this is there already, and it is not a saved trace"),
        where=str(target),
        expected=_("a new folder, or a saved trace to replace"),
        hint=_("choose another folder"),
    )


def _put_in_place(draft: Path, target: Path) -> None:
    """Renames the finished draft; the old target is moved aside first, and back if that fails."""
    if not target.exists() or not any(target.iterdir()):
        draft.replace(target)
        return
    aside = draft.with_name(draft.name + ".old")
    try:
        target.rename(aside)
        draft.rename(target)
    except BaseException:
        if aside.exists() and not target.exists():
            aside.rename(target)
        raise
    finally:
        if target.exists():  # else the old target is kept aside
            _remove(aside)


def _remove(folder: Path) -> None:
    """Removes a folder with its contents, if it exists."""
    if folder.exists():
        from shutil import rmtree  # slow to import: it loads the compressors

        rmtree(folder, ignore_errors=True)
