"""Mistakes on the way back: terms left out of a gradient, norms, wrong slopes, matrices."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from byhand.backward import OTHER
from byhand.checking.suspects.mistakes import (
    Mistake,
    keeping,
    made,
    setting,
    together_and_apart,
)
from byhand.checking.suspects.mlps import GELUS
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import GRAD, WEIGHT, Step


def back_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake between the loss and the weights, other than in attention."""
    yield from _totals(scene)
    yield from _norms(scene)
    yield from _slopes(scene)
    yield from _gates(scene)
    yield from _matrices(scene)


# ------------------------------------------------------------------------ terms of a sum


def _totals(scene: Scene) -> Iterator[Edit]:
    """Edits that leave one term out of the gradient of what several lines read."""
    totals = [step for step in scene.of("total") if len(step.inputs) > 1]
    kinds: dict[str, list[tuple[Step, tuple[str, ...]]]] = {}
    for step in totals:
        for kind, roles in _droppable(scene, step):
            kinds.setdefault(kind, []).append((step, roles))
    for kind, lines in kinds.items():
        kind, _colon, name = kind.partition(":")
        said, change = _missing(kind, name)
        yield from made(scene, lines, Mistake(kind, said, change, _without))
        if kind == "norm-mean-missing":
            yield from made(scene, lines, Mistake(
                "norm-mean-twice",
                _("it follows if the norm is taken back with its mean twice: mean(grad) is "
                  "subtracted two times"),
                _("subtract mean(grad) of each row once"), _again, 2))  # fmt: skip


