"""Checkpoints: all that a run needs to resume to the bit, each in a folder that appears whole.

    checkpoints/index.json                      which is the last and which the best
    checkpoints/step-000200/weights.safetensors     the parameters by name
    checkpoints/step-000200/optimizer.safetensors   first.NAME and second.NAME, AdamW's moments
    checkpoints/step-000200/state.json              step, tokens, best, log, the run, and SHA-256s

A folder is written as a draft, synced to the disk and renamed; drafts that a crash left behind are
removed.  The last two checkpoints are kept, and the best one that each of them refers to.  All
randomness is a function of the step, so no generator's state is stored.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from byhand.drafts import draft_of, write_bytes
from byhand.errors import InputError
from byhand.files.mapped import open_tensors
from byhand.files.tensor_file import Form, TensorFile
from byhand.language import _
from byhand.numbers.devices import to_numpy
from byhand.train.flat import Flat
from byhand.train.folder import (
    DRAFT,
    Facts,
    as_json,
    check_identity,
    digest_of,
    put_in_place,
    saving,
    settle,
)

INDEX, WEIGHTS, MOMENTS, STATE = (
    "index.json", "weights.safetensors", "optimizer.safetensors", "state.json",
)  # fmt: skip
KEPT = 2  # last checkpoints that are kept
_NAME = re.compile(r"step-([0-9]{6,})")


@dataclass(frozen=True)
class Best:
    """The evaluation with the lowest loss so far."""

    step: int
    loss: float


@dataclass(frozen=True)
class State:
    """The state of a run, without its weights and moments."""

    step: int
    tokens: int
    best: Best | None
    log_bytes: int
    log_sha256: str


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path, identity: Facts) -> None:
        self.folder = folder
        self.identity = identity

    # ------------------------------------------------------------------- finding

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, in order."""
        found = (_NAME.fullmatch(entry.name) for entry in self.folder.iterdir())
        return sorted(int(match[1]) for match in found if match)

    def at(self, step: int) -> Path:
        """The folder of the checkpoint after this step."""
        return self.folder / f"step-{step:06d}"

    def sweep(self) -> None:
        """Removes folders that a crash has left half written or half removed."""
        with saving(self.folder):
            self.folder.mkdir(exist_ok=True)
            for entry in self.folder.iterdir():
                if entry.name.startswith(".") and entry.name.endswith(DRAFT):
                    if entry.is_dir():
                        shutil.rmtree(entry)
                    else:
                        entry.unlink()

    # ------------------------------------------------------------------- saving

    def save(self, state: State, flat: Flat) -> None:
        """Writes a checkpoint; when this returns, it is on the disk."""
        target = self.at(state.step)
        with saving(target):
            with draft_of(target, f".{target.name}{DRAFT}") as draft:
                draft.mkdir()
                digests = {
                    WEIGHTS: write_tensors(draft / WEIGHTS, flat.by_name(flat.values)),
                    MOMENTS: write_tensors(draft / MOMENTS, moments(flat)),
                }
                write_bytes(draft / STATE, as_json(self._sealed(state, digests)))
                settle(draft)
            settle(self.folder)
            self.tidy(state)

    def tidy(self, state: State) -> None:
        """Writes the index and prunes; repeated when a run is resumed, in case of a crash."""
        best = None if state.best is None else self.at(state.best.step).name
        index = as_json({"last": self.at(state.step).name, "best": best})
        path = self.folder / INDEX
        if not path.exists() or path.read_bytes() != index:
            put_in_place(path, index)
        self._prune(state)

    def _sealed(self, state: State, digests: Mapping[str, str]) -> Facts:
        facts = {
            "format": "byhand checkpoint",
            "version": 1,
            **asdict(state),
            "files": dict(digests),
            "run": self.identity,
        }
        return {**facts, "sha256": digest_of(facts)}

    def _prune(self, state: State) -> None:
        """Removes the checkpoints that are neither kept nor the best of a kept one."""
        last = self.steps()[-KEPT:]
        needed = set(last)
        for step in last:
            known = state.best if step == state.step else self._best_at(step)
            if known is not None:
                needed.add(known.step)
        for step in self.steps():
            if step not in needed:
                gone = self.folder / f".{self.at(step).name}{DRAFT}"
                self.at(step).rename(gone)  # at once: never a checkpoint with half of its files
                shutil.rmtree(gone)

    def _best_at(self, step: int) -> Best | None:
        """The best evaluation known to an earlier checkpoint; None where it cannot be read."""
        try:
            return read_state(self.at(step), self.identity)[0].best
        except InputError:  # refused when it is loaded, not during a run
            return None

    # ------------------------------------------------------------------- loading

    def last(self) -> State | None:
        """The state of the newest checkpoint; None where there is none."""
        steps = self.steps()
        return read_state(self.at(steps[-1]), self.identity)[0] if steps else None

    def load(self, step: int, flat: Flat) -> State:
        """Loads the numbers of a checkpoint, which must be whole and of this run."""
        folder = self.at(step)
        state, files = read_state(folder, self.identity)
        into = {WEIGHTS: flat.by_name(flat.values), MOMENTS: moments(flat)}
        for name, tensors in into.items():
            read_tensors(folder / name, tensors, str(files[name]))
        return state

    def load_best(self, state: State, flat: Flat) -> None:
        """Loads the weights with the lowest held-out loss."""
        assert state.best is not None
        folder = self.at(state.best.step)
        _state, files = read_state(folder, self.identity)
        read_tensors(folder / WEIGHTS, flat.by_name(flat.values), str(files[WEIGHTS]))


