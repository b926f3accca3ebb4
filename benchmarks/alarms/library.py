"""`transformers` as people run it, its inner values recorded.

A whole text is recorded by `byhand.capture`, a text read token by token by hooks of our own.

attention   eager, sdpa          batch    1, 8 of different lengths
format      float32, float16,    padding  left, right (with the positions that go with it)
            bfloat16, float64    cache    the text at once, or token by token
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.alarms.models import VOCAB, Pair
from benchmarks.planted.port import as_array
from byhand import forward, names
from byhand.capturing import Capture, capture
from byhand.numbers.allowed.precisions import AUTOCAST

FORMATS = ("float32", "float16", "bfloat16", "float64")
CAST = ("bfloat16", "float16")
PREFILL = 3  # tokens that a run with a cache reads at once, before single tokens


@dataclass(frozen=True)
class Way:
    """One way to run a model."""

    format: str
    attention: str
    batch: int
    padding: str  # left, right, or none: then all texts have one length
    cached: bool

    @property
    def precision(self) -> str:
        """The class of implementations of the library."""
        return f"transformers:{self.format}"

    def __str__(self) -> str:
        cache = "cache" if self.cached else "no cache"
        return f"{self.format}, {self.attention}, batch {self.batch}, {self.padding}, {cache}"


def ways(family: str) -> Iterator[Way]:
    """Every sensible way: one text has no padding.

    Left padding in float64 is left out, since the library gets it wrong.  Its mask becomes −∞ in
    the float32 softmax, so the padding, and with it the text, is NaN.
    """
    for format in FORMATS:
        for attention in ("eager", "sdpa"):
            for cached in (False, True):
                yield Way(format, attention, 1, "none", cached)
                for padding in ("none", "left", "right"):
                    spoilt = (format, attention, padding) == ("float64", "eager", "left")
                    if not spoilt or family == "gpt2":
                        yield Way(format, attention, 8, padding, cached)
    for format in CAST:
        for attention in ("eager", "sdpa"):
            for padding in ("none", "left", "right"):
                yield Way(f"{AUTOCAST}{format}", attention, 8, padding, cached=False)


@dataclass(frozen=True)
class Batch:
    """Texts side by side: ids, the mask, and the positions."""

    ids: Tensor
    real: Tensor
    positions: Tensor


def batch(way: Way, seed: int, length: int = 14) -> Batch:
    """Random texts; with padding, each has its own length."""
    noise = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, VOCAB, (way.batch, length), generator=noise)
    real = torch.ones(way.batch, length, dtype=torch.bool)
    if way.padding != "none":
        for row in range(1, way.batch):
            gap = row % (length - PREFILL - 1)
            real[row, slice(0, gap) if way.padding == "left" else slice(length - gap, None)] = False
        ids[~real] = 0
    positions = (real.cumsum(1) - 1).clamp(min=0)
    return Batch(ids, real, positions)


def claims(pair: Pair, way: Way, texts: Batch) -> dict[str, Any] | Capture:
    """The library's values under its own names, with batch and padding."""
    format = way.format.removeprefix(AUTOCAST)
    cast = format != way.format
    model = pair.theirs(torch.float32 if cast else getattr(torch, format), way.attention)
    if not way.cached:
        with torch.autocast("cpu", dtype=getattr(torch, format), enabled=cast):
            return capture(
                model, texts.ids, attention_mask=texts.real.long(), position_ids=texts.positions
            )
    recorder = Recorder(model, pair)
    with torch.inference_mode():
        for start, stop, cache in _parts(texts):
            recorder.run(texts, start, stop, cache)
    found = recorder.joined(texts.ids.shape[1])
    found["tokens"] = texts.ids.numpy()
    found["attention_mask"] = texts.real.numpy().astype(np.int64)
    return found


def _parts(texts: Batch) -> Iterator[tuple[int, int, Any]]:
    """The start and end of each call, with the cache that it continues."""
    from transformers import DynamicCache

    length = texts.ids.shape[1]
    cache = DynamicCache()
    edges = [0, *range(PREFILL, length + 1)]
    for start, stop in pairwise(edges):
        yield start, stop, cache


class Recorder:
    """Keeps the outputs of known modules, and the attention weights."""

    def __init__(self, model: Any, pair: Pair) -> None:
        self.model = model
        spec = pair.ours.spec
        known = names.steps(spec, forward.plan(spec, 1).known)
        self.calls: dict[str, list[Tensor]] = defaultdict(list)
        self.shares: dict[str, list[Tensor]] = defaultdict(list)
        for name, module in model.named_modules():
            if name in known:
                module.register_forward_hook(self._keeping(name, known[name]))

    def _keeping(self, name: str, address: str) -> Any:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            first = output[0] if isinstance(output, tuple) else output
            self.calls[name].append(first.clone())
            shares = output[1] if isinstance(output, tuple) and len(output) > 1 else None
            if isinstance(shares, Tensor) and address.endswith(".attn.out"):
                self.shares[address.replace(".out", ".weights")].append(shares.clone())

        return hook

    def run(self, texts: Batch, start: int, stop: int, cache: Any) -> None:
        """One call of the model."""
        self.model(
            texts.ids[:, start:stop],
            attention_mask=texts.real[:, :stop].long(),
            position_ids=texts.positions[:, start:stop],
            past_key_values=cache,
            use_cache=True,
        )

    def joined(self, length: int) -> dict[str, Any]:
        """The values of all calls, joined as one call would give them."""
        found = {
            name: as_array(torch.cat([each.expand(self._batch(each), *each.shape[1:])
                                      for each in parts], dim=1))
            for name, parts in self.calls.items()
        }  # fmt: skip
        for address, parts in self.shares.items():
            rows = [torch.nn.functional.pad(each, (0, length - each.shape[-1])) for each in parts]
            found[address] = as_array(torch.cat(rows, dim=2))
        return found

    def _batch(self, value: Tensor) -> int:
        return max(each.shape[0] for parts in self.calls.values() for each in parts)
