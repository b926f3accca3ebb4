"""The models of a property ready for passes, and the passes for one goal, in float64 or in Arb."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from byhand.model import Model
from byhand.proving.claims import Agree
from byhand.proving.enumeration import Enumeration, Told, told
from byhand.proving.extremes import ranged
from byhand.proving.hulls import Embedding
from byhand.proving.properties import Goal, Property
from byhand.proving.questions import Question
from byhand.proving.region_passes import RegionPasses, Weighed
from byhand.proving.text_tables import Texts


class Models:
    """The models of a property, each made ready once."""

    def __init__(self, property: Property) -> None:
        self.property = property
        self.free = property.moved > 0 or ranged(property.model)  # more than one model is meant
        self.by_letters, self.one_by_one = 0, 0  # assignments of small regions, by how decided
        self._embeddings: dict[int, Embedding] = {}
        self._weighed: dict[tuple[int, bool], Weighed] = {}

    def weighed(self, model: Model, *, precise: bool) -> Weighed:
        """A model ready for passes, in float64 or in Arb."""
        key = id(model), precise
        if key not in self._weighed:
            moved = self.property.moved if model is self.property.model else Fraction(0)
            embedding = self._embeddings.setdefault(id(model), Embedding(model, moved))
            self._weighed[key] = Weighed(model, embedding, precise=precise)
        return self._weighed[key]


class Passing:
    """The passes for one goal in one arithmetic: whole regions, and single texts."""

    def __init__(self, models: Models, goal: Goal, *, precise: bool) -> None:
        needed = [models.property.model]
        if isinstance(goal.claim, Agree):
            needed.append(goal.claim.other)
        self.models = [models.weighed(model, precise=precise) for model in needed]
        self.embedding = self.models[0].embedding
        self.regions = RegionPasses(goal.shape, self.models)
        self.texts = [Enumeration(model) for model in self.models]

    def told(self, texts: Texts, questions: Sequence[Question]) -> Told:
        """What enclosures say of single texts."""
        return told(self.texts, texts, questions)
