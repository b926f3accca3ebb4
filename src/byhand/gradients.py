"""The gradients of a trace, by what they are gradients of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from byhand.display import one_line
from byhand.errors import AddressError
from byhand.language import _
from byhand.plan import GRAD, WEIGHT


class Gradients(Mapping[str, Any]):
    """The gradients of a trace: `grad["logits"]` is the step `grad.logits`."""

    def __init__(self, trace: Any) -> None:
        self._trace = trace

    def __getitem__(self, address: str) -> Any:
        if not any(True for _name in self):
            raise AddressError(
                _("this trace has no gradients"),
                hint=_("ask for them: backward=True"),
            )
        return self._trace[GRAD + address]

    def __iter__(self) -> Iterator[str]:
        """What has a gradient: addresses of steps, and of weights with `weight.` before them."""
        trace = self._trace
        found = (name for name, step in trace.plan.known.items() if step in trace.steps)
        names = (name.removeprefix(GRAD) for name in found if name.startswith(GRAD))
        weights = {WEIGHT + name for name in trace.model.weights}
        return (name for name in names if name in weights or name in trace.plan.known)

    def __len__(self) -> int:
        return sum(1 for _name in self)

    def __repr__(self) -> str:
        return f"<Gradients: {len(self)} of {one_line(self._trace.model.name)}>"
