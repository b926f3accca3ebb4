"""The processes of a run: the rank of this one, and the messages that they exchange.

The environment decides, as torchrun sets it: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,
MASTER_PORT.  Each step needs one sum over one row of numbers, in place of DistributedDataParallel.
The row holds all gradients, the loss, and whether a process was asked to stop.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, distributed

from byhand.errors import InputError, UsageError
from byhand.language import _
from byhand.numbers.devices import find_device

T = TypeVar("T")
PATIENCE = timedelta(minutes=10)  # the wait for a silent process


@dataclass(frozen=True)
class Processes:
    """This process among the others; only the first one writes files."""

    rank: int
    count: int
    device: torch.device

    @property
    def writes(self) -> bool:
        """Whether this process writes the files of the run."""
        return self.rank == 0

    def sum(self, row: Tensor) -> None:
        """Replaces each entry by its sum over all processes."""
        if self.count > 1:
            with _together():
                distributed.all_reduce(row)

    def agree(self, *rows: Tensor) -> None:
        """Copies the rows of the first process to all processes."""
        if self.count > 1:
            with _together():
                for row in rows:
                    distributed.broadcast(row, 0)

    def tell(self, number: int) -> int:
        """The number of the first process, in all processes."""
        told = torch.tensor(number, device=self.device)
        self.agree(told)
        return int(told)

    def hand_round(self, thing: T) -> T:
        """The object of the first process, in all processes."""
        if self.count == 1:
            return thing
        hand = [thing]
        with _together():
            distributed.broadcast_object_list(hand, 0, device=self.device)
        return hand[0]


@contextmanager
def _together() -> Iterator[None]:
    """Turns a broken connection into an error: another process has failed and said why."""
    try:
        yield
    except RuntimeError as error:  # what torch raises for every backend
        raise InputError(
            _("another process has failed"),
            found=str(error).partition("\n")[0][:200],
            hint=_("what was saved before is safe: go on with --resume"),
        ) from None


@contextmanager
def joined(device: str) -> Iterator[Processes]:
    """This process among those that the environment names; alone where it names none."""
    rank, count, local = (_number(name, usual) for name, usual in (
        ("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0),
    ))  # fmt: skip
    if count == 1:
        yield Processes(0, 1, find_device(device))
        return
    if rank >= count:
        raise InputError(
            _("the environment contradicts itself"),
            expected=_("RANK below WORLD_SIZE"),
            found=f"RANK={rank} WORLD_SIZE={count}",
        )
    own = find_device(f"cuda:{local}" if device == "cuda" else device)
    if own.type == "cuda":
        torch.cuda.set_device(own)
    try:
        distributed.init_process_group(
            "nccl" if own.type == "cuda" else "gloo", timeout=PATIENCE, rank=rank, world_size=count
        )
    except (RuntimeError, ValueError) as error:
        raise InputError(
            _("the processes do not find each other: {reason}").format(
                reason=str(error).partition("\n")[0]
            ),
            expected="MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE",
            hint="torchrun --nproc-per-node 2 -m byhand train RUN.yaml",
        ) from None
    try:
        yield Processes(rank, count, own)
    finally:
        distributed.destroy_process_group()


def _number(name: str, usual: int) -> int:
    text = os.environ.get(name, str(usual))
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(
            _("the environment variable {name} is not a whole number").format(name=name),
            found=repr(text[:40]),
        )
    return int(text)
