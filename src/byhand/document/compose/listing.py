"""Plain listings: the parameter inventory, the built-in models, a plan with its shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from byhand.document import words
from byhand.document.media.terminal.ink import Ink, padded, width_of, wrap
from byhand.document.words import whole
from byhand.language import _

if TYPE_CHECKING:
    from byhand.counting import Group, Inventory, Line
    from byhand.plan import Plan

INDENT = "  "


def columns(rows: Iterable[Sequence[str]], right: Sequence[bool]) -> Iterator[str]:
    """Rows of text in aligned columns; `right` says which stand to the right."""
    table = [list(row) for row in rows]
    widths = [max(map(width_of, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (
            " " * (width - width_of(text)) * to_right + padded(text, 0 if to_right else width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        )
        yield (INDENT + "   ".join(cells)).rstrip()


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], width: int | None
) -> Iterator[str]:
    """A head and rows in columns; where a terminal of a width has no room for them, a row in lines
    of its own."""
    lines = list(columns([head, *rows], right))
    if width is None or max(map(width_of, lines)) <= width:
        yield from lines
        return
    room = max(width_of(name) for name in head[1:])
    for row in rows:
        yield INDENT + row[0]
        for name, value in zip(head[1:], row[1:], strict=True):
            lead = f"{INDENT * 2}{padded(name, room)}  "
            if value:
                yield from wrap(lead + value, width, subsequent_indent=" " * width_of(lead))


def paragraph(text: str, width: int, indent: str = INDENT) -> list[str]:
    return wrap(text, width, initial_indent=indent, subsequent_indent=indent)


# ------------------------------------------------------------------ the parameter inventory


def inventory_lines(
    inventory: Inventory, weights_known: bool, width: int, ink: Ink, terminal: int | None = None
) -> Iterator[str]:
    """The inventory as a table by component, then the totals; `terminal` has so many columns."""
    yield ink(inventory.model, "strong")
    yield ""
    layers = any(group.times > 1 for group in inventory.groups)
    head = [_("component"), _("formula"), _("layers") if layers else "", _("parameters")]
    rows = [_inventory_row(group) for group in inventory.groups]
    totals = [["", "", "", ""], *inventory_totals(inventory, weights_known)]
    lines = list(table(head, [*rows, *totals], (False, False, True, True), terminal))
    rule = INDENT + "─" * (max(map(width_of, lines)) - len(INDENT))
    yield ink(lines[0], "quiet" if head[0] in lines[0] else None)
    yield from (line if line.strip() else ink(rule, "quiet") for line in lines[1:])
    for note in inventory_notes(inventory):
        yield ""
        yield from paragraph(note, width)
    if inventory.buffers:
        yield ""
        yield from paragraph(_("Buffers, which are needed but not learned:"), width)
        for name, formula in _buffers(inventory):
            yield from wrap(f"{INDENT}{name}   {formula}", width, subsequent_indent=INDENT * 2)


def _buffers(inventory: Inventory) -> Iterator[tuple[str, str]]:
    """(name, formula) of each buffer; the formulas stand below each other."""
    names = [component_name(buffer, (buffer.layer,)) for buffer in inventory.buffers]
    room = max(map(width_of, names))
    for name, buffer in zip(names, inventory.buffers, strict=True):
        yield padded(name, room), _formula(buffer)


def _inventory_row(group: Group) -> list[str]:
    times = f"× {group.times}" if group.times > 1 else ""
    return [
        component_name(group.line, group.layers),
        _formula(group.line),
        times,
        whole(group.total),
    ]


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
    if line.address == "count.final.norm":
        name = _("final norm")
    if line.kind == "bias":
        name = _("{part}, biases").format(part=name)
    known = [layer for layer in layers if layer is not None]
    if not known:
        return name
    if known == list(range(known[0], known[-1] + 1)) and len(known) > 1:
        which = f"{known[0]}–{known[-1]}"
    else:
        which = ", ".join(map(str, known))
    return _("block {which} · {part}").format(which=which, part=name)


def inventory_totals(inventory: Inventory, weights_known: bool) -> Iterator[list[str]]:
    """The totals as rows of the inventory; `weights_known`: those too that only weights tell."""
    found = [(_("total"), inventory.total), (_("without biases"), inventory.without_biases)]
    if weights_known:  # which tensors are the same one, only the weights tell
        found.append((_("unique"), inventory.unique))
    layers = inventory.layers
    if len(layers) > 1 and len(set(layers)) == 1:
        found.append((_("each of the {count} blocks").format(count=len(layers)), layers[0]))
    else:
        for layer, size in enumerate(layers):
            found.append((_("block {which}").format(which=layer), size))
    yield from ([name, "", "", whole(size)] for name, size in found)


def inventory_notes(inventory: Inventory) -> Iterator[str]:
    """What the counts alone do not say."""
    if inventory.without_biases != inventory.total and inventory.norms:
        yield _(
            "Without biases means without those of attention, MLP and head; "
            "the norms keep their {count} gains and biases."
        ).format(count=whole(inventory.norms))
    if inventory.tied:
        yield _("The head is tied: it is the token embedding again and adds nothing.")
    for name, owner in inventory.shared:
        yield _("{name} is {owner}, counted once under unique.").format(name=name, owner=owner)


# ------------------------------------------------------------------ a plan with its shapes


def plan_lines(
    plan: Plan, shown: set[str], width: int, ink: Ink, names: str = "byhand"
) -> Iterator[str]:
    """Every step of a plan with its formula and its axes, by stage; no number is known."""
    called = plan.in_style(names)
    yield ink(plan.spec.name, "strong")
    said = _("a plan for {count} tokens: {steps} steps, no numbers")
    yield from paragraph(said.format(count=plan.length, steps=len(shown)), width, "")
    place = None
    for step in plan:
        if step.address not in shown:
            continue
        if (here := words.place_of(step.address)) != place:
            place = here
            title = words.stage_title(place)
            yield ""
            yield ink(f"── {title} {'─' * (width - width_of(title) - 4)}", "stage")
        left = f"{INDENT}{called[step.address]} = {words.formula_text(step.formula)}"
        right = words.axes_text(step.axes, step.shape)
        room = width - width_of(left) - width_of(right)
        if room >= 2:
            yield f"{left}{' ' * room}{ink(right, 'quiet')}"
        else:
            yield from wrap(left, width, subsequent_indent=INDENT * 2, break_on_hyphens=False)
            yield " " * (width - width_of(right)) + ink(right, "quiet")
