"""What the pages share: passages of topics, norms and folded layers; numbers, remarks, claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice

from byhand.address import read_address, write_index
from byhand.document import words
from byhand.document.book import Passage
from byhand.document.compose.book.claims import claim_remarks, claims_title
from byhand.document.compose.book.edition import LARGE, TOY, Edition
from byhand.document.compose.book.formulas import formula
from byhand.document.compose.book.spoken_numbers import sum_said
from byhand.document.compose.book.strips import near, statistics, strip_of
from byhand.document.compose.book.topics import Topic
from byhand.document.compose.forms import rational_cell, symbol_of, weight_cell
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
from byhand.document.parts.verdicts import VerdictTable
from byhand.language import _
from byhand.plan import WEIGHT, Step
from byhand.worked import Worked

MOST_ASKED = 64  # numbers shown for one requested address


def passage(
    edition: Edition,
    topic: Topic,
    slug: str,
    sentences: Iterable[str],
    *extra: Part,
    also: Sequence[str] = (),
) -> Passage:
    """The passage of a topic: all its steps with their formulas and numbers.

    `also` are further names whose claims belong here, such as the direction of a weight.
    """
    worked = [edition.trace.steps[address] for address in topic.addresses]
    drawn = {p.address for p in extra if isinstance(p, AttentionPattern) and not p.left_out}
    numbers = [
        part
        for part in numbers_of(edition, worked)
        if not isinstance(part, HeatStrip)
        or part.address not in drawn  # the pattern shows it in colours
    ]
    shown = [*weights_of(edition, topic), *extra, *numbers]
    shown += asked_numbers(edition, topic.addresses)
    checked = edition.checked_of((*topic.addresses, *also))
    if checked:
        shown.append(VerdictTable(claims_title(edition), checked))
    shown += not_known(worked)
    found = (formula(edition.showing, one) for one in worked)
    return Passage(
        id=f"{slug}-{topic.id}",
        title=topic_title(edition, topic),
        sentences=tuple(sentence for sentence in sentences if sentence),
        lit=topic.addresses,
        formulas=tuple(one for one in found if one is not None),
        show=tuple(shown),
        remarks=(*remarks_of(edition, worked), *claim_remarks(edition, (*topic.addresses, *also))),
        layer=topic.layer,
        brief=edition.scale == LARGE and any(isinstance(part, Grid) for part in numbers),
    )


def not_known(steps: Iterable[Worked]) -> list[LeftOut]:
    """The first of some steps that is not known, and why; nothing where all are."""
    first = next((one for one in steps if one.missing is not None), None)
    if first is None or first.missing is None:
        return []
    return [LeftOut(f"`{first.address}` – {words.why_missing(first.missing)}")]


def topic_title(edition: Edition, topic: Topic) -> str:
    """The title of a topic's passage, which needs no numbers."""
    if topic.kind == "norm":
        title = _norm_title(edition, topic)
    else:
        title = _titles(edition, topic)[topic.kind]
    if topic.encoder:
        return _("{title} · encoder").format(title=title)
    return title_of(edition, topic.layer, title)


def _titles(edition: Edition, topic: Topic) -> dict[str, str]:
    return {
        "tokens": _("The source becomes ids") if topic.encoder else _("Text becomes ids"),
        "embed": _("An id picks its row"),
        "position": _("Each position has a row too"),
        "segment": _("Each kind has a row too"),
        "stream": _("The residual stream begins"),
        "embed_norm": _("A norm before the first block"),
        "distances": _("Distances have scores"),
        "latent": _("A few numbers for keys and values"),
        "clip": _("Large numbers are cut"),
        "after_norm": _("A norm of what is added"),
        "shared": _("The shared expert"),
        "head": _("The head reads the residual stream"),
        "head_norm": _("The head's norm"),
        "qkv": _("Queries, keys and values"),
        "qk_norm": _("Queries and keys are normalised"),
        "rotate": _("Positions rotate queries and keys"),
        "scores": _("Scores"),
        "weights": _("Softmax: scores become weights"),
        "mixed": _("The mix"),
        "attn_out": _("What attention gives back"),
        "add": _("Added to the residual stream") if topic.trip == "attn" else _("Added again"),
        "router": _("Who answers"),
        "hidden": _("Out into hidden numbers"),
        "act": _("The activation"),
        "mlp_out": _("Back to the width of the residual stream"),
        "logits": _("Logits"),
        "probs": _("Probabilities"),
        "next": _("The word at each place") if edition.model.in_place else _("The next token"),
        "loss": _("The loss"),
    }


