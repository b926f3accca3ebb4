"""Inputs: every text up to a length, the model's prediction after it, and the parts it needs.

`text_passes` works many texts out at once.  Every prediction is proven in enclosures.  What they
leave open goes to `proving.digits`, with more bits and exact arithmetic.  A prediction that is not
proven then counts as undecided, never as right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import log10
from pathlib import Path

from byhand import forward
from byhand.errors import InputError
from byhand.evaluate import Progress, check_reach
from byhand.explaining.ablation import Part, part_at, usual_parts
from byhand.explaining.asked import tell_doing
from byhand.explaining.text_passes import Node, Text, TextPasses, chunks, groups, nodes_of
from byhand.language import _, whole
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import Prediction
from byhand.proving.digits import prove
from byhand.tracing import Trace
from byhand.worked import Missing

MOST_TEXTS = 2_000  # texts of the longest length, where no length is given
LONGEST = 8  # tokens, where neither the caller nor the model gives a length
LONGEST_UNASKED = 64  # tokens, where the texts are made of one token only
LIMIT = 100_000  # texts of all lengths together
COUNTED = 15  # digits up to which a number of texts is written in full
TOGETHER = 64  # positions worked out at once: more cost more than they share
OPEN_TOGETHER = 8  # the same for texts that the first enclosures leave open


@dataclass(frozen=True, slots=True)
class Row:
    """One text, the token predicted after it, and the token predicted without each part."""

    tokens: Text
    prediction: Prediction  # its id is None where it is undecided
    without: tuple[Prediction, ...]  # one for each part of the table
    suffix: int | None  # last tokens that decide, among texts of its length; None: undecided


@dataclass(frozen=True, slots=True)
class Ending:
    """The texts that end with one token."""

    token: int
    usual: int | None  # the commonest prediction, the lowest id of several; None: undecided
    texts: int
    others: tuple[Row, ...]  # the texts without that prediction, or without its proof


@dataclass(frozen=True)
class Table:
    """Every text up to a length, with its prediction; `missing` says why there is none."""

    model: Model
    length: int
    tokens: tuple[int, ...]  # the alphabet: all of the vocabulary, or some of it
    parts: tuple[Part, ...]
    rows: tuple[Row, ...]  # shorter texts first, then by token ids
    missing: Missing | None = None
    unread: tuple[int, ...] = ()  # lengths at which a position may look at no key: no rows

    def needed(self, row: Row) -> tuple[Part, ...]:
        """The parts without which the prediction after this text provably changes."""
        told = row.prediction.id
        return tuple(
            part
            for part, other in zip(self.parts, row.without, strict=True)
            if None not in (told, other.id) and other.id != told
        )

    def undecided(self, row: Row) -> tuple[Part, ...]:
        """The parts for which it is undecided whether the prediction needs them."""
        if row.prediction.id is None:
            return self.parts
        pairs = zip(self.parts, row.without, strict=True)
        return tuple(part for part, other in pairs if other.id is None)

    @cached_property
    def proven(self) -> int:
        """After how many texts the prediction is proven."""
        return sum(row.prediction.proven for row in self.rows)

    @cached_property
    def suffix(self) -> int | None:
        """How many last tokens decide the prediction, for texts of any length in the table.

        It is the longest length where no shorter suffix decides; None where some prediction is
        undecided.
        """
        for count in range(self.length + 1):
            agree = _agree((_last(row.tokens, count), row) for row in self.rows)
            if all(agree.values()):
                return count
        return None

    @cached_property
    def endings(self) -> tuple[Ending, ...]:
        """For each last token, the usual prediction after it and the texts with another one."""
        groups: dict[int, list[Row]] = defaultdict(list)
        for row in self.rows:
            groups[row.tokens[-1]].append(row)
        return tuple(_ending(token, rows) for token, rows in groups.items())


def _ending(token: int, rows: Sequence[Row]) -> Ending:
    counts = Counter(row.prediction.id for row in rows if row.prediction.id is not None)
    usual = min(counts, key=lambda one: (-counts[one], one), default=None)
    others = tuple(row for row in rows if row.prediction.id != usual or usual is None)
    return Ending(token, usual, len(rows), others)


def table(
    model: str | Path | Model,
    length: int | None = None,
    *,
    tokens: Sequence[int | str] | None = None,
    parts: Sequence[Part | str] | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> Table:
    """Every text of up to `length` tokens with its prediction, proven, and the parts it needs.

    The default length is the model's context, or less, so that the longest length has at most 2,000
    texts.  More than 100,000 texts in all are refused.  `tokens` are those the texts are made of,
    by default all.  `parts` are taken out in turn: the position table, each side-trip and, where
    there are several, each head.  Lengths at which a table of scores leaves some position no key
    are left out.  A `device` works the enclosures out.  `progress` sees every step and its purpose.

    >>> from byhand.explaining.inputs import table
    >>> found = table("abc")
    >>> len(found.rows), found.proven, [(one.token, one.usual) for one in found.endings]
    (39, 39, [(0, 1), (1, 2), (2, 0)])
    >>> [found.model.vocabulary.decode(row.tokens) for one in found.endings for row in one.others]
    ['CB', 'CCB']
    """
    opened = model if isinstance(model, Model) else open_model(model)
    alphabet = _alphabet(opened, tokens)
    longest = _length(opened, len(alphabet), length)
    chosen = tuple(
        one if isinstance(one, Part) else part_at(opened.spec, one)
        for one in (usual_parts(opened.spec) if parts is None else parts)
    )
    lengths, unread = _readable(opened, longest)
    texts = [text for n in lengths for text in product(alphabet, repeat=n)]
    told = _predictions(opened, texts, (), device, progress)
    if isinstance(told, Missing):
        return Table(opened, longest, alphabet, chosen, (), told, unread)
    without = [_predictions(opened, texts, (one,), device, progress) for one in chosen]
    bare = [Row(text, told[text], (), None) for text in texts]
    suffixes = _suffixes(bare, longest)
    rows = tuple(
        Row(text, told[text], tuple(_known(other, text) for other in without), suffixes.get(text))
        for text in texts
    )
    return Table(opened, longest, alphabet, chosen, rows, unread=unread)


def _readable(model: Model, longest: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The lengths at which every position may look at some key, and the others.

    Where there is none, the error of the longest texts is raised.
    """
    if not any(block.attention and block.attention.score_table for block in model.spec.blocks):
        return tuple(range(1, longest + 1)), ()
    read: list[int] = []
    unread: list[int] = []
    for length in range(1, longest + 1):
        try:
            check_reach(forward.plan(model.spec, length), model.weights)
        except InputError:
            if length == longest and not read:
                raise
            unread.append(length)
        else:
            read.append(length)
    return tuple(read), tuple(unread)


