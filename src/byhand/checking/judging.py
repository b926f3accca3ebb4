"""From claims to verdicts: does each line follow from the lines above, and is it true?

    judge_text(model, claimed text)  →  MarkedText

A first pass judges every line from the lines above it.  Where all of them follow, all are right:
each is what a correct implementation may give.  Only where one does not, a second pass works out
the true values, and suspects are tried on the lines that are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from byhand.address import Index
from byhand.checking.claims import DIRECTION, Claim, ClaimedText
from byhand.checking.counts import mark_counts
from byhand.checking.directions import mark_directions
from byhand.checking.reading.held import cast_on_the_way, narrowest_format
from byhand.checking.replay import EXACT, Line, Replay, Rounding, nearest_claimed, vacuous
from byhand.checking.suspecting import suspects_of
from byhand.checking.verdicts import Marked, MarkedText, Verdict, Worst
from byhand.checking.weights import mark_weights
from byhand.evaluate import Progress
from byhand.language import _
from byhand.model import Model
from byhand.numbers.allowed import Judged, Range
from byhand.numbers.allowed.precisions import AUTOCAST
from byhand.numbers.floats.formats import FORMATS
from byhand.plan import WEIGHT, Step
from byhand.tracing import Missing

UNUSUAL = 6.0  # times what rounding usually does: real runs stay below (docs/check.md)
TRUE = 32.0  # times what rounding usually does, within which a value counts as the true one
COUNT = "count."
READ_BY_PRODUCTS = ("embed.token", "embed.position", ".norm.out")  # or by norms before them
MOST_SUSPECTED = 12  # lines of one text that suspects are tried on
MOST_SHOWN = 8  # entries of a line that are told one by one


def judge_text(
    model: Model,
    text: ClaimedText,
    precision: str | None = None,
    *,
    suspects: bool = True,
    like: Replay | None = None,
    progress: Progress | None = None,
) -> tuple[MarkedText, Replay]:
    """Every claim about a text with its verdict, in spine order; and the replay, to be used again
    for other texts of the same model."""
    rounding = Rounding.named(precision or text.precision or usual_precision(text.claims))
    counts, weights, directions, steps = _sorted(text.claims)
    replay = Replay.of(model, replace(text, claims=steps), rounding, like=like, progress=progress)
    lines = [
        *mark_counts(counts, model),
        *mark_weights(weights, model),
        *mark_directions(directions, model, _values(replay)),
        *_Judge(replay).marked(suspects=suspects),
    ]
    name = _precision_name(rounding, text.claims)
    marked = MarkedText(
        text.text, text.tokens, name, tuple(lines), text.unmatched, text.label, text.marks
    )
    return marked, replay


def usual_precision(claims: Sequence[Claim]) -> str:
    """The narrowest float format that holds the claims; "exact" where all are written by hand.

    Floats are often saved in a wider format than they were worked in: bfloat16 has no type in
    NumPy, and lists hold float64.  Where what products read stays in float32, and what they give
    has 16 bits, it was cast on the way: autocast.
    """
    floats = [claim for claim in claims if claim.format in FORMATS]
    if not floats:
        return EXACT
    # what is worked out tells; embeddings are as the checkpoint has them
    told = [claim for claim in floats if not claim.address.startswith("embed.")] or floats
    narrowest = min((str(claim.format) for claim in told), key=lambda name: FORMATS[name].bits)
    found = narrowest_format((claim.values for claim in told), narrowest)
    read = (claim for claim in floats if claim.address.endswith(READ_BY_PRODUCTS))
    if any(cast_on_the_way(claim.values, str(claim.format), found) for claim in read):
        return f"{AUTOCAST}{found}"
    return found


def _precision_name(rounding: Rounding, claims: Sequence[Claim]) -> str:
    """How the report calls it: decimals by hand are as precise as they are written."""
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
    """The true value at an address, for claims of where something points."""

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
    """What the first pass says of one line."""

    line: Line
    judged: Judged | Missing

    @property
    def follows(self) -> bool | None:
        if isinstance(self.judged, Missing):
            return None
        return self.judged.follows


class _Judge:
    """The verdicts on the claims about steps."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self.above = nearest_claimed(replay.plan, replay.claimed)
        self.order = {address: place for place, address in enumerate(replay.claimed)}
        self.found: dict[str, list[_Local]] = {}
        self.doubtful: set[str] = set()

    def marked(self, *, suspects: bool) -> list[Marked]:
        """Every line with its verdict, in spine order."""

        def note(line: Line, judged: Judged | Missing) -> None:
            self.found.setdefault(line.claim.address, []).append(_Local(line, judged))

        self.replay.judge(note)
        self.doubtful = self._doubtful()
        lines = [
            self._mark(address, local, address in self.doubtful)
            for address, locals_ in self.found.items()
            for local in locals_
        ]
        return self._with_suspects(lines) if suspects else lines

    def _doubtful(self) -> set[str]:
        """The claimed steps that do not follow, or that come after one: their truth is asked."""
        doubtful: set[str] = set()
        for address, locals_ in self.found.items():
            wrong = any(local.follows is False for local in locals_)
            if wrong or self.above[address] & doubtful:
                doubtful.add(address)
        if doubtful:
            self.replay.true(address for address in doubtful)
        return doubtful

    def _mark(self, address: str, local: _Local, doubtful: bool) -> Marked:
        claim, judged = local.line.claim, local.judged
        uses = tuple(sorted(self.above[address], key=self.order.__getitem__))
        if isinstance(judged, Missing):
            return Marked(claim, Verdict.UNJUDGED, reason=_why_missing(judged), uses=uses)
        if claim.claimed is not None and not claim.claimed.any():
            return Marked(claim, Verdict.UNJUDGED, reason=_("left blank"), uses=uses)
        true = not doubtful or self._is_true(address, local)
        if local.follows:
            verdict = Verdict.RIGHT if true else Verdict.CARRIED
        else:
            verdict = Verdict.UNSUPPORTED if true else Verdict.ERROR
        reason = ""
        if local.follows and (why := self._vacuous(address, local.line, judged)):
            verdict, reason = Verdict.UNJUDGED, why
        rounds = self.replay.rounding.rounds  # of decimals by hand, half a unit is all there is
        times = judged.times or 0.0
        unusual = bool(rounds and local.follows and times > UNUSUAL)
        told = MOST_SHOWN if unusual or not local.follows else 1
        furthest = _furthest(local.line, self.replay.plan[address], judged, told)
        return Marked(
            claim,
            verdict,
            share=judged.share,
            times=judged.times,
            worst=furthest[0] if furthest else None,
            reason=reason,
            shares=judged.shares.astype(np.float32, copy=False),
            outside=0 if local.follows else int((judged.shares > 1).sum()),
            entries=int(judged.shares.size),
            unusual=unusual,
            uses=uses,
            among=furthest if told > 1 else (),
        )

    def _vacuous(self, address: str, line: Line, judged: Judged) -> str | None:
        """Why nearly any value would follow here; None where it would not."""
        broken = self.above[address] & self.replay.not_finite
        bridged = self.replay.bridged(line.claim)
        if not (broken or bridged) or not vacuous(judged, line.slack):
            return None
        if broken:
            return _("{name} holds what is not a number").format(name=", ".join(sorted(broken)))
        return _why_vacuous(bridged)

    def _is_true(self, address: str, local: _Local) -> bool:
        """Whether the claim is the true value.

        Over many steps rounding may change a lot, so a float is taken for the true value only
        where it is near to it as rounding goes, after lines that are wrong, and nearer to it than
        to what those lines give.
        """
        line = local.line
        judged = self.replay.judged(self.replay.true([address])[address], line)
        if isinstance(judged, Missing) or not judged.follows:
            return False
        if judged.times is None or local.follows or not self.replay.rounding.rounds:
            return judged.times is None or judged.times <= TRUE
        assert isinstance(local.judged, Judged)
        after_wrong = bool(self.above[address] & self.doubtful)
        return after_wrong and 2 * _distance(judged, line) < _distance(local.judged, line)

    # ------------------------------------------------------------------- suspects

    def _with_suspects(self, lines: list[Marked]) -> list[Marked]:
        """Tries suspects on the lines that are wrong, and on those that rounding hardly explains.

        The kinds that explained an earlier line are tried first: a port makes the same mistake in
        every layer.
        """
        wrong = [line for line in lines if line.verdict is Verdict.ERROR]
        unusual = [line for line in lines if line.unusual]
        favourites: list[str] = []
        explained: dict[int, Marked] = {}
        for line in (*wrong, *unusual)[:MOST_SUSPECTED]:
            local = self._local(line)
            assert isinstance(local.judged, Judged)
            found = suspects_of(self.replay, local.line, local.judged, line, favourites)
            explained[id(line)] = replace(line, suspects=found)
            favourites = [*(each.kind for each in found[:1]), *favourites]
        return [explained.get(id(line), line) for line in lines]

    def _local(self, line: Marked) -> _Local:
        locals_ = self.found[line.claim.address]
        return next(local for local in locals_ if local.line.claim is line.claim)


