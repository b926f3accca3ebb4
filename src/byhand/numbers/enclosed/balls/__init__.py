"""Arb balls: every number a ball that contains the real value, entry by entry."""
