"""Model → the text of a model file, which reads back to the same model.

Every number is written in full: a fraction as a fraction, an expression as an expression, a float
as the decimal that it is.  Equal tensors are written as references, and special ones as a word
(identity, zeros, ones, unknown).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from byhand.drafts import write_whole
from byhand.errors import InputError
from byhand.expression import Expression, write
from byhand.files.tables import Table, decimal_text, fixed, model_table, number_text
from byhand.files.tensor_file import Form, TensorFile
from byhand.files.tensors import usual_slopes
from byhand.files.tree import LARGEST_FILE
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import ABSENT, Printed, Unknown
from byhand.tokens import Ids, Tokenizer, Vocabulary
from byhand.weights import Data, Tensor

MANY_FLOATS = 2_000  # that a safetensors file holds better
MOST_WRITTEN = 200_000  # numbers of one file: more belong in a safetensors file
_PLAIN = re.compile(r"[\w.√(][\w.·√π^()/*+ -]*|-[\w.√(][\w.·√π^()/*+ -]*")


def save_model(model: Model, path: str | Path) -> None:
    """Writes the model file of a model, whole or not at all."""
    write_whole(Path(path), write_model(model).encode())


def save_with_tensors(model: Model, path: str | Path) -> tuple[Path, ...]:
    """Writes a model file; many floats go into a safetensors file beside it.  Returns the files.

    The tensors are in place before the model file, and each file appears whole.
    """
    target = Path(path)
    floats = {name: tensor.data for name, tensor in model.weights.items() if tensor.floats}
    if sum(data.size for data in floats.values()) <= MANY_FLOATS:
        return (write_whole(target, write_model(model).encode()),)
    beside = target.with_suffix(".safetensors")
    text = write_model(model, beside.name, frozenset(floats))

    def put(draft: Path) -> None:
        forms = {name: Form(data.dtype, data.shape) for name, data in floats.items()}
        with TensorFile(draft, forms, {}) as file:
            for name, data in floats.items():
                file.put(name, np.ascontiguousarray(data))
            file.finish()

    return (write_whole(beside, put), write_whole(target, text.encode()))[::-1]


def write_model(model: Model, file: str = "", inside: frozenset[str] = frozenset()) -> str:
    """The model file of a model; an InputError if a model file cannot express it.

    The weights `inside` the safetensors `file` beside it are not written out.
    """
    rest = {name: tensor for name, tensor in model.weights.items() if name not in inside}
    size = sum(tensor.size for tensor in rest.values())
    if size > MOST_WRITTEN:
        raise InputError(
            _("too many weights for a model file"),
            expected=_("at most {count} numbers").format(count=f"{MOST_WRITTEN:,}"),
            found=f"{size:,}",
            hint=_("large weights belong in a safetensors file: weights: {file: …}"),
        )
    lines = [*_heading(model), "weights:" if model.weights else "weights: {}"]
    lines += [f"  file: {_quoted(file)}"] if inside else []
    for name, tensor in rest.items():
        lines += _tensor(name, tensor, model)
    text = "\n".join(lines) + "\n"
    if len(text) > LARGEST_FILE:
        raise InputError(
            _("the file is too large"),
            expected=_("at most {count} bytes").format(count=f"{LARGEST_FILE:,}"),
            found=f"{len(text):,}",
            hint=_("large weights belong in a safetensors file: weights: {file: …}"),
        )
    return text


# ------------------------------------------------------------------ everything but the weights


def _heading(model: Model) -> Iterator[str]:
    table: Table = {"name": model.name}
    if model.about:
        table["about"] = model.about
    table["vocabulary"] = _vocabulary(model.vocabulary)
    if model.output_words is not None:
        table["outputs"] = _vocabulary(model.output_words)
    if model.source_words is not None:
        table["source_vocabulary"] = _vocabulary(model.source_words)
    if model.source_text is not None:
        table["source"] = model.source_text
    if model.start:
        words = [model.vocabulary.tokens[id] for id in model.start]
        table["start"] = " ".join(words)
    if model.text is not None:
        table["text"] = model.text
    if model.target is not None:
        table["target"] = model.target
    if len(model.ends) == 1:
        table["end"] = model.outputs.tokens[model.ends[0]]
    if model.notes:
        table["notes"] = list(model.notes)
    table["model"] = model_table(model.spec, model.dimensions)
    yield from _dump(table).splitlines()


def refuse_unwritable(model: Model) -> None:
    """Raises an InputError for a model whose tokenizer a model file cannot hold."""
    _vocabulary(model.vocabulary)


def _vocabulary(vocabulary: Tokenizer) -> Any:
    match vocabulary:
        case Vocabulary(tokens=tokens, kind="words"):
            return list(tokens)
        case Vocabulary(tokens=tokens, kind=kind):
            return {"kind": kind, "tokens": list(tokens)}
        case Ids(size=size):
            return [str(id) for id in range(size)]
    raise InputError(
        _("a model file cannot hold this tokenizer"),
        expected=_("a vocabulary of words or characters"),
        found=type(vocabulary).__name__,
        hint=_("keep the folder of the checkpoint"),
    )


class _Dumper(yaml.SafeDumper):
    """Writes scalars without quotes where YAML allows: every scalar of a model file is text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True  # a model file has no anchors


