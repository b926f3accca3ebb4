"""Bugs at the two ends: the embedding and the head."""

from __future__ import annotations

import torch

from benchmarks.museum.catalogue import exhibit
from benchmarks.museum.replicas import Replica

GITHUB = "https://github.com"


@exhibit(
    "ends",
    f"{GITHUB}/sgl-project/sglang/pull/15398",
    2025,
    "[BugFix][VLM] Correct weight loading with tie_word_embeddings == False",
    family="llama",
    shows="logits",
    says="read from the embedding",
)
def head_overwritten(port: Replica) -> None:
    """The embedding was loaded into the head as well, for tied and untied models alike.  The head
    that was in the file was lost.

    Both matrices have the same shape, and a model's own embedding makes a plausible head.
    """
    port.tied = True


@exhibit(
    "ends",
    f"{GITHUB}/huggingface/transformers/pull/35650",
    2025,
    "[`Phi`] bias should be True",
    family="gpt_neox",
    shows="logits",
    says="head_bias",
)
def head_without_its_bias(port: Replica) -> None:
    """Phi's head has a bias, which hardly any other head has.  A refactoring built it from the
    usual one, and the bias in the file was left out.

    What inherits from a common ancestor loses what was its own.
    """
    port.w["head_bias"] = torch.zeros_like(port.w["head_bias"])
