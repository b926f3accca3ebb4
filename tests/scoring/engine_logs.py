"""One text as every engine logs it: ids 1 0 2 with −0.5 and −1.25, in the shapes of their docs."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

IDS = (1, 0, 2)
WORDS = ("b", " a", " c")
VALUES = (None, -0.5, -1.25)  # of each token; the first has none
Answer = dict[str, Any]


def completion(**more: Any) -> Answer:
    """A completion with echo."""
    logprobs = {
        "tokens": list(WORDS),
        "token_logprobs": list(VALUES),
        "top_logprobs": [None, {" a": -0.5, " b": -2.0}, {" c": -1.25, " a": -0.5}],
        "text_offset": [0, 1, 3],
    }
    choice = {"text": "b a c", "index": 0, "logprobs": logprobs, "finish_reason": "length", **more}
    return {"id": "cmpl-1", "object": "text_completion", "model": "m", "choices": [choice]}


def chat_token(word: str, value: float, **more: Any) -> Answer:
    top = [{"token": word, "logprob": value, "bytes": list(word.encode())}]
    return {
        "token": word, "logprob": value, "bytes": list(word.encode()), "top_logprobs": top, **more
    }  # fmt: skip


def chat() -> Answer:
    """A chat: the completion alone."""
    content = [chat_token(" a", -0.5), chat_token(" c", -1.25)]
    message = {"role": "assistant", "content": " a c"}
    choice = {"index": 0, "message": message, "logprobs": {"content": content, "refusal": None}}
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]}


def position(id: int, value: float, word: str) -> Answer:
    other = (id + 1) % 3
    return {
        str(id): {"logprob": value, "rank": 2, "decoded_token": word},
        str(other): {"logprob": -0.25, "rank": 1, "decoded_token": WORDS[other]},
    }


def vllm() -> Answer:
    """A RequestOutput with prompt_logprobs and one token more."""
    return {
        "request_id": "0",
        "prompt": "b a",
        "prompt_token_ids": [1, 0],
        "prompt_logprobs": [None, position(0, -0.5, " a")],
        "outputs": [
            {
                "index": 0,
                "text": " c",
                "token_ids": [2],
                "cumulative_logprob": -1.25,
                "logprobs": [position(2, -1.25, " c")],
            }
        ],
        "finished": True,
    }


def vllm_flat() -> Answer:
    """The same in FlatLogprobs."""
    answer = vllm()
    answer["prompt_logprobs"] = {
        "start_indices": [0, 0], "end_indices": [0, 2], "token_ids": [0, 1],
        "logprobs": [-0.5, -0.25], "ranks": [2, 1], "decoded_tokens": [" a", " b"],
    }  # fmt: skip
    return answer


def vllm_server() -> Answer:
    """vLLM's server, with return_token_ids and prompt_logprobs."""
    answer = chat()
    answer["prompt_token_ids"] = [1]
    answer["prompt_logprobs"] = [None]
    answer["choices"][0]["token_ids"] = [0, 2]
    return answer


def sglang() -> Answer:
    """An answer of /generate with return_logprob and logprob_start_len 0."""
    facts = {
        "id": "7", "prompt_tokens": 2, "completion_tokens": 1,
        "input_token_logprobs": [[None, 1, None], [-0.5, 0, None]],
        "output_token_logprobs": [[-1.25, 2, " c"]],
        "input_top_logprobs": [None, [[-0.25, 2, " c"], [-0.5, 0, " a"]]],
        "output_top_logprobs": [[[-0.1, 1, " b"]]],
    }  # fmt: skip
    return {"text": " c", "output_ids": [2], "meta_info": facts}


def llama_server() -> Answer:
    """llama-server's /completion with n_probs."""
    rows = [chat_token(" a", -0.5, id=0), chat_token(" c", -1.25, id=2)]
    return {"index": 0, "content": " a c", "tokens": [0, 2], "completion_probabilities": rows}


def llama_server_sampled() -> Answer:
    """The same with post_sampling_probs."""
    rows = []
    for id, word, value in ((0, " a", -0.5), (2, " c", -1.25)):
        probability = math.exp(value)
        top = [{"id": id, "token": word, "bytes": list(word.encode()), "prob": probability}]
        rows.append({**top[0], "top_probs": top})
    return {"content": " a c", "completion_probabilities": rows}


