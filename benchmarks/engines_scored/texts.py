"""Texts to score: prompts, and what a model itself writes after them, sampled with a seed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

PROMPTS = {
    "stories260K": (
        "Once upon a time", "Lily went to", "The little dog", "One day, Tim", "There was a big",
        "Mom said", "In the park", "Sam had a red", "The cat and the", "A bird flew",
    ),
    "python19M": (
        "import numpy as np\n\ndef ", "class Node:\n    def __init__(self", "def test_",
        "for i in ",
        "import os\nimport sys\n", "    return self.", "try:\n    ", "def read(path):\n",
        "if __name__ == ", "from typing import ",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Text:
    """A text as engines read it; tokens from `prompt` on were sampled."""

    name: str
    ids: tuple[int, ...]
    prompt: int
    words: str


def model_of(folder: Path, **settings: Any) -> Any:
    """The checkpoint in transformers, in float32 unless told otherwise."""
    import transformers

    library: Any = transformers  # not typed throughout
    library.logging.set_verbosity_error()
    library.logging.disable_progress_bar()
    given = {"dtype": torch.float32, **settings}
    return library.AutoModelForCausalLM.from_pretrained(folder, **given).eval()


def sampled(folder: Path, tokenizer: Any, seed: int, count: int, length: int) -> list[Text]:
    """Texts of canonical tokens: what was sampled is written out and cut into tokens again."""
    made = np.random.default_rng(seed)
    prompts = PROMPTS.get(folder.name, ("The", "A", "In"))
    model = model_of(folder)
    model.generation_config.eos_token_id = None
    texts = []
    for place in range(count):
        torch.manual_seed(int(made.integers(2**31)))
        words = prompts[int(made.integers(len(prompts)))]
        before = torch.tensor([tokenizer.encode(words)])
        with torch.no_grad():
            ids = model.generate(
                before, attention_mask=torch.ones_like(before), do_sample=True, top_k=0,
                max_new_tokens=int(made.integers(length // 2, length)), eos_token_id=None,
                pad_token_id=0,
            )  # fmt: skip
        said = tokenizer.decode(ids[0].tolist(), skip_special_tokens=True).lstrip(" ")
        whole = tokenizer.encode(said)
        texts.append(Text(f"sample-{place}", tuple(whole), before.shape[1], said))
    return texts


def write(texts: list[Text], path: Path) -> None:
    """The texts as a file that `byhand score` reads."""
    lines = [
        json.dumps({"name": text.name, "ids": text.ids, "first": text.prompt}) for text in texts
    ]
    path.write_text("\n".join(lines) + "\n")
