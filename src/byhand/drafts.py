"""Files and folders that appear whole or not at all: written beside their place, then renamed.

`write_whole` writes one file, `write_all` several, `folder_draft` gives a folder to write into.
Whoever reads meanwhile sees the old one or the new.
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
    """Writes a file whole, or leaves all as it was; an OutputError says why it cannot be.

    `content` is what to write, or writes it to the path it gets.  A link stays one, and a pipe or
    a device (/dev/stdout) is written into: renaming would put a file in its place.
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
    """A path beside the target; what is written there takes its place, or is gone after an error.

    What the system says against it is raised as it is.  `name` is the draft's; without one it has
    a name that nothing else has.
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
    """A folder to write into; at the end it takes the target's place, or is gone after an error.

    What is at the target stays there until then; only an empty folder, or what is `replaceable`,
    makes room.
    """
    if target.is_symlink():  # what it leads to is replaced, not the link
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
    """What the system says against writing becomes an OutputError."""
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
    """Renames the finished draft; what it replaces is moved aside first, and back if that fails."""
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
        if target.exists():  # else the old one stays aside rather than nowhere
            _remove(aside)


def _remove(folder: Path) -> None:
    """What is left of a folder goes, if there is anything."""
    if folder.exists():
        from shutil import rmtree  # only now: it brings half of the compressors along

        rmtree(folder, ignore_errors=True)
