"""What a book says once: no sentence, remark or chapter that repeats an earlier one.

Blocks are built alike, so the passages of a second block would repeat the sentences of the first;
the overview would tell a boundary that its own passage tells again.  Formulas and numbers stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from byhand.document.book import Page, Passage
from byhand.document.parts import LeftOut, Remark

SHORT = 45  # characters of a sentence that may come again: "Here it is the identity …"
BRIEF = ("whole", "exact")  # pages whose remarks stand in the passages of the steps too


def told_once(pages: Sequence[Page]) -> tuple[Page, ...]:
    """The pages without what was said before, and without those that then say nothing."""
    told: set[str] = set()
    found = []
    for page in _without_remarks(pages):
        passages = tuple(_fresh(passage, told) for passage in page.passages)
        if not passages or any(map(_says, passages)) or _only_reason(passages, told):
            found.append(replace(page, passages=passages))
        told.update(_reasons(passages))
    return tuple(found)


def _fresh(passage: Passage, told: set[str]) -> Passage:
    """The passage without the sentences told before, which then are."""
    fresh = [one for one in passage.sentences if len(one) <= SHORT or one not in told]
    told.update(passage.sentences)
    return replace(passage, sentences=tuple(fresh))


def _without_remarks(pages: Sequence[Page]) -> Iterator[Page]:
    """The overview and the map without the remarks that the passages of their steps have."""
    detailed = [p for page in pages if page.slug not in BRIEF for p in page.passages]
    own = {mark for passage in detailed for mark in passage.remarks}
    why = set(_reasons(detailed))
    for page in pages:
        if page.slug in BRIEF:
            page = replace(page, passages=tuple(_brief(p, own, why) for p in page.passages))
        yield page


def _brief(passage: Passage, own: set[Remark], why: set[str]) -> Passage:
    return replace(
        passage,
        remarks=tuple(mark for mark in passage.remarks if mark not in own),
        show=tuple(p for p in passage.show if not isinstance(p, LeftOut) or p.text not in why),
    )


def _says(passage: Passage) -> bool:
    """Whether a passage has a number, a formula or a station of the pass."""
    shown = [part for part in passage.show if not isinstance(part, LeftOut)]
    return bool(shown or passage.formulas or passage.lit)


def _only_reason(passages: Iterable[Passage], told: set[str]) -> bool:
    """Whether the passages say why something is not known, and nothing said so before."""
    return any(reason not in told for reason in _reasons(passages))


def _reasons(passages: Iterable[Passage]) -> Iterator[str]:
    for passage in passages:
        yield from (part.text for part in passage.show if isinstance(part, LeftOut))
