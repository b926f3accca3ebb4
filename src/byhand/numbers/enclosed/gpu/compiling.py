"""Kernels compiled by other processes, so that a pass does not wait: they fill Triton's own cache.

Threads would not do: a compiler written in Python holds the interpreter.  Each process runs
`compiler_process`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from threading import local

MOST = 14  # processes
PROGRAM = f"{__package__}.compiler_process"
HERE = local()  # the process of each thread


def submit(source: str, kinds: Sequence[str | int], device: int) -> Future[None]:
    """Compiles the kernel of this source for arguments of these kinds."""
    return _threads().submit(_hand_over, source, kinds, device)


@lru_cache(1)
def _threads() -> ThreadPoolExecutor:
    count = max(1, min(MOST, (os.cpu_count() or 2) - 2))
    return ThreadPoolExecutor(count, thread_name_prefix="byhand-kernels")


def _hand_over(source: str, kinds: Sequence[str | int], device: int) -> None:
    process = getattr(HERE, "process", None)
    if process is None or process.poll() is not None:
        paths = os.pathsep.join(path for path in sys.path if path)
        process = HERE.process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths}, text=True,
        )  # fmt: skip
    asked = json.dumps({"source": source, "kinds": list(kinds), "device": device})
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(asked + "\n")
    process.stdin.flush()
    process.stdout.readline()  # an error comes again where the kernel is launched
