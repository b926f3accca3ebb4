"""The texts that a sheet is about: one, or each row of a batch without its padding.

The ids come from the claims if they have them, otherwise from the text.  Several sources must
agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.claims import Entry, Sheet
from byhand.checking.masks import masks_of, unseen
from byhand.checking.readers.arrays import TOKENS
from byhand.errors import InputError, TextError
from byhand.language import _
from byhand.model import Model
from byhand.passes import Mask
from byhand.reading import read
from byhand.tokens import Source, Tokenizer, too_long

MOST_SHOWN = 12  # ids in a message


@dataclass(frozen=True, slots=True)
class Row:
    """One text, and its place in the arrays of a dump."""

    text: str
    tokens: tuple[int, ...]
    place: int = 0  # row of the batch
    before: int = 0  # padding positions before it
    behind: int = 0
    positions: tuple[int, ...] | None = None  # None: 0, 1, 2, …
    masks: tuple[Mask, ...] | None = None  # one for each block, where the claims give masks
    source: Source | None = None  # what the encoder reads, where there is one
    unread: tuple[int, int] = (0, 0)  # padding before and behind the source
    segments: tuple[int, ...] | None = None  # the kind of each token, where one was given

    @property
    def width(self) -> int:
        """The number of positions in the dump, with padding."""
        return self.before + len(self.tokens) + self.behind

    @property
    def read_width(self) -> int | None:
        """The number of positions of the source in the dump, with padding."""
        return None if self.source is None else sum(self.unread) + len(self.source.tokens)

    def padding(self, axis: str) -> tuple[int, int] | None:
        """The padding before and behind the positions of an axis; None of any other axis."""
        if axis in ("pos", "query", "key"):
            return self.before, self.behind
        return self.unread if axis in ("source", "source_query", "source_key") else None


def names_the_text(entry: Entry) -> bool:
    """Whether an entry gives the text, rather than a claim about it."""
    return entry.name in TOKENS


def rows_of(
    sheet: Sheet,
    model: Model,
    text: str | None,
    source: str | None = None,
    segments: Sequence[int] | None = None,
) -> tuple[Row, ...]:
    """The texts; an InputError where sources disagree, or where none gives the text."""
    rows = _rows_of(sheet, model, text)
    if model.spec.encoder is not None or source is not None:
        rows = tuple(_reading(row, sheet, model, source) for row in rows)
    if sheet.kinds is None and segments is None:
        return rows
    return tuple(_with_segments(row, sheet, segments) for row in rows)


def _rows_of(sheet: Sheet, model: Model, text: str | None) -> tuple[Row, ...]:
    ids = _given_ids(sheet, model)
    if ids is None:
        words = text or sheet.text or model.text
        if words is None and model.start:
            words = ""  # a decoder's first token follows from its source alone
        if words is None:
            raise sheet.wrong(
                _("the claims do not say which text they are about"),
                expected=_("text or tokens among the claims, or a text in the call"),
            )
        if sheet.text is not None and text is not None and text != sheet.text:
            _agree(sheet, model, text, model.read(sheet.text))
        return (_row(sheet, model, words, model.read(words), 0),)
    batch = np.atleast_2d(ids)
    mask = None if sheet.mask is None else np.atleast_2d(sheet.mask)
    rows = []
    for place, row in enumerate(batch):
        before, behind = (unseen(sheet, place), 0) if mask is None else _padding(sheet, mask[place])
        ids = row[before : len(row) - behind]
        tokens = tuple(_id(int(id), model.vocabulary, sheet.source) for id in ids)
        for said in (text, sheet.text):
            if said is not None:
                _agree(sheet, model, said, tokens)
        words = text or sheet.text or model.vocabulary.decode(tokens)
        rows.append(_row(sheet, model, words, tokens, place, (before, behind)))
    return tuple(rows)


def _row(
    sheet: Sheet,
    model: Model,
    text: str,
    tokens: tuple[int, ...],
    place: int,
    padding: tuple[int, int] = (0, 0),
) -> Row:
    before, behind = padding
    tokens = model.checked(tokens)
    positions = _positions(sheet, place, before, len(tokens))
    # each packed text begins at position 0
    count = len(tokens) if positions is None else max(positions) + 1
    if (error := too_long(count, model.spec.context)) is not None:
        raise error
    text_alone = slice(before, before + len(tokens))
    masks = masks_of(sheet, model.spec, place, text_alone, positions)
    return Row(text, tokens, place, before, behind, positions, masks)


def _reading(row: Row, sheet: Sheet, model: Model, source: str | None) -> Row:
    """The row with its source: as the claims have it, else the one given or the model's own."""
    words = source or sheet.read_text
    if sheet.read_tokens is None:
        return replace(row, source=read(model, row.text, source=words).source)
    batch = np.atleast_2d(sheet.read_tokens)
    place = min(row.place, len(batch) - 1)
    mask = None if sheet.read_mask is None else np.atleast_2d(sheet.read_mask)[place]
    before, behind = (0, 0) if mask is None else _padding(sheet, mask)
    ids = batch[place][before : batch.shape[1] - behind]
    known = model.source_vocabulary
    tokens = tuple(_id(int(id), known, sheet.source) for id in ids)
    if words is not None and known.encode(words) != tokens:
        raise sheet.wrong(
            _("the claims are about another source"),
            expected=_("{text}, which is {ids}").format(
                text=repr(words[:60]), ids=_shown(known.encode(words))
            ),
            found=_shown(tokens),
        )
    found = Source(known.decode(tokens) if words is None else words, tokens)
    return replace(row, source=found, unread=(before, behind))


