"""SGLang's logs: meta_info with triples of a log-probability, an id and a text.

{"text", "output_ids", "meta_info": {"id", "prompt_tokens",
 "input_token_logprobs": [[null, 1, "<s>"], [-2.5, 403, " was"], …],
 "output_token_logprobs": [[-0.1, 51, "."], …], "input_top_logprobs": [null, [[…], …]], …}}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from byhand.language import _
from byhand.scoring.logs.content import Entry
from byhand.scoring.logs.findings import Finding
from byhand.scoring.logs.log import LoggedText, Top
from byhand.scoring.logs.parts import Part, text_of_parts
from byhand.scoring.logs.values import malformed, mapping, number, same_length, sequence, token_id

FORM = "SGLang"
INPUT, OUTPUT = "input_token_logprobs", "output_token_logprobs"
TOPS = {INPUT: "input_top_logprobs", OUTPUT: "output_top_logprobs"}


def is_answer(value: Any) -> bool:
    """Whether an object is an answer of SGLang's own interface."""
    return isinstance(value, Mapping) and isinstance(value.get("meta_info"), Mapping)


def read(entries: Sequence[Entry]) -> tuple[list[LoggedText], list[Finding]]:
    """The texts of answers."""
    return [_text(entry) for entry in entries], []


def _text(entry: Entry) -> LoggedText:
    answer = mapping(entry.value, entry.where)
    facts = mapping(answer.get("meta_info"), f"{entry.where}: meta_info")
    name = str(facts["id"]) if facts.get("id") is not None else entry.where
    prompt = _part(facts, INPUT, entry.where)
    completion = _part(facts, OUTPUT, entry.where)
    if prompt is None and completion is None:
        malformed(f"{entry.where}: meta_info", f"{INPUT}, {OUTPUT}", sorted(map(str, facts))[:12])
    length = facts.get("prompt_tokens")
    known = isinstance(length, int) and not isinstance(length, bool)
    whole = prompt is not None and (not known or length == len(prompt))
    text = text_of_parts(name, entry.where, prompt, completion, whole=whole)
    if prompt is not None and not whole:
        says = _("The log begins within the prompt.")
        evidence = _("{count} of {all} tokens of the prompt").format(count=len(prompt), all=length)
        text = text.found(Finding("begins late", says, evidence, entry.where))
    return text


def _part(facts: Mapping[str, Any], key: str, where: str) -> Part | None:
    rows = facts.get(key)
    if not rows:
        return None
    at = f"{where}: meta_info.{key}"
    triples = [_triple(row, f"{at}[{place}]") for place, row in enumerate(sequence(rows, at))]
    pieces: list[str | bytes] | None = [text for _value, _id, text in triples if text is not None]
    if pieces is None or len(pieces) < len(triples):
        pieces = None
    part = Part([value for value, _id, _text in triples], [id for _value, id, _text in triples])
    part.pieces = pieces
    likeliest = facts.get(TOPS[key])
    if likeliest:
        at = f"{where}: meta_info.{TOPS[key]}"
        listed = sequence(likeliest, at)
        same_length(at, (key, triples), (TOPS[key], listed))
        part.top = [_top(row, f"{at}[{place}]") for place, row in enumerate(listed)]
    return part


def _triple(row: Any, at: str) -> tuple[float | None, int, str | None]:
    row = sequence(row, at, _("a log-probability, an id and a text"))
    if len(row) not in (2, 3):
        malformed(at, _("a log-probability, an id and a text"), row)
    text = row[2] if len(row) == 3 else None
    if text is not None and not isinstance(text, str):
        malformed(f"{at}[2]", _("a text or null"), text)
    return number(row[0], f"{at}[0]"), token_id(row[1], f"{at}[1]"), text


def _top(row: Any, at: str) -> Top | None:
    if row is None:
        return None
    found = [_triple(each, f"{at}[{place}]") for place, each in enumerate(sequence(row, at))]
    return {id: value for value, id, _text in found if value is not None}
