"""byhand works a transformer out by hand: exact where it can be, named where it can't.

>>> import byhand
>>> trace = byhand.trace("tiny", "a b")
>>> trace["logits[1]"].tolist()
[1, -1, 0]
"""

__version__ = "0.1.0"
