"""llama.cpp through llama-cpp-python: completions with echo, as it writes them, and its own logits.

llama-cpp-python looks each token up in the row of logits after the one before it, as long as a text
begins with a token that it then drops (<s>).  Without one, each value is that of the row too late.
The logits themselves have no such fault.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.engines_scored import shapes
from benchmarks.engines_scored.texts import Text

CACHES = {"F16": 1, "F32": 0}


def opened(model: Path, texts: Sequence[Text], cache: str = "F16") -> Any:
    """The engine with room for the longest text.  `cache` is the format of keys and values."""
    from llama_cpp import Llama

    kind = CACHES[cache]
    longest = max(64, *(len(text.ids) + 8 for text in texts))
    return Llama(
        str(model), n_ctx=longest, n_batch=longest, logits_all=True, n_threads=1,
        verbose=False, type_k=kind, type_v=kind, flash_attn=False,
    )  # fmt: skip


def completed(engine: Any, texts: Sequence[Text], path: Path) -> Path:
    """The log of completions with echo."""
    lines = []
    for text in texts:
        answer = engine.create_completion(
            text.words, max_tokens=1, echo=True, logprobs=3, temperature=0.0
        )
        lines.append(json.dumps({"custom_id": text.name, "response": answer}, default=_plain))
    path = path.with_suffix(".jsonl")
    path.write_text("\n".join(lines) + "\n")
    return path


def worked(engine: Any, texts: Sequence[Text], path: Path) -> Path:
    """The log of the engine's own logits, as rollouts."""
    rows = []
    for text in texts:
        engine.reset()
        engine.eval(list(text.ids))
        rows.append(torch.tensor(engine.scores[: len(text.ids)]))
    return shapes.trl(path, texts, shapes.logprobs(rows), str)


def _plain(value: Any) -> float:
    return float(value)
