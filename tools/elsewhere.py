"""A command run with an older processor's kernels: `python tools/elsewhere.py THREADS COMMAND …`.

NumPy, OpenBLAS, torch, MKL and oneDNN choose their kernels by processor, and each kernel sums in
its own order.  With the oldest kernels, which every processor of this kind has, the last digits of
floats are those of another machine.
"""

from __future__ import annotations

import os
import sys


def oldest_kernels() -> dict[str, str]:
    """The environment variables that make each library use its oldest kernels."""
    return {
        "OPENBLAS_CORETYPE": "Prescott",
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_CBWR": "COMPATIBLE",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "NPY_DISABLE_CPU_FEATURES": " ".join(_dispatched()),
    }


def _dispatched() -> list[str]:
    """The features for which NumPy has kernels beside its oldest ones."""
    try:
        from numpy._core import _multiarray_umath as umath
    except ModuleNotFoundError:  # before NumPy 2
        from numpy.core import _multiarray_umath as umath
    return list(umath.__cpu_dispatch__)


def main(threads: str, *command: str) -> None:
    counts = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    os.execvpe(command[0], command, {**os.environ, **oldest_kernels(), **counts})


if __name__ == "__main__":
    main(*sys.argv[1:])
