"""The figure of the whole pass as data: stations on the residual stream, and beside it the
side-trips of attention and MLP, which read it and add to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from byhand.language import _
from byhand.plan import WEIGHT, Plan
from byhand.publishing.book import Edge, Node, Spine
from byhand.publishing.parts import NumberRow
from byhand.publishing.showing import Showing
from byhand.publishing.topics import Topic, topics
from byhand.tracing import weakest

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
    """The numbers of a station, position by position, where the figure can hold them."""
    worked = showing.trace.steps.get(address)
    if worked is None or worked.missing is not None or not showing.everything:
        return ()
    shape = worked.step.shape
    if not shape or len(showing.labels) > LONGEST_TEXT:
        return ()
    if worked.whole:
        rows = [(place,) for place in range(shape[0])]
        return tuple(
            NumberRow(row[0], showing.labels[row[0]], "exact", (showing.number(worked, row),))
            for row in rows
        )
    if worked.step.axes == ("one",):
        number = showing.number(worked, (0,))
        return (NumberRow(0, "", number.cell.register, (number,)),)
    if (len(shape) == 3 and shape[0] > 1) or shape[-1] > WIDEST_ROW:
        return ()
    head = (0,) if len(shape) == 3 else ()
    return tuple(
        NumberRow(
            place,
            showing.labels[place],
            showing.row_register(worked, (*head, place)),
            tuple(showing.number(worked, (*head, place, i)) for i in range(shape[-1]))
            if len(shape) > len(head) + 1
            else (showing.number(worked, (*head, place)),),
        )
        for place in range(shape[len(head)])
    )


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
