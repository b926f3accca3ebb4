"""Mistakes with matrices and biases: transposed, read with another shape, left out, exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from byhand.checking.suspects.editing import Draft, Edit, Scene, together_and_apart
from byhand.language import _
from byhand.plan import WEIGHT, Step

PRODUCTS = ("linear", "head_outputs")
MOST_LAYERS = 12  # other layers whose weights are tried


def matrix_suspects(scene: Scene) -> Iterator[Edit]:
    """Mistakes with the matrices of the region."""
    yield from _transposed(scene)
    yield from _biases(scene)
    yield from _other_weights(scene)
    yield from _other_layers(scene)


def _transposed(scene: Scene) -> Iterator[Edit]:
    """All matrices, those of q, k and v, and each alone; square ones and others alike."""
    every = tuple(step for step in scene.of(*PRODUCTS) if "weight" in step.inputs)
    projections = tuple(step for step in every if step.address.endswith((".q", ".k", ".v")))
    alone = [(step,) for step in every] if len(every) <= 8 else []
    for steps in (every, projections, *alone):
        if not steps:
            continue
        draft = scene.draft()
        for step in steps:
            if _square(scene, step):
                draft.change(step.address, layout=_other(step))
            else:
                _reread(scene, draft, step)
        apart = int(len(steps) < len(every))
        yield _transposing(draft, steps, _transposition(scene, steps), apart)
        if len(steps) == 1 and not _square(scene, steps[0]):
            draft = scene.draft()
            _reread_turned(scene, draft, steps[0])
            yield _transposing(draft, steps, _turned_first(scene, steps[0]), apart + 1)


def _transposing(draft: Draft, steps: tuple[Step, ...], sentence: str, unlikely: int) -> Edit:
    change = _("transpose {names} (or do not, if you do)").format(names=_names(steps))
    return Edit("weight-transposed", sentence, change, draft.made(), unlikely)


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


def _other(step: Step) -> str:
    return "out_in" if step.attributes["layout"] == "in_out" else "in_out"


def _stored(step: Step) -> str:
    if step.attributes["layout"] == "in_out":
        return _("input × output (x·W)")
    return _("output × input (W·x)")


def _reread(scene: Scene, draft: Draft, step: Step) -> None:
    read = step.inputs["weight"]
    turned = scene.weight_shape(read)[::-1]
    weight = draft.write(
        step.address, "reread", {"x": read}, ("row", "column"), turned, shape=turned
    )
    draft.change(step.address, inputs={"weight": weight}, layout=_other(step))


def _reread_turned(scene: Scene, draft: Draft, step: Step) -> None:
    """As the head of a checkpoint is, whose other matrices are stored the other way round."""
    read = step.inputs["weight"]
    shape, axes = scene.weight_shape(read), ("row", "column")
    turned = draft.write(step.address, "turned", {"x": read}, axes, shape[::-1], axes=(1, 0))
    weight = draft.write(step.address, "reread", {"x": turned}, axes, shape, shape=shape)
    draft.change(step.address, inputs={"weight": weight})


def _biases(scene: Scene) -> Iterator[Edit]:
    every = [step for step in scene.of("linear") if "bias" in step.inputs]
    for steps, apart in together_and_apart(every):
        name = steps[0].inputs["bias"].removeprefix(WEIGHT)
        draft = scene.draft()
        for step in steps:
            draft.change(step.address, inputs={"bias": None})
        yield Edit(
            "bias-missing",
            _("it follows if the bias {name} is left out; the model adds it").format(name=name),
            _("add {name}").format(name=name),
            draft.made(),
            apart,
        )
        draft = scene.draft()
        for step in steps:
            read = step.inputs["bias"]
            twice = draft.write(
                step.address, "scaled", {"x": read}, ("d",), scene.weight_shape(read),
                factor=Fraction(2),
            )  # fmt: skip
            draft.change(step.address, inputs={"bias": twice})
        yield Edit(
            "bias-doubled",
            _("it follows if the bias {name} is added twice; the model adds it once").format(
                name=name
            ),
            _("add {name} once").format(name=name),
            draft.made(),
            apart + 1,
        )


# ------------------------------------------------------------------------ another weight


def _other_weights(scene: Scene) -> Iterator[Edit]:
    """One weight of the region exchanged for another of the same shape."""
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
            draft = scene.draft()
            draft.change(step.address, inputs={role: name})
            yield _swap(draft, read, name, unlikely)
            bias = step.inputs.get("bias")
            theirs = name + "_bias"
            known = theirs.removeprefix(WEIGHT) in scene.model.weights
            if role != "weight" or bias is None or not known:
                continue
            if scene.weight_shape(bias) == scene.weight_shape(theirs):
                draft = scene.draft()
                draft.change(step.address, inputs={role: name, "bias": theirs})
                yield _swap(draft, read, name, unlikely)


def _both_of_a_norm(scene: Scene, step: Step) -> Iterator[Edit]:
    """Gain and bias of another norm, together."""
    gain, bias = step.inputs.get("gain"), step.inputs.get("bias")
    if step.op != "affine" or gain is None or bias is None:
        return
    for unlikely, name in _alike(scene, gain):
        theirs = name.removesuffix("gain") + "bias"
        if name.endswith(".gain") and theirs.removeprefix(WEIGHT) in scene.model.weights:
            draft = scene.draft()
            draft.change(step.address, inputs={"gain": name, "bias": theirs})
            own, other = (each.removesuffix(".gain") for each in (gain, name))
            yield _swap(draft, own, other, unlikely)


def _swap(draft: Draft, read: str, other: str, unlikely: int) -> Edit:
    own, name = read.removeprefix(WEIGHT), other.removeprefix(WEIGHT)
    return Edit(
        "weight-swapped",
        _("it follows if {other} stands in place of {own}").format(other=name, own=own),
        _("use {own} here, not {other}").format(own=own, other=name),
        draft.made(),
        unlikely,
    )


def _alike(scene: Scene, read: str) -> Iterator[tuple[int, str]]:
    """The weights of the same shape: of the same layer, then of the same role in other layers."""
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
    """gain, bias or matrix: like is taken for like."""
    last = role.rpartition(".")[2].rpartition("_")[2]
    return last if last in ("gain", "bias", "slopes", "frequencies") else "matrix"


def _other_layers(scene: Scene) -> Iterator[Edit]:
    """Every weight of the region's layer taken from another layer."""
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
        draft = scene.draft()
        fits = True
        for step in readers:
            for read in step.reads:
                new = read.replace(f"{WEIGHT}block.{layer}.", f"{WEIGHT}block.{other}.")
                name = new.removeprefix(WEIGHT)
                if new != read:
                    fits &= name in scene.model.weights and (
                        scene.weight_shape(read) == scene.weight_shape(new)
                    )
                    draft.reroute(step.address, read, new)
        if fits:
            yield Edit(
                "layer-swapped",
                _("it follows if the weights of layer {other} stand in place of layer {own}"
                  ).format(other=other, own=layer),
                _("use the weights of layer {own} here, not of layer {other}").format(
                    own=layer, other=other
                ),
                draft.made(),
                0 if abs(other - layer) == 1 else 1,
            )  # fmt: skip
