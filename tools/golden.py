"""The golden files that byhand ships, worked out in exact numbers.

    python tools/golden.py           # after a change to a model or to the format: a minute
    python tools/golden.py --check   # says whether they are up to date, changes nothing

One folder for each model of SHIPPED, with its own text.  The values as text are left out, since
they are ten times as large as everything else; `byhand trace MODEL --exact --out DIR` writes them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from byhand.evaluate import trace
from byhand.golden import save
from byhand.models import open_model
from byhand.numbers.exact import Exact

SHIPPED = ("minigpt-init",)
FOLDER = Path(__file__).resolve().parent.parent / "src" / "byhand" / "models" / "golden"


def write(name: str, folder: Path) -> None:
    """Writes the golden files of a built-in model into a folder."""
    print(f"{name}: working out …", file=sys.stderr)
    save(trace(open_model(name), numbers=Exact()), folder, exact_text=False)


def differing(name: str) -> list[str]:
    """The files whose bytes would change."""
    with TemporaryDirectory() as place:
        draft = Path(place) / name
        write(name, draft)
        found = {path.name for folder in (draft, FOLDER / name) for path in folder.glob("*")}
        return [
            file for file in sorted(found) if _bytes(draft / file) != _bytes(FOLDER / name / file)
        ]


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def main() -> int:
    if "--check" not in sys.argv[1:]:
        for name in SHIPPED:
            write(name, FOLDER / name)
        return 0
    stale = [f"{name}/{file}" for name in SHIPPED for file in differing(name)]
    for path in stale:
        print(f"{path} is stale: run `make golden`")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
