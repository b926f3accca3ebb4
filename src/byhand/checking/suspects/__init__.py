"""Suspects: the mistakes that people make, as edits of the plan.

`edits` gives plans with one deliberate mistake each.  `diagnosis` works each out from the claimed
lines above and keeps those that explain the claim.  `Mistaken` is their number system.
"""

from byhand.checking.suspects.catalogue import MOST, edits
from byhand.checking.suspects.numbers import Mistaken
from byhand.checking.suspects.scenes import Context, Edit, Scene

__all__ = ["MOST", "Context", "Edit", "Mistaken", "Scene", "edits"]
