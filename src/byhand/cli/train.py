"""`byhand train`: a model trained from a RUN.yaml, as a model file."""

from __future__ import annotations

import math
import os
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from byhand.cli.printing import print_data, talk, width_of_output
from byhand.cli.speaking import as_command, flag, json_option, later, option, whole_from
from byhand.errors import UsageError
from byhand.exit_status import INTERRUPTED
from byhand.language import _, whole

if TYPE_CHECKING:
    from byhand.train import Beat, Interrupted, Result

NEEDED = ("torch", "matplotlib", "tensorboardX")
MOST_STEPS = 10**9


@as_command(
    later("train a model, from a RUN.yaml to a model file"),
    later(
        "Trains a model as a RUN.yaml says, all in one folder: settings, log, loss curve, "
        "checkpoints and a model file for byhand trace. Ctrl-C saves. A run that was "
        "stopped in any way goes on with --resume and ends with the same bytes. Several "
        "processes work together under torchrun."
    ),
    {
        "RUN.yaml": later(
            "a file that says what is trained and how, or a built-in run: abc, minigpt"
        )
    },
)
@click.argument("run", metavar="RUN.yaml", required=False)
@option("--out", "DIR", later("the folder of the run (runs/NAME beside RUN.yaml unless told)"))
@flag("--resume", later("go on from the last checkpoint"))
@option("--device", "DEVICE", later("train on this device: cpu, cuda, cuda:1"))
@option(
    "--steps",
    "N",
    later("so many steps, in place of those in RUN.yaml"),
    callback=whole_from(1, MOST_STEPS),
)
@flag(
    "--compare-norms",
    later("in place of a run: norms before and after the branches, at growing depth"),
)
@json_option
def command(
    run: str | None,
    out: str | None,
    resume: bool,
    device: str | None,
    steps: int | None,
    compare_norms: bool,
    as_json: bool,
) -> int:
    """Trains a model, or compares the places of norms; returns the exit status."""
    from byhand.train import check_installed

    check_installed(*NEEDED)
    if compare_norms:
        from byhand.cli.norms import show_norms

        if run is not None or resume or device is not None:
            raise UsageError(
                _("--compare-norms is a run of its own"),
                expected="byhand train --compare-norms [--out DIR] [--steps N] [--json]",
            )
        return show_norms(out or "runs/norms", steps, as_json)
    if run is None:
        raise UsageError(
            _("{name} is missing").format(name="RUN.yaml"),
            hint=_("see {command} --help").format(command="byhand train"),
        )
    from byhand.train import Interrupted, read_run, train

    given = read_run(run, steps=steps)
    try:
        with telling(given.steps) as progress:
            result = train(given, out=out, resume=resume, device=device or "cpu", progress=progress)
    except Interrupted as stopped:
        if stopped.first:
            options = {"--out": out, "--device": device, "--steps": steps}
            again = [f"{name} {shlex.quote(str(said))}" for name, said in options.items() if said]
            tell_interrupted(stopped, " ".join(["byhand train", shlex.quote(run), *again]))
        return INTERRUPTED
    if result.first:
        tell(result)
        if as_json:
            print_data(data(result))
        else:
            show(result)
    return 0


# ------------------------------------------------------------------ on the way


@contextmanager
def telling(steps: int) -> Iterator[Callable[[Beat], None] | None]:
    """A callback that updates a line on stderr; None without a terminal."""
    from byhand.cli.progress import can_move, talk_console

    if not can_move() or os.environ.get("RANK", "0") != "0":
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.completed:,}/{task.total:,}"),
        BarColumn(None),
        TextColumn("{task.description}"),
        TimeRemainingColumn(compact=True),
        console=talk_console(),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        expand=True,
    )
    with bar:
        yield _Line(bar, bar.add_task("", total=steps)).beat


