"""Mistakes between q·k and the shares: scale, mask, softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import isqrt

from byhand.checking.suspects.editing import Draft, Edit, Scene, together_and_apart
from byhand.checking.suspects.wording import factor
from byhand.expression import Call, Expression, Number, Product, Quotient
from byhand.language import _
from byhand.plan import Step
from byhand.spec import over_root

Mask = tuple[tuple[bool, ...], ...]


def score_suspects(scene: Scene) -> Iterator[Edit]:
    """Mistakes in the scores and shares of the region."""
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
    d_head, d = scene.attention(every[0].address).d_head, scene.spec.d_model
    heads = scene.attention(every[0].address).heads
    others: list[tuple[str, Expression | None, int]] = [("scale-missing", None, 0)]
    if own is not None:
        others += [("scale-doubled", Product((own, own)), 0)]
    others += [
        ("scale-wrong", over_root(d_head), 0),
        ("scale-wrong", Quotient(Number(Fraction(1)), Number(Fraction(d_head))), 0),
        ("scale-wrong", over_root(d), 0),
        ("scale-wrong", _root(d_head), 0),
        ("scale-wrong", over_root(heads), 1),
        ("scale-wrong", Quotient(Number(Fraction(1)), Number(Fraction(d))), 2),
        ("scale-wrong", Number(Fraction(d_head)), 2),
    ]
    usual = _("scale the scores by {own} (head width {width})").format(
        own=factor(own), width=d_head
    )
    for steps, apart in together_and_apart(every):
        for kind, other, unlikely in others:
            draft = scene.draft()
            for step in steps:
                draft.change(step.address, scale=other)
            if kind == "scale-missing":
                sentence = _(
                    "it follows if the scores are not scaled; the model says {own} (head width "
                    "{width})"
                ).format(own=factor(own), width=d_head)
            elif kind == "scale-doubled":
                sentence = _(
                    "it follows if the scores are scaled twice; the model scales once, by {own}"
                ).format(own=factor(own))
            else:
                sentence = _(
                    "it follows if the scores are scaled by {other}; the model says {own} (head "
                    "width {width})"
                ).format(other=factor(other), own=factor(own), width=d_head)
            change = _("do not scale the scores") if own is None else usual
            yield Edit(kind, sentence, change, draft.made(), unlikely + apart)


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
    wrong: list[tuple[str, str, Callable[[int, int, bool], bool], int]] = [
        ("mask-missing", _("it follows if no key is masked; {rule}"), lambda q, k, own: True, 0),
        ("mask-missing", _("it follows if the keys after the query are masked; {rule}"),
         lambda q, k, own: k <= q, 0),
        ("mask-ahead", _("it follows if a position also sees the next one; {rule}"),
         lambda q, k, own: own or k == q + 1, 0),
        ("mask-transposed", _("it follows if the mask is transposed, so that a position sees what "
                              "comes after it; {rule}"), lambda q, k, own: k >= q, 0),
    ]  # fmt: skip
    for kind, sentence, sees, unlikely in wrong:
        draft = scene.draft()
        for step in every:
            _remask(scene, draft, step, _mask(step, sees))
        yield Edit(kind, sentence.format(rule=rule), change, draft.made(), unlikely)
    yield from _strict(scene, every, rule, change)
    yield from _windows(scene, every)
    yield from _late_mask(scene)
    yield from _zero_mask(scene)


def _open_scores(scene: Scene) -> tuple[Step, ...]:
    """The scores of the region, and those that an open softmax reads: what is masked is claimed in
    many ways, so that a mistake in the mask may show in the shares alone."""
    read = [scene.plan[step.inputs["x"]] for step in scene.of("softmax")]
    steps = dict.fromkeys(step.address for step in (*scene.of("scores"), *read))
    return tuple(step for at in steps if (step := scene.plan[at]).op == "scores")


def _remask(scene: Scene, draft: Draft, step: Step, mask: Mask) -> None:
    """Scores with another mask; where they are claimed, worked out again for the softmax."""
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


def _mask(step: Step, sees: Callable[[int, int, bool], bool]) -> Mask:
    queries, keys = step.attributes["queries"], step.attributes["keys"]
    return tuple(
        tuple(sees(query, key, own) for key, own in zip(keys, row, strict=True))
        for query, row in zip(queries, step.attributes["mask"], strict=True)
    )


def _strict(scene: Scene, every: tuple[Step, ...], rule: str, change: str) -> Iterator[Edit]:
    """A query that cannot see itself; the first may then look at nothing, or at all alike."""
    sentence = _("it follows if a position cannot see itself; {rule}").format(rule=rule)
    last = scene.target.op == "scores"
    for even in (False, True):
        draft = scene.draft()
        for step in every:
            mask = _mask(step, lambda q, k, own: own and k != q)
            blind = [place for place, row in enumerate(mask) if not any(row)]
            if not last or not even:  # else nothing is done with what nobody sees
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
    """A sliding window that is one too wide or too narrow, or not there."""
    for by in (None, 1, -1):
        draft = scene.draft()
        own = None
        for step in every:
            window = scene.attention(step.address).window
            if window is None:
                continue
            own = window
            reach = None if by is None else window + by
            mask = _mask(step, lambda q, k, _own, reach=reach: k <= q and (  # type: ignore[misc]
                reach is None or k > q - reach))  # fmt: skip
            _remask(scene, draft, step, mask)
        if own is None:
            return
        other = _("no window") if by is None else str(own + by)
        yield Edit(
            "window-wrong",
            _("it follows if a query sees back {other} keys; the model says {own}").format(
                other=other, own=own
            ),
            _("let a query see the last {own} keys, its own included").format(own=own),
            draft.made(),
        )


def _zero_mask(scene: Scene) -> Iterator[Edit]:
    """Masked scores set to 0 before the softmax, so that they still get a share."""
    steps = [step for step in scene.of("softmax") if scene.plan[step.inputs["x"]].op == "scores"]
    if steps:
        draft = scene.draft()
        for step in steps:
            zero = draft.write(
                step.address, "present", {"x": step.inputs["x"]}, step.axes, step.shape
            )
            draft.change(step.address, inputs={"x": zero})
        yield Edit(
            "mask-zero",
            _("it follows if masked scores are 0 before the softmax; in the model they are -∞"),
            _("set masked scores to -inf, not to 0"),
            draft.made(),
        )


def _late_mask(scene: Scene) -> Iterator[Edit]:
    """Masked after the softmax, so that the shares no longer sum to 1."""
    pairs = [
        (step, scene.plan[step.inputs["x"]])
        for step in scene.of("softmax")
        if scene.plan[step.inputs["x"]].op == "scores"
    ]
    if not pairs:
        return
    draft = scene.draft()
    for softmax, scores in pairs:
        mask = scores.attributes["mask"]
        _remask(scene, draft, scores, _mask(scores, lambda q, k, own: True))
        draft.then(softmax.address, "hidden", mask=mask)
    yield Edit(
        "mask-late",
        _("it follows if the mask is applied after the softmax; the model masks the scores"),
        _("set masked scores to -inf before the softmax"),
        draft.made(),
        1,
    )


# ------------------------------------------------------------------------ the softmax


def _softmaxes(scene: Scene) -> Iterator[Edit]:
    every = scene.of("softmax")
    for steps, apart in together_and_apart(every):
        yield from _softmax(scene, steps, apart)


def _softmax(scene: Scene, steps: tuple[Step, ...], apart: int) -> Iterator[Edit]:
    change = _("take the softmax over the last axis, once")
    draft = scene.draft()
    for step in steps:
        draft.keep(step.address, step.inputs["x"])
    sentence = _("it follows if the softmax is left out; the model takes it here")
    yield Edit("softmax-missing", sentence, change, draft.made(), apart)
    draft = scene.draft()
    for step in steps:
        draft.then(step.address, "softmax")
    sentence = _("it follows if the softmax is taken twice; the model takes it once")
    yield Edit("softmax-doubled", sentence, change, draft.made(), apart)
    for back in (2, 3):
        if any(len(step.axes) < back for step in steps):
            continue
        draft = scene.draft()
        for step in steps:
            _over_axis(draft, step, len(step.axes) - back)
        axis = steps[0].axes[len(steps[0].axes) - back]
        sentence = _(
            "it follows if the softmax runs over the {other} axis; the model takes it over the "
            "{own} axis"
        ).format(other=axis, own=steps[0].axes[-1])
        yield Edit("softmax-axis", sentence, change, draft.made(), apart + (back == 3))
    draft = scene.draft()
    base_two = Call("ln", Number(Fraction(2)))
    for step in steps:
        _scaled_input(draft, step, base_two)
    sentence = _("it follows if the softmax is of powers of 2; the model says powers of e")
    yield Edit("softmax-base", sentence, _("use exp, not exp2"), draft.made(), 2 + apart)
    for temperature in map(Fraction, ("2", "1/2", "7/10", "4/5", "9/10", "6/5", "3/2")):
        if not any(step.address == "probs" for step in steps):
            break
        draft = scene.draft()
        for step in steps:
            _scaled_input(draft, step, 1 / temperature)
        sentence = _(
            "it follows if the logits are divided by a temperature of {t}; the model has none"
        ).format(t=f"{float(temperature):g}")
        change = _("take the softmax of the logits as they are (temperature 1)")
        yield Edit("temperature", sentence, change, draft.made(), 2 + apart)


def _scaled_input(draft: Draft, step: Step, by: Fraction | Expression) -> None:
    x = draft.write(
        step.address, "scaled", {"x": step.inputs["x"]}, step.axes, step.shape, factor=by
    )
    draft.change(step.address, inputs={"x": x})


def _over_axis(draft: Draft, step: Step, axis: int) -> None:
    order = [place for place in range(len(step.axes)) if place != axis] + [axis]
    back = tuple(order.index(place) for place in range(len(order)))
    axes = tuple(step.axes[place] for place in order)
    shape = tuple(step.shape[place] for place in order)
    turned = draft.write(
        step.address, "turned", {"x": step.inputs["x"]}, axes, shape, axes=tuple(order)
    )
    shares = draft.write(step.address, "softmax", {"x": turned}, axes, shape)
    draft.change(step.address, op="turned", inputs={"x": shares}, only=True, axes=back)


# ------------------------------------------------------------------------ what is added to scores


def _additions(scene: Scene) -> Iterator[Edit]:
    """ALiBi and tables of scores; q and k in each other's place."""
    every = scene.of("scores")
    sloped = [step for step in every if "slopes" in step.inputs]
    tabled = [step for step in every if "table" in step.inputs]
    if sloped:
        change = _("subtract slope·distance from the scores")
        draft = scene.draft()
        for step in sloped:
            draft.change(step.address, inputs={"slopes": None})
        sentence = _("it follows if ALiBi is left out; the model subtracts slope·distance")
        yield Edit("alibi-missing", sentence, change, draft.made())
        draft = scene.draft()
        for step in sloped:
            shape = scene.weight_shape(step.inputs["slopes"])
            slopes = draft.write(
                step.address, "scaled", {"x": step.inputs["slopes"]}, ("head",), shape,
                factor=Fraction(-1),
            )  # fmt: skip
            draft.change(step.address, inputs={"slopes": slopes})
        sentence = _("it follows if slope·distance is added; the model subtracts it")
        yield Edit("alibi-sign", sentence, change, draft.made())
    if tabled:
        draft = scene.draft()
        for step in tabled:
            draft.change(step.address, inputs={"table": None})
        sentence = _("it follows if the table is not added to the scores; the model adds it")
        yield Edit("table-missing", sentence, _("add the score table"), draft.made())
    square = [step for step in every if step.shape[1] == step.shape[2]]
    if square:
        draft = scene.draft()
        for step in square:
            draft.change(step.address, mask=_mask(step, lambda q, k, own: True))
            draft.then(step.address, "turned", axes=(0, 2, 1))
            draft.then(step.address, "hidden", mask=step.attributes["mask"])
        yield Edit(
            "scores-transposed",
            _("it follows if the scores are k·q, with query and key exchanged; the model says q·k"),
            _("put the query on the rows and the key on the columns of the scores"),
            draft.made(),
            1,
        )