def moments(flat: Flat) -> dict[str, Tensor]:
    """AdamW's two moments of each parameter."""
    first, second = flat.by_name(flat.first), flat.by_name(flat.second)
    return {f"first.{name}": part for name, part in first.items()} | {
        f"second.{name}": part for name, part in second.items()
    }


# ------------------------------------------------------------------ files


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """Writes a safetensors file to the disk and returns its SHA-256."""
    arrays = {name: to_numpy(tensor) for name, tensor in tensors.items()}
    forms = {name: Form(array.dtype, array.shape) for name, array in arrays.items()}
    with TensorFile(path, forms, {}) as file:
        for name, array in arrays.items():
            file.put(name, array)
        file.finish()
    return _digest(path)


@torch.no_grad()
def read_tensors(path: Path, into: Mapping[str, Tensor], digest: str) -> None:
    """Copies the tensors of a file, whose SHA-256 must be `digest`."""
    try:
        found = _digest(path)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None
    if found != digest:
        raise _unusable(path, _("its bytes are not those that were saved"))
    stored = open_tensors(path)
    for name, tensor in into.items():
        tensor.copy_(torch.tensor(stored[name].array()))


def read_state(folder: Path, identity: Facts) -> tuple[State, Facts]:
    """The state in state.json, which must be whole and of this run, and the files' SHA-256s."""
    path = folder / STATE
    try:
        facts = json.loads(path.read_bytes())
        seal = facts.pop("sha256")
        if seal != digest_of(facts):
            raise ValueError
        best = None if facts["best"] is None else Best(**facts["best"])
        state = State(facts["step"], facts["tokens"], best, facts["log_bytes"], facts["log_sha256"])
        files = dict(facts["files"])
        run = facts["run"]
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _unusable(path, _("its bytes are not those that were saved")) from None
    check_identity(run, identity, folder)
    if folder.name != f"step-{state.step:06d}":
        raise _unusable(path, _("it was saved at step {step}").format(step=state.step))
    return state, files


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unusable(path: Path, reason: str) -> InputError:
    return InputError(
        _("this checkpoint cannot be used: {reason}").format(reason=reason),
        where=str(path),
        hint=_("remove the folder {folder} to go on from the checkpoint before it").format(
            folder=path.parent
        ),
    )
