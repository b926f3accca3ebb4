"""What an edit did, in one or two sentences, with the number that shows it best.

The sentences are made of the two passes, so they are true of whatever was edited.  In order: a
position that sees a later one, a norm that gives back exact numbers, another prediction, another
probability.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.address import write_index
from byhand.document.compose.book.strips import near
from byhand.document.meanings import position_named
from byhand.document.numerals import localised
from byhand.expression import write
from byhand.language import _
from byhand.serving.changes import StepChange
from byhand.serving.number_texts import number_text
from byhand.serving.passages import passage_id
from byhand.serving.worked_state import Pass

ATTENDED = ".attn.weights"
NORMED = ".norm.normalized"
MOST_SAID = 2
LONGEST_FORM = 24  # characters of a named number in a sentence

Index = tuple[int, ...]


@dataclass(frozen=True)
class Told:
    """A sentence about a change, and the number to look at: its address, before and now."""

    sentence: str
    address: str | None = None
    before: str | None = None
    after: str | None = None

    def star(self, found: Pass) -> dict[str, Any]:
        """The number as JSON, with the passage in which it stands."""
        assert self.address is not None
        topic = found.topic_of[self.address.partition("[")[0]]
        return {
            "address": self.address,
            "before": self.before,
            "after": self.after,
            "passage": passage_id(found, topic),
        }


def told(earlier: Pass, found: Pass, steps: Sequence[StepChange]) -> dict[str, Any]:
    """The sentences about a change, and the number that shows it best; null where none does."""
    facts = list(_facts(earlier, found, steps))[:MOST_SAID] or list(_first(earlier, found, steps))
    star = next((fact.star(found) for fact in facts if fact.address is not None), None)
    return {"sentences": [_capital(fact.sentence) for fact in facts], "star": star}


def _facts(earlier: Pass, found: Pass, steps: Sequence[StepChange]) -> Iterator[Told]:
    if not steps:
        yield Told(_("No number of the pass has changed."))
        return
    if earlier.trace.tokens == found.trace.tokens:
        yield from _seen(earlier, found)
        yield from _given_back(earlier, found)
    yield from _expected(earlier, found, steps)


# ------------------------------------------------------------------ who sees whom


def _seen(earlier: Pass, found: Pass) -> Iterator[Told]:
    """The largest attention to a later position that was hidden, or that is hidden now."""
    opened = _most_attended(found, earlier)
    if opened is not None:
        address, index, share = opened
        yield Told(
            _("{p} now gives {share} of its attention to {k}, which comes after it.").format(
                p=_position(found, index[1]),
                share=_percent(share),
                k=_position(found, index[2]),
            ),
            address + write_index(index),
            _("masked"),
            _text(found, address, index),
        )
        return
    closed = _most_attended(earlier, found)
    if closed is not None:
        address, index, share = closed
        yield Told(
            _("{p} no longer sees {k}, which comes after it.").format(
                p=_position(found, index[1]), k=_position(found, index[2])
            ),
            address + write_index(index),
            _text(earlier, address, index),
            _("masked"),
        )


def _most_attended(here: Pass, there: Pass) -> tuple[str, Index, float] | None:
    """The largest attention to a later position here, of those that there are not there."""
    best: tuple[str, Index, float] | None = None
    for address, worked in here.trace.steps.items():
        other = there.trace.steps.get(address)
        if not address.endswith(ATTENDED) or other is None:
            continue
        if worked.missing is not None or other.missing is not None:
            continue
        shares, hidden = near(worked), np.isnan(near(other))
        if shares.shape != hidden.shape:
            continue
        later = np.triu(np.ones(shares.shape[-2:], np.bool_), k=1)
        candidates = np.where(hidden & later & ~np.isnan(shares), shares, -1.0)
        at = np.unravel_index(int(candidates.argmax()), candidates.shape)
        share = float(candidates[at])
        if share > (0.0 if best is None else best[2]):
            best = address, tuple(map(int, at)), share
    return best


# ------------------------------------------------------------------ exact again


def _given_back(earlier: Pass, found: Pass) -> Iterator[Told]:
    """A norm that was not there before, whose input is no exact number and whose output is one."""
    place = found.position
    for address, worked in found.trace.steps.items():
        if not address.endswith(NORMED) or address in earlier.trace.steps:
            continue
        out = found.trace.plan[address.removesuffix("normalized") + "out"].address
        centered = found.trace.steps.get(address.removesuffix("normalized") + "centered", worked)
        read = centered.step.inputs["x"]
        source = found.trace.steps.get(read)
        if source is None or source.missing is not None or worked.missing is not None:
            continue
        for i in reversed(range(worked.step.shape[-1])):
            index = (place, i)
            if len(worked.step.shape) != len(index):
                break
            if source.register_at(index) != "named" or worked.register_at(index) != "exact":
                continue
            before, after = _named(found, read, index), _text(found, out, index)
            said = _("The norm reads {before} and gives back exactly {after}.")
            yield Told(
                said.format(before=before, after=after), out + write_index(index), before, after
            )
            return


# ------------------------------------------------------------------ what comes next


def _expected(earlier: Pass, found: Pass, steps: Sequence[StepChange]) -> Iterator[Told]:
    """How the prediction after the followed position moved."""
    place = found.position
    then = min(place, len(earlier.trace.tokens) - 1)
    now, probs = found.trace.steps.get("probs"), earlier.trace.steps.get("probs")
    if now is None or probs is None or now.missing is not None or probs.missing is not None:
        return
    if earlier.model.spec.answers != found.model.spec.answers:
        return
    where = _position(found, place)
    old, new = near(probs)[then], near(now)[place]
    before, after = earlier.trace.next, found.trace.next
    ids = (before[then].id if before else None, after[place].id if after else None)
    if None not in ids and ids[0] != ids[1]:
        assert ids[1] is not None
        words = {"before": f"`{_word(earlier, ids[0])}`", "after": f"`{_word(found, ids[1])}`"}
        yield Told(
            _("After {p} the model now expects {after}, no longer {before}.").format(
                p=where, **words
            ),
            *_moved(earlier, found, (then, ids[1]), (place, ids[1])),
        )
        return
    id = int(np.nanargmax(np.abs(new - old)))
    moved = _moved(earlier, found, (then, id), (place, id))
    word = f"`{_word(found, id)}`"
    if not any(step.address == "probs" and step.mask[place].any() for step in steps):
        yield Told(_("What the model expects after {p} stays the same.").format(p=where))
    elif moved[1] == moved[2]:
        yield Told(_("What the model expects after {p} hardly changes.").format(p=where))
    elif new[id] > old[id]:
        yield Told(
            _("After {p} the probability of {word} rises from {before} to {after}.").format(
                p=where, word=word, before=moved[1], after=moved[2]
            ),
            *moved,
        )
    else:
        yield Told(
            _("After {p} the probability of {word} falls from {before} to {after}.").format(
                p=where, word=word, before=moved[1], after=moved[2]
            ),
            *moved,
        )


def _moved(earlier: Pass, found: Pass, then: Index, now: Index) -> tuple[str, str, str]:
    return (
        "probs" + write_index(now),
        _text(earlier, "probs", then),
        _text(found, "probs", now),
    )


def _first(earlier: Pass, found: Pass, steps: Sequence[StepChange]) -> Iterator[Told]:
    """The first number that changed, where nothing is known of the prediction."""
    for step in steps:
        worked = found.trace.steps[step.address]
        then = earlier.trace.steps.get(step.address)
        if worked.whole or worked.missing is not None or then is None or then.missing is not None:
            continue
        for index in map(tuple, np.argwhere(step.mask).tolist()):
            if len(index) != len(then.step.shape):
                break
            if all(i < size for i, size in zip(index, then.step.shape, strict=True)):
                address = step.address + write_index(index)
                before, after = (
                    _text(earlier, step.address, index),
                    _text(found, step.address, index),
                )
                said = _("The first number that changes is `{address}`: {before} becomes {after}.")
                yield Told(
                    said.format(address=address, before=before, after=after),
                    address,
                    before,
                    after,
                )
                return


# ------------------------------------------------------------------ words


def _text(found: Pass, address: str, index: Index) -> str:
    worked = found.trace.steps[found.trace.plan[address].address]
    number = found.edition.showing.number(worked, index, form=address != "probs")
    return number_text(number, decimals=found.by_decimals)


def _named(found: Pass, address: str, index: Index) -> str:
    """A named number by its form where that is short, else by its decimals."""
    cell = found.in_full.cell(found.trace.steps[found.trace.plan[address].address], index)
    form = "" if cell.form is None else write(cell.form)
    return (
        localised(form) if 0 < len(form) <= LONGEST_FORM else "≈ " + localised(cell.decimal or "")
    )


def _position(found: Pass, place: int) -> str:
    return position_named(found.trace, place)


def _word(found: Pass, id: int | None) -> str:
    assert id is not None
    return found.answer(id)


def _percent(share: float) -> str:
    return _("{share} %").format(share=localised(f"{100 * share:.0f}"))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
