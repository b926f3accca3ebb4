"""A generation in enclosures: every choice is proven, at whatever precision it needs.

The precision, the keys and the values are kept from one token to the next.  Where a choice is not
proven, the precision is raised and the text is worked out again from its start.  Earlier choices
stay, since they were proven.  Where no precision helps, an Undecided says how close it was.

On a GPU, a repeated pass over the whole text is faster than a new pass over one position.  So the
text is filled up to a multiple of BLOCK tokens, which no earlier position sees.  The same pass
serves until the text has reached that length.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from byhand import forward, repeating
from byhand.errors import ByhandError, Undecided
from byhand.evaluate import Job, Revise, pencil_sized, work_out
from byhand.generating.generation import Chosen, Generation
from byhand.language import _
from byhand.missing_bits import Shortfall, distance_of_foremost
from byhand.numbers.base import Prediction
from byhand.numbers.enclosed.enclosure import Enclosing, Enclosure
from byhand.plan import Plan
from byhand.proving.choices import settling
from byhand.proving.digits import (
    ASK_EXACT,
    check_digits,
    enclosure_of,
    known_to_so_many_decimals,
    same_logits,
    tied,
)
from byhand.repeating import FEWEST, Passes, last_row
from byhand.worked import Worked

Found = Chosen | ByhandError  # a token, or why it is not proven
BLOCK = 32  # tokens by which a text that is worked out on a GPU grows
AHEAD = 16  # spare bits, so that the next tokens need no new start


class ProvenGeneration(Generation):
    """A generation whose choices are proven, with digits of their probabilities.

    `numbers` is a system of enclosures; it changes as the precision is raised, up to `limit` bits.
    """

    def __init__(self, *given: Any, digits: int, limit: int | None = None, **settings: Any) -> None:
        super().__init__(*given, **settings)
        assert isinstance(self.numbers, Enclosing), self.numbers
        self.digits = self.asked = check_digits(digits)
        self.limit = self.numbers.limit if limit is None else limit
        self._bounded = known_to_so_many_decimals(self.model)
        self._passes = Passes(self._weights)
        self._plans: dict[int, Plan] = {}  # by the length that texts are filled up to
        self._throw: float | None = None  # one for each token, whatever the precision

    @property
    def bits(self) -> int:
        """The precision that has proven every choice so far."""
        bits: int = self.numbers.bits  # type: ignore[attr-defined]
        return bits

    def _next_choice(self) -> Chosen:
        if self._dice and self._throw is None:
            self._throw = self._dice.throw()
        chosen = self._proven_choice(self._throw)
        self._throw = None
        return chosen

    def _proven_choice(self, throw: float | None) -> Chosen:
        """The next token, at a precision that proves it; an Undecided where there is none."""
        before: Shortfall | None = None
        while True:
            done = self._work_out()
            short = Shortfall()
            found = self._greedy(done, short) if throw is None else self._drawn(done, throw, short)
            if isinstance(found, Chosen):
                return found
            ended = self.bits >= self.limit or (self._bounded and short.stalled(before))
            exactly = throw is None and pencil_sized(self.model)
            if exactly and (ended or self.bits >= ASK_EXACT):
                by_exact = self._by_exact(short)
                if isinstance(by_exact, Chosen):
                    return by_exact
            if ended:
                raise found
            self._raise_to(min(short.next_bits(self.bits, before) + AHEAD, self.limit))
            before = short

    def _work_out(self) -> dict[str, Worked]:
        tokens, context = self.tokens, self.model.spec.context
        full = -(-len(tokens) // BLOCK) * BLOCK
        full = full if context is None else min(full, context)
        times = 1 + min(full - len(tokens), self.last - len(tokens))
        alone = self._causal and self.source is None and self.segments is None
        alone = alone and not any(b.mlp and b.mlp.experts for b in self.model.spec.blocks)
        alone = alone and self._alike(len(tokens), full)
        if not (alone and repeating.can_repeat(self.numbers)) or (
            times < FEWEST and full not in self._plans
        ):
            return super()._work_out()
        wanted = ("logits", "probs") if self.sampling else ("logits", "probs", "next")
        if full not in self._plans:
            self._plans = {full: forward.plan(self.model.spec, full).only(wanted)}
        filled = (*tokens, *tokens[-1:] * (full - len(tokens)))
        job = Job(self.model, self._plans[full], self.numbers, "", filled, None, wanted)
        trace = self._passes.work(job, keep=wanted, progress=self.progress, times=times)
        return {name: last_row(trace, name, len(tokens) - 1) for name in wanted}

    def _revise(self, plan: Plan) -> Revise | None:
        """Settles choices of experts with equal scores."""
        return settling(plan, self.model.weights, None, {})

    def _raise_to(self, bits: int) -> None:
        """Starts again with more bits."""
        assert isinstance(self.numbers, Enclosing)
        self.numbers = self.numbers.at(bits)
        self._cache = {}
        self._cached = 0
        self._seen = None

    def _chosen(self, id: int, probability: Enclosure, short: Shortfall, **more: Any) -> Found:
        """The token if the digits of its probability are proven; else the error with the reason."""
        if probability.proves(self.asked):
            token = self.model.outputs.tokens[id]
            return Chosen(len(self.tokens), id, token, self._adds(id), probability, True, **more)
        short.add_number(probability, self.asked)
        return Undecided(
            _("{digits} digits of this probability cannot be proven").format(digits=self.asked),
            where=f"probs[{len(self.tokens) - 1},{id}]",
            found=str(probability),
            hint=_("ask for fewer digits"),
        )

    def _greedy(self, done: dict[str, Worked], short: Shortfall) -> Found:
        """The most probable token."""
        found: Prediction = done["next"].value[-1]
        if len(found.candidates) > 1:
            logits = done["logits"].step
            if same_logits(logits, self.model.weights, found.candidates):
                found = tied(found)
        if not found.proven:
            place = len(done["next"].value) - 1
            distance = distance_of_foremost(done, place, found.candidates)
            short.add_token(place, distance)
            return self._undecided(len(self.tokens), found.candidates, found=str(distance))
        assert found.id is not None
        self._refuse_banned(len(self.tokens), found.id)
        probability: Enclosure = done["probs"].at((-1, found.id))
        return self._chosen(found.id, probability, short, tied=found.tied, margin=found.margin)

    def _by_exact(self, short: Shortfall) -> Found | None:
        """The most probable token by exact numbers, which may show that some are tied."""
        from byhand.numbers.exact import Exact

        plan = self._plan(len(self.tokens)).only(("probs", "next"))
        source = None if self.source is None else self.source.tokens
        steps = work_out(plan, self.model.weights, self.tokens, Exact(), source=source)
        if steps["next"].missing is not None or not steps["next"].value[-1].proven:
            return None
        found = steps["next"].value[-1]
        bits = max(self.bits, ASK_EXACT)
        probability = enclosure_of(steps["probs"].at((-1, found.id)), bits)
        margin = None if found.margin is None else enclosure_of(found.margin)
        return self._chosen(found.id, probability, short, tied=found.tied, margin=margin)

    def _drawn(self, done: dict[str, Worked], throw: float, short: Shortfall) -> Found:
        """The token that this throw draws."""
        from byhand.generating.draws import draw  # not needed for greedy choices

        assert self.sampling is not None
        logits = done["logits"]
        row = [logits.at((-1, id)) for id in range(self.model.spec.answers)]
        drawn = draw(row, self.sampling, Fraction(throw), self.bits)
        if drawn is None:
            short.add_guess()
            return Undecided(
                _("it cannot be proven which token is drawn"),
                where=f"probs[{len(self.tokens) - 1}]",
                hint=_("another seed draws another token"),
            )
        self._refuse_banned(len(self.tokens), drawn.id)
        probability: Enclosure = done["probs"].at((-1, drawn.id))
        return self._chosen(drawn.id, probability, short, rank=drawn.rank, chance=drawn.chance)
