"""Compiled programs: an npz file of arrays, as Tracr names those of a RASP program, as a model.

docs/compiled-programs.md lists the arrays.  The architecture is read off their shapes: blocks of
attention and a ReLU MLP with biases, no norms, learned positions, and a head of its own.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from byhand.dimensions import Dimensions
from byhand.errors import InputError
from byhand.files.making import make_model
from byhand.language import _
from byhand.model import Model
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, over_root
from byhand.weights import Data

LARGEST = 2**30  # bytes of all arrays together
TOKENS, POSITIONS, UNEMBED = "token_embed/embeddings", "pos_embed/embeddings", "unembed"
LAYER = "transformer/layer_{layer}/"
PARTS = {  # our names of a block's matrices; their biases end in b and _bias
    "attn/query": "attn.q",
    "attn/key": "attn.k",
    "attn/value": "attn.v",
    "attn/linear": "attn.out",
    "mlp/linear_1": "mlp.hidden",
    "mlp/linear_2": "mlp.out",
}
WORDS = ("tokens", "outputs")
FURTHER = ("heads", "causal", "residual", "text")


def read_program(path: Path | str) -> Model:
    """The model of a compiled program; an InputError names the array that does not fit."""
    path = Path(path)
    return _Program(path, _arrays(path)).model()


def _arrays(path: Path) -> dict[str, Data]:
    """All arrays of an npz file.  Nothing is unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > LARGEST:
                raise InputError(
                    _("the file is too large"),
                    where=str(path),
                    expected=_("at most {count} bytes").format(count=f"{LARGEST:,}"),
                    found=f"{size:,}",
                )
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(
            _("this is not a whole npz file: {reason}").format(reason=str(error)[:80]),
            where=str(path),
            expected=_("arrays of numbers and words; nothing is unpickled"),
        ) from None


class _Program:
    """The arrays of a program, each asked for once."""

    def __init__(self, path: Path, arrays: Mapping[str, Data]) -> None:
        self.path = path
        self.arrays = arrays
        self.asked: set[str] = set()

    def model(self) -> Model:
        tokens, outputs = map(self.words, WORDS)
        layers = self.layers()
        spec = self.spec(len(tokens), len(outputs), layers)
        weights: dict[str, Data] = {
            "embed.token": self.matrix(TOKENS),
            "embed.position": self.matrix(POSITIONS),
            "head": self.matrix(UNEMBED),
        }
        for layer in range(layers):
            for theirs, ours in PARTS.items():
                name, own = LAYER.format(layer=layer) + theirs, f"block.{layer}.{ours}"
                weights[own] = self.matrix(f"{name}/w")
                weights[f"{own}_bias"] = self.array(f"{name}/b")
        text = self.arrays.get("text")
        names = self.names(spec.d_model)
        self.nothing_else()
        try:
            made = make_model(
                spec,
                weights,
                tokens,
                text=None if text is None else str(text),
                about=_("A compiled program."),
                outputs=outputs,
            )
        except InputError as error:
            error.where = f"{self.path}: {error.where}" if error.where else str(self.path)
            raise
        return replace(made, source=str(self.path), dimensions=Dimensions(names))

    def layers(self) -> int:
        """How many blocks there are."""
        found = [re.match(r"transformer/layer_(\d+)/", name) for name in self.arrays]
        return 1 + max((int(match[1]) for match in found if match), default=-1)

    def spec(self, vocab: int, outputs: int, layers: int) -> ModelSpec:
        """The architecture that the shapes tell."""
        first = LAYER.format(layer=0)
        heads = self.whole("heads")
        causal = bool(self.arrays["causal"]) if "causal" in self.arrays else False
        context, d_model = self.matrix(POSITIONS).shape
        block = None
        if layers:
            wide, inner = (
                self.matrix(f"{first}{name}/w").shape[1] for name in ("attn/query", "mlp/linear_1")
            )
            if wide % heads:
                raise self.wrong("heads", _("a divisor of {count}").format(count=wide), heads)
            width = wide // heads
            block = BlockSpec(
                AttentionSpec(
                    heads=heads, d_head=width, kv_heads=heads, scale=over_root(width),
                    causal=causal, q_bias=True, k_bias=True, v_bias=True, out_bias=True,
                ),
                MlpSpec(inner, "relu", hidden_bias=True, out_bias=True),
            )  # fmt: skip
        return ModelSpec(
            name=self.path.stem,
            vocab=vocab,
            d_model=d_model,
            context=context,
            blocks=() if block is None else (block,) * layers,
            position="learned",
            tied=False,
            outputs=outputs,
        )

    # ------------------------------------------------------------------ arrays by name

    def array(self, name: str) -> Data:
        """An array of floats."""
        self.asked.add(name)
        if name not in self.arrays:
            raise self.wrong(name, _("an array"), _("nothing"))
        data = self.arrays[name]
        if data.dtype.kind not in "fiu":
            raise self.wrong(name, _("numbers"), str(data.dtype))
        return data if data.dtype.kind == "f" else data.astype(np.float64)

    def matrix(self, name: str) -> Data:
        """An array of two axes."""
        data = self.array(name)
        if data.ndim != 2:
            raise self.wrong(name, _("a matrix"), "×".join(map(str, data.shape)))
        return data

    def words(self, name: str) -> list[str]:
        """A list of words."""
        self.asked.add(name)
        data = self.arrays.get(name)
        if data is None or data.ndim != 1 or data.dtype.kind != "U":
            found = _("nothing") if data is None else str(data.dtype)
            raise self.wrong(name, _("a row of words"), found)
        return [str(word) for word in data]

    def whole(self, name: str) -> int:
        """A whole number of at least 1."""
        data = self.arrays.get(name)
        if data is None or data.size != 1 or data.dtype.kind not in "iu" or int(data) < 1:
            found = _("nothing") if data is None else str(data)[:40]
            raise self.wrong(name, _("a whole number of at least 1"), found)
        return int(data)

    def names(self, width: int) -> tuple[str, ...]:
        """The names of the stream's dimensions: labels without blanks and commas, each once."""
        if "residual" not in self.arrays:
            return ()
        labels = tuple(re.sub(r"[\s,]+", "_", label) for label in self.words("residual"))
        return labels if len(set(labels)) == width else ()

    def nothing_else(self) -> None:
        """Refuses an array that would not be read."""
        for name in self.arrays:
            if name not in self.asked and name not in FURTHER:
                expected = ", ".join((TOKENS, POSITIONS, UNEMBED, *WORDS, *FURTHER))
                raise self.wrong(name, f"{expected}, {LAYER.format(layer=0)}…", name)

    def wrong(self, name: str, expected: str, found: Any) -> InputError:
        return InputError(
            _("this is not the array of a compiled program"),
            where=f"{self.path}: {name}",
            expected=expected,
            found=str(found),
        )
