"""Mistakes in an optimizer's step: clipping, decay, moments and their correction, eps, the rate."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import numpy as np

from byhand.checking.suspects.mistakes import Mistake, keeping, made, number, reading, setting
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.optimizer import UPDATE
from byhand.plan import WEIGHT, Step

STEEPEST = 1000.0  # times the learning rate: beyond it, no wrong rate is suspected
NEAR = 1 / 256  # how far a measured rate may be from one that has a name


def update_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in the step of a weight."""
    if not scene.target.address.startswith(UPDATE) or scene.context.rule is None:
        return
    yield from _clipping(scene)
    yield from _moments(scene)
    yield from _corrections(scene)
    yield from _roots(scene)
    yield from _decays(scene)
    yield from _rates(scene)


def _part(scene: Scene, name: str) -> tuple[Step, ...]:
    """The lines of the region that make one part of a weight's step."""
    start = f"{UPDATE}{name}."
    return tuple(step for step in scene.region if step.address.startswith(start))


# ------------------------------------------------------------------------ clipping


def _clipping(scene: Scene) -> Iterator[Edit]:
    rule = scene.context.rule
    if rule is None or rule.clip is None:
        return
    limit = number(rule.clip)
    change = _("multiply all gradients by one factor, before the step: {limit}/norm of all of them")

    def by_value(draft: Draft, step: Step) -> None:
        inputs = {"x": step.inputs["x"]}
        draft.change(step.address, op="clamped", inputs=inputs, only=True, limit=rule.clip)

    def alone(draft: Draft, step: Step) -> None:
        at, one = step.address, (("one",), (1,))
        squares = draft.write(at, "sum_squares", {"x": step.inputs["x"]}, *one)
        norm = draft.write(at, "norm", {"square_0": squares}, *one)
        clip = scene.plan[step.inputs["by"]]
        factor = draft.write(at, "clip_factor", {"norm": norm}, *one, **clip.attributes)
        draft.change(at, inputs={"by": factor})

    yield from made(scene,
        _part(scene, "clipped"),
        Mistake("clip-by-value",
                _("it follows if each entry is clipped to ±{limit}; the norm of all gradients "
                  "is"), change, by_value, 1),
        Mistake("clip-by-tensor",
                _("it follows if the norm of this gradient alone is clipped to {limit}; the norm "
                  "of all together is"), change, alone),
        Mistake("clip-missing",
                _("it follows if the gradient is not clipped before the step; the norm is "
                  "clipped to {limit}"), change, keeping("x")),
        limit=limit,
    )  # fmt: skip
    unclipped = [
        (step, clipped)
        for step in (*_part(scene, "m"), *_part(scene, "v"), *_part(scene, "decayed"))
        if (clipped := _clipped(scene, step)) is not None and clipped not in scene.inside
    ]

    def read_unclipped(draft: Draft, line: tuple[Step, str]) -> None:
        draft.reroute(line[0].address, line[1], scene.plan[line[1]].inputs["x"])

    yield from made(scene, unclipped, Mistake(
        "clip-missing",
        _("it follows if the step takes the gradient before it is clipped"),
        change, read_unclipped), limit=limit)  # fmt: skip


def _clipped(scene: Scene, step: Step) -> str | None:
    return next((read for read in step.reads if read.startswith(f"{UPDATE}clipped.")), None)


# ------------------------------------------------------------------------ moments


