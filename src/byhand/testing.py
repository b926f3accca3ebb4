"""The assertion for the test suite of a port: every claimed number follows from the model.

    from byhand.testing import assert_follows

    def test_my_port_computes_what_the_model_says() -> None:
        assert_follows("gpt2-folder", my_port.dump("The cat sat on"), "The cat sat on")

The bound is worked out for every entry, so there is no tolerance to choose.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byhand.checking.verdicts import Marking
    from byhand.model import Model

WIDTH = 100  # columns of the table in a message


def assert_follows(
    model: str | Path | Model,
    claims: Any,
    text: str | None = None,
    *,
    precision: str | None = None,
    names: str | Path | Mapping[str, Any] | None = None,
    allow_unjudged: bool = False,
) -> Marking:
    """Raises an AssertionError unless every line of the claims follows from the lines above it.

    `model` is as for `byhand.trace`; `claims` is a file, a mapping from names to arrays, a capture,
    or a list of them.  `precision` is what the port works in; without it, the format of its arrays.
    `names` explains names of its own, as for `byhand.check`.
    A line that cannot be judged fails the test too, as does a step of another shape: what was not
    tested should not pass.  With `allow_unjudged` such lines pass if they are as near to what is
    expected as rounding usually leaves them: a dump of logits alone can be tested so.  A line that
    is far beyond that never passes.  Unknown names give a warning.

    >>> found = assert_follows("tiny", {"embed.token": [[1.0, 0.0], [0.0, 1.0]]}, "a b")
    >>> found.follows
    True
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    from byhand.api import check
    from byhand.checking.verdicts import Verdict
    from byhand.document.compose.marking import report, summary, unmatched_lines
    from byhand.document.media.terminal.parts import Terminal

    sources = claims if isinstance(claims, (list, tuple)) else (claims,)
    marking = check(model, *sources, text=text, precision=precision, names=names)
    aside = "\n".join(unmatched_lines(marking))
    known = allow_unjudged and any(line.times is not None for line in marking)
    if not known and all(line.verdict is Verdict.UNJUDGED for line in marking):
        raise AssertionError("\n".join(filter(None, (summary(marking), aside))))
    if not marking.passes(allow_unjudged=allow_unjudged):
        told = Terminal(WIDTH).lines([report(marking)])
        raise AssertionError("\n".join(filter(None, (*told, aside))))
    if aside:
        warnings.warn(aside, UserWarning, stacklevel=2)
    return marking
