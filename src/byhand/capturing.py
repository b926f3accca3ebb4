"""`byhand.capture`: what a torch model works out inside, recorded in one call.

    >>> capture = byhand.capture(model, input_ids)          # doctest: +SKIP
    >>> byhand.check("path/of/the/model", capture)        # doctest: +SKIP

The model is run once, as it is, with a hook at every module that has a step here: the modules of
`transformers` (gpt2, llama, mistral, qwen, gpt_neox), the hooks of TransformerLens, or any modules
with a map of names.  Nothing inside the model is replaced.  What a module does not hand out stays
unknown (scores, queries after RoPE); keys after RoPE come from the cache, attention weights from
eager attention.  torch is imported here, when a model is captured, and nowhere on the way to a
trace.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from byhand.errors import UsageError, nearest
from byhand.language import _
from byhand.names import FOREIGN, PREFIXES, ROWS

if TYPE_CHECKING:
    from byhand.checking.claims import Sheet

Array = npt.NDArray[Any]
IDS, MASK, POSITIONS = "input_ids", "attention_mask", "position_ids"
CACHE = "past_key_values."
COUNTING = ("wpe", "rotary_emb")  # modules that are told the positions
TRANSFORMERS = "transformers:"  # a precision: as transformers works in a format


@dataclass(frozen=True)
class Capture:
    """The inner values of one run by the names of their modules, each with a batch in front."""

    arrays: Mapping[str, Array]
    tokens: npt.NDArray[np.int64] | None  # (batch, pos)
    mask: npt.NDArray[np.bool_] | None = None
    positions: npt.NDArray[np.int64] | None = None
    dtype: str | None = None  # of the model's weights
    attention: str | None = None  # how transformers works attention out: eager, sdpa, …
    precision: str | None = None  # as `byhand check --precision` has it
    model: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)  # modules, and why
    past: int = 0  # positions before the tokens, of which only a cache knows

    def sheet(self) -> Sheet:
        """The capture as a sheet of claims."""
        from byhand.checking.reading.arrays import sheet_of_arrays

        self._from_the_start()
        said = {} if self.precision is None else {"precision": self.precision}
        return sheet_of_arrays(str(self), [*self.arrays.items(), *self._given().items()], said)

    def save(self, path: str | Path) -> None:
        """Writes a safetensors file, whole or not at all, which `byhand check` reads."""
        from byhand.golden.folder import writing
        from byhand.golden.layout import Form, TensorFile

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
        said = {key: text for key, text in {**facts, "precision": self.precision}.items() if text}
        draft = target.with_name(f".{target.name}-{token_hex(4)}")
        try:
            with writing(target):
                forms = {name: Form(array.dtype, array.shape) for name, array in arrays.items()}
                with TensorFile(draft, forms, said) as file:
                    for name, array in arrays.items():
                        file.put(name, array)
                    file.finish()
                os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)

    def _from_the_start(self) -> None:
        """Attention to what came before cannot be judged without it."""
        if self.past:
            raise UsageError(
                _("the run goes on from a cache"),
                expected=_("the whole text, or a capture of each of its pieces"),
                found=_("positions from {first} on").format(first=self.past),
                hint=_("capture every piece, and check byhand.capturing.joined([first, second])"),
            )

    def _given(self) -> dict[str, npt.NDArray[np.int64]]:
        given = {IDS: self.tokens, MASK: self.mask, POSITIONS: self.positions}
        return {name: each.astype(np.int64) for name, each in given.items() if each is not None}

    def __str__(self) -> str:
        return _("capture of {model}").format(model=self.model or _("a module"))

    def __repr__(self) -> str:
        return f"<{self}: {len(self.arrays)} values, {self.dtype}>"


def capture(
    model: Any,
    input_ids: Any = None,
    *,
    names: Mapping[str, str] | None = None,
    **inputs: Any,
) -> Capture:
    """Runs a torch model once and records every inner value that has a step.

    `model` is one of `transformers`, or any module; `input_ids` and `inputs` are what it is called
    with.  `names` says which module gives which step, where its own name does not tell:
    {"layers.3.ff": "block.3.mlp.out"}.  Dropout is off while it runs.
    """
    try:
        import torch
    except ModuleNotFoundError:
        raise UsageError(
            _("models are captured with torch, which is not installed"),
            hint="pip install 'byhand[train]'",
        ) from None

    if not isinstance(model, torch.nn.Module):
        raise UsageError(
            _("this is not a torch module"),
            expected=_("a model of transformers, or another torch module"),
            found=type(model).__name__,
        )
    modules = dict(model.named_modules())
    _check_names(names or {}, modules)
    config = getattr(model, "config", None)
    of_transformers = getattr(config, "model_type", None) is not None
    recorder = _Recorder(dict(names or {}))
    arguments = [] if input_ids is None else [_batch(input_ids, model, of_transformers)]
    with _running(model, modules, recorder), torch.no_grad():
        result = model(*arguments, **inputs)
    recorder.add_cache(getattr(result, "past_key_values", None))
    if not recorder.arrays:
        raise UsageError(
            _("no module of this model has a name that is known"),
            expected=_("modules of transformers, or hooks of TransformerLens"),
            found=", ".join(list(modules)[1:9]),
            hint=_('say which module gives which step: names={"layers.0.ff": "block.0.mlp.out"}'),
        )
    ids = arguments[0] if arguments else inputs.get(IDS)
    cache = getattr(result, "past_key_values", None) or inputs.get("past_key_values")
    dtype = next((str(p.dtype).removeprefix("torch.") for p in model.parameters()), None)
    return Capture(
        recorder.chosen(),
        tokens=None if ids is None or not _whole(ids) else np.atleast_2d(_numpy(ids)),
        mask=None if inputs.get(MASK) is None else _mask(inputs[MASK]),
        positions=recorder.positions,
        dtype=dtype,
        attention=getattr(config, "_attn_implementation", None),
        precision=f"{TRANSFORMERS}{dtype}" if of_transformers and dtype else dtype,
        model=str(getattr(config, "_name_or_path", "") or type(model).__name__),
        left_out=recorder.left_out,
        past=_past(cache, ids),
    )


def joined(captures: Sequence[Capture]) -> Capture:
    """Captures of one text in pieces, as a cache works it out, as the capture of the whole."""
    first, last = captures[0], captures[-1]
    arrays: dict[str, Array] = {}
    for name in first.arrays:
        pieces = [piece.arrays[name] for piece in captures if name in piece.arrays]
        if len(pieces) < len(captures):
            continue
        if name.endswith(".attn.weights"):
            arrays[name] = _all_keys(pieces)
        elif name.startswith(CACHE):  # all there is
            arrays[name] = pieces[-1]
        else:
            arrays[name] = np.concatenate(pieces, axis=1)

    def together(rows: list[Any]) -> Any:
        return None if any(row is None for row in rows) else np.concatenate(rows, axis=1)

    return Capture(
        arrays,
        together([piece.tokens for piece in captures]),
        last.mask,
        together([piece.positions for piece in captures]),
        first.dtype,
        first.attention,
        first.precision,
        first.model,
        first.left_out,
        first.past,
    )


def _all_keys(pieces: list[Array]) -> Array:
    """Attention weights of all queries; keys that were not there yet have none."""
    keys = pieces[-1].shape[3]
    sides = [(0, 0), (0, 0), (0, 0)]
    wide = [np.pad(piece, [*sides, (0, keys - piece.shape[3])]) for piece in pieces]
    return np.concatenate(wide, axis=2)


# ------------------------------------------------------------------ recording


class _Recorder:
    """What passes through the hooks."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.arrays: dict[str, Array] = {}
        self.positions: npt.NDArray[np.int64] | None = None
        self.left_out: dict[str, str] = {}
        self._same: dict[tuple[int, int | None], list[str]] = {}  # names of one step

    def hook(self, name: str) -> Callable[..., None] | None:
        """What listens to a module; None where nothing of it is wanted."""
        if name in self.names:
            return lambda _module, _args, _kwargs, output: self._keep(self.names[name], output)
        if name.rpartition(".")[2] == COUNTING[1]:
            return lambda _module, args, kwargs, _output: self._count(args[1:], kwargs)
        if (known := _row_of(name)) is None:
            return None

        def listen(_module: Any, args: Any, kwargs: Any, output: Any) -> None:
            if name.rpartition(".")[2] == COUNTING[0]:
                self._count(args, kwargs)
            self._keep(name, output)
            self._same.setdefault(known, []).append(name)
            self._keep_weights(known, output)

        return listen

    def _keep(self, name: str, output: Any) -> None:
        value = output[0] if isinstance(output, (tuple, list)) and output else output
        if not (hasattr(value, "detach") and value.is_floating_point()):
            return
        if name in self.arrays or name in self.left_out:
            self.arrays.pop(name, None)
            self.left_out[name] = _("it was called more than once")
            return
        self.arrays[name] = _numpy(value)

    def _keep_weights(self, known: tuple[int, int | None], output: Any) -> None:
        """What eager attention gives besides its output."""
        row, layer = known
        if ROWS[row].address == "block.L.attn.out" and isinstance(output, tuple):
            weights: Any = output[1] if len(output) > 1 else None
            if hasattr(weights, "detach") and weights.ndim == 4:
                self.arrays[f"block.{layer}.attn.weights"] = _numpy(weights)

    def _count(self, args: Any, kwargs: Mapping[str, Any]) -> None:
        positions = kwargs.get(POSITIONS, args[0] if args else None)
        if self.positions is None and _whole(positions):
            self.positions = np.atleast_2d(_numpy(positions))

    def add_cache(self, cached: Any) -> None:
        """Keys (after RoPE, where there is any) and values, as attention reads them."""
        for layer, (key, value) in enumerate(_cached(cached)):
            self.arrays[f"{CACHE}{layer}.key"] = _numpy(key)
            self.arrays[f"{CACHE}{layer}.value"] = _numpy(value)

    def chosen(self) -> dict[str, Array]:
        """The values, each step under one name of those its modules have."""
        again: set[str] = set()
        for same in self._same.values():
            there = [name for name in dict.fromkeys(same) if name in self.arrays]
            again.update(there[1:])
        return {name: array for name, array in self.arrays.items() if name not in again}


