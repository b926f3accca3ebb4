"""Changes in attention's results: slots of a cache, softmax, heads exchanged, lost, scaled."""

from __future__ import annotations

from math import log

import torch

from benchmarks.planted.port import Port
from benchmarks.unlisted.changes.handles import (
    after,
    before,
    exchanged,
    inside,
    of_text,
    with_row,
)
from benchmarks.unlisted.changes.registry import change
from benchmarks.unlisted.changes.words import BY_ROW, LAST_ROW, MOVES, head, places, position

SCORES, WEIGHTS, MIXED = "block.0.attn.scores", "block.0.attn.weights", "block.0.attn.mixed"


@change(
    "slot 7 of the cache holds the key of 6",
    SCORES,
    "llama gpt2",
    rf"{position(7)}.*\b6\b",
    rf"{position(6)}.*\b7\b",
    r"columns? 7.*\b6\b|columns? 6.*\b7\b",
    where=r"(keys?|columns?|slots?) 7\b",
)
def stale_key(port: Port) -> None:
    before(port, "scores", lambda q, k: (q, with_row(k, 7, k[:, 6])))


@change(
    "slot 4 of the cache is empty in block 1",
    "block.1.attn.scores",
    "qwen gpt_neox",
    r"(keys?|columns?|slots?|positions?) 4.*(\b0\b|zero|empty)",
    r"(\b0\b|zeros?|empty).*(keys?|columns?|slots?|positions?) 4\b",
    where=r"(keys?|columns?|slots?) 4\b",
)
def empty_slot(port: Port) -> None:
    before(port, "scores", lambda q, k: (q, with_row(k, 4, 0.0)), 1)


@change(
    "values shifted by one position",
    MIXED,
    "llama gpt_neox",
    rf"(value|\bv\b|row|position|key).*({MOVES}|−1|- ?1)",
)
def values_shifted(port: Port) -> None:
    before(port, "mixed", lambda w, v: (w, v.roll(1, 1)))


@change(
    "block 1 attends to the values of block 0",
    "block.1.attn.mixed",
    "llama",
    r"block\.0\.attn\.v",
    r"(values?|\bv\b).*(block|layer) (0|before)",
    r"(block|layer) (0|before).*(values?|\bv\b)",
)
def values_of_block_before(port: Port) -> None:
    before(port, "mixed", lambda w, v: (w, port.spread(port.kept["block.0.attn.v"])), 1)


@change(
    "softmax in base 2",
    WEIGHTS,
    "gpt2 llama",
    r"base 2|exp2|2\^|powers of 2",
    "{0.693147}",
    "{1.442695}",
)
def softmax_base_2(port: Port) -> None:
    before(port, "shares", lambda s: (s * log(2),))


@change(
    "softmax at temperature 1.5, block 2", "block.2.attn.weights", "gpt_neox", "{1.5}", "{0.666667}"
)
def softmax_temperature(port: Port) -> None:
    before(port, "shares", lambda s: (s / 1.5,), 2)


@change(
    "weights below 0.02 set to 0, not renormalised",
    WEIGHTS,
    "llama gpt2",
    r"{0.02}",
    r"(small|below|less|under|least).*(zero|\b0\b)",
    r"(zeros?|\b0\b).*(small|below|less|under)",
    where=r"(are|is|become|read) (0|zero)\b",
)
def weights_pruned(port: Port) -> None:
    after(port, "attn.weights", lambda w: w.where(w >= 0.02, torch.zeros_like(w)))


@change(
    "weights rounded to 2 decimals",
    WEIGHTS,
    "qwen gpt2",
    r"(2|two) decimals",
    "{0.01}",
    r"1/100|{100}",
)
def weights_in_percent(port: Port) -> None:
    after(port, "attn.weights", lambda w: (w * 100).round() / 100)


@change(
    "q of heads 0 and 3 exchanged",
    "block.0.attn.q",
    "gpt2 llama",
    places(0, 3)[0],
    where=r"heads? .*\b0\b.*\b3\b",
)
def q_heads_exchanged(port: Port) -> None:
    after(port, "attn.q", lambda q: exchanged(q, 0, 3, 0))


@change(
    "results of heads 1 and 2 exchanged, block 1",
    "block.1.attn.mixed",
    "gpt_neox qwen",
    places(1, 2)[0],
    where=r"heads? .*\b1\b.*\b2\b",
)
def mixed_heads_exchanged(port: Port) -> None:
    after(port, "attn.mixed", lambda m: exchanged(m, 1, 2, 0), [1])


@change(
    "heads rotated by one",
    MIXED,
    "gpt2 gpt_neox",
    r"heads?.*(roll|rotat|shift|moved|next|before|previous|cycl|one (on|back|further))",
    r"(roll|rotat|shift|moved|cycl).*heads?",
    r"head 0.*head (1|3|5)\b",
)
def heads_rotated(port: Port) -> None:
    after(port, "attn.mixed", lambda m: m.roll(1, 0))


@change(
    "heads in reverse order",
    MIXED,
    "qwen",
    r"heads?.*(revers|backward|mirror|last to first)|(revers|backward).*heads?",
    r"head 0.*\b7\b",
)
def heads_reversed(port: Port) -> None:
    after(port, "attn.mixed", lambda m: m.flip(0))


@change(
    "head 2 gives 0 in block 1",
    "block.1.attn.mixed",
    "llama gpt2",
    rf"{head(2)}.*(\b0\b|zero|missing|nothing|left out)",
    rf"(\b0\b|zeros?|missing|without|left out).*{head(2)}",
    where=head(2),
)
def head_gives_zero(port: Port) -> None:
    after(port, "attn.mixed", lambda m: with_row(m, 2, 0.0, 0), [1])


