"""The transformer, once: from tokens to the next token, as a plan of value-free steps.

Read it from top to bottom: `plan` is the spine, `_attention` and `_mlp` are the side-trips that
read the residual stream and add to it.  Each `line(…)` writes one step: its address, its
operation (a method of `numbers.base.Numbers`), its formula, its axes, and what it reads.  No
number is known here, and no number system: the same plan is worked out exactly, with a pencil,
in floats or on tensors.

    pos · query · key   positions of the text          head · kv_head   attention heads
    d                   width of the residual stream   d_head           width of a head
    d_ff                width inside the MLP           vocab            the vocabulary
    outputs             the words of the head, where they are others than the vocabulary
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from byhand.expression import Expression, Number, Quotient, write
from byhand.passes import Mask, Pass
from byhand.plan import WEIGHT, Plan, Sheet
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec

STREAM = ("pos", "d")


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
    final = _norm(w, "final.norm", spec.final_norm, stream)
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
        f"E[token]{_shown_scale(spec.embed_scale)}",
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
        ("x·Eᵀ" if spec.tied else _shown_matrix(spec, "x", "W_head")) + " + b" * spec.head_bias,
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
        update = _attention(w, run, f"{at}.attn", block.attention, read)
        stream = _add_back(w, f"{at}.attn", block, block.attn_norm, stream, update)
    if block.mlp:
        before = entering if block.parallel else stream
        read = _norm_before(w, f"{at}.mlp", block, block.mlp_norm, before)
        update = _mlp(w, run, f"{at}.mlp", block.mlp, read)
        stream = _add_back(w, f"{at}.mlp", block, block.mlp_norm, stream, update)
    return stream


def _norm_before(w: Sheet, at: str, block: BlockSpec, norm: NormSpec, stream: str) -> str:
    """Pre-norm: the sublayer reads the normalised stream.  Post-norm: the stream as it is."""
    return _norm(w, f"{at}.norm", norm, stream) if block.norm_place == "pre" else stream


def _add_back(w: Sheet, at: str, block: BlockSpec, norm: NormSpec, stream: str, update: str) -> str:
    """The residual connection; post-norm then normalises the sum."""
    sublayer = at.rpartition(".")[2]
    terms = {"x": stream, "y": update}
    stream = w.line(f"{at}.add", "add", f"stream + {sublayer}.out", STREAM, terms)
    return _norm(w, f"{at}.norm", norm, stream) if block.norm_place == "post" else stream


def _norm(w: Sheet, at: str, norm: NormSpec, x: str, axes: tuple[str, ...] = STREAM) -> str:
    """LayerNorm: (x - mean)/std; RMSNorm: x/rms; then gain and bias where the model has them."""
    if norm.kind == "none":
        return x
    row, eps, plus_eps = axes[:-1], norm.eps, f" + {norm.eps}" if norm.eps else ""
    if norm.kind == "layernorm":
        mean = w.line(f"{at}.mean", "mean", "mean(x)", row, {"x": x})
        x = w.line(f"{at}.centered", "center", "x - mean", axes, {"x": x, "mean": mean})
        square = w.line(f"{at}.variance", "mean_square", "mean(centered²)", row, {"x": x})
        by = w.line(f"{at}.std", "root", f"√(variance{plus_eps})", row, {"x": square}, eps=eps)
    else:
        square = w.line(f"{at}.mean_square", "mean_square", "mean(x²)", row, {"x": x})
        by = w.line(f"{at}.rms", "root", f"√(mean_square{plus_eps})", row, {"x": square}, eps=eps)
    formula = "centered/std" if norm.kind == "layernorm" else "x/rms"
    x = w.line(f"{at}.normalized", "normalize", formula, axes, {"x": x, "by": by})
    if not norm.gain and not norm.bias:
        return w.also(f"{at}.out", x)
    return w.line(
        f"{at}.out",
        "affine",
        "normalized" + " · gain" * norm.gain + " + bias" * norm.bias,
        axes,
        {
            "x": x,
            "gain": f"{WEIGHT}{at}.gain" if norm.gain else None,
            "bias": f"{WEIGHT}{at}.bias" if norm.bias else None,
        },
    )


def _linear(
    w: Sheet,
    spec: ModelSpec,
    address: str,
    x: tuple[str, str],
    axes: tuple[str, ...],
    bias: bool,
    heads: int | None = None,
) -> str:
    """The matrix of the same name applied to x = (its short name, its address)."""
    name = address.rpartition(".")[2]
    return w.line(
        address,
        "linear",
        _shown_matrix(spec, x[0], f"W_{name}") + " + b" * bias,
        axes,
        {
            "x": x[1],
            "weight": WEIGHT + address,
            "bias": f"{WEIGHT}{address}_bias" if bias else None,
        },
        layout=spec.layout,
        heads=heads,
    )


# ------------------------------------------------------------------ attention


def _attention(w: Sheet, run: Pass, at: str, attn: AttentionSpec, x: str) -> str:
    """Each position asks (q), is asked (k), and hands on (v); softmax shares out the answers."""
    w.sizes |= {"head": attn.heads, "kv_head": attn.kv_heads, "d_head": attn.d_head}
    *asking, v = _queries_keys_values(w, run.spec, at, attn, x)
    v = _after_past(w, at, "v", v) if run.past else v
    if asking:
        scores = _scores(w, run, at, attn, *asking)
    else:
        scores = _table_scores(w, run, at, attn)
    weights = w.line(
        f"{at}.weights", "softmax", "softmax(scores)", ("head", "query", "key"), {"x": scores}
    )
    shares = {"weights": weights, "v": v}
    mixed = w.line(f"{at}.mixed", "mix", "Σ weights·v", ("head", "pos", "d_head"), shares)
    if run.head_outputs:
        w.line(
            f"{at}.head_out",
            "head_outputs",
            "mixed of one head · its slice of W_out",
            ("head", "pos", "d"),
            {"mixed": mixed, "weight": f"{WEIGHT}{at}.out" if attn.out else None},
            layout=run.spec.layout,
        )
    if not attn.out:
        return w.line(f"{at}.out", "merge_heads", "heads side by side", STREAM, {"x": mixed})
    return _linear(w, run.spec, f"{at}.out", ("mixed", mixed), STREAM, attn.out_bias)


def _scores(w: Sheet, run: Pass, at: str, attn: AttentionSpec, q: str, k: str) -> str:
    """How much each query wants of each key: q·k, scaled, and what stands beside it."""
    if attn.q_norm.kind != "none":
        q = _norm(w, f"{at}.q_norm", attn.q_norm, q, ("head", "pos", "d_head"))
        w.also(f"{at}.q_norm", q)
    if attn.k_norm.kind != "none":
        k = _norm(w, f"{at}.k_norm", attn.k_norm, k, ("kv_head", "pos", "d_head"))
        w.also(f"{at}.k_norm", k)
    if attn.rotary:
        q = _rotate(w, run, at, attn, "q", q)
        k = _rotate(w, run, at, attn, "k", k)
    k = _after_past(w, at, "k", k) if run.past else k
    beside, seen = _beside_products(run, at, attn)
    return w.line(
        f"{at}.scores",
        "scores",
        f"q·k{_shown_scale(attn.scale)}"
        + " - slope·|query - key|" * attn.alibi
        + " + table" * attn.score_table,
        ("head", "query", "key"),
        {"q": q, "k": k, **beside},
        scale=attn.scale,
        **seen,
    )


def _table_scores(w: Sheet, run: Pass, at: str, attn: AttentionSpec) -> str:
    """Scores without queries and keys: the table, less slope·distance, or 0 where neither is."""
    beside, seen = _beside_products(run, at, attn)
    formula = " ".join(["table"] * attn.score_table + ["- slope·|query - key|"] * attn.alibi)
    axes = ("head", "query", "key")
    return w.line(
        f"{at}.scores", "table_scores", formula or "0", axes, beside, heads=attn.heads, **seen
    )


def _beside_products(
    run: Pass, at: str, attn: AttentionSpec
) -> tuple[dict[str, str | None], dict[str, Any]]:
    """What scores read besides q and k, and which keys a query sees."""
    beside = {
        "table": f"{WEIGHT}{at}.score_table" if attn.score_table else None,
        "slopes": f"{WEIGHT}{at}.slopes" if attn.alibi else None,
    }
    return beside, {"mask": run.mask(attn), "queries": run.positions, "keys": run.keys}


def _queries_keys_values(
    w: Sheet, spec: ModelSpec, at: str, attn: AttentionSpec, x: str
) -> list[str]:
    """q, k and v (without queries v alone) through a matrix each, or cut out of a packed one."""
    kinds = (
        ("q", "head", attn.heads, attn.q_bias),
        ("k", "kv_head", attn.kv_heads, attn.k_bias),
        ("v", "kv_head", attn.kv_heads, attn.v_bias),
    )[0 if attn.queries else 2 :]
    if not attn.packed:
        return [
            _linear(w, spec, f"{at}.{name}", ("x", x), (head, "pos", "d_head"), bias, heads)
            for name, head, heads, bias in kinds
        ]
    w.sizes["packed"] = attn.q_width + 2 * attn.kv_width
    packed = _linear(w, spec, f"{at}.qkv", ("x", x), ("pos", "packed"), attn.q_bias)
    if attn.packed == "per_head":  # q, k, v of head 0, then of head 1, …
        starts, stride = (0, attn.d_head, 2 * attn.d_head), 3 * attn.d_head
    else:  # q of all heads, then k, then v
        starts, stride = (0, attn.q_width, attn.q_width + attn.kv_width), attn.d_head
    return [
        w.line(
            f"{at}.{name}",
            "split_heads",
            f"the columns of {name} in qkv",
            (head, "pos", "d_head"),
            {"x": packed},
            start=start,
            heads=heads,
            width=attn.d_head,
            stride=stride,
        )
        for (name, head, heads, _bias), start in zip(kinds, starts, strict=True)
    ]


def _rotate(w: Sheet, run: Pass, at: str, attn: AttentionSpec, name: str, x: str) -> str:
    """RoPE: each pair of entries turned by an angle that grows with the position."""
    rotary = attn.rotary
    assert rotary is not None
    angle = "θ_i" if rotary.given else f"{rotary.base}^(-2i/{rotary.width})"
    return w.line(
        f"{at}.{name}_rotated",
        "rotate",
        f"pair i of {name} turned by pos·{angle}",
        ("head" if name == "q" else "kv_head", "pos", "d_head"),
        {"x": x, "frequencies": f"{WEIGHT}{at}.frequencies" if rotary.given else None},
        positions=run.positions,
        width=rotary.width,
        base=rotary.base,
        pairing=rotary.pairing,
    )


def _after_past(w: Sheet, at: str, name: str, x: str) -> str:
    """The given keys or values of earlier tokens, followed by those of these tokens."""
    past = w.line(f"{at}.past_{name}", "given", "from before", ("kv_head", "past", "d_head"))
    both = {"x": past, "y": x}
    return w.line(f"{at}.all_{name}", "join", "past, then new", ("kv_head", "key", "d_head"), both)


# ------------------------------------------------------------------ the MLP


def _mlp(w: Sheet, run: Pass, at: str, mlp: MlpSpec, x: str) -> str:
    """Each position on its own: from d to d_ff, through the activation, and back to d."""
    w.sizes["d_ff"] = mlp.d_ff
    spec, wide = run.spec, ("pos", "d_ff")
    bent, name = "", "hidden"
    if mlp.gated:
        bent, name = _linear(w, spec, f"{at}.gate", ("x", x), wide, mlp.gate_bias), "gate"
    hidden = _linear(w, spec, f"{at}.hidden", ("x", x), wide, mlp.hidden_bias)
    formula = f"{mlp.activation}({name})"
    inner = ("act", w.line(
        f"{at}.act", "activate", formula, wide, {"x": bent or hidden}, kind=mlp.activation
    ))  # fmt: skip
    if mlp.gated:
        both = {"x": inner[1], "y": hidden}
        inner = ("gated", w.line(f"{at}.gated", "multiply", "act · hidden", wide, both))
    return _linear(w, spec, f"{at}.out", inner, STREAM, mlp.out_bias)


# ------------------------------------------------------------------ formulas


def _shown_scale(scale: Expression | None) -> str:
    match scale:
        case None:
            return ""
        case Quotient(top=Number(value=1), bottom=bottom):
            return f" / {write(bottom)}"
        case _:
            return f" · {write(scale)}"


def _shown_matrix(spec: ModelSpec, x: str, name: str) -> str:
    return f"{x}·{name}" if spec.layout == "in_out" else f"{name}·{x}"
