"""Listings as parts: parameters, built-in models, a plan with its shapes, unproven numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING

from byhand.document import words
from byhand.document.parts import Column, Finding, Grid, NotWorked, Part, Stage, StepPart, Title
from byhand.document.words import whole
from byhand.language import _, amount, later

if TYPE_CHECKING:
    from byhand.counting import Inventory, Line
    from byhand.distinct import Held
    from byhand.model import Model
    from byhand.plan import Plan, Step
    from byhand.proof import Proof, Unproven
    from byhand.storage import Space
    from byhand.tracing import Trace

MOST_UNPROVEN = 10  # numbers and tokens listed one by one
MOST_TOKENS = 4  # candidates for the next token that are named
FEW_ENTRIES = 2_000  # of weights whose tensors are listed one by one
MOST_FORMATS = 3  # formats of a component that are named
NARROW = 3  # significant digits of the distance between two logits


# ------------------------------------------------------------------ the parameter inventory


def inventory_parts(inventory: Inventory, weights_known: bool = False) -> Iterator[Part]:
    """The components with their formulas, the totals, and notes on the counts."""
    yield Title(inventory.model, "", ())
    yield inventory_grid(inventory, weights_known)
    yield from map(Finding, inventory_notes(inventory))
    if inventory.buffers:
        columns = (Column(""), Column("", "formula"))
        rows = ((component_name(line, (line.layer,)), _formula(line)) for line in inventory.buffers)
        yield Grid(_("Buffers, which are needed but not learned:"), columns, tuple(rows))
    if inventory.held is not None:
        yield from held_parts(inventory.held)


def held_parts(held: Held) -> Iterator[Part]:
    """The different numbers that the weights hold: all together, and by tensor where few."""
    whole_model = held.whole
    yield Finding(
        _("The weights hold {different} different numbers, zeros apart; {zeros} of {entries} "
          "entries are 0.").format(
            different=whole(whole_model.different),
            zeros=whole(whole_model.zeros),
            entries=whole(whole_model.entries),
        )
    )  # fmt: skip
    if whole_model.entries <= FEW_ENTRIES:
        columns = (
            Column(_("weight")),
            Column(_("different"), "number"),
            Column(_("zeros"), "number"),
            Column(_("entries"), "number"),
        )
        rows = (
            (each.name, whole(each.different), whole(each.zeros), whole(each.entries))
            for each in held.tensors
        )
        yield Grid("", columns, tuple(rows))


def inventory_grid(inventory: Inventory, weights_known: bool) -> Grid:
    """The inventory as a table by component, with the number of layers that have it."""
    layers = any(group.times > 1 for group in inventory.groups)
    columns = [Column(_("component")), Column(_("formula"), "formula")]
    columns += [Column(_("layers"), "number")] * layers
    rows = []
    for group in inventory.groups:
        times = [f"× {group.times}" if group.times > 1 else ""] * layers
        name = component_name(group.line, group.layers)
        space = _space_cells(inventory.space(group))
        rows.append((name, _formula(group.line), *times, whole(group.total), *space))
    blank = [""] * (len(columns) - 1)
    totals = [
        (name, *blank, whole(size)) for name, size in inventory_totals(inventory, weights_known)
    ]
    columns.append(Column(_("parameters"), "number"))
    if inventory.storage is not None:
        columns += [Column(_("bits"), "number"), Column(_("bytes"), "number")]
        columns.append(Column(_("stored as")))
        whole_model = _space_cells(inventory.storage.whole)
        totals = [
            (*row, *(whole_model if at == 0 else ("", "", ""))) for at, row in enumerate(totals)
        ]
    return Grid("", tuple(columns), tuple(rows), tuple(totals))


def _space_cells(space: Space | None) -> tuple[str, ...]:
    """The bits of a weight, the bytes of all of them, and their formats."""
    if space is None:
        return ()
    if not space.entries:
        return "", "", ""
    formats = words.some_of(list(space.formats), MOST_FORMATS)
    return few_digits(space.bits), whole(space.bytes), formats


def few_digits(bits: Fraction) -> str:
    """A number of bits to two places, without zeros at the end: 4.25, 16."""
    return f"{float(round(bits, 2)):.2f}".rstrip("0").rstrip(".")


def _formula(line: Line) -> str:
    """4·d² = 4·64² = 16,384"""
    return " = ".join(dict.fromkeys([line.formula, line.numbers, whole(line.count)]))


def component_name(line: Line, layers: Sequence[int | None]) -> str:
    """A component of the inventory in words, with the blocks it is in."""
    names = {
        "embedding": _("token embedding"),
        "position": _("position embedding"),
        "attention": _("attention"),
        "mlp": _("MLP"),
        "norm": _("norms"),
        "head": _("head"),
    }
    name = names[line.part]
    apart = {
        "count.final.norm": _("final norm"),
        "count.embed.norm": _("norm of the embedding"),
        "count.head.norm": _("norm of the head"),
    }
    at = line.address.replace(line.stack, "", 1) if line.stack else line.address
    name = apart.get(at, name)
    if ".cross" in line.address:
        norms = line.part == "norm"
        name = _("norms of cross-attention") if norms else _("cross-attention")
    if line.kind == "bias":
        name = _("{part}, biases").format(part=name)
    known = [layer for layer in layers if layer is not None]
    if not known:
        return _("encoder · {part}").format(part=name) if line.stack else name
    if known == list(range(known[0], known[-1] + 1)) and len(known) > 1:
        which = f"{known[0]}–{known[-1]}"
    else:
        which = ", ".join(map(str, known))
    block = _("encoder's block {which} · {part}") if line.stack else _("block {which} · {part}")
    return block.format(which=which, part=name)


def inventory_totals(inventory: Inventory, weights_known: bool) -> Iterator[tuple[str, int]]:
    """The totals in words; with `weights_known`, also those that depend on weights."""
    yield _("total"), inventory.total
    yield _("without biases"), inventory.without_biases
    if weights_known:  # only the weights tell which tensors are shared
        yield _("unique"), inventory.unique
    layers = inventory.layers
    if len(layers) > 1 and len(set(layers)) == 1:
        yield _("each of the {count} blocks").format(count=len(layers)), layers[0]
    else:
        for layer, size in enumerate(layers):
            yield _("block {which}").format(which=layer), size


def totals(inventory: Inventory) -> Iterator[tuple[str, str, int]]:
    """The address, the words and the number of each total."""
    addresses = ["count.total", "count.without_biases", "count.unique"]
    found = list(inventory_totals(inventory, weights_known=True))
    addresses += [f"count.block.{layer}" for layer in range(len(found) - len(addresses))]
    wording = {"count.without_biases": _("without the biases of matrices")}
    for address, (name, _size) in zip(addresses, found, strict=True):
        yield address, wording.get(address, name), inventory.numbers[address]


def inventory_notes(inventory: Inventory) -> Iterator[str]:
    """Notes on the counts."""
    if inventory.without_biases != inventory.total and inventory.norms:
        yield _(
            "Without biases means without those of attention, MLP and head; "
            "the norms keep their {count} gains and biases."
        ).format(count=whole(inventory.norms))
    if inventory.tied:
        yield _("The head is tied: it is the token embedding again and adds nothing.")
    for name, owner in inventory.shared:
        yield _("{name} is {owner}, counted once under unique.").format(name=name, owner=owner)


# ------------------------------------------------------------------ models and plans


def model_parts(found: Iterable[tuple[Model, int]]) -> Iterator[Part]:
    """Each model with its size and a command that traces it."""
    for model, parameters in found:
        text = model.text or ""
        quoted = f'"{text}"' if " " in text else text
        call = f"byhand trace {model.name} {quoted}".rstrip()
        size = amount(parameters, later("1 parameter"), later("{count} parameters"))
        yield Title(model.name, words.told(model.about), ((_("try"), call),), aside=size)
    yield Finding(_("A model file of your own works wherever these names do."))


def plan_parts(plan: Plan, shown: set[str], names: str = "byhand") -> Iterator[Part]:
    """Every step of a plan with its formula and its axes, by stage."""
    said = _("a plan for {count} tokens: {steps} steps, no numbers")
    about = said.format(count=plan.length, steps=len(shown))
    yield Title(plan.spec.name, about, ())
    called = plan.in_style(names)
    steps = [step for step in plan if step.address in shown]
    placed = zip(steps, words.places(step.address for step in steps), strict=True)
    for place, stage in groupby(placed, key=lambda pair: pair[1]):
        yield Stage(words.stage_title(place), "")
        yield NotWorked(
            "",
            tuple(
                StepPart(called[step.address], (), step.formula, step.axes, step.shape, None)
                for step, _place in stage
            ),
        )


def distinct_steps(plan: Plan) -> list[tuple[Step, int]]:
    """The steps of a plan; equal steps of several layers appear once, with their number."""
    found: dict[tuple[object, ...], list[Step]] = {}
    for step in plan:
        parts = step.address.split(".")
        name = ".".join(parts[2:]) if parts[0] == "block" else step.address
        found.setdefault((parts[0], name, step.formula, step.shape), []).append(step)
    return [(same[0], len(same)) for same in found.values()]


# ------------------------------------------------------------------ what is not proven


def unproven(trace: Trace) -> Finding:
    """A sentence for each of the first unproven numbers, then how many more there are."""
    proof = trace.proof
    assert proof is not None
    lead = _("not proven to {digits} digits, with {bits} bits:")
    told = [_open(one, proof, trace) for one in proof.undecided[:MOST_UNPROVEN]]
    if (more := proof.count - len(told)) > 0:
        told.append(_("and {count} more").format(count=whole(more)))
    return Finding(lead.format(digits=proof.digits, bits=whole(proof.bits)), tuple(told), True)


def _open(one: Unproven, proof: Proof, trace: Trace) -> str:
    """What is undecided, and how close it is."""
    if one.asked == "next":
        tokens = [words.token_label(trace.answer(id)) for id in one.candidates]
        text = _("{address}: {tokens}, {distance} apart")
        return text.format(
            address=one.address,
            tokens=words.some_of(tokens, MOST_TOKENS),
            distance=" ± ".join(one.enclosure.interval(NARROW)),
        )
    if one.asked == "experts":
        text = _("{address}: expert {experts}, whose scores are {distance} apart")
        return text.format(
            address=one.address,
            experts=words.some_of(list(map(str, one.candidates)), MOST_TOKENS),
            distance=" ± ".join(one.enclosure.interval(NARROW)),
        )
    shown = " ± ".join(one.enclosure.interval(proof.digits))
    if one.enclosure.contains(0):
        return _("{address} = {shown}, perhaps zero").format(address=one.address, shown=shown)
    return f"{one.address} = {shown}"
