"""Tokens per second of `byhand train`, beside a plain loop of eager torch.

The loop is an ordinary one with the same arithmetic: modules, a packed projection, softmax over
masked scores, torch's AdamW with weight decay on matrices, clipping.  Both learn the same text at
the same size, in turn, in one process and on one thread.  The start of `byhand train` is measured
separately.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

VOCAB, CONTEXT, HEADS, LAYERS = 64, 32, 4, 2
STEPS, WARM, ROUNDS = 60, 10, 7

RUN = """
name: benchmark
data: text.txt
model:
  d_model: {width}
  context: {context}
  layers: {layers}
  position: {{kind: rope}}
  norm: {{kind: layernorm, place: pre, eps: 1e-5}}
  final_norm: {{kind: layernorm, eps: 1e-5}}
  attention: {{heads: {heads}}}
  mlp: {{d_ff: {wide}, activation: gelu, bias: true}}
  head: {{tied: true}}
init: {{std: 0.02}}
steps: {steps}
batch: {batch}
threads: 1
evaluate: {{every: {steps}}}
checkpoint: {{every: {steps}}}
"""


class Attention(nn.Module):
    """Ordinary causal attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.packed = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        d_head = width // HEADS
        angles = torch.outer(
            torch.arange(CONTEXT), 10_000.0 ** (-torch.arange(0, d_head, 2) / d_head)
        )
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("seen", torch.ones(CONTEXT, CONTEXT).tril().bool())

    def turned(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * self.cos - b * self.sin, a * self.sin + b * self.cos), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, HEADS, -1).transpose(1, 2)
            for part in self.packed(x).split(width, dim=2)
        )
        q, k = self.turned(q), self.turned(k)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(~self.seen, -torch.inf).softmax(dim=-1)
        mixed = (weights @ v).transpose(1, 2).contiguous().view(batch, length, width)
        return self.out(mixed)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.attention = nn.LayerNorm(width), Attention(width)
        self.between = nn.LayerNorm(width)
        self.hidden, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.before(x))
        return x + self.back(functional.gelu(self.hidden(self.between(x))))


class Plain(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCAB, width)
        self.blocks = nn.ModuleList(Block(width) for _layer in range(LAYERS))
        self.last = nn.LayerNorm(width)

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        x = self.table(ids)
        for block in self.blocks:
            x = block(x)
        logits = self.last(x) @ self.table.weight.T
        return functional.cross_entropy(logits.view(-1, VOCAB), targets.view(-1))


def plain_loop(text: Tensor, width: int, batch: int) -> float:
    """The seconds of a step of the plain loop."""
    torch.manual_seed(0)
    model = Plain(width)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95))
    begin = 0.0
    for step in range(STEPS):
        if step == WARM:
            begin = perf_counter()
        starts = torch.randint(len(text) - CONTEXT - 1, (batch,)).tolist()
        ids = torch.stack([text[start : start + CONTEXT] for start in starts])
        targets = torch.stack([text[start + 1 : start + CONTEXT + 1] for start in starts])
        loss = model(ids, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
    return (perf_counter() - begin) / (STEPS - WARM)


def byhand_train(folder: Path, width: int, batch: int) -> float:
    """The seconds of a step of `byhand train` with its log, without its start."""
    from byhand.train import Beat, train

    path = folder / "run.yaml"
    path.write_text(
        RUN.format(
            width=width, wide=4 * width, batch=batch, context=CONTEXT, layers=LAYERS, heads=HEADS,
            steps=STEPS,
        )
    )  # fmt: skip
    times: dict[int, float] = {}

    def note(beat: Beat) -> None:
        times[beat.step] = perf_counter()

    with tempfile.TemporaryDirectory() as out:
        train(path, out=Path(out) / "run", progress=note)
    last = STEPS - 1  # the last step also evaluates and saves
    return (times[last] - times[WARM]) / (last - WARM)


def compare(width: int, batch: int) -> tuple[float, float, float]:
    """(tokens a second of byhand, of the plain loop, the median of the rounds' ratios)."""
    letters = "".join(map(chr, range(192, 192 + VOCAB)))
    drawn = np.random.default_rng(0).integers(VOCAB, size=100_000)
    text = torch.from_numpy(drawn)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "text.txt").write_text("".join(letters[i] for i in drawn), "utf-8")
        pairs = [
            (byhand_train(folder, width, batch), plain_loop(text, width, batch))
            for _round in range(ROUNDS)
        ]
    tokens = batch * CONTEXT
    ours, theirs = (tokens / median(side) for side in zip(*pairs, strict=True))
    return ours, theirs, median(theirs / ours for ours, theirs in pairs)


def main() -> None:
    torch.set_num_threads(1)
    print(f"training, context {CONTEXT}, one thread, medians of {ROUNDS} rounds in turn")
    print(f"  {'d':>5}{'batch':>7}{'byhand':>14}{'plain loop':>14}{'ratio':>8}   (tokens a second)")
    for width, batch in ((64, 32), (64, 8), (64, 128), (128, 32), (256, 32)):
        ours, theirs, ratio = compare(width, batch)
        print(f"  {width:>5}{batch:>7}{ours:>14,.0f}{theirs:>14,.0f}{ratio:>8.2f}")


if __name__ == "__main__":
    main()
