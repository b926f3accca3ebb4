"""The folder of a run: its identity, its lock, and its files.

    run.yaml       the run, every setting written out
    manifest.json  what it was made with: versions, data, sizes, and the run in short
    log.jsonl, events.out.tfevents.…, timings.jsonl      (see `log`)
    checkpoints/                                         (see `checkpoints`)
    loss.svg, loss.png, model.yaml, model.safetensors    written when the run ends

A file is written beside its place and renamed, so it is there whole or not at all.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from byhand.drafts import draft_of, write_bytes
from byhand.errors import InputError, OutputError
from byhand.files.tables import model_table
from byhand.language import _
from byhand.parameters import size_of
from byhand.train.processes import Processes
from byhand.train.run import Run
from byhand.train.writing import run_text, settings
from byhand.version import __version__

RUN, MANIFEST, LOCK = "run.yaml", "manifest.json", ".lock"
CHECKPOINTS = "checkpoints"
DRAFT = ".draft"  # suffix of unfinished files and folders

Facts = dict[str, Any]


def usual_folder(run: Run) -> Path:
    """runs/NAME beside the RUN.yaml."""
    beside = Path() if run.file is None else run.file.parent
    return beside / "runs" / run.name


# ------------------------------------------------------------------ whole files


@contextmanager
def saving(folder: Path) -> Iterator[None]:
    """Turns an OSError into an OutputError, which says that earlier checkpoints are safe."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            _("cannot be written"),
            where=str(error.filename or folder),
            found=error.strerror or str(error),
            hint=_("what was saved before is safe: make room and go on with --resume"),
        ) from None


def put_in_place(path: Path, data: bytes) -> None:
    """Writes a file to the disk, whole or not at all."""
    with draft_of(path, f".{path.name}{DRAFT}") as draft:
        write_bytes(draft, data)
    settle(path.parent)


def settle(folder: Path) -> None:
    """Syncs the names in a folder to the disk."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def as_json(facts: Mapping[str, Any]) -> bytes:
    """Facts as the bytes of a JSON file."""
    return (json.dumps(facts, ensure_ascii=False, indent=1) + "\n").encode()


def digest_of(facts: Any) -> str:
    """SHA-256 of the compact JSON of some facts."""
    text = json.dumps(facts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# ------------------------------------------------------------------ identity


WITHOUT_EFFECT = ("checkpoint", "threads")  # settings that change no number


def identity(run: Run, start: str) -> Facts:
    """The facts that decide the numbers of a run; `start` is the digest of its first weights."""
    facts: Facts = {
        "data": run.corpus.digest,
        "model": digest_of(model_table(run.spec)),
        "start": start,
    }
    for key, value in settings(run).items():
        if isinstance(value, dict) and key not in WITHOUT_EFFECT:
            facts |= {f"{key}.{part}": inner for part, inner in value.items()}
        elif key not in WITHOUT_EFFECT:
            facts[key] = value
    return facts


def check_identity(found: Any, expected: Facts, where: Path) -> None:
    """Raises an error where the found identity is another run's, and names the difference."""
    theirs = found if isinstance(found, dict) else {}
    differing = [key for key in expected if theirs.get(key) != expected[key]]
    if not differing:
        return
    first = differing[0]
    rest = _("other too: {names}").format(names=", ".join(differing[1:]))
    raise InputError(
        _("this belongs to another run: it differs in {key}").format(key=first),
        where=str(where),
        expected=_shown(expected[first]),
        found=_shown(theirs.get(first)),
        hint=rest if differing[1:] else None,
    )


def _shown(fact: Any) -> str:
    return _("nothing") if fact is None else str(fact)[:80]


def surroundings(run: Run, processes: Processes) -> Facts:
    """The versions and the machine of a run: if they change, the last bits of its numbers may."""
    device = processes.device
    return {
        "byhand": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "device": "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device),
        "processor": torch.backends.cpu.get_cpu_capability(),
        "processes": processes.count,
        "threads": run.threads,
    }


class RunFolder:
    """The folder of one run, held by one process at a time."""

    def __init__(self, path: Path, run: Run, start: str) -> None:
        self.path = path
        self.run = run
        self.identity = identity(run, start)
        self._lock: int | None = None

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / CHECKPOINTS

    def open(self, *, resume: bool, around: Facts) -> list[str]:
        """Makes the folder, or opens it again; returns what has changed since the run began."""
        with saving(self.path):
            self._check_place(resume)
            self.path.mkdir(parents=True, exist_ok=True)
            self._hold()
            if not (self.path / MANIFEST).exists():
                self._begin(around)
                return []
        return self._take_up(around)

    def close(self) -> None:
        """Releases the lock of the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _check_place(self, resume: bool) -> None:
        """Raises an error unless the folder is empty, or holds a run that is to be resumed."""
        path = self.path
        if path.exists() and not path.is_dir():
            raise OutputError(
                _("this is not a folder"), where=str(path), hint=_("choose another folder")
            )
        names = {entry.name for entry in path.iterdir()} if path.exists() else set()
        ours = {name for name in names if name in (RUN, LOCK) or name.endswith(DRAFT)}
        if self.checkpoints.is_dir() and not any(self.checkpoints.iterdir()):
            ours.add(CHECKPOINTS)  # of a run that ended before it had a manifest
        if MANIFEST in names and not resume:
            raise OutputError(
                _("this folder holds a run already"),
                where=str(path),
                hint=_("--resume goes on with it; --out DIR trains in another folder"),
            )
        if MANIFEST not in names and names - ours:
            raise OutputError(
                _("this folder holds something else"),
                where=str(path),
                expected=_("a new folder, or that of a run"),
                found=", ".join(sorted(names - ours)[:4]),
                hint=_("choose another folder"),
            )

    def _hold(self) -> None:
        """Locks the folder for as long as this process lives."""
        try:
            import fcntl
        except ImportError:  # a system without such locks
            return
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return  # a file system without locks
            raise OutputError(
                _("another process is training in this folder"), where=str(self.path)
            ) from None

    def _begin(self, around: Facts) -> None:
        """Writes the files of a new run, the manifest last: it marks the folder as a run."""
        run = self.run
        self.checkpoints.mkdir(exist_ok=True)
        put_in_place(self.path / RUN, run_text(run, self.path).encode())
        manifest = {
            "format": "byhand run",
            "version": 1,
            "name": run.name,
            **around,
            "seed": run.seed,
            "data": {"name": run.corpus.name, "sha256": run.corpus.digest},
            "parameters": size_of(run.spec),
            "run": self.identity,
        }
        put_in_place(self.path / MANIFEST, as_json(manifest))

    def _take_up(self, around: Facts) -> list[str]:
        path = self.path / MANIFEST
        try:
            manifest = json.loads(path.read_bytes())
            then = {key: manifest[key] for key in around}
            found = manifest["run"]
        except OSError as error:
            raise InputError(
                _("the file cannot be read: {reason}").format(reason=error.strerror),
                where=str(path),
            ) from None
        except (ValueError, KeyError, TypeError):
            raise InputError(
                _("this is not the manifest of a run"), where=str(path), expected='"byhand run"'
            ) from None
        check_identity(found, self.identity, self.path)
        return [
            _("{what} was {then} and is {now}").format(what=key, then=then[key], now=now)
            for key, now in around.items()
            if then[key] != now
        ]
