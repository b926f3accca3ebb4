"""Mistakes inside a norm, and about which norm it is."""

from __future__ import annotations

from torch import Tensor

from benchmarks.planted.bugs.catalogue import LAYERNORM, LLAMAS, bug
from benchmarks.planted.port import Port

FIRST = "block.0.attn.norm"
ROOT = {"": f"{FIRST}.std", "llama": f"{FIRST}.rms", "qwen": f"{FIRST}.rms"}


@bug("eps 1e-6 for 1e-5", ROOT, "eps-value", says="eps is 1e-06")
def eps_smaller(port: Port) -> None:
    port.eps = 1e-6


@bug("eps 1e-12 for 1e-5", ROOT, "eps-value")
def eps_of_bert(port: Port) -> None:
    port.eps = 1e-12


@bug("eps 1e-3 for 1e-5", ROOT, "eps-value", says="eps is 0.001")
def eps_larger(port: Port) -> None:
    port.eps = 1e-3


@bug("no eps", ROOT, "eps-value", says="eps is 0;")
def eps_missing(port: Port) -> None:
    port.eps = 0.0


@bug("eps added outside the root", ROOT, "eps-place")
def eps_outside_root(port: Port) -> None:
    port.instead(root=lambda square: square.sqrt() + port.eps)


@bug("variance over n − 1", f"{FIRST}.variance", "variance-sample", LAYERNORM)
def variance_over_n_minus_1(port: Port) -> None:
    port.instead(variance=lambda centered: centered.square().sum(-1) / (port.d_model - 1))


@bug("norm without its gain", f"{FIRST}.out", "norm-gain-missing")
def gain_missing(port: Port) -> None:
    def affine(at: str, x: Tensor) -> Tensor:
        return x + port.w[f"{at}.bias"] if f"{at}.bias" in port.w else x

    port.instead(affine=affine)


@bug("norm without its bias", f"{FIRST}.out", "norm-bias-missing", LAYERNORM)
def norm_bias_missing(port: Port) -> None:
    port.instead(affine=lambda at, x: x * port.w[f"{at}.gain"])


@bug("gain taken as 1 + gain", f"{FIRST}.out", "norm-gain-plus-one")
def gain_plus_one(port: Port) -> None:
    def affine(at: str, x: Tensor) -> Tensor:
        x = x * (1 + port.w[f"{at}.gain"])
        return x + port.w[f"{at}.bias"] if f"{at}.bias" in port.w else x

    port.instead(affine=affine)


@bug("RMSNorm for layernorm", f"{FIRST}.normalized", "norm-kind", LAYERNORM)
def rmsnorm_for_layernorm(port: Port) -> None:
    def norm(at: str, x: Tensor) -> Tensor:
        normalized = port.keep(f"{at}.normalized", x / port.root(x.square().mean(-1))[:, None])
        return port.keep(f"{at}.out", port.affine(at, normalized))

    port.instead(norm=norm)


@bug("layernorm for RMSNorm", f"{FIRST}.normalized", "norm-kind", LLAMAS)
def layernorm_for_rmsnorm(port: Port) -> None:
    def norm(at: str, x: Tensor) -> Tensor:
        centered = x - x.mean(-1, keepdim=True)
        std = port.root(port.variance(centered))
        normalized = port.keep(f"{at}.normalized", centered / std[:, None])
        return port.keep(f"{at}.out", port.affine(at, normalized))

    port.instead(norm=norm)


@bug(
    "attention reads the stream without its norm",
    {"": "block.0.attn.qkv", "llama": "block.0.attn.q", "qwen": "block.0.attn.q"},
    "norm-place norm-missing",
    says="block.0.attn.norm",
)
def norm_missing(port: Port) -> None:
    usual = port.norm
    port.instead(norm=lambda at, x: x if at.endswith(".attn.norm") else usual(at, x))


@bug(
    "the MLP's norm has the weights of attention's",
    "block.0.mlp.norm.out",
    "weight-swapped",
    says="block.0.attn.norm",
)
def norm_of_attention_for_mlp(port: Port) -> None:
    usual = port.affine
    port.instead(affine=lambda at, x: usual(at.replace(".mlp.", ".attn."), x))


@bug("final norm missing", "logits", "final-norm-missing", says="final.norm")
def final_norm_missing(port: Port) -> None:
    port.instead(last_norm=lambda x: x)


@bug("final norm twice", "logits", "final-norm-twice")
def final_norm_twice(port: Port) -> None:
    def twice(x: Tensor) -> Tensor:
        once = port.norm("final.norm", x)
        kept = {name: value for name, value in port.kept.items() if name.startswith("final.")}
        again = port.norm("final.norm", once)
        port.kept |= kept  # what is filed is the first of the two
        return again

    port.instead(last_norm=twice)
