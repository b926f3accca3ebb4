"""The paths in a plane: each position's lines from stop to stop, their marks and names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from math import degrees, hypot

from byhand.document.media.html.markup import Markup, element, joined
from byhand.document.media.html.plane.shapes import (
    barb,
    bent,
    circle,
    line,
    mark,
    middle,
    path,
    pixel,
    text,
)
from byhand.document.media.html.plane.sheet import Box, Sheet, hue, text_width
from byhand.document.media.outlines import Segment
from byhand.document.parts.drawn import Spot, Way

SIZE = 12.5  # of letters
FEW = 6  # most paths that are all drawn strongly
SHORT = 1.0  # pixels: shorter moves are invisible
BOW = 9.0  # bend of a line where another has the same ends


class Ways:
    """The paths of all positions; if there are many, the last one is drawn strongly."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.points = [[sheet.at(*point) for _kind, point in way.stops] for way in sheet.part.ways]
        count = len(self.points)
        self.strong = [count <= FEW or i == count - 1 for i in range(count)]

    @cached_property
    def _segments(self) -> list[list[tuple[Segment, float, str]]]:
        """Each path's lines, their bend where several overlap, and their kind."""
        used: Counter[frozenset[Spot]] = Counter()
        for way in self.points:
            for one, two in pairwise(way):
                used[frozenset((pixel(one), pixel(two)))] += 1
        there: Counter[tuple[Spot, Spot]] = Counter()
        found: list[list[tuple[Segment, float, str]]] = []
        for own, way, _strong in self._each():
            found.append([])
            for (kind, _at), one, two in zip(own.stops[1:], way, way[1:], strict=False):
                bow, key = 0.0, (pixel(one), pixel(two))
                if hypot(two[0] - one[0], two[1] - one[1]) < SHORT:
                    continue
                if used[frozenset(key)] > 1:
                    bow = BOW * (1 + there[key])
                    there[key] += 1
                found[-1].append(((one, two), bow, kind))
        return found

    def lines(self) -> Iterator[Markup]:
        """The line of each path, which takes its room."""
        for segments, strong in zip(self._segments, self.strong, strict=True):
            if not segments:
                continue
            drawn = "".join(bent(segment, bow) for segment, bow, _kind in segments)
            barbs = "".join(barb(segment, bow) for segment, bow, _kind in segments if strong)
            for (one, two), bow, _kind in segments:
                past = middle((one, two), bow)
                self.sheet.room.lines += [(one, past), (past, two)]
            pointed = path("barb", barbs) if barbs else ""
            yield self._group(strong, path("halo", drawn), path("way", drawn), pointed)

    @staticmethod
    def _group(strong: bool, *drawn: str) -> Markup:
        return element("g", *drawn, class_=None if strong else "faint")

    def marks(self) -> Iterator[Markup]:
        """The signs of the stops, and a ring around each end."""
        for own, way, strong in self._each():
            drawn = [mark(kind, place) for (kind, _at), place in zip(own.stops, way, strict=True)]
            if own.whole:
                won = "" if own.colour is None else f" {hue(own.colour)}"
                drawn.append(circle(f"ring{won}", way[-1], 8))
            yield self._group(strong, *drawn)

    def _each(self) -> Iterator[tuple[Way, list[Spot], bool]]:
        return zip(self.sheet.part.ways, self.points, self.strong, strict=True)

    def take_marks(self) -> None:
        """Takes the room of the marks."""
        for own, way, strong in self._each():
            for i, place in enumerate(way):
                last = own.whole and i == len(way) - 1
                if strong or last:
                    size = 18 if last else 9
                    self.sheet.room.take([Box.around(place, size, size)])

    def _together(self, places: Sequence[Spot | None], told: Sequence[str]) -> list[list[int]]:
        """The paths whose points coincide and would have the same label."""
        groups: dict[tuple[Spot, str], list[int]] = {}
        for i, (place, said) in enumerate(zip(places, told, strict=True)):
            if place is not None:
                groups.setdefault((pixel(place), said), []).append(i)
        return list(groups.values())

    def end_labels(self) -> Iterator[Markup]:
        """Where a way ends: whose it is and what is predicted there."""
        paths = self.sheet.part.ways
        ends = [
            way[-1] if way and own.whole else None
            for own, way in zip(paths, self.points, strict=True)
        ]
        told = [own.end for own in paths]
        groups = self._together(ends, told)
        for group in sorted(groups, key=lambda group: -max(group)):  # the last position first
            who = [paths[i] for i in group]
            if any(self.strong[i] for i in group):
                yield from self._label(ends[group[0]], who, told[group[0]], "strong", 13.5, 10)
            else:  # one of many: only if there is room close by
                yield from self._label(ends[group[0]], who, told[group[0]], "", 11.5, 9, rings=2)

    def start_labels(self) -> Iterator[Markup]:
        """The labels at the starts of paths: the position."""
        starts = [way[0] if way else None for way in self.points]
        groups = self._together(starts, [""] * len(starts))
        for group in sorted(groups, key=lambda group: -max(group)):
            if any(self.strong[i] for i in group):
                who = [self.sheet.part.ways[i] for i in group]
                yield from self._label(starts[group[0]], who, "", "", SIZE, 6)

    def _label(
        self,
        at: Spot | None,
        paths: Sequence[Way],
        more: str,
        kind: str,
        size: float,
        distance: float,
        rings: int = 4,
    ) -> Iterator[Markup]:
        if at is None:
            return
        shown = [(own.token, str(own.position)) for own in paths[-3:]]
        plain = ", ".join(name + "0" * len(below) for name, below in shown) + more
        place = self.sheet.room.beside(at, text_width(plain, size) + 2, size + 2, distance, rings)
        if place is None:
            return
        if hypot(place[0] - at[0], place[1] - at[1]) > text_width(plain, size) / 2 + 26:
            yield path("leader", line(at, place))
        named = joined((_subscript(*each) for each in shown), ", ")
        before = "… " if len(paths) > 3 else ""
        yield text(f"label middle {kind}", place, before, named, more)

    def trip_labels(self) -> Iterator[Markup]:
        """The name of a side-trip along its line, if there is room."""
        outermost: dict[tuple[Spot, Spot, str], tuple[Segment, float, str]] = {}
        for segments, strong in zip(self._segments, self.strong, strict=True):
            for segment, bow, kind in segments if strong else ():
                outermost[(pixel(segment[0]), pixel(segment[1]), kind)] = segment, bow, kind
        for segment, bow, kind in outermost.values():
            said = self.sheet.part.kinds[kind]
            found = self.sheet.room.along(segment, text_width(said, 11), 11, bow)
            if found is not None:
                (x, y), slope = found
                turned = f"translate({x:.1f} {y:.1f}) rotate({degrees(slope):.1f})"
                yield element("text", said, class_="label trip middle", transform=turned)


def _subscript(name: str, below: str) -> Markup:
    """A text with a subscript."""
    back = element("tspan", "\u200b", dy=-3.5)  # an empty character that restores the line's height
    return joined((name, element("tspan", below, class_="sub", dy=3.5), back))
