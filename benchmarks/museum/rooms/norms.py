"""Bugs in norms and activations."""

from __future__ import annotations

from torch import Tensor

from benchmarks.museum.catalogue import exhibit
from benchmarks.museum.replicas import Replica
from benchmarks.planted.port import ACTIVATIONS

FIRST = "block.0.attn.norm"
GITHUB = "https://github.com"


def _gain(port: Replica, change: float, only: str = "") -> None:
    usual = port.affine

    def affine(at: str, x: Tensor) -> Tensor:
        return x * (port.w[f"{at}.gain"] + change) if only in at else usual(at, x)

    port.instead(affine=affine)


@exhibit(
    "norms",
    f"{GITHUB}/linkedin/Liger-Kernel/issues/74",
    2024,
    "[bug fix] Gemma needs RMSNorm with 1.0 offset",
    family="gemma",
    shows=f"{FIRST}.out",
    says="gain - 1",
)
def gain_without_its_one(port: Replica) -> None:
    """Gemma's files hold gain − 1; its norm adds the 1.  A fused kernel used Llama's norm and
    multiplied by what was in the file.

    The same tensor name means two things in two families.
    """
    _gain(port, -1.0)


@exhibit(
    "norms",
    f"{GITHUB}/utensils/mold/pull/1078",
    2026,
    "fix(ltx2): stop double-applying Gemma's RMSNorm +1 fold in the GGUF encoder",
    family="gemma",
    shows=f"{FIRST}.out",
    says=r"1 \+ gain",
)
def gain_with_two_ones(port: Replica) -> None:
    """The file's converter had already added Gemma's 1 to every gain.  The reader added it again.

    Videos came out sharp and of the wrong subject.  A convention must live in exactly one place:
    the file or the code.
    """
    _gain(port, 1.0)


@exhibit(
    "norms",
    f"{GITHUB}/warpfront/hipfire/pull/228",
    2026,
    "fix(qwen35): MoE final-norm GemmaRMSNorm + drop now-redundant spiral workaround",
    family="gemma",
    shows="final.norm.out",
    says="gain - 1",
)
def last_gain_without_its_one(port: Replica) -> None:
    """One model looped, and leaving the 1 out of its *last* norm stopped that.  So the last norm
    stayed wrong; the loop came from a sampling default elsewhere.

    A fix that makes the symptom go away can be a second bug.
    """
    _gain(port, -1.0, only="final.norm")


@exhibit(
    "norms",
    f"{GITHUB}/apache/tvm/pull/15856",
    2023,
    "[Unity][CUTLASS] Fix hardcoded epsilon parameter in RMS norm",
    family="llama",
    shows=f"{FIRST}.rms",
    says="eps is 1e-06; the model says 1e-05",
)
def eps_hard_coded(port: Replica) -> None:
    """A kernel had eps 10⁻⁶ built in, as Llama 1 has.  Llama 2 was trained with 10⁻⁵.

    The difference is far below what a look at the output shows, and a hundred times what rounding
    explains.
    """
    port.eps = 1e-6


@exhibit(
    "norms",
    f"{GITHUB}/pyg-team/pytorch_geometric/pull/2917",
    2021,
    "Numerical error in LayerNorm leading to NaN in gradients",
    family="gpt2",
    shows=f"{FIRST}.std",
    says="eps is added after the root",
)
def eps_after_the_root(port: Replica) -> None:
    """A layernorm divided by √variance + eps instead of √(variance + eps).

    It was found because the gradient at variance 0 was NaN.  The forward pass had been slightly
    wrong all along.
    """
    port.instead(root=lambda square: square.sqrt() + port.eps)


@exhibit(
    "norms",
    f"{GITHUB}/mosaicml/llm-foundry/pull/372",
    2023,
    "fixed rmsnorm bug. Changed division to multiply since using torch.rsqrt",
    family="llama",
    shows=f"{FIRST}.normalized",
    says="multiplies by rms",
)
def divided_by_the_reciprocal(port: Replica) -> None:
    """RMSNorm divided by rsqrt, the *reciprocal* of the root: x was multiplied by its size instead
    of divided by it.

    Two inversions are easily one too many.  Training hides it; only a comparison shows it.
    """

    def norm(at: str, x: Tensor) -> Tensor:
        square = port.keep(f"{at}.mean_square", port.squares(x))
        rms = port.keep(f"{at}.rms", port.root(square))
        normalized = port.keep(f"{at}.normalized", x / rms.reciprocal()[:, None])
        return port.keep(f"{at}.out", port.affine(at, normalized))

    port.instead(norm=norm)


@exhibit(
    "norms",
    f"{GITHUB}/google/gemma_pytorch/pull/37",
    2024,
    "Gemma fixes - gelu",
    family="gemma",
    shows="block.0.mlp.act",
    says="GELU with erf",
)
def exact_gelu(port: Replica) -> None:
    """Gemma was trained with the approximation of GELU by tanh.  The published code, and the ports
    that followed it, computed GELU exactly.

    Here the more exact formula is the wrong one.
    """
    port.activation = ACTIVATIONS["gelu"]


@exhibit(
    "norms",
    f"{GITHUB}/ggml-org/ggml/pull/139",
    2023,
    "Add non-parallel residual support for gpt-neox",
    family="redpajama",
    shows="block.0.mlp.norm.mean",
    says="reads the residual stream before attention",
)
def parallel_for_all(port: Replica) -> None:
    """GPT-NeoX runs attention and MLP side by side.  RedPajama has the same layer names and runs
    them one after the other; the setting that says so was not read.

    An architecture is more than the names and shapes of its tensors.
    """

    def block(at: str, x: Tensor) -> Tensor:
        attended = port.attention(f"{at}.attn", port.norm(f"{at}.attn.norm", x))
        thought = port.mlp(f"{at}.mlp", port.norm(f"{at}.mlp.norm", x))
        return port.added(f"{at}.mlp", port.added(f"{at}.attn", x, attended), thought)

    port.instead(block=block)
