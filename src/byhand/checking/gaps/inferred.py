"""Lines inferred through a gap: what a step must have given if only what is before it is wrong.

A block adds its parts to the stream, so its output tells each part where the others are right:

    mlp.out    = output − attn.add               attn.add   solves attn.add + mlp(attn.add) = output
    norm.out   solves mlp(norm.out) = mlp.out    mixed      solves mixed·W_out + b = attn.out
    v          solves weights·v = mixed          weights    solves weights·v = mixed

An inferred line fits the claim by construction, whatever the mistake.  What counts is what the
readers of differences see in it, and whether the edits that they find follow through the gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from byhand.checking.claims import Floats
from byhand.checking.gaps.search import Search
from byhand.checking.gaps.values import Values
from byhand.checking.suspects.scenes import Scene
from byhand.plan import Step

POSITIONWISE = (
    "linear", "add", "multiply", "activate", "mean", "center", "mean_square", "root", "normalize",
    "affine", "keep",
)  # fmt: skip
MOST_PASSES = 260  # passes over the steps after a line for one matrix of derivatives
MOST_MATRICES = 4
TURNS = 12  # Newton's steps
SOLVED = 1e-3  # × the usual rounding error: what a solution may leave
NUDGE = 2.0**-20  # relative: how far a derivative looks
STEADY = 1e8  # the largest condition of a matrix that is solved for


@dataclass(frozen=True)
class Inferred:
    """What a step must have given, and how far rounding usually takes that."""

    step: Step
    claimed: Floats
    usual: Floats


def inferred(search: Search, scene: Scene) -> Iterator[Inferred]:
    """The lines that the claim tells, the simplest first."""
    values, target = search.values, scene.target
    if values.line.claim.index or not search.known.all() or target.op not in ("add", "linear"):
        return
    whole = Inferred(target, search.claimed, search.usual)
    if target.op == "linear":
        if len(scene.region) <= len(POSITIONWISE):
            yield from _before_linear(values, scene, whole)
        return
    x, y = (target.inputs[role] for role in ("x", "y"))
    out = _part(values, scene, y, search.claimed - values.read(x), search.usual)
    if out is not None:
        yield out
        yield from _solved_norm(search, scene, out)
    if x in scene.inside:
        middle = _solved(search, scene.plan[x])
        if middle is not None:
            yield from _attention(values, scene, middle)


def _attention(values: Values, scene: Scene, middle: Inferred) -> Iterator[Inferred]:
    """What the stream after attention tells of attention."""
    step = middle.step
    if step.op != "add":
        return
    stream = values.read(step.inputs["x"])
    out = _part(values, scene, step.inputs["y"], middle.claimed - stream, middle.usual)
    if out is None:
        return
    yield out
    for mixed in _before_linear(values, scene, out):
        yield mixed
        if mixed.step.op == "mix":
            yield from _mixed(values, scene, mixed)


def _part(
    values: Values, scene: Scene, address: str, claimed: Floats, usual: Floats
) -> Inferred | None:
    if address not in scene.inside:
        return None
    return Inferred(scene.plan[address], claimed, np.array(usual))


def _before_linear(values: Values, scene: Scene, line: Inferred) -> Iterator[Inferred]:
    """What a linear step must have read, where its matrix can be solved for that."""
    step = line.step
    if step.op != "linear" or line.claimed.ndim != 2 or step.inputs["x"] not in scene.inside:
        return
    matrix = values.read(step.inputs["weight"])
    matrix = matrix if step.attributes["layout"] == "in_out" else matrix.T  # (inputs, outputs)
    bias = values.read(step.inputs["bias"]) if "bias" in step.inputs else 0.0
    inputs, outputs = matrix.shape
    if inputs > outputs or inputs > 2048:
        return
    chosen = slice(None)
    if outputs > 8 * inputs:
        chosen = slice(0, outputs, outputs // (8 * inputs))
    square = matrix[:, chosen]
    if np.linalg.cond(square) > STEADY:
        return
    back = np.linalg.pinv(square)  # (outputs, inputs)
    rows = (line.claimed - bias)[:, chosen] @ back
    usual = np.sqrt(np.square(line.usual[:, chosen]) @ np.square(back))
    read = scene.plan[step.inputs["x"]]
    yield Inferred(read, _as_shape(rows, read), _as_shape(usual, read))


def _as_shape(rows: Floats, step: Step) -> Floats:
    """(pos, heads·width) in the shape of a step."""
    if len(step.shape) == 2:
        return rows
    heads, positions, width = step.shape
    return rows.reshape(positions, heads, width).transpose(1, 0, 2)


def _mixed(values: Values, scene: Scene, mixed: Inferred) -> Iterator[Inferred]:
    """The values, if the attention weights are right; the weights, if the values are."""
    step = mixed.step
    weights, v = (values.read(step.inputs[role]) for role in ("weights", "v"))
    group, keys = len(weights) // len(v), weights.shape[-1]
    if group * len(v) != len(weights):
        return
    if step.inputs["v"] in scene.inside:
        rows = weights.reshape(len(v), -1, keys)  # the heads of a group, one below the other
        found = _back(rows, *(each.reshape(len(v), -1, v.shape[-1])
                              for each in (mixed.claimed, mixed.usual)))  # fmt: skip
        if found is not None:
            yield Inferred(scene.plan[step.inputs["v"]], *found)
    if step.inputs["weights"] in scene.inside and keys <= v.shape[-1]:
        turned = np.repeat(v, group, axis=0).transpose(0, 2, 1)
        found = _back(turned, *(each.transpose(0, 2, 1) for each in (mixed.claimed, mixed.usual)))
        if found is not None:
            shares, usual = (each.transpose(0, 2, 1) for each in found)
            yield Inferred(scene.plan[step.inputs["weights"]], shares, usual)


def _back(matrices: Floats, claimed: Floats, usual: Floats) -> tuple[Floats, Floats] | None:
    """What each matrix was multiplied by, with its usual error; None where that cannot be told."""
    if np.linalg.cond(matrices).max() > STEADY:
        return None
    back = np.linalg.pinv(matrices)
    return back @ claimed, np.sqrt(np.square(back) @ np.square(usual))


# ------------------------------------------------------------------------ Newton's method


def _solved_norm(search: Search, scene: Scene, out: Inferred) -> Iterator[Inferred]:
    """The norm before the sublayer that ends in a line."""
    name = out.step.address.rpartition(".")[0] + ".norm.out"
    if scene.has(name) and scene.own(name) in scene.inside:
        found = _solved(search, scene.plan[name])
        if found is not None:
            yield found


def _solved(search: Search, step: Step) -> Inferred | None:
    """The value of a step with which the target is what is claimed, position by position."""
    values = search.values
    steps = values.after(step.address)
    if not steps or any(each.op not in POSITIONWISE for each in steps) or len(step.shape) != 2:
        return None
    if step.shape != steps[-1].shape or step.shape[-1] > MOST_PASSES:
        return None
    if all(each.op == "add" for each in steps):
        moved = search.claimed - search.expected
        return Inferred(step, values.read(step.address) + moved, np.array(search.usual))
    at = values.read(step.address)
    left = search.claimed - values.onward(step.address, at, steps)
    back = _inverse(values, step, at, steps)
    matrices, size = 1, _size(search, left)
    for _turn in range(TURNS):
        if back is None:
            return None
        if size <= SOLVED:
            usual = np.sqrt(np.einsum("pij,pj->pi", np.square(back), np.square(search.usual)))
            return Inferred(step, at, usual)
        moved = np.einsum("pij,pj->pi", back, left)
        share, found = 1.0, False
        while share > 0.05 and not found:
            new = at + share * moved
            rest = search.claimed - values.onward(step.address, new, steps)
            now = _size(search, rest)
            found = now < size * (1 - 0.3 * share)
            share /= 2
        if found:
            slow, at, left, size = now > 0.1 * size, new, rest, now
        if (not found or slow) and matrices < MOST_MATRICES and size > SOLVED:
            back = _inverse(values, step, at, steps)
            matrices += 1
        elif not found:
            return None
    return None


def _size(search: Search, left: Floats) -> float:
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.mean(np.square(left / search.usual))))


def _inverse(values: Values, step: Step, at: Floats, steps: Sequence[Step]) -> Floats | None:
    """For each position, the inverse of the derivative of the target by the step."""
    base = values.onward(step.address, at, steps)
    width = at.shape[-1]
    matrix = np.empty((len(at), width, width))
    nudge = NUDGE * float(np.sqrt(np.mean(np.square(at))))
    for place in range(width):
        other = at.copy()
        other[:, place] += nudge
        matrix[:, :, place] = (values.onward(step.address, other, steps) - base) / nudge
    if not np.isfinite(matrix).all() or np.linalg.cond(matrix).max() > STEADY:
        return None
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
