"""Many layers on one page: some told in full, those between them together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from byhand.document.book import Passage
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.passages import claim_remarks, remarks_of
from byhand.document.compose.book.strips import near, statistics
from byhand.document.compose.book.topics import Topic
from byhand.document.parts import LeftOut, Part
from byhand.language import _

Tell = Callable[[Edition, Topic], Passage]


def folded(
    edition: Edition,
    some: Sequence[Topic],
    slug: str,
    endings: tuple[str, ...],
    tell: Tell,
) -> Iterator[Passage]:
    """Each topic of a layer that is shown; the others in one passage a run of layers.

    `endings` end the addresses whose statistics stand for a layer.
    """
    shown = set(edition.layers_shown)
    for told, run in groupby(some, key=lambda topic: topic.layer in shown):
        topics = list(run)
        if told:
            yield from (tell(edition, topic) for topic in topics)
        else:
            yield _together(edition, topics, slug, endings)


def _together(
    edition: Edition, topics: Sequence[Topic], slug: str, endings: tuple[str, ...]
) -> Passage:
    layers = sorted({topic.layer for topic in topics if topic.layer is not None})
    first, last = layers[0], layers[-1]
    steps = tuple(address for topic in topics for address in topic.addresses)
    worked = [edition.trace.steps[address] for address in steps]
    ends = [w for w in worked if w.address.endswith(endings) and w.missing is None]
    found = statistics((w.address, near(w)) for w in ends)
    example = next((w.address for w in ends), steps[0])
    show: tuple[Part, ...] = (
        *(() if found is None else (found,)),
        LeftOut(
            _("The numbers of these blocks are left out. A block is told in full by asking for it"),
            f"byhand book {edition.whole_command} --out book --at {example}",
        ),
    )
    several = _("The same again, {count} times: blocks {first} to {last} have the same steps, with "
                "weights of their own.")  # fmt: skip
    single = _("The same again: block {first} has the same steps, with weights of its own.")
    text = several if len(layers) > 1 else single
    title = _("Blocks {first} to {last}") if len(layers) > 1 else _("Block {first}")
    return Passage(
        id=f"{slug}-blocks-{first}-{last}",
        title=title.format(first=first, last=last),
        sentences=(text.format(count=len(layers), first=first, last=last),),
        lit=steps,
        show=show,
        remarks=(*remarks_of(edition, worked), *claim_remarks(edition, steps)),
    )
