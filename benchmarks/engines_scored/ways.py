"""transformers in many ways: eager and sdpa, three formats, alone, in batches, with a cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.engines_scored.texts import Text, model_of

Rows = list[torch.Tensor]  # of each text: the logits at each position


@dataclass(frozen=True)
class Way:
    """One way to run a model.  `like` are the formats that its errors may look like."""

    name: str
    like: tuple[str, ...]
    settings: dict[str, Any]
    run: Callable[[Any, Sequence[Text]], Rows]


def alone(model: Any, texts: Sequence[Text]) -> Rows:
    """A pass for each text."""
    with torch.no_grad():
        return [model(torch.tensor([text.ids])).logits[0] for text in texts]


def batched(model: Any, texts: Sequence[Text]) -> Rows:
    """One pass for all texts, padded on the left."""
    longest = max(len(text.ids) for text in texts)
    ids = torch.zeros(len(texts), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, longest - len(text.ids) :] = torch.tensor(text.ids)
        mask[row, longest - len(text.ids) :] = 1
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        logits = model(ids, attention_mask=mask, position_ids=positions).logits
    return [logits[row, longest - len(text.ids) :] for row, text in enumerate(texts)]


def cached(model: Any, texts: Sequence[Text]) -> Rows:
    """The prompt in one pass, then a token at a time from the cache."""
    rows = []
    with torch.no_grad():
        for text in texts:
            first = model(torch.tensor([text.ids[: text.prompt]]), use_cache=True)
            parts, cache = [first.logits[0]], first.past_key_values
            for id in text.ids[text.prompt :]:
                out = model(torch.tensor([[id]]), past_key_values=cache, use_cache=True)
                parts.append(out.logits[0])
                cache = out.past_key_values
            rows.append(torch.cat(parts))
    return rows


EAGER, SDPA = {"attn_implementation": "eager"}, {"attn_implementation": "sdpa"}
WAYS = (
    Way("eager", ("float32",), EAGER, alone),
    Way("sdpa", ("float32",), SDPA, alone),
    Way("batched", ("float32",), SDPA, batched),
    Way("cached", ("float32",), SDPA, cached),
    Way("bfloat16", ("bfloat16",), {**SDPA, "dtype": torch.bfloat16}, alone),
    Way("bfloat16 eager batched", ("bfloat16",), {**EAGER, "dtype": torch.bfloat16}, batched),
    Way("bfloat16 cached", ("bfloat16",), {**SDPA, "dtype": torch.bfloat16}, cached),
    Way("float16", ("float16",), {**SDPA, "dtype": torch.float16}, alone),
)


def logits_of(folder: Path, texts: Sequence[Text]) -> Iterator[tuple[Way, Rows]]:
    """What each way gives for the texts."""
    for way in WAYS:
        yield way, way.run(model_of(folder, **way.settings), texts)
