"""The mistakes: the change of each in a port, its first wrong step, and the names of its cause.

catalogue   what a bug is, and the list of them norms · attention · positions · weights · stream ·
precision   where they are planted
"""

from benchmarks.planted.bugs import attention, norms, positions, precision, stream, weights
from benchmarks.planted.bugs.catalogue import BUGS, FORMATS, Bug

__all__ = ["BUGS", "FORMATS", "Bug", "attention", "norms", "positions", "precision", "stream",
           "weights"]  # fmt: skip
