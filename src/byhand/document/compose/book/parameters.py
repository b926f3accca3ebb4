"""The parameters: counted with formulas, and every tensor of them as far as there is room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byhand.address import write_index
from byhand.document import words
from byhand.document.book import Page, Passage
from byhand.document.compose.book.edition import LARGE, TOY, Edition
from byhand.document.compose.book.passages import asked_numbers, claim_remarks, claims_title
from byhand.document.compose.book.strips import near_weight, statistics, weight_strip
from byhand.document.compose.given import symbol_of
from byhand.document.compose.listing import component_name, inventory_notes, inventory_totals
from byhand.document.parts import (
    LeftOut,
    ParameterLine,
    ParameterTable,
    Part,
    ShapeLine,
    ShapeTable,
    StatisticsTable,
)
from byhand.document.verdict_parts import VerdictTable
from byhand.language import _
from byhand.plan import WEIGHT
from byhand.spec import Parameter

SLUG = "parameters"
MOST_STATISTICS = 400_000_000  # parameters whose statistics are worth the wait


def page(edition: Edition) -> Page:
    return Page(
        SLUG,
        _("The parameters"),
        _("What the model has learned, counted to the digit, and the shapes it works in."),
        tuple(_passages(edition)),
    )


def _passages(edition: Edition) -> Iterator[Passage]:
    yield _counted(edition)
    yield _shapes(edition)
    yield from _tensors(edition)


# ------------------------------------------------------------------ counted


def _counted(edition: Edition) -> Passage:
    inventory = edition.inventory
    largest = max(inventory.groups, key=lambda group: group.total)
    sentences = [
        _("The model has {count} parameters.").format(count=words.whole(inventory.total)),
        _("Most of them, {count}, are in {part}: {formula} = {numbers}.").format(
            count=words.whole(largest.total),
            part=component_name(largest.line, largest.layers),
            formula=largest.line.formula,
            numbers=f"{largest.line.numbers} = {words.whole(largest.line.count)}"
            + (f" × {largest.times}" if largest.times > 1 else ""),
        ),
        *inventory_notes(inventory),
    ]
    names = [line.address.partition("[")[0] for line in edition.checked]
    counts = [name for name in names if name.startswith("count.")]
    checked = edition.checked_of(counts)
    show: list[Part] = [_table(edition)]
    if checked:
        show.append(VerdictTable(claims_title(edition), checked))
    return Passage(
        f"{SLUG}-counted",
        _("Counted to the digit"),
        tuple(sentences),
        show=tuple(show),
        remarks=tuple(claim_remarks(edition, counts)),
    )


def _table(edition: Edition) -> ParameterTable:
    inventory = edition.inventory
    addresses = ["count.total", "count.without_biases", "count.unique"]
    found = list(inventory_totals(inventory, weights_known=True))
    layers = len(found) - len(addresses)
    addresses += [f"count.block.{layer}" for layer in range(layers)]
    counts = inventory.numbers
    wording = {"count.without_biases": _("without the biases of matrices")}
    return ParameterTable(
        lines=tuple(
            ParameterLine(
                address=group.line.address,
                part=component_name(group.line, group.layers),
                layers=group.layers,
                tensors=tuple(WEIGHT + name for name in group.line.names),
                formula=group.line.formula,
                numbers=group.line.numbers,
                count=group.line.count,
                total=group.total,
                share=group.total / inventory.total,
            )
            for group in inventory.groups
        ),
        totals=tuple(
            (address, wording.get(address, name), counts[address])
            for address, (name, _size) in zip(addresses, found, strict=True)
        ),
        symbols=_symbols(edition),
    )


def _symbols(edition: Edition) -> tuple[tuple[str, int, str], ...]:
    meaning = {
        "vocab": _("tokens of the vocabulary"),
        "d": _("width of the residual stream"),
        "context": _("longest text"),
        "heads": _("heads"),
        "kv_heads": _("heads of keys and values"),
        "d_head": _("width of a head"),
        "d_ff": _("hidden numbers of the MLP"),
        "rope_width": _("entries of a head that are turned"),
    }
    known: dict[str, int] = {}
    for line in edition.inventory.lines:
        known.update(dict(line.symbols))
    return tuple((name, known[name], text) for name, text in meaning.items() if name in known)


# ------------------------------------------------------------------ shapes


def _shapes(edition: Edition) -> Passage:
    """Every step with its shape; equal layers once."""
    plan = edition.trace.plan
    found: dict[tuple[str, ...], list[ShapeLine]] = {}
    for step in plan:
        parts = step.address.split(".")
        name = ".".join(["block", "L", *parts[2:]]) if parts[0] == "block" else step.address
        entries = 1
        for size in step.shape:
            entries *= size
        formula = words.formula_text(step.formula)
        line = ShapeLine(step.address, formula, step.axes, step.shape, entries)
        found.setdefault((name, formula, *map(str, step.shape)), []).append(line)
    numbers = sum(line.entries for lines in found.values() for line in lines)
    spec = edition.model.spec
    return Passage(
        f"{SLUG}-shapes",
        _("The shape of every step"),
        (
            _(
                "For a text of {length} tokens the pass has {steps} steps and {numbers} numbers."
            ).format(
                length=words.whole(len(edition.trace.tokens)),
                steps=words.whole(len(plan)),
                numbers=words.whole(numbers),
            ),
            _(
                "The stream keeps its shape, {length} × {d}, from the first station to the last: "
                "layers make the model deeper, never wider."
            ).format(length=words.whole(len(edition.trace.tokens)), d=words.whole(spec.d_model)),
        ),
        show=(
            ShapeTable(
                tuple(lines[0] for lines in found.values()),
                tuple(len(lines) for lines in found.values()),
            ),
        ),
    )


# ------------------------------------------------------------------ the tensors themselves


def _tensors(edition: Edition) -> Iterator[Passage]:
    """Every tensor, those of a block together."""
    groups: dict[str, list[Parameter]] = {}
    for name, parameter in edition.showing.parameters.items():
        parts = name.split(".")
        group = f"block-{parts[1]}" if parts[0] == "block" else "outside"
        groups.setdefault(group, []).append(parameter)
    for group, members in groups.items():
        layer = None if group == "outside" else int(group.partition("-")[2])
        if layer is not None and layer not in edition.layers_shown:
            continue
        yield _group(edition, group, layer, members)
    hidden = [layer for layer in range(len(edition.model.spec.blocks))
              if layer not in edition.layers_shown]  # fmt: skip
    if hidden and (first := groups.get(f"block-{hidden[0]}")):
        yield Passage(
            f"{SLUG}-left-out",
            _("The other blocks"),
            (
                _("The tensors of {count} more blocks have the same shapes.").format(
                    count=len(hidden)
                ),
            ),
            show=(
                LeftOut(
                    _("Any of their numbers comes with"),
                    _command_for(edition, first[0]),
                ),
            ),
        )


def _command_for(edition: Edition, parameter: Parameter) -> str:
    """The command that shows the first number of a weight."""
    first = write_index((0,) * len(parameter.shape))
    return f"byhand trace {edition.command} --at '{WEIGHT}{parameter.name}{first}'"


def _group(
    edition: Edition, group: str, layer: int | None, members: Sequence[Parameter]
) -> Passage:
    size = sum(parameter.size for parameter in members)
    title = (
        _("The tables outside the blocks")
        if layer is None
        else _("The tensors of block {layer}").format(layer=layer)
    )
    text = _("{tensors} tensors with {count} numbers.").format(
        tensors=len(members), count=words.whole(size)
    )
    names = [WEIGHT + parameter.name for parameter in members]
    checked = edition.checked_of(names)
    show = [*_shown(edition, members, size), *asked_numbers(edition, names)]
    if checked:
        show.append(VerdictTable(claims_title(edition), checked))
    return Passage(
        f"{SLUG}-{group}",
        title,
        (text,),
        show=tuple(show),
        remarks=tuple(claim_remarks(edition, names)),
        layer=layer,
    )


def _shown(edition: Edition, members: Sequence[Parameter], size: int) -> Iterator[Part]:
    showing = edition.showing
    weights = edition.model.weights
    if edition.scale == TOY:
        for parameter in members:
            yield weight_strip(showing, parameter.name, parameter.name)
    elif edition.scale == LARGE:
        if edition.inventory.total <= MOST_STATISTICS:
            found = (
                statistics(WEIGHT + p.name, near_weight(weights[p.name].data)) for p in members
            )
            yield StatisticsTable(tuple(line for line in found if line is not None))
        else:
            lines = (ShapeLine(WEIGHT + p.name, "", p.axes, p.shape, p.size) for p in members)
            yield ShapeTable(tuple(lines), (1,) * len(members))
        yield LeftOut(
            _("{count} numbers are told by their statistics; any of them comes with").format(
                count=words.whole(size)
            ),
            _command_for(edition, members[0]),
        )
    else:
        for parameter in members:
            yield from showing.weight(parameter.name, _symbol(edition, parameter.name))


def _symbol(edition: Edition, name: str) -> str:
    """What a weight is called in the formulas; its own name where no step reads it."""
    if name not in edition.first_reader:
        return name
    step = edition.trace.plan[edition.first_reader[name]]
    role = next(role for role, read in step.inputs.items() if read == WEIGHT + name)
    return symbol_of(step, role, WEIGHT + name)
