"""The figure of the whole pass as data: stations on the residual stream, with side-trips beside it.

Attention and MLP are the side-trips: they read the stream and add to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byhand.document.book import Edge, Node, Spine
from byhand.document.compose.book.numbers import Showing
from byhand.document.compose.book.topics import Topic, topics
from byhand.document.numerals import localised
from byhand.document.parts import NumberRow
from byhand.language import _
from byhand.plan import WEIGHT, Plan, Step
from byhand.tracing import Worked, weakest

WIDEST_ROW = 6  # numbers of a row that the figure can hold
LONGEST_TEXT = 6  # positions


def spine(showing: Showing, plan: Plan | None = None) -> Spine:
    """The figure of a trace; with the numbers in it where they are few.

    Of a trace of a part of the pass, `plan` may be the whole of it: the rest has no numbers.
    """
    plan = plan or showing.trace.plan
    nodes = tuple(_node(showing, topic) for topic in topics(plan))
    owner = {step: node.id for node in nodes for step in node.steps}
    return Spine(nodes, tuple(_edges(plan, nodes, owner)), len(plan.spec.blocks))


def _node(showing: Showing, topic: Topic) -> Node:
    last = topic.addresses[-1]
    found = [showing.trace.steps[a].register for a in topic.addresses if a in showing.trace.steps]
    known = [register for register in found if register is not None]
    return Node(
        id=f"node-{topic.id}" if topic.layer is None else f"block-{topic.id}",
        label=label(topic),
        kind=_kind(topic),
        layer=topic.layer,
        trip=topic.trip,
        steps=topic.addresses,
        shows=last,
        rows=_rows(showing, last),
        said=_said(showing, last),
        register=weakest(known) if known else None,
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
    """The numbers of a station, position by position (of a long text, of the last one alone)."""
    worked = showing.trace.steps.get(address)
    if worked is None or worked.missing is not None or not showing.everything:
        return ()
    step, length = worked.step, len(showing.labels)
    last = length - 1
    if not step.shape:
        return ()
    if step.axes == ("one",):
        return (_row(showing, worked, last, [(0,)]),)
    first = 0 if length <= LONGEST_TEXT else last
    found = ((place, _indices(step, place)) for place in range(first, length))
    return tuple(_row(showing, worked, place, at) for place, at in found if at)


def _indices(step: Step, place: int) -> list[tuple[int, ...]]:
    """Where a step's numbers of one position are, its heads side by side; none: too many."""
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
    """The numbers of one position; a predicted id is left to its word."""
    if worked.step.op == "argmax":
        return NumberRow(place, showing.labels[place], "exact", ())
    numbers = tuple(showing.number(worked, index) for index in at)
    known = [number.cell.register for number in numbers if number.cell.register is not None]
    return NumberRow(place, showing.labels[place], weakest(known) if known else None, numbers)


def _said(showing: Showing, address: str) -> dict[int, str]:
    """What the end of the pass says in words: the next token, its logit, how likely it is."""
    trace = showing.trace
    if address not in ("logits", "probs", "next") or not trace.next or not showing.everything:
        return {}
    found = {}
    for place, prediction in enumerate(trace.next):
        if prediction.id is not None:
            token = showing.token(prediction.id)
            if address != "next":
                number = showing.cell(trace.steps[address], (place, prediction.id)).decimal
                token = f"{token} {localised(number or '')}"
            found[place] = token
    return found


def label(topic: Topic) -> str:
    """What stands at a station."""
    match topic.kind:
        case "tokens":
            return _("tokens")
        case "embed":
            return _("embed")
        case "position":
            return _("position")
        case "stream":
            return _("+ position")
        case "norm":
            rms = topic.step("rms") is not None
            return _("RMSNorm") if rms else _("layer norm")
        case "qkv":
            return _("q, k, v")
        case "qk_norm":
            return _("norm of q, k")
        case "rotate":
            return _("rotate")
        case "scores":
            return _("scores")
        case "weights":
            return _("softmax")
        case "mixed":
            return _("mix")
        case "attn_out":
            return _("output")
        case "add":
            return _("+ attention") if topic.trip == "attn" else _("+ MLP")
        case "hidden":
            return _("hidden")
        case "act":
            return _("activation")
        case "mlp_out":
            return _("output")
        case "logits":
            return _("logits")
        case "probs":
            return _("softmax")
        case "next":
            return _("next token")
        case _:
            return _("loss")


def _edges(plan: Plan, nodes: tuple[Node, ...], owner: dict[str, str]) -> Iterator[Edge]:
    """Who reads whom, each pair of stations once."""
    kinds = {node.id: node.kind for node in nodes}
    seen: set[tuple[str, str]] = set()
    for step in plan:
        target = owner[step.address]
        for read in step.reads:
            source = None if read.startswith(WEIGHT) else owner.get(read)
            if source is None or source == target or (source, target) in seen:
                continue
            seen.add((source, target))
            along = "trip" not in (kinds[source], kinds[target])
            yield Edge(source, target, "stream" if along else "trip")
