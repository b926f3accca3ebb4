"""The transformer, once: from tokens to the next token, as a plan of value-free steps.

Read it from top to bottom: `plan` is the spine; `attending` and `sublayers` have the side-trips
that read the residual stream and add to it.  Each `line(…)` writes one step: its address, its
operation (a method of `numbers.base.Numbers`), its formula, its axes, and what it reads.  No
number is known here, and no number system: the same plan is worked out exactly, with a pencil,
in floats or on tensors.

    pos · query · key   positions of the text          head · kv_head   attention heads
    d                   width of the residual stream   d_head           width of a head
    d_ff                width inside the MLP           vocab            the vocabulary
    expert              the MLPs to choose from        outputs          the words of the head, where
                                                                    they are others than vocab
    source              positions of the text that an encoder reads (source_query, source_key)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from byhand import attending, sublayers
from byhand.passes import Mask, Pass
from byhand.plan import WEIGHT, Plan, Sheet
from byhand.relative_buckets import buckets
from byhand.spec import BlockSpec, EncoderSpec, ModelSpec, NormSpec, RelativeSpec
from byhand.sublayers import STREAM, shown_cap, shown_matrix, shown_scale


def plan(
    spec: ModelSpec,
    length: int,
    *,
    past: int = 0,
    positions: Sequence[int] | None = None,
    mask: Mask | None = None,
    target: bool = False,
    losses: bool = False,
    logprobs: bool = False,
    head_outputs: bool = False,
    segments: Sequence[int] | None = None,
    source: int | None = None,
) -> Plan:
    """The steps of one forward pass over `length` tokens, in spine order.

    `past` counts earlier tokens, whose keys and values are given (a cache).  `positions` go on from
    there unless given.  `mask`, True where a query may look at a key, is added to each block's
    causal mask.  All of it is data, so caches and padding need no pass of their own.  `target` asks
    for the loss at the last position, `losses` for those at all positions and their mean,
    `logprobs` for the logarithm of the probability of each next token, `head_outputs` for each
    head's own part of the attention output.  `segments` is the kind of each token, and `source`
    counts the tokens of an encoder's text, where the model has these.
    """
    places = tuple(range(past, past + length)) if positions is None else tuple(positions)
    allowed = None if mask is None else tuple(map(tuple, mask))
    kinds = None if segments is None else tuple(segments)
    run = Pass(spec, length, places, allowed, head_outputs, past, kinds, source)
    return _plan(run, target, losses, logprobs)


@lru_cache(maxsize=8)
def _plan(run: Pass, target: bool, losses: bool, logprobs: bool) -> Plan:
    """The plan of a pass, cached: a plan never changes, so texts of one length share it."""
    spec, length, past = run.spec, run.length, run.past
    w = Sheet(pos=length, query=length, key=past + length, past=past)
    w.sizes |= {"d": spec.d_model, "vocab": spec.vocab, "one": 1}
    w.sizes[spec.answer_axis] = spec.answers

    source = _encode(w, run.of_encoder()) if spec.encoder else None
    w.line("tokens", "given", "text → ids", ("pos",))
    _unembed(w, spec, _stack(w, run, spec, source))
    w.line("probs", "softmax", "softmax(logits)", ("pos", spec.answer_axis), {"x": "logits"})
    w.line("next", "argmax", "argmax(logits)", ("pos",), {"x": "logits"})
    if target:
        w.line("target", "given", "text → id", ())
        reads = {"probs": "probs", "target": "target"}
        w.line("loss", "loss", "-ln probs[last, target]", ("one",), reads)
    if losses or logprobs:
        w.line("targets", "given", "text → the ids that should come", ("pos",))
    if logprobs:
        reads = {"x": "logits", "targets": "targets"}
        w.line("logprobs", "logprobs", "logits[pos, target] - ln Σ e^logits", ("pos",), reads)
        w.also("token_logprobs", "logprobs")
    if losses:
        reads = {"probs": "probs", "targets": "targets"}
        w.line("losses", "losses", "-ln probs[pos, target]", ("pos",), reads)
        w.line("mean_loss", "average", "mean(losses)", ("one",), {"losses": "losses"})
    return Plan(spec, length, tuple(w.steps), w.aliases)


def _encode(w: Sheet, run: Pass) -> str:
    """The encoder's own stream, over the text that is read; the decoder looks at its end."""
    assert run.encoding is not None
    w.sizes |= dict.fromkeys(("source", "source_query", "source_key"), run.length)
    there = w.about(pos="source", query="source_query", key="source_key")
    there.line("source", "given", "source → ids", ("pos",))
    return w.also("encoder.out", _stack(there, run, run.encoding, None))


