"""Mistakes of routers, sinks, slopes and norms, and unwritten channels: each is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from benchmarks.museum import models
from benchmarks.museum.replicas import Replica, replica
from torch import Tensor

import byhand
from byhand.checking.verdicts import Marked

CHOSEN, SHARES = "block.0.mlp.chosen", "block.0.mlp.shares"
WEIGHTS, SCORES = "block.0.attn.weights", "block.0.attn.scores"
NORMALIZED = "block.0.attn.norm.normalized"


def first_wrong(family: str, plant: Callable[[Replica], None]) -> Marked:
    """The first wrong line of a port with a mistake."""
    model, ids = models.model(family), models.some_ids()
    port = replica(model, ids, "float32")
    assert isinstance(port, Replica)
    plant(port)
    marking = byhand.check(model, port.run(), text=" ".join(map(str, ids)), precision="float32")
    assert marking.first_error is not None
    return marking.first_error


def chosen(port: Replica, count: int) -> None:
    port.chosen = count


def smallest(port: Replica) -> None:
    usual = port.choice
    port.instead(choice=lambda router: usual(-router))


def softmax_twice(port: Replica) -> None:
    usual = port.expert_shares
    port.instead(expert_shares=lambda router, chosen: usual(router.softmax(-1), chosen))


def even(port: Replica) -> None:
    port.instead(expert_shares=lambda router, chosen: chosen / chosen.sum(-1, keepdim=True))


def sinks(port: Replica, change: Callable[[Tensor], Tensor]) -> None:
    for name in port.w:
        if name.endswith(".sinks"):
            port.w[name] = change(port.w[name])


def slopes(port: Replica, change: Callable[[Tensor], Tensor]) -> None:
    usual = port.slopes
    port.instead(slopes=lambda: change(usual()))


def rounded_reciprocal(port: Replica) -> None:
    def norm(at: str, x: Tensor) -> Tensor:
        rms = port.keep(f"{at}.rms", port.root(port.keep(f"{at}.mean_square", port.squares(x))))
        factor = rms.reciprocal().half().float()
        return port.keep(f"{at}.out", port.affine(
            at, port.keep(f"{at}.normalized", x * factor[:, None])))  # fmt: skip

    port.instead(norm=norm)


def tail_of_the_next_head(port: Replica) -> None:
    usual = port.placed

    def placed(at: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = usual(at, q, k, v)
        q = q.clone()
        q[:-1, :, 4:9] = q[1:, :, 4:9].clone()
        return port.keep(f"{at}.q_rotated", q), k, v

    port.instead(placed=placed)


def forgets_the_first_part(port: Replica) -> None:
    usual = port.may_look

    def may_look(length: int) -> Tensor:
        seen = usual(length)
        seen[5:, :5] = False
        return seen

    port.instead(may_look=may_look)


CASES: tuple[tuple[str, Callable[[Replica], None], str, str], ...] = (
    ("mixtral", lambda port: chosen(port, 1), CHOSEN, "1 experts are chosen; the model chooses 2"),
    ("mixtral", lambda port: chosen(port, 3), CHOSEN, "3 experts are chosen; the model chooses 2"),
    ("mixtral", smallest, CHOSEN, "smallest scores are chosen"),
    ("mixtral", softmax_twice, SHARES, "softmax is taken twice"),
    ("mixtral", even, SHARES, "equal shares"),
    ("gpt_oss", lambda port: sinks(port, torch.zeros_like), WEIGHTS, "every sink is 0"),
    ("gpt_oss", lambda port: sinks(port, lambda x: x * port.scale), WEIGHTS, "sinks are scaled"),
    ("mpt", lambda port: slopes(port, lambda x: x.flip(0)), SCORES, "each other's slopes"),
    ("mpt", lambda port: slopes(port, lambda x: x + 0.01 * x.cumsum(0)), SCORES, "slopes are 0.2"),
    ("glm", tail_of_the_next_head, "block.0.attn.q_rotated", "4 to 8 are those of the head after"),
    ("llama", forgets_the_first_part, SCORES, "from query 5 on no query sees the keys before 5"),
    ("llama", rounded_reciprocal, NORMALIZED, "1/rms is rounded to float16"),
)  # fmt: skip


@pytest.mark.parametrize(("family", "plant", "shows", "says"), CASES)
def test_a_mistake_is_found_at_its_step_and_named(
    family: str, plant: Callable[[Replica], None], shows: str, says: str
) -> None:
    line = first_wrong(family, plant)
    assert line.address == shows
    assert says in line.suspects[0].sentence