@contextmanager
def _running(model: Any, modules: Mapping[str, Any], recorder: _Recorder) -> Iterator[None]:
    """Listens to the modules, with dropout off; afterwards everything is as it was."""
    training = {name: module.training for name, module in modules.items()}
    handles = []
    try:
        model.eval()
        for name, module in modules.items():
            if (hook := recorder.hook(name)) is not None:
                handles.append(module.register_forward_hook(hook, with_kwargs=True))
        yield
    finally:
        for handle in handles:
            handle.remove()
        for name, module in modules.items():
            module.training = training[name]


def _cached(cached: Any) -> Iterator[tuple[Any, Any]]:
    """The keys and values of each layer, as caches of several versions hold them."""
    layers = getattr(cached, "layers", cached)
    for layer in layers if isinstance(layers, (list, tuple)) else ():
        pair = layer if isinstance(layer, tuple) else (
            getattr(layer, "keys", None), getattr(layer, "values", None)
        )  # fmt: skip
        if len(pair) < 2 or not all(hasattr(each, "detach") for each in pair[:2]):
            return
        yield pair[0], pair[1]


def _past(cached: Any, ids: Any) -> int:
    """How many positions a cache holds besides those of the ids."""
    if not (hasattr(cached, "get_seq_length") and hasattr(ids, "shape")):
        return 0
    return max(0, int(cached.get_seq_length()) - int(ids.shape[-1]))


