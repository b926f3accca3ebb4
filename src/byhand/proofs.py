"""`byhand.prove` and `byhand.verify`: a property of every text of a domain, proven and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from byhand.api import as_model
from byhand.language import _
from byhand.model import Model
from byhand.models import called
from byhand.options import does_not_fit, refuse_together, refuse_unless_whole
from byhand.proving import certificates, search
from byhand.proving.outcome import Outcome
from byhand.proving.properties import Property, read_property, simple
from byhand.verifying import Progress, Verification
from byhand.verifying import verify as check
from byhand.workers import cores

MOST_JOBS = 1_024
MOST_SECONDS = 10**9
SMALL = 20_000  # texts that one process decides before others have started
FEW_CASES = 50  # that it checks before


class Simple(TypedDict, total=False):
    """A property in a few words, as the command line has them for options."""

    texts: str | Sequence[str]
    up_to: int
    length: int
    of: str | Sequence[str]
    where: Mapping[str, Any]
    next: Any
    continuation: Any
    file: str | Path
    lead: str
    at: str
    agree: str | Path | Model
    constant: bool
    unmoved: bool
    printed: int
    within: Any
    rounded_to: str
    known_to: str
    moved: Any


def prove(
    model: str | Path | Model,
    property: str | Path | Mapping[str, Any] | Property | None = None,
    *,
    jobs: int | None = 1,
    seconds: float | None = None,
    resume: str | Path | None = None,
    cluster: str | None = None,
    progress: search.Watch | None = None,
    **said: Unpack[Simple],
) -> Outcome:
    """A property of every text of a domain: proven, refuted by a text, or open.

    The `property` is a file (docs/property-files.md), a mapping with its keys, or `said` in
    options.  Its texts are those of a pattern or of a list (`texts`), or all texts `up_to` a
    length or of one `length`, `of` some tokens; `where` gives the ranges of variables.  It claims
    what comes `next` (tokens, or a Python expression of the variables, or a function in a `file`)
    or the whole `continuation`; or the `lead` of one token over another, "A over B by 1/2"; or a
    bound of a number, `at` "block.0.attn.weights[0,-1,0] >= 0.9"; or that another model agrees
    (`agree`), that all texts have the same prediction (`constant`), or that each has the model's
    own (`unmoved`), whatever the weights are.  They may be any that are `printed` like these with
    so many decimals, or lie `within` a distance, or are `known_to` a float format; or are
    `rounded_to` one.  Embeddings may be `moved` by a distance.

    The search takes so many `jobs` (None: as many as there are cores, where it is worth it) and
    `seconds`, or the machines of a Ray `cluster`.  `resume` is a file in which all that is decided
    is kept; if it is there, the search goes on from it.  `progress` is called with the standing.

    >>> import byhand
    >>> byhand.prove("tiny", texts="a .", next="a")
    <Outcome of tiny: proven for 3 texts in 1 case>
    >>> found = byhand.prove("tiny", texts=". b", next="a")
    >>> found
    <Outcome of tiny: refuted by 'b b'>
    >>> found.counterexample.address, found.trace_command
    ('logits[1,0]', "byhand trace tiny 'b b'")
    """
    refuse_unless_whole("jobs", jobs, 1, MOST_JOBS)
    _refuse_unless_seconds(seconds)
    opened = as_model(model)
    asked = _asked(opened, property, said)
    found = search.prove(
        asked,
        jobs=_jobs(asked) if jobs is None else jobs,
        seconds=seconds,
        resume=resume,
        progress=progress,
        cluster=cluster,
    )
    return replace(found, called=called(model))


def _refuse_unless_seconds(seconds: Any) -> None:
    """Raises a UsageError where a time is not a number of seconds."""
    fits = isinstance(seconds, int | float) and 0 < seconds <= MOST_SECONDS
    if seconds is not None and not fits:
        raise does_not_fit("seconds", _("a number above 0"), seconds)


def _asked(
    model: Model,
    property: str | Path | Mapping[str, Any] | Property | None,
    said: Simple,
) -> Property:
    """The property of a file, a mapping or options."""
    for name in said:
        if name not in Simple.__annotations__:
            raise TypeError(f"prove() got an unexpected keyword argument {name!r}")
        refuse_together({"property": property is not None, name: True})
    if isinstance(property, Property):
        return property
    if property is not None:
        return read_property(property, model)
    words: dict[str, Any] = dict(said)
    if isinstance(words.get("texts"), str):
        words["pattern"] = words.pop("texts")
    return simple(model, **words)


def _jobs(property: Property) -> int:
    """One process for few texts, else one for each core."""
    wholes = (goal.shape.whole for goal in property.goals)
    return 1 if sum(whole.box for whole in wholes if whole is not None) <= SMALL else cores()


def verify(
    model: str | Path | Model,
    certificate: str | Path | Mapping[str, Any] | Outcome,
    property: str | Path | Mapping[str, Any] | None = None,
    *,
    jobs: int | None = 1,
    progress: Progress | None = None,
) -> Verification:
    """A certificate checked: every case decided again, by arithmetic that the prover does not use.

    The `certificate` is a file, its content, or a proven outcome.  It says what it proves; with a
    `property` it must be that one.  `jobs` are as for `prove`; `progress` is told how many tasks,
    of all, are done.

    >>> import byhand
    >>> byhand.verify("tiny", byhand.prove("tiny", texts="a .", next="a"))
    <Verification: accepted, 3 texts in 1 case>
    """
    refuse_unless_whole("jobs", jobs, 1, MOST_JOBS)
    opened = as_model(model)
    if isinstance(certificate, Outcome):
        found: Mapping[str, Any] = certificates.certificate(certificate)
    elif isinstance(certificate, Mapping):
        certificates.check_form(certificate)
        found = certificate
    else:
        found = certificates.read_certificate(Path(certificate))
    asked = None if property is None else read_property(property, opened)
    if jobs is None:
        jobs = cores() if _cases(found) > FEW_CASES else 1
    return check(opened, found, asked, jobs=jobs, progress=progress)


def _cases(certificate: Mapping[str, Any]) -> int:
    trees = [goal.get("tree") for goal in certificate["goals"]]
    return sum(1 for tree in trees for node in certificates.nodes(tree) if "by" in node)
