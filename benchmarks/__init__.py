"""Speed, as ratios measured side by side in one run: `python -m benchmarks`.

Everything runs on one thread, set before numerical libraries are imported.  Byte code is written,
as on any ordinary machine, so that a cold start does not compile modules each time.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