def _stack(w: Sheet, run: Pass, side: ModelSpec | EncoderSpec, source: str | None) -> str:
    """One stream from its embedding to its last norm: of the model, or of its encoder."""
    stream = _embed(w, run, side)
    if side.relative is not None:
        _relative(w, run, side.relative)
    for layer, block in enumerate(side.blocks):
        w.also(f"{run.stack}stream.{layer}", stream)
        stream = _block(w, run, f"{run.stack}block.{layer}", block, stream, source)
    w.also(f"{run.stack}stream.{len(side.blocks)}", stream)
    return sublayers.norm(w, f"{run.stack}final.norm", side.final_norm, stream)


# ------------------------------------------------------------------ into and out of the stream


def _embed(w: Sheet, run: Pass, side: ModelSpec | EncoderSpec) -> str:
    """The embedding of each token, plus those of its position and its kind where there are any."""
    own = run.stack if run.encoding is None or run.encoding.vocab is not None else ""
    ids = "source" if run.stack else "tokens"
    narrow = run.spec.embed_width is not None
    w.sizes["embed_width"] = run.spec.embed_width or run.spec.d_model
    stream = w.line(
        f"{run.stack}embed.token",
        "embed",
        f"E[token]{shown_scale(side.embed_scale)}",
        ("pos", "embed_width") if narrow else STREAM,
        {"table": f"{WEIGHT}{own}embed.token", "ids": ids},
        scale=side.embed_scale,
    )
    if narrow:
        stream = sublayers.linear(
            w, run.spec, f"{run.stack}embed.projected", ("E", stream), STREAM, bias=False
        )
    parts = [("token", stream)]
    if side.segments is not None:
        table = {"table": f"{WEIGHT}embed.segment"}
        kinds = run.segments or (0,) * run.length
        segment = w.line("embed.segment", "embed", "S[segment]", STREAM, table, ids=kinds)
        parts.append(("segment", segment))
    if side.position != "none":
        parts.append(("position", _position(w, run, side)))
    for place, (name, part) in enumerate(parts[1:], 2):
        last = place == len(parts)
        address = f"{run.stack}stream.0" if last else f"{run.stack}embed.{name}_added"
        if last and side.embed_norm.kind != "none":
            address = f"{run.stack}embed.sum"
        terms = {"x": stream, "y": part}
        before = "embed.token" if place == 2 else "what is above"
        stream = w.line(address, "add", f"{before} + embed.{name}", STREAM, terms)
    return sublayers.norm(w, f"{run.stack}embed.norm", side.embed_norm, stream)


def _position(w: Sheet, run: Pass, side: ModelSpec | EncoderSpec) -> str:
    """The row of each position: learned, or sines and cosines."""
    address = f"{run.stack}embed.position"
    if side.position == "learned":
        table = {"table": WEIGHT + address}
        first = side.first_row
        rows = tuple(place + first for place in run.positions)
        shown = f"P[pos + {first}]" if first else "P[pos]"
        return w.line(address, "embed", shown, STREAM, table, ids=rows)
    return w.line(
        address,
        "sinusoid",
        f"sin, cos of pos / {side.position_base}^(2i/d)",
        STREAM,
        positions=run.positions,
        width=run.spec.d_model,
        base=side.position_base,
        pairing=side.position_pairing if side.position_pairing != "interleaved" else None,
    )


def _relative(w: Sheet, run: Pass, relative: RelativeSpec) -> None:
    """The scores of the distances between queries and keys, the same in every block."""
    heads = next(b.attention.heads for b in (run.encoding or run.spec).blocks if b.attention)
    w.sizes["head"] = heads
    w.line(
        f"{run.stack}relative",
        "bucket_scores",
        "R[bucket of key - query]",
        ("head", "query", "key"),
        {"table": f"{WEIGHT}{run.stack}relative"},
        buckets=buckets(relative, run.positions, run.keys),
    )


