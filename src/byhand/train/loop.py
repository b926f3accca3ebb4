"""The training loop: `train(run)`, from the first step or from the last checkpoint."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from byhand.errors import InputError, UsageError
from byhand.files.normal import normal
from byhand.files.tensors import usual_slopes
from byhand.language import _
from byhand.numbers.devices import to_numpy
from byhand.parameters import Parameter, parameters
from byhand.train.batches import Texts, held_out, share
from byhand.train.checkpoints import Best, Checkpoints, State
from byhand.train.evaluation import autocast, finite, mean_loss, perplexity, summed_loss
from byhand.train.flat import Flat
from byhand.train.folder import RunFolder, saving, surroundings, usual_folder
from byhand.train.interruption import Interrupted, Wish, listening
from byhand.train.log import Events, Log, add_timing
from byhand.train.module import TorchModel
from byhand.train.processes import Processes, joined
from byhand.train.reading import read_run
from byhand.train.result import Result, conclude, learned_model
from byhand.train.run import Run
from byhand.weights import Tensor as Weight
from byhand.weights import Weights

LOSS, STOP = 0, 1  # places of the exchanged numbers behind the gradients
SELDOM = 16  # steps between two reads of the GPU, each of which makes it wait


@dataclass(frozen=True, slots=True)
class Beat:
    """The progress of a run, after every step, or after every few on a GPU."""

    step: int
    steps: int
    loss: float
    rate: float
    norm: float
    tokens: int  # number of tokens predicted so far
    validation: float | None  # the last held-out loss


Progress = Callable[[Beat], None]


def train(
    run: str | Path | Run,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Result:
    """Trains a run to its end; its folder then holds the model, the log and the curve.

    The folder is `out`, or runs/NAME beside the RUN.yaml.  With `resume` the run goes on from its
    last checkpoint.  It ends with the same weights, optimizer state and log, byte for byte, as a
    run that was never stopped.  Ctrl-C saves and raises Interrupted.
    """
    run = run if isinstance(run, Run) else read_run(run)
    folder = usual_folder(run) if out is None else Path(out)
    with ExitStack() as stack:
        stack.enter_context(_settings(run, device))
        processes = stack.enter_context(joined(device))
        if processes.count * run.accumulate > run.batch:
            raise UsageError(
                _("there are more processes than texts in a step"),
                expected=_("at most {count} processes").format(count=run.batch // run.accumulate),
                found=str(processes.count),
            )
        training = _Training(run, folder, processes, progress, stack)
        wish = stack.enter_context(listening())
        state = training.begin(resume)
        try:
            return training.go_on(state, wish)
        except torch.OutOfMemoryError:
            raise InputError(
                _("the device has too little memory for this run"),
                found=str(processes.device),
                hint=_("a larger accumulate needs less memory and learns the same"),
            ) from None


@contextmanager
def _settings(run: Run, device: str) -> Iterator[None]:
    """As many threads as the run says; on a GPU, the same bits each time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(run.threads)
    try:
        if device.startswith("cuda"):
            with _same_bits():
                yield
        else:
            yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _same_bits() -> Iterator[None]:
    """Restricts torch to deterministic algorithms; used on a GPU alone, since it costs time."""
    before = torch.are_deterministic_algorithms_enabled()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it, cuBLAS refuses
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def first_weights(run: Run) -> Weights:
    """The weights that a run begins with."""
    known: dict[str, Weight] = {} if run.start is None else dict(run.start.weights)
    if run.std is None:
        return Weights(known)
    made = {p.name: known.get(p.name) for p in parameters(run.spec) if p.kind == "buffer"}
    return Weights(
        {p.name: made.get(p.name) or Weight(p.name, _fresh(p, run)) for p in parameters(run.spec)}
    )


def _fresh(parameter: Parameter, run: Run) -> Any:
    if parameter.kind == "buffer":
        return usual_slopes(parameter.size)
    if parameter.kind == "matrix":
        assert run.std is not None
        return normal(parameter.name, parameter.shape, run.std, run.seed)
    fill = np.ones if parameter.kind == "gain" else np.zeros
    return fill(parameter.shape, dtype=np.float32)


