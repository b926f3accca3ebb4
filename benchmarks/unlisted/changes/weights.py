"""Changes of weights: single entries, rows, slices, files of other layers, low rank."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.planted.port import Port
from benchmarks.unlisted.changes.handles import every, exchanged, fixed, matrix, replaced, with_row
from benchmarks.unlisted.changes.registry import change
from benchmarks.unlisted.changes.words import BY_COLUMN, channel, places, zero

QKV = {"": "block.1.attn.qkv", "llama": "block.1.attn.q", "qwen": "block.1.attn.q"}


def _name(port: Port, layer: int = 1) -> str:
    """The matrix that q comes from."""
    packed = f"block.{layer}.attn.qkv"
    return packed if packed in port.w else f"block.{layer}.attn.q"


@change(
    "sign of one weight",
    "block.1.mlp.hidden",
    "gpt2 llama",
    r"\[(100, ?20|20, ?100)\]",
    r"sign.*(100|20)\b.*(100|20)\b",
    where=channel(100),
)
def one_sign(port: Port) -> None:
    matrix(port, "block.1.mlp.hidden", lambda w: w[100:101, 20:21].neg_())


@change(
    "one weight 0", "block.1.attn.out", "gpt_neox qwen", r"\[(5, ?40|40, ?5)\]", where=channel(5)
)
def one_zero(port: Port) -> None:
    matrix(port, "block.1.attn.out", lambda w: w[5:6, 40:41].fill_(0.0))


@change(
    "a bit of one weight's exponent flipped",
    "block.2.mlp.out",
    "llama gpt2",
    r"\[(9, ?77|77, ?9)\]",
    where=channel(9),
)
def exponent_bit(port: Port) -> None:
    matrix(port, "block.2.mlp.out", lambda w: w[9:10, 77:78].mul_(256.0))


@change(
    "one output row of layer 0",
    "block.1.mlp.hidden",
    "gpt2 qwen",
    r"{30}.*(block\.0|block 0|layer 0)",
    r"(block\.0|block 0|layer 0).*{30}",
    where=channel(30),
)
def row_of_another_layer(port: Port) -> None:
    other = port.w["block.0.mlp.hidden"]
    row = other[:, 30] if port.d_model == 96 else other[30]
    matrix(port, "block.1.mlp.hidden", lambda w: w[30].copy_(row))


@change(
    "one input column of layer 0",
    "block.1.mlp.out",
    "llama gpt2",
    r"{33}.*(block\.0|block 0|layer 0)",
    r"(block\.0|block 0|layer 0).*{33}",
    r"rank.{1,12}1\b",
    where=r"(inputs?|columns?|rows?|channels?|entry) 33\b|(acts|,)33\]|\[33,",
)
def column_of_another_layer(port: Port) -> None:
    other = port.w["block.0.mlp.out"]
    column = other[33] if port.d_model == 96 else other[:, 33]
    matrix(port, "block.1.mlp.out", lambda w: w[:, 33].copy_(column))


@change(
    "output rows 10 and 11 exchanged",
    "block.1.mlp.out",
    "gpt2 llama",
    places(10, 11)[0],
    where=places(10, 11)[1],
)
def rows_exchanged(port: Port) -> None:
    replaced(port, "block.1.mlp.out", lambda w: exchanged(w, 10, 11, 0))
    if "block.1.mlp.out_bias" in port.w:
        replaced(port, "block.1.mlp.out_bias", lambda b: exchanged(b, 10, 11, 0))


@change(
    "input columns 10 and 90 exchanged",
    "block.1.mlp.out",
    "gpt_neox qwen",
    places(10, 90)[0],
    r"rank.{1,12}1\b",
)
def columns_exchanged(port: Port) -> None:
    replaced(port, "block.1.mlp.out", lambda w: exchanged(w, 10, 90, 1))


@change(
    "slice of the packed matrix begins one row late",
    QKV,
    "gpt2 llama",
    r"(shift|moved|roll|off|begin|late|start|next|rotat).*(1\b|one)",
    r"(1\b|one).*(late|further|shift|moved|roll|off|on\b)",
)
def slice_moved_by_1(port: Port) -> None:
    replaced(port, _name(port), lambda w: w.roll(-1, 0))
    if f"{_name(port)}_bias" in port.w:
        replaced(port, f"{_name(port)}_bias", lambda b: b.roll(-1, 0))


@change(
    "slice of the packed matrix begins one head late",
    QKV,
    "qwen gpt_neox",
    r"(shift|moved|roll|off|begin|late|start|next|rotat).*({16}|{32}|head)",
    r"({16}|{32}|head).*(late|further|shift|moved|roll|rotat|off|next)",
)
def slice_moved_by_head(port: Port) -> None:
    replaced(port, _name(port), lambda w: w.roll(-port.d_head, 0))
    if f"{_name(port)}_bias" in port.w:
        replaced(port, f"{_name(port)}_bias", lambda b: b.roll(-port.d_head, 0))


def _low_rank(port: Port, name: str, rank: int, size: float) -> None:
    chance = fixed(rank)

    def turn(w: Tensor) -> Tensor:
        a = torch.randn(w.shape[0], rank, generator=chance)
        b = torch.randn(rank, w.shape[1], generator=chance)
        return w + (size * (a @ b)).to(w.dtype)

    replaced(port, name, turn)


@change(
    "a LoRA of rank 1 merged into one matrix",
    "block.1.attn.out",
    "gpt2 llama",
    r"rank.{1,12}1\b|low.?rank|lora",
)
def lora_rank_1(port: Port) -> None:
    _low_rank(port, "block.1.attn.out", 1, 0.03)


@change(
    "a LoRA of rank 4 merged into one matrix",
    "block.2.mlp.out",
    "gpt_neox qwen",
    r"rank.{1,12}4\b|low.?rank|lora",
)
def lora_rank_4(port: Port) -> None:
    _low_rank(port, "block.2.mlp.out", 4, 0.02)


@change(
    "a LoRA of rank 2 in q of every block",
    {"": "block.0.attn.q"},
    "llama",
    r"rank.{1,12}2\b|low.?rank|lora",
)
def lora_in_q(port: Port) -> None:
    for name in every(port, "attn.q"):
        _low_rank(port, name, 2, 0.02)


@change(
    "one head's part of the output matrix transposed",
    "block.0.attn.out",
    "llama",
    r"transpos",
    where=r"(inputs?|outputs?|channels?|columns?|entries|rows?).*({16}).*({31})|head 1\b",
)
def head_transposed(port: Port) -> None:
    def edit(w: Tensor) -> None:
        w[16:32, 16:32] = w[16:32, 16:32].T.clone()

    for name in every(port, "attn.out"):
        matrix(port, name, edit)


@change(
    "rows scaled to length 1 (weight norm's g lost)",
    "block.1.mlp.hidden",
    "gpt_neox llama",
    BY_COLUMN,
    r"length|normali",
)
def rows_of_length_1(port: Port) -> None:
    replaced(port, "block.1.mlp.hidden", lambda w: w / w.norm(dim=1, keepdim=True))


@change(
    "matrix averaged with that of layer 0",
    "block.1.mlp.out",
    "gpt2 qwen",
    r"(mean|average|half|{0.5}|mix).*block\.0|block\.0.*(mean|average|half|{0.5}|mix)",
)
def matrix_averaged(port: Port) -> None:
    port.w["block.1.mlp.out"] = (port.w["block.1.mlp.out"] + port.w["block.0.mlp.out"]) / 2


@change(
    "1% of noise in one matrix",
    "block.1.attn.out",
    "llama",
    r"noise|random|full rank|all (of )?(its|the) (entries|weights)",
    r"matrix (differs|acts)|unstructured",
)
def noisy_matrix(port: Port) -> None:
    chance = fixed(9)

    def turn(w: Tensor) -> Tensor:
        return w * (1 + 0.01 * torch.randn(w.shape, generator=chance)).to(w.dtype)

    replaced(port, "block.1.attn.out", turn)


@change(
    "the smallest 30% of a matrix pruned",
    "block.2.mlp.hidden",
    "gpt_neox gpt2",
    r"prun|spars|small.*(\b0\b|zero)|(\b0\b|zeros?).*small",
)
def matrix_pruned(port: Port) -> None:
    def turn(w: Tensor) -> Tensor:
        limit = w.abs().float().quantile(0.3)
        return w.where(w.abs() >= limit, torch.zeros_like(w))

    replaced(port, "block.2.mlp.hidden", turn)


@change(
    "rows of q in the other order of RoPE's pairs",
    {"": "block.0.attn.q"},
    "llama qwen",
    r"permut|interleav|other order|pairs|reorder|order of",
    r"\b1\b.*\b8\b",
)
def q_permuted(port: Port) -> None:
    for layer in port.layers:
        for name in (f"block.{layer}.attn.q", f"block.{layer}.attn.q_bias"):
            if name in port.w:
                replaced(port, name, lambda w: _other_order(w, port.heads))


def _other_order(w: Tensor, heads: int) -> Tensor:
    own = w.view(heads, 2, w.shape[0] // heads // 2, -1)
    return own.transpose(1, 2).reshape(w.shape)


@change(
    "shards of the first matrix exchanged",
    "block.0.mlp.hidden",
    "gpt2 llama",
    r"hal(f|ves)|shift|roll|exchang|change places|{144}|{160}",
)
def shards_exchanged(port: Port) -> None:
    for name in every(port, "mlp.hidden"):
        replaced(port, name, lambda w: w.roll(w.shape[0] // 2, 0))


@change(
    "sign of a whole matrix",
    "block.1.mlp.out",
    "llama gpt_neox",
    r"{-1}|negat|sign|minus|−block|−1",
)
def matrix_negated(port: Port) -> None:
    replaced(port, "block.1.mlp.out", torch.neg)


@change(
    "no bias on k in the packed matrix",
    "block.0.attn.qkv",
    "gpt2",
    r"\bk\b.*bias|bias.*\bk\b|bias.*({96}|{191}|{192})|({96}|{191}|{192}).*bias",
    where=r"({96}).*({191})",
)
def k_bias_missing(port: Port) -> None:
    def edit(bias: Tensor) -> None:
        bias[port.d_model : 2 * port.d_model] = 0.0

    for name in every(port, "attn.qkv_bias"):
        matrix(port, name, edit)


@change(
    "v of layer 0 in the packed matrix of layer 1",
    "block.1.attn.qkv",
    "gpt2",
    r"(\bv\b|{192}|third|last third).*(block\.0|block 0|layer 0)",
    r"(block\.0|block 0|layer 0).*(\bv\b|{192}|third)",
    where=r"({192}).*({287})",
)
def v_of_another_layer(port: Port) -> None:
    other = port.w["block.0.attn.qkv"]
    matrix(port, "block.1.attn.qkv", lambda w: w[192:].copy_(other[:, 192:].T))


@change(
    "the matrices of the two v heads averaged, block 1",
    "block.1.attn.v",
    "llama qwen",
    r"(mean|average).*head|head.*(mean|average|same|alike|equal)",
)
def v_heads_averaged(port: Port) -> None:
    replaced(port, "block.1.attn.v", lambda w: w.view(2, 16, -1).mean(0).repeat(2, 1))
    if "block.1.attn.v_bias" in port.w:
        replaced(port, "block.1.attn.v_bias", lambda b: b.view(2, 16).mean(0).repeat(2))


@change(
    "channels 20 and 21 of the stream exchanged in a norm's gain",
    "block.1.attn.norm.out",
    "gpt2 llama",
    places(20, 21)[0],
    where=places(20, 21)[1],
)
def gain_entries_exchanged(port: Port) -> None:
    replaced(port, "block.1.attn.norm.gain", lambda g: exchanged(g, 20, 21, 0))


@change(
    "one row of the output matrix is 0",
    "block.0.attn.out",
    "qwen gpt_neox",
    zero(channel(64)),
    where=channel(64),
)
def output_row_zero(port: Port) -> None:
    replaced(port, "block.0.attn.out", lambda w: with_row(w, 64, 0.0, 0))


@change(
    "columns of the output matrix in blocks of 4 reversed (wrong endianness)",
    "block.1.mlp.out",
    "llama",
    r"(4|four).*(revers|order|endian|swap)|(revers|endian|order|permut).*(4|four)|permut",
)
def fours_reversed(port: Port) -> None:
    replaced(port, "block.1.mlp.out", lambda w: w.view(w.shape[0], -1, 4).flip(-1).reshape(w.shape))


@change(
    "one input column is 0, block 1",
    "block.1.mlp.out",
    "llama gpt_neox",
    r"{60}.*(\b0\b|zero|missing|left out)|(\b0\b|zeros?|missing|without).*{60}",
    r"rank.{1,12}1\b",
    where=r"(inputs?|columns?|rows?|channels?|entry) 60\b|,60\]|\[60,",
)
def one_input_zero(port: Port) -> None:
    replaced(port, "block.1.mlp.out", lambda w: with_row(w, 60, 0.0, 1))
