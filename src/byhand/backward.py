"""Learning, once: from the loss back to every weight, as a plan of value-free steps.

`adjoint` takes the plan of a forward pass and writes, behind its steps, the gradient of the loss
with respect to each of them, in reverse order.  One function for each operation says what the
gradient of its result gives to what it reads: this is the chain rule, one line at a time.

    grad.X            the gradient of the loss with respect to the step X, in X's own shape
    grad.weight.X     with respect to a weight; what an optimizer reads
    grad.X.via.Y      where several steps read X: what comes back through one of them, Y.
                      The sum of these terms is grad.X

Conventions: the slope of ReLU at 0 is 0, and a limit passes the gradient on where it is just met.
The next token (argmax) and the choice of experts have no gradient.  Tables of scores, slopes,
frequencies and biases of a choice are not learned, so they have none either.  docs/backward.md
derives each rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from byhand.errors import InputError
from byhand.language import _
from byhand.plan import GRAD, Plan, Step
from byhand.reverse_sheet import ReverseSheet
from byhand.sublayers import shown_scale

ROOTS = ("mean_loss", "loss")  # what a gradient may be of, the first that the plan has
QKV = ("queries", "keys", "values")
OTHER = {"in_out": "out_in", "out_in": "in_out"}


def adjoint(plan: Plan) -> Plan:
    """The plan, followed by the steps of its backward pass from the loss to every weight."""
    root = next((name for name in ROOTS if name in plan.known), None)
    if root is None:
        raise InputError(_("a gradient needs a loss"), hint=_("give a target"))
    b = ReverseSheet(plan, root)
    _loss(b, plan[root])
    for step in reversed(plan.steps):
        grad = b.gathered(step.address, step.sides)
        if grad is not None:
            ADJOINTS[step.op](b, step, grad)
        for address in b.begun_by[step.address]:
            b.gathered(address, b.weights[address])
    return b.both_passes()


# ------------------------------------------------------------------ from the loss to the logits


def _loss(b: ReverseSheet, root: Step) -> None:
    """The gradient of the logits: through the logarithm and softmax at once, p - 1 at the target.

    Through the probabilities alone it would be -1/p, which is large where p is small, only to be
    multiplied by p again.
    """
    losses = b.plan[root.inputs["losses"]] if root.op == "average" else root
    probs = b.plan[losses.inputs["probs"]]
    targets = losses.inputs["target" if root.op == "loss" else "targets"]
    formula = "probs - 1 at the target" + " of the last position" * (root.op == "loss")
    reads = {"probs": probs.address, "targets": targets}
    if root.op == "average":
        formula = f"({formula})/positions that count"
    b.give(probs, "x", "loss_back", formula, reads)


# ------------------------------------------------------------------ sums, products, places


def _add(b: ReverseSheet, step: Step, grad: str) -> None:
    """x + y: both get the gradient as it is."""
    b.pass_on(step, "x", grad)
    b.pass_on(step, "y", grad)


def _multiply(b: ReverseSheet, step: Step, grad: str) -> None:
    """x·y: each gets the gradient times the other."""
    b.give(step, "x", "multiply", "grad · y", {"x": grad, "y": step.inputs["y"]})
    b.give(step, "y", "multiply", "grad · x", {"x": grad, "y": step.inputs["x"]})


def _linear(b: ReverseSheet, step: Step, grad: str) -> None:
    """x·W + b: back through the matrix; each weight gets its input times its output's gradient."""
    x, layout = step.inputs["x"], step.attributes["layout"]
    axes, shape = b.sides(x)
    heads = shape[0] if len(axes) == 3 else None
    back = {"x": grad, "weight": step.inputs["weight"]}
    turned = "grad·Wᵀ" if layout == "in_out" else "Wᵀ·grad"
    b.give(step, "x", "linear", turned, back, layout=OTHER[layout], heads=heads)
    product = "Σ_pos x·grad" if layout == "in_out" else "Σ_pos grad·x"
    b.give(step, "weight", "outer", product, {"x": x, "grad": grad}, layout=layout)
    b.give(step, "bias", "column_sums", "Σ_pos grad", {"x": grad}, merged=True)


def _embed(b: ReverseSheet, step: Step, grad: str) -> None:
    """Each row of the table gets the gradients of the positions that took it."""
    rows = b.sides(step.inputs["table"])[1][0]
    reads = {"grad": grad, "ids": step.inputs.get("ids")}
    settings = {name: step.attributes.get(name) for name in ("ids", "scale")}
    b.give(step, "table", "scatter", "Σ grad where the row was taken", reads, rows=rows, **settings)