def _digest(tensors: dict[str, Tensor]) -> str:
    """SHA-256 of all numbers, by name."""
    total = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        total.update(name.encode() + b"\0" + np.ascontiguousarray(to_numpy(tensor)).tobytes())
    return total.hexdigest()


class _Training:
    """A run that is going on in this process."""

    def __init__(
        self,
        run: Run,
        folder: Path,
        processes: Processes,
        progress: Progress | None,
        stack: ExitStack,
    ) -> None:
        self.run = run
        self.processes = processes
        self.progress = progress
        self.stack = stack
        self.device = processes.device
        self.model = TorchModel(
            run.spec, first_weights(run), format=run.weights_format, device=str(self.device)
        )
        self.start = _digest(self.model.tensors())
        self.flat = Flat(self.model, told=2)
        self.texts = Texts(run.corpus, run.window, run.batch, run.seed, self.device)
        self.held_out = list(held_out(run.corpus, run.window, self.device))
        self.folder = RunFolder(folder, run, self.start)
        self.checkpoints = Checkpoints(self.folder.checkpoints, self.folder.identity)
        self.log: Log | None = None
        self.events: Events | None = None
        self.notes: list[str] = []
        self.waiting: list[tuple[int, float, int, Tensor, Tensor]] = []
        self.saved = 0

    # ------------------------------------------------------------------- the beginning

    def begin(self, resume: bool) -> State:
        """The state of the run: its beginning, or its last checkpoint."""
        state = State(0, 0, None, 0, hashlib.sha256().hexdigest())
        if self.processes.writes:
            around = surroundings(self.run, self.processes)
            self.notes = self.folder.open(resume=resume, around=around)
            self.stack.callback(self.folder.close)
            self.checkpoints.sweep()
            if (last := self.checkpoints.last()) is not None:
                state = self.checkpoints.load(last.step, self.flat)
            with saving(self.folder.path):
                if last is not None:
                    self.checkpoints.tidy(state)
                self.log = Log(self.folder.path, state.log_bytes, state.log_sha256)
                self.stack.callback(self.log.close)
                self.events = Events(self.folder.path, state.step)
                self.stack.callback(self.events.close)
        self.processes.agree(self.flat.values, self.flat.first, self.flat.second)
        step, tokens = (self.processes.tell(number) for number in (state.step, state.tokens))
        self.saved = step
        return replace(state, step=step, tokens=tokens)

    # ------------------------------------------------------------------- the steps

    def go_on(self, state: State, wish: Wish) -> Result:
        """Runs the remaining steps and finishes the run."""
        run, clock = self.run, time.perf_counter()
        first = state
        for step in range(first.step + 1, run.steps + 1):
            tokens = self.step(step, state.tokens, wish)
            state = replace(state, step=step, tokens=tokens)
            evaluates = step % run.evaluate_every == 0 or step == run.steps
            saves = step % run.checkpoint_every == 0 or step == run.steps
            if self.device.type == "cuda" and step % SELDOM and not evaluates and not saves:
                continue
            stops = self.stops(wish)
            with saving(self.folder.path):
                self.tell(state)
                if evaluates:
                    state = self.evaluate(state)
                    saves = saves or (state.best is not None and state.best.step == step)
                if saves or stops:
                    state = self.save(state)
            if stops and step < run.steps:
                self.time(first, state, clock)
                raise Interrupted(self.folder.path, step, run.steps, self.processes.writes)
        self.time(first, state, clock)
        return self.finish(state, first.step)

    def step(self, step: int, tokens: int, wish: Wish) -> int:
        """Makes one step of AdamW; returns the number of tokens predicted so far."""
        run, flat = self.run, self.flat
        rows = self.texts.rows(step)
        count = self.texts.tokens(rows)
        mine = share(rows, self.processes.rank, self.processes.count)
        loss = torch.zeros((), dtype=flat.values.dtype, device=self.device)
        for part in range(run.accumulate):
            inputs, targets = self.texts.take(share(mine, part, run.accumulate))
            with autocast(run.format, self.device):
                own = summed_loss(self.model(inputs), targets) / count
            flat.take_gradients(own, add=part > 0)
            loss = own.detach() if part == 0 else loss + own.detach()
        if self.processes.count > 1:
            flat.told[LOSS], flat.told[STOP] = loss, float(wish.stop)
            self.processes.sum(flat.shared)
            loss = flat.told[LOSS].clone()
        rate = run.rate(step)
        norm = flat.clip(run.clip)
        flat.update(run.optimizer, rate, step)
        self.waiting.append((step, rate, tokens + count, loss, norm))
        return tokens + count

    def stops(self, wish: Wish) -> bool:
        """Whether any process was asked to stop; the same answer in all processes."""
        return wish.stop if self.processes.count == 1 else bool(self.flat.told[STOP] > 0)

    def tell(self, state: State) -> None:
        """Logs the steps that are not logged yet."""
        numbers = torch.stack([number for *_rest, loss, norm in self.waiting
                               for number in (loss, norm)]).tolist()  # fmt: skip
        for (step, rate, tokens, *_numbers), loss, norm in zip(
            self.waiting, numbers[::2], numbers[1::2], strict=True
        ):
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise self.diverged(step, loss)
            if self.log is not None and self.events is not None:
                record = {"step": step, "loss": loss, "lr": rate, "grad_norm": norm}
                self.log.add({**record, "tokens": tokens})
                self.events.add(step, {"loss/train": loss, "lr": rate, "grad_norm": norm})
        self.waiting.clear()
        if self.progress is not None:
            last = None if self.log is None else self.log.validation
            self.progress(Beat(step, self.run.steps, loss, rate, norm, tokens, last))

    def diverged(self, step: int, loss: float) -> InputError:
        return InputError(
            _("the loss is no longer a finite number"),
            where=_("step {step}").format(step=step),
            found=str(loss),
            hint=_("a lower optimizer.lr, a longer schedule.warmup or a lower clip may help"),
        )

    def evaluate(self, state: State) -> State:
        """The state after an evaluation on the held-out split, with a new best if it is one."""
        if self.log is None or self.events is None:
            return state
        loss = mean_loss(self.model, self.held_out, self.run.format, self.device)
        if not math.isfinite(loss):
            raise self.diverged(state.step, loss)
        hesitation = finite(perplexity(loss))
        self.log.add({"step": state.step, "validation_loss": loss, "perplexity": hesitation})
        self.events.add(state.step, {"loss/validation": loss})
        better = state.best is None or loss < state.best.loss
        return replace(state, best=Best(state.step, loss)) if better else state

    def save(self, state: State) -> State:
        """Writes a checkpoint, unless this step has one."""
        if self.log is None or self.events is None or self.saved == state.step:
            return state
        self.log.write(settle=True)
        self.events.write()
        state = replace(state, log_bytes=self.log.size, log_sha256=self.log.digest)
        self.checkpoints.save(state, self.flat)
        self.saved = state.step
        return state

    def time(self, first: State, state: State, clock: float) -> None:
        if self.processes.writes and state.step > first.step:
            seconds = time.perf_counter() - clock
            with saving(self.folder.path):
                add_timing(
                    self.folder.path,
                    {
                        "from": first.step,
                        "to": state.step,
                        "seconds": round(seconds, 3),
                        "tokens_per_second": round((state.tokens - first.tokens) / seconds),
                    },
                )

    def finish(self, state: State, began: int) -> Result:
        """Writes the model with the best weights and the curve; returns the result."""
        outcome = None
        if self.log is not None:
            with saving(self.folder.path):
                self.checkpoints.load_best(state, self.flat)
                outcome = conclude(
                    self.run, self.folder.path, self.model, self.log.records, self.device
                )
        self.processes.agree(self.flat.values)
        outcome = self.processes.hand_round(outcome)
        assert outcome is not None
        return Result(
            folder=self.folder.path,
            steps=state.step,
            began=began,
            tokens=state.tokens,
            model=learned_model(self.run, self.model, self.folder.path),
            notes=tuple(self.notes),
            first=self.processes.writes,
            **outcome,
        )
