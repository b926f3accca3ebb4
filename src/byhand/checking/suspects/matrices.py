"""Mistakes with matrices and biases: transposed, read with another shape, left out, exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from byhand.checking.suspects.mistakes import (
    Mistake,
    first,
    made,
    reading,
    rerouting,
    together_and_apart,
)
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import WEIGHT, Step

PRODUCTS = ("linear", "head_outputs")
MOST_LAYERS = 12  # other layers whose weights are tried


def matrix_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in the matrices and biases of the region."""
    yield from _transposed(scene)
    yield from _biases(scene)
    yield from _other_weights(scene)
    yield from _other_layers(scene)


def _transposed(scene: Scene) -> Iterator[Edit]:
    """Edits that transpose all matrices, those of q, k and v, or one; square or not."""
    every = tuple(step for step in scene.of(*PRODUCTS) if "weight" in step.inputs)
    projections = tuple(step for step in every if step.address.endswith((".q", ".k", ".v")))
    alone = [(step,) for step in every] if len(every) <= 8 else []
    for steps in (every, projections, *alone):
        if not steps:
            continue
        wrong = partial(Mistake, "weight-transposed",
                        change=_("transpose {names} (or do not, if you do)").format(
                            names=_names(steps)))  # fmt: skip
        sentence = _transposition(scene, steps)
        apart = int(len(steps) < len(every))
        turned = wrong(sentence=sentence, make=partial(_transpose, scene))
        yield from made(scene, steps, turned, unlikely=apart)
        if len(steps) == 1 and not _square(scene, steps[0]):
            sentence = _turned_first(scene, steps[0])
            reread = wrong(sentence=sentence, make=partial(_reread_turned, scene))
            yield from made(scene, steps, reread, unlikely=apart + 1)


def _transpose(scene: Scene, draft: Draft, step: Step) -> None:
    """Transposes the matrix; a matrix that is not square is read with the transposed shape."""
    layout = "out_in" if step.attributes["layout"] == "in_out" else "in_out"
    if not _square(scene, step):
        turned = scene.weight_shape(step.inputs["weight"])[::-1]
        draft.first(step.address, "weight", "reread", shape=turned)
    draft.change(step.address, layout=layout)


def _transposition(scene: Scene, steps: tuple[Step, ...]) -> str:
    layout, names = _stored(steps[0]), _names(steps)
    if all(_square(scene, step) for step in steps) or len(steps) > 1:
        sentence = _("it follows if {names} is transposed; in the model it is stored {layout}")
        return sentence.format(names=names, layout=layout)
    a, b = scene.weight_shape(steps[0].inputs["weight"])
    sentence = _(
        "it follows if the numbers of {names} are read as {b} × {a}; in the model it is {a} × {b}, "
        "stored {layout}"
    )
    return sentence.format(names=names, a=a, b=b, layout=layout)


def _turned_first(scene: Scene, step: Step) -> str:
    a, b = scene.weight_shape(step.inputs["weight"])
    sentence = _(
        "it follows if the numbers of {names}, stored as {b} × {a}, are read as {a} × {b} without "
        "being transposed"
    )
    return sentence.format(names=_names((step,)), a=a, b=b)


def _square(scene: Scene, step: Step) -> bool:
    rows, columns = scene.weight_shape(step.inputs["weight"])
    return rows == columns


def _names(steps: tuple[Step, ...]) -> str:
    names = [step.inputs["weight"].removeprefix(WEIGHT) for step in steps]
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _stored(step: Step) -> str:
    if step.attributes["layout"] == "in_out":
        return _("input × output (x·W)")
    return _("output × input (W·x)")


def _reread_turned(scene: Scene, draft: Draft, step: Step) -> None:
    """Reads the numbers of the transposed matrix with the matrix's own shape."""
    draft.first(step.address, "weight", "turned", axes=(1, 0))
    shape = scene.weight_shape(step.inputs["weight"])
    draft.first(step.address, "weight", "reread", shape=shape)


def _biases(scene: Scene) -> Iterator[Edit]:
    every = [step for step in scene.of("linear", "expert_linear") if "bias" in step.inputs]
    for steps, apart in together_and_apart(every):
        name = steps[0].inputs["bias"].removeprefix(WEIGHT)
        yield from made(scene,
            steps,
            Mistake("bias-missing",
                    _("it follows if the bias {name} is left out; the model adds it"),
                    _("add {name}"), reading(bias=None)),
            Mistake("bias-doubled",
                    _("it follows if the bias {name} is added twice; the model adds it once"),
                    _("add {name} once"), first("bias", "scaled", factor=Fraction(2)), 1),
            unlikely=apart, name=name,
        )  # fmt: skip


# ------------------------------------------------------------------------ another weight


def _other_weights(scene: Scene) -> Iterator[Edit]:
    """Edits that exchange one weight of the region for another of the same shape."""
    few = len({scene.layer(step.address) for step in scene.region}) == 1
    for step in scene.region if few else (scene.target,):
        if step.op != "embed":
            yield from _both_of_a_norm(scene, step)
            yield from _exchanged(scene, step)


