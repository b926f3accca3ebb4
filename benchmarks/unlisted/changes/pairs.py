"""Two changes at once: in different lines, in one line, in every block and in one block more."""

from __future__ import annotations

from benchmarks.unlisted.changes.registry import pair

# in different lines, both in every block or both in one
pair("scores-times-09", "out-halved", "gpt2 llama")
pair("softmax-base-2", "head-gives-zero", "llama")
pair("eps-tripled", "residual-halved", "llama")
pair("window-of-5", "quick-gelu-17", "gpt_neox")
pair("one-sign", "rows-exchanged", "gpt2 llama")
pair("positions-doubled", "silu-beta", "llama")
pair("embedding-cut", "gate-up-interleaved", "qwen")
pair("token-type-added", "logits-tempered", "llama")
pair("lora-rank-1", "tokens-exchanged", "gpt2")
pair("gain-entry-one", "update-subtracted", "llama")
pair("q-heads-exchanged", "residual-halved", "gpt2")
pair("stale-key", "row-repeated", "gpt2")
pair("heads-rotated", "hidden-bias-subtracted", "gpt2 gpt_neox")
pair("positions-restart", "last-row-stale", "llama")
pair("norm-bias-subtracted", "sum-over-root-2", "gpt_neox")
pair("one-zero", "mixed-heads-exchanged", "qwen")

# the same in every block, and another one in one block
pair("scores-over-root-17", "head-gives-zero", "gpt2")
pair("gain-squared", "rows-exchanged-in-stream", "llama")
pair("silu-beta", "one-sign", "llama")
pair("layer-scale", "outlier-clipped", "gpt_neox")
pair("relu-squared", "lora-rank-4", "gpt_neox")
pair("slope", "values-of-block-before", "llama")
pair("out-halved", "column-of-another-layer", "llama")
pair("gain-moved", "int4-groups", "gpt_neox")
pair("yarn-magnitude", "last-row-stale", "llama")
pair("residual-halved", "update-shifted", "gpt2")
pair("q-permuted", "empty-slot", "qwen")

# in one line
pair("head-gives-zero", "head-halved", "llama gpt2")
pair("scores-times-09", "stale-key", "llama")
pair("scores-over-root-17", "first-key-masked", "gpt2")
pair("softmax-plus-one", "softmax-base-2", "llama")
pair("gain-squared", "norm-bias-moved", "gpt2")
pair("out-halved", "last-row-zero", "llama")
pair("one-sign", "row-of-another-layer", "gpt2")
pair("rows-exchanged", "one-input-zero", "llama")
pair("logits-tempered", "token-forbidden", "gpt2")
pair("logits-centered", "tokens-exchanged", "llama")
pair("residual-halved", "layer-scale-by-channel", "gpt2")
pair("silu-beta", "activation-clamped", "llama")
pair("row-repeated", "bias-entry-zero", "gpt2")
pair("positions-halved", "positions-exchanged", "gpt2")
pair("eps-tripled", "crude-factor", "gpt2")
pair("embedding-channel-negated", "first-token-doubled", "llama")
pair("out-bias-twice", "tail-not-written", "gpt2")
