"""The museum as Markdown: a room after the other, each bug with its link and byhand's sentence."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.museum.catalogue import ROOMS
from benchmarks.museum.tour import Seen, recorded, totals

MOST_SAID = 2  # descriptions of a difference whose cause is not named


def page() -> str:
    """The totals, then every room."""
    results = recorded()
    return "\n".join([totals(results), "", *_rooms(results)]).rstrip()


def _rooms(results: list[Seen]) -> Iterator[str]:
    for room, about in ROOMS.items():
        own = [each for each in results if each.exhibit.room == room]
        if own:
            yield from (f"## {about.title}", "", about.says, "")
        for each in own:
            yield from _exhibit(each)


def _exhibit(each: Seen) -> Iterator[str]:
    exhibit = each.exhibit
    title = _escaped(exhibit.title.replace("`", ""))
    yield from (f"### {exhibit.name.replace('-', ' ').capitalize()}", "")
    yield from (f"[{exhibit.project}]({exhibit.link}), {exhibit.year}: {title}", "")
    yield from (exhibit.wrong, "")
    yield f"> `{each.first}` does not follow."
    if each.cause is not None:
        yield from (">", f"> {_sentence(each.cause)}", ">", f"> → {_escaped(each.change or '')}")
    else:
        for said in each.described[:MOST_SAID]:
            yield from (">", f"> {_sentence(said)}")
        yield from (">", "> (No cause is named.)")
    yield from ("", exhibit.lesson, "")


def _sentence(said: str) -> str:
    """With a capital and a full stop."""
    return f"{_escaped(said[:1].upper() + said[1:])}."


def _escaped(said: str) -> str:
    """Without characters that Markdown reads."""
    return "".join(f"\\{each}" if each in "*_<[]()`" else each for each in said)
