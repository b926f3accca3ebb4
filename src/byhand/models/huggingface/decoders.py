"""The decoders without experts: the reader of each model_type."""

from __future__ import annotations

from byhand.models.huggingface import gpt2, gpt_neox, llama
from byhand.models.huggingface.family import Family

DECODERS: dict[str, Family] = {
    "gpt2": Family("gpt2", gpt2.read),
    "llama": Family("llama", llama.read_llama),
    "mistral": Family("llama", llama.read_mistral),
    "qwen2": Family("llama", llama.read_qwen2),
    "qwen3": Family("llama", llama.read_qwen3),
    "gpt_neox": Family("gpt_neox", gpt_neox.read),
}
