"""Changes in norms: statistics, eps, gains and biases."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.planted.port import Port
from benchmarks.unlisted.changes.handles import after, inside, matrix, with_row
from benchmarks.unlisted.changes.registry import change
from benchmarks.unlisted.changes.words import (
    BY_COLUMN,
    BY_ROW,
    COLUMN_SHIFT,
    FIRST_ROW,
    LAST_ROW,
    MINUS,
    MOVES,
    ROW_SHIFT,
    channel,
)

NORM = "block.0.attn.norm"
ROOT = {"": f"{NORM}.std", "llama": f"{NORM}.rms", "qwen": f"{NORM}.rms"}
SQUARE = {"": f"{NORM}.variance", "llama": f"{NORM}.mean_square", "qwen": f"{NORM}.mean_square"}
OUT, NORMALIZED = f"{NORM}.out", f"{NORM}.normalized"


@change("eps 3e-5", ROOT, "llama gpt2", r"eps.*{3e-5}|{3e-5}.*eps", "{3e-5}", formats=("float32",))
def eps_tripled(port: Port) -> None:
    port.eps = 3e-5


@change(
    "eps 0.02 in block 1",
    {"": "block.1.attn.norm.std", "llama": "block.1.attn.norm.rms"},
    "llama gpt_neox",
    r"eps.*{0.02}|{0.02}.*eps",
)
def eps_of_one_block(port: Port) -> None:
    inside(port, 1, "root", lambda usual: lambda square: (square + 0.02).sqrt())


@change(
    "one mean square for the whole text",
    SQUARE,
    "llama qwen",
    r"(all|whole|over|across) (the )?(positions?|text|rows|entries)",
    r"same (in|for|at) (all|every)|one (number|value) for|constant|{0} × what follows",
)
def square_over_text(port: Port) -> None:
    after(port, "attn.norm.mean_square", lambda s: s.mean().expand_as(s))


@change(
    "variance of the first half of the channels",
    SQUARE,
    "gpt2 gpt_neox",
    r"half",
    r"first ({48}|{64})|(channels|entries).*({48}|{47}|{64}|{63})",
    where=BY_ROW,
)
def variance_of_half(port: Port) -> None:
    inside(port, None, "variance", lambda usual: lambda c: usual(c[:, : c.shape[-1] // 2]))


@change(
    "mean square without the large channel",
    SQUARE,
    "llama",
    r"({42}).*(left out|without|not counted|missing|skip|ignor|exclud)",
    r"(left out|without|not counted|missing|skip|ignor|exclud).*{42}",
    r"all channels but 42",
    where=BY_ROW,
)
def square_without_outlier(port: Port) -> None:
    def turn(square: Tensor) -> Tensor:
        x = port.kept[
            [name for name in port.kept if name.endswith(("embed.token", ".mlp.add"))][-1]
        ]
        return square - x[:, port.d_model // 3].square() / port.d_model

    after(port, "attn.norm.mean_square", turn)


@change(
    "gain squared",
    OUT,
    "llama gpt2",
    r"gain.*(squared|twice|²|two times|again|itself)",
    r"(squared|twice|again).*gain",
    where=BY_COLUMN,
)
def gain_squared(port: Port) -> None:
    for name in [name for name in port.w if name.endswith(".attn.norm.gain")]:
        port.w[name] = port.w[name].square()


@change(
    "gain moved by one channel",
    OUT,
    "qwen gpt_neox",
    f"gain.*{MOVES}",
    r"(shift|roll|moved|rotat).*gain",
    where=BY_COLUMN,
)
def gain_moved(port: Port) -> None:
    for name in [name for name in port.w if name.endswith(".attn.norm.gain")]:
        port.w[name] = port.w[name].roll(1, 0)


@change(
    "one entry of the gain is 1, block 1",
    "block.1.mlp.norm.out",
    "llama gpt2",
    r"gain.*17.*{1}|gain\[17\]",
    rf"({channel(17)})",
    where=channel(17),
)
def gain_entry_one(port: Port) -> None:
    matrix(port, "block.1.mlp.norm.gain", lambda gain: gain[17:18].fill_(1.0))


@change("gain in its exponential", OUT, "llama", r"\bexp\b|exponential|e\^|\blog", where=BY_COLUMN)
def gain_exponential(port: Port) -> None:
    for name in [name for name in port.w if name.endswith(".norm.gain")]:
        port.w[name] = port.w[name].exp()


@change(
    "bias times gain",
    OUT,
    "gpt2 gpt_neox",
    r"bias.*(gain|before|times|multipl|inside)",
    r"(gain|times|multipl).*bias",
    where=COLUMN_SHIFT,
)
def bias_before_gain(port: Port) -> None:
    port.instead(affine=lambda at, x: (x + port.w[f"{at}.bias"]) * port.w[f"{at}.gain"])


@change(
    "bias of the norm subtracted",
    OUT,
    "gpt_neox",
    f"bias.*{MINUS}",
    f"{MINUS}.*bias",
)
def norm_bias_subtracted(port: Port) -> None:
    for name in [name for name in port.w if name.endswith(".norm.bias")]:
        port.w[name] = -port.w[name]


@change(
    "the MLP's norm applied twice",
    "block.0.mlp.norm.out",
    "gpt2 llama",
    r"twice|again|two times|second time",
)
def norm_applied_twice(port: Port) -> None:
    usual = port.norm

    def norm(at: str, x: Tensor) -> Tensor:
        once = usual(at, x)
        if not at.endswith(".mlp.norm"):
            return once
        kept = {name: value for name, value in port.kept.items() if name.startswith(f"{at}.")}
        again = usual(at, once)
        port.kept |= kept
        return port.keep(f"{at}.out", again)

    port.instead(norm=norm)


@change(
    "variance without the mean taken off",
    SQUARE,
    "gpt2",
    r"mean.*(not|without|before|square)|uncentered|not centered|E\[x²\]|mean.square|without.*mean",
    r"(embed|stream).*(square|itself)",
)
def variance_of_uncentered(port: Port) -> None:
    def layernorm(at: str, x: Tensor) -> Tensor:
        centered = port.keep(f"{at}.centered", x - port.keep(f"{at}.mean", x.mean(-1))[:, None])
        std = port.keep(f"{at}.std", port.root(port.keep(f"{at}.variance", x.square().mean(-1))))
        normalized = port.keep(f"{at}.normalized", centered / std[:, None])
        return port.keep(f"{at}.out", port.affine(at, normalized))

    port.instead(layernorm=layernorm)


@change(
    "the mean taken over positions",
    f"{NORM}.mean",
    "gpt_neox",
    r"(all|whole|over|across) (the )?(positions?|text|rows|entries)",
    r"same (in|for|at) (all|every)|one (number|value) for|constant|average|{0} × what follows",
)
def mean_over_positions(port: Port) -> None:
    after(port, "attn.norm.mean", lambda mean: mean.mean().expand_as(mean))


@change(
    "the mean not subtracted in block 2",
    "block.2.mlp.norm.centered",
    "gpt2",
    r"mean.*(not|without|missing|left)|not centered|(without|no|missing).*mean",
    r"(block\.2\.attn\.add|stream|input).*(itself|unchanged)",
    where=ROW_SHIFT,
)
def mean_kept(port: Port) -> None:
    after(port, "mlp.norm.centered", lambda c: c + port.kept["block.2.mlp.norm.mean"][:, None], [2])


@change(
    "normalized clamped to ±3",
    NORMALIZED,
    "llama gpt2",
    r"(clamp|clip|limit|cut|at most|between|beyond|satur|above).*{3}",
    r"{3}.*(clamp|clip|limit|cut|most|satur)",
    where=channel(42),
)
def normalized_clamped(port: Port) -> None:
    after(port, "attn.norm.normalized", lambda x: x.clamp(-3, 3))


@change(
    "no bias at position 0, block 1",
    "block.1.attn.norm.out",
    "gpt_neox",
    r"bias.*(row|position) 0|(row|position) 0.*bias|first.*bias",
    where=FIRST_ROW,
)
def bias_not_at_start(port: Port) -> None:
    after(
        port,
        "attn.norm.out",
        lambda x: with_row(x, 0, x[0] - port.w["block.1.attn.norm.bias"]),
        [1],
    )


@change(
    "each row divided by the rms of the row before",
    NORMALIZED,
    "llama gpt2",
    r"(rms|std|statistic|divided|row|position).*(before|previous|shift|roll|moved|next|other row)",
    where=BY_ROW,
)
def rms_of_row_before(port: Port) -> None:
    def turn(x: Tensor) -> Tensor:
        rms = [port.kept[name] for name in port.kept if name.endswith((".rms", ".std"))][-1]
        return x * rms[:, None] / rms.roll(1)[:, None]

    after(port, "attn.norm.normalized", turn)


@change(
    "the root of the sum of squares",
    {"": f"{NORM}.rms"},
    "llama qwen",
    r"{11.3137}|√128|sum|not divided|without.*mean|{128}",
)
def root_of_sum(port: Port) -> None:
    after(port, "attn.norm.rms", lambda rms: rms * port.d_model**0.5)


@change(
    "mean absolute value for the root mean square",
    {"": f"{NORM}.rms"},
    "qwen",
    r"absolute|\|x\||L1|\babs",
    where=BY_ROW,
)
def mean_absolute(port: Port) -> None:
    def turn(rms: Tensor) -> Tensor:
        x = port.kept[
            [name for name in port.kept if name.endswith(("embed.token", ".mlp.add"))][-1]
        ]
        return x.abs().mean(-1)

    after(port, "attn.norm.rms", turn)


@change(
    "inverse root by one Newton step of a crude guess",
    ROOT,
    "llama",
    r"approx|newton|crude|inexact",
    where=BY_ROW,
    formats=("float32",),
)
def crude_root(port: Port) -> None:
    def root(square: Tensor) -> Tensor:
        y = square + port.eps
        guess = (0x5F3759DF - (y.view(torch.int32) >> 1)).view(torch.float32)
        return 1 / (guess * (1.5 - 0.5 * y * guess * guess))

    port.instead(root=root)


@change(
    "the final gain averaged with that of block 0",
    "final.norm.out",
    "llama gpt_neox",
    r"(mean|average|half|{0.5}).*block\.0\.attn\.norm",
    r"block\.0\.attn\.norm.*(mean|average|half|{0.5})",
    where=BY_COLUMN,
)
def final_gain_averaged(port: Port) -> None:
    port.w["final.norm.gain"] = (port.w["final.norm.gain"] + port.w["block.0.attn.norm.gain"]) / 2


@change(
    "final norm skipped at the last position",
    "final.norm.out",
    "gpt2 llama",
    r"(15|last).*(norm|unchanged|as it is|block\.2\.mlp\.add)",
    r"(norm|unchanged|block\.2\.mlp\.add).*(15|last)",
    where=LAST_ROW,
)
def last_row_not_normed(port: Port) -> None:
    after(port, "final.norm.out", lambda x: with_row(x, -1, port.kept["block.2.mlp.add"][-1]))


@change(
    "bias of the norm moved by one channel",
    OUT,
    "gpt2",
    f"bias.*{MOVES}",
    r"(shift|roll|moved|rotat).*bias",
    where=COLUMN_SHIFT,
)
def norm_bias_moved(port: Port) -> None:
    for name in [name for name in port.w if name.endswith(".attn.norm.bias")]:
        port.w[name] = port.w[name].roll(1, 0)


@change("root of the variance 1.003 times too large", ROOT, "gpt2 qwen", "1\\.003", "0\\.997")
def crude_factor(port: Port) -> None:
    for step in ("std", "rms"):
        after(port, f"attn.norm.{step}", lambda x: x * 1.003)
