"""The writer of golden files, for a finished trace or for a job that is saved as it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from byhand.drafts import folder_draft, write_bytes, writing
from byhand.files.saved import EXACT, FORMAT, MANIFEST, VALUES, VERSION, is_trace
from byhand.files.tensor_file import Form, TensorFile
from byhand.golden import manifest
from byhand.golden.enclosed import in_floats, printed_radii
from byhand.golden.manifest import BYHAND, RADIUS, Names
from byhand.numbers.base import Numbers, Unknown
from byhand.plan import WEIGHT
from byhand.tracing import Trace
from byhand.worked import Worked

if TYPE_CHECKING:  # nothing is worked out here
    from byhand.evaluate import Job, Progress

IDS = np.dtype(np.int64)
ANGLES = np.dtype(np.float64)
SMALL = ("tokens", "source", "target", "next", "loss")  # always kept
MOST_TEXT = 50_000  # enclosures that are also written as text
METADATA = {"format": FORMAT, "version": str(VERSION)}


def save(trace: Trace, folder: str | Path, *, names: str = BYHAND, exact_text: bool = True) -> None:
    """Writes a trace as a folder, whole or not at all; an older trace there is replaced.

    Where some steps were asked for, only those are written.  `names` is the style of their names.
    Exact values are also written as text, unless `exact_text` says no.
    """
    target, called = Path(folder), Names(trace.plan, names)
    with folder_draft(target, is_trace) as draft:
        _write(trace, target, draft, called, exact_text)


def save_working(
    job: Job,
    folder: str | Path,
    *,
    progress: Progress | None = None,
    names: str = BYHAND,
    keep: Collection[str] = (),
    digits: int | None = None,
) -> Trace:
    """Works a job out and saves it on the way, whole or not at all; the trace holds `keep`.

    Floats go to the disk as they come and are dropped after their last reader, so that memory stays
    near one layer.  Exact numbers and the pencil's are all kept, as by `save`.  With `digits`, the
    job is in enclosures, and that many significant digits are to be proven.
    """
    target, called = Path(folder), Names(job.plan, names)
    format = _format(job.numbers)
    with folder_draft(target, is_trace) as draft:
        if digits is not None:
            from byhand.proving.digits import prove

            trace = prove(job, digits, progress=progress)
            _write(trace, target, draft, called, exact_text=True)
            return trace
        if format is not None:
            return _stream(job, format, target, draft, called, progress, {*keep, *SMALL})
        trace = job.work(progress=progress)
        _write(trace, target, draft, called, exact_text=True)
        return trace


def _write(trace: Trace, target: Path, draft: Path, called: Names, exact_text: bool) -> None:
    """Writes all files of a finished trace."""
    asked = set(trace.asked or trace.steps)
    steps = [worked for worked in trace.values() if worked.address in asked]
    arrays, radii = _arrays(worked for worked in steps if worked.missing is None)
    forms = {address: Form(array.dtype, array.shape) for address, array in arrays.items()}
    exact = None
    enclosed = trace.numbers.uniform == "enclosed"
    if enclosed and sum(array.size for array in radii.values()) > MOST_TEXT:
        facts = _facts(trace, map(manifest.step_facts, steps), forms, called, radii)
    elif _format(trace.numbers) is None:
        facts, exact = _exact_facts(trace, steps, forms, called, exact_text, radii)
    else:
        facts = _facts(trace, map(manifest.step_facts, steps), forms, called)
    with writing(target):
        if exact is not None:
            write_bytes(draft / EXACT, manifest.as_json(exact))
        with _tensors(draft, forms, called, radii) as file:
            for address, array in arrays.items():
                file.put(called[address], array)
            for address, array in radii.items():
                file.put(called[address] + RADIUS, array)
            file.finish()
        write_bytes(draft / MANIFEST, manifest.as_json(facts))


def _stream(
    job: Job,
    format: np.dtype[Any],
    target: Path,
    draft: Path,
    called: Names,
    progress: Progress | None,
    keep: Collection[str],
) -> Trace:
    """Writes all files of a job in floats, each step when it is worked out."""
    asked = set(job.asked) or {step.address for step in job.plan}
    missing = _missing(job)
    forms = {
        step.address: Form(_kind(Worked(step, None, job.numbers), format), step.shape)
        for step in job.plan
        if step.address in asked - missing
    }
    records: list[dict[str, Any]] = []
    with writing(target):
        file = _tensors(draft, forms, called)

    def sink(worked: Worked) -> None:
        if worked.address in asked:
            records.append(manifest.step_facts(worked))
        if worked.address in forms:
            array = _array(worked)
            with writing(target):
                file.put(called[worked.address], array)

    with file:
        trace = job.work(progress=progress, keep=keep, sink=sink)
        with writing(target):
            file.finish()
    with writing(target):
        write_bytes(draft / MANIFEST, manifest.as_json(_facts(trace, records, forms, called)))
    return trace


def _tensors(
    draft: Path, forms: Mapping[str, Form], called: Names, radii: Collection[str] = ()
) -> TensorFile:
    tensors = {called[address]: form for address, form in forms.items()}
    tensors |= {called[address] + RADIUS: forms[address] for address in radii}
    return TensorFile(draft / VALUES, tensors, METADATA)


# ------------------------------------------------------------------ what is known beforehand


def _format(numbers: Numbers) -> np.dtype[Any] | None:
    """The format of a system of floats; None for numbers that are not floats."""
    format = getattr(numbers, "format", None)
    return None if format is None else np.dtype(format.dtype)


def _kind(worked: Worked, format: np.dtype[Any]) -> np.dtype[Any]:
    """The kind of a step's numbers: ids, the format, or what angles per position are kept in."""
    if worked.whole:
        return IDS
    return ANGLES if worked.step.op == "constants" else format


