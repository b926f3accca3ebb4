"""Explanations of a trace: attribution, lens, circuits, geometry, facts, gradients, health.

`explain` works a text out and gives an `Explanation`, which holds the trace and the question.  Each
part of the answer is worked out when it is first read.  How it is shown is not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from byhand.display import Shown, one_line, quoted
from byhand.errors import UsageError
from byhand.evaluate import Admitted, Progress, pencil_sized, prepare
from byhand.explaining.asked import tell_doing
from byhand.explaining.beyond import refuse_unexplained
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import Numbers
from byhand.options import refuse_against_alone, refuse_unless_whole
from byhand.tracing import Trace
from byhand.worked import Missing

if TYPE_CHECKING:
    from byhand.explaining.approximations import Floats
    from byhand.explaining.attribution import Attribution
    from byhand.explaining.circuits import Circuits
    from byhand.explaining.facts import Facts
    from byhand.explaining.foremost import Foremost
    from byhand.explaining.geometry import Geometry
    from byhand.explaining.health import Health
    from byhand.explaining.inputs import Table
    from byhand.explaining.lens import Lens
    from byhand.explaining.norm_places import NormPlaces
    from byhand.explaining.saliency import Saliency

FEW_POSITIONS = 4  # positions up to which the facts of all are told
FEW_TEXTS = 64  # texts up to which the table of all texts is made unasked
MANY_TOKENS = 128  # size of a vocabulary beyond which that table has no ablations
SMALL_VOCABULARY = 12  # tokens up to which the terms of every logit are worked out


@dataclass(frozen=True)
class Explanation(Shown):
    """A trace, and what it says of one position.

    `token` is the token whose logit is explained, `against` the one it is compared with.  They are
    None where there is no comparison, or where the logits are unknown.

    >>> import byhand
    >>> found = byhand.explain("tiny", "a b")
    >>> found.position, found.token, found.against, [row.leader.id for row in found.lens][-1]
    (1, 0, 2, 0)
    """

    trace: Trace
    position: int
    token: int | None
    against: int | None = None
    neurons: bool = False
    keys: bool = False
    length: int | None = None  # of the longest texts in `inputs`; None: it chooses
    progress: Progress | None = field(default=None, repr=False, compare=False)
    _circuits: dict[int, Circuits] = field(default_factory=dict, init=False, repr=False)

    def __repr__(self) -> str:
        shown = [self.trace.answer(id) for id in self.compared]
        what = " against ".join(map(quoted, shown)) or "nothing known"
        return f"<Explanation of {one_line(self.model.name)} at position {self.position}: {what}>"

    @property
    def model(self) -> Model:
        """The model that was worked out."""
        return self.trace.model

    @property
    def small(self) -> bool:
        """Whether the model is pencil-sized: then further passes cost little."""
        return pencil_sized(self.model)

    @property
    def missing(self) -> Missing | None:
        """Why the logits have no value, such as an unknown weight; None where they have one."""
        return self.trace.steps["logits"].missing

    @cached_property
    def weights(self) -> Admitted:
        """The model's weights in the number system of the trace, admitted once."""
        return Admitted(self.model.weights, self.trace.numbers)

    # ------------------------------------------------------------------ where the logit comes from

    @cached_property
    def attribution_table(self) -> Attribution | None:
        """The terms of the logits, of all tokens or of the compared ones; None if the logits are
        unknown."""
        if self.token is None or self.missing is not None:
            return None
        small = self.model.spec.answers <= SMALL_VOCABULARY
        return self._attributed(None if small else self.compared, _("the terms of the logits"))

    @cached_property
    def attribution(self) -> Attribution | None:
        """The terms of the token's logit, or of its lead over the other token's logit."""
        if self.token is None or (table := self.attribution_table) is None:
            return None
        if self.against is None:
            return self._attributed((self.token,), _("the terms of the logits"))
        return table.difference(self.token, self.against)

    def _attributed(
        self, tokens: tuple[int, ...] | None, doing: str, of: str = "logits"
    ) -> Attribution:
        from byhand.explaining.attribution import attribute

        tell_doing(self.progress, doing)
        return attribute(
            self.trace,
            positions=(self.position,),
            tokens=tokens,
            neurons=self.neurons,
            keys=self.keys,
            of=of,
            weights=self._admitted,
        )

    @property
    def _admitted(self) -> Admitted | None:
        """The weights if they were admitted already, else None, to save memory."""
        return self.__dict__.get("weights")

    @cached_property
    def stream(self) -> Attribution | None:
        """The terms of the residual stream before the final norm, entry by entry; None if
        unknown."""
        from byhand.explaining.sources import final_stream

        if self.trace[final_stream(self.trace.plan)].missing is not None:
            return None
        return self._attributed(None, _("the terms of the residual stream"), of="stream")

    @property
    def compared(self) -> tuple[int, ...]:
        """The token explained and the one it is compared with."""
        return tuple(id for id in (self.token, self.against) if id is not None)

    def foremost(self, most: int | None = None) -> Foremost | None:
        """The `most` largest terms, and the sum of the others."""
        from byhand.explaining.foremost import foremost

        return None if self.attribution is None else foremost(self.attribution, most)

    # ------------------------------------------------------------------ the lens, and the heads

    @cached_property
    def lens(self) -> Lens:
        """What the model would predict after each step, at the position explained."""
        from byhand.explaining.lens import look

        return look(
            self.trace,
            [self.position],
            self.compared,
            weights=self._admitted,
            progress=self.progress,
        )

    @cached_property
    def whole_lens(self) -> Lens:
        """The same at every position, or at the last alone where there are very many logits."""
        from byhand.explaining.lens import look

        return look(self.trace, weights=self._admitted, progress=self.progress)

    @cached_property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """(layer, head) of every head."""
        return tuple(
            (layer, head)
            for layer, block in enumerate(self.model.spec.blocks)
            if block.attention
            for head in range(block.attention.heads)
        )

    def foremost_heads(self, most: int) -> tuple[tuple[int, int], ...]:
        """The `most` heads that add most to the explained logit or lead, in spine order."""
        from byhand.explaining.foremost import sizes

        if len(self.heads) <= most or self.attribution is None:
            return self.heads[:most]
        added = dict.fromkeys(self.heads, 0.0)
        for term, size in zip(self.attribution.terms, sizes(self.attribution), strict=True):
            if term.source.kind in ("head", "key") and term.source.layer is not None:
                added[term.source.layer, term.source.index[0]] += size
        first = sorted(self.heads, key=lambda head: -abs(added[head]))[:most]
        return tuple(sorted(first))

    def circuits(self, layer: int) -> Circuits:
        """QK and OV of a layer's heads."""
        if layer not in self._circuits:
            from byhand.explaining.circuits import circuits

            what = _("what the heads of block {layer} read and write").format(layer=layer)
            tell_doing(self.progress, what)
            self._circuits[layer] = circuits(
                self.trace, layer, weights=self._admitted, progress=self.progress
            )
        return self._circuits[layer]

    def shares(self, layer: int, head: int) -> Floats:
        """Floats near the attention weights at the position explained; NaN where masked."""
        from byhand.explaining.approximations import floats_near

        weights = self.trace.steps[f"block.{layer}.attn.weights"].value
        near: Floats = floats_near(self.trace.numbers, weights)[head, self.position]
        return near

    # ------------------------------------------------------------------ the rest

    @cached_property
    def facts(self) -> Facts:
        """How the prediction comes about, checked by ablation."""
        from byhand.explaining.facts import facts

        return facts(
            self.trace,
            [self.position],
            weights=self.weights,
            lens=self.lens,
            progress=self.progress,
        )

    @cached_property
    def whole_facts(self) -> Facts:
        """The same of every position."""
        from byhand.explaining.facts import facts

        return facts(self.trace, weights=self.weights, progress=self.progress)

    @property
    def few_positions(self) -> bool:
        """Whether the text has so few positions that the facts of all are told."""
        return len(self.trace.tokens) <= FEW_POSITIONS

    @property
    def few_texts(self) -> bool:
        """Whether there are so few texts that the table of all of them is made unasked."""
        spec = self.model.spec
        longest = spec.context if self.length is None else self.length
        if longest is None or longest > FEW_TEXTS or not self.small:
            return False
        count: int = sum(spec.vocab**length for length in range(1, longest + 1))
        return count <= FEW_TEXTS

    @cached_property
    def inputs(self) -> Table:
        """Every text up to a length, with its prediction and the parts it needs.  A model above
        pencil size has only its side-trips as parts, a large vocabulary none."""
        from byhand.explaining.ablation import side_trips
        from byhand.explaining.inputs import table

        parts = None
        if not self.small:
            few = self.model.spec.answers <= MANY_TOKENS
            parts = side_trips(self.model.spec) if few else ()
        device = getattr(self.trace.numbers, "device", None) if self.trace.proof else None
        return table(
            self.model,
            self.length,
            parts=parts,
            device=None if device is None else str(device),
            progress=self.progress,
        )

    @cached_property
    def geometry(self) -> Geometry:
        """The stream as a path among the tokens' directions."""
        from byhand.explaining.geometry import geometry_of

        tell_doing(self.progress, _("where the residual stream goes"))
        if self.model.spec.answers <= SMALL_VOCABULARY:
            return geometry_of(self.trace)
        said = () if self.trace.next is None else (each.id for each in self.trace.next)
        known = (*self.compared, *(id for id in said if id is not None), *self.trace.tokens)
        tokens = tuple(dict.fromkeys(known))[:SMALL_VOCABULARY]
        return geometry_of(self.trace, tokens=tokens)

    @cached_property
    def health(self) -> Health:
        """Sizes, entropies, ranks and dead units, in rounded numbers."""
        from byhand.explaining.health import health

        tell_doing(self.progress, _("how the layers are doing"))
        return health(self.trace)

    @cached_property
    def saliency(self) -> Saliency | None:
        """What the gradients of the token's loss tell, checked by removals; in rounded numbers."""
        from byhand.explaining.saliency import saliency

        if self.token is None:
            return None
        tell_doing(self.progress, _("what the loss depends on"))
        return saliency(self.trace, self.position, self.token, progress=self.progress)

    @cached_property
    def norm_places(self) -> NormPlaces:
        """The same weights with norms before and after the side-trips."""
        from byhand.explaining.norm_places import norm_places

        tell_doing(self.progress, _("norms before and after the branches"))
        return norm_places(self.model, self.trace.text, self.trace.numbers)


