"""What TransformerLens hooks inside a norm, which has changed from version to version.

    HookedTransformer, up to 2.x   a LayerNorm's hook_normalized is after gain and bias
    HookedTransformer, 3.x         it is before them, as an RMSNorm's always was; unembed has hooks
    the bridge, from 3.x on        before them too, but worked out beside the norm, not within it

Names that only some versions have tell which it is.  Where a dump has none of those, its numbers
do: before gain and bias the rows of a LayerNorm have the mean 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from byhand.checking.claims import Entry, Unmatched
from byhand.language import _
from byhand.model import Model
from byhand.spec import NormSpec

_INSIDE = re.compile(r"(?:blocks\.(\d{1,6})\.(ln1|ln2)|ln_final)\.hook_(normalized|scale)")
_BRIDGE = re.compile(r"(?:blocks\.\d+\.(?:ln[12]\.hook_(?:in|out)|hook_(?:in|out))|(?:pos_)?embed"
                     r"\.hook_out|ln_final\.hook_(?:in|out)|hook_unembed)")  # fmt: skip
_NEWER = ("unembed.hook_in", "unembed.hook_out")
PARTS = {"ln1": "attn.norm", "ln2": "mlp.norm"}


def beside_the_norm(entries: Iterable[Entry]) -> list[Unmatched]:
    """The lines that a bridge works out beside its norms: nothing follows from them."""
    named = list(entries)
    if not any(_BRIDGE.fullmatch(entry.name) for entry in named):
        return []
    reason = _("TransformerLens' bridge works it out beside the norm: nothing is made of it")
    return [
        Unmatched(entry.name, entry.source, reason)
        for entry in named
        if re.search(r"\.hook_(?:normalized|scale)$", entry.name)
    ]


def after_gain_and_bias(entries: Iterable[Entry], model: Model) -> Mapping[str, str]:
    """The hooks that are the output of their norm, each with the address of that output."""
    named = list(entries)
    if any(entry.name in _NEWER for entry in named):
        return {}
    found: dict[str, str] = {}
    for entry in named:
        match = _INSIDE.fullmatch(entry.name)
        if match is None or match[3] == "scale":
            continue
        at = _address(match)
        norm = _norm(model, match)
        if norm is not None and norm.kind == "layernorm" and _after(entry, at, norm, model):
            found[entry.name] = f"{at}.out"
    return found


def _address(match: re.Match[str]) -> str:
    return f"block.{match[1]}.{PARTS[match[2]]}" if match[2] else "final.norm"


def _norm(model: Model, match: re.Match[str]) -> NormSpec | None:
    if not match[2]:
        return model.spec.final_norm
    if int(match[1]) >= len(model.spec.blocks):
        return None
    block = model.spec.blocks[int(match[1])]
    return block.attn_norm if match[2] == "ln1" else block.mlp_norm


def _after(entry: Entry, at: str, norm: NormSpec, model: Model) -> bool:
    """Whether the rows are nearer to the mean 0 once gain and bias are taken back."""
    width = model.spec.d_model
    if entry.values.dtype.kind == "O" or entry.values.shape[-1:] != (width,):
        return False
    rows = entry.values.astype(np.float64).reshape(-1, width)
    gain = _weight(model, f"{at}.gain") if norm.gain else np.ones(width)
    bias = _weight(model, f"{at}.bias") if norm.bias else np.zeros(width)
    if gain is None or bias is None or not gain.all():
        return False
    return _off_centre((rows - bias) / gain) < _off_centre(rows)


def _weight(model: Model, name: str) -> npt.NDArray[np.float64] | None:
    try:
        return np.asarray(model.weights[name].data, dtype=np.float64)
    except (TypeError, ValueError):  # not known as numbers
        return None


def _off_centre(rows: npt.NDArray[np.float64]) -> float:
    """How far the means of the rows are from 0, most of them."""
    means = np.abs(rows.mean(axis=1))
    return float(np.median(means[np.isfinite(means)])) if np.isfinite(means).any() else 0.0
