"""One run of a model, with hooks at its modules: the values inside, and what flows back."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byhand.capturing.captured import IDS, Capture
from byhand.capturing.learning import Goal, Kept, Listener, Parameters, Way, rule_of
from byhand.capturing.modules import Modules
from byhand.capturing.recorder import Recorder, as_ids, given_mask, length_of, running
from byhand.capturing.ways import with_ways
from byhand.errors import UsageError
from byhand.language import _
from byhand.numbers.allowed.precisions import AUTOCAST, PLAIN, TRANSFORMERS

MASK, CACHE, KINDS = "attention_mask", "past_key_values", "token_type_ids"
WRITTEN, WRITTEN_MASK = "decoder_input_ids", "decoder_attention_mask"
CAST = ("bfloat16", "float16")  # formats that autocast casts to
FEW = 0.5  # share of the modules run that are known; below it a warning says so
SHOWN = 4  # names in a message


@dataclass(frozen=True)
class Run:
    """A model and what it is called with."""

    model: Any
    modules: Modules
    names: Mapping[str, str]  # modules whose steps the caller has named
    arguments: tuple[Any, ...]
    inputs: Mapping[str, Any]

    @classmethod
    def of(cls, model: Any, names: Mapping[str, str], ids: Any, inputs: Mapping[str, Any]) -> Run:
        """The run of a model on these ids and other inputs."""
        modules = Modules.of(model)
        modules.check(names)
        of_transformers = _model_type(modules.inner) is not None
        arguments = () if ids is None else (_batch(ids, model, of_transformers),)
        return cls(model, modules, names, arguments, inputs)

    @property
    def ids(self) -> Any:
        """The tokens, however they are given."""
        return self.arguments[0] if self.arguments else self.inputs.get(IDS)

    @property
    def written(self) -> Any:
        """The tokens of the text: those of the decoder, where there is one."""
        return self.inputs.get(WRITTEN, self.ids)

    def _read(self) -> dict[str, Any]:
        """What was read beside the text: the ids of an encoder, their mask, and kinds of tokens."""
        found: dict[str, Any] = {"kinds": as_ids(self.inputs.get(KINDS))}
        if WRITTEN in self.inputs:
            mask, _pairs = given_mask(self.inputs.get(MASK), None)
            found |= {"read_tokens": as_ids(self.ids), "read_mask": mask}
        return found

    def forward(self, way: Way | None = None) -> Capture:
        """Calls the model once; sends the gradients of its loss back, where there is a way."""
        modules, ids = self.modules, self.written
        inner = modules.inner
        config = getattr(inner, "config", None)
        attention = getattr(config, "_attn_implementation", None)
        own = WRITTEN_MASK if WRITTEN in self.inputs else MASK
        mask, pairs = given_mask(self.inputs.get(own), attention)
        back = None if way is None else Listener()
        shape = tuple(getattr(ids, "shape", ()))
        sides = shape if len(shape) == 2 else None
        recorder = Recorder(attention, back, sides, modules.family)
        with running(self.model, modules, recorder, self.names), _uncompiled(modules):
            result = self.model(*self.arguments, **self.inputs)
            cache = getattr(result, CACHE, None) or self.inputs.get(CACHE)
            new = int(getattr(ids, "shape", (0,))[-1])
            end = length_of(cache) or new
            recorder.add_cache(getattr(result, CACHE, None), end)
            if way is not None and back is not None:
                with back.on_the_way_back():
                    way(result)
                back.leave_out_shared(len(ids) if getattr(ids, "ndim", 0) > 1 else 1)
        _say_what_is_missing(recorder, modules, self.names)
        arrays, dtype = recorder.chosen(), _dtype(inner)
        return Capture(
            arrays,
            tokens=as_ids(ids),
            mask=mask,
            positions=recorder.positions,
            dtype=dtype,
            attention=attention,
            precision=with_ways(
                _precision(arrays.values(), dtype, _model_type(inner) is not None),
                self.model,
                attention,
            ),
            model=str(getattr(config, "_name_or_path", "") or type(inner).__name__),
            left_out=recorder.left_out if back is None else {**recorder.left_out, **back.left_out},
            past=max(0, end - new),
            segments=recorder.looking.found(),
            pairs=pairs,
            **self._read(),
        )

    def backward(self, goal: Goal, optimizer: Any, clip: float | None) -> Capture:
        """The values inside, the gradients of the mean loss, and a step of the optimizer."""
        import torch

        mask = self.inputs.get(WRITTEN_MASK if WRITTEN in self.inputs else MASK)
        masked = type(self.modules.inner).__name__.endswith("ForMaskedLM")
        if masked or (WRITTEN in self.inputs and goal.labels is not None):
            goal = replace(goal, aligned=True)
        targets = goal.targets(self.written, mask)
        parameters = Parameters.of(self.model, self.modules)
        kept = Kept()
        with parameters.fresh(), torch.enable_grad():
            parts = [part.forward(goal.way(rows, targets)) for rows, part in self._parts(goal)]
            parameters.gradients(kept)
            if optimizer is not None:
                parameters.step(optimizer, clip, kept)
        whole = _side_by_side(parts)
        return replace(
            whole,
            arrays={**whole.arrays, **kept.arrays},
            left_out={**whole.left_out, **kept.left_out},
            targets=None if targets is None else goal.counted(targets),
            optimizer=None if optimizer is None else rule_of(optimizer, clip),
        )

    def _parts(self, goal: Goal) -> Iterator[tuple[slice, Run]]:
        """The run in as many parts as the gradients are added up from."""
        if goal.accumulate == 1:
            yield slice(None), self
            return
        count = len(self.ids)
        if count % goal.accumulate:
            raise UsageError(
                _("the rows of the batch cannot be split evenly"),
                expected=_("a multiple of {count} rows").format(count=goal.accumulate),
                found=str(count),
            )
        size = count // goal.accumulate

        def cut(value: Any, rows: slice) -> Any:
            shared = not hasattr(value, "shape") or not value.ndim or len(value) != count
            return value if shared else value[rows]

        for start in range(0, count, size):
            rows = slice(start, start + size)
            arguments = tuple(cut(each, rows) for each in self.arguments)
            inputs = {name: cut(each, rows) for name, each in self.inputs.items()}
            yield rows, replace(self, arguments=arguments, inputs=inputs)


def _side_by_side(parts: list[Capture]) -> Capture:
    """The captures of parts of a batch as one."""
    if len(parts) == 1:
        return parts[0]

    def together(name: str) -> Any:
        found = [getattr(part, name) for part in parts]
        return None if any(each is None for each in found) else np.concatenate(found)

    there = [name for name in parts[0].arrays if all(name in part.arrays for part in parts)]
    arrays = {name: _rows_of(name, parts) for name in there}
    given = {name: together(name) for name in ("tokens", "mask", "positions", "segments", "pairs")}
    if given["positions"] is not None and len(given["positions"]) != len(given["tokens"]):
        given["positions"] = parts[0].positions  # one row for the whole batch
    return replace(parts[0], arrays=arrays, **given)


def _rows_of(name: str, parts: list[Capture]) -> Any:
    """The rows of all parts; one row that a whole part shares stays one."""
    found = [part.arrays[name] for part in parts]
    alone = parts[0].tokens is not None and len(parts[0].tokens) > 1 and len(found[0]) == 1
    return found[0] if alone else np.concatenate(found)


def _model_type(inner: Any) -> Any:
    return getattr(getattr(inner, "config", None), "model_type", None)


@contextmanager
def _uncompiled(modules: Any) -> Iterator[None]:
    """Runs compiled modules uncompiled, with a warning: compiled code has no inner values."""
    if not modules.compiled:
        yield
        return
    import torch

    warnings.warn(_("the model is compiled: its eager run is recorded instead"), stacklevel=4)
    with torch.compiler.set_stance("force_eager"):
        yield


def _say_what_is_missing(recorder: Any, modules: Any, names: Mapping[str, str]) -> None:
    """Raises an error where nothing was recorded, and warns where it is little."""
    if not recorder.arrays:
        raise UsageError(
            _("no module of this model has a name that is known"),
            expected=_("modules of transformers, or hooks of TransformerLens"),
            found=", ".join(list(modules.named)[1:9]),
            hint=_('say which module gives which step: names={"layers.0.ff": "block.0.mlp.out"}'),
        )
    unknown = list(dict.fromkeys(recorder.unknown))
    known = len(recorder.known)
    if not names and known < FEW * (known + len(unknown)):
        shown = ", ".join(unknown[:SHOWN]) + ", …" * (len(unknown) > SHOWN)
        warnings.warn(
            _("only {known} of {count} modules have a known name; unknown are {others}").format(
                known=known, count=known + len(unknown), others=shown
            ),
            stacklevel=3,
        )


def _dtype(model: Any) -> str | None:
    """The float format of the weights."""
    formats = (weight.dtype for weight in model.parameters() if weight.is_floating_point())
    return next((str(format).removeprefix("torch.") for format in formats), None)


def _precision(arrays: Iterable[Any], dtype: str | None, of_transformers: bool) -> str | None:
    """The precision of the run, as `byhand check --precision` names it; None if it has no name.

    If weights are float32 and values have 16 bits, autocast was on.
    """
    formats = {str(array.dtype) for array in arrays}
    narrow = [name for name in CAST if name in formats]
    name = f"{AUTOCAST}{narrow[0]}" if dtype == "float32" and narrow else dtype
    if name not in PLAIN:
        return None
    return f"{TRANSFORMERS}{name}" if of_transformers else name


def _batch(ids: Any, model: Any, of_transformers: bool) -> Any:
    """The ids as a tensor on the model's device; models of transformers get a batch axis."""
    import torch

    device = next((parameter.device for parameter in model.parameters()), None)
    tensor = torch.as_tensor(ids, device=device)
    return tensor[None] if of_transformers and tensor.ndim == 1 else tensor
