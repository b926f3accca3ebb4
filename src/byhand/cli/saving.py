"""Files that a command writes beside its output."""

from __future__ import annotations

from pathlib import Path

from byhand.errors import OutputError
from byhand.language import _


def can_be_written(path: str) -> Path:
    """The file to write; an OutputError before the work starts."""
    target = Path(path)
    try:
        folder, there = target.is_dir(), target.parent.is_dir()
    except (OSError, ValueError):  # too long a name
        folder = there = False
    if "\0" in path:  # no file system allows it, and not every call above refuses it
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
