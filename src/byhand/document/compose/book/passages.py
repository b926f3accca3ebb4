"""What the pages share: a passage from a topic, with its formulas, numbers, remarks and claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product

from byhand.address import Address, read_address, within, write_index
from byhand.document import words
from byhand.document.book import Passage
from byhand.document.compose.book.edition import LARGE, TOY, Edition
from byhand.document.compose.book.formulas import formula
from byhand.document.compose.book.strips import near, statistics, strip_of
from byhand.document.compose.book.topics import Topic
from byhand.document.compose.given import symbol_of, weight_cell
from byhand.document.parts import (
    AttentionPattern,
    Grid,
    HeatStrip,
    LeftOut,
    NumberRow,
    NumberTable,
    Part,
    Remark,
)
from byhand.document.parts import Number as Figure
from byhand.document.parts.verdicts import VerdictLine, VerdictTable
from byhand.language import _
from byhand.plan import WEIGHT, Step
from byhand.tracing import Worked

MOST_ASKED = 64  # numbers of one address asked for


def passage(
    edition: Edition,
    topic: Topic,
    slug: str,
    title: str,
    sentences: Iterable[str],
    *extra: Part,
    also: Sequence[str] = (),
) -> Passage:
    """A passage that tells a topic: all its steps with their formulas and numbers.

    `also` are further names of claims that are told here, such as the direction of a weight.
    """
    worked = [edition.trace.steps[address] for address in topic.addresses]
    drawn = {p.address for p in extra if isinstance(p, AttentionPattern) and not p.left_out}
    numbers = [
        part
        for part in numbers_of(edition, worked)
        if not isinstance(part, HeatStrip)
        or part.address not in drawn  # the pattern is its colours
    ]
    shown = [*weights_of(edition, topic), *extra, *numbers]
    shown += asked_numbers(edition, topic.addresses)
    checked = edition.checked_of((*topic.addresses, *also))
    if checked:
        shown.append(VerdictTable(claims_title(edition), checked))
    if missing := next((one.missing for one in worked if one.missing is not None), None):
        shown.append(LeftOut(words.why_missing(missing)))
    found = (formula(edition.showing, one) for one in worked)
    return Passage(
        id=f"{slug}-{topic.id}",
        title=title,
        sentences=tuple(sentence for sentence in sentences if sentence),
        lit=topic.addresses,
        formulas=tuple(one for one in found if one is not None),
        show=tuple(shown),
        remarks=(
            *remarks_of(edition, worked),
            *claim_remarks(edition, (*topic.addresses, *also)),
        ),
        layer=topic.layer,
        brief=edition.scale == LARGE and any(isinstance(part, Grid) for part in numbers),
    )


def title_of(edition: Edition, layer: int | None, title: str) -> str:
    """With several blocks, which one it is about."""
    if layer is None or len(edition.model.spec.blocks) == 1:
        return title
    return _("{title} · block {layer}").format(title=title, layer=layer)


# ------------------------------------------------------------------ the numbers of steps


def numbers_of(edition: Edition, steps: Sequence[Worked]) -> Iterator[Part]:
    """The numbers of some steps, as much of them as the scale of the book has room for."""
    known = [worked for worked in steps if worked.missing is None]
    for worked in known:
        if edition.everything or worked.whole:
            yield from edition.showing.tables(worked)
        elif edition.scale == TOY:
            yield strip_of(edition.showing, worked, worked.address.rpartition(".")[2])
    if edition.everything:
        return
    plain = [worked for worked in known if not worked.whole]
    if not plain:
        return
    if edition.scale == LARGE:
        found = statistics((worked.address, near(worked)) for worked in plain)
        if found is not None:
            yield found
    yield from edition.showing.tables(plain[-1])
    yield left_out(edition, plain)


def left_out(edition: Edition, steps: Sequence[Worked]) -> LeftOut:
    """What is not shown as numbers, and the command that shows any of it."""
    entries = sum(worked.array.size for worked in steps if hasattr(worked.array, "size"))
    if edition.scale == TOY:
        text = _("{count} numbers here are shown as colours; any of them comes with")
    else:
        text = _("{count} numbers here are told by their statistics; any of them comes with")
    example = steps[-1].address + write_index((0,) * len(steps[-1].step.shape))
    return LeftOut(
        text.format(count=words.whole(entries)),
        f"byhand trace {edition.whole_command} --at '{example}'",
    )


def asked_numbers(edition: Edition, names: Sequence[str]) -> Iterator[NumberTable]:
    """The numbers that were asked for by their addresses, each with its working."""
    for address in edition.asked_of(names):
        wanted = read_address(address)
        if wanted.name.startswith(WEIGHT):
            parameter = edition.showing.parameters[wanted.name.removeprefix(WEIGHT)]
            axes, shape = parameter.axes, parameter.shape
        else:
            worked = edition.trace.worked(wanted)
            axes, shape = worked.step.axes, worked.step.shape
            if worked.missing is not None:
                continue
        indices = list(islice(_indices(wanted, shape), MOST_ASKED + 1))
        numbers = [_asked(edition, wanted.name, at) for at in indices[:MOST_ASKED]]
        yield NumberTable(
            address=address,
            title=_("asked for"),
            axes=axes,
            shape=shape,
            columns=(0,),
            heads=(),
            rows=tuple(
                NumberRow(place, number.address, number.cell.register, (number,))
                for place, number in enumerate(numbers)
            ),
            left_out=_("only the first {count} are shown").format(count=MOST_ASKED)
            if len(indices) > MOST_ASKED
            else "",
            kind="weight" if wanted.name.startswith(WEIGHT) else "step",
            asked=True,
        )


def _indices(wanted: Address, shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    index = (*within(wanted, shape), *(slice(None) for _axis in shape[len(wanted.index) :]))
    return product(
        *(
            range(size)[place] if isinstance(place, slice) else (place,)
            for place, size in zip(index, shape, strict=True)
        )
    )


def _asked(edition: Edition, name: str, at: tuple[int, ...]) -> Figure:
    showing = edition.showing
    if name.startswith(WEIGHT):
        return Figure(name + write_index(at), showing.inside.weight_cell(name, at))
    worked = edition.trace.steps[edition.trace.plan[name].address]
    cell, line = showing.cell(worked, at), showing.line(worked, at)
    return Figure(worked.address + write_index(at), cell, line)


# ------------------------------------------------------------------ weights


def weights_of(edition: Edition, topic: Topic) -> Iterator[Part]:
    """The weights that the steps of a topic read first, where the book shows every number."""
    if not edition.everything:
        return
    for step in topic.steps:
        for role, address in step.inputs.items():
            name = address.removeprefix(WEIGHT)
            if name != address and edition.first_reader[name] == step.address:
                yield from edition.showing.weight(name, symbol_of(step, role, address))


def identity(edition: Edition, step: Step | None) -> bool:
    """Whether the matrix of a step is the identity, so that it changes nothing."""
    if step is None or "weight" not in step.inputs or "bias" in step.inputs:
        return False
    data = edition.model.weights[step.inputs["weight"].removeprefix(WEIGHT)].data
    if data.size > 4096 or data.shape[0] != data.shape[1]:
        return False
    rows = data.tolist()
    return all(x == (i == j) for i, row in enumerate(rows) for j, x in enumerate(row))


def unchanged_affine(edition: Edition, step: Step) -> bool:
    """Whether a norm's gain is 1 and its bias 0 everywhere."""
    for role, plain in (("gain", 1), ("bias", 0)):
        if role in step.inputs:
            data = edition.model.weights[step.inputs[role].removeprefix(WEIGHT)].data
            if any(weight_cell(x).masked or x != plain for x in data.tolist()):
                return False
    return True


