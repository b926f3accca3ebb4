"""Marking someone else's working: which line does not follow, and what the mistake probably is.

claims file → `readers` → `matches` → claims at addresses → `judging` → verdicts → `diagnosis`

The plan is worked out once, in ranges of what a correct implementation may give
(`numbers.allowed`).  The claims replace its values line by line, so each line is judged from the
lines above it.
"""
