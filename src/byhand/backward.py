"""Learning, once: from the loss back to every weight, as a plan of value-free steps.

`adjoint` takes the plan of a forward pass and writes, behind its steps, the gradient of the loss
with respect to each of them, in reverse order.  One function for each operation says what the
gradient of its result gives to what it reads: this is the chain rule, one line at a time.

    grad.X            the gradient of the loss with respect to the step X, in X's own shape
    grad.weight.X     with respect to a weight; what an optimizer reads
    grad.X.via.Y      where several steps read X: what comes back through one of them, Y.
                      The sum of these terms is grad.X

Conventions: the slope of ReLU at 0 is 0.  The next token (argmax) has no gradient.  Tables of
scores, slopes and frequencies are not learned, so they have none either.  docs/backward.md derives
each rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from byhand.errors import InputError
from byhand.language import _
from byhand.plan import GRAD, Plan, Step
from byhand.reverse_sheet import ReverseSheet
from byhand.spec import refuse_forward_only

ROOTS = ("mean_loss", "loss")  # what a gradient may be of, the first that the plan has
QKV = ("queries", "keys", "values")
OTHER = {"in_out": "out_in", "out_in": "in_out"}


def adjoint(plan: Plan) -> Plan:
    """The plan, followed by the steps of its backward pass from the loss to every weight."""
    root = next((name for name in ROOTS if name in plan.known), None)
    if root is None:
        raise InputError(_("a gradient needs a loss"), hint=_("give a target"))
    refuse_forward_only(plan.spec, _("the way back"))
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
    reads = {name: terms[cut.address] for name, cut in zip(QKV, cuts, strict=True)}
    starts = tuple(cut.attributes["start"] for cut in cuts)
    stride = step.attributes["stride"]
    formula, sides = "the columns of q, k and v", b.sides(packed)
    b.terms[packed] = {
        "": b.line(GRAD + packed, "pack_heads", formula, sides, reads, starts=starts, stride=stride)
    }


def _merge_heads(b: ReverseSheet, step: Step, grad: str) -> None:
    heads, _positions, width = b.sides(step.inputs["x"])[1]
    settings = {"start": 0, "heads": heads, "width": width, "stride": width}
    b.give(step, "x", "split_heads", "the columns of each head", {"x": grad}, **settings)


def _join(b: ReverseSheet, step: Step, grad: str) -> None:
    raise InputError(
        _("there is no backward pass through a cache"), hint=_("work the whole text out at once")
    )


# ------------------------------------------------------------------ norms


def _affine(b: ReverseSheet, step: Step, grad: str) -> None:
    """x·gain + bias: gain and bias are shared by all rows, so they get the sums over the rows."""
    if "gain" in step.inputs:
        b.give(step, "x", "affine", "grad · gain", {"x": grad, "gain": step.inputs["gain"]})
    else:
        b.pass_on(step, "x", grad)
    b.give(step, "gain", "column_sums", "Σ_pos grad · x", {"x": grad, "by": step.inputs["x"]})
    b.give(step, "bias", "column_sums", "Σ_pos grad", {"x": grad})


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
    b.give(step, "q", "along_keys", "scale · Σ_key grad·k", {"x": grad, "y": k}, scale=scale)
    _to_keys(b, step, "k", "scale · Σ_query grad·q", {"x": grad, "y": q}, scale=scale)


def _softmax(b: ReverseSheet, step: Step, grad: str) -> None:
    """The shares are 1 together: what raises one lowers the others."""
    dot = _row_dots(b, step, grad)
    reads = {"weights": step.address, "grad": grad, "dot": dot}
    b.give(step, "x", "softmax_back", "weights · (grad - dot)", reads)


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
}
