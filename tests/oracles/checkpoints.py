"""Checkpoints made by the transformers library, and the same passes again in torch float64.

`saved` writes a small random model to a folder.  `gpt2`, `llama` and `gpt_neox` compute its
streams and logits straight from the library's own state dict, so that the reader's names and
layouts are checked by code that shares nothing with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
import transformers
from torch import Tensor

torch.set_num_threads(1)

CONFIGS: dict[str, type[Any]] = {
    "gpt2": transformers.GPT2Config,
    "llama": transformers.LlamaConfig,
    "mistral": transformers.MistralConfig,
    "qwen2": transformers.Qwen2Config,
    "qwen3": transformers.Qwen3Config,
    "gpt_neox": transformers.GPTNeoXConfig,
}
State = Mapping[str, Tensor]


@dataclass(frozen=True)
class Found:
    """Streams before block 0, after it, …, after the last; the final norm's result; the logits."""

    streams: list[Tensor]
    normed: Tensor
    logits: Tensor


def random_model(kind: str, seed: int = 0, **settings: Any) -> Any:
    """A model of this kind with random weights, gains and biases, in float64 and in eval mode."""
    config = CONFIGS[kind](**settings)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config).double().eval()
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            drawn = torch.randn(weight.shape, generator=noise, dtype=torch.float64)
            gain = weight.ndim == 1 and name.endswith("weight")
            weight.copy_(1 + drawn / 4 if gain else drawn / math.sqrt(max(weight.shape[-1], 4)))
    return model


def saved(model: Any, folder: Path, dtype: torch.dtype = torch.float64, **how: Any) -> Path:
    """The model's folder; its weights are rounded to the dtype first, in place."""
    model.to(dtype)
    model.config.dtype = dtype
    model.save_pretrained(folder, **how)
    model.double()
    return folder


def library(model: Any, ids: list[int]) -> Found:
    """What the transformers library computes."""
    with torch.no_grad():
        out = model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
    hidden = [x[0] for x in out.hidden_states]
    return Found(hidden[:-1], hidden[-1], out.logits[0])


# ------------------------------------------------------------------ the same by hand


def heads_of(x: Tensor, count: int) -> Tensor:
    """(length, count·width) → (count, length, width)"""
    return x.reshape(len(x), count, -1).transpose(0, 1)


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, window: int | None = None) -> Tensor:
    """(heads, length, width), causal → (length, heads·width)"""
    groups = len(q) // len(k)
    k, v = k.repeat_interleave(groups, 0), v.repeat_interleave(groups, 0)
    place = torch.arange(q.shape[1])
    seen = place[None, :] <= place[:, None]
    if window is not None:
        seen &= place[None, :] > place[:, None] - window
    scores = (q @ k.transpose(1, 2) * scale).masked_fill(~seen, -math.inf)
    return (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)


def turned(x: Tensor, rates: Tensor) -> Tensor:
    """The first 2·len(rates) entries of each head, entry i paired with i + len(rates)."""
    angles = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * rates
    n = len(rates)
    a, b, rest = x[..., :n], x[..., n : 2 * n], x[..., 2 * n :]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((a * cos - b * sin, a * sin + b * cos, rest), -1)


