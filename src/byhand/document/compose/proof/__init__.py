"""A search for a proof as a report: the answer, the domain, the cases and the tightest ones."""

from byhand.document.compose.proof.reporting import report, sections, title

__all__ = ["report", "sections", "title"]
