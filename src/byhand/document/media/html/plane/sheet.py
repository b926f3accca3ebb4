"""The sheet of a plane: the places of points, token colours, and labels.

Places for a label are tried in turn near its point; a place that would cover another label is
rejected.  A label without room is left out: the caller decides whether a legend names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import atan2, cos, hypot, pi, sin

from byhand.document.media.outlines import Segment, distance, sides, within
from byhand.document.parts.drawn import Drawing, Spot

WIDE = 460  # of the drawing; with letters 12 high it fits a phone
LEFT, RIGHT, TOP, BELOW = 36, 12, 12, 46  # around the frame
HUES = 8
SIGN = 0.58  # width of a sign, in sizes of the letters
RINGS = (1.0, 1.7, 2.6, 3.8)  # distances at which a label is tried, in units of its least distance
COMPASS = (0, 7, 1, 6, 2, 5, 3, 4)  # eighths of a turn: right first, left last
CROSSED = 12.0  # cost of covering a line, in pixels of distance
CLOSE = 2.5  # room between labels


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle along the axes."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, centre: Spot, width: float, height: float) -> Box:
        """The box of a size around a point."""
        x, y = centre
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    @property
    def corners(self) -> tuple[Spot, ...]:
        """Clockwise from the upper left."""
        return (
            (self.left, self.top),
            (self.right, self.top),
            (self.right, self.bottom),
            (self.left, self.bottom),
        )

    def covers(self, other: Box, room: float = 0.0) -> bool:
        """Whether two boxes overlap, or are nearer than `room`."""
        return (
            self.left < other.right + room
            and other.left < self.right + room
            and self.top < other.bottom + room
            and other.top < self.bottom + room
        )

    def inside(self, other: Box) -> bool:
        """Whether it lies wholly in another."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )

    def crossed(self, segment: Segment) -> bool:
        """Whether a line runs through the rectangle."""
        (x, y), (a, b) = segment
        low, high = 0.0, 1.0
        for start, step, least, most in (
            (x, a - x, self.left, self.right),
            (y, b - y, self.top, self.bottom),
        ):
            if abs(step) < 1e-12:
                if not least <= start <= most:
                    return False
                continue
            one, two = sorted(((least - start) / step, (most - start) / step))
            low, high = max(low, one), min(high, two)
        return low < high


def text_width(text: str, size: float) -> float:
    """The approximate width of a text."""
    return len(text) * size * SIGN


@dataclass
class Room:
    """The free room of a drawing."""

    whole: Box
    taken: list[Box] = field(default_factory=list)
    lines: list[Segment] = field(default_factory=list)

    def take(self, boxes: Iterable[Box]) -> None:
        """Takes the room of some boxes."""
        self.taken.extend(boxes)

    def free(self, box: Box) -> bool:
        """Whether a box lies inside and covers nothing that is taken."""
        return box.inside(self.whole) and not any(box.covers(other, CLOSE) for other in self.taken)

    def beside(
        self, at: Spot, width: float, height: float, distance: float, rings: int = len(RINGS)
    ) -> Spot | None:
        """The centre of a label near a point, which is then taken; None where there is no room."""
        best: tuple[float, Box] | None = None
        for ring in RINGS[:rings]:
            for rank, eighth in enumerate(COMPASS):
                turn = eighth * pi / 4
                across, up = cos(turn), sin(turn)
                far = distance * ring
                centre = (
                    at[0] + across * (far + width / 2),
                    at[1] - up * (far + height / 2),
                )
                box = Box.around(centre, width, height)
                if not self.free(box):
                    continue
                cost = far + rank * 0.4 + CROSSED * sum(map(box.crossed, self.lines))
                if best is None or cost < best[0]:
                    best = cost, box
        if best is None:
            return None
        self.taken.append(best[1])
        return (best[1].left + best[1].right) / 2, (best[1].top + best[1].bottom) / 2

    def along(
        self, segment: Segment, width: float, height: float, bow: float = 0.0
    ) -> tuple[Spot, float] | None:
        """The centre of a label that runs along a line, beside it, and the line's slope.

        The slope is in radians, between -π/2 and π/2, so that no label is upside down.  A line with
        a `bow` has its label outside the bend.
        """
        onward = segment[0][0] <= segment[1][0]
        (x, y), (a, b) = segment if onward else segment[::-1]
        long = hypot(a - x, b - y)
        if long < width + 2 * height:
            return None
        step = ((a - x) / long, (b - y) / long)
        for share in (0.5, 0.4, 0.6, 0.32, 0.68):
            for side in (-1, 1) if not bow else (-1,) if onward else (1,):
                off = side * (bow + height * 0.95)
                centre = (
                    x + (a - x) * share - step[1] * off,
                    y + (b - y) * share + step[0] * off,
                )
                beads = self._beads(centre, step, width, height)
                within = share * long > width / 2 + 4 and (1 - share) * long > width / 2 + 4
                if within and all(map(self.free, beads)):
                    if any(bead.crossed(line) for bead in beads for line in self.lines):
                        continue
                    self.take(beads)
                    return centre, atan2(step[1], step[0])
        return None

    def _beads(self, centre: Spot, step: Spot, width: float, height: float) -> list[Box]:
        """A slanting label as a string of small squares."""
        count = max(1, round(width / height))
        size = height * 0.8
        return [
            Box.around(
                (
                    centre[0] + step[0] * width * ((i + 0.5) / count - 0.5),
                    centre[1] + step[1] * width * ((i + 0.5) / count - 0.5),
                ),
                size,
                size,
            )
            for i in range(count)
        ]


def roomiest(outline: Sequence[Spot], room: Room, width: float, height: float) -> Spot | None:
    """A place well inside an outline, away from its sides, from lines and from taken room."""
    left, right = min(x for x, _y in outline), max(x for x, _y in outline)
    top, bottom = min(y for _x, y in outline), max(y for _x, y in outline)
    best: tuple[float, Spot] | None = None
    steps = 18
    for i in range(1, steps):
        for j in range(1, steps):
            at = (left + (right - left) * i / steps, top + (bottom - top) * j / steps)
            if not within(at, outline):
                continue
            box = Box.around(at, width, height)
            if not room.free(box) or not all(within(c, outline) for c in box.corners):
                continue
            apart = min(distance(at, side) for side in sides(outline))
            apart = min([apart, *(distance(at, line) + 6 for line in room.lines)])
            if best is None or apart > best[0]:
                best = apart, at
    if best is None or best[0] < height / 2:
        return None
    room.take([Box.around(best[1], width, height)])
    return best[1]


@dataclass
class Sheet:
    """One figure being drawn."""

    part: Drawing
    room: Room = field(init=False)

    def __post_init__(self) -> None:
        across, up = self.part.size
        self.name = self.part.name
        self.scale = (WIDE - LEFT - RIGHT) / across
        self.high = up * self.scale
        self.box = Box(LEFT, TOP, WIDE - RIGHT, TOP + self.high)
        self.room = Room(Box(LEFT + 2, TOP + 2, WIDE - RIGHT - 2, TOP + self.high - 2))

    def at(self, x: float, y: float) -> Spot:
        """From the plane to the drawing."""
        left, top = self.part.lower[0], self.part.upper[1]
        return LEFT + (x - left) * self.scale, TOP + (top - y) * self.scale


def hue(colour: int) -> str:
    """The class of a place in the palette."""
    return f"c{colour % HUES}"
