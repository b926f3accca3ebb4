"""Generation: a text that goes on, one token after the other, each at the cost of one position.

`generation` works the tokens out and chooses the most probable ones; `sampling` draws instead.
"""

from byhand.generating.generation import Chosen, Generation, generate
from byhand.generating.sampling import Sampling

__all__ = ["Chosen", "Generation", "Sampling", "generate"]
