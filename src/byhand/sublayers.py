"""What every sublayer is made of, once: norms, matrices and the MLPs, as value-free steps.

`forward` is the spine and `attending` has the kinds of attention.  Here are the lines they share,
and `mlp`, which may be one MLP or a choice among experts.  Each function writes its lines on the
sheet and returns the address of its result.  The axes are those of `forward`.
"""

from __future__ import annotations

from fractions import Fraction

from byhand.expression import Expression, Number, Quotient, write
from byhand.passes import Pass
from byhand.plan import WEIGHT, Sheet
from byhand.spec import MlpSpec, ModelSpec, NormSpec

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
    gain = " · (1 + gain)" if spec.plus_one else " · gain"
    return w.line(
        f"{at}.out",
        "affine",
        "normalized" + gain * spec.gain + " + bias" * spec.bias,
        axes,
        {
            "x": x,
            "gain": f"{WEIGHT}{at}.gain" if spec.gain else None,
            "bias": f"{WEIGHT}{at}.bias" if spec.bias else None,
        },
        plus_one=spec.plus_one or None,
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
    if mlp.limit is not None:
        c = mlp.limit
        bent = clamp(w, f"{at}.gate_limited", wide, ("gate", bent), most=c)
        hidden = clamp(w, f"{at}.hidden_limited", wide, ("hidden", hidden), least=-c, most=c)
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
    if mlp.hidden_plus:
        plus = mlp.hidden_plus
        formula = f"hidden + {plus}"
        hidden = w.line(f"{at}.raised", "rescale", formula, wide, {"x": hidden}, plus=plus)
    both = {"x": act, "y": hidden}
    formula = "act · raised" if mlp.hidden_plus else "act · hidden"
    return "gated", w.line(f"{at}.gated", "multiply", formula, wide, both)


def clamp(
    w: Sheet,
    address: str,
    axes: tuple[str, ...],
    x: tuple[str, str],
    *,
    least: Fraction | None = None,
    most: Fraction | None = None,
) -> str:
    """x = (its short name, its address) kept within limits."""
    shown = f"min({x[0]}, {most})" if least is None else f"{x[0]} within {least} … {most}"
    return w.line(address, "clamp", shown, axes, {"x": x[1]}, least=least, most=most)


# ------------------------------------------------------------------ experts


def _experts(w: Sheet, spec: ModelSpec, at: str, mlp: MlpSpec, x: str) -> str:
    """A router scores the experts; those with the largest scores answer, each by its share.

    What an expert would answer does not depend on the choice.  Only its share does: it is 0 for an
    expert that is not chosen.  A shared expert answers always.
    """
    assert mlp.experts is not None
    w.sizes["expert"] = mlp.experts
    shares = _shares(w, spec, at, mlp, x)
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
    if mlp.shared is None:
        return w.line(name, "combine", "Σ shares·answers", STREAM, terms)
    chosen = w.line(f"{at}.combined", "combine", "Σ shares·answers", STREAM, terms)
    shared = _shared(w, spec, at, mlp, x)
    return w.line(name, "add", "combined + shared", STREAM, {"x": chosen, "y": shared})


def _shares(w: Sheet, spec: ModelSpec, at: str, mlp: MlpSpec, x: str) -> str:
    """The router's scores, which experts they choose, and the share of each."""
    each = ("pos", "expert")
    scores = linear(w, spec, f"{at}.router", ("x", x), each, mlp.router_bias)
    name, alone = "router", mlp.scoring == "sigmoid"
    if alone:
        name, reads = "router_scores", {"x": scores}
        scores = w.line(f"{at}.{name}", "activate", "sigmoid(router)", each, reads, kind="sigmoid")
    ranked, by = scores, name
    if mlp.choice_bias:
        reads = {"x": scores, "bias": f"{WEIGHT}{at}.choice_bias"}
        ranked = w.line(f"{at}.ranked", "affine", f"{name} + choice_bias", each, reads)
        by = "ranked"
    within = "" if mlp.groups is None else f" in the best {mlp.groups_chosen} groups"
    chosen = w.line(
        f"{at}.chosen",
        "choose",
        "1 for the " + f"{mlp.chosen} " * (mlp.chosen != 1) + f"largest of {by}{within}, else 0",
        each,
        {"x": ranked},
        count=mlp.chosen,
        groups=mlp.groups,
        groups_chosen=mlp.groups_chosen,
        group_rule=mlp.group_rule if mlp.groups is not None else None,
    )
    if alone:
        formula = f"{name} of the chosen" + " / their sum" * mlp.normalised
    else:
        formula = "softmax(router)" + (" over the chosen" if mlp.normalised else ", of the chosen")
    return w.line(
        f"{at}.shares",
        "expert_shares",
        formula + (f" · {mlp.share_scale}" if mlp.share_scale != 1 else ""),
        each,
        {"x": scores, "chosen": chosen},
        normalised=mlp.normalised,
        alone=alone or None,
        scale=mlp.share_scale if mlp.share_scale != 1 else None,
        eps=mlp.share_eps or None,
    )


def _shared(w: Sheet, spec: ModelSpec, at: str, mlp: MlpSpec, x: str) -> str:
    """The expert that always answers, weighted by a score of its own where it has one."""
    at, shared = f"{at}.shared", mlp.shared_mlp
    w.sizes["d_shared"] = shared.d_ff
    inner = _inside(w, spec, at, shared, x, ("pos", "d_shared"))
    answer = linear(w, spec, f"{at}.out", inner, STREAM, shared.out_bias)
    if not mlp.shared_gate:
        return answer
    one = ("pos", "one")
    score = linear(w, spec, f"{at}.score", ("x", x), one, bias=False)
    share = w.line(f"{at}.share", "activate", "sigmoid(score)", one, {"x": score}, kind="sigmoid")
    return w.line(f"{at}.weighed", "weigh", "share · out", STREAM, {"x": answer, "by": share})


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
    if cap is None:
        return x
    below = cap if cap.denominator == 1 else f"({cap})"
    return f"{below}·tanh(({x})/{below})"


def shown_matrix(spec: ModelSpec, x: str, name: str) -> str:
    """x times a matrix, in the order of its layout."""
    return f"{x}·{name}" if spec.layout == "in_out" else f"{name}·{x}"
