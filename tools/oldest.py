"""The lowest versions of byhand's dependencies that pyproject.toml allows, in pip's format.

`make test-oldest` installs these.  Packages for tests and site only stay at their usual versions.
A package without a lower bound is left to constraints.txt.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


def lowest() -> list[str]:
    """`click==8.1` for `click>=8.1`: of byhand itself and of all extras but `docs` and `test`."""
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [
        *project["dependencies"],
        *(one for key in extras if key not in ("docs", "test") for one in extras[key]),
    ]
    return sorted({one.replace(">=", "==") for one in needed if ">=" in one}, key=str.lower)


if __name__ == "__main__":
    print("\n".join(lowest()))