# ------------------------------------------------------------------ remarks


def remarks_of(edition: Edition, steps: Iterable[Worked]) -> Iterator[Remark]:
    """Boundaries, returns, limits taken: as they are told at a step."""
    for worked in steps:
        if worked.missing is None:
            yield from edition.showing.remarks(worked)


def claims_title(edition: Edition) -> str:
    """The heading of what a document prints."""
    return _("{source} prints").format(source=edition.claims_from)


def _source(edition: Edition, line: VerdictLine) -> str:
    """Whose line it is, and which line of a file."""
    if line.source.startswith(edition.claims_from):
        return line.source
    return f"{edition.claims_from} ({line.source})" if line.source else edition.claims_from


def claim_remarks(edition: Edition, steps: Sequence[str]) -> Iterator[Remark]:
    """Each printed line that does not follow, told where it stands."""
    for line in edition.checked_of(steps):
        if line.verdict == "ERROR":
            text = _("{source} prints {claimed} for `{address}`. This does not follow").format(
                source=_source(edition, line), claimed=line.claimed, address=line.address
            )
            why = ": " + "; ".join(text for _kind, text in line.told) if line.told else ""
            yield Remark("claim", f"{text}{why}.", line.address)
        elif line.verdict == "UNSUPPORTED":
            text = _(
                "{source} prints {claimed} for `{address}`: the true value, but it does not "
                "follow from the lines above."
            ).format(source=_source(edition, line), claimed=line.claimed, address=line.address)
            yield Remark("claim", text, line.address)
        elif line.verdict == "CARRIED":
            text = _(
                "{source} prints {claimed} for `{address}`: it follows from what is printed "
                "above, but an earlier error is carried along."
            ).format(source=_source(edition, line), claimed=line.claimed, address=line.address)
            yield Remark("carried", text, line.address)
