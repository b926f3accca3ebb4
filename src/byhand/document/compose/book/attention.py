"""Attention, block by block: queries, keys and values, scores, attention weights, the mix."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from byhand.document import words
from byhand.document.book import Page, Passage
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.passages import (
    folded,
    identity,
    norm_passage,
    of_a_copy,
    passage,
)
from byhand.document.compose.book.spoken_numbers import NEAR, together
from byhand.document.compose.book.strips import pattern_of
from byhand.document.compose.book.topics import Topic
from byhand.expression import Number, write
from byhand.language import _
from byhand.numbers.base import ABSENT
from byhand.plan import WEIGHT
from byhand.spec import AttentionSpec
from byhand.worked import Worked

SLUG = "attention"
KINDS = ("latent", "qkv", "qk_norm", "clip", "rotate", "scores", "weights", "mixed", "attn_out")
MOST_SAID = 6  # scores listed in a sentence


def page(edition: Edition) -> Page:
    """The page on attention."""
    return Page(
        SLUG,
        _("Attention"),
        _(
            "The only place where positions exchange information: each one looks for the "
            "others that fit its query and takes something from them."
        ),
        tuple(_passages(edition)),
    )


def belongs(edition: Edition, topic: Topic) -> bool:
    """Whether a topic belongs to this page: all of attention but the addition to the stream."""
    if topic.trip not in ("attn", "cross") or topic.layer is None:
        return False
    block = edition.block_of(topic)
    return topic.kind in KINDS or (topic.kind == "norm" and block.norm_place == "pre")


def _passages(edition: Edition) -> Iterator[Passage]:
    some = [t for t in edition.topics if belongs(edition, t) and not t.encoder]
    if not some:
        text = _("This model has no attention: no position learns anything about another.")
        yield Passage(f"{SLUG}-none", _("No attention"), (text,))
    yield from folded(edition, some, SLUG, (".attn.out",), tell)


def tell(edition: Edition, topic: Topic) -> Passage:
    """The passage about one topic."""
    if topic.kind == "norm":
        why = _("Before attention reads the residual stream, a norm makes the rows comparable.")
        if topic.layer == 0 and topic.trip == "attn" and not topic.encoder:
            why = f"{why} {of_a_copy()}"
        return norm_passage(edition, topic, SLUG, why)
    writer = {
        "latent": _latent,
        "qkv": _qkv,
        "qk_norm": _qk_norm,
        "clip": _clip,
        "rotate": _rotate,
        "scores": _scores,
        "weights": _weights,
        "mixed": _mixed,
        "attn_out": _out,
    }[topic.kind]
    extra = []
    if topic.kind == "weights":
        worked = edition.trace.steps[topic.steps[0].address]
        if worked.missing is None and topic.trip == "attn":
            extra.append(pattern_of(edition.showing, worked, forms=edition.everything))
    return passage(edition, topic, SLUG, writer(edition, topic), *extra)


def _spec(edition: Edition, topic: Topic) -> AttentionSpec:
    block = edition.block_of(topic)
    spec = block.cross if topic.trip == "cross" else block.attention
    assert spec is not None
    return spec


# ------------------------------------------------------------------ questions, keys, values


def _latent(edition: Edition, topic: Topic) -> list[str]:
    attn = _spec(edition, topic)
    assert attn.latent is not None
    assert attn.rotary is not None
    return [
        _(
            "Keys and values are kept small: each position compresses its row to {rank} "
            "numbers, and all heads make their keys and values from these."
        ).format(rank=words.whole(attn.latent.rank)),
        _(
            "Of each query and key, {turned} numbers are set apart to be rotated by the "
            "position. Those of the key are the same for all heads."
        ).format(turned=words.whole(attn.rotary.width)),
    ]


def _clip(edition: Edition, topic: Topic) -> list[str]:
    attn = _spec(edition, topic)
    assert attn.clip is not None
    text = _("Numbers beyond ±{limit} are set to the limit.")
    return [text.format(limit=write(Number(attn.clip)))]


def _qkv(edition: Edition, topic: Topic) -> list[str]:
    attn = _spec(edition, topic)
    if topic.trip == "cross":
        asked = _(
            "Each position makes a query (q) from its own row. The keys (k) and the values "
            "(v) come from the source, as the encoder left it."
        )
        return [asked, *_heads(attn)]
    if not attn.queries:
        handed = _(
            "Each position turns its row into a value (v), which it passes on. There are no "
            "queries."
        )
        return [handed, *_heads(attn)]
    sentences = [
        _(
            "Each position turns its row into three: a query (q), a key (k) and a value "
            "(v). The query asks, the key is matched against queries, and the value is "
            "passed on."
        )
    ]
    if topic.step("qkv") is not None:
        sentences.append(
            _(
                "One matrix makes all three at once: {d} numbers go in, {width} come out, and they "
                "are cut apart into q, k and v. In shapes: ({length} × {d}) · ({d} × {width}) = "
                "{length} × {width}."
            ).format(
                length=words.whole(len(edition.trace.tokens)),
                d=words.whole(edition.model.spec.d_model),
                width=words.whole(attn.q_width + 2 * attn.kv_width),
            )
        )
    elif all(identity(edition, topic.step(name)) for name in "qkv"):
        sentences.append(
            _("Here all three matrices are identities, so the rows pass through unchanged.")
        )
    sentences += _heads(attn)
    return sentences


def _heads(attn: AttentionSpec) -> Iterator[str]:
    counts = {"heads": attn.heads, "width": words.whole(attn.d_head)}
    if not attn.queries and attn.heads > 1:
        yield _("The values are split into {heads} heads of {width}.").format(**counts)
    elif attn.queries and attn.heads == 1:
        yield _("There is one head: all {width} numbers form one query.").format(**counts)
    elif attn.queries:
        yield _(
            "The numbers are split into {heads} heads of {width}, each with a query of its own."
        ).format(**counts)
    if attn.kv_heads < attn.heads:
        yield _("{count} heads share one set of keys and values.").format(
            count=attn.heads // attn.kv_heads
        )


def _qk_norm(edition: Edition, topic: Topic) -> list[str]:
    return [
        _(
            "Queries and keys are brought to one size, head by head. So a score says how "
            "well they fit, not how long they are."
        )
    ]


def _rotate(edition: Edition, topic: Topic) -> list[str]:
    rotary = _spec(edition, topic).rotary
    assert rotary is not None
    how = (
        _("entry i with entry i + {half}").format(half=rotary.width // 2)
        if rotary.pairing == "half"
        else _("neighbours")
    )
    sentences = [
        _(
            "The entries are taken in pairs ({how}). Each pair is turned like the hand of "
            "a clock: position 0 not at all, each further position by one more step."
        ).format(how=how)
    ]
    if rotary.width > 2 and rotary.base > 1:
        sentences.append(_("The first pair turns fastest, the last slowest."))
    sentences.append(
        _(
            "In a score, only the difference of two turns is left: how far apart two positions "
            "are, not where they stand."
        )
    )
    return sentences


# ------------------------------------------------------------------ scores and shares


def _scores(edition: Edition, topic: Topic) -> list[str]:
    attn = _spec(edition, topic)
    worked = edition.trace.steps[topic.steps[0].address]
    sentences = [
        _("A dot product says how well a query fits a key: multiply pair by pair, then add up.")
    ]
    if not attn.queries:
        sentences = [_("There are no queries and keys: a score depends only on the two places.")]
    elif attn.scale is not None:
        sentences.append(
            _("It is scaled by {scale}, so that wide heads do not make large scores.").format(
                scale=write(attn.scale)
            )
        )
    else:
        sentences.append(_("This model does not scale it."))
    if attn.cap is not None:
        text = _("A soft cap flattens large products, so that none goes beyond ±{cap}.")
        sentences.append(text.format(cap=write(Number(attn.cap))))
    sentences += _seen(edition, topic, attn)
    if attn.window is not None:
        sentences.append(
            _("It sees at most {count} positions, its own included.").format(
                count=words.whole(attn.window)
            )
        )
    if attn.alibi:
        sentences.append(_("Distance costs: the slope of the head times how far away the key is."))
    if attn.relative:
        sentences.append(_("The score of the distance, which all blocks share, is added."))
    if worked.missing is None and edition.everything:
        sentences.append(_scores_said(edition, worked, edition.last_of(worked.step)))
    return sentences


def _seen(edition: Edition, topic: Topic, attn: AttentionSpec) -> Iterator[str]:
    """Which positions attend to which: by order, and by the model's own table."""
    table = topic.steps[0].inputs.get("table", "").removeprefix(WEIGHT)
    forbids = bool(table) and any(x is ABSENT for x in edition.model.weights[table].data.flat)
    if table:
        yield _("A table of the model's own is added, an entry for each query and key.")
    if forbids and attn.causal:
        yield _(
            "What comes later is masked, and so is what the table masks: a masked score is not "
            "small but absent."
        )
    elif forbids:
        yield _("What the table masks is not seen: a masked score is not small but absent.")
    elif topic.trip == "cross":
        yield _("Every position sees the whole source.")
    elif not attn.causal:
        yield _("Every position sees every other, before it and after it.")
    else:
        yield _(
            "A position sees itself and what stands before it. What comes later is masked: "
            "a masked score is not small but absent."
        )


