"""A generation: the prompt is worked out once, then one position for each token.

Keys and values are kept in a cache.  The plan after a past (`forward.plan(…, past=…)`) is worked
out like any other plan, with the earlier keys and values given.  So the cache works in every number
system; in the exact one each token comes with a proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from byhand import forward
from byhand.display import Shown, one_line, quoted
from byhand.errors import ByhandError, InputError, Undecided
from byhand.evaluate import Admitted, Progress, Revise, work_out
from byhand.generating.sampling import Sampling
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import Numbers
from byhand.plan import Plan, keys_and_values, keys_and_values_of_source
from byhand.reading import Source, beside
from byhand.tokens import Continuation
from byhand.worked import Worked

COUNT, END_TOKEN, CONTEXT, ANSWER = "count", "end token", "context", "answer"  # why it ends
MOST_NAMED = 8  # tokens in a message


@dataclass(frozen=True, slots=True)
class Chosen(Shown):
    """One more token, and what is known of the choice.

    >>> import byhand
    >>> chosen = next(byhand.generate("tiny", "c"))
    >>> chosen.token, chosen.probability, chosen.proven, chosen.tied
    ('a', 1/3, True, (0, 1, 2))
    """

    position: int  # where it stands in the text
    id: int
    token: str  # as in the vocabulary
    text: str  # the text it adds; empty for an end token, and within a character
    probability: Any  # by the model, in its number system
    proven: bool = False  # that it is the most probable token, or the one drawn
    tied: tuple[int, ...] = ()  # all ids with the largest logit, if there are several
    margin: Any = None  # largest logit minus the next smaller one; None where it was drawn
    rank: int = 1  # 1: no token is more probable
    chance: float | None = None  # of being drawn; None where it was not drawn


class Generation(Iterator[Chosen], Shown):
    """An iterator of tokens, worked out on demand; `choices` are those chosen so far.

    >>> from byhand.generating import generate
    >>> from byhand.models import open_model
    >>> generation = generate(open_model("tiny"), "c", count=2)
    >>> [(chosen.token, chosen.probability, chosen.proven) for chosen in generation]
    [('a', 1/3, True), ('a', e^2/(1 + e + e^2), True)]
    >>> generation.text, generation.ended
    ('c a a', 'count')
    """

    digits: int | None = None  # proven digits of each probability; None: no proof

    def __init__(
        self,
        model: Model,
        numbers: Numbers,
        prompt: Iterable[int],
        *,
        count: int,
        sampling: Sampling | None = None,
        progress: Progress | None = None,
        source: Source | None = None,
        segments: tuple[int, ...] | None = None,
    ) -> None:
        self.model = model
        self.numbers = numbers
        self.prompt = tuple(prompt)
        self.count = count
        self.sampling = sampling
        self.choices: list[Chosen] = []
        self._fed_back: list[int] = []  # their ids in the vocabulary
        self.ended: str | None = None  # "count", "end token" or "context" at the end
        self.progress = progress  # may be another one for each token
        self.source = source  # what the encoder reads, where there is one
        self.segments = segments  # the kind of each token of the prompt; a new one's is the last
        self._weights = Admitted(model.weights, numbers)
        self._seen: dict[str, Worked] | None = None  # keys and values of the source, once known
        self._cache: dict[str, Worked] = {}  # the `given` of later plans, by address
        self._cached = 0  # tokens whose keys and values are in the cache
        self._causal = model.spec.causal
        ropes = [block.attention.rotary for block in model.spec.blocks if block.attention]
        self._scalings = {rope.scaling for rope in ropes if rope and rope.scaling}
        self._dice = sampling.dice() if sampling else None
        self._continuation = Continuation(model.vocabulary, self.prompt)
        self._rest = ""

    def __repr__(self) -> str:
        count = len(self.choices)
        told = f"{count} token{'s' * (count != 1)}, "
        told += f"ended: {self.ended}" if self.ended else "open"
        name, text = one_line(self.model.name), quoted(self.text)
        return f"<Generation of {name} ({self.numbers.name}): {text}, {told}>"

    @property
    def seed(self) -> int | None:
        """The seed that draws the same tokens again; None where none are drawn."""
        return self.sampling.seed if self.sampling else None

    @property
    def last(self) -> int:
        """The last position that a token can have."""
        last, context = len(self.prompt) + self.count - 1, self.model.spec.context
        return last if context is None else min(last, context)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The ids of the prompt and of the choices so far."""
        return (*self.prompt, *self._fed_back)

    @property
    def added(self) -> str:
        """The text that the chosen tokens add."""
        return "".join(chosen.text for chosen in self.choices) + self._rest

    @property
    def text(self) -> str:
        """The whole text: the prompt and the text added."""
        return self.model.vocabulary.decode(self.prompt) + self.added

    def __next__(self) -> Chosen:
        """The next token; an Undecided where no token is proven to be the most probable one."""
        if self.ended is not None:
            raise StopIteration
        chosen = self._next_choice()
        self.choices.append(chosen)
        fed = self.model.fed_back(chosen.id)
        if fed is not None:
            self._fed_back.append(fed)
        self.ended = self._why_ended(chosen)
        if self.ended is not None:
            self._rest = self._continuation.rest()
        return chosen

    def _next_choice(self) -> Chosen:
        return self._choose(self._work_out())

    def _why_ended(self, chosen: Chosen) -> str | None:
        if chosen.id in self.model.ends:
            return END_TOKEN
        if self.model.fed_back(chosen.id) is None:
            return ANSWER  # no token of the vocabulary, so nothing can follow it
        if len(self.choices) >= self.count:
            return COUNT
        if chosen.position == self.last:
            return CONTEXT  # the last token stands just beyond it
        return None

    # ------------------------------------------------------------------ working out

    def _work_out(self) -> dict[str, Worked]:
        """The steps from which the next token is chosen."""
        wanted = ("logits", "probs") if self.sampling else ("logits", "probs", "next")
        tokens = self.tokens
        if not self._causal:  # a new token changes every position before it
            done = self._pass(tokens, wanted, cached=False)
        else:
            before = len(tokens) - 1
            if not self._alike(self._cached, len(tokens)):
                self._cache, self._cached = {}, 0
            if before > self._cached and self._alike(before, len(tokens)):
                self._pass(tokens[:before], ())  # only their keys and values will be read
            done = self._pass(tokens, wanted)
        for name in wanted:
            if (missing := done[name].missing) is not None:
                raise missing.error(name)
        return done

    def _alike(self, one: int, other: int) -> bool:
        """Whether RoPE turns keys alike in texts of both lengths."""
        return all(scaling.alike(one, other) for scaling in self._scalings)

    def _revise(self, _plan: Plan) -> Revise | None:
        """What may replace the values of steps: nothing."""
        return None

    def _pass(
        self, tokens: tuple[int, ...], wanted: tuple[str, ...], *, cached: bool = True
    ) -> dict[str, Worked]:
        """The wanted steps; keys and values of new positions are cached."""
        new = tokens[self._cached :]
        plan = self._plan(len(new), past=self._cached)
        kept = keys_and_values(plan) if cached else {}
        done: dict[str, Worked] = {}
        if wanted or kept:
            seen = self._of_source()
            plan = plan.only([*wanted, *kept.values()], given=seen)
            known = {address: seen[address] for address in seen if address in plan.known}
            done = work_out(
                plan,
                self._weights,
                new,
                self.numbers,
                given={**self._cache, **known},
                progress=self.progress,
                keep={*wanted, *kept.values()},
                revise=self._revise(plan),
            )
        if cached:
            self._cache = {past: done[address] for past, address in kept.items()}
            self._cached = len(tokens)
        return done

    def _plan(self, length: int, past: int = 0) -> Plan:
        kinds = self.segments
        if kinds is not None:
            kinds = (*kinds, *kinds[-1:] * (past + length))[past : past + length]
        read = beside(self.source, kinds)
        return forward.plan(self.model.spec, length, past=past, **read)

    def _of_source(self) -> dict[str, Worked]:
        """The keys and values that the decoder reads of its source; the encoder is worked out once.

        They are given to every pass over the text.
        """
        if self._seen is None:
            self._seen = {}
            if self.source is not None:
                plan = self._plan(1)
                wanted = keys_and_values_of_source(plan)
                self._seen = work_out(
                    plan.only(wanted),
                    self._weights,
                    self.prompt[:1],
                    self.numbers,
                    source=self.source.tokens,
                    progress=self.progress,
                    keep=wanted,
                )
        return self._seen

    # ------------------------------------------------------------------ choosing

    def _choose(self, done: dict[str, Worked]) -> Chosen:
        position = len(self.prompt) + len(self.choices)
        probs = done["probs"]
        if self.sampling is None:
            found = done["next"].value[-1]
            if found.id is None:
                raise self._undecided(position, found.candidates)
            self._refuse_banned(position, found.id)
            return Chosen(
                position,
                found.id,
                self.model.outputs.tokens[found.id],
                self._adds(found.id),
                probs.at((-1, found.id)),
                found.proven,
                found.tied,
                found.margin,
            )
        assert self._dice is not None
        chances = self.sampling.chances(done["logits"], probs)
        id = self._dice.draw(chances)
        self._refuse_banned(position, id)
        return Chosen(
            position,
            id,
            self.model.outputs.tokens[id],
            self._adds(id),
            probs.at((-1, id)),
            rank=1 + int((chances > chances[id]).sum()),
            chance=float(chances[id]),
        )

    def _adds(self, id: int) -> str:
        if id in self.model.ends:
            return ""
        fed = self.model.fed_back(id)
        if fed is None:
            apart = "" if getattr(self.model.vocabulary, "kind", "") == "characters" else " "
            return apart + self.model.outputs.tokens[id]
        return self._continuation.add(fed)

    def _refuse_banned(self, position: int, id: int) -> None:
        """Raises an Undecided where the checkpoint forbids the token that was chosen."""
        if id in self.model.never:
            raise Undecided(
                _("the checkpoint forbids to generate the token that comes next"),
                where=f"next[{position - 1}]",
                found=repr(self.model.outputs.tokens[id]),
                hint=_("generation_config.json says so: bad_words_ids, suppress_tokens"),
            )

    def _undecided(
        self, position: int, candidates: tuple[int, ...], found: str | None = None
    ) -> ByhandError:
        where = f"next[{position - 1}]"
        if not candidates:  # floats have left their range
            return InputError(
                _("the logits are not finite numbers, so there is no next token"),
                where=where,
                hint=_("use a wider float format"),
            )
        named = [repr(self.model.outputs.tokens[id]) for id in candidates[:MOST_NAMED]]
        if more := len(candidates) - len(named):
            named.append(_("{count} more").format(count=more))
        tokens = ", ".join(named)
        return Undecided(
            _("the next token cannot be decided between {tokens}").format(tokens=tokens),
            where=where,
            found=found,
        )