def _moments(scene: Scene) -> Iterator[Edit]:
    rule = scene.context.rule
    assert rule is not None
    first, second = rule.betas
    if rule.kind in ("adam", "adamw"):
        change = _("m takes β₁ = {first}, v takes β₂ = {second}")
        for name, other in (("m", second), ("v", first)):
            swapped = setting(of_x=other, of_y=1 - other)
            yield from made(scene,
                _part(scene, name),
                Mistake("betas-swapped",
                        _("it follows if the betas are exchanged: {name} fades with {other}"),
                        change, swapped),
                Mistake("moment-factor",
                        _("it follows if {name} takes all of the new gradient; it takes 1 - β of "
                          "it"), change, setting(of_y=Fraction(1)), 1),
                Mistake("moment-forgotten",
                        _("it follows if {name} begins at 0 again; it goes on from the step "
                          "before"), change, reading(x=None), 1),
                name=name, other=number(other), first=number(first), second=number(second),
            )  # fmt: skip
        yield from made(scene, _part(scene, "v"), Mistake(
            "moment-not-squared",
            _("it follows if v is the mean of the gradients; it is that of their squares"),
            _("square the gradient, entry by entry"), setting(squared=None), 1))  # fmt: skip
    if rule.kind == "adamw" and rule.decay:
        lines = (*_part(scene, "m"), *_part(scene, "v"))
        yield from made(scene, [line for line in lines if _matrix(scene, line)], Mistake(
            "decay-in-gradient",
            _("it follows if the decay {decay} · weight is added to the gradient, as Adam does; "
              "AdamW takes it from the weight itself"),
            _("decay the weight itself: weight · (1 - lr · decay)"),
            partial(_decayed, rule.decay)), decay=number(rule.decay))  # fmt: skip


def _weight_of(step: Step) -> str:
    return WEIGHT + step.address.removeprefix(UPDATE).partition(".")[2]


def _matrix(scene: Scene, step: Step) -> bool:
    return len(step.shape) > 1


def _decayed(decay: Fraction, draft: Draft, step: Step) -> None:
    at = step.address
    inputs = {"x": step.inputs["y"], "y": _weight_of(step)}
    settings = {"of_x": Fraction(1), "of_y": decay}
    grad = draft.write(at, "blend", inputs, step.axes, step.shape, **settings)
    draft.change(at, inputs={"y": grad})


def _corrections(scene: Scene) -> Iterator[Edit]:
    rule = scene.context.rule
    assert rule is not None
    m, v = _part(scene, "m_hat"), _part(scene, "v_hat")
    change = _("divide m by 1 - β₁^{step} and v by 1 - β₂^{step}")

    def at_step(draft: Draft, line: Step, step: int) -> None:
        beta = rule.betas[line.address.startswith(f"{UPDATE}v_hat.")]
        draft.change(line.address, of_y=1 / (1 - beta**step))

    for lines, said in (
        ((*m, *v), _("it follows if m and v are not corrected for beginning at 0")),
        (m, _("it follows if m is not corrected for beginning at 0")),
        (v, _("it follows if v is not corrected for beginning at 0")),
    ):
        missing = Mistake("correction-missing", said, change, setting(of_y=Fraction(1)))
        yield from made(scene, lines, missing, step=rule.step)

    def exchanged(draft: Draft, line: Step) -> None:
        beta = rule.betas[not line.address.startswith(f"{UPDATE}v_hat.")]
        draft.change(line.address, of_y=1 / (1 - beta**rule.step))

    yield from made(scene, (*m, *v), Mistake(
        "betas-swapped",
        _("it follows if the betas are exchanged where m and v are corrected"), change,
        exchanged), step=rule.step)  # fmt: skip
    for step in (rule.step - 1, rule.step + 1):
        if step > 0:
            yield from made(scene, (*m, *v), Mistake(
                "correction-step",
                _("it follows if the correction is that of step {other}; this is step {step}"),
                change, partial(at_step, step=step)), other=step, step=rule.step)  # fmt: skip


def _roots(scene: Scene) -> Iterator[Edit]:
    rule = scene.context.rule
    assert rule is not None

    def inside(draft: Draft, step: Step) -> None:
        draft.first(step.address, "x", "raised", by=rule.eps)
        draft.change(step.address, eps=Fraction(0))

    def no_root(draft: Draft, step: Step) -> None:
        inputs = {"x": step.inputs["x"]}
        draft.change(step.address, op="raised", inputs=inputs, only=True, by=rule.eps)

    change = _("divide by √v̂ + {eps}")
    yield from made(scene,
        _part(scene, "root"),
        Mistake("eps-in-root", _("it follows if eps is inside the root: √(v̂ + {eps})"), change,
                inside),
        Mistake("eps-missing", _("it follows if eps is left out"), change,
                setting(eps=Fraction(0)), 1),
        Mistake("root-missing", _("it follows if it is divided by v̂ + {eps}, without the root"),
                change, no_root, 1),
        eps=number(rule.eps),
    )  # fmt: skip