def _alphabet(model: Model, tokens: Sequence[int | str] | None) -> tuple[int, ...]:
    if tokens is None:
        return tuple(range(model.spec.vocab))
    ids = (model.vocabulary.id(one) if isinstance(one, str) else int(one) for one in tokens)
    found = tuple(dict.fromkeys(ids))
    for id in found:
        if not 0 <= id < model.spec.vocab:
            raise InputError(
                _("there is no token {id}").format(id=id),
                expected=_("an id from 0 to {last}").format(last=model.spec.vocab - 1),
                found=str(id),
            )
    if not found:
        raise InputError(
            _("there are no tokens to make texts of"), expected=_("at least one token"), found="0"
        )
    return found


def _length(model: Model, size: int, asked: int | None) -> int:
    """How long the longest texts are; an InputError where there would be too many."""
    context = model.spec.context
    if asked is None:
        longest = LONGEST if context is None else min(context, LONGEST_UNASKED)
        while longest > 1 and size**longest > MOST_TEXTS:
            longest -= 1
    else:
        longest = asked
        if asked < 1 or (context is not None and asked > context):
            raise InputError(
                _("texts of this length cannot be worked out"),
                expected=_("a length of at least 1")
                if context is None
                else _("a length from 1 to {context}").format(context=context),
                found=str(asked),
            )
    few = _few_enough(size, longest)
    if few < longest:
        told = _("there are too many texts of up to {length} tokens")
        if longest == 1:
            told = _("there are too many texts of one token")
        raise InputError(
            told.format(length=longest),
            expected=_("at most {count}").format(count=whole(LIMIT)),
            found=_count(size, longest),
            hint=_("--length {length} is few enough").format(length=few) if few else None,
        )
    return longest