class _Line:
    """The line, shown ten times a second at any speed of the steps."""

    def __init__(self, bar: Any, task: Any) -> None:
        self.bar, self.task = bar, task
        self.shown = -1.0
        self.clock, self.tokens = 0.0, 0  # the time of the first step, and the tokens by then

    def beat(self, beat: Beat) -> None:
        now = time.monotonic()
        if not self.clock:
            self.clock, self.tokens = now, beat.tokens
        if now - self.shown < 0.1 and beat.step < beat.steps:
            return
        self.shown = now
        speed = (beat.tokens - self.tokens) / max(now - self.clock, 1e-9)
        line = _("loss {loss}  rate {rate}  gradient {norm}  {speed} tokens/s").format(
            loss=f"{beat.loss:.4f}", rate=f"{beat.rate:.1e}", norm=f"{beat.norm:.2f}",
            speed=f"{speed:,.0f}",
        )  # fmt: skip
        self.bar.update(self.task, completed=beat.step, description=line)


def tell_interrupted(stopped: Interrupted, command: str) -> None:
    """Says after which step a run was interrupted, and how to resume it."""
    talk(
        _("interrupted after step {step} of {steps}, and saved; go on with").format(
            step=whole(stopped.step), steps=whole(stopped.steps)
        )
    )
    talk(f"  {command} --resume", to_copy=True)


# ------------------------------------------------------------------ at the end


def tell(result: Result) -> None:
    """Prints remarks on a run on stderr."""
    for note in result.notes:
        talk(_("note: {note}; the last bits may differ").format(note=note))
    if result.began == result.steps:
        talk(_("this run had already finished: nothing was left to do"))
    elif result.began:
        talk(_("taken up after step {step}").format(step=whole(result.began)))


def show(result: Result) -> None:
    """Prints the result in a few lines."""
    from byhand.document.media.terminal.ink import wrap

    lines = {
        _("steps"): whole(result.steps),
        _("tokens"): whole(result.tokens),
        _("training loss"): short(result.losses[-1]),
        _("held-out loss"): _("{loss} (perplexity {perplexity}), after step {step}").format(
            loss=short(result.loss),
            perplexity=short(result.perplexity),
            step=whole(result.best_step),
        ),
        _("knowing nothing"): _loss(result.uniform),
    }
    if result.baseline is not None:
        lines[_("n-gram model")] = _loss(result.baseline)
    if result.questions:
        lines[_("right answers")] = _("{right} of {count}, {share}%").format(
            right=result.right,
            count=result.questions,
            share=f"{100 * result.right / result.questions:.1f}",
        )
    room = max(map(len, lines))
    print(f"{result.model.name}\n")
    for name, value in lines.items():
        lead = f"  {name:{room}}  "
        for line in wrap(lead + value, width_of_output(), subsequent_indent=" " * len(lead)):
            print(line)
    print(f"\n  byhand trace {shlex.quote(str(result.folder / 'model.yaml'))}")


def short(number: float) -> str:
    """Four decimals, or two digits where the decimals would all be zeros."""
    return f"{number:.4f}" if number == 0 or abs(number) >= 0.001 else f"{number:.1e}"


def _loss(loss: float) -> str:
    return _("{loss} (perplexity {perplexity})").format(
        loss=short(loss), perplexity=short(math.exp(loss))
    )


def data(result: Result) -> dict[str, Any]:
    """The result as data."""
    return {
        "run": result.model.name,
        "folder": str(result.folder),
        "model": str(result.folder / "model.yaml"),
        "steps": result.steps,
        "began": result.began,
        "tokens": result.tokens,
        "loss": result.losses[-1],
        "validation": {
            "step": result.best_step,
            "loss": result.loss,
            "perplexity": result.perplexity if math.isfinite(result.perplexity) else None,
        },
        "uniform": result.uniform,
        "baseline": result.baseline,
        "answers": {"right": result.right, "count": result.questions},
        "notes": list(result.notes),
    }
