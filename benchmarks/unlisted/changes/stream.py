"""Changes of the residual stream: what is added to what, rows, channels, old values."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.planted.port import Port
from benchmarks.unlisted.changes.handles import after, before, exchanged, of_text, with_row
from benchmarks.unlisted.changes.registry import FLOAT32, change
from benchmarks.unlisted.changes.words import (
    BY_COLUMN,
    FIRST_ROW,
    LAST_ROW,
    ROW_SHIFT,
    channel,
    places,
)

ATTN, MLP = "block.0.attn.add", "block.0.mlp.add"
Update = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def _adding(port: Port, ending: str, turn: Update) -> None:
    """The sums at the sublayers with this ending are of other terms."""

    def terms(at: str, x: Tensor, y: Tensor) -> tuple[str, Tensor, Tensor]:
        return at, *(turn(x, y) if at.endswith(ending) else (x, y))

    before(port, "added", terms)


@change("residual halved", ATTN, "llama gpt2", "{0.5}", r"\bhalf\b|halved")
def residual_halved(port: Port) -> None:
    _adding(port, ".attn", lambda x, y: (0.5 * x, y))


@change("sum divided by √2", MLP, "gpt_neox qwen", "{0.707107}", "√2", "{1.414214}")
def sum_over_root_2(port: Port) -> None:
    _adding(port, ".mlp", lambda x, y: (x * 2**-0.5, y * 2**-0.5))


@change(
    "embedding added again in every block",
    ATTN,
    "llama gpt2",
    r"(embed\.token|stream\.0|embedding).*(added|again|twice|more|{2}|plus|\+)",
    r"(added|again|twice|more|{2}|plus).*(embed\.token|stream\.0|embedding)",
)
def embedding_again(port: Port) -> None:
    first = "stream.0" if port.d_model == 96 else "embed.token"
    _adding(port, ".attn", lambda x, y: (x + port.kept[first], y))


@change(
    "residual missing in one channel",
    MLP,
    "gpt_neox gpt2",
    rf"({channel(11)}).*(residual|not added|missing|without|update|mlp\.out|alone|left out)",
    rf"(residual|not added|missing|without|left out).*({channel(11)})",
    where=channel(11),
)
def residual_channel_missing(port: Port) -> None:
    _adding(port, ".mlp", lambda x, y: (with_row(x, 11, 0.0, -1), y))


@change(
    "update missing at odd positions, block 1",
    "block.1.mlp.add",
    "qwen gpt_neox",
    r"(odd|positions|rows).*(not added|missing|without|nothing|unchanged)",
    r"(odd|positions|rows).*(only x|alone|left out|dropped|skip)",
    r"(not added|missing|without|skip|left out).*(odd|positions|rows)",
    where=r"\bodd\b|(rows|positions) 1, 3, 5|every (other|second) (row|position)",
)
def odd_rows_skipped(port: Port) -> None:
    even = (torch.arange(len(port.ids)) % 2 == 0).to(port.dtype)[:, None]
    _adding(port, "block.1.mlp", lambda x, y: (x, y * even))


@change(
    "rows 5 and 9 exchanged after block 1",
    "block.1.mlp.add",
    "llama gpt2",
    places(5, 9)[0],
    where=places(5, 9)[1],
)
def rows_exchanged_in_stream(port: Port) -> None:
    after(port, "block.1.mlp.add", lambda x: exchanged(x, 5, 9))


@change(
    "last row of block 2 is that of block 1",
    "block.2.mlp.add",
    "gpt_neox llama",
    r"(15|last).*block\.1\.mlp\.add|block\.1\.mlp\.add.*(15|last)",
    r"(15|last).*(stale|old|block 1|before)",
    where=LAST_ROW,
)
def last_row_stale(port: Port) -> None:
    after(port, "block.2.mlp.add", lambda x: with_row(x, -1, port.kept["block.1.mlp.add"][-1]))


@change(
    "what attention gives shifted by one position, block 1",
    "block.1.attn.add",
    "qwen gpt2",
    r"shift|roll|moved|previous|(row|position).*before|next (row|position)|off by one",
)
def update_shifted(port: Port) -> None:
    _adding(port, "block.1.attn", lambda x, y: (x, y.roll(1, 0)))


@change(
    "MLP's update times 0.1 (a layer scale)",
    MLP,
    "llama gpt_neox",
    "{0.1}",
    "{10}",
    "{0.9}",
    "{-0.9}",
)
def layer_scale(port: Port) -> None:
    _adding(port, ".mlp", lambda x, y: (x, 0.1 * y))


@change(
    "a layer scale for each channel",
    ATTN,
    "gpt2 qwen",
    BY_COLUMN,
)
def layer_scale_by_channel(port: Port) -> None:
    factor = torch.linspace(0.1, 1.5, port.d_model).to(port.dtype)
    _adding(port, ".attn", lambda x, y: (x, factor * y))


@change(
    "noise of 1e-3 in the stream after block 1",
    "block.1.mlp.add",
    "llama",
    r"noise|random|no (pattern|structure|order)|unstructured|irregular",
    formats=FLOAT32,
)
def noisy_stream(port: Port) -> None:
    chance = of_text(port, 5)
    after(port, "block.1.mlp.add", lambda x: x + 1e-3 * torch.randn(x.shape, generator=chance))


@change(
    "stream centered in every block",
    ATTN,
    "qwen gpt_neox",
    r"mean|center",
    where=ROW_SHIFT,
)
def stream_centered(port: Port) -> None:
    after(port, "attn.add", lambda x: x - x.mean(-1, keepdim=True))


@change(
    "update clipped to ±0.5",
    MLP,
    "gpt2 llama",
    r"(clamp|clip|limit|cut|at most|satur|between|beyond).*{0.5}",
    r"{0.5}.*(clamp|clip|limit|cut|most|satur)",
)
def update_clipped(port: Port) -> None:
    _adding(port, ".mlp", lambda x, y: (x, y.clamp(-0.5, 0.5)))


@change(
    "the large channel clipped to ±1 in block 1",
    "block.1.attn.add",
    "llama gpt_neox",
    rf"({channel(42)}).*{{1}}|{{1}}.*({channel(42)})|(clamp|clip|limit|cut|at most|satur).*{{1}}",
    where=channel(42),
)
def outlier_clipped(port: Port) -> None:
    after(port, "block.1.attn.add", lambda x: with_row(x, 42, x[:, 42].clamp(-1, 1), -1))


@change(
    "rows 6 and 7 merged into their mean, block 1",
    "block.1.mlp.add",
    "gpt2 qwen",
    r"\b6\b.*\b7\b.*(mean|average|same|equal|each other)|(mean|average|same|equal).*\b6\b.*\b7\b",
    where=r"(rows|positions) (6|7)\b",
)
def rows_merged(port: Port) -> None:
    def turn(x: Tensor) -> Tensor:
        mean = (x[6] + x[7]) / 2
        return with_row(with_row(x, 6, mean), 7, mean)

    after(port, "block.1.mlp.add", turn)


@change("0.9 of the stream and 0.1 of the update", ATTN, "gpt_neox", r"{0.9}", "{0.1}")
def highway(port: Port) -> None:
    _adding(port, ".attn", lambda x, y: (0.9 * x, 0.1 * y))


@change(
    "update subtracted in block 2",
    "block.2.attn.add",
    "llama gpt2",
    r"subtract|minus|{-1}|{-2}|sign|negat|−block|− ?block",
)
def update_subtracted(port: Port) -> None:
    _adding(port, "block.2.attn", lambda x, y: (x, -y))


@change(
    "MLP's update twice in block 1", "block.1.mlp.add", "gpt_neox llama", r"twice|again|{2}|doubl"
)
def update_twice(port: Port) -> None:
    _adding(port, "block.1.mlp", lambda x, y: (x, 2 * y))


@change(
    "attention's result of block 0 added in block 1 once more",
    "block.1.attn.add",
    "qwen",
    r"block\.0\.attn\.out",
)
def older_update_added(port: Port) -> None:
    _adding(port, "block.1.attn", lambda x, y: (x, y + port.kept["block.0.attn.out"]))


@change(
    "the first row of the stream kept from block 0 on (a frozen sink)",
    "block.1.mlp.add",
    "llama",
    r"(row|position) 0.*block\.0\.mlp\.add|block\.0\.mlp\.add.*(row|position) 0",
    r"first.*(stale|old|frozen)",
    where=FIRST_ROW,
)
def first_row_frozen(port: Port) -> None:
    after(port, "block.1.mlp.add", lambda x: with_row(x, 0, port.kept["block.0.mlp.add"][0]))


@change(
    "channels of the stream moved by one in block 1",
    "block.1.attn.add",
    "gpt2",
    r"(channels?|columns?|entries).*(shift|roll|moved|next|one)",
    r"(shift|roll|moved).*(channels?|columns?|entries|one)",
)
def channels_moved(port: Port) -> None:
    _adding(port, "block.1.attn", lambda x, y: (x, y.roll(1, -1)))
