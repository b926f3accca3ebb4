"""Proofs: the digits of one text, a property of every text of a domain, and its certificate."""