def _droppable(scene: Scene, total: Step) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The terms that people forget, by kind; some only together."""
    terms = {role: scene.plan[read] for role, read in total.inputs.items()}
    read = total.address.removeprefix(GRAD)
    by_op = {role: step.op for role, step in terms.items()}
    projection = tuple(role for role, op in by_op.items() if op == "mean_square_back")
    mean = tuple(role for role, op in by_op.items() if op == "mean_back")
    own = tuple(role for role, step in terms.items() if _passed_on(scene, read, step))
    if projection:
        yield "norm-projection-missing", projection
    if mean:
        yield "norm-mean-missing", mean
    if own and len(own) < len(terms):
        yield "residual-gradient-missing", own
        yield "branch-gradient-missing", tuple(role for role in terms if role not in own)
    for role, step in terms.items():
        via = step.address.partition(".via.")[2]
        if step.op in ("linear", "outer", "scatter") and via and not read.startswith(WEIGHT):
            yield f"path-missing:{via}", (role,)
        elif step.op == "outer" and via:
            yield "tied-head-missing", (role,)
        elif step.op == "scatter" and via:
            yield "tied-embedding-missing", (role,)


def _passed_on(scene: Scene, read: str, term: Step) -> bool:
    """Whether the term is the gradient of a residual sum, passed on as it is."""
    after = term.address.removeprefix(GRAD)
    if not scene.has(after):
        return False
    step = scene.plan[after]
    return step.op == "add" and scene.own(read) in step.reads


def _without(draft: Draft, line: tuple[Step, tuple[str, ...]]) -> None:
    step, roles = line
    left = {role: read for role, read in draft[step.address].inputs.items() if role not in roles}
    if len(left) == 1:
        draft.keep(step.address, *left.values())
    else:
        draft.change(step.address, inputs=left, only=True)


def _again(draft: Draft, line: tuple[Step, tuple[str, ...]]) -> None:
    step, roles = line
    reads = draft[step.address].inputs
    draft.change(step.address, inputs={f"{role} again": reads[role] for role in roles})


def _missing(kind: str, name: str) -> tuple[str, str]:
    """What is said about a term that is left out, and the change to make."""
    said = {
        "norm-projection-missing": (
            _("it follows if the norm is taken back without its projection: the part along the "
              "normalised row is not subtracted"),
            _("subtract normalized · mean(grad · normalized) before dividing")),
        "norm-mean-missing": (
            _("it follows if the norm is taken back without its mean: mean(grad) is not "
              "subtracted"),
            _("subtract mean(grad) of each row: the mean depends on every entry")),
        "residual-gradient-missing": (
            _("it follows if the gradient of the residual connection itself is left out: only "
              "what comes back through the sublayer"),
            _("add the gradient of the sum itself to that of the sublayer")),
        "branch-gradient-missing": (
            _("it follows if nothing comes back through the sublayer: only the residual "
              "connection's gradient"),
            _("add what comes back through the sublayer's norm")),
        "path-missing": (
            _("it follows if what comes back through {name} is left out").format(name=name),
            _("add the gradient that comes back through {name}").format(name=name)),
        "tied-head-missing": (
            _("it follows if the table gets its gradient as an embedding alone; the model ties it "
              "to the head"),
            _("add the gradient that the table gets as the head")),
        "tied-embedding-missing": (
            _("it follows if the table gets its gradient as the head alone; the model ties it to "
              "the embedding"),
            _("add the gradient that the table gets as the embedding")),
    }  # fmt: skip
    return said[kind]


# ------------------------------------------------------------------------ norms


def _norms(scene: Scene) -> Iterator[Edit]:
    both = tuple(scene.of("normalize_back"))
    yield from made(scene, both, Mistake(
        "norm-not-divided",
        _("it follows if the norm is taken back without dividing by std or rms"),
        _("divide the gradient by the norm's divisor"), partial(_undivided, scene)))  # fmt: skip
    for steps, apart in together_and_apart(scene.of("affine")):
        yield from made(scene, steps, Mistake(
            "norm-gain-missing",
            _("it follows if the gradient is not multiplied by the gain"),
            _("multiply by the gain on the way back"), keeping("x")), unlikely=apart)  # fmt: skip


def _undivided(scene: Scene, draft: Draft, step: Step) -> None:
    divisor = step.inputs["by"]
    draft.keep(step.address, step.inputs["grad"])
    for other in scene.of("divisor_back"):
        if other.inputs["by"] == divisor:
            at, dot = other.address, other.inputs["dot"]
            draft.change(at, op="scaled", inputs={"x": dot}, only=True, factor=Fraction(-1))


# ------------------------------------------------------------------------ the MLP


def _slopes(scene: Scene) -> Iterator[Edit]:
    for steps, apart in together_and_apart(scene.of("slope")):
        own: str = steps[0].attributes["kind"]
        change = _("use the derivative of {own} at the input of the activation")
        wrong = [
            Mistake("slope-kind",
                    _("it follows if the slope is that of {other}; the model says {own}").format(
                        other=_named(kind), own="{own}"), change, setting(kind=kind),
                    0 if kind in GELUS and own in GELUS else 2)
            for kind in ("gelu", "gelu_tanh", "silu", "relu") if kind != own
        ]  # fmt: skip
        if own == "silu":
            wrong.append(Mistake(
                "slope-sigmoid",
                _("it follows if the slope of SiLU is σ(x) alone; it is σ(x)·(1 + x·(1 - σ(x)))"),
                change, setting(op="sigmoid", kind=None)))  # fmt: skip
        wrong.append(Mistake(
            "slope-at-result",
            _("it follows if the slope is taken at the activation's result; it belongs to what "
              "goes in"),
            change, _at_the_result, 1))  # fmt: skip
        yield from made(scene, steps, *wrong, unlikely=apart, own=_named(own))
    bent = [step for step in scene.of("multiply") if step.inputs["y"].endswith(".slope")]
    for steps, apart in together_and_apart(bent):
        yield from made(scene,
            steps,
            Mistake("slope-missing",
                    _("it follows if the gradient passes the activation as it is; the model "
                      "multiplies it by the slope"),
                    _("multiply by the derivative of the activation"), keeping("x")),
            Mistake("slope-is-value",
                    _("it follows if the gradient is multiplied by the activation itself; the "
                      "model multiplies it by the slope"),
                    _("multiply by the derivative of the activation"), _by_the_value, 1),
            unlikely=apart,
        )  # fmt: skip


def _named(kind: str) -> str:
    return {
        "relu": "ReLU",
        "silu": "SiLU",
        "gelu": _("GELU with erf"),
        "gelu_tanh": _("GELU with tanh"),
    }.get(kind, kind)


def _at_the_result(draft: Draft, step: Step) -> None:
    act = step.address.removeprefix(GRAD).removesuffix(".slope")
    draft.change(step.address, inputs={"x": act})


def _by_the_value(draft: Draft, step: Step) -> None:
    act = step.inputs["y"].removeprefix(GRAD).removesuffix(".slope")
    draft.change(step.address, inputs={"y": act})


def _gates(scene: Scene) -> Iterator[Edit]:
    """Edits that exchange the gradients of the two factors of a gated MLP."""
    pairs = [
        (step, other)
        for step in scene.of("multiply")
        if step.address.startswith(GRAD) and (other := _other_factor(scene, step)) is not None
    ]

    def exchange(draft: Draft, line: tuple[Step, str]) -> None:
        draft.change(line[0].address, inputs={"y": line[1]})

    yield from made(scene, pairs, Mistake(
        "gate-up-gradients-swapped",
        _("it follows if the gradients of act(gate) and up are exchanged"),
        _("act(gate) gets grad · up, and up gets grad · act(gate)"), exchange))  # fmt: skip


def _other_factor(scene: Scene, step: Step) -> str | None:
    """The factor that the gradient of the other one has, where a line multiplies two."""
    product = scene.plan[step.inputs["x"]].address.removeprefix(GRAD)
    if not scene.has(product) or scene.plan[product].op != "multiply":
        return None
    factors = set(scene.plan[product].reads) - {step.inputs["y"]}
    return factors.pop() if len(factors) == 1 else None


# ------------------------------------------------------------------------ matrices


def _matrices(scene: Scene) -> Iterator[Edit]:
    """Edits in which a square matrix is not transposed on the way back."""
    square = [step for step in scene.of("linear") if _square(scene, step)]

    def turn(draft: Draft, step: Step) -> None:
        draft.change(step.address, layout=OTHER[step.attributes["layout"]])

    for steps, apart in together_and_apart(square):
        name = steps[0].inputs["weight"].removeprefix(WEIGHT)
        yield from made(scene, steps, Mistake(
            "weight-not-transposed-back",
            _("it follows if {name} is not transposed on the way back"),
            _("multiply the gradient by the transposed matrix"), turn), unlikely=apart,
            name=name)  # fmt: skip


def _square(scene: Scene, step: Step) -> bool:
    rows, columns = scene.weight_shape(step.inputs["weight"])
    return rows == columns
