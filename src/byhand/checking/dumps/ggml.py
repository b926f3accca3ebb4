"""Dumps of llama.cpp: the tensors of its graph, by the names that its callback sees.

`names.engines.LLAMA_CPP` has the names.  What they do not tell:

    Qcur, Kcur      stand for several tensors, one after the other: the product, with its bias, in
                    heads, after RoPE.  The operation tells which, or the order and the shape.
    pairs           files of llama have the rows of q and k in another order than checkpoints: the
                    two entries that RoPE turns together stand side by side.
    kq              is neither scaled nor masked; keys are padded to a round number.
    the last layer  goes on with the positions whose logits are asked for: often the last alone.
    experts         give what the chosen ones answer, in the order of ffn_moe_topk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.claims import Entry
from byhand.checking.dumps.ggml_experts import of_the_chosen
from byhand.checking.dumps.view import Read, Sides, View, aside, fitted, moved
from byhand.files.mapped import sides as shown_sides
from byhand.language import _
from byhand.names.engines import LLAMA_CPP, TensorName
from byhand.numbers.floats import FORMATS
from byhand.numbers.floats.nearest import constant

_NAME = re.compile(r"(?P<kind>.+?)(?:-(?P<layer>\d{1,6}))?(?:#(?P<time>\d{1,3}))?")
_KINDS = frozenset(row.name.removesuffix("-L") for row in LLAMA_CPP) | {
    "norm", "norm_w", "attn_norm_2", "Qcur_scaled",
}  # fmt: skip
NO_NAME = re.compile(  # tensors that the graph did not name, and places in the cache
    r"node_\d+.*|leaf_\d+.*|cache_[kv]_l\d+.*|.* \((?:view|reshaped|permuted|transposed|cont|copy"
    r"|copy of .*)\).*|(?:CUDA|CPU|Metal|Vulkan|SYCL)\d*#.*|inp_(?:pos|out_ids|KQ_mask|k_shift)\S*"
)
VIEWS = ("RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE", "CONT", "CPY", "SET_ROWS")
SCALED_QUERIES = ("gemma", "phi")  # families whose queries llama.cpp scales, instead of the scores
INSIDE_AN_MLP = ("ffn_gate", "ffn_up", "ffn_silu", "ffn_swiglu", "ffn_geglu", "ffn_gate_par")
NORMS = {"Qcur": "attn.q_norm", "Kcur": "attn.k_norm", "ffn_inp": "mlp.norm", "sa_out": "mlp.norm"}


def is_ggml(view: View) -> bool:
    """Whether the dump looks like one of llama.cpp."""
    found = (_NAME.fullmatch(name) for name in view.entries)
    kinds = {match["kind"] for match in found if match and match["layer"]}
    return len(kinds & _KINDS) >= 2 or "result_output" in view.entries


def precision_of(view: View) -> str | None:
    """The usual precision of llama.cpp on a file of its own; None: this is another dump or model.

    With flash attention, there are no scores and no shares to dump.
    """
    if Path(view.model.source).suffix.lower() != ".gguf" or not is_ggml(view):
        return None
    apart = any(name.startswith(("kq-", "kq_soft_max")) for name in view.entries)
    attends = any(name.startswith(("kqv", "attn_out")) for name in view.entries)
    return "float32+ggml" + "+flash" * (attends and not apart)


def read_ggml(entry: Entry, view: View) -> Read | None:
    """What a tensor of llama.cpp is read as; None where the name is none of its names."""
    if NO_NAME.fullmatch(entry.name):
        return [aside(entry, no_name())] if is_ggml(view) else None
    match = _NAME.fullmatch(entry.name)
    if match is None or match["kind"] not in _KINDS or not is_ggml(view):
        return None
    kind, layer = match["kind"], match["layer"]
    if kind in ("norm", "norm_w") and layer is not None:
        return _inside_a_norm(entry, kind, layer, view)
    name = _meant(kind, layer, _time_of(entry.name), view)
    row = view.tensors.get(name or "")
    if row is None or name is None:
        return [aside(entry, _without_a_step(kind) if name else _another_time())]
    if kind in ("Qcur", "Kcur", "Vcur"):
        return _projection(entry, name, row, view)
    if row.axes.startswith("pos chosen"):
        return of_the_chosen(entry, row, layer or "0", view)
    address = row.address
    if kind in ("kq", "kq_soft_max", "kqv", "kqv_out") and _latent(address, view):
        return [aside(entry, _of_latent())]
    if "expert" in view.plan[address].axes and "chosen" not in row.axes and kind in INSIDE_AN_MLP:
        shared = view.first(address.replace(".mlp.", ".mlp.shared."))
        if shared is None:
            return [aside(entry, _without_a_step(kind))]
        row = replace(row, axes=row.axes.replace("d_ff", view.plan[shared].axes[-1]))
        return _arranged(entry, shared, row, view)
    return _arranged(entry, address, row, view)


def _meant(kind: str, layer: str | None, time: int, view: View) -> str | None:
    """The tensor that a name stands for at this time; None: another one of the same name does.

    Norms behind an MLP are named without their layer, one after the other.  Falcon's second norm is
    attention's where it has two.
    """
    if layer is None:
        if kind == "ffn_post_norm" and f"ffn_post_norm-{time}" in view.tensors:
            return f"ffn_post_norm-{time}"
        last = max(_times(kind, view), default=0)
        return kind if kind != "norm" or time == last else None
    two = f"attn_norm_2-{layer}" in view.entries
    if two and kind in ("attn_norm", "attn_norm_2"):
        return f"attn_norm-{layer}" if kind == "attn_norm_2" else f"ffn_norm-{layer}"
    if kind == "ffn_out" and time:
        return None
    return f"{kind}-{layer}"


def _latent(address: str, view: View) -> bool:
    """Whether attention is latent: llama.cpp mixes a position's few numbers, not its values."""
    attn = view.plan.spec.blocks[int(address.split(".")[1])].attention
    return attn is not None and attn.latent is not None


