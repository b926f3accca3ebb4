"""Weights from a safetensors file beside the model file: floats, as the dyadic rationals they are.

The header is checked by the safetensors package; nothing is ever unpickled.  float64, float32 and
float16 keep their type; bfloat16 becomes float32, which holds the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from byhand.files import scalars
from byhand.files.tree import Node
from byhand.language import _
from byhand.weights import Data

FORMATS = ("F64", "F32", "F16", "BF16")


def read_floats(node: Node, folder: Path | None) -> Mapping[str, Data]:
    """Every tensor of the file a model file names under `weights.file`, by name."""
    from safetensors import SafetensorError, deserialize  # only now: most model files need none

    path = _beside(node, folder)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise node.wrong(
            _("the file cannot be read: {reason}").format(reason=error.strerror),
            found=str(path),
        ) from None
    try:
        pieces = deserialize(raw)  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise node.wrong(
            _("this is not a whole safetensors file: {reason}").format(reason=error),
            expected=_("a safetensors file"),
            found=_("{path}, {count} bytes").format(path=path, count=f"{len(raw):,}"),
        ) from None
    return {name: _tensor(node, name, piece) for name, piece in sorted(pieces)}


def _beside(node: Node, folder: Path | None) -> Path:
    name = scalars.text(node)
    if folder is None or Path(name).name != name or "\\" in name or name in (".", ".."):
        raise node.wrong(
            _("weights are read from a file beside the model file"),
            expected=_("a file name without a folder"),
            found=name,
        )
    if not name.endswith(".safetensors"):
        raise node.wrong(
            _("weights are read from safetensors files only"),
            expected="….safetensors",
            found=name,
            hint=_("pickled files can run anything when opened; convert them first"),
        )
    return folder / name


def _tensor(node: Node, name: str, piece: Mapping[str, object]) -> Data:
    kind, shape, raw = piece["dtype"], piece["shape"], piece["data"]
    if kind not in FORMATS:
        raise node.wrong(
            _("the tensor {name} holds no floats byhand reads").format(name=name),
            expected=", ".join(FORMATS),
            found=str(kind),
        )
    assert isinstance(raw, bytes | bytearray)
    assert isinstance(shape, list)
    if kind == "BF16":
        from ml_dtypes import bfloat16

        data = np.frombuffer(raw, bfloat16).astype(np.float32)
    else:
        data = np.frombuffer(raw, np.dtype(f"<f{int(str(kind)[1:]) // 8}"))
    data = data.reshape(shape)
    for index in np.argwhere(~np.isfinite(data))[:1]:
        at = ",".join(map(str, index))
        raise node.wrong(
            _("{name}[{index}] is not a number").format(name=name, index=at),
            expected=_("a finite number"),
            found=str(data[tuple(index)]),
        )
    return data
