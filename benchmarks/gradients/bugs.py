"""The mistakes: where each first shows, and which kinds of suspects name its cause.

Both are stated by who plants the bug, before anything is checked.  A mistake in code is in every
layer; gradients flow back, so it first shows in the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.gradients.lessons import FAMILIES, LAYERS

FORMATS = ("float32", "bfloat16")
LAST = f"block.{LAYERS - 1}"
ALL = " ".join(FAMILIES)


@dataclass(frozen=True)
class Bug:
    """One kind of mistake; its name is also what the port is asked to do."""

    name: str
    shows: Mapping[str, str]  # by family: the first line that is wrong
    causes: frozenset[str]  # kinds of suspects that name it
    formats: tuple[str, ...] = FORMATS


BUGS: dict[str, Bug] = {}


def _bug(
    name: str,
    shows: str | tuple[str, str],
    causes: str,
    families: str = ALL,
    formats: tuple[str, ...] = FORMATS,
) -> None:
    places = (shows, shows) if isinstance(shows, str) else shows
    where = dict(zip(FAMILIES, places, strict=True))
    at = {family: where[family].replace("@", LAST) for family in families.split()}
    BUGS[name] = Bug(name, at, frozenset(causes.split()), formats)


LOGITS = "grad.logits"
_bug("sum for mean", LOGITS, "loss-reduction")
_bug("mean twice", LOGITS, "loss-reduction")
_bug("mean over all positions", LOGITS, "loss-reduction")
_bug("mean over texts", LOGITS, "loss-reduction")
_bug("loss scale left in", LOGITS, "loss-scale")
_bug("sign", LOGITS, "loss-sign")
_bug("one-hot missing", LOGITS, "target-term-missing")
_bug("no shift", LOGITS, "target-shift")
_bug("shift by two", LOGITS, "target-shift")
_bug("padding counted", LOGITS, "padding-counted")

NORMED = "grad.@.mlp.add"  # the first gradient below a norm, the last one
_bug("norm without its mean", NORMED, "norm-mean-missing", "gpt2")
_bug("norm without its projection", NORMED, "norm-projection-missing")
_bug("norm not divided", NORMED, "norm-not-divided")
_bug("gain left out", NORMED, "norm-gain-missing")
_bug("gain from the input", "grad.weight.final.norm.gain", "gain-gradient-input")
_bug("residual missing", "grad.@.attn.add", "residual-gradient-missing")

BENT = ("grad.@.mlp.hidden", "grad.@.mlp.gate")
_bug("slope of the other GELU", BENT, "slope-kind", "gpt2")
_bug("slope of silu is sigmoid", BENT, "slope-sigmoid", "llama")
_bug("slope at the result", BENT, "slope-at-result")
_bug("slope missing", BENT, "slope-missing")
_bug("gate and up swapped", "grad.@.mlp.act", "gate-up-gradients-swapped", "llama")
_bug("gate's way back missing", "grad.@.mlp.norm.out", "path-missing", "llama")

_bug("mask not applied", "grad.@.attn.v", "mask-missing-back")
_bug("row sum missing", "grad.@.attn.scores", "softmax-row-sum-missing")
_bug("scale missing in q", ("grad.@.attn.q", "grad.@.attn.q_rotated"), "scale-missing-back")
_bug("scale missing in k", ("grad.@.attn.k", "grad.@.attn.k_rotated"), "scale-missing-back")
_bug("one head of a group", "grad.@.attn.v", "groups-not-summed", "llama")
_bug("heads averaged", "grad.@.attn.v", "groups-averaged", "llama")
_bug("RoPE turned forward", "grad.@.attn.k", "rope-back-forward", "llama")
_bug("RoPE not turned back", "grad.@.attn.k", "rope-back-missing", "llama")
_bug("packed as k, q, v", "grad.@.attn.qkv", "packed-gradients-order", "gpt2")
_bug("v's way back missing", "grad.@.attn.norm.out", "path-missing", "llama")

_bug("table from the head alone", "grad.weight.embed.token", "tied-embedding-missing", "gpt2")
_bug("table from the embedding alone", "grad.weight.embed.token", "tied-head-missing", "gpt2")
_bug("positions not scattered", "grad.weight.embed.position", "position-rows", "gpt2")
_bug("repeated tokens overwritten", "grad.weight.embed.token", "rows-overwritten")
_bug("sum over the wrong axis", "grad.weight.final.norm.gain", "sum-axis")
_bug("bias averaged", "grad.weight.final.norm.gain", "gradient-averaged")
_bug("gradient transposed", "grad.weight.@.attn.out", "gradient-transposed")
_bug(
    "input before the norm",
    ("grad.weight.@.mlp.hidden", "grad.weight.@.mlp.hidden"),
    "gradient-input",
)

FIRST = ("grad.weight.final.norm.gain", "grad.weight.head")  # the first weight on the way back
_bug("accumulated twice", FIRST, "accumulated-twice")
_bug("not zeroed", FIRST, "not-zeroed")
_bug("only the last text", FIRST, "texts-not-added")
_bug("added in bfloat16", FIRST, "added-narrow", formats=("float32",))

CLIPPED = "update.clipped.embed.token"
MOMENT, SECOND, NEW = "update.m.embed.token", "update.v.embed.token", "update.weight.embed.token"
_bug("clipped by value", CLIPPED, "clip-by-value")
_bug("clipped tensor by tensor", CLIPPED, "clip-by-tensor")
_bug("clipped after the step", MOMENT, "clip-missing")
_bug("decay in the gradient", MOMENT, "decay-in-gradient")
_bug("betas swapped", MOMENT, "betas-swapped")
_bug("moment without its factor", MOMENT, "moment-factor")
_bug("second moment not squared", SECOND, "moment-not-squared")
_bug("bias correction missing", NEW, "correction-missing")
_bug("correction of v missing", NEW, "correction-missing")
_bug("step counted from 0", NEW, "correction-step")
_bug("eps inside the root", NEW, "eps-in-root")
_bug("root left out", NEW, "root-missing")
_bug("decay on norms and biases", "update.weight.block.0.attn.norm.gain", "decay-on-vectors")
_bug("decay missing", NEW, "decay-missing")
_bug("decay without the rate", NEW, "decay-without-rate")
_bug("rate of the step before", NEW, "learning-rate")
_bug("rate of the step after", NEW, "learning-rate")
_bug("step uphill", NEW, "step-uphill")
