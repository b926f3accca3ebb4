"""Markings made by hand, for the tests of what shows them: no judge has seen these numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.address import Index
from byhand.checking.claims import Claim, Unmatched
from byhand.checking.verdicts import Marked, MarkedText, Marking, Suspect, Verdict, Worst

GELU = Suspect(
    "gelu-kind",
    "it follows if GELU is erf; the model says tanh",
    "use the tanh form: gelu(x, approximate='tanh')",
    share=0.02,
    times=0.9,
)
SCALE = Suspect(
    "scale-missing",
    "it follows if the scores are not divided by √d_head",
    "divide the scores by 2",
    share=0.4,
)


def marked(
    address: str,
    verdict: Verdict = Verdict.RIGHT,
    share: float = 0.02,
    *,
    index: Index = (),
    shape: Sequence[int] = (4, 8),
    at: tuple[int, ...] | None = None,
    claimed: float = 0.84125,
    expected: float = 0.84113,
    allowed: float = 3e-7,
    format: str | None = "float32",
    slack: float = 0.0,
    name: str | None = None,
    source: str = "dump.npz",
    **rest: Any,
) -> Marked:
    """A line; its entries use ever more of the allowed error towards the worst one, `at`."""
    shape = tuple(shape)
    place = tuple(size - 1 for size in shape) if at is None else at
    shares = np.zeros(shape, np.float32)
    if verdict is not Verdict.UNJUDGED:
        away = sum(
            (np.abs(grid - where) for grid, where in zip(np.indices(shape), place, strict=True)),
            np.zeros(shape),
        )
        shares = (share / (1.0 + away) ** 1.5).astype(np.float32)
    claim = Claim(
        address, index, np.full(shape, claimed), name or address, source, slack, None, format
    )
    worst = None
    if verdict is not Verdict.UNJUDGED:
        worst = Worst(claim.in_whole(place), claimed, expected, allowed, abs(claimed - expected))
    facts: dict[str, Any] = {
        "share": share,
        "worst": worst,
        "shares": shares,
        "outside": int((shares > 1).sum()),
        "entries": int(shares.size),
    }
    return Marked(claim, verdict, **{**facts, **rest})


def text_of(
    *lines: Marked,
    text: str = "the cat sat on",
    precision: str = "float32",
    unmatched: tuple[Unmatched, ...] = (),
    label: str | None = None,
) -> MarkedText:
    return MarkedText(text, (0, 1, 2, 3), precision, lines, unmatched, label)


def marking_of(*lines: Marked, **rest: Any) -> Marking:
    return Marking("gpt2", (text_of(*lines, **rest),))


def good() -> Marking:
    """Everything follows."""
    return marking_of(
        marked("embed.token", share=0, expected=0.84125),
        marked("block.0.attn.scores", share=0.013, shape=(2, 4, 4), times=0.8),
        marked("logits", share=0.028, shape=(4, 50), times=1.1),
    )


def faulty() -> Marking:
    """One of each verdict, a mark and a name that stands for nothing."""
    return marking_of(
        marked("count.total", Verdict.UNSUPPORTED, float("inf"), shape=(), format=None,
               claimed=57000.0, expected=103680.0, allowed=0.0, source="sheet.yaml:3"),
        marked("block.3.mlp.hidden", share=0.012, times=0.7),
        marked("block.3.mlp.act", Verdict.ERROR, 412.0, suspects=(GELU,), times=5312.0,
               name="transformer.h.3.mlp.act", uses=("block.3.mlp.hidden",)),
        marked("block.3.mlp.out", Verdict.CARRIED, 0.031, times=1.2),
        marked("block.4.attn.scores", share=0.61, times=38.0, unusual=True, shape=(2, 4, 4)),
        marked("logits", Verdict.UNJUDGED, 0.0, reason="weight.head is unknown"),
        unmatched=(
            Unmatched("transformer.h.9.mlp.cat", "dump.npz", "no step has this name",
                      "did you mean transformer.h.9.mlp.act?"),
        ),
    )  # fmt: skip


def by_hand() -> Marking:
    """A worksheet: printed decimals, parts of steps, one slip."""
    written: dict[str, Any] = {"format": None, "source": "ana.yaml:4"}
    return marking_of(
        marked("block.0.attn.scores", share=0.54, index=(0, 3), shape=(4,), slack=0.005,
               claimed=0.30, expected=0.2973, allowed=0.005, **written),
        marked("block.0.attn.out", Verdict.ERROR, 24.0, index=(3,), shape=(4,), slack=0.005,
               claimed=0.42, expected=0.30, allowed=0.005, suspects=(SCALE,), **written),
        marked("loss", Verdict.CARRIED, 0.9, shape=(1,), slack=0.00005, claimed=1.8933,
               expected=1.89334, allowed=0.00005, **written),
        precision="as written",
        label="Ana",
    )  # fmt: skip


def large(layers: int = 12, wrong: int | None = 3) -> Marking:
    """A dump of a model with many layers; from the wrong layer on, errors are carried forward."""
    lines = [marked("embed.token", share=0.0), marked("stream.0", share=0.001)]
    names = (
        "attn.norm.out", "attn.q", "attn.k", "attn.v", "attn.scores", "attn.weights",
        "attn.mixed", "attn.out", "attn.add", "mlp.norm.out", "mlp.hidden", "mlp.act",
        "mlp.out", "mlp.add",
    )  # fmt: skip
    for layer in range(layers):
        for name in names:
            shape = (12, 32, 32) if name in ("attn.scores", "attn.weights") else (32, 768)
            after = wrong is not None and layer >= wrong
            if name == "mlp.act" and after:
                line = marked(
                    f"block.{layer}.{name}", Verdict.ERROR, 412.0 / (1 + layer),
                    shape=(32, 3072), at=(7, 1033), suspects=(GELU,) if layer == wrong else (),
                    times=900.0,
                )  # fmt: skip
            else:
                carried = after and (layer > (wrong or 0) or name in ("mlp.out", "mlp.add"))
                verdict = Verdict.CARRIED if carried else Verdict.RIGHT
                line = marked(
                    f"block.{layer}.{name}", verdict, 0.001 * (1 + layer % 5), shape=shape,
                    times=0.9,
                )  # fmt: skip
            lines.append(line)
    after = wrong is not None
    lines.append(
        marked("logits", Verdict.CARRIED if after else Verdict.RIGHT, 0.02, shape=(32, 99))
    )
    return marking_of(*lines)


def batch() -> Marking:
    """Two texts, the second one wrong."""
    bad = text_of(*faulty().texts[0].lines[1:4], text="a dog")
    return Marking("gpt2", (good().texts[0], bad))
