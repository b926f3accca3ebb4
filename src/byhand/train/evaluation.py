"""The evaluation of a model on held-out texts: loss, perplexity, right answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional

from byhand.train.batches import NOTHING
from byhand.train.corpora import Question


def autocast(format: str, device: torch.device) -> AbstractContextManager[object]:
    """A context in which products are bfloat16 over float32 weights, if that is the format."""
    if format != "bfloat16":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


def summed_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """-ln of the probability of each target, all summed up."""
    wide = logits if logits.dtype == torch.float64 else logits.float()
    return functional.cross_entropy(
        wide.flatten(0, 1), targets.flatten(), ignore_index=NOTHING, reduction="sum"
    )


@torch.no_grad()
def mean_loss(
    model: nn.Module, texts: Iterable[tuple[Tensor, Tensor]], format: str, device: torch.device
) -> float:
    """The mean loss of all tokens that are to be predicted."""
    total, count = 0.0, 0
    with autocast(format, device):
        for inputs, targets in texts:
            total += float(summed_loss(model(inputs), targets))
            count += int((targets != NOTHING).sum())
    return total / count


def perplexity(loss: float) -> float:
    """e^loss: the number of equally likely tokens that would give the same loss."""
    return math.exp(loss) if loss < 700 else math.inf


def finite(number: float) -> float | None:
    """The number for JSON; None where it is not finite."""
    return number if math.isfinite(number) else None


@torch.no_grad()
def right_answers(model: nn.Module, questions: Sequence[Question], device: torch.device) -> int:
    """How many questions are answered completely, by the likeliest token each time.

    A wrong token makes the answer wrong, so each token is predicted after the right ones before it.
    """
    right = 0
    for question in questions:
        whole = (*question.prompt, *question.answer)
        ids = torch.tensor([whole[:-1]], device=device)
        likeliest = model(ids)[0, len(question.prompt) - 1 :].argmax(dim=-1)
        right += likeliest.tolist() == list(question.answer)
    return right