def explain(
    model: Model,
    text: str | None = None,
    numbers: Numbers | None = None,
    *,
    digits: int | None = None,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    position: int | None = None,
    token: str | None = None,
    against: str | None = None,
    alone: bool = False,
    neurons: bool = False,
    keys: bool = False,
    length: int | None = None,
    only: Sequence[str] = (),
    progress: Progress | None = None,
) -> Explanation:
    """The explanation of a text.

    It is about the last position, the token predicted there and its strongest rival, unless others
    are named; `alone` explains the logit by itself.  `neurons` and `keys` divide MLPs and heads
    further.  `length` is that of the longest texts in the table of all texts.  The numbers are
    exact unless given, and those of `enclosing_numbers` with `digits`.  `only` names the steps that
    are needed, where not all are.  `progress` sees every step and its purpose.
    """
    refuse_against_alone(against, alone)
    refuse_unexplained(model.spec)
    job = prepare(model, text, numbers, source=source, segments=segments, only=only)
    last = len(job.tokens) - 1
    if isinstance(position, int) and not 0 <= position <= last:
        raise UsageError(
            _("the text has no position {position}").format(position=position),
            expected=_("a whole number from {least} to {most}").format(least=0, most=last),
            found=str(position),
        )
    refuse_unless_whole("position", position, 0, last)  # refuses 1.5
    place = last if position is None else position
    wanted = None if token is None else model.outputs.id(token)
    rival = None if against is None else model.outputs.id(against)
    if rival is not None and rival == wanted:
        raise _itself(model, rival)
    if digits is None:
        trace = job.work(progress=progress)
    else:
        from byhand.proving.digits import prove

        trace = prove(job, digits, progress=progress)
    chosen = predicted(trace, place) if wanted is None else wanted
    if rival is not None and rival == chosen:
        raise _itself(model, rival)
    if rival is None and chosen is not None and not alone:
        rival = strongest_other(trace, place, chosen)
    return Explanation(trace, place, chosen, rival, neurons, keys, length, progress)


def predicted(trace: Trace, position: int) -> int | None:
    """The predicted token, or the first candidate; None where nothing is known."""
    if trace.next is None:
        return None
    found = trace.next[position]
    if found.id is not None:
        return found.id
    return found.candidates[0] if found.candidates else None


def strongest_other(trace: Trace, position: int, token: int) -> int | None:
    """The token with the largest logit besides `token`, chosen by floats: no proof rests on it."""
    import numpy as np

    from byhand.explaining.approximations import floats_near

    worked = trace.steps.get("logits")  # absent where no section needs them
    if trace.model.spec.answers < 2 or worked is None or worked.missing is not None:
        return None
    if trace.next is not None:
        for other in (*trace.next[position].tied, *trace.next[position].candidates):
            if other != token:
                return other
    logits = trace.numbers.take_rows(worked.value, [position])
    row = floats_near(trace.numbers, logits)[0]
    row[token] = -np.inf
    return int(np.argmax(np.where(np.isnan(row), -np.inf, row)))


def _itself(model: Model, token: int) -> UsageError:
    return UsageError(
        _("a token cannot be compared with itself"),
        found=model.outputs.tokens[token],
        hint=_("name another token, or look at the logit alone"),
    )
