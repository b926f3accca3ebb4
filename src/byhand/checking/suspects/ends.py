"""Mistakes at both ends of the spine: embeddings and positions, the head, the loss."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from byhand.checking.suspects.mistakes import (
    Mistake,
    Wrong,
    factor,
    first,
    keeping,
    made,
    number,
    padding_counted,
    setting,
    then,
)
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.expression import Call, Expression, Number, Product, Quotient
from byhand.language import _
from byhand.plan import WEIGHT, Step
from byhand.spec import over_root


def end_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake before the first block or after the last."""
    by_address = {step.address: step for step in scene.region}
    if step := by_address.get("embed.token"):
        yield from _scales(scene, step)
        yield from _ids(scene, step)
    if step := by_address.get("embed.position"):
        yield from _positions(scene, step)
    if (step := by_address.get("stream.0")) and step.op == "add":
        yield from _sum(scene, step)
    step = by_address.get("head.out") or by_address.get("logits")
    if step and step.op == "linear":
        yield from _head(scene, step)
    yield from _shifted(scene)
    if step := by_address.get("next"):
        yield from _next(scene, step)
    if step := by_address.get("loss"):
        yield from made(scene, [step], *_loss(scene, step))


# ------------------------------------------------------------------------ into the stream


def _scales(scene: Scene, step: Step) -> Iterator[Edit]:
    own: Expression | None = step.attributes.get("scale")
    root = Call("sqrt", Number(Fraction(scene.spec.d_model)))
    others: list[tuple[str, Expression | None]] = [
        ("embed-scale-missing", None),
        ("embed-scale-extra", root),
        ("embed-scale-extra", over_root(scene.spec.d_model)),
    ]
    if own is not None:
        others.append(("embed-scale-extra", Product((own, own))))
    for kind, other in others:
        yield from made(scene, [step], _scaled(kind, own, other, setting(scale=other)))


def _scaled(
    kind: str, own: Expression | None, other: Expression | None, make: Wrong, unlikely: int = 0
) -> Mistake[Step]:
    """The mistake of another embedding scale."""
    sentence = _("it follows if the embedding is scaled by {other}; the model says {own}")
    change = (
        _("do not scale the embedding")
        if own is None or unlikely
        else _("scale the embedding by {own}").format(own=factor(own))
    )
    said = sentence.format(other=factor(other), own=factor(own))
    return Mistake(kind, said, change, make, unlikely)


def _ids(scene: Scene, step: Step) -> Iterator[Edit]:
    tokens, size = scene.context.tokens, scene.spec.vocab
    if not tokens:
        return

    def instead(ids: tuple[int, ...]) -> Wrong:
        return setting(inputs={"ids": None}, ids=ids)

    for by, sign in ((1, "+"), (-1, "-")):
        yield from made(scene, [step], Mistake(
            "token-row",
            _("it follows if the embedding's rows are read one off (id {sign} 1); the model reads "
              "row id").format(sign=sign),
            _("ids count from 0: read row id"),
            instead(tuple((token + by) % size for token in tokens))))  # fmt: skip
    if len(tokens) > 1:
        change = _("embed token p at position p")
        shifted = _("it follows if the tokens are shifted by one position; the model reads them in "
                    "place")  # fmt: skip
        backwards = _("it follows if the text is read backwards; the model reads it forwards")
        yield from made(
            scene,
            [step],
            Mistake("token-shifted", shifted, change, instead((*tokens[1:], tokens[0])), 2),
            Mistake("token-shifted", shifted, change, instead((tokens[-1], *tokens[:-1])), 2),
            Mistake("token-shifted", backwards, change, instead(tokens[::-1]), 3),
        )