def _missing(job: Job) -> set[str]:
    """The steps that need an unknown weight: in floats, no others are missing."""
    missing: set[str] = set()
    for step in job.plan:
        for read in step.reads:
            name = read.removeprefix(WEIGHT)
            weight = None if name == read else job.model.weights[name]
            unknown = weight is not None and not weight.floats and any(
                isinstance(entry, Unknown) for entry in weight.data.flat
            )  # fmt: skip
            if unknown or read in missing:
                missing.add(step.address)
    return missing


# ------------------------------------------------------------------ numbers and facts


def _arrays(
    steps: Iterable[Worked],
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]:
    """The numbers of some steps, and the radii of those that are enclosed or come from rounded
    weights."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    radii: dict[str, npt.NDArray[Any]] = {}
    for worked in steps:
        if worked.numbers.uniform == "enclosed" and not worked.whole:
            arrays[worked.address], radii[worked.address] = in_floats(worked, worked.absent)
        else:
            arrays[worked.address] = _array(worked)
            if (printed := printed_radii(worked)) is not None:
                radii[worked.address] = printed
    return arrays, radii


def _array(worked: Worked) -> npt.NDArray[Any]:
    """The step in numbers (see `Worked.__array__`); the id of an undecided token is -1."""
    if worked.step.op == "argmax":
        return np.asarray([-1 if p.id is None else p.id for p in worked.value], dtype=IDS)
    return np.asarray(worked)


def _facts(
    trace: Trace,
    records: Iterable[Mapping[str, Any]],
    forms: Mapping[str, Form],
    called: Names,
    radii: Collection[str] = (),
    *,
    exact: bool = False,
    told: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The manifest; unless the outcome is `told`, it is taken from floats or enclosures."""
    steps = {record["address"]: record for record in records}
    return {
        **manifest.heading(trace, called, exact=exact),
        "steps": [
            manifest.finished(record, forms.get(address), called, radius=address in radii)
            for address, record in steps.items()
        ],
        **(manifest.outcome(trace) if told is None else told),
        "aliases": manifest.aliases(trace.plan, steps, called),
    }


def _exact_facts(
    trace: Trace,
    steps: Iterable[Worked],
    forms: Mapping[str, Form],
    called: Names,
    as_text: bool,
    radii: Collection[str] = (),
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The manifest, and the text of every value."""
    from byhand.document.media.json.trace import document_of

    wanted = {worked.address for worked in steps}
    document = document_of(trace, trace.asked)
    records = [step for step in document["steps"] if step["address"] in wanted]
    exact = {
        "letters": document["letters"],
        "values": {called[step["address"]]: step.pop("value") for step in records},
        "decimals": {called[step["address"]]: step.pop("decimal", None) for step in records},
    }
    told = {"next": document["next"], "loss": document["loss"]}
    if not as_text:
        told = _without_forms(told)
    facts = _facts(trace, records, forms, called, radii, exact=as_text, told=told)
    return facts, exact if as_text else None


def _without_forms(told: dict[str, Any]) -> dict[str, Any]:
    """The predictions and the loss in decimals, without forms, whose letters are undefined."""
    for prediction in told["next"] or ():
        if prediction["margin"] is not None:
            prediction["margin"]["value"] = None
    if told["loss"] is not None:
        told["loss"]["value"] = None
    return told