def _of_latent() -> str:
    return _("of latent attention, in a form that is no step here")


def _another_time() -> str:
    return _("another tensor of the same name is the step")


def no_name() -> str:
    """Why a tensor that the graph did not name is left aside."""
    return _("llama.cpp has no name for it: it is on the way to another tensor")


def _without_a_step(kind: str) -> str:
    """Why a known tensor stands for no step of this model."""
    if any(row.name.startswith((f"{kind}_b-", f"{kind}_biased-")) for row in LLAMA_CPP):
        return _("a product before its bias is added, which is no step here")
    return _("llama.cpp's name of something that this model does not have as a step")


def _axes(text: str) -> Sides:
    return tuple(tuple(group.split("·")) for group in text.split())


def _arranged(entry: Entry, address: str, row: TensorName, view: View) -> Read:
    """The tensor in the axes of its step."""
    step = view.plan[address]
    texts = row.axes.replace("vocab", step.axes[-1]) if "vocab" in row.axes else row.axes
    if "head·" in texts and len(step.axes) == 2:  # heads side by side in the step as well
        texts = " ".join(step.axes)
    found = fitted(entry, address, _axes(texts.replace("d_head", step.axes[-1])), view)
    if found is None:
        return [replace(aside(entry, _("another shape: {expected} expected, {found} found").format(
            expected=row.axes.replace(" ", " × "), found=shown_sides(entry.values.shape),
        )), misfit=True)]  # fmt: skip
    how = []
    if "[" in found.name:
        how.append(_("the last position alone"))
    if row.name.startswith("kq-"):
        found, told = _scaled(found, step.address, view)
        how.append(told)
    elif "key" in step.axes and entry.values.size > found.values.size:
        how.append(_("keys behind the text cut off"))
    if entry.values.ndim > 1 and _reversed(entry, found):
        how.append(_("axes in ggml's order"))
    return [replace(found, read="; ".join(how))]


def _reversed(entry: Entry, found: Entry) -> bool:
    """Whether the sides of the array were turned round."""
    there, here = (tuple(n for n in each.values.shape if n != 1) for each in (entry, found))
    return len(there) == 2 and there == here[::-1] and there != here


