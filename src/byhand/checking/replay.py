"""The plan worked out in ranges, with claims replacing its values line by line.

`Replay` is the one pass that judging needs.  After each step, claimed entries replace the
worked-out ones, so later steps continue from what the claimant wrote.  Steps without claims are
bridged: their ranges are used as they are.  Without claims the same pass gives the true values.
With an edited plan, from the lines above one line, it tries a suspect.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from byhand.checking.claims import Claim, ClaimedText, Floats
from byhand.checking.going_on import anything, carried, seen, unmasked, widened
from byhand.checking.ids import judge_ids
from byhand.checking.matches.plans import plan_for
from byhand.checking.regions import Region, complete, nearest_claimed, region
from byhand.errors import InputError, nearest
from byhand.evaluate import Admitted, Progress, pencil_sized, work_out
from byhand.language import _
from byhand.model import Model
from byhand.numbers.allowed import PRECISIONS, Allowed, Judged, Precision, Range, precision
from byhand.numbers.base import Numbers, Prediction
from byhand.numbers.floats.formats import FORMATS
from byhand.optimizer import BEFORE
from byhand.plan import SCORES, WEIGHT, Plan, Step
from byhand.worked import Missing, Worked

EXACT = "exact"
DECIMALS = "decimals:"
MOST_PLACES = 15
ROUGHLY = 1 / 2  # share of a rough bound (an eighth is our own error) within which a line follows
USUAL = 3.0  # × the usual rounding error: up to here our own need not be removed
FINE = (EXACT, "float64", "transformers:float64")  # too fine for float32 products
IDS = ("tokens", "source", "next", "target", "targets")  # steps whose entries are token ids
SHARES = re.compile(
    r"(encoder\.)?block\.\d+\.(attn|cross)\.weights|grad\.(encoder\.)?block\.\d+\.(attn|cross)\.scores"
)


@dataclass(frozen=True)
class Rounding:
    """The claimant's rounding: a class of implementations, or decimals on every line."""

    name: str
    precision: Precision
    half_unit: float = 0.0  # half a unit of the decimals that every line is rounded to

    @property
    def rounds(self) -> bool:
        """Whether the implementations round; handwritten decimals are as precise as written."""
        return self.precision.name != EXACT

    @classmethod
    def named(cls, name: str) -> Rounding:
        """The rounding of this name: a precision, or `decimals:2`."""
        if name.partition("+")[0] in PRECISIONS:
            return cls(name, precision(name))
        places = name.removeprefix(DECIMALS)
        if name == places or not places.isdecimal() or int(places) > MOST_PLACES:
            known = (*PRECISIONS, f"{DECIMALS}2")
            raise InputError(
                _("there is no precision {name}").format(name=repr(name)),
                expected=", ".join(known),
                found=name,
                hint=nearest(name.lower(), known),
            )
        return cls(name, precision(EXACT), 0.5 * 10.0 ** -int(places))


@dataclass(frozen=True)
class Line:
    """A claim as it is judged: its numbers as float64, and their slack."""

    claim: Claim
    values: Floats
    slack: Floats | float

    @classmethod
    def of(cls, claim: Claim, rounding: Rounding) -> Line:
        """The claim with float64 values and the slack of its format and rounding."""
        values = np.asarray(claim.values).astype(np.float64)
        slack = claim.slack
        if not claim.by_hand:
            slack = slack + rounding.half_unit + _stored(claim.format, values, rounding)
        return cls(claim, values, slack)


def _stored(format: str | None, values: Floats, rounding: Rounding) -> Floats | float:
    """Half a unit of the claim's format, where that is narrower than the precision."""
    form = FORMATS.get(format or "")
    own = FORMATS.get(rounding.precision.format)
    if form is None or own is None or form.bits >= own.bits:
        return 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        slack: Floats = np.abs(values) * 2.0**-form.bits + 2.0 ** (form.least - form.bits)
    return slack


