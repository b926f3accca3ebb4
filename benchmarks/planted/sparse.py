"""The planted bugs in sparse dumps: block outputs and logits, or logits alone.

python -m benchmarks.planted.sparse [--mode=blocks|logits] [--format=F] [--seed=N] [--every=N]
                                   [BUG …]

Without bugs to plant (`--correct`), every line must follow or be near to what is expected.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import byhand
from benchmarks.planted import models
from benchmarks.planted.bugs import BUGS, FORMATS
from benchmarks.planted.bugs.catalogue import FAMILIES
from benchmarks.planted.matrix import dump
from byhand.checking.verdicts import Marked, Marking

MODES = {"blocks": re.compile(r"block\.\d+\.mlp\.add|logits"), "logits": re.compile("logits")}


@dataclass(frozen=True)
class Sparse:
    """What was said of one bug in one sparse dump."""

    bug: str
    family: str
    format: str
    mode: str
    line: Marked | None  # the first line that is wrong or unusual
    seconds: float

    @property
    def named(self) -> bool:
        """Whether the first cause is the planted one."""
        causes = self.line.suspects if self.line else ()
        return bool(causes) and causes[0].kind in BUGS[self.bug].causes

    @property
    def false(self) -> bool:
        """Whether a cause is given, and none of them is the planted one."""
        causes = self.line.suspects if self.line else ()
        return bool(causes) and not any(each.kind in BUGS[self.bug].causes for each in causes)


def checked(bug: str | None, family: str, format: str, mode: str, seed: int) -> Marking:
    """A sparse dump of a port, marked."""
    claims: Mapping[str, object] = {
        name: value
        for name, value in dump(bug, family, format, seed).items()
        if MODES[mode].fullmatch(name)
    }
    text = " ".join(map(str, models.some_ids(family, seed)))
    return byhand.check(models.model(family, seed), claims, text=text, precision=format)


def found(bug: str, family: str, format: str, mode: str, seed: int = 0) -> Sparse:
    """What is said of one bug."""
    start = time.perf_counter()
    marking = checked(bug, family, format, mode, seed)
    seconds = time.perf_counter() - start
    marked = [line for line in marking if line.unusual or line.verdict.follows is False]
    return Sparse(bug, family, format, mode, marked[0] if marked else None, seconds)


def everything(
    names: list[str], formats: list[str], modes: list[str], seed: int, every: int = 1
) -> Iterator[Sparse]:
    """Every bug that needs no padding, in every family; or every so many of them."""
    ports = [
        (bug.name, family, format, mode)
        for format in formats
        for mode in modes
        for bug in map(BUGS.__getitem__, names or BUGS)
        for family in bug.shows
        if format in bug.formats and not bug.padding
    ]
    for bug, family, format, mode in ports[seed % every :: every]:
        yield found(bug, family, format, mode, seed)


def correct(formats: list[str], modes: list[str], seed: int) -> Iterator[tuple[str, Marked]]:
    """The lines of correct sparse dumps."""
    for format in formats:
        for family in FAMILIES:
            for mode in modes:
                for line in checked(None, family, format, mode, seed):
                    yield f"{format} {family} {mode}", line


def _told(each: Sparse) -> str:
    mark = "✓" if each.named else "✗" if each.false else "·"
    line = each.line
    head = f"{mark} {each.bug} in {each.family}, {each.format}, {each.mode}, {each.seconds:.1f} s:"
    if line is None:
        return f"{head} nothing unusual"
    times = "?" if line.times is None else f"{line.times:.3g}"
    said = " | ".join(f"[{cause.kind}] {cause.sentence}" for cause in line.suspects)
    return f"{head} {line.address} {line.verdict.value} ×{times} ask {line.ask}; {said}"


def main(arguments: list[str]) -> None:
    """Plants bugs in sparse dumps, or none, and says what the check says."""
    import torch

    torch.set_num_threads(1)
    names = [each for each in arguments if not each.startswith("--")]
    options = dict(
        each.removeprefix("--").partition("=")[::2] for each in arguments if each.startswith("--")
    )
    formats = [options["format"]] if "format" in options else list(FORMATS)
    modes = [options["mode"]] if "mode" in options else list(MODES)
    seed = int(options.get("seed", "0"))
    if "correct" in options:
        for label, line in correct(formats, modes, seed):
            print(label, line.address, line.verdict.value, line.times, line.near, line.suspects)
        return
    results = []
    for each in everything(names, formats, modes, seed, int(options.get("every", "1"))):
        results.append(each)
        print(_told(each), flush=True)
    for format in formats:
        for mode in modes:
            own = [each for each in results if (each.format, each.mode) == (format, mode)]
            seen = [each for each in own if each.line is not None]
            print(
                f"{format} {mode}: {len(own)} ports, {len(seen)} seen, "
                f"{sum(each.named for each in own)} causes, {sum(each.false for each in own)} "
                f"false, {sum(each.seconds for each in own):.0f} s"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
