"""The paper a plane is drawn on: where points lie on it, what is taken, and the tokens' colours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from byhand.document.media.html.label_places import Box, Room, Spot

if TYPE_CHECKING:
    from byhand.explaining.geometry import Geometry
    from byhand.explaining.planes import Plane

WIDE = 460  # of the drawing; letters are about 12 high, so it can be shown on a telephone
LEFT, RIGHT, TOP, BELOW = 36, 12, 12, 46  # around the frame
HUES = 8


@dataclass
class Sheet:
    """One figure in the making; `name` is what its ids begin with."""

    geometry: Geometry
    plane: Plane
    name: str
    room: Room = field(init=False)

    def __post_init__(self) -> None:
        frame = self.plane.frame
        self.scale = (WIDE - LEFT - RIGHT) / float(frame.width)
        self.high = float(frame.height) * self.scale
        self.box = Box(LEFT, TOP, WIDE - RIGHT, TOP + self.high)
        self.room = Room(Box(LEFT + 2, TOP + 2, WIDE - RIGHT - 2, TOP + self.high - 2))

    def at(self, x: float, y: float) -> Spot:
        """From the plane to the drawing."""
        frame = self.plane.frame
        return (
            LEFT + (x - float(frame.left)) * self.scale,
            TOP + (float(frame.top) - y) * self.scale,
        )

    def hue(self, token: int) -> int:
        """Directions have the colours in their order; what has none of its own comes after."""
        ids = [each.id for each in self.geometry.directions]
        return (ids.index(token) if token in ids else token) % HUES
