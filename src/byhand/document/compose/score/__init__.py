"""Scored texts as a report: each engine's errors, what they look like, where to look next."""

from byhand.document.compose.score.reporting import sections, title

__all__ = ["sections", "title"]
