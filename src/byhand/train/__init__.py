"""Training: the data, the baseline to beat, and the training of a network.

`corpora` has the texts and `ngram` the baseline; neither needs torch.  `TorchModel` is the plan as
a torch module, `train` carries out a RUN.yaml; they are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from byhand.errors import InputError
from byhand.language import _

if TYPE_CHECKING:
    from byhand.train.interruption import Interrupted
    from byhand.train.loop import Beat, train
    from byhand.train.module import TorchModel
    from byhand.train.norms import Comparison, compare_norms, write_comparison
    from byhand.train.reading import read_run
    from byhand.train.result import Result
    from byhand.train.run import Run

__all__ = [
    "Beat",
    "Comparison",
    "Interrupted",
    "Result",
    "Run",
    "TorchModel",
    "compare_norms",
    "read_run",
    "train",
    "write_comparison",
]

_HOMES = {
    "Beat": "loop",
    "Comparison": "norms",
    "Interrupted": "interruption",
    "Result": "result",
    "Run": "run",
    "TorchModel": "module",
    "compare_norms": "norms",
    "read_run": "reading",
    "train": "loop",
    "write_comparison": "norms",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"byhand.train.{_HOMES[name]}"), name)


def check_installed(*packages: str) -> None:
    """Raises an InputError that says how to install missing packages."""
    for package in packages:
        try:
            import_module(package)
        except ImportError:
            raise InputError(
                _("{package} is not installed").format(package=package),
                hint="pip install 'byhand[train]'",
            ) from None
