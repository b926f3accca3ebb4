"""The process that compiles kernels for `compiling`, and leaves them in Triton's own cache.

It gets sources on its standard input, one JSON object a line, and answers a line for each.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

from byhand.numbers.enclosed.gpu.kernels import compiled


def work() -> None:
    """Compiles what is asked on standard input, until it ends."""
    torch = import_module("torch")
    for line in sys.stdin:
        asked = json.loads(line)
        said = "done"
        try:
            kinds = [getattr(torch, k) if isinstance(k, str) else k for k in asked["kinds"]]
            with torch.cuda.device(asked["device"]):
                compiled(asked["source"]).warmup(*kinds, grid=(1,), enable_fp_fusion=False)
        except Exception as error:  # of the compiler: of many kinds
            said = type(error).__name__
        print(said, flush=True)


if __name__ == "__main__":
    work()
