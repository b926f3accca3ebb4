"""Small Hugging Face models of every family, saved and read back by byhand.

Weights are drawn in three ways: as at the start of training, as after it (a few directions far
larger than the rest, gains and biases that are not trivial), and with channels of the stream that
are a hundred times larger than the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers

import byhand
from byhand.model import Model

VOCAB, CONTEXT, LAYERS = 320, 64, 2
WEIGHTS = ("fresh", "trained", "outliers")
FAMILIES = ("gpt2", "llama", "qwen2", "gpt_neox")
OUTLIERS, LARGER = 3, 100.0
transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]

_LLAMA: dict[str, Any] = {
    "vocab_size": VOCAB, "max_position_embeddings": CONTEXT, "hidden_size": 96,
    "num_hidden_layers": LAYERS, "num_attention_heads": 6, "num_key_value_heads": 2,
    "intermediate_size": 192, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": 1,
}  # fmt: skip


def config(family: str) -> Any:
    """The family's config, with small sizes."""
    match family:
        case "gpt2":
            return transformers.GPT2Config(
                vocab_size=VOCAB, n_positions=CONTEXT, n_embd=96, n_layer=LAYERS, n_head=6,
                pad_token_id=0, bos_token_id=None, eos_token_id=1,
            )  # fmt: skip
        case "llama":
            return transformers.LlamaConfig(**_LLAMA)
        case "qwen2":
            return transformers.Qwen2Config(**_LLAMA, tie_word_embeddings=True)
        case "gpt_neox":
            return transformers.GPTNeoXConfig(
                vocab_size=VOCAB, max_position_embeddings=CONTEXT, hidden_size=96,
                num_hidden_layers=LAYERS, num_attention_heads=4, intermediate_size=256,
                pad_token_id=0, bos_token_id=None, eos_token_id=1,
            )  # fmt: skip
    raise ValueError(family)


@dataclass(frozen=True)
class Pair:
    """One model twice: byhand's model, and the folder for the library."""

    family: str
    weights: str
    ours: Model
    folder: Path

    def theirs(self, dtype: torch.dtype, attention: str) -> Any:
        """The library's model in a format and with a kind of attention."""
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            self.folder, dtype=dtype, attn_implementation=attention
        )
        return model.eval()


@contextmanager
def saved(family: str, weights: str, seed: int) -> Iterator[Pair]:
    """The model in a temporary folder."""
    torch.manual_seed(seed)
    make: Any = transformers.AutoModelForCausalLM.from_config
    model = make(config(family)).float()
    if weights != "fresh":
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.copy_(_drawn(name, weight.shape, weights))
    with TemporaryDirectory() as place:
        model.save_pretrained(place)
        yield Pair(family, weights, byhand.open_model(place), Path(place))


def _drawn(name: str, shape: torch.Size, weights: str) -> Any:
    noise = torch.randn(shape)
    if len(shape) == 1:
        return 1 + 0.3 * noise if name.endswith("weight") else 0.2 * noise
    if "embed" in name or ".wte" in name or ".wpe" in name:
        table = 0.25 * noise + 0.05
        if weights == "outliers" and ".wpe" not in name:
            table[:, :OUTLIERS] *= LARGER
        return table
    left, values, right = torch.linalg.svd(noise, full_matrices=False)
    fall = torch.arange(1, len(values) + 1) ** -0.5
    fall *= (values.square().sum() / fall.square().sum()).sqrt()
    return (left * fall) @ right / max(shape) ** 0.5


def recompute_layers(model: Any, **how: Any) -> None:
    """Lets a model work its layers out again on the way back; transformers 5.23 renamed it."""
    enable = getattr(model, "activation_checkpointing_enable", None)
    (enable or model.gradient_checkpointing_enable)(how or None)
