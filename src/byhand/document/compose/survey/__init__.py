"""A survey as a report: other tokens than the true one, margins, errors by position and layer."""

from byhand.document.compose.survey.reporting import sections, title

__all__ = ["sections", "title"]
