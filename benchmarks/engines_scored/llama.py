"""llama.cpp through llama-cpp-python: completions with echo, in the shape that it writes itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.engines_scored.texts import Text

CACHES = {"F16": 1, "F32": 0}


def logged(model: Path, texts: Sequence[Text], path: Path, cache: str = "F16") -> Path:
    """The log of all texts.  `cache` is the format of keys and values."""
    from llama_cpp import Llama

    kind = CACHES[cache]
    longest = max(len(text.ids) for text in texts) + 8
    engine = Llama(
        str(model), n_ctx=max(64, longest), n_batch=max(64, longest), logits_all=True, n_threads=1,
        verbose=False, type_k=kind, type_v=kind, flash_attn=False,
    )  # fmt: skip
    lines = []
    for text in texts:
        answer = engine.create_completion(
            text.words, max_tokens=1, echo=True, logprobs=3, temperature=0.0
        )
        lines.append(json.dumps({"custom_id": text.name, "response": answer}, default=_plain))
    path = path.with_suffix(".jsonl")
    path.write_text("\n".join(lines) + "\n")
    return path


def _plain(value: Any) -> float:
    return float(value)