def _positions(scene: Scene, step: Step) -> Iterator[Edit]:
    learned = step.op == "embed"
    name = "ids" if learned else "positions"
    own: tuple[int, ...] = step.attributes[name]
    before, start = scene.context.padding[0], own[0]
    last = scene.weight_shape(step.inputs["table"])[0] if learned else None
    change = _("count positions from {first}").format(first=start)
    for by in dict.fromkeys((1, -1, before, 2)):
        places = tuple(place + by for place in own)
        if not by or (last is not None and (min(places) < -1 or max(places) >= last)):
            continue
        if last is not None:  # Python reads index -1 as the last row
            places = tuple(place % last for place in places)
        counted = setting(**{name: places})
        if by == before and by != 1:
            mistake = padding_counted(before, start, counted)
        else:
            sentence = _("it follows if positions count from {other}; the model counts from {own}")
            said = sentence.format(other=start + by, own=start)
            mistake = Mistake("position-offset", said, change, counted, int(by == 2))
        yield from made(scene, [step], mistake)
    if len(own) > 1:
        for places, sentence in (
            ((start,) * len(own), _("it follows if every position is {own}; the model counts on")),
            (own[::-1], _("it follows if positions count backwards; the model counts from {own}")),
        ):
            wrong = setting(**{name: places})
            mistake = Mistake("position-offset", sentence.format(own=start), change, wrong, 2)
            yield from made(scene, [step], mistake)
    if not learned:
        yield from made(scene, [step], *_sinusoids(step))


def _sinusoids(step: Step) -> Iterator[Mistake[Step]]:
    own, width = step.attributes["base"], step.attributes["width"]
    halves = (*range(0, width, 2), *range(1, width, 2))
    exchanged = tuple(place ^ 1 for place in range(width))
    said = _("sin at entry 2i and cos at entry 2i + 1")
    for order, sentence in (
        (halves, _("it follows if all sines come before all cosines; the model has {said}")),
        (exchanged, _("it follows if cos comes before sin; the model has {said}")),
    ):
        change = _("put {said}").format(said=said)
        wrong = then("taken", axis=1, order=order)
        yield Mistake("sinusoid-order", sentence.format(said=said), change, wrong)
    for base in map(Fraction, (10_000, 1_000, 100_000)):
        yield Mistake(
            "sinusoid-base",
            _("it follows if the base of the positions is {other}; the model says {own}").format(
                other=number(base), own=number(own)),
            _("use the base {own}").format(own=number(own)), setting(base=base), 1)  # fmt: skip


def _sum(scene: Scene, step: Step) -> Iterator[Edit]:
    root = Call("sqrt", Number(Fraction(scene.spec.d_model)))
    larger = first("x", "scaled", factor=root)
    yield from made(
        scene, [step],
        Mistake("position-missing",
                _("it follows if positions are not added; the model adds embed.position"),
                _("add the row of each position to the embedding"), keeping("x")),
        Mistake("position-doubled",
                _("it follows if positions are added twice; the model adds them once"),
                _("add embed.position once"), first("y", "scaled", factor=Fraction(2)), 1),
        _scaled("embed-scale-extra", scene.spec.embed_scale, root, larger, 1),
    )  # fmt: skip


# ------------------------------------------------------------------------ out of it


def _head(scene: Scene, step: Step) -> Iterator[Edit]:
    """Edits that tie an untied head or untie a tied one, where the weights exist."""
    weights = scene.model.weights
    if step.inputs["weight"] != WEIGHT + "embed.token" and scene.spec.outputs is None:
        yield from made(scene, [step], Mistake(
            "head-tied",
            _("it follows if the logits are read from the embedding (tied); the model has a head "
              "of its own"),
            _("multiply by the head matrix, not by the embedding"),
            setting(inputs={"weight": WEIGHT + "embed.token"}, layout="out_in")))  # fmt: skip
    elif "head" in weights:
        upright = weights["head"].shape == (scene.spec.vocab, scene.spec.d_model)
        yield from made(scene, [step], Mistake(
            "head-untied",
            _("it follows if the logits are read from the head matrix; the model is tied to the "
              "embedding"),
            _("multiply by the embedding"),
            setting(inputs={"weight": WEIGHT + "head"},
                    layout="out_in" if upright else "in_out")))  # fmt: skip
    if scene.spec.embed_scale is not None:
        yield from made(scene, [step], Mistake(
            "logit-scale",
            _("it follows if the logits are scaled by {other}; the model does not scale them"
              ).format(other=factor(scene.spec.embed_scale)),
            _("do not scale the logits"),
            then("scaled", factor=scene.spec.embed_scale), 1))  # fmt: skip


