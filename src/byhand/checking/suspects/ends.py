"""Mistakes at both ends of the spine: embeddings and positions, the head, the loss."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from byhand.checking.suspects.mistakes import factor, number
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.expression import Call, Expression, Number, Product, Quotient
from byhand.language import _
from byhand.plan import WEIGHT, Step
from byhand.spec import over_root


def end_suspects(scene: Scene) -> Iterator[Edit]:
    """Mistakes before the first block and after the last."""
    by_address = {step.address: step for step in scene.region}
    if step := by_address.get("embed.token"):
        yield from _scales(scene, step)
        yield from _ids(scene, step)
    if step := by_address.get("embed.position"):
        yield from _positions(scene, step)
    if (step := by_address.get("stream.0")) and step.op == "add":
        yield from _sum(scene, step)
    if step := by_address.get("logits"):
        yield from _head(scene, step)
    yield from _shifted(scene)
    if step := by_address.get("next"):
        yield from _next(scene, step)
    if step := by_address.get("loss"):
        yield from _loss(scene, step)


# ------------------------------------------------------------------------ into the stream


def _scales(scene: Scene, step: Step) -> Iterator[Edit]:
    own: Expression | None = step.attributes.get("scale")
    d = Number(Fraction(scene.spec.d_model))
    others: list[tuple[str, Expression | None]] = [("embed-scale-missing", None)]
    others += [
        ("embed-scale-extra", Call("sqrt", d)),
        ("embed-scale-extra", over_root(scene.spec.d_model)),
    ]
    if own is not None:
        others.append(("embed-scale-extra", Product((own, own))))
    change = _("scale the embedding by {own}").format(own=factor(own))
    for kind, other in others:
        draft = scene.draft()
        draft.change("embed.token", scale=other)
        yield Edit(
            kind,
            _("it follows if the embedding is scaled by {other}; the model says {own}").format(
                other=factor(other), own=factor(own)
            ),
            _("do not scale the embedding") if own is None else change,
            draft.made(),
        )


def _ids(scene: Scene, step: Step) -> Iterator[Edit]:
    tokens, size = scene.context.tokens, scene.spec.vocab
    if not tokens:
        return
    for by in (1, -1):
        draft = scene.draft()
        ids = tuple((token + by) % size for token in tokens)
        draft.change("embed.token", inputs={"ids": None}, ids=ids)
        yield Edit(
            "token-row",
            _("it follows if the embedding's rows are read one off (id {sign} 1); the model reads "
              "row id").format(sign="+" if by > 0 else "-"),
            _("ids count from 0: read row id"),
            draft.made(),
        )  # fmt: skip
    if len(tokens) > 1:
        for by in (1, -1):
            draft = scene.draft()
            ids = (*tokens[by:], *tokens[:by])
            draft.change("embed.token", inputs={"ids": None}, ids=ids)
            yield Edit(
                "token-shifted",
                _("it follows if the tokens are shifted by one position; the model reads them in "
                  "place"),
                _("embed token p at position p"),
                draft.made(),
                2,
            )  # fmt: skip
        draft = scene.draft()
        draft.change("embed.token", inputs={"ids": None}, ids=tuple(reversed(tokens)))
        yield Edit(
            "token-shifted",
            _("it follows if the text is read backwards; the model reads it forwards"),
            _("embed token p at position p"),
            draft.made(),
            3,
        )


def _positions(scene: Scene, step: Step) -> Iterator[Edit]:
    name = "ids" if step.op == "embed" else "positions"
    own: tuple[int, ...] = step.attributes[name]
    before = scene.context.padding[0]
    learned = step.op == "embed"
    last = scene.weight_shape(step.inputs["table"])[0] if learned else None
    change = _("count positions from {first}").format(first=own[0])
    for by in dict.fromkeys((1, -1, before, 2)):
        places = tuple(place + by for place in own)
        if not by or (last is not None and (min(places) < -1 or max(places) >= last)):
            continue
        if last is not None:  # as Python reads it, row -1 is the last
            places = tuple(place % last for place in places)
        draft = scene.draft()
        _change_positions(draft, name, places)
        padded = by == before and by != 1
        sentence = (
            _("it follows if the {count} positions of padding are counted; the model counts the "
              "text from {own}").format(count=before, own=own[0])
            if padded
            else _("it follows if positions count from {other}; the model counts from {own}"
                   ).format(other=own[0] + by, own=own[0])
        )  # fmt: skip
        yield Edit(
            "padding-positions" if padded else "position-offset",
            sentence,
            _("take position ids from the attention mask, not from the row") if padded else change,
            draft.made(),
            int(by == 2 and not padded),
        )
    if len(own) > 1:
        for places, sentence in (
            ((own[0],) * len(own), _("it follows if every position is {own}; the model counts on")),
            (own[::-1], _("it follows if positions count backwards; the model counts from {own}")),
        ):
            draft = scene.draft()
            _change_positions(draft, name, places)
            said = sentence.format(own=own[0])
            yield Edit("position-offset", said, change, draft.made(), 2)
    if not learned:
        yield from _sinusoids(scene, step)


def _change_positions(draft: Draft, name: str, places: tuple[int, ...]) -> None:
    changed: dict[str, Any] = {name: places}
    draft.change("embed.position", **changed)


def _sinusoids(scene: Scene, step: Step) -> Iterator[Edit]:
    own, width = step.attributes["base"], step.attributes["width"]
    halves = (*range(0, width, 2), *range(1, width, 2))
    exchanged = tuple(place ^ 1 for place in range(width))
    said = _("sin at entry 2i and cos at entry 2i + 1")
    for order, sentence in (
        (halves, _("it follows if all sines come before all cosines; the model has {said}")),
        (exchanged, _("it follows if cos comes before sin; the model has {said}")),
    ):
        draft = scene.draft()
        draft.then("embed.position", "taken", axis=1, order=order)
        yield Edit(
            "sinusoid-order",
            sentence.format(said=said),
            _("put {said}").format(said=said),
            draft.made(),
        )
    for base in map(Fraction, (10_000, 1_000, 100_000)):
        draft = scene.draft()
        draft.change("embed.position", base=base)
        yield Edit(
            "sinusoid-base",
            _("it follows if the base of the positions is {other}; the model says {own}").format(
                other=number(base), own=number(own)
            ),
            _("use the base {own}").format(own=number(own)),
            draft.made(),
            1,
        )


def _sum(scene: Scene, step: Step) -> Iterator[Edit]:
    draft = scene.draft()
    draft.keep("stream.0", step.inputs["x"])
    yield Edit(
        "position-missing",
        _("it follows if positions are not added; the model adds embed.position"),
        _("add the row of each position to the embedding"),
        draft.made(),
    )
    draft = scene.draft()
    twice = draft.write(
        "stream.0", "scaled", {"x": step.inputs["y"]}, step.axes, step.shape, factor=Fraction(2)
    )
    draft.change("stream.0", inputs={"y": twice})
    yield Edit(
        "position-doubled",
        _("it follows if positions are added twice; the model adds them once"),
        _("add embed.position once"),
        draft.made(),
        1,
    )
    d = scene.spec.d_model
    draft = scene.draft()
    scale = Call("sqrt", Number(Fraction(d)))
    larger = draft.write(
        "stream.0", "scaled", {"x": step.inputs["x"]}, step.axes, step.shape, factor=scale
    )
    draft.change("stream.0", inputs={"x": larger})
    yield Edit(
        "embed-scale-extra",
        _("it follows if the embedding is scaled by {other}; the model says {own}").format(
            other=factor(scale), own=factor(scene.spec.embed_scale)
        ),
        _("do not scale the embedding"),
        draft.made(),
        1,
    )


# ------------------------------------------------------------------------ out of it


def _head(scene: Scene, step: Step) -> Iterator[Edit]:
    """The head tied for untied and the reverse, where there are weights for it."""
    weights = scene.model.weights
    own = step.inputs["weight"].removeprefix(WEIGHT)
    table, vocab, d = "embed.token", scene.spec.vocab, scene.spec.d_model
    if own != table:
        draft = scene.draft()
        draft.change("logits", inputs={"weight": WEIGHT + table}, layout="out_in")
        yield Edit(
            "head-tied",
            _("it follows if the logits are read from the embedding (tied); the model has a head "
              "of its own"),
            _("multiply by the head matrix, not by the embedding"),
            draft.made(),
        )  # fmt: skip
    elif "head" in weights:
        layout = "out_in" if weights["head"].shape == (vocab, d) else "in_out"
        draft = scene.draft()
        draft.change("logits", inputs={"weight": WEIGHT + "head"}, layout=layout)
        yield Edit(
            "head-untied",
            _("it follows if the logits are read from the head matrix; the model is tied to the "
              "embedding"),
            _("multiply by the embedding"),
            draft.made(),
        )  # fmt: skip
    if scene.spec.embed_scale is not None:
        draft = scene.draft()
        draft.then("logits", "scaled", factor=scene.spec.embed_scale)
        yield Edit(
            "logit-scale",
            _("it follows if the logits are scaled by {other}; the model does not scale them"
              ).format(other=factor(scene.spec.embed_scale)),
            _("do not scale the logits"),
            draft.made(),
            1,
        )  # fmt: skip


def _shifted(scene: Scene) -> Iterator[Edit]:
    """The target's rows at other positions: rolled by one, or read backwards."""
    step = scene.target
    axis = step.position_axis
    if axis is None or step.op in ("given", "argmax") or step.shape[axis] < 2:
        return
    size = step.shape[axis]
    orders = {
        1: tuple((place - 1) % size for place in range(size)),
        -1: tuple((place + 1) % size for place in range(size)),
        0: tuple(reversed(range(size))),
    }
    first = step.address in ("logits", "probs")
    for by, order in orders.items():
        draft = scene.draft()
        draft.then(step.address, "taken", axis=axis, order=order)
        sentence = {
            1: _("it follows if each row is that of the position before; the model says its own"),
            -1: _("it follows if each row is that of the next position; the model says its own"),
            0: _("it follows if the positions stand in reverse; the model counts forwards"),
        }[by]
        yield Edit(
            "position-shifted",
            sentence,
            _("put the row of position p at position p"),
            draft.made(),
            (1 if first else 3) + (by == 0),
        )


