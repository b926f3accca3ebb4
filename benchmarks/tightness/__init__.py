"""The share of `check`'s bounds that real programs use, by operation and format.

`python -m benchmarks.tightness` prints the table; with `--record` it is written to
docs/check-tightness.json.
"""
