"""Mistakes about the residual stream: what is added to what, in which order."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.planted.bugs.catalogue import LAYERNORM, SERIAL, bug
from benchmarks.planted.port import Port

MEANS = {"": "mean", "llama": "mean_square", "qwen": "mean_square"}


def _first(norm: str) -> dict[str, str]:
    """The first step of a norm, which is another one for RMSNorm."""
    return {family: f"{norm}.{step}" for family, step in MEANS.items()}


def _adding(port: Port, sublayer: str, update: object) -> None:
    usual = port.added

    def added(at: str, x: Tensor, y: Tensor) -> Tensor:
        if not at.endswith(sublayer):
            return usual(at, x, y)
        assert callable(update)
        return port.keep(f"{at}.add", update(at, x, y))

    port.instead(added=added)


@bug("no residual around attention", "block.0.attn.add", "residual-missing")
def residual_missing(port: Port) -> None:
    _adding(port, ".attn", lambda at, x, y: y)


@bug("no residual around the MLP", "block.0.mlp.add", "residual-missing")
def mlp_residual_missing(port: Port) -> None:
    _adding(port, ".mlp", lambda at, x, y: y)


@bug(
    "residual from the normalised input",
    "block.0.attn.add",
    "residual-source",
    SERIAL,
    says="from block.0.attn.norm.out;",
)
def residual_from_norm(port: Port) -> None:
    _adding(port, ".attn", lambda at, x, y: port.kept[f"{at}.norm.out"] + y)


@bug(
    "the MLP's residual from the block's input",
    "block.0.mlp.add",
    "residual-source",
    SERIAL,
    says={"": "from embed.token;", "gpt2": "from stream.0;"},
)
def residual_from_block_input(port: Port) -> None:
    usual, entering = port.block, {}

    def block(at: str, x: Tensor) -> Tensor:
        entering[at] = x
        return usual(at, x)

    port.instead(block=block)
    _adding(port, ".mlp", lambda at, x, y: entering[at.removesuffix(".mlp")] + y)


@bug(
    "what attention gives added twice",
    "block.0.attn.add",
    "residual-doubled",
    says="block.0.attn.out is added twice",
)
def update_added_twice(port: Port) -> None:
    _adding(port, ".attn", lambda at, x, y: x + y + y)


@bug("post-norm for pre-norm", _first("block.0.attn.norm"), "norm-place", SERIAL)
def post_norm(port: Port) -> None:
    def block(at: str, x: Tensor) -> Tensor:
        x = port.added(f"{at}.attn", x, port.attention(f"{at}.attn", x))
        x = port.norm(f"{at}.attn.norm", x)
        x = port.added(f"{at}.mlp", x, port.mlp(f"{at}.mlp", x))
        return port.norm(f"{at}.mlp.norm", x)

    port.instead(block=block)


@bug("parallel for serial", _first("block.0.mlp.norm"), "parallel", SERIAL)
def parallel_for_serial(port: Port) -> None:
    def block(at: str, x: Tensor) -> Tensor:
        attended = port.attention(f"{at}.attn", port.norm(f"{at}.attn.norm", x))
        thought = port.mlp(f"{at}.mlp", port.norm(f"{at}.mlp.norm", x))
        return port.added(f"{at}.mlp", port.added(f"{at}.attn", x, attended), thought)

    port.instead(block=block)


@bug("serial for parallel", _first("block.0.mlp.norm"), "serial", "gpt_neox")
def serial_for_parallel(port: Port) -> None:
    def block(at: str, x: Tensor) -> Tensor:
        attended = port.attention(f"{at}.attn", port.norm(f"{at}.attn.norm", x))
        x = port.added(f"{at}.attn", x, attended)
        return port.added(f"{at}.mlp", x, port.mlp(f"{at}.mlp", port.norm(f"{at}.mlp.norm", x)))

    port.instead(block=block)


@bug("last layer left out", _first("final.norm"), "layer-skipped input-wrong")
def last_layer_skipped(port: Port) -> None:
    port.layers = port.layers[:-1]


@bug("layer 1 left out", _first("block.2.attn.norm"), "layer-skipped input-wrong")
def layer_skipped(port: Port) -> None:
    port.layers = [0, 2]


@bug("logits of the previous position", "logits", "position-shifted")
def logits_of_previous_position(port: Port) -> None:
    usual = port.unembedded
    port.instead(unembedded=lambda x: usual(torch.roll(x, 1, 0)))


@bug(
    "MLP reads the stream without its norm",
    "block.0.mlp.hidden",
    "norm-place norm-missing",
    LAYERNORM,
    says="block.0.mlp.norm",
)
def mlp_norm_missing(port: Port) -> None:
    usual = port.norm
    port.instead(norm=lambda at, x: x if at.endswith(".mlp.norm") else usual(at, x))
