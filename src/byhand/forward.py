"""The transformer, once: from tokens to the next token, as a plan of value-free steps.

Read it from top to bottom: `plan` is the spine; `sublayers` has the side-trips that read the
residual stream and add to it.  Each `line(…)` writes one step: its address, its
operation (a method of `numbers.base.Numbers`), its formula, its axes, and what it reads.  No
number is known here, and no number system: the same plan is worked out exactly, with a pencil,
in floats or on tensors.

    pos · query · key   positions of the text          head · kv_head   attention heads
    d                   width of the residual stream   d_head           width of a head
    d_ff                width inside the MLP           vocab            the vocabulary
    expert              the MLPs to choose from        outputs          the words of the head, where
                                                                    they are others than vocab
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from byhand import sublayers
from byhand.passes import Mask, Pass
from byhand.plan import WEIGHT, Plan, Sheet
from byhand.spec import BlockSpec, ModelSpec, NormSpec
from byhand.sublayers import STREAM, shown_matrix, shown_scale


def plan(
    spec: ModelSpec,
    length: int,
    *,
    past: int = 0,
    positions: Sequence[int] | None = None,
    mask: Mask | None = None,
    target: bool = False,
    losses: bool = False,
    head_outputs: bool = False,
) -> Plan:
    """The steps of one forward pass over `length` tokens, in spine order.

    `past` counts earlier tokens, whose keys and values are given (a cache).  `positions` go on from
    there unless given.  `mask`, True where a query may look at a key, is added to each block's
    causal mask.  All of it is data, so caches and padding need no pass of their own.  `target` asks
    for the loss at the last position, `losses` for those at all positions and their mean,
    `head_outputs` for each head's own part of the attention output.
    """
    places = tuple(range(past, past + length)) if positions is None else tuple(positions)
    allowed = None if mask is None else tuple(map(tuple, mask))
    return _plan(Pass(spec, length, places, allowed, head_outputs, past), target, losses)


@lru_cache(maxsize=8)
def _plan(run: Pass, target: bool, losses: bool) -> Plan:
    """The plan of a pass, cached: a plan never changes, so texts of one length share it."""
    spec, length, past = run.spec, run.length, run.past
    w = Sheet(pos=length, query=length, key=past + length, past=past)
    w.sizes |= {"d": spec.d_model, "vocab": spec.vocab, "one": 1}
    w.sizes[spec.answer_axis] = spec.answers

    w.line("tokens", "given", "text → ids", ("pos",))
    stream = _embed(w, run)
    for layer, block in enumerate(spec.blocks):
        w.also(f"stream.{layer}", stream)
        stream = _block(w, run, f"block.{layer}", block, stream)
    w.also(f"stream.{len(spec.blocks)}", stream)
    final = sublayers.norm(w, "final.norm", spec.final_norm, stream)
    _unembed(w, spec, final)
    w.line("probs", "softmax", "softmax(logits)", ("pos", spec.answer_axis), {"x": "logits"})
    w.line("next", "argmax", "argmax(logits)", ("pos",), {"x": "logits"})
    if target:
        w.line("target", "given", "text → id", ())
        reads = {"probs": "probs", "target": "target"}
        w.line("loss", "loss", "-ln probs[last, target]", ("one",), reads)
    if losses:
        w.line("targets", "given", "text → the ids that should come", ("pos",))
        reads = {"probs": "probs", "targets": "targets"}
        w.line("losses", "losses", "-ln probs[pos, target]", ("pos",), reads)
        w.line("mean_loss", "average", "mean(losses)", ("one",), {"losses": "losses"})
    return Plan(spec, length, tuple(w.steps), w.aliases)


# ------------------------------------------------------------------ into and out of the stream


def _embed(w: Sheet, run: Pass) -> str:
    """The embedding of each token, plus that of its position where the model has one."""
    spec = run.spec
    token = w.line(
        "embed.token",
        "embed",
        f"E[token]{shown_scale(spec.embed_scale)}",
        STREAM,
        {"table": WEIGHT + "embed.token", "ids": "tokens"},
        scale=spec.embed_scale,
    )
    if spec.position == "none":
        return token
    if spec.position == "learned":
        table = {"table": WEIGHT + "embed.position"}
        place = w.line("embed.position", "embed", "P[pos]", STREAM, table, ids=run.positions)
    else:
        place = w.line(
            "embed.position",
            "sinusoid",
            f"sin, cos of pos / {spec.position_base}^(2i/d)",
            STREAM,
            positions=run.positions,
            width=spec.d_model,
            base=spec.position_base,
        )
    terms = {"x": token, "y": place}
    return w.line("stream.0", "add", "embed.token + embed.position", STREAM, terms)


def _unembed(w: Sheet, spec: ModelSpec, stream: str) -> None:
    """The logits: the stream times the unembedding, one logit for each word it may answer."""
    w.line(
        "logits",
        "linear",
        ("x·Eᵀ" if spec.tied else shown_matrix(spec, "x", "W_head")) + " + b" * spec.head_bias,
        ("pos", spec.answer_axis),
        {
            "x": stream,
            "weight": WEIGHT + ("embed.token" if spec.tied else "head"),
            "bias": WEIGHT + "head_bias" if spec.head_bias else None,
        },
        layout="out_in" if spec.tied else spec.layout,
    )


# ------------------------------------------------------------------ one block


def _block(w: Sheet, run: Pass, at: str, block: BlockSpec, stream: str) -> str:
    """Attention, then the MLP; each reads the stream and adds to it.  Returns the new stream."""
    entering = stream
    if block.attention:
        read = _norm_before(w, f"{at}.attn", block, block.attn_norm, stream)
        update = sublayers.attention(w, run, f"{at}.attn", block.attention, read)
        stream = _add_back(w, f"{at}.attn", block, block.attn_norm, stream, update)
    if block.mlp:
        before = entering if block.parallel else stream
        read = _norm_before(w, f"{at}.mlp", block, block.mlp_norm, before)
        update = sublayers.mlp(w, run, f"{at}.mlp", block.mlp, read)
        stream = _add_back(w, f"{at}.mlp", block, block.mlp_norm, stream, update)
    return stream


def _norm_before(w: Sheet, at: str, block: BlockSpec, norm: NormSpec, stream: str) -> str:
    """Pre-norm: the sublayer reads the normalised stream.  Post-norm: the stream as it is."""
    return sublayers.norm(w, f"{at}.norm", norm, stream) if block.norm_place == "pre" else stream


def _add_back(w: Sheet, at: str, block: BlockSpec, norm: NormSpec, stream: str, update: str) -> str:
    """The residual connection; post-norm then normalises the sum."""
    sublayer = at.rpartition(".")[2]
    terms = {"x": stream, "y": update}
    stream = w.line(f"{at}.add", "add", f"stream + {sublayer}.out", STREAM, terms)
    return sublayers.norm(w, f"{at}.norm", norm, stream) if block.norm_place == "post" else stream
