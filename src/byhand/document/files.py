"""Files that appear whole or not at all: whoever reads meanwhile sees the old one or the new."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex

from byhand.drafts import write_bytes, writing


def put_in_place(target: Path, data: bytes) -> Path:
    """Writes one file; an OutputError says why it cannot be."""
    draft = target.with_name(f".{target.name}-{token_hex(4)}")
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_bytes(draft, data)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    return target


def put_all(files: Mapping[str, bytes], folder: Path) -> tuple[Path, ...]:
    """Writes several files into a folder and returns their paths."""
    return tuple(put_in_place(folder / name, data) for name, data in files.items())
