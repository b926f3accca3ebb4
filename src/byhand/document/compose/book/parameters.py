"""The parameters: their counts with formulas, and every tensor that there is room for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from byhand.address import write_index
from byhand.document import words
from byhand.document.book import Page, Passage
from byhand.document.compose.book.claims import claim_remarks, claims_title
from byhand.document.compose.book.edition import LARGE, TOY, Edition
from byhand.document.compose.book.passages import asked_numbers
from byhand.document.compose.book.strips import near_weight, statistics, weight_strip
from byhand.document.compose.forms import symbol_of
from byhand.document.compose.listing import component_name, distinct_steps, inventory_notes, totals
from byhand.document.parts import Column, Facts, Grid, LeftOut, Part
from byhand.document.parts.verdicts import VerdictTable
from byhand.document.words import whole
from byhand.language import _
from byhand.parameters import Parameter
from byhand.plan import WEIGHT, Step

SLUG = "parameters"
MOST_STATISTICS = 400_000_000  # largest model whose statistics are computed


def page(edition: Edition) -> Page:
    """The page on the parameters and shapes."""
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
        _("The model has {count} parameters.").format(count=whole(inventory.total)),
        _("Most of them, {count}, are in {part}: {formula} = {numbers}.").format(
            count=whole(largest.total),
            part=component_name(largest.line, largest.layers),
            formula=largest.line.formula,
            numbers=f"{largest.line.numbers} = {whole(largest.line.count)}"
            + (f" × {largest.times}" if largest.times > 1 else ""),
        ),
        *inventory_notes(inventory),
    ]
    names = [line.address.partition("[")[0] for line in edition.checked]
    counts = [name for name in names if name.startswith("count.")]
    checked = edition.checked_of(counts)
    show: list[Part] = [_symbols(edition), _table(edition)]
    if checked:
        show.append(VerdictTable(claims_title(edition), checked))
    return Passage(
        f"{SLUG}-counted",
        _("Counted to the digit"),
        tuple(sentences),
        show=tuple(show),
        remarks=tuple(claim_remarks(edition, counts)),
    )


def _table(edition: Edition) -> Grid:
    """Every component with its formula, the formula in numbers, and its count."""
    inventory = edition.inventory
    several = any(len(group.layers) > 1 for group in inventory.groups)
    columns = (
        Column(_("component")),
        Column(_("formula"), "formula"),
        Column(_("with numbers"), "formula"),
        Column(_("count"), "number"),
        *([Column(_("in all layers"), "number")] if several else []),
        Column(_("share"), "share"),
    )
    rows = []
    for group in inventory.groups:
        names = (f"`{WEIGHT}{name}`" for name in group.line.names)
        total = whole(group.total) if len(group.layers) > 1 else ""
        rows.append(
            (
                "\n".join((component_name(group.line, group.layers), *names)),
                group.line.formula,
                group.line.numbers,
                whole(group.line.count),
                *([total] if several else []),
                f"{group.total / inventory.total:.4f}",
            )
        )
    return Grid(
        "",
        columns,
        tuple(rows),
        totals=tuple(
            (text, "", "", whole(count), *[""] * (len(columns) - 4))
            for _address, text, count in totals(inventory)
        ),
        addresses=tuple(group.line.address for group in inventory.groups),
    )


def _symbols(edition: Edition) -> Facts:
    """The meaning of the letters in the formulas."""
    meaning = {
        "vocab": _("tokens of the vocabulary"),
        "d": _("width of the residual stream"),
        "context": _("longest text"),
        "heads": _("heads"),
        "kv_heads": _("heads of keys and values"),
        "d_head": _("width of a head"),
        "d_ff": _("hidden numbers of the MLP"),
        "experts": _("MLPs to choose from"),
        "rope_width": _("entries of a head that are turned"),
    }
    known: dict[str, int] = {}
    for line in edition.inventory.lines:
        known.update(dict(line.symbols))
    return Facts(
        tuple(
            (f"{name} = {whole(known[name])}", text)
            for name, text in meaning.items()
            if name in known
        )
    )


# ------------------------------------------------------------------ shapes


def _shapes(edition: Edition) -> Passage:
    """The passage with every step's shape; equal layers appear once."""
    plan = edition.trace.plan
    numbers = sum(prod(step.shape) for step in plan)
    spec = edition.model.spec
    return Passage(
        f"{SLUG}-shapes",
        _("The shape of every step"),
        (
            _(
                "For a text of {length} tokens the pass has {steps} steps and {numbers} numbers."
            ).format(
                length=whole(len(edition.trace.tokens)),
                steps=whole(len(plan)),
                numbers=whole(numbers),
            ),
            _(
                "The residual stream keeps its shape, {length} × {d}, from the first "
                "station to the last: layers make the model deeper, never wider."
            ).format(length=whole(len(edition.trace.tokens)), d=whole(spec.d_model)),
        ),
        show=(shapes((step, step.formula, times) for step, times in distinct_steps(plan)),),
    )


def shapes(lines: Iterable[tuple[Step | Parameter, str, int]]) -> Grid:
    """Steps or tensors without their numbers; equal layers appear once, with their number."""
    rows = []
    for one, formula, times in lines:
        name = WEIGHT + one.name if isinstance(one, Parameter) else one.address
        rows.append(
            (
                f"`{name}` × {times}" if times > 1 else name,
                words.formula_text(formula, name),
                words.axes_text(one.axes, one.shape),
                whole(prod(one.shape)),
            )
        )
    columns = (
        Column(_("step"), "address"),
        Column(_("formula"), "formula"),
        Column(_("shape")),
        Column(_("entries"), "number"),
    )
    return Grid("", columns, tuple(rows))


# ------------------------------------------------------------------ the tensors themselves


def _tensors(edition: Edition) -> Iterator[Passage]:
    """A passage for each group of tensors, those of a block together."""
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
            show=(LeftOut(_("Any of their numbers comes with"), _command_for(edition, first[0])),),
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
        tensors=len(members), count=whole(size)
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
            near = ((WEIGHT + p.name, near_weight(weights[p.name].data)) for p in members)
            found = statistics(near)
            yield from () if found is None else (found,)
        else:
            yield shapes((parameter, "", 1) for parameter in members)
        yield LeftOut(
            _("{count} numbers are summarised by their statistics; any of them comes with").format(
                count=whole(size)
            ),
            _command_for(edition, members[0]),
        )
    else:
        for parameter in members:
            yield from showing.weight(parameter.name, _symbol(edition, parameter.name))


def _symbol(edition: Edition, name: str) -> str:
    """The symbol of a weight in the formulas; its own name if no step reads it."""
    if name not in edition.first_reader:
        return name
    step = edition.trace.plan[edition.first_reader[name]]
    role = next(role for role, read in step.inputs.items() if read == WEIGHT + name)
    return symbol_of(step, role, WEIGHT + name)