def _why_vacuous(bridged: int) -> str:
    return _(
        "rounding at its worst in the {count} unclaimed steps before it could give almost any value"
    ).format(count=bridged)


def _why_missing(missing: Missing) -> str:
    if missing.kind == "unknown":
        return _("{name} is unknown").format(name=missing.cause)
    return missing.message


def _furthest(line: Line, step: Step, judged: Judged, count: int) -> tuple[Worst, ...]:
    """The entries that use most of what is allowed, or exceed it most; the worst first."""
    shares = judged.shares.ravel()
    if not shares.size:
        return ()
    places = np.array([shares.argmax()])
    if count > 1:
        count = min(count, shares.size)
        largest = np.argpartition(-shares, count - 1)[:count]
        places = largest[np.argsort(-shares[largest], kind="stable")]
    if judged.judged is not None:
        places = places[judged.judged.ravel()[places]]
    claimed = np.broadcast_to(line.values, judged.shares.shape)
    found = []
    for flat in places.tolist():
        place = tuple(map(int, np.unravel_index(flat, judged.shares.shape)))
        found.append(
            Worst(
                _in_step(line.claim.index, place, step.shape),
                claimed=float(claimed[place]),
                expected=float(judged.expected[place]),
                allowed=float(judged.allowed[place]),
                difference=float(abs(claimed[place] - judged.expected[place])),
            )
        )
    return tuple(found)


def _distance(judged: Judged, line: Line) -> float:
    """The root mean square of what the claims are off."""
    off = np.where(judged.shares > 0, line.values - judged.expected, 0.0)
    return float(np.sqrt(np.mean(np.square(off))))


def _in_step(index: Index, place: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Where an entry of a part lies in the step that the part was cut out of."""
    whole = (*index, *(slice(None),) * (len(shape) - len(index)))
    rest = iter(place)
    return tuple(
        range(side)[cut][next(rest)] if isinstance(cut, slice) else cut
        for cut, side in zip(whole, shape, strict=True)
    )
