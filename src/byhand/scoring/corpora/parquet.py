"""A shard as a Parquet file: a row for each text, a list for each kind of score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from byhand.errors import InputError
from byhand.language import _
from byhand.scoring.samples import Sample
from byhand.scoring.scores import Scores

LISTS = {  # the columns of scores, with their types in Arrow
    "logprobs": "float64",
    "radii": "float64",
    "ranks": "int64",
    "best": "int64",
    "best_proven": "bool",
    "margins": "float64",
    "margin_radii": "float64",
    "entropies": "float64",
    "entropy_radii": "float64",
}
NUMBERS = b"byhand.numbers"


def arrow() -> Any:
    """pyarrow; an InputError says how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            _("shards of scores are Parquet files, which need pyarrow"),
            hint="pip install 'byhand[ray]'",
        ) from None
    return pyarrow


def encoded(places: Sequence[int], scored: Sequence[Scores]) -> bytes:
    """The file of a shard: the same bytes for the same scores, with one version of pyarrow."""
    pa = arrow()
    columns: dict[str, Any] = {
        "place": pa.array(places, pa.int64()),
        "name": pa.array([scores.sample.name for scores in scored], pa.string()),
        "first": pa.array([scores.sample.first for scores in scored], pa.int32()),
        "ids": _lists(pa, [scores.sample.ids for scores in scored], "int64"),
    }
    for name, kind in LISTS.items():
        columns[name] = _lists(pa, [getattr(scores, name) for scores in scored], kind)
    table = pa.table(columns).replace_schema_metadata({NUMBERS: scored[0].numbers.encode()})
    file = BytesIO()
    pa.parquet.write_table(table, file, compression="zstd")
    return file.getvalue()


def _lists(pa: Any, rows: Sequence[Any], kind: str) -> Any:
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    flat = np.concatenate([np.asarray(row) for row in rows])
    entries = pa.array(flat, pa.bool_() if kind == "bool" else getattr(pa, kind)())
    return pa.ListArray.from_arrays(pa.array(ends), entries)


def decoded(path: Path) -> Iterator[tuple[int, Scores]]:
    """The texts of a shard: the place of each in the corpus, and its scores."""
    pa = arrow()
    try:
        table = pa.parquet.read_table(path)
        numbers = (table.schema.metadata or {})[NUMBERS].decode()
        columns = {name: table.column(name).to_pylist() for name in ("place", "name", "first")}
        lists = {name: table.column(name).to_pylist() for name in ("ids", *LISTS)}
    except (OSError, KeyError, pa.ArrowException) as error:
        raise InputError(
            _("this is not a shard of scores"),
            where=str(path),
            found=str(error).partition("\n")[0],
        ) from None
    for row, place in enumerate(columns["place"]):
        name, first = columns["name"][row], columns["first"][row]
        sample = Sample(name, tuple(lists["ids"][row]), first)
        found = {each: np.asarray(lists[each][row], dtype=kind) for each, kind in LISTS.items()}
        yield place, Scores(sample, numbers, **found)