def _split_heads(b: ReverseSheet, step: Step, grad: str) -> None:
    """The gradients of q, k and v go back to their columns, all three in one step."""
    packed = step.inputs["x"]
    b.pass_on(step, "x", grad)
    terms = b.terms[packed]
    if len(terms) < b.readers[packed]:
        return
    cuts = sorted(map(b.plan.__getitem__, terms), key=lambda cut: cut.attributes["start"])
    reads = {name: terms[cut.address] for name, cut in zip(QKV, cuts, strict=False)}
    starts = tuple(cut.attributes["start"] for cut in cuts)
    stride = max(cut.attributes["stride"] for cut in cuts)
    names = [cut.address.rpartition(".")[2] for cut in cuts]
    formula, sides = f"the columns of {', '.join(names[:-1])} and {names[-1]}", b.sides(packed)
    b.terms[packed] = {
        "": b.line(GRAD + packed, "pack_heads", formula, sides, reads, starts=starts, stride=stride)
    }


def _merge_heads(b: ReverseSheet, step: Step, grad: str) -> None:
    heads, _positions, width = b.sides(step.inputs["x"])[1]
    settings = {"start": 0, "heads": heads, "width": width, "stride": width}
    b.give(step, "x", "split_heads", "the columns of each head", {"x": grad}, **settings)


def _beside(b: ReverseSheet, step: Step, grad: str) -> None:
    """Each part gets its columns back; where heads share it, the sum over these heads."""
    width = b.sides(step.inputs["x"])[1][-1]
    heads = step.shape[0]
    for role, start in (("x", 0), ("y", width)):
        axes, shape = b.sides(step.inputs[role])
        cut = {"start": start, "width": shape[-1]}
        if shape[0] == heads:
            b.give(step, role, "columns", "its columns of grad", {"x": grad}, **cut)
        elif b.wanted(step.inputs[role]):
            address = b.term(step.inputs[role], step.address) + ".heads"
            sides = (step.axes[0], *axes[1:]), (heads, *shape[1:])
            each = b.line(address, "columns", "its columns of grad", sides, {"x": grad}, **cut)
            formula = "Σ over the heads that share it"
            b.give(step, role, "sum_groups", formula, {"x": each}, heads=shape[0])


def _join(b: ReverseSheet, step: Step, grad: str) -> None:
    raise InputError(
        _("the backward pass cannot go through a cache"), hint=_("work out the whole text at once")
    )


# ------------------------------------------------------------------ norms


def _affine(b: ReverseSheet, step: Step, grad: str) -> None:
    """x·gain + bias: gain and bias are shared by all rows, so they get the sums over the rows."""
    x, gain = step.inputs["x"], step.inputs.get("gain")
    if gain is None:
        b.pass_on(step, "x", grad)
    else:
        plus_one = step.attributes.get("plus_one")
        formula = "grad · (1 + gain)" if plus_one else "grad · gain"
        b.give(step, "x", "affine", formula, {"x": grad, "gain": gain}, plus_one=plus_one)
        each = len(b.sides(gain)[1]) > 1 or None if b.wanted(gain) else None
        b.give(step, "gain", "column_sums", "Σ_pos grad · x", {"x": grad, "by": x}, each=each)
    bias = step.inputs.get("bias", "")
    each = len(b.sides(bias)[1]) > 1 or None if b.wanted(bias) else None
    b.give(step, "bias", "column_sums", "Σ_pos grad", {"x": grad}, each=each)


def _normalize(b: ReverseSheet, step: Step, grad: str) -> None:
    """x/s: x gets grad/s, and s gets -Σ grad·(x/s)/s."""
    by = step.inputs["by"]
    b.give(step, "x", "normalize_back", "grad / divisor", {"grad": grad, "by": by})
    dot = _row_dots(b, step, grad)
    b.give(step, "by", "divisor_back", "-dot / divisor", {"dot": dot, "by": by})


def _root(b: ReverseSheet, step: Step, grad: str) -> None:
    b.give(step, "x", "root_back", "grad / (2·root)", {"grad": grad, "root": step.address})


def _mean_square(b: ReverseSheet, step: Step, grad: str) -> None:
    reads = {"grad": grad, "x": step.inputs["x"]}
    b.give(step, "x", "mean_square_back", "grad · 2x/width", reads)


def _center(b: ReverseSheet, step: Step, grad: str) -> None:
    """x - mean: x gets the gradient as it is, the mean its negative sum."""
    b.pass_on(step, "x", grad)
    b.give(step, "mean", "center_back", "-Σ grad", {"grad": grad})


def _mean(b: ReverseSheet, step: Step, grad: str) -> None:
    width = b.sides(step.inputs["x"])[1][-1]
    b.give(step, "x", "mean_back", "grad / width", {"grad": grad}, width=width)


