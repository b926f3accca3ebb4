"""The mistakes: what each changes in a port, where it first shows, and what names its cause.

catalogue   what a bug is, and the list of them
norms · attention · positions · weights · stream · precision   where they are planted
"""

from benchmarks.planted.bugs import attention, norms, positions, precision, stream, weights
from benchmarks.planted.bugs.catalogue import BUGS, FORMATS, Bug

__all__ = ["BUGS", "FORMATS", "Bug", "attention", "norms", "positions", "precision", "stream",
           "weights"]  # fmt: skip