def rates_of(width: int, rope: Mapping[str, Any]) -> Tensor:
    """The angle a position of each pair, in float64."""
    rates: list[float] = []
    for pair in range(width // 2):
        rate = float(rope["rope_theta"]) ** (-2 * pair / width)
        factor = rope.get("factor", 1.0)
        match rope.get("rope_type", "default"):
            case "linear":
                rate /= factor
            case "llama3":
                low, high = rope["low_freq_factor"], rope["high_freq_factor"]
                turns = rope["original_max_position_embeddings"] * rate / (2 * math.pi)
                share = min(1.0, max(0.0, (turns - low) / (high - low)))
                rate = rate * (share + (1 - share) / factor)
        rates.append(rate)
    return torch.tensor(rates, dtype=torch.float64)


def bend(kind: str) -> Callable[[Tensor], Tensor]:
    match kind:
        case "gelu_new" | "gelu_pytorch_tanh":
            return lambda x: F.gelu(x, approximate="tanh")
        case "gelu":
            return F.gelu
        case "relu":
            return F.relu
        case "silu":
            return F.silu
    raise ValueError(kind)


def rms(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * gain


def gpt2(config: Any, state: State, ids: list[int]) -> Found:
    def norm(x: Tensor, at: str) -> Tensor:
        return F.layer_norm(
            x, x.shape[-1:], state[at + ".weight"], state[at + ".bias"], config.layer_norm_epsilon
        )

    def conv(x: Tensor, at: str) -> Tensor:
        return x @ state[at + ".weight"] + state[at + ".bias"]

    x = state["transformer.wte.weight"][ids] + state["transformer.wpe.weight"][: len(ids)]
    streams, width = [x], config.n_embd // config.n_head
    for layer in range(config.n_layer):
        at = f"transformer.h.{layer}."
        packed = conv(norm(x, at + "ln_1"), at + "attn.c_attn")
        q, k, v = (heads_of(part, config.n_head) for part in packed.chunk(3, -1))
        scale = 1 / math.sqrt(width) if config.scale_attn_weights else 1.0
        scale /= layer + 1 if config.scale_attn_by_inverse_layer_idx else 1
        x = x + conv(attend(q, k, v, scale), at + "attn.c_proj")
        hidden = bend(config.activation_function)(conv(norm(x, at + "ln_2"), at + "mlp.c_fc"))
        x = x + conv(hidden, at + "mlp.c_proj")
        streams.append(x)
    normed = norm(x, "transformer.ln_f")
    return Found(streams, normed, normed @ state["lm_head.weight"].T)


def llama(config: Any, state: State, ids: list[int]) -> Found:
    """llama, mistral, qwen2, qwen3."""

    def dense(x: Tensor, at: str) -> Tensor:
        return F.linear(x, state[at + ".weight"], state.get(at + ".bias"))

    eps = config.rms_norm_eps
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    rates = rates_of(width, config.rope_parameters)
    windows = [getattr(config, "sliding_window", None)] * config.num_hidden_layers
    if types := getattr(config, "layer_types", None):
        windows = [
            window if kind == "sliding_attention" else None
            for window, kind in zip(windows, types, strict=True)
        ]
    x = state["model.embed_tokens.weight"][ids]
    streams = [x]
    for layer in range(config.num_hidden_layers):
        at = f"model.layers.{layer}."
        read = rms(x, state[at + "input_layernorm.weight"], eps)
        q = heads_of(dense(read, at + "self_attn.q_proj"), config.num_attention_heads)
        k = heads_of(dense(read, at + "self_attn.k_proj"), config.num_key_value_heads)
        v = heads_of(dense(read, at + "self_attn.v_proj"), config.num_key_value_heads)
        if at + "self_attn.q_norm.weight" in state:
            q = rms(q, state[at + "self_attn.q_norm.weight"], eps)
            k = rms(k, state[at + "self_attn.k_norm.weight"], eps)
        mixed = attend(turned(q, rates), turned(k, rates), v, 1 / math.sqrt(width), windows[layer])
        x = x + dense(mixed, at + "self_attn.o_proj")
        read = rms(x, state[at + "post_attention_layernorm.weight"], eps)
        gate = bend(config.hidden_act)(dense(read, at + "mlp.gate_proj"))
        x = x + dense(gate * dense(read, at + "mlp.up_proj"), at + "mlp.down_proj")
        streams.append(x)
    normed = rms(x, state["model.norm.weight"], eps)
    return Found(streams, normed, normed @ state["lm_head.weight"].T)


def gpt_neox(config: Any, state: State, ids: list[int]) -> Found:
    def norm(x: Tensor, at: str) -> Tensor:
        return F.layer_norm(
            x, x.shape[-1:], state[at + ".weight"], state[at + ".bias"], config.layer_norm_eps
        )

    def dense(x: Tensor, at: str) -> Tensor:
        return F.linear(x, state[at + ".weight"], state.get(at + ".bias"))

    width = config.hidden_size // config.num_attention_heads
    part = int(width * config.rope_parameters["partial_rotary_factor"])
    rates = rates_of(part, config.rope_parameters)
    x = state["gpt_neox.embed_in.weight"][ids]
    streams = [x]
    for layer in range(config.num_hidden_layers):
        at = f"gpt_neox.layers.{layer}."
        packed = dense(norm(x, at + "input_layernorm"), at + "attention.query_key_value")
        q, k, v = heads_of(packed, config.num_attention_heads).chunk(3, -1)
        mixed = attend(turned(q, rates), turned(k, rates), v, 1 / math.sqrt(width))
        attended = dense(mixed, at + "attention.dense")
        middle = x if config.use_parallel_residual else x + attended
        read = norm(middle, at + "post_attention_layernorm")
        hidden = bend(config.hidden_act)(dense(read, at + "mlp.dense_h_to_4h"))
        x = x + attended + dense(hidden, at + "mlp.dense_4h_to_h")
        streams.append(x)
    normed = norm(x, "gpt_neox.final_layer_norm")
    return Found(streams, normed, normed @ state["lm_head.weight"].T)


def by_hand(model: Any, ids: list[int]) -> Found:
    """The pass in float64 throughout, from the library's state dict."""
    oracle = {"gpt2": gpt2, "gpt_neox": gpt_neox}.get(model.config.model_type, llama)
    return oracle(model.config, model.state_dict(), ids)