def _next(scene: Scene, step: Step) -> Iterator[Edit]:
    change = _("take the id of the largest logit at each position")
    draft = scene.draft()
    draft.change("next", op="lowest")
    sentence = _("it follows if the smallest logit is taken; the model takes the largest")
    yield Edit("argmax-wrong", sentence, change, draft.made(), 1)
    for by in (1, -1):
        draft = scene.draft()
        draft.change("next", op="renumbered", by=by)
        sentence = _("it follows if ids are one off (id {sign} 1); they count from 0").format(
            sign="+" if by > 0 else "-"
        )
        yield Edit("argmax-wrong", sentence, change, draft.made())
    size = step.shape[0]
    if size > 1:
        for by in (-1, 1):
            draft = scene.draft()
            order = tuple((place + by) % size for place in range(size))
            draft.then("next", "positions_taken", order=order)
            sentence = _("it follows if the tokens are shifted by one position")
            yield Edit("position-shifted", sentence, change, draft.made())


# ------------------------------------------------------------------------ the loss


def _loss(scene: Scene, step: Step) -> Iterator[Edit]:
    change = _("-ln of the target's probability at the last position")
    for base, wrong in ((2, "log2"), (10, "log10")):
        draft = scene.draft()
        inverse = Quotient(Number(Fraction(1)), Call("ln", Number(Fraction(base))))
        draft.then("loss", "scaled", factor=inverse)
        sentence = _("it follows if the logarithm is {other}; the model says ln").format(
            other=wrong
        )
        yield Edit("loss-base", sentence, change, draft.made())
    draft = scene.draft()
    draft.then("loss", "scaled", factor=Fraction(-1))
    sentence = _("it follows if the sign is missing: ln p; the model says -ln p")
    yield Edit("loss-sign", sentence, change, draft.made())
    probs, target = step.inputs["probs"], step.inputs["target"]
    count = scene.plan[probs].shape[0]
    draft = scene.draft()
    row = draft.write("loss", "target_share", {"probs": probs, "target": target}, ("one",), (1,))
    draft.keep("loss", row)
    sentence = _("it follows if it is the probability itself; the model says -ln of it")
    yield Edit("loss-missing-log", sentence, change, draft.made(), 1)
    draft = scene.draft()
    row = draft.write("loss", "target_share", {"probs": probs, "target": target}, ("one",), (1,))
    draft.change("loss", op="over", inputs={"below": row}, only=True, top=Fraction(1))
    sentence = _("it follows if it is the perplexity, e^loss; the model says the loss")
    yield Edit("loss-perplexity", sentence, change, draft.made(), 1)
    tokens = scene.context.tokens
    if len(tokens) == count > 1:
        everything = tuple(range(count))
        reads = {"probs": probs, "target": target}
        sentence = _("it follows if the loss is the mean over positions; the model takes the last")
        for places in (everything, everything[:-1]):
            draft = scene.draft()
            draft.change(
                "loss", op="mean_loss", inputs=reads, only=True, following=tokens[1:], places=places
            )
            yield Edit("loss-mean", sentence, change, draft.made())
        for place in dict.fromkeys((count - 2, 0)):
            draft = scene.draft()
            draft.change(
                "loss", op="mean_loss", inputs=reads, only=True,
                following=(-1,) * (count - 1), places=(place,),
            )  # fmt: skip
            sentence = _(
                "it follows if the loss is read at position {place}; the model reads the last, "
                "{last}"
            ).format(place=place, last=count - 1)
            yield Edit("loss-position", sentence, change, draft.made(), 1)
    logits = scene.plan[probs].inputs.get("x")
    if logits is not None:
        draft = scene.draft()
        again = draft.write(
            "loss", "softmax", {"x": probs}, ("pos", "vocab"), scene.plan[probs].shape
        )
        draft.change("loss", inputs={"probs": again})
        sentence = _("it follows if the softmax is taken twice; the model takes it once")
        yield Edit("softmax-doubled", sentence, change, draft.made())