def _norm_title(edition: Edition, topic: Topic) -> str:
    if topic.layer is None:
        return _("The last norm")
    after = edition.block_of(topic).norm_place == "post"
    if topic.trip == "cross":
        return _("A norm after cross-attention") if after else _("A norm before cross-attention")
    if topic.trip == "attn":
        return _("A norm after attention") if after else _("A norm before attention")
    return _("A norm after the MLP") if after else _("A norm before the MLP")


def title_of(edition: Edition, layer: int | None, title: str) -> str:
    """The title, with the block's number if there are several blocks."""
    if layer is None or len(edition.model.spec.blocks) == 1:
        return title
    return _("{title} · block {layer}").format(title=title, layer=layer)


def addition(edition: Edition, step: Step) -> Iterator[str]:
    """A sentence on a sum of two rows, at the followed position."""
    trace, showing, last = edition.trace, edition.showing, edition.last_of(step)
    steps = (trace.steps[one] for one in (step.inputs["x"], step.inputs["y"], step.address))
    if trace.steps[step.address].missing is None:
        where = showing.position_of(step, last)
        yield sum_said(where, *(showing.row_said(one, (last,)) for one in steps))


# ------------------------------------------------------------------ norms


def norm_passage(edition: Edition, topic: Topic, slug: str, why: str) -> Passage:
    """The passage of a norm with all its lines: mean, centered, variance, …"""
    return passage(
        edition,
        topic,
        slug,
        (why, *_sentences(edition, topic)),
    )


def of_a_copy() -> str:
    """The remark on a pre-norm: it normalises a copy, which the side-trip reads."""
    return _(
        "The norm works on a copy (Pre-LN): the new residual stream is the old one plus "
        "what the branch adds, h + attention(norm(h)). The residual stream itself is never "
        "normalised on the way. So what is written to it stays until something later "
        "subtracts it, and training reaches every block along it."
    )


def _sentences(edition: Edition, topic: Topic) -> Iterator[str]:
    rms = topic.step("rms") is not None
    root = topic.step("rms") or topic.step("std")
    assert root is not None
    if rms:
        yield _(
            "Each position's row is divided by the root of the mean of its squares; its mean stays "
            "as it is."
        )
    else:
        yield _(
            "Of each position's row the mean is subtracted, and what is left is divided by its "
            "standard deviation: mean 0, spread 1."
        )
    eps = root.attributes["eps"]
    if eps:
        text = (
            _("The {eps} under the root keeps a row of zeros from dividing by 0.")
            if rms
            else _("The {eps} under the root keeps a row of equal numbers from dividing by 0.")
        )
        yield text.format(eps=edition.showing.cell_said(rational_cell(eps)))
    elif not rms and edition.model.spec.d_model == 2:
        yield _(
            "With two numbers in a row this leaves only a sign: they lie equally far on "
            "both sides of their mean. Unless they are equal, (1, −1) or (−1, 1) comes "
            "out, and how far apart they were is lost."
        )
    out = topic.step("out")
    if out is not None:
        if unchanged_affine(edition, out):
            yield _("Gain 1 and bias 0 then change nothing.")
        elif "bias" in out.inputs and "gain" in out.inputs:
            yield _("A learned gain and bias, one of each for every column, come last.")
        elif "bias" in out.inputs:
            yield _("A learned bias for every column comes last.")
        elif out.attributes.get("plus_one"):
            yield _("A learned gain for every column comes last: rows are multiplied by 1 + gain.")
        else:
            yield _("A learned gain for every column comes last.")


# ------------------------------------------------------------------ many layers on one page


def folded(
    edition: Edition,
    some: Sequence[Topic],
    slug: str,
    endings: tuple[str, ...],
    tell: Callable[[Edition, Topic], Passage],
) -> Iterator[Passage]:
    """A passage for each topic of a shown layer, and one for each run of other layers.

    `endings` are the endings of the addresses whose statistics stand for a layer.
    """
    shown = set(edition.layers_shown)
    for told, run in groupby(some, key=lambda topic: topic.layer in shown):
        topics = list(run)
        if told:
            yield from (tell(edition, topic) for topic in topics)
        else:
            yield _together(edition, topics, slug, endings)


