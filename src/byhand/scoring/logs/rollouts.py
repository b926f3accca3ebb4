"""Rows of rollouts: token ids with log-probabilities, as TRL, verl and other trainers keep them.

A row is an object of JSON lines, a row of Parquet, or a row of each array of an npz file.  Tables
of several rows, such as verl's batches, are cut into rows.  One row may hold several engines:

    ids        prompt_ids + completion_ids, prompts + responses, input_ids, …
    numbers    logprobs, old_log_probs, rollout_log_probs, sampling_per_token_logps, …
    masks      response_mask, completion_mask, attention_mask, …: 0 where nothing was scored

A number may stand in a list of its own, or among those of the likeliest tokens, with their ids in
logprob_token_ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from byhand.language import _
from byhand.scoring.logs.content import Entry
from byhand.scoring.logs.findings import Finding
from byhand.scoring.logs.log import LoggedText, Top, logged_text
from byhand.scoring.logs.parts import not_among
from byhand.scoring.logs.values import (
    NUMERAL,
    numbers,
    refuse,
    same_length,
    sequence,
    text_or_none,
    token_id,
    token_ids,
)

FORM = "rollouts"
PROMPTS = ("prompt_ids", "prompt_token_ids", "prompts", "prompt_tokens")
COMPLETIONS = (
    "completion_ids", "response_ids", "responses", "completion_token_ids", "response_token_ids",
    "output_ids", "output_token_ids", "completion_tokens", "response_tokens",
)  # fmt: skip
WHOLES = ("input_ids", "token_ids", "ids", "tokens", "all_ids", "sequence", "sequences")
LOGPROBS = (
    "logprobs", "log_probs", "logprob", "token_logprobs", "per_token_logps", "logps",
    "old_log_probs", "old_logprobs", "old_per_token_logps", "rollout_log_probs", "rollout_logprobs",
    "sampling_per_token_logps", "sampling_logprobs", "response_logprobs", "completion_logprobs",
    "ref_log_prob", "ref_log_probs", "ref_logprobs", "ref_per_token_logps", "vllm_logprobs",
    "generator_logprobs", "inference_logprobs", "trainer_logprobs", "policy_logprobs",
)  # fmt: skip
SCORED = ("response_mask", "completion_mask", "tool_mask", "loss_mask", "logprob_mask", "mask")
READ = ("attention_mask",)
PROMPT_READ = ("prompt_mask", "prompt_attention_mask")
NAMES = ("name", "id", "uid", "request_id", "custom_id", "index", "sample_id")
LIKELIEST = ("logprob_token_ids", "logprobs_token_ids", "top_token_ids")  # beside lists of numbers
Row = Mapping[str, Any]
Logged = float | Top | None  # of a token: its number, or those of the likeliest ones


def is_row(value: Any) -> bool:
    """Whether an object has token ids and log-probabilities beside each other."""
    return isinstance(value, Mapping) and bool(fields(value)) and _has_ids(value)


def _has_ids(row: Row) -> bool:
    return any(_listed(row.get(name)) for name in (*COMPLETIONS, *WHOLES))


def _listed(value: Any) -> bool:
    """Whether a value is a list of numbers, ids or lists of them; texts of tokens are not."""
    return isinstance(value, list | tuple) and not any(
        isinstance(each, str) and not NUMERAL.fullmatch(each) for each in value[:1]
    )


def fields(row: Row) -> tuple[str, ...]:
    """The names of the lists of log-probabilities that a row has."""
    return tuple(name for name in LOGPROBS if _listed(row.get(name)))


def rows_of(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The rows one by one; an object that holds lists of lists is a table of rows."""
    for entry in entries:
        row: Row = entry.value
        ids = [name for name in (*COMPLETIONS, *WHOLES) if _listed(row.get(name))]
        named = [*fields(row), *ids]
        if not any(row[name] and _nested(row[name]) for name in ids or named):
            yield entry
            continue
        lengths = {name: len(row[name]) for name in named}
        count = max(lengths.values())
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name}: {length}" for name, length in lengths.items())
            refuse(entry.where, _("these lists should be equally long"), _("a row a text"), found)
        for place in range(count):
            part = {
                name: value[place]
                for name, value in row.items()
                if isinstance(value, list | tuple) and len(value) == count
            }
            yield Entry(f"{entry.where}: [{place}]", part)


