"""Matching: each logged text beside the sample it belongs to, and what differs between them.

Ids are compared where the log has them, else the texts of tokens.  Values are taken as far as the
tokens are the same: what follows another token has another context, so it is left out and said.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from byhand.errors import ByhandError
from byhand.language import _
from byhand.scoring.logs.findings import Finding
from byhand.scoring.logs.fits import Fit, best_of, values_of
from byhand.scoring.logs.log import Floats, Log, LoggedText
from byhand.scoring.logs.odd_values import odd_values
from byhand.scoring.logs.spelling import Spelling, octets_of
from byhand.scoring.samples import Sample
from byhand.tokens import Tokenizer


@dataclass(frozen=True, eq=False)
class Matched:
    """What an engine logged for the scored tokens of a sample; NaN where it logged nothing.

    `best` is the token that the engine holds for the likeliest, -1 where the log does not say.
    """

    engine: str
    sample: Sample
    logprobs: Floats
    findings: tuple[Finding, ...] = ()
    best: tuple[int, ...] = ()


@dataclass(frozen=True)
class Matching:
    """The texts of a log that belong to samples, and what is odd about the log as a whole."""

    matched: tuple[Matched, ...]
    findings: tuple[Finding, ...]

    def __iter__(self) -> Iterator[Matched]:
        return iter(self.matched)

    def __len__(self) -> int:
        return len(self.matched)


def match(log: Log, samples: Sequence[Sample], tokenizer: Tokenizer) -> Matching:
    """The texts of the log, each with the sample that it fits, in the order of the samples."""
    return _Matcher(log, samples, Spelling(tokenizer)).matching()


class _Matcher:
    def __init__(self, log: Log, samples: Sequence[Sample], spelling: Spelling) -> None:
        self.log, self.samples, self.spelling = log, samples, spelling
        self.by_ids: dict[tuple[int, ...], list[int]] = {}
        self.by_name: dict[str, int] = {}
        for place, sample in enumerate(samples):
            self.by_ids.setdefault(sample.ids, []).append(place)
            if sample.name != str(place + 1):  # a number that nobody gave says nothing
                self.by_name.setdefault(sample.name, place)
        self.completions = Counter(sample.scored for sample in samples)
        self.tails: dict[int, dict[tuple[int, ...], list[int]]] = {}
        self.found: dict[int, tuple[int, Matched]] = {}  # sample → place in the log, what it says
        self.findings: list[Finding] = list(log.findings)

    def matching(self) -> Matching:
        """Every text of the log in turn."""
        for place, text in enumerate(self.log.texts):
            if not text.given.any():
                self.findings += text.findings
                continue
            fit = self._fit(place, text)
            if fit is None:
                self._unknown(text)
                continue
            self._keep(place, fit)
        self._order()
        self._missing()
        ordered = [self.found[place][1] for place in sorted(self.found)]
        return Matching(tuple(ordered), tuple(self.findings))

    # ------------------------------------------------------------------ which sample

    def _fit(self, place: int, text: LoggedText) -> Fit | None:
        """The best fit: the same ids, else the longest beginning, with names and places asked."""
        named = self.by_name.get(text.name)
        likely = [named] if named is not None else []
        if place < len(self.samples) and len(self.samples) == len(self.log.texts):
            likely.append(place)
        same = list(self._same(text))
        fits = [self._lay(text, n) for n in likely]
        fitting = [fit.number for fit in fits if fit.complete]
        for candidate in [*same, *fitting] if text.whole else [*fitting, *same]:
            if candidate not in self.found:
                return self._lay(text, candidate)
        others = [n for n in range(len(self.samples)) if n not in self.found]
        fits += [self._lay(text, n) for n in [*same, *others]]
        best = max(fits, key=lambda fit: fit.quality, default=None)
        if best is None or not best.complete:  # perhaps it stands twice
            again = [self._lay(text, n) for n in self.found if n not in likely]
            best = next((fit for fit in again if fit.complete), best)
        if best is None:
            return None
        if best.complete or (likely and fits[0].agreed >= best.agreed // 2):
            return best if best.complete else fits[0]
        enough = best.agreed >= max(2, min(len(text), len(best.sample.ids)) // 4)
        return best if enough or self._same_text(best) else None

    def _same(self, text: LoggedText) -> Iterator[int]:
        """The samples with the ids of the text, or their beginning or end; else with its words."""
        if text.ids is None:
            for number in self.by_words.get(_letters(self._said(text)), ()):
                if self._lay(text, number).complete:
                    yield number
            return
        yield from self.by_ids.get(text.ids, ())
        if text.whole:
            for length in sorted({len(sample.ids) for sample in self.samples}, reverse=True):
                if length < len(text.ids):
                    yield from self.by_ids.get(text.ids[:length], ())
            return
        count = len(text.ids)
        if count not in self.tails:
            tails: dict[tuple[int, ...], list[int]] = {}
            for place, sample in enumerate(self.samples):
                if len(sample.ids) > count:
                    tails.setdefault(sample.ids[-count:], []).append(place)
            self.tails[count] = tails
        yield from self.tails[count].get(text.ids, ())

    def _lay(self, text: LoggedText, number: int) -> Fit:
        """The text on a sample, at the offset at which most of its tokens are the sample's."""
        sample = self.samples[number]
        offsets: tuple[int, ...]
        if text.whole:
            offsets = (0, 1, -1)
        else:
            offsets = (len(sample.ids) - len(text), sample.first, 0)
        fits = [
            Fit(offset, self._common(text, sample, offset), text, sample, number)
            for offset in offsets
            if offset < len(sample.ids) and (text.whole or offset >= 0)
        ]
        nothing = Fit(0, 0, text, sample, number)
        return max(fits, key=lambda fit: fit.agreed, default=nothing)

    def _common(self, text: LoggedText, sample: Sample, offset: int) -> int:
        """How many tokens agree from the beginning on; those beyond the sample do not count."""
        start = max(0, -offset)
        end = min(len(text), len(sample.ids) - offset)
        for place in range(start, end):
            if not self._agrees(text, place, sample.ids[place + offset]):
                return place
        return len(text) if end < len(text) else end  # what follows the sample is no matter

    def _agrees(self, text: LoggedText, place: int, id: int) -> bool:
        if text.ids is not None:
            return text.ids[place] == id
        assert text.pieces is not None
        return self.spelling.agrees(text.pieces[place], id)

    def _same_text(self, fit: Fit) -> bool:
        """Whether the two are one text, cut into other tokens."""
        said = [fit.text.text or "", self._said(fit.text)]
        own = _letters(self.spelling.tokenizer.decode(fit.sample.ids))
        return any(own.endswith(_letters(each)) and _letters(each) for each in said)

    def _said(self, text: LoggedText) -> str:
        """The words of the pieces."""
        return octets_of(text.pieces or ()).decode("utf-8", "replace")

    @cached_property
    def by_words(self) -> dict[str, list[int]]:
        """The samples by the letters of their completions, and of all their tokens."""
        found: dict[str, list[int]] = {}
        for number, sample in enumerate(self.samples):
            for ids in {sample.scored, sample.ids}:
                with suppress(ByhandError):
                    found.setdefault(_letters(self.spelling.tokenizer.decode(ids)), []).append(
                        number
                    )
        return found

    # ------------------------------------------------------------------ what is kept

    def _keep(self, place: int, fit: Fit) -> None:
        number = fit.number
        matched = Matched(
            self.log.engine,
            fit.sample,
            values_of(fit),
            tuple(
                replace(found, where=found.where or fit.sample.name)
                for found in (*fit.text.findings, *odd_values(fit.text), *self._differences(fit))
            ),
            tuple(best_of(fit)),
        )
        if number not in self.found:
            self.found[number] = place, matched
            return
        before = self.found[number][1]
        both = np.isfinite(before.logprobs) & np.isfinite(matched.logprobs)
        apart = np.abs(before.logprobs - matched.logprobs)[both].max(initial=0)
        self.findings.append(
            Finding(
                "duplicate",
                _("A text stands in the log twice; the first one was taken."),
                _("largest difference of the two {value:.3g}").format(value=apart),
                fit.sample.name,
            )
        )

    def _differences(self, fit: Fit) -> Iterator[Finding]:
        """Where the tokens of the log are not those of the sample."""
        text, sample = fit.text, fit.sample
        if fit.offset == 1 and text.whole and fit.agreed:
            yield Finding(
                "no first token",
                _("The log lacks the first token; whether the engine read it is open."),
                _("first token {token}").format(token=self.spelling.text(sample.ids[0])),
                sample.name,
                0,
            )
        if fit.offset == -1 and text.whole and fit.agreed:
            yield Finding(
                "another first token",
                _("The engine read one token more at the beginning, so every context is another."),
                _("it read {token} first").format(token=self._token(text, 0)),
                sample.name,
                0,
            )
        known = self.by_name.get(text.name) == fit.number
        if not (text.whole or known) and fit.offset and self.completions[sample.scored] > 1:
            yield Finding(
                "same completion",
                _("Several texts end alike; each was taken for the one in its place."),
                _("{count} texts").format(count=self.completions[sample.scored]),
                sample.name,
            )
        if fit.offset == 0 and fit.agreed and text.given[0] and text.logprobs[0] != 0:
            yield Finding(
                "first token scored",
                _("The first token has a value: more was read before it, or values are shifted."),
                _("{value:.5g} for {token}").format(
                    value=text.logprobs[0], token=self.spelling.text(sample.ids[0])
                ),
                sample.name,
                0,
            )
        if not fit.complete and fit.common < len(text):
            yield self._first_difference(fit)
        elif fit.offset + len(text) < len(sample.ids):
            yield Finding(
                "missing tokens",
                _("The log ends before the text does."),
                _("{count} of {all} tokens").format(
                    count=fit.offset + len(text), all=len(sample.ids)
                ),
                sample.name,
                fit.offset + len(text),
            )

    def _first_difference(self, fit: Fit) -> Finding:
        text, sample = fit.text, fit.sample
        at = fit.common + fit.offset
        rest, own = len(text) - fit.common, len(sample.ids) - at
        for count in range(1, min(own - rest, 64) + 1 if own > rest else 0):
            later = range(min(rest, own - count))
            if all(self._agrees(text, fit.common + n, sample.ids[at + count + n]) for n in later):
                return Finding(
                    "missing tokens",
                    _("Tokens are missing in the log; what follows them was left out."),
                    _("{count} from position {place} on, first {token}").format(
                        count=count, place=at, token=self.spelling.text(sample.ids[at])
                    ),
                    sample.name,
                    at,
                )
        return Finding(
            "other tokens",
            _("The log has other tokens than the text; what follows the first was left out.")
            if not self._same_text(fit)
            else _("The text was cut into other tokens; what follows the first was left out."),
            _("position {place}: {theirs} in the log, {ours} here").format(
                place=at,
                theirs=self._token(text, fit.common),
                ours=self.spelling.text(sample.ids[at]),
            ),
            sample.name,
            at,
        )

    def _token(self, text: LoggedText, place: int) -> str:
        if text.ids is not None:
            return f"{self.spelling.text(text.ids[place])} (id {text.ids[place]})"
        assert text.pieces is not None
        return repr(text.pieces[place])

    # ------------------------------------------------------------------ the log as a whole

    def _unknown(self, text: LoggedText) -> None:
        self.findings.append(
            Finding(
                "unknown text",
                _("A text of the log is none of those that are scored."),
                _("{count} tokens").format(count=len(text)),
                text.where,
            )
        )

    def _order(self) -> None:
        places = [self.found[number][0] for number in sorted(self.found)]
        turned = sum(later < before for before, later in itertools.pairwise(places))
        if turned:
            self.findings.append(
                Finding(
                    "order",
                    _("The log has the texts in another order; they were matched by their tokens."),
                    _("{count} of {all} stand before the one that they follow here").format(
                        count=turned, all=len(places)
                    ),
                    self.log.source,
                )
            )

    def _missing(self) -> None:
        absent = [n for n in range(len(self.samples)) if n not in self.found]
        if absent:
            self.findings.append(
                Finding(
                    "missing texts",
                    _("The log lacks texts that are scored."),
                    _("{count} of {all}, first {name}").format(
                        count=len(absent), all=len(self.samples), name=self.samples[absent[0]].name
                    ),
                    self.log.source,
                )
            )


def _letters(text: str) -> str:
    return "".join(text.split())
