"""Claims that are arrays: NumPy's, torch's, and files of named arrays.

An array keeps its format, which tells the precision of the working.  Whole numbers named as in
`TOKENS`, `MASKS`, `POSITIONS` and `SEGMENTS` describe the text; strings belong to the heading.
Nothing is unpickled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from numbers import Real
from typing import Any, NoReturn

import ml_dtypes
import numpy as np
import numpy.typing as npt

from byhand.checking.claims import DIRECTION, VALUE, Entry, Sheet
from byhand.checking.masks import mask_of, pairs_of
from byhand.checking.readers.handwriting import CLAIMS, GIVEN, HEADING, LABELS, POINTING, entry_of
from byhand.errors import InputError
from byhand.files.mapped import shown, sides
from byhand.files.tree import List, Node, Scalar
from byhand.language import _

WRITTEN, WRITTEN_MASK = "decoder_input_ids", "decoder_attention_mask"
TOKENS = (WRITTEN, "tokens", "input_ids", "hook_tokens", "embed.hook_in")
READ = ("source", "encoder_input_ids")  # what an encoder reads; input_ids too, beside WRITTEN
READ_MASKS = ("source_mask", "encoder_attention_mask")
MASKS = ("attention_mask", WRITTEN_MASK)
KINDS = ("token_type_ids", "segments")  # the segment of each token
POSITIONS = ("position_ids", "pos_embed.hook_in")
SEGMENTS = ("segment_ids",)  # the number of each position's text, if several are packed
PADDING = ("pad_token_id",)
FOLLOWING = ("targets",)  # the next id after each position
OWN_IDS = ("labels",)  # the ids that are predicted, each at its own position
PAIRS = "pairs"  # the heading's key for a mask of queries and keys
GIVEN_IDS = (
    *TOKENS, *MASKS, *POSITIONS, *SEGMENTS, *PADDING, *FOLLOWING, *OWN_IDS, *READ, *READ_MASKS,
    *KINDS,
)  # fmt: skip
FLOATS: Mapping[np.dtype[Any], str] = {
    np.dtype(np.float64): "float64",
    np.dtype(np.float32): "float32",
    np.dtype(np.float16): "float16",
    np.dtype(ml_dtypes.bfloat16): "bfloat16",
}
DEEPEST = 20  # nested lists

Named = Iterable[tuple[str, Any]]


def sheet_of_arrays(source: str, named: Named, heading: Mapping[str, str] | None = None) -> Sheet:
    """The sheet of named arrays; strings among them belong to the heading."""
    told: dict[str, Any] = dict(heading or {})
    entries: list[Entry] = []
    for name, value in named:
        where = f"{source}: {shown(name)}"
        if isinstance(value, np.ndarray) and value.dtype.kind == "U" and not value.shape:
            value = str(value)
        if name in HEADING and isinstance(value, str):
            told[name] = value
        elif name in GIVEN_IDS and not _spelled(value):
            array = as_array(value, where)
            if name in MASKS and array.ndim > 2:
                told[PAIRS] = pairs_of(array, where)
            else:
                told[name] = whole_numbers(array, where, name)
        else:
            entries.append(entry_of_any(name, value, source))
    tokens, mask, read, read_mask = _texts(told)
    return Sheet(
        source,
        tuple(entries),
        text=told.get("text"),
        target=told.get("target"),
        tokens=tokens,
        mask=mask_of(source, tokens, mask, _first(told, PADDING)),
        pairs=told.get(PAIRS),
        positions=_first(told, POSITIONS),
        segments=_first(told, SEGMENTS),
        targets=_first(told, FOLLOWING),
        labels=_first(told, OWN_IDS),
        optimizer=told.get("optimizer"),
        precision=told.get("precision"),
        label=_first(told, LABELS),
        kinds=_first(told, KINDS),
        read_text=told.get("source") if isinstance(told.get("source"), str) else None,
        read_tokens=read,
        read_mask=mask_of(source, read, read_mask, _first(told, PADDING)),
    )


def _texts(told: Mapping[str, Any]) -> tuple[Any, Any, Any, Any]:
    """The ids of the text and its mask, then those of the source.

    Where the ids of a decoder are given, input_ids and attention_mask are those of its encoder.
    """
    if WRITTEN in told:
        read = _first(told, (*READ, "input_ids"))
        return told[WRITTEN], told.get(WRITTEN_MASK), read, _first(told, (*READ_MASKS, MASKS[0]))
    ids = {name: told[name] for name in READ if not isinstance(told.get(name, ""), str)}
    tokens, mask = _first(told, TOKENS), _first(told, MASKS)
    return tokens, mask, _first(ids, READ), _first(told, READ_MASKS)


def sheet_of_mapping(mapping: Mapping[Any, Any], source: str) -> Sheet:
    """The sheet of a Python mapping: claims under `claims`, or names beside the heading."""
    for name in mapping:
        if not isinstance(name, str):
            raise InputError(
                _("a name is not text"), where=source, expected=_("text"), found=shown(repr(name))
            )
    if isinstance(given := mapping.get(GIVEN), Mapping):
        sheet = sheet_of_mapping({k: mapping[k] for k in mapping if k != GIVEN}, source)
        printed = sheet_of_mapping(given, source).entries
        printed = tuple(replace(entry, given=True) for entry in printed)
        return replace(sheet, entries=(*sheet.entries, *printed))
    inner = mapping.get(CLAIMS)
    if isinstance(inner, Mapping):
        both = {**{key: mapping[key] for key in mapping if key != CLAIMS}, **inner}
        return sheet_of_mapping(both, source)
    sheet = sheet_of_arrays(source, _paths(mapping, source))
    return sheet if sheet.entries else no_claims(source, mapping)


def _paths(
    mapping: Mapping[Any, Any], source: str, before: str = "", depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """Names and values; those of nested mappings by their paths: layers/0/mlp."""
    if depth > DEEPEST:
        raise InputError(_("nested more than {count} deep").format(count=DEEPEST), where=source)
    for name, value in mapping.items():
        if isinstance(value, Mapping):
            yield from _paths(value, source, f"{before}{name}/", depth + 1)
        else:
            yield f"{before}{name}", value


def no_claims(source: str, names: Iterable[str] = ()) -> NoReturn:
    """Refuses a source without claims; `names` are the names in it."""
    raise InputError(
        _("there are no claims"),
        where=source,
        expected=_("names with arrays"),
        found=", ".join(map(shown, list(names)[:8])) or _("nothing"),
    )


def _first(told: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((told[name] for name in names if name in told), None)


# ------------------------------------------------------------------ one claim


def entry_of_any(name: str, value: Any, source: str) -> Entry:
    """A claim in any Python form; lists with strings or blanks count as handwriting."""
    where = f"{source}: {shown(name)}"
    if isinstance(value, tuple) and value and _tensor(value[0]):
        # a module may return a tuple, with its output first
        others = (as_array(each, where) for each in value[1:] if _tensor(each))
        entry = entry_of_array(name, as_array(value[0], where), where)
        return replace(entry, beside=tuple(others))
    if _written(value, where):
        return entry_of(name, _node(value, source, name))
    return entry_of_array(name, as_array(value, where), where)


def entry_of_array(name: str, array: npt.NDArray[Any], where: str) -> Entry:
    """A claim that is an array; an unreadable one is reported when it is matched."""
    kind = DIRECTION if name.startswith(POINTING) else VALUE
    claimed = None
    if isinstance(array, np.ma.MaskedArray):
        claimed, array = ~np.ma.getmaskarray(array), np.asarray(array.data)
    format = FLOATS.get(array.dtype.newbyteorder("="))
    if format is not None:
        return Entry(name, array, where, 0.0, claimed, format, kind)
    if array.dtype.kind == "V" and array.dtype.itemsize == 2 and array.dtype.names is None:
        # how NumPy files hold ml_dtypes' bfloat16, which has no name there
        return Entry(name, array.view(ml_dtypes.bfloat16), where, 0.0, claimed, "bfloat16", kind)
    if array.dtype.kind in "iu":
        return Entry(name, array, where, 0.0, claimed, "int64", kind)
    if array.dtype.kind == "U":
        return Entry(name, array.astype(object), where, 0.0, claimed, None, kind)
    return unreadable(name, where, str(array.dtype))


def unreadable(name: str, where: str, found: str) -> Entry:
    """A claim in a number format that byhand does not read: it is listed, not judged."""
    reason = _("it holds {found}, which is not read; floats are: {formats}").format(
        found=found, formats=", ".join(FLOATS.values())
    )
    return Entry(name, np.zeros(0), where, problem=reason)


def as_array(value: Any, where: str) -> npt.NDArray[Any]:
    """The value as an array on this machine, in its own format; objects are refused."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):  # torch, not imported
        value = _from_torch(value)
    try:
        array = value if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise InputError(
            _("this is not an array: {reason}").format(reason=shown(str(error))), where=where
        ) from None
    if array.dtype.kind == "O":
        raise InputError(
            _("an array of objects is not read"),
            where=where,
            expected=", ".join(FLOATS.values()),
            found=shown(type(value).__name__),
        )
    return array