def _scaled(entry: Entry, address: str, view: View) -> tuple[Entry, str]:
    """Products of queries and keys as scores: scaled, and not claimed where they are masked."""
    step = view.plan[address]
    scale = step.attributes.get("scale")
    layer = address.split(".")[1]
    before = view.model.family is not None and view.model.family.startswith(SCALED_QUERIES)
    before |= f"Qcur_scaled-{layer}" in view.entries
    before |= any(
        name.startswith(f"Qcur-{layer}") and each.made_by == "SCALE"
        for name, each in view.entries.items()
    )
    factor = 1.0 if before or scale is None else float(constant(scale, FORMATS["float64"]))
    seen = np.broadcast_to(np.asarray(step.attributes["mask"], np.bool_), step.shape)
    if seen.shape != entry.values.shape:  # of the last query alone
        seen = seen[:, -entry.values.shape[1] :]
    claimed = seen if entry.claimed is None else seen & entry.claimed
    values = np.where(claimed, entry.values.astype(np.float64) * factor, 0.0)
    slack = np.asarray(entry.slack) * factor
    return (
        replace(
            entry, values=values, claimed=claimed, slack=slack if slack.shape else slack.item()
        ),
        _("products, times the scale of the scores; masked ones are not judged"),
    )


# ------------------------------------------------------------------ queries, keys and values


def _projection(entry: Entry, name: str, row: TensorName, view: View) -> Read:
    """Qcur, Kcur or Vcur: which of the tensors of this name it is, and in which order of rows."""
    at, letter = row.address.rpartition(".")[0], name[0].lower()
    attn = view.plan.spec.blocks[int(at.split(".")[1])].attention
    assert attn is not None
    if attn.latent is not None:
        return [aside(entry, _of_latent())]
    product, turned = f"{at}.{letter}", view.first(f"{at}.{letter}_rotated")
    biased = {"q": attn.q_bias, "k": attn.k_bias, "v": attn.v_bias}[letter] and not attn.packed
    address = _which(entry, name, (product, turned, biased), view)
    if address is None:
        return [aside(entry, _("a product before its bias is added, which is no step here"))]
    clipped = view.first(f"{product}_clipped")
    if address == product and clipped is not None and _time_of(entry.name):
        address = clipped
    if address == "":
        return [aside(entry, _("queries after RoPE and times the scale of the scores"))]
    read = _arranged(entry, address, row, view)
    which = _("after RoPE") if address == turned else _("before RoPE") if turned else ""
    told = []
    for each in read:
        if isinstance(each, Entry):
            each = replace(each, read="; ".join(filter(None, (which, each.read))))
            if letter != "v" and attn.rotary is not None and side_by_side(view):
                each = _apart(each, attn.rotary.width)
        told.append(each)
    return list(told)


def _which(entry: Entry, name: str, steps: tuple[str, str | None, bool], view: View) -> str | None:
    """The step of one of the tensors of this name; None: before its bias, "": scaled."""
    product, turned, biased = steps
    match entry.made_by:
        case "ROPE":
            return turned or product
        case "MUL_MAT":
            return None if biased else product
        case "SCALE":
            return ""
        case "":
            pass
        case _:
            return product
    times = sorted(_times(name, view))
    mine = _time_of(entry.name)
    scaled = name[0] == "Q" and (view.model.family or "").startswith(SCALED_QUERIES)
    if scaled and len(times) > len(list(_times("K" + name[1:], view))) > 1:
        if mine == times[-1]:  # once more: times the scale of the scores
            return ""
        times.pop()
    flat = sum(side > 1 for side in entry.values.shape) < 3
    if len(times) == 1:
        return (
            product if turned is None or (flat and _can_be_flat(entry, view, product)) else turned
        )
    if mine == times[-1] and turned is not None:
        return turned
    return None if biased and mine == times[0] and len(times) > 2 else product


def _can_be_flat(entry: Entry, view: View, product: str) -> bool:
    """Whether a tensor with two sides is one before it was cut into heads."""
    heads, length, _width = view.plan[product].shape
    return heads > 1 and length > 1


def _time_of(name: str) -> int:
    match = _NAME.fullmatch(name)
    return int(match["time"] or 0) if match else 0


