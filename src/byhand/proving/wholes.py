"""Whole numbers over a region: arithmetic that keeps what is the same for all texts of it.

`Range` is a linear form of variables.  Python's own operators work on it, so that one function of
the variables serves for single texts and for regions.  A comparison, a quotient or a remainder
that is not the same for all texts raises `Varies`.
"""

from __future__ import annotations

from byhand.proving.domain import Region, Whole


class Varies(Exception):
    """Not the same for all texts of a region; `names` are the variables it depends on, the most
    important first."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.names = names


def ranges_of(region: Region) -> dict[str, Whole]:
    """Every variable of a region as a number to reckon with."""
    return {name: Whole(0, ((name, 1),)) for name in region.allowed}
