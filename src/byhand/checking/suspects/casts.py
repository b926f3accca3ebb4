"""Mistakes of precision: values rounded to a coarser format than the stated one.

`rounded_to` rounds a value to a format; there is no arithmetic in those formats here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.suspects.mistakes import Line, Mistake, made, then
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import WEIGHT, Step

Data = npt.NDArray[Any]

# name → bits of the significand, exponent of the smallest step, largest value
FLOATS = {
    "float32": (24, -149, 3.4028234663852886e38),
    "tf32": (11, -136, 3.4028234663852886e38),
    "bfloat16": (8, -133, 3.3895313892515355e38),
    "float16": (11, -24, 65504.0),
    "float8_e4m3": (4, -9, 448.0),
    "float8_e5m2": (3, -16, 57344.0),
}
INT8 = "int8"
INT8_ROWS = "int8 by rows"
LEVELS = 127.0  # the largest int8 value in use
FINE = 24  # bits of a format in which multiples of a step can be told from other numbers
WHOLE = 1e-3  # how far a multiple of a step may be from a whole one, as float32 rounds them
ENOUGH, SHARE = 4, 8  # numbers that need the last bit of a format: so many, and one in so many
PRODUCTS = ("linear", "expert_linear", "scores", "mix", "head_outputs")
IDS = ("given", "argmax")
UNCAST = ("bias", "table", "slopes")  # added to a product, not a factor of it
TABLES = ("slopes", "frequencies")  # computed again on every machine


def cast_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits that round the result, the inputs of products, or the weights to a coarser format."""
    if scene.target.op in IDS or scene.context.by_hand:  # handwritten lines have no casts
        return
    own = format_of(scene.context.precision)
    bits = bits_of(own)
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


def format_of(precision: str) -> str:
    """The format of a precision: bfloat16 of transformers:bfloat16+parallel:8."""
    return precision.partition("+")[0].rpartition(":")[2]


def bits_of(precision: str) -> int:
    """The bits of the significand of a precision's format."""
    own = format_of(precision)
    return FLOATS[own][0] if own in FLOATS else 53


def _cast(
    scene: Scene, lines: Iterable[Line], said: str, make: Callable[[Draft, Line], None],
    name: str, own: str, unlikely: int,
) -> Iterator[Edit]:  # fmt: skip
    change = _("keep {own} here; do not cast to {other}")
    mistake = Mistake("precision", said, change, make, unlikely)
    yield from made(scene, lines, mistake, own=own, other=name)


def _result(scene: Scene, name: str, own: str, unlikely: int) -> Iterator[Edit]:
    if not shows(name, own, scene.context.values):
        return
    said = _("it follows if the result is rounded to {other}; the claims are said to be {own}")
    cast = then("cast", format=name)
    yield from _cast(scene, [scene.target], said, cast, name, own, unlikely)


def _inputs(scene: Scene, name: str, own: str, unlikely: int) -> Iterator[Edit]:
    steps = scene.of(*PRODUCTS) or (scene.target,)

    def cast_inputs(draft: Draft, step: Step) -> None:
        for role, read in step.inputs.items():
            given = not read.startswith(WEIGHT) and scene.plan[read].op == "given"
            if role not in UNCAST and not given:
                draft.first(step.address, role, "cast", format=name)

    def cast_all(draft: Draft, step: Step) -> None:
        cast_inputs(draft, step)
        draft.then(step.address, "cast", format=name)

    said = _("it follows if what goes into this line is rounded to {other}; the claims are said to "
             "be {own}")  # fmt: skip
    yield from _cast(scene, steps, said, cast_inputs, name, own, unlikely)
    if name != "tf32" and shows(name, own, scene.context.values):
        said = _("it follows if what goes in and what comes out is rounded to {other}; the claims "
                 "are said to be {own}")  # fmt: skip
        yield from _cast(scene, steps, said, cast_all, name, own, unlikely)


def _weights(scene: Scene, name: str, own: str, unlikely: int) -> Iterator[Edit]:
    """Casts of the matrices, biases and gains with them or alone; bytes hold only matrices."""
    read = [
        (step, role, len(scene.weight_shape(weight)))
        for step in scene.region
        for role, weight in step.inputs.items()
        if weight.startswith(WEIGHT) and role not in TABLES
    ]

    def cast(draft: Draft, line: tuple[Step, str, int]) -> None:
        draft.first(line[0].address, line[1], "cast", format=name)

    # of experts there are several: matrices have three axes, biases two
    small = [each for each in read if each[2] == 1 or each[1] == "bias"]
    vectors = small if name in FLOATS else []
    matrices = [
        each for each in read if each not in small and (each[2] == 2 or each[1] == "weight")
    ]
    for chosen, said in (
        (matrices, _("it follows if the weights are rounded to {other}; the model has them finer")),
        (matrices and vectors and read,
         _("it follows if the weights, biases and gains too, are rounded to {other}; the model has "
           "them finer")),
        (vectors,
         _("it follows if biases and gains are rounded to {other}; the model has them finer")),
    ):  # fmt: skip
        yield from _cast(scene, chosen or (), said, cast, name, own, unlikely)


# ------------------------------------------------------------------------ what a value becomes


def shows(name: str, own: str, values: Data | None) -> bool:
    """Whether the format holds all the numbers, and enough of them need its last bit.

    Half of the numbers that were rounded to a format need its last bit; 0, 1 and ½ need none.
    """
    if values is None:
        return True
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[np.isfinite(numbers) & (numbers != 0)]
    if name in (INT8, INT8_ROWS):
        return bits_of(own) >= FINE and _in_whole_steps(numbers)
    bits, least, largest = FLOATS[name]
    if not np.array_equal(_rounded(numbers, bits, least, largest), numbers):
        return False
    using = int(np.count_nonzero(_rounded(numbers, bits - 1, least + 1, largest) != numbers))
    return using >= max(ENOUGH, len(numbers) / SHARE)


def _in_whole_steps(numbers: Data) -> bool:
    """Whether numbers of a fine format are whole multiples of the largest one over 127."""
    if len(numbers) < ENOUGH:
        return False
    unit = np.abs(numbers).max() / LEVELS
    if not unit:  # the smallest floats have no smaller step
        return False
    steps = numbers / unit
    return bool((np.abs(steps - np.rint(steps)) < WHOLE).all())


def rounded_to(name: str, data: Data) -> Data:
    """The array in a format; values beyond its range become its largest value."""
    if name in (INT8, INT8_ROWS):
        return _whole_steps(data, by_rows=name == INT8_ROWS)
    return _rounded(data, *FLOATS[name])


def _rounded(data: Data, bits: int, least: int, largest: float) -> Data:
    finite = np.isfinite(data)
    safe = np.where(finite, data, 0.0)
    _part, exponent = np.frexp(safe)
    step = np.maximum(exponent - bits, least)
    result = np.ldexp(np.rint(np.ldexp(safe, -step)), step)
    kept: Data = np.where(finite, np.clip(result, -largest, largest), data)
    return kept


def _whole_steps(data: Data, *, by_rows: bool) -> Data:
    """The array as whole multiples of its largest entry over 127: weights packed into bytes."""
    finite = np.where(np.isfinite(data), data, 0.0)
    largest = np.abs(finite).max(axis=-1, keepdims=True) if by_rows else np.abs(finite).max()
    step = largest / LEVELS
    step = np.where(step > 0, step, 1.0)  # the smallest floats have no smaller step
    result: Data = np.rint(data / step) * step
    return result