def _from_torch(tensor: Any) -> Any:
    plain = tensor.detach().cpu()
    if str(plain.dtype) == "torch.bfloat16":  # NumPy has no bfloat16; float32 holds it without loss
        return plain.float().numpy().astype(ml_dtypes.bfloat16)
    return plain.numpy()


def _tensor(value: Any) -> bool:
    return isinstance(value, np.ndarray) or hasattr(value, "detach")


# ------------------------------------------------------------------ lists in Python


def _spelled(value: Any) -> bool:
    """Whether the tokens are words rather than ids."""
    if isinstance(value, np.ndarray):
        return bool(value.dtype.kind == "U")
    return isinstance(value, str) or (
        isinstance(value, (list, tuple)) and any(map(_spelled, value[:1]))
    )


def _written(value: Any, where: str, depth: int = 0) -> bool:
    """Whether the value holds a string, a blank or a fraction, and so is read as handwriting."""
    if depth > DEEPEST:
        raise InputError(_("nested more than {count} deep").format(count=DEEPEST), where=where)
    if isinstance(value, (list, tuple)):
        return any(_written(item, where, depth + 1) for item in value)
    return value is None or isinstance(value, (str, Fraction))


def _node(value: Any, source: str, key: str) -> Node:
    """Python's lists as nodes.  A float is exact: its digits are not a rounding."""
    if isinstance(value, (list, tuple)):
        return List(source, 0, key, tuple(_node(item, source, key) for item in value))
    if value is None:
        return Scalar(source, 0, key, "")
    if isinstance(value, Real) and math.isfinite(value):
        exact = value if isinstance(value, Fraction) else Fraction(float(value))
        return Scalar(source, 0, key, f"{exact.numerator}/{exact.denominator}")
    return Scalar(source, 0, key, str(value))


# ------------------------------------------------------------------ ids and masks


def whole_numbers(array: npt.NDArray[Any], where: str, name: str) -> npt.NDArray[np.int64]:
    """Ids, a mask or positions: one row, or a batch of rows."""
    if array.dtype.kind == "f" and np.all(np.isfinite(array)) and np.all(array == np.rint(array)):
        array = np.clip(array, -(2.0**53), 2.0**53).astype(np.int64)
    if array.dtype.kind not in "iub" or array.ndim > 2 or (array.ndim < 1 and name not in PADDING):
        raise InputError(
            _("{name} are whole numbers, in one row or a batch of rows").format(name=name),
            where=where,
            expected=_("whole numbers with the axes pos, or batch and pos"),
            found=f"{array.dtype} {sides(array.shape)}",
        )
    return array.astype(np.int64)
