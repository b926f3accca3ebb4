"""Mistakes of precision: something rounded to a coarser format than was said."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.checking.suspects.rounding import FLOATS, INT8, INT8_ROWS
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import WEIGHT, Step

PRODUCTS = ("linear", "scores", "mix", "head_outputs")
IDS = ("given", "argmax")
UNCAST = ("bias", "table", "slopes")  # what is added to a product, not what goes into it
TABLES = ("slopes", "frequencies")  # worked out anew wherever a model runs


def cast_suspects(scene: Scene) -> Iterator[Edit]:
    """The result, what goes into the products, or the weights, rounded to a coarser format."""
    if scene.target.op in IDS or scene.context.by_hand:  # nobody casts with a pencil
        return
    own = scene.context.precision.rpartition(":")[2]
    bits = FLOATS[own][0] if own in FLOATS else 53
    coarser = [name for name, (width, _least, _most) in FLOATS.items() if width < bits]
    if own == "float32" and "tf32" in coarser:
        yield from _inputs(scene, "tf32", own, 1)
    for name in ("bfloat16", "float16", "float32"):
        if name in coarser:
            yield from _result(scene, name, own, 1)
            yield from _inputs(scene, name, own, 1)
            yield from _weights(scene, name, own, 1)
    for name in ("float8_e4m3", "float8_e5m2"):
        if name in coarser:
            yield from _weights(scene, name, own, 2)
            yield from _result(scene, name, own, 2)
            yield from _inputs(scene, name, own, 3)
    for name in (INT8_ROWS, INT8):
        yield from _weights(scene, name, own, 2)
    yield from _result(scene, INT8, own, 3)


def _edit(draft: Draft, sentence: str, name: str, own: str, unlikely: int) -> Edit:
    return Edit(
        "precision",
        sentence.format(other=name, own=own),
        _("keep {own} here; do not cast to {other}").format(own=own, other=name),
        draft.made(),
        unlikely,
    )


def _result(scene: Scene, name: str, own: str, unlikely: int) -> Iterator[Edit]:
    draft = scene.draft()
    draft.then(scene.target.address, "cast", format=name)
    said = _("it follows if the result is rounded to {other}; the claims are said to be {own}")
    yield _edit(draft, said, name, own, unlikely)


def _inputs(scene: Scene, name: str, own: str, unlikely: int) -> Iterator[Edit]:
    steps = scene.of(*PRODUCTS) or (scene.target,)
    for also in (False, True):
        draft = scene.draft()
        for step in steps:
            for role, read in step.inputs.items():
                if role not in UNCAST:
                    draft.change(step.address, inputs={role: _cast(scene, draft, step, read, name)})
            if also:
                draft.then(step.address, "cast", format=name)
        said = (
            _("it follows if what goes in and what comes out is rounded to {other}; the claims are "
              "said to be {own}")
            if also
            else _("it follows if what goes into this line is rounded to {other}; the claims are "
                   "said to be {own}")
        )  # fmt: skip
        if not (also and name == "tf32"):
            yield _edit(draft, said, name, own, unlikely)


def _weights(scene: Scene, name: str, own: str, unlikely: int) -> Iterator[Edit]:
    """The matrices; biases and gains with them, or alone.  Only matrices are packed into bytes."""
    read = [
        (step, role, len(scene.weight_shape(weight)))
        for step in scene.region
        for role, weight in step.inputs.items()
        if weight.startswith(WEIGHT) and role not in TABLES
    ]
    matrices = [each for each in read if each[2] == 2]
    vectors = [each for each in read if each[2] == 1 and name in FLOATS]
    for chosen, said in (
        (matrices, _("it follows if the weights are rounded to {other}; the model has them finer")),
        (matrices and vectors and read,
         _("it follows if the weights, biases and gains too, are rounded to {other}; the model has "
           "them finer")),
        (vectors,
         _("it follows if biases and gains are rounded to {other}; the model has them finer")),
    ):  # fmt: skip
        draft = scene.draft()
        for step, role, _sides in chosen:
            cast = _cast(scene, draft, step, draft[step.address].inputs[role], name)
            draft.change(step.address, inputs={role: cast})
        if chosen:
            yield _edit(draft, said, name, own, unlikely)


def _cast(scene: Scene, draft: Draft, step: Step, read: str, name: str) -> str:
    if read.startswith(WEIGHT):
        shape = scene.weight_shape(read)
        axes = ("row", "column")[: len(shape)]
    else:
        axes, shape = scene.plan[read].axes, scene.plan[read].shape
        if scene.plan[read].op == "given":
            return read
    return draft.write(step.address, "cast", {"x": read}, axes, shape, format=name)
