"""Suspects, end to end: a port with one mistake, its numbers as claims, and who is suspected.

The port is NumPy in float64 and knows nothing of the plan.  Each mistake is looked for in a full
dump, where the first wrong line is known at once, and in a sparse one, where a whole sublayer lies
between the claimed lines.
"""

from __future__ import annotations

import os

import pytest
from numpy_port import Port
from suspected import SPECS, TARGET, TOKENS, Judge, only, random_model

GPT2, LLAMA, NEOX = "gpt2", "llama", "gpt_neox"
ALL, ROTARY, LAYERED = (GPT2, LLAMA, NEOX), (LLAMA, NEOX), (GPT2, NEOX)
SPARSE = ("attn.add", "mlp.add", "stream.0", "embed.token", "logits", "probs", "loss")

# the port's mistake → the suspect, and the families in which it can be made
BUGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "activation gelu": ("gelu-kind", (GPT2,)),
    "activation gelu_tanh": ("gelu-kind", (NEOX,)),
    "activation gelu_quick": ("gelu-kind", LAYERED),
    "activation relu": ("activation-kind", ALL),
    "activation silu": ("activation-kind", LAYERED),
    "activation identity": ("activation-kind", ALL),
    "eps 1e-3": ("eps-value", ALL),
    "eps 0": ("eps-value", ALL),
    "eps after the root": ("eps-place", ALL),
    "variance over n - 1": ("variance-sample", LAYERED),
    "torch std": ("variance-sample", LAYERED),
    "gain missing": ("norm-gain-missing", ALL),
    "norm bias missing": ("norm-bias-missing", LAYERED),
    "gain plus one": ("norm-gain-plus-one", ALL),
    "other norm": ("norm-kind", ALL),
    "scale missing": ("scale-missing", ALL),
    "scale doubled": ("scale-doubled", ALL),
    "scale by d_model": ("scale-wrong", ALL),
    "scale inverted": ("scale-wrong", ALL),
    "mask missing": ("mask-missing", ALL),
    "mask ahead": ("mask-ahead", ALL),
    "mask strict": ("mask-strict", ALL),
    "mask transposed": ("mask-transposed", ALL),
    "mask late": ("mask-late", ALL),
    "softmax over queries": ("softmax-axis", ALL),
    "softmax twice": ("softmax-doubled", ALL),
    "rope pairing": ("rope-pairing", ROTARY),
    "rope base": ("rope-base", ROTARY),
    "rope from 1": ("rope-offset", ROTARY),
    "rope backwards": ("rope-direction", ROTARY),
    "rope on v": ("rope-on-v", ROTARY),
    "rope missing": ("rope-missing", ROTARY),
    "rope missing on q": ("rope-missing", ROTARY),
    "rope on the whole head": ("rope-part", (NEOX,)),
    "rope on the last part": ("rope-part", (NEOX,)),
    "attention matrix transposed": ("weight-transposed", ALL),
    "q matrix transposed": ("weight-transposed", (LLAMA,)),
    "qkv transposed": ("weight-transposed", LAYERED),
    "hidden transposed": ("weight-transposed", ALL),
    "q and k exchanged": ("qkv-order", LAYERED),
    "k and v exchanged": ("qkv-order", ALL),
    "packing": ("qkv-packing", LAYERED),
    "heads interleaved": ("head-split", (GPT2, LLAMA)),
    "heads cut without transpose": ("head-split", (GPT2, LLAMA)),
    "heads merged without transpose": ("head-merge", ALL),
    "kv tiled": ("kv-repeat", (LLAMA,)),
    "bias missing": ("bias-missing", LAYERED),
    "bias doubled": ("bias-doubled", LAYERED),
    "gate and up exchanged": ("gate-up-swapped", (LLAMA,)),
    "gate added": ("gate-added", (LLAMA,)),
    "residual missing": ("residual-missing", ALL),
    "residual doubled": ("residual-doubled", ALL),
    "residual from the norm": ("residual-source", ALL),
    "residual from before attention": ("residual-source", ALL),
    "attention reads the stream": ("norm-place|norm-missing", ALL),
    "norm after the add": ("norm-place", ALL),
    "parallel": ("parallel", (GPT2, LLAMA)),
    "serial": ("serial", (NEOX,)),
    "final norm missing": ("final-norm-missing", ALL),
    "final norm skipped": ("final-norm-missing", ALL),
    "final norm twice": ("final-norm-twice", ALL),
    "head tied": ("head-tied", ROTARY),
    "head untied": ("head-untied", (GPT2,)),
    "head transposed": ("weight-transposed", ROTARY),
    "embedding scaled": ("embed-scale-extra", ALL),
    "token row": ("token-row", ALL),
    "position offset": ("position-offset", (GPT2,)),
    "position missing": ("position-missing", (GPT2,)),
    "padding counted": ("padding-positions", (GPT2,)),
    "layer swapped": ("layer-swapped|weight-swapped", ALL),
    "weight swapped": ("weight-swapped", ALL),
    "logits shifted": ("position-shifted", ALL),
    "temperature": ("temperature", ALL),
    "softmax of probabilities": ("softmax-doubled", ALL),
    "softmax left out": ("softmax-missing", ALL),
    "loss in bits": ("loss-base", ALL),
    "loss over positions": ("loss-mean", ALL),
    "loss sign": ("loss-sign", ALL),
}
# What a sparse dump does not show: eps beside a variance of about 1 and, since only differences of
# positions count, where RoPE begins to count.
UNSEEN = ("eps 0", "eps after the root", "rope from 1")
CASES = [(family, bug) for bug, (_kind, families) in BUGS.items() for family in families]
MODELS = {family: random_model(spec(), untied_too=spec().tied) for family, spec in SPECS.items()}