def llama_server_before() -> Answer:
    """The shape of 2023 and 2024."""
    rows = [
        {"content": word, "probs": [{"tok_str": word, "prob": math.exp(value)}]}
        for word, value in ((" a", -0.5), (" c", -1.25))
    ]
    return {"content": " a c", "completion_probabilities": rows, "truncated": False}


def trl() -> Answer:
    """What a rollout function of TRL gives, a text a row."""
    return {"prompt_ids": [1], "completion_ids": [0, 2], "logprobs": [-0.5, -1.25]}


def trl_likeliest() -> Answer:
    """What TRL's server gives: of each token the likeliest ones, with their ids beside them."""
    return {
        "prompt_ids": [[1]],
        "completion_ids": [[0, 2]],
        "logprobs": [[[-0.25, -0.5], [-1.25]]],
        "logprob_token_ids": [[[2, 0], [2]]],
    }


def mlx() -> Answer:
    """MLX's server: ids in place of the texts of tokens."""
    answer = chat()
    answer["choices"][0]["logprobs"] = {
        "token_logprobs": [-0.5, -1.25],
        "tokens": [0, 2],
        "top_logprobs": [{"1": -0.25, "0": -0.5}, {"2": -1.25}],
    }
    return answer


def verl() -> Answer:
    """A batch of verl: prompts padded on the left, responses on the right."""
    return {
        "prompts": [[0, 0, 1]],
        "responses": [[0, 2, 0, 0]],
        "attention_mask": [[0, 0, 1, 1, 1, 0, 0]],
        "response_mask": [[1, 1, 0, 0]],
        "old_log_probs": [[-0.5, -1.25, 0.0, 0.0]],
    }


def whole_row() -> Answer:
    return {"input_ids": list(IDS), "token_logprobs": list(VALUES)}


COMPLETE = {  # the prompt is in the log
    "completion": completion,
    "vllm": vllm,
    "vllm flat": vllm_flat,
    "vllm server": vllm_server,
    "sglang": sglang,
    "trl": trl,
    "trl likeliest": trl_likeliest,
    "verl": verl,
    "whole": whole_row,
}
COMPLETIONS = {  # it is not
    "chat": chat,
    "mlx": mlx,
    "llama server": llama_server,
    "llama server, sampled": llama_server_sampled,
    "llama server, before": llama_server_before,
}


def write(folder: Path, *answers: Any, name: str = "engine.jsonl") -> Path:
    """A file of lines."""
    path = folder / name
    path.write_text("".join(json.dumps(each) + "\n" for each in answers), encoding="utf-8")
    return path


def zipped(folder: Path, **arrays: Any) -> Path:
    path = folder / "engine.npz"
    np.savez(path, **arrays)
    return path


def saved_logits(rows: int = 2, length: int = 5, size: int = 3, seed: int = 0) -> tuple[bytes, Any]:
    """A file of llama-perplexity, written as its source does, and the values before rounding."""
    made = np.random.default_rng(seed)
    tokens = made.integers(0, size, (rows, length), dtype=np.int32)
    out = io.BytesIO()
    out.write(b"_logits_" + np.array([length, size, rows], "<i4").tobytes() + tokens.tobytes())
    true = np.full((rows, length), np.nan)
    first = length // 2
    for row in range(rows):
        for place in range(first, length - 1):
            logits = made.normal(size=size).astype(np.float32) * 3
            total = np.log(np.exp(logits - logits.max()).sum())
            least = max(logits.min(), logits.max() - 16)
            step = (logits.max() - least) / 65535
            codes = np.zeros(2 * ((size + 1) // 2), "<u2")
            codes[:size] = np.rint((np.maximum(logits, least) - least) / step)
            head = np.array([step, least - logits.max() - total], "<f4")
            out.write(head.tobytes() + codes.tobytes())
            true[row, place + 1] = (logits - logits.max() - total)[tokens[row, place + 1]]
    return out.getvalue(), true
