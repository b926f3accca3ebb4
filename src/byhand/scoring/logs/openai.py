"""OpenAI-style logs: completions and chats, alone, in a list, in lines of a batch or in a stream.

    completions   choices[].logprobs: tokens, token_logprobs, top_logprobs, text_offset
    chats         choices[].logprobs.content[]: token, logprob, bytes, top_logprobs

Servers that speak this language add to it: vLLM prompt_logprobs, prompt_token_ids and token_ids;
llama.cpp ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from byhand.files.mapped import shown
from byhand.language import _
from byhand.scoring.logs import vllm
from byhand.scoring.logs.content import Entry
from byhand.scoring.logs.findings import Finding
from byhand.scoring.logs.log import LoggedText, Top
from byhand.scoring.logs.parts import Part, bare_prompt, text_of_parts
from byhand.scoring.logs.values import (
    ids_in_pieces,
    malformed,
    mapping,
    number,
    numbers,
    same_length,
    sequence,
    text_or_none,
    token_id,
    token_ids,
    words,
)

COMPLETIONS, CHATS = "OpenAI completions", "OpenAI chats"
Piece = tuple[str, Mapping[str, Any], Mapping[str, Any]]  # its place, the response, the choice
Pieces = dict[tuple[str, int], list[Piece]]


def is_response(value: Any) -> bool:
    """Whether an object is a response, or a line of a batch that holds one."""
    if not isinstance(value, Mapping):
        return False
    failed = "custom_id" in value and bool(value.get("error"))
    return failed or "choices" in value or _body(value) is not None


def _body(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The response within a line of a batch, or within a line with its request."""
    inner = value.get("response")
    if not isinstance(inner, Mapping):
        return None
    if isinstance(inner.get("body"), Mapping):
        inner = inner["body"]
    return inner if "choices" in inner or "error" in inner else None


def form_of(value: Mapping[str, Any]) -> str:
    """Completions or chats."""
    body = value if "choices" in value else _body(value) or {}
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    chat = isinstance(first, Mapping) and ("message" in first or "delta" in first)
    return CHATS if chat else COMPLETIONS


def read(entries: Sequence[Entry]) -> tuple[list[LoggedText], list[Finding]]:
    """The texts of responses, one for each choice."""
    findings: list[Finding] = []
    choices: Pieces = {}
    for entry in entries:
        line = mapping(entry.value, entry.where)
        body = line if "choices" in line else _body(line)
        failed = _failure(line, body)
        if body is None or failed is not None:
            says = _("A request failed, and the log holds no answer to it.")
            findings.append(Finding("failed request", says, failed or "", entry.where))
            continue
        _gather(entry.where, line, body, choices)
    texts = []
    for (name, index), pieces in choices.items():
        title = name if index == 0 else f"{name}#{index}"
        for place, answer in enumerate(_answers(title, pieces, findings), 1):
            texts.append(_joined(title if place == 1 else f"{title} ({place})", answer))
    return texts, findings


def _failure(line: Mapping[str, Any], body: Mapping[str, Any] | None) -> str | None:
    """What went wrong with a request, or None."""
    inner = line.get("response")
    status = inner.get("status_code") if isinstance(inner, Mapping) else None
    error = line.get("error") or (body or {}).get("error")
    if error:
        return shown(error)
    return f"status {shown(status)}" if status not in (None, 0, 200) else None


def _gather(where: str, line: Mapping[str, Any], body: Mapping[str, Any], choices: Pieces) -> None:
    """Puts each choice of a response beside the pieces of it that came before."""
    name = next((line[key] for key in ("custom_id", "request_id") if line.get(key)), None)
    name = body.get("id") if name is None else name
    title = str(name) if isinstance(name, str | int) and not isinstance(name, bool) else where
    for place, choice in enumerate(sequence(body["choices"], f"{where}: choices")):
        at = f"{where}: choices[{place}]"
        choice = mapping(choice, at)
        index = choice.get("index", place)
        index = index if isinstance(index, int) and not isinstance(index, bool) else place
        choices.setdefault((title, index), []).append((at, body, choice))