def _row_dots(b: ReverseSheet, step: Step, grad: str) -> str:
    """Σ result·grad of each row: softmax and norms fix the size of a row, so this part is lost."""
    reads = {"x": step.address, "y": grad}
    sides = step.axes[:-1], step.shape[:-1]
    name = step.address.rpartition(".")[2]
    return b.line(f"{GRAD}{step.address}.dot", "row_dots", f"Σ {name}·grad", sides, reads)


# ------------------------------------------------------------------ attention


def _rotate(b: ReverseSheet, step: Step, grad: str) -> None:
    """A turn is undone by the turn back."""
    reads = {"x": grad, "frequencies": step.inputs.get("frequencies")}
    settings = dict(step.attributes)
    settings["positions"] = tuple(-position for position in settings["positions"])
    b.give(step, "x", "rotate", "grad turned back", reads, **settings)


def _scores(b: ReverseSheet, step: Step, grad: str) -> None:
    """scale·q·k: q gets the keys, k the queries, each weighted by the scores' gradients."""
    q, k, scale = step.inputs["q"], step.inputs["k"], step.attributes.get("scale")
    if b.wanted(step.inputs.get("bias", "")):
        b.give(step, "bias", "unmasked", "grad, 0 where masked", {"x": grad})
    if (cap := step.attributes.get("cap")) is not None:
        seen = {name: step.attributes.get(name) for name in ("scale", "mask", "queries", "keys")}
        formula, reads = "q·k, scaled: before the cap", {"q": q, "k": k}
        at = f"{GRAD}{step.address}"
        products = b.line(f"{at}.products", "scores", formula, step.sides, reads, **seen)
        reads = {"grad": grad, "x": products}
        formula = f"grad · (1 - tanh²(products/{cap}))"
        grad = b.line(f"{at}.bent", "cap_back", formula, step.sides, reads, cap=cap)
    b.give(step, "q", "along_keys", "scale · Σ_key grad·k", {"x": grad, "y": k}, scale=scale)
    _to_keys(b, step, "k", "scale · Σ_query grad·q", {"x": grad, "y": q}, scale=scale)


def _softmax(b: ReverseSheet, step: Step, grad: str) -> None:
    """The shares are 1 together: what raises one lowers the others."""
    dot = _row_dots(b, step, grad)
    reads = {"weights": step.address, "grad": grad, "dot": dot}
    b.give(step, "x", "softmax_back", "weights · (grad - dot)", reads)
    rest = {"weights": step.address, "dot": dot}
    b.give(step, "sinks", "sinks_back", "-Σ_query (1 - Σ_key weights) · dot", rest)


def _bucket_scores(b: ReverseSheet, step: Step, grad: str) -> None:
    """A bucket gets the gradients of all queries and keys that read it."""
    rows = b.sides(step.inputs["table"])[1][0]
    buckets = step.attributes["buckets"]
    formula = "Σ grad where the bucket was read"
    b.give(step, "table", "bucket_back", formula, {"grad": grad}, buckets=buckets, rows=rows)


def _mix(b: ReverseSheet, step: Step, grad: str) -> None:
    """Σ weights·v: a weight gets the gradient times its value, a value that times its weights."""
    weights, v = step.inputs["weights"], step.inputs["v"]
    scores = b.plan[b.plan[weights].inputs["x"]]
    seen = {name: scores.attributes[name] for name in ("mask", "queries", "keys")}
    b.give(step, "weights", "scores", "grad·v", {"q": grad, "k": v}, **seen)
    _to_keys(b, step, "v", "Σ_query weights·grad", {"x": weights, "y": grad})


def _to_keys(
    b: ReverseSheet,
    step: Step,
    role: str,
    formula: str,
    reads: Mapping[str, str | None],
    **attributes: Any,
) -> None:
    """What flows back to keys or values; where heads share them, the sum over these heads."""
    read = step.inputs[role]
    axes, (kv_heads, keys, width) = b.sides(read)
    heads = step.shape[0]
    if heads == kv_heads:
        b.give(step, role, "along_queries", formula, reads, **attributes)
    elif b.wanted(read):
        address = b.term(read, step.address) + ".heads"
        sides = ("head", *axes[1:]), (heads, keys, width)
        each = b.line(address, "along_queries", formula, sides, reads, **attributes)
        b.give(
            step, role, "sum_groups", "Σ over the heads that share it", {"x": each}, heads=kv_heads
        )


# ------------------------------------------------------------------ the MLP


def _activate(b: ReverseSheet, step: Step, grad: str) -> None:
    """f(x): the gradient times the slope of f at x."""
    x, kind = step.inputs["x"], step.attributes["kind"]
    if kind == "identity":
        return b.pass_on(step, "x", grad)
    slope = b.line(
        f"{GRAD}{step.address}.slope", "slope", f"{kind}′(x)", step.sides, {"x": x}, kind=kind
    )
    b.give(step, "x", "multiply", "grad · slope", {"x": grad, "y": slope})


