"""Captures: the recorded values of one run by module name, as claims or as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from byhand.capturing.recorder import CACHE
from byhand.display import Shown
from byhand.errors import UsageError
from byhand.language import _

if TYPE_CHECKING:
    from byhand.checking.claims import Sheet

Array = npt.NDArray[Any]
IDS, MASK, POSITIONS, SEGMENTS = "input_ids", "attention_mask", "position_ids", "segment_ids"
TARGETS, KINDS = "targets", "token_type_ids"


@dataclass(frozen=True)
class Capture(Shown):
    """The inner values of one run by the names of their modules, each with a batch in front.

    >>> capture = byhand.capture(model, input_ids)  # doctest: +SKIP
    >>> byhand.check("path/of/the/model", capture)  # doctest: +SKIP
    """

    arrays: Mapping[str, Array]
    tokens: npt.NDArray[np.int64] | None  # (batch, pos)
    mask: npt.NDArray[np.bool_] | None = None  # False at padding
    positions: npt.NDArray[np.int64] | None = None
    dtype: str | None = None  # of the model's weights
    attention: str | None = None  # attention implementation of transformers: eager, sdpa, …
    precision: str | None = None  # as `byhand check --precision` names it
    model: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)  # module → why it was left out
    past: int = 0  # positions before the tokens, known only to a cache
    segments: npt.NDArray[np.int64] | None = None  # packed texts: the text of each position
    pairs: npt.NDArray[np.bool_] | None = None  # (batch, query, key): a mask of all pairs
    targets: npt.NDArray[np.int64] | None = None  # the token that should come; -1: it counts not
    optimizer: str | None = None  # with its settings, where it took a step
    kinds: npt.NDArray[np.int64] | None = None  # the segment of each token
    read_tokens: npt.NDArray[np.int64] | None = None  # (batch, source): what an encoder reads
    read_mask: npt.NDArray[np.bool_] | None = None  # False at its padding

    def sheet(self) -> Sheet:
        """The capture as a sheet of claims."""
        from byhand.checking.readers.arrays import sheet_of_arrays

        self._from_the_start()
        told = {"precision": self.precision, "optimizer": self.optimizer}
        said = {key: text for key, text in told.items() if text}
        return sheet_of_arrays(str(self), [*self.arrays.items(), *self._given().items()], said)

    def save(self, path: str | Path) -> None:
        """Writes a safetensors file, whole or not at all, which `byhand check` reads."""
        from byhand.drafts import write_whole
        from byhand.files.tensor_file import Form, TensorFile

        self._from_the_start()
        target = Path(path)
        if target.suffix != ".safetensors":
            raise UsageError(
                _("a capture is saved as safetensors"),
                expected=_("a name that ends in {ending}").format(ending=".safetensors"),
                found=target.name,
            )
        arrays = {**self.arrays, **self._given()}
        facts = {"model": self.model, "dtype": self.dtype, "attention": self.attention}
        told = {**facts, "precision": self.precision, "optimizer": self.optimizer}
        said = {key: text for key, text in told.items() if text}
        forms = {name: Form(array.dtype, array.shape) for name, array in arrays.items()}

        def put_all(draft: Path) -> None:
            with TensorFile(draft, forms, said) as file:
                for name, array in arrays.items():
                    file.put(name, array)
                file.finish()

        write_whole(target, put_all)

    def _from_the_start(self) -> None:
        """Refuses a capture that begins after a cache: its attention cannot be judged alone."""
        if self.past:
            raise UsageError(
                _("the run goes on from a cache"),
                expected=_("the whole text, or a capture of each of its pieces"),
                found=_("positions from {first} on").format(first=self.past),
                hint=_("capture every piece, and check byhand.capturing.joined([first, second])"),
            )

    def _given(self) -> dict[str, npt.NDArray[np.int64]]:
        mask = self.mask if self.pairs is None else self.pairs[:, None]
        given = {IDS: self.tokens, MASK: mask, POSITIONS: self.positions, SEGMENTS: self.segments,
                 TARGETS: self.targets, KINDS: self.kinds}  # fmt: skip
        if self.read_tokens is not None:
            given |= {IDS: self.read_tokens, MASK: self.read_mask, f"decoder_{IDS}": self.tokens,
                      f"decoder_{MASK}": mask}  # fmt: skip
        return {name: each.astype(np.int64) for name, each in given.items() if each is not None}

    def __str__(self) -> str:
        return _("capture of {model}").format(model=self.model or _("a module"))

    def __repr__(self) -> str:
        return f"<{self}: {len(self.arrays)} values, {self.dtype}>"


def joined(captures: Sequence[Capture]) -> Capture:
    """One capture of the whole text, from captures of its pieces as a cache works them out."""
    if not captures:
        raise UsageError(_("there is nothing to check"), expected=_("at least one capture"))
    first, last = captures[0], captures[-1]
    arrays: dict[str, Array] = {}
    for name in first.arrays:
        pieces = [piece.arrays[name] for piece in captures if name in piece.arrays]
        if len(pieces) < len(captures) or name.startswith(CACHE):
            continue
        if name.endswith(".attn.weights"):
            arrays[name] = _all_queries(pieces)
        else:
            arrays[name] = np.concatenate(pieces, axis=1)
    # the last cache holds all earlier positions
    arrays |= {name: array for name, array in last.arrays.items() if name.startswith(CACHE)}

    def together(rows: list[Any]) -> Any:
        return None if any(row is None for row in rows) else np.concatenate(rows, axis=1)

    return replace(
        first,
        arrays=arrays,
        tokens=together([piece.tokens for piece in captures]),
        mask=last.mask,
        positions=together([piece.positions for piece in captures]),
        segments=_one_segment(captures),
        pairs=_all_pairs(captures),
    )


def _all_queries(pieces: Sequence[Array]) -> Array:
    """The rows of all pieces, each over all keys; 0 for keys that come later."""
    keys = pieces[-1].shape[-1]
    wide = [
        np.pad(piece, [*[(0, 0)] * (piece.ndim - 1), (0, keys - piece.shape[-1])])
        for piece in pieces
    ]
    return np.concatenate(wide, axis=-2)


def _one_segment(captures: Sequence[Capture]) -> Any:
    """The segments of the pieces: with a cache, every query attends to everything before it."""
    if len(captures) == 1:
        return captures[0].segments
    if all(piece.segments is None for piece in captures) or not all(
        piece.segments is None or not piece.segments.any() for piece in captures
    ):
        return None
    tokens = [piece.tokens for piece in captures if piece.tokens is not None]
    return np.zeros_like(np.concatenate(tokens, axis=1)) if len(tokens) == len(captures) else None


def _all_pairs(captures: Sequence[Capture]) -> Any:
    pairs = [piece.pairs for piece in captures if piece.pairs is not None]
    if pairs and len(pairs) < len(captures):
        raise UsageError(
            _("some of the pieces have a mask of queries and keys, and some have none"),
            expected=_("such a mask for each piece, or for none"),
            found=f"{len(pairs)}/{len(captures)}",
        )
    return _all_queries(pairs) if pairs else None
