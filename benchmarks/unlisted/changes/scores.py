"""Changes in attention's scores: their scale, what is added, which keys are seen, sinks."""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

from benchmarks.planted.port import Port
from benchmarks.unlisted.changes.handles import (
    after,
    inside,
)
from benchmarks.unlisted.changes.registry import change
from benchmarks.unlisted.changes.words import BY_ROW

SCORES, WEIGHTS, MIXED = "block.0.attn.scores", "block.0.attn.weights", "block.0.attn.mixed"
LATER = r"not masked|unmasked|ahead|later|future|after (it|the query)|sees? "


@change("scores times 0.9", SCORES, "gpt2 llama", "{0.9}", "{0.225}", "{1.1111}")
def scores_times_09(port: Port) -> None:
    port.scale *= 0.9


@change("scores over √(d + 1)", SCORES, "qwen gpt2", "√17", "{0.242536}", "{0.970143}", "{1.03078}")
def scores_over_root_17(port: Port) -> None:
    port.scale = 17**-0.5


@change(
    "scores scaled by d^(−1/4), once", SCORES, "llama", "{0.5}", r"{2}( ×|×| times)|(twice|doubled)"
)
def scores_by_fourth_root(port: Port) -> None:
    port.scale = port.d_head**-0.25


@change(
    "scores of late queries scaled by log n",
    SCORES,
    "qwen",
    r"\blog\b|logarithm",
    BY_ROW,
    where=r"(rows|positions|queries) (8|9)\b|(rows|positions|queries).*(8|9) (to|–|-|\.\.) ?15",
)
def scores_by_log_n(port: Port) -> None:
    n = torch.arange(1, len(port.ids) + 1).to(port.dtype)
    factor = (n.log() / log(8)).clamp(min=1.0)[:, None]
    after(port, "attn.scores", lambda s: s * factor)


@change("scores capped: 5·tanh(s/5)", SCORES, "gpt2 llama", r"(cap|tanh).*{5}|{5}.*(cap|tanh)")
def score_cap(port: Port) -> None:
    after(port, "attn.scores", lambda s: torch.where(s.isfinite(), 5 * (s / 5).tanh(), s))


def _distance(port: Port) -> Tensor:
    places = torch.arange(len(port.ids))
    return (places[:, None] - places).to(port.dtype)


@change("ALiBi added, a slope for each head", SCORES, "gpt2", r"alibi|distance|slope|linear in")
def alibi(port: Port) -> None:
    slopes = 2.0 ** (-8 * torch.arange(1, port.heads + 1) / port.heads)
    after(port, "attn.scores", lambda s: s - slopes.to(s.dtype)[:, None, None] * _distance(port))


@change(
    "−0.1 × distance added to the scores",
    SCORES,
    "llama",
    r"(distance|slope|alibi|linear).*({0.1}|{-0.1})",
    r"({0.1}|{-0.1}).*(distance|slope|between|apart|back)",
)
def slope(port: Port) -> None:
    after(port, "attn.scores", lambda s: s - 0.1 * _distance(port))


@change(
    "one more in softmax's denominator",
    WEIGHTS,
    "gpt2 llama",
    r"denominator|sink|\+ ?1\b|one more|exp\(0\)|score of 0|softmax.?1|off.?by.?one",
    r"(sum|add up) (to|up to)? ?(less|below|under|not)",
    BY_ROW,
)
def softmax_plus_one(port: Port) -> None:
    inside(port, None, "shares", lambda usual: lambda s: _with_sink(s, torch.zeros(len(s))))


def _with_sink(scores: Tensor, sinks: Tensor) -> Tensor:
    extra = sinks.to(scores.dtype)[:, None, None].expand(*scores.shape[:2], 1)
    return torch.cat((scores, extra), -1).softmax(-1)[..., :-1]


@change(
    "a sink with a score of its own for each head, block 1",
    "block.1.attn.weights",
    "qwen",
    r"denominator|sink|one more",
    r"(sum|add up) (to|up to)? ?(less|below|under|not)",
    BY_ROW,
)
def sink_by_head(port: Port) -> None:
    sinks = torch.linspace(-1, 2, port.heads)
    inside(port, 1, "shares", lambda usual: lambda s: _with_sink(s, sinks))


def _only_seen(port: Port, seen: Tensor, layer: int | None = None) -> None:
    inside(port, layer, "may_look", lambda usual: lambda length: usual(length) & seen)


@change(
    "window of 5 keys",
    SCORES,
    "gpt2 gpt_neox",
    r"window.*({5}|{4})",
    r"({5}|{4}) .*(back|before|away|window)",
    where=r"queries from 5 on, keys 0 to 10",
)
def window_of_5(port: Port) -> None:
    _only_seen(port, _distance(port) < 5)


@change(
    "the key 3 back is masked",
    SCORES,
    "llama",
    r"{3}.*(back|before|away|distance|diagonal)",
    r"(distance|diagonal).*{3}",
    where=r"queries from 3 on, keys 0 to 12",
)
def hole_in_window(port: Port) -> None:
    _only_seen(port, _distance(port) != 3)


@change(
    "the first key is masked for all but itself",
    SCORES,
    "gpt2 qwen",
    r"(key|column|position|token) 0.*(mask|not seen|hidden|−∞|-inf)",
    r"(mask|not seen|hidden|hides).*((key|column|position|token) 0|first)",
    r"first (key|token|position).*(mask|not seen|hidden)",
    r"infinite \(queries from 1 on, key 0\)",
    where=r"(keys?|columns?|position|token) 0\b",
)
def first_key_masked(port: Port) -> None:
    seen = torch.ones(len(port.ids), len(port.ids), dtype=torch.bool)
    seen[1:, 0] = False
    _only_seen(port, seen)


@change(
    "two documents in one row: queries from 8 on do not see keys before 8",
    SCORES,
    "llama gpt_neox",
    r"{8}.*(document|segment|chunk|block-diagonal|packed)|(document|segment|chunk|packed).*{8}",
    r"(queries|positions|rows).*{8}.*(not see|mask|hid).*({8}|{7})",
    r"(keys|columns).*({8}|{7}).*(mask|not seen|hidden)",
    r"infinite \(queries from 8 on, keys 0 to 7\)",
)
def two_documents(port: Port) -> None:
    part = torch.arange(len(port.ids)) // 8
    _only_seen(port, part[:, None] == part)


@change(
    "the first 4 tokens see each other (prefix)",
    WEIGHTS,
    "gpt2",
    r"prefix|first (4|four)",
    r"(" + LATER + r").*({3}|{4})",
    where=r"(rows|queries|positions) 0.*(2|3)\b",
)
def prefix_seen(port: Port) -> None:
    seen = torch.arange(len(port.ids)) < 4
    inside(port, None, "may_look", lambda usual: lambda n: usual(n) | (seen[:, None] & seen))


@change(
    "masked scores lowered by 5 only",
    WEIGHTS,
    "llama qwen",
    r"({-5}|{5}).*(mask|later|ahead)",
    r"(mask|later|ahead|future).*({-5}|{5})",
)
def weak_mask(port: Port) -> None:
    def wrong(usual: object) -> object:
        return lambda s: torch.where(port.may_look(s.shape[-1]), s, s - 5)

    inside(port, None, "masked", wrong)
