"""A model from Python values, read like a model file: the same keys, checks and errors.

The values become the tree of a model file, with places that have only a key:
`weights.embed.token[1,0]`.  An array of floats stays an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from byhand.dimensions import UNNAMED
from byhand.display import Shown
from byhand.expression import Expression, write
from byhand.files.architecture import read_architecture
from byhand.files.document import Words, model_of, read_outputs, read_vocabulary
from byhand.files.naming import read_dimensions
from byhand.files.tree import Array, List, Node, Scalar, Table
from byhand.files.writing import float_text
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import ABSENT
from byhand.options import does_not_fit
from byhand.spec import ModelSpec
from byhand.tokens import Tokenizer


def make_model(
    spec: ModelSpec | Mapping[str, Any],
    weights: Mapping[str, Any],
    vocabulary: Sequence[str] | Mapping[str, Any] | Tokenizer,
    *,
    name: str | None = None,
    text: str | None = None,
    target: str | None = None,
    end: str | None = None,
    outputs: Sequence[str] | Mapping[str, Any] | None = None,
    source: str | None = None,
    source_vocabulary: Sequence[str] | Mapping[str, Any] | None = None,
    start: str | None = None,
    about: str = "",
    notes: Iterable[str] = (),
) -> Model:
    """A model of one's own: an architecture, its weights by name and a vocabulary.

    `spec` is a ModelSpec or the settings that a model file has under `model`.  A weight is an array
    or nested lists of numbers: whole numbers, Fractions, floats (exact dyadic rationals) and texts
    ("1/3", "0.2", "sqrt(2)/2"); or any other form that a model file allows ("identity",
    "@embed.token", {"normal": {…}}).  `block.*` stands for every layer.  `vocabulary` is a list of
    words, {"kind": "characters", "tokens": […]}, or the vocabulary of another model.  `outputs`
    are the words that the model answers with, where they are not those of its texts.  `name`,
    `about` and `notes` are shown; `text` and `target` are the defaults of a trace; the token `end`
    ends a generation; `outputs` are the words of the answer, where they are no tokens.  `source` is
    the default text of an encoder, `source_vocabulary` its words, where they are others, and every
    text of the decoder begins with `start`.  Errors read
    as for a model file, with the name of the weight and the index of the entry.

    >>> model = make_model(
    ...     {"d_model": 2, "layers": 0, "head": {"tied": False}},
    ...     {"embed.token": [[1, 0], [0, 1]], "head": [["1/3", "sqrt(2)/2"], [0.5, 2]]},
    ...     ["no", "yes"],
    ...     name="two",
    ... )
    >>> import byhand
    >>> model, byhand.trace(model, "no yes")["logits"]
    (<Model two: 8 parameters, 2 tokens>, <logits 2×2 named: [[1/3, √2/2], [1/2, 2]]>)
    """
    if name is not None and not isinstance(name, str):
        raise does_not_fit("name", _("text"), name)
    notes = (notes,) if isinstance(notes, str) else notes
    said = {"about": about or None, "text": text, "target": target, "end": end}
    said |= {"source": source, "start": start}
    entries = {key: _node(value, key) for key, value in said.items() if value is not None}
    entries |= {"weights": _node(weights, "weights"), "notes": _node(list(notes), "notes")}
    root = Table("", 0, "", entries)
    known: Any = vocabulary
    if isinstance(vocabulary, str) or not hasattr(vocabulary, "encode"):
        known = read_vocabulary(_node(vocabulary, "vocabulary"))
    answers = None if outputs is None else read_outputs(_node(outputs, "outputs"))
    read = None
    if source_vocabulary is not None:
        read = read_outputs(_node(source_vocabulary, "source_vocabulary"))
    dimensions = UNNAMED
    if not isinstance(spec, ModelSpec):
        table = _node(spec, "model")
        if not isinstance(table, Table):
            raise table.wrong(_("model is a table"), expected="d_model, layers, …")
        spec = read_architecture(
            table,
            name or "model",
            len(known),
            None if answers is None else len(answers),
            None if read is None else len(read),
        )
        dimensions = read_dimensions(table, spec)
    elif spec.vocab != len(known):
        raise Node("", 0, "vocabulary").wrong(
            _("the vocabulary has another size than the model needs"),
            expected=str(spec.vocab),
            found=str(len(known)),
        )
    return model_of(
        root, replace(spec, name=name or spec.name), Words(known, answers, dimensions, read), None
    )


def _node(value: Any, key: str) -> Node:
    """A Python value as a piece of a model file."""
    if isinstance(value, Mapping):
        before = f"{key}." if key else ""
        entries = ((_key(k), v) for k, v in value.items())
        return Table("", 0, key, {k: _node(v, f"{before}{k}") for k, v in entries})
    if isinstance(value, Shown) and hasattr(value, "array"):
        value = value.array  # a step of a trace: its numbers as they are, not their floats
    if hasattr(value, "detach"):  # a tensor of torch: of 16 bits, NumPy reads it as float32
        value = value.detach().cpu()
        value = value.float() if value.is_floating_point() and value.itemsize < 4 else value
    if hasattr(value, "__array__") and not np.isscalar(value):
        value = np.asanyarray(value)  # a masked one stays masked
        masked = isinstance(value, np.ma.MaskedArray)
        if value.ndim and value.dtype.kind in "fV" and not masked:
            return Array("", 0, key, value)
        value = value.tolist()
    if isinstance(value, list | tuple):
        before = f"{key[:-1]}," if key.endswith("]") else f"{key}["
        items = (_node(item, f"{before}{place}]") for place, item in enumerate(value))
        return List("", 0, key, tuple(items))
    return Scalar("", 0, key, _text(value))


def _key(key: Any) -> str:
    """A key; an index such as (0, 4) as a place of `entries`."""
    return ",".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _text(value: Any) -> str:
    """A number, a truth value or a text as a model file writes it."""
    if value is ABSENT:
        return "masked"
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, Expression):
        return write(value)
    if isinstance(value, Shown):  # a number of a trace: exactly what it is, or it is refused
        return str(value)
    if isinstance(value, str | int | np.integer | Fraction | Decimal):
        return str(value)
    if not isinstance(value, float | np.floating | ml_dtypes.bfloat16):
        return repr(value)  # no number, or one known only nearly: said where it is read
    number = float(value)
    return float_text(number) if np.isfinite(number) else str(number)
