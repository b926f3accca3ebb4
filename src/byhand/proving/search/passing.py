"""The models of a property ready for passes, and the passes for one goal, in float64 or in Arb."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from numbers import Real

from byhand.model import Model
from byhand.numbers.base import Printed, Within
from byhand.proving.claims import Agree, Claim, Unmoved
from byhand.proving.properties import Goal, Property
from byhand.proving.search.enumeration import Enumeration, Told, told
from byhand.proving.search.extremes import ranged
from byhand.proving.search.hulls import Embedding
from byhand.proving.search.questions import Question
from byhand.proving.search.region_passes import RegionPasses, Weighed
from byhand.proving.search.text_tables import Texts


class Models:
    """The models of a property, each made ready once."""

    def __init__(self, property: Property) -> None:
        self.property = property
        self.free = property.moved > 0 or ranged(property.model)  # more than one model is meant
        self.own_is_one = _among(property.own, property.model)  # of those that are meant
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

    def others(self, claim: Claim) -> list[Model]:
        """The models that must predict the same as the property's.

        Where the model with its own numbers is one of those that are meant, a token that leads in
        all of them leads in it as well."""
        if isinstance(claim, Agree):
            return [claim.other]
        return [self.property.own] if isinstance(claim, Unmoved) and not self.own_is_one else []


def _among(own: Model, model: Model) -> bool:
    """Whether a model is one of those that another one with ranges stands for."""
    if own is model:
        return True
    for name, tensor in model.weights.items():
        for entry, number in zip(tensor.data.flat, own.weights[name].data.flat, strict=True):
            if isinstance(entry, Printed | Within) and isinstance(number, Real):
                exact = number if isinstance(number, Fraction) else Fraction(float(number))
                if abs(exact - entry.value) > entry.radius:
                    return False
            elif entry != number:
                return False
    return True


class Passing:
    """The passes for one goal in one arithmetic: whole regions, and single texts."""

    def __init__(self, models: Models, goal: Goal, *, precise: bool) -> None:
        needed = [models.property.model, *models.others(goal.claim)]
        self.models = [models.weighed(model, precise=precise) for model in needed]
        self.embedding = self.models[0].embedding
        self.regions = RegionPasses(goal.shape, self.models)
        self.texts = [Enumeration(model) for model in self.models]

    def told(self, texts: Texts, questions: Sequence[Question]) -> Told:
        """What enclosures say of single texts."""
        return told(self.texts, texts, questions)
