"""A port of `minigpt` to NumPy that has a bug: `python docs/examples/port.py port.npz` dumps it.

Everything is float32, as ports are.  The model's GELU is the exact one, with erf; this port has the
tanh formula of GPT-2 instead.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from byhand.models import open_model

HEADS, WIDTH = 4, 16
MODEL = open_model("minigpt")
WEIGHTS = {name: np.float32(tensor.data) for name, tensor in MODEL.weights.items()}
DUMP: dict[str, Any] = {}


def norm(x: Any, name: str) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    out = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(1e-5))
    DUMP[name + ".out"] = out * WEIGHTS[name + ".gain"] + WEIGHTS[name + ".bias"]
    return DUMP[name + ".out"]


def heads(x: Any) -> Any:  # (pos, d) → (head, pos, width)
    return x.reshape(len(x), HEADS, WIDTH).swapaxes(0, 1)


def rotate(x: Any) -> Any:
    half = WIDTH // 2
    angle = np.arange(x.shape[1])[:, None] * 10_000.0 ** -(np.arange(half) / half)
    cos, sin = np.float32(np.cos(angle)), np.float32(np.sin(angle))
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def attention(x: Any, at: str) -> Any:
    q, k, v = (heads(x @ WEIGHTS[f"{at}.{name}"]) for name in "qkv")
    DUMP[f"{at}.q_rotated"], DUMP[f"{at}.k_rotated"] = rotate(q), rotate(k)
    scores = rotate(q) @ rotate(k).swapaxes(1, 2) / np.float32(np.sqrt(WIDTH))
    scores[:, np.triu(np.ones(scores.shape[1:], dtype=bool), 1)] = -np.inf
    exp = np.exp(scores - scores.max(-1, keepdims=True))
    DUMP[f"{at}.weights"] = exp / exp.sum(-1, keepdims=True)
    mixed = (DUMP[f"{at}.weights"] @ v).swapaxes(0, 1).reshape(x.shape)
    DUMP[f"{at}.out"] = mixed @ WEIGHTS[f"{at}.out"]
    return DUMP[f"{at}.out"]


def gelu(x: Any) -> Any:
    inner = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x**3)
    return np.float32(0.5) * x * (1 + np.tanh(inner))


def mlp(x: Any, at: str) -> Any:
    DUMP[f"{at}.hidden"] = x @ WEIGHTS[f"{at}.hidden"] + WEIGHTS[f"{at}.hidden_bias"]
    DUMP[f"{at}.act"] = gelu(DUMP[f"{at}.hidden"])
    DUMP[f"{at}.out"] = DUMP[f"{at}.act"] @ WEIGHTS[f"{at}.out"] + WEIGHTS[f"{at}.out_bias"]
    return DUMP[f"{at}.out"]


def run(tokens: Any) -> dict[str, Any]:
    DUMP["tokens"] = np.array(tokens)
    x = WEIGHTS["embed.token"][DUMP["tokens"]]
    for layer in range(2):
        block = f"block.{layer}"
        x = x + attention(norm(x, f"{block}.attn.norm"), f"{block}.attn")
        x = x + mlp(norm(x, f"{block}.mlp.norm"), f"{block}.mlp")
        DUMP[f"stream.{layer + 1}"] = x
    DUMP["logits"] = norm(x, "final.norm") @ WEIGHTS["embed.token"].T
    return DUMP


if __name__ == "__main__":
    np.savez(sys.argv[1], **run(MODEL.vocabulary.encode("<en> yesterday she climb -ed =")))
