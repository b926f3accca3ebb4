"""What each head is for, a finding a head: where it looks, and what would come without it.

A sentence is said only where its numbers carry it (`explaining.roles`); of the other heads, their
count is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from byhand.document.compose.explanation.scope import Scope
from byhand.document.compose.explanation.wording import quoted, trip_name
from byhand.document.numerals import written
from byhand.document.parts import Finding, Part, Remark
from byhand.language import _, amount, later

if TYPE_CHECKING:
    from byhand.explaining import Explanation
    from byhand.explaining.facts import Check, Facts
    from byhand.explaining.roles import HeadRole, Role

MOST_STORIES = 12  # heads that are told of
MUCH = 0.1  # of the lead: a head that adds less is not said to add to it

ROLES: Mapping[str, str] = {
    "before": later("{head} looks at the token before."),
    "itself": later("{head} looks at its own position."),
    "start": later("{head} looks at the first token."),
    "same": later("{head} looks for the same token earlier in the text."),
    "after_same": later("{head} looks at what came after the same token before."),
    "one": later("{head} looks at {key} from most positions."),
    "even": later("{head} looks at all positions alike."),
}


def stories(found: Explanation, told: Facts | None) -> tuple[Part, ...]:
    """A finding for every head of which something is clear, those that are needed first."""
    from byhand.explaining.roles import head_roles

    teller = _Teller(found, told)
    heads = head_roles(found.trace, found.position)
    clear = [one for one in heads if one.role is not None or one.keys
             or teller.needs(one)]  # fmt: skip
    first = sorted(clear, key=teller.order)[:MOST_STORIES]
    findings: list[Part] = [teller.story(one) for one in first]
    if rest := len(heads) - len(first):
        text = amount(
            rest,
            later("Of 1 other head nothing so clear can be said on this text."),
            later("Of {count} other heads nothing so clear can be said on this text."),
        )
        findings.append(Remark("more", text))
    return tuple(findings) if first else ()


class _Teller:
    """The sentences about the heads of one explanation."""

    def __init__(self, found: Explanation, told: Facts | None) -> None:
        self.found, self.scope = found, Scope(found)
        self.spec = found.model.spec
        self.next = None if found.trace.next is None else found.trace.next[found.position].id
        facts = () if told is None else told.facts
        self.checks: tuple[Check, ...] = next(
            (fact.checks for fact in facts if fact.position == found.position), ()
        )

    def story(self, one: HeadRole) -> Finding:
        """What is clear about one head: the first sentence, and its evidence."""
        said = [*self.looks(one), *self.matters(one)]
        return Finding(written(said[0]), tuple(map(written, said[1:])))

    # ------------------------------------------------------------------ where it looks

    def looks(self, one: HeadRole) -> Iterator[str]:
        head = self.name(one)
        if one.role is not None:
            key = "" if one.role.key is None else self.at(one.role.key)
            yield _(ROLES[one.role.kind]).format(head=head, key=key)
            yield self.evidence(one.role)
        if one.keys:
            yield self.looks_from_here(one, *one.keys)
        elif one.role is None:
            text = _("{head} has no single place to look at, and the prediction needs it.")
            yield text.format(head=head)

    def looks_from_here(self, one: HeadRole, key: int, *others: int) -> str:
        """The position looked at from the one that is explained, with its weight."""
        here = self.found.position
        worked = self.found.trace.steps[f"block.{one.layer}.attn.weights"]
        shares = [self.scope.number(worked.at((one.head, here, at))) for at in (key, *others)]
        names = {"place": self.at(here), "key": self.at(key), "share": shares[0]}
        if others:
            text = _("From {place}, {head} looks at {key} and {other}, with weights {share} and "
                     "{second}.")  # fmt: skip
            names |= {"other": self.at(others[0]), "second": shares[1]}
        elif one.role is not None:
            text = _("From {place} it gives {key} a weight of {share}.")
        elif key == here:
            text = _("{head} stays at {place}: its own position gets a weight of {share}.")
        elif key == here - 1:
            text = _("From {place}, {head} looks just before it, at {key}, with weight {share}.")
        else:
            text = _("From {place}, {head} looks at {key}, with weight {share}.")
        head = self.name(one)
        head = head if text.startswith("{head}") else head[:1].lower() + head[1:]
        return text.format(head=head, **names)

    def evidence(self, role: Role) -> str:
        if role.kind == "even":
            text = _("In {rows} rows no weight is more than {apart} % from equal ones.")
            return text.format(rows=role.rows, apart=f"{100 * role.average:.1f}")
        text = _("On average {share} of a row's weight goes there, the most of it in {first} of "
                 "{rows} rows.")  # fmt: skip
        return text.format(share=f"{role.average:.2f}", first=role.first, rows=role.rows)

    # ------------------------------------------------------------------ what it does

    def matters(self, one: HeadRole) -> Iterator[str]:
        if (added := self.added(one)) is not None:
            value, names = added
            text = _("It adds {value} to the lead of {token} over {rival}.")
            if value.startswith("-"):
                text = _("It takes {value} from the lead of {token} over {rival}.")
            yield text.format(value=value.lstrip("+-"), **names)
        check = self.check(one)
        if check is None or check.found.id is None or self.next is None:
            return
        names = {"found": self.answer(check.found.id), "next": self.answer(self.next)}
        if self.needs(one):
            yield _("Checked: without it, {found} comes in place of {next}.").format(**names)
        else:
            yield _("Checked: without it, {next} still comes.").format(**names)

    def needs(self, one: HeadRole) -> bool:
        """Whether the prediction was found to change without the head."""
        check = self.check(one)
        return (
            check is not None
            and None not in (self.next, check.found.id)
            and (check.found.id != self.next)
        )

    def order(self, one: HeadRole) -> tuple[bool, float]:
        """The heads that the prediction needs come first, then those that add most to its lead."""
        every = self.found.foremost()
        pairs = () if every is None else zip(every.terms, every.sizes, strict=True)
        added = (
            abs(size)
            for term, size in pairs
            if term.source.kind == "head"
            and (term.source.layer, term.source.index[:1]) == (one.layer, (one.head,))
        )
        return not self.needs(one), -next(added, 0.0)

    def check(self, one: HeadRole) -> Check | None:
        attention = self.spec.blocks[one.layer].attention
        alone = attention is not None and attention.heads == 1
        for check in self.checks:
            if check.part.layer == one.layer and (
                (check.part.kind == "head" and check.part.index == one.head)
                or (alone and check.part.kind == "attn")
            ):
                return check
        return None

    def added(self, one: HeadRole) -> tuple[str, dict[str, Any]] | None:
        """What the head adds directly to the lead, where that is much of it."""
        found = self.found.attribution
        if found is None or len(self.found.compared) != 2:
            return None
        every = self.found.foremost()
        assert every is not None
        for term, size in zip(every.terms, every.sizes, strict=True):
            source, head = term.source, (one.layer, (one.head,))
            if source.kind == "head" and (source.layer, source.index[:1]) == head:
                if abs(size) < MUCH * abs(sum(every.sizes)):
                    return None
                token, rival = map(self.answer, self.found.compared)
                value = self.scope.numerals.signed(term.array[0, 0])
                return value, {"token": token, "rival": rival}
        return None

    # ------------------------------------------------------------------ names

    def name(self, one: HeadRole) -> str:
        name = trip_name("head", one.layer, one.head, self.spec)
        return name[:1].upper() + name[1:]

    def at(self, place: int) -> str:
        token = quoted(self.found.trace.token(self.found.trace.tokens[place]))
        return _("{token} (position {place})").format(token=token, place=place)

    def answer(self, id: int) -> str:
        return quoted(self.found.trace.answer(id))
