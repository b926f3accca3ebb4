"""The ways in a plane: each position's lines from stop to stop, their marks and their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from html import escape
from itertools import pairwise
from math import degrees, hypot
from typing import TYPE_CHECKING

from byhand.document.media.html.label_places import Box, Segment, Spot, text_width
from byhand.document.media.html.plane_sheet import Sheet
from byhand.document.media.html.plane_words import end_label, kinds, subscript
from byhand.document.media.html.shapes import barb, bent, circle, line, mark, middle, pixel, xy
from byhand.document.words import token_label

if TYPE_CHECKING:
    from byhand.explaining.geometry import Path

SIZE = 12.5  # of letters
FEW = 6  # paths that are all drawn strongly
SHORT = 1.0  # pixels: a move that is not seen
BOW = 9.0  # how far a line is bent where another runs over the same points


class Ways:
    """The ways of all positions; where there are many, the last one is drawn strongly."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.points = [[sheet.at(*point) for point in path] for path in sheet.plane.points]
        count = len(self.points)
        self.strong = [count <= FEW or i == count - 1 for i in range(count)]

    @cached_property
    def _segments(self) -> list[list[tuple[Segment, float, str]]]:
        """Each way's lines: how far bent, where several run over one another, and their kind."""
        used: Counter[frozenset[Spot]] = Counter()
        for way in self.points:
            for one, two in pairwise(way):
                used[frozenset((pixel(one), pixel(two)))] += 1
        there: Counter[tuple[Spot, Spot]] = Counter()
        found: list[list[tuple[Segment, float, str]]] = []
        for path, way in zip(self.sheet.geometry.paths, self.points, strict=True):
            found.append([])
            for stop, one, two in zip(path.stops[1:], way, way[1:], strict=False):
                bow, key = 0.0, (pixel(one), pixel(two))
                if hypot(two[0] - one[0], two[1] - one[1]) < SHORT:
                    continue
                if used[frozenset(key)] > 1:
                    bow = BOW * (1 + there[key])
                    there[key] += 1
                found[-1].append(((one, two), bow, stop.kind))
        return found

    def lines(self) -> Iterator[str]:
        for segments, strong in zip(self._segments, self.strong, strict=True):
            if not segments:
                continue
            path = "".join(bent(segment, bow) for segment, bow, _kind in segments)
            barbs = "".join(barb(segment, bow) for segment, bow, _kind in segments if strong)
            for (one, two), bow, _kind in segments:
                past = middle((one, two), bow)
                self.sheet.room.lines += [(one, past), (past, two)]
            group = "" if strong else ' class="faint"'
            yield f'<g{group}><path class="halo" d="{path}"/><path class="way" d="{path}"/>'
            yield f'<path class="barb" d="{barbs}"/></g>' if barbs else "</g>"

    def marks(self) -> Iterator[str]:
        for path, way, strong in zip(
            self.sheet.geometry.paths, self.points, self.strong, strict=True
        ):
            drawn = "".join(
                mark(stop.kind, place) for stop, place in zip(path.stops, way, strict=True)
            )
            ring = ""
            if path.last is not None:
                led = path.last.leads
                hue = "" if led is None or led.id is None else f" c{self.sheet.hue(led.id)}"
                ring = f'<circle class="ring{hue}" {circle(way[-1], 8)}/>'
            group = "" if strong else ' class="faint"'
            yield f"<g{group}>{drawn}{ring}</g>"

    def take_marks(self) -> None:
        for path, way, strong in zip(
            self.sheet.geometry.paths, self.points, self.strong, strict=True
        ):
            for i, place in enumerate(way):
                last = path.last is not None and i == len(way) - 1
                if strong or last:
                    self.sheet.room.take([Box.around(place, 18 if last else 9, 18 if last else 9)])

    def _together(self, places: Sequence[Spot | None], told: Sequence[str]) -> list[list[int]]:
        """The paths whose points lie over each other and would be labelled alike."""
        groups: dict[tuple[Spot, str], list[int]] = {}
        for i, (place, text) in enumerate(zip(places, told, strict=True)):
            if place is not None:
                groups.setdefault((pixel(place), text), []).append(i)
        return list(groups.values())

    def end_labels(self) -> Iterator[str]:
        """Where a way ends: whose it is and what is predicted there."""
        paths = self.sheet.geometry.paths
        ends = [
            way[-1] if way and path.last is not None else None
            for path, way in zip(paths, self.points, strict=True)
        ]
        told = [end_label(path, self.sheet.geometry) for path in paths]
        groups = self._together(ends, told)
        for group in sorted(groups, key=lambda group: -max(group)):  # the last position first
            who = [paths[i] for i in group]
            if any(self.strong[i] for i in group):
                yield from self._label(ends[group[0]], who, told[group[0]], "strong", 13.5, 10)
            else:  # one of many: only where there is room close by
                yield from self._label(ends[group[0]], who, told[group[0]], "", 11.5, 9, rings=2)

    def start_labels(self) -> Iterator[str]:
        starts = [way[0] if way else None for way in self.points]
        groups = self._together(starts, [""] * len(starts))
        for group in sorted(groups, key=lambda group: -max(group)):
            if any(self.strong[i] for i in group):
                who = [self.sheet.geometry.paths[i] for i in group]
                yield from self._label(starts[group[0]], who, "", "", SIZE, 6)

    def _label(
        self,
        at: Spot | None,
        paths: Sequence[Path],
        more: str,
        kind: str,
        size: float,
        distance: float,
        rings: int = 4,
    ) -> Iterator[str]:
        if at is None:
            return
        shown = list(paths)[-3:]
        plain = (
            ", ".join(token_label(path.token) + "0" * len(str(path.position)) for path in shown)
            + more
        )
        place = self.sheet.room.beside(at, text_width(plain, size) + 2, size + 2, distance, rings)
        if place is None:
            return
        text = ", ".join(subscript(token_label(path.token), str(path.position)) for path in shown)
        if hypot(place[0] - at[0], place[1] - at[1]) > text_width(plain, size) / 2 + 26:
            yield f'<path class="leader" d="{line(at, place)}"/>'
        yield (
            f'<text class="label middle {kind}" {xy(place)}>'
            f"{'… ' if len(paths) > 3 else ''}{text}{escape(more)}</text>"
        )

    def trip_labels(self) -> Iterator[str]:
        """What a line is, along it, where there is room: else its mark and the legend say so."""
        words = kinds(self.sheet.geometry)
        outermost: dict[tuple[Spot, Spot, str], tuple[Segment, float, str]] = {}
        for segments, strong in zip(self._segments, self.strong, strict=True):
            for segment, bow, kind in segments if strong else ():
                outermost[(pixel(segment[0]), pixel(segment[1]), kind)] = segment, bow, kind
        for segment, bow, kind in outermost.values():
            text = words[kind]
            found = self.sheet.room.along(segment, text_width(text, 11), 11, bow)
            if found is not None:
                place, slope = found
                yield (
                    f'<text class="label trip middle" transform="translate({place[0]:.1f}'
                    f' {place[1]:.1f}) rotate({degrees(slope):.1f})">{escape(text)}</text>'
                )
