"""Corpora: many texts scored by several workers, into shards that survive kills."""
