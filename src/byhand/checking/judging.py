"""From claims to verdicts: whether each line follows from the lines above, and whether it is true.

    judge_text(model, claimed text)  →  MarkedText

A first pass judges every line from the lines above it: it follows, it does not follow, or it is
undecided.  If all lines follow, all are right: a correct implementation may give each of them.
Otherwise a second pass works out the true values, and suspects are tried on the wrong lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from byhand.address import write_index
from byhand.checking.by_pencil import ByPencil
from byhand.checking.causes import Form, together, with_causes
from byhand.checking.claims import DIRECTION, Claim, ClaimedText, Truths
from byhand.checking.counts import mark_counts
from byhand.checking.directions import mark_directions
from byhand.checking.entries import furthest, not_read, why_missing
from byhand.checking.gaps.asking import halving
from byhand.checking.ids import are_next
from byhand.checking.openness import almost_anything, known_to_be_near, usual_says_nothing
from byhand.checking.precisions import usual_precision
from byhand.checking.replay import EXACT, IDS, Line, Replay, Rounding
from byhand.checking.standing_claims import apart, mark_standings
from byhand.checking.surroundings import Surroundings
from byhand.checking.ties import Ties
from byhand.checking.verdicts import Marked, MarkedText, Verdict
from byhand.checking.weights import mark_weights
from byhand.evaluate import Progress
from byhand.language import _
from byhand.model import Model
from byhand.numbers.allowed import Judged, Range
from byhand.plan import WEIGHT
from byhand.worked import Missing

UNUSUAL = 6.0  # × the usual rounding error: correct runs stay below it, also from the text on
FAR = 32.0  # × the usual rounding error: beyond it the worst-case bound is no evidence
COUNT = "count."
MOST_SHOWN = 8  # worst entries listed for a line


def judge_text(
    model: Model,
    text: ClaimedText,
    precision: str | None = None,
    *,
    suspects: bool = True,
    like: Replay | None = None,
    progress: Progress | None = None,
    gaps_rounded: bool = False,
    others: Sequence[ClaimedText] = (),
    known: Sequence[Form] = (),
) -> tuple[MarkedText, Replay]:
    """Every claim about a text with its verdict, in spine order; and the replay, for reuse.

    With `gaps_rounded`, the entries that a partly claimed step leaves out were rounded as well.
    `others` are the other texts of a batch, `known` the mistakes that were found in them.
    """
    rounding = Rounding.named(precision or text.precision or usual_precision(text.claims))
    stood, told = apart(text.claims)
    counts, weights, directions, steps = _sorted(told)
    replay = Replay.of(
        model,
        replace(text, claims=steps),
        rounding,
        like=like,
        progress=progress,
        gaps_rounded=gaps_rounded or rounding.half_unit > 0,
    )
    lines = [
        *mark_counts(counts, model),
        *mark_weights(weights, model),
        *mark_directions(directions, model, _values(replay)),
        *mark_standings(stood, replay),
        *_Judge(replay).marked(suspects=suspects, others=others, known=known),
    ]
    lines = [not_read(line) if line.claim.unread else line for line in lines]
    name = _precision_name(rounding, text.claims)
    marked = MarkedText(
        text.text, text.tokens, name, tuple(lines), text.unmatched, text.label, text.marks,
        text.readings, text.source, text.segments,
    )  # fmt: skip
    return marked, replay


def _precision_name(rounding: Rounding, claims: Sequence[Claim]) -> str:
    """The name of the precision in the report; handwritten decimals are as precise as written."""
    if rounding.name == EXACT and all(claim.by_hand for claim in claims):
        return "as written"
    return rounding.name


def _sorted(
    claims: Sequence[Claim],
) -> tuple[tuple[Claim, ...], tuple[Claim, ...], tuple[Claim, ...], tuple[Claim, ...]]:
    """The claims about counts, weights, directions and steps."""
    parts: tuple[list[Claim], ...] = ([], [], [], [])
    for claim in claims:
        if claim.address.startswith(COUNT):
            parts[0].append(claim)
        elif claim.kind == DIRECTION:
            parts[2].append(claim)
        elif claim.address.startswith(WEIGHT):
            parts[1].append(claim)
        else:
            parts[3].append(claim)
    counts, weights, directions, steps = map(tuple, parts)
    return counts, weights, directions, steps


def _values(replay: Replay) -> Callable[[str], Range | Missing]:
    """A function from an address to its true value, for claims about directions."""

    def value(address: str) -> Range | Missing:
        if address.startswith(WEIGHT):
            name = address.removeprefix(WEIGHT)
            if replay.weights.unknown(name):
                return Missing("unknown", address)
            admitted: Range = replay.weights[name]
            return admitted
        worked = replay.true([address])[address]
        return worked.missing or worked.value

    return value


@dataclass
class _Local:
    """The first pass's result for one line: it follows, it does not, or why it is undecided."""

    line: Line
    judged: Judged | Missing
    follows: bool | None
    reason: str = ""
    blank: bool = False
    tied: str = ""  # experts with equal scores among which it chooses, in words
    above: Sequence[_Local] = ()  # the lines it is judged from, if one of them is in doubt
    doubtful: bool = False  # it does not follow, is undecided, or comes after such a line
    astray: bool = False  # it is wrong, or is judged from a wrong line
    after_error: bool = False  # an error lies somewhere above it

    @property
    def in_doubt(self) -> bool:
        return not self.follows and not self.blank


