"""The whole pass: the input, the stations in order, and the stream from start to end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byhand.document import words
from byhand.document.book import Page, Passage
from byhand.document.compose.book.claims import claim_remarks
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.formulas import formula
from byhand.document.compose.book.passages import not_known, remarks_of, title_of
from byhand.document.compose.book.prediction import candidates, looks_back_only, predicted
from byhand.document.compose.book.strips import near, size_of
from byhand.document.compose.book.topics import Topic
from byhand.document.parts import Facts, LeftOut, Part, Stop, StreamLine
from byhand.language import _, amount, later
from byhand.spec import BlockSpec

SLUG = "whole"
MOST_LINES = 8  # positions whose path is drawn
INTO = ("embed", "segment", "position", "stream", "embed_norm", "distances")
OUT = ("norm", "head", "head_norm", "logits", "probs", "next")
MOST_BLOCKS = 4  # blocks described one by one; more are summarised


def page(edition: Edition) -> Page:
    """The page with the whole pass."""
    return Page(
        SLUG,
        _("The whole pass"),
        _(
            "From the text to the next token in one look. Each later page goes into one "
            "part of it. The figure stays the same; what a passage works out is lit."
        ),
        tuple(_passages(edition)),
    )


def _passages(edition: Edition) -> Iterator[Passage]:
    topics = [topic for topic in edition.topics if not topic.encoder]
    yield _given(edition, [t for t in topics if t.kind == "tokens"])
    if reading := [topic for topic in edition.topics if topic.encoder]:
        yield _encoder(edition, reading)
    yield _into(edition, [t for t in topics if t.kind in INTO])
    yield from _blocks(edition)
    yield _out(edition, [t for t in topics if t.layer is None and t.kind in OUT])
    loss = [topic for topic in topics if topic.kind == "loss"]
    if loss:
        yield _loss(edition, loss)
    yield _stream(edition)


def _passage(
    edition: Edition,
    name: str,
    title: str,
    sentences: Sequence[str],
    topics: Sequence[Topic],
    *show: Part,
    formula_of: Sequence[str] = (),
) -> Passage:
    steps = tuple(address for topic in topics for address in topic.addresses)
    worked = [edition.trace.steps[address] for address in steps]
    found = (formula(edition.showing, edition.trace.steps[address]) for address in formula_of)
    parts = (*show, *not_known(worked))
    return Passage(
        id=f"{SLUG}-{name}",
        title=title,
        sentences=tuple(sentences),
        lit=steps,
        formulas=tuple(one for one in found if one is not None),
        show=parts,
        remarks=(*remarks_of(edition, worked), *claim_remarks(edition, steps)),
        layer=topics[0].layer if topics else None,
    )


def _result(edition: Edition, address: str) -> Iterator[Part]:
    worked = edition.trace.steps[address]
    if worked.missing is None and edition.everything:
        yield from edition.showing.tables(worked)


# ------------------------------------------------------------------ what is given


def _given(edition: Edition, topics: Sequence[Topic]) -> Passage:
    trace = edition.trace
    sentences = [words.told(trace.model.about)] if trace.model.about else []
    sentences.append(
        _("The text `{text}` is {count} tokens: {tokens}.").format(
            text=words.printable(trace.text),
            count=words.whole(len(trace.tokens)),
            tokens=words.some_of([edition.showing.token(id) for id in trace.tokens]),
        )
    )
    if trace.source is not None:
        text = _("The encoder reads the source `{text}`: {tokens}.")
        tokens = [label.split(" ", 1)[1] for label in edition.showing.source_labels]
        sentences.append(text.format(text=words.printable(trace.source.text),
                                     tokens=words.some_of(tokens)))  # fmt: skip
    sentences += [words.told(note) for note in trace.model.notes]
    show: list[Part] = [Facts(tuple(_facts(edition)))]
    if trace.numbers.uniform == "rounded":
        show.append(
            LeftOut(
                _("The true values with proven digits, and how far the floats are from them:"),
                f"byhand trace {edition.command} --digits 6 --float float32",
            )
        )
    return _passage(edition, "given", _("What is given"), sentences, topics, *show)


def _facts(edition: Edition) -> Iterator[tuple[str, str]]:
    """The facts about the model."""
    spec = edition.model.spec
    yield _("vocabulary"), amount(spec.vocab, later("1 token"), later("{count} tokens"))
    yield _("width of the residual stream"), words.whole(spec.d_model)
    yield _("blocks"), words.whole(len(spec.blocks))
    if spec.encoder is not None:
        yield _("blocks of the encoder"), words.whole(len(spec.encoder.blocks))
    if spec.blocks:
        yield _("heads"), _of_all([_heads_word(block) for block in spec.blocks])
        yield _("hidden numbers of the MLP"), _of_all([_mlp_word(block) for block in spec.blocks])
        yield _("norm"), _of_all([_norm_word(block) for block in spec.blocks])
    yield _("positions"), _positions_word(edition)
    yield _("head"), _("tied to the embedding") if spec.tied else _("a matrix of its own")
    yield _("parameters"), words.whole(edition.inventory.total)


def text_facts(edition: Edition) -> Iterator[tuple[str, str]]:
    """The facts about the pass: the text, the target, the numbers and the parameters."""
    trace = edition.trace
    yield from words.texts(trace)
    if trace.target is not None:
        yield _("target"), edition.showing.answer(trace.target)
    yield _("numbers"), words.numbers_name(trace.numbers, trace.proof)
    yield _("parameters"), words.whole(edition.inventory.total)


def _of_all(said: Sequence[str]) -> str:
    """A setting that all blocks share; else that they differ."""
    return said[0] if len(set(said)) == 1 else _("another in each kind of block")


def _heads_word(block: BlockSpec) -> str:
    attn = block.attention
    if attn is None:
        return _("none")
    heads = _("{heads} of {width} numbers").format(heads=attn.heads, width=attn.d_head)
    if attn.kv_heads < attn.heads:
        heads += _(", {count} for keys and values").format(count=attn.kv_heads)
    return heads


def _mlp_word(block: BlockSpec) -> str:
    mlp = block.mlp
    if mlp is None:
        return _("none")
    kind = _("gated {activation}") if mlp.gated else "{activation}"
    return f"{words.whole(mlp.d_ff)}, {kind.format(activation=mlp.activation)}"


def _norm_word(block: BlockSpec) -> str:
    if block.attn_norm.kind == "none" and block.mlp_norm.kind == "none":
        return _("none")
    norm = block.attn_norm if block.attn_norm.kind != "none" else block.mlp_norm
    kind = _("RMSNorm") if norm.kind == "rmsnorm" else _("layer norm")
    if block.norm_place == "post":
        return _("{kind} after each addition").format(kind=kind)
    return _("{kind} before attention and MLP").format(kind=kind)


def _positions_word(edition: Edition) -> str:
    spec = edition.model.spec
    if spec.position == "learned":
        return _("a learned row for each")
    if spec.position == "sinusoidal":
        return _("sines and cosines")
    if spec.relative is not None:
        return _("a score for each distance")
    attn = spec.blocks[0].attention if spec.blocks else None
    if attn and attn.rotary:
        return _("queries and keys are rotated (RoPE)")
    return _("a slope against distance (ALiBi)") if attn and attn.alibi else _("none")


# ------------------------------------------------------------------ the stations


def _encoder(edition: Edition, topics: Sequence[Topic]) -> Passage:
    """The encoder in one look; a page of its own goes through it."""
    end = topics[-1].addresses[-1]
    sentences = [
        _(
            "First the encoder reads the source. It has a residual stream of its own, from "
            "the words of the source through its blocks. Later, every block of the decoder "
            "looks at its end."
        )
    ]
    parts = _result(edition, end)
    return _passage(edition, "encoder", _("The encoder reads"), sentences, topics, *parts)


def _into(edition: Edition, topics: Sequence[Topic]) -> Passage:
    start = [topic for topic in topics if topic.kind != "distances"][-1].addresses[-1]
    sentences = [
        _("Each token picks its row of the table, and the row of its position is added.")
        if any(topic.kind == "position" for topic in topics)
        else _("Each token picks its row of the table."),
        _(
            "The rows are the residual stream, the line in the middle of the figure. It "
            "runs from here to the end, and whatever happens is added to it."
        ),
    ]
    title = _("Into the residual stream")
    parts = _result(edition, start)
    return _passage(edition, "into", title, sentences, topics, *parts, formula_of=[start])


def _blocks(edition: Edition) -> Iterator[Passage]:
    inside = [t for t in edition.topics if t.layer is not None and not t.encoder]
    layers = sorted({topic.layer for topic in inside if topic.layer is not None})
    if len(layers) > MOST_BLOCKS:
        text = _(
            "{count} blocks follow each other, all built alike. Attention looks along the "
            "text, the MLP works on each position, and both add what they found to the "
            "residual stream."
        ).format(count=len(layers))
        title = _("{count} blocks").format(count=len(layers))
        yield _passage(edition, "blocks", title, [text], inside)
        return
    for layer in layers:
        for trip in ("attn", "cross", "mlp"):
            topics = [topic for topic in inside if (topic.layer, topic.trip) == (layer, trip)]
            if topics:
                yield _trip(edition, layer, trip, topics)


def _trip(edition: Edition, layer: int, trip: str, topics: Sequence[Topic]) -> Passage:
    if trip == "attn":
        title = _("First branch: attention")
        sentences = [
            _(
                "Each position looks at itself and those before it, takes from each by its "
                "attention weight, and adds the mix to its own row."
            )
            if looks_back_only(edition)
            else _(
                "Each position looks at all of them, takes from each by its attention "
                "weight, and adds the mix to its own row."
            ),
            _("Nothing else moves anything from one position to another."),
        ]
    elif trip == "cross":
        title = _("Next branch: the source")
        sentences = [
            _(
                "Each position looks at all positions of the source, takes from each by "
                "its attention weight, and adds the mix to its own row."
            )
        ]
    else:
        title = _("Second branch: the MLP")
        if any(topic.trip == "cross" for topic in edition.topics):
            title = _("Last branch: the MLP")
        sentences = [
            _(
                "Each position by itself: out into hidden numbers, through the activation, "
                "and back; again the result is added to the residual stream."
            )
        ]
    end = topics[-1].addresses[-1]
    added = next(a for topic in topics for a in topic.addresses if a.endswith(".add"))
    end = added if topics[-1].kind not in ("norm", "add") else end
    title = title_of(edition, layer, title)
    parts = _result(edition, end)
    formulas = [added]
    worked = edition.trace.steps[end]
    if end != added:  # a norm on the stream itself
        formulas.append(_normalised(topics[-1]))
        text = _("Then the row is normalised.")
        if worked.missing is None and edition.everything:
            text = _("Then the row is normalised; of position {which} this leaves {row}.").format(
                which=edition.showing.position(edition.last),
                row=edition.showing.row_said(worked, (edition.last,)),
            )
        sentences.append(text)
    return _passage(
        edition, f"{layer}-{trip}", title, sentences, topics, *parts, formula_of=formulas
    )


def _normalised(topic: Topic) -> str:
    """The most informative line of a norm: the values divided by the spread."""
    step = topic.step("normalized")
    return topic.addresses[-1] if step is None else step.address


def _out(edition: Edition, topics: Sequence[Topic]) -> Passage:
    trace = edition.trace
    sentences = [
        _(
            "At the end the residual stream is compared with every word of the vocabulary; "
            "the largest logit says which word stands there."
        )
        if edition.model.in_place
        else _(
            "At the end the residual stream is compared with every word of the vocabulary; "
            "the largest logit says what comes next."
        )
    ]
    show: list[Part] = []
    if trace.next:
        sentences.append(predicted(edition, edition.last, trace.next[edition.last]).sentence)
    if trace.steps["probs"].missing is None:
        show.append(candidates(edition, edition.last))
    parts = (*_result(edition, "logits"), *show)
    title = _("Out of the residual stream")
    return _passage(edition, "out", title, sentences, topics, *parts, formula_of=["logits"])


def _loss(edition: Edition, topics: Sequence[Topic]) -> Passage:
    trace = edition.trace
    assert trace.target is not None
    text = _("How surprised the model is by `{target}`, the word that should come next.")
    sentence = text.format(target=edition.showing.answer(trace.target))
    return _passage(
        edition,
        "loss",
        _("The loss"),
        [sentence],
        topics,
        *_result(edition, "loss"),
        formula_of=["loss"],
    )


# ------------------------------------------------------------------ the stream


def _stream(edition: Edition) -> Passage:
    length = len(edition.trace.tokens)
    if edition.everything:
        places = range(max(0, length - MOST_LINES), length)
    else:
        places = range(length - 1, length)
    hidden = length - len(places)
    left_out = (
        amount(hidden, later("1 earlier position"), later("{count} earlier positions"))
        if hidden
        else ""
    )
    lines = [
        StreamLine(place, edition.showing.labels[place], tuple(stops(edition, place)), left_out)
        for place in places
    ]
    return Passage(
        id=f"{SLUG}-stream",
        title=_("The residual stream, from start to end"),
        sentences=(
            _(
                "Here is one position's row at every station, with what each branch added. "
                "Nothing is overwritten: the last row is the sum of all that came before, "
                "but for the norms on the way."
            )
            if _norms_on_stream(edition)
            else _(
                "Here is one position's row at every station, with what each branch added. "
                "Nothing is overwritten: the last row is the sum of all that came before."
            ),
        ),
        show=tuple(line for line in lines if line.stops),
    )


def _norms_on_stream(edition: Edition) -> bool:
    spec = edition.model.spec
    after = any(block.norm_place == "post" for block in spec.blocks)
    return after or spec.final_norm.kind != "none"


def stops(edition: Edition, place: int) -> Iterator[Stop]:
    """The stations of one position: the stream, and what is added to it."""
    plan = edition.trace.plan
    yield from _stop(edition, "stream.0", _("embedding"), "stream", None, "", place)
    for layer, block in enumerate(plan.spec.blocks):
        at = f"block.{layer}"
        names = {"attn": _("attention"), "cross": _("cross-attention"), "mlp": _("MLP")}
        for trip, _norm in block.trips:
            name = names[trip]
            yield from _stop(edition, f"{at}.{trip}.out", name, "trip", layer, trip, place)
            label = _("stream + {name}").format(name=name)
            yield from _stop(edition, f"{at}.{trip}.add", label, "stream", layer, "", place)
            if block.norm_place == "post":
                label = _("normalised")
                norm = f"{at}.{trip}.norm.out"
                yield from _stop(edition, norm, label, "stream", layer, "", place)
    if plan.spec.final_norm.kind != "none":
        label = _("normalised")
        yield from _stop(edition, "final.norm.out", label, "stream", None, "", place)


def _stop(
    edition: Edition, name: str, label: str, kind: str, layer: int | None, trip: str, place: int
) -> Iterator[Stop]:
    address = edition.trace.plan.known.get(name)
    worked = None if address is None else edition.trace.steps[address]
    if worked is None or worked.missing is not None:
        return
    row = edition.showing.row(worked, place)
    size = size_of(near(worked)[place])
    yield Stop(name, label, kind, layer, size, row.register, row.numbers, trip)
