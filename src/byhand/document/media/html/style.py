"""The style of a page: the palette as custom properties, then style sheets and scripts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from byhand.document import palette

_HERE = Path(__file__).parent


def style(*names: str) -> str:
    """The palette and the named sheets, as the text of one style element."""
    return colours() + "".join(map(text_of, names))


@cache
def text_of(name: str) -> str:
    """The text of one style sheet or script of this room."""
    return (_HERE / name).read_text("utf-8")


def colours() -> str:
    """The palette for a whole page: light, dark by the system's setting, and printed."""
    light, dark, printed = map(properties, (palette.LIGHT, palette.DARK, palette.PRINTED))
    return (
        f":root {{\n  color-scheme: light dark;\n  {light}\n}}\n"
        f"@media (prefers-color-scheme: dark) {{\n  :root {{ {dark} }}\n}}\n"
        f"@media print {{\n  :root {{ color-scheme: light; {printed} }}\n}}\n"
    )


def properties(colours: Mapping[str, str]) -> str:
    """The colours as custom properties, for a rule to hold."""
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())