@pytest.mark.parametrize("family", ALL)
def test_a_port_without_a_mistake_gives_no_line_that_does_not_follow(family: str) -> None:
    port = Port(MODELS[family], TOKENS, TARGET)
    assert Judge(MODELS[family], port.dump).first_error() is None
    assert Judge(MODELS[family], only(port.dump, SPARSE)).first_error() is None


@pytest.mark.parametrize(("family", "bug"), CASES)
def test_the_mistake_of_a_full_dump_is_suspected_first(family: str, bug: str) -> None:
    _check(family, bug, None)


# each in one family: a region of many lines takes its time
SPREAD = [
    (families[place % len(families)], bug)
    for place, (bug, (_kind, families)) in enumerate(BUGS.items())
    if bug not in UNSEEN
]


@pytest.mark.parametrize(
    ("family", "bug"), SPREAD if os.environ.get("BYHAND_LONG") else SPREAD[::2]
)
def test_the_mistake_of_a_sparse_dump_is_suspected_first(family: str, bug: str) -> None:
    _check(family, bug, SPARSE)


def _check(family: str, bug: str, lines: tuple[str, ...] | None) -> None:
    kinds = BUGS[bug][0].split("|")
    model = MODELS[family]
    port = Port(model, TOKENS, TARGET, bug, padding=2)
    judge = Judge(model, only(port.dump, lines), padding=(2, 0))
    wrong = judge.first_error()
    assert wrong is not None
    found = judge.suspects(wrong)
    assert found, f"nobody is suspected at {wrong}"
    best, judged = found[0]
    assert best.kind in kinds, [edit.kind for edit, _judged in found]
    assert judged.times is None or judged.times < 3  # as well as rounding usually does


@pytest.mark.parametrize(
    ("family", "bug", "sentence", "change"),
    [
        (GPT2, "activation gelu",
         "it follows if the activation is GELU with erf; the model says GELU with tanh",
         "use GELU with tanh (approximate='tanh')"),
        (GPT2, "eps 1e-3", "it follows if eps is 0.001; the model says 1e-05",
         "use eps 1e-05 in this norm"),
        (GPT2, "variance over n - 1",
         "it follows if the variance is divided by n - 1 = 23; the model divides by n = 24",
         "divide the variance by n (unbiased=False, correction=0)"),
        (NEOX, "scale missing",
         "it follows if the scores are not scaled; the model says 1/√8 (head width 8)",
         "scale the scores by 1/√8 (head width 8)"),
        (LLAMA, "rope base", "it follows if the base of RoPE is 1000000; the model says 10000",
         "use rope_theta 10000"),
        (LLAMA, "kv tiled",
         (
             "it follows if the 2 key-value heads are tiled (head h reads h mod 2); the "
             "model repeats each 2 times (h // 2)"
         ),
         "repeat each key and value head 2 times in a row (repeat_interleave)"),
        (GPT2, "position offset",
         "it follows if positions count from 1; the model counts from 0",
         "count positions from 0"),
        (LLAMA, "weight swapped",
         "it follows if block.1.mlp.out stands in place of block.0.mlp.out",
         "use block.0.mlp.out here, not block.1.mlp.out"),
    ],
)  # fmt: skip
def test_a_suspect_says_what_this_model_says(
    family: str, bug: str, sentence: str, change: str
) -> None:
    model = MODELS[family]
    judge = Judge(model, Port(model, TOKENS, TARGET, bug).dump)
    wrong = judge.first_error()
    assert wrong is not None
    best = judge.suspects(wrong)[0][0]
    assert (best.sentence, best.change) == (sentence, change)