def _answers(
    name: str, pieces: Sequence[Piece], findings: list[Finding]
) -> Iterator[Sequence[Piece]]:
    """The pieces of each answer that bears this name: one whole, or those of a stream.

    Some servers call all their answers alike.  An answer ends where its choice says why it ended.
    """
    answers: list[list[Piece]] = []
    open_ = False
    for piece in pieces:
        choice = piece[2]
        whole = "message" in choice or ("finish_reason" not in choice and _several(choice))
        logs = choice.get("logprobs") is not None
        begins = not answers or (not open_ and (whole or logs))
        if begins:
            answers.append([])
        answers[-1].append(piece)
        if begins or open_:
            open_ = not whole and choice.get("finish_reason") is None
    told: set[str] = set()
    for answer in answers:
        said = repr([choice for _at, _body, choice in answer]) if len(answers) > 1 else ""
        if said in told:
            says = _("An answer stands in the log twice; it was read once.")
            findings.append(Finding("duplicate", says, name, answer[0][0]))
            continue
        told.add(said)
        yield answer


def _several(choice: Mapping[str, Any]) -> bool:
    """Whether a choice of completions has several tokens, as pieces of a stream rarely have."""
    logged = choice.get("logprobs")
    values = logged.get("token_logprobs") if isinstance(logged, Mapping) else None
    return isinstance(values, list) and len(values) > 1


def _joined(name: str, pieces: Sequence[Piece]) -> LoggedText:
    """The text of an answer, joined from its pieces."""
    where, body, _first = pieces[0]
    parts = [_part(at, choice) for at, _each, choice in pieces]
    present = [part for part in parts if part is not None]
    completion = present[0] if present else None
    for part in present[1:]:
        assert completion is not None
        completion = completion.then(part)
    return _text(name, where, body, pieces[-1][2], completion)


def _text(
    name: str,
    where: str,
    body: Mapping[str, Any],
    choice: Mapping[str, Any],
    completion: Part | None,
) -> LoggedText:
    """The text of a choice, with what a server says of its prompt."""

    def said(key: str) -> Any:
        return choice.get(key) if choice.get(key) is not None else body.get(key)

    prompt_ids = said("prompt_token_ids")
    ids = None if prompt_ids is None else token_ids(prompt_ids, f"{where}: prompt_token_ids")
    prompt = None
    if said("prompt_logprobs") is not None:
        at = f"{where}: prompt_logprobs"
        prompt = vllm.positions(said("prompt_logprobs"), ids, at)
    elif ids is not None:
        prompt = bare_prompt(ids)
    text = text_or_none(choice.get("text"))
    if completion is None:
        if prompt is None or said("prompt_logprobs") is None:
            return _nothing(name, where)
        return text_of_parts(name, where, prompt, None, text=None)
    echoed = bool(completion.values) and completion.values[0] is None
    if echoed:  # the prompt is among the tokens of the completion
        return _echoed(name, where, completion, ids, choice, text)
    if choice.get("token_ids") is not None and completion.ids is None:
        completion.ids = token_ids(choice["token_ids"], f"{where}: token_ids")
        same_length(where, ("token_ids", completion.ids), ("logprobs", completion.values))
    return text_of_parts(name, where, prompt, completion, text=text)


def _echoed(
    name: str,
    where: str,
    whole: Part,
    ids: list[int] | None,
    choice: Mapping[str, Any],
    text: str | None,
) -> LoggedText:
    """The text of a request with echo: its tokens begin with the prompt."""
    if ids is not None and whole.ids is None:
        after = choice.get("token_ids") or []
        both = ids + token_ids(after, f"{where}: token_ids")
        same_length(where, ("token ids", both), ("logprobs", whole.values))
        whole.ids = both
    return text_of_parts(name, where, whole, None, text=text)


