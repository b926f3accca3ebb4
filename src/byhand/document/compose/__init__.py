"""Composers: what was worked out, marked or explained becomes parts of a document."""
