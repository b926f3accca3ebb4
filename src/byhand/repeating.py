"""Traces of several texts of one model: weights are admitted once, GPU passes repeated.

Texts that share a plan (one length, one mask) take the same steps.  On a GPU their pass is prepared
once, and every decision of the host is noted.  For each further text it runs as one graph
(`numbers.enclosed.gpu.repeated_pass`).  The bounds behind each decision are checked for each text;
where one fails, that text is worked out as usual.  So every enclosure contains the real value,
prepared or not; a repeated one may be a little wider or narrower than a single one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from byhand.evaluate import Admitted, Job, Progress, Revise, prepare
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import Numbers
from byhand.options import does_not_fit
from byhand.plan import Plan
from byhand.tracing import Trace
from byhand.worked import Worked

if TYPE_CHECKING:
    from byhand.numbers.enclosed.gpu.repeated_pass import RepeatedPass

FEWEST = 3  # texts of one plan that are worth preparing, which takes as long as two passes
ROOM = 64.0  # factor between texts: short ones differ by more than the texts of benchmarks
PREPARED = 2  # plans kept prepared at a time: each holds the memory of a pass


def can_repeat(numbers: Numbers) -> bool:
    """Whether passes in these numbers are worth repeating: enclosures on a GPU."""
    device = getattr(numbers, "device", None)
    return numbers.uniform == "enclosed" and device is not None and device.type == "cuda"


@dataclass
class _Prepared:
    """A plan that was prepared, and how many of its texts are still to come."""

    plan: Plan
    bits: int
    keep: Collection[str] | None
    again: RepeatedPass
    left: int


class Passes:
    """The passes of one model over several texts, in numbers that share their admitted weights."""

    def __init__(self, weights: Admitted) -> None:
        self.weights = weights
        self._prepared: list[_Prepared] = []

    def work(
        self,
        job: Job,
        *,
        keep: Collection[str] | None = None,
        progress: Progress | None = None,
        times: int = 1,
        revise: Revise | None = None,
    ) -> Trace:
        """The trace of a job, as `Job.work` gives it; `times` counts the remaining jobs that share
        its plan object, this one included.  A pass with steps to revise is not repeated."""
        again = revise is None and can_repeat(job.numbers)
        ready = self._ready(job, keep, times) if again else None
        if ready is None:
            return job.work(progress=progress, keep=keep, weights=self.weights, revise=revise)
        ready.left -= 1
        steps = dict(ready.again.lasting(job.tokens))
        if "tokens" in steps:
            steps["tokens"] = replace(steps["tokens"], value=tuple(job.tokens))
        if progress:
            for step in job.plan:
                progress(step)
        return job.traced(steps)

    def _ready(self, job: Job, keep: Collection[str] | None, times: int) -> _Prepared | None:
        """The prepared pass of a job's plan, made if enough jobs share it; None otherwise."""
        bits = job.numbers.bits  # type: ignore[attr-defined]
        for ready in self._prepared:
            if ready.plan is job.plan and (ready.bits, ready.keep) == (bits, keep):
                return ready if ready.again.repeats else None
        beside = job.target is not None or job.source is not None  # the graph reads tokens alone
        if times < FEWEST or beside or any(job.instead().values()):
            return None
        wanted = [
            ready for ready in self._prepared if ready.left > 0 and ready.plan is not job.plan
        ]
        if len(wanted) >= PREPARED:
            return None
        self._prepared = wanted  # finished plans and other precisions are freed
        ready = _Prepared(job.plan, bits, keep, self._prepare(job, keep), times)
        self._prepared.append(ready)
        return ready if ready.again.repeats else None

    def _prepare(self, job: Job, keep: Collection[str] | None) -> RepeatedPass:
        from byhand.numbers.enclosed.gpu.repeated_pass import RepeatedPass

        def work(tokens: Sequence[int]) -> Any:
            return replace(job, tokens=tuple(tokens)).work(keep=keep, weights=self.weights).steps

        device = job.numbers.device  # type: ignore[attr-defined]
        return RepeatedPass(work, job.tokens, device, room=ROOM)


def prepare_texts(
    model: Model,
    texts: Iterable[str],
    numbers: Callable[[], Numbers],
    sources: Iterable[str] | None = None,
    **asked: Any,
) -> list[Job]:
    """The jobs of several texts, as `prepare` makes them; texts of one length share their plan.

    `sources` are what an encoder reads, one for each text.

    They share their number system as well, except an exact one: its letters stand for numbers of
    one text.
    """
    jobs: list[Job] = []
    plans: dict[Any, Plan] = {}
    system = numbers()
    for text, source in _pairs(texts, sources):
        job = prepare(model, text, system if system.uniform else numbers(), source=source, **asked)
        read = None if job.source is None else len(job.source.tokens)
        key = len(job.tokens), read, job.target is None
        jobs.append(replace(job, plan=plans.setdefault(key, job.plan)))
    return jobs


def _pairs(texts: Iterable[str], sources: Iterable[str] | None) -> Iterator[tuple[str, str | None]]:
    """Each text with its source; a UsageError where there are more of one than of the other."""
    if sources is None:
        yield from ((text, None) for text in texts)
        return
    written, read = list(texts), list((sources,) if isinstance(sources, str) else sources)
    if len(written) != len(read):
        expected = _("a source for each of the {count} texts").format(count=len(written))
        raise does_not_fit("sources", expected, len(read))
    yield from zip(written, read, strict=True)


def counted_down(jobs: Sequence[Job]) -> Iterator[tuple[Job, int]]:
    """Each job, and how many of the jobs from it on share its plan."""
    left = Counter(id(job.plan) for job in jobs)
    for job in jobs:
        yield job, left[id(job.plan)]
        left[id(job.plan)] -= 1


def work_texts(jobs: Sequence[Job], *, progress: Progress | None = None) -> Iterator[Trace]:
    """The traces of jobs of one model in one number system, one after another."""
    shared: dict[int, Passes] = {}
    for job, times in counted_down(jobs):
        own = Passes(Admitted(job.model.weights, job.numbers))
        yield shared.setdefault(id(job.numbers), own).work(job, progress=progress, times=times)


def last_row(trace: Trace, address: str, row: int) -> Worked:
    """A step of a trace with one of its rows alone."""
    worked = trace.steps[address]
    if worked.missing is not None:
        return worked
    if worked.step.op == "argmax":
        return replace(worked, value=[worked.value[row]])
    return replace(worked, value=worked.numbers.take_rows(worked.value, [row]))
