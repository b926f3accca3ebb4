"""A model of GPT-2-small's shape, trained on the card for some minutes on text that is given.

`train(folder, text, seconds)` reads the files below `text`, learns a vocabulary of 8,192 pieces of
bytes, trains in bfloat16 with float32 weights, and writes weights.npz and a held-out text as ids.
Needs torch and tokenizers.  `benchmarks.gpu` certifies the result.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.large import EPS, Size, gpt2
from byhand.model import Model
from byhand.parameters import parameters
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights

VOCAB, CONTEXT = 8192, 1024
SPEC = gpt2(Size(vocab=VOCAB, context=CONTEXT))
BATCH, MOST_TEXT = 32, 40_000_000  # texts a step; bytes of text
RATE, WARM, HELD_OUT = 6e-4, 100, 1 << 17  # ids that are not trained on


def texts_below(folder: Path, ends: str = ".py") -> Iterator[str]:
    """The texts of the files, in the order of a fixed shuffle, MOST_TEXT bytes of them."""
    paths = sorted(folder.rglob(f"*{ends}"))
    np.random.default_rng(0).shuffle(paths)  # type: ignore[arg-type]
    size = 0
    for path in paths:
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        size += len(text)
        yield text
        if size > MOST_TEXT:
            return


def ids_of(texts: list[str]) -> Any:
    """All texts as ids of a vocabulary that is learned from them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=["<end>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts[: len(texts) // 4 + 1], trainer)
    rows = tokenizer.encode_batch_fast([text + "<end>" for text in texts])
    return np.concatenate([np.array(row.ids, dtype=np.int32) for row in rows])


def fresh(device: str) -> dict[str, Any]:
    """Weights as GPT-2 begins."""
    torch.manual_seed(0)
    made = {}
    for parameter in parameters(SPEC):
        if parameter.kind == "matrix":
            std = 0.02
            if parameter.name.endswith((".attn.out", ".mlp.out")):
                std /= math.sqrt(2 * len(SPEC.blocks))
            data = torch.randn(parameter.shape, device=device) * std
        else:
            data = torch.zeros(parameter.shape, device=device) + float(parameter.kind == "gain")
        made[parameter.name] = data.requires_grad_()
    return made


def logits_of(w: dict[str, Any], ids: Any) -> Any:
    """(batch, position, vocabulary)."""

    def norm(x: Any, at: str) -> Any:
        gain, bias = w[f"{at}.norm.gain"], w[f"{at}.norm.bias"]
        return functional.layer_norm(x, (SPEC.d_model,), gain, bias, float(EPS))

    def linear(x: Any, name: str) -> Any:
        return x @ w[name] + w[f"{name}_bias"]

    batch, length = ids.shape
    x = functional.embedding(ids, w["embed.token"]) + w["embed.position"][:length]
    for layer, block in enumerate(SPEC.blocks):
        assert block.attention is not None
        at = f"block.{layer}.attn"
        q, k, v = (
            part.view(batch, length, block.attention.heads, -1).transpose(1, 2)
            for part in linear(norm(x, at), f"{at}.qkv").split(SPEC.d_model, dim=2)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(mixed.transpose(1, 2).reshape(batch, length, -1), f"{at}.out")
        at = f"block.{layer}.mlp"
        hidden = functional.gelu(linear(norm(x, at), f"{at}.hidden"), approximate="tanh")
        x = x + linear(hidden, f"{at}.out")
    return functional.linear(norm(x, "final"), w["embed.token"])


def train(folder: Path, text: Path, seconds: float, device: str = "cuda") -> None:
    """Trains for so many seconds, and writes weights.npz and held_out.npy into the folder."""
    start = perf_counter()
    ids = ids_of(list(texts_below(text)))
    print(f"  {len(ids):,} tokens of text, read in {perf_counter() - start:.0f} s", flush=True)
    data = torch.from_numpy(ids[:-HELD_OUT].astype(np.int64)).to(device)
    w = fresh(device)
    groups = [
        {"params": [p for p in w.values() if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in w.values() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.95), fused=True)
    start, step, loss = perf_counter(), 0, torch.zeros(())
    while (spent := (perf_counter() - start) / seconds) < 1:
        rate = (
            RATE * min(1, (step + 1) / WARM) * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * spent)))
        )
        for group in optimizer.param_groups:
            group["lr"] = rate
        starts = torch.randint(len(data) - CONTEXT - 1, (BATCH, 1), device=device)
        rows = data[starts + torch.arange(CONTEXT + 1, device=device)]
        with torch.autocast("cuda", torch.bfloat16):
            made = logits_of(w, rows[:, :-1])
        loss = functional.cross_entropy(made.float().flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(w.values()), 1.0)
        optimizer.step()
        step += 1
        if step % 100 == 0:
            print(f"  step {step}: {loss.item():.3f}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "weights.npz", **{n: p.detach().cpu().numpy() for n, p in w.items()})  # type: ignore[arg-type]
    np.save(folder / "held_out.npy", ids[-HELD_OUT:])
    told = {"steps": step, "tokens": step * BATCH * CONTEXT, "loss": round(loss.item(), 3)}
    (folder / "training.json").write_text(json.dumps(told), "utf-8")
    print(f"  trained: {told}", flush=True)


def trained_model(folder: Path) -> tuple[Model, Any]:
    """The model that `train` wrote, and ids that it was not trained on."""
    with np.load(folder / "weights.npz", allow_pickle=False) as archive:
        tensors = {name: Tensor(name, archive[name]) for name in archive.files}
    held_out = np.load(folder / "held_out.npy", allow_pickle=False)
    return Model(SPEC, Weights(tensors), Ids(SPEC.vocab), source=str(folder)), held_out
