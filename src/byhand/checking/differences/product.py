"""A product with a matrix, as a reader sees it: rows, matrix, bias, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.difference import Difference, Floats, Truths
from byhand.checking.suspects.casts import bits_of, format_of, rounded_to
from byhand.checking.suspects.rewritings import Rewriting
from byhand.checking.suspects.scenes import Draft, Edit
from byhand.language import _
from byhand.plan import WEIGHT, Step

Places = npt.NDArray[np.intp]
TYPICAL = 0.5  # the usual error of a rounding, in units of the number
GOOD, WORST = 2.5, 9.0  # usual errors: root mean square and largest that a good fit leaves
USUAL = 1.25  # the same where the model itself leaves little
BETTER = 4.0  # times less than the model leaves
NARROW = ("bfloat16", "float16")
READ_OFF = 2  # how unlikely a reading is beside a mistake of the list that gives the same numbers
LARGE = 1 << 23  # entries of a matrix from which on it is not copied
MANY = 512  # columns that tell a rank
SAMPLE = 12  # columns on which a matrix is tried
CLEAR = 200.0  # squares of usual errors that a better explanation saves, at least
CHANCE = 1e-4  # of a fit that a random difference would have


@dataclass(frozen=True, eq=False)
class Product:
    """X·M (+ b) beside what was claimed for it; columns are those of the claim."""

    difference: Difference
    step: Step  # the product; the target, or an unclaimed step right before it
    x: Floats  # (position, input)
    matrix: Floats  # (input, output)
    bias: Floats | None
    off: Floats  # claimed - expected: (position, output)
    expected: Floats  # of the product itself
    room: Floats
    wrong: Truths  # the entries that differ
    columns: Places  # the matrix's own column of each output
    _kept: dict[str, Floats | None] = field(default_factory=dict)

    @classmethod
    def of(cls, difference: Difference) -> Product | None:
        """The product that a line is, or is made of in one step that rounds little."""
        if not difference.whole or difference.scene.context.around is None:
            return None
        seen = _product_step(difference)
        if seen is None:
            return None
        step, apart_from_it = seen
        around = difference.scene.context.around
        x, weight = around.read(step.inputs["x"]), _weight(difference, step.inputs["weight"])
        bias = around.read(step.inputs["bias"]) if "bias" in step.inputs else None
        if x is None or weight is None or ("bias" in step.inputs and bias is None):
            return None
        x = _merged(x)
        matrix = weight if step.attributes["layout"] == "in_out" else weight.T
        columns = _columns(difference.target, matrix.shape[1])
        with np.errstate(invalid="ignore"):
            apart = np.where(difference.finite, difference.claimed - difference.expected, np.nan)
        off, room, wrong = map(_merged, (apart, difference.room, difference.wrong))
        if off.shape != (len(x), len(columns)):
            return None
        good = np.isfinite(off + room).all(axis=1) & np.isfinite(x).all(axis=1)
        if good.sum() < 2 or not np.isfinite(matrix.sum()):
            return None
        if len(columns) < matrix.shape[1]:
            matrix, bias = matrix[:, columns], None if bias is None else bias[columns]
        x, off, room, wrong = x[good], off[good], room[good], wrong[good]
        if not apart_from_it:
            expected = _merged(np.asarray(difference.expected))[good]
        else:
            expected = x @ matrix + (0.0 if bias is None else bias)
        claimed = _merged(difference.claimed)[good]
        room = _roomier(room, claimed, bias, bits_of(difference.scene.context.precision))
        return cls(difference, step, x, matrix, bias, off, expected, room, wrong, columns)

    @property
    def count(self) -> int:
        """The number of positions."""
        return len(self.x)

    @property
    def name(self) -> str:
        """The name of the matrix."""
        return self.step.inputs["weight"].removeprefix(WEIGHT)

    @property
    def turned(self) -> bool:
        """Whether the file has the outputs first."""
        return bool(self.step.attributes["layout"] != "in_out")

    @cached_property
    def claimed(self) -> Floats:
        """What the claim says about the product."""
        return self.expected + self.off

    @cached_property
    def wrong_columns(self) -> Places:
        """The columns with an entry that differs."""
        return np.flatnonzero(self.wrong.any(axis=0))

    @property
    def everywhere(self) -> bool:
        """Whether most rows and columns differ."""
        rows, columns = self.wrong.any(axis=1), self.wrong.any(axis=0)
        return bool(rows.mean() > 0.8 and columns.mean() > 0.5)

    @cached_property
    def sample(self) -> Places:
        """Some columns that differ, the worst ones among them."""
        sizes = np.square(self.off / self.room).sum(axis=0)[self.wrong_columns]
        order = self.wrong_columns[np.argsort(-sizes, kind="stable")]
        few = SAMPLE // 2
        if len(order) <= SAMPLE:
            return np.sort(order)
        spread = order[few :: max(1, (len(order) - few) // few)][:few]
        return np.sort(np.concatenate((order[:few], spread)))

    def left(self, predicted: Floats, columns: Places | slice = slice(None)) -> Floats:
        """What a prediction of some columns leaves, in usual errors."""
        return (self.claimed[:, columns] - predicted) / self.room[:, columns]

    def fits(self, predicted: Floats, columns: Places | slice = slice(None)) -> bool:
        """Whether a prediction is as near to the claim as rounding leaves it, unlike the model."""
        left = self.left(predicted, columns)
        return good(left, self.off[:, columns] / self.room[:, columns])

    def rounded_room(self, columns: Places) -> Floats:
        """The usual error of some columns where every weight may be rounded once more."""
        if self.format_name not in NARROW:
            return self.room[:, columns]
        unit = TYPICAL * 2.0 ** -bits_of(self.format_name)
        terms = np.square(self.x) @ np.square(self.matrix[:, columns])
        return np.asarray(np.sqrt(np.square(self.room[:, columns]) + unit**2 * terms))

    @property
    def format_name(self) -> str:
        """The format of the claims."""
        return format_of(self.difference.scene.context.precision)

    def clear(self, predicted: Floats, unknown: int) -> bool:
        """Whether a prediction says more than the numbers that were fitted, so many by output."""
        free = self.count - unknown
        left = self.left(predicted) * np.sqrt(self.count / max(1, free))
        before = root_mean_square(self.off / self.room)
        return free > 2 and root_mean_square(left) * 2 * BETTER < before

    @property
    def original(self) -> Floats | None:
        """The matrix as the file has it, where the claims hold it in a narrower format."""
        if self.format_name not in NARROW:
            return None
        data = np.asarray(self.difference.scene.model.weights[self.name].data)
        if data.dtype == object:
            return None
        wide = data.astype(np.float64)
        return (wide.T if self.turned else wide)[:, self.columns]

    def times(self, matrix: Floats, columns: Places | slice = slice(None)) -> Floats:
        """The rows times a matrix of some columns, with the bias of those columns."""
        with np.errstate(all="ignore"):
            made = self.x @ self._stored(matrix)
        return made if self.bias is None else made + self.bias[columns]

    def _stored(self, matrix: Floats) -> Floats:
        """The matrix as weights of the claim's format, where that is narrow."""
        return rounded_to(self.format_name, matrix) if self.format_name in NARROW else matrix

    def at(self, row: int, column: int) -> str:
        """The address of an entry of the matrix, as the file has it."""
        own = int(self.columns[column])
        place = (own, row) if self.turned else (row, own)
        return f"{self.name}[{place[0]},{place[1]}]"

    def size(self, axis: int) -> int:
        """The number of inputs (0) or outputs (1) of the whole matrix."""
        shape = self.difference.scene.weight_shape(self.step.inputs["weight"])
        return shape[1 - axis if self.turned else axis]

    def lines_of(self, axis: int) -> str:
        """The file's word for a line along an axis: 0 for inputs, 1 for outputs."""
        return _("column") if (axis == 1) != self.turned else _("row")

    def other(self, name: str) -> Floats | None:
        """Another matrix of the model, (input, output) and with the same columns; or a bias."""
        if name not in self._kept:
            around = self.difference.scene.context.around
            found = None if around is None else around.read(WEIGHT + name)
            if found is not None and found.ndim == 2:
                found = (found.T if self.turned else found)[:, self.columns]
            elif found is not None:
                found = found[self.columns]
            self._kept[name] = found
        return self._kept[name]

    def alike(self, role: str) -> Sequence[str]:
        """The names of the other weights with the shape of the one in a role, the nearest first."""
        scene, read = self.difference.scene, self.step.inputs[role]
        own, shape = read.removeprefix(WEIGHT), scene.weight_shape(read)
        layer = scene.layer(read)
        names = [name for name, tensor in scene.model.weights.items()
                 if tensor.shape == shape and name != own and tensor.same_as != own]  # fmt: skip

        def away(name: str) -> int:
            theirs = scene.layer(name)
            return 99 if layer is None or theirs is None else abs(theirs - layer)

        return sorted(names, key=away)[:64]

    def rewritten(
        self,
        kind: str,
        sentence: str,
        change: str,
        rewriting: Rewriting,
        *,
        role: str = "weight",
        fitted: int = 0,
        unlikely: int = 0,
        **words: Any,
    ) -> Edit:
        """The edit that rewrites the matrix, or the bias; its lines are those of the claim."""
        return self.difference.edit(
            kind, sentence, change, partial(_rewrite, rewriting=rewriting, role=role,
            turned=self.turned and role == "weight"), at=self.step, fitted=fitted,
            unlikely=unlikely + READ_OFF, **words,
        )  # fmt: skip

    @cached_property
    def rank(self) -> int | None:
        """The number of directions in which the positions differ; None: too many to tell."""
        weighed = self.off / np.sqrt(np.square(self.room).mean(axis=1, keepdims=True))
        if weighed.shape[1] > MANY:
            weighed = weighed[:, np.argsort(-np.square(weighed).sum(axis=0))[:MANY]]
        with np.errstate(all="ignore"):
            values = np.linalg.svd(weighed, compute_uv=False)
        noise = 3 * (np.sqrt(len(weighed)) + np.sqrt(weighed.shape[1]))
        rank = int((values > noise).sum())
        if not 0 < rank < len(values) or values[rank - 1] < 10 * noise:
            return None  # where the smallest is near to the noise, more may lie below it
        return rank


