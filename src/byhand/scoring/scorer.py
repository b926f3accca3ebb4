"""The scorer: a model and a number system, and the scores of texts, one text after another.

Floats: the pass in one format, as an engine of that format computes.  The log-probabilities are
taken from its logits in float64, as engines take them in a wider format.  Digits: enclosures, with
more bits until each log-probability lies within half a unit of that decimal place and the likeliest
tokens are proven, as far as the precision goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, isfinite
from typing import Any

import numpy as np

from byhand import evaluate, forward
from byhand.errors import InputError
from byhand.evaluate import Admitted, Job
from byhand.language import _
from byhand.model import Model
from byhand.number_choice import numbers_for
from byhand.numbers.enclosed.enclosure import Enclosing
from byhand.options import Chosen, refuse_unless_whole
from byhand.plan import Plan
from byhand.proving.digits import enclosing_numbers
from byhand.repeating import Passes
from byhand.scoring.enclosed_rows import enclosed_scores, open_bits
from byhand.scoring.float_batches import FloatBatches
from byhand.scoring.float_rows import float_scores
from byhand.scoring.samples import Sample
from byhand.scoring.scores import Floats, Scores
from byhand.tracing import Trace

GUARD = 6  # bits added to the missing ones, so that the next attempt is the last
MOST_FOR_TIES = 64  # bits beyond those of the digits that are spent on tokens that may be tied
MOST_DIGITS = 12  # decimals: scores are kept as float64
PLANS = 8  # plans of different lengths that are kept


class Scorer:
    """Scores texts of one model in one number system; what the texts share is made once.

    `float_format` is a float format; `digits` asks for proven decimals of each log-probability.
    Without either the numbers are floats of the model's usual format.

    >>> import byhand
    >>> from byhand.scoring.texts import read_texts
    >>> model = byhand.open_model("tiny")
    >>> (scores,) = Scorer(model, digits=6).score(read_texts(model, "a b a"))
    >>> scores.logprobs.round(6).tolist(), bool((scores.radii < 1e-6).all()), scores.ranks.tolist()
    ([-2.407606, -0.407606], True, [3, 1])
    """

    def __init__(
        self,
        model: Model,
        float_format: str | None = None,
        digits: int | None = None,
        device: str | None = None,
    ) -> None:
        Chosen(digits=digits, float=float_format, device=device).refuse_comparison()
        self.model = model
        refuse_unless_whole("digits", digits, 1, MOST_DIGITS)
        self.digits = digits
        self.device = device
        if self.digits is not None:
            self.numbers: Any = enclosing_numbers(model, self.digits, device=device)
            self.name = f"digits {self.digits}"
        else:
            format = float_format or evaluate.usual_format(model)
            self.numbers = numbers_for(model, Chosen(float=format, device=device), many=False)
            self.name = format
        self._plans: dict[tuple[int, tuple[str, ...]], Plan] = {}
        self._passes = Passes(Admitted(model.weights, self.numbers))
        self._bits: int | None = None  # what proved the text before
        self._batches: FloatBatches | None = None
        if self.digits is None and device is None:
            self._batches = FloatBatches(model, self.name)

    def score(self, samples: Iterable[Sample]) -> Iterator[Scores]:
        """The scores of each sample, in their order; floats are worked out side by side."""
        if self._batches is not None:
            yield from self._batches.score(list(samples))
            return
        self._bits = None  # so that nothing that was scored before changes an enclosure
        for sample in samples:
            yield self.score_one(sample)

    def score_one(self, sample: Sample) -> Scores:
        """The scores of one sample."""
        return self.worked_out(sample)[0]

    def worked_out(self, sample: Sample, also: Sequence[str] = ()) -> tuple[Scores, Trace]:
        """The scores of one sample, and the trace they come from, which keeps steps `also`."""
        try:
            if self.digits is None:
                return self._in_floats(sample, also)
            return self._proven(sample, self.digits, also)
        except InputError as error:
            error.where = error.where or _("text {name}").format(name=sample.name)
            raise

    @property
    def weights(self) -> Admitted:
        """The weights of the model, admitted to the number system."""
        return self._passes.weights

    # ------------------------------------------------------------------ floats

    def _in_floats(self, sample: Sample, also: Sequence[str]) -> tuple[Scores, Trace]:
        trace = self._worked(sample, self.numbers, keep=("logits", *also), times=1)
        return float_scores(sample, self.name, _logits(trace, sample)), trace

    def logits(self, sample: Sample) -> Floats:
        """The row of logits before each scored token, in floats."""
        return _logits(self._worked(sample, self.numbers, keep=("logits",), times=1), sample)

    # ------------------------------------------------------------------ digits

    def _proven(self, sample: Sample, digits: int, also: Sequence[str]) -> tuple[Scores, Trace]:
        """Enclosures with more bits until the decimals are proven, or the precision is at its end.

        Tokens that may be tied get MOST_FOR_TIES more bits and no more: no precision proves a tie.
        """
        assert isinstance(self.numbers, Enclosing)
        keep = ("logits", "logprobs", "next", *also)
        most = self.numbers.limit
        bits = self.numbers.bits if self._bits is None else self._bits
        enough = None  # bits that gave the digits, where only likeliest tokens were open
        while True:
            trace = self._worked(sample, self.numbers.at(bits), keep=keep, times=1)
            missing, tied = open_bits(trace, sample, digits)
            if missing <= 0:
                enough = bits if enough is None else enough
                if not tied or bits >= min(most, enough + MOST_FOR_TIES):
                    break
                bits = min(most, enough + MOST_FOR_TIES)
            elif bits >= most:
                break
            else:
                more = ceil(missing) + GUARD if isfinite(missing) else bits
                bits = min(most, bits + more)
        self._bits = bits if enough is None else enough
        return enclosed_scores(trace, sample, self.name), trace

    # ------------------------------------------------------------------ the pass

    def _worked(self, sample: Sample, numbers: Any, *, keep: Sequence[str], times: int) -> Trace:
        """The pass over all tokens but the last, which nothing follows."""
        job = self._job(sample, numbers, keep)
        kept = frozenset(job.plan[name].address for name in keep)
        return self._passes.work(job, keep=kept, times=times)

    def _job(self, sample: Sample, numbers: Any, asked: Sequence[str]) -> Job:
        read = sample.ids[:-1]
        plan = self._plan(len(read), tuple(asked))
        targets = (*[-1] * (sample.first - 1), *sample.scored)
        text = sample.text if sample.text is not None else self.model.vocabulary.decode(read)
        return Job(
            self.model, plan, numbers, text, read, asked=tuple(asked), targets=tuple(targets)
        )

    def _plan(self, length: int, asked: tuple[str, ...]) -> Plan:
        key = length, asked
        if key not in self._plans:
            if len(self._plans) >= PLANS:
                self._plans.pop(next(iter(self._plans)))
            whole = forward.plan(self.model.spec, length, logprobs="logprobs" in asked)
            self._plans[key] = whole.only(asked)
        return self._plans[key]


def _logits(trace: Trace, sample: Sample) -> Floats:
    return np.asarray(trace.steps["logits"], dtype=np.float64)[sample.first - 1 :]
