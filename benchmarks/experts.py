"""Correct runs of models with sinks and experts: `python -m benchmarks.experts [SEEDS]`.

Small models as gpt-oss, Mixtral and Qwen-MoE have them, worked out by torch in the ways of several
programs.  Every run is correct, so a line that does not follow, or is unusual, is a false alarm.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

import byhand
from byhand.expression import parse
from byhand.model import Model
from byhand.parameters import parameters
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)
from byhand.tokens import Ids
from byhand.weights import Tensor as Weight
from byhand.weights import Weights

LENGTH, VOCAB, WIDTH = 9, 40, 32
NORM = NormSpec("rmsnorm", Fraction(1, 100_000), bias=False)
FORMATS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
SPARSE = ("stream.1", "stream.2", "logits")


def gpt_oss() -> ModelSpec:
    """Sinks, biases, YaRN's factor, 2 of 6 experts by softmax over the chosen."""
    rotary = RotarySpec(8, Fraction(150_000), magnitude=parse("0.1*ln(32) + 1"))
    attention = AttentionSpec(
        4, 8, 2, over_root(8), rotary=rotary, sinks=True, q_bias=True, k_bias=True, v_bias=True,
        out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(
        24, "silu", gated=True, hidden_bias=True, gate_bias=True, out_bias=True, experts=6,
        chosen=2, router_bias=True,
    )  # fmt: skip
    return _spec("gpt_oss", attention, mlp)


def mixtral() -> ModelSpec:
    """2 of 4 experts: softmax over all, divided by the sum of the chosen."""
    attention = AttentionSpec(4, 8, 2, over_root(8), rotary=RotarySpec(8))
    return _spec("mixtral", attention, MlpSpec(40, "silu", gated=True, experts=4, chosen=2))


def qwen_moe() -> ModelSpec:
    """3 of 8 experts, whose shares of all are not divided."""
    attention = AttentionSpec(4, 8, 4, over_root(8), rotary=RotarySpec(8), q_bias=True, k_bias=True,
                              v_bias=True)  # fmt: skip
    mlp = MlpSpec(16, "silu", gated=True, experts=8, chosen=3, normalised=False)
    return _spec("qwen_moe", attention, mlp)


def grok() -> ModelSpec:
    """2 of 8 experts, and scores capped at 30."""
    attention = AttentionSpec(4, 8, 2, over_root(8), rotary=RotarySpec(8), cap=Fraction(30))
    mlp = MlpSpec(16, "silu", gated=True, experts=8, chosen=2)
    return _spec("grok", attention, mlp)


def _spec(name: str, attention: AttentionSpec, mlp: MlpSpec) -> ModelSpec:
    blocks = (BlockSpec(attention, mlp, NORM, NORM),) * 2
    return ModelSpec(
        name, VOCAB, WIDTH, 64, blocks, final_norm=NORM, tied=False, layout="out_in"
    )  # fmt: skip


def model(spec: ModelSpec, seed: int) -> Model:
    """The model of a spec with weights as after training: gains not 1, a router that is sure.

    Of every three seeds, the second gives experts that tie, the third large scores and sinks.
    """
    rng = np.random.default_rng([seed, sum(map(ord, spec.name))])

    tied, large = seed % 3 == 1, 10.0 if seed % 3 == 2 else 1.0

    def drawn(parameter: Any) -> Any:
        noise = rng.standard_normal(parameter.shape)
        if parameter.kind == "gain":
            return 1 + 0.2 * noise
        if parameter.name.endswith("sinks"):
            return noise * large
        if "router" in parameter.name:
            noise = noise * large / (4 if parameter.kind == "bias" else 3)
            return np.repeat(noise[::2], 2, axis=0) if tied else noise  # experts 0 and 1, …
        if parameter.kind == "bias":
            return 0.2 * noise
        wide = large if parameter.name.endswith((".q", ".k")) else 1.0
        return noise / np.sqrt(parameter.shape[-1]) * wide**0.5

    weights = {p.name: Weight(p.name, drawn(p).astype(np.float32)) for p in parameters(spec)}
    return Model(spec, Weights(weights), Ids(spec.vocab))


# ------------------------------------------------------------------ a run in torch


@dataclass(frozen=True)
class Way:
    """How a program does it."""

    name: str
    islands: bool = False  # norms and softmax in float32
    shares_first: bool = False  # softmax over all, then the choice
    one_by_one: bool = False  # answers added one after the other in the format
    fused_sink: bool = False  # the sink joins a running sum; else it is one more column
    ids: bool = True  # the choice is dumped as ids


WAYS = (
    Way("plain"),
    Way("transformers mixtral", islands=True, shares_first=True, one_by_one=True),
    Way("transformers gpt-oss", islands=True),
    Way("fused", islands=True, fused_sink=True, shares_first=True, ids=False),
    Way("bfloat16 throughout", shares_first=True, one_by_one=True, fused_sink=True),
)


class Run:
    """One forward pass; `dump` holds every line under its address."""

    def __init__(self, given: Model, way: Way, kind: torch.dtype, ids: list[int]) -> None:
        self.spec, self.way, self.kind = given.spec, way, kind
        self.w = {n: torch.tensor(np.asarray(t.data)).to(kind) for n, t in given.weights.items()}
        self.inside = torch.float32 if way.islands else kind
        self.dump: dict[str, Tensor] = {}
        x = self.keep("embed.token", self.w["embed.token"][torch.tensor(ids)])
        for layer, block in enumerate(self.spec.blocks):
            at = f"block.{layer}"
            assert block.attention is not None
            assert block.mlp is not None
            read = self.norm(f"{at}.attn.norm", x)
            out = self.attention(f"{at}.attn", block.attention, read)
            x = self.keep(f"{at}.attn.add", x + out)
            read = self.norm(f"{at}.mlp.norm", x)
            x = self.keep(f"{at}.mlp.add", x + self.experts(f"{at}.mlp", block.mlp, read))
            self.keep(f"stream.{layer + 1}", x)
        self.keep("logits", functional.linear(self.norm("final.norm", x), self.w["head"]))

    def keep(self, address: str, x: Tensor) -> Tensor:
        self.dump[address] = x
        return x

    def norm(self, at: str, x: Tensor) -> Tensor:
        wide = x.to(self.inside)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + float(NORM.eps))
        return self.keep(f"{at}.out", self.w[f"{at}.gain"] * wide.to(self.kind))

    def linear(self, name: str, x: Tensor) -> Tensor:
        return functional.linear(x, self.w[name], self.w.get(f"{name}_bias"))

    def attention(self, at: str, attn: AttentionSpec, x: Tensor) -> Tensor:
        length = len(x)
        q, k, v = (
            self.keep(f"{at}.{name}", self.linear(f"{at}.{name}", x).view(length, -1, attn.d_head)
                      .transpose(0, 1))
            for name in ("q", "k", "v")
        )  # fmt: skip
        assert attn.rotary is not None
        rates = float(attn.rotary.base) ** -(torch.arange(0, 8, 2, dtype=torch.float32) / 8)
        angles = torch.outer(torch.arange(length, dtype=torch.float32), rates)
        factor = 1.0 if attn.rotary.magnitude is None else 0.1 * float(np.log(32.0)) + 1
        cos, sin = ((part * factor).to(self.kind) for part in (angles.cos(), angles.sin()))

        def turned(name: str, x: Tensor) -> Tensor:
            a, b = x.chunk(2, dim=-1)
            return self.keep(
                f"{at}.{name}_rotated", torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
            )

        q, k = turned("q", q), turned("k", k)
        groups = attn.heads // attn.kv_heads
        k, v = k.repeat_interleave(groups, 0), v.repeat_interleave(groups, 0)
        scores = q @ k.transpose(-1, -2) * attn.d_head**-0.5
        if attn.cap is not None:
            scores = torch.tanh(scores / float(attn.cap)) * float(attn.cap)
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = self.keep(f"{at}.scores", scores.masked_fill(hidden, -torch.inf))
        weights = self.keep(f"{at}.weights", self.shares(at, attn, scores))
        mixed = self.keep(f"{at}.mixed", weights @ v)
        return self.keep(f"{at}.out", self.linear(f"{at}.out", mixed.transpose(0, 1).flatten(1)))

    def shares(self, at: str, attn: AttentionSpec, scores: Tensor) -> Tensor:
        if not attn.sinks:
            return scores.softmax(-1, dtype=self.inside).to(self.kind)
        sinks = self.w[f"{at}.sinks"].view(-1, 1, 1).expand(-1, len(scores[0]), 1)
        if self.way.fused_sink:
            wide = scores.float()
            top = torch.maximum(wide.amax(-1, keepdim=True), sinks.float())
            powers = (wide - top).exp()
            return (powers / (powers.sum(-1, keepdim=True) + (sinks - top).exp())).to(self.kind)
        both = torch.cat((scores, sinks), dim=-1)
        both = both - both.amax(-1, keepdim=True)  # in the format, as transformers does
        return both.softmax(-1, dtype=both.dtype)[..., :-1]

    def experts(self, at: str, mlp: MlpSpec, x: Tensor) -> Tensor:
        scores = self.keep(f"{at}.router", self.linear(f"{at}.router", x))
        shares, ids = self.chosen(mlp, scores)
        marks = torch.zeros(scores.shape).scatter(-1, ids, 1.0)
        self.keep(f"{at}.chosen", ids if self.way.ids else marks)
        self.keep(f"{at}.shares", torch.zeros_like(scores).scatter(-1, ids, shares))
        inner, answers = [], []
        for expert in range(mlp.experts or 0):
            gate, hidden = (self.expert(f"{at}.{name}", expert, x) for name in ("gate", "hidden"))
            act = functional.silu(gate)
            inner.append((gate, hidden, act, act * hidden))
            answers.append(self.expert(f"{at}.out", expert, inner[-1][-1]))
        for name, parts in zip(("gate", "hidden", "act", "gated"), zip(*inner, strict=True),
                               strict=True):  # fmt: skip
            self.keep(f"{at}.{name}", torch.stack(parts))
        every = self.keep(f"{at}.answers", torch.stack(answers))
        picked = every[ids, torch.arange(len(x))[:, None]]  # (pos, chosen, d)
        if self.way.one_by_one:
            out = torch.zeros_like(x)
            for slot in range(ids.shape[1]):
                out = out + picked[:, slot] * shares[:, slot, None]
        else:
            out = (picked.float() * shares.float()[..., None]).sum(1).to(self.kind)
        return self.keep(f"{at}.out", out)

    def chosen(self, mlp: MlpSpec, scores: Tensor) -> tuple[Tensor, Tensor]:
        assert mlp.chosen is not None
        if self.way.shares_first or not mlp.normalised:
            every = scores.softmax(-1, dtype=self.inside)
            shares, ids = every.topk(mlp.chosen)
            if mlp.normalised:
                shares = shares / shares.sum(-1, keepdim=True)
            return shares.to(self.kind), ids
        best, ids = scores.topk(mlp.chosen)
        return best.softmax(-1, dtype=self.inside).to(self.kind), ids

    def expert(self, name: str, expert: int, x: Tensor) -> Tensor:
        bias = self.w.get(f"{name}_bias")
        return functional.linear(x, self.w[name][expert], None if bias is None else bias[expert])