# ------------------------------------------------------------------ names


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], int], ...]:
    """Every foreign name as a pattern in which the layer is open, with the number of its row."""
    found: dict[str, int] = {}
    for number, row in enumerate(ROWS):
        for style in FOREIGN:
            for name in row.names(style):
                for prefix in ("", *PREFIXES):
                    if name.startswith(prefix):
                        found.setdefault(name.removeprefix(prefix), number)
    return tuple(
        (re.compile(re.sub(r"\\\.L\\\.|\\\.L$", _layer, re.escape(name))), number)
        for name, number in found.items()
    )


def _layer(match: re.Match[str]) -> str:
    return r"\.(\d+)" + (r"\." if match[0].endswith(".") else "")


@cache
def _row_of(name: str) -> tuple[int, int | None] | None:
    """The row of a module's name in the table of names, and its layer; None where it has none."""
    for pattern, number in _patterns():
        if match := pattern.fullmatch(name):
            return number, int(match[1]) if match.groups() else None
    return None


def _check_names(names: Mapping[str, str], modules: Mapping[str, Any]) -> None:
    for name in names:
        if name not in modules:
            raise UsageError(
                _("the model has no module {name}").format(name=repr(name)),
                expected=_("names of modules, as named_modules() has them"),
                found=repr(name),
                hint=nearest(name, modules),
            )


# ------------------------------------------------------------------ tensors


def _numpy(tensor: Any) -> Array:
    """A copy of the tensor: what goes on in the model may change it."""
    from byhand.checking.reading.arrays import as_array

    return np.array(as_array(tensor, ""))


def _whole(value: Any) -> bool:
    """Whether it is a tensor of ids or positions, with a batch or without."""
    if not hasattr(value, "detach"):
        return False
    return not value.is_floating_point() and value.ndim in (1, 2)


def _mask(value: Any) -> npt.NDArray[np.bool_] | None:
    """A mask of the positions; one of queries and keys says no more than the model does."""
    mask = np.atleast_2d(np.asarray(_numpy(value)))
    return mask.astype(np.bool_) if mask.ndim == 2 else None


def _batch(ids: Any, model: Any, of_transformers: bool) -> Any:
    """The ids as a tensor where the model is; models of transformers want a batch."""
    import torch

    device = next((parameter.device for parameter in model.parameters()), None)
    tensor = torch.as_tensor(ids, device=device)
    return tensor[None] if of_transformers and tensor.ndim == 1 else tensor