@change(
    "head 3 gives 1.25 times its result, block 0",
    MIXED,
    "gpt_neox qwen",
    rf"{head(3)}.*{{1.25}}",
    rf"{{1.25}}.*{head(3)}",
    where=head(3),
)
def head_scaled(port: Port) -> None:
    after(port, "attn.mixed", lambda m: with_row(m, 3, m[3] * 1.25, 0), [0])


@change(
    "query head 3 reads key head 1",
    SCORES,
    "llama qwen",
    rf"{head(3)}.*(kv|key).*\b1\b",
    rf"(kv|key) head 1.*{head(3)}",
    r"\b3\b.*(kv|key).?heads? 1\b",
    where=head(3),
)
def key_head_of_one(port: Port) -> None:
    before(port, "scores", lambda q, k: (q, with_row(k, 3, k[4], 0)))


@change(
    "value heads 0 and 1 exchanged",
    MIXED,
    "llama",
    r"(value|\bv\b|kv).*(exchang|swap|change places|revers|other)",
    r"(value|\bv\b|kv).*\b0\b.*\b1\b",
    r"(exchang|swap|change places).*(value|\bv\b|kv)",
    r"heads? (0|4).*\b(0|4)\b",
)
def value_heads_exchanged(port: Port) -> None:
    before(port, "mixed", lambda w, v: (w, v.roll(port.heads // 2, 0)))


@change(
    "scores of head 2 not scaled",
    SCORES,
    "qwen gpt_neox",
    rf"{head(2)}.*({{4}}|{{5.65685}}|scale)",
    rf"({{4}}|{{5.65685}}|scale).*{head(2)}",
    where=head(2),
)
def head_not_scaled(port: Port) -> None:
    after(port, "attn.scores", lambda s: with_row(s, 2, s[2] / port.scale, 0))


@change(
    "scores without the last entry of each head",
    SCORES,
    "llama",
    r"(last|15).*(entry|channel|dimension|component|element)",
    r"(entry|channel|dimension|component|element)s?.*\b15\b",
    r"first 15",
)
def last_entry_unread(port: Port) -> None:
    before(port, "scores", lambda q, k: (with_row(q, -1, 0.0, -1), k))


@change(
    "q scaled to length 4 before the scores",
    SCORES,
    "gpt2",
    r"\bq\b.*(length|normali|unit|norm\b)",
    r"(length|normali|unit|cosine).*\bq\b",
    r"cosine",
    BY_ROW,
)
def q_of_equal_length(port: Port) -> None:
    before(port, "scores", lambda q, k: (4 * q / q.norm(dim=-1, keepdim=True), k))


@change(
    "weights not divided by their sum",
    WEIGHTS,
    "qwen",
    r"not (divided|normali)|unnormali|without.*(sum|divi|denominator)|numerator",
    BY_ROW,
    r"(sum|add up) to|sums? (is|are)",
)
def not_normalised(port: Port) -> None:
    inside(port, None, "shares", lambda usual: lambda s: (s - s.amax(-1, keepdim=True)).exp())


@change(
    "v averaged over the key heads",
    MIXED,
    "qwen",
    r"(mean|average).*(head|\bv\b|value)",
    r"(head|\bv\b|value).*(mean|average)",
)
def values_averaged(port: Port) -> None:
    before(port, "mixed", lambda w, v: (w, v.mean(0, keepdim=True).expand_as(v)))


@change(
    "the last query is that of the position before",
    SCORES,
    "gpt_neox llama",
    r"(15|last).*(14|before|previous)",
    where=LAST_ROW,
)
def last_query_stale(port: Port) -> None:
    before(port, "scores", lambda q, k: (with_row(q, -1, q[:, -2]), k))


@change("dropout of v with p = 0.37", MIXED, "llama", r"drop", "{0.37}", "{1.5873}")
def values_dropped(port: Port) -> None:
    chance = of_text(port, 1)
    before(
        port, "mixed", lambda w, v: (w, v * (torch.rand(v.shape, generator=chance) >= 0.37) / 0.63)
    )


@change(
    "noise of 0.1% in the scores of block 1",
    "block.1.attn.scores",
    "gpt2",
    r"noise|random|no (pattern|structure|order)|unstructured|irregular",
    formats=("float32",),
)
def noisy_scores(port: Port) -> None:
    chance = of_text(port, 2)
    after(
        port, "attn.scores", lambda s: s * (1 + 1e-3 * torch.randn(s.shape, generator=chance)), [1]
    )


@change("weights read transposed in head 1", MIXED, "gpt2", r"transpos", where=head(1))
def weights_transposed(port: Port) -> None:
    before(port, "mixed", lambda w, v: (with_row(w, 1, w[1].T, 0), v))


@change(
    "weights of block 1 are the mean over heads",
    "block.1.attn.weights",
    "llama",
    r"(mean|average).*heads?|heads?.*(mean|average|same|alike|equal)",
)
def weights_averaged(port: Port) -> None:
    after(port, "attn.weights", lambda w: w.mean(0, keepdim=True).expand_as(w), [1])


@change(
    "head 4 gives half its result, block 1",
    "block.1.attn.mixed",
    "llama gpt2",
    rf"{head(4)}.*({{0.5}}|half)",
    rf"({{0.5}}|half).*{head(4)}",
    where=head(4),
)
def head_halved(port: Port) -> None:
    after(port, "attn.mixed", lambda m: with_row(m, 4, m[4] / 2, 0), [1])