def _shifted(scene: Scene) -> Iterator[Edit]:
    """Edits with the target's rows at other positions: rolled by one, or reversed."""
    step = scene.target
    axis = step.position_axis
    if axis is None or step.op in ("given", "argmax") or step.shape[axis] < 2:
        return
    places = tuple(range(step.shape[axis]))
    usual = 1 if step.address in ("logits", "probs") else 3
    for order, sentence, rarer in (
        ((places[-1], *places[:-1]),
         _("it follows if each row is that of the position before; the model says its own"), 0),
        ((*places[1:], places[0]),
         _("it follows if each row is that of the next position; the model says its own"), 0),
        (places[::-1],
         _("it follows if the positions stand in reverse; the model counts forwards"), 1),
    ):  # fmt: skip
        change = _("put the row of position p at position p")
        wrong = then("taken", axis=axis, order=order)
        mistake = Mistake("position-shifted", sentence, change, wrong, usual + rarer)
        yield from made(scene, [step], mistake)


def _next(scene: Scene, step: Step) -> Iterator[Edit]:
    change = _("take the id of the largest logit at each position")
    off = _("it follows if ids are one off (id {sign} 1); they count from 0")
    mistakes = [
        Mistake("argmax-wrong",
                _("it follows if the smallest logit is taken; the model takes the largest"),
                change, first("x", "scaled", factor=Fraction(-1)), 1),
        Mistake("argmax-wrong", off.format(sign="+"), change, setting(op="renumbered", by=1)),
        Mistake("argmax-wrong", off.format(sign="-"), change, setting(op="renumbered", by=-1)),
    ]  # fmt: skip
    size = step.shape[0]
    for by in (-1, 1) if size > 1 else ():
        order = tuple((place + by) % size for place in range(size))
        sentence = _("it follows if the tokens are shifted by one position")
        wrong = then("positions_taken", order=order)
        mistakes.append(Mistake("position-shifted", sentence, change, wrong))
    yield from made(scene, [step], *mistakes)


# ------------------------------------------------------------------------ the loss


def _loss(scene: Scene, step: Step) -> Iterator[Mistake[Step]]:
    change = _("-ln of the target's probability at the last position")
    for base in (2, 10):
        inverse = Quotient(Number(Fraction(1)), Call("ln", Number(Fraction(base))))
        sentence = _("it follows if the logarithm is {other}; the model says ln")
        said = sentence.format(other=f"log{base}")
        yield Mistake("loss-base", said, change, then("scaled", factor=inverse))
    yield Mistake("loss-sign", _("it follows if the sign is missing: ln p; the model says -ln p"),
                  change, then("scaled", factor=Fraction(-1)))  # fmt: skip
    reads = {role: step.inputs[role] for role in ("probs", "target")}
    probs = scene.plan[reads["probs"]]

    def share(draft: Draft) -> str:
        return draft.write("loss", "target_share", reads, ("one",), (1,))

    yield Mistake("loss-missing-log",
                  _("it follows if it is the probability itself; the model says -ln of it"),
                  change, lambda draft, _step: draft.keep("loss", share(draft)), 1)  # fmt: skip
    yield Mistake("loss-perplexity",
                  _("it follows if it is the perplexity, e^loss; the model says the loss"), change,
                  lambda draft, _step: draft.change("loss", op="over", only=True, top=Fraction(1),
                                                    inputs={"below": share(draft)}), 1)  # fmt: skip
    tokens, count = scene.context.tokens, probs.shape[0]
    mean = partial(setting, op="mean_loss", inputs=reads, only=True)
    if len(tokens) == count > 1:
        everything = tuple(range(count))
        for places in (everything, everything[:-1]):
            yield Mistake(
                "loss-mean",
                _("it follows if the loss is the mean over positions; the model takes the last"),
                change, mean(following=tokens[1:], places=places))  # fmt: skip
        for place in dict.fromkeys((count - 2, 0)):
            yield Mistake(
                "loss-position",
                _("it follows if the loss is read at position {place}; the model reads the last, "
                  "{last}").format(place=place, last=count - 1),
                change, mean(following=(-1,) * (count - 1), places=(place,)), 1)  # fmt: skip
    if "x" in probs.inputs:
        yield Mistake("softmax-doubled",
                      _("it follows if the softmax is taken twice; the model takes it once"),
                      change, first("probs", "softmax"))  # fmt: skip
