"""Samples from a log: the texts that it holds, where nobody gives them."""

from __future__ import annotations

from byhand.errors import InputError
from byhand.language import _
from byhand.model import Model
from byhand.scoring.logs.log import Log, LoggedText
from byhand.scoring.logs.spelling import Spelling, octets_of
from byhand.scoring.samples import Sample
from byhand.tokens import Tokenizer


def samples_of(log: Log, model: Model) -> list[Sample]:
    """The texts of a log as samples, from the first token on that it has a number for.

    A TextError says where a log does not hold its texts from their first tokens on.
    """
    tokenizer = model.vocabulary
    spelling = Spelling(tokenizer)
    found: dict[tuple[int, ...], Sample] = {}
    for text in log.texts:
        if not text.given.any():
            continue
        ids = _ids_of(text, tokenizer, spelling)
        first = max(1, text.first)
        if first < len(ids):
            found.setdefault(ids, Sample(text.name, ids, first, text.text))
    return list(found.values())


def _ids_of(text: LoggedText, tokenizer: Tokenizer, spelling: Spelling) -> tuple[int, ...]:
    if not text.whole:
        raise InputError(
            _("the log does not hold the prompt of this text"),
            where=text.where,
            expected=_("all tokens from the first on"),
            hint=_("give the texts that were scored"),
        )
    if text.ids is not None:
        return text.ids
    assert text.pieces is not None
    said = octets_of(text.pieces).decode("utf-8", "replace")
    for ids in (tokenizer.encode(said), tokenizer.plain(said)):
        if len(ids) == len(text) and all(map(spelling.agrees, text.pieces, ids)):
            return ids
    raise InputError(
        _("the tokens of this text cannot be told from the log"),
        where=text.where,
        expected=_("token ids, or pieces that this model's tokenizer cuts as well"),
        hint=_("give the texts that were scored, or ask the engine for token ids"),
    )