def _visible(worked: Worked, query: int, head: int = 0) -> list[int]:
    keys = range(worked.step.shape[2])
    return [key for key in keys if worked.register_at((head, query, key)) is not None]


def _scores_said(edition: Edition, worked: Worked, query: int) -> str:
    seen = _visible(worked, query)
    said = [edition.showing.said(worked, (0, query, key)) for key in seen[:MOST_SAID]]
    if len(seen) > MOST_SAID:
        said.append("…")
    return _("Position {which} looks at {count} keys; its scores are {scores}.").format(
        which=edition.showing.position_of(worked.step, query),
        count=len(seen),
        scores=together(said),
    )


def _weights(edition: Edition, topic: Topic) -> list[str]:
    worked = edition.trace.steps[topic.steps[0].address]
    sentences = [
        _(
            "Softmax turns scores into weights: e to the power of each score, divided by "
            "the sum of all these powers. Every weight is positive, and a row sums to 1."
        )
    ]
    if _spec(edition, topic).sinks:
        sentences = [
            _(
                "Softmax turns scores into weights: e to the power of each score, divided "
                "by the sum of all these powers. Each head has one more score, the sink. "
                "Its weight goes to no position, so a row sums to less than 1."
            )
        ]
    if worked.missing is None and edition.everything:
        sentences += _rows_said(edition, worked)
    return sentences