def _exchanged(scene: Scene, step: Step) -> Iterator[Edit]:
    alone = step is scene.target or len(scene.of(step.op)) == 1
    for role, read in step.inputs.items():
        if not read.startswith(WEIGHT):
            continue
        for unlikely, name in _alike(scene, read):
            if not alone and unlikely > 1:
                continue
            unlikely += not alone
            yield from _swap(scene, step, {role: name}, read, name, unlikely)
            bias, theirs = step.inputs.get("bias"), name + "_bias"
            if role != "weight" or bias is None or not scene.has_weight(theirs):
                continue
            if scene.weight_shape(bias) == scene.weight_shape(theirs):
                both = {role: name, "bias": theirs}
                yield from _swap(scene, step, both, read, name, unlikely)


def _both_of_a_norm(scene: Scene, step: Step) -> Iterator[Edit]:
    """Edits that take gain and bias together from another norm."""
    gain, bias = step.inputs.get("gain"), step.inputs.get("bias")
    if step.op != "affine" or gain is None or bias is None:
        return
    for unlikely, name in _alike(scene, gain):
        theirs = name.removesuffix("gain") + "bias"
        if name.endswith(".gain") and scene.has_weight(theirs):
            both = {"gain": name, "bias": theirs}
            own, other = (each.removesuffix(".gain") for each in (gain, name))
            yield from _swap(scene, step, both, own, other, unlikely)


def _swap(
    scene: Scene, step: Step, inputs: dict[str, str], read: str, other: str, unlikely: int
) -> Iterator[Edit]:
    own, name = read.removeprefix(WEIGHT), other.removeprefix(WEIGHT)
    swapped = Mistake(
        "weight-swapped", _("it follows if {other} stands in place of {own}"),
        _("use {own} here, not {other}"), reading(**inputs), unlikely,
    )  # fmt: skip
    yield from made(scene, [step], swapped, other=name, own=own)


def _alike(scene: Scene, read: str) -> Iterator[tuple[int, str]]:
    """Weights of the same shape: those of the same layer, then the same role in other layers."""
    shape, layer = scene.weight_shape(read), scene.layer(read)
    own = read.removeprefix(WEIGHT)
    role = own.split(".", 2)[2] if layer is not None else own
    near: list[tuple[int, int, str]] = []
    for name, tensor in scene.model.weights.items():
        if name == own or tensor.shape != shape or tensor.same_as == own:
            continue
        other = scene.layer(name)
        theirs = name.split(".", 2)[2] if other is not None else name
        if other == layer:
            beside = role.rpartition(".")[0] == theirs.rpartition(".")[0]
            if _kind(theirs) == _kind(role) or beside:
                near.append((1 if _kind(theirs) == _kind(role) else 2, 0, name))
        elif layer is not None and other is not None and theirs == role:
            distance = abs(other - layer)
            near.append((1 if distance == 1 else 2, distance, name))
        elif (other is None or layer is None) and _kind(theirs) == _kind(role):
            near.append((3, 0, name))
    near.sort()
    for unlikely, _distance, name in near[:MOST_LAYERS]:
        yield unlikely, WEIGHT + name


def _kind(role: str) -> str:
    """gain, bias or matrix: only weights of one kind are exchanged."""
    last = role.rpartition(".")[2].rpartition("_")[2]
    return last if last in ("gain", "bias", "slopes", "frequencies") else "matrix"


def _other_layers(scene: Scene) -> Iterator[Edit]:
    """Edits that take every weight of the region's layer from another layer."""
    layers = {scene.layer(step.address) for step in scene.region} - {None}
    if len(layers) != 1:
        return
    layer = layers.pop()
    assert layer is not None
    readers = [step for step in scene.region if any(read.startswith(f"{WEIGHT}block.{layer}.")
                                                    for read in step.reads)]  # fmt: skip
    if not readers:
        return
    others = sorted(range(len(scene.spec.blocks)), key=lambda other: abs(other - layer))
    for other in others[1 : MOST_LAYERS + 1]:
        swapped = {
            read: read.replace(f"{WEIGHT}block.{layer}.", f"{WEIGHT}block.{other}.")
            for step in readers for read in step.reads
            if read.startswith(f"{WEIGHT}block.{layer}.")
        }  # fmt: skip
        if not all(
            scene.has_weight(new) and scene.weight_shape(read) == scene.weight_shape(new)
            for read, new in swapped.items()
        ):
            continue
        mistake = Mistake(
            "layer-swapped",
            _("it follows if the weights of layer {other} stand in place of layer {own}"),
            _("use the weights of layer {own} here, not of layer {other}"),
            rerouting(swapped),
            0 if abs(other - layer) == 1 else 1,
        )
        yield from made(scene, readers, mistake, other=other, own=layer)