class _Judge:
    """The verdicts on the claims about steps."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self.order = {address: place for place, address in enumerate(replay.claimed)}
        self.found: dict[str, list[_Local]] = {}
        self.ties = Ties(replay)
        self.pencil = ByPencil(replay)

    def marked(
        self, *, suspects: bool, others: Sequence[ClaimedText] = (), known: Sequence[Form] = ()
    ) -> list[Marked]:
        """Every line with its verdict, in spine order."""

        def note(line: Line, judged: Judged | Missing) -> None:
            self.found.setdefault(line.claim.address, []).append(self._local(line, judged))

        self.replay.judge(note)
        self._ask_for_the_truth()
        lines = [
            self._mark(address, local)
            for address, locals_ in self.found.items()
            for local in locals_
        ]
        lines = self._with_causes(lines, others, known) if suspects else lines
        return self._with_a_step_to_dump(lines)

    def _with_a_step_to_dump(self, lines: list[Marked]) -> list[Marked]:
        """The lines; the first that cannot be judged for a gap asks for a step in that gap."""
        for place, line in enumerate(lines):
            open_ = line.verdict is Verdict.UNJUDGED and line.times is not None
            if open_ and self.replay.rounding.rounds and self.replay.bridged(line.claim):
                step = line.ask or halving(self.replay.region(line.claim).steps)
                asked = None if line.suspects else step
                return [*lines[:place], replace(line, ask=asked), *lines[place + 1 :]]
        return lines

    # ------------------------------------------------------------------- from the lines above

    def _local(self, line: Line, judged: Judged | Missing) -> _Local:
        claimed = line.claim.claimed
        if claimed is not None and not claimed.any():
            return _Local(line, judged, None, _("left blank"), blank=True)
        if isinstance(judged, Missing):
            return _Local(line, judged, None, why_missing(judged))
        if self._follow(self.replay.above[line.claim.address]):
            judged = _without_nan(judged, line)
        judged, tied = self.ties.settled(line, judged)
        reason = "" if judged.follows is False else self._why_open(line, judged)
        return _Local(line, judged, None if reason else judged.follows, reason, tied=tied)

    def _follow(self, addresses: Iterable[str]) -> bool:
        """Whether the lines at these addresses were judged, follow and hold finite numbers."""
        return not any(
            address in self.replay.not_finite
            or any(local.in_doubt for local in self.found.get(address, ()))
            for address in addresses
        )

    def _why_open(self, line: Line, judged: Judged) -> str:
        """Why it is undecided whether the claim follows; empty where it is decided."""
        address = line.claim.address
        broken = self.replay.broken(address)
        if address in IDS and (judged.open is None or not broken):
            return "" if judged.open is None else self._why_open_ids(line, judged)
        if judged.open is not None and self.replay.plan[address].op == "choose":
            return _("rounding leaves open which experts have the largest scores")
        bridged = self.replay.bridged(line.claim)
        anything = judged.open
        if anything is None and (broken or bridged):
            anything = almost_anything(judged, line.slack)
        if anything is not None:
            return _why_anything(broken, bridged, anything)
        if self.replay.rounding.rounds and (judged.times or 0.0) > FAR:
            return _("rounding can explain it only at its worst")
        return ""

    def _why_open_ids(self, line: Line, judged: Judged) -> str:
        """Which claimed tokens rounding leaves undecided, and the ids without rounding."""
        assert judged.open is not None
        places = np.argwhere(judged.open)
        first = tuple(map(int, places[0]))
        at = line.claim.address + write_index(line.claim.in_whole(first))
        expected = int(judged.expected[first])
        if int(line.values[first]) == expected:
            text = _("rounding may make another token the largest at {count} of {all}, as at {at}")
        else:
            text = _(
                "rounding leaves {count} of {all} open; at {at} the token is {expected} unless "
                "rounding changes it"
            )
        return text.format(count=len(places), all=judged.open.size, at=at, expected=expected)

    def _ask_for_the_truth(self) -> None:
        """Works out the true values of doubtful lines and of the lines that come after one."""
        wanted: list[str] = []
        for address, locals_ in self.found.items():
            for local in locals_:
                local.above = self._above(local) if wanted else ()
                local.doubtful = local.in_doubt or any(other.doubtful for other in local.above)
            if any(local.doubtful for local in locals_):
                wanted.append(address)
        if wanted:
            self.replay.true(wanted)

    def _above(self, local: _Local) -> Sequence[_Local]:
        """The claimed lines that a line is judged from: those about the rows that it reads."""
        region = self.replay.region(local.line.claim)
        return [
            other
            for address in region.met
            for other in self.found.get(address, ())
            if region.reads(self.replay.plan[address], other.line.claim)
        ]

    # ------------------------------------------------------------------- verdicts

    def _mark(self, address: str, local: _Local) -> Marked:
        claim, judged = local.line.claim, local.judged
        local.after_error = any(other.astray or other.after_error for other in local.above)
        uses = tuple(sorted(self.replay.above[address], key=self.order.__getitem__))
        if local.blank or isinstance(judged, Missing):
            return Marked(
                claim, Verdict.UNJUDGED, reason=local.reason, uses=uses, blank=local.blank
            )
        verdict = self._verdict(address, local)
        local.astray = verdict in (Verdict.ERROR, Verdict.CARRIED)
        rounds = self.replay.rounding.rounds  # handwritten: half a unit is the whole error
        unusual = bool(rounds and local.follows is not False and (judged.times or 0.0) > UNUSUAL)
        told = MOST_SHOWN if unusual or local.follows is False else 1
        shown = furthest(local.line, judged, told)
        return Marked(
            claim,
            verdict,
            share=judged.share,
            times=judged.times,
            worst=shown[0] if shown else None,
            reason=local.reason if verdict is Verdict.UNJUDGED else "",
            shares=judged.shares.astype(np.float32, copy=False),
            outside=int((judged.shares > 1).sum()),
            entries=int(judged.shares.size),
            unusual=unusual,
            near=not rounds or known_to_be_near(judged, UNUSUAL),
            uses=uses,
            among=shown if told > 1 else (),
            tied=local.tied,
        )

    def _verdict(self, address: str, local: _Local) -> Verdict:
        """The verdict on a line.

        An undecided line is right only if it is handwritten and true.  A line that follows from
        wrong lines is right only if it is true.
        """
        truth = self._truth(address, local) if local.doubtful else True
        if truth is not True and self.pencil.agrees(local.line):
            truth = True
        if local.follows:
            astray = truth is None and any(other.astray for other in local.above)
            return Verdict.CARRIED if truth is False or astray else Verdict.RIGHT
        if local.follows is False:
            return Verdict.UNSUPPORTED if truth else Verdict.ERROR
        written = not self.replay.rounding.rounds and not self.replay.broken(address)
        return Verdict.RIGHT if written and truth else Verdict.UNJUDGED

    def _truth(self, address: str, local: _Local) -> bool | None:
        """Whether the claim is the true value; None where undecided.

        Rounding grows over many steps.  So a float after wrong lines counts as true only if it is
        within the usual rounding error of the true value.  It must also be nearer to the true value
        than to what those lines give.
        """
        line = local.line
        judged = self.replay.judged(self.replay.true([address])[address], line)
        if isinstance(judged, Missing):
            return None
        if judged.follows is None and address == "next" and not self.replay.rounding.rounds:
            return are_next(line, self.replay.exact_tokens)
        if judged.follows is False or address in IDS:
            return judged.follows
        if not self.replay.rounding.rounds:
            return judged.follows if almost_anything(judged, line.slack) is None else None
        if judged.times is None or usual_says_nothing(judged, UNUSUAL, line.slack):
            return None
        if (
            judged.times > UNUSUAL
        ):  # far from the truth for rounding: from an error, if one is there
            return False if local.after_error or local.follows is False else None
        if local.follows is not False:
            return True
        assert isinstance(local.judged, Judged)
        after_wrong = any(other.doubtful for other in local.above)
        return after_wrong and 2 * _distance(judged, line) < _distance(local.judged, line)

    # ------------------------------------------------------------------- causes

    def _with_causes(
        self, lines: list[Marked], others: Sequence[ClaimedText], known: Sequence[Form]
    ) -> list[Marked]:
        around = Surroundings(self.replay, self._whole_lines(), others)
        [found] = together([with_causes(self.replay, around, lines, self._judged_of, known)])
        return found

    def _whole_lines(self) -> dict[str, Judged]:
        """The judgements of the steps that are claimed as a whole, by address."""
        return {
            address: local.judged
            for address, locals_ in self.found.items()
            for local in locals_
            if isinstance(local.judged, Judged) and not local.line.claim.index
        }

    def _judged_of(self, line: Marked) -> tuple[Line, Judged]:
        locals_ = self.found[line.claim.address]
        local = next(local for local in locals_ if local.line.claim is line.claim)
        assert isinstance(local.judged, Judged)
        return local.line, local.judged


def _without_nan(judged: Judged, line: Line) -> Judged:
    """The same judgement, with every NaN wrong: rounding alone cannot give one."""
    if judged.open is None:
        return judged
    wrong = judged.open & np.isnan(line.values)
    return replace(judged, shares=np.where(wrong, np.float32(np.inf), judged.shares))


def _why_anything(broken: frozenset[str], bridged: int, anything: Truths) -> str:
    """Why almost any value would follow, in words."""
    if broken:
        return _("{name} holds what is not a number").format(name=", ".join(sorted(broken)))
    if bridged:
        return _(
            "rounding at its worst in the {count} unclaimed steps before it could give almost any "
            "value"
        ).format(count=bridged)
    text = _("a number may be too large here, or divided by 0: {count} of {all} entries are open")
    return text.format(count=int(anything.sum()), all=anything.size)


def _distance(judged: Judged, line: Line) -> float:
    """The root mean square of the claims' errors."""
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.square(line.values - judged.expected)
    off = np.where(np.isnan(off), 0.0, off)  # equal infinities
    return float(np.sqrt(np.mean(off if judged.claimed is None else off[judged.claimed])))
