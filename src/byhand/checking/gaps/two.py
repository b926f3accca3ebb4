"""Two mistakes in one gap: a candidate that brings the prediction nearer, and another on top of it.

The second one is searched like the first, in the plan that the first one has edited.
"""

from __future__ import annotations

from dataclasses import replace

from byhand.checking.gaps.candidates import listed_on_top
from byhand.checking.gaps.fits import fit
from byhand.checking.gaps.knobs import knobs
from byhand.checking.gaps.search import Candidate, Search
from byhand.checking.gaps.values import STUMBLES
from byhand.checking.suspects.scenes import SUSPECT, Edit, Scene
from byhand.language import _
from byhand.plan import Plan

MOST_FIRSTS = 3  # candidates that are followed up
NEARER = 0.85  # of the model's distance: what a first mistake leaves at most
NEEDED = 4.0  # factor by which both leave less than the first alone
LEFT = 1.2  # × the usual rounding error: what both leave at most
FIRST = "first."


def pairs(search: Search, scene: Scene) -> None:
    """Notes the pairs of mistakes that leave what rounding usually leaves."""
    firsts = [each for each in search.found if each.distance <= NEARER * search.model]
    for count, first in zip(range(MOST_FIRSTS, 0, -1), firsts, strict=False):
        if first.distance <= LEFT:
            return
        share = search.work / count
        inner = Search(search.values, replace(search.judged, expected=first.predicted), share)
        edited = _renamed(first.edit.plan)
        inside = {step.address for step in scene.region}
        region = tuple(
            step for step in edited if step.address in inside or step.address.startswith(SUSPECT)
        )
        then = replace(scene, plan=edited, region=region)
        inner.try_all(sorted(listed_on_top(then), key=lambda edit: edit.unlikely), 0.5)
        try:
            fit(inner, then, knobs(then))
        except STUMBLES:
            continue
        search.work -= share - max(0.0, inner.work)
        for second in inner.found:
            if second.distance > LEFT or second.distance * NEEDED > first.distance:
                break
            search.note(_both(first, second), second.predicted)


def _renamed(plan: Plan) -> Plan:
    """The plan with other names for the lines that were written in: new ones may follow."""
    new = {
        step.address: SUSPECT + FIRST + step.address.removeprefix(SUSPECT)
        for step in plan
        if step.address.startswith(SUSPECT)
    }
    if not new:
        return plan
    steps = tuple(
        replace(
            step,
            address=new.get(step.address, step.address),
            inputs={role: new.get(read, read) for role, read in step.inputs.items()},
        )
        if step.address in new or not new.keys().isdisjoint(step.inputs.values())
        else step
        for step in plan
    )
    return replace(plan, steps=steps)


def _both(first: Candidate, second: Candidate) -> Edit:
    one, other = first.edit, second.edit
    words = {"first": one.sentence, "second": other.sentence}
    changes = {"first": one.change, "second": other.change}
    return Edit(
        f"{one.kind}+{other.kind}",
        _("{first}; and with that, {second}").format(**words),
        _("{first}; then {second}").format(**changes),
        other.plan,
        one.unlikely + other.unlikely + 2,
        one.fitted + other.fitted,
    )
