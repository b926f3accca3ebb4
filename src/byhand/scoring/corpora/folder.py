"""The folder of a corpus' scores: a manifest, and shards that appear whole, each of them once.

    manifest.json    the model, the texts and the numbers, by digests; how many shards there are
    shard-00000.parquet, shard-00001.parquet, …

A shard that is there is never written again.  So a run goes on after any kill by looking at the
names of the files alone.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from byhand.drafts import write_whole, writing
from byhand.errors import InputError, OutputError
from byhand.language import _

MANIFEST, LOCK = "manifest.json", "lock"
FORMAT = "byhand scores"

Facts = Mapping[str, Any]


def shard_path(folder: Path, number: int) -> Path:
    """Where a shard is."""
    return folder / f"shard-{number:05d}.parquet"


@contextmanager
def opened(folder: Path, facts: Facts) -> Iterator[set[int]]:
    """The folder of a run, new or taken up, held for this process; the shards that are there.

    A folder of another model, other texts or other numbers is refused, and so is one that holds
    something else.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with _held(folder):
        _begin_or_take_up(folder, facts)
        yield {number for number in range(facts["shards"]) if shard_path(folder, number).is_file()}


def _begin_or_take_up(folder: Path, facts: Facts) -> None:
    there = {path.name for path in folder.iterdir()} - {LOCK}
    if MANIFEST in there:
        _refuse_others(folder, facts)
        for draft in folder.glob(".shard-*"):  # of a writer that was killed
            with suppress(OSError):
                draft.unlink()
    elif there:
        raise OutputError(
            _("this folder holds something else"),
            where=str(folder),
            expected=_("a new folder, or that of a run"),
            found=", ".join(sorted(there)[:4]),
            hint=_("choose another folder"),
        )
    else:
        write_whole(folder / MANIFEST, (json.dumps(facts, indent=1) + "\n").encode())


def read_manifest(folder: Path) -> Facts:
    """The facts of a run; an InputError where they cannot be read."""
    path = folder / MANIFEST
    try:
        facts = json.loads(path.read_bytes())
        if facts["format"] != FORMAT:
            raise ValueError
        return facts  # type: ignore[no-any-return]
    except OSError as error:
        raise InputError(
            _("the file cannot be read: {reason}").format(reason=error.strerror), where=str(path)
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            _("this is not the manifest of a run"), where=str(path), expected=f'"{FORMAT}"'
        ) from None


def _refuse_others(folder: Path, facts: Facts) -> None:
    then = read_manifest(folder)
    for key, now in facts.items():
        if then.get(key) != now:
            raise InputError(
                _("this folder holds the scores of another run: {what} differs").format(what=key),
                where=str(folder / MANIFEST),
                expected=str(now),
                found=str(then.get(key)),
                hint=_("choose another folder"),
            )


def digest_of(folder: Path, shards: int) -> str:
    """What tells the manifest and all shards, byte for byte, from all others."""
    told = sha256((folder / MANIFEST).read_bytes())
    for number in range(shards):
        with shard_path(folder, number).open("rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                told.update(block)
    return told.hexdigest()


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Locks the folder for this process; the system ends the lock if the process is killed."""
    try:
        import fcntl
    except ImportError:  # a system without such locks
        yield
        return
    with writing(folder):
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise OutputError(
                    _("another process is scoring into this folder"), where=str(folder)
                ) from None
        yield
    finally:
        os.close(lock)
