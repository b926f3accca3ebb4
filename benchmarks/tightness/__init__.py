"""How much of what `check` allows real programs use, operation by operation and format by format.

`python -m benchmarks.tightness` prints the table; with `--record` it is written to
docs/check-tightness.json.
"""
