"""Files that a command writes beside what it prints: there whole, or as they were."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex

from byhand.errors import OutputError
from byhand.language import _


def can_be_written(path: str) -> Path:
    """The file to write; an OutputError now rather than after long work."""
    target = Path(path)
    try:
        folder, there = target.is_dir(), target.parent.is_dir()
    except (OSError, ValueError):  # too long a name
        folder = there = False
    if "\0" in path:  # which no file system has, and which not every call above refuses
        raise OutputError(_("cannot be written"), where=repr(path), expected=_("a file"))
    if folder or not path:
        raise OutputError(
            _("cannot be written"), where=path, expected=_("a file"), found=_("a folder")
        )
    if not there:
        raise OutputError(
            _("cannot be written"),
            where=path,
            found=_("no such folder: {name}").format(name=target.parent),
        )
    return target


def save(path: Path, text: str) -> None:
    """Writes a file beside its place and renames it, so that nobody finds half of it.

    A link stays one, and a pipe or a device (/dev/stdout) is written into: renaming would put a
    file in its place.
    """
    from byhand.drafts import write_bytes, writing

    if path.exists() and not path.is_file():
        with writing(path), path.open("wb") as there:
            there.write(text.encode())
        return
    if path.is_symlink():
        path = path.resolve()
    draft = path.with_name(f".{path.name}-{token_hex(4)}")
    try:
        with writing(path):
            write_bytes(draft, text.encode())
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
