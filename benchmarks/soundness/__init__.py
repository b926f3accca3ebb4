"""Attempts to break the proofs: rules, passes and engines against the truth at high precision."""

import sys
from pathlib import Path

# the oracles of the tests are the truth here as well
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
