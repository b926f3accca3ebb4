"""A folder of worksheets: one file of answers for each student, named by the sheet or by its file.

The key that byhand writes beside the sheets is nobody's, and so is an empty sheet without a name.
"""

from __future__ import annotations

from pathlib import Path

from byhand.checking.claims import Sheet

ENDINGS = (".yaml", ".yml", ".json", ".csv", ".xlsx")
KEY, STEM = "worksheet-key", "worksheet"


def sheets_in(folder: Path) -> tuple[Path, ...]:
    """The files of answers in a folder, by name; none where it holds something else."""
    return tuple(
        sorted(
            path
            for path in folder.iterdir()
            if path.suffix.lower() in ENDINGS
            and path.is_file()
            and path.stem != KEY
            and not path.name.startswith((".", "~"))
        )
    )


def student_of(stem: str) -> str:
    """The student that a file is named after: ana-maria of worksheet-ana-maria.

    >>> student_of("worksheet-ana-maria"), student_of("ben")
    ('ana-maria', 'ben')
    """
    return stem.removeprefix(f"{STEM}-")


def is_nobodys(sheet: Sheet, path: Path) -> bool:
    """Whether a sheet has no name and no answer: the copy that was handed out."""
    own = [entry for entry in sheet.entries if not entry.given]
    filled = any(entry.claimed is None or bool(entry.claimed.any()) for entry in own)
    return path.stem == STEM and sheet.label is None and not filled
