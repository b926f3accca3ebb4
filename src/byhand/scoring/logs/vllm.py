"""vLLM's logs: its RequestOutput, and the positions of prompt_logprobs and logprobs.

    {"request_id", "prompt", "prompt_token_ids", "prompt_logprobs": [null, {…}, …],
     "outputs": [{"index", "text", "token_ids", "logprobs": [{…}, …]}]}

A position maps ids to {"logprob", "rank", "decoded_token"}.  It holds the token of the text first,
then the likeliest ones.  FlatLogprobs has the same numbers in lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from byhand.language import _
from byhand.scoring.logs.content import Entry
from byhand.scoring.logs.findings import Finding
from byhand.scoring.logs.log import LoggedText, Top
from byhand.scoring.logs.parts import Part, bare_prompt, not_among, text_of_parts
from byhand.scoring.logs.values import (
    malformed,
    mapping,
    number,
    same_length,
    sequence,
    text_or_none,
    token_id,
    token_ids,
)

FORM = "vLLM"
Position = dict[int, tuple[float | None, str | None]]  # id → its number, its text


def is_output(value: Any) -> bool:
    """Whether an object is a RequestOutput, or has the prompt_logprobs of one."""
    if not isinstance(value, Mapping) or "choices" in value:
        return False
    return "prompt_logprobs" in value or (
        "prompt_token_ids" in value and isinstance(value.get("outputs"), list)
    )


def read(entries: Sequence[Entry]) -> tuple[list[LoggedText], list[Finding]]:
    """The texts of outputs: one for each completion, or one for a prompt by itself."""
    texts: list[LoggedText] = []
    for entry in entries:
        texts += list(_texts(entry.where, mapping(entry.value, entry.where)))
    return texts, []


def _texts(where: str, value: Mapping[str, Any]) -> Iterator[LoggedText]:
    name = str(value["request_id"]) if value.get("request_id") is not None else where
    ids = None
    if value.get("prompt_token_ids") is not None:
        ids = token_ids(value["prompt_token_ids"], f"{where}: prompt_token_ids")
    prompt = None
    if value.get("prompt_logprobs") is not None:
        prompt = positions(value["prompt_logprobs"], ids, f"{where}: prompt_logprobs")
    outputs = sequence(value.get("outputs") or [], f"{where}: outputs")
    scored = False
    for place, output in enumerate(outputs):
        at = f"{where}: outputs[{place}]"
        output = mapping(output, at)
        if output.get("logprobs") is None:
            continue
        own = None
        if output.get("token_ids") is not None:
            own = token_ids(output["token_ids"], f"{at}.token_ids")
        completion = positions(output["logprobs"], own, f"{at}.logprobs")
        title = name if place == 0 else f"{name}#{place}"
        before = prompt or (None if ids is None else bare_prompt(ids))
        scored = True
        yield text_of_parts(title, at, before, completion, text=_joined_text(value, output))
    if not scored:
        if prompt is None:
            malformed(where, "prompt_logprobs, outputs[].logprobs", sorted(map(str, value))[:12])
        yield text_of_parts(name, where, prompt, None, text=text_or_none(value.get("prompt")))


def _joined_text(value: Mapping[str, Any], output: Mapping[str, Any]) -> str | None:
    before, after = text_or_none(value.get("prompt")), text_or_none(output.get("text"))
    return None if before is None or after is None else before + after


def positions(value: Any, ids: Sequence[int] | None, where: str) -> Part:
    """The tokens of a list of positions; without `ids`, the first of each position is taken."""
    rows = _flat(value, where) if isinstance(value, Mapping) else list(_rows(value, where))
    if ids is not None:
        same_length(where, ("token ids", ids), ("positions", rows))
    part = Part([], [], None, [])
    assert part.ids is not None
    assert part.top is not None
    for place, row in enumerate(rows):
        top: Top = {id: value for id, (value, _text) in row.items() if value is not None}
        part.top.append(top if len(top) > 1 else None)
        if ids is None and not row:
            if place:
                malformed(f"{where}[{place}]", _("the token of this place"), None)
            continue
        chosen = ids[place] if ids is not None else next(iter(row))
        part.ids.append(chosen)
        part.values.append(row[chosen][0] if chosen in row else None)
        if row and chosen not in row:
            part.findings.append(not_among(place, where, top, chosen))
    if ids is None:
        _without_ids(part, rows, where)
    if not any(part.top):
        part.top = None
    return part


def _without_ids(part: Part, rows: Sequence[Position], where: str) -> None:
    """Says what was assumed where the log does not name the tokens of the text."""
    assert part.top is not None
    if rows and not rows[0]:  # the first token of the text has no number, and so no name
        part.top.pop(0)
        says = _("The log does not name the first token of the text.")
        part.findings.append(Finding("first token unknown", says, "", where))
    if any(len(row) > 1 for row in rows):
        says = _("The log does not name the tokens of the text; the first of each place was taken.")
        hint = _("return_token_ids gives their ids")
        part.findings.append(Finding("tokens assumed", says, hint, where))


def _rows(value: Any, where: str) -> Iterator[Position]:
    for place, row in enumerate(sequence(value, where)):
        at = f"{where}[{place}]"
        found: Position = {}
        for key, entry in mapping(row or {}, at, _("ids with their numbers, or null")).items():
            here = f"{at}[{key}]"
            if isinstance(entry, Mapping):
                if "logprob" not in entry:
                    malformed(here, "logprob", entry)
                text = text_or_none(entry.get("decoded_token"))
                found[token_id(key, here)] = number(entry["logprob"], here), text
            else:  # some programs keep the number alone
                found[token_id(key, here)] = number(entry, here), None
        yield found


def _flat(value: Mapping[str, Any], where: str) -> list[Position]:
    """The positions of FlatLogprobs: lists of ids and numbers, and where each position begins."""
    keys = ("start_indices", "end_indices", "token_ids", "logprobs")
    if not all(key in value for key in keys):
        malformed(where, _("a list of positions, or {names}").format(names=", ".join(keys)), value)
    starts, ends = (sequence(value[key], f"{where}.{key}") for key in keys[:2])
    ids = token_ids(value["token_ids"], f"{where}.token_ids")
    logged = sequence(value["logprobs"], f"{where}.logprobs")
    same_length(where, ("token_ids", ids), ("logprobs", logged))
    same_length(where, ("start_indices", starts), ("end_indices", ends))
    rows: list[Position] = []
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        whole = all(isinstance(each, int) and not isinstance(each, bool) for each in (start, end))
        if not whole or not 0 <= start <= end <= len(ids):
            malformed(f"{where}[{place}]", _("a range of the lists"), [start, end])
        row: Position = {}
        for at in range(start, end):  # the token of the text may come again among the likeliest
            row.setdefault(ids[at], (number(logged[at], f"{where}.logprobs[{at}]"), None))
        rows.append(row)
    return rows
