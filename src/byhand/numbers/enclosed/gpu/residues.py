"""Exact products of limbs and weights by residue numbers: int8 products, one for each modulus.

`limbs.moduli` has the rule and its proof.  Here are its arrays, as torch tensors: residues from
limbs, the products, and the limbs of the result.  On a GPU they are kernels (`residue_kernels`);
elsewhere, and where there are no kernels, array code gives the same bits.  Weights are (outputs,
inputs) here, so that both sides of a product lie along the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from byhand.errors import ByhandError
from byhand.language import _
from byhand.numbers.enclosed.gpu import residue_kernels
from byhand.numbers.enclosed.gpu.decisions import outside_the_pass
from byhand.numbers.enclosed.limbs.arithmetic import HALF, Digits, add, carry, cut, regrid
from byhand.numbers.enclosed.limbs.digits import BASE, WIDTH
from byhand.numbers.enclosed.limbs.engine import engine_of
from byhand.numbers.enclosed.limbs.moduli import (
    BELOW,
    CHECKED,
    DEEPEST,
    HIGHEST,
    LEFT_OUT,
    MODULI,
    count_for,
    powers,
    way_back,
)
from byhand.numbers.enclosed.limbs.radii import plus

Array = Any

ALIGNED = 128  # rows of residues are padded with zeros to a multiple of this
PIECE = 1 << 26  # entries whose limbs are made at a time, and whose results are
DEARER = 24  # moduli for each limb of x from which slices cost less


class WrongResidues(ByhandError):
    """The error for residues that belong to no product: a kernel or the machine is broken."""


def padded(inputs: int) -> int:
    """The length of a row of residues."""
    return -(-inputs // ALIGNED) * ALIGNED


def residues(limbs: Array, first: int, last: int, out: Array) -> None:
    """out (moduli, rows, padded inputs) = residues of limbs (n, rows, inputs) by some moduli."""
    table = residue_kernels.constant(powers(len(limbs))[first:last], limbs)
    if residue_kernels.residues(limbs, table, MODULI[first:last], out):
        return
    inputs = limbs.shape[-1]
    out[..., inputs:] = 0
    for i, modulus in enumerate(MODULI[first:last]):
        total = torch.zeros_like(limbs[0])
        for limb, power in zip(limbs, table[i], strict=True):
            total += limb * power  # integers, at most 40·2^21·127: exact
        out[i, :, :inputs] = (total - modulus * torch.round(total / modulus)).to(torch.int8)


def empty_residues(count: int, rows: int, inputs: int, like: Array) -> Array:
    """Room for residues."""
    return torch.empty((count, rows, padded(inputs)), dtype=torch.int8, device=like.device)


def multiplied(x: Array, w: Array, inverses: Any) -> Array:
    """(moduli, rows, outputs): c_i of the products of the residues of rows and weights."""
    made = residue_kernels.multiplied(x, w, MODULI[: len(x)], inverses)
    if made is not None:
        return made
    made = torch.empty((len(x), x.shape[1], w.shape[1]), dtype=torch.int8, device=x.device)
    for i, (modulus, inverse) in enumerate(zip(MODULI, inverses, strict=False)):
        if i == len(x):
            break
        sums = _integer_product(x[i], w[i])
        rest = sums - modulus * torch.round(sums / modulus)
        rest *= inverse
        made[i] = (rest - modulus * torch.round(rest / modulus)).to(torch.int8)
    return made


def _integer_product(x: Array, w: Array) -> Array:
    """x·wᵀ of int8 matrices, exactly, as float64."""
    if x.is_cuda and x.shape[0] > 16 and w.shape[0] % 8 == 0:
        return torch._int_mm(x, w.T).double()
    return x.double() @ w.double().T  # integers below 2^31


class ResidueMatrix:
    """A weight (outputs, inputs) of floats as residues: integers times 2^low."""

    def __init__(self, floats: Array, top: int, low: int) -> None:
        self.outputs, self.inputs = map(int, floats.shape)
        self.top, self.low = top, low
        self._floats = floats
        self._kept: Array | None = None

    def product(
        self, x: Digits, low: int, bias: Digits | None, largest: float
    ) -> tuple[Digits, float] | None:
        """x·Wᵀ + bias on the grid 2^low, or on its own coarser one, and a bound of its error.

        `largest` bounds the sizes of the product and of the result.  None: slices are to be used.
        Where all moduli together are too few, x is taken in two parts, its first limbs and the
        others: those are below 2^top in size, and so is each weight.
        """
        made = self._at_once(x, low, bias, largest)
        if made is not None or x.n < 2 or not 0.0 < largest < 2.0**400:
            return made
        half = x.n // 2
        first = Digits(x.limbs[:half], x.top)
        rest = Digits(x.limbs[half:], x.top - WIDTH * half)
        if not -900 < rest.top + self.top < 400:
            return None
        least = self.inputs * math.ldexp(1.0, rest.top + self.top)
        one = self._at_once(first, low - 2, bias, (largest + least) * (1 + 2.0**-40))
        other = self._at_once(rest, low - 2, None, least)
        if one is None or other is None:
            return None
        whole, error = add(one[0], other[0]), plus(one[1], other[1])
        if whole.low < low:
            whole, error = regrid(whole, low=low), plus(error, HALF * math.ldexp(1.0, low))
        return whole, error

    def _at_once(
        self, x: Digits, low: int, bias: Digits | None, largest: float
    ) -> tuple[Digits, float] | None:
        """The same without parts; None where there are too few moduli."""
        own = x.low + self.low
        low = max(low, own)
        raised = largest * (1 + 2.0**-20)
        if not 0.0 < raised < 2.0**400 or own < -600 or self.inputs > DEEPEST:
            return None
        exponent = math.frexp(raised)[1]
        limbs = max(1, -(-(exponent + 2 - low) // WIDTH))
        moduli = count_for(int(math.ldexp(raised, -own)) + 1)
        if moduli is None or limbs > HIGHEST or x.n > HIGHEST or moduli > DEARER * x.n:
            return None
        limbs_made, error = self._multiplied(x, low, limbs, moduli, bias)
        return Digits(limbs_made, low + WIDTH * limbs), error

    def _multiplied(
        self, x: Digits, low: int, count: int, moduli: int, bias: Digits | None
    ) -> tuple[Array, float]:
        """The limbs, `count` of them; the result is below 2^(low + 22·count - 2) in size."""
        rows, inputs = x.shape
        below = low - (x.low + self.low)
        back = way_back(moduli, count, below)
        own = empty_residues(moduli, rows, inputs, x.limbs)
        residues(x.limbs, 0, moduli, own)
        error = (HALF + LEFT_OUT) * math.ldexp(1.0, low) if below > 0 else 0.0
        added = None
        if bias is not None:
            added = regrid(bias, low + WIDTH * count, low - WIDTH * BELOW).limbs
            if bias.low < low:
                error = (HALF + 2 * LEFT_OUT) * math.ldexp(1.0, low)
        made, furthest = [], []
        for start, others in self._pieces(moduli, rows):
            found = multiplied(own, others, back.inverses)
            part = None if added is None else added[:, start : start + others.shape[1]]
            limbs, away = limbs_of(found, back, count, part)
            made.append(limbs)
            furthest.append(away)
        self._assure(x.engine, furthest)
        return (made[0] if len(made) == 1 else torch.cat(made, 2)), error

    @staticmethod
    def _assure(engine: Any, furthest: list[Array]) -> None:
        """Raises an error where residues belong to no product."""

        def widened(value: float, room: float) -> float:
            return max(value, CHECKED)

        (away,) = engine.bounds(torch.stack(furthest).amax(0, keepdim=True), widened)
        if not away <= CHECKED:
            raise WrongResidues(
                _("a product of matrices is wrong: its residues do not agree"),
                expected=_("exact int8 products"),
                hint="byhand selftest",
            )

    def _pieces(self, moduli: int, rows: int) -> Iterator[tuple[int, Array]]:
        """(first output, residues) for some outputs after others."""
        step = max(1, PIECE // max(1, rows))
        if self._kept is None or len(self._kept) < moduli:
            self._keep(moduli)
        if self._kept is None:
            step = min(step, max(1, PIECE // self.inputs))
        for start in range(0, self.outputs, step):
            stop = min(start + step, self.outputs)
            if self._kept is not None:
                whole = start == 0 and stop == self.outputs
                kept = self._kept[:moduli]
                yield start, kept if whole else kept[:, start:stop].contiguous()
            else:
                yield start, self._made(0, moduli, start, stop)

    def _keep(self, moduli: int) -> None:
        """Keeps the residues by so many moduli, where there is memory for them."""
        before = 0 if self._kept is None else len(self._kept)
        size = (moduli - before) * self.outputs * padded(self.inputs)
        if not self._floats.is_cpu and not _memory.grant(self._floats.device, size):
            self._kept = None
            return

        def make() -> Array:
            made = empty_residues(moduli, self.outputs, self.inputs, self._floats)
            if self._kept is not None:
                made[:before] = self._kept
            step = max(1, PIECE // self.inputs)
            for start in range(0, self.outputs, step):
                stop = min(start + step, self.outputs)
                residues(self._limbs(start, stop), before, moduli, made[before:, start:stop])
            return made

        self._kept = outside_the_pass(make)

    def _made(self, first: int, last: int, start: int, stop: int) -> Array:
        out = empty_residues(last - first, stop - start, self.inputs, self._floats)
        residues(self._limbs(start, stop), first, last, out)
        return out

    def _limbs(self, start: int, stop: int) -> Array:
        """The limbs of some outputs' weights: exact."""
        rows = self._floats[start:stop]
        return cut(engine_of(rows).floats(rows), self.top, self.low).limbs