def _few_enough(size: int, longest: int) -> int:
    """The largest length up to this one whose texts, and all shorter ones, are within the limit."""
    count = length = 0
    while length < longest and count + size ** (length + 1) <= LIMIT:
        length += 1
        count += size**length
    return length


def _count(size: int, longest: int) -> str:
    """The number of texts as a text, or a power of ten that it exceeds."""
    if size == 1:
        return whole(longest)
    digits = int(longest * log10(size) - 1e-6)  # not more, whatever the logarithm's rounding
    if digits >= COUNTED:
        return _("more than 10^{digits}").format(digits=whole(digits))
    return whole(sum(size**n for n in range(1, longest + 1)))


# ----------------------------------------------------------------------- working them out


def _predictions(
    model: Model,
    texts: Sequence[Text],
    parts: Sequence[Part],
    device: str | None,
    progress: Progress | None,
) -> dict[Text, Prediction] | Missing:
    """The prediction after each text, by the model without some parts."""
    found: dict[Text, Prediction] = {}
    jobs = TextPasses(model, parts, device)
    what = _("every text")
    if parts:
        what = _("every text without {part}").format(part=parts[0].address)
    together = list(groups(model, sorted(texts), TOGETHER))
    for place, some in enumerate(together):
        tell_doing(progress, what, len(found), len(texts))
        trace = jobs.work(some, progress, times=len(together) - place)
        missing = trace.steps["next"].missing
        if missing is not None:
            return missing
        found.update(_after(trace, some, nodes_of(model, some)))
    unsure = [text for text, prediction in found.items() if not prediction.proven]
    for place, some in enumerate(chunks(model, unsure, OPEN_TOGETHER)):
        tell_doing(progress, what, len(found) - len(unsure) + place, len(texts))
        trace = prove(jobs.of(some), 1, progress=progress)
        found.update(_after(trace, some, nodes_of(model, some)))
    return found


def _after(
    trace: Trace, texts: Iterable[Text], nodes: Sequence[Node]
) -> Iterator[tuple[Text, Prediction]]:
    """The prediction after each text; one that is not proven is undecided."""
    assert trace.next is not None
    wanted = set(texts)
    for node, prediction in zip(nodes, trace.next, strict=True):
        if node.begun == node.whole and node.whole in wanted:
            sure = prediction if prediction.proven else replace(prediction, id=None, margin=None)
            yield node.whole, sure


def _known(predictions: dict[Text, Prediction] | Missing, text: Text) -> Prediction:
    if isinstance(predictions, Missing):
        return Prediction(None, None, proven=False)
    return predictions[text]


# ----------------------------------------------------------------------- how much of a text decides


def _last(text: Text, count: int) -> Text:
    return text[len(text) - count :] if count < len(text) else text


def _agree(rows: Iterable[tuple[Hashable, Row]]) -> dict[Hashable, bool]:
    """Key → whether all rows with this key predict the same token and none is undecided."""
    seen: dict[Hashable, set[int | None]] = defaultdict(set)
    for key, row in rows:
        seen[key].add(row.prediction.id)
    return {group: len(ids) == 1 and None not in ids for group, ids in seen.items()}


def _suffixes(rows: Sequence[Row], longest: int) -> dict[Text, int]:
    """For each text the fewest last tokens that decide, among texts of its own length."""
    found: dict[Text, int] = {}
    for count in range(longest + 1):
        agree = _agree(((len(row.tokens), _last(row.tokens, count)), row) for row in rows)
        for row in rows:
            size = len(row.tokens)
            if row.tokens not in found and agree[size, _last(row.tokens, count)]:
                found[row.tokens] = count
    return found
