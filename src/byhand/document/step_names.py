"""The name of a step in words, for captions: attention weights for block.0.attn.weights.

A name says what the numbers are and needs neither plan nor trace.  It stands before the address.
"""

from __future__ import annotations

from collections.abc import Mapping

from byhand.language import _, later
from byhand.optimizer import UPDATE
from byhand.plan import GRAD, WEIGHT

# The end of an address → its name.
NAMES: Mapping[str, str] = {
    "tokens": later("token ids"),
    "embed.token": later("rows of the embedding"),
    "embed.position": later("rows of the positions"),
    "stream.0": later("residual stream"),
    "qkv": later("queries, keys and values"),
    "q": later("queries"),
    "k": later("keys"),
    "v": later("values"),
    "q_rotated": later("rotated queries"),
    "k_rotated": later("rotated keys"),
    "scores": later("scores"),
    "weights": later("attention weights"),
    "mixed": later("mixed values"),
    "attn.out": later("output of attention"),
    "attn.add": later("residual stream after attention"),
    "cross.out": later("output of cross-attention"),
    "cross.add": later("residual stream after cross-attention"),
    "hidden": later("hidden numbers"),
    "gate": later("gate"),
    "act": later("after the activation"),
    "gated": later("hidden numbers behind the gate"),
    "mlp.out": later("output of the MLP"),
    "mlp.add": later("residual stream after the MLP"),
    "mean": later("mean"),
    "centered": later("less the mean"),
    "variance": later("variance"),
    "std": later("standard deviation"),
    "mean_square": later("mean square"),
    "rms": later("root mean square"),
    "normalized": later("normalised"),
    "norm.out": later("output of the norm"),
    "logits": later("logits"),
    "probs": later("probabilities"),
    "next": later("next tokens"),
    "target": later("target"),
    "loss": later("loss"),
    "losses": later("losses"),
    "mean_loss": later("mean loss"),
}


def step_name(address: str) -> str:
    """The name of a step, a gradient or an update; empty where only the address is known.

    >>> step_name("block.0.attn.weights[1]"), step_name("grad.logits"), step_name("weight.head")
    ('attention weights', 'gradient: logits', '')
    """
    name = address.partition("[")[0]
    if name.startswith(GRAD):
        own = step_name(name.removeprefix(GRAD).partition(".via.")[0])
        return _("gradient: {name}").format(name=own) if own else ""
    if name.startswith((WEIGHT, UPDATE)):
        return ""
    parts = name.split(".")
    for end in (".".join(parts[-2:]), parts[-1]):
        if end in NAMES:
            return _(NAMES[end])
    return ""


# The end of a weight's name → what it is; a bias is named after what it is added to.
WEIGHTS: Mapping[str, str] = {
    "embed.token": later("token embedding"),
    "embed.position": later("position embedding"),
    "attn.qkv": later("queries, keys and values"),
    "attn.q": later("queries"),
    "attn.k": later("keys"),
    "attn.v": later("values"),
    "attn.out": later("output of attention"),
    "mlp.hidden": later("hidden numbers of the MLP"),
    "mlp.gate": later("gate of the MLP"),
    "mlp.out": later("output of the MLP"),
    "norm.gain": later("gain of the norm"),
    "norm.bias": later("bias of the norm"),
    "head": later("output head"),
}


def weight_name(name: str) -> str:
    """What a weight is for, by its name; empty where only the name is known.

    >>> weight_name("block.0.attn.q"), weight_name("block.1.mlp.out_bias"), weight_name("head")
    ('queries', 'output of the MLP, bias', 'output head')
    """
    stem = name.removesuffix("_bias")
    parts = stem.split(".")
    for end in (".".join(parts[-2:]), parts[-1]):
        if end in WEIGHTS:
            own = _(WEIGHTS[end])
            return own if stem == name else _("{name}, bias").format(name=own)
    return ""


def captioned(title: str, address: str, kind: str = "step") -> str:
    """The name above some numbers: what they are, and which of several tables this is.

    >>> captioned("head 1", "block.0.attn.scores[1]"), captioned("W_q", "weight.q", "weight")
    ('scores, head 1', 'W_q')
    """
    name = "" if kind == "weight" else step_name(address)
    own = address.partition("[")[0].rpartition(".")[2]
    return ", ".join(filter(None, (name, "" if name and title in (own, name) else title)))