def _nested(value: Sequence[Any]) -> bool:
    return isinstance(value[0], list | tuple)


def read(entries: Sequence[Entry], field: str) -> tuple[list[LoggedText], list[Finding]]:
    """The texts of rows, with the log-probabilities of one field."""
    found = [_text(row, field) for row in rows_of(entries)]
    return [text for text in found if text is not None], []


def _text(entry: Entry, field: str) -> LoggedText | None:
    row = entry.value
    if not isinstance(row, Mapping) or not _listed(row.get(field)):
        refuse(entry.where, _("a row has no such numbers"), field, sorted(map(str, row))[:12])
    said = next((row[name] for name in NAMES if isinstance(row.get(name), str | int)), None)
    name = entry.where if said is None else str(said)
    prompt = _ids(row, PROMPTS, entry.where)
    completion = _ids(row, COMPLETIONS, entry.where)
    values = _logged(row, field, entry.where)
    if completion is None:
        return _of_whole(entry, field, name, prompt, values)
    return _of_completion(entry, field, name, prompt, completion, values)


def _logged(row: Row, field: str, where: str) -> list[Logged]:
    """What a field says of each token."""
    at = f"{where}: {field}"
    entries = sequence(row[field], at)
    if not any(isinstance(entry, list | tuple) for entry in entries[:2]):
        return list(numbers(entries, at))
    named = next((name for name in LIKELIEST if isinstance(row.get(name), list | tuple)), None)
    found: list[Logged] = []
    for place, entry in enumerate(entries):
        here = f"{at}[{place}]"
        likeliest = [] if entry is None else numbers(entry, here)
        if named is None and len(likeliest) > 1:
            refuse(here, _("it is not known which of these numbers is the token's own"),
                   _("one number, or ids in {name}").format(name=LIKELIEST[0]), entry)  # fmt: skip
        if named is None or not likeliest:
            found.append(likeliest[0] if likeliest else None)
            continue
        own = f"{where}: {named}[{place}]"
        same_length(where, (field, entries), (named, row[named]))
        ids = token_ids(row[named][place], own)
        same_length(own, (field, likeliest), (named, ids))
        pairs = zip(ids, likeliest, strict=True)
        found.append({id: value for id, value in pairs if value is not None})
    return found


def _text_of(
    name: str, where: str, ids: list[int], logged: list[Logged], **known: Any
) -> LoggedText:
    """The text of these ids, each with its own number."""
    values: list[float | None] = []
    findings = list(known.pop("findings", ()))
    tops = [each if isinstance(each, Mapping) else None for each in logged]
    for place, (id, each, top) in enumerate(zip(ids, logged, tops, strict=True)):
        if top is None:
            values.append(each if isinstance(each, float) else None)
            continue
        values.append(top.get(id))
        if id not in top:
            findings.append(not_among(place, where, top, id))
    return logged_text(
        name, where, values, ids=ids, top=tops if any(tops) else None, findings=findings, **known
    )


def _of_completion(
    entry: Entry,
    field: str,
    name: str,
    prompt: list[int] | None,
    completion: list[int],
    values: list[Logged],
) -> LoggedText:
    """A row with the completion by itself; the padding of both parts is taken off."""
    row = entry.value
    read = _mask(row, READ, entry.where)
    before = None if prompt is None else len(prompt)
    if prompt is not None:
        kept = _mask(row, PROMPT_READ, entry.where)
        if kept is None and read is not None and len(read) == len(prompt) + len(completion):
            kept = read[: len(prompt)]
        if kept is not None and len(kept) == len(prompt):
            prompt = [id for id, keep in zip(prompt, kept, strict=True) if keep]
    scored = _mask(row, SCORED, entry.where)
    if scored is None or len(scored) != len(completion):
        scored = None
    attended = None
    if before is not None and read is not None and len(read) == before + len(completion):
        attended = read[before:]
    elif read is not None and len(read) == len(completion):
        attended = read
    if before is not None and len(values) == before + len(completion):
        values = values[before:]  # a number for each token of the row, its prompt too
    if len(values) != len(completion):
        found = f"{field}: {len(values)}, ids: {len(completion)}"
        refuse(entry.where, _("these lists should be equally long"), _("one entry a token"), found)
    end = len(completion)
    ends = attended if attended is not None else scored
    if ends is not None:
        end = max((place + 1 for place, keep in enumerate(ends) if keep), default=0)
    values = [
        None if scored is not None and not scored[place] else value
        for place, value in enumerate(values[:end])
    ]
    lead = prompt or []
    return _text_of(
        name,
        entry.where,
        lead + completion[:end],
        [*[None] * len(lead), *values],
        text=text_or_none(row.get("text")),
        whole=prompt is not None,
        prompt_length=len(lead),
    )


