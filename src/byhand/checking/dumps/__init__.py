"""Dumps of engines, read in byhand's names and axes.

    view       what a dump is read against; arrays cut and turned
    packed     vLLM and SGLang: packed projections, tuples, deferred residuals
    fused      what the transformers library packs and stacks
    ggml       llama.cpp: names of its graph, its order of axes and of pairs
    paths      nested names, Flax, ONNX
    outputs    hidden_states.N and attentions.N
    states     the debug state of C ports
    name_maps  names that a file explains
    folding    models that TransformerLens folded and centred

An entry becomes one entry or several, under addresses of byhand, each with how it was read.  What
is read by its name alone stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from byhand.checking.claims import Entry, Unmatched
from byhand.checking.dumps.folding import (
    loosened,
    processed,
    processing_told,
    read_refactored,
)
from byhand.checking.dumps.fused import read_fused, read_repeated
from byhand.checking.dumps.ggml import no_name, precision_of, read_ggml
from byhand.checking.dumps.name_maps import NameMap
from byhand.checking.dumps.outputs import read_output
from byhand.checking.dumps.packed import read_packed
from byhand.checking.dumps.paths import no_step, read_path
from byhand.checking.dumps.states import opened, read_cache
from byhand.checking.dumps.view import Text, View
from byhand.language import _
from byhand.plan import GRAD, WEIGHT

FEW = 4  # names of a kind that are listed one by one
OURS = (WEIGHT, GRAD, "count.", "direction.")
WAYS = (
    read_refactored,
    read_output,
    read_cache,
    read_fused,
    read_repeated,
    read_packed,
    read_ggml,
    read_path,
)


def reread(
    entries: Iterable[Entry], view: View, names: NameMap | None = None
) -> tuple[list[Entry], list[Unmatched]]:
    """The entries under addresses of byhand, and those that stand for no step."""
    kept: list[Entry] = []
    left: list[Unmatched] = []
    for entry in entries:
        for each in _read(entry, view, names):
            if isinstance(each, Entry):
                kept.append(each)
            else:
                left.append(each)
    return kept, list(_together(left))


def _together(left: list[Unmatched]) -> Iterator[Unmatched]:
    """What a graph computes on the way, in one line; everything else name by name."""
    several = Counter(each.reason for each in left)
    told: set[str] = set()
    for each in left:
        count = several[each.reason]
        if each.reason not in (no_step(), no_name()) or count < FEW:
            yield each
        elif each.reason not in told:
            told.add(each.reason)
            more = _("{name} and {count} more").format(name=each.name, count=count - 1)
            yield replace(each, name=more)


def _read(entry: Entry, view: View, names: NameMap | None) -> list[Entry | Unmatched]:
    if names is not None and (found := names.read(entry, view)) is not None:
        return found
    if entry.given or _is_ours(entry.name, view):
        return [entry]
    for way in WAYS if entry.problem is None else (read_path,):
        if (found := way(entry, view)) is not None:
            return found
    return [entry]


def _is_ours(name: str, view: View) -> bool:
    """Whether it is an address of byhand, perhaps with an index."""
    plain = name.strip().partition("[")[0].rstrip()
    return plain in view.plan.known or plain.startswith(OURS)


__all__ = [
    "NameMap",
    "Text",
    "View",
    "loosened",
    "opened",
    "precision_of",
    "processed",
    "processing_told",
    "reread",
]
