"""Hostile but correct runs: arithmetic of its class never exceeds a bound of `check`.

Random small models with weights near powers of two, below the normal numbers, of extreme scales and
with outliers a thousand times larger; worked out by ports that add in every order, take variances
in one go, attend block by block, and flush what is below the normal numbers or keep it.
`python -m benchmarks.hostile [--seed N] [--models N]` says how many entries were judged, and each
that lies outside.
"""
