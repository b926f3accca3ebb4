"""Attempts to break the proofs: rules, passes and engines against the truth at high precision."""
