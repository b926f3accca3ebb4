"""Changes in the MLP: activations, gates, shards, biases."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from benchmarks.planted.families import Llama
from benchmarks.planted.port import Port
from benchmarks.unlisted.changes.handles import after, before, every, exchanged, of_text, with_row
from benchmarks.unlisted.changes.registry import change
from benchmarks.unlisted.changes.words import (
    BY_COLUMN,
    COLUMN_SHIFT,
    LAST_ROW,
    MINUS,
    MOVES,
    TWICE,
    channel,
    places,
)

ACT, HIDDEN, OUT = "block.0.mlp.act", "block.0.mlp.hidden", "block.0.mlp.out"
GATED = "block.0.mlp.gated"


@change("GELU by tanh with 0.0447", ACT, "gpt2", r"0\.0447(?!1)")
def gelu_short_constant(port: Port) -> None:
    port.activation = lambda x: 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.0447 * x**3)))


@change("GELU by tanh with 0.8 for √(2/π)", ACT, "gpt2", r"(?<![\d.])0\.8(0*\b)")
def gelu_with_08(port: Port) -> None:
    port.activation = lambda x: 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.044715 * x**3)))


@change("quick GELU with 1.7", ACT, "gpt_neox gpt2", r"(?<![\d.])1\.7(0*\b)")
def quick_gelu_17(port: Port) -> None:
    port.activation = lambda x: x * torch.sigmoid(1.7 * x)


@change("leaky ReLU with slope 0.01", ACT, "llama gpt_neox", r"{0.01}|leaky")
def leaky_relu(port: Port) -> None:
    port.activation = lambda x: F.leaky_relu(x, 0.01)


@change(
    "activation clamped at 1",
    ACT,
    "llama gpt2",
    r"(clamp|clip|limit|cut|at most|satur|above|largest).*{1}",
    r"{1}.*(clamp|clip|limit|cut|most|satur)",
)
def activation_clamped(port: Port) -> None:
    after(port, "mlp.act", lambda x: x.clamp(max=1))


@change("SiLU with β = 1.1", ACT, "llama qwen", "{1.1}")
def silu_beta(port: Port) -> None:
    port.activation = lambda x: x * torch.sigmoid(1.1 * x)


@change(
    "ReLU squared",
    ACT,
    "gpt_neox llama",
    r"relu.*(²|squared|\^2)|squared.*relu|max\(0, ?x\)(²|\^2)",
)
def relu_squared(port: Port) -> None:
    port.activation = lambda x: torch.relu(x).square()


@change("activation of 2x, halved", ACT, "gpt2 llama", r"{2}|twice|doubled|{3.404}|{0.5}")
def activation_of_double(port: Port) -> None:
    usual = port.activation
    port.activation = lambda x: usual(2 * x) / 2


@change("hard swish", ACT, "qwen", r"hard|piecewise|relu6|{3}.*{6}")
def hard_swish(port: Port) -> None:
    port.activation = F.hardswish


@change(
    "tanh by a rational approximation in GELU",
    ACT,
    "gpt2",
    r"approx|rational|\b27\b|function of (its|the) input alone",
)
def rational_tanh(port: Port) -> None:
    def tanh(x: Tensor) -> Tensor:
        x = x.clamp(-3, 3)
        return x * (27 + x * x) / (27 + 9 * x * x)

    port.activation = lambda x: 0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x**3)))


@change(
    "no activation on the second half of the channels",
    ACT,
    "gpt2 llama",
    r"(half|channels|columns|entries).*(no activation|not activated|without|unchanged|itself)",
    r"(half|channels|columns|entries).*(as it is|copied|hidden|gate)",
    where=r"(half|channels|columns|entries).*({144}|{160}|half)",
)
def half_activated(port: Port) -> None:
    usual = port.activation

    def activation(x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat((usual(a), b), -1)

    port.activation = activation


@change("ELU on the negative side", ACT, "gpt_neox", r"\belu\b|exp\(?x|e\^x")
def elu(port: Port) -> None:
    port.activation = F.elu


@change("activation twice", ACT, "qwen llama", r"twice|again|two times")
def activated_twice(port: Port) -> None:
    usual = port.activation
    port.activation = lambda x: usual(usual(x))


@change(
    "gate and up read as interleaved rows",
    "block.0.mlp.gate",
    "llama qwen",
    r"interleav|even|every (other|second)|2i|alternat|stride|1 ← 2, 2 ← 4, 3 ← 6",
)
def gate_up_interleaved(port: Port) -> None:
    for gate, up in zip(every(port, "mlp.gate"), every(port, "mlp.hidden"), strict=True):
        packed = torch.cat((port.w[gate], port.w[up]))
        port.w[gate], port.w[up] = packed[0::2].contiguous(), packed[1::2].contiguous()


@change("gate added to up, not multiplied", GATED, "llama", r"\badded\b|\bsum of\b|\bplus\b|\+")
def gate_added(port: Port) -> None:
    assert isinstance(port, Llama)
    port.instead(gated=lambda at, gate, up: port.keep(f"{at}.act", port.activation(gate)) + up)


@change(
    "gate times (up + 1)",
    GATED,
    "qwen llama",
    r"\+ ?1\b|plus (1|one)|1 \+|block\.0\.mlp\.act.*(added|again|more)",
    r"(added|again|more).*block\.0\.mlp\.act",
)
def up_plus_one(port: Port) -> None:
    assert isinstance(port, Llama)
    port.instead(
        gated=lambda at, gate, up: port.keep(f"{at}.act", port.activation(gate)) * (up + 1)
    )


@change(
    "half of the input channels of the last matrix missing (one shard)",
    OUT,
    "llama gpt2",
    r"(half|first|last|channels|inputs|columns|entries).*({144}|{160}|{143}|{159}|half)",
    r"(shard|half)",
)
def one_shard(port: Port) -> None:
    usual = port.narrowed

    def narrowed(at: str, x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        return usual(at, torch.cat((a, torch.zeros_like(b)), -1))

    port.instead(narrowed=narrowed)


@change(
    "the last 8 inputs of the last matrix not summed, block 1",
    "block.1.mlp.out",
    "gpt_neox qwen",
    r"last (8|eight)",
    r"(inputs?|channels?|columns?|entries|rows).*({376}|{312}).*({383}|{319})",
    where=r"rank.{1,12}8|({376}|{312})",
)
def tail_not_summed(port: Port) -> None:
    from benchmarks.unlisted.changes.handles import matrix

    matrix(port, "block.1.mlp.out", lambda w: w[:, -8:].fill_(0.0))


@change(
    "the last 4 outputs never written",
    OUT,
    "llama gpt2",
    r"last (4|four).*(\b0\b|zero)",
    r"({92}|{124}).*({95}|{127}).*(\b0\b|zero)",
    r"(\b0\b|zeros?).*({92}|{124}).*({95}|{127})",
    where=r"({92}|{124}).*({95}|{127})|last (4|four)",
)
def tail_not_written(port: Port) -> None:
    def turn(x: Tensor) -> Tensor:
        return torch.cat((x[:, :-4], torch.zeros_like(x[:, -4:])), -1)

    after(port, "mlp.out", turn)


@change(
    "bias of the last matrix added twice",
    OUT,
    "gpt2 gpt_neox",
    f"bias.*{TWICE}",
    f"{TWICE}.*bias",
)
def out_bias_twice(port: Port) -> None:
    after(port, "mlp.out", lambda x: x + port.w["block.0.mlp.out_bias"], [0])


@change(
    "bias of the first matrix subtracted",
    HIDDEN,
    "gpt2 gpt_neox",
    f"bias.*{MINUS}",
    f"{MINUS}.*bias",
)
def hidden_bias_subtracted(port: Port) -> None:
    for name in every(port, "mlp.hidden_bias"):
        port.w[name] = -port.w[name]


@change(
    "bias moved by one channel, block 1",
    "block.1.mlp.hidden",
    "gpt2",
    f"bias.*{MOVES}",
    r"(shift|roll|moved|rotat).*bias",
    where=COLUMN_SHIFT,
)
def hidden_bias_moved(port: Port) -> None:
    port.w["block.1.mlp.hidden_bias"] = port.w["block.1.mlp.hidden_bias"].roll(1)


@change(
    "one entry of a bias is 0, block 1",
    "block.1.mlp.out",
    "gpt_neox gpt2",
    r"bias.*\b7\b.*(\b0\b|zero)|bias\[7\]",
    where=channel(7),
)
def bias_entry_zero(port: Port) -> None:
    port.w["block.1.mlp.out_bias"] = with_row(port.w["block.1.mlp.out_bias"], 7, 0.0, 0)


@change("MLP's result halved", OUT, "llama gpt2", "{0.5}", r"\bhalf\b|halved")
def out_halved(port: Port) -> None:
    after(port, "mlp.out", lambda x: x * 0.5)


@change("MLP's result times √2 in block 2", "block.2.mlp.out", "gpt_neox qwen", "{1.414214}", "√2")
def out_times_root_2(port: Port) -> None:
    after(port, "mlp.out", lambda x: x * 2**0.5, [2])


@change("smoothing factors left in the activations", ACT, "gpt2 llama", BY_COLUMN)
def smoothing_left(port: Port) -> None:
    width = port.w["block.0.mlp.hidden"].shape[1 if port.d_model == 96 else 0]
    factor = torch.linspace(0.5, 2, width).to(port.dtype)
    after(port, "mlp.act", lambda x: x * factor)


@change(
    "the last token is not in the batch of the MLP",
    OUT,
    "llama gpt_neox",
    r"(15|last).*(\b0\b|zero)|(\b0\b|zeros?).*(15|last)",
    where=LAST_ROW,
)
def last_row_zero(port: Port) -> None:
    after(port, "mlp.out", lambda x: with_row(x, -1, 0.0))


@change(
    "row 3 is row 2 again, block 1",
    "block.1.mlp.out",
    "qwen gpt2",
    r"(row|position) 3.*\b2\b|(row|position) 2.*\b3\b",
    where=r"(row|position)s? (only )?3\b",
)
def row_repeated(port: Port) -> None:
    after(port, "mlp.out", lambda x: with_row(x, 3, x[2]), [1])


@change(
    "rows 5 and 9 of the hidden layer exchanged",
    HIDDEN,
    "gpt_neox llama",
    places(5, 9)[0],
    where=places(5, 9)[1],
)
def hidden_rows_exchanged(port: Port) -> None:
    after(port, "mlp.hidden", lambda x: exchanged(x, 5, 9))


@change(
    "dropout of what the MLP reads, p = 0.37",
    {"": HIDDEN, "qwen": "block.0.mlp.gate"},
    "gpt2 qwen",
    r"drop",
    "{0.37}",
    "{1.5873}",
)
def mlp_input_dropped(port: Port) -> None:
    chance = of_text(port, 3)
    first = "mlp.gate" if port.tied and not hasattr(port, "unpacked") else "mlp.hidden"
    kept: dict[str, Tensor] = {}

    def turn(name: str, x: Tensor) -> tuple[str, Tensor]:
        if not name.endswith(("mlp.gate", "mlp.hidden")):
            return name, x
        if name.endswith(first):
            kept["mask"] = torch.rand(x.shape, generator=chance) >= 0.37
        return name, x * kept["mask"] / 0.63

    before(port, "dense", turn)


@change(
    "hidden channels dropped with p = 0.37 in block 1",
    "block.1.mlp.act",
    "gpt_neox",
    r"drop.*{0.37}|{0.37}.*drop|{1.5873}",
    r"drop",
)
def hidden_dropped(port: Port) -> None:
    chance = of_text(port, 4)
    after(
        port, "mlp.act", lambda x: x * (torch.rand(x.shape, generator=chance) >= 0.37) / 0.63, [1]
    )


@change(
    "the activated gate times itself, up unread",
    GATED,
    "llama",
    r"squared|itself|twice|block\.0\.mlp\.act.*block\.0\.mlp\.act|instead of.*hidden",
    r"act.*(in place of|for).*hidden",
)
def gate_squared(port: Port) -> None:
    assert isinstance(port, Llama)

    def gated(at: str, gate: Tensor, _up: Tensor) -> Tensor:
        act = port.keep(f"{at}.act", port.activation(gate))
        return act * act

    port.instead(gated=gated)
