"""The independent checker: every case of a certificate decided again, by arithmetic of its own.

It shares no arithmetic with the prover.  Its forward pass is written again from `ModelSpec`
(`network`), once for Arb balls, for balls with letters and for rationals (`numbers`).  Regions are
cut again from the shapes of the property, so the cases cover it whatever a certificate says, and
functions of the variables are worked out again on whole numbers of its own (`areas`).  A case that
is too wide for this arithmetic is cut further, down to single texts (`claims`).  What cannot be
decided is rejected.  docs/certificates.md defines certificates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from byhand.display import Shown, quoted
from byhand.errors import InputError
from byhand.language import _
from byhand.model import Model
from byhand.proving import certificates
from byhand.proving.claims import Same
from byhand.proving.properties import Goal, Property, read_property
from byhand.verifying.areas import COUNTED, Area
from byhand.verifying.claims import TOGETHER, Case, Checker
from byhand.verifying.numbers import Wrong
from byhand.workers import Workers

TASKS = 8  # of each worker: enough to share them out evenly
LARGEST = 64  # cases of a task
# what a certificate or its property may lead to, none of which is ever accepted
REFUSALS = (Wrong, InputError, LookupError, ArithmeticError, ValueError)

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Verification(Shown):
    """Whether a certificate is accepted, and else the first reason why not.

    >>> import byhand
    >>> found = byhand.verify("tiny", byhand.prove("tiny", texts="a .", next="a"))
    >>> found.accepted, found.reasons, found.leaves
    (True, (), 1)
    """

    accepted: bool
    reasons: tuple[str, ...]
    leaves: int  # cases of the certificate
    texts: int | None  # of the domain; None where they are too many to count
    seconds: float

    def __repr__(self) -> str:
        if not self.accepted:
            return f"<Verification: rejected, {quoted(self.reasons[0], 100)}>"
        texts = "" if self.texts is None else f"{self.texts:,} text{'s' * (self.texts != 1)} in "
        return f"<Verification: accepted, {texts}{self.leaves:,} case{'s' * (self.leaves != 1)}>"


def verify(
    model: Model,
    certificate: Mapping[str, Any],
    property: Property | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Verification:
    """Decides every case of a certificate again.

    `property` is what the certificate must be about; where it is left out, the certificate itself
    says.  `progress` is told how many tasks, of all, are done.
    """
    begin = perf_counter()
    certificates.check_form(certificate)
    reasons, cases, texts = list[str](), list[Case](), None
    try:
        told = property or read_property(certificate["property"], model)
        _check_head(model, certificate, told)
        texts = _check_counts(certificate, told)
        cases = [case for n in range(len(told.goals)) for case in _cases(n, told, certificate)]
        reasons = _reasons(told, cases, jobs, progress)
    except REFUSALS as error:
        reasons = [str(error)]
    leaves = len({(case.goal, case.where) for case in cases})
    return Verification(not reasons, tuple(reasons), leaves, texts, perf_counter() - begin)


def _check_head(model: Model, certificate: Mapping[str, Any], told: Property) -> None:
    """Checks what a certificate says about itself: its digest, the model, the property."""
    goals, others = certificate["goals"], certificates.others_of(told)
    said = [one["digest"] for one in certificate.get("others", [])]
    if certificate["digest"] != certificates.certificate_digest(certificate):
        raise Wrong(_("the digest is not that of this certificate"))
    if certificate["model"]["digest"] != certificates.model_digest(model):
        raise Wrong(_("the certificate is about another model"))
    if certificate["property"] != certificates.as_json(told.source):
        raise Wrong(_("the certificate is about another property"))
    if said != [certificates.model_digest(other) for other in others]:
        raise Wrong(_("the model to agree with is another one"))
    if certificate["answer"] != "proven":
        raise Wrong(_("the certificate does not say that the property is proven"))
    if len(goals) != len(told.goals):
        raise Wrong(_("the property has {count} goals").format(count=len(told.goals)))
    if certificate["least"] != certificates.least_of(goals):
        raise Wrong(_("the least lead is not that of the cases"))


def _check_counts(certificate: Mapping[str, Any], told: Property) -> int | None:
    """Counts the texts of every goal again; returns how many the domain has."""
    counts: list[int | None] = []
    for n, goal in enumerate(told.goals):
        count = _whole(goal).texts
        if certificate["goals"][n]["texts"] != (None if count is None else str(count)):
            raise Wrong(f"goals[{n}]: " + _("there are {count} texts").format(count=count))
        if goal.shape.after == 0:
            counts.append(count)
    return None if None in counts else sum(count or 0 for count in counts)


def _whole(goal: Goal) -> Area:
    return Area(goal.shape, {one.name: one.values for one in goal.shape.variables})


def _cases(n: int, told: Property, certificate: Mapping[str, Any]) -> Iterator[Case]:
    """The leaves of a goal, whose areas are cut here; many texts are several parts of work."""
    todo = [(certificate["goals"][n]["tree"], _whole(told.goals[n]), f"goals[{n}].tree")]
    while todo:
        node, area, where = todo.pop()
        if "cut" in node:
            if node["cut"] not in area.allowed:
                raise Wrong(
                    f"{where}: " + _("there is no variable {name}").format(name=node["cut"])
                )
            for side, part in reversed([*enumerate(area.cut(node["cut"], set(node["first"])))]):
                todo.append((node["parts"][side], part, f"{where}.{side}"))
            continue
        case = Case(n, where, area.allowed, node)
        none = node["by"] == "none"
        if (area.empty and node["by"] == "letters") or (none and area.box > COUNTED):
            raise Wrong(
                f"{where}: " + _("the certificate is wrong about whether there is a text here")
            )
        if node["by"] != "each":
            yield case
            continue
        count = sum(1 for _assigned in area.assignments())
        if count != node["texts"]:
            raise Wrong(f"{where}: " + _("there are {count} texts").format(count=count))
        for start in range(0, max(count, 1), TOGETHER):
            yield case._replace(start=start, stop=start + TOGETHER)


def _reasons(told: Property, cases: list[Case], jobs: int, progress: Progress | None) -> list[str]:
    """The first case that is wrong, and why; cases are shared out among processes if asked."""
    firsts = (Checker(told).first_prediction(case) for case in cases
              if isinstance(told.goals[case.goal].claim, Same))  # fmt: skip
    same = next((token for token in firsts if token is not None), None)
    size = max(1, min(len(cases) // (TASKS * jobs), LARGEST))
    tasks = [cases[n : n + size] for n in range(0, len(cases), size)]
    with Workers(jobs) as workers:
        checker = Checker(told, same) if jobs == 1 else None
        for task in tasks:
            if checker:
                workers.submit(_wrong, checker, task)
            else:
                workers.submit(_wrong_here, dict(told.source), told.own, same, task)
        for done, found in enumerate(workers.results(), start=1):
            if progress:
                progress(done, len(tasks))
            if found:
                return list(found)
    return []


def _wrong(checker: Checker, cases: list[Case]) -> list[str]:
    """The first of these cases that is wrong, if any."""
    for case in cases:
        try:
            checker.check(case)
        except REFUSALS as error:
            return [f"{case.where}: {error}"]
    return []


def _wrong_here(
    source: Mapping[str, Any], model: Model, same: int | None, cases: list[Case]
) -> list[str]:
    """The same in a process of its own, which lives for one certificate and reads it once."""
    if not _here:
        _here.append(Checker(read_property(source, model), same))
    return _wrong(_here[0], cases)


_here: list[Checker] = []