def _roomier(room: Floats, claimed: Floats, bias: Floats | None, bits: int) -> Floats:
    """The usual error where the matrix may be another: of other sums, rounded to other units."""
    unit = TYPICAL * 2.0**-bits
    some = room[:, :: max(1, room.shape[1] // MANY)]
    square = np.square(room) + np.square(0.7 * np.median(some, axis=1, keepdims=True))
    square += np.square(unit * claimed)
    if bias is not None:  # the product may be rounded before the bias is added
        square += np.square(unit * (claimed - bias))
    return np.asarray(np.sqrt(square))


def solved(terms: Floats, aim: Floats, room: Floats) -> tuple[Floats, Floats] | None:
    """The factors of the terms that come nearest to each column, and how sure each is.

    `terms` are (position, term), or (position, term, column) where columns have their own; the
    factors are (term, column).  None where the terms cannot be told apart.
    """
    shape = "ntc" if terms.ndim == 3 else "nt"
    weights = 1 / np.square(room)
    with np.errstate(all="ignore"):
        squares = np.einsum(f"{shape},{shape.replace('t', 'u')},nc->ctu", terms, terms, weights,
                            optimize=True)  # fmt: skip
        sides = np.einsum(f"{shape},nc,nc->ct", terms, aim, weights, optimize=True)
        try:
            inverse = np.linalg.inv(squares)
        except np.linalg.LinAlgError:
            return None
        factors = np.einsum("ctu,cu->tc", inverse, sides)
        sure = np.sqrt(np.abs(np.einsum("ctt->tc", inverse)))
    good = np.isfinite(factors).all() and np.isfinite(sure).all()
    return (factors, sure) if good else None


def root_mean_square(values: Floats) -> float:
    """√(mean of squares); 0 for nothing."""
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0


def good(left: Floats, before: Floats) -> bool:
    """Whether so little is left, in usual errors, that rounding leaves it, and the model does not.

    What is left must be clearly less than before: by a factor, or by many squares of errors.
    """
    now, was = root_mean_square(left), root_mean_square(before)
    if not now <= min(GOOD, max(USUAL, was / BETTER)) or np.abs(left).max(initial=0.0) > WORST:
        return False
    with np.errstate(over="ignore"):
        gain = float(np.square(before).sum() - np.square(left).sum())
    return now * BETTER < was or (now * 1.5 < was and gain > CLEAR)


def by_chance(tries: int, share: float, freedom: int) -> float:
    """About how probable it is that one of so many random directions leaves so small a share."""
    return float(tries * max(share, 1e-30) ** (max(freedom, 0) / 2))


def _rewrite(draft: Draft, step: Step, *, rewriting: Rewriting, role: str, turned: bool) -> None:
    draft.first(step.address, role, "rewritten", rewriting=rewriting, turned=turned)


def _weight(difference: Difference, read: str) -> Any:
    """The matrix in float64; a large one without a copy, where the claims hold it as the file."""
    scene = difference.scene
    data = scene.model.weights[read.removeprefix(WEIGHT)].data
    own = format_of(scene.context.precision) == "float32" and isinstance(data, np.ndarray)
    if own and data.dtype == np.float32 and data.size > LARGE:
        return data
    return None if scene.context.around is None else scene.context.around.read(read)


def _product_step(difference: Difference) -> tuple[Step, bool] | None:
    """The product, and whether the target adds something to it."""
    target, plan = difference.target, difference.scene.plan
    if target.op == "linear":
        return target, False
    open_ = {step.address: step for step in difference.scene.region}
    if target.op == "split_heads" and target.inputs["x"] in open_:
        return plan[target.inputs["x"]], True
    if target.op == "add":
        inside = [open_[read] for read in target.reads if read in open_]
        if len(inside) == 1 and inside[0].op == "linear" and inside[0].inputs["x"] not in open_:
            return inside[0], True
    return None


def _columns(target: Step, outputs: int) -> Places:
    """The column of the matrix behind each column of the target."""
    if target.op != "split_heads":
        return np.arange(outputs)
    settings = target.attributes
    starts = settings["start"] + np.arange(settings["heads"]) * settings["stride"]
    return np.asarray(starts[:, None] + np.arange(settings["width"])).reshape(-1)


def _merged(data: Any) -> Any:
    """(position, any), with heads side by side."""
    if data.ndim != 3:
        return data
    heads, positions, width = data.shape
    return data.transpose(1, 0, 2).reshape(positions, heads * width)
