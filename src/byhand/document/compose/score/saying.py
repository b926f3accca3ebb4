"""How log-probabilities, errors and tokens are written in a report."""

from __future__ import annotations

from math import floor, isfinite, isnan, log10

from byhand.document import words
from byhand.language import _
from byhand.scoring.scored import Scored, ScoredToken

CONTEXT = 6  # tokens before one that are shown with it
LONGEST, LONGEST_ON_PAGE = 16, 40  # characters of a context
DECIMALS, MOST_DECIMALS = 6, 15  # of a float; of a true value, which is kept as a float64


def true_value(scored: Scored, token: ScoredToken) -> str:
    """A true log-probability: as many decimals as were asked for and are proven."""
    value, radius = token.logprob, token.radius
    if not isfinite(value) or not isfinite(radius):
        return f"{value:.{DECIMALS}f}"
    if radius >= 0.05:
        return f"{value:.2f} ± {radius:.1g}"
    most = min(MOST_DECIMALS, scored.digits or DECIMALS)
    return f"{value:.{min(most, floor(-log10(2 * radius))) if radius > 0 else most}f}"


def nats(error: float) -> str:
    """An error with its sign, two digits of it."""
    if isnan(error):
        return "·"
    return "0" if error == 0 else f"{error:+.2g}"


def amount(value: float, digits: int = 2) -> str:
    """A number without a sign of its own."""
    if isnan(value):
        return "·"
    whole = 100 <= abs(value) < 1e6 and digits <= 2
    return words.whole(round(value)) if whole else f"{value:.{digits}g}"


def share(value: float) -> str:
    """A share in percent."""
    return "·" if isnan(value) else f"{100 * value:.3g} %"


def times(ratio: float) -> str:
    """How many times something is something else."""
    number = amount(ratio)
    return _("{number} times").format(number="1.0" if number == "1" else number)


def in_context(scored: Scored, token: ScoredToken, longest: int) -> str:
    """A token behind the few before it, of which so many characters are shown."""
    sample = scored.truth.samples[int(scored.truth.text[token.place])]
    before = sample.ids[max(0, token.position - CONTEXT) : token.position]
    told = words.printable(scored.model.vocabulary.decode(before))
    if len(told) > longest:
        told = "…" + told[-longest:]
    return f"{told} → {words.printable(token.token)}"


def standing_word(standing: str) -> str:
    """The standing of a token in the reader's language."""
    return {
        "safe": _("safe"), "near tie": _("near tie"), "flipped": _("flipped"), "tie": _("tie"),
        "open": _("open"), "": "",
    }[standing]  # fmt: skip
