"""Logits, written as the logs of engines: each in the shape that its own program writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.engines_scored.texts import Text

TOP = 3
Logs = list[torch.Tensor]  # of each text: the log-probabilities of all tokens at each position


def logprobs(rows: Sequence[torch.Tensor]) -> Logs:
    """log_softmax in float32, as trainers and engines take it."""
    return [torch.log_softmax(row.float(), dim=-1) for row in rows]


def chosen(text: Text, logs: torch.Tensor) -> list[float]:
    """ln p of every token but the first."""
    return [float(logs[place, id]) for place, id in enumerate(text.ids[1:])]


def likeliest(logs: torch.Tensor, place: int) -> list[tuple[int, float]]:
    values, ids = torch.topk(logs[place], TOP)
    return list(zip(ids.tolist(), values.tolist(), strict=True))


def _lines(path: Path, objects: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    return path


def trl(path: Path, texts: Sequence[Text], logs: Logs, _decode: Callable[[int], str]) -> Path:
    """Rows of a rollout function: prompt_ids, completion_ids, logprobs."""
    rows = []
    for text, own in zip(texts, logs, strict=True):
        after = chosen(text, own)[text.prompt - 1 :]
        rows.append(
            {
                "prompt_ids": text.ids[: text.prompt],
                "completion_ids": text.ids[text.prompt :],
                "logprobs": after,
            }
        )
    return _lines(path.with_suffix(".jsonl"), rows)


def vllm(path: Path, texts: Sequence[Text], logs: Logs, decode: Callable[[int], str]) -> Path:
    """RequestOutputs with prompt_logprobs."""
    outputs = []
    for text, own in zip(texts, logs, strict=True):
        places: list[Any] = [None]
        for place, id in enumerate(text.ids[1:]):
            rank = int((own[place] > own[place, id]).sum()) + 1
            entry = {id: {"logprob": float(own[place, id]), "rank": rank,
                          "decoded_token": decode(id)}}  # fmt: skip
            for n, (other, value) in enumerate(likeliest(own, place), 1):
                told = {"logprob": value, "rank": n, "decoded_token": decode(other)}
                entry.setdefault(other, told)
            places.append(entry)
        outputs.append(
            {
                "request_id": text.name,
                "prompt": text.words,
                "prompt_token_ids": text.ids,
                "prompt_logprobs": places,
                "outputs": [{"index": 0, "text": "", "token_ids": [], "logprobs": None}],
                "finished": True,
            }
        )
    return _lines(path.with_suffix(".jsonl"), outputs)


def sglang(path: Path, texts: Sequence[Text], logs: Logs, decode: Callable[[int], str]) -> Path:
    """Answers with input_token_logprobs."""
    answers = []
    for text, own in zip(texts, logs, strict=True):
        values = [None, *chosen(text, own)]
        triples = [[value, id, decode(id)] for value, id in zip(values, text.ids, strict=True)]
        tops: list[Any] = [None]
        for place in range(len(text.ids) - 1):
            tops.append([[value, id, decode(id)] for id, value in likeliest(own, place)])
        facts = {"id": text.name, "prompt_tokens": len(text.ids), "completion_tokens": 1,
                 "input_token_logprobs": triples, "input_top_logprobs": tops,
                 "output_token_logprobs": []}  # fmt: skip
        answers.append({"text": "", "output_ids": [], "meta_info": facts})
    return _lines(path.with_suffix(".jsonl"), answers)


def openai(path: Path, texts: Sequence[Text], logs: Logs, decode: Callable[[int], str]) -> Path:
    """Completions with echo, in the lines of a batch."""
    lines = []
    for text, own in zip(texts, logs, strict=True):
        tops: list[Any] = [None]
        for place in range(len(text.ids) - 1):
            tops.append({decode(id): value for id, value in likeliest(own, place)})
        logged = {
            "tokens": [decode(id) for id in text.ids],
            "token_logprobs": [None, *chosen(text, own)],
            "top_logprobs": tops,
            "text_offset": [0] * len(text.ids),
        }
        body = {"id": "cmpl", "object": "text_completion",
                "choices": [{"index": 0, "text": text.words, "logprobs": logged}]}  # fmt: skip
        lines.append({"custom_id": text.name, "response": {"status_code": 200, "body": body}})
    return _lines(path.with_suffix(".jsonl"), lines)


def verl(path: Path, texts: Sequence[Text], logs: Logs, _decode: Callable[[int], str]) -> Path:
    """A batch as arrays: prompts padded on the left, responses on the right."""
    before = max(text.prompt for text in texts)
    after = max(len(text.ids) - text.prompt for text in texts)
    count = len(texts)
    prompts, responses = np.zeros((count, before), np.int64), np.zeros((count, after), np.int64)
    mask, scored = np.zeros((count, before + after), np.int64), np.zeros((count, after), np.int64)
    values = np.zeros((count, after), np.float32)
    for row, (text, own) in enumerate(zip(texts, logs, strict=True)):
        length = len(text.ids) - text.prompt
        prompts[row, before - text.prompt :] = text.ids[: text.prompt]
        responses[row, :length] = text.ids[text.prompt :]
        mask[row, before - text.prompt : before + length] = 1
        scored[row, :length] = 1
        values[row, :length] = chosen(text, own)[text.prompt - 1 :]
    place = path.with_suffix(".npz")
    np.savez(place, prompts=prompts, responses=responses, attention_mask=mask,
             response_mask=scored, rollout_log_probs=values)  # fmt: skip
    return place


def parquet(path: Path, texts: Sequence[Text], logs: Logs, _decode: Callable[[int], str]) -> Path:
    """Rows of Parquet with the whole text."""
    import pyarrow
    import pyarrow.parquet

    rows = [
        {"input_ids": list(text.ids), "logprobs": [None, *chosen(text, own)]}
        for text, own in zip(texts, logs, strict=True)
    ]
    place = path.with_suffix(".parquet")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), place)
    return place


SHAPES = (trl, vllm, sglang, openai, verl, parquet)