def _with_segments(row: Row, sheet: Sheet, segments: Sequence[int] | None) -> Row:
    """The row with the kind of each token, as it is given or as the claims have it."""
    if segments is not None:
        return replace(row, segments=tuple(segments))
    assert sheet.kinds is not None
    kinds = np.atleast_2d(sheet.kinds)
    own = kinds[min(row.place, len(kinds) - 1)][row.before : row.before + len(row.tokens)]
    return replace(row, segments=tuple(map(int, own)))


def _positions(sheet: Sheet, place: int, before: int, length: int) -> tuple[int, ...] | None:
    """The positions that the claims give; None where they are 0, 1, 2, …"""
    if sheet.positions is None:
        return None
    given = np.atleast_2d(sheet.positions)
    row = given[min(place, len(given) - 1)][before : before + length]
    if len(row) != length:
        raise sheet.wrong(
            _("positions do not fit the text"), expected=str(length), found=str(len(row))
        )
    if np.array_equal(row, np.arange(length)):
        return None
    return tuple(map(int, row))


def _agree(sheet: Sheet, model: Model, text: str, tokens: Sequence[int]) -> None:
    said = model.read(text)
    if said != tuple(tokens):
        raise sheet.wrong(
            _("the claims are about another text"),
            expected=_("{text}, which is {ids}").format(text=repr(text[:60]), ids=_shown(said)),
            found=_shown(tokens),
        )


def _shown(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids[:MOST_SHOWN])) + " …" * (len(ids) > MOST_SHOWN)


# ------------------------------------------------------------------ ids


def _given_ids(sheet: Sheet, model: Model) -> npt.NDArray[np.int64] | None:
    """The ids in the claims, given as ids or as words."""
    if sheet.tokens is not None:
        if not sheet.tokens.size:
            raise TextError(_("the text is empty"), where=sheet.source, found=_("no tokens"))
        return sheet.tokens
    for entry in sheet.entries:
        if not names_the_text(entry):
            continue
        words = np.atleast_1d(_complete(entry))
        return ids_of(words, model.vocabulary, entry.source)
    return None


def _complete(entry: Entry) -> npt.NDArray[Any]:
    """The tokens without empty cells at the end of a row; an InputError for a blank in between."""
    if entry.claimed is None:
        return entry.values
    last = int(np.flatnonzero(entry.claimed)[-1]) + 1 if entry.claimed.any() else 0
    if entry.values.ndim != 1 or not last or not entry.claimed[:last].all():
        raise InputError(
            _("the tokens are not complete"),
            where=entry.source,
            expected=_("each token of the text"),
            found=_("a blank"),
        )
    return entry.values[:last]


def ids_of(
    values: npt.NDArray[Any],
    known: Tokenizer,
    source: str,
    claimed: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.int64]:
    """The ids of tokens that are given as words, or as ids where no token has that spelling."""
    ids = np.zeros(values.size, dtype=np.int64)
    wanted = np.ones(values.size, np.bool_) if claimed is None else claimed.reshape(-1)
    for place, (value, asked) in enumerate(zip(values.reshape(-1), wanted, strict=True)):
        if asked:
            ids[place] = _id(value, known, source)
    return ids.reshape(values.shape)


def _id(value: Any, vocabulary: Tokenizer, source: str) -> int:
    if isinstance(value, str):
        try:
            return vocabulary.id(value)
        except TextError as error:
            if not (value.isascii() and value.isdecimal() and len(value) < 10):
                error.where = source
                raise
            value = int(value)
    if value != value or not 0 <= value < len(vocabulary) or value != int(value):
        raise InputError(
            _("there is no token {id}").format(id=value),
            where=source,
            expected=_("ids from 0 to {last}").format(last=len(vocabulary) - 1),
            found=str(value),
        )
    return int(value)


def _padding(sheet: Sheet, mask: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """The number of padding positions before the text, and after it."""
    there = np.flatnonzero(mask)
    if not there.size:
        raise TextError(
            _("a row of the batch is nothing but padding"),
            where=sheet.source,
            expected=_("at least one token"),
            found=_("an attention mask of zeros"),
        )
    first, last = int(there[0]), int(there[-1])
    if there.size != last - first + 1:
        raise sheet.wrong(
            _("the attention mask has a hole in the text"),
            expected=_("padding at the ends alone"),
            found=" ".join(str(int(each)) for each in mask[:64]),
        )
    return first, len(mask) - 1 - last
