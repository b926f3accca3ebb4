"""The files that a command is to write beside what it prints."""

from __future__ import annotations

from pathlib import Path

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
