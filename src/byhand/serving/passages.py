"""The passages of a pass: their outline, one of them in full, and the map with links to them.

The list of passages needs no numbers, so the page can show all of them and ask for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from byhand.document.compose.book import slug_of, tell
from byhand.document.compose.book.passages import topic_title
from byhand.document.compose.book.topics import Topic
from byhand.document.media.html import served
from byhand.plan import WEIGHT
from byhand.serving.worked_state import Pass


def passage_id(found: Pass, topic: Topic) -> str:
    """The id of a passage, the same as in the book."""
    return f"{slug_of(found.edition, topic)}-{topic.id}"


def outline(found: Pass) -> list[dict[str, Any]]:
    """The passages in the order of the pass, without their contents."""
    return [
        {
            "id": passage_id(found, topic),
            "page": slug_of(found.edition, topic),
            "title": topic_title(found.edition, topic),
            "steps": list(topic.addresses),
            "nodes": list(found.spine.lit(topic.addresses)),
            "layer": topic.layer,
        }
        for topic in found.topics
    ]


def map_of(found: Pass, lit: tuple[str, ...]) -> str:
    """The whole pass as a drawing with some steps marked; each station links to its passage."""
    showing = found.edition.showing
    links = {
        address: f"#{passage_id(found, topic)}"
        for topic in found.topics
        for address in topic.addresses
    }
    return served.map_of(found.spine, showing.labels, links, lit, decimals=found.by_decimals)


def topic_named(found: Pass, name: str | None) -> Topic:
    """The topic with this id, or with this address in it; otherwise the first topic.

    After a change of model or architecture, the passage in view may not exist.
    """
    for topic in found.topics:
        if passage_id(found, topic) == name:
            return topic
    step = None if name is None else found.trace.plan.known.get(name.partition("[")[0])
    return found.topics[0] if step is None else found.topic_of[step]


def passage_data(found: Pass, topic: Topic) -> dict[str, Any]:
    """One passage as HTML, with the passages that it reads and those that read it."""
    told = tell(found.edition, topic)
    return {
        "id": passage_id(found, topic),
        "title": told.title,
        "html": served.passage(told, decimals=found.by_decimals),
        "reads": [passage_id(found, other) for other in _read(found, topic)],
        "read_by": [passage_id(found, other) for other in _readers(found, topic)],
        "steps": [
            {
                "address": step.address,
                "reads": list(step.reads),
                "read_by": [s.address for s in found.trace.plan if step.address in s.reads],
                "formula": step.formula,
                "shape": list(step.shape),
            }
            for step in topic.steps
        ],
    }


def _read(found: Pass, topic: Topic) -> list[Topic]:
    reads = [read for step in topic.steps for read in step.reads if not read.startswith(WEIGHT)]
    return _others(topic, [found.topic_of[read] for read in reads if read in found.topic_of])


def _readers(found: Pass, topic: Topic) -> list[Topic]:
    own = set(topic.addresses)
    readers = (step.address for step in found.trace.plan if own.intersection(step.reads))
    return _others(topic, [found.topic_of[reader] for reader in readers])


def _others(topic: Topic, some: Sequence[Topic]) -> list[Topic]:
    """The topics, each once, without the topic itself."""
    return list({other.id: other for other in some if other.id != topic.id}.values())