def _as_it_stands(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Numbers without quotes: with the tag that YAML would infer, it writes none."""
    tag = "str"
    if re.fullmatch(r"-?(0|[1-9][0-9]*)", text):
        tag = "int"
    elif re.fullmatch(r"-?[0-9]+\.[0-9]+", text):
        tag = "float"
    return dumper.represent_scalar(f"tag:yaml.org,2002:{tag}", text)


_Dumper.add_representer(str, _as_it_stands)


def _dump(table: Table) -> str:
    return yaml.dump(
        table,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=100,
    )


# ------------------------------------------------------------------ weights


def _tensor(name: str, tensor: Tensor, model: Model) -> Iterator[str]:
    data = tensor.data
    if name.endswith(".slopes") and _same(data, usual_slopes(data.size)):
        return  # defaults
    if reference := _reference(tensor, model):
        yield f'  {name}: "{reference}"'
    elif word := _word(data):
        yield f"  {name}: {word}"
    elif places := _places(name, data):
        yield f"  {name}:"
        yield f"    printed: {places[0]}"
        yield f"    values:{_begun(data)}"
        yield from _rows(data, "      ")
    else:
        yield f"  {name}:{_begun(data)}"
        yield from _rows(data, "    ")


def _reference(tensor: Tensor, model: Model) -> str | None:
    """A reference to the tensor whose parameters these are, if the numbers agree; else None."""
    other = None if tensor.same_as is None else model.weights.get(tensor.same_as)
    if other is None or other.same_as is not None:
        return None
    if _same(tensor.data, other.data):
        return f"@{other.name}"
    return f"@{other.name}.T" if _same(tensor.data, other.data.T) else None


def _same(one: Data, other: Data) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return all(a == b for a, b in zip(one.flat, other.flat, strict=True))


def _word(data: Data) -> str | None:
    flat = list(data.flat)
    if all(isinstance(x, Unknown) for x in flat):
        return "unknown"
    if data.dtype != np.dtype(object) or not all(isinstance(x, Fraction) for x in flat):
        return None
    for word, entry in (("zeros", 0), ("ones", 1)):
        if all(x == entry for x in flat):
            return word
    square = data.ndim == 2 and data.shape[0] == data.shape[1]
    if square and all(data[i, j] == (i == j) for i, j in np.ndindex(data.shape)):
        return "identity"
    return None


def _places(name: str, data: Data) -> tuple[int, ...]:
    """The decimals to which the entries were printed; empty if they were not printed."""
    if data.dtype != np.dtype(object):
        return ()
    printed = {x.places for x in data.flat if isinstance(x, Printed)}
    others = any(not isinstance(x, Printed | Unknown) for x in data.flat)
    if len(printed) > 1 or (printed and others):
        raise InputError(
            _("a model file says of a whole weight to how many decimals it was printed"),
            where=name,
            expected=_("the same number of decimals everywhere"),
            found=", ".join(map(str, sorted(printed))),
        )
    return tuple(printed)


def _begun(data: Data) -> str:
    """A row stands on the line of its name; each row of a matrix has its own line."""
    return f" {_row(data)}" if data.ndim == 1 else ""


def _rows(data: Data, indent: str) -> Iterator[str]:
    if data.ndim == 2:
        yield from (f"{indent}- {_row(row)}" for row in data)
    elif data.ndim > 2:
        for part in data:
            first, *rest = _rows(part, indent + "  ")
            yield f"{indent}- {first.strip()}"
            yield from rest


def _row(row: Data) -> str:
    if row.dtype == np.dtype(object):
        decimals = any(isinstance(x, Fraction) and x.denominator % 5 == 0 for x in row)
        return f"[{', '.join(entry_text(x, decimals) for x in row)}]"
    return f"[{', '.join(float_text(float(x)) for x in row)}]"


def entry_text(entry: Any, decimals: bool = False) -> str:
    """One entry as a model file writes it; among `decimals`, 0.5 rather than 1/2."""
    match entry:
        case Unknown():
            return "unknown"
        case Printed(value=value, places=places):
            return fixed(value, places)
        case Fraction():
            return number_text(entry, decimals)
    if entry is ABSENT:
        return "masked"
    if isinstance(entry, Expression):
        return _quoted(write(entry))
    return float_text(float(entry))


def float_text(value: float) -> str:
    """The full decimal of a float, or a fraction over a power of two."""
    exact = Fraction(value)
    if exact.denominator == 1:
        return str(exact)
    decimal = decimal_text(exact)
    if decimal is not None:
        return decimal
    return f"{exact.numerator}/2^{exact.denominator.bit_length() - 1}"


def _quoted(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
