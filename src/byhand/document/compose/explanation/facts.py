"""Facts in sentences: how each prediction comes about, and the effect of removing a step.

The facts come from `explaining.facts`: which token leads after which step, by how much, and the
expected and actual effects of removing a step.  Undecided facts are told as undecided.  `inputs`
tells of every text of a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from byhand.document import words
from byhand.document.compose.explanation.inputs import finding_of, tell_inputs
from byhand.document.compose.explanation.numerals import Numerals
from byhand.document.compose.explanation.scope import Scope
from byhand.document.compose.explanation.wording import (
    MOST_PARTS,
    either,
    part_name,
    quoted,
    why_untold,
)
from byhand.document.parts import Finding
from byhand.language import _
from byhand.numbers.base import Prediction

if TYPE_CHECKING:
    from byhand.explaining.ablation import Part
    from byhand.explaining.facts import Check, Fact, Facts
    from byhand.explaining.turning import Change, Turning

MOST_TURNS = 3  # changes of the leader told one by one
MOST_FATES = 5  # kinds of effects told one by one


def parts(scope: Scope) -> Iterator[Finding]:
    """How the prediction comes about, in sentences, each checked by removing a step."""
    found = scope.found
    several = scope.every or (found.few_positions and (scope.full or found.few_texts))
    yield from findings(found.whole_facts if several else found.facts)
    if found.few_texts or found.length is not None:
        yield finding_of(tell_inputs(found.inputs))


def findings(facts: Facts) -> tuple[Finding, ...]:
    """Every fact, its first sentence as the lead."""
    return tuple(finding_of(each.sentences, facts.missing is not None) for each in tell(facts))


@dataclass(frozen=True, slots=True)
class Telling:
    """The sentences about one position, or about a text that cannot be explained."""

    position: int | None
    sentences: tuple[str, ...]


def tell(facts: Facts) -> tuple[Telling, ...]:
    """Every fact in sentences."""
    if facts.missing is not None:
        text = _("The predictions cannot be explained: {reason}.")
        return (Telling(None, (text.format(reason=why_untold(facts.missing)),)),)
    teller = _Teller(facts)
    return tuple(
        Telling(fact.position, tuple(filter(None, teller.sentences(fact)))) for fact in facts.facts
    )


class _Teller:
    """The sentences of one trace."""

    def __init__(self, facts: Facts) -> None:
        self.trace = facts.trace
        self.numerals = Numerals.of(facts.trace)

    def token(self, id: int) -> str:
        return quoted(self.trace.token(id))

    def answer(self, id: int) -> str:
        return quoted(self.trace.answer(id))

    def name(self, part: Part) -> str:
        return part_name(part, self.trace.model.spec)

    def apart(self, lead: Any) -> str:
        """The distance between two logits, whichever leads."""
        return self.numerals.text(lead).removeprefix("-")

    def sentences(self, fact: Fact) -> Iterator[str]:
        yield self.headline(fact.turning)
        if fact.prediction.id is None:
            return
        yield self.story(fact.turning)
        yield self.shares(fact.turning)
        yield from self.said(fact)
        yield from self.checks(fact)

    # ------------------------------------------------------------------- what comes, and how

    def headline(self, turning: Turning) -> str:
        """The next token, and by how much it leads."""
        found, place = turning.prediction, turning.position
        names = {"token": self.token(self.trace.tokens[place]), "place": place}
        if found.id is None:
            candidates = [self.answer(id) for id in found.candidates]
            text = _("What comes after {token} (position {place}) is not known: {reason}.")
            return text.format(**names, reason=words.undecided(candidates))
        names["next"] = self.answer(found.id)
        if found.tied:
            names["tied"] = words.some_of([self.answer(id) for id in found.tied])
            if found.proven:
                text = _(
                    "After {token} (position {place}) comes {next}: the logits of {tied} are "
                    "proven to be equal, and the first of them is taken."
                )  # fmt: skip
            else:
                text = _("After {token} (position {place}) comes {next}: the logits of {tied} are "
                         "equal, and the first of them is taken.")  # fmt: skip
            return text.format(**names)
        if turning.rival is None:
            return _("After {token} (position {place}) comes {next}.").format(**names)
        if found.proven:
            text = _("After {token} (position {place}) comes {next}, ahead of {rival} by {lead}, "
                     "proven.")  # fmt: skip
        else:
            text = _("After {token} (position {place}) comes {next}, ahead of {rival} by {lead}.")
        names |= {"rival": self.answer(turning.rival), "lead": self.apart(turning.lead)}
        return text.format(**names)

    def story(self, turning: Turning) -> str:
        """The leader after the embedding, and the steps that change it."""
        first = turning.readings[0].leader
        if turning.turned is None:
            at = [r.address for r in turning.readings if r.leader.id is None]
            text = _(
                "Which step turns it there is not known: who leads after {steps} is undecided."
            )  # fmt: skip
            return text.format(steps=words.some_of(at))
        start = _("nothing that is decided") if first.id is None else self.leader(first)
        if not turning.changes:
            text = _("The embedding alone already says {first}, and no step turns it away.")
            return text.format(first=start)
        turns = [self.turn(change) for change in turning.changes[-MOST_TURNS:]]
        turns[-1] += ", " + self.distance(turning.changes[-1])
        told = ", ".join(turns)
        if hidden := len(turning.changes) - len(turns):
            text = _("The embedding alone says {first}; after {count} other turns {told}.")
            return text.format(first=start, count=words.whole(hidden), told=told)
        return _("The embedding alone says {first}; {told}.").format(first=start, told=told)

    def leader(self, found: Prediction) -> str:
        """The leader, and the tokens level with it."""
        assert found.id is not None
        token = self.answer(found.id)
        level = [self.answer(id) for id in found.tied if id != found.id]
        if not level:
            return token
        return _("{token} (level with {others})").format(token=token, others=words.some_of(level))

    def turn(self, change: Change) -> str:
        text = _("{part} turns it to {token}")
        return text.format(part=self.name(change.part), token=self.answer(change.new))

    def distance(self, change: Change) -> str:
        """From how far behind to how far ahead a token moves."""
        before, after = self.apart(change.before), self.apart(change.after)
        if _nothing(before):
            text = _("from level with {old} to {after} ahead of it")
        elif _nothing(after):
            text = _("from {before} behind {old} to level with it")
        else:
            text = _("from {before} behind {old} to {after} ahead of it")
        return text.format(before=before, after=after, old=self.answer(change.old))

    def shares(self, turning: Turning) -> str:
        """What adds most to the lead, and what takes most from it."""
        most, least = turning.foremost, turning.against
        if turning.rival is None or turning.prediction.tied or most is None:
            return ""
        value = self.numerals.signed(most.value)
        alike = [
            self.name(one.part)
            for one in turning.contributions
            if one.value is not None and self.numerals.signed(one.value) == value
        ]
        names = {
            "rival": self.answer(turning.rival),
            "parts": words.joined(alike),
            "value": value if len(alike) == 1 else _("{value} each").format(value=value),
        }
        if least is None:
            return _("The lead over {rival} comes above all from {parts} ({value}).").format(
                **names
            )
        text = _("The lead over {rival} comes above all from {parts} ({value}); {other} takes "
                 "most away ({less}).")  # fmt: skip
        names |= {"other": self.name(least.part), "less": self.numerals.signed(least.value)}
        return text.format(**names)

    # ------------------------------------------------------------------- what happens without it

    def said(self, fact: Fact) -> Iterator[str]:
        """The expected effect of removing a part, from its direct contribution alone."""
        groups: dict[tuple[Any, ...], list[Check]] = {}
        for check in fact.checks:
            if check.said.id not in (fact.prediction.id, None):
                groups.setdefault((check.said.id, check.said.tied), []).append(check)
        for group in groups.values():
            names = {"parts": self.names(group), "said": self.leader(group[0].said)}
            yield _("Without what {parts} adds, {said} would lead.").format(**names)

    def checks(self, fact: Fact) -> Iterator[str]:
        """The effect of removing each part, beside the expected one; equal effects together."""
        told = fact.prediction
        groups: dict[tuple[Any, ...], list[Check]] = {}
        for check in fact.checks:
            groups.setdefault(_fate(check), []).append(check)
        changing = [group for group in groups.values() if group[0].found.id not in (told.id, None)]
        undecided = [group for group in groups.values() if group[0].found.id is None]
        staying = [group for group in groups.values() if group[0].found.id == told.id]
        if staying and not changing and not undecided:
            yield _("Checked: no single part is needed.")
        shown = changing if len(changing) <= MOST_FATES else changing[: MOST_FATES - 1]
        for group in shown:
            yield self.changes(group, self.token(self.trace.tokens[fact.position]))
        if rest := [check for group in changing[len(shown) :] for check in group]:
            yield self.more_changes(rest)
        for group in undecided:
            yield self.open(group)
        large = sum(len(group) > MOST_PARTS for group in staying)
        for group in staying:
            many = len(group) > MOST_PARTS and large == 1
            yield self.stays(group, self.all_others(group, fact) if many else self.names(group))

    def names(self, group: Iterable[Check]) -> str:
        return either([self.name(check.part) for check in group])

    def all_others(self, group: Sequence[Check], fact: Fact) -> str:
        """A name for many parts: all, or all others."""
        if len(group) == len(fact.checks):
            text = _("any one of the {count} parts")
        else:
            text = _("any one of the other {count} parts")
        return text.format(count=words.whole(len(group)))

    def more_changes(self, checks: Sequence[Check]) -> str:
        """A sentence on many parts whose removal changes the prediction in different ways."""
        text = _("Checked: without {parts} it is another token, too; {right} of these {count} as "
                 "expected.")  # fmt: skip
        right = sum(check.as_said is True for check in checks)
        count = words.whole(len(checks))
        return text.format(parts=self.names(checks), right=words.whole(right), count=count)

    def changes(self, group: Sequence[Check], token: str) -> str:
        """A sentence: without the part, the prediction changes."""
        one = group[0]
        names = {"parts": self.names(group), "token": token, "found": self.leader(one.found)}
        if one.as_said:
            text = _(
                "Checked: without {parts} the prediction after {token} is {found}, as expected."
            )
        elif one.said.id is None:
            text = _("Checked: without {parts} the prediction after {token} is {found}; what to "
                     "expect was undecided.")  # fmt: skip
        else:
            names["said"] = self.leader(one.said)
            text = _("Checked: without {parts} the prediction after {token} is {found}, not as "
                     "expected: by what is added directly it would be {said}.")  # fmt: skip
        return text.format(**names)

    def stays(self, group: Sequence[Check], parts: str) -> str:
        """A sentence: without the part, the prediction stays."""
        one = group[0]
        names = {"parts": parts, "found": self.leader(one.found)}
        if one.as_said:
            text = _("Without {parts} it stays {found}, as expected.")
        elif one.said.id is None:
            text = _("Without {parts} it stays {found}; what to expect was undecided.")
        else:
            names["said"] = self.leader(one.said)
            text = _("Without {parts} it stays {found}, not as expected: by what is added "
                     "directly it would be {said}.")  # fmt: skip
        return text.format(**names)

    def open(self, group: Sequence[Check]) -> str:
        """A sentence: the effect of removing the part is unknown."""
        candidates = [self.answer(id) for id in group[0].found.candidates]
        text = _("Without {parts} the prediction is not known: {reason}.")
        return text.format(parts=self.names(group), reason=words.undecided(candidates))


def _nothing(number: str) -> bool:
    """Whether the number is 0; other numbers show a digit."""
    return set(number) <= set("0.")


def _fate(check: Check) -> tuple[Any, ...]:
    """A key: checks with equal keys share a sentence."""
    found, said = check.found, check.said
    said_key = None if check.as_said else (said.id, said.tied)
    return found.id, found.tied, found.candidates if found.id is None else (), said_key