# ------------------------------------------------------------------------ the weight itself


def _decays(scene: Scene) -> Iterator[Edit]:
    rule = scene.context.rule
    assert rule is not None
    lines = _part(scene, "weight")
    if rule.kind != "adamw" or not rule.decay:
        return
    matrices = [line for line in lines if rule.vectors_decay or _matrix(scene, line)]
    vectors = [line for line in lines if line not in matrices]
    own = 1 - rule.rate * rule.decay
    yield from made(scene, vectors, Mistake(
        "decay-on-vectors",
        _("it follows if biases and gains decay too; only matrices do"),
        _("leave weights with one axis out of the decay"), setting(of_x=own)))  # fmt: skip
    yield from made(scene,
        matrices,
        Mistake("decay-missing", _("it follows if the weight does not decay; it does, by {decay}"),
                _("decay matrices: weight · (1 - lr · decay)"), setting(of_x=Fraction(1))),
        Mistake("decay-without-rate",
                _("it follows if the decay {decay} is not multiplied by the learning rate"),
                _("decay matrices: weight · (1 - lr · decay)"), setting(of_x=1 - rule.decay), 1),
        decay=number(rule.decay),
    )  # fmt: skip


def _rates(scene: Scene) -> Iterator[Edit]:
    rule = scene.context.rule
    assert rule is not None
    target = scene.target
    if not _part(scene, "weight"):
        return
    yield from made(scene, [target], Mistake(
        "step-uphill", _("it follows if the step goes uphill: the change is added"),
        _("subtract lr · change from the weight"),
        setting(of_y=rule.rate), 1))  # fmt: skip
    if rule.rate != 1:
        yield from made(scene, [target], Mistake(
            "rate-forgotten", _("it follows if the learning rate is forgotten"),
            _("subtract lr · change from the weight"), setting(of_y=Fraction(-1)), 1))  # fmt: skip
    times = _times_the_rate(scene)
    if times is None:
        return
    rate = rule.rate * times
    said = _("it follows if the learning rate is {other}; the optimizer's is {own}")
    for step, named in (
        (rule.step - 1, _("it follows if the learning rate is {other}, that of the step before in "
                          "a warm-up; it is {own}")),
        (rule.step + 1, _("it follows if the learning rate is {other}, that of the step after in "
                          "a warm-up; it is {own}")),
    ):  # fmt: skip
        if step and abs(times * rule.step / step - 1) < NEAR:
            rate, said = rule.rate * step / rule.step, named
    kept = 1 - rate * rule.decay if _decays_here(target) else target.attributes["of_x"]
    yield from made(scene, [target], Mistake(
        "learning-rate", said, _("use the learning rate of this step"),
        setting(of_y=-rate, of_x=kept)), other=f"{float(rate):.4g}",
        own=f"{float(rule.rate):.4g}")  # fmt: skip


def _decays_here(target: Step) -> bool:
    return bool(target.attributes["of_x"] != 1)


def _times_the_rate(scene: Scene) -> Fraction | None:
    """How many times too far the weight went, as least squares find it."""
    values, expected = scene.context.values, scene.context.expected
    if values is None or expected is None or scene.context.index:
        return None
    before = np.asarray(scene.model.weights[_weight_of(scene.target).removeprefix(WEIGHT)].data)
    if before.dtype == np.object_ or before.shape != values.shape:
        return None
    weight = before.astype(np.float64)
    due, taken = weight - expected, weight - values
    size = float((due * due).sum())
    times = float((due * taken).sum()) / size if size else 0.0
    if not 1 / STEEPEST < times < STEEPEST:
        return None
    return Fraction(times).limit_denominator(10**6)
