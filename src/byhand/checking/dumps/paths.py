"""Names that are paths: nested dictionaries, Flax and ONNX, read as modules of `transformers`.

    intermediates/model/layers/0/mlp/__call__/0     Flax, as capture_intermediates nests it
    params/model/layers/0/mlp/up_proj/kernel        its weights: kernels are (in, out)
    /model/layers.0/mlp/up_proj/MatMul_output_0     ONNX: what an operation of torch.onnx gives

Of the operations inside a module, those that are steps are read: a product with its bias, the parts
of a norm, scores, weights and mixed values of attention, sums of the stream.
"""

from __future__ import annotations

import re

import numpy as np

from byhand.checking.claims import Entry
from byhand.checking.dumps.view import LAYER, Read, View, aside, called, moved
from byhand.language import _
from byhand.names.engines import ACTIVATED, turns_whole_heads
from byhand.plan import WEIGHT

_OPERATION = re.compile(
    r"/?(?:(?P<path>.+)/)?(?P<op>[A-Za-z]+)(?:_(?P<time>\d{1,4}))?_output_(?P<out>\d{1,2})"
)
_WRAPPING = ("intermediates", "params", "__call__")
_KEPT = {"kernel": "weight", "embedding": "weight", "scale": "weight", "bias": "bias"}
_RMS = {"Mul_1": "out", "Mul": "normalized", "Sqrt": "rms", "ReduceMean": "mean_square",
        "SimplifiedLayerNormalization": "out"}  # fmt: skip
_LAYER_NORM = {"LayerNormalization": "out", "Add_1": "out", "Div": "normalized", "Sqrt": "std",
               "ReduceMean": "mean", "ReduceMean_1": "variance", "Sub": "centered"}  # fmt: skip


def module_path(name: str) -> str | None:
    """A path of nested names as the name of a module; None where it is none.

    >>> module_path("intermediates/model/layers/0/mlp/__call__/0")
    'model.layers.0.mlp'
    """
    if "/" not in name and ".__call__" not in name:
        return None
    parts = [part for part in re.split(r"[/.]", name) if part]
    if len(parts) > 1 and parts[-2] == "__call__" and parts[-1].isdecimal():
        parts = parts[:-2] if parts[-1] == "0" else parts
    return ".".join(part for part in parts if part not in _WRAPPING)


def read_path(entry: Entry, view: View) -> Read | None:
    """What an entry under a path is read as; None where the path leads nowhere."""
    match = _OPERATION.fullmatch(entry.name)
    if match is not None and entry.name.startswith("/"):
        return _operation(entry, match, view)
    if (found := _flax_weight(entry, view)) is not None:
        return found
    path = module_path(entry.name)
    address = None if path is None else view.known(path)
    if path is None or address is None:
        return None
    style = "huggingface" if view.has(address) else ""
    return [called(entry, path if path in view.plan.known else address, style=style)]


def _flax_weight(entry: Entry, view: View) -> Read | None:
    """A weight of Flax: a kernel is (in, out), the weight of a checkpoint (out, in)."""
    head, _slash, last = entry.name.rpartition("/")
    if last not in _KEPT or not head:
        return None
    module = module_path(f"params/{head}") or head
    address = view.known(f"{module}.{_KEPT[last]}")
    if address is None or not address.startswith(WEIGHT):
        return None
    if last == "kernel" and view.plan.spec.layout == "out_in" and entry.values.ndim == 2:
        how = _("a kernel: transposed")
        return [called(moved(entry, np.transpose), address, how)]
    return [called(entry, address)]


# ------------------------------------------------------------------ ONNX


def _operation(entry: Entry, match: re.Match[str], view: View) -> Read | None:
    """What one operation inside a module gives."""
    path = (match["path"] or "").strip("/").replace("/", ".")
    op = match["op"] + (f"_{match['time']}" if match["time"] else "")
    layer = LAYER.search(path)
    address = view.module(path)
    if entry.problem is not None:  # no floats: shapes and masks on the way
        return [aside(entry, no_step())]
    found = _step(op, path, address, f"block.{layer[1]}" if layer else "", view)
    if found is None:
        return [aside(entry, no_step())]
    how = _("what {op} gives inside {module}").format(op=op, module=_any_layer(path))
    how = "" if view.known(path) == found else how
    return [called(entry, found, how, style="" if _square(found, view) else "huggingface")]


def no_step() -> str:
    """Why what an operation gives is left aside."""
    return _("an operation of the graph, which is no step here")


def _square(address: str, view: View) -> bool:
    """Whether the heads come first, as in byhand."""
    axes = view.plan[address].axes
    return "query" in axes or address.endswith(("_rotated", ".mixed"))


def _any_layer(path: str) -> str:
    return re.sub(r"\.\d+", ".L", path, count=1)


def _step(op: str, path: str, address: str | None, at: str, view: View) -> str | None:
    """The step that an operation inside a module is; None where it is none."""
    last = path.rpartition(".")[2]
    attn = f"{at}.attn"
    if at and last in ("self_attn", "attn", "attention"):
        return _in_attention(op, attn, view)
    if at and last == "mlp":
        return view.first(f"{at}.mlp.gated") if op == "Mul" else None
    if at and re.fullmatch(r"(?:.*\.)?(?:layers|h)\.\d+", path):
        block = view.block(at)
        serial = block is not None and not block.parallel
        ends = {"Add": f"{at}.attn.add" if serial else "", "Add_1": f"{at}.mlp.add"}
        return view.first(ends.get(op, ""))
    if address is None:
        return None
    step = view.plan[address]
    if step.op == "embed":
        return address if op == "Gather" else None
    if step.op == "linear":
        product = "Add" if "bias" in step.inputs else "MatMul"
        return address if op in (product, "Gemm", "Reshape_1") else None
    if step.op == "activate":
        return address if op == ACTIVATED.get(step.attributes["kind"]) else None
    norm = address.removesuffix(".out").removesuffix(".normalized")
    names = _RMS if view.has(f"{norm}.rms") else _LAYER_NORM
    part = names.get(op)
    return None if part is None else view.first(f"{norm}.{part}")


def _in_attention(op: str, attn: str, view: View) -> str | None:
    inner = {"Softmax": f"{attn}.weights", "MatMul_1": f"{attn}.mixed"}
    if (block := view.block(attn)) is not None and turns_whole_heads(block):
        inner |= {"Add": f"{attn}.q_rotated", "Add_1": f"{attn}.k_rotated"}
    return view.first(inner.get(op, ""))
