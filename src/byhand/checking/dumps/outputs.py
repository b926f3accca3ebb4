"""What `transformers` returns beside the logits: hidden_states.N and attentions.N.

The first of the hidden states is what enters the first block, the last one comes after the last
norm.  They are numbered in names, members of a tuple, or stacked in one array.
"""

from __future__ import annotations

import re
from dataclasses import replace

from byhand.checking.claims import Entry, Unmatched
from byhand.checking.dumps.view import Read, View, aside, called
from byhand.language import _

_NUMBERED = re.compile(
    r"(?:outputs?[./])?(?P<stack>decoder_|encoder_)?(?P<kind>hidden_states|attentions|cross_attentions"
    r"|last_hidden_state)(?:[./_\[](?P<place>\d{1,6})\]?)?"
)


def read_output(entry: Entry, view: View) -> Read | None:
    """What a hidden state, or the weights of attention, is read as; None for another name."""
    match = _NUMBERED.fullmatch(entry.name)
    if match is None:
        return None
    stack = "encoder." if match["stack"] == "encoder_" else ""
    kind = match["kind"]
    if kind == "last_hidden_state":
        return [called(entry, _end(stack, view), _("after the last norm"))]
    if match["place"] is not None:
        return [_numbered(entry, kind, stack, int(match["place"]), view)]
    arrays = (entry.values, *entry.beside)
    if not entry.beside and entry.values.ndim and len(entry.values) == _count(kind, stack, view):
        arrays = tuple(entry.values)
    elif not entry.beside:
        return None
    return [
        _numbered(replace(entry, values=each, said=f"{entry.name}.{at}", beside=()),
                  kind, stack, at, view)
        for at, each in enumerate(arrays)
    ]  # fmt: skip


def _count(kind: str, stack: str, view: View) -> int:
    spec = view.plan.spec
    blocks = spec.encoder.blocks if stack and spec.encoder else spec.blocks
    return len(blocks) + (kind == "hidden_states")


def _end(stack: str, view: View) -> str:
    last = f"{stack}stream.{_count('', stack, view)}"
    return view.first(f"{stack}final.norm.out", f"{stack}final.norm.normalized", last) or last


def _numbered(entry: Entry, kind: str, stack: str, place: int, view: View) -> Entry | Unmatched:
    count = _count(kind, stack, view)
    if place >= count:
        return aside(entry, _("there are {count} of them: 0 to {last}").format(
            count=count, last=count - 1
        ))  # fmt: skip
    if kind != "hidden_states":
        part = "cross" if kind == "cross_attentions" else "attn"
        return called(entry, f"{stack}block.{place}.{part}.weights")
    if place == count - 1:
        return called(entry, _end(stack, view), _("the last hidden state is after the last norm"))
    return called(entry, f"{stack}stream.{place}")