def _unembed(w: Sheet, spec: ModelSpec, stream: str) -> None:
    """The logits: the stream times the unembedding, one logit for each word it may answer."""
    if spec.head is not None:
        x = sublayers.linear(w, spec, "head.hidden", ("x", stream), STREAM, spec.head.bias)
        kind = spec.head.activation
        x = w.line("head.act", "activate", f"{kind}(hidden)", STREAM, {"x": x}, kind=kind)
        stream = sublayers.norm(w, "head.norm", spec.head.norm, x)
    if spec.embed_width is not None:
        narrow = ("pos", "embed_width")
        stream = sublayers.linear(w, spec, "head.projected", ("x", stream), narrow, bias=False)
    if spec.head_scale is not None:
        axes = STREAM if spec.embed_width is None else ("pos", "embed_width")
        formula = f"x{shown_scale(spec.head_scale)}"
        stream = w.line("head.in", "rescale", formula, axes, {"x": stream}, by=spec.head_scale)
    later = [name for name, there in (
        ("biased", spec.fixed_bias), ("scaled", spec.logit_scale), ("capped", spec.logit_cap),
    ) if there]  # fmt: skip
    biased = spec.head_bias and not spec.fixed_bias
    axes = ("pos", spec.answer_axis)
    x = w.line(
        "head.out" if later else "logits",
        "linear",
        ("x·Eᵀ" if spec.tied else shown_matrix(spec, "x", "W_head")) + " + b" * biased,
        axes,
        {
            "x": stream,
            "weight": WEIGHT + ("embed.token" if spec.tied else "head"),
            "bias": WEIGHT + "head_bias" if biased else None,
        },
        layout="out_in" if spec.tied else spec.layout,
    )
    for name in later:
        address = "logits" if name == later[-1] else f"head.{name}"
        if name == "biased":
            both = {"x": x, "bias": WEIGHT + "head_bias"}
            x = w.line(address, "affine", "x + b", axes, both)
        elif name == "scaled":
            formula = f"x{shown_scale(spec.logit_scale)}"
            x = w.line(address, "rescale", formula, axes, {"x": x}, by=spec.logit_scale)
        else:
            formula = shown_cap("x", spec.logit_cap)
            x = w.line(address, "soft_cap", formula, axes, {"x": x}, cap=spec.logit_cap)


# ------------------------------------------------------------------ one block


def _block(w: Sheet, run: Pass, at: str, block: BlockSpec, stream: str, source: str | None) -> str:
    """Attention, then the MLP; each reads the stream and adds to it.  Returns the new stream.

    A decoder's block looks at the source between them.
    """
    entering, read = stream, ""
    if block.attention:
        read = _norm_before(w, f"{at}.attn", block, block.attn_norm, stream)
        update = attending.attention(w, run, f"{at}.attn", block.attention, read)
        update = sublayers.norm(w, f"{at}.attn.after", block.attn_after, update)
        onto = read if block.from_norm else stream
        stream = _add_back(w, f"{at}.attn", block, block.attn_norm, onto, update)
    if block.cross:
        asks = _norm_before(w, f"{at}.cross", block, block.cross_norm, stream)
        update = attending.attention(w, run, f"{at}.cross", block.cross, asks, source)
        stream = _add_back(w, f"{at}.cross", block, block.cross_norm, stream, update)
    if block.mlp:
        if block.one_norm:
            w.also(f"{at}.mlp.norm.out", read)
        else:
            before = entering if block.parallel else stream
            read = _norm_before(w, f"{at}.mlp", block, block.mlp_norm, before)
        update = sublayers.mlp(w, run, f"{at}.mlp", block.mlp, read)
        update = sublayers.norm(w, f"{at}.mlp.after", block.mlp_after, update)
        onto = read if block.from_norm and not block.parallel else stream
        stream = _add_back(w, f"{at}.mlp", block, block.mlp_norm, onto, update)
    return stream


def _norm_before(w: Sheet, at: str, block: BlockSpec, norm: NormSpec, stream: str) -> str:
    """Pre-norm: the sublayer reads the normalised stream.  Post-norm: the stream as it is."""
    return sublayers.norm(w, f"{at}.norm", norm, stream) if block.norm_place == "pre" else stream


def _add_back(w: Sheet, at: str, block: BlockSpec, norm: NormSpec, stream: str, update: str) -> str:
    """The residual connection; post-norm then normalises the sum."""
    sublayer = at.rpartition(".")[2]
    if block.add_scale is not None:
        formula = f"{sublayer}.out{shown_scale(block.add_scale)}"
        reads = {"x": update}
        update = w.line(f"{at}.scaled", "rescale", formula, STREAM, reads, by=block.add_scale)
    terms = {"x": stream, "y": update}
    stream = w.line(f"{at}.add", "add", f"stream + {sublayer}.out", STREAM, terms)
    return sublayers.norm(w, f"{at}.norm", norm, stream) if block.norm_place == "post" else stream
