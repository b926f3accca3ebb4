"""Claims: what must hold for every text of a domain, as data.

A claim asks something of a region that is the same for all its texts, such as "token 7 leads".
Where the answer differs within a region, `Varies` names the variables that it depends on, and the
region is split.  `properties` reads claims; `search` decides them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from byhand.model import Model
from byhand.proving.domain import Region
from byhand.proving.reading.wholes import ranges_of


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the variables, as written; it works on numbers and on `wholes.Range`s alike."""

    call: Callable[[Mapping[str, Any]], Any]
    source: str  # how it was written, for reports and certificates

    def at(self, assigned: Mapping[str, int]) -> Any:
        """Its value for one text."""
        return self.call(assigned)

    def over(self, region: Region) -> Any:
        """Its one value for all texts of a region; `wholes.Varies` where there are several."""
        return self.call(ranges_of(region))


@dataclass(frozen=True, slots=True)
class Next:
    """The next token is one of those that a function gives, as a tuple of ids."""

    answers: Function


@dataclass(frozen=True, slots=True)
class Lead:
    """One token's logit is larger than another's by at least `by`; behind None: than all others."""

    ahead: Function  # a token id
    behind: Function | None
    by: Fraction


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A number of the pass, such as an attention weight, is at least (or at most) a bound."""

    address: str
    index: Function  # a tuple of places; negative ones count from the end
    bound: Fraction
    most: bool = False


@dataclass(frozen=True, slots=True)
class Agree:
    """Two models predict the same token."""

    other: Model


@dataclass(frozen=True, slots=True)
class Same:
    """The prediction is the same for all texts of the domain."""


@dataclass(frozen=True, slots=True)
class Unmoved:
    """The prediction of each text is the one that the model makes with its own numbers, whatever
    the weights and embeddings are within what the property lets them be."""


Claim = Next | Lead | AtLeast | Agree | Same | Unmoved
