"""Weights from a safetensors file beside the model file: floats, as the dyadic rationals they are.

The file is mapped into memory by `files.mapped`; nothing is ever unpickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from byhand.errors import InputError
from byhand.files import scalars
from byhand.files.tree import Node
from byhand.language import _
from byhand.weights import Data


def read_floats(node: Node, folder: Path | None) -> Mapping[str, Data]:
    """Every tensor of the file a model file names under `weights.file`, by name."""
    from byhand.files.mapped import open_tensors  # only now: most model files need none

    path = _beside(node, folder)
    try:
        return {name: stored.finite() for name, stored in sorted(open_tensors(path).items())}
    except InputError as error:
        raise node.wrong(
            error.message, expected=error.expected, found=error.found or str(path), hint=error.hint
        ) from None


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