# ------------------------------------------------------------------ judging


def claims(run: Run, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """The dump as claims; with `only`, these lines alone."""
    return {name: x for name, x in run.dump.items() if not only or name in only}


@dataclass(frozen=True)
class Case:
    """A correct run, and which of its lines are claimed."""

    spec: ModelSpec
    seed: int
    format: str
    way: Way
    only: tuple[str, ...] = ()

    def __str__(self) -> str:
        extent = "sparse" if self.only else "full"
        return f"seed {self.seed}: {self.spec.name} {self.format} {self.way.name} {extent}"

    def judged(self) -> tuple[Counter[str], list[str]]:
        """How many lines have each verdict, and the false alarms."""
        made = model(self.spec, self.seed)
        ids = np.random.default_rng([self.seed, 5]).integers(VOCAB, size=LENGTH).tolist()
        run = Run(made, self.way, FORMATS[self.format], ids)
        precision = "transformers:" * self.way.islands + self.format
        given = {"tokens": ids, **claims(run, self.only)}
        counts: Counter[str] = Counter()
        wrong = []
        for line in byhand.check(made, given, precision=precision, suspects=False):
            counts[line.verdict.value] += 1
            if line.verdict.value not in ("right", "cannot be judged") or line.unusual:
                wrong.append(f"{line.address} {line.share:.3g} {line.times}")
        return counts, wrong


def cases(seed: int) -> Iterator[Case]:
    """Every model in every format and way, with all lines and with a few."""
    for spec, format, way in product((gpt_oss(), mixtral(), qwen_moe(), grok()), FORMATS, WAYS):
        yield Case(spec, seed, format, way)
        yield Case(spec, seed, format, way, SPARSE)


def main(seeds: int) -> int:
    """Prints what was judged and every alarm; the exit status says whether there was one."""
    torch.set_num_threads(1)
    total: Counter[str] = Counter()
    runs, alarms = 0, 0
    for case in (case for seed in range(seeds) for case in cases(seed)):
        counts, wrong = case.judged()
        runs, alarms, total = runs + 1, alarms + len(wrong), total + counts
        for line in wrong:
            print(f"alarm: {case}: {line}")
    print(f"{runs} runs, {sum(total.values())} lines, {alarms} false alarms; {dict(total)}")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2))
