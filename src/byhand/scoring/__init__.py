"""Scoring: the log-probability of every token of a text, and what engines logged for it."""
