"""A griffe extension: examples in docstrings (`>>> …`) become blocks of Python in the API page."""

from __future__ import annotations

from typing import Any

import griffe


class DoctestBlocks(griffe.Extension):
    """Puts a fence around each run of doctest lines."""

    def on_instance(self, *, obj: griffe.Object, **_more: Any) -> None:
        """Fences the examples in the docstring of each object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with a fence around each paragraph that starts with `>>>`."""
    paragraphs = text.split("\n\n")
    found = [f"```pycon\n{one}\n```" if one.startswith(">>>") else one for one in paragraphs]
    return "\n\n".join(found)