def _rescale(b: ReverseSheet, step: Step, grad: str) -> None:
    """by·x + plus: the gradient times the same factor."""
    by = step.attributes.get("by")
    if by is None:
        return b.pass_on(step, "x", grad)
    b.give(step, "x", "rescale", f"grad{shown_scale(by)}", {"x": grad}, by=by)


def _soft_cap(b: ReverseSheet, step: Step, grad: str) -> None:
    """c·tanh(x/c): its slope is 1 - tanh²(x/c)."""
    cap = step.attributes["cap"]
    reads = {"grad": grad, "x": step.inputs["x"]}
    b.give(step, "x", "cap_back", f"grad · (1 - tanh²(x/{cap}))", reads, cap=cap)


def _clamp(b: ReverseSheet, step: Step, grad: str) -> None:
    """Within the limits the gradient as it is, beyond them 0."""
    limits = {name: step.attributes.get(name) for name in ("least", "most")}
    reads = {"grad": grad, "x": step.inputs["x"]}
    b.give(step, "x", "clamp_back", "grad where x is within the limits, else 0", reads, **limits)


# ------------------------------------------------------------------ experts


def _weigh(b: ReverseSheet, step: Step, grad: str) -> None:
    """by·x, row by row: the row gets the gradient times its number, which gets their product."""
    x, by = step.inputs["x"], step.inputs["by"]
    b.give(step, "x", "weigh", "grad · by", {"x": grad, "by": by})
    b.give(step, "by", "row_dots", "Σ x·grad", {"x": x, "y": grad}, kept=True)


def _combine(b: ReverseSheet, step: Step, grad: str) -> None:
    """Σ shares·answers: an answer gets its share of the gradient, a share their product."""
    x, shares = step.inputs["x"], step.inputs["shares"]
    b.give(step, "x", "spread", "share · grad", {"grad": grad, "shares": shares})
    b.give(step, "shares", "expert_dots", "Σ answer·grad", {"x": x, "grad": grad})


def _expert_linear(b: ReverseSheet, step: Step, grad: str) -> None:
    """x·W + b of each expert; an x that all experts read gets the sum over them."""
    x, layout = step.inputs["x"], step.attributes["layout"]
    back = {"x": grad, "weight": step.inputs["weight"]}
    turned = "grad·Wᵀ" if layout == "in_out" else "Wᵀ·grad"
    axes, shape = b.sides(x)
    if len(axes) == 3:
        b.give(step, "x", "expert_linear", turned, back, layout=OTHER[layout])
    elif b.wanted(x):
        address = b.term(x, step.address) + ".experts"
        sides = (step.axes[0], *axes), (step.shape[0], *shape)
        each = b.line(address, "expert_linear", turned, sides, back, layout=OTHER[layout])
        b.give(step, "x", "sum_experts", "Σ over the experts", {"x": each})
    product = "Σ_pos x·grad" if layout == "in_out" else "Σ_pos grad·x"
    b.give(step, "weight", "expert_outer", product, {"x": x, "grad": grad}, layout=layout)
    b.give(step, "bias", "expert_sums", "Σ_pos grad", {"x": grad})


def _expert_shares(b: ReverseSheet, step: Step, grad: str) -> None:
    """Shares of the chosen: what raises one lowers the others.  The choice itself is fixed."""
    x, chosen = step.inputs["x"], step.inputs["chosen"]
    reads = {"x": x, "chosen": chosen, "shares": step.address, "grad": grad}
    formula = "the chosen's share of grad, less what the sum takes back"
    b.give(step, "x", "expert_shares_back", formula, reads, **step.attributes)


ADJOINTS: Mapping[str, Callable[[ReverseSheet, Step, str], None]] = {
    "add": _add,
    "multiply": _multiply,
    "linear": _linear,
    "embed": _embed,
    "split_heads": _split_heads,
    "merge_heads": _merge_heads,
    "join": _join,
    "affine": _affine,
    "normalize": _normalize,
    "root": _root,
    "mean_square": _mean_square,
    "center": _center,
    "mean": _mean,
    "rotate": _rotate,
    "scores": _scores,
    "softmax": _softmax,
    "mix": _mix,
    "activate": _activate,
    "beside": _beside,
    "rescale": _rescale,
    "soft_cap": _soft_cap,
    "clamp": _clamp,
    "bucket_scores": _bucket_scores,
    "weigh": _weigh,
    "combine": _combine,
    "expert_linear": _expert_linear,
    "expert_shares": _expert_shares,
}
