"""What llama.cpp's own server logs: completion_probabilities, as it is today and as it was before.

    today    {"content", "tokens", "completion_probabilities": [{"id", "token", "bytes", "logprob",
              "top_logprobs": [{"id", "token", "logprob"}, …]}, …]}
             prob and top_probs instead, where post_sampling_probs asks for them
    before   {"content", "completion_probabilities": [{"content": " to",
              "probs": [{"tok_str": " to", "prob": 0.97}, …]}, …]}

The server scores what it writes, and never the prompt.  The pieces of a stream say "stop": false,
and the last one true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

from byhand.language import _
from byhand.scoring.logs.content import Entry
from byhand.scoring.logs.findings import Finding
from byhand.scoring.logs.log import LoggedText, Top
from byhand.scoring.logs.openai import chat_part
from byhand.scoring.logs.parts import Part, not_among, text_of_parts
from byhand.scoring.logs.values import malformed, mapping, number, sequence, text_or_none, words

FORM = "llama.cpp server"
KEYS = ("completion_probabilities", "probs")


def is_answer(value: Any) -> bool:
    """Whether an object is an answer of llama.cpp's own interface, or a piece of one."""
    if not isinstance(value, Mapping) or "choices" in value:
        return False
    piece = isinstance(value.get("stop"), bool) and isinstance(value.get("content"), str)
    return piece or any(isinstance(value.get(key), list) for key in KEYS)


def read(entries: Sequence[Entry]) -> tuple[list[LoggedText], list[Finding]]:
    """The texts of answers, each whole or in the pieces of a stream."""
    answers: list[list[Entry]] = [[]]
    for entry in entries:
        answers[-1].append(entry)
        if entry.value.get("stop") is not False:
            answers.append([])
    return [_text(pieces) for pieces in answers if pieces], []


def _text(pieces: Sequence[Entry]) -> LoggedText:
    where = pieces[0].where
    part = Part([])
    for piece in pieces:
        after = _part(piece)
        again = len(part) and after.values[: len(part)] == part.values
        part = after if again else part.then(after)  # once, servers said all again at the end
    first: dict[str, Finding] = {}
    for found in part.findings:
        first.setdefault(found.kind, found)
    part.findings = list(first.values())
    contents = [text_or_none(piece.value.get("content")) or "" for piece in pieces]
    return text_of_parts(where, where, None, part, text="".join(contents) or None)


def _part(entry: Entry) -> Part:
    """The tokens of an answer, or of a piece of one."""
    answer = mapping(entry.value, entry.where)
    key = next((key for key in KEYS if isinstance(answer.get(key), list)), "")
    at = f"{entry.where}: {key}"
    rows = [mapping(row, f"{at}[{place}]") for place, row in enumerate(answer.get(key) or ())]
    if rows and "probs" in rows[0]:
        return _old(rows, at)
    if rows and "prob" in rows[0]:
        return _sampled(rows, at)
    return chat_part(rows, at)


def _sampled(rows: Sequence[Mapping[str, Any]], at: str) -> Part:
    """Probabilities after the chain of samplers, as post_sampling_probs gives them."""
    again = []
    for place, row in enumerate(rows):
        value = _logarithm(row.get("prob"), f"{at}[{place}].prob")
        likeliest = sequence(row.get("top_probs") or [], f"{at}[{place}].top_probs")
        top = [
            {**mapping(each, at), "logprob": _logarithm(mapping(each, at).get("prob"), at)}
            for each in likeliest
        ]
        again.append({**row, "logprob": value, "top_logprobs": top})
    part = chat_part(again, at)
    says = _(
        "These are probabilities after the samplers (temperature, top-k, top-p); "
        "their logarithms were taken."
    )
    part.findings.append(Finding("after sampling", says, "post_sampling_probs", at))
    return part


def _old(rows: Sequence[Mapping[str, Any]], at: str) -> Part:
    """The shape of servers before December 2024: texts with probabilities."""
    part = Part([], None, [], [])
    assert part.pieces is not None
    assert part.top is not None
    for place, row in enumerate(rows):
        here = f"{at}[{place}]"
        piece = words(row.get("content"), f"{here}.content")
        top: dict[int | str, float] = {}
        for number_of, each in enumerate(sequence(row.get("probs"), f"{here}.probs")):
            spot = f"{here}.probs[{number_of}]"
            each = mapping(each, spot)
            value = _logarithm(each.get("prob"), f"{spot}.prob")
            if value is not None:
                top.setdefault(words(each.get("tok_str"), f"{spot}.tok_str"), value)
        likeliest: Top = top
        part.pieces.append(piece)
        part.values.append(top.get(piece))
        part.top.append(likeliest)
        if piece not in top:
            part.findings.append(not_among(place, at, likeliest, piece))
    says = _(
        "These are probabilities after the samplers (temperature, top-k, top-p); "
        "their logarithms were taken."
    )
    part.findings.append(Finding("after sampling", says, "probs", at))
    return part


def _logarithm(value: Any, at: str) -> float | None:
    """The natural logarithm of a probability."""
    found = number(value, at)
    if found is None:
        return None
    if not 0 <= found <= 1:
        malformed(at, _("a probability, from 0 to 1"), value)
    return log(found) if found else float("-inf")