@dataclass
class Replay:
    """The claims about one text and the passes that judge them."""

    model: Model
    text: ClaimedText
    rounding: Rounding
    numbers: Allowed
    weights: Admitted
    lines: Mapping[str, Sequence[Line]]  # by the address of their step
    progress: Progress | None = None
    gaps_rounded: bool = False  # what a partly claimed step leaves out was rounded as well
    _true: dict[str, Worked] = field(default_factory=dict)
    _carried: dict[str, Range] = field(default_factory=dict)  # what later steps read

    @classmethod
    def of(
        cls,
        model: Model,
        text: ClaimedText,
        rounding: Rounding,
        *,
        like: Replay | None = None,
        progress: Progress | None = None,
        gaps_rounded: bool = False,
    ) -> Replay:
        """The replay of a text; `like` is a replay of the same model whose weights are reused."""
        from byhand.checking.suspects import Mistaken

        if like is not None and like.rounding == rounding:
            numbers, weights = like.numbers, like.weights
        else:
            numbers = Mistaken(rounding.precision)
            weights = Admitted(model.weights, numbers)
        lines: dict[str, list[Line]] = defaultdict(list)
        for claim in text.claims:
            lines[claim.address].append(Line.of(claim, rounding))
        numbers.texts = max(1, len(text.lengths))
        replay = cls(model, text, rounding, numbers, weights, lines, progress, gaps_rounded)
        for address in filter(SHARES.fullmatch, tuple(lines)):
            lines[address] = [_unseen_as_zero(line, replay.plan) for line in lines[address]]
        return replay

    @cached_property
    def plan(self) -> Plan:
        """The whole plan of the text."""
        return plan_for(self.text, self.model)

    @cached_property
    def claimed(self) -> tuple[str, ...]:
        """The claimed steps, in spine order."""
        return tuple(step.address for step in self.plan if step.address in self.lines)

    @cached_property
    def complete(self) -> frozenset[str]:
        """The steps whose entries are all claimed, so that the steps before them are not needed."""
        return frozenset(
            address for address in self.claimed
            if address not in IDS
            and complete(self.plan[address], [line.claim for line in self.lines[address]])
        )  # fmt: skip

    @cached_property
    def not_finite(self) -> frozenset[str]:
        """The steps whose claims hold infinities or NaN."""
        return frozenset(
            address
            for address, lines in self.lines.items()
            if not all(_finite(line, self.plan[address]) for line in lines)
        )

    @cached_property
    def above(self) -> dict[str, frozenset[str]]:
        """For each step, the nearest claimed steps that it is worked out from."""
        return nearest_claimed(self.plan, self.claimed)

    def broken(self, address: str) -> frozenset[str]:
        """The nearest claimed steps above a step that hold infinities or NaN."""
        return self.above[address] & self.not_finite

    # ------------------------------------------------------------------- the passes

    def judge(self, judged: Callable[[Line, Judged | Missing], None]) -> None:
        """Works out the claimed steps, each from the lines above it, and reports each claim.

        Given lines are not judged: the student did not write them.
        """

        def revise(worked: Worked) -> Worked:
            lines = [line for line in self.lines.get(worked.address, ()) if not line.claim.given
                     and not worked.address.startswith(BEFORE)]  # fmt: skip
            found = [self.judged(worked, line) for line in lines]
            if self.numbers.rough and any(map(_close, found)):
                self.numbers.rough = False
                found = [self.judged(self.try_edit(self.plan, worked.address), line)
                         for line in lines]  # fmt: skip
            for line, each in zip(lines, found, strict=True):
                judged(line, each)
            return self._overlaid(worked)

        def before(step: Step) -> None:
            # of a step that is claimed as a whole nothing goes on but the claims: rough numbers
            # will do, unless a claim comes near to what is allowed
            rough = step.op == "linear" and step.address in self.complete
            self.numbers.rough = rough and self.rounding.name not in FINE
            if self.progress:
                self.progress(step)

        try:
            self._work(self.plan.only(self.claimed), revise=revise, progress=before)
        finally:
            self.numbers.rough = False

    def true(self, addresses: Iterable[str]) -> Mapping[str, Worked]:
        """The true values of these steps, whatever the claims say."""
        wanted = [address for address in addresses if address not in self._true]
        if wanted:
            self._true |= self._work(self.plan.only(wanted), keep=wanted)
        return self._true

    @cached_property
    def exact_tokens(self) -> Sequence[Prediction]:
        """The true next tokens in exact numbers, which prove ties; none for too large a model."""
        if not pencil_sized(self.model):
            return ()
        worked = self.exactly(["next"])["next"]
        return () if worked.missing else worked.value

    def exactly(self, wanted: Sequence[str]) -> dict[str, Worked]:
        """Steps of the model in exact numbers, whatever the claims say."""
        from byhand.numbers.exact import Exact

        return self.worked_in(Exact(), wanted)

    def worked_in(self, numbers: Numbers, wanted: Sequence[str]) -> dict[str, Worked]:
        """Steps of the model in other numbers, whatever the claims say."""
        return work_out(
            self.plan.only(wanted),
            self.model.weights,
            self.text.tokens,
            numbers,
            target=self.text.target,
            targets=self.text.targets,
            source=self._source,
            given=self._before(self.plan.only(wanted)) or None,
            keep=wanted,
        )

    def try_edit(self, edited: Plan, target: str) -> Worked:
        """The value of an edited plan at a step, from the claimed lines above it."""
        above = self.complete - {target}
        known = [address for address in above if address in edited.known]
        plan = edited.only([target], given=known)
        given = {step.address for step in plan} & above
        values = {address: self.from_claims(edited[address]) for address in given}

        def revise(worked: Worked) -> Worked:
            if worked.address == target or worked.address in given:
                return worked
            return self._overlaid(worked)

        try:
            steps = self._work(plan, given=values, revise=revise, keep=(target,))
        except (ArithmeticError, LookupError, ValueError) as error:  # an edit that does not fit
            if edited is self.plan:
                raise
            raise InputError(_("the edited plan cannot be worked out"), found=str(error)) from error
        return steps[target]

    def region(self, claim: Claim) -> Region:
        """The region between a claim and the claimed lines above it."""
        claims = {address: [line.claim for line in lines] for address, lines in self.lines.items()}
        return region(self.plan, claims, claim.address, claim.index)

    def bridged(self, claim: Claim) -> int:
        """The number of unclaimed steps between a claim and the claimed lines above it."""
        reads = (read for read in self.plan[claim.address].reads if not read.startswith(WEIGHT))
        if all(read in self.complete or read in IDS for read in reads):
            return 0
        return len(self.region(claim).steps) - 1

    def judged(self, worked: Worked, line: Line) -> Judged | Missing:
        """The judgement on one claim, from the value worked out for its step."""
        if worked.missing is not None:
            return worked.missing
        if worked.address in IDS:
            return judge_ids(worked.value, line)
        claim = line.claim
        return self.numbers.judge(worked.value, claim.index, line.values, line.slack, claim.claimed)

    def _work(
        self,
        plan: Plan,
        *,
        given: Mapping[str, Worked] | None = None,
        revise: Callable[[Worked], Worked] | None = None,
        keep: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> dict[str, Worked]:
        return work_out(
            plan,
            self.weights,
            self.text.tokens,
            self.numbers,
            target=self.text.target,
            targets=self.text.targets,
            source=self._source,
            given={**self._before(plan), **(given or {})},
            progress=progress or self.progress,
            keep=keep,
            revise=revise,
        )

    @property
    def _source(self) -> tuple[int, ...] | None:
        return None if self.text.source is None else self.text.source.tokens

    def _before(self, plan: Plan) -> dict[str, Worked]:
        """What the optimizer kept from the step before, as the claims give it."""
        steps = (step for step in plan if step.address.startswith(BEFORE))
        return {step.address: self.from_claims(step) for step in steps}

    # ------------------------------------------------------------------- claims over values

    def _overlaid(self, worked: Worked) -> Worked:
        if worked.step.op in ("given", "argmax") or worked.address in IDS:
            return worked  # tokens: an edit may have given them another address
        lines = self.lines.get(worked.address, ())
        value = worked.value
        if worked.missing is not None:
            if not lines:
                return worked
            value = anything(worked.step)
        if worked.address in self.complete:
            value = unmasked(value)
        elif self.rounding.half_unit and (self.gaps_rounded or not lines):
            value = widened(value, self.rounding.half_unit)
        value = self._laid_over(value, lines)
        if worked.address in self.complete and any(np.any(line.slack) for line in lines):
            self._carried.setdefault(worked.address, value)
        return Worked(worked.step, value, self.numbers, worked.notes)

    def from_claims(self, step: Step) -> Worked:
        """A step whose entries are all claimed, with the values of the claims."""
        value = self._carried.get(step.address)
        if value is None:
            value = self._laid_over(anything(step), self.lines.get(step.address, ()))
        return Worked(step, value, self.numbers)

    def _laid_over(self, value: Range, lines: Iterable[Line]) -> Range:
        for line in lines:
            claim = line.claim
            values, slack = carried(value, claim.index, line.values, line.slack)
            value = self.numbers.overlay(value, claim.index, values, slack, claim.claimed)
        return value


def _close(judged: Judged | Missing) -> bool:
    """Whether a claim is so near to a rough bound that it needs a better one."""
    if isinstance(judged, Missing):
        return False
    return judged.share > ROUGHLY or (judged.times is not None and judged.times > USUAL)


def _finite(line: Line, step: Step) -> bool:
    """Whether all numbers are finite; masked scores may be anything."""
    with np.errstate(invalid="ignore", over="ignore"):  # the sum is a faster test
        if np.isfinite(line.values.sum()):
            return True
    number = np.isfinite(line.values)
    if step.op in SCORES:
        number = number | ~seen(step)[line.claim.index]
    return bool(number.all())


def _unseen_as_zero(line: Line, plan: Plan) -> Line:
    """The line with 0 at masked attention weights, where some programs have NaN."""
    step = plan[line.claim.address]
    softmax = plan[step.inputs["weights"]] if step.op == "softmax_back" else step
    shown = seen(plan[softmax.inputs["x"]])[line.claim.index]
    blank = np.isnan(line.values) & ~shown
    return replace(line, values=np.where(blank, 0.0, line.values)) if blank.any() else line