class _Memory:
    """What the kept residues of a device take together: at most a part of its memory."""

    part = 0.45

    def __init__(self) -> None:
        self.taken: dict[Any, int] = {}

    def grant(self, device: Any, size: int) -> bool:
        """Whether there is room; if so, it is taken."""
        most = self.part * torch.cuda.get_device_properties(device).total_memory
        if self.taken.get(device, 0) + size > most:
            return False
        self.taken[device] = self.taken.get(device, 0) + size
        return True


_memory = _Memory()


def limbs_of(found: Array, back: Any, count: int, bias: Array | None) -> tuple[Array, Array]:
    """The limbs (count, rows, outputs) of these c_i, and the largest |Σ c_i/m_i - k|."""
    shares = residue_kernels.constant(back.shares, found)
    whole = residue_kernels.constant(back.whole, found)
    made = residue_kernels.limbs_of(found, back.moduli, shares, whole, count, bias)
    if made is not None:
        return made
    floats = found.double()
    part = torch.zeros_like(floats[0])
    limbs = part.new_zeros((count + BELOW, *part.shape))
    for i, modulus in enumerate(back.moduli):
        part += floats[i] * (1.0 / modulus)
        for place in range(count + BELOW):
            limbs[place] += floats[i] * shares[i, place]  # integers below 2^36
    whole_times = torch.round(part)
    away = (part - whole_times).abs().amax()
    for place in range(count + BELOW):
        limbs[place] -= whole_times * whole[place]
    if bias is not None:
        limbs += bias[:, None]
    carry(limbs)
    limbs[0] -= BASE * torch.round(limbs[0] / BASE)
    return limbs[:count], away
