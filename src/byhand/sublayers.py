"""The sublayers of a block, once: attention and the MLPs, as value-free steps.

`forward` is the spine; here are the side-trips that read the residual stream: `attention` and
`mlp`, which may be one MLP or a choice among experts, and `norm`, which stands before or behind
them.  Each writes its lines on the sheet and returns the address of its result.  The axes are those
of `forward`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from byhand.expression import Expression, Number, Quotient, write
from byhand.passes import Pass
from byhand.plan import WEIGHT, Sheet
from byhand.spec import AttentionSpec, MlpSpec, ModelSpec, NormSpec

STREAM = ("pos", "d")


def norm(w: Sheet, at: str, spec: NormSpec, x: str, axes: tuple[str, ...] = STREAM) -> str:
    """LayerNorm: (x - mean)/std; RMSNorm: x/rms; then gain and bias where the model has them."""
    if spec.kind == "none":
        return x
    row, eps, plus_eps = axes[:-1], spec.eps, f" + {spec.eps}" if spec.eps else ""
    if spec.kind == "layernorm":
        mean = w.line(f"{at}.mean", "mean", "mean(x)", row, {"x": x})
        x = w.line(f"{at}.centered", "center", "x - mean", axes, {"x": x, "mean": mean})
        square = w.line(f"{at}.variance", "mean_square", "mean(centered²)", row, {"x": x})
        by = w.line(f"{at}.std", "root", f"√(variance{plus_eps})", row, {"x": square}, eps=eps)
    else:
        square = w.line(f"{at}.mean_square", "mean_square", "mean(x²)", row, {"x": x})
        by = w.line(f"{at}.rms", "root", f"√(mean_square{plus_eps})", row, {"x": square}, eps=eps)
    formula = "centered/std" if spec.kind == "layernorm" else "x/rms"
    x = w.line(f"{at}.normalized", "normalize", formula, axes, {"x": x, "by": by})
    if not spec.gain and not spec.bias:
        return w.also(f"{at}.out", x)
    return w.line(
        f"{at}.out",
        "affine",
        "normalized" + " · gain" * spec.gain + " + bias" * spec.bias,
        axes,
        {
            "x": x,
            "gain": f"{WEIGHT}{at}.gain" if spec.gain else None,
            "bias": f"{WEIGHT}{at}.bias" if spec.bias else None,
        },
    )


def linear(
    w: Sheet,
    spec: ModelSpec,
    address: str,
    x: tuple[str, str],
    axes: tuple[str, ...],
    bias: bool,
    heads: int | None = None,
    op: str = "linear",
) -> str:
    """The matrix of the same name applied to x = (its short name, its address)."""
    name = address.rpartition(".")[2]
    return w.line(
        address,
        op,
        shown_matrix(spec, x[0], f"W_{name}") + " + b" * bias,
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


def attention(w: Sheet, run: Pass, at: str, attn: AttentionSpec, x: str) -> str:
    """Each position asks (q), is asked (k), and hands on (v); softmax shares out the answers."""
    w.sizes |= {"head": attn.heads, "kv_head": attn.kv_heads, "d_head": attn.d_head}
    *asking, v = _queries_keys_values(w, run.spec, at, attn, x)
    v = _after_past(w, at, "v", v) if run.past else v
    if asking:
        scores = _scores(w, run, at, attn, *asking)
    else:
        scores = _table_scores(w, run, at, attn)
    weights = w.line(
        f"{at}.weights",
        "softmax",
        "softmax(scores, sink)" if attn.sinks else "softmax(scores)",
        ("head", "query", "key"),
        {"x": scores, "sinks": f"{WEIGHT}{at}.sinks" if attn.sinks else None},
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
    return linear(w, run.spec, f"{at}.out", ("mixed", mixed), STREAM, attn.out_bias)


def _scores(w: Sheet, run: Pass, at: str, attn: AttentionSpec, q: str, k: str) -> str:
    """How much each query wants of each key: q·k, scaled, and what stands beside it."""
    if attn.q_norm.kind != "none":
        q = norm(w, f"{at}.q_norm", attn.q_norm, q, ("head", "pos", "d_head"))
        w.also(f"{at}.q_norm", q)
    if attn.k_norm.kind != "none":
        k = norm(w, f"{at}.k_norm", attn.k_norm, k, ("kv_head", "pos", "d_head"))
        w.also(f"{at}.k_norm", k)
    if attn.rotary:
        q = _rotate(w, run, at, attn, "q", q)
        k = _rotate(w, run, at, attn, "k", k)
    k = _after_past(w, at, "k", k) if run.past else k
    beside, seen = _beside_products(run, at, attn)
    return w.line(
        f"{at}.scores",
        "scores",
        shown_cap(f"q·k{shown_scale(attn.scale)}", attn.cap)
        + " - slope·|query - key|" * attn.alibi
        + " + table" * attn.score_table,
        ("head", "query", "key"),
        {"q": q, "k": k, **beside},
        scale=attn.scale,
        cap=attn.cap,
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
            linear(w, spec, f"{at}.{name}", ("x", x), (head, "pos", "d_head"), bias, heads)
            for name, head, heads, bias in kinds
        ]
    w.sizes["packed"] = attn.q_width + 2 * attn.kv_width
    packed = linear(w, spec, f"{at}.qkv", ("x", x), ("pos", "packed"), attn.q_bias)
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
        f"pair i of {name} turned by pos·{angle}{shown_scale(rotary.magnitude, ', times ')}",
        ("head" if name == "q" else "kv_head", "pos", "d_head"),
        {"x": x, "frequencies": f"{WEIGHT}{at}.frequencies" if rotary.given else None},
        positions=run.positions,
        width=rotary.width,
        base=rotary.base,
        pairing=rotary.pairing,
        magnitude=rotary.magnitude,
    )


def _after_past(w: Sheet, at: str, name: str, x: str) -> str:
    """The given keys or values of earlier tokens, followed by those of these tokens."""
    past = w.line(f"{at}.past_{name}", "given", "from before", ("kv_head", "past", "d_head"))
    both = {"x": past, "y": x}
    return w.line(f"{at}.all_{name}", "join", "past, then new", ("kv_head", "key", "d_head"), both)


# ------------------------------------------------------------------ the MLP


def mlp(w: Sheet, run: Pass, at: str, mlp: MlpSpec, x: str) -> str:
    """Each position on its own: from d to d_ff, through the activation, and back to d."""
    w.sizes["d_ff"] = mlp.d_ff
    if mlp.experts is not None:
        return _experts(w, run.spec, at, mlp, x)
    inner = _inside(w, run.spec, at, mlp, x, ("pos", "d_ff"))
    return linear(w, run.spec, f"{at}.out", inner, STREAM, mlp.out_bias)


def _inside(
    w: Sheet, spec: ModelSpec, at: str, mlp: MlpSpec, x: str, wide: tuple[str, ...]
) -> tuple[str, str]:
    """From d to d_ff and through the activation; the short name and the address of the result."""
    op = "linear" if mlp.experts is None else "expert_linear"
    bent, name = "", "hidden"
    if mlp.gated:
        bent = linear(w, spec, f"{at}.gate", ("x", x), wide, mlp.gate_bias, op=op)
        name = "gate"
    hidden = linear(w, spec, f"{at}.hidden", ("x", x), wide, mlp.hidden_bias, op=op)
    act = w.line(
        f"{at}.act",
        "activate",
        f"{mlp.activation}({name})",
        wide,
        {"x": bent or hidden},
        kind=mlp.activation,
    )
    if not mlp.gated:
        return "act", act
    both = {"x": act, "y": hidden}
    return "gated", w.line(f"{at}.gated", "multiply", "act · hidden", wide, both)


def _experts(w: Sheet, spec: ModelSpec, at: str, mlp: MlpSpec, x: str) -> str:
    """A router scores the experts; those with the largest scores answer, each by its share.

    What an expert would answer does not depend on the choice.  Only its share does: it is 0 for an
    expert that is not chosen.
    """
    assert mlp.experts is not None
    w.sizes["expert"] = mlp.experts
    each = ("pos", "expert")
    router = linear(w, spec, f"{at}.router", ("x", x), each, mlp.router_bias)
    chosen = w.line(
        f"{at}.chosen",
        "choose",
        "1 for the " + f"{mlp.chosen} " * (mlp.chosen != 1) + "largest of router, else 0",
        each,
        {"x": router},
        count=mlp.chosen,
    )
    shares = w.line(
        f"{at}.shares",
        "expert_shares",
        "softmax(router)" + (" over the chosen" if mlp.normalised else ", of the chosen"),
        each,
        {"x": router, "chosen": chosen},
        normalised=mlp.normalised,
    )
    inner = _inside(w, spec, at, mlp, x, ("expert", "pos", "d_ff"))
    name = f"{at}.out"
    answers = w.line(
        f"{at}.answers",
        "expert_linear",
        shown_matrix(spec, inner[0], "W_out") + " + b" * mlp.out_bias,
        ("expert", "pos", "d"),
        {
            "x": inner[1],
            "weight": WEIGHT + name,
            "bias": f"{WEIGHT}{name}_bias" if mlp.out_bias else None,
        },
        layout=spec.layout,
    )
    terms = {"x": answers, "shares": shares}
    return w.line(f"{at}.out", "combine", "Σ shares·answers", STREAM, terms)


# ------------------------------------------------------------------ formulas


def shown_scale(scale: Expression | None, times: str = " · ") -> str:
    """A factor behind a formula: / √d where it is 1/√d."""
    match scale:
        case None:
            return ""
        case Quotient(top=Number(value=1), bottom=bottom):
            return f" / {write(bottom)}"
        case _:
            return f"{times}{write(scale)}"


def shown_cap(x: str, cap: Fraction | None) -> str:
    """A soft cap around a formula."""
    return x if cap is None else f"{cap}·tanh(({x})/{cap})"


def shown_matrix(spec: ModelSpec, x: str, name: str) -> str:
    """x times a matrix, in the order of its layout."""
    return f"{x}·{name}" if spec.layout == "in_out" else f"{name}·{x}"
