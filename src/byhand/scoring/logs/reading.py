"""The one door to logs: a file, whose form is recognised from what it holds, becomes logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byhand.errors import InputError, nearest
from byhand.files.mapped import shown
from byhand.language import _
from byhand.scoring.logs import llama_logits, llama_server, openai, rollouts, sglang, tables, vllm
from byhand.scoring.logs.content import Entry, entries, read_bytes, read_text
from byhand.scoring.logs.findings import Finding
from byhand.scoring.logs.log import Log, LoggedText

Read = Callable[[Sequence[Entry]], tuple[list[LoggedText], list[Finding]]]


@dataclass(frozen=True)
class Form:
    """One form of logs: how an object of it is recognised, and its reader."""

    name: str
    recognised: Callable[[Any], bool]
    read: Read


FORMS = (  # the first that recognises the first object
    Form(openai.COMPLETIONS, openai.is_response, openai.read),
    Form(sglang.FORM, sglang.is_answer, sglang.read),
    Form(llama_server.FORM, llama_server.is_answer, llama_server.read),
    Form(vllm.FORM, vllm.is_output, vllm.read),
)
WRAPPERS = ("data", "responses", "outputs", "results", "samples", "rollouts", "rows")


def read_log(path: str | Path, field: str | None = None, engine: str | None = None) -> Log:
    """The one log of a file.  A file of rollouts may hold several, and `field` chooses one.

    An InputError says what is wrong with the file, and where.
    """
    logs = read_logs(path, engine)
    if field is not None:
        for log in logs:
            if log.form.endswith(f": {field}"):
                return log
        known = [log.form.partition(": ")[2] for log in logs]
        raise InputError(
            _("the log has no numbers of this name"),
            where=str(path),
            expected=", ".join(filter(None, known)) or _("one log"),
            found=field,
            hint=nearest(field, known),
        )
    if len(logs) > 1:
        names = ", ".join(log.form.partition(": ")[2] for log in logs)
        raise InputError(
            _("the file holds the logs of several engines"),
            where=str(path),
            expected=_("one log"),
            found=names,
        )
    return logs[0]


def read_logs(path: str | Path, engine: str | None = None) -> tuple[Log, ...]:
    """The logs of a file: one, or in rollouts one for each list of log-probabilities."""
    place = Path(path)
    data = read_bytes(place)
    name = engine or place.stem
    if data.startswith(llama_logits.MAGIC):
        return (_log(name, place, llama_logits.FORM, *llama_logits.read(place, data)),)
    if data.startswith(tables.ZIP):
        return _rollouts(name, place, tables.read_npz(place), [])
    if data.startswith(tables.PARQUET):
        found = tables.read_parquet(place, data)
        return _of_entries(name, place, found, [])
    text = read_text(place, data)
    if text.lstrip()[:1] not in ("{", "[", "d", ":") and llama_logits.is_printed(text):
        raise llama_logits.refuse_printed(place)
    try:
        found, findings = entries(place, text)
    except InputError:
        if llama_logits.is_printed(text):
            raise llama_logits.refuse_printed(place) from None
        raise
    return _of_entries(name, place, _unwrapped(found), findings)


def _unwrapped(found: list[Entry]) -> list[Entry]:
    """The objects of a list, and of an object that holds nothing but such a list."""
    if len(found) == 1 and isinstance(found[0].value, Mapping):
        whole = found[0].value
        if not any(form.recognised(whole) for form in FORMS) and not rollouts.is_row(whole):
            for key in WRAPPERS:
                if isinstance(whole.get(key), list) and _objects(whole[key]):
                    return _unwrapped([Entry(f"{found[0].where}: {key}", whole[key])])
    listed: list[Entry] = []
    for entry in found:
        if isinstance(entry.value, list):
            listed += [
                Entry(f"{entry.where}: [{place}]", each) for place, each in enumerate(entry.value)
            ]
        else:
            listed.append(entry)
    return listed


def _objects(value: Sequence[Any]) -> bool:
    return bool(value) and all(isinstance(each, Mapping) for each in value)


def _of_entries(
    name: str, path: Path, found: list[Entry], findings: list[Finding]
) -> tuple[Log, ...]:
    """The logs of objects, all of the form of the first."""
    if not found:
        raise InputError(_("the log is empty"), where=str(path))
    for form in FORMS:
        if form.recognised(found[0].value):
            _all_alike(found, form.recognised)
            title = openai.form_of(found[0].value) if form.read is openai.read else form.name
            texts, more = form.read(found)
            return (_log(name, path, title, texts, [*findings, *more]),)
    if rollouts.is_row(found[0].value):
        _all_alike(found, rollouts.is_row)
        return _rollouts(name, path, found, findings)
    value = found[0].value
    keys = list(value)[:12] if isinstance(value, Mapping) else value
    raise InputError(
        _("this is not the log of an engine that byhand knows"),
        where=found[0].where,
        expected=_(
            "responses with choices, meta_info, completion_probabilities or prompt_logprobs, "
            "or token ids with logprobs"
        ),
        found=shown(", ".join(map(str, keys)) if isinstance(value, Mapping) else keys),
    )


def _all_alike(found: Sequence[Entry], recognised: Callable[[Any], bool]) -> None:
    for entry in found:
        if not recognised(entry.value):
            raise InputError(
                _("this object has another form than the first of the log"),
                where=entry.where,
                expected=_("the same form throughout"),
                found=shown(", ".join(map(str, list(entry.value)[:12])))
                if isinstance(entry.value, Mapping)
                else shown(entry.value),
            )


def _rollouts(
    name: str, path: Path, found: list[Entry], findings: list[Finding]
) -> tuple[Log, ...]:
    """A log for each list of log-probabilities that the rows have."""
    row = found[0].value
    if not rollouts.is_row(row):
        raise InputError(
            _("there are no token ids with log-probabilities beside them"),
            where=str(path),
            expected=_("{ids} and {numbers}").format(
                ids=" / ".join(rollouts.WHOLES[:3]), numbers=" / ".join(rollouts.LOGPROBS[:3])
            ),
            found=shown(", ".join(map(str, row))),
        )
    named = rollouts.fields(row)
    logs = []
    for field in named:
        title = name if len(named) == 1 else f"{name}:{field}"
        texts, more = rollouts.read(found, field)
        logs.append(_log(title, path, f"{rollouts.FORM}: {field}", texts, [*findings, *more]))
    return tuple(logs)


def _log(
    name: str, path: Path, form: str, texts: list[LoggedText], findings: Sequence[Finding]
) -> Log:
    """The log, or an error where it holds no number at all."""
    log = Log(name, str(path), form, tuple(texts), tuple(findings))
    if not log.count:
        reason = next((each for text in texts for each in text.findings), None)
        first = findings[0] if findings else reason
        raise InputError(
            _("the log has no log-probability"),
            where=str(path),
            expected=_("a log-probability for at least one token"),
            found=form,
            hint=first.says if first is not None else None,
        )
    return log
