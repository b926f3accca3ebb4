"""Random dumps of random small models, and an independent reading of every line.

A dump is a float pass of which some steps are claimed, and some of those spoiled; the rest of the
pass goes on from the spoiled value or from the true one.  So of each claimed line it is known
whether a correct implementation made it from the lines above.  `Reading` works each entry out of
the claimed entries above it in Arb, from the formulas alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
from flint import arb, ctx

from byhand.checking.claims import Claim, ClaimedText
from byhand.checking.regions import nearest_claimed
from byhand.evaluate import work_out
from byhand.model import Model
from byhand.numbers.base import ABSENT
from byhand.numbers.floats import Floats
from byhand.plan import Plan
from byhand.tokens import Vocabulary
from byhand.weights import Tensor, Weights
from byhand.worked import Worked
from oracles.arb_pass import BITS, ArbPass
from oracles.architectures import at_random, make_case, wishing

FORMATS = ("float64", "float32", "float32", "bfloat16", "float16")
KINDS = ("right", "one", "several", "sparse", "nan", "ids")
SIZES = (1e-4, 1e-2, 1.0, 100.0)  # of what is spoiled, against the numbers themselves


@dataclass
class Dump:
    """What somebody claims of a pass, and which of it is known to be no honest work."""

    model: Model
    text: ClaimedText
    format: str
    kind: str
    plan: Plan
    spoiled: set[str] = field(default_factory=set)  # lines that do not come from those above
    described: str = ""


def random_model(seed: int) -> tuple[Model, Any]:
    """A small model of any architecture, and the case it was made of."""
    wishes = {"vocab": 3, "extra mask": False, "layers": 1 + seed % 2, "length": 3}
    case = make_case(wishing(wishes, at_random(Random(seed))), seed, largest=4, entry=_sixteenth)
    weights = Weights({name: Tensor(name, _rational(each.data))
                       for name, each in case.weights.items()})  # fmt: skip
    vocabulary = Vocabulary(tuple("abc"[: case.spec.vocab]), "words")
    return Model(case.spec, weights, vocabulary), case


def _rational(data: Any) -> Any:
    """The same without irrational entries: the slopes of ALiBi have one."""
    new = data.copy()
    for index, entry in np.ndenumerate(data):
        if not isinstance(entry, Fraction) and entry is not ABSENT:
            new[index] = Fraction(9, 4)
    return new


def _sixteenth(random: Random) -> Fraction:
    """A weight that every format holds, so that casting it changes nothing."""
    return Fraction(random.randint(-24, 24), 16)


def random_dump(model: Model, case: Any, seed: int) -> Dump:
    """A dump of a kind that follows from the seed."""
    random, noise = Random(seed), np.random.default_rng(seed)
    kind, format = KINDS[seed % len(KINDS)], random.choice(FORMATS)
    text = ClaimedText("", case.tokens, (), target=case.target, positions=case.positions)
    plan = _plan(model, text)
    steps = [step.address for step in plan if step.op not in ("given", "argmax")]
    few = kind in ("sparse", "ids")
    share = random.choice((0.1, 0.25)) if few else random.choice((0.3, 0.7, 1.0))
    claimed = [address for address in steps if random.random() < share] or [steps[-1]]
    count = {"one": 1, "several": 3, "nan": 1, "sparse": random.choice((0, 1, 2))}.get(kind, 0)
    targets = set(random.sample(claimed, min(count, len(claimed))))
    carried = random.random() < 0.5
    size = random.choice(SIZES)

    def spoil(value: Any) -> Any:
        typical = float(np.sqrt(np.mean(np.square(value.astype(np.float64))))) or 1.0
        if kind == "nan":
            value = value.copy()
            value.flat[0] = np.nan  # the first is never masked
            return value
        more = noise.normal(size=value.shape) * typical * size
        return (value.astype(np.float64) + more).astype(value.dtype)

    values, made = _worked(model, text, plan, format, spoil, targets, carried)
    claims = [_claim(address, values[address], format) for address in claimed]
    wrong = set(targets)
    if not carried:  # who reads a spoiled line went on from another one
        above = nearest_claimed(plan, claimed)
        wrong |= {address for address in claimed if above[address] & targets}
    if kind == "ids" or random.random() < 0.3:
        ids = np.array([prediction.id or 0 for prediction in made])
        if random.random() < 0.6:
            ids = (ids + noise.integers(0, 2, size=ids.shape)) % model.spec.vocab
        claims.append(_claim("next", ids.astype(np.float64), None))
        wrong.add("next")  # whoever says it: the reading decides
    said = f"{kind} {format} {'carried' if carried else 'apart'} ×{size:g} {sorted(targets)}"
    return Dump(model, replace(text, claims=tuple(claims)), format, kind, plan, wrong, said)


def _plan(model: Model, text: ClaimedText) -> Plan:
    from byhand import forward

    return forward.plan(model.spec, len(text.tokens), positions=text.positions, target=True)


def _worked(
    model: Model,
    text: ClaimedText,
    plan: Plan,
    format: str,
    spoil: Any,
    targets: set[str],
    carried: bool,
) -> tuple[Mapping[str, Any], Any]:
    """The claimed values of every step, and the next tokens."""
    said: dict[str, Any] = {}

    def revise(worked: Worked) -> Worked:
        if worked.address not in targets:
            return worked
        value = worked.value
        whole = np.ma.getdata(value)
        data = np.where(np.ma.getmaskarray(value), whole, spoil(whole))
        said[worked.address] = data
        if not carried:
            return worked
        new = np.ma.MaskedArray(data, value.mask) if np.ma.isMaskedArray(value) else data
        return Worked(worked.step, new, worked.numbers, worked.notes)

    with np.errstate(all="ignore"):
        steps = work_out(plan, model.weights, text.tokens, Floats(format), target=text.target,
                         revise=revise)  # fmt: skip
    made = steps["next"].value
    for address, worked in steps.items():
        if address not in said and plan[address].op not in ("given", "argmax"):
            said[address] = np.ma.getdata(worked.value)
    return said, made


def _claim(address: str, value: Any, format: str | None) -> Claim:
    return Claim(address, (), np.asarray(value, dtype=np.float64), address, address, format=format)


class Reading(ArbPass):
    """What each line gives from the claimed lines above it: entries on demand, as balls.

    None where an entry is masked or where what it is made of is not a number.
    """

    def __init__(self, dump: Dump) -> None:
        super().__init__(dump.plan.only(["tokens"]), dump.model.weights, dump.text.tokens)
        from byhand.working import Working

        self.plan = dump.plan
        ids = {"tokens": dump.text.tokens, "target": dump.text.target}
        self.working = Working(self.plan, ids, self.absent)
        self.claims = {claim.address: claim.values for claim in dump.text.claims}
        self.memory: dict[tuple[str, tuple[int, ...]], arb | None] = {}

    def line(self, address: str, index: tuple[int, ...]) -> arb | None:
        """One entry, from the lines above."""
        with ctx.workprec(BITS):
            try:
                found = self.entry(address, index)
            except _NotANumber:
                return None
        return None if found is None or not found.is_finite() else found

    def leaf(self, name: Any) -> arb:
        address, index = getattr(name, "address", None), getattr(name, "index", ())
        if address is None or address.startswith("weight."):
            return super().leaf(name)
        if address in self.claims:
            value = self.claims[address][index]
            if not np.isfinite(value):
                raise _NotANumber
            return arb(float(value))
        if (address, index) not in self.memory:
            self.memory[address, index] = self.entry(address, index)
        found = self.memory[address, index]
        assert found is not None, f"{name} is masked and yet read"
        return found


class _NotANumber(Exception):
    """A line above holds what is not a number."""
