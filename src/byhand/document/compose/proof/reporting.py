"""The report of a search for a proof: its title and its sections, in reading order."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from byhand.document import words
from byhand.document.compose.proof import answers, cases, domain, leads
from byhand.document.parts import Part, Section, Title
from byhand.language import _
from byhand.proving.outcome import OPEN, Leaf, Outcome
from byhand.proving.reading import sentences


def report(outcome: Outcome, called: str = "") -> list[Part | Section]:
    """The whole report; `called` is what the reader called the model."""
    return [title(outcome), answers.answer(outcome), *sections(outcome, called)]


def title(outcome: Outcome) -> Title:
    """The property in words, and the model that it is about."""
    property = outcome.property
    model = words.printable(property.own.name)
    told = sentences.of_property(property.source, outcome.texts)
    name = property.source.get("property")
    if name:
        return Title(str(name), told, ((_("model"), model),))
    return Title(model, told, ())


def sections(outcome: Outcome, called: str = "") -> Iterator[Section]:
    """The domain, the cases and the tightest of them; before them a counterexample or what is
    left."""
    if outcome.counterexample is not None:
        name = called or outcome.called or outcome.property.own.name
        shown = answers.counterexample(outcome, quote(name))
        yield Section("counterexample", _("The counterexample"), "", tuple(shown))
    if outcome.answer == OPEN and outcome.open:
        yield Section("left", _("What is left"), "", (answers.left(outcome),))
    yield Section("domain", _("The texts"), "", (domain.picture(outcome),))
    yield Section("cases", _("The cases"), _about_cases(outcome), tuple(cases.parts(outcome)))
    table = leads.tightest(outcome)
    if table is not None:
        yield Section("leads", _("Where it is tightest"), _about_leads(outcome), (table,))


def _about_cases(outcome: Outcome) -> str:
    """How the domain was taken apart."""
    if outcome.counterexample is not None:
        return _("The search ended with the counterexample; what it had not decided is open.")
    if len(outcome.trees) == 1 and isinstance(outcome.trees[0], Leaf):
        return _("The whole domain is one case.")
    return _(
        "The domain was cut until each part could be decided: by one pass for all its texts, or "
        "by a pass for each of them."
    )


def _about_leads(outcome: Outcome) -> str:
    if answers.bounds_asked(outcome):
        return _(
            "Every margin is a proven lower bound for all texts of its case: the smaller it is, "
            "the nearer the number comes to its bound."
        )
    return _(
        "Every number is a proven lower bound for all texts of its case: the smaller it is, the "
        "nearer another token comes."
    )
