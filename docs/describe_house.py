"""Writes the tables of docs/house.md: called by cog, from the first lines of the modules."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "byhand"
FLOW = "one direction of flow"  # the contract of pyproject.toml that orders the layers


def layers() -> None:
    """Every package and top-level module, from the top of the house to the bottom."""
    print("| | what is in it |")
    print("|---|---|")
    for layer in ordered_layers():
        for name in layer:
            folder = HOUSE / name
            print(_row(folder if folder.is_dir() else folder.with_suffix(".py")))


def rooms() -> None:
    """Every module of every package, package by package."""
    for package in packages():
        inside = [path for path in package.glob("*.py") if path.name != "__init__.py"]
        inside += [path.parent for path in package.glob("*/__init__.py")]
        print(f"### {dotted(package)}\n\n{first_line(package)}\n")
        if inside:
            print("| | what is in it |")
            print("|---|---|")
            for path in sorted(inside):
                print(_row(path))
            print()


def _row(path: Path) -> str:
    name = f"`{path.stem}`"
    if path.is_dir():
        name = f"[`{path.stem}/`](#{dotted(path).replace('.', '')})"
    return f"| {name} | {first_line(path)} |"


def dotted(package: Path) -> str:
    """The name of a package within byhand."""
    return ".".join(package.relative_to(HOUSE).parts)


def contracts() -> None:
    """The other contracts on imports, by their names."""
    for each in checked():
        if each["name"] != FLOW:
            print(f"- {each['name'][0].upper()}{each['name'][1:]}.")


def checked() -> list[dict[str, Any]]:
    """The contracts of pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


def ordered_layers() -> list[list[str]]:
    """The layers of the contract, from the top, each a list of names that stand side by side."""
    flow = next(one for one in checked() if one["name"] == FLOW)
    return [re.findall(r"\w+", layer) for layer in flow["layers"]]


def packages() -> Iterator[Path]:
    """Every package below byhand, in the order of the map: by name, each before those within."""
    for path in sorted(HOUSE.rglob("__init__.py"), key=lambda path: path.parent.parts):
        if path.parent != HOUSE:
            yield path.parent


def first_line(path: Path) -> str:
    """The first line of the docstring of a module or a package, which says what is in it."""
    source = path / "__init__.py" if path.is_dir() else path
    text = ast.get_docstring(ast.parse(source.read_text("utf-8"))) or ""
    return text.split("\n")[0].replace("|", "\\|")
