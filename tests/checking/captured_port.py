"""A model of transformers, and the same model as byhand opens it: captures are compared with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from byhand.checking.claims import ClaimedText
from byhand.checking.matches import match
from byhand.checking.matches.plans import plan_for
from byhand.checking.readers import read_claims
from byhand.evaluate import work_out
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.floats import Floats

torch.set_num_threads(1)
IDS = [3, 14, 15, 9, 2, 6]
SIZES: dict[str, Any] = {"vocab_size": 17, "bos_token_id": 0, "eos_token_id": 0}
WIDE: dict[str, Any] = SIZES | {
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "max_position_embeddings": 16,
}
CONFIGS: dict[str, Callable[[], Any]] = {
    "gpt2": lambda: transformers.GPT2Config(n_embd=12, n_layer=2, n_head=3, n_positions=8, **SIZES),
    "llama": lambda: transformers.LlamaConfig(num_key_value_heads=1, **WIDE),
    "mistral": lambda: transformers.MistralConfig(num_key_value_heads=1, sliding_window=3, **WIDE),
    "qwen3": lambda: transformers.Qwen3Config(num_key_value_heads=3, head_dim=6, **WIDE),
    "gpt_neox": lambda: transformers.GPTNeoXConfig(rotary_pct=0.5, **WIDE),
}


class Port:
    """A model of transformers, and the same model as byhand opens it."""

    def __init__(self, family: str, folder: Path, attention: str) -> None:
        torch.manual_seed(5)
        self.theirs: Any = transformers.AutoModelForCausalLM.from_config(
            CONFIGS[family](), attn_implementation=attention
        )
        with torch.no_grad():
            for parameter in self.theirs.parameters():
                parameter.copy_(torch.randn(parameter.shape) * 0.4)
        self.theirs.save_pretrained(folder)
        self.ours: Model = open_model(folder)

    def matched(self, source: Any) -> tuple[ClaimedText, ...]:
        return match(read_claims(source), self.ours)

    def assert_right(self, claimed: ClaimedText, close: float = 3e-4) -> None:
        """Every claim is what byhand works out for that text, and nothing is left over."""
        assert not claimed.unmatched
        steps = work_out(
            plan_for(claimed, self.ours), self.ours.weights, claimed.tokens, Floats("float64")
        )
        for claim in claimed.claims:
            ours = np.ma.filled(steps[claim.address].array, 0)[claim.index]
            np.testing.assert_allclose(
                claim.values.astype(np.float64), ours, rtol=close, atol=close, err_msg=claim.name
            )


def addresses(claimed: ClaimedText) -> set[str]:
    return {claim.address for claim in claimed.claims}
