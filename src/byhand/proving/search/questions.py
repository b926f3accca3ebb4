"""Questions: what a claim asks of the numbers of one text, or of all texts of a region alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from byhand.errors import InputError
from byhand.language import _
from byhand.proving.claims import AtLeast, Claim, Function, Lead, Next, Same
from byhand.proving.domain import Region

ANY = None  # tokens of a question that asks for one prediction, whichever it is


@dataclass(frozen=True, slots=True)
class Leads:
    """One of these tokens has the largest logit; of a tie, the lowest id.  ANY: the same token
    everywhere in the region, and in both models where there are two."""

    tokens: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Ahead:
    """A token's logit exceeds that of others by at least so much."""

    token: int
    others: tuple[int, ...]
    by: Fraction


@dataclass(frozen=True, slots=True)
class Bounded:
    """A number of the pass is at least a bound, or at most."""

    address: str
    index: tuple[int, ...]
    bound: Fraction
    most: bool


Question = Leads | Ahead | Bounded
Call = Callable[[Function], Any]


def about_region(claim: Claim, region: Region, vocab: int, same: int | None = None) -> Question:
    """What is asked of every text of a region; `wholes.Varies` where it is not the same.

    `same` is the token that a claim of one prediction for all texts asks for.
    """
    return _question(claim, lambda function: function.over(region), vocab, same)


def about_text(
    claim: Claim, assigned: Mapping[str, int], vocab: int, same: int | None = None
) -> Question:
    """What is asked of one text."""
    return _question(claim, lambda function: function.at(assigned), vocab, same)


def _question(claim: Claim, call: Call, vocab: int, same: int | None) -> Question:
    match claim:
        case Next(answers):
            return Leads(tuple(_token(id, vocab) for id in call(answers)))
        case Same():
            return Leads(ANY if same is None else (same,))
        case Lead(ahead, behind, by):
            token = _token(call(ahead), vocab)
            if behind is not None:
                return Ahead(token, (_token(call(behind), vocab),), by)
            return Ahead(token, tuple(id for id in range(vocab) if id != token), by)
        case AtLeast(address, index, bound, most):
            return Bounded(address, tuple(map(int, call(index))), bound, most)
        case _:
            return Leads(ANY)


def _token(id: Any, vocab: int) -> int:
    if 0 <= int(id) < vocab:
        return int(id)
    raise InputError(
        _("the claim asks for a token that the model does not have"),
        expected=_("an id from 0 to {last}").format(last=vocab - 1),
        found=str(id),
    )