def _nothing(name: str, where: str) -> LoggedText:
    found = Finding(
        "no logprobs",
        _("A text has no log-probabilities: ask the engine for them (logprobs)."),
        where=where,
    )
    return text_of_parts(name, where, None, None).found(found)


def _part(where: str, choice: Mapping[str, Any]) -> Part | None:
    """The tokens of `logprobs`, in the form of completions or of chats."""
    logged = choice.get("logprobs")
    if logged is None:
        return None
    at = f"{where}.logprobs"
    logged = mapping(logged, at)
    if logged.get("token_logprobs") is not None:
        return _completion(logged, at)
    content = logged.get("content")
    if content is None:
        return None if "content" in logged else malformed(at, "token_logprobs, content", logged)
    return chat_part(content, f"{at}.content")


def _completion(logged: Mapping[str, Any], at: str) -> Part:
    values = numbers(logged["token_logprobs"], f"{at}.token_logprobs")
    tokens = sequence(logged.get("tokens"), f"{at}.tokens", _("the text of each token"))
    same_length(at, ("tokens", tokens), ("token_logprobs", values))
    top = None
    if logged.get("top_logprobs"):
        rows = sequence(logged["top_logprobs"], f"{at}.top_logprobs")
        same_length(at, ("tokens", tokens), ("top_logprobs", rows))
        top = [_top(row, f"{at}.top_logprobs[{place}]") for place, row in enumerate(rows)]
    ids = None
    pieces: list[str | bytes] = []
    if tokens and all(isinstance(token, int) for token in tokens):  # MLX writes ids
        ids = token_ids(tokens, f"{at}.tokens")
        top = top and [row and {token_id(key, at): row[key] for key in row} for row in top]
    else:
        pieces += [words(piece, f"{at}.tokens[{place}]") for place, piece in enumerate(tokens)]
        ids = ids_in_pieces(pieces)
    return Part(values, ids, None if ids else pieces, top)


def _top(row: Any, at: str) -> Top | None:
    if row is None:
        return None
    found = {key: number(value, f"{at}[{shown(key)}]") for key, value in mapping(row, at).items()}
    return {key: value for key, value in found.items() if value is not None}


def chat_part(content: Any, at: str) -> Part:
    """The tokens of a chat; llama.cpp's server adds ids, and may give probabilities."""
    values: list[float | None] = []
    ids: list[int] = []
    pieces: list[str | bytes] = []
    tops: list[Top | None] = []
    for place, entry in enumerate(sequence(content, at)):
        here = f"{at}[{place}]"
        entry = mapping(entry, here)
        if "logprob" not in entry:
            malformed(here, "token, logprob", entry)
        values.append(number(entry["logprob"], f"{here}.logprob"))
        pieces.append(_piece(entry, here))
        if entry.get("id") is not None:
            ids.append(token_id(entry["id"], f"{here}.id"))
        likeliest = sequence(entry.get("top_logprobs") or [], f"{here}.top_logprobs")
        tops.append(dict(_likeliest(likeliest, f"{here}.top_logprobs")) if likeliest else None)
    named = ids_in_pieces(pieces)
    if named is None and ids and len(ids) == len(values):
        named = ids
    return Part(values, named, pieces, tops if any(tops) else None)


def _piece(entry: Mapping[str, Any], at: str) -> str | bytes:
    """The bytes of a token where the log has them, else its text."""
    octets = entry.get("bytes")
    if isinstance(octets, list) and octets:
        try:
            return bytes(octets)
        except (TypeError, ValueError):
            malformed(f"{at}.bytes", _("whole numbers from 0 to 255"), octets)
    return words(entry.get("token"), f"{at}.token")


def _likeliest(rows: Sequence[Any], at: str) -> Iterator[tuple[int | str, float]]:
    for place, row in enumerate(rows):
        here = f"{at}[{place}]"
        row = mapping(row, here)
        value = number(row.get("logprob"), f"{here}.logprob")
        if value is not None:
            key = row["id"] if isinstance(row.get("id"), int) else row.get("token")
            yield (key if isinstance(key, int) else words(key, f"{here}.token")), value
