"""byhand works a transformer out by hand: exact where it can be, named where it can't.

>>> import byhand
>>> trace = byhand.trace("tiny", "a b")
>>> trace["logits[1]"].tolist()
[1, -1, 0]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from byhand.version import __version__

if TYPE_CHECKING:
    from byhand.api import book, check, count, explain, generate, trace, traces
    from byhand.capturing import capture
    from byhand.capturing.captured import Capture
    from byhand.checking.verdicts import Marked, Marking
    from byhand.comparing import Comparison, StepComparison, compare
    from byhand.contrasting import Contrast, StepContrast, contrast
    from byhand.corpora import score_corpus
    from byhand.counting import Inventory
    from byhand.decimals import Float, Rational
    from byhand.errors import ByhandError, Undecided
    from byhand.explaining import Explanation
    from byhand.files.making import make_model
    from byhand.generating.generation import Chosen, Generation
    from byhand.golden import open_trace
    from byhand.golden.reading import SavedStep, SavedTrace
    from byhand.learning import Training, TrainingStep
    from byhand.lessons import step
    from byhand.likelihoods import score
    from byhand.model import Model
    from byhand.models import open_model
    from byhand.numbers.base import Numbers, Prediction
    from byhand.numbers.enclosed.enclosure import Enclosure
    from byhand.numbers.exact.value import Value
    from byhand.proofs import prove, verify
    from byhand.proving.outcome import Outcome
    from byhand.scoring.corpora.run import ScoredCorpus, open_scores
    from byhand.scoring.scored import Scored
    from byhand.scoring.scores import Scores
    from byhand.scoring.survey import Survey
    from byhand.spec import ModelSpec
    from byhand.surveys import survey
    from byhand.tracing import Trace
    from byhand.train.minigpt import MiniGPT
    from byhand.verifying import Verification
    from byhand.worked import Worked

_HOMES = {  # imported when first asked for, so that `import byhand` costs nothing
    "ByhandError": "byhand.errors",
    "Capture": "byhand.capturing.captured",
    "Chosen": "byhand.generating.generation",
    "Comparison": "byhand.comparing",
    "Contrast": "byhand.contrasting",
    "Enclosure": "byhand.numbers.enclosed.enclosure",
    "Explanation": "byhand.explaining",
    "Float": "byhand.decimals",
    "Generation": "byhand.generating.generation",
    "Inventory": "byhand.counting",
    "Marked": "byhand.checking.verdicts",
    "Marking": "byhand.checking.verdicts",
    "MiniGPT": "byhand.train.minigpt",
    "Model": "byhand.model",
    "ModelSpec": "byhand.spec",
    "Numbers": "byhand.numbers.base",
    "Outcome": "byhand.proving.outcome",
    "Prediction": "byhand.numbers.base",
    "Rational": "byhand.decimals",
    "SavedStep": "byhand.golden.reading",
    "SavedTrace": "byhand.golden.reading",
    "Scored": "byhand.scoring.scored",
    "ScoredCorpus": "byhand.scoring.corpora.run",
    "Scores": "byhand.scoring.scores",
    "StepComparison": "byhand.comparing",
    "StepContrast": "byhand.contrasting",
    "Survey": "byhand.scoring.survey",
    "Trace": "byhand.tracing",
    "Training": "byhand.learning",
    "TrainingStep": "byhand.learning",
    "Undecided": "byhand.errors",
    "Value": "byhand.numbers.exact.value",
    "Verification": "byhand.verifying",
    "Worked": "byhand.tracing",
    "book": "byhand.api",
    "capture": "byhand.capturing",
    "check": "byhand.api",
    "compare": "byhand.comparing",
    "contrast": "byhand.contrasting",
    "count": "byhand.api",
    "explain": "byhand.api",
    "generate": "byhand.api",
    "make_model": "byhand.files.making",
    "open_model": "byhand.models",
    "open_scores": "byhand.scoring.corpora.run",
    "open_trace": "byhand.golden",
    "prove": "byhand.proofs",
    "score": "byhand.likelihoods",
    "score_corpus": "byhand.corpora",
    "step": "byhand.lessons",
    "survey": "byhand.surveys",
    "trace": "byhand.api",
    "traces": "byhand.api",
    "verify": "byhand.proofs",
}

__all__ = [
    "ByhandError",
    "Capture",
    "Chosen",
    "Comparison",
    "Contrast",
    "Enclosure",
    "Explanation",
    "Float",
    "Generation",
    "Inventory",
    "Marked",
    "Marking",
    "MiniGPT",
    "Model",
    "ModelSpec",
    "Numbers",
    "Outcome",
    "Prediction",
    "Rational",
    "SavedStep",
    "SavedTrace",
    "Scored",
    "ScoredCorpus",
    "Scores",
    "StepComparison",
    "StepContrast",
    "Survey",
    "Trace",
    "Training",
    "TrainingStep",
    "Undecided",
    "Value",
    "Verification",
    "Worked",
    "__version__",
    "book",
    "capture",
    "check",
    "compare",
    "contrast",
    "count",
    "explain",
    "generate",
    "make_model",
    "open_model",
    "open_scores",
    "open_trace",
    "prove",
    "score",
    "score_corpus",
    "step",
    "survey",
    "trace",
    "traces",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
