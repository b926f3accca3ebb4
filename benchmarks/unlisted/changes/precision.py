"""Changes of precision: weights in groups, narrow activations, sums in pieces, approximations."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.planted.port import Port
from benchmarks.unlisted.changes.handles import after, before, every, of_text, replaced
from benchmarks.unlisted.changes.registry import FLOAT32, change

GROUP = 32
QUANTISED = r"quanti|\bint[48]\b|[48].?bit|levels|grid"
HIDDEN, OUT = "block.1.mlp.hidden", "block.1.mlp.out"


def _scales(groups: Tensor, most: int) -> Tensor:
    return groups.abs().amax(-1, keepdim=True) / most


def _in_groups(w: Tensor, bits: int, moved: int = 0, point: float = 0.0) -> Tensor:
    """Weights as they are after quantisation in groups of inputs; scales may be moved, and the
    zero point off."""
    groups = w.float().reshape(w.shape[0], -1, GROUP)
    most = 2 ** (bits - 1) - 1
    scales = _scales(groups, most)
    whole = (groups / scales).round() + point
    return (whole * scales.roll(moved, 1)).reshape(w.shape).to(w.dtype)


@change(
    "one matrix in int8, groups of 32", HIDDEN, "gpt2 llama", QUANTISED + r"|group", formats=FLOAT32
)
def int8_groups(port: Port) -> None:
    replaced(port, HIDDEN, lambda w: _in_groups(w, 8))


@change("one matrix in int4, groups of 32", HIDDEN, "llama gpt_neox", QUANTISED + r"|group")
def int4_groups(port: Port) -> None:
    replaced(port, HIDDEN, lambda w: _in_groups(w, 4))


@change(
    "int8 with the scale of the group before",
    OUT,
    "qwen gpt2",
    r"scales?.*(group|neighbour|before|next|shift|moved)|group.*(scale|factor)",
    r"groups? of 32.*(factor|scal)",
)
def scale_of_neighbour(port: Port) -> None:
    replaced(port, OUT, lambda w: _in_groups(w, 8, moved=1))


@change(
    "int4 with the zero point off by one",
    OUT,
    "gpt_neox llama",
    r"zero.?point|group.*(added|offset|constant|shift)",
)
def zero_point_off(port: Port) -> None:
    replaced(port, OUT, lambda w: _in_groups(w, 4, point=1.0))


@change(
    "two nibbles of each byte exchanged",
    OUT,
    "llama gpt2",
    r"nibble|neighbour|2i|even.*odd|pairs? of (inputs|columns|entries)|adjacent",
)
def nibbles_exchanged(port: Port) -> None:
    replaced(port, OUT, lambda w: w.reshape(w.shape[0], -1, 2).flip(-1).reshape(w.shape))


@change(
    "int8 with one scale per output, every block",
    "block.0.mlp.hidden",
    "gpt_neox qwen",
    QUANTISED,
    formats=FLOAT32,
)
def int8_by_output(port: Port) -> None:
    def turn(w: Tensor) -> Tensor:
        scales = _scales(w.float(), 127)
        return ((w.float() / scales).round() * scales).to(w.dtype)

    for name in every(port, "mlp.hidden"):
        replaced(port, name, turn)


@change(
    "activations in fp8 (e4m3) before the last matrix, block 1",
    OUT,
    "llama gpt2",
    r"fp8|float8|e4m3|4 bits",
)
def fp8_activations(port: Port) -> None:
    def turn(name: str, x: Tensor) -> tuple[str, Tensor]:
        return name, x.to(torch.float8_e4m3fn).to(x.dtype) if name == OUT else x

    before(port, "dense", turn)


@change(
    "keys in fp8 (e5m2), every block",
    "block.0.attn.scores",
    "llama gpt_neox",
    r"fp8|float8|e5m2|3 bits",
)
def fp8_keys(port: Port) -> None:
    before(port, "scores", lambda q, k: (q, k.to(torch.float8_e5m2).to(k.dtype)))


@change(
    "sums in chunks of 32, each rounded to bfloat16",
    OUT,
    "gpt2 qwen",
    r"(chunk|accumul|partial|pieces|sum).*bfloat16|bfloat16.*(chunk|accumul|partial|pieces|sum)",
    r"every number of this line is a number of bfloat16",
    formats=FLOAT32,
)
def sums_in_chunks(port: Port) -> None:
    usual = port.dense

    def dense(name: str, x: Tensor) -> Tensor:
        if name != OUT:
            return usual(name, x)
        zero = usual(name, torch.zeros_like(x))
        total = torch.zeros_like(zero)
        for start in range(0, x.shape[-1], GROUP):
            piece = torch.zeros_like(x)
            piece[:, start : start + GROUP] = x[:, start : start + GROUP]
            total = (total + usual(name, piece) - zero).bfloat16().to(x.dtype)
        return total + zero

    port.instead(dense=dense)


@change("activations in int8, a scale for each row, block 1", OUT, "gpt_neox llama", QUANTISED)
def int8_activations(port: Port) -> None:
    def turn(name: str, x: Tensor) -> tuple[str, Tensor]:
        if name != OUT:
            return name, x
        scales = _scales(x.float(), 127)
        return name, ((x.float() / scales).round() * scales).to(x.dtype)

    before(port, "dense", turn)


@change(
    "weights in multiples of 1/256",
    HIDDEN,
    "llama",
    r"multiple|fixed.?point|1/256|{256}|{0.00390625}|grid",
    formats=FLOAT32,
)
def fixed_point(port: Port) -> None:
    replaced(port, HIDDEN, lambda w: (w * 256).round() / 256)


@change(
    "stream rounded to bfloat16 by chance",
    "block.0.mlp.add",
    "gpt2 llama",
    r"bfloat16|8 bits|stochastic",
    formats=FLOAT32,
)
def stochastic_rounding(port: Port) -> None:
    chance = of_text(port, 7)

    def turn(x: Tensor) -> Tensor:
        bits = x.contiguous().view(torch.int32)
        noise = torch.randint(0, 2**16, x.shape, generator=chance, dtype=torch.int32)
        return ((bits + noise) & -(2**16)).view(torch.float32)

    after(port, "mlp.add", turn)


@change(
    "MLP's result cut to bfloat16 (towards zero)",
    "block.0.mlp.out",
    "gpt_neox llama",
    r"bfloat16|8 bits|truncat|toward",
    formats=FLOAT32,
)
def truncated(port: Port) -> None:
    def turn(x: Tensor) -> Tensor:
        return (x.contiguous().view(torch.int32) & -(2**16)).view(torch.float32)

    after(port, "mlp.out", turn)


@change(
    "activations below 0.02 flushed to 0",
    "block.0.mlp.act",
    "gpt2 gpt_neox",
    r"{0.02}|(small|below|less|under).*(\b0\b|zero)|(\b0\b|zeros?).*(small|below|less|under)",
    where=r"(are|is|become) (0|zero)\b",
)
def flushed(port: Port) -> None:
    after(port, "mlp.act", lambda x: x.where(x.abs() >= 0.02, torch.zeros_like(x)))


@change(
    "weights on a logarithmic grid of 16 levels", OUT, "qwen", QUANTISED + r"|logarithm|nf4|power"
)
def logarithmic_grid(port: Port) -> None:
    def turn(w: Tensor) -> Tensor:
        power = (w.float().abs().clamp(min=1e-4).log2() * 2).round() / 2
        return (w.float().sign() * 2**power).to(w.dtype)

    replaced(port, OUT, turn)


@change(
    "products of 10-bit numbers in one matrix",
    OUT,
    "llama gpt2",
    r"tf32|1[01] bits",
    formats=FLOAT32,
)
def tf32_product(port: Port) -> None:
    def cut(x: Tensor) -> Tensor:
        return ((x.contiguous().view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)

    replaced(port, OUT, cut)
    before(port, "dense", lambda name, x: (name, cut(x) if name == OUT else x))


@change(
    "e^x by a table of 64 steps in softmax",
    "block.0.attn.weights",
    "gpt2",
    r"approx|table of|\bexp\b|{64}|grid|1/64|{0.015625}",
    formats=FLOAT32,
)
def exp_by_table(port: Port) -> None:
    def shares(s: Tensor) -> Tensor:
        e = ((s - s.amax(-1, keepdim=True)) * 64).round().div(64).exp()
        return e / e.sum(-1, keepdim=True)

    port.instead(shares=shares)


@change(
    "logits in multiples of 1/16",
    "logits",
    "gpt2 qwen",
    r"multiple|1/16|{0.0625}|{16}|grid|fixed|decimals",
)
def logits_on_a_grid(port: Port) -> None:
    after(port, "logits", lambda x: (x * 16).round() / 16)


@change(
    "embedding in int8, a scale for each row",
    "embed.token",
    "llama",
    QUANTISED + r"|multiple",
    formats=FLOAT32,
)
def int8_embedding(port: Port) -> None:
    def turn(x: Tensor) -> Tensor:
        scales = _scales(x, 127)
        return (x / scales).round() * scales

    after(port, "embed.token", turn)


@change(
    "norm's result in float16 with 5 bits dropped (fp11)",
    "block.1.mlp.norm.out",
    "gpt_neox",
    r"[56] bits|representable|narrow|coarse|rounded|number of bfloat16",
    formats=FLOAT32,
)
def six_bits(port: Port) -> None:
    def turn(x: Tensor) -> Tensor:
        return ((x.contiguous().view(torch.int32) + (1 << 17)) & -(1 << 18)).view(torch.float32)

    after(port, "mlp.norm.out", turn, [1])