def _times(name: str, view: View) -> Iterator[int]:
    """Which times of a repeated name are in the dump."""
    for other in view.entries:
        if other.partition("#")[0] == name:
            yield _time_of(other)


def _apart(entry: Entry, width: int) -> Entry:
    """Pairs that stand side by side, each half by itself: as RoPE has them in checkpoints."""
    order = [*range(0, width, 2), *range(1, width, 2)]

    def change(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.concatenate([array[..., order], array[..., width:]], axis=-1)

    how = "; ".join(
        filter(None, (entry.read, _("pairs side by side, as in GGUF files: reordered")))
    )
    return replace(moved(entry, change), read=how)


def side_by_side(view: View) -> bool:
    """Whether the pairs of q and k stand side by side where the model has them half a head apart.

    The numbers of the first block decide, where the dump has them; otherwise the model: files of
    llama are reordered, those of its relatives with biases or norms of queries are not.
    """
    block = next((each for each in view.plan.spec.blocks if each.attention), None)
    rotary = block.attention.rotary if block and block.attention else None
    if block is None or block.attention is None or rotary is None or rotary.pairing != "half":
        return False
    cache = view.decided
    if "pairs" not in cache:
        cache["pairs"] = _decided(view, rotary.width)
    if cache["pairs"] is None:
        attn = block.attention
        return view.model.family in (None, "llama") and not (
            attn.q_bias or attn.q_norm.kind != "none"
        )
    return bool(cache["pairs"])


def _decided(view: View, width: int) -> bool | None:
    for name, entry in view.entries.items():
        plain = name.partition("#")[0]
        if plain not in ("Qcur-0", "Kcur-0") or plain not in view.tensors:
            continue
        letter = plain[0].lower()
        at = "block.0.attn"
        turned = view.first(f"{at}.{letter}_rotated")
        address = _which(entry, plain, (f"{at}.{letter}", turned, False), view)
        true = view.true(address) if address else None
        (found,) = _arranged(entry, address, view.tensors[plain], view) if address else (None,)
        if true is None or not isinstance(found, Entry) or found.values.shape != true.shape:
            continue
        as_it_is, apart = (_off(each, true) for each in (found, _apart(found, width)))
        if as_it_is != apart:
            return apart < as_it_is
    return None


def nearer_apart(entry: Entry, address: str, view: View) -> Entry:
    """Keys or queries of the other order of pairs, reordered; decided in the first block."""
    attn = view.plan.spec.blocks[int(address.split(".")[1])].attention
    rotary = None if attn is None else attn.rotary
    if rotary is None or rotary.pairing != "half" or not address.endswith("_rotated"):
        return entry
    if "cache" not in view.decided:
        true, apart = view.true(address), _apart(entry, rotary.width)
        view.decided["cache"] = true is not None and _off(apart, true) < _off(entry, true)
    return _apart(entry, rotary.width) if view.decided["cache"] else entry


def _off(entry: Entry, true: npt.NDArray[np.float64]) -> float:
    """How far the claimed numbers typically are from the true ones."""
    apart = np.abs(entry.values.astype(np.float64) - true)
    apart = apart if entry.claimed is None else apart[entry.claimed]
    apart = apart[np.isfinite(apart)]
    return float(np.median(apart)) if apart.size else 0.0


# ------------------------------------------------------------------ norms


def _inside_a_norm(entry: Entry, kind: str, layer: str, view: View) -> Read:
    """`norm` and `norm_w`: before gain and bias, or between them; what they read tells whose."""
    if kind == "norm_w":
        return [aside(entry, _("between gain and bias, which is no step here"))]
    source = entry.made_of.partition("-")[0].partition(" ")[0]
    part = NORMS.get(source, "attn.norm")
    address = view.first(f"block.{layer}.{part}.normalized")
    if not entry.made_of or address is None:
        return [aside(entry, _("several norms of a layer have this name"))]
    step = view.plan[address]
    axes: Sides = (
        (("pos",), ("d",)) if len(step.axes) == 2 else (("pos",), step.axes[:1], ("d_head",))
    )
    found = fitted(entry, address, axes, view)
    return [] if found is None else [found]