def _together(
    edition: Edition, topics: Sequence[Topic], slug: str, endings: tuple[str, ...]
) -> Passage:
    layers = sorted({topic.layer for topic in topics if topic.layer is not None})
    first, last = layers[0], layers[-1]
    steps = tuple(address for topic in topics for address in topic.addresses)
    worked = [edition.trace.steps[address] for address in steps]
    ends = [w for w in worked if w.address.endswith(endings) and w.missing is None]
    found = statistics((w.address, near(w)) for w in ends)
    example = next((w.address for w in ends), steps[0])
    show: tuple[Part, ...] = (
        *(() if found is None else (found,)),
        LeftOut(
            _("The numbers of these blocks are left out. To see a block in full, ask for it"),
            f"byhand book {edition.whole_command} --out book --at {example}",
        ),
    )
    several = _("The same again, {count} times: blocks {first} to {last} have the same steps, with "
                "weights of their own.")  # fmt: skip
    single = _("The same again: block {first} has the same steps, with weights of its own.")
    text = several if len(layers) > 1 else single
    title = _("Blocks {first} to {last}") if len(layers) > 1 else _("Block {first}")
    return Passage(
        id=f"{slug}-blocks-{first}-{last}",
        title=title.format(first=first, last=last),
        sentences=(text.format(count=len(layers), first=first, last=last),),
        lit=steps,
        show=show,
        remarks=(*remarks_of(edition, worked), *claim_remarks(edition, steps)),
    )


# ------------------------------------------------------------------ the numbers of steps


def numbers_of(edition: Edition, steps: Sequence[Worked]) -> Iterator[Part]:
    """The numbers of some steps, as many as the book's scale allows."""
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
    """The steps that are not shown as numbers, and the command that shows them."""
    entries = sum(worked.array.size for worked in steps if hasattr(worked.array, "size"))
    if edition.scale == TOY:
        text = _("{count} numbers here are shown as colours; any of them comes with")
    else:
        text = _("{count} numbers here are summarised by their statistics; any of them comes with")
    example = steps[-1].address + write_index((0,) * len(steps[-1].step.shape))
    return LeftOut(
        text.format(count=words.whole(entries)),
        f"byhand trace {edition.whole_command} --at '{example}'",
    )


def asked_numbers(edition: Edition, names: Sequence[str]) -> Iterator[NumberTable]:
    """The requested numbers, each with its working."""
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
        indices = list(islice(edition.showing.inside.indices(wanted), MOST_ASKED + 1))
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


def _asked(edition: Edition, name: str, at: tuple[int, ...]) -> Figure:
    showing = edition.showing
    if name.startswith(WEIGHT):
        return Figure(name + write_index(at), showing.inside.weight_cell(name, at))
    worked = edition.trace.steps[edition.trace.plan[name].address]
    cell, line = showing.cell(worked, at), showing.line(worked, at)
    return Figure(worked.address + write_index(at), cell, line)


# ------------------------------------------------------------------ weights


def weights_of(edition: Edition, topic: Topic) -> Iterator[Part]:
    """The weights that a topic's steps read first, if the book shows every number."""
    if not edition.everything:
        return
    for step in topic.steps:
        for role, address in step.inputs.items():
            name = address.removeprefix(WEIGHT)
            if name != address and edition.first_reader[name] == step.address:
                yield from edition.showing.weight(name, symbol_of(step, role, address))


def identity(edition: Edition, step: Step | None) -> bool:
    """Whether the matrix of a step is the identity."""
    if step is None or "weight" not in step.inputs or "bias" in step.inputs:
        return False
    data = edition.model.weights[step.inputs["weight"].removeprefix(WEIGHT)].data
    if data.size > 4096 or data.shape[0] != data.shape[1]:
        return False
    rows = data.tolist()
    return all(x == (i == j) for i, row in enumerate(rows) for j, x in enumerate(row))


def unchanged_affine(edition: Edition, step: Step) -> bool:
    """Whether a norm's gain is 1 and its bias 0 everywhere."""
    for role, plain in (("gain", 0 if step.attributes.get("plus_one") else 1), ("bias", 0)):
        if role in step.inputs:
            data = edition.model.weights[step.inputs[role].removeprefix(WEIGHT)].data
            if any(weight_cell(x).masked or x != plain for x in data.ravel().tolist()):
                return False
    return True


# ------------------------------------------------------------------ remarks


def remarks_of(edition: Edition, steps: Iterable[Worked]) -> Iterator[Remark]:
    """The remarks at some steps: boundaries, returns, limits taken."""
    for worked in steps:
        if worked.missing is None:
            yield from edition.showing.remarks(worked)
