"""What a chapter of the course is composed from: its passes worked out, counts and records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from byhand.counting import Inventory
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.course.syllabus import Lesson
from byhand.spec import ModelSpec

if TYPE_CHECKING:
    from byhand.models.records import NormsRecord, TrainingRecord


@dataclass(frozen=True, slots=True)
class Reading:
    """One pass of a chapter, worked out; of a config, the architecture and its counts alone."""

    spec: ModelSpec
    inventory: Inventory
    counts: Mapping[str, int]
    called: str  # the model's argument for `byhand check`
    edition: Edition | None = None
    record: TrainingRecord | None = None
    config: Mapping[str, Any] | None = None  # its config.json

    @property
    def worked(self) -> Edition:
        """The edition of a pass that has one."""
        assert self.edition is not None
        return self.edition


@dataclass(frozen=True, slots=True)
class Answer:
    """The right answer of an exercise, and the number of its typical slip, as they are written."""

    right: tuple[str, ...]
    wrong: tuple[str, ...]
    row: bool


@dataclass(frozen=True, slots=True)
class Materials:
    """Everything that one chapter is composed from."""

    lesson: Lesson
    readings: Mapping[str, Reading]
    norms: NormsRecord
    answers: tuple[Answer, ...]

    @property
    def main(self) -> Edition:
        """The edition whose figure stands beside the chapter."""
        return self.readings[self.lesson.main].worked
