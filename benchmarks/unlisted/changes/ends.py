"""Changes at the two ends: embeddings, logits, probabilities."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.planted.port import Port
from benchmarks.unlisted.changes.handles import after, exchanged, fixed, of_text, with_row
from benchmarks.unlisted.changes.registry import change
from benchmarks.unlisted.changes.words import (
    BY_ROW,
    COLUMN_SHIFT,
    FIRST_ROW,
    LAST_ROW,
    ROW_SHIFT,
    TWICE,
    channel,
    places,
)

EMBED = "embed.token"


@change("logits divided by a temperature of 0.8", "logits", "llama gpt2", "{1.25}", "{0.8}")
def logits_tempered(port: Port) -> None:
    after(port, "logits", lambda x: x / 0.8)


@change("logits capped: 4·tanh(x/4)", "logits", "gpt_neox qwen", r"(cap|tanh).*{4}|{4}.*(cap|tanh)")
def logits_capped(port: Port) -> None:
    after(port, "logits", lambda x: 4 * torch.tanh(x / 4))


@change(
    "2 added to five tokens' logits",
    "logits",
    "llama gpt2",
    r"{2}.*(tokens?|columns?)|(tokens?|columns?).*{2}",
    r"the same row is added at all positions.*{4.472}",
    where=r"(tokens?|columns?).*\b10\b.*\b(11|14)\b",
)
def tokens_favoured(port: Port) -> None:
    after(port, "logits", lambda x: torch.cat((x[:, :10], x[:, 10:15] + 2, x[:, 15:]), -1))


@change(
    "one token's logit is −30",
    "logits",
    "gpt2 gpt_neox",
    r"(token|column|entry|channel|logit)s? (only )?17\b.*{-30}|{-30}.*17\b",
    where=r"(token|column|entry|channel|logit)s? (only )?17\b|,17\]",
)
def token_forbidden(port: Port) -> None:
    after(port, "logits", lambda x: with_row(x, 17, -30.0, -1))


@change("the mean of the logits taken off", "logits", "qwen llama", r"mean|center", where=ROW_SHIFT)
def logits_centered(port: Port) -> None:
    after(port, "logits", lambda x: x - x.mean(-1, keepdim=True))


@change(
    "the last 16 columns of the vocabulary are 0 (padding)",
    "logits",
    "llama gpt_neox",
    r"last (16|sixteen).*(\b0\b|zero)|{384}.*{399}.*(\b0\b|zero)|(\b0\b|zeros?).*{384}.*{399}",
    where=r"{384}.*{399}|last (16|sixteen)",
)
def vocabulary_padded(port: Port) -> None:
    after(port, "logits", lambda x: torch.cat((x[:, :-16], torch.zeros_like(x[:, -16:])), -1))


@change(
    "log-probabilities for logits",
    "logits",
    "gpt2 qwen",
    r"log.?prob|log.?softmax|logsumexp|log.?sum|normali",
    where=ROW_SHIFT,
)
def log_probabilities(port: Port) -> None:
    after(port, "logits", lambda x: x.log_softmax(-1))


@change(
    "repetition penalty 1.2 on the tokens of the text",
    "logits",
    "llama",
    r"{1.2}|repet|{0.833333}",
    where=r"(tokens|columns).*(of|in) the text",
)
def repetition_penalty(port: Port) -> None:
    def turn(x: Tensor) -> Tensor:
        seen = torch.zeros(x.shape[-1], dtype=torch.bool)
        seen[port.ids] = True
        return torch.where(seen, torch.where(x > 0, x / 1.2, x * 1.2), x)

    after(port, "logits", turn)


@change(
    "columns of the logits moved by one",
    "logits",
    "gpt_neox gpt2",
    r"(columns?|tokens?|rows?|vocabulary|id).*(shift|roll|moved|next|one|1\b)",
    r"(shift|roll|moved).*(columns?|tokens?|one|1\b)",
)
def columns_moved(port: Port) -> None:
    after(port, "logits", lambda x: x.roll(1, -1))


@change(
    "two tokens exchanged in the head",
    "logits",
    "llama gpt2",
    places(50, 60)[0],
    where=places(50, 60)[1],
)
def tokens_exchanged(port: Port) -> None:
    after(port, "logits", lambda x: exchanged(x, 50, 60, -1))


@change(
    "logits of the last position everywhere",
    "logits",
    "qwen",
    r"(15|last).*(every|all|each|repeat)|(every|all|each).*(15|last)|rows? .*same|same.*rows?",
)
def last_logits_everywhere(port: Port) -> None:
    after(port, "logits", lambda x: x[-1:].expand_as(x))


@change(
    "the last position's logits from block 1's stream",
    "logits",
    "llama",
    r"(15|last).*(block\.1|earlier|older|norm)",
    where=LAST_ROW,
)
def last_logits_from_block_1(port: Port) -> None:
    usual = port.unembedded

    def unembedded(x: Tensor) -> None:
        usual(with_row(x, -1, port.kept["block.1.mlp.add"][-1]))

    port.instead(unembedded=unembedded)


@change(
    "half of the channels read by the head",
    "logits",
    "gpt2 gpt_neox",
    r"half|first ({48}|{64})|({48}|{64}).*(channels|inputs|entries)",
    r"(channels|inputs|entries).*({48}|{47}|{64}|{63})",
)
def head_reads_half(port: Port) -> None:
    usual = port.unembedded

    def unembedded(x: Tensor) -> None:
        a, b = x.chunk(2, -1)
        usual(torch.cat((a, torch.zeros_like(b)), -1))

    port.instead(unembedded=unembedded)


@change(
    "head bias twice",
    "logits",
    "gpt_neox",
    f"bias.*{TWICE}",
    f"{TWICE}.*bias",
)
def head_bias_twice(port: Port) -> None:
    after(port, "logits", lambda x: x + port.w["head_bias"])


@change("dropout of the last hidden state, p = 0.37", "logits", "gpt2", r"drop|{0.37}|{1.5873}")
def last_hidden_dropped(port: Port) -> None:
    usual, chance = port.unembedded, of_text(port, 6)

    def unembedded(x: Tensor) -> None:
        usual(x * (torch.rand(x.shape, generator=chance) >= 0.37) / 0.63)

    port.instead(unembedded=unembedded)


@change(
    "probabilities of the 50 likeliest alone",
    "probs",
    "llama gpt2",
    r"\b50\b|\btop\b|largest|likeliest",
    where=r"(\b0\b|zero)",
)
def top_50(port: Port) -> None:
    def turn(probs: Tensor) -> Tensor:
        limit = probs.topk(50, -1).values[:, -1:]
        kept = probs.where(probs >= limit, torch.zeros_like(probs))
        return kept / kept.sum(-1, keepdim=True)

    after(port, "probs", turn)


@change("probabilities at temperature 0.7", "probs", "qwen gpt_neox", "{0.7}", "{1.428571}")
def probs_tempered(port: Port) -> None:
    after(port, "probs", lambda p: p ** (1 / 0.7) / (p ** (1 / 0.7)).sum(-1, keepdim=True))


@change("ids above 200 read as 200", EMBED, "llama gpt2", r"{200}|{201}")
def ids_clamped(port: Port) -> None:
    port.ids = port.ids.clamp(max=200)


@change(
    "the first token replaced by token 0",
    EMBED,
    "gpt_neox qwen",
    r"(row|position) 0.*(token|id|row|embed\.token\[?) ?0|token 0",
    where=FIRST_ROW,
)
def first_token_replaced(port: Port) -> None:
    port.ids = torch.cat((torch.zeros(1, dtype=port.ids.dtype), port.ids[1:]))


@change(
    "rows of two tokens exchanged in the embedding",
    EMBED,
    "gpt2 llama",
    places(3, 6)[0],
    r"position 3 has row <6>|row <3>.*(places|exchang|swap)",
    where=r"(rows|positions) (3|6)\b",
)
def embedding_rows_exchanged(port: Port) -> None:
    port.ids = exchanged(port.ids, 3, 6, 0)


@change(
    "rows of the embedding cut to length 3", EMBED, "qwen llama", r"length|norm\b|{3}", where=BY_ROW
)
def embedding_cut(port: Port) -> None:
    after(port, EMBED, lambda x: x * (3 / x.norm(dim=-1, keepdim=True)).clamp(max=1))


@change(
    "a token-type row added to every embedding",
    EMBED,
    "gpt_neox llama",
    COLUMN_SHIFT,
    r"(same|one|constant) (vector|row)|rank.{1,12}1\b",
)
def token_type_added(port: Port) -> None:
    row = (0.2 * torch.randn(port.d_model, generator=fixed(11))).to(port.dtype)
    after(port, EMBED, lambda x: x + row)


@change(
    "positions added twice",
    "stream.0",
    "gpt2",
    r"(embed\.position|positions?).*(twice|again|{2}|doubl|more)",
    r"(twice|again|{2}|doubl|more).*(embed\.position|positions?)",
)
def positions_twice(port: Port) -> None:
    after(port, "stream.0", lambda x: x + port.kept["embed.position"])


@change(
    "sum of embedding and position halved", "stream.0", "gpt2", "{0.5}", r"\bhalf\b|halved|mean of"
)
def sum_halved(port: Port) -> None:
    after(port, "stream.0", lambda x: x / 2)


@change(
    "every token read as the one before it",
    EMBED,
    "gpt2",
    r"shift|roll|moved|previous|(row|position|token).*before|off by one|next (row|position)",
    r"position 1 has row <0>.*position 2 has row <1>.*position 3 has row <2>|1 ← 0, 2 ← 1, 3 ← 2",
)
def tokens_shifted(port: Port) -> None:
    port.ids = torch.cat((port.ids[:1], port.ids[:-1]))


@change(
    "one channel of the embedding negated",
    EMBED,
    "llama gpt_neox",
    rf"({channel(60)}).*(sign|negat|−|minus|{{-1}})|(sign|negat|minus|{{-1}}).*({channel(60)})",
    where=channel(60),
)
def embedding_channel_negated(port: Port) -> None:
    after(port, EMBED, lambda x: with_row(x, 60, -x[:, 60], -1))


@change(
    "next tokens of the second largest logit",
    "next",
    "gpt2",
    r"second|2nd|2\. largest|not the largest",
)
def second_best(port: Port) -> None:
    after(port, "next", lambda _ids: port.kept["logits"].topk(2, -1).indices[:, 1])


@change(
    "the first token's embedding doubled",
    EMBED,
    "llama gpt2",
    r"(row|position|token) 0.*({2}|twice|doubl)",
    r"({2}|twice|doubled).*(row|position|token) 0|first.*({2}|twice|doubl)",
    where=FIRST_ROW,
)
def first_token_doubled(port: Port) -> None:
    after(port, EMBED, lambda x: with_row(x, 0, 2 * x[0]))
