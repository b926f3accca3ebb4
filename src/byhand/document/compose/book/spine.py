"""The figure of the whole pass as data: stations on the residual stream, with side-trips beside it.

The side-trips are attention and MLP, which read the stream and add to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from byhand.document.book import Node, Spine
from byhand.document.compose.book.numbers import Showing
from byhand.document.compose.book.topics import Topic, topics
from byhand.document.numerals import localised
from byhand.document.parts import NumberRow
from byhand.language import _
from byhand.plan import Plan, Step
from byhand.worked import Worked, weakest

WIDEST_ROW = 6  # numbers of a row that the figure can hold
LONGEST_TEXT = 6  # positions


def spine(showing: Showing, plan: Plan | None = None) -> Spine:
    """The figure of a trace, with its numbers if they are few.

    If the trace is only a part of the pass, `plan` may be the whole; other stations have no
    numbers.
    """
    plan = plan or showing.trace.plan
    found = topics(plan)
    reading = tuple(a for topic in found if topic.encoder for a in topic.addresses)
    nodes = [_node(showing, topic) for topic in found if not topic.encoder]
    if reading:  # one station: its page goes into it
        encoder = Node("node-encoder", _("encoder"), "end", None, "", reading, (), {})
        nodes.insert(0, encoder)
    return Spine(tuple(nodes), len(plan.spec.blocks))


def _node(showing: Showing, topic: Topic) -> Node:
    last = topic.addresses[-1]
    return Node(
        id=f"node-{topic.id}" if topic.layer is None else f"block-{topic.id}",
        label=label(topic),
        kind=_kind(topic),
        layer=topic.layer,
        trip=topic.trip,
        steps=topic.addresses,
        rows=_rows(showing, last),
        said=_said(showing, last),
    )


def _kind(topic: Topic) -> str:
    if topic.kind in ("tokens", "next", "loss"):
        return "end"
    if topic.layer is None or topic.kind == "add":
        return "stream"
    if topic.kind == "norm" and _after_add(topic):
        return "stream"
    return "trip"


def _after_add(topic: Topic) -> bool:
    """Whether a norm comes after the add, on the stream itself."""
    return topic.steps[0].reads[0].endswith(".add") and topic.steps[0].reads[0].startswith(
        f"block.{topic.layer}.{topic.trip}."
    )


def _rows(showing: Showing, address: str) -> tuple[NumberRow, ...]:
    """The numbers of a station at each position; of a long text, at the last one only."""
    worked = showing.trace.steps.get(address)
    if worked is None or worked.missing is not None or not showing.everything:
        return ()
    step, length = worked.step, len(showing.labels)
    last = length - 1
    if not step.shape or step.of_source:
        return ()
    if step.axes == ("one",):
        return (_row(showing, worked, last, [(0,)]),)
    first = 0 if length <= LONGEST_TEXT else last
    found = ((place, _indices(step, place)) for place in range(first, length))
    return tuple(_row(showing, worked, place, at) for place, at in found if at)


def _indices(step: Step, place: int) -> list[tuple[int, ...]]:
    """The indices of a step's numbers at one position, heads side by side; none if too many."""
    shape = step.shape
    if len(shape) == 1:
        return [(place,)]
    heads = range(shape[0]) if len(shape) == 3 else ()
    if max(len(heads), 1) * shape[-1] > WIDEST_ROW:
        return []
    columns = range(shape[-1])
    if heads:
        return [(head, place, i) for head in heads for i in columns]
    return [(place, i) for i in columns]


def _row(showing: Showing, worked: Worked, place: int, at: Sequence[tuple[int, ...]]) -> NumberRow:
    """The numbers of one position; a predicted id is shown as a word instead."""
    if worked.step.op == "argmax":
        return NumberRow(place, showing.labels[place], "exact", ())
    numbers = tuple(showing.number(worked, index) for index in at)
    known = [number.cell.register for number in numbers if number.cell.register is not None]
    return NumberRow(place, showing.labels[place], weakest(known) if known else None, numbers)


def _said(showing: Showing, address: str) -> dict[int, str]:
    """The words at the end of the pass: the next token, its logit, its probability."""
    trace = showing.trace
    if address not in ("logits", "probs", "next") or not trace.next or not showing.everything:
        return {}
    found = {}
    for place, prediction in enumerate(trace.next):
        if prediction.id is not None:
            token = showing.answer(prediction.id)
            if address != "next":
                number = showing.cell(trace.steps[address], (place, prediction.id)).decimal
                token = f"{token} {localised(number or '')}"
            found[place] = token
    return found


def label(topic: Topic) -> str:
    """The label of a station."""
    rms = topic.step("rms") is not None
    added = {"attn": _("+ attention"), "cross": _("+ source"), "mlp": _("+ MLP")}
    return {
        "tokens": _("tokens"),
        "embed": _("embed"),
        "position": _("position"),
        "stream": _("+ position"),
        "norm": _("RMSNorm") if rms else _("layer norm"),
        "qkv": _("q, k, v"),
        "qk_norm": _("norm of q, k"),
        "rotate": _("rotate"),
        "scores": _("scores"),
        "weights": _("softmax"),
        "mixed": _("mix"),
        "attn_out": _("output"),
        "add": added.get(topic.trip, ""),
        "segment": _("segment"),
        "embed_norm": _("RMSNorm") if rms else _("layer norm"),
        "after_norm": _("RMSNorm") if rms else _("layer norm"),
        "head_norm": _("RMSNorm") if rms else _("layer norm"),
        "distances": _("distances"),
        "latent": _("few numbers"),
        "clip": _("limits"),
        "shared": _("shared expert"),
        "head": _("head"),
        "router": _("router"),
        "hidden": _("hidden"),
        "act": _("activation"),
        "mlp_out": _("output"),
        "logits": _("logits"),
        "probs": _("softmax"),
        "next": _("next token"),
        "loss": _("loss"),
    }[topic.kind]