def _of_whole(
    entry: Entry,
    field: str,
    name: str,
    prompt: list[int] | None,
    values: list[Logged],
) -> LoggedText:
    """A row with the ids of the whole text."""
    row = entry.value
    ids = _ids(row, WHOLES, entry.where)
    if ids is None:
        refuse(entry.where, _("a row has no token ids"), ", ".join(WHOLES[:3]), list(row)[:12])
    read, scored = _mask(row, READ, entry.where), _mask(row, SCORED, entry.where)
    findings = []
    if len(values) == len(ids) - 1:
        values = [None, *values]
        if scored is not None and len(scored) == len(ids) - 1:
            scored = [False, *scored]
    elif len(values) < len(ids):
        values = [*[None] * (len(ids) - len(values)), *values]
        says = _("There are fewer numbers than tokens; they were taken to belong to the last ones.")
        evidence = f"{field}: {len(row[field])}, ids: {len(ids)}"
        findings.append(Finding("fewer numbers", says, evidence, entry.where))
    elif len(values) > len(ids):
        found = f"{field}: {len(values)}, ids: {len(ids)}"
        refuse(entry.where, _("there are more numbers than tokens"), str(len(ids)), found)
    keep = read if read is not None and len(read) == len(ids) else [True] * len(ids)
    counted = scored if scored is not None and len(scored) == len(ids) else None
    if read is None and counted is not None:  # the mask is all that tells padding from tokens
        keep = _within(counted)
    tokens = [id for id, kept in zip(ids, keep, strict=True) if kept]
    kept_values = [
        None if counted is not None and not counted[place] else value
        for place, (value, kept) in enumerate(zip(values, keep, strict=True))
        if kept
    ]
    if kept_values and counted is None:
        first = kept_values[0]
        if first is not None and first == 0:  # nothing comes before the first token
            kept_values[0] = None
    length = None if prompt is None else len(prompt)
    text = text_or_none(row.get("text"))
    return _text_of(
        name, entry.where, tokens, kept_values, text=text, prompt_length=length, findings=findings
    )


def _within(mask: Sequence[bool]) -> list[bool]:
    """All places up to the last one that counts: those after it may be padding."""
    end = max((place + 1 for place, keep in enumerate(mask) if keep), default=0)
    return [place < end for place in range(len(mask))]


def _ids(row: Row, names: Sequence[str], where: str) -> list[int] | None:
    name = next((name for name in names if _listed(row.get(name))), None)
    if name is None:
        return None
    return [
        0 if _is_padding(value) else token_id(value, f"{where}: {name}[{place}]")
        for place, value in enumerate(row[name])
    ]


def _is_padding(value: Any) -> bool:
    """Whether an entry fills up a row: labels that are left out are -100, some pad with -1."""
    return isinstance(value, int) and not isinstance(value, bool) and value in (-1, -100)


def _mask(row: Row, names: Sequence[str], where: str) -> list[bool] | None:
    name = next((name for name in names if _listed(row.get(name))), None)
    if name is None:
        return None
    found = []
    for place, value in enumerate(row[name]):
        if not isinstance(value, bool | int | float) or value not in (0, 1):
            at = f"{where}: {name}[{place}]"
            refuse(at, _("the log is malformed"), _("0 or 1"), value)
        found.append(bool(value))
    return found
