"""Mistakes between q·k and the attention weights: scale, mask, softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from math import inf, isqrt

from byhand.checking.suspects.mistakes import (
    Mistake,
    factor,
    first,
    keeping,
    made,
    reading,
    setting,
    then,
    together_and_apart,
)
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.expression import Call, Expression, Number, Product, Quotient
from byhand.language import _
from byhand.plan import Step
from byhand.spec import over_root

Mask = tuple[tuple[bool, ...], ...]
Sees = Callable[[int, int, bool], bool]  # (query, key, allowed by the model) → allowed


def score_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in the scores and attention weights of the region."""
    yield from _scales(scene)
    yield from _masks(scene)
    yield from _softmaxes(scene)
    yield from _additions(scene)


# ------------------------------------------------------------------------ the scale


def _root(width: int) -> Expression:
    whole = isqrt(width)
    return (
        Number(Fraction(whole)) if whole * whole == width else Call("sqrt", Number(Fraction(width)))
    )


def _scales(scene: Scene) -> Iterator[Edit]:
    every = scene.of("scores")
    if not every:
        return
    own: Expression | None = every[0].attributes.get("scale")
    attention, d = scene.attention(every[0].address), scene.spec.d_model
    d_head, one = attention.d_head, Number(Fraction(1))
    others: list[tuple[Expression, int]] = [
        (over_root(d_head), 0),
        (Quotient(one, Number(Fraction(d_head))), 0),
        (over_root(d), 0),
        (_root(d_head), 0),
        (over_root(attention.heads), 1),
        (Quotient(one, Number(Fraction(d))), 2),
        (Number(Fraction(d_head)), 2),
    ]
    if d % attention.heads == 0 and d != attention.heads * d_head:  # not the width of a head
        others.append((over_root(d // attention.heads), 0))
    said = {"own": factor(own), "width": d_head}
    change = (
        _("do not scale the scores")
        if own is None
        else _("scale the scores by {own} (head width {width})").format(**said)
    )
    missing = _(
        "it follows if the scores are not scaled; the model says {own} (head width {width})"
    )
    mistakes = [Mistake("scale-missing", missing.format(**said), change, setting(scale=None))]
    if own is not None:
        doubled = _("it follows if the scores are scaled twice; the model scales once, by {own}")
        squared = setting(scale=Product((own, own)))
        mistakes.append(Mistake("scale-doubled", doubled.format(**said), change, squared))
    wrong = _("it follows if the scores are scaled by {other}; the model says {own} (head width "
              "{width})")  # fmt: skip
    for other, unlikely in others:
        sentence = wrong.format(other=factor(other), **said)
        mistakes.append(Mistake("scale-wrong", sentence, change, setting(scale=other), unlikely))
    for steps, apart in together_and_apart(every):
        yield from made(scene, steps, *mistakes, unlikely=apart)


# ------------------------------------------------------------------------ the mask


def _masks(scene: Scene) -> Iterator[Edit]:
    every = _open_scores(scene)
    if not every:
        return
    causal = scene.attention(every[0].address).causal
    if causal:
        rule = _("the model lets a position look at itself and at what is before it")
        change = _("mask the keys after the query, and no others")
    else:
        rule = _("the model lets every position look at every other")
        change = _("do not mask any key")
    wrong: tuple[tuple[str, str, Sees], ...] = (
        ("mask-missing", _("it follows if no key is masked; {rule}"), lambda q, k, own: True),
        ("mask-missing", _("it follows if the keys after the query are masked; {rule}"),
         lambda q, k, own: k <= q),
        ("mask-ahead", _("it follows if a position also sees the next one; {rule}"),
         lambda q, k, own: own or k == q + 1),
        ("mask-transposed", _("it follows if the mask is transposed, so that a position sees what "
                              "comes after it; {rule}"), lambda q, k, own: k >= q),
    )  # fmt: skip
    for kind, sentence, sees in wrong:
        remask = partial(_remask_by, scene, sees=sees)
        other = [step for step in every if _mask(step, sees) != _own_mask(step)]
        yield from made(scene, other, Mistake(kind, sentence, change, remask), rule=rule)
    yield from _strict(scene, every, rule, change)
    yield from _windows(scene, every)
    yield from _around_the_softmax(scene)


def _open_scores(scene: Scene) -> tuple[Step, ...]:
    """The scores of the region, and those that a softmax of the region reads.

    Masked scores are claimed in many ways, so a mistake in the mask may show in the weights alone.
    """
    read = [scene.plan[step.inputs["x"]] for step in scene.of("softmax")]
    steps = dict.fromkeys(step.address for step in (*scene.of("scores"), *read))
    return tuple(step for at in steps if (step := scene.plan[at]).op == "scores")


def _remask(scene: Scene, draft: Draft, step: Step, mask: Mask) -> None:
    """Gives the scores another mask; claimed scores are worked out again for the softmax."""
    if step.address in scene.inside:
        draft.change(step.address, mask=mask)
        return
    for softmax in scene.of("softmax"):
        if softmax.inputs["x"] == step.address:
            settings = {**step.attributes, "mask": mask}
            again = draft.write(
                softmax.address, step.op, step.inputs, step.axes, step.shape, **settings
            )
            draft.change(softmax.address, inputs={"x": again})


def _remask_by(scene: Scene, draft: Draft, step: Step, *, sees: Sees) -> None:
    _remask(scene, draft, step, _mask(step, sees))


def _mask(step: Step, sees: Sees) -> Mask:
    queries, keys = step.attributes["queries"], step.attributes["keys"]
    return tuple(
        tuple(sees(query, key, own) for key, own in zip(keys, row, strict=True))
        for query, row in zip(queries, step.attributes["mask"], strict=True)
    )


def _own_mask(step: Step) -> Mask:
    return tuple(tuple(map(bool, row)) for row in step.attributes["mask"])


def _strict(scene: Scene, every: tuple[Step, ...], rule: str, change: str) -> Iterator[Edit]:
    """Edits in which no query attends to itself; one without keys attends to itself, all or
    none.
    """
    sentence = _("it follows if a position cannot see itself; {rule}").format(rule=rule)
    last = scene.target.op == "scores"
    for even in (False, True):
        draft = scene.draft()
        for step in every:
            mask = _mask(step, lambda q, k, own: own and k != q)
            blind = [place for place, row in enumerate(mask) if not any(row)]
            if not last or not even:  # otherwise nothing reads the row without keys
                mask = tuple(
                    row if any(row) else own
                    for row, own in zip(mask, step.attributes["mask"], strict=True)
                )
            _remask(scene, draft, step, mask)
            weights = step.address.removesuffix("scores") + "weights"
            if even and blind and weights in scene.inside:
                draft.then(weights, "even_rows", rows=tuple(blind))
        yield Edit("mask-strict", sentence, change, draft.made(), int(even))


def _windows(scene: Scene, every: tuple[Step, ...]) -> Iterator[Edit]:
    """Edits with a sliding window that is one too wide, one too narrow, or missing."""
    windowed = [step for step in every if scene.attention(step.address).window is not None]
    if not windowed:
        return
    own = scene.attention(windowed[-1].address).window
    assert own is not None

    def reach(draft: Draft, step: Step, *, by: int | None) -> None:
        width = inf if by is None else (scene.attention(step.address).window or 0) + by
        _remask_by(scene, draft, step, sees=lambda q, k, _own: q - width < k <= q)

    for by in (None, 1, -1):
        other = _("no window") if by is None else str(own + by)
        yield from made(scene, windowed, Mistake(
            "window-wrong",
            _("it follows if a query sees back {other} keys; the model says {own}"),
            _("let a query see the last {own} keys, its own included"),
            partial(reach, by=by)), other=other, own=own)  # fmt: skip


def _around_the_softmax(scene: Scene) -> Iterator[Edit]:
    """Edits that mask after the softmax, or set masked scores to 0 before it."""
    steps = [step for step in scene.of("softmax") if scene.plan[step.inputs["x"]].op == "scores"]

    def mask_late(draft: Draft, softmax: Step) -> None:
        scores = scene.plan[softmax.inputs["x"]]
        _remask_by(scene, draft, scores, sees=lambda q, k, own: True)
        draft.then(softmax.address, "hidden", mask=scores.attributes["mask"])

    yield from made(scene,
        steps,
        Mistake("mask-late",
                _("it follows if the mask is applied after the softmax; the model masks the "
                  "scores"),
                _("set masked scores to -inf before the softmax"), mask_late, 1),
        Mistake("mask-zero",
                _("it follows if masked scores are 0 before the softmax; in the model they are -∞"),
                _("set masked scores to -inf, not to 0"), first("x", "present")),
    )  # fmt: skip


# ------------------------------------------------------------------------ the softmax


def _softmaxes(scene: Scene) -> Iterator[Edit]:
    for steps, apart in together_and_apart(scene.of("softmax")):
        yield from made(scene, steps, *_wrong_softmaxes(steps), unlikely=apart)


def _wrong_softmaxes(steps: tuple[Step, ...]) -> Iterator[Mistake[Step]]:
    change, axes = _("take the softmax over the last axis, once"), steps[0].axes
    yield Mistake("softmax-missing",
                  _("it follows if the softmax is left out; the model takes it here"),
                  change, keeping("x"))  # fmt: skip
    yield Mistake("softmax-doubled",
                  _("it follows if the softmax is taken twice; the model takes it once"),
                  change, then("softmax"))  # fmt: skip
    for back in (2, 3):
        if all(len(step.axes) >= back for step in steps):
            yield Mistake(
                "softmax-axis",
                _("it follows if the softmax runs over the {other} axis; the model takes it over "
                  "the {own} axis").format(other=axes[-back], own=axes[-1]),
                change, partial(_over_axis, back=back), int(back == 3))  # fmt: skip
    for base, change in ((2, _("use exp, not exp2")), (10, _("take powers of e"))):
        text = _("it follows if the softmax is of powers of {base}; the model says powers of e")
        power = Call("ln", Number(Fraction(base)))
        wrong = first("x", "scaled", factor=power)
        yield Mistake("softmax-base", text.format(base=base), change, wrong, 2)
    if any(step.address == "probs" for step in steps):
        for t in map(Fraction, ("2", "1/2", "7/10", "4/5", "9/10", "6/5", "3/2")):
            yield Mistake(
                "temperature",
                _("it follows if the logits are divided by a temperature of {t}; the model has "
                  "none").format(t=f"{float(t):g}"),
                _("take the softmax of the logits as they are (temperature 1)"),
                first("x", "scaled", factor=1 / t), 2)  # fmt: skip


def _over_axis(draft: Draft, step: Step, *, back: int) -> None:
    axis, at = len(step.axes) - back, step.address
    order = (*(place for place in range(len(step.axes)) if place != axis), axis)
    draft.first(at, "x", "turned", axes=order)
    draft.first(at, "x", "softmax")
    back_again = tuple(map(order.index, range(len(order))))
    draft.change(at, op="turned", inputs={"sinks": None}, axes=back_again)


# ------------------------------------------------------------------------ what is added to scores


def _additions(scene: Scene) -> Iterator[Edit]:
    """Edits with ALiBi or the score table wrong or left out, or with q and k exchanged."""
    every = scene.of("scores")
    change = _("subtract slope·distance from the scores")
    yield from made(scene,
        (step for step in every if "slopes" in step.inputs),
        Mistake("alibi-missing",
                _("it follows if ALiBi is left out; the model subtracts slope·distance"),
                change, reading(slopes=None)),
        Mistake("alibi-sign", _("it follows if slope·distance is added; the model subtracts it"),
                change, first("slopes", "scaled", factor=Fraction(-1))),
    )  # fmt: skip
    yield from made(scene, (step for step in every if "table" in step.inputs), Mistake(
        "table-missing",
        _("it follows if the table is not added to the scores; the model adds it"),
        _("add the score table"), reading(table=None)))  # fmt: skip
    yield from made(scene, (step for step in every if step.shape[1] == step.shape[2]), Mistake(
        "scores-transposed",
        _("it follows if the scores are k·q, with query and key exchanged; the model says q·k"),
        _("put the query on the rows and the key on the columns of the scores"), _exchange, 1,
    ))  # fmt: skip


def _exchange(draft: Draft, step: Step) -> None:
    draft.change(step.address, mask=_mask(step, lambda q, k, own: True))
    draft.then(step.address, "turned", axes=(0, 2, 1))
    draft.then(step.address, "hidden", mask=step.attributes["mask"])