def _rows_said(edition: Edition, worked: Worked) -> Iterator[str]:
    """The effect of softmax on a row with one score, and on a longer row."""
    showing = edition.showing
    alone = [q for q in range(worked.step.shape[1]) if len(_visible(worked, q)) == 1]
    heads, queries, _keys = worked.step.shape
    for head, query in product(range(heads), range(queries)):
        if not _visible(worked, query, head):
            text = _("In head {head}, position {which} may look at nothing: what it takes is 0.")
            yield text.format(head=head, which=showing.position_of(worked.step, query))
            break
    if alone and "sinks" not in worked.step.inputs:
        yield _(
            "Position {which} has a single score, so its weight is exactly 1, whatever the "
            "score is."
        ).format(which=showing.position_of(worked.step, alone[0]))
    named = [q for q in range(worked.step.shape[1]) if worked.row_registers[q] == "named"]
    if named and not worked.numbers.uniform:
        last = edition.last_of(worked.step)
        query = last if last in named else named[0]
        seen = _visible(worked, query)
        shares = [showing.said(worked, (0, query, key)) for key in seen]
        if any(share.startswith(NEAR) for share in shares):
            text = _(
                "Position {which} has {count} scores, and powers of e with different "
                "exponents do not cancel. Its weights are kept as they are; their proven "
                "decimals are {shares}."
            )
            shares = [share.removeprefix(NEAR) for share in shares]
        else:
            text = _(
                "Position {which} has {count} scores, and powers of e with different "
                "exponents do not cancel. Its weights are written as they are, {shares}, "
                "and never rounded."
            )
        yield text.format(
            which=showing.position_of(worked.step, query),
            count=len(seen),
            shares=words.joined(shares),
        )


def _mixed(edition: Edition, topic: Topic) -> list[str]:
    worked = edition.trace.steps[topic.steps[0].address]
    sentences = [
        _(
            "Each position takes from every value it sees as much as the attention weight "
            "says, and adds it all up."
        )
    ]
    if worked.missing is None and edition.everything:
        last = edition.last_of(worked.step)
        sentences.append(
            _("Position {which} gets {row}.").format(
                which=edition.showing.position_of(worked.step, last),
                row=edition.showing.row_said(worked, (0, last)),
            )
        )
    return sentences


def _out(edition: Edition, topic: Topic) -> list[str]:
    attn = _spec(edition, topic)
    out = topic.step("out")
    if not attn.out:
        return [_("This model has no output matrix: what the heads found stands side by side.")]
    sentences = [
        _(
            "The output matrix mixes what the heads found and brings it to the {d} numbers "
            "of the residual stream."
        ).format(d=words.whole(edition.model.spec.d_model))
    ]
    if identity(edition, out):
        sentences.append(_("Here it is the identity and changes nothing."))
    return sentences
