"""A training run before it starts: its data, its model and every setting.

`reading` makes a `Run` of a RUN.yaml; from Python it can be made directly.  A run checks itself
when made: an impossible combination is a SpecError with the key as a RUN.yaml spells it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from byhand import schedules
from byhand.errors import SpecError
from byhand.files.normal import LARGEST_STD, SMALLEST_STD
from byhand.language import _, amount, later
from byhand.model import Model
from byhand.numbers.base import Unknown
from byhand.parameters import parameters
from byhand.spec import ModelSpec
from byhand.tokens import Vocabulary
from byhand.train.corpora import Corpus

FORMATS = ("float64", "float32", "bfloat16")
MOST = 10**9  # steps, texts a step, steps between two evaluations
LARGEST_SEED = 2**63 - 1
_NAME = re.compile(r"[\w][\w.-]{0,99}")


class Misfit(SpecError):
    """Two parts of a run do not fit together; `key` is the one to change."""

    def __init__(
        self, key: str, message: str, *, expected: str, found: str, hint: str | None = None
    ) -> None:
        super().__init__(key, expected=expected, found=found, hint=hint)
        self.message = message


@dataclass(frozen=True, slots=True)
class Optimizer:
    """The settings of AdamW: learning rate, decay rates of the moments, weight decay."""

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.1

    def __post_init__(self) -> None:
        _above_zero("optimizer.lr", self.lr)
        _above_zero("optimizer.eps", self.eps)
        for place, beta in enumerate(self.betas):
            _within(f"optimizer.betas[{place}]", beta, 0 <= beta < 1, _("from 0 to below 1"))
        decay = self.weight_decay
        _within("optimizer.weight_decay", decay, 0 <= decay < math.inf, _("not below 0"))


@dataclass(frozen=True, slots=True)
class Schedule(schedules.Schedule):
    """The learning rate over time: a linear warm-up, then half a cosine down."""

    def __post_init__(self) -> None:
        _within("schedule.end", self.end, 0 <= self.end <= 1, _("from 0 to 1"))


def usual_warmup(steps: int) -> int:
    """A tenth of the steps, at most 100."""
    return min(100, steps // 10)


@dataclass(frozen=True)
class Run:
    """Everything that decides the result of a training run.

    With `std`, matrices begin as normal numbers of this standard deviation, fixed by seed and name.
    Biases begin as 0 and gains as 1, and only the buffers of `start` are taken.  Without `std`, the
    run begins with the weights of `start`.
    """

    name: str
    corpus: Corpus
    spec: ModelSpec
    steps: int
    start: Model | None = None
    std: Fraction | None = Fraction(1, 50)
    context: int | None = None  # tokens read at a time; None: as many as the model takes
    batch: int = 64  # texts a step, over all processes and accumulations together
    accumulate: int = 1
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule | None = None  # None: the usual warm-up
    clip: float | None = 1.0
    evaluate_every: int = 100
    checkpoint_every: int = 200
    seed: int = 1234
    format: str = "float32"
    threads: int = 1
    data: str | Path | None = None  # how a RUN.yaml names the corpus; None: by its own name
    model: str | Path | None = None  # how a RUN.yaml names the model, if it does
    file: Path | None = None  # the RUN.yaml itself

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec", replace(self.spec, name=self.name))
        if self.context is None and self.spec.context is not None:
            object.__setattr__(self, "context", self.spec.context)
        if self.schedule is None:
            object.__setattr__(self, "schedule", Schedule(usual_warmup(self.steps)))
        self._check_settings()
        self._check_model()
        self._check_data()

    @property
    def window(self) -> int:
        """How many tokens are read at a time."""
        assert self.context is not None
        return self.context

    @property
    def weights_format(self) -> str:
        """The format of the weights: with bfloat16, only products are done in that."""
        return "float64" if self.format == "float64" else "float32"

    def rate(self, step: int) -> float:
        """The learning rate at a step from 1 to `steps`."""
        assert self.schedule is not None
        return self.optimizer.lr * self.schedule.share(step, self.steps)

    # ------------------------------------------------------------------- what must fit

    def _check_settings(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise SpecError("name", expected=_("a name that a folder can have"), found=self.name)
        for key, count in (
            ("steps", self.steps),
            ("batch", self.batch),
            ("accumulate", self.accumulate),
            ("evaluate.every", self.evaluate_every),
            ("checkpoint.every", self.checkpoint_every),
            ("threads", self.threads),
        ):
            if not 1 <= count <= MOST:
                expected = _("a whole number from {least} to {most}")
                raise SpecError(
                    key, expected=expected.format(least=1, most=f"{MOST:,}"), found=str(count)
                )
        if not 0 <= self.seed <= LARGEST_SEED:
            raise SpecError("seed", expected=_("from 0 to 2^63 - 1"), found=str(self.seed))
        if self.format not in FORMATS:
            raise SpecError("format", expected=", ".join(FORMATS), found=self.format)
        if self.accumulate > self.batch:
            raise SpecError(
                "accumulate",
                expected=_("at most the {count} texts of a step").format(count=self.batch),
                found=str(self.accumulate),
            )
        assert self.schedule is not None
        if not 0 <= self.schedule.warmup <= self.steps:
            raise SpecError(
                "schedule.warmup",
                expected=_("at most the {count} steps of the run").format(count=self.steps),
                found=str(self.schedule.warmup),
            )
        if self.clip is not None:
            _above_zero("clip", self.clip)
        if self.std is not None and not SMALLEST_STD <= self.std <= LARGEST_STD:
            expected = _("a number from {least} to {most}").format(least="2^-60", most="2^60")
            raise SpecError("init.std", expected=expected, found=str(self.std))

    def _check_model(self) -> None:
        for layer, block in enumerate(self.spec.blocks):
            if block.attention is not None and not block.attention.causal:
                raise Misfit(
                    "model.attention.causal",
                    _("a model that learns what comes next must not see it"),
                    expected="true",
                    found=_("false in layer {layer}").format(layer=layer),
                )
        if self.spec.outputs is not None:
            raise Misfit(
                "model",
                _("training predicts the next token of a text"),
                expected=_("a model without outputs of its own"),
                found=_("{count} outputs").format(count=self.spec.outputs),
            )
        if self.std is None:
            self._check_start()
        if self.spec.vocab != len(self.corpus.vocabulary):
            raise Misfit(
                "model",
                _("the model's tokens are not those of the data"),
                expected=_("{count} tokens, as the data has").format(
                    count=len(self.corpus.vocabulary)
                ),
                found=str(self.spec.vocab),
            )
        for parameter in parameters(self.spec):
            if parameter.kind == "buffer" and self.start is None:
                if parameter.name.endswith(".slopes"):  # these have usual values
                    continue
                raise Misfit(
                    "model",
                    _("{name} is not learned, so it must be given").format(name=parameter.name),
                    expected=_("a model file that has it"),
                    found=_("an architecture alone"),
                )

    def _check_start(self) -> None:
        """Checks the weights to begin from: all known, none shared, for the same tokens."""
        hint = _("start from new weights: init: {std: 0.02}")
        if self.start is None:
            raise Misfit(
                "init",
                _("there are no weights to start from"),
                expected="{std: 0.02}",
                found=_("nothing"),
            )
        if not _same_tokens(self.start, self.corpus.vocabulary):
            raise Misfit(
                "model",
                _("the model's tokens are not those of the data"),
                expected=self.corpus.vocabulary.sample(),
                found=self.start.vocabulary.sample(),
                hint=hint,
            )
        for name, tensor in self.start.weights.items():
            if tensor.same_as is not None:
                raise Misfit(
                    "model",
                    _("weights that are the same would be learned apart"),
                    expected=_("each weight by itself"),
                    found=_("{name} is the same as {other}").format(
                        name=name, other=tensor.same_as
                    ),
                    hint=hint,
                )
            if not tensor.floats and any(isinstance(x, Unknown) for x in tensor.data.flat):
                raise Misfit(
                    "model",
                    _("nothing can be learned from unknown weights"),
                    expected=_("weights that are known"),
                    found=_("{name} is unknown").format(name=name),
                    hint=hint,
                )

    def _check_data(self) -> None:
        limit = self.spec.context
        if self.context is None:
            raise Misfit(
                "context",
                _("the model takes texts of any length"),
                expected=_("how many tokens are read at a time"),
                found=_("nothing"),
            )
        if self.context < 1 or (limit is not None and self.context > limit):
            expected = _("a whole number from {least} to {most}")
            raise SpecError(
                "context",
                expected=expected.format(least=1, most=f"{limit or MOST:,}"),
                found=str(self.context),
            )
        corpus = self.corpus
        if corpus.stream:
            longest = max(map(len, corpus.train), default=0)
            if longest < self.context + 1:
                raise SpecError(
                    "context",
                    expected=_("at most {count}, for a text of {length} tokens").format(
                        count=longest - 1, length=longest
                    ),
                    found=str(self.context),
                )
        else:
            longest = max(map(len, (*corpus.train, *corpus.validation)), default=0)
            if longest > self.context + 1:
                raise SpecError(
                    "context",
                    expected=_("at least {count}, for documents of {length} tokens").format(
                        count=longest - 1, length=longest
                    ),
                    found=str(self.context),
                )
        for documents in (corpus.train, corpus.validation):
            if not any(len(document) > 1 for document in documents):
                raise Misfit(
                    "data",
                    _("there is no token to predict"),
                    expected=_("a document of two tokens or more"),
                    found=amount(len(documents), later("1 document"), later("{count} documents")),
                )


def _same_tokens(model: Model, vocabulary: Vocabulary) -> bool:
    theirs = model.vocabulary
    return isinstance(theirs, Vocabulary) and theirs == vocabulary


def _within(key: str, value: float, fits: bool, expected: str) -> None:
    if not fits:
        raise SpecError(
            key, expected=_("a number {range}").format(range=expected), found=f"{value:g}"
        )


def _above_zero(key: str, value: float) -> None:
    _within(key, value, 0 < value < math.inf, _("above 0"))
